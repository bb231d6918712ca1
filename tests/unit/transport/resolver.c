/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: see resolver.h. Thread: any. */
#include "tests/unit/transport/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool is_held;
static int flags_asked;

void
resolver_hold(bool held)
{
	pthread_mutex_lock(&lock);
	is_held = held;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
}

int
resolver_flags(void)
{
	pthread_mutex_lock(&lock);
	int flags = flags_asked;
	pthread_mutex_unlock(&lock);
	return flags;
}

struct sockaddr_in
resolver_loopback(unsigned number, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number),
		.sin_port = htons(port),
	};
}

/* Before `next` in the list. */
static struct addrinfo *
add(struct sockaddr_in at, struct addrinfo *next)
{
	struct addrinfo *ai = calloc(1, sizeof(*ai) + sizeof(at));
	WF_ASSERT(ai != NULL);
	memcpy(ai + 1, &at, sizeof(at));
	ai->ai_family = at.sin_family;
	ai->ai_socktype = SOCK_STREAM;
	ai->ai_addr = (struct sockaddr *)(ai + 1);
	ai->ai_addrlen = sizeof(at);
	ai->ai_next = next;
	return ai;
}

/* Returns when the question may be answered. */
static void
ask(const char *name, int flags)
{
	pthread_mutex_lock(&lock);
	flags_asked = flags;
	while (strcmp(name, "slow") == 0 && (flags & AI_NUMERICHOST) == 0 && is_held) {
		pthread_cond_wait(&released, &lock);
	}
	pthread_mutex_unlock(&lock);
}

int
getaddrinfo(const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **out)
{
	uint16_t number = port != NULL ? (uint16_t)strtoul(port, NULL, 10) : 0;
	bool is_numeric = strcmp(name, "127.0.0.1") == 0;
	bool has_many = strcmp(name, "many") == 0;
	ask(name, hints->ai_flags);
	if (strcmp(name, "nobody") == 0 ||
	    ((hints->ai_flags & AI_NUMERICHOST) != 0 && !is_numeric)) {
		return EAI_NONAME;
	}
	*out = NULL;
	for (unsigned i = has_many ? RESOLVER_MANY : 1; i > 0; i--) {
		*out = add(resolver_loopback(i - 1, number), *out);
	}
	if (has_many) {
		*out = add((struct sockaddr_in){.sin_family = AF_UNIX}, *out);
	}
	return 0;
}

void
freeaddrinfo(struct addrinfo *ai)
{
	while (ai != NULL) {
		struct addrinfo *next = ai->ai_next;
		free(ai);
		ai = next;
	}
}

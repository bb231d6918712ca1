/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"

/* ---- one address ---- */

void
wf_address_format(const struct sockaddr *address, char out[WF_ADDRESS_TEXT_BYTES])
{
	char text[INET6_ADDRSTRLEN] = "";
	if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		snprintf(out, WF_ADDRESS_TEXT_BYTES, "[%s]:%u", text, ntohs(v6->sin6_port));
	} else if (address->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(out, WF_ADDRESS_TEXT_BYTES, "%s:%u", text, ntohs(v4->sin_port));
	} else {
		snprintf(out, WF_ADDRESS_TEXT_BYTES, "(no address)");
	}
}

void
wf_address_name(const struct wf_host *asked, const struct sockaddr_storage *address, char *out,
		size_t bytes)
{
	char numeric[WF_ADDRESS_TEXT_BYTES];
	char name[WF_HOST_BYTES + 8];
	wf_address_format((const struct sockaddr *)address, numeric);
	wf_host_format(asked, name, sizeof(name));
	if (strcmp(name, numeric) == 0) {
		snprintf(out, bytes, "%s", numeric);
	} else {
		snprintf(out, bytes, "%.60s (%s)", name, numeric);
	}
}

socklen_t
wf_address_bytes(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
}

uint16_t
wf_address_port(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6
		       ? ntohs(((const struct sockaddr_in6 *)address)->sin6_port)
		       : ntohs(((const struct sockaddr_in *)address)->sin_port);
}

bool
wf_address_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6) {
		const struct in6_addr *at = &((const struct sockaddr_in6 *)address)->sin6_addr;
		return IN6_IS_ADDR_LOOPBACK(at) ||
		       (IN6_IS_ADDR_V4MAPPED(at) && at->s6_addr[12] == 127);
	}
	return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

/* Whether this host has the address; the port is 0. An error of another kind is not its fault. */
static bool
can_bind(const struct sockaddr *address, socklen_t bytes)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool lacks = fd < 0 ? errno == EAFNOSUPPORT
			    : bind(fd, address, bytes) != 0 && errno == EADDRNOTAVAIL;
	if (fd >= 0) {
		close(fd);
	}
	return !lacks;
}

const char *
wf_address_loopback(void)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};

	bool only_v6 = !can_bind((const struct sockaddr *)&v4, sizeof(v4)) &&
		       can_bind((const struct sockaddr *)&v6, sizeof(v6));
	return only_v6 ? "::1" : WF_LOOPBACK;
}

void
wf_address_set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	} else {
		((struct sockaddr_in *)address)->sin_port = htons(port);
	}
}

/* ---- names ---- */

/* Returns as getaddrinfo does. */
static int
find(const char *name, const char *port, int flags, struct wf_addresses *out)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = flags,
	};
	struct addrinfo *list = NULL;
	memset(out, 0, sizeof(*out));
	int error = getaddrinfo(name, port, &hints, &list);
	for (const struct addrinfo *ai = error == 0 ? list : NULL; ai != NULL; ai = ai->ai_next) {
		bool usable = ai->ai_family == AF_INET || ai->ai_family == AF_INET6;
		if (usable && out->count < WF_ADDRESSES_MAX) {
			memcpy(&out->at[out->count++], ai->ai_addr, ai->ai_addrlen);
		}
	}
	if (error == 0) {
		freeaddrinfo(list);
	}
	return error;
}

static int
find_host(const struct wf_host *host, int flags, struct wf_addresses *out)
{
	char port[8];
	snprintf(port, sizeof(port), "%u", host->port);
	return find(host->name, port, AI_NUMERICSERV | flags, out);
}

enum weft_status
wf_addresses_here(const char *name, struct wf_addresses *out)
{
	int error = find(name, NULL, AI_PASSIVE, out);
	if (error != 0) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "listen on \"%s\": %s; name an address of this host", name,
			       gai_strerror(error));
	}
	return WEFT_OK;
}

bool
wf_addresses_numeric(const struct wf_host *host, struct wf_addresses *out)
{
	return find_host(host, AI_NUMERICHOST, out) == 0;
}

/* ---- look-ups ---- */

static void
run(struct wf_task *task)
{
	struct wf_look_up *l = (struct wf_look_up *)task; /* first member */
	l->error = find_host(&l->host, 0, &l->found);
}

static bool
is_done(const struct wf_look_up *l)
{
	return atomic_load_explicit(&l->task.done, memory_order_acquire); /* env's release */
}

enum weft_status
wf_look_up_start(struct wf_env *env, const struct wf_host *host, int wake_fd,
		 struct wf_look_up **out)
{
	struct wf_look_up *l = wf_zalloc(env, sizeof(*l));
	if (l == NULL) {
		return wf_fail(WEFT_NOMEM, "look-up of %s: %zu bytes", host->name, sizeof(*l));
	}
	l->task.run = run;
	l->task.wake_fd = wake_fd;
	l->host = *host;
	enum weft_status st = env->ops->submit(env, &l->task);
	if (st != WEFT_OK) {
		wf_free(env, l, sizeof(*l));
		return st;
	}
	*out = l;
	return WEFT_OK;
}

enum weft_status
wf_look_up_end(struct wf_env *env, struct wf_look_up **look_up, struct wf_addresses *out)
{
	struct wf_look_up *l = *look_up;
	if (!is_done(l)) {
		return WEFT_AGAIN;
	}
	int error = l->error;
	*out = l->found;
	*look_up = NULL;
	wf_free(env, l, sizeof(*l));
	if (error != 0) {
		return wf_fail(WEFT_UNAVAILABLE, "the name is not known: %s", gai_strerror(error));
	}
	return WEFT_OK;
}

void
wf_look_up_abandon(struct wf_look_up **look_up, struct wf_look_up **list)
{
	if (*look_up != NULL) {
		(*look_up)->next = *list;
		*list = *look_up;
		*look_up = NULL;
	}
}

void
wf_look_up_reap(struct wf_env *env, struct wf_look_up **list, bool wait)
{
	struct wf_look_up **at = list;
	while (*at != NULL) {
		struct wf_look_up *l = *at;
		if (is_done(l)) {
			*at = l->next;
			wf_free(env, l, sizeof(*l));
		} else if (wait) {
			wf_wait(env, -1, wf_now_ns(env) + WF_NS_PER_MS);
		} else {
			at = &l->next;
		}
	}
}

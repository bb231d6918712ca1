/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as texts, and names to addresses, of a system whose answers are given here.
 * Thread: the test's, and one that looks a name up. */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/address.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool held; /* "slow" is not answered */
static int flags_asked;

static struct addrinfo *
found(int family, unsigned number, const char *port)
{
	struct addrinfo *ai = calloc(1, sizeof(*ai) + sizeof(struct sockaddr_storage));
	assert_non_null(ai);
	struct sockaddr_storage *at = (struct sockaddr_storage *)(ai + 1);
	at->ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)at;
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
		v4->sin_port = htons(port != NULL ? (uint16_t)strtoul(port, NULL, 10) : 0);
	}
	ai->ai_family = family;
	ai->ai_addr = (struct sockaddr *)at;
	ai->ai_addrlen = sizeof(*at);
	return ai;
}

/* In place of the system's: "many" has more addresses than are taken, of which the first is of a
 * family that nobody speaks. */
int
getaddrinfo(const char *name, const char *port, const struct addrinfo *hints, struct addrinfo **out)
{
	unsigned count = strcmp(name, "many") == 0 ? WF_ADDRESSES_MAX + 3 : 1;
	flags_asked = hints->ai_flags;
	if (strcmp(name, "nobody") == 0 ||
	    ((hints->ai_flags & AI_NUMERICHOST) != 0 && strcmp(name, "127.0.0.1") != 0)) {
		return EAI_NONAME;
	}
	pthread_mutex_lock(&lock);
	while (strcmp(name, "slow") == 0 && held) {
		pthread_cond_wait(&released, &lock);
	}
	pthread_mutex_unlock(&lock);
	*out = NULL;
	for (unsigned i = count; i > 0; i--) {
		struct addrinfo *ai = found(count > 1 && i == 1 ? AF_UNIX : AF_INET, i - 1, port);
		ai->ai_next = *out;
		*out = ai;
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

static void
set_held(bool to)
{
	pthread_mutex_lock(&lock);
	held = to;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
}

static struct sockaddr_storage
v6(uint16_t port)
{
	struct sockaddr_storage at = {.ss_family = AF_INET6};
	((struct sockaddr_in6 *)&at)->sin6_addr = in6addr_loopback;
	wf_address_set_port(&at, port);
	return at;
}

static void
addresses_read_as_they_are_written(void **state)
{
	char text[WF_ADDRESS_TEXT_BYTES];
	struct sockaddr_storage at = v6(7164);
	(void)state;
	wf_address_format((struct sockaddr *)&at, text);
	assert_string_equal(text, "[::1]:7164");
	assert_int_equal(wf_address_port(&at), 7164);
	assert_int_equal(wf_address_bytes(&at), sizeof(struct sockaddr_in6));
	struct wf_addresses four;
	assert_true(wf_addresses_numeric(&(struct wf_host){.name = "127.0.0.1", .port = 7}, &four));
	assert_int_equal(four.count, 1);
	assert_int_equal(flags_asked, AI_NUMERICSERV | AI_NUMERICHOST);
	wf_address_format((struct sockaddr *)&four.at[0], text);
	assert_string_equal(text, "127.0.0.1:7");
	wf_address_set_port(&four.at[0], 65535);
	assert_int_equal(wf_address_port(&four.at[0]), 65535);
	assert_int_equal(wf_address_bytes(&four.at[0]), sizeof(struct sockaddr_in));
	struct sockaddr none = {.sa_family = AF_UNIX};
	wf_address_format(&none, text);
	assert_string_equal(text, "(no address)");
}

static void
a_peer_is_named_as_it_was_asked_for(void **state)
{
	char text[WF_HOST_BYTES + 8 + WF_ADDRESS_TEXT_BYTES];
	struct sockaddr_storage at = v6(7164);
	struct wf_host name = {.name = "node7", .port = 7164};
	struct wf_host numeric = {.name = "::1", .port = 7164};
	(void)state;
	wf_address_name(&name, &at, text, sizeof(text));
	assert_string_equal(text, "node7:7164 ([::1]:7164)");
	wf_address_name(&numeric, &at, text, sizeof(text));
	assert_string_equal(text, "[::1]:7164");
}

static void
the_first_addresses_of_a_family_that_is_spoken_are_taken(void **state)
{
	struct wf_addresses here;
	char text[WF_ADDRESS_TEXT_BYTES];
	(void)state;
	assert_int_equal(wf_addresses_here("many", &here), WEFT_OK);
	assert_int_equal(flags_asked, AI_PASSIVE);
	assert_int_equal(here.count, WF_ADDRESSES_MAX);
	wf_address_format((struct sockaddr *)&here.at[0], text);
	assert_string_equal(text, "127.0.0.2:0");
	assert_int_equal(wf_addresses_here("nobody", &here), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "listen on \"nobody\""));
	assert_false(wf_addresses_numeric(&(struct wf_host){.name = "many"}, &here));
}

static enum weft_status
await(struct wf_env *env, struct wf_look_up **look_up, struct wf_addresses *out)
{
	enum weft_status st = WEFT_AGAIN;
	while (st == WEFT_AGAIN) {
		st = wf_look_up_end(env, look_up, out);
		if (st == WEFT_AGAIN) {
			wf_wait(env, -1, wf_now_ns(env) + WF_NS_PER_MS);
		}
	}
	return st;
}

static void
a_look_up_ends_with_addresses_or_why_not(void **state)
{
	struct wf_env *env = *state;
	struct wf_look_up *look_up = NULL;
	struct wf_addresses at = {0};
	struct wf_host slow = {.name = "slow", .port = 9};
	struct wf_host nobody = {.name = "nobody", .port = 9};
	set_held(true);
	assert_int_equal(wf_look_up_start(env, &slow, -1, &look_up), WEFT_OK);
	assert_int_equal(wf_look_up_end(env, &look_up, &at), WEFT_AGAIN);
	assert_non_null(look_up);
	set_held(false);
	assert_int_equal(await(env, &look_up, &at), WEFT_OK);
	assert_null(look_up);
	assert_int_equal(at.count, 1);
	assert_int_equal(wf_address_port(&at.at[0]), 9);
	assert_int_equal(wf_look_up_start(env, &nobody, -1, &look_up), WEFT_OK);
	assert_int_equal(await(env, &look_up, &at), WEFT_UNAVAILABLE);
	assert_null(look_up);
	assert_non_null(strstr(weft_last_error(), "the name is not known: "));
}

static void
a_look_up_that_nobody_waits_for_is_freed_when_it_is_done(void **state)
{
	struct wf_env *env = *state;
	struct wf_look_up *look_up = NULL;
	struct wf_look_up *list = NULL;
	struct wf_host slow = {.name = "slow", .port = 9};
	wf_look_up_abandon(&look_up, &list);
	assert_null(list);
	set_held(true);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wf_look_up_start(env, &slow, -1, &look_up), WEFT_OK);
		wf_look_up_abandon(&look_up, &list);
		assert_null(look_up);
	}
	wf_look_up_reap(env, &list, false);
	assert_non_null(list);
	assert_non_null(list->next);
	set_held(false);
	wf_look_up_reap(env, &list, true);
	assert_null(list);
}

static int
open_env(void **state)
{
	struct wf_env *env = NULL;
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, 2, &env);
	*state = env;
	return st == WEFT_OK ? 0 : -1;
}

static int
close_env(void **state)
{
	wf_env_system_destroy(*state);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_read_as_they_are_written),
		cmocka_unit_test(a_peer_is_named_as_it_was_asked_for),
		cmocka_unit_test(the_first_addresses_of_a_family_that_is_spoken_are_taken),
		cmocka_unit_test(a_look_up_ends_with_addresses_or_why_not),
		cmocka_unit_test(a_look_up_that_nobody_waits_for_is_freed_when_it_is_done),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}

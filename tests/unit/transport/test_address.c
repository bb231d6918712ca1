/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as texts, and names to addresses, of a system whose answers are given here.
 * Thread: the test's, and one that looks a name up. */
#include <arpa/inet.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "tests/unit/transport/resolver.h"

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
	assert_int_equal(resolver_flags(), AI_NUMERICSERV | AI_NUMERICHOST);
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
loopback_is_what_only_this_host_reaches(void **state)
{
	static const struct {
		const char *name;
		bool loopback;
	} cases[] = {
		{"127.0.0.1", true},
		{"127.0.1.1", true},
		{"126.0.0.1", false},
		{"0.0.0.0", false},
		{"::1", true},
		{"::", false},
		{"::ffff:127.0.0.5", true},
		{"::ffff:10.0.0.1", false},
		{"fe80::1", false},
	};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct sockaddr_storage at = {0};
		bool is_v6 = strchr(cases[i].name, ':') != NULL;
		at.ss_family = is_v6 ? AF_INET6 : AF_INET;
		void *bytes = is_v6 ? (void *)&((struct sockaddr_in6 *)&at)->sin6_addr
				    : (void *)&((struct sockaddr_in *)&at)->sin_addr;
		assert_int_equal(inet_pton(at.ss_family, cases[i].name, bytes), 1);
		assert_int_equal(wf_address_is_loopback(&at), cases[i].loopback);
	}
}

static void
the_first_addresses_of_a_family_that_is_spoken_are_taken(void **state)
{
	struct wf_addresses here;
	char text[WF_ADDRESS_TEXT_BYTES];
	(void)state;
	assert_int_equal(wf_addresses_here("many", &here), WEFT_OK);
	assert_int_equal(resolver_flags(), AI_PASSIVE);
	assert_int_equal(here.count, WF_ADDRESSES_MAX);
	wf_address_format((struct sockaddr *)&here.at[0], text);
	assert_string_equal(text, "127.0.0.1:0");
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
	resolver_hold(true);
	assert_int_equal(wf_look_up_start(env, &slow, -1, &look_up), WEFT_OK);
	assert_int_equal(wf_look_up_end(env, &look_up, &at), WEFT_AGAIN);
	assert_non_null(look_up);
	resolver_hold(false);
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
	resolver_hold(true);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wf_look_up_start(env, &slow, -1, &look_up), WEFT_OK);
		wf_look_up_abandon(&look_up, &list);
		assert_null(look_up);
	}
	wf_look_up_reap(env, &list, false);
	assert_non_null(list);
	assert_non_null(list->next);
	resolver_hold(false);
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
		cmocka_unit_test(loopback_is_what_only_this_host_reaches),
		cmocka_unit_test(the_first_addresses_of_a_family_that_is_spoken_are_taken),
		cmocka_unit_test(a_look_up_ends_with_addresses_or_why_not),
		cmocka_unit_test(a_look_up_that_nobody_waits_for_is_freed_when_it_is_done),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}

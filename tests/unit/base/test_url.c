/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of url: which texts are addresses, which are not, and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/assert.h"
#include "base/url.h"

#define DEFAULT_PORT 7164

static void
addresses_are_read_as_users_write_them(void **state)
{
	static const struct {
		const char *text;
		const char *name;
		uint16_t port;
		const char *printed;
	} cases[] = {
		{"10.0.0.1", "10.0.0.1", 7164, "10.0.0.1:7164"},
		{"10.0.0.1:80", "10.0.0.1", 80, "10.0.0.1:80"},
		{"node7:7200", "node7", 7200, "node7:7200"},
		{"localhost", "localhost", 7164, "localhost:7164"},
		{"a_b-c.example.", "a_b-c.example.", 7164, "a_b-c.example.:7164"},
		{"::1", "::1", 7164, "[::1]:7164"},
		{"::", "::", 7164, "[::]:7164"},
		{"[::1]", "::1", 7164, "[::1]:7164"},
		{"[::1]:1", "::1", 1, "[::1]:1"},
		{"[::ffff:10.0.0.1]:65535", "::ffff:10.0.0.1", 65535, "[::ffff:10.0.0.1]:65535"},
		{"fe80::1%eth0", "fe80::1%eth0", 7164, "[fe80::1%eth0]:7164"},
		{"[fe80::1%eth0]:9", "fe80::1%eth0", 9, "[fe80::1%eth0]:9"},
		{"2001:db8::7:7164", "2001:db8::7:7164", 7164, "[2001:db8::7:7164]:7164"},
		{"h:00080", "h", 80, "h:80"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_host host;
		char printed[WF_HOST_BYTES + 8];
		assert_int_equal(wf_host_parse(cases[i].text, DEFAULT_PORT, &host), WEFT_OK);
		assert_string_equal(host.name, cases[i].name);
		assert_int_equal(host.port, cases[i].port);
		wf_host_format(&host, printed, sizeof(printed));
		assert_string_equal(printed, cases[i].printed);
	}
}

static void
bad_addresses_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *text;
		const char *reason;
	} cases[] = {
		{"", "empty"},
		{":80", "no host name"},
		{"h:", "no port"},
		{"h:0", "1 to 65535"},
		{"h:65536", "1 to 65535"},
		{"h:18446744073709551617", "1 to 65535"},
		{"h:8x", "not a number"},
		{"h:-1", "not a number"},
		{"h:+1", "not a number"},
		{"h: 1", "not a number"},
		{"a b", "not a host name"},
		{" a", "not a host name"},
		{"tcp://a", "not a number"},
		{"a/b:1", "not a host name"},
		{"a:b:c", "several colons"},
		{"1:2:3", "several colons"},
		{"fe80::1%", "several colons"},
		{"fe80::1%a b", "several colons"},
		{"[::1", "is missing"},
		{"[]", "no host name"},
		{"[]:1", "no host name"},
		{"[localhost]:1", "no IPv6 address"},
		{"[::1]x", "only :port"},
		{"[::1]:", "no port"},
		{"[::1]:65536", "1 to 65535"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_host host = {.name = "untouched", .port = 5};
		assert_int_equal(wf_host_parse(cases[i].text, DEFAULT_PORT, &host), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), cases[i].reason));
		assert_non_null(strstr(weft_last_error(), cases[i].text));
		assert_string_equal(host.name, "untouched");
		assert_int_equal(host.port, 5);
	}
}

static void
a_host_name_has_a_longest_length(void **state)
{
	char text[WF_HOST_BYTES + 16];
	struct wf_host host;
	char printed[WF_HOST_BYTES + 8];
	memset(text, 'a', sizeof(text));
	memcpy(text + WF_HOST_BYTES - 1, ":65535", 7);
	assert_int_equal(wf_host_parse(text, DEFAULT_PORT, &host), WEFT_OK);
	wf_host_format(&host, printed, sizeof(printed));
	assert_string_equal(printed, text);
	text[WF_HOST_BYTES - 1] = 'a';
	text[WF_HOST_BYTES] = '\0';
	assert_int_equal(wf_host_parse(text, DEFAULT_PORT, &host), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "256 bytes, at most 255"));
}

static void
a_list_allows_blanks_around_commas(void **state)
{
	struct wf_host hosts[4];
	unsigned count = 0;
	assert_int_equal(wf_host_list_parse(" a:1 , [::1]:2,b ", 9, hosts, 4, &count), WEFT_OK);
	assert_int_equal(count, 3);
	assert_string_equal(hosts[0].name, "a");
	assert_int_equal(hosts[0].port, 1);
	assert_string_equal(hosts[1].name, "::1");
	assert_int_equal(hosts[1].port, 2);
	assert_string_equal(hosts[2].name, "b");
	assert_int_equal(hosts[2].port, 9);
}

static void
a_bad_list_is_refused_and_changes_nothing(void **state)
{
	static const struct {
		const char *text;
		const char *reason;
	} cases[] = {
		{"", "the address list is empty"},  {"a,,b", "entry 2 is empty"},
		{"a,b,", "entry 3 is empty"},       {",a", "entry 1 is empty"},
		{"a, ,b", "entry 2 is empty"},      {"a,b:99999", "1 to 65535"},
		{"a,b,c,d", "more than 3 entries"}, {"a b,c", "not a host name"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_host hosts[3] = {{.name = "untouched"}};
		unsigned count = 77;
		assert_int_equal(wf_host_list_parse(cases[i].text, 9, hosts, 3, &count),
				 WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), cases[i].reason));
		assert_string_equal(hosts[0].name, "untouched");
		assert_int_equal(count, 77);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read_as_users_write_them),
		cmocka_unit_test(bad_addresses_are_refused_with_the_reason),
		cmocka_unit_test(a_host_name_has_a_longest_length),
		cmocka_unit_test(a_list_allows_blanks_around_commas),
		cmocka_unit_test(a_bad_list_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

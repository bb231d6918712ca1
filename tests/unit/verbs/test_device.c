/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that need no device to be made: an address out of a table, how much may be locked, what a
 * device calls an address. Thread: one. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "base/assert.h"
#include "transport/verbs/verbs_internal.h"

static struct ibv_gid_entry
entry(const char *address, uint32_t type)
{
	struct ibv_gid_entry e = {.gid_type = type};
	assert_int_equal(inet_pton(AF_INET6, address, e.gid.raw), 1);
	return e;
}

/* As hosts have them: link-local first, each address in both versions, holes in between. */
static void
an_address_of_the_right_family_and_version_is_picked(void **state)
{
	const struct ibv_gid_entry table[] = {
		entry("fe80::1", IBV_GID_TYPE_ROCE_V1),
		entry("fe80::1", IBV_GID_TYPE_ROCE_V2),
		entry("::", IBV_GID_TYPE_ROCE_V2),
		entry("::ffff:10.0.0.7", IBV_GID_TYPE_ROCE_V1),
		entry("::ffff:10.0.0.7", IBV_GID_TYPE_ROCE_V2),
		entry("fd00::7", IBV_GID_TYPE_ROCE_V1),
		entry("fd00::7", IBV_GID_TYPE_ROCE_V2),
	};
	const unsigned count = WF_ARRAY_COUNT(table);
	assert_int_equal(wf_verbs_gid_pick(table, count, AF_INET), 4);
	assert_int_equal(wf_verbs_gid_pick(table, count, AF_INET6), 6);
	assert_int_equal(wf_verbs_gid_pick(table, 4, AF_INET), -1);
	assert_int_equal(wf_verbs_gid_pick(table, 6, AF_INET6), -1);
	assert_int_equal(wf_verbs_gid_pick(table, 0, AF_INET), -1);
}

static void
a_limit_on_locked_memory_is_seen_before_it_is_met(void **state)
{
	const uint64_t limit = 8u << 20;
	assert_int_equal(wf_verbs_memlock_check(limit, 0, limit), WEFT_OK);
	assert_int_equal(wf_verbs_memlock_check(4u << 20, 4u << 20, limit), WEFT_OK);
	assert_int_equal(wf_verbs_memlock_check(limit + 1, 0, limit), WEFT_NOMEM);
	assert_int_equal(wf_verbs_memlock_check(1, limit, limit), WEFT_NOMEM);
	assert_int_equal(wf_verbs_memlock_check(1, limit + 1, limit), WEFT_NOMEM);
	assert_int_equal(wf_verbs_memlock_check(UINT64_MAX, 1, limit), WEFT_NOMEM);
	assert_int_equal(wf_verbs_memlock_check(24u << 20, 1u << 20, limit), WEFT_NOMEM);
	assert_non_null(strstr(weft_last_error(), "24576 KiB"));
	assert_non_null(strstr(weft_last_error(), "8192 KiB"));
	assert_non_null(strstr(weft_last_error(), "1024 KiB"));
	assert_non_null(strstr(weft_last_error(), "ulimit -l unlimited"));
}

/* A device of iWARP: there the limit counts for root, too. */
static void
what_cannot_be_made_says_the_limit_on_locked_memory(void **state)
{
	const struct wf_verbs_device dev = {.name = "siw0", .caps = {.iwarp = true}};
	const struct rlimit unlimited = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	const struct rlimit little = {.rlim_cur = 64u << 10, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	static const int said[] = {ENOMEM, EAGAIN, 0};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(said); i++) {
		assert_int_equal(wf_verbs_fail_made(&dev, said[i], "a queue pair for %s", "node7"),
				 WEFT_NOMEM);
		assert_non_null(strstr(weft_last_error(), "siw0: a queue pair for node7"));
		assert_non_null(strstr(weft_last_error(), "the limit is 64 KiB, 0 KiB"));
		assert_non_null(strstr(weft_last_error(), "ulimit -l unlimited"));
	}
	/* What has another cause, or no limit, is not blamed on it. */
	assert_int_equal(wf_verbs_fail_made(&dev, EINVAL, "a queue"), WEFT_NOMEM);
	assert_null(strstr(weft_last_error(), "limit"));
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0) { /* this user may */
		assert_int_equal(wf_verbs_fail_made(&dev, ENOMEM, "a queue"), WEFT_NOMEM);
		assert_string_equal(weft_last_error(), "siw0: a queue: Cannot allocate memory");
	}
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

/* Root of a container without rights on the host has every capability, and is limited all the
 * same. */
static void
a_capability_of_a_user_namespace_lifts_no_limit(void **state)
{
	const struct wf_verbs_device dev = {.name = "mlx5_0"};
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit little = {.rlim_cur = 64u << 10, .rlim_max = 64u << 10};
		if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || unshare(CLONE_NEWUSER) != 0) {
			_exit(77);
		}
		_exit(wf_verbs_memlock_room(&dev, 1u << 20) == WEFT_NOMEM ? 0 : 1);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		skip(); /* no user namespaces here */
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
kernels_that_share_locked_memory_with_children_are_known(void **state)
{
	static const char *const old[] = {"5.11.0-27-generic",
					  "5.4.0-42-generic",
					  "5.9",
					  "4.18.0-553.el8.x86_64",
					  "3.10.0",
					  "",
					  "x"};
	static const char *const mended[] = {"5.12.0", "5.14.0-362.el9.x86_64", "6.1.0-18-amd64",
					     "6.0", "10.2.1"};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(old); i++) {
		assert_true(wf_verbs_fork_needs_care(old[i]));
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(mended); i++) {
		assert_false(wf_verbs_fork_needs_care(mended[i]));
	}
}

static uint64_t
device_address(bool own, uintptr_t base, uintptr_t at)
{
	const struct wf_verbs_caps caps = {.own_addresses = own};
	return wf_verbs_iova(&caps, (const void *)base, (const void *)at);
}

/* Pages of all sizes lie alike in both, and the upper half of the address is not told. */
static void
addresses_of_a_device_keep_their_place_in_pages(void **state)
{
	const uintptr_t base = 0x7f1234567000u;
	const uint64_t page = 1u << 30;
	const uint64_t first = device_address(true, base, base);
	assert_true(first < page && first == base % page);
	assert_int_equal(device_address(true, base, base + 5000), first + 5000);
	assert_int_equal(device_address(false, base, base + 5000), base + 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_of_the_right_family_and_version_is_picked),
		cmocka_unit_test(a_limit_on_locked_memory_is_seen_before_it_is_met),
		cmocka_unit_test(what_cannot_be_made_says_the_limit_on_locked_memory),
		cmocka_unit_test(a_capability_of_a_user_namespace_lifts_no_limit),
		cmocka_unit_test(kernels_that_share_locked_memory_with_children_are_known),
		cmocka_unit_test(addresses_of_a_device_keep_their_place_in_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that need no device to be made: an address out of a table, how much may be locked, what a
 * device calls an address. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
		cmocka_unit_test(addresses_of_a_device_keep_their_place_in_pages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

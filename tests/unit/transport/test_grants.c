/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that backends embed: regions by number, and PUTs held against grants.
 * Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "transport/grants.h"
#include "transport/regions.h"

#define MEMORY_BYTES 4096u

/* All that grants ask of an env. */
static uint64_t
no_chance(struct wf_env *env)
{
	(void)env;
	return 0;
}

static const struct wf_env_ops env_ops = {.random = no_chance};

struct books {
	struct wf_env env;
	uint8_t memory[MEMORY_BYTES];
	struct wf_regions regions;
	uint32_t region;
	struct wf_grants grants;
};

static void
books_init(struct books *b)
{
	memset(b, 0, sizeof(*b));
	b->env.ops = &env_ops;
	struct wf_region region = {.base = b->memory, .bytes = MEMORY_BYTES, .memfd = -1};
	assert_int_equal(wf_regions_add(&b->regions, "test", &region, &b->region), WEFT_OK);
	wf_grants_init(&b->grants, &b->env, &b->regions, "somebody");
}

/* A claim that is right for the grant's first byte. */
static struct wf_put_claim
grant(struct books *b, enum wf_grant_kind kind, uint64_t offset, uint64_t bytes)
{
	struct wf_grant wanted = {
		.kind = kind,
		.region = b->region,
		.offset = offset,
		.bytes = bytes,
		.slot_count = kind == WF_GRANT_SLOTS ? 4 : 0,
	};
	struct wf_grant_key key;
	assert_int_equal(wf_grants_add(&b->grants, &wanted, &key), WEFT_OK);
	struct wf_put_claim claim = {.bytes = 1};
	wf_grant_key_read(&key, &claim.grant, &claim.nonce);
	for (size_t i = WF_GRANT_KEY_USED_BYTES; i < sizeof(key.bytes); i++) {
		assert_int_equal(key.bytes[i], 0);
	}
	return claim;
}

static void
assert_refused(struct books *b, struct wf_put_claim claim, const char *text)
{
	struct wf_landing landing = {.put.tag = 77};
	assert_int_equal(wf_grants_open(&b->grants, &claim, &landing), WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), text));
	assert_int_equal(landing.put.tag, 77);
}

static void
number_of_a_region_comes_again_and_its_generation_does_not(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	uint64_t generation = b.regions.generation[b.region - 1];
	wf_regions_remove(&b.regions, b.region);
	assert_null(wf_regions_find(&b.regions, b.region));
	struct wf_region region = {.base = b.memory, .bytes = 1, .memfd = 5};
	uint32_t again = 0;
	assert_int_equal(wf_regions_add(&b.regions, "test", &region, &again), WEFT_OK);
	assert_int_equal(again, b.region);
	assert_int_equal(b.regions.region[again - 1].memfd, 5);
	assert_true(b.regions.generation[again - 1] > generation);
}

static void
full_table_of_regions_names_the_backend(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	struct wf_region region = {.base = b.memory, .bytes = 1, .memfd = -1};
	uint32_t number = 0;
	for (unsigned i = 1; i < WF_REGIONS_MAX; i++) {
		assert_int_equal(wf_regions_add(&b.regions, "test", &region, &number), WEFT_OK);
	}
	assert_int_equal(wf_regions_add(&b.regions, "test", &region, &number), WEFT_NOMEM);
	assert_non_null(strstr(weft_last_error(), "test: 64 regions"));
}

static void
region_holds_what_lies_within_it_and_nothing_else(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	assert_true(wf_regions_hold(&b.regions, b.region, b.memory, MEMORY_BYTES));
	assert_true(wf_regions_hold(&b.regions, b.region, b.memory + MEMORY_BYTES - 1, 1));
	assert_true(wf_regions_hold(&b.regions, b.region, b.memory + MEMORY_BYTES, 0));
	assert_false(wf_regions_hold(&b.regions, b.region, b.memory + MEMORY_BYTES, 1));
	assert_false(wf_regions_hold(&b.regions, b.region, b.memory + 1, MEMORY_BYTES));
	assert_false(wf_regions_hold(&b.regions, b.region, b.memory + 1, UINT64_MAX));
	const void *below = (const void *)((uintptr_t)b.memory - 1);
	assert_false(wf_regions_hold(&b.regions, b.region, below, 1));
	const uint32_t wrong[] = {0, b.region + 1, WF_REGIONS_MAX, WF_REGIONS_MAX + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(wf_regions_hold(&b.regions, wrong[i], b.memory, 1));
		assert_null(wf_regions_find(&b.regions, wrong[i]));
	}
}

static void
claim_within_a_place_lands_where_it_says(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	struct wf_put_claim claim = grant(&b, WF_GRANT_PLACE, 100, 50);
	claim.offset = 7;
	claim.bytes = 43;
	claim.tag = 12;
	for (unsigned i = 0; i < 2; i++) { /* a place may be put into again at any time */
		struct wf_landing landing;
		assert_int_equal(wf_grants_open(&b.grants, &claim, &landing), WEFT_OK);
		assert_ptr_equal(landing.at, b.memory + 107);
		assert_true(landing.left == 43);
		assert_false(landing.in_slot);
		struct wf_event event = {0};
		wf_grants_landed(&b.grants, &landing, &event);
		assert_int_equal(event.put.tag, 12);
		assert_null(event.put.data);
		assert_true(event.put.bytes == 43);
	}
}

static void
claim_outside_its_grant_is_refused(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	struct wf_put_claim good = grant(&b, WF_GRANT_PLACE, 100, 50);
	const uint64_t wrong[][2] = {{0, 51},         {50, 1},         {51, 0},
				     {UINT64_MAX, 2}, {1, UINT64_MAX}, {UINT64_MAX, 0}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct wf_put_claim claim = good;
		claim.offset = wrong[i][0];
		claim.bytes = wrong[i][1];
		assert_refused(&b, claim, "outside its grant");
	}
}

static void
claim_under_a_key_that_nobody_made_is_refused(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	struct wf_put_claim good = grant(&b, WF_GRANT_PLACE, 0, 50);
	const uint32_t numbers[] = {0, 2, WF_GRANTS_MAX + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct wf_put_claim claim = good;
		claim.grant = numbers[i];
		assert_refused(&b, claim, "no such grant");
	}
	struct wf_put_claim claim = good;
	claim.nonce = 0; /* also where that was drawn */
	assert_refused(&b, claim, "no such grant");
	wf_grants_drop(&b.grants);
	assert_refused(&b, good, "no such grant");
}

static void
slot_takes_one_put_until_it_is_released(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	struct wf_put_claim claim = grant(&b, WF_GRANT_SLOTS, 64, 32);
	claim.tag = wf_tag(6, 1); /* buffer 2 of 4 */
	claim.bytes = 31;
	struct wf_landing landing = {0};
	struct wf_event event = {0};
	assert_int_equal(wf_grants_open(&b.grants, &claim, &landing), WEFT_OK);
	assert_true(landing.in_slot);
	assert_int_equal(landing.buffer, 2);
	assert_ptr_equal(landing.at, b.memory + 64 + 2 * 32);
	assert_refused(&b, claim, "has not been released");
	const uint8_t *at = landing.at;
	wf_grants_landed(&b.grants, &landing, &event);
	assert_ptr_equal(event.put.data, at);
	assert_true(event.put.bytes == 31);
	claim.tag = wf_tag(2, 1);
	assert_refused(&b, claim, "has not been released");
	uint32_t buffer = 0;
	assert_true(wf_grants_release(&b.grants, 2, &buffer));
	assert_int_equal(buffer, 2);
	assert_int_equal(wf_grants_open(&b.grants, &claim, &landing), WEFT_OK);
	wf_grants_landed(&b.grants, &landing, &event);
	wf_grants_drop(&b.grants);
	assert_false(wf_grants_release(&b.grants, 2, &buffer));
}

/* Whoever reads the slot reads from its beginning. */
static void
claim_into_the_middle_of_a_slot_is_refused(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	struct wf_put_claim good = grant(&b, WF_GRANT_SLOTS, 64, 32);
	const uint64_t offsets[] = {1, 4, 28, 31};
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct wf_put_claim claim = good;
		claim.offset = offsets[i];
		assert_refused(&b, claim, "not at the beginning of its slot");
	}
	struct wf_landing landing = {0};
	assert_int_equal(wf_grants_open(&b.grants, &good, &landing), WEFT_OK);
}

static void
one_end_grants_one_kind_and_within_its_regions(void **state)
{
	(void)state;
	struct books b;
	books_init(&b);
	struct wf_grant_key key;
	struct wf_grant slots = {.kind = WF_GRANT_SLOTS,
				 .region = b.region,
				 .bytes = MEMORY_BYTES / 2,
				 .slot_count = 4};
	assert_int_equal(wf_grants_add(&b.grants, &slots, &key), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "grant to somebody: 8192 bytes at offset 0"));
	grant(&b, WF_GRANT_PLACE, 0, 1);
	slots.bytes = 1;
	assert_int_equal(wf_grants_add(&b.grants, &slots, &key), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "has granted places"));
	for (unsigned i = 1; i < WF_GRANTS_MAX; i++) {
		grant(&b, WF_GRANT_PLACE, i, 1);
	}
	struct wf_grant place = {.kind = WF_GRANT_PLACE, .region = b.region, .bytes = 1};
	assert_int_equal(wf_grants_add(&b.grants, &place, &key), WEFT_NOMEM);
	wf_grants_drop(&b.grants);
	grant(&b, WF_GRANT_SLOTS, 0, 1);
	assert_int_equal(wf_grants_add(&b.grants, &place, &key), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "has granted its slots already"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_of_a_region_comes_again_and_its_generation_does_not),
		cmocka_unit_test(full_table_of_regions_names_the_backend),
		cmocka_unit_test(region_holds_what_lies_within_it_and_nothing_else),
		cmocka_unit_test(claim_within_a_place_lands_where_it_says),
		cmocka_unit_test(claim_outside_its_grant_is_refused),
		cmocka_unit_test(claim_under_a_key_that_nobody_made_is_refused),
		cmocka_unit_test(slot_takes_one_put_until_it_is_released),
		cmocka_unit_test(claim_into_the_middle_of_a_slot_is_refused),
		cmocka_unit_test(one_end_grants_one_kind_and_within_its_regions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

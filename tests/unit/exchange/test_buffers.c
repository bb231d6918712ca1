/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of buffers: what was allocated is released once, however far the setup got. The env and the
 * transport are counters. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exchange/buffers.h"
#include "transport/ops.h"

static unsigned slabs, regions; /* that are out */
static enum weft_status slab_status, region_status;
static uint8_t memory[64];

static enum weft_status
open_slab(struct wf_env *env, size_t bytes, int node, struct wf_slab *out)
{
	(void)env;
	assert_int_equal(bytes, 48);
	assert_int_equal(node, 3);
	if (slab_status == WEFT_OK) {
		*out = (struct wf_slab){.base = memory, .bytes = sizeof(memory), .memfd = 9};
		slabs++;
	}
	return slab_status;
}

static void
close_slab(struct wf_env *env, struct wf_slab *slab)
{
	(void)env;
	assert_ptr_equal(slab->base, memory);
	slabs--;
}

static enum weft_status
add_region(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	(void)transport;
	assert_true(region->base == memory && region->bytes == 64 && region->memfd == 9);
	if (region_status == WEFT_OK) {
		*out = 5;
		regions++;
	}
	return region_status;
}

static void
remove_region(struct wf_transport *transport, uint32_t region)
{
	(void)transport;
	assert_int_equal(region, 5);
	regions--;
}

static const struct wf_env_ops env_ops = {.slab_open = open_slab, .slab_close = close_slab};
static struct wf_env env = {&env_ops};
static const struct wf_transport_ops ops = {.region_add = add_region,
					    .region_remove = remove_region};
static struct wf_transport transport = {.ops = &ops};

static void
what_was_taken_is_given_back_once(void **state)
{
	struct wf_buffers buffers = {0};
	(void)state;
	slab_status = WEFT_OK;
	region_status = WEFT_OK;
	assert_int_equal(wf_buffers_open(&buffers, &env, &transport, 48, 3), WEFT_OK);
	assert_true(buffers.slab.base == memory && buffers.region == 5);
	assert_int_equal(slabs + regions, 2);
	wf_buffers_close(&buffers, &env, &transport);
	assert_int_equal(slabs + regions, 0);
	wf_buffers_close(&buffers, &env, &transport);
	assert_int_equal(slabs + regions, 0);
}

static void
what_is_half_taken_is_given_back(void **state)
{
	struct wf_buffers buffers = {0};
	(void)state;
	slab_status = WEFT_NOMEM;
	assert_int_equal(wf_buffers_open(&buffers, &env, &transport, 48, 3), WEFT_NOMEM);
	wf_buffers_close(&buffers, &env, &transport);
	slab_status = WEFT_OK;
	region_status = WEFT_UNAVAILABLE;
	assert_int_equal(wf_buffers_open(&buffers, &env, &transport, 48, 3), WEFT_UNAVAILABLE);
	assert_int_equal(slabs, 1);
	wf_buffers_close(&buffers, &env, &transport);
	assert_int_equal(slabs + regions, 0);
}

static void
a_transport_that_is_closed_has_let_its_regions_go(void **state)
{
	struct wf_buffers buffers = {0};
	(void)state;
	slab_status = WEFT_OK;
	region_status = WEFT_OK;
	assert_int_equal(wf_buffers_open(&buffers, &env, &transport, 48, 3), WEFT_OK);
	wf_buffers_close(&buffers, &env, NULL);
	assert_int_equal(slabs, 0);
	assert_int_equal(regions, 1);
}

static void
a_slab_that_the_end_has_allocated_becomes_a_region(void **state)
{
	const struct wf_slab slab = {.base = memory, .bytes = sizeof(memory), .memfd = 9};
	uint32_t region = 0;
	(void)state;
	region_status = WEFT_OK;
	regions = 0;
	assert_int_equal(wf_buffers_add(&transport, &slab, &region), WEFT_OK);
	assert_int_equal(region, 5);
	assert_int_equal(regions, 1);
	region_status = WEFT_NOMEM;
	assert_int_equal(wf_buffers_add(&transport, &slab, &region), WEFT_NOMEM);
	assert_int_equal(regions, 1);
}

static void
a_slab_without_memory_is_not_added(void **state)
{
	const struct wf_slab none = {.memfd = -1};
	uint32_t region = 7;
	(void)state;
	region_status = WEFT_NOMEM; /* what the transport would say */
	assert_int_equal(wf_buffers_add(&transport, &none, &region), WEFT_OK);
	assert_int_equal(region, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_taken_is_given_back_once),
		cmocka_unit_test(what_is_half_taken_is_given_back),
		cmocka_unit_test(a_transport_that_is_closed_has_let_its_regions_go),
		cmocka_unit_test(a_slab_that_the_end_has_allocated_becomes_a_region),
		cmocka_unit_test(a_slab_without_memory_is_not_added),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

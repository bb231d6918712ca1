/* SPDX-License-Identifier: Apache-2.0 */
/* A region that comes while a published PUT is read: another one may, the one that is read may not
 * be replaced. Thread: one; the peer, which does all by hand, and the transport take turns. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/shm/hostile.h"

#define PLACE_AT (1u << 20)
#define PLACE_BYTES (512u << 10) /* two polls copy it */
WF_STATIC_ASSERT(PLACE_BYTES > WF_SHM_RX_BUDGET, "one poll does not");
#define SECOND_BYTES 8192u

/* The peer's second region of this number replaces the first. */
#define FIRST wf_shm_region_id(3, 1)
#define FIRST_AGAIN wf_shm_region_id(3, 2)
#define SECOND wf_shm_region_id(4, 1)

static struct hostile h;

/* A region of the peer with this in each byte. */
static void
send_region(uint32_t id, uint64_t bytes, uint8_t fill)
{
	int memfd = hostile_memfd(bytes, F_SEAL_SHRINK);
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_true(memory != MAP_FAILED);
	memset(memory, fill, bytes);
	munmap(memory, bytes);
	hostile_region(&h, id, bytes, memfd);
	close(memfd);
}

/* All of a region, published, into the beginning of what was granted. */
static void
put_region(uint32_t id, uint64_t bytes)
{
	union wf_shm_note note = {
		.put = {.kind = WF_SHM_PUT, .where = WF_SHM_REF, .region = id, .bytes = bytes}};
	wf_grant_key_read(&h.key, &note.put.grant, &note.put.nonce);
	hostile_fill(&h, &note);
}

/* The peer PUTs all of its first region into what it was granted. */
static void
begin(enum wf_grant_kind kind)
{
	hostile_join(&h, NULL);
	const struct wf_grant grant = {.kind = kind,
				       .region = h.rig.region,
				       .offset = PLACE_AT,
				       .bytes = PLACE_BYTES,
				       .slot_count = kind == WF_GRANT_SLOTS ? 1 : 0};
	assert_int_equal(wf_transport_grant(h.rig.conn, &grant, &h.key), WEFT_OK);
	send_region(FIRST, PLACE_BYTES, 1);
	put_region(FIRST, PLACE_BYTES);
}

/* The first half of a PUT into a place has been copied. */
static int
set_up_copy(void **state)
{
	(void)state;
	begin(WF_GRANT_PLACE);
	const uint8_t *place = (const uint8_t *)h.rig.slab.base + PLACE_AT;
	while (place[0] != 1) {
		(void)shm_rig_pump(&h.rig);
	}
	assert_int_equal(h.rig.puts, 0);
	assert_int_equal(place[PLACE_BYTES - 1], 0);
	return 0;
}

/* A PUT is in a slot, which means that it is read where the peer has it. */
static int
set_up_slot(void **state)
{
	(void)state;
	begin(WF_GRANT_SLOTS);
	shm_rig_await(&h.rig, &h.rig.puts, 1);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	hostile_close(&h);
	return 0;
}

static void
expect_refusal(void)
{
	shm_rig_await(&h.rig, &h.rig.downs, 1);
	assert_int_equal(h.rig.down_status, WEFT_PROTOCOL);
	assert_non_null(strstr(h.rig.why, "region 3 again, while it is in use"));
}

static void
another_region_may_come_while_one_is_copied(void **state)
{
	(void)state;
	send_region(SECOND, SECOND_BYTES, 2);
	put_region(SECOND, SECOND_BYTES);
	while (h.rig.puts < 2 && h.rig.downs == 0) {
		(void)shm_rig_pump(&h.rig);
	}
	assert_string_equal(h.rig.why, "");
	const uint8_t *place = (const uint8_t *)h.rig.slab.base + PLACE_AT;
	assert_int_equal(place[SECOND_BYTES - 1], 2);
	for (size_t i = SECOND_BYTES; i < PLACE_BYTES; i++) {
		assert_int_equal(place[i], 1);
	}
}

static void
region_that_is_copied_cannot_be_replaced(void **state)
{
	(void)state;
	send_region(FIRST_AGAIN, SECOND_BYTES, 2);
	expect_refusal();
	assert_int_equal(h.rig.puts, 0);
}

static void
region_that_was_copied_can_be_replaced(void **state)
{
	(void)state;
	shm_rig_await(&h.rig, &h.rig.puts, 1);
	send_region(FIRST_AGAIN, SECOND_BYTES, 2);
	put_region(FIRST_AGAIN, SECOND_BYTES);
	shm_rig_await(&h.rig, &h.rig.puts, 2);
	assert_int_equal(h.rig.downs, 0);
}

static void
region_that_is_lent_cannot_be_replaced(void **state)
{
	(void)state;
	send_region(FIRST_AGAIN, SECOND_BYTES, 2);
	expect_refusal();
}

static void
another_region_may_come_while_one_is_lent(void **state)
{
	(void)state;
	const uint8_t *lent = h.rig.data;
	send_region(SECOND, SECOND_BYTES, 2);
	wf_transport_release(h.rig.conn, 0);
	put_region(SECOND, SECOND_BYTES);
	shm_rig_await(&h.rig, &h.rig.puts, 2);
	assert_int_equal(h.rig.downs, 0);
	assert_int_equal(lent[0], 1);
	assert_int_equal(((const uint8_t *)h.rig.data)[0], 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(another_region_may_come_while_one_is_copied,
						set_up_copy, tear_down),
		cmocka_unit_test_setup_teardown(region_that_is_copied_cannot_be_replaced,
						set_up_copy, tear_down),
		cmocka_unit_test_setup_teardown(region_that_was_copied_can_be_replaced, set_up_copy,
						tear_down),
		cmocka_unit_test_setup_teardown(region_that_is_lent_cannot_be_replaced, set_up_slot,
						tear_down),
		cmocka_unit_test_setup_teardown(another_region_may_come_while_one_is_lent,
						set_up_slot, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

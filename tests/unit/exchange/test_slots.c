/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of slots: every order of four steps on one slot of a window follows the table in slots.h;
 * what is released and credited, and when; parking; the end of the path. The transport is a list of
 * calls. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/status.h"
#include "exchange/slots.h"
#include "tests/unit/wire/heap_env.h"
#include "transport/ops.h"

#define COUNT 4u

/* The transport. */

static unsigned released[COUNT]; /* times */
static unsigned grants;
static struct wf_grant granted;
static enum weft_status grant_status;

static void
note_release(struct wf_conn *conn, uint32_t slot)
{
	(void)conn;
	released[slot]++;
}

static enum weft_status
note_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	(void)conn;
	grants++;
	granted = *grant;
	memset(out->bytes, 7, sizeof(out->bytes));
	return grant_status;
}

static const struct wf_transport_ops ops = {.release = note_release, .grant = note_grant};
static struct wf_transport transport = {.ops = &ops};
static struct wf_conn conn = {.transport = &transport, .ops = &ops};
static struct wf_slots slots;
static struct heap_env heap;

static int
set_up(void **state)
{
	(void)state;
	memset(released, 0, sizeof(released));
	grants = 0;
	grant_status = WEFT_OK;
	heap = heap_env_make();
	assert_int_equal(wf_slots_open(&heap.env, COUNT, &slots), WEFT_OK);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	wf_slots_close(&heap.env, &slots);
	assert_null(slots.word);
	assert_int_equal(heap.out_bytes, 0);
	return 0;
}

/* The payload. */

static uint32_t copied[COUNT];
static uint32_t copied_count;

static uint64_t
copy(void *arg, uint32_t word)
{
	assert_ptr_equal(arg, &copied_count);
	copied[copied_count++] = word;
	return 100;
}

static struct wf_slots_parked
park(struct wf_conn *path)
{
	copied_count = 0;
	return wf_slots_park(&slots, path, copy, &copied_count);
}

/* Every order of four steps, on slot 1. */

enum { HOLD, READ, FREE, CREDIT, PARK, SENT, ENDS, STEPS };

/* As the table has it; 0: it may not be. `H`: held. */
static const char table[4][STEPS + 1] = {
	[0] = "HR0CFFF", /* F */
	[1] = "00FCCHF", /* H */
	[2] = "00FCRRF", /* R */
	[3] = "0000CFF", /* C */
};
static const char states[] = "FHRC";

static char
state_of(uint32_t slot)
{
	switch (slots.word[slot]) {
	case WF_SLOT_FREE:
		return 'F';
	case WF_SLOT_READ:
		return 'R';
	case WF_SLOT_CREDIT:
		return 'C';
	default:
		assert_int_equal(slots.word[slot], 17);
		return 'H';
	}
}

static void
make(unsigned step, char before)
{
	struct wf_msg_credit msg = {0};
	switch (step) {
	case HOLD:
		wf_slots_hold(&slots, 1, 17);
		break;
	case READ:
		wf_slots_read(&slots, &conn, 1);
		break;
	case FREE:
		if (before == 'H') {
			wf_slots_free(&slots, &conn, 1);
		} else {
			wf_slots_answered(&slots, 1);
		}
		break;
	case CREDIT:
		wf_slots_credit(&slots, &conn, 1);
		break;
	case PARK:
		assert_int_equal(park(&conn).bytes, before == 'H' ? 100 : 0);
		break;
	case SENT:
		wf_slots_fill_credit(&slots, &msg);
		assert_int_equal(msg.count, before == 'C' ? 1 : 0);
		assert_int_equal(msg.buffer[0], before == 'C' ? 1 : 0);
		wf_slots_credit_sent(&slots);
		break;
	default:
		wf_slots_path_ends(&slots);
	}
}

/* A slot that is not free and not held has been released, once; held, it has not been. */
static void
assert_consistent(char state, unsigned puts, bool ended)
{
	assert_int_equal(slots.held, state == 'H' ? 1 : 0);
	assert_int_equal(slots.credit_count, state == 'C' ? 1 : 0);
	assert_int_equal(wf_slots_check(&slots, 1), state == 'F' ? WEFT_OK : WEFT_PROTOCOL);
	if (!ended) {
		assert_int_equal(released[1], state == 'H' ? puts - 1 : puts);
	}
}

static unsigned
run_order(unsigned order)
{
	char state = 'F';
	unsigned puts = 0;
	unsigned made = 0;
	bool ended = false;
	memset(released, 0, sizeof(released));
	wf_slots_path_ends(&slots);
	for (; made < 4; made++, order /= STEPS) {
		unsigned step = order % STEPS;
		char after = table[strchr(states, state) - states][step];
		if (after == '0') {
			break;
		}
		make(step, state);
		ended = ended || step == ENDS;
		puts += step == HOLD || step == READ || (step == CREDIT && state == 'F') ? 1 : 0;
		assert_int_equal(state_of(1), after);
		assert_consistent(after, puts, ended);
		state = after;
	}
	return made;
}

static void
each_order_of_four_steps_follows_the_table(void **state)
{
	(void)state;
	unsigned whole = 0;
	for (unsigned order = 0; order < STEPS * STEPS * STEPS * STEPS; order++) {
		whole += run_order(order) == 4 ? 1 : 0;
	}
	assert_in_range(whole, 500, 1500); /* of 2,401; the others are not in the table */
}

static void
a_window_without_memory_takes_none(void **state)
{
	struct wf_slots none = {0};
	(void)state;
	wf_slots_close(&heap.env, &none);
	for (unsigned i = 1; i <= 2; i++) {
		heap.fail_at = heap.calls + i;
		assert_int_equal(wf_slots_open(&heap.env, COUNT, &none), WEFT_NOMEM);
		assert_int_equal(heap.out_bytes, wf_slots_table_bytes(COUNT)); /* set_up's */
		assert_int_equal(none.count, 0);
	}
}

static void
a_put_into_a_slot_that_is_not_free_says_why(void **state)
{
	(void)state;
	wf_slots_hold(&slots, 2, 5);
	assert_int_equal(wf_slots_check(&slots, 2), WEFT_PROTOCOL);
	assert_string_equal(weft_last_error(), "PUT: into slot 2, which is in use");
	wf_slots_credit(&slots, &conn, 2);
	assert_int_equal(wf_slots_check(&slots, 2), WEFT_PROTOCOL);
	assert_string_equal(weft_last_error(), "PUT: into slot 2 before its CREDIT");
	assert_int_equal(wf_slots_check(&slots, 1), WEFT_OK);
}

static void
a_tag_names_the_slot_in_its_low_bits(void **state)
{
	(void)state;
	assert_int_equal(wf_slots_of_tag(&slots, wf_tag(9 * COUNT + 3, 77)), 3);
}

static void
a_full_window_is_parked_and_credited(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_false(wf_slots_are_full(&slots));
		wf_slots_hold(&slots, i, 40 + i);
	}
	assert_true(wf_slots_are_full(&slots));
	struct wf_slots_parked parked = park(&conn);
	assert_int_equal(parked.slots, COUNT);
	assert_int_equal(parked.bytes, COUNT * 100);
	struct wf_msg_credit msg = {0};
	wf_slots_fill_credit(&slots, &msg);
	assert_int_equal(msg.count, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(copied[i], 40 + i);
		assert_int_equal(msg.buffer[i], i);
		assert_int_equal(released[i], 1);
		assert_int_equal(wf_slots_check(&slots, i), WEFT_PROTOCOL);
	}
	wf_slots_credit_sent(&slots);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(wf_slots_check(&slots, i), WEFT_OK);
	}
}

static void
what_is_not_held_is_not_parked(void **state)
{
	(void)state;
	wf_slots_read(&slots, &conn, 0);
	wf_slots_credit(&slots, &conn, 1);
	wf_slots_hold(&slots, 3, 9);
	assert_int_equal(park(&conn).slots, 1);
	assert_int_equal(copied[0], 9);
	assert_int_equal(slots.word[0], WF_SLOT_READ);
	assert_int_equal(slots.credit_count, 2);
}

static void
a_path_that_has_ended_leaves_nothing_to_release(void **state)
{
	(void)state;
	wf_slots_hold(&slots, 0, 1);
	wf_slots_hold(&slots, 1, 2);
	wf_slots_credit(&slots, &conn, 1);
	wf_slots_read(&slots, &conn, 2);
	assert_int_equal(park(NULL).slots, 1);
	assert_int_equal(released[0], 0);
	wf_slots_path_ends(&slots);
	assert_int_equal(slots.credit_count, 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(wf_slots_check(&slots, i), WEFT_OK);
	}
}

static void
all_that_is_held_goes_at_once(void **state)
{
	(void)state;
	wf_slots_hold(&slots, 0, 1);
	wf_slots_read(&slots, &conn, 1);
	wf_slots_hold(&slots, 3, 2);
	wf_slots_free_all(&slots, &conn);
	assert_int_equal(slots.held + slots.credit_count, 0);
	assert_int_equal(released[0] + released[3], 2);
	wf_slots_hold(&slots, 0, 1);
	wf_slots_hold(&slots, 2, 2);
	wf_slots_credit_all(&slots, &conn);
	assert_int_equal(slots.held, 0);
	assert_int_equal(slots.credit_count, 2);
	assert_int_equal(slots.word[1], WF_SLOT_READ);
}

static void
a_window_is_granted_once_a_path(void **state)
{
	(void)state;
	grant_status = WEFT_AGAIN;
	assert_int_equal(wf_slots_grant(&slots, &conn, 3, 4096, 512), WEFT_AGAIN);
	grant_status = WEFT_OK;
	assert_int_equal(wf_slots_grant(&slots, &conn, 3, 4096, 512), WEFT_OK);
	assert_int_equal(wf_slots_grant(&slots, &conn, 3, 4096, 512), WEFT_OK);
	assert_int_equal(grants, 2);
	assert_int_equal(granted.kind, WF_GRANT_SLOTS);
	assert_int_equal(granted.region, 3);
	assert_int_equal(granted.offset, 4096);
	assert_int_equal(granted.bytes, 512);
	assert_int_equal(granted.slot_count, COUNT);
	assert_int_equal(slots.key.bytes[0], 7);
	wf_slots_path_ends(&slots);
	assert_int_equal(wf_slots_grant(&slots, &conn, 3, 4096, 512), WEFT_OK);
	assert_int_equal(grants, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_order_of_four_steps_follows_the_table, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_window_without_memory_takes_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_put_into_a_slot_that_is_not_free_says_why, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_tag_names_the_slot_in_its_low_bits, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_full_window_is_parked_and_credited, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_held_is_not_parked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_path_that_has_ended_leaves_nothing_to_release,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_that_is_held_goes_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_window_is_granted_once_a_path, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

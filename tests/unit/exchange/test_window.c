/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of window: slots are granted, claimed, released and credited, and each is free or held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "exchange/window.h"
#include "tests/support/failing_env.h"

static struct wf_env *env;
static struct wf_send_window window;

static int
set_up(void **state)
{
	(void)state;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, 0, &env), WEFT_OK);
	window = (struct wf_send_window){0};
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	wf_send_window_close(&window, env);
	wf_env_system_destroy(env);
	return 0;
}

static struct wf_msg_grant
slots(uint32_t count)
{
	return (struct wf_msg_grant){
		.kind = WF_GRANT_WIRE_SLOTS, .slot_count = count, .bytes = 64, .key = {7, 9}};
}

static void
open_window(uint32_t count)
{
	const struct wf_msg_grant msg = slots(count);
	assert_int_equal(wf_send_window_open(&window, env, &msg), WEFT_OK);
}

static enum weft_status
credit(uint32_t count, const uint16_t *slot)
{
	struct wf_msg_credit msg = {.count = count};
	memcpy(msg.buffer, slot, count * sizeof(*slot));
	return wf_send_window_credit(&window, &msg);
}

static void
assert_refused(enum weft_status st, const char *text)
{
	assert_int_equal(st, WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), text));
}

static void
a_grant_opens_the_window_with_all_slots_free(void **state)
{
	struct wf_msg_grant msg = slots(4);
	(void)state;
	msg.announced = true;
	assert_false(wf_send_window_is_open(&window));
	assert_int_equal(wf_send_window_open(&window, env, &msg), WEFT_OK);
	assert_true(wf_send_window_is_open(&window) && window.announced);
	assert_int_equal(window.slot_count, 4);
	assert_int_equal(window.free_count, 4);
	assert_memory_equal(window.key.bytes, msg.key, sizeof(msg.key));
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(wf_send_window_next(&window, i), i);
	}
}

static void
a_place_and_a_second_grant_are_refused(void **state)
{
	struct wf_msg_grant msg = {.kind = WF_GRANT_WIRE_PLACE, .bytes = 64};
	(void)state;
	assert_refused(wf_send_window_open(&window, env, &msg), "GRANT: kind 2 was not expected");
	assert_false(wf_send_window_is_open(&window));
	open_window(2);
	msg = slots(4);
	assert_refused(wf_send_window_open(&window, env, &msg), "GRANT: kind 1 was not expected");
	assert_int_equal(window.slot_count, 2);
}

static void
who_lies_in_a_slot_knows_its_number_until_it_is_released(void **state)
{
	uint32_t held[3] = {WF_SLOT_NONE, WF_SLOT_NONE, WF_SLOT_NONE};
	(void)state;
	open_window(2);
	wf_send_window_claim(&window, &held[0]);
	wf_send_window_claim(&window, &held[1]);
	assert_int_equal(held[0], 0);
	assert_int_equal(held[1], 1);
	assert_int_equal(window.free_count, 0);
	wf_send_window_release(&window, &held[0]);
	assert_int_equal(held[0], WF_SLOT_NONE);
	assert_int_equal(window.free_count, 1);
	wf_send_window_release(&window, &held[0]); /* it holds none */
	assert_int_equal(window.free_count, 1);
	wf_send_window_claim(&window, &held[2]); /* the slot that was freed last */
	assert_int_equal(held[2], 0);
	assert_int_equal(held[1], 1);
}

static void
credit_frees_slots_and_tells_their_holders(void **state)
{
	uint32_t held[4];
	(void)state;
	open_window(4);
	for (unsigned i = 0; i < 4; i++) {
		wf_send_window_claim(&window, &held[i]);
	}
	assert_int_equal(credit(2, (const uint16_t[]){2, 0}), WEFT_OK);
	assert_int_equal(held[0], WF_SLOT_NONE);
	assert_int_equal(held[1], 1);
	assert_int_equal(held[2], WF_SLOT_NONE);
	assert_int_equal(held[3], 3);
	assert_int_equal(window.free_count, 2);
	wf_send_window_release(&window,
			       &held[2]); /* the answer, which comes later, frees nothing */
	assert_int_equal(window.free_count, 2);
}

static void
credit_of_a_slot_that_is_free_or_does_not_exist_is_refused(void **state)
{
	uint32_t held;
	(void)state;
	assert_refused(credit(1, (const uint16_t[]){0}), "CREDIT: slot 0 is not in use");
	open_window(2);
	wf_send_window_claim(&window, &held);
	assert_refused(credit(1, (const uint16_t[]){1}), "CREDIT: slot 1 is not in use");
	assert_refused(credit(1, (const uint16_t[]){2}), "CREDIT: slot 2 is not in use");
	assert_refused(credit(2, (const uint16_t[]){0, 0}), "CREDIT: slot 0 is not in use");
	assert_int_equal(held, WF_SLOT_NONE);
	assert_int_equal(window.free_count, 2);
}

static void
one_word_may_hold_many_slots(void **state)
{
	uint32_t push, other;
	(void)state;
	open_window(4);
	wf_send_window_claim(&window, &push);
	wf_send_window_claim(&window, &other);
	wf_send_window_claim(&window, &push);
	wf_send_window_claim(&window, &push);
	assert_int_equal(credit(1, (const uint16_t[]){2}), WEFT_OK);
	wf_send_window_release_all(&window, &push);
	assert_int_equal(window.free_count, 3);
	assert_int_equal(other, 1);
	wf_send_window_release(&window, &other);
	assert_int_equal(window.free_count, 4);
}

static void
what_lies_in_a_slot_may_become_somebody_elses(void **state)
{
	uint32_t part, refused = 5;
	(void)state;
	open_window(2);
	wf_send_window_claim(&window, &part);
	wf_send_window_pass_on(&window, part, &refused);
	assert_int_equal(credit(1, (const uint16_t[]){0}), WEFT_OK);
	assert_int_equal(part, 0); /* it is not told any more */
	assert_int_equal(refused, WF_SLOT_NONE);
	assert_int_equal(window.free_count, 2);
}

static void
a_path_that_is_gone_leaves_no_slots_and_no_holders(void **state)
{
	uint32_t held[2];
	(void)state;
	struct wf_msg_grant msg = slots(2);
	msg.announced = true;
	assert_int_equal(wf_send_window_open(&window, env, &msg), WEFT_OK);
	wf_send_window_claim(&window, &held[0]);
	wf_send_window_claim(&window, &held[1]);
	wf_send_window_release(&window, &held[0]);
	wf_send_window_forget(&window);
	assert_int_equal(held[1], WF_SLOT_NONE);
	assert_false(wf_send_window_is_open(&window) || window.announced);
	assert_int_equal(window.free_count, 0);
	open_window(2); /* of the next path */
	assert_int_equal(window.free_count, 2);
	assert_refused(credit(1, (const uint16_t[]){1}), "is not in use");
}

static void
memory_is_allocated_again_only_for_a_larger_window(void **state)
{
	(void)state;
	open_window(4);
	const uint32_t *memory = window.free;
	wf_send_window_forget(&window);
	open_window(2);
	assert_ptr_equal(window.free, memory);
	wf_send_window_forget(&window);
	open_window(4);
	assert_ptr_equal(window.free, memory);
	wf_send_window_forget(&window);
	open_window(1024);
	assert_int_equal(window.capacity, 1024);
	assert_int_equal(wf_send_window_next(&window, 1023), 1023);
}

static void
an_allocation_that_fails_leaves_a_window_that_is_not_open(void **state)
{
	const struct wf_msg_grant msg = slots(8);
	struct wf_failing_env failing;
	(void)state;
	wf_failing_env_init(&failing, env);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		wf_failing_env_fail(&failing, nth, false);
		assert_int_equal(wf_send_window_open(&window, &failing.env, &msg), WEFT_NOMEM);
		assert_int_equal(failing.failed, 1);
		assert_false(wf_send_window_is_open(&window));
		assert_true(wf_failing_env_is_clean(&failing));
	}
	wf_failing_env_fail(&failing, 0, false);
	assert_int_equal(wf_send_window_open(&window, &failing.env, &msg), WEFT_OK);
	wf_send_window_close(&window, &failing.env);
	assert_true(wf_failing_env_is_clean(&failing));
}

#define fresh(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		fresh(a_grant_opens_the_window_with_all_slots_free),
		fresh(a_place_and_a_second_grant_are_refused),
		fresh(who_lies_in_a_slot_knows_its_number_until_it_is_released),
		fresh(credit_frees_slots_and_tells_their_holders),
		fresh(credit_of_a_slot_that_is_free_or_does_not_exist_is_refused),
		fresh(one_word_may_hold_many_slots),
		fresh(what_lies_in_a_slot_may_become_somebody_elses),
		fresh(a_path_that_is_gone_leaves_no_slots_and_no_holders),
		fresh(memory_is_allocated_again_only_for_a_larger_window),
		fresh(an_allocation_that_fails_leaves_a_window_that_is_not_open),
	};
	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}

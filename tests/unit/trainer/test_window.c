/* SPDX-License-Identifier: Apache-2.0 */
/* Which windows of a lane of tensors a trainer accepts. The link is bare: there is no session. */
#include "tests/unit/trainer/fabric.h"

#include "trainer/session/dense.h"

#define LONGEST 4096u /* bytes of a slice */

static enum weft_status
check(const struct wf_msg_grant *msg)
{
	struct wf_dense_link dense = {.slice_count = 3, .longest_bytes = LONGEST};
	return wf_dense_link_ops.check_window(&dense.link, msg);
}

static struct wf_msg_grant
window(void)
{
	return (struct wf_msg_grant){
		.kind = WF_GRANT_WIRE_SLOTS, .slot_count = 8, .bytes = LONGEST};
}

static void
slots_that_hold_the_longest_slice_are_accepted(void **state)
{
	struct wf_msg_grant msg = window();
	(void)state;
	assert_ok(check(&msg));
	msg.bytes = LONGEST - 1;
	assert_refused(check(&msg), WEFT_PROTOCOL,
		       "GRANT: slots of 4095 bytes, slices have up to 4096");
}

/* Only a lane of rows keeps parts of a push, and keys, outside its slots. */
static void
a_lane_of_tensors_holds_nothing_beside_its_slots(void **state)
{
	struct wf_msg_grant msg = window();
	(void)state;
	msg.held_bytes = 1;
	assert_refused(check(&msg), WEFT_PROTOCOL, "GRANT: a lane of tensors holds 1 bytes");
	msg.held_bytes = LONGEST;
	assert_refused(check(&msg), WEFT_PROTOCOL, "GRANT: a lane of tensors holds 4096 bytes");
}

/* The tag of a PUT numbers slice and slot together. */
static void
more_slots_than_tags_can_name_are_refused(void **state)
{
	struct wf_msg_grant msg = window();
	(void)state;
	msg.slot_count = WF_SLOT_MAX / 3;
	assert_ok(check(&msg));
	msg.slot_count++;
	assert_refused(check(&msg), WEFT_PROTOCOL, "GRANT: ");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_that_hold_the_longest_slice_are_accepted),
		cmocka_unit_test(a_lane_of_tensors_holds_nothing_beside_its_slots),
		cmocka_unit_test(more_slots_than_tags_can_name_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

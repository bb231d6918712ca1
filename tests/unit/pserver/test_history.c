/* SPDX-License-Identifier: Apache-2.0 */
/* What a job begins with, where the registrar has too little memory to look. */
#include "tests/unit/pserver/registrar_rig.h"

#include "pserver/history.h"

/* It may be tried again with more memory: to go back to an older snapshot loses steps for good. */
static void
a_snapshot_is_not_damaged_because_memory_is_short(void **state)
{
	struct rig *rig = *state;
	struct wf_failing_env *failing = &rig->scene->failing;
	const struct rig_opts opts = {.resume = WF_RESUME_AUTO};
	struct wf_history_choice choice;
	struct wf_epochs epochs = {0};
	rig_open(rig, &opts);
	rig_begin(rig);
	rig_run(rig);
	(void)rig_snapshot(rig);
	const uint64_t newest = rig_snapshot(rig);
	assert_ok(wf_epochs_read(&rig->env, wf_snapshots_folder(rig->all), &epochs));
	uint64_t nth = 0;
	enum weft_status st = WEFT_NOMEM;
	while (st != WEFT_OK) {
		assert_int_equal(st, WEFT_NOMEM);
		wf_failing_env_fail(failing, ++nth, false);
		st = wf_history_choose(&rig->env, rig->scene->dir, &epochs, &choice);
		wf_failing_env_fail(failing, 0, false);
	}
	assert_true(nth > 2); /* there were failures */
	assert_int_equal(choice.id.step, newest);
	wf_epochs_fini(&rig->env, &epochs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(a_snapshot_is_not_damaged_because_memory_is_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

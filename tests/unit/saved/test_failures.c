/* SPDX-License-Identifier: Apache-2.0 */
/* Whichever system call fails, and wherever the process dies: the older save loads, or the newer
 * one does, whole. */
#include "tests/unit/saved/faulty.h"

#include <sys/wait.h>

#include "base/assert.h"

/* Pass 4 is there with step 10 and values from 1; `scene->model` is then what step 11 has. */
static void
save_older(struct scene *scene)
{
	model_init(&scene->model, 1.0f);
	assert_ok(save_pass(scene, sound(), 4, 10));
	model_init(&scene->model, 2.0f);
}

/* It loads, is whole, and is the older or the newer one as its step says. Returns that. */
static uint64_t
check_one_is_whole(struct scene *scene)
{
	struct wf_saved_about about;
	struct model wanted;

	assert_ok(load_pass(scene, 4, &about));
	assert_true(about.step == 10 || about.step == 11);
	model_init(&wanted, about.step == 10 ? 1.0f : 2.0f);
	assert_true(model_equals(&wanted, &scene->loaded));
	return about.step;
}

static void
a_failing_call_leaves_the_older_save(void **state)
{
	static const int errors[] = {ENOSPC, EIO};
	struct scene *scene = *state;
	unsigned failures = 0;

	for (unsigned e = 0; e < WF_ARRAY_COUNT(errors); e++) {
		for (unsigned nth = 1;; nth++) {
			save_older(scene);
			plan.fault = FAIL_ONCE;
			plan.error = errors[e];
			plan.nth = nth;
			plan.count = 0;
			enum weft_status st = save_pass(scene, &faulty, 4, 11);
			if (plan.count < nth) {
				assert_ok(st);
				break;
			}
			/* The close of a folder may fail unnoticed, and after the new save has its
			 * name the removal of the older one, which whoever opens the folder next
			 * does. */
			assert_true(st == WEFT_IO || st == WEFT_OK);
			if (st == WEFT_IO) {
				failures++;
				assert_non_null(strstr(weft_last_error(), scene->dir));
				assert_non_null(strstr(weft_last_error(), strerror(errors[e])));
				assert_int_equal(names_in(scene->dir, true), 0);
			}
			assert_int_equal(check_one_is_whole(scene), st == WEFT_OK ? 11 : 10);
			assert_ok(remove_older(scene,
					       4)); /* none, but who opens the folder cleans up */
			assert_int_equal(names_in(scene->dir, true), 0);
		}
	}
	assert_true(failures >= 2 * 25);
}

static void
calls_that_fail_for_good_leave_a_save_that_is_found(void **state)
{
	struct scene *scene = *state;

	for (unsigned nth = 1;; nth++) {
		save_older(scene);
		plan.fault = FAIL_ON;
		plan.error = EIO;
		plan.nth = nth;
		plan.count = 0;
		enum weft_status st = save_pass(scene, &faulty, 4, 11);
		if (plan.count < nth) {
			assert_ok(st);
			break;
		}
		(void)check_one_is_whole(scene);
	}
}

static void
a_death_at_any_call_leaves_a_whole_save(void **state)
{
	struct scene *scene = *state;
	unsigned steps[2] = {0, 0};

	for (unsigned nth = 1;; nth++) {
		int status = 0;
		save_older(scene);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			plan.fault = DIE;
			plan.nth = nth;
			plan.count = 0;
			_exit(save_pass(scene, &faulty, 4, 11) == WEFT_OK ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		steps[check_one_is_whole(scene) - 10]++;
		if (WEXITSTATUS(status) == 0) {
			break;
		}
		assert_int_equal(WEXITSTATUS(status), 3);
		/* The next save removes what the dead one left. */
		assert_ok(save_pass(scene, sound(), 5, 12));
		assert_int_equal(names_in(scene->dir, true), 0);
		assert_int_equal(names_in(scene->dir, false), 2);
	}
	assert_true(steps[0] > 20 && steps[1] > 1);
}

static void
short_and_interrupted_calls_are_no_failures(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];

	plan.nth = 0;
	plan.is_troubled = true;
	plan.syncs = 0;
	assert_ok(save_pass(scene, &faulty, 4, 11));
	/* Arrays, draft, manifest, directory, folder. */
	assert_int_equal(plan.syncs, 4 + 1 + 1 + 2);
	model_init(&scene->loaded, 0.0f);
	assert_ok(wf_saved_pass_path(scene->dir, 4, path));
	assert_ok(wf_saved_open(&scene->failing.env, &faulty, path, &saved));
	assert_ok(wf_saved_load(saved, scene->loaded.tensor, 2, true));
	assert_true(model_equals(&scene->model, &scene->loaded));
	wf_saved_close(saved);
	plan.is_troubled = false;
}

static void
a_failing_read_is_not_taken_for_damage(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	unsigned refused = 0;

	save_older(scene);
	assert_ok(wf_saved_pass_path(scene->dir, 4, path));
	for (unsigned nth = 1;; nth++) {
		plan.fault = FAIL_ONCE;
		plan.error = EIO;
		plan.nth = nth;
		plan.count = 0;
		enum weft_status st = wf_saved_open(&scene->failing.env, &faulty, path, &saved);
		if (st == WEFT_OK) {
			wf_saved_close(saved);
		} else {
			assert_refused(st, WEFT_IO, "pass-00004");
			refused++;
		}
		if (plan.count < nth) {
			break;
		}
	}
	assert_true(refused > 20);
}

static void
a_failing_export_leaves_the_older_file(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	char out[200];
	struct stat before, after;
	unsigned failures = 0;

	save_older(scene);
	assert_ok(wf_saved_pass_path(scene->dir, 4, path));
	snprintf(out, sizeof(out), "%s/out", scene->dir);
	assert_ok(wf_saved_open(&scene->failing.env, &faulty, path, &saved));
	assert_ok(wf_saved_export_safetensors(saved, out, false));
	assert_int_equal(stat(out, &before), 0);
	for (unsigned nth = 1;; nth++) {
		plan.fault = FAIL_ONCE;
		plan.error = ENOSPC;
		plan.nth = nth;
		plan.count = 0;
		enum weft_status st = wf_saved_export_safetensors(saved, out, true);
		if (plan.count < nth) {
			assert_ok(st);
			break;
		}
		assert_int_equal(stat(out, &after), 0);
		assert_int_equal(names_in(scene->dir, true), 0);
		assert_true(after.st_size >= before.st_size); /* one or the other, never a part */
		failures += st == WEFT_IO;
	}
	assert_true(failures > 10);
	wf_saved_close(saved);
}

static void
without_memory_nothing_is_written_and_nothing_leaks(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;

	for (uint64_t nth = 1;; nth++) {
		wf_failing_env_fail(&scene->failing, nth, false);
		enum weft_status st = save_pass(scene, sound(), 0, 1);
		if (scene->failing.failed == 0) {
			assert_ok(st);
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		assert_int_equal(names_in(scene->dir, false), 0);
		assert_true(wf_failing_env_is_clean(&scene->failing));
	}
	for (uint64_t nth = 1;; nth++) {
		wf_failing_env_fail(&scene->failing, nth, false);
		enum weft_status st = load_pass(scene, 0, &about);
		if (scene->failing.failed == 0) {
			assert_ok(st);
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		assert_true(wf_failing_env_is_clean(&scene->failing));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(a_failing_call_leaves_the_older_save),
		WITH_SCENE(calls_that_fail_for_good_leave_a_save_that_is_found),
		WITH_SCENE(a_death_at_any_call_leaves_a_whole_save),
		WITH_SCENE(short_and_interrupted_calls_are_no_failures),
		WITH_SCENE(a_failing_read_is_not_taken_for_damage),
		WITH_SCENE(a_failing_export_leaves_the_older_file),
		WITH_SCENE(without_memory_nothing_is_written_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

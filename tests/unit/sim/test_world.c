/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated world without its network: clock, turns, ends of procs, memory. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"
#include "tests/double/sim/world.h"

static struct wf_world *
world_of(struct wf_world_opts opts)
{
	struct wf_world *world = NULL;
	opts.log_fd = -1;
	assert_int_equal(wf_world_create(&opts, &world), WEFT_OK);
	return world;
}

static struct wf_proc *
spawn(struct wf_world *world, const char *host, int (*run)(struct wf_env *env, void *arg),
      void *arg)
{
	struct wf_proc *proc = NULL;
	assert_int_equal(wf_world_spawn(world, host, 0, run, arg, &proc), WEFT_OK);
	return proc;
}

static void
sleep_until(struct wf_env *env, uint64_t at_ns)
{
	while (wf_now_ns(env) < at_ns) {
		wf_wait(env, -1, at_ns);
	}
}

/* --- clock and order --- */

struct journal {
	unsigned count;
	struct {
		int who;
		uint64_t at_ns;
	} line[64];
};

struct sleeper {
	struct journal *journal;
	int who;
	uint64_t period_ns;
	unsigned naps;
};

static int
sleep_and_write(struct wf_env *env, void *arg)
{
	const struct sleeper *s = arg;
	for (unsigned i = 1; i <= s->naps; i++) {
		sleep_until(env, i * s->period_ns);
		struct journal *j = s->journal;
		if (j->count < WF_ARRAY_COUNT(j->line)) {
			j->line[j->count].who = s->who;
			j->line[j->count].at_ns = wf_now_ns(env);
			j->count++;
		}
	}
	return s->who;
}

static void
turns_come_in_the_order_of_virtual_time(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct journal journal = {0};
	struct sleeper slow = {&journal, 1, 3 * WF_NS_PER_S, 4};
	struct sleeper fast = {&journal, 2, 2 * WF_NS_PER_S, 5};
	struct wf_proc *a = spawn(world, "a", sleep_and_write, &slow);
	struct wf_proc *b = spawn(world, "b", sleep_and_write, &fast);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_int_equal(journal.count, 9);
	for (unsigned i = 0; i < journal.count; i++) {
		assert_true(i == 0 || journal.line[i].at_ns >= journal.line[i - 1].at_ns);
	}
	assert_int_equal(journal.line[0].who, 2);
	assert_int_equal(journal.line[0].at_ns, 2 * WF_NS_PER_S);
	assert_int_equal(journal.line[1].who, 1);
	assert_int_equal(journal.line[1].at_ns, 3 * WF_NS_PER_S);
	assert_int_equal(wf_world_now_ns(world), 12 * WF_NS_PER_S);
	int result = 0;
	assert_true(wf_proc_returned(a, &result));
	assert_int_equal(result, 1);
	assert_true(wf_proc_returned(b, &result));
	assert_int_equal(result, 2);
	wf_world_destroy(world);
}

static void
a_paused_proc_gets_no_turn_until_it_goes_on(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct journal journal = {0};
	struct sleeper s = {&journal, 1, WF_NS_PER_S, 4};
	struct wf_world_stats stats;
	struct wf_proc *proc = spawn(world, "a", sleep_and_write, &s);
	wf_world_pause(world, proc, 1500 * WF_NS_PER_MS, 3500 * WF_NS_PER_MS);
	wf_world_pause(world, proc, 9 * WF_NS_PER_S, 10 * WF_NS_PER_S); /* it has ended by then */
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	const uint64_t at_ms[] = {1000, 3500, 3500, 4000};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(at_ms); i++) {
		assert_int_equal(journal.line[i].at_ns / WF_NS_PER_MS, at_ms[i]);
	}
	wf_world_stats(world, &stats);
	assert_int_equal(stats.pauses, 1);
	wf_world_destroy(world);
}

/* Asks for memory each second; returns in which of them it got none. */
static int
allocate_each_second(struct wf_env *env, void *arg)
{
	int failed = 0;
	(void)arg;
	for (unsigned s = 0; s < 6; s++) {
		sleep_until(env, s * WF_NS_PER_S);
		void *memory = wf_zalloc(env, 100);
		failed |= memory == NULL ? 1 << s : 0;
		wf_free(env, memory, 100);
	}
	return failed;
}

static void
a_starved_proc_gets_no_memory_for_a_time(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct wf_world_stats stats;
	int failed = 0;
	int other = 0;
	struct wf_proc *hungry = spawn(world, "a", allocate_each_second, NULL);
	struct wf_proc *fed = spawn(world, "b", allocate_each_second, NULL);
	wf_world_starve(world, hungry, 1000, 2 * WF_NS_PER_S, 4 * WF_NS_PER_S);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_true(wf_proc_returned(hungry, &failed));
	assert_true(wf_proc_returned(fed, &other));
	assert_int_equal(failed, 1 << 2 | 1 << 3);
	assert_int_equal(other, 0);
	wf_world_stats(world, &stats);
	assert_int_equal(stats.starved, 2);
	wf_world_destroy(world);
}

/* Its own clock only; what it waits for comes earlier. */
static void
a_clock_that_leaps_ends_waits(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct journal journal = {0};
	struct sleeper s = {&journal, 1, 10 * WF_NS_PER_S, 2};
	struct sleeper other = {&journal, 2, 12 * WF_NS_PER_S, 1};
	struct wf_world_stats stats;
	struct wf_proc *proc = spawn(world, "a", sleep_and_write, &s);
	spawn(world, "b", sleep_and_write, &other);
	wf_world_leap(world, proc, WF_NS_PER_S, 7 * WF_NS_PER_S);
	wf_world_leap(world, proc, 60 * WF_NS_PER_S, WF_NS_PER_S); /* it has ended by then */
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_int_equal(journal.line[0].who, 1);
	assert_int_equal(journal.line[0].at_ns, 10 * WF_NS_PER_S); /* at 3 s of the world */
	assert_int_equal(journal.line[1].who, 2);
	assert_int_equal(journal.line[1].at_ns, 12 * WF_NS_PER_S);
	assert_int_equal(journal.line[2].at_ns, 20 * WF_NS_PER_S); /* at 13 s */
	assert_int_equal(wf_world_now_ns(world), 13 * WF_NS_PER_S);
	wf_world_stats(world, &stats);
	assert_int_equal(stats.leaps, 1);
	wf_world_destroy(world);
}

static void
run_stops_at_its_limit_and_goes_on(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct journal journal = {0};
	struct sleeper s = {&journal, 1, WF_NS_PER_S, 3};
	struct wf_proc *proc = spawn(world, "patient", sleep_and_write, &s);
	assert_int_equal(wf_world_run(world, 1500 * WF_NS_PER_MS), WEFT_TIMEOUT);
	assert_non_null(strstr(weft_last_error(), "patient"));
	assert_int_equal(journal.count, 1);
	assert_int_equal(wf_world_now_ns(world), 1500 * WF_NS_PER_MS);
	int result = 0;
	assert_false(wf_proc_returned(proc, &result));
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_int_equal(journal.count, 3);
	wf_world_destroy(world);
}

static int
wait_for_ever(struct wf_env *env, void *arg)
{
	while (wf_now_ns(env) != WF_NEVER) {
		wf_wait(env, -1, WF_NEVER);
	}
	return 0;
}

static void
a_deadlock_names_who_waits_for_what(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 77});
	struct journal journal = {0};
	struct sleeper s = {&journal, 1, WF_NS_PER_S, 1};
	spawn(world, "finished", sleep_and_write, &s);
	spawn(world, "lonely", wait_for_ever, NULL);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_TIMEOUT);
	assert_non_null(strstr(weft_last_error(), "deadlock"));
	assert_non_null(strstr(weft_last_error(), "seed 77"));
	assert_non_null(strstr(weft_last_error(), "lonely"));
	assert_non_null(strstr(weft_last_error(), "arrival"));
	assert_null(strstr(weft_last_error(), "finished"));
	wf_world_destroy(world);
}

static int
take_turns(struct wf_env *env, void *arg)
{
	unsigned turns = *(unsigned *)arg;
	for (unsigned i = 0; i < turns; i++) {
		wf_wait(env, -1, wf_now_ns(env)); /* a deadline that has come passes the turn too */
	}
	return 0;
}

static void
a_hundred_thousand_turns_are_counted(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	unsigned turns = 50000;
	spawn(world, "a", take_turns, &turns);
	spawn(world, "b", take_turns, &turns);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	struct wf_world_stats stats;
	wf_world_stats(world, &stats);
	assert_int_equal(stats.turns, 100002);
	assert_true(wf_world_now_ns(world) >
		    0); /* time passes, or deadlines of others never come */
	wf_world_destroy(world);
}

static void
late_turns_are_counted_and_bounded(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){
		.seed = 3, .stall_max_ns = 10 * WF_NS_PER_MS, .stall_per_mille = 1000});
	struct journal journal = {0};
	struct sleeper s = {&journal, 1, WF_NS_PER_S, 20};
	spawn(world, "late", sleep_and_write, &s);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	bool was_late = false;
	for (unsigned i = 0; i < journal.count; i++) {
		uint64_t asked_ns = (i + 1) * WF_NS_PER_S;
		assert_true(journal.line[i].at_ns >= asked_ns);
		assert_true(journal.line[i].at_ns <= asked_ns + 10 * WF_NS_PER_MS);
		was_late = was_late || journal.line[i].at_ns > asked_ns;
	}
	assert_true(was_late);
	struct wf_world_stats stats;
	wf_world_stats(world, &stats);
	assert_true(stats.stalls >= 20);
	wf_world_destroy(world);
}

/* --- chance and errors --- */

static int
draw(struct wf_env *env, void *arg)
{
	*(uint64_t *)arg = wf_random(env);
	return 0;
}

static void
draw_two(uint64_t seed, uint64_t out[2])
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = seed});
	spawn(world, "a", draw, &out[0]);
	spawn(world, "a", draw, &out[1]);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	wf_world_destroy(world);
}

static void
chance_comes_from_the_seed_and_the_proc(void **state)
{
	uint64_t first[2];
	uint64_t again[2];
	uint64_t other[2];
	draw_two(5, first);
	draw_two(5, again);
	draw_two(6, other);
	assert_memory_equal(first, again, sizeof(first));
	assert_true(first[0] != other[0]);
	assert_true(first[0] != first[1]);
}

static int
fail_wait_and_compare(struct wf_env *env, void *arg)
{
	const char *text = arg;
	(void)wf_fail(WEFT_DATA, "%s", text);
	sleep_until(env, WF_NS_PER_S);
	return strcmp(weft_last_error(), text) == 0;
}

static void
each_proc_has_an_error_record_of_its_own(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	char first[] = "first", second[] = "second";
	struct wf_proc *a = spawn(world, "a", fail_wait_and_compare, first);
	struct wf_proc *b = spawn(world, "b", fail_wait_and_compare, second);
	(void)wf_fail(WEFT_IO, "outside");
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_string_equal(weft_last_error(), "outside");
	int result = 0;
	assert_true(wf_proc_returned(a, &result) && result == 1);
	assert_true(wf_proc_returned(b, &result) && result == 1);
	wf_world_destroy(world);
}

/* --- memory --- */

static int
use_memory(struct wf_env *env, void *arg)
{
	for (size_t align = 1; align <= 4096; align *= 2) {
		uint8_t *memory = env->ops->alloc(env, 1000, align);
		if (memory == NULL || (uintptr_t)memory % align != 0) {
			return 1;
		}
		for (unsigned i = 0; i < 1000; i++) {
			if (memory[i] != 0) {
				return 2;
			}
		}
		memset(memory, 0xff, 1000);
		wf_free(env, memory, 1000);
	}
	wf_free(env, NULL, 0);
	struct wf_slab slab;
	if (env->ops->slab_open(env, 5000, -1, &slab) != WEFT_OK || slab.bytes != 8192 ||
	    slab.memfd != -1 || (uintptr_t)slab.base % 4096 != 0) {
		return 3;
	}
	memset(slab.base, 1, slab.bytes);
	env->ops->slab_close(env, &slab);
	return 0;
}

static void
memory_is_zeroed_and_aligned(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct wf_proc *proc = spawn(world, "a", use_memory, NULL);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	int result = -1;
	assert_true(wf_proc_returned(proc, &result));
	assert_int_equal(result, 0);
	wf_world_destroy(world);
}

struct hoard {
	uint8_t *memory;
	uint8_t *slab;
};

static int
hoard_and_wait(struct wf_env *env, void *arg)
{
	struct hoard *hoard = arg;
	struct wf_slab slab;
	hoard->memory = wf_zalloc(env, 100000);
	if (env->ops->slab_open(env, 1 << 20, -1, &slab) != WEFT_OK) {
		return 1;
	}
	hoard->slab = slab.base;
	return wait_for_ever(env, NULL);
}

/* The leak checker of a sanitized build sees it if this memory were not released. */
static void
memory_of_a_killed_proc_lives_until_the_world_ends(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct hoard hoard = {0};
	struct wf_proc *proc = spawn(world, "a", hoard_and_wait, &hoard);
	wf_world_kill_at(world, proc, WF_NS_PER_S);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_int_equal(wf_world_now_ns(world), WF_NS_PER_S);
	int result = 0;
	assert_false(wf_proc_returned(proc, &result));
	assert_non_null(hoard.memory);
	memset(hoard.memory, 1, 100000);
	memset(hoard.slab, 1, 1 << 20);
	wf_world_destroy(world);
}

static void
a_world_that_is_destroyed_drops_its_procs(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct hoard hoard = {0};
	spawn(world, "a", hoard_and_wait, &hoard);
	spawn(world, "never started", hoard_and_wait, &hoard);
	assert_int_equal(wf_world_run(world, 0), WEFT_TIMEOUT);
	wf_world_destroy(world);
	wf_world_destroy(NULL);
}

struct killing {
	struct wf_world *world;
	struct wf_proc *victim;
};

static int
kill_other(struct wf_env *env, void *arg)
{
	const struct killing *k = arg;
	sleep_until(env, WF_NS_PER_S);
	wf_world_kill(k->world, k->victim);
	wf_world_kill(k->world, k->victim); /* once more: nothing */
	return 0;
}

static void
a_proc_may_kill_another(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct journal journal = {0};
	struct sleeper s = {&journal, 1, 300 * WF_NS_PER_MS, 50};
	struct killing k = {.world = world, .victim = spawn(world, "b", sleep_and_write, &s)};
	spawn(world, "a", kill_other, &k);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_int_equal(journal.count, 3);
	wf_world_destroy(world);
}

/* --- tasks --- */

struct job {
	struct wf_task task; /* first */
	unsigned runs;
};

static void
count_run(struct wf_task *task)
{
	((struct job *)task)->runs++;
}

static int
submit_and_wait(struct wf_env *env, void *arg)
{
	struct job *job = arg;
	if (env->ops->submit(env, &job->task) != WEFT_OK || job->runs != 1) {
		return 1;
	}
	bool was_done = atomic_load_explicit(&job->task.done, memory_order_acquire);
	while (!atomic_load_explicit(&job->task.done, memory_order_acquire)) {
		wf_wait(env, job->task.wake_fd, WF_NEVER);
	}
	return was_done ? 2 : 0;
}

static void
a_task_runs_at_once_and_is_done_later(void **state)
{
	struct wf_world *world = world_of((struct wf_world_opts){.seed = 1});
	struct job job = {.task = {.run = count_run, .wake_fd = eventfd(0, EFD_NONBLOCK)}};
	struct wf_proc *proc = spawn(world, "a", submit_and_wait, &job);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	int result = -1;
	assert_true(wf_proc_returned(proc, &result));
	assert_int_equal(result, 0);
	assert_true(wf_world_now_ns(world) > 0);
	uint64_t wakes = 0;
	assert_int_equal(read(job.task.wake_fd, &wakes, sizeof(wakes)), sizeof(wakes));
	assert_int_equal(wakes, 1);
	close(job.task.wake_fd);
	wf_world_destroy(world);
}

/* --- log and options --- */

static int
log_late(struct wf_env *env, void *arg)
{
	sleep_until(env, 1500 * WF_NS_PER_MS);
	wf_log(env, WF_LOG_DEBUG, "not this");
	wf_log(env, WF_LOG_WARN, "hello %d", 42);
	return 0;
}

static void
log_lines_carry_virtual_time_and_host(void **state)
{
	int pipe_fd[2];
	assert_int_equal(pipe(pipe_fd), 0);
	struct wf_world_opts opts = {.seed = 1, .log_level = WF_LOG_INFO, .log_fd = pipe_fd[1]};
	struct wf_world *world = NULL;
	assert_int_equal(wf_world_create(&opts, &world), WEFT_OK);
	spawn(world, "node7", log_late, NULL);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	close(pipe_fd[1]);
	char text[200] = "";
	assert_true(read(pipe_fd[0], text, sizeof(text) - 1) > 0);
	close(pipe_fd[0]);
	assert_string_equal(text, "     1.500000000 W node7: hello 42\n");
	wf_world_destroy(world);
}

static void
options_that_contradict_are_invalid(void **state)
{
	struct wf_world *world = NULL;
	struct wf_world_opts opts = {.delay_min_ns = 2, .delay_max_ns = 1};
	assert_int_equal(wf_world_create(&opts, &world), WEFT_INVALID);
	opts = (struct wf_world_opts){.split_per_mille = 1001};
	assert_int_equal(wf_world_create(&opts, &world), WEFT_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_come_in_the_order_of_virtual_time),
		cmocka_unit_test(a_paused_proc_gets_no_turn_until_it_goes_on),
		cmocka_unit_test(a_starved_proc_gets_no_memory_for_a_time),
		cmocka_unit_test(a_clock_that_leaps_ends_waits),
		cmocka_unit_test(run_stops_at_its_limit_and_goes_on),
		cmocka_unit_test(a_deadlock_names_who_waits_for_what),
		cmocka_unit_test(a_hundred_thousand_turns_are_counted),
		cmocka_unit_test(late_turns_are_counted_and_bounded),
		cmocka_unit_test(chance_comes_from_the_seed_and_the_proc),
		cmocka_unit_test(each_proc_has_an_error_record_of_its_own),
		cmocka_unit_test(memory_is_zeroed_and_aligned),
		cmocka_unit_test(memory_of_a_killed_proc_lives_until_the_world_ends),
		cmocka_unit_test(a_world_that_is_destroyed_drops_its_procs),
		cmocka_unit_test(a_proc_may_kill_another),
		cmocka_unit_test(a_task_runs_at_once_and_is_done_later),
		cmocka_unit_test(log_lines_carry_virtual_time_and_host),
		cmocka_unit_test(options_that_contradict_are_invalid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

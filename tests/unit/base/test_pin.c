/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pin: places on a made-up machine (hwloc's synthetic topologies), binding on the real
 * one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/pin.h"
#include "tests/support/failing_env.h"

static struct wf_env *env;

static int
set_up(void **state)
{
	return wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	(void)unsetenv("HWLOC_SYNTHETIC");
	wf_env_system_destroy(env);
	return 0;
}

/* Two nodes of two cores of two hardware threads: CPUs 0..7, cores {0,1} {2,3} | {4,5} {6,7}. */
static int
set_up_synthetic(void **state)
{
	return setenv("HWLOC_SYNTHETIC", "node:2 core:2 pu:2", 1) == 0 ? set_up(state) : -1;
}

static void
expect_places(const char *setting, unsigned count, const int *cpus, const int *nodes)
{
	struct wf_pin *pin = NULL;
	assert_int_equal(wf_pin_create(env, setting, count, &pin), WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		struct wf_pin_place place = wf_pin_place_of(pin, i);
		assert_int_equal(place.cpu, cpus[i]);
		assert_int_equal(place.numa_node, nodes[i]);
	}
	wf_pin_destroy(pin);
}

static void
auto_takes_one_hardware_thread_of_each_core(void **state)
{
	expect_places("auto", 4, (const int[]){0, 2, 4, 6}, (const int[]){0, 0, 1, 1});
	expect_places("auto", 1, (const int[]){0}, (const int[]){0});
}

static void
auto_keeps_cores_of_a_node_together_however_cpus_are_numbered(void **state)
{
	/* Each core's two threads are numbered apart, and nodes alternate. */
	assert_int_equal(
		setenv("HWLOC_SYNTHETIC", "node:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)", 1), 0);
	expect_places("auto", 4, (const int[]){0, 2, 1, 3}, (const int[]){0, 0, 1, 1});
}

static void
auto_shares_cores_when_all_are_taken(void **state)
{
	expect_places("auto", 5, (const int[]){0, 2, 4, 6, 1}, (const int[]){0, 0, 1, 1, 0});
}

static void
auto_pins_nobody_when_threads_outnumber_cpus(void **state)
{
	expect_places("auto", 9, (const int[]){-1, -1, -1, -1, -1, -1, -1, -1, -1},
		      (const int[]){-1, -1, -1, -1, -1, -1, -1, -1, -1});
}

static void
auto_gives_each_of_several_processes_its_own(void **state)
{
	expect_places("auto:0/2", 2, (const int[]){0, 2}, (const int[]){0, 0});
	expect_places("auto:1/2", 2, (const int[]){4, 6}, (const int[]){1, 1});
	expect_places("auto:2/3", 2, (const int[]){1, 3}, (const int[]){0, 0});
}

static void
a_list_is_used_in_its_own_order_and_round_again(void **state)
{
	expect_places("5,0,2-3", 6, (const int[]){5, 0, 2, 3, 5, 0},
		      (const int[]){1, 0, 0, 0, 1, 0});
	expect_places("7", 2, (const int[]){7, 7}, (const int[]){1, 1});
	expect_places("0-7", 2, (const int[]){0, 1}, (const int[]){0, 0});
}

static void
off_pins_nobody(void **state)
{
	expect_places("off", 2, (const int[]){-1, -1}, (const int[]){-1, -1});
}

static void
bad_lists_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *setting;
		const char *reason;
	} cases[] = {
		{"", "must be auto, off or a CPU list"},
		{",", "must be auto, off or a CPU list"},
		{"0,", "must be auto, off or a CPU list"},
		{"0,,1", "must be auto, off or a CPU list"},
		{"-1", "must be auto, off or a CPU list"},
		{"1-", "must be auto, off or a CPU list"},
		{"1-2-3", "must be auto, off or a CPU list"},
		{" 1", "must be auto, off or a CPU list"},
		{"0 1", "must be auto, off or a CPU list"},
		{"0x1", "must be auto, off or a CPU list"},
		{"on", "must be auto, off or a CPU list"},
		{"Auto", "must be auto, off or a CPU list"},
		{"auto:", "process I of N"},
		{"auto:1", "process I of N"},
		{"auto:2/2", "from 0 to N - 1"},
		{"auto:0/0", "process I of N"},
		{"auto:0/2,1", "process I of N"},
		{"auto:0/5000", "up to 1024"},
		{"autos", "must be auto, off or a CPU list"},
		{"99999999999999999999", "must be auto, off or a CPU list"},
		{"5-2", "runs backwards; write 2-5"},
		{"8", "may not run on cpu 8, only on 0-7"},
		{"0,6-9", "may not run on cpu 8"},
		{"0-1000000", "may not run on cpu 8"},
	};
	struct wf_failing_env failing;
	wf_failing_env_init(&failing, env);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct wf_pin *pin = NULL;
		assert_int_equal(wf_pin_create(&failing.env, cases[i].setting, 2, &pin),
				 WEFT_INVALID);
		assert_null(pin);
		assert_non_null(strstr(weft_last_error(), cases[i].reason));
		assert_non_null(strstr(weft_last_error(), cases[i].setting));
	}
	assert_true(wf_failing_env_is_clean(&failing));
}

static void
a_list_need_not_serve_anybody(void **state)
{
	struct wf_pin *pin = NULL;
	assert_int_equal(wf_pin_create(env, "0-3", 0, &pin), WEFT_OK);
	wf_pin_destroy(pin);
	wf_pin_destroy(NULL);
}

static void
no_memory_is_a_status(void **state)
{
	struct wf_failing_env failing;
	struct wf_pin *pin = NULL;
	wf_failing_env_init(&failing, env);
	wf_failing_env_fail(&failing, 1, false);
	assert_int_equal(wf_pin_create(&failing.env, "off", 2, &pin), WEFT_NOMEM);
	assert_null(pin);
}

/* ---- the real machine ---- */

struct binding {
	const struct wf_pin *pin;
	enum weft_status status;
	cpu_set_t before;
	cpu_set_t after;
};

static void *
bind_self(void *arg)
{
	struct binding *binding = arg;
	(void)sched_getaffinity(0, sizeof(binding->before), &binding->before);
	binding->status = wf_pin_self(binding->pin, 0);
	(void)sched_getaffinity(0, sizeof(binding->after), &binding->after);
	return NULL;
}

static struct binding
bind_on_a_thread(const struct wf_pin *pin)
{
	struct binding binding = {.pin = pin};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, bind_self, &binding), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(binding.status, WEFT_OK);
	return binding;
}

static int
last_own_cpu(void)
{
	cpu_set_t set;
	int cpu = CPU_SETSIZE - 1;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (cpu >= 0 && !CPU_ISSET((unsigned)cpu, &set)) {
		cpu--;
	}
	assert_true(cpu >= 0);
	return cpu;
}

static void
a_thread_is_bound_to_its_cpu_alone(void **state)
{
	struct wf_pin *pin = NULL;
	char setting[16];
	int cpu = last_own_cpu();
	(void)snprintf(setting, sizeof(setting), "%d", cpu);
	assert_int_equal(wf_pin_create(env, setting, 1, &pin), WEFT_OK);
	struct binding binding = bind_on_a_thread(pin);
	assert_int_equal(CPU_COUNT(&binding.after), 1);
	assert_true(CPU_ISSET((unsigned)cpu, &binding.after));
	wf_pin_destroy(pin);
	assert_int_equal(last_own_cpu(), cpu); /* the caller stayed as it was */
}

static void
a_thread_without_a_place_stays_as_it_was(void **state)
{
	struct wf_pin *pin = NULL;
	assert_int_equal(wf_pin_create(env, "off", 1, &pin), WEFT_OK);
	struct binding binding = bind_on_a_thread(pin);
	assert_true(CPU_EQUAL(&binding.before, &binding.after));
	wf_pin_destroy(pin);
}

static void
auto_stays_within_the_cpus_of_the_process(void **state)
{
	cpu_set_t before;
	cpu_set_t one;
	struct wf_pin *pin = NULL;
	int cpu = last_own_cpu();
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_in_range(wf_pin_cpu_count(), 1, CPU_COUNT(&before)); /* less: a quota */
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(wf_pin_cpu_count(), 1);
	assert_int_equal(wf_pin_create(env, "auto", 1, &pin), WEFT_OK);
	assert_int_equal(wf_pin_place_of(pin, 0).cpu, cpu);
	wf_pin_destroy(pin);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

#define SYNTHETIC(name) cmocka_unit_test_setup_teardown(name, set_up_synthetic, tear_down)
#define REAL(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SYNTHETIC(auto_takes_one_hardware_thread_of_each_core),
		SYNTHETIC(auto_keeps_cores_of_a_node_together_however_cpus_are_numbered),
		SYNTHETIC(auto_shares_cores_when_all_are_taken),
		SYNTHETIC(auto_pins_nobody_when_threads_outnumber_cpus),
		SYNTHETIC(auto_gives_each_of_several_processes_its_own),
		SYNTHETIC(a_list_is_used_in_its_own_order_and_round_again),
		SYNTHETIC(off_pins_nobody),
		SYNTHETIC(bad_lists_are_refused_with_the_reason),
		SYNTHETIC(a_list_need_not_serve_anybody),
		SYNTHETIC(no_memory_is_a_status),
		REAL(a_thread_is_bound_to_its_cpu_alone),
		REAL(a_thread_without_a_place_stays_as_it_was),
		REAL(auto_stays_within_the_cpus_of_the_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

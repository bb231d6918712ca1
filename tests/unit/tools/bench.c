/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark's own arithmetic: what pairs are made of and which count, and workers that fail.
 * Workers here report what they are told to; nothing is timed. Thread: main. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/pin.h"
#include "tools/rdma_bench/meter.h"
#include "tools/rdma_bench/pairs.h"
#include "tools/rdma_bench/report.h"

#define TIMEOUT_NS (60 * WF_NS_PER_S)

/* A clock that a test sets. */
struct fake_env {
	struct wf_env env; /* first */
	struct wf_env *real;
	uint64_t now_ns;
	uint64_t look_ns; /* that a look at the clock takes */
};

static uint64_t
fake_now(struct wf_env *env)
{
	struct fake_env *fake = (struct fake_env *)env;
	fake->now_ns += fake->look_ns;
	return fake->now_ns;
}

static void *
fake_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct wf_env *real = ((struct fake_env *)env)->real;
	return real->ops->alloc(real, bytes, align);
}

static void
fake_free(struct wf_env *env, void *memory, size_t bytes)
{
	struct wf_env *real = ((struct fake_env *)env)->real;
	real->ops->free(real, memory, bytes);
}

static const struct wf_env_ops fake_ops = {
	.now_ns = fake_now, .alloc = fake_alloc, .free = fake_free};

static int
set_up(void **state)
{
	struct wf_env *env;
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, -1, &env), WEFT_OK);
	*state = env;
	return 0;
}

static int
tear_down(void **state)
{
	wf_env_system_destroy(*state);
	return 0;
}

static void
a_meter_gives_median_and_tail_of_single_operations(void **state)
{
	struct fake_env fake = {.env = {.ops = &fake_ops}, .real = *state, .now_ns = 5000};
	struct wf_meter meter;
	struct wf_figures figures;
	assert_int_equal(wf_meter_init(&meter, &fake.env), WEFT_OK);
	wf_meter_begin(&meter, 10);
	for (unsigned i = 1; i <= 100; i++) { /* batches of ten take 1,000 ns, the last two 9,000 */
		fake.now_ns += i <= 98 ? 1000 : 9000;
		wf_meter_mark(&meter);
	}
	wf_meter_figures(&meter, 1000, &figures);
	assert_true(figures.p50_ns == 100 && figures.p99_ns == 900);
	assert_int_equal(figures.elapsed_ns, 98 * 1000 + 2 * 9000);
	assert_int_equal(figures.count, 1000);

	wf_meter_begin(&meter, 1);
	wf_meter_figures(&meter, 0, &figures);
	assert_true(figures.p50_ns == 0 && figures.elapsed_ns == 0);
	wf_meter_fini(&meter);
}

static void
a_slowed_operation_takes_twice_its_time(void **state)
{
	struct fake_env fake = {.env = {.ops = &fake_ops}, .real = *state, .look_ns = 1};
	struct wf_meter meter;
	struct wf_figures figures;
	assert_int_equal(wf_meter_init(&meter, &fake.env), WEFT_OK);
	meter.slow = true;
	wf_meter_begin(&meter, 1);
	for (unsigned i = 1; i <= 100; i++) {
		fake.now_ns += 1000;
		wf_meter_mark(&meter);
	}
	wf_meter_figures(&meter, 100, &figures);
	assert_true(figures.p50_ns >= 2000 && figures.p50_ns < 2010);
	assert_true(figures.elapsed_ns >= 200000 && figures.elapsed_ns < 201000);
	wf_meter_fini(&meter);
}

static void
probes_that_disagree_are_mixed(void **state)
{
	(void)state;
	assert_int_equal(wf_placement_of(90, 95), WF_PLACEMENT_NEAR);
	assert_int_equal(wf_placement_of(90, 55), WF_PLACEMENT_NEAR);
	assert_int_equal(wf_placement_of(470, 480), WF_PLACEMENT_FAR);
	assert_int_equal(wf_placement_of(90, 470), WF_PLACEMENT_MIXED);
	assert_int_equal(wf_placement_of(470, 90), WF_PLACEMENT_MIXED);
	assert_int_equal(wf_placement_of(300, 700), WF_PLACEMENT_MIXED);
}

/* Reports an operation of arg's nanoseconds, or of twice as many. */
static enum weft_status
steady(struct wf_bench_seat *seat, const void *arg)
{
	const double *each_ns = arg;
	struct wf_work_order order;
	wf_seat_ready(seat, 4711);
	while (wf_seat_order(seat, &order)) {
		const double one_ns = *each_ns * (order.slow != 0 ? 2 : 1);
		const struct wf_figures figures = {
			.count = order.count,
			.elapsed_ns = (uint64_t)(one_ns * (double)order.count),
			.p50_ns = one_ns,
			.p99_ns = one_ns * 2,
		};
		wf_seat_report(seat, &figures);
	}
	return WEFT_OK;
}

static void
start(struct wf_worker *out, enum weft_status (*run)(struct wf_bench_seat *seat, const void *arg),
      const void *arg)
{
	struct wf_env *env;
	struct wf_pin *pin;
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, -1, &env), WEFT_OK);
	assert_int_equal(wf_pin_create(env, "auto", 1, &pin), WEFT_OK);
	const struct wf_worker_opts opts = {
		.name = "the worker", .cpu = wf_pin_place_of(pin, 0).cpu, .run = run, .arg = arg};
	assert_int_equal(wf_worker_start(&opts, out), WEFT_OK);
	wf_pin_destroy(pin);
	wf_env_system_destroy(env);
}

static void
start_ready(struct wf_worker *out, const double *each_ns)
{
	struct wf_figures ready;
	start(out, steady, each_ns);
	assert_int_equal(wf_worker_await(out, TIMEOUT_NS, &ready), WEFT_OK);
	assert_int_equal(ready.number, 4711);
}

static void
compare(struct wf_env *env, enum wf_measure measure, const char *slowed, struct wf_result *out)
{
	static struct wf_bench bench;
	const double slow_ns = 250, fast_ns = 100;
	struct wf_worker slow, fast;
	start_ready(&slow, &slow_ns);
	start_ready(&fast, &fast_ns);
	struct wf_side product = {.worker = {&slow}, .worker_count = 1, .bytes = 1000};
	struct wf_side limit = {.worker = {&fast}, .worker_count = 1, .bytes = 1000};
	const struct wf_pairs pairs = {
		.product = &product, .limit = &limit, .measure = measure, .one_core = true};
	bench = (struct wf_bench){.env = env, .deadline_ns = wf_now_ns(env) + TIMEOUT_NS};
	bench.set = (struct wf_self_settings){.pairs = 3,
					      .slow = slowed,
					      .seconds_ns = WF_NS_PER_MS,
					      .limit_ns = TIMEOUT_NS,
					      .quick = true};
	assert_int_equal(wf_pairs_run(&bench, &pairs, out), WEFT_OK);
	/* As many operations as take a millisecond. */
	assert_int_equal(product.count, WF_NS_PER_MS / (product.slow ? 500 : 250));
	assert_int_equal(limit.count, WF_NS_PER_MS / (limit.slow ? 200 : 100));
	wf_worker_end(&slow, TIMEOUT_NS);
	wf_worker_end(&fast, TIMEOUT_NS);
	assert_int_equal(slow.pid, 0);
}

static bool
is_near(double a, double b)
{
	return a > b * 0.9999 && a < b * 1.0001;
}

static void
a_fraction_is_value_by_limit_for_rates_and_the_other_way_for_times(void **state)
{
	struct wf_result result = {.name = "a", .transport = "b"};
	compare(*state, WF_MEASURE_LATENCY, "none", &result);
	assert_true(is_near(result.value, 0.25) && is_near(result.limit, 0.1));
	assert_true(is_near(result.fraction, 0.4) && result.lower_is_better);
	assert_true(is_near(result.p99_us, 0.5) && is_near(result.limit_p99_us, 0.2));
	assert_int_equal(result.placement, WF_PLACEMENT_ONE);
	assert_int_equal(result.pairs[WF_PLACEMENT_ONE], 3);

	compare(*state, WF_MEASURE_RATE, "none", &result);
	assert_true(is_near(result.value, 4) && is_near(result.limit, 10));
	assert_true(is_near(result.fraction, 0.4) && !result.lower_is_better);
}

static void
a_side_that_is_slowed_moves_the_fraction(void **state)
{
	struct wf_result result = {.name = "a", .transport = "b"};
	compare(*state, WF_MEASURE_LATENCY, "product", &result);
	assert_true(is_near(result.fraction, 0.2));
	compare(*state, WF_MEASURE_LATENCY, "limit", &result);
	assert_true(is_near(result.fraction, 0.8));
	compare(*state, WF_MEASURE_RATE, "product", &result);
	assert_true(is_near(result.fraction, 0.2));
	compare(*state, WF_MEASURE_RATE, "limit", &result);
	assert_true(is_near(result.fraction, 0.8));
}

static enum weft_status
fails(struct wf_bench_seat *seat, const void *arg)
{
	(void)seat;
	(void)arg;
	return wf_fail(WEFT_DATA, "the moon is full");
}

static enum weft_status
vanishes(struct wf_bench_seat *seat, const void *arg)
{
	(void)seat;
	(void)arg;
	_exit(0);
}

static void
a_worker_that_fails_says_why(void **state)
{
	(void)state;
	struct wf_worker worker;
	struct wf_figures figures;
	start(&worker, fails, NULL);
	assert_int_equal(wf_worker_await(&worker, TIMEOUT_NS, &figures), WEFT_DATA);
	assert_string_equal(weft_last_error(), "the worker: the moon is full");
	wf_worker_end(&worker, TIMEOUT_NS);
}

static void
a_worker_that_is_gone_is_lost(void **state)
{
	(void)state;
	struct wf_worker worker;
	struct wf_figures figures;
	start(&worker, vanishes, NULL);
	assert_int_equal(wf_worker_await(&worker, TIMEOUT_NS, &figures), WEFT_LOST);
	assert_non_null(strstr(weft_last_error(), "the worker"));
	wf_worker_end(&worker, TIMEOUT_NS);
	wf_worker_end(&worker, TIMEOUT_NS); /* twice is once */
}

static void
sizes_have_the_largest_unit_that_loses_nothing(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {{0, "0 B"},           {64, "64 B"},       {1025, "1025 B"},
		     {64 << 10, "64 KiB"}, {1 << 20, "1 MiB"}, {3 << 19, "1536 KiB"},
		     {64 << 20, "64 MiB"}, {1023, "1023 B"}};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char text[32];
		wf_report_bytes(sizes[i].bytes, text, sizeof(text));
		assert_string_equal(text, sizes[i].text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_the_largest_unit_that_loses_nothing),
		cmocka_unit_test(a_meter_gives_median_and_tail_of_single_operations),
		cmocka_unit_test(a_slowed_operation_takes_twice_its_time),
		cmocka_unit_test(probes_that_disagree_are_mixed),
		cmocka_unit_test(
			a_fraction_is_value_by_limit_for_rates_and_the_other_way_for_times),
		cmocka_unit_test(a_side_that_is_slowed_moves_the_fraction),
		cmocka_unit_test(a_worker_that_fails_says_why),
		cmocka_unit_test(a_worker_that_is_gone_is_lost),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-written loops that rdma_bench holds figures against: their arithmetic and tables are
 * right on every kind of processor, their sockets lose nothing, and each follows its orders.
 * Nothing is timed. Thread: main. */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/env.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/limit.h"
#include "tools/rdma_bench/limits/merge.h"
#include "tools/rdma_bench/limits/socket.h"
#include "tools/rdma_bench/limits/table.h"

#define TIMEOUT_NS 60000000000ull
#define COUNT 1003u /* no multiple of any vector */
#define KEYS 10000u
#define BYTES (16u << 20) /* more than a socket takes at once */
#define DIM 20u

/* Those that this processor runs. */
static unsigned
forms(const struct wf_limit_form *out[3])
{
	unsigned count = 0;
	out[count++] = &wf_limit_form_plain;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2")) {
		out[count++] = &wf_limit_form_avx2;
	}
	if (__builtin_cpu_supports("avx512f")) {
		out[count++] = &wf_limit_form_avx512;
	}
#endif
	return count;
}

static bool
is_near(float a, float b)
{
	return fabsf(a - b) <= 1e-5f * (1 + fabsf(b));
}

static void
steps_are_those_of_sgd_on_every_processor(void **state)
{
	static float param[COUNT], grad[WF_LIMIT_SUM_GRADS][COUNT];
	const float *const all[] = {grad[0], grad[1], grad[2], grad[3]};
	const struct wf_limit_form *form[3];
	(void)state;
	for (unsigned f = forms(form); f-- > 0;) {
		for (unsigned i = 0; i < COUNT; i++) {
			param[i] = (float)i;
			for (unsigned g = 0; g < WF_LIMIT_SUM_GRADS; g++) {
				grad[g][i] = (float)(i % 7) + (float)g;
			}
		}
		form[f]->sum_sgd(param, all, COUNT - 1, 0.5f);
		form[f]->sgd(param, grad[1], COUNT - 1, 2);
		for (unsigned i = 0; i < COUNT - 1; i++) {
			float r = (float)(i % 7);
			assert_true(is_near(param[i], (float)i - 0.5f * (4 * r + 6) - 2 * (r + 1)));
		}
		assert_true(param[COUNT - 1] == (float)(COUNT - 1)); /* nothing behind the end */
	}
}

static void
fill(struct wf_bare_table *table, const struct wf_limit_form *form)
{
	uint64_t key[100];
	assert_true(wf_bare_table_open(table, KEYS, DIM));
	table->form = form;
	for (unsigned first = 0; first < KEYS; first += 100) {
		for (unsigned i = 0; i < 100; i++) {
			key[i] = wf_exchange_key(first + i);
		}
		assert_true(wf_bare_table_insert(table, key, 100));
	}
}

/* Twice a gradient of `g` from zero on. */
static float
two_steps_of_adagrad(float g)
{
	float w = 0, a = 0;
	for (unsigned i = 0; i < 2; i++) {
		a += g * g;
		w -= WF_LIMIT_ROW_RATE * g / sqrtf(a + WF_LIMIT_ROW_EPSILON);
	}
	return w;
}

static void
rows_of_a_table_are_found_and_updated_after_it_has_grown(void **state)
{
	static float grad[3][DIM], out[3][DIM];
	const uint64_t key[3] = {wf_exchange_key(0), wf_exchange_key(KEYS - 1),
				 wf_exchange_key(77)};
	const struct wf_limit_form *form[3];
	struct wf_bare_table table;
	(void)state;
	for (unsigned f = forms(form); f-- > 0;) {
		fill(&table, form[f]);
		assert_int_equal(table.row_count, KEYS);
		assert_true(table.slot_mask + 1 >= 2 * KEYS);
		for (unsigned i = 0; i < 3 * DIM; i++) {
			grad[i / DIM][i % DIM] = (float)(i % 5) - 2.25f;
		}
		table.form->push(&table, key, 3, grad[0]);
		table.form->push(&table, key, 3, grad[0]);
		table.form->pull(&table, key, 3, out[0]);
		for (unsigned i = 0; i < 3 * DIM; i++) {
			float wanted = two_steps_of_adagrad(grad[i / DIM][i % DIM]);
			assert_true(fabsf(out[i / DIM][i % DIM] - wanted) < 1e-5f);
		}
		const uint64_t other = wf_exchange_key(78);
		table.form->pull(&table, &other, 1, out[0]);
		for (unsigned i = 0; i < DIM; i++) {
			assert_true(out[0][i] == 0); /* its neighbours' gradients are not its own */
		}
		wf_bare_table_close(&table);
	}
}

static void
keys_are_merged_in_the_order_in_which_they_first_occur(void **state)
{
	static struct wf_limit_merge merge;
	static uint64_t key[WF_LIMIT_MERGE_MAX];
	(void)state;
	for (uint64_t distinct = 1; distinct <= WF_LIMIT_MERGE_MAX; distinct *= 16) {
		for (uint32_t i = 0; i < WF_LIMIT_MERGE_MAX; i++) {
			key[i] = wf_exchange_key(i * 7 % distinct);
		}
		wf_limit_merge(&merge, key, WF_LIMIT_MERGE_MAX);
		assert_int_equal(merge.count, distinct);
		for (uint32_t i = 0; i < WF_LIMIT_MERGE_MAX; i++) {
			assert_int_equal(merge.place[i], i % distinct);
			assert_int_equal(merge.key[merge.place[i]], key[i]);
		}
	}
}

static void
gradients_of_a_key_are_summed_on_every_processor(void **state)
{
	static const uint32_t place[] = {0, 1, 0, 2, 2, 1, 0};
	static float grad[7][DIM], sum[3][DIM];
	const struct wf_limit_form *form[3];
	(void)state;
	for (unsigned i = 0; i < 7 * DIM; i++) {
		grad[i / DIM][i % DIM] = (float)(1u << i / DIM) + (float)(i % DIM);
	}
	for (unsigned f = forms(form); f-- > 0;) {
		memset(sum, 0x7f, sizeof(sum));
		form[f]->sum_rows(sum[0], grad[0], place, 7, DIM);
		for (unsigned j = 0; j < DIM; j++) {
			assert_true(sum[0][j] == 1 + 4 + 64 + 3 * (float)j);
			assert_true(sum[1][j] == 2 + 32 + 2 * (float)j);
			assert_true(sum[2][j] == 8 + 16 + 2 * (float)j);
		}
	}
}

/* Batches have their two kinds of keys, each of a row that there is. */
static void
drawn_keys_repeat_and_the_others_ascend(void **state)
{
	struct wf_exchange_batches batches;
	const uint64_t rows = 2 * WF_EXCHANGE_BATCH;
	static struct wf_limit_merge merge;
	(void)state;
	assert_int_equal(wf_exchange_batches(wf_env_memory(), rows, true, &batches), WEFT_OK);
	const uint64_t *key = wf_exchange_next(&batches, WF_EXCHANGE_STEP);
	for (unsigned i = 1; i < WF_EXCHANGE_BATCH; i++) {
		assert_true(key[i] > key[i - 1]);
	}
	key = wf_exchange_next(&batches, WF_EXCHANGE_STEP | WF_EXCHANGE_DRAWN);
	wf_limit_merge(&merge, key, WF_EXCHANGE_BATCH);
	assert_true(merge.count > WF_EXCHANGE_BATCH / 16 && merge.count < WF_EXCHANGE_BATCH);
	unsigned descents = 0;
	for (unsigned i = 1; i < WF_EXCHANGE_BATCH; i++) {
		descents += key[i] < key[i - 1];
	}
	assert_true(descents > WF_EXCHANGE_BATCH / 4);
	for (unsigned i = 0; i < WF_EXCHANGE_BATCH; i++) {
		uint64_t row = 0;
		while (row < rows && wf_exchange_key(row) != key[i]) {
			row++;
		}
		assert_true(row < rows);
	}
}

static void
bytes_of_a_socket_come_whole_and_in_order(void **state)
{
	static uint8_t sent[BYTES], got[BYTES];
	uint64_t out = 0, in = 0;
	int fd[2];
	(void)state;
	for (size_t i = 0; i < sizeof(sent); i++) {
		sent[i] = (uint8_t)(i * 31 + i / 251);
	}
	assert_int_equal(wf_socket_pair("", fd), WEFT_OK);
	while (in < sizeof(got)) {
		if (out < sizeof(sent)) {
			assert_int_equal(wf_socket_put(fd[0], sent + out, sizeof(sent) - out, &out),
					 WEFT_OK);
		}
		assert_int_equal(wf_socket_get(fd[1], got + in, sizeof(got) - in, &in), WEFT_OK);
	}
	assert_int_equal(out, sizeof(sent));
	assert_memory_equal(sent, got, sizeof(got));

	/* Nothing there is no failure; an end that is gone is one. */
	assert_int_equal(wf_socket_get(fd[1], got, 1, &in), WEFT_OK);
	assert_int_equal(in, sizeof(got));
	memset(got, 0, sizeof(got));
	pid_t child = fork();
	if (child == 0) {
		_exit(wf_socket_put_all(fd[0], sent, sizeof(sent), true) == WEFT_OK ? 0 : 1);
	}
	close(fd[0]);
	assert_int_equal(wf_socket_get_all(fd[1], got, sizeof(got), false), WEFT_OK);
	assert_memory_equal(sent, got, sizeof(got));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(wf_socket_get_all(fd[1], got, 1, true), WEFT_LOST);
	close(fd[1]);
}

/* The first two CPUs that there are. */
static bool
find_cpus(struct wf_limit_opts *opts)
{
	int cpu[2] = {-1, -1};
	unsigned count = 0;
	cpu_set_t set;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int i = 0; i < CPU_SETSIZE && count < 2; i++) {
		if (CPU_ISSET((size_t)i, &set)) {
			cpu[count++] = i;
		}
	}
	opts->server_cpu = opts->either[0] = cpu[0];
	opts->client_cpu = opts->either[1] = cpu[1];
	return count == 2;
}

static void
follows_orders(enum weft_status (*start)(const struct wf_limit_opts *opts, struct wf_limit *out),
	       const struct wf_limit_opts *opts, uint32_t mode)
{
	struct wf_limit limit = {0};
	assert_int_equal(start(opts, &limit), WEFT_OK);
	limit.side.mode = mode;
	for (unsigned i = 0; i < 2; i++) { /* what one order leaves behind meets the next */
		struct wf_figures figures;
		assert_int_equal(wf_side_run(&limit.side, 1000000, TIMEOUT_NS, &figures), WEFT_OK);
		assert_true(figures.count > 0 && figures.p50_ns > 0);
	}
	assert_true(limit.side.bytes > 0);
	wf_limit_end(&limit);
	wf_limit_end(&limit); /* twice is once */
}

static void
each_limit_follows_its_orders(void **state)
{
	struct wf_limit_opts opts = {.bytes = 1u << 20,
				     .slice_bytes = 1u << 16,
				     .rows = 2 * WF_EXCHANGE_BATCH + 5,
				     .quick = true,
				     .congestion = ""};
	(void)state;
	if (!find_cpus(&opts)) {
		skip(); /* both ends of some spin */
	}
	follows_orders(wf_limit_line_start, &opts, 0);
	for (unsigned i = 0; i < 2; i++) {
		opts.spin = opts.client_copies = opts.over_tcp = i == 1;
		follows_orders(wf_limit_ping_start, &opts, 0);
		follows_orders(wf_limit_tcp_start, &opts, 0);
		follows_orders(wf_limit_shm_start, &opts, 0);
		for (uint32_t drawn = 0; drawn <= WF_EXCHANGE_DRAWN; drawn += WF_EXCHANGE_DRAWN) {
			follows_orders(wf_limit_rows_start, &opts, WF_EXCHANGE_PULL | drawn);
			follows_orders(wf_limit_rows_start, &opts, WF_EXCHANGE_STEP | drawn);
		}
	}
	follows_orders(wf_limit_crowd_start, &opts, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_those_of_sgd_on_every_processor),
		cmocka_unit_test(rows_of_a_table_are_found_and_updated_after_it_has_grown),
		cmocka_unit_test(keys_are_merged_in_the_order_in_which_they_first_occur),
		cmocka_unit_test(gradients_of_a_key_are_summed_on_every_processor),
		cmocka_unit_test(drawn_keys_repeat_and_the_others_ascend),
		cmocka_unit_test(bytes_of_a_socket_come_whole_and_in_order),
		cmocka_unit_test(each_limit_follows_its_orders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A sparse lane that runs out of memory: tests/unit/pserver/starved.h. Thread: the test's. */
#include "sparse/server/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kernels/rows.h"
#include "tests/unit/pserver/starved.h"
#include "wire/sparse_messages.h"

#define TABLES 2u

/* A table with unlimited keys, one with a fixed vocabulary: what each takes differs. */
static void
make_tables(struct wf_table_desc *desc, struct wf_tables *out)
{
	for (uint32_t i = 0; i < TABLES; i++) {
		desc[i] = (struct wf_table_desc){
			.dim = 4,
			.vocabulary = i == 1 ? 2048 : 0,
			.row = {.kind = WF_ROW_SPARSE_MOMENTUM,
				.learning_rate = 0.1,
				.momentum = 0.9,
				.epsilon = 1e-6,
				.dense_equivalent = true},
			.admit = {.probability = 1, .count = i == 0 ? 2 : 0},
		};
		(void)snprintf(desc[i].name, sizeof(desc[i].name), "t%u", i);
	}
	*out = (struct wf_tables){.table_count = TABLES, .table = desc};
}

static void
describe(const struct starved_job *job, struct wf_env *env, struct wf_hello *hello)
{
	struct wf_table_desc desc[TABLES];
	struct wf_tables tables;
	(void)job;
	(void)env;
	make_tables(desc, &tables);
	hello->service = WF_SERVICE_SPARSE;
	hello->tensors_digest = wf_tables_digest(&tables);
	hello->job_bytes = wf_tables_bytes(&tables);
}

static void
send_tables(const struct starved_job *job, struct wf_conn *conn)
{
	struct wf_table_desc desc[TABLES];
	struct wf_tables tables;
	(void)job;
	make_tables(desc, &tables);
	for (uint32_t i = 0; i < TABLES; i++) {
		const struct wf_sparse_table msg = {
			.idx = i, .table_count = TABLES, .table = desc[i]};
		struct wf_msg out;
		wf_sparse_table_encode(&msg, &out);
		starved_send(conn, &out);
	}
}

static void
each_allocation_of_a_sparse_lane_that_fails_is_told_and_leaks_nothing(void **state)
{
	const struct starved_job job = {
		.service = &wf_sparse_service,
		.max_shard_bytes = 64 << 20,
		.resume = WF_SPARSE_RESUME,
		.describe = describe,
		.send = send_tables,
	};
	(void)state;
	starved_refuse_each(&job);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			each_allocation_of_a_sparse_lane_that_fails_is_told_and_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

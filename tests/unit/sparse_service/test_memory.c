/* SPDX-License-Identifier: Apache-2.0 */
/* A sparse lane that runs out of memory: while it accepts a job, tests/unit/pserver/starved.h, and
 * in a step. Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/rows.h"
#include "tests/support/failing_env.h"
#include "tests/unit/pserver/starved.h"
#include "wire/sparse_messages.h"

#define TABLES 2u

/* A table with unlimited keys, one with a fixed vocabulary: what each takes differs. */
static void
make_tables(struct wf_table_desc *desc, struct wf_tables *out)
{
	for (uint32_t i = 0; i < TABLES; i++) {
		desc[i] = (struct wf_table_desc){
			.optimizer = WF_ROW_SPARSE_MOMENTUM,
			.set = {.dim = 4,
				.vocabulary = i == 1 ? 2048 : 0,
				.optimizer = {.learning_rate = 0.1,
					      .momentum = 0.9,
					      .epsilon = 1e-6,
					      .dense_equivalent = true},
				.admit_probability = 1,
				.admit_count = i == 0 ? 2 : 0},
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
send_tables(const struct starved_job *job, struct peer *trainer)
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
		peer_send(trainer, &out);
	}
}

static void
each_allocation_of_a_sparse_lane_that_fails_is_told_and_leaks_nothing(void **state)
{
	const struct starved_job job = {
		.service = &wf_sparse_service,
		.max_shard_bytes = 64 << 20,
		.describe = describe,
		.send = send_tables,
	};
	(void)state;
	starved_refuse_each(&job);
}

/* Under a schedule steps are kept for the rows that miss them: the first one takes memory, and the
 * lane has no more. */
static void
push_when_all_memory_is_used(struct ground *ground)
{
	struct wf_table_desc *words = &ground->desc[0];
	words->optimizer = WF_ROW_SGD;
	words->set.optimizer.l2 = 0.01;
	words->set.optimizer.dense_equivalent = true;
	words->schedule = WF_SCHEDULE_POLY;
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	struct wf_ceiling *ceiling = &wf_sparse_of(ground->lane[0])->ceiling;
	ceiling->limit_bytes = ceiling->used_bytes;
	doll_push(doll, 1, NULL, 0);
	ground_settle(ground);
	CHECK(ground, doll->peer.aborted && doll->peer.abort.status == WEFT_NOMEM &&
			      doll->peer.abort.step == 1);
	const char *reason = doll->peer.abort.reason;
	CHECK(ground, strstr(reason, "table words (--max_shard_bytes leaves ") != NULL);
	CHECK(ground, strstr(reason, "to keep step 1 for rows that miss it") != NULL);
	CHECK(ground, strstr(reason, ": take lazy rows") != NULL);
	CHECK(ground, strstr(reason, "raise") == NULL);
}

static void
a_step_for_which_the_lane_has_no_memory_is_told_with_the_limit(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	(void)state;
	ground_play(&opts, push_when_all_memory_is_used);
}

/* By the limit, and by the env behind it: a message names the limit only after one of the two. */
static void
what_a_ceiling_refuses_is_counted(void **state)
{
	struct wf_failing_env failing;
	struct wf_env *inner = NULL;
	struct wf_ceiling ceiling;
	struct wf_slab slab[2];
	struct wf_env *env = &ceiling.env;
	(void)state;
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, -1, &inner), WEFT_OK);
	wf_failing_env_init(&failing, inner);
	wf_ceiling_init(&ceiling, &failing.env, 3 * 4096);
	assert_int_equal(env->ops->slab_open(env, 2 * 4096, -1, &slab[0]), WEFT_OK);
	void *memory = wf_zalloc(env, 4096);
	assert_non_null(memory);
	assert_int_equal(ceiling.refused_count, 0);
	assert_int_equal(ceiling.used_bytes, 3 * 4096);
	assert_int_equal(env->ops->slab_open(env, 1, -1, &slab[1]), WEFT_NOMEM);
	assert_null(wf_zalloc(env, 1));
	assert_int_equal(ceiling.refused_count, 2);
	wf_free(env, memory, 4096);
	wf_failing_env_fail(&failing, 1, true);
	assert_int_equal(env->ops->slab_open(env, 4096, -1, &slab[1]), WEFT_NOMEM);
	assert_null(wf_zalloc(env, 1));
	assert_int_equal(ceiling.refused_count, 4);
	assert_int_equal(ceiling.used_bytes, 2 * 4096);
	wf_failing_env_fail(&failing, 0, false);
	env->ops->slab_close(env, &slab[0]);
	assert_int_equal(ceiling.used_bytes, 0);
	assert_true(wf_failing_env_is_clean(&failing));
	wf_env_system_destroy(inner);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			each_allocation_of_a_sparse_lane_that_fails_is_told_and_leaks_nothing),
		cmocka_unit_test(what_a_ceiling_refuses_is_counted),
		cmocka_unit_test(a_step_for_which_the_lane_has_no_memory_is_told_with_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

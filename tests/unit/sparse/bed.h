/* SPDX-License-Identifier: Apache-2.0 */
/* bed: a table to test, and short ways to ask it. Thread: one. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>

#include <cmocka.h>

#include "sparse/table/budget.h"
#include "sparse/table/table.h"
#include "tests/support/failing_env.h"

/* A budget without a cap, on a counting env, for parts of a table. */
struct bed_budget {
	struct wf_env *inner;
	struct wf_failing_env failing;
	struct wf_budget budget;
};

static inline int
bed_budget_init(struct bed_budget *bed)
{
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, -1, &bed->inner), WEFT_OK);
	wf_failing_env_init(&bed->failing, bed->inner);
	wf_failing_env_fail(&bed->failing, 0, false);
	bed->budget = (struct wf_budget){.env = &bed->failing.env, .cap_bytes = UINT64_MAX};
	return 0;
}

/* -1, which fails a test as its teardown: not everything was freed. */
static inline int
bed_budget_fini(struct bed_budget *bed)
{
	bool clean = wf_failing_env_is_clean(&bed->failing) && bed->budget.used_bytes == 0;
	wf_env_system_destroy(bed->inner);
	return clean ? 0 : -1;
}

/* A table of rows of 4, uniform first values, sgd with rate 1, one lane, on a counting env. */
static inline struct wf_table_opts
bed_opts(void)
{
	struct wf_table_opts opts = {
		.dim = 4,
		.partition_count = 1024,
		.entries_max = 1000,
		.index_seed = 99,
		.row = wf_row_defaults(),
		.init = {.kind = WF_INIT_UNIFORM, .a = -1.0, .b = 1.0, .seed = 7, .table = 5},
		.admit = {.probability = 1.0},
	};
	opts.row.set.learning_rate = 1.0;
	return opts;
}

static inline struct wf_table *
bed_table(struct wf_env *env, const struct wf_table_opts *opts)
{
	struct wf_table *table = NULL;
	enum weft_status st = wf_table_create(env, opts, &table);
	if (st != WEFT_OK) {
		fail_msg("table: %s", weft_last_error());
	}
	return table;
}

static inline enum weft_status
bed_look(struct wf_table *table, const uint64_t *key, size_t count, float *out, bool create)
{
	struct wf_table_lookup lookup = {.key = key, .count = count, .out = out, .create = create};
	return wf_table_lookup(table, &lookup);
}

/* One trainer's push with rate 1. */
static inline enum weft_status
bed_push(struct wf_table *table, uint64_t step, const uint64_t *key, size_t count,
	 const float *grad)
{
	struct wf_table_batch batch = {.key = key, .grad = grad, .count = count};
	struct wf_table_push push = {
		.step = step, .rate = 1.0, .divisor = 1.0f, .batch = &batch, .batch_count = 1};
	return wf_table_push(table, &push);
}

static inline uint64_t
bed_stat(const struct wf_table *table, enum wf_table_stat stat)
{
	return wf_stats_get(wf_table_stats(table), stat);
}

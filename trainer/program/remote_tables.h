/* SPDX-License-Identifier: Apache-2.0 */
/* remote_tables: the tables of a trainer in a job: batches of rows on their way to and from the
 * sparse lanes, through the public API alone. Thread: the run's, which is the session's owner. */
#pragma once

#include "trainer/program/job.h"
#include "weft/sparse.h"

struct wf_remote_tables {
	struct wf_run *job;
	struct weft_session *session;                  /* lent */
	struct weft_table *table[WF_MODEL_TABLES_MAX]; /* the session's */
	uint64_t lost;                                 /* pushes, as far as reported */
};

/* A batch and its rows. The next one is fetched while this one is computed, so there are two. */
struct wf_remote_batch {
	struct wf_bag_batch rows;
	struct weft_rows *pulled[WF_MODEL_TABLES_MAX];
};

/* Declares the model's tables, before the session is sealed. Status as of weft_table_add. */
enum weft_status wf_remote_tables_add(struct wf_remote_tables *tables, struct wf_run *job,
				      struct weft_session *session) WEFT_MUST_CHECK;
/* Begins to fetch the rows of a batch that has been put together. Never blocks. */
enum weft_status wf_remote_batch_pull(const struct wf_remote_tables *tables,
				      struct wf_remote_batch *batch) WEFT_MUST_CHECK;
/* Waits for them; `out` is the batch, ready to be computed. */
enum weft_status wf_remote_batch_wait(const struct wf_remote_tables *tables,
				      const struct wf_remote_batch *batch,
				      struct wf_batch *out) WEFT_MUST_CHECK;
/* Pushes the gradients for the current step. The rows are invalid after its wait. */
enum weft_status wf_remote_batch_push(const struct wf_remote_tables *tables,
				      struct wf_remote_batch *batch,
				      const struct wf_batch *computed) WEFT_MUST_CHECK;
/* Warn of pushes that lanes dropped for lack of memory since the last call: such a run does not end
 * with the bits of others. */
enum weft_status wf_remote_tables_report_lost(struct wf_remote_tables *tables) WEFT_MUST_CHECK;
/* As struct wf_view's rows; `arg` is the tables. */
enum weft_status wf_remote_tables_rows(void *arg, unsigned table, const uint64_t *key,
				       uint32_t count, float *out) WEFT_MUST_CHECK;

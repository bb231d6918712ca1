/* SPDX-License-Identifier: Apache-2.0 */
/* local_tables: the tables of a sequential run: what all lanes keep of them, in this process, and
 * what each trainer would push. Gradients are summed per key within a trainer in the order of its
 * entries, then over trainers in their order, and applied once: the exchange's own rule, worked out
 * here by other means. What would travel in 16 bits is rounded as if it had. Thread: the run's. */
#pragma once

#include "sparse/table/table.h"
#include "trainer/program/job.h"

#define WF_LOCAL_PARTITIONS 1024u /* all that a table has: this process is its only lane */

struct wf_local_tables;

/* What a step is applied with. */
struct wf_local_step {
	uint64_t step; /* from 1 */
	uint64_t samples_before, samples;
};

/* Creates the tables of the job's model for this number of trainers. WEFT_INVALID: settings, or
 * batches that are too large; WEFT_NOMEM. */
enum weft_status wf_local_tables_create(struct wf_run *job, uint32_t trainers,
					struct wf_local_tables **out) WEFT_MUST_CHECK;
void wf_local_tables_destroy(struct wf_local_tables *tables); /* accepts NULL */
/* A table by its number in the model. */
struct wf_table *wf_local_tables_at(struct wf_local_tables *tables, unsigned table);
/* Rows for a batch to train on; keys without one are given one. Valid until the next call. */
enum weft_status wf_local_tables_pull(struct wf_local_tables *tables,
				      struct wf_batch *batch) WEFT_MUST_CHECK;
/* Keeps the gradients of a trainer's batch, batch->entry_grad, for the step. */
void wf_local_tables_push(struct wf_local_tables *tables, uint32_t trainer,
			  const struct wf_batch *batch);
/* Applies what has been pushed, once. WEFT_DATA: elements that are not finite, unless they are to
 * be skipped; then they are added to *skipped. */
enum weft_status wf_local_tables_apply(struct wf_local_tables *tables,
				       const struct wf_local_step *step,
				       uint64_t *skipped) WEFT_MUST_CHECK;
/* Called at the end of a run: logs what each table has evicted or refused, if anything. */
void wf_local_tables_report(const struct wf_local_tables *tables);
/* As struct wf_view's rows; `arg` is the tables. */
enum weft_status wf_local_tables_rows(void *arg, unsigned table, const uint64_t *key,
				      uint32_t count, float *out) WEFT_MUST_CHECK;

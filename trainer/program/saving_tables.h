/* SPDX-License-Identifier: Apache-2.0 */
/* saving_tables: the tables of a sequential run, to and from a saved model: rows, state, stamps and
 * counters, so that a run that continues ends with the bits of one that did not stop. Private to
 * trainer/program. Thread: the run's. */
#pragma once

#include "saved/saved.h"
#include "trainer/program/local_tables.h"

/* The run's tables as wf_saved_write_all wants them, out [tables of the model]; lent while `tables`
 * is not changed. Returns how many. */
uint32_t wf_run_list_tables(const struct wf_run *job, struct wf_local_tables *tables,
			    struct wf_saved_table *out);
/* Fills the run's tables, which are empty, from a save: to continue from it, or, if `is_init`, with
 * its values alone. WEFT_DATA, WEFT_IO: file and reason; WEFT_NOMEM. */
enum weft_status wf_run_load_tables(const struct wf_run *job, const struct wf_saved *saved,
				    struct wf_local_tables *tables, bool is_init) WEFT_MUST_CHECK;

/* A row of a save as the value that a run begins with: no state, no past. */
struct wf_row_initial {
	uint32_t dim, floats; /* values; these and the state of the table that it goes to */
	float value[WF_ROW_RECORD_FLOATS_MAX];
};
/* `row` points into `initial` afterwards. */
void wf_row_initial_apply(struct wf_row_initial *initial, struct wf_row_record *row);

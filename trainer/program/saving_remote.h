/* SPDX-License-Identifier: Apache-2.0 */
/* saving_remote: the tables of a job, on its sparse lanes, to and from a saved model; a file of
 * theirs is that of the sequential run. Private to trainer/program. Thread: the run's. */
#pragma once

#include "saved/saved.h"
#include "trainer/program/remote_tables.h"

/* As wf_run_list_tables, of trainer 0, between passes. */
uint32_t wf_run_list_remote(const struct wf_run *job, const struct wf_remote_tables *tables,
			    struct wf_saved_table *out);
/* Gives each the step to which its rows belong; the lanes of an asynchronous job have their own.
 * Status as of weft_table_step. */
enum weft_status wf_run_stamp_remote(struct wf_saved_table *about, uint32_t count) WEFT_MUST_CHECK;
/* Restores the tables of a session that was restored and has started; or, if `is_init`, sets their
 * values alone. Called by trainer 0. WEFT_DATA, WEFT_IO: file and reason; otherwise as
 * weft_table_write. */
enum weft_status wf_run_load_remote(const struct wf_run *job, const struct wf_saved *saved,
				    const struct wf_remote_tables *tables,
				    bool is_init) WEFT_MUST_CHECK;

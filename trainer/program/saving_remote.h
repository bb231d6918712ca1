/* SPDX-License-Identifier: Apache-2.0 */
/* saving_remote: the tables of a job, on its sparse lanes, to and from a saved model; a file of
 * theirs is that of the sequential run. Private to trainer/program. Thread: the run's. */
#pragma once

#include "trainer/program/remote_tables.h"
#include "trainer/saved/saved.h"

/* As wf_run_list_tables, of trainer 0, between passes. */
uint32_t wf_run_list_remote(const struct wf_run *job, const struct wf_remote_tables *tables,
			    struct wf_saved_table *out);
/* Put the tables back: trainer 0, of a session that was restored and has started. WEFT_DATA,
 * WEFT_IO: file and reason; else as weft_table_write. */
enum weft_status wf_run_load_remote(const struct wf_run *job, const struct wf_saved *saved,
				    const struct wf_remote_tables *tables) WEFT_MUST_CHECK;

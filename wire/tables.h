/* SPDX-License-Identifier: Apache-2.0 */
/* tables: the description of a job's sparse tables: check, encode, decode, digest. A table's number
 * is its index, the same on every lane and trainer. Thread: any; pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/sparse.h"
#include "wire/bytes.h"
#include "wire/job.h"

#define WF_TABLE_COUNT_MAX 1024u
#define WF_TABLE_DIM_MAX 4096u
#define WF_TABLE_BYTES_MAX 512u  /* of one encoded table */
#define WF_TABLE_FIXED_BYTES 19u /* of a TABLE message beside its table */

/* kernels/rows.h and sparse/table/table.h define the settings. The wire checks each by itself; the
 * code that applies them checks the rules of the method, and those between settings. */
struct wf_table_desc {
	char name[WF_TENSOR_NAME_BYTES]; /* unique in the job; printable, no spaces */
	/* As in weft/sparse.h, including dim. Fields that do not travel are 0: name, settings,
	 * those for batches, and on lanes the texts, which are constants on trainers. */
	struct weft_table_opts set;
	/* The values for which the texts stand. */
	uint32_t optimizer; /* enum wf_row_optimizer */
	uint32_t schedule;  /* enum wf_schedule */
	uint32_t init;      /* enum wf_init_kind */
};

struct wf_tables {
	enum weft_grad_reduce grad_reduce; /* as in the dense job */
	bool skips_nonfinite;              /* likewise */
	uint8_t mode;                      /* enum weft_sparse_mode */
	/* BOUNDED: the most steps by which a trainer may be ahead of the slowest; otherwise 0. */
	uint32_t staleness;
	/* Not SYNC: a push is dropped if its lag, the number of pushes of others that arrived after
	 * its rows were read, is this times the number of trainers (rounded down) or more; 0:
	 * never. SYNC: 0. */
	double discard_ratio;
	uint32_t table_count; /* 1..WF_TABLE_COUNT_MAX */
	const struct wf_table_desc *table;
};

/* Whether pushes carry show and click for each row of the table. */
static inline bool
wf_table_has_scores(const struct wf_table_desc *table)
{
	return table->set.evict_score_least > 0.0;
}

static inline struct wf_row_opts
wf_table_row(const struct wf_table_desc *table)
{
	return (struct wf_row_opts){.set = table->set.optimizer,
				    .kind = (enum wf_row_optimizer)table->optimizer,
				    .schedule = (enum wf_schedule)table->schedule};
}

static inline size_t
wf_value_bytes(enum weft_value_format format)
{
	return format == WEFT_VALUES_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* The bytes of a row on the wire: its values, */
static inline size_t
wf_table_row_bytes(const struct wf_table_desc *table)
{
	return table->set.dim * wf_value_bytes(table->set.wire);
}

static inline size_t
wf_table_score_bytes(const struct wf_table_desc *table)
{
	return wf_table_has_scores(table) ? 2 * sizeof(float) : 0;
}

/* and everything but its key, as it is pushed. */
static inline size_t
wf_table_front_bytes(const struct wf_table_desc *table)
{
	return wf_table_row_bytes(table) + wf_table_score_bytes(table);
}

/* The bytes that a lane keeps of a pushed row, without its key: gradients are f32 there. */
static inline size_t
wf_table_kept_bytes(const struct wf_table_desc *table)
{
	return table->set.dim * sizeof(float) + wf_table_score_bytes(table);
}

/* WEFT_INVALID: the text names table, field, value and limit. */
enum weft_status wf_table_desc_check(const struct wf_table_desc *table) WEFT_MUST_CHECK;
/* Checks mode, staleness and discard_ratio. */
enum weft_status wf_tables_check_mode(const struct wf_tables *tables) WEFT_MUST_CHECK;
/* Checks all tables, their number, mode and so on, and that their names differ. */
enum weft_status wf_tables_check(const struct wf_tables *tables) WEFT_MUST_CHECK;
/* The digest of checked tables, which hellos have in place of the tensors' digest. */
uint64_t wf_tables_digest(const struct wf_tables *tables);
/* The bytes of all TABLE messages' bodies together, which hellos have in place of job_bytes. */
uint64_t wf_tables_bytes(const struct wf_tables *tables);

/* Writes one table at the end of `w`; reads one at the position of `r`. WEFT_PROTOCOL. */
void wf_table_desc_put(struct wf_writer *w, const struct wf_table_desc *table);
enum weft_status wf_table_desc_get(struct wf_reader *r, struct wf_table_desc *out) WEFT_MUST_CHECK;

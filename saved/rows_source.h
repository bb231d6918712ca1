/* SPDX-License-Identifier: Apache-2.0 */
/* rows_source: what is behind a reader of rows: the file of a table (rows_read.c), or the parts of
 * a snapshot (blocks_rows.c). The reader (rows_reader.c) counts rows and checks each. Private to
 * this folder. Thread: the caller's. */
#pragma once

#include "saved/rows_layout.h"

struct wf_rows_source {
	/* Begins partition `reader->partitions`: its rows; its counters go to `reader->counter`. */
	enum weft_status (*begin)(struct wf_rows_reader *reader, uint64_t *row_count);
	/* The next record, lent until the next call; NULL and `*st`: there is none. */
	const uint8_t *(*next)(struct wf_rows_reader *reader, enum weft_status *st);
	/* Behind the last row of a partition. NULL: nothing is there. */
	enum weft_status (*end)(struct wf_rows_reader *reader);
	/* Behind the last partition. WEFT_CLOSED: nothing follows (nothing is recorded) */
	enum weft_status (*finish)(const struct wf_rows_reader *reader);
	/* Bytes and checksum of what has been read; the rows are the reader's. */
	struct wf_rows_sum (*sum)(const struct wf_rows_reader *reader);
	void (*close)(struct wf_rows_reader *reader);
};

/* The first member of what a source has. */
struct wf_rows_reader {
	const struct wf_rows_source *source;
	struct wf_env *env;
	size_t own_bytes;               /* of the whole struct, which wf_rows_close frees */
	char path[WF_SAVED_PATH_BYTES]; /* for messages: of the file, or of the directory */
	struct wf_rows_head head;
	size_t row_bytes;

	uint32_t partitions; /* begun */
	uint64_t left;       /* rows of the last one */
	uint64_t row_count;  /* handed out */
	uint64_t last_key;
	bool has_last;
	uint16_t *counter; /* [counter_count] */
	float floats[WF_ROW_RECORD_FLOATS_MAX];
};

/* A struct of `own_bytes`, zeroed but for these. NULL: WEFT_NOMEM is recorded. */
struct wf_rows_reader *wf_rows_reader_create(struct wf_env *env,
					     const struct wf_rows_source *source, const char *path,
					     size_t own_bytes);
/* The head is known: what follows from it. WEFT_NOMEM */
enum weft_status wf_rows_reader_set_head(struct wf_rows_reader *reader,
					 const struct wf_rows_head *head) WEFT_MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* rows: the rows of one sparse table in one file, partition by partition, by ascending key, each
 * partition with its checksum. The file does not depend on lanes: what any number of them saved,
 * any other number loads. rows.md has the format.
 *
 * The writer gets rows from a source that is not trusted (a lane may be far away), so it refuses
 * what the reader would not accept. Thread: the caller's. Blocks on the disk. */
#pragma once

#include "base/env.h"
#include "saved/file.h"
#include "wire/row_record.h"

#define WF_ROWS_FORMAT 1u
#define WF_ROWS_COUNTERS_MAX (1u << 20)

/* The head, in front of all rows. */
struct wf_rows_head {
	struct wf_row_shape shape;
	uint32_t counter_count; /* of admission, in each partition */
	uint64_t vocabulary;    /* 0: any u64 */
	uint64_t step;          /* the last one applied */
};

/* WEFT_INVALID names field, value and limit. */
enum weft_status wf_rows_check_head(const struct wf_rows_head *head) WEFT_MUST_CHECK;
/* Bytes of a file with this many rows; 0: more than a file can have. */
uint64_t wf_rows_file_bytes(const struct wf_rows_head *head, uint64_t row_count);

struct wf_rows_writer;

/* A new file, which must not exist; the spot's path is lent until finish. WEFT_INVALID: the head;
 * WEFT_IO; WEFT_NOMEM */
enum weft_status wf_rows_create(struct wf_env *env, const struct wf_saved_spot *spot,
				const struct wf_rows_head *head,
				struct wf_rows_writer **out) WEFT_MUST_CHECK;
/* The next partition, from 0 on, with `row_count` rows to come. `counter`: [counter_count]; NULL:
 * all 0. WEFT_INVALID: rows of the one before are missing; WEFT_IO */
enum weft_status wf_rows_begin(struct wf_rows_writer *writer, uint64_t row_count,
			       const uint16_t *counter) WEFT_MUST_CHECK;
/* WEFT_INVALID: no row that belongs here; WEFT_IO */
enum weft_status wf_rows_put(struct wf_rows_writer *writer,
			     const struct wf_row_record *row) WEFT_MUST_CHECK;

/* The result of writing a file. */
struct wf_rows_sum {
	uint64_t row_count;
	uint64_t bytes;
	uint32_t crc;
};

/* Ends the file and the writer; `st` is the result of writing. After WEFT_OK the file is synced. */
enum weft_status wf_rows_finish(struct wf_rows_writer *writer, enum weft_status st,
				struct wf_rows_sum *out) WEFT_MUST_CHECK;

struct wf_rows_reader;

/* WEFT_DATA: it is missing, or no such file; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_rows_open(struct wf_env *env, const struct wf_saved_calls *calls,
			      const char *path, struct wf_rows_reader **out) WEFT_MUST_CHECK;
void wf_rows_close(struct wf_rows_reader *reader); /* accepts NULL */
const struct wf_rows_head *wf_rows_head(const struct wf_rows_reader *reader);

struct wf_rows_partition {
	uint32_t partition;
	uint64_t row_count;
	const uint16_t *counter; /* [counter_count], lent until the next partition; NULL: none */
};

/* Reads the head of the next partition, after all rows of the one before have been read. WEFT_DATA:
 * what is wrong, and in which partition; WEFT_IO. WEFT_CLOSED: that was the last one, and the file
 * ends there (nothing is recorded). */
enum weft_status wf_rows_next_partition(struct wf_rows_reader *reader,
					struct wf_rows_partition *out) WEFT_MUST_CHECK;
/* The next row of the partition, lent until the next call; there is one. With the last one the
 * partition's checksum is compared: WEFT_DATA, WEFT_IO. */
enum weft_status wf_rows_next(struct wf_rows_reader *reader,
			      struct wf_row_record *out) WEFT_MUST_CHECK;
/* Reads all that is left. WEFT_DATA, WEFT_IO */
enum weft_status wf_rows_read_all(struct wf_rows_reader *reader) WEFT_MUST_CHECK;
/* Of what has been read, all of it at the end. */
struct wf_rows_sum wf_rows_read_sum(const struct wf_rows_reader *reader);
/* Reads a file from end to end. WEFT_DATA, WEFT_IO, WEFT_NOMEM. `head` may be NULL. */
enum weft_status wf_rows_check(struct wf_env *env, const struct wf_saved_calls *calls,
			       const char *path, struct wf_rows_head *head,
			       struct wf_rows_sum *out) WEFT_MUST_CHECK;

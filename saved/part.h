/* SPDX-License-Identifier: Apache-2.0 */
/* part: what one lane wrote of one snapshot, in one file: a head that says whose it is, blocks with
 * checksums, and an end mark. What the payload of a block means is the service's; this folder keeps
 * it whole. parts.md has the format.
 *
 * A block is handed out as it is read, and its checksum is compared with its last byte, so a caller
 * that must not use anything of a damaged file checks it from end to end first (wf_part_check).
 * Thread: the caller's. Blocks on the disk. */
#pragma once

#include "base/env.h"
#include "saved/file.h"

#define WF_PART_FORMAT 1u
#define WF_PART_BLOCK_BYTES_MAX (1ull << 40) /* of a payload */

enum wf_part_kind {
	WF_PART_SLICE = 1,    /* values and state of a slice of a tensor */
	WF_PART_NUMBERS = 2,  /* what trainers have changed of a tensor's optimizer */
	WF_PART_ROWS = 3,     /* rows of a table */
	WF_PART_COUNTERS = 4, /* admission counters of a partition */
	WF_PART_LANE = 5,     /* what describes a table, or what the lane has besides */
	WF_PART_GONE = 6,     /* keys of rows of a table that are gone, in a delta */
	WF_PART_VERSIONS = 7, /* of a slice, in a snapshot that is a vector of versions */
};

struct wf_part_head {
	uint8_t service;           /* enum wf_service: WF_SERVICE_DENSE or WF_SERVICE_SPARSE */
	uint32_t lane, lane_count; /* its global number, and how many the service has in the job */
	uint64_t epoch, step;      /* the snapshot */
	uint64_t job_digest;       /* the service's */
};

struct wf_part_block {
	uint32_t kind;  /* enum wf_part_kind */
	uint32_t item;  /* number of the tensor or table in the manifest */
	uint64_t first; /* element of the tensor, or partition, or number of a block of rows */
	uint64_t count; /* elements, rows or counters */
	uint64_t bytes; /* of the payload, at most WF_PART_BLOCK_BYTES_MAX */
};

/* A file, or what has been read of it. */
struct wf_part_sum {
	uint64_t bytes;
	uint64_t blocks;
	uint32_t crc; /* CRC32C of all bytes */
};

struct wf_part_writer;

/* A new file, which must not exist; the spot's path is lent until finish. After a failure a file
 * may be there, as after a failed finish. WEFT_INVALID: the head; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_part_create(struct wf_env *env, const struct wf_saved_spot *spot,
				const struct wf_part_head *head,
				struct wf_part_writer **out) WEFT_MUST_CHECK;
/* The next block, of whose payload `block->bytes` bytes are to come. WEFT_INVALID: bytes of the
 * one before are missing, or a field is out of range; WEFT_IO */
enum weft_status wf_part_begin(struct wf_part_writer *writer,
			       const struct wf_part_block *block) WEFT_MUST_CHECK;
/* The next bytes of the payload. WEFT_INVALID: more than the block announced; WEFT_IO */
enum weft_status wf_part_write(struct wf_part_writer *writer, const void *bytes,
			       size_t count) WEFT_MUST_CHECK;
/* A block whose payload is in one place. */
enum weft_status wf_part_put(struct wf_part_writer *writer, const struct wf_part_block *block,
			     const void *payload) WEFT_MUST_CHECK;
/* Ends the file and the writer; `st` is the result of writing. After WEFT_OK the file has its end
 * mark and is synced, and `out` describes it; else the caller removes the file. */
enum weft_status wf_part_finish(struct wf_part_writer *writer, enum weft_status st,
				struct wf_part_sum *out) WEFT_MUST_CHECK;

struct wf_part_reader;

/* WEFT_DATA: it is missing, or no such file; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_part_open(struct wf_env *env, const struct wf_saved_calls *calls,
			      const char *path, struct wf_part_reader **out) WEFT_MUST_CHECK;
void wf_part_close(struct wf_part_reader *reader); /* accepts NULL */
const struct wf_part_head *wf_part_head(const struct wf_part_reader *reader);
/* The next block, after all bytes of the one before have been read or skipped. WEFT_DATA: the
 * block's number and what is wrong with it; WEFT_IO. WEFT_CLOSED: that was the last one, and the
 * file ends there (nothing is recorded). */
enum weft_status wf_part_next(struct wf_part_reader *reader,
			      struct wf_part_block *out) WEFT_MUST_CHECK;
/* The next `count` bytes of the payload, which has as many left. With the last one the block's
 * checksum is compared: WEFT_DATA, WEFT_IO. */
enum weft_status wf_part_read(struct wf_part_reader *reader, void *out,
			      size_t count) WEFT_MUST_CHECK;
/* Reads the rest of the payload and compares its checksum. */
enum weft_status wf_part_skip(struct wf_part_reader *reader) WEFT_MUST_CHECK;
/* Goes on behind the payload without reading the rest of it, so its checksum is not compared: for
 * callers that know the file to be whole. wf_part_sum does not apply any more. */
void wf_part_leave(struct wf_part_reader *reader);
/* Of what has been read, all of it after WEFT_CLOSED. Before wf_part_next this is where the next
 * block begins, and its number. */
struct wf_part_sum wf_part_sum(const struct wf_part_reader *reader);
/* From here on the checksum of the whole file is not computed, and wf_part_sum does not apply: for
 * callers whom those of the blocks suffice. */
void wf_part_forgo_sum(struct wf_part_reader *reader);
/* The checksum of the block that has been read last, which no other content of a block has, but by
 * chance. */
uint32_t wf_part_block_crc(const struct wf_part_reader *reader);
/* The next block is `number`, which begins at byte `at`. wf_part_sum does not apply any more. */
void wf_part_seek(struct wf_part_reader *reader, uint64_t number, uint64_t at);
/* WEFT_DATA: file, number of the block that began last, and what the caller finds wrong with it. */
enum weft_status wf_part_refuse(const struct wf_part_reader *reader,
				const char *why) WEFT_MUST_CHECK;
/* Reads a file from end to end. WEFT_DATA, WEFT_IO, WEFT_NOMEM. */
enum weft_status wf_part_check(struct wf_env *env, const struct wf_saved_calls *calls,
			       const char *path, struct wf_part_head *head,
			       struct wf_part_sum *sum) WEFT_MUST_CHECK;

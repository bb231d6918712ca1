/* SPDX-License-Identifier: Apache-2.0 */
/* recordio: files of records, as the original's tools write them.
 *
 * A file is a sequence of chunks. A chunk is a header of five 32-bit little-endian words and a
 * payload, which may be compressed. Unpacked it holds the records one after the other, each a
 * 32-bit length and its bytes. The words of a header are in one of two orders:
 *
 *     magic 0x01020304, CRC-32 of the payload as stored, compressor, bytes as stored, records
 *     magic 0x01020304, records, CRC-32 of the payload as stored, compressor, bytes as stored
 *
 * The first is that of the original's Go and Python tools, and the one that is written. The second
 * is that of its later C++ writer, and is read too. A stored payload of the first has 4 bytes or
 * more, and a compressor is 2 at most, so the fourth word tells the two apart.
 *
 * Whatever a file says is checked before it is believed: a chunk is delivered whole or refused.
 * Thread: each object belongs to its caller. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

#define WF_RECORDIO_MAGIC 0x01020304u
#define WF_RECORDIO_HEADER_BYTES 20u
#define WF_RECORDIO_LENGTH_BYTES 4u              /* before each record */
#define WF_RECORDIO_CHUNK_BYTES_MAX (256u << 20) /* of a payload, stored or unpacked */
/* Of the records in a chunk: packed and unpacked it stays in the second level of caches. */
#define WF_RECORDIO_CHUNK_BYTES_DEFAULT (512u << 10)
#define WF_RECORDIO_RECORD_BYTES_MAX (255u << 20) /* of one that is written */

/* As the files have them. */
enum wf_recordio_compressor {
	WF_RECORDIO_NONE = 0,
	WF_RECORDIO_SNAPPY = 1, /* in snappy's framing format */
	WF_RECORDIO_GZIP = 2,
};

/* "none", "snappy" or "gzip". */
const char *wf_recordio_compressor_name(enum wf_recordio_compressor compressor);

/* Whether a file begins as a RecordIO file does. `bytes` is [count], the first of the file. */
bool wf_recordio_recognise(const void *bytes, size_t count);

struct wf_recordio_reader;

/* A chunk that has been read and checked. */
struct wf_recordio_chunk {
	uint64_t at; /* its first byte in the file */
	uint32_t records;
	uint32_t stored_bytes; /* of the payload */
	uint32_t bytes;        /* of the payload, unpacked: records and their lengths */
	enum wf_recordio_compressor compressor;
};

struct wf_record {
	const uint8_t *bytes; /* [count], until the next call; NULL: there are no more */
	size_t count;
};

/* `fd` stands at the first byte of a file; it and `path`, which is for messages, are lent until
 * close. WEFT_NOMEM */
enum weft_status wf_recordio_reader_open(struct wf_env *env, int fd, const char *path,
					 struct wf_recordio_reader **out) WEFT_MUST_CHECK;
/* Accepts NULL. */
void wf_recordio_reader_close(struct wf_recordio_reader *reader);
/* Reads the next chunk, and leaves what is unread of the one before. `out->records` is 0 at the end
 * of the file. WEFT_DATA: the chunk is damaged or truncated; the text has the file and the byte at
 * which the chunk begins. The next call reads the chunk behind it where the header says where that
 * is, else it meets the end. WEFT_IO; WEFT_NOMEM */
enum weft_status wf_recordio_read_chunk(struct wf_recordio_reader *reader,
					struct wf_recordio_chunk *out) WEFT_MUST_CHECK;
/* The next record of the chunk that was read, NULL if there are no more. */
struct wf_record wf_recordio_chunk_record(struct wf_recordio_reader *reader);
/* The next record of the file. As wf_recordio_read_chunk. */
enum weft_status wf_recordio_read(struct wf_recordio_reader *reader,
				  struct wf_record *out) WEFT_MUST_CHECK;

struct wf_recordio_writer;

struct wf_recordio_writer_opts {
	enum wf_recordio_compressor compressor;
	/* Of the records in a chunk, without their lengths. A longer record has a chunk of its own.
	 * 0: WF_RECORDIO_CHUNK_BYTES_DEFAULT. At most WF_RECORDIO_RECORD_BYTES_MAX. */
	size_t chunk_bytes;
	/* Writes `count` bytes to the file. A failure is passed on. */
	enum weft_status (*write)(void *to, const void *bytes, size_t count);
	void *to; /* lent until close */
};

/* WEFT_NOMEM */
enum weft_status wf_recordio_writer_open(struct wf_env *env,
					 const struct wf_recordio_writer_opts *opts,
					 struct wf_recordio_writer **out) WEFT_MUST_CHECK;
/* Adds a record, which may be empty. WEFT_INVALID: it is too long; WEFT_NOMEM; what `write`
 * returned. After a failure the file is worth nothing. */
enum weft_status wf_recordio_write(struct wf_recordio_writer *writer, const void *bytes,
				   size_t count) WEFT_MUST_CHECK;
/* Writes the last chunk. As wf_recordio_write. */
enum weft_status wf_recordio_writer_finish(struct wf_recordio_writer *writer) WEFT_MUST_CHECK;
/* Releases the memory; what was not finished is lost. Accepts NULL. */
void wf_recordio_writer_close(struct wf_recordio_writer *writer);

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading RecordIO: a chunk is read whole, and checked whole, before a record of it is delivered.
 * Memory grows with what is there, never with what a header says. Thread: the caller's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "trainer/readers/crc32.h"
#include "trainer/readers/payload.h"
#include "trainer/readers/recordio.h"

#define STEP_BYTES_MIN (1u << 20) /* room that a header alone can demand */
#define REASON_BYTES 160

struct wf_recordio_reader {
	struct wf_env *env;
	const char *path; /* lent */
	int fd;           /* lent */
	bool is_over;     /* there is nothing more to read, or nobody knows where */
	uint64_t at;      /* the byte behind the last chunk */
	struct wf_bytes stored;
	struct wf_bytes unpacked;
	struct wf_payload_zlib zlib;
	const struct wf_bytes *payload; /* one of the two; NULL: no chunk is read */
	size_t next;                    /* the next record, a byte of the payload */
};

struct header {
	uint32_t crc;
	uint32_t compressor;
	uint32_t bytes;
	uint32_t records;
};

static const char *const compressor_names[] = {"none", "snappy", "gzip"};

const char *
wf_recordio_compressor_name(enum wf_recordio_compressor compressor)
{
	WF_ASSERT(compressor < WF_ARRAY_COUNT(compressor_names));
	return compressor_names[compressor];
}

static uint32_t
word_at(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool
wf_recordio_recognise(const void *bytes, size_t count)
{
	return count >= sizeof(uint32_t) && word_at(bytes) == WF_RECORDIO_MAGIC;
}

enum weft_status
wf_recordio_reader_open(struct wf_env *env, int fd, const char *path,
			struct wf_recordio_reader **out)
{
	struct wf_recordio_reader *reader = wf_zalloc(env, sizeof(*reader));

	if (reader == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes to read it with", path, sizeof(*reader));
	}
	reader->env = env;
	reader->fd = fd;
	reader->path = path;
	*out = reader;
	return WEFT_OK;
}

void
wf_recordio_reader_close(struct wf_recordio_reader *reader)
{
	if (reader == NULL) {
		return;
	}
	wf_payload_unpacker_fini(reader->env, &reader->zlib);
	wf_bytes_fini(reader->env, &reader->stored);
	wf_bytes_fini(reader->env, &reader->unpacked);
	wf_free(reader->env, reader, sizeof(*reader));
}

/* Refuses the chunk that begins at `at`. */
static enum weft_status
refuse(const struct wf_recordio_reader *reader, uint64_t at, const char *why)
{
	return wf_fail(WEFT_DATA, "%s: the chunk at byte %" PRIu64 ": %s", reader->path, at, why);
}

/* As many of `count` bytes as the file has. */
static enum weft_status
read_bytes(struct wf_recordio_reader *reader, uint8_t *bytes, size_t count, size_t *got)
{
	*got = 0;
	while (*got < count) {
		ssize_t n = read(reader->fd, bytes + *got, count - *got);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: cannot be read", reader->path);
		}
		if (n == 0) {
			break;
		}
		*got += (size_t)n;
	}
	return WEFT_OK;
}

static enum weft_status
parse_header(const struct wf_recordio_reader *reader, const uint8_t *bytes, struct header *out)
{
	uint32_t word[WF_RECORDIO_HEADER_BYTES / sizeof(uint32_t)];
	char why[REASON_BYTES];

	for (size_t i = 0; i < WF_ARRAY_COUNT(word); i++) {
		word[i] = word_at(bytes + i * sizeof(uint32_t));
	}
	bool is_second_order = word[3] <= WF_RECORDIO_GZIP;
	struct header header = {
		.crc = is_second_order ? word[2] : word[1],
		.compressor = is_second_order ? word[3] : word[2],
		.bytes = is_second_order ? word[4] : word[3],
		.records = is_second_order ? word[1] : word[4],
	};
	if (word[0] != WF_RECORDIO_MAGIC) {
		snprintf(why, sizeof(why),
			 "begins with 0x%08" PRIx32 "; a chunk begins with 0x%08x", word[0],
			 WF_RECORDIO_MAGIC);
		return refuse(reader, reader->at, why);
	}
	if (header.compressor > WF_RECORDIO_GZIP) {
		snprintf(why, sizeof(why),
			 "has the compressor %" PRIu32 "; 0 (none), 1 (snappy) and 2 (gzip) are "
			 "known",
			 header.compressor);
		return refuse(reader, reader->at, why);
	}
	if (header.bytes > WF_RECORDIO_CHUNK_BYTES_MAX) {
		snprintf(why, sizeof(why),
			 "has %" PRIu32 " bytes, if its header is right; at most "
			 "%u are read",
			 header.bytes, WF_RECORDIO_CHUNK_BYTES_MAX);
		return refuse(reader, reader->at, why);
	}
	*out = header;
	return WEFT_OK;
}

/* false in `*found`: the file ends before it. */
static enum weft_status
read_header(struct wf_recordio_reader *reader, struct header *out, bool *found)
{
	uint8_t bytes[WF_RECORDIO_HEADER_BYTES];
	size_t got = 0;

	*found = false;
	enum weft_status st = read_bytes(reader, bytes, sizeof(bytes), &got);
	if (st != WEFT_OK || got == 0) {
		return st;
	}
	if (got < sizeof(bytes)) {
		return refuse(reader, reader->at,
			      "the file ends within its header: it is truncated");
	}
	st = parse_header(reader, bytes, out);
	*found = st == WEFT_OK;
	return st;
}

/* Reads the payload, in steps that double: a header may lie about its length. */
static enum weft_status
read_stored(struct wf_recordio_reader *reader, size_t count)
{
	struct wf_bytes *stored = &reader->stored;

	stored->count = 0;
	while (stored->count < count) {
		size_t want = stored->count < STEP_BYTES_MIN ? STEP_BYTES_MIN : 2 * stored->count;
		want = want < stored->room ? stored->room : want;
		want = want < count ? want : count;
		enum weft_status st = wf_bytes_reserve(reader->env, stored, want);
		if (st != WEFT_OK) {
			return st;
		}
		size_t got = 0;
		size_t more = want - stored->count;
		st = read_bytes(reader, stored->at + stored->count, more, &got);
		if (st != WEFT_OK) {
			return st;
		}
		stored->count += got;
		if (got < more) {
			char why[REASON_BYTES];
			snprintf(why, sizeof(why),
				 "the file ends after %zu of its %zu bytes: it is truncated",
				 stored->count, count);
			return refuse(reader, reader->at, why);
		}
	}
	return WEFT_OK;
}

/* The records fill the payload exactly, and there are as many as the header says. */
static enum weft_status
check_records(const struct wf_recordio_reader *reader, uint64_t at, const struct header *header)
{
	const struct wf_bytes *payload = reader->payload;
	size_t next = 0;
	uint32_t records = 0;
	char why[REASON_BYTES];

	while (next < payload->count && records < header->records) {
		size_t left = payload->count - next;
		if (left < WF_RECORDIO_LENGTH_BYTES ||
		    word_at(payload->at + next) > left - WF_RECORDIO_LENGTH_BYTES) {
			snprintf(why, sizeof(why),
				 "its record %" PRIu32 " reaches beyond the end of the chunk",
				 records + 1);
			return refuse(reader, at, why);
		}
		next += WF_RECORDIO_LENGTH_BYTES + word_at(payload->at + next);
		records++;
	}
	if (records < header->records) {
		snprintf(why, sizeof(why),
			 "has %" PRIu32 " of the %" PRIu32 " records that its header gives",
			 records, header->records);
		return refuse(reader, at, why);
	}
	if (next < payload->count) {
		snprintf(why, sizeof(why),
			 "has %zu bytes behind the last of its %" PRIu32 " records",
			 payload->count - next, records);
		return refuse(reader, at, why);
	}
	return WEFT_OK;
}

/* From stored bytes to records. The chunk's place is behind the reader by now. */
static enum weft_status
open_payload(struct wf_recordio_reader *reader, uint64_t at, const struct header *header)
{
	const struct wf_bytes *stored = &reader->stored;
	char why[REASON_BYTES];

	if (wf_crc32(stored->at, stored->count) != header->crc) {
		return refuse(reader, at, "its checksum is wrong: the file is damaged");
	}
	reader->payload = stored;
	if (header->compressor != WF_RECORDIO_NONE) {
		enum weft_status st = wf_payload_unpack(
			reader->env, &reader->zlib, (enum wf_recordio_compressor)header->compressor,
			stored, &reader->unpacked);
		if (st == WEFT_DATA) {
			snprintf(why, sizeof(why), "%s", weft_last_error());
			return refuse(reader, at, why);
		}
		if (st != WEFT_OK) {
			return st;
		}
		reader->payload = &reader->unpacked;
	}
	return check_records(reader, at, header);
}

/* One chunk, which may have no records. `*found` false: the end. */
static enum weft_status
read_one(struct wf_recordio_reader *reader, struct wf_recordio_chunk *out, bool *found)
{
	struct header header = {0};
	uint64_t at = reader->at;

	reader->payload = NULL;
	enum weft_status st = read_header(reader, &header, found);
	if (st == WEFT_OK && *found) {
		st = read_stored(reader, header.bytes);
	}
	reader->is_over = st != WEFT_OK || !*found;
	if (reader->is_over) {
		return st;
	}
	reader->at += WF_RECORDIO_HEADER_BYTES + header.bytes;
	st = open_payload(reader, at, &header);
	if (st != WEFT_OK) {
		reader->payload = NULL;
		return st;
	}
	*out = (struct wf_recordio_chunk){
		.at = at,
		.records = header.records,
		.stored_bytes = header.bytes,
		.bytes = (uint32_t)reader->payload->count,
		.compressor = (enum wf_recordio_compressor)header.compressor,
	};
	return WEFT_OK;
}

enum weft_status
wf_recordio_read_chunk(struct wf_recordio_reader *reader, struct wf_recordio_chunk *out)
{
	struct wf_recordio_chunk chunk = {0};
	bool found = true;

	reader->payload = NULL;
	reader->next = 0;
	while (!reader->is_over && chunk.records == 0) {
		enum weft_status st = read_one(reader, &chunk, &found);
		if (st != WEFT_OK) {
			return st;
		}
	}
	*out = chunk;
	return WEFT_OK;
}

struct wf_record
wf_recordio_chunk_record(struct wf_recordio_reader *reader)
{
	const struct wf_bytes *payload = reader->payload;

	if (payload == NULL || reader->next == payload->count) {
		return (struct wf_record){0};
	}
	const uint8_t *at = payload->at + reader->next;
	struct wf_record record = {.bytes = at + WF_RECORDIO_LENGTH_BYTES, .count = word_at(at)};
	reader->next += WF_RECORDIO_LENGTH_BYTES + record.count;
	return record;
}

enum weft_status
wf_recordio_read(struct wf_recordio_reader *reader, struct wf_record *out)
{
	struct wf_record record = wf_recordio_chunk_record(reader);

	if (record.bytes == NULL) {
		struct wf_recordio_chunk chunk;
		enum weft_status st = wf_recordio_read_chunk(reader, &chunk);
		if (st != WEFT_OK) {
			return st;
		}
		record = wf_recordio_chunk_record(reader);
	}
	*out = record;
	return WEFT_OK;
}

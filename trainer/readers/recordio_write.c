/* SPDX-License-Identifier: Apache-2.0 */
/* Writing RecordIO: records are collected until a chunk is full. Thread: the caller's. */
#include <string.h>

#include "base/assert.h"
#include "trainer/readers/crc32.h"
#include "trainer/readers/payload.h"
#include "trainer/readers/recordio.h"

struct wf_recordio_writer {
	struct wf_env *env;
	struct wf_recordio_writer_opts opts;
	struct wf_bytes records; /* of the chunk, with their lengths */
	struct wf_bytes packed;
	struct wf_payload_zlib zlib;
	uint32_t count;      /* records in it */
	size_t record_bytes; /* of them, without lengths */
};

enum weft_status
wf_recordio_writer_open(struct wf_env *env, const struct wf_recordio_writer_opts *opts,
			struct wf_recordio_writer **out)
{
	struct wf_recordio_writer *writer = wf_zalloc(env, sizeof(*writer));

	WF_ASSERT(opts->chunk_bytes <= WF_RECORDIO_RECORD_BYTES_MAX);
	if (writer == NULL) {
		return wf_fail(WEFT_NOMEM, "%zu bytes to write records with", sizeof(*writer));
	}
	writer->env = env;
	writer->opts = *opts;
	if (writer->opts.chunk_bytes == 0) {
		writer->opts.chunk_bytes = WF_RECORDIO_CHUNK_BYTES_DEFAULT;
	}
	*out = writer;
	return WEFT_OK;
}

void
wf_recordio_writer_close(struct wf_recordio_writer *writer)
{
	if (writer == NULL) {
		return;
	}
	wf_payload_packer_fini(writer->env, &writer->zlib);
	wf_bytes_fini(writer->env, &writer->records);
	wf_bytes_fini(writer->env, &writer->packed);
	wf_free(writer->env, writer, sizeof(*writer));
}

static void
put_word(uint8_t *at, uint32_t word)
{
	for (unsigned i = 0; i < sizeof(word); i++) {
		at[i] = (uint8_t)(word >> (8 * i));
	}
}

static enum weft_status
write_chunk(struct wf_recordio_writer *writer)
{
	const struct wf_recordio_writer_opts *opts = &writer->opts;
	const struct wf_bytes *stored = &writer->records;
	uint8_t header[WF_RECORDIO_HEADER_BYTES];
	enum weft_status st = WEFT_OK;

	if (opts->compressor != WF_RECORDIO_NONE) {
		st = wf_payload_pack(writer->env, &writer->zlib, opts->compressor, &writer->records,
				     &writer->packed);
		stored = &writer->packed;
	}
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(stored->count <= WF_RECORDIO_CHUNK_BYTES_MAX);
	put_word(header, WF_RECORDIO_MAGIC);
	put_word(header + 4, wf_crc32(stored->at, stored->count));
	put_word(header + 8, opts->compressor);
	put_word(header + 12, (uint32_t)stored->count);
	put_word(header + 16, writer->count);
	st = opts->write(opts->to, header, sizeof(header));
	if (st == WEFT_OK) {
		st = opts->write(opts->to, stored->at, stored->count);
	}
	writer->records.count = 0;
	writer->record_bytes = 0;
	writer->count = 0;
	return st;
}

/* Whether the record would make the chunk longer than it may be. Lengths count for the format's
 * limit: a chunk of empty records is nothing else. */
static bool
is_full(const struct wf_recordio_writer *writer, size_t count)
{
	return writer->count > 0 &&
	       (writer->record_bytes + count > writer->opts.chunk_bytes ||
		writer->records.count + WF_RECORDIO_LENGTH_BYTES + count >
			WF_RECORDIO_RECORD_BYTES_MAX + WF_RECORDIO_LENGTH_BYTES);
}

enum weft_status
wf_recordio_write(struct wf_recordio_writer *writer, const void *bytes, size_t count)
{
	struct wf_bytes *records = &writer->records;

	if (count > WF_RECORDIO_RECORD_BYTES_MAX) {
		return wf_fail(WEFT_INVALID, "a record has %zu bytes; at most %u can be written",
			       count, WF_RECORDIO_RECORD_BYTES_MAX);
	}
	enum weft_status st = is_full(writer, count) ? write_chunk(writer) : WEFT_OK;
	size_t want = records->count + WF_RECORDIO_LENGTH_BYTES + count;
	if (st == WEFT_OK && want > records->room) {
		st = wf_bytes_reserve(writer->env, records,
				      want < 2 * records->room ? 2 * records->room : want);
	}
	if (st != WEFT_OK) {
		return st;
	}
	put_word(records->at + records->count, (uint32_t)count);
	if (count > 0) {
		memcpy(records->at + records->count + WF_RECORDIO_LENGTH_BYTES, bytes, count);
	}
	records->count = want;
	writer->record_bytes += count;
	writer->count++;
	return WEFT_OK;
}

enum weft_status
wf_recordio_writer_finish(struct wf_recordio_writer *writer)
{
	return writer->count > 0 ? write_chunk(writer) : WEFT_OK;
}

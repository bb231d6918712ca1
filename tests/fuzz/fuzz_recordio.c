/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of RecordIO: a chunk is delivered as its header says or refused with a
 * reason, memory is what a file of that size can hold, and what was read reads the same again when
 * it has been written. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/recordio_memory.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/recordio.h"

struct seen {
	uint64_t records, bytes;
	uint64_t digest;
};

static enum weft_status
write_to_file(void *to, const void *bytes, size_t count)
{
	WF_ASSERT(write(*(int *)to, bytes, count) == (ssize_t)count);
	return WEFT_OK;
}

static void
add(struct seen *seen, const struct wf_record *record)
{
	for (size_t i = 0; i < record->count; i++) {
		seen->digest = (seen->digest ^ record->bytes[i]) * 0x100000001b3ull;
	}
	seen->digest = (seen->digest ^ record->count) * 0x100000001b3ull;
	seen->bytes += record->count;
	seen->records++;
}

/* Reads chunk by chunk; a writer gets the records. Returns how many chunks were refused. */
static unsigned
read_all(struct heap_env *heap, int fd, struct wf_recordio_writer *writer, struct seen *seen)
{
	struct wf_recordio_reader *reader = NULL;
	struct wf_recordio_chunk chunk;
	unsigned refused = 0;

	WF_ASSERT(lseek(fd, 0, SEEK_SET) == 0);
	WF_ASSERT(wf_recordio_reader_open(&heap->env, fd, "input", &reader) == WEFT_OK);
	for (;;) {
		enum weft_status st = wf_recordio_read_chunk(reader, &chunk);
		WF_ASSERT(st == WEFT_OK || (st == WEFT_DATA && weft_last_error()[0] != '\0'));
		if (st != WEFT_OK) {
			WF_ASSERT(wf_recordio_chunk_record(reader).bytes == NULL);
			refused++;
			continue;
		}
		if (chunk.records == 0) {
			break;
		}
		uint32_t records = 0;
		for (;;) {
			struct wf_record record = wf_recordio_chunk_record(reader);
			if (record.bytes == NULL) {
				break;
			}
			add(seen, &record);
			records++;
			WF_ASSERT(writer == NULL ||
				  wf_recordio_write(writer, record.bytes, record.count) == WEFT_OK);
		}
		WF_ASSERT(records == chunk.records);
	}
	wf_recordio_reader_close(reader);
	return refused;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct heap_env heap = heap_env_make();
	struct heap_env other = heap_env_make();
	struct wf_recordio_writer *writer = NULL;
	struct seen first = {0};
	struct seen second = {0};
	int in = memfd_create("recordio", MFD_CLOEXEC);
	int out = memfd_create("recordio", MFD_CLOEXEC);

	WF_ASSERT(in >= 0 && out >= 0);
	WF_ASSERT(write(in, data, bytes) == (ssize_t)bytes);
	struct wf_recordio_writer_opts opts = {
		.compressor = (enum wf_recordio_compressor)(bytes % 3),
		.chunk_bytes = 64,
		.write = write_to_file,
		.to = &out,
	};
	WF_ASSERT(wf_recordio_writer_open(&other.env, &opts, &writer) == WEFT_OK);
	(void)read_all(&heap, in, writer, &first);
	WF_ASSERT(heap.out_bytes == 0);
	WF_ASSERT(heap.asked_bytes <= recordio_memory_max(bytes));
	WF_ASSERT(wf_recordio_writer_finish(writer) == WEFT_OK);
	wf_recordio_writer_close(writer);
	WF_ASSERT(read_all(&other, out, NULL, &second) == 0);
	WF_ASSERT(second.records == first.records && second.bytes == first.bytes &&
		  second.digest == first.digest);
	WF_ASSERT(other.out_bytes == 0);
	close(in);
	close(out);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of parts of snapshots: it reads to the end mark or refuses with a
 * reason, what it accepts is written again as the same bytes, and its memory is the same for all
 * files. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/chunk.h"
#include "saved/part_layout.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/part_seal.h"
#include "tests/unit/wire/heap_env.h"

#define READER_BYTES (WF_CHUNK_BYTES + 2 * WF_SAVED_PATH_BYTES)

static int in = -1, out = -1; /* the input, and what is written again */

/* One of the two files, under whatever name. */
static int
open_one(int folder, const char *path, int flags, mode_t mode)
{
	const int fd = strcmp(path, "input") == 0 ? in : out;

	(void)folder;
	(void)flags;
	(void)mode;
	WF_ASSERT(lseek(fd, 0, SEEK_SET) == 0);
	return dup(fd);
}

static enum weft_status
copy_block(struct wf_part_reader *reader, const struct wf_part_block *block,
	   struct wf_part_writer *writer)
{
	uint8_t bytes[64];
	enum weft_status st = wf_part_begin(writer, block);

	WF_ASSERT(st == WEFT_OK);
	for (uint64_t left = block->bytes; st == WEFT_OK && left > 0;) {
		size_t piece = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		st = wf_part_read(reader, bytes, piece);
		if (st == WEFT_OK) {
			st = wf_part_write(writer, bytes, piece);
			WF_ASSERT(st == WEFT_OK);
		}
		left -= piece;
	}
	return st;
}

/* WEFT_CLOSED: all of it was accepted. */
static enum weft_status
copy_part(struct heap_env *heap, const struct wf_saved_calls *calls, struct wf_part_reader *reader)
{
	const struct wf_saved_spot spot = {calls, 0, "again"};
	struct wf_part_writer *writer = NULL;
	struct wf_part_block block;
	struct wf_part_sum sum;

	enum weft_status st = wf_part_create(&heap->env, &spot, wf_part_head(reader), &writer);
	WF_ASSERT(st == WEFT_OK);
	while ((st = wf_part_next(reader, &block)) == WEFT_OK) {
		st = copy_block(reader, &block, writer);
		if (st != WEFT_OK) {
			break;
		}
	}
	const enum weft_status ended = st == WEFT_CLOSED ? WEFT_OK : st;
	const enum weft_status written = wf_part_finish(writer, ended, &sum);
	WF_ASSERT(written == ended);
	if (st == WEFT_CLOSED) {
		const struct wf_part_sum read = wf_part_sum(reader);
		WF_ASSERT(sum.bytes == read.bytes && sum.blocks == read.blocks);
		WF_ASSERT(sum.crc == read.crc);
	}
	return st;
}

static int
no_sync(int fd)
{
	(void)fd;
	return 0;
}

static void
check(const uint8_t *data, size_t bytes)
{
	struct wf_saved_calls calls = *wf_saved_posix();
	struct heap_env heap = heap_env_make();
	struct wf_part_reader *reader = NULL;

	calls.openat = open_one;
	calls.fsync = no_sync;
	WF_ASSERT(ftruncate(in, 0) == 0 && ftruncate(out, 0) == 0);
	WF_ASSERT(pwrite(in, data, bytes, 0) == (ssize_t)bytes);
	enum weft_status st = wf_part_open(&heap.env, &calls, "input", &reader);
	WF_ASSERT(heap.asked_bytes <= READER_BYTES);
	if (st == WEFT_OK) {
		st = copy_part(&heap, &calls, reader);
	}
	if (st == WEFT_CLOSED) {
		uint8_t *again = malloc(bytes);
		WF_ASSERT(again != NULL && pread(out, again, bytes, 0) == (ssize_t)bytes);
		WF_ASSERT(memcmp(again, data, bytes) == 0);
		free(again);
	} else {
		WF_ASSERT(st == WEFT_DATA && weft_last_error()[0] != '\0');
	}
	wf_part_close(reader);
	WF_ASSERT(heap.out_bytes == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (in < 0) {
		in = memfd_create("part", MFD_CLOEXEC);
		out = memfd_create("again", MFD_CLOEXEC);
		WF_ASSERT(in >= 0 && out >= 0);
	}
	check(data, bytes);
	if (bytes < WF_PART_HEAD_BYTES) {
		return 0;
	}
	uint8_t *sealed = malloc(bytes);
	WF_ASSERT(sealed != NULL);
	memcpy(sealed, data, bytes);
	part_seal(sealed, bytes);
	check(sealed, bytes);
	free(sealed);
	return 0;
}

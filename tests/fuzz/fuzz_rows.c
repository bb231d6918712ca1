/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of rows: it reads to the end or refuses with a reason, returns only
 * rows that a writer would accept, and takes no more memory than the file has bytes. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/rows_layout.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"
#include "wire/little.h"

#define READER_BYTES (1u << 20) /* chunk and floats of a row */

static int file = -1;

/* The input, under whatever name. */
static int
open_input(int folder, const char *path, int flags, mode_t mode)
{
	(void)folder;
	(void)path;
	(void)flags;
	(void)mode;
	WF_ASSERT(lseek(file, 0, SEEK_SET) == 0);
	return dup(file);
}

static enum weft_status
read_rows(struct wf_rows_reader *rows)
{
	const struct wf_rows_head *head = wf_rows_head(rows);
	struct wf_rows_partition partition;
	struct wf_row_record row;
	enum weft_status st = WEFT_OK;

	WF_ASSERT(wf_rows_check_head(head) == WEFT_OK);
	for (uint32_t p = 0; (st = wf_rows_next_partition(rows, &partition)) == WEFT_OK; p++) {
		WF_ASSERT(partition.partition == p);
		for (uint64_t i = 0; i < partition.row_count; i++) {
			st = wf_rows_next(rows, &row);
			if (st != WEFT_OK) {
				return st;
			}
			WF_ASSERT(wf_rows_objection(head, p, NULL, &row) == NULL);
		}
	}
	return st;
}

static void
check(const uint8_t *data, size_t bytes)
{
	struct wf_saved_calls calls = *wf_saved_posix();
	struct heap_env heap = heap_env_make();
	struct wf_rows_reader *rows = NULL;

	calls.openat = open_input;
	WF_ASSERT(ftruncate(file, 0) == 0);
	WF_ASSERT(pwrite(file, data, bytes, 0) == (ssize_t)bytes);
	enum weft_status st = wf_rows_open(&heap.env, &calls, "input", &rows);
	WF_ASSERT(heap.asked_bytes <= READER_BYTES + bytes);
	if (st == WEFT_OK) {
		st = read_rows(rows);
		WF_ASSERT(st != WEFT_CLOSED || wf_rows_read_sum(rows).bytes == bytes);
	}
	WF_ASSERT(st == WEFT_CLOSED || st == WEFT_DATA);
	WF_ASSERT(st != WEFT_DATA || weft_last_error()[0] != '\0');
	wf_rows_close(rows);
	WF_ASSERT(heap.out_bytes == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (file < 0) {
		file = memfd_create("rows", MFD_CLOEXEC);
		WF_ASSERT(file >= 0);
	}
	check(data, bytes);
	if (bytes < WF_ROWS_HEAD_BYTES) {
		return 0;
	}
	/* Again with a good checksum of the head, which chance does not find. */
	uint8_t *sealed = malloc(bytes);
	WF_ASSERT(sealed != NULL);
	memcpy(sealed, data, bytes);
	wf_store_u32(sealed + WF_ROWS_HEAD_CRC_AT,
		     wf_saved_crc_stored(wf_crc32c(0, sealed, WF_ROWS_HEAD_CRC_AT)));
	check(sealed, bytes);
	free(sealed);
	return 0;
}

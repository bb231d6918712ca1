/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of what puts a snapshot together: a part whose file is whole, with whatever blocks,
 * is listed or refused with a reason; what is accepted can be read, each tensor to its last element
 * and all rows in their order, through windows of several sizes with the same result. Its memory is
 * bounded by the file. The first two bytes are the service, whether it is a delta, and the rows of
 * the table. A delta is read as if it built on nothing. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/blocks.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/part_seal.h"
#include "tests/unit/wire/heap_env.h"

#define FIXED_BYTES ((size_t)16 << 20) /* readers, lists of 256 blocks, chunks; over all calls */
#define OF_FILE 400u                   /* and for each byte of the file, which has 52 for a block */

static int in = -1;

static int
open_one(int folder, const char *path, int flags, mode_t mode)
{
	(void)folder;
	(void)path;
	(void)flags;
	(void)mode;
	WF_ASSERT(lseek(in, 0, SEEK_SET) == 0);
	return dup(in);
}

static struct wf_rows_sum
read_rows(const struct wf_block_walk *walk, const struct wf_blocks *blocks, uint64_t window_bytes,
	  enum weft_status *st)
{
	struct wf_rows_reader *rows = NULL;
	struct wf_rows_sum sum = {0};

	*st = wf_blocks_open_rows(walk, blocks, 0, window_bytes, &rows);
	WF_ASSERT(*st == WEFT_OK);
	*st = wf_rows_read_all(rows);
	if (*st == WEFT_OK) {
		sum = wf_rows_read_sum(rows);
	}
	wf_rows_close(rows);
	return sum;
}

/* Rows that are there twice show here. */
static void
check_rows(const struct wf_block_walk *walk, const struct wf_blocks *blocks)
{
	enum weft_status st = WEFT_OK;
	enum weft_status again = WEFT_OK;
	const struct wf_rows_sum whole = read_rows(walk, blocks, WF_BLOCKS_WINDOW_BYTES, &st);
	const struct wf_rows_sum pieces = read_rows(walk, blocks, 100, &again);

	WF_ASSERT(st == again && (st == WEFT_OK || st == WEFT_DATA));
	WF_ASSERT(whole.row_count == pieces.row_count && whole.crc == pieces.crc);
	const uint64_t rows = walk->manifest->table[0].rows;
	const bool is_delta = walk->manifest->parts.base_step != 0;
	WF_ASSERT(st != WEFT_OK || whole.row_count == rows || (is_delta && whole.row_count < rows));
}

static void
check_tensors(const struct wf_block_walk *walk, const struct wf_blocks *blocks)
{
	float value[8];

	for (unsigned array = 0; array < 2; array++) {
		const enum weft_status st = wf_blocks_read_tensor(
			walk, blocks, 0, array, &(struct wf_tensor_target){.value = value});
		WF_ASSERT(st == WEFT_OK);
	}
}

static void
check(bool is_sparse, bool is_delta, uint8_t rows, const uint8_t *data, size_t bytes)
{
	struct wf_saved_calls calls = *wf_saved_posix();
	struct heap_env heap = heap_env_make();
	struct wf_manifest_tensor tensor = {.name = "w", .rows = 1, .cols = 8, .state_count = 1};
	struct wf_manifest_table table = {.name = "e", .optimizer = "sgd", .dim = 2, .rows = rows};
	struct wf_manifest_part part = {.bytes = bytes, .crc = wf_crc32c(0, data, bytes)};
	const struct wf_manifest manifest = {
		.about = {.step = 9},
		.parts = {.epoch = 1,
			  .base_step = is_delta ? 3 : 0,
			  .dense_lanes = !is_sparse,
			  .sparse_lanes = is_sparse,
			  .pserver_count = 1,
			  .part_count = 1,
			  .part = &part},
		.tensor_count = !is_sparse,
		.tensor = &tensor,
		.table_count = is_sparse,
		.table = &table,
	};
	const struct wf_block_walk walk = {&heap.env, &calls, "snapshot", &manifest};
	struct wf_blocks blocks = {0};

	calls.openat = open_one;
	wf_manifest_part_name(is_sparse ? WF_SERVICE_SPARSE : WF_SERVICE_DENSE, 0, part.name);
	WF_ASSERT(ftruncate(in, 0) == 0 && pwrite(in, data, bytes, 0) == (ssize_t)bytes);
	const enum weft_status st = wf_blocks_read(&walk, &blocks);
	if (st != WEFT_OK) {
		WF_ASSERT(st == WEFT_DATA && weft_last_error()[0] != '\0');
	} else if (is_sparse) {
		check_rows(&walk, &blocks);
	} else {
		check_tensors(&walk, &blocks);
	}
	wf_blocks_fini(&heap.env, &blocks);
	WF_ASSERT(heap.out_bytes == 0 && heap.asked_bytes <= FIXED_BYTES + OF_FILE * bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (in < 0) {
		in = memfd_create("part", MFD_CLOEXEC);
		WF_ASSERT(in >= 0);
	}
	if (bytes < 2 + WF_PART_HEAD_BYTES) {
		return 0;
	}
	uint8_t *sealed = malloc(bytes - 2);
	WF_ASSERT(sealed != NULL);
	memcpy(sealed, data + 2, bytes - 2);
	part_seal(sealed, bytes - 2);
	check(data[0] % 2 != 0, data[0] % 4 == 3, data[1], sealed, bytes - 2);
	free(sealed);
	return 0;
}

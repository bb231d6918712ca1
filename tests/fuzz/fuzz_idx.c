/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of idx files: it reads exactly what the header announces or refuses
 * with a reason, and takes no more memory than a file of that size can hold. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/recordio_memory.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/idx.h"
#include "trainer/readers/recordio.h"

#define RATIO_MAX 1032u       /* a byte of deflated data becomes at most so many, */
#define ZSTD_RATIO_MAX 32768u /* and one of zstd */
#define INPUT_BYTES (136u << 10)

static int file = -1;

static void
check(const char *path, unsigned dims, size_t memory_max)
{
	struct heap_env heap = heap_env_make();
	struct wf_idx idx;

	enum weft_status st = wf_idx_read(&heap.env, path, dims, &idx);
	WF_ASSERT(heap.asked_bytes <= memory_max);
	if (st != WEFT_OK) {
		WF_ASSERT(st == WEFT_DATA && weft_last_error()[0] != '\0');
		WF_ASSERT(heap.out_bytes == 0);
		return;
	}
	WF_ASSERT(idx.dims == dims && idx.count > 0);
	size_t count = 1;
	for (unsigned i = 0; i < dims; i++) {
		count *= idx.dim[i];
	}
	WF_ASSERT(idx.count == count);
	wf_idx_fini(&heap.env, &idx);
	WF_ASSERT(heap.out_bytes == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const bool is_zstd = bytes > 3 && (data[0] == 0x28 || (data[0] & 0xf0) == 0x50);
	const size_t ratio_max = is_zstd ? ZSTD_RATIO_MAX : RATIO_MAX;
	size_t memory_max = ratio_max * (bytes + 1) + INPUT_BYTES;
	char path[64];

	if (wf_recordio_recognise(data, bytes)) {
		memory_max += recordio_memory_max(bytes);
	}
	if (file < 0) {
		file = memfd_create("idx", MFD_CLOEXEC);
		WF_ASSERT(file >= 0);
	}
	WF_ASSERT(ftruncate(file, 0) == 0);
	WF_ASSERT(pwrite(file, data, bytes, 0) == (ssize_t)bytes);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	for (unsigned dims = 1; dims <= WF_IDX_DIMS_MAX; dims += 2) {
		check(path, dims, memory_max);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of packed inputs: a file unpacks to the same bytes however they are asked for, or is
 * refused with its path, and takes the memory of any other; RecordIO takes that of a chunk. The
 * first byte chooses how much is asked for at once. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/recordio_memory.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/input.h"
#include "trainer/readers/recordio.h"

#define MEMORY_MAX (136u << 10) /* a chunk, and what belongs to it */
#define READ_MAX (1u << 20)     /* a small file may become gigabytes */

struct result {
	enum weft_status st;
	uint64_t bytes;
	uint32_t crc;
};

static struct result
read_all(const char *path, size_t room, size_t memory_max)
{
	static char bytes[4096];
	struct heap_env heap = heap_env_make();
	struct wf_input *input;
	struct result result = {0};
	size_t got = 1;

	result.st = wf_input_open(&heap.env, path, &input);
	WF_ASSERT(heap.asked_bytes <= memory_max);
	if (result.st != WEFT_OK) {
		WF_ASSERT(heap.out_bytes == 0);
		return result;
	}
	const uint64_t bytes_max = wf_input_bytes_max(input);
	while (got > 0 && result.bytes < READ_MAX) {
		result.st = wf_input_read(input, bytes, room, &got);
		if (result.st != WEFT_OK) {
			break;
		}
		WF_ASSERT(got <= room);
		result.crc = wf_crc32c(result.crc, bytes, got);
		result.bytes += got;
	}
	WF_ASSERT(result.bytes <= bytes_max);
	WF_ASSERT(heap.asked_bytes <= memory_max);
	wf_input_close(input);
	WF_ASSERT(heap.out_bytes == 0);
	return result;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int file = -1;
	char path[64];

	if (bytes == 0) {
		return 0;
	}
	if (file < 0) {
		file = memfd_create("input", MFD_CLOEXEC);
		WF_ASSERT(file >= 0);
	}
	WF_ASSERT(ftruncate(file, 0) == 0);
	WF_ASSERT(pwrite(file, data + 1, bytes - 1, 0) == (ssize_t)(bytes - 1));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	const size_t memory_max =
		MEMORY_MAX +
		(wf_recordio_recognise(data + 1, bytes - 1) ? recordio_memory_max(bytes - 1) : 0);
	const struct result large = read_all(path, 4096, memory_max);
	const struct result small = read_all(path, (size_t)data[0] + 1, memory_max);
	WF_ASSERT(large.st == WEFT_OK || large.st == WEFT_DATA);
	if (large.st == WEFT_DATA) {
		WF_ASSERT(strncmp(weft_last_error(), path, strlen(path)) == 0);
	}
	if (large.bytes < READ_MAX && small.bytes < READ_MAX) {
		WF_ASSERT(large.st == small.st);
	}
	if (large.st == WEFT_OK && small.st == WEFT_OK && large.bytes < READ_MAX) {
		WF_ASSERT(large.bytes == small.bytes && large.crc == small.crc);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_import: the common part of the fuzz targets of the readers of other programs' models: the
 * input is listed and read to its end, or refused with a reason, and the list takes memory in
 * proportion to it. Thread: the target's. */
#pragma once

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/import.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"

#define FUZZ_IMPORT_BYTES (192u << 10)     /* whatever the input is */
#define FUZZ_IMPORT_AMPLIFICATION 48u      /* bytes of the list for one of input */
#define FUZZ_IMPORT_VALUES_MAX (64u << 20) /* bytes of an array that is read here */

static int fuzz_import_file = -1;

static inline int
fuzz_import_open(int folder, const char *path, int flags, mode_t mode)
{
	(void)folder;
	(void)path;
	(void)flags;
	(void)mode;
	return dup(fuzz_import_file);
}

/* One array: its size is bounded by the input's, whatever its header claims. */
static inline void
fuzz_import_read(struct wf_import *import, uint32_t idx, size_t bytes)
{
	const struct wf_import_array *array = wf_import_at(import, idx);
	const uint64_t count = array->rows * (array->cols == 0 ? 1 : array->cols);
	enum weft_status st = WEFT_OK;
	float none = 0.0f;

	WF_ASSERT(wf_saved_name_is_file(array->name) || array->objection != NULL);
	if (array->objection != NULL) {
		st = wf_import_read(import, idx, &none);
		WF_ASSERT(st == WEFT_DATA);
		return;
	}
	WF_ASSERT(count <= 1032 * (uint64_t)bytes);
	if (count * sizeof(double) > FUZZ_IMPORT_VALUES_MAX) {
		return;
	}
	void *value = malloc((size_t)count * sizeof(double) + 1);
	WF_ASSERT(value != NULL);
	st = wf_import_read_raw(import, idx, value);
	WF_ASSERT(st == WEFT_OK || st == WEFT_DATA);
	if (wf_array_type_about(array->type)->is_float) {
		st = wf_import_read(import, idx, value);
		WF_ASSERT(st == WEFT_OK || st == WEFT_DATA);
	}
	free(value);
}

static inline int
fuzz_import(enum wf_import_format format, const uint8_t *data, size_t bytes)
{
	struct wf_saved_calls calls = *wf_saved_posix();
	struct heap_env heap = heap_env_make();
	struct wf_import *import = NULL;

	if (fuzz_import_file < 0) {
		fuzz_import_file = memfd_create("import", MFD_CLOEXEC);
		WF_ASSERT(fuzz_import_file >= 0);
	}
	calls.openat = fuzz_import_open;
	WF_ASSERT(ftruncate(fuzz_import_file, 0) == 0);
	WF_ASSERT(pwrite(fuzz_import_file, data, bytes, 0) == (ssize_t)bytes);
	enum weft_status st = wf_import_open(&heap.env, &calls, "/dev/null/input", format, &import);
	WF_ASSERT(heap.asked_bytes <= FUZZ_IMPORT_BYTES + FUZZ_IMPORT_AMPLIFICATION * bytes);
	if (st != WEFT_OK) {
		WF_ASSERT(st == WEFT_DATA && weft_last_error()[0] != '\0');
		WF_ASSERT(heap.out_bytes == 0);
		return 0;
	}
	for (uint32_t i = 0; i < wf_import_count(import); i++) {
		fuzz_import_read(import, i, bytes);
	}
	wf_import_close(import);
	WF_ASSERT(heap.out_bytes == 0);
	return 0;
}

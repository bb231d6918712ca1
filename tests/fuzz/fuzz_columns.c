/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of tables with a header; the first byte chooses what is asked of them. An accepted
 * table is finite and consistent, a refusal names its file, and memory stays in proportion. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/sheet.h"

#define AMPLIFICATION_MAX 12   /* bytes of a table per byte of text */
#define ALLOWANCE_BYTES 196608 /* for one row more than there are and for ranges, of any width */

static void
check_table(const struct wf_dataset *dataset, const struct wf_sheet_opts *opts)
{
	WF_ASSERT(dataset->features >= 1 && dataset->rows >= 5);
	WF_ASSERT(dataset->train_rows > 0 && dataset->train_rows < dataset->rows);
	WF_ASSERT((dataset->classes > 0) == opts->has_classes);
	for (size_t i = 0; i < dataset->rows * dataset->features; i++) {
		WF_ASSERT(dataset->x[i] - dataset->x[i] == 0.0f);
	}
	for (size_t row = 0; row < dataset->rows; row++) {
		WF_ASSERT(dataset->y[row] - dataset->y[row] == 0.0f);
		if (opts->has_classes) {
			WF_ASSERT(dataset->y[row] >= 0.0f);
			WF_ASSERT(dataset->y[row] < (float)dataset->classes);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct heap_env heap = heap_env_make();
	struct wf_dataset dataset;

	if (bytes == 0) {
		return 0;
	}
	const struct wf_sheet_opts opts = {
		.kind = WF_SHEET_COLUMNS,
		.target = (data[0] & 1) != 0 ? "y" : NULL,
		.has_classes = (data[0] & 2) != 0,
		.is_scaled = (data[0] & 4) != 0,
	};
	/* Not zero-terminated, so that a reader that goes too far is seen. */
	struct wf_text text = {.path = "input", .bytes = malloc(bytes), .count = bytes - 1};
	WF_ASSERT(text.bytes != NULL);
	memcpy(text.bytes, data + 1, bytes - 1);
	/* The second half may be a second file. */
	const size_t half = (bytes - 1) / 2;
	const struct wf_text_piece piece[] = {
		{.path = "input", .at = 0, .line = 1},
		{.path = "input", .at = half, .line = 1},
	};
	if ((data[0] & 8) != 0 && half > 0 && text.bytes[half - 1] == '\n') {
		text.piece = piece;
		text.piece_count = 2;
	}
	enum weft_status st = wf_sheet_parse_whole(&heap.env, &text, &opts, &dataset);
	WF_ASSERT(heap.asked_bytes <= AMPLIFICATION_MAX * bytes + ALLOWANCE_BYTES);
	if (st == WEFT_OK) {
		check_table(&dataset, &opts);
		wf_dataset_fini(&heap.env, &dataset);
	} else {
		WF_ASSERT(st == WEFT_DATA);
		WF_ASSERT(strncmp(weft_last_error(), "input: ", 7) == 0);
	}
	WF_ASSERT(heap.out_bytes == 0);
	free(text.bytes);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the readers of keyed features; the first byte selects the reader. An accepted set
 * is consistent, a refusal names its line, and memory stays in proportion. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/bags.h"

#define AMPLIFICATION_MAX 24 /* bytes of a set per byte of text: a short row of Criteo's layout */
#define ALLOWANCE_BYTES 256  /* for arrays that are one longer than needed */

typedef enum weft_status parse_function(struct wf_env *env, const struct wf_text *text,
					struct wf_bags *out);

static void
check_set(const struct wf_bags *bags)
{
	const size_t bag_count = bags->rows * bags->slots;

	WF_ASSERT(bags->train_rows > 0 && bags->train_rows < bags->rows);
	WF_ASSERT(bags->first[0] == 0 && bags->first[bag_count] == bags->entries);
	for (size_t bag = 0; bag < bag_count; bag++) {
		WF_ASSERT(bags->first[bag] <= bags->first[bag + 1]);
	}
	for (size_t row = 0; row < bags->rows; row++) {
		const uint32_t *first = bags->first + row * bags->slots;
		WF_ASSERT(first[bags->slots] - first[0] <= bags->row_entries_max);
		WF_ASSERT(bags->y[row] >= 0.0f && bags->y[row] < (float)bags->classes);
	}
	for (size_t i = 0; i < bags->rows * bags->features; i++) {
		WF_ASSERT(bags->x[i] - bags->x[i] == 0.0f);
	}
	for (size_t i = 0; i < bags->entries; i++) {
		WF_ASSERT(bags->weight[i] - bags->weight[i] == 0.0f);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static parse_function *const functions[] = {wf_strikes_parse, wf_criteo_parse,
						    wf_libsvm_parse};
	struct heap_env heap = heap_env_make();
	struct wf_bags bags;

	if (bytes == 0) {
		return 0;
	}
	/* Not zero-terminated, so that a reader that goes too far is seen. */
	struct wf_text text = {.path = "input", .bytes = malloc(bytes), .count = bytes - 1};
	WF_ASSERT(text.bytes != NULL);
	memcpy(text.bytes, data + 1, bytes - 1);
	parse_function *function = functions[data[0] % WF_ARRAY_COUNT(functions)];
	enum weft_status st = function(&heap.env, &text, &bags);
	WF_ASSERT(heap.asked_bytes <= AMPLIFICATION_MAX * bytes + ALLOWANCE_BYTES);
	const bool is_set = st == WEFT_OK;
	if (is_set) {
		st = wf_bags_split("input", &bags);
	}
	if (st == WEFT_OK) {
		check_set(&bags);
	} else {
		WF_ASSERT(st == WEFT_DATA);
		WF_ASSERT(strncmp(weft_last_error(), "input: ", 7) == 0);
	}
	if (is_set) {
		wf_bags_fini(&heap.env, &bags);
	}
	WF_ASSERT(heap.out_bytes == 0);
	free(text.bytes);
	return 0;
}

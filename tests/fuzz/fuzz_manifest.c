/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of wf_manifest_decode: an accepted manifest encodes to the same bytes, no name leaves
 * its directory, and memory stays in proportion to the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/manifest.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"

#define AMPLIFICATION_MAX 12       /* bytes of a decoded manifest per byte of text */
#define AMPLIFICATION_PARTS_MAX 32 /* where tensors have no files */
#define CRC_LINE_BYTES 16

static void
check(const char *text, size_t bytes)
{
	struct heap_env heap = heap_env_make();
	struct wf_manifest manifest;

	enum weft_status st = wf_manifest_decode(&heap.env, text, bytes, &manifest);
	const bool has_parts = memmem(text, bytes, "\nlanes ", 7) != NULL;
	WF_ASSERT(heap.asked_bytes <=
		  (has_parts ? AMPLIFICATION_PARTS_MAX : AMPLIFICATION_MAX) * bytes);
	if (st != WEFT_OK) {
		WF_ASSERT(st == WEFT_DATA);
		WF_ASSERT(weft_last_error()[0] != '\0');
		WF_ASSERT(heap.out_bytes == 0);
		return;
	}
	char *again = malloc(bytes + 1);
	WF_ASSERT(again != NULL);
	WF_ASSERT(wf_manifest_encode(&manifest, again, bytes + 1) == bytes);
	WF_ASSERT(memcmp(again, text, bytes) == 0);
	free(again);
	for (uint32_t i = 0; i < manifest.tensor_count; i++) {
		WF_ASSERT(strchr(manifest.tensor[i].name, '/') == NULL);
		WF_ASSERT(manifest.tensor[i].name[0] != '.');
	}
	for (uint32_t i = 0; i < manifest.table_count; i++) {
		WF_ASSERT(strchr(manifest.table[i].name, '/') == NULL);
		WF_ASSERT(manifest.table[i].name[0] != '.');
	}
	for (uint32_t i = 0; i < manifest.aside_count; i++) {
		WF_ASSERT(strchr(manifest.aside[i].name, '/') == NULL);
		WF_ASSERT(manifest.aside[i].name[0] != '.');
		WF_ASSERT(wf_manifest_has_file(&manifest, manifest.aside[i].name));
	}
	for (uint32_t i = 0; i < manifest.parts.part_count; i++) {
		struct wf_manifest_part part;
		wf_manifest_part_at(&manifest.parts, i, &part);
		WF_ASSERT(strcmp(manifest.parts.part[i].name, part.name) == 0);
		WF_ASSERT(manifest.parts.part[i].pserver < manifest.parts.pserver_count);
		WF_ASSERT(wf_manifest_has_file(&manifest, part.name));
	}
	wf_manifest_fini(&heap.env, &manifest);
	WF_ASSERT(heap.out_bytes == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char line[CRC_LINE_BYTES + 1];
	char *sealed = malloc(bytes + CRC_LINE_BYTES);

	WF_ASSERT(sealed != NULL);
	if (bytes > 0) {
		memcpy(sealed, data, bytes);
	}
	check(sealed, bytes);
	/* Again with a good checksum, which chance does not find. */
	snprintf(line, sizeof(line), "crc32c %08x\n", wf_crc32c(0, sealed, bytes));
	memcpy(sealed + bytes, line, CRC_LINE_BYTES);
	check(sealed, bytes + CRC_LINE_BYTES);
	free(sealed);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* golden: compare with, or rewrite, files of encoded bytes. */
#include "tests/unit/wire/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
path_of(const char *name, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/wire/%s.hex", WF_FIXTURE_DIR, name);
}

static void
rewrite(const char *path, const uint8_t *bytes, size_t count)
{
	FILE *file = fopen(path, "w");
	if (file == NULL) {
		fail_msg("cannot write %s", path);
	}
	for (size_t i = 0; i < count; i++) {
		bool ends = i % 16 == 15 || i + 1 == count;
		fprintf(file, "%02x%c", bytes[i], ends ? '\n' : ' ');
	}
	if (fclose(file) != 0) {
		fail_msg("cannot write %s", path);
	}
}

static size_t
load(const char *path, uint8_t *out)
{
	FILE *file = fopen(path, "r");
	size_t count = 0;
	unsigned byte;

	if (file == NULL) {
		fail_msg("cannot read %s: run this test once with WEFT_REGOLD=1", path);
	}
	while (count < GOLDEN_BYTES_MAX && fscanf(file, "%2x", &byte) == 1) {
		out[count++] = (uint8_t)byte;
	}
	fclose(file);
	return count;
}

size_t
golden_check(const char *name, const void *bytes, size_t count, uint8_t *out)
{
	const char *regold = getenv("WEFT_REGOLD");
	const uint8_t *encoded = bytes;
	char path[1024];

	path_of(name, path, sizeof(path));
	if (regold != NULL && strcmp(regold, "1") == 0) {
		rewrite(path, encoded, count);
	}
	size_t held = load(path, out);
	for (size_t i = 0; i < count && i < held; i++) {
		if (encoded[i] != out[i]) {
			fail_msg("%s: byte %zu is 0x%02x, encoded as 0x%02x", name, i, out[i],
				 encoded[i]);
		}
	}
	if (held != count) {
		fail_msg("%s: the file has %zu bytes, encoded are %zu", name, held, count);
	}
	return held;
}

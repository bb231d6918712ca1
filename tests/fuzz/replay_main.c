/* SPDX-License-Identifier: Apache-2.0 */
/* replay_main: give every file of the folders named on the command line to the fuzz target, once.
 * For builds without libFuzzer; arguments that begin with '-' are libFuzzer's and ignored. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz_target.h"

#define INPUT_BYTES_MAX (1u << 20)

/* From memory of exactly that size, so that a sanitizer sees what is read behind it. */
static int
replay_file(const char *path, uint8_t *buffer)
{
	FILE *file = fopen(path, "rb");
	if (file == NULL) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return 1;
	}
	size_t bytes = fread(buffer, 1, INPUT_BYTES_MAX, file);
	fclose(file);
	uint8_t *exact = malloc(bytes + 1);
	if (exact == NULL) {
		return 1;
	}
	memcpy(exact + 1, buffer, bytes);
	LLVMFuzzerTestOneInput(exact + 1, bytes);
	free(exact);
	return 0;
}

static int
replay_folder(const char *folder, uint8_t *buffer, unsigned *count)
{
	DIR *dir = opendir(folder);
	int failed = 0;

	if (dir == NULL) {
		fprintf(stderr, "%s: cannot be opened\n", folder);
		return 1;
	}
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		char path[4096];
		if (e->d_name[0] == '.') {
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		failed |= replay_file(path, buffer);
		(*count)++;
	}
	closedir(dir);
	return failed;
}

int
main(int argc, char **argv)
{
	uint8_t *buffer = malloc(INPUT_BYTES_MAX);
	unsigned count = 0;
	int failed = buffer == NULL;

	for (int i = 1; i < argc && !failed; i++) {
		if (argv[i][0] != '-') {
			failed = replay_folder(argv[i], buffer, &count);
		}
	}
	free(buffer);
	printf("%u inputs\n", count);
	return failed || count == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the project's data files are: from the environment, beside the program, or in the prefix.
 * Thread: the caller's. */
#include "trainer/readers/dataset.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own_path.h"

#define LEVELS_MAX 5u /* the program's folder and four above it */

static bool
exists(const char *folder, const char *sub, const char *file, char *out)
{
	int n = snprintf(out, WF_DATA_PATH_BYTES, "%s/%s%s", folder, sub, file);
	return n > 0 && (unsigned)n < WF_DATA_PATH_BYTES && access(out, F_OK) == 0;
}

/* Cuts the last part off a path. false: nothing is left. */
static bool
cut(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash == NULL) {
		return false;
	}
	*slash = '\0';
	return true;
}

static bool
find_near_program(const char *file, char *out)
{
	char folder[WF_DATA_PATH_BYTES];
	if (wf_own_path(folder, sizeof(folder)) != WEFT_OK) {
		return false;
	}
	for (unsigned level = 0; level < LEVELS_MAX && cut(folder); level++) {
		if (exists(folder, "data/", file, out) ||
		    exists(folder, "share/weft/", file, out)) {
			return true;
		}
	}
	return false;
}

enum weft_status
wf_data_find(const char *file, char *out)
{
	char path[WF_DATA_PATH_BYTES];
	const char *folder = getenv("WEFT_DATA_DIR");

	if (folder != NULL && folder[0] != '\0') {
		if (!exists(folder, "", file, path)) {
			return wf_fail(
				WEFT_DATA,
				"%s: not found in WEFT_DATA_DIR=%.200s; correct that, or name "
				"the file with --data=FILE",
				file, folder);
		}
	} else if (!find_near_program(file, path) && !exists(WF_DATA_DIR, "", file, path)) {
		return wf_fail(WEFT_DATA,
			       "%s: not found beside this program or in %s; name the file with "
			       "--data=FILE or its folder with WEFT_DATA_DIR",
			       file, WF_DATA_DIR);
	}
	memcpy(out, path, strlen(path) + 1);
	return WEFT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* own_path: see own_path.h. A chroot or a sandbox may have no /proc. */
#include "base/own_path.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum weft_status
wf_own_path(char *out, size_t bytes)
{
	char path[PATH_MAX];
	ssize_t got = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (got > 0) {
		path[got] = '\0';
	} else {
		int err = errno; /* of /proc */
		const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
		if (started == NULL || realpath(started, path) == NULL) {
			return wf_fail_errno(WEFT_IO, err,
					     "cannot find the file of this program (%s): "
					     "/proc/self/exe",
					     started != NULL ? started : "no name");
		}
	}
	if (path[0] != '/' || strlen(path) >= bytes) {
		return wf_fail(WEFT_IO, "the path of this program is too long, or none: %.200s",
			       path);
	}
	memcpy(out, path, strlen(path) + 1);
	return WEFT_OK;
}

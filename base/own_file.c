/* SPDX-License-Identifier: Apache-2.0 */
/* own_file: see own_file.h. The file is checked before it is emptied, so O_TRUNC would be too
 * early. */
#include "base/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static enum weft_status
fail_not_ours(const char *path)
{
	return wf_fail(WEFT_IO,
		       "%s: is a link, a folder, a pipe, a device, or a file with a second name; "
		       "weft overwrites none of these: move it away, or name another",
		       path);
}

static enum weft_status
empty(int fd, const char *path)
{
	struct stat info;

	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1) {
		return fail_not_ours(path);
	}
	return ftruncate(fd, 0) == 0 ? WEFT_OK
				     : wf_fail_errno(WEFT_IO, errno, "%s: cannot be written", path);
}

enum weft_status
wf_own_file_open(const char *path, int flags, int *out)
{
	/* O_NONBLOCK, because opening a pipe without a reader would block. */
	int fd = open(path,
		      O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags,
		      0666);

	if (fd < 0) {
		return errno == ELOOP || errno == ENXIO || errno == EISDIR
			       ? fail_not_ours(path)
			       : wf_fail_errno(WEFT_IO, errno, "%s cannot be written", path);
	}
	enum weft_status st = empty(fd, path);
	if (st != WEFT_OK) {
		(void)close(fd);
		return st;
	}
	*out = fd;
	return WEFT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* secret: see secret.h. Thread: any. */
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PURPOSE "weft: the key of a job, 1"
#define OWNERS (S_IRUSR | S_IWUSR)

/* In a mapping of its own. */
struct wf_secret {
	uint8_t key[WF_MAC_BYTES];
	uint8_t content[WF_SECRET_BYTES_MAX + 1]; /* while the file is read */
	size_t content_bytes;
};

static enum weft_status
check_file(const char *path, const struct stat *info)
{
	if (!S_ISREG(info->st_mode)) {
		return wf_fail(WEFT_INVALID,
			       "secret_file %s: is no regular file; name the file itself", path);
	}
	if (info->st_uid != geteuid() && info->st_uid != 0) {
		return wf_fail(WEFT_INVALID,
			       "secret_file %s: belongs to user %u; it has to belong to the user "
			       "of this process, %u, or to root",
			       path, (unsigned)info->st_uid, (unsigned)geteuid());
	}
	if ((info->st_mode & 07777 & ~(mode_t)OWNERS) != 0) {
		return wf_fail(WEFT_INVALID,
			       "secret_file %s: has mode %04o, and only 0400 and 0600 are allowed; "
			       "chmod 0400 it, and make a new secret if others could read it",
			       path, (unsigned)(info->st_mode & 07777));
	}
	return WEFT_OK;
}

static enum weft_status
read_content(const char *path, int fd, struct wf_secret *secret)
{
	size_t got = 0;
	ssize_t n = 1;
	while (n > 0 && got < sizeof(secret->content)) {
		n = read(fd, secret->content + got, sizeof(secret->content) - got);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		got += n > 0 ? (size_t)n : 0;
	}
	if (n < 0) {
		return wf_fail_errno(WEFT_IO, errno, "secret_file %s: cannot be read", path);
	}
	if (got < WF_SECRET_BYTES_MIN || got > WF_SECRET_BYTES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "secret_file %s: has %s bytes; %u to %u are allowed: head -c 32 "
			       "/dev/urandom makes a good one",
			       path, got < WF_SECRET_BYTES_MIN ? "too few" : "too many",
			       WF_SECRET_BYTES_MIN, WF_SECRET_BYTES_MAX);
	}
	secret->content_bytes = got;
	return WEFT_OK;
}

/* O_NONBLOCK, because opening a pipe without a writer would block. */
static enum weft_status
read_file(const char *path, struct wf_secret *secret)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ELOOP) {
		return wf_fail(WEFT_INVALID,
			       "secret_file %s: is a link; name the file itself (in Kubernetes, "
			       "mount a Secret with subPath and defaultMode 0400)",
			       path);
	}
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "secret_file %s: cannot be opened", path);
	}
	enum weft_status st =
		fstat(fd, &info) == 0
			? check_file(path, &info)
			: wf_fail_errno(WEFT_IO, errno, "secret_file %s: cannot be read", path);
	if (st == WEFT_OK) {
		st = read_content(path, fd, secret);
	}
	(void)close(fd);
	return st;
}

/* The content stays in it. */
static enum weft_status
load(const char *path, struct wf_secret **out)
{
	struct wf_secret *secret = mmap(NULL, sizeof(*secret), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (secret == MAP_FAILED) {
		return wf_fail_errno(WEFT_NOMEM, errno, "secret_file: %zu bytes", sizeof(*secret));
	}
	(void)madvise(secret, sizeof(*secret), MADV_DONTDUMP); /* a kernel without it dumps it */
	enum weft_status st = read_file(path, secret);
	if (st != WEFT_OK) {
		wf_secret_close(secret);
		return st;
	}
	*out = secret;
	return WEFT_OK;
}

enum weft_status
wf_secret_open(const char *path, struct wf_secret **out)
{
	const struct wf_mac_part purpose = {PURPOSE, sizeof(PURPOSE) - 1};
	enum weft_status st = load(path, out);

	if (st == WEFT_OK) {
		struct wf_secret *secret = *out;
		wf_mac(secret->content, secret->content_bytes, &purpose, 1, secret->key);
		explicit_bzero(secret->content, sizeof(secret->content));
	}
	return st;
}

enum weft_status
wf_secret_read(const char *path, uint8_t out[WF_SECRET_BYTES_MAX], size_t *bytes)
{
	struct wf_secret *secret = NULL;
	enum weft_status st = load(path, &secret);

	if (st == WEFT_OK) {
		memcpy(out, secret->content, secret->content_bytes);
		*bytes = secret->content_bytes;
		wf_secret_close(secret);
	}
	return st;
}

void
wf_secret_close(struct wf_secret *secret)
{
	if (secret != NULL) {
		explicit_bzero(secret, sizeof(*secret));
		(void)munmap(secret, sizeof(*secret));
	}
}

void
wf_secret_derive(const struct wf_secret *secret, const struct wf_mac_part *parts,
		 unsigned part_count, uint8_t out[WF_MAC_BYTES])
{
	wf_mac(secret->key, sizeof(secret->key), parts, part_count, out);
}

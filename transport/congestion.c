/* SPDX-License-Identifier: Apache-2.0 */
/* congestion: see congestion.h. Thread: any. */
#include "transport/congestion.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AVAILABLE "/proc/sys/net/ipv4/tcp_available_congestion_control"
#define ALLOWED "/proc/sys/net/ipv4/tcp_allowed_congestion_control"

/* Reads the kernel's list, as one line. */
static void
read_list(const char *path, char *out, size_t bytes)
{
	ssize_t got = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, out, bytes - 1);
		close(fd);
	}
	out[got > 0 ? got : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static enum weft_status
fail_congestion(const char *name, int err)
{
	char list[256];
	if (err == EPERM) {
		read_list(ALLOWED, list, sizeof(list));
		return wf_fail(
			WEFT_PERM,
			"tcp_congestion=%.32s is not for this user; name one of: %s (%s), or "
			"have it added there",
			name, list, ALLOWED);
	}
	read_list(AVAILABLE, list, sizeof(list));
	return wf_fail(WEFT_INVALID, "tcp_congestion=%.32s is not there; name one of: %s (%s)",
		       name, list, AVAILABLE);
}

static enum weft_status
check(const char *name, size_t bytes)
{
	if (bytes >= WF_CONGESTION_BYTES) { /* the kernel would look up a truncated name */
		return fail_congestion(name, ENOENT);
	}
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "tcp_congestion=%s: no socket to try it on",
				     name);
	}
	int err = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)bytes) == 0 ? 0
											   : errno;
	close(fd);
	return err == 0 ? WEFT_OK : fail_congestion(name, err);
}

enum weft_status
wf_congestion_choose(const char *name, struct wf_congestion *out)
{
	size_t bytes = name != NULL ? strlen(name) : 0;
	enum weft_status st = bytes > 0 ? check(name, bytes) : WEFT_OK;
	if (st == WEFT_OK) {
		*out = (struct wf_congestion){0};
		memcpy(out->name, name != NULL ? name : "", bytes);
	}
	return st;
}

void
wf_congestion_set(const struct wf_congestion *congestion, int fd)
{
	if (congestion->name[0] != '\0') {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion->name,
				 (socklen_t)strlen(congestion->name));
	}
}

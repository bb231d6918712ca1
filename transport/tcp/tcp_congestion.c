/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_congestion: see tcp_congestion.h. Thread: any. */
#include "transport/tcp/tcp_congestion.h"

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

enum weft_status
wf_tcp_congestion_check(const char *name)
{
	size_t bytes = strlen(name);
	if (bytes == 0) {
		return WEFT_OK;
	}
	if (bytes >= WF_TCP_CONGESTION_BYTES) { /* the kernel would look up a truncated name */
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

void
wf_tcp_congestion_set(int fd, const char *name)
{
	if (name[0] != '\0') {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
	}
}

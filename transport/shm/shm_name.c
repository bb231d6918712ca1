/* SPDX-License-Identifier: Apache-2.0 */
/* shm_name: names of this host, the Unix socket name of a port, and which processes may share
 * memory. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define GROUPS_MAX 256

static bool
is_loopback(const char *name)
{
	struct in_addr v4;
	struct in6_addr v6;
	if (inet_pton(AF_INET, name, &v4) == 1) {
		return ntohl(v4.s_addr) >> 24 == 127;
	}
	if (inet_pton(AF_INET6, name, &v6) == 1) {
		return IN6_IS_ADDR_LOOPBACK(&v6);
	}
	return strcasecmp(name, "localhost") == 0;
}

static bool
is_any(const char *name)
{
	struct in_addr v4;
	struct in6_addr v6;
	return (inet_pton(AF_INET, name, &v4) == 1 && v4.s_addr == htonl(INADDR_ANY)) ||
	       (inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6));
}

static bool
is_own_name(const char *name)
{
	char own[WF_HOST_BYTES] = "";
	return gethostname(own, sizeof(own) - 1) == 0 && own[0] != '\0' &&
	       strcasecmp(name, own) == 0;
}

enum weft_status
wf_shm_name_check(const char *what, const struct wf_host *host, bool any_too)
{
	if (is_loopback(host->name) || is_own_name(host->name) || (any_too && is_any(host->name))) {
		return WEFT_OK;
	}
	char text[WF_HOST_BYTES + 8];
	wf_host_format(host, text, sizeof(text));
	return wf_fail(WEFT_UNAVAILABLE,
		       "%s %.100s: shm needs a name of this host: localhost, 127.0.0.1, ::1 or "
		       "its host name; use tcp between hosts",
		       what, text);
}

unsigned
wf_shm_address(uint16_t port, struct sockaddr_un *out)
{
	/* A name that begins with 0 is abstract: it has no file, disappears with its socket, and is
	 * known only in its network namespace. */
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	int bytes = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "weft/shm/%u", port);
	return (unsigned)offsetof(struct sockaddr_un, sun_path) + 1u + (unsigned)bytes;
}

static bool
is_own_group(gid_t gid)
{
	if (gid == getegid()) {
		return true;
	}
	gid_t own[GROUPS_MAX];
	int count = getgroups(GROUPS_MAX, own);
	for (int i = 0; i < count; i++) {
		if (own[i] == gid) {
			return true;
		}
	}
	return false;
}

/* Whether one of the peer's supplementary groups is shared. */
static bool
shares_group(int fd)
{
	gid_t theirs[GROUPS_MAX];
	socklen_t bytes = sizeof(theirs);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, theirs, &bytes) != 0) {
		return false;
	}
	for (size_t i = 0; i < bytes / sizeof(theirs[0]); i++) {
		if (is_own_group(theirs[i])) {
			return true;
		}
	}
	return false;
}

enum weft_status
wf_shm_peer_check(int fd, pid_t *pid)
{
	struct ucred cred = {0};
	socklen_t bytes = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) != 0) {
		return wf_fail_errno(WEFT_PERM, errno, "credentials of the peer");
	}
	*pid = cred.pid;
	if (cred.uid == geteuid() || cred.uid == 0 || is_own_group(cred.gid) || shares_group(fd)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_PERM,
		       "user %u (pid %d) and user %u have no group in common, so they share no "
		       "memory; put both into one group, or use tcp",
		       cred.uid, cred.pid, geteuid());
}

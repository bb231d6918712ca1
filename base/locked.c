/* SPDX-License-Identifier: Apache-2.0 */
/* locked: see locked.h. */
#include "base/locked.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP_IPC_LOCK_BIT 14u
/* Inode of the initial user namespace, fixed in the kernel: PROC_USER_INIT_INO. */
#define FIRST_USER_NAMESPACE 0xeffffffdu
#define KIB 1024u

/* The number behind `key` in a text of lines; 0: the key is missing. */
static uint64_t
find_number(const char *text, const char *key, int base)
{
	const char *at = strstr(text, key);
	return at == NULL ? 0 : strtoull(at + strlen(key), NULL, base);
}

bool
wf_locked_is_of_host(void)
{
	struct stat space;
	return stat("/proc/self/ns/user", &space) != 0 || space.st_ino == FIRST_USER_NAMESPACE;
}

struct wf_locked
wf_locked_of(const char *status, uint64_t limit_bytes, bool of_host)
{
	const uint64_t pinned_kib = find_number(status, "VmPin:", 10);
	const uint64_t capabilities = find_number(status, "CapEff:", 16);
	return (struct wf_locked){
		.bytes = pinned_kib > UINT64_MAX / KIB ? UINT64_MAX : pinned_kib * KIB,
		.limit_bytes = limit_bytes,
		.privileged = of_host && (capabilities >> CAP_IPC_LOCK_BIT & 1) != 0,
	};
}

struct wf_locked
wf_locked_read(void)
{
	uint64_t limit_bytes = UINT64_MAX;
	struct rlimit limit;
	char text[8192];
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		limit_bytes = limit.rlim_cur;
	}
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0) {
		(void)close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return wf_locked_of(text, limit_bytes, wf_locked_is_of_host());
}

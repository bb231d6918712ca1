/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls: the system calls of every small exchange, without glibc's cancellation points: no
 * thread of ours is ever cancelled, and in a process with several threads each point costs two
 * atomic exchanges. Thread: any. */
#pragma once

#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

static inline ssize_t
wf_sys_recv(int fd, void *at, size_t bytes, int flags)
{
	return syscall(SYS_recvfrom, fd, at, bytes, flags, NULL, NULL);
}

static inline ssize_t
wf_sys_send(int fd, const void *at, size_t bytes, int flags)
{
	return syscall(SYS_sendto, fd, at, bytes, flags, NULL, 0);
}

/* `timeout`: NULL means none; afterwards it has the time that is left. */
static inline int
wf_sys_poll(struct pollfd *fds, unsigned count, struct timespec *timeout)
{
	WF_STATIC_ASSERT(sizeof(timeout->tv_sec) == sizeof(long), "as SYS_ppoll has it");
	return (int)syscall(SYS_ppoll, fds, count, timeout, NULL, 0);
}

static inline int
wf_sys_epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
	return (int)syscall(SYS_epoll_pwait, epoll_fd, events, max, timeout_ms, NULL, 0);
}

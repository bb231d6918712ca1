/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls: the system calls of every small exchange, without glibc's cancellation points: no
 * thread of ours is ever cancelled, and in a process with several threads each point costs two
 * atomic exchanges. Where the processor is known, the instruction stands where it is used: the
 * arguments of syscall(2) would be moved twice. Thread: any. */
#pragma once

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

/* The arguments of a call, by their places; what it does not take is 0. */
struct wf_sys_args {
	long at[6];
};

static inline long
wf_sys_of(const void *pointer)
{
	return (long)(intptr_t)pointer;
}

/* Returns as syscall(2) does: -1 on failure, with errno set. */
static inline long
wf_sys_call(long number, struct wf_sys_args args)
{
#if defined(__x86_64__) && defined(__LP64__)
	const unsigned long failures = 4095; /* the highest values are negated numbers of errors */
	long result;
	const long d = args.at[3], e = args.at[4], f = args.at[5];
	/* Nothing may come between these and the instruction. */
	register long fourth __asm__("r10") = d;
	register long fifth __asm__("r8") = e;
	register long sixth __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(args.at[0]), "S"(args.at[1]), "d"(args.at[2]),
			   "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	if ((unsigned long)result >= 0 - failures) {
		errno = (int)-result;
		return -1;
	}
	return result;
#else
	return syscall(number, args.at[0], args.at[1], args.at[2], args.at[3], args.at[4],
		       args.at[5]);
#endif
}

static inline ssize_t
wf_sys_recv(int fd, void *at, size_t bytes, int flags)
{
	return wf_sys_call(SYS_recvfrom,
			   (struct wf_sys_args){{fd, wf_sys_of(at), (long)bytes, flags}});
}

static inline ssize_t
wf_sys_send(int fd, const void *at, size_t bytes, int flags)
{
	return wf_sys_call(SYS_sendto,
			   (struct wf_sys_args){{fd, wf_sys_of(at), (long)bytes, flags}});
}

/* `timeout`: NULL means none; afterwards it has the time that is left. */
static inline int
wf_sys_poll(struct pollfd *fds, unsigned count, struct timespec *timeout)
{
	WF_STATIC_ASSERT(sizeof(timeout->tv_sec) == sizeof(long), "as SYS_ppoll has it");
	return (int)wf_sys_call(SYS_ppoll,
				(struct wf_sys_args){{wf_sys_of(fds), count, wf_sys_of(timeout)}});
}

static inline int
wf_sys_epoll_wait(int epoll_fd, struct epoll_event *events, int max, int timeout_ms)
{
	return (int)wf_sys_call(SYS_epoll_pwait, (struct wf_sys_args){{epoll_fd, wf_sys_of(events),
								       max, timeout_ms}});
}

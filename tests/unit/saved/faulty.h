/* SPDX-License-Identifier: Apache-2.0 */
/* faulty: system calls that are counted, and of which one or all from one on fail, or at which the
 * process dies. Thread: the test's. */
#pragma once

#include "tests/unit/saved/setup.h"

#include <errno.h>

enum fault {
	FAIL_ONCE,
	FAIL_ON, /* and every later one */
	DIE,
};

/* The calls of a save that are counted, over the real ones. One test at a time. */
static struct {
	enum fault fault;
	int error;
	unsigned nth, count; /* fault at the nth, from 1; 0: none */
	bool is_troubled;    /* every second read and write is interrupted, writes are short */
	unsigned turn;       /* of these */
	unsigned syncs;
} plan;

static bool
is_hit(void)
{
	plan.count++;
	bool hit = plan.nth != 0 &&
		   (plan.fault == FAIL_ON ? plan.count >= plan.nth : plan.count == plan.nth);
	if (hit && plan.fault == DIE) {
		_exit(3);
	}
	if (hit) {
		errno = plan.error;
	}
	return hit;
}

static int
faulty_openat(int folder, const char *path, int flags, mode_t mode)
{
	return is_hit() ? -1 : wf_saved_posix()->openat(folder, path, flags, mode);
}

static bool
is_interrupted(void)
{
	errno = EINTR;
	return plan.is_troubled && plan.turn++ % 2 == 0;
}

static ssize_t
faulty_read(int fd, void *bytes, size_t count)
{
	return is_interrupted() || is_hit()
		       ? -1
		       : wf_saved_posix()->read(fd, bytes, count > 7 ? count - 7 : count);
}

static ssize_t
faulty_write(int fd, const void *bytes, size_t count)
{
	if (is_interrupted() || is_hit()) {
		return -1;
	}
	if (plan.is_troubled && count > 1) {
		count /= 2;
	}
	return wf_saved_posix()->write(fd, bytes, count);
}

static int
faulty_fsync(int fd)
{
	(void)fd;
	plan.syncs++;
	return is_hit() ? -1 : 0; /* no test sees the disk, and it takes its time */
}

/* Closes nevertheless, as the system does. */
static int
faulty_close(int fd)
{
	int done = wf_saved_posix()->close(fd);
	return is_hit() ? -1 : done;
}

static int
faulty_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	return is_hit() ? -1 : wf_saved_posix()->renameat(from_folder, from, to_folder, to);
}

static int
faulty_claim_name(int folder, const char *from, const char *to)
{
	return is_hit() ? -1 : wf_saved_posix()->claim_name(folder, from, to);
}

static int
faulty_mkdirat(int folder, const char *name, mode_t mode)
{
	return is_hit() ? -1 : wf_saved_posix()->mkdirat(folder, name, mode);
}

static int
faulty_unlinkat(int folder, const char *name, int flags)
{
	return is_hit() ? -1 : wf_saved_posix()->unlinkat(folder, name, flags);
}

static int
faulty_flock(int fd, int operation)
{
	return is_interrupted() || is_hit() ? -1 : wf_saved_posix()->flock(fd, operation);
}

static const struct wf_saved_calls faulty = {
	.openat = faulty_openat,
	.read = faulty_read,
	.write = faulty_write,
	.fsync = faulty_fsync,
	.close = faulty_close,
	.renameat = faulty_renameat,
	.claim_name = faulty_claim_name,
	.mkdirat = faulty_mkdirat,
	.unlinkat = faulty_unlinkat,
	.flock = faulty_flock,
};

/* The same without a fault. */
static const struct wf_saved_calls *
sound(void)
{
	plan.nth = 0;
	return &faulty;
}

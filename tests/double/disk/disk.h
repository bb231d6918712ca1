/* SPDX-License-Identifier: Apache-2.0 */
/* disk: a disk that fails and loses power, behind the table of system calls of saved/file.h. The
 * files are real ones of the calls below it. A call fails by chance, with EIO or ENOSPC. A crash
 * drops what was not synced: the bytes of a file behind its last fsync are cut off, or are zero in
 * part; names that were made, changed or removed since the last fsync of their folder are as they
 * were, each by chance, because nothing promises their order. What is synced stays. One disk at a
 * time. Thread: one. */
#pragma once

#include "saved/file.h"

struct disk_opts {
	const struct wf_saved_calls *below; /* the real ones; fsync of these is not called */
	const char *grave; /* a folder of the same file system, where what is removed waits */
	uint64_t seed;
	uint32_t fail_per_mille; /* calls that fail */
};

struct disk_counts {
	uint64_t failed;  /* calls */
	uint64_t torn;    /* files that lost bytes in a crash */
	uint64_t dropped; /* names that a crash put back */
};

/* What is there is on the disk. */
void disk_begin(const struct disk_opts *opts);
/* How often calls fail from here on. */
void disk_set_failing(uint32_t fail_per_mille);
/* Power is lost: no process lives that has a file open. Goes on with what is left. */
void disk_crash(void);
/* All that was written is on the disk from here on, and no process lives that has a file open. */
void disk_sync(void);
/* The same, and nothing comes after it. */
void disk_end(void);
/* The calls on the disk. */
const struct wf_saved_calls *disk_calls(void);
/* Since disk_begin. */
struct disk_counts disk_counts(void);

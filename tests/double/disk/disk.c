/* SPDX-License-Identifier: Apache-2.0 */
/* disk: see disk.h. Each change of a name is in a log until its folder is synced; a crash undoes
 * some of them, the newest first. Thread: one. */
#include "tests/double/disk/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/rng.h"

#define CHANGES_MAX 4096u
#define FILES_MAX 256u
#define FDS_MAX 4096u
#define NAME_BYTES 128u

enum kind {
	MADE_FILE,
	MADE_FOLDER,
	RENAMED, /* from `name` to `other` */
	REMOVED, /* a file or a folder, which is in the grave */
};

/* A change of a name that is not on the disk. */
struct change {
	enum kind kind;
	int folder; /* own descriptor */
	ino_t folder_ino;
	uint64_t buried; /* REMOVED: its name in the grave */
	char name[NAME_BYTES], other[NAME_BYTES];
	bool lost;
};

/* A file with bytes that are not on the disk. */
struct file {
	int fd; /* own descriptor */
	ino_t ino;
	off_t synced_bytes;
};

static struct {
	struct disk_opts opts;
	struct wf_rng rng;
	struct disk_counts counts;
	struct change change[CHANGES_MAX];
	uint32_t change_count;
	struct file file[FILES_MAX];
	uint32_t file_count;
	ino_t open_ino[FDS_MAX]; /* [fd]; 0: not open, as far as is known */
	int grave;
	uint64_t buried;
} disk;

static ino_t
ino_of(int fd)
{
	struct stat info;
	return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

static bool
fails(void)
{
	if (disk.opts.fail_per_mille == 0 ||
	    wf_rng_below(&disk.rng, 1000) >= disk.opts.fail_per_mille) {
		return false;
	}
	disk.counts.failed++;
	errno = wf_rng_below(&disk.rng, 2) == 0 ? EIO : ENOSPC;
	return true;
}

/* ---- names ---- */

static struct change *
add_change(enum kind kind, int folder, const char *name)
{
	WF_ASSERT(disk.change_count < CHANGES_MAX);
	struct change *change = &disk.change[disk.change_count++];
	*change = (struct change){.kind = kind};
	change->folder = folder == AT_FDCWD ? open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
					    : fcntl(folder, F_DUPFD_CLOEXEC, 0);
	WF_ASSERT(change->folder >= 0 && strlen(name) < NAME_BYTES);
	change->folder_ino = ino_of(change->folder);
	memcpy(change->name, name, strlen(name) + 1);
	return change;
}

static void
grave_name(uint64_t buried, char out[32])
{
	(void)snprintf(out, 32, "%llu", (unsigned long long)buried);
}

/* It is on the disk, or undone. */
static void
settle(struct change *change)
{
	char name[32];
	grave_name(change->buried, name);
	if (change->kind == REMOVED && unlinkat(disk.grave, name, 0) != 0) {
		(void)unlinkat(disk.grave, name, AT_REMOVEDIR);
	}
	(void)close(change->folder);
}

/* Drops the changes of one folder, or with 0 all. */
static void
sync_names(ino_t folder)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < disk.change_count; i++) {
		if (folder == 0 || disk.change[i].folder_ino == folder) {
			settle(&disk.change[i]);
		} else {
			disk.change[kept++] = disk.change[i];
		}
	}
	disk.change_count = kept;
}

static bool
concerns(const struct change *a, const struct change *b)
{
	return a->folder_ino == b->folder_ino &&
	       (strcmp(a->name, b->name) == 0 || strcmp(a->other, b->name) == 0 ||
		(b->other[0] != '\0' &&
		 (strcmp(a->name, b->other) == 0 || strcmp(a->other, b->other) == 0)));
}

/* By chance; and if an earlier change of the same name is. */
static void
draw_lost(void)
{
	for (uint32_t i = 0; i < disk.change_count; i++) {
		struct change *change = &disk.change[i];
		change->lost = wf_rng_below(&disk.rng, 2) == 0;
		for (uint32_t before = 0; before < i && !change->lost; before++) {
			const struct change *other = &disk.change[before];
			change->lost = other->lost && concerns(other, change);
		}
	}
}

static void
remove_folder(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	for (const struct dirent *e = names == NULL ? NULL : readdir(names); e != NULL;
	     e = readdir(names)) {
		(void)unlinkat(fd, e->d_name, 0);
	}
	if (names != NULL) {
		(void)closedir(names);
	}
	(void)unlinkat(folder, name, AT_REMOVEDIR);
}

static void
undo(const struct change *change)
{
	char buried[32];
	switch (change->kind) {
	case MADE_FILE:
		(void)unlinkat(change->folder, change->name, 0);
		break;
	case MADE_FOLDER:
		remove_folder(change->folder, change->name);
		break;
	case RENAMED:
		(void)renameat(change->folder, change->other, change->folder, change->name);
		break;
	case REMOVED:
	default:
		grave_name(change->buried, buried);
		(void)renameat(disk.grave, buried, change->folder, change->name);
		break;
	}
}

/* ---- bytes ---- */

static struct file *
find_file(ino_t ino)
{
	for (uint32_t i = 0; i < disk.file_count; i++) {
		if (disk.file[i].ino == ino) {
			return &disk.file[i];
		}
	}
	return NULL;
}

static void
add_file(int fd)
{
	ino_t ino = ino_of(fd);
	if (find_file(ino) == NULL) {
		WF_ASSERT(disk.file_count < FILES_MAX);
		disk.file[disk.file_count++] = (struct file){
			.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
			.ino = ino,
			.synced_bytes = lseek(fd, 0, SEEK_END),
		};
	}
}

static void
drop_file(struct file *file)
{
	(void)close(file->fd);
	*file = disk.file[--disk.file_count];
}

/* The bytes behind the last fsync: some are missing, and some of the others zero. */
static void
tear(const struct file *file)
{
	static const char zeros[4096];
	struct stat info;
	if (fstat(file->fd, &info) != 0 || info.st_nlink == 0 ||
	    info.st_size <= file->synced_bytes) {
		return;
	}
	uint64_t extra = (uint64_t)(info.st_size - file->synced_bytes);
	uint64_t left = wf_rng_below(&disk.rng, extra + 1);
	if (left == extra) { /* then at least a byte is wrong */
		uint64_t count = 1 + wf_rng_below(&disk.rng, extra);
		count = count < sizeof(zeros) ? count : sizeof(zeros);
		ssize_t done = pwrite(file->fd, zeros, count, info.st_size - (off_t)count);
		WF_ASSERT(done == (ssize_t)count);
	} else {
		int failed = ftruncate(file->fd, file->synced_bytes + (off_t)left);
		WF_ASSERT(failed == 0);
	}
	disk.counts.torn++;
}

/* ---- the calls ---- */

static int
disk_openat(int folder, const char *path, int flags, mode_t mode)
{
	if (fails()) {
		return -1;
	}
	int fd = disk.opts.below->openat(folder, path, flags, mode);
	if (fd >= 0 && (unsigned)fd < FDS_MAX) {
		disk.open_ino[fd] = ino_of(fd);
	}
	if (fd >= 0 && (flags & O_CREAT) != 0) {
		WF_ASSERT((flags & O_EXCL) != 0); /* else it may have been there */
		(void)add_change(MADE_FILE, folder, path);
		add_file(fd);
	}
	return fd;
}

static ssize_t
disk_read(int fd, void *bytes, size_t count)
{
	return fails() ? -1 : disk.opts.below->read(fd, bytes, count);
}

static ssize_t
disk_pread(int fd, void *bytes, size_t count, off_t at)
{
	return fails() ? -1 : disk.opts.below->pread(fd, bytes, count, at);
}

/* One that fails may have written a part. */
static ssize_t
disk_write(int fd, const void *bytes, size_t count)
{
	add_file(fd);
	if (fails()) {
		int error = errno;
		(void)!disk.opts.below->write(fd, bytes, count / 2);
		errno = error;
		return -1;
	}
	return disk.opts.below->write(fd, bytes, count);
}

/* What it should have written is not on the disk if it fails, and a later one does not help. */
static int
disk_fsync(int fd)
{
	struct stat info;
	if (fails() || fstat(fd, &info) != 0) {
		return -1;
	}
	struct file *file = find_file(info.st_ino);
	if (S_ISDIR(info.st_mode)) {
		sync_names(info.st_ino);
	} else if (file != NULL) {
		drop_file(file);
	}
	return 0;
}

static int
disk_close(int fd)
{
	if (fd >= 0 && (unsigned)fd < FDS_MAX) {
		disk.open_ino[fd] = 0;
	}
	int done = disk.opts.below->close(fd);
	return fails() ? -1 : done;
}

static int
disk_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	WF_ASSERT(!"nothing of a snapshot is replaced");
	return disk.opts.below->renameat(from_folder, from, to_folder, to);
}

static int
disk_claim_name(int folder, const char *from, const char *to)
{
	int done = fails() ? -1 : disk.opts.below->claim_name(folder, from, to);
	if (done == 0) {
		struct change *change = add_change(RENAMED, folder, from);
		WF_ASSERT(strlen(to) < NAME_BYTES);
		memcpy(change->other, to, strlen(to) + 1);
	}
	return done;
}

static int
disk_mkdirat(int folder, const char *name, mode_t mode)
{
	int done = fails() ? -1 : disk.opts.below->mkdirat(folder, name, mode);
	if (done == 0) {
		(void)add_change(MADE_FOLDER, folder, name);
	}
	return done;
}

static bool
is_empty(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	unsigned count = 0;
	while (names != NULL && readdir(names) != NULL) {
		count++;
	}
	if (names != NULL) {
		(void)closedir(names);
	}
	return count <= 2;
}

/* Into the grave, from which a crash may bring it back. */
static int
disk_unlinkat(int folder, const char *name, int flags)
{
	char buried[32];
	if (fails()) {
		return -1;
	}
	if ((flags & AT_REMOVEDIR) != 0 && !is_empty(folder, name)) {
		errno = ENOTEMPTY;
		return -1;
	}
	grave_name(++disk.buried, buried);
	int done = disk.opts.below->renameat(folder, name, disk.grave, buried);
	if (done == 0) {
		add_change(REMOVED, folder, name)->buried = disk.buried;
	}
	return done;
}

static int
disk_flock(int fd, int operation)
{
	return disk.opts.below->flock(fd, operation);
}

const struct wf_saved_calls *
disk_calls(void)
{
	static const struct wf_saved_calls calls = {
		.openat = disk_openat,
		.read = disk_read,
		.pread = disk_pread,
		.write = disk_write,
		.fsync = disk_fsync,
		.close = disk_close,
		.renameat = disk_renameat,
		.claim_name = disk_claim_name,
		.mkdirat = disk_mkdirat,
		.unlinkat = disk_unlinkat,
		.flock = disk_flock,
	};
	return &calls;
}

/* ---- from the beginning to the end ---- */

void
disk_begin(const struct disk_opts *opts)
{
	memset(&disk, 0, sizeof(disk));
	disk.opts = *opts;
	wf_rng_init(&disk.rng, opts->seed, 90);
	disk.grave = open(opts->grave, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	WF_ASSERT(disk.grave >= 0);
}

void
disk_set_failing(uint32_t fail_per_mille)
{
	disk.opts.fail_per_mille = fail_per_mille;
}

static void
close_left(void)
{
	for (int fd = 0; fd < (int)FDS_MAX; fd++) {
		if (disk.open_ino[fd] != 0 && ino_of(fd) == disk.open_ino[fd]) {
			(void)close(fd);
		}
		disk.open_ino[fd] = 0;
	}
}

void
disk_sync(void)
{
	sync_names(0);
	while (disk.file_count > 0) {
		drop_file(&disk.file[0]);
	}
	close_left();
}

void
disk_crash(void)
{
	for (uint32_t i = 0; i < disk.file_count; i++) {
		tear(&disk.file[i]);
	}
	draw_lost();
	for (uint32_t i = disk.change_count; i > 0; i--) {
		if (disk.change[i - 1].lost) {
			undo(&disk.change[i - 1]);
			disk.counts.dropped++;
		}
	}
	disk_sync();
}

void
disk_end(void)
{
	disk_sync();
	(void)close(disk.grave);
	disk.grave = -1;
}

struct disk_counts
disk_counts(void)
{
	return disk.counts;
}

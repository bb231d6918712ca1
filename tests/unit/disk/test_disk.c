/* SPDX-License-Identifier: Apache-2.0 */
/* The disk double: what was synced stays in a crash, and each of the rest is lost for some seed and
 * stays for another. One thread. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/double/disk/disk.h"

#define SEEDS 200u
#define BYTES 1000u

/* One world: a folder, and a grave beside it. */
struct scene {
	char dir[64], grave[64];
	int fd;
};

static void
begin(struct scene *s, uint64_t seed, uint32_t fail_per_mille)
{
	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/weft-disk-XXXXXX");
	(void)snprintf(s->grave, sizeof(s->grave), "/tmp/weft-grave-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	assert_non_null(mkdtemp(s->grave));
	const struct disk_opts opts = {.below = wf_saved_posix(),
				       .grave = s->grave,
				       .seed = seed,
				       .fail_per_mille = fail_per_mille};
	disk_begin(&opts);
	s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->fd >= 0);
}

static void
end(struct scene *s)
{
	disk_end();
	static const char *const names[] = {"a", "b", "tmp", "sub/a"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)unlinkat(s->fd, names[i], 0);
	}
	(void)unlinkat(s->fd, "sub", AT_REMOVEDIR);
	(void)close(s->fd);
	assert_int_equal(rmdir(s->dir), 0);
	assert_int_equal(rmdir(s->grave), 0); /* nothing is left in it */
}

/* A file of BYTES times 7. */
static void
make(int folder, const char *name, bool synced)
{
	uint8_t bytes[BYTES];
	memset(bytes, 7, sizeof(bytes));
	int fd = disk_calls()->openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0666);
	assert_true(fd >= 0);
	assert_int_equal(disk_calls()->write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(synced ? disk_calls()->fsync(fd) : 0, 0);
	assert_int_equal(disk_calls()->close(fd), 0);
}

/* How many of its bytes are right; -1: it is not there. */
static int
count_right(int folder, const char *name)
{
	uint8_t bytes[BYTES] = {0};
	int right = 0;
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	ssize_t done = read(fd, bytes, sizeof(bytes));
	for (ssize_t i = 0; i < done; i++) {
		right += bytes[i] == 7 ? 1 : 0;
	}
	(void)close(fd);
	return right;
}

static void
what_is_synced_stays(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct scene s;
		begin(&s, seed, 0);
		make(s.fd, "tmp", true);
		assert_int_equal(disk_calls()->claim_name(s.fd, "tmp", "a"), 0);
		assert_int_equal(disk_calls()->fsync(s.fd), 0);
		disk_crash();
		assert_int_equal(count_right(s.fd, "a"), BYTES);
		assert_int_equal(count_right(s.fd, "tmp"), -1);
		assert_int_equal(disk_counts().torn + disk_counts().dropped, 0);
		end(&s);
	}
}

static void
bytes_that_were_not_synced_are_torn(void **state)
{
	int least = BYTES;
	int most = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct scene s;
		begin(&s, seed, 0);
		make(s.fd, "a", false);
		assert_int_equal(disk_calls()->fsync(s.fd), 0);
		disk_crash();
		int right = count_right(s.fd, "a");
		assert_in_range(right, 0, BYTES - 1);
		assert_int_equal(disk_counts().torn, 1);
		least = right < least ? right : least;
		most = right > most ? right : most;
		end(&s);
	}
	assert_true(least < (int)BYTES / 10 && most > (int)BYTES * 9 / 10);
}

/* A name that was given without a sync of the folder: the old one, the new one, or none. */
static void
names_that_were_not_synced_may_be_lost(void **state)
{
	unsigned kept = 0, temporary = 0, gone = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct scene s;
		begin(&s, seed, 0);
		make(s.fd, "tmp", true);
		assert_int_equal(disk_calls()->claim_name(s.fd, "tmp", "a"), 0);
		disk_crash();
		bool is_new = count_right(s.fd, "a") == BYTES;
		bool is_old = count_right(s.fd, "tmp") == BYTES;
		assert_false(is_new && is_old);
		kept += is_new ? 1 : 0;
		temporary += is_old ? 1 : 0;
		gone += is_new || is_old ? 0 : 1;
		end(&s);
	}
	assert_true(kept > SEEDS / 8 && temporary > SEEDS / 8 && gone > SEEDS / 8);
}

/* Removed in an order that the disk does not promise to keep. */
static void
what_was_removed_may_come_back(void **state)
{
	unsigned first_only = 0, second_only = 0, folders = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct scene s;
		begin(&s, seed, 0);
		assert_int_equal(disk_calls()->mkdirat(s.fd, "sub", 0777), 0);
		make(s.fd, "a", true);
		make(s.fd, "b", true);
		disk_sync();
		assert_int_equal(disk_calls()->unlinkat(s.fd, "a", 0), 0);
		assert_int_equal(disk_calls()->unlinkat(s.fd, "b", 0), 0);
		assert_int_equal(disk_calls()->unlinkat(s.fd, "sub", AT_REMOVEDIR), 0);
		assert_int_equal(faccessat(s.fd, "sub", F_OK, 0), -1);
		disk_crash();
		bool has_a = count_right(s.fd, "a") == BYTES;
		bool has_b = count_right(s.fd, "b") == BYTES;
		first_only += has_a && !has_b ? 1 : 0;
		second_only += has_b && !has_a ? 1 : 0;
		folders += faccessat(s.fd, "sub", F_OK, 0) == 0 ? 1 : 0;
		end(&s);
	}
	assert_true(first_only > SEEDS / 8 && second_only > SEEDS / 8);
	assert_true(folders > SEEDS / 8 && folders < SEEDS);
}

static void
a_folder_with_something_in_it_is_not_removed(void **state)
{
	struct scene s;
	begin(&s, 1, 0);
	assert_int_equal(disk_calls()->mkdirat(s.fd, "sub", 0777), 0);
	make(s.fd, "sub/a", true);
	assert_int_equal(disk_calls()->unlinkat(s.fd, "sub", AT_REMOVEDIR), -1);
	assert_int_equal(errno, ENOTEMPTY);
	assert_int_equal(count_right(s.fd, "sub/a"), BYTES);
	end(&s);
}

static void
calls_fail_by_chance(void **state)
{
	struct scene s;
	unsigned failed = 0, full = 0;
	begin(&s, 1, 100);
	for (unsigned i = 0; i < 1000; i++) {
		if (disk_calls()->fsync(s.fd) != 0) {
			failed++;
			full += errno == ENOSPC ? 1 : 0;
		}
	}
	assert_in_range(failed, 50, 150);
	assert_true(full > 0 && full < failed);
	assert_int_equal(disk_counts().failed, failed);
	disk_set_failing(0);
	assert_int_equal(disk_calls()->fsync(s.fd), 0);
	end(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_synced_stays),
		cmocka_unit_test(bytes_that_were_not_synced_are_torn),
		cmocka_unit_test(names_that_were_not_synced_may_be_lost),
		cmocka_unit_test(what_was_removed_may_come_back),
		cmocka_unit_test(a_folder_with_something_in_it_is_not_removed),
		cmocka_unit_test(calls_fail_by_chance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

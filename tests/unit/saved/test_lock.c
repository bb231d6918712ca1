/* SPDX-License-Identifier: Apache-2.0 */
/* One job at a time saves to a folder, whoever owns it; and what holds if the file system has no
 * locks. */
#include "tests/unit/saved/setup.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/assert.h"

/* A process that holds the folder until it is killed; -1: it could not. */
static pid_t
start_holder(struct scene *scene)
{
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	int ready[2];
	char byte = 0;

	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct wf_saved_folder *folder = NULL;
		if (wf_saved_folder_open(&place, &folder) == WEFT_OK) {
			(void)!write(ready[1], "x", 1);
			pause();
		}
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void
one_process_at_a_time_saves_to_a_folder(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	struct wf_saved_folder *folder = NULL;
	struct wf_saved_about about;
	char process[64];

	assert_ok(save_pass(scene, wf_saved_posix(), 3, 1));
	const pid_t holder = start_holder(scene);
	/* As if it were between its two renames, with another pass half-written. */
	assert_int_equal(rename(at(scene, "pass-00003", ""), at(scene, ".pass-00003.old-1", "")),
			 0);
	assert_int_equal(mkdir(at(scene, ".pass-00004.tmp-1", ""), 0777), 0);
	snprintf(process, sizeof(process), "process %ld on ", (long)holder);
	assert_refused(wf_saved_folder_open(&place, &folder), WEFT_UNAVAILABLE, process);
	assert_refused(load_pass(scene, 3, &about), WEFT_DATA, "pass-00003");
	assert_int_equal(names_in(scene->dir, true), 2);
	/* However it ends, its lock ends with it. */
	assert_int_equal(kill(holder, SIGKILL), 0);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	assert_ok(load_pass(scene, 3, &about));
	assert_ok(wf_saved_folder_open(&place, &folder));
	assert_int_equal(names_in(scene->dir, true), 0);
	struct wf_saved_folder *other = NULL;
	snprintf(process, sizeof(process), "process %ld on ", (long)getpid());
	assert_refused(wf_saved_folder_open(&place, &other), WEFT_UNAVAILABLE, process);
	wf_saved_folder_close(folder);
	assert_ok(save_pass(scene, wf_saved_posix(), 3, 2));
}

static void
a_lock_that_is_not_wefts_is_not_written_to(void **state)
{
	struct scene *scene = *state;
	const char *const lock = WF_SAVED_LOCK_FILE;

	write_text(at(scene, "notes", ""), "mine");
	for (unsigned i = 0; i < 5; i++) {
		switch (i) {
		case 0:
			assert_int_equal(symlink("notes", at(scene, lock, "")), 0);
			break;
		case 1:
			assert_int_equal(link(at(scene, "notes", ""), at(scene, lock, "")), 0);
			break;
		case 2:
			assert_int_equal(mkfifo(at(scene, lock, ""), 0666), 0);
			break;
		case 3:
			assert_int_equal(mkdir(at(scene, lock, ""), 0777), 0);
			break;
		default:
			write_text(at(scene, lock, ""), "another program's lock");
			break;
		}
		assert_refused(save_pass(scene, wf_saved_posix(), 0, 1), WEFT_IO, lock);
		assert_true(text_is(at(scene, "notes", ""), "mine"));
		assert_int_equal(names_in(scene->dir, false), 1);
		if (i == 4) {
			assert_true(text_is(at(scene, lock, ""), "another program's lock"));
		}
		assert_int_equal(remove(at(scene, lock, "")), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		write_text(at(scene, "empty", ""), "");
		if (i == 0) {
			assert_int_equal(symlink("empty", at(scene, lock, "")), 0);
		} else {
			assert_int_equal(link(at(scene, "empty", ""), at(scene, lock, "")), 0);
		}
		assert_refused(save_pass(scene, wf_saved_posix(), 0, 1), WEFT_IO, lock);
		assert_true(text_is(at(scene, "empty", ""), ""));
		assert_int_equal(remove(at(scene, lock, "")), 0);
	}
	/* An empty one, as a full disk leaves it, will do. */
	write_text(at(scene, lock, ""), "");
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
}

static int no_flock_error = ENOLCK;

static int
no_flock(int fd, int operation)
{
	(void)fd;
	(void)operation;
	errno = no_flock_error;
	return -1;
}

/* Nobody can know there whose leftovers these are. */
static void
without_locks_passes_are_saved_and_leftovers_stay(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_calls calls = *wf_saved_posix();
	struct wf_saved_about about;

	calls.flock = no_flock;
	save_of(scene, "one");
	save_of(scene, "two");
	assert_ok(save_pass(scene, wf_saved_posix(), 4, 7));
	give_name(scene, "one", ".pass-00003.tmp-1");
	give_name(scene, "two", ".pass-00004.old-1");
	assert_ok(save_pass(scene, &calls, 3, 1));
	assert_ok(save_pass(scene, &calls, 3, 2));
	assert_int_equal(names_in(scene->dir, true), 2);
	assert_ok(load_pass(scene, 3, &about));
	assert_int_equal(about.step, 2);
	assert_ok(load_pass(scene, 4, &about));
	assert_int_equal(about.step, 7);
	assert_ok(save_pass(scene, wf_saved_posix(), 5, 3));
	assert_int_equal(names_in(scene->dir, true), 0);
}

/* The step of what a reader finds under the name of pass 0. */
static uint64_t
read_without_locks(struct scene *scene)
{
	struct wf_saved_calls calls = *wf_saved_posix();
	struct wf_saved *saved = NULL;

	calls.flock = no_flock;
	assert_ok(wf_saved_open(scene->env, &calls, at(scene, "pass-00000", ""), &saved));
	uint64_t step = wf_saved_about(saved)->step;
	wf_saved_close(saved);
	return step;
}

static void
without_locks_what_was_put_aside_gets_its_name_back(void **state)
{
	static const int errors[] = {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL};
	struct scene *scene = *state;
	struct wf_saved_calls calls = *wf_saved_posix();
	struct wf_saved_about about;

	calls.flock = no_flock;
	for (size_t i = 0; i < WF_ARRAY_COUNT(errors); i++) {
		no_flock_error = errors[i];
		assert_ok(save_pass(scene, &calls, 0, 5 + i));
		give_name(scene, "pass-00000", ".pass-00000.old-1");
		assert_int_equal(read_without_locks(scene), 5 + i); /* who reads */
		give_name(scene, "pass-00000", ".pass-00000.old-1");
		assert_ok(save_pass(scene, &calls, 1, 1)); /* who saves */
		assert_ok(load_pass(scene, 0, &about));
		assert_int_equal(about.step, 5 + i);
		assert_int_equal(names_in(scene->dir, true), 0);
	}
	no_flock_error = ENOLCK;
}

/* Somebody who reads pass 0 between the two renames. One test at a time. */
static struct {
	struct scene *scene;
	unsigned times; /* it still does; 0: not yet, or no more */
	uint64_t step;
} reader;

static int
read_before_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	if (reader.times > 0 && strcmp(from, ".pass-00000.tmp-1") == 0) {
		reader.times--;
		reader.step = read_without_locks(reader.scene);
	}
	return renameat(from_folder, from, to_folder, to);
}

/* They cannot see each other, and one gives the older save its name back under the other's hands.
 */
static void
without_locks_who_reads_does_not_fail_who_saves(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_calls calls = *wf_saved_posix();
	struct wf_saved_about about;

	calls.flock = no_flock;
	assert_ok(save_pass(scene, &calls, 0, 1));
	calls.renameat = read_before_renameat;
	reader.scene = scene;
	reader.times = 1;
	assert_ok(save_pass(scene, &calls, 0, 2));
	assert_int_equal(reader.times, 0);
	assert_int_equal(reader.step, 1);
	assert_ok(load_pass(scene, 0, &about));
	assert_int_equal(about.step, 2);
	assert_int_equal(names_in(scene->dir, true), 0);
	/* Who never leaves off costs the save, after a while, and nothing else. */
	reader.times = 1000;
	assert_refused(save_pass(scene, &calls, 0, 3), WEFT_IO, "keeps coming back");
	assert_true(reader.times > 800);
	reader.times = 0;
	assert_ok(load_pass(scene, 0, &about));
	assert_int_equal(about.step, 2);
	assert_int_equal(names_in(scene->dir, true), 0);
}

/* Another user's lock: what may not be done with it. One test at a time. */
static struct {
	bool is_shut; /* for reading, too */
} stranger;

static int
strangers_openat(int folder, const char *path, int flags, mode_t mode)
{
	if (strcmp(path, WF_SAVED_LOCK_FILE) == 0 &&
	    (stranger.is_shut || (flags & O_ACCMODE) != O_RDONLY)) {
		errno = EACCES;
		return -1;
	}
	return openat(folder, path, flags, mode);
}

static void
a_lock_that_another_user_made_is_taken_all_the_same(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_calls calls = *wf_saved_posix();
	const struct wf_saved_place place = place_of(scene, &calls);
	struct wf_saved_folder *folder = NULL;

	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1)); /* makes it */
	calls.openat = strangers_openat;
	stranger.is_shut = false;
	assert_ok(wf_saved_folder_open(&place, &folder));
	/* Its name is not there, nor that of who had it before. */
	assert_refused(save_pass(scene, wf_saved_posix(), 0, 2), WEFT_UNAVAILABLE,
		       "another process saves there");
	wf_saved_folder_close(folder);
	assert_ok(save_pass(scene, &calls, 0, 2));
	/* Where that is not enough the message says what is. */
	calls.flock = no_flock;
	no_flock_error = EBADF;
	assert_refused(wf_saved_folder_open(&place, &folder), WEFT_IO, "chmod g+rw");
	no_flock_error = ENOLCK;
	calls.flock = wf_saved_posix()->flock;
	stranger.is_shut = true;
	assert_refused(wf_saved_folder_open(&place, &folder), WEFT_IO, "chmod g+rw");
}

static void
the_lock_is_for_whoever_may_write_to_the_folder(void **state)
{
	static const struct {
		mode_t mask, folder, lock;
	} wanted[] = {
		{0022, 0755, 0644}, {0022, 0775, 0664},  {0077, 0700, 0600},  {0077, 0770, 0660},
		{0002, 0755, 0664}, {0022, 02770, 0664}, {0077, 01777, 0666}, {0022, 0777, 0666},
	};
	struct scene *scene = *state;
	struct stat info;

	for (size_t i = 0; i < WF_ARRAY_COUNT(wanted); i++) {
		const mode_t before = umask(wanted[i].mask);
		assert_int_equal(chmod(scene->dir, wanted[i].folder), 0);
		assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
		(void)umask(before);
		assert_int_equal(stat(at(scene, WF_SAVED_LOCK_FILE, ""), &info), 0);
		assert_int_equal(info.st_mode & 07777, wanted[i].lock);
		/* Nobody changes what is there: it may be as its owner wants it. */
		assert_int_equal(chmod(at(scene, WF_SAVED_LOCK_FILE, ""), 0640), 0);
		assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
		assert_int_equal(stat(at(scene, WF_SAVED_LOCK_FILE, ""), &info), 0);
		assert_int_equal(info.st_mode & 07777, 0640);
		assert_int_equal(unlink(at(scene, WF_SAVED_LOCK_FILE, "")), 0);
	}
}

/* With the system's own rules, where we may become another user. */
static void
another_user_saves_to_a_shared_folder(void **state)
{
	struct scene *scene = *state;
	struct stat info;
	int status = 0;

	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(chmod(scene->dir, 0777), 0);
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	for (unsigned i = 0; i < 2; i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			bool is_other = setgid(65534) == 0 && setuid(65534) == 0;
			_exit(is_other && save_pass(scene, wf_saved_posix(), 1 + i, 2) == WEFT_OK
				      ? 0
				      : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		assert_int_equal(stat(at(scene, "pass-00001", ""), &info), 0);
		assert_true(info.st_uid == 65534);
		/* As an older weft made it. */
		assert_int_equal(chmod(at(scene, WF_SAVED_LOCK_FILE, ""), 0644), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(one_process_at_a_time_saves_to_a_folder),
		WITH_SCENE(a_lock_that_is_not_wefts_is_not_written_to),
		WITH_SCENE(without_locks_passes_are_saved_and_leftovers_stay),
		WITH_SCENE(without_locks_what_was_put_aside_gets_its_name_back),
		WITH_SCENE(without_locks_who_reads_does_not_fail_who_saves),
		WITH_SCENE(a_lock_that_another_user_made_is_taken_all_the_same),
		WITH_SCENE(the_lock_is_for_whoever_may_write_to_the_folder),
		WITH_SCENE(another_user_saves_to_a_shared_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

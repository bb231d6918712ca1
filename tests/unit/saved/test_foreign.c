/* SPDX-License-Identifier: Apache-2.0 */
/* What weft did not make it does not remove, empty, rename or write to, wherever it lies and
 * whatever leads to it. */
#include "tests/unit/saved/setup.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "saved/import.h"

#define ARCHIVE_STEP 77

/* A save that lies elsewhere, with a file of its owner's beside it: "archive/pass-00000". */
static void
make_archive(struct scene *scene)
{
	char dir[sizeof(scene->dir)];

	memcpy(dir, scene->dir, sizeof(dir));
	assert_int_equal(mkdir(at(scene, "archive", ""), 0777), 0);
	snprintf(scene->dir, sizeof(scene->dir), "%.50s/archive", dir);
	enum weft_status st = save_pass(scene, wf_saved_posix(), 0, ARCHIVE_STEP);
	memcpy(scene->dir, dir, sizeof(dir));
	assert_ok(st);
	write_text(at(scene, "archive", "notes"), "mine");
}

static void
check_archive(struct scene *scene)
{
	struct wf_saved *saved = NULL;

	assert_ok(wf_saved_open(scene->env, wf_saved_posix(), at(scene, "archive/pass-00000", ""),
				&saved));
	assert_int_equal(wf_saved_about(saved)->step, ARCHIVE_STEP);
	wf_saved_close(saved);
	assert_true(text_is(at(scene, "archive", "notes"), "mine"));
}

/* Something under a name that weft would have for its own. */
typedef void make_fn(struct scene *scene, const char *name);

static void
link_to_save(struct scene *scene, const char *name)
{
	assert_int_equal(symlink("archive/pass-00000", at(scene, name, "")), 0);
}

static void
link_to_folder(struct scene *scene, const char *name)
{
	assert_int_equal(symlink("archive", at(scene, name, "")), 0);
}

static void
link_to_file(struct scene *scene, const char *name)
{
	assert_int_equal(symlink("archive/notes", at(scene, name, "")), 0);
}

static void
link_to_nothing(struct scene *scene, const char *name)
{
	assert_int_equal(symlink("nowhere", at(scene, name, "")), 0);
}

static void
plain_file(struct scene *scene, const char *name)
{
	write_text(at(scene, name, ""), "mine");
}

static void
pipe_of_that_name(struct scene *scene, const char *name)
{
	assert_int_equal(mkfifo(at(scene, name, ""), 0666), 0);
}

static void
folder_with_notes(struct scene *scene, const char *name)
{
	assert_int_equal(mkdir(at(scene, name, ""), 0777), 0);
	write_text(at(scene, name, "notes"), "mine");
}

static void
save_with_notes(struct scene *scene, const char *name)
{
	save_of(scene, name);
	write_text(at(scene, name, "notes"), "mine");
}

static void
save_with_linked_file(struct scene *scene, const char *name)
{
	save_of(scene, name);
	assert_int_equal(unlink(at(scene, name, "w")), 0);
	assert_int_equal(symlink("../archive/pass-00000/w", at(scene, name, "w")), 0);
}

static void
save_with_linked_manifest(struct scene *scene, const char *name)
{
	save_of(scene, name);
	assert_int_equal(unlink(at(scene, name, "manifest")), 0);
	assert_int_equal(symlink("../archive/pass-00000/manifest", at(scene, name, "manifest")), 0);
}

static void
save_with_pipe(struct scene *scene, const char *name)
{
	save_of(scene, name);
	assert_int_equal(unlink(at(scene, name, "w.state0")), 0);
	assert_int_equal(mkfifo(at(scene, name, "w.state0"), 0666), 0);
}

static void
save_with_folder(struct scene *scene, const char *name)
{
	save_of(scene, name);
	assert_int_equal(unlink(at(scene, name, "bias")), 0);
	assert_int_equal(mkdir(at(scene, name, "bias"), 0777), 0);
}

static void
save_with_damaged_manifest(struct scene *scene, const char *name)
{
	save_of(scene, name);
	write_text(at(scene, name, "manifest"), "weft saved model 1\n");
}

static void
save_with_a_state_too_many(struct scene *scene, const char *name)
{
	save_of(scene, name);
	write_text(at(scene, name, "w.state1"), "mine");
}

static make_fn *const foreign[] = {
	link_to_save,
	link_to_folder,
	link_to_file,
	link_to_nothing,
	plain_file,
	pipe_of_that_name,
	folder_with_notes,
	save_with_notes,
	save_with_linked_file,
	save_with_linked_manifest,
	save_with_pipe,
	save_with_folder,
	save_with_damaged_manifest,
	save_with_a_state_too_many,
};

/* What is there: its kind and, of a folder, how many names it has. */
struct look {
	struct stat info;
	unsigned names;
};

static struct look
look_at(const struct scene *scene, const char *name)
{
	struct look look = {0};

	assert_int_equal(lstat(at(scene, name, ""), &look.info), 0);
	look.names = S_ISDIR(look.info.st_mode) ? names_in(at(scene, name, ""), false) : 0;
	return look;
}

static void
check_same(const struct scene *scene, const char *name, const struct look *before)
{
	const struct look now = look_at(scene, name);

	assert_true(now.info.st_ino == before->info.st_ino);
	assert_true(now.info.st_mode == before->info.st_mode);
	assert_int_equal(now.names, before->names);
}

/* As the message says; a link first, which remove_tree would follow. */
static void
take_away(const struct scene *scene, const char *name)
{
	if (unlink(at(scene, name, "")) != 0) {
		remove_tree(at(scene, name, ""), 3);
	}
}

static enum weft_status
check_passes(struct scene *scene, uint64_t first, uint64_t end)
{
	const struct wf_saved_place place = place_of(scene, wf_saved_posix());
	struct wf_saved_folder *folder = NULL;

	enum weft_status st = wf_saved_folder_open(&place, &folder);
	if (st == WEFT_OK) {
		st = wf_saved_folder_check(folder, first, end);
		wf_saved_folder_close(folder);
	}
	return st;
}

static void
what_has_a_passs_name_and_is_no_save_is_refused_and_left(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;

	make_archive(scene);
	for (size_t i = 0; i < WF_ARRAY_COUNT(foreign); i++) {
		foreign[i](scene, "pass-00000");
		const struct look before = look_at(scene, "pass-00000");
		assert_refused(save_pass(scene, wf_saved_posix(), 0, 1), WEFT_IO, "pass-00000");
		assert_non_null(strstr(weft_last_error(), "move it elsewhere"));
		check_same(scene, "pass-00000", &before);
		assert_refused(check_passes(scene, 0, 3), WEFT_IO, "pass-00000");
		assert_ok(check_passes(scene, 1, 3));
		/* Others are not in its way, and the older ones go but for it. */
		assert_ok(save_pass(scene, wf_saved_posix(), 1, 2));
		assert_ok(save_pass(scene, wf_saved_posix(), 2, 3));
		assert_refused(remove_older(scene, 2), WEFT_IO, "pass-00000");
		check_same(scene, "pass-00000", &before);
		assert_int_equal(access(at(scene, "pass-00001", ""), F_OK), -1);
		assert_ok(load_pass(scene, 2, &about));
		check_archive(scene);
		assert_int_equal(names_in(scene->dir, true), 0);
		take_away(scene, "pass-00000");
	}
}

static void
what_has_a_leftovers_name_and_is_none_is_left(void **state)
{
	static const char *const names[] = {".pass-00000.tmp-1", ".pass-00003.tmp-1",
					    ".pass-00000.old-1"};
	struct scene *scene = *state;
	struct wf_saved_about about;

	make_archive(scene);
	for (size_t i = 0; i < WF_ARRAY_COUNT(foreign) * WF_ARRAY_COUNT(names); i++) {
		const char *name = names[i % WF_ARRAY_COUNT(names)];
		assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
		foreign[i / WF_ARRAY_COUNT(names)](scene, name);
		const struct look before = look_at(scene, name);
		for (uint64_t step = 2; step < 4; step++) {
			assert_ok(save_pass(scene, wf_saved_posix(), 0, step));
			check_same(scene, name, &before);
			assert_int_equal(names_in(scene->dir, true), 1);
			assert_ok(load_pass(scene, 0, &about));
			assert_int_equal(about.step, step);
		}
		check_archive(scene);
		take_away(scene, name);
	}
}

/* With no save of its name a link aside does not become one. */
static void
a_link_aside_is_no_save(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;

	make_archive(scene);
	link_to_save(scene, ".pass-00003.old-1");
	assert_refused(load_pass(scene, 3, &about), WEFT_DATA, "pass-00003");
	assert_ok(save_pass(scene, wf_saved_posix(), 4, 1));
	assert_int_equal(access(at(scene, "pass-00003", ""), F_OK), -1);
	check_archive(scene);
}

static struct wf_env *
logging_to(int fd)
{
	struct wf_env *env = NULL;

	assert_int_equal(wf_env_system_create(WF_LOG_WARN, fd, &env), WEFT_OK);
	return env;
}

/* Open the folder as a job does that is about to save; what it logs is in `text`. */
static void
open_and_read_log(struct scene *scene, const struct wf_saved_calls *calls, char *text, size_t bytes)
{
	int log = memfd_create("log", MFD_CLOEXEC);
	struct wf_env *env = logging_to(log);
	const struct wf_saved_place place = {.env = env, .calls = calls, .dir = scene->dir};
	struct wf_saved_folder *folder = NULL;

	assert_ok(wf_saved_folder_open(&place, &folder));
	wf_saved_folder_close(folder);
	wf_env_system_destroy(env);
	ssize_t got = pread(log, text, bytes - 1, 0);
	assert_true(got >= 0);
	text[got] = '\0';
	assert_int_equal(close(log), 0);
}

static void
empty_folder(struct scene *scene, const char *name)
{
	assert_int_equal(mkdir(at(scene, name, ""), 0777), 0);
}

static void
save_with_a_damaged_file(struct scene *scene, const char *name)
{
	save_of(scene, name);
	int fd = open(at(scene, name, "w"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "?", 1, W_COUNT * sizeof(float)), 1);
	assert_int_equal(close(fd), 0);
}

static void
save_with_a_file_too_few(struct scene *scene, const char *name)
{
	save_of(scene, name);
	assert_int_equal(unlink(at(scene, name, "bias")), 0);
}

/* Whoever died between the two renames left the save aside; then somebody made something else of
 * that name. */
static void
what_has_the_name_of_a_save_aside_does_not_cost_it(void **state)
{
	static make_fn *const more[] = {empty_folder, save_with_a_damaged_file,
					save_with_a_file_too_few};
	const size_t count = WF_ARRAY_COUNT(foreign) + WF_ARRAY_COUNT(more);
	struct scene *scene = *state;
	struct wf_saved_about about;
	char text[4096];

	make_archive(scene);
	for (size_t i = 0; i < count; i++) {
		make_fn *const make = i < WF_ARRAY_COUNT(foreign)
					      ? foreign[i]
					      : more[i - WF_ARRAY_COUNT(foreign)];
		make(scene, "made");
		assert_ok(save_pass(scene, wf_saved_posix(), 3, 10 + i));
		give_name(scene, "pass-00003", ".pass-00003.old-1");
		give_name(scene, "made", "pass-00003");
		const struct look before = look_at(scene, "pass-00003");
		open_and_read_log(scene, wf_saved_posix(), text, sizeof(text));
		check_same(scene, "pass-00003", &before);
		assert_int_equal(names_in(scene->dir, true), 1);
		assert_non_null(strstr(text, ".pass-00003.old-1 is kept, because pass-00003"));
		take_away(scene, "pass-00003");
		assert_ok(load_pass(scene, 3, &about));
		assert_int_equal(about.step, 10 + i);
		assert_int_equal(names_in(scene->dir, true), 0);
		check_archive(scene);
	}
	/* A whole one is what it was put aside for. */
	save_of(scene, "one");
	give_name(scene, "one", ".pass-00003.old-1");
	open_and_read_log(scene, wf_saved_posix(), text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(names_in(scene->dir, true), 0);
	assert_ok(load_pass(scene, 3, &about));
	assert_int_equal(about.step, 10 + count - 1);
}

/* Whichever of them the folder names first. */
static void
of_several_saves_aside_the_newest_whole_one_gets_the_name(void **state)
{
	static const char *const number[] = {"9", "10", "11", "2", "100"};
	struct scene *scene = *state;
	struct wf_saved_about about;
	char name[40];

	make_archive(scene);
	for (size_t i = 0; i < WF_ARRAY_COUNT(number); i++) {
		assert_ok(save_pass(scene, wf_saved_posix(), 9, strtoul(number[i], NULL, 10)));
		give_name(scene, "pass-00009", number[i]);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(number); i++) {
		snprintf(name, sizeof(name), ".pass-00003.old-%s", number[i]);
		give_name(scene, number[i], name);
	}
	assert_int_equal(unlink(at(scene, ".pass-00003.old-100", "w")), 0);
	folder_with_notes(scene, ".pass-00003.old-99");
	link_to_save(scene, ".pass-00003.old-98");
	assert_ok(load_pass(scene, 3, &about));
	assert_int_equal(about.step, 11);
	/* The older ones go, what is not whole or not weft's stays. */
	assert_int_equal(access(at(scene, ".pass-00003.old-10", ""), F_OK), -1);
	assert_true(text_is(at(scene, ".pass-00003.old-99", "notes"), "mine"));
	assert_true(S_ISLNK(look_at(scene, ".pass-00003.old-98").info.st_mode));
	check_archive(scene);
}

static void
a_folder_of_passes_may_be_a_link_and_other_names_of_a_file_stay(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_about about;
	char dir[sizeof(scene->dir)];

	memcpy(dir, scene->dir, sizeof(dir));
	assert_int_equal(mkdir(at(scene, "real", ""), 0777), 0);
	assert_int_equal(symlink("real", at(scene, "link", "")), 0);
	snprintf(scene->dir, sizeof(scene->dir), "%.50s/link", dir);
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	memcpy(scene->dir, dir, sizeof(dir));
	assert_int_equal(link(at(scene, "real/pass-00000", "manifest"), at(scene, "kept", "")), 0);
	snprintf(scene->dir, sizeof(scene->dir), "%.50s/link", dir);
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 2));
	assert_ok(load_pass(scene, 0, &about));
	assert_int_equal(about.step, 2);
	memcpy(scene->dir, dir, sizeof(dir));
	struct stat info;
	assert_int_equal(stat(at(scene, "kept", ""), &info), 0);
	assert_true(info.st_size > 100 && info.st_nlink == 1);
	assert_int_equal(names_in(at(scene, "real", ""), false), 1);
}

/* Somebody who does something at the worst moment. One test at a time. */
static struct {
	struct scene *scene;
	void (*act)(struct scene *scene);
	const char *at_rename_of; /* NULL: none */
	const char *at_unlink_of;
} meddler;

static void
meddle(const char *wanted, const char *name)
{
	if (wanted != NULL && strcmp(wanted, name) == 0 && meddler.act != NULL) {
		void (*act)(struct scene * scene) = meddler.act;
		meddler.act = NULL;
		act(meddler.scene);
	}
}

static int
meddled_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	meddle(meddler.at_rename_of, from);
	return renameat(from_folder, from, to_folder, to);
}

static int
meddled_unlinkat(int folder, const char *name, int flags)
{
	meddle(meddler.at_unlink_of, name);
	return unlinkat(folder, name, flags);
}

static struct wf_saved_calls
meddled(void)
{
	struct wf_saved_calls calls = *wf_saved_posix();

	calls.renameat = meddled_renameat;
	calls.unlinkat = meddled_unlinkat;
	return calls;
}

static void
put_a_link_in_place_of_the_pass(struct scene *scene)
{
	assert_int_equal(rename(at(scene, "pass-00000", ""), at(scene, "moved", "")), 0);
	link_to_save(scene, "pass-00000");
}

static void
a_link_that_takes_a_passs_place_meanwhile_is_left(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_calls calls = meddled();

	make_archive(scene);
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	meddler.scene = scene;
	meddler.act = put_a_link_in_place_of_the_pass;
	meddler.at_rename_of = "pass-00000";
	meddler.at_unlink_of = NULL;
	assert_refused(save_pass(scene, &calls, 0, 2), WEFT_IO, "meanwhile");
	assert_null(meddler.act);
	assert_true(S_ISLNK(look_at(scene, "pass-00000").info.st_mode));
	assert_int_equal(names_in(scene->dir, true), 0);
	check_archive(scene);
}

static void
put_a_link_in_place_of_the_file(struct scene *scene)
{
	assert_int_equal(unlink(at(scene, ".pass-00000.tmp-1", "w")), 0);
	assert_int_equal(symlink("../archive/pass-00000/w", at(scene, ".pass-00000.tmp-1", "w")),
			 0);
	assert_int_equal(mkdir(at(scene, ".pass-00000.tmp-1", "folder"), 0777), 0);
	write_text(at(scene, ".pass-00000.tmp-1", "folder/notes"), "mine");
}

static void
what_appears_while_a_save_is_removed_is_left(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_calls calls = meddled();

	make_archive(scene);
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	meddler.scene = scene;
	meddler.act = put_a_link_in_place_of_the_file;
	meddler.at_rename_of = NULL;
	meddler.at_unlink_of = "w";
	assert_ok(save_pass(scene, &calls, 0, 2));
	assert_null(meddler.act);
	assert_true(text_is(at(scene, ".pass-00000.tmp-1", "folder/notes"), "mine"));
	check_archive(scene);
}

static void
put_a_link_in_place_of_the_folder(struct scene *scene)
{
	assert_int_equal(rename(at(scene, ".pass-00000.tmp-1", ""), at(scene, "moved", "")), 0);
	link_to_save(scene, ".pass-00000.tmp-1");
}

static void
a_link_that_takes_a_leftovers_place_meanwhile_leads_nowhere(void **state)
{
	struct scene *scene = *state;
	const struct wf_saved_calls calls = meddled();

	make_archive(scene);
	assert_ok(save_pass(scene, wf_saved_posix(), 0, 1));
	meddler.scene = scene;
	meddler.act = put_a_link_in_place_of_the_folder;
	meddler.at_rename_of = NULL;
	meddler.at_unlink_of = "w";
	assert_ok(save_pass(scene, &calls, 0, 2));
	assert_null(meddler.act);
	assert_true(S_ISLNK(look_at(scene, ".pass-00000.tmp-1").info.st_mode));
	check_archive(scene);
}

static void
an_export_takes_the_place_of_what_it_names_alone(void **state)
{
	struct scene *scene = *state;
	struct wf_saved *saved = NULL;
	char name[40];

	make_archive(scene);
	assert_ok(wf_saved_open(scene->env, wf_saved_posix(), at(scene, "archive/pass-00000", ""),
				&saved));
	/* Not what a process of our number might have left. */
	snprintf(name, sizeof(name), ".out.tmp-%ld", (long)getpid());
	write_text(at(scene, name, ""), "mine");
	assert_ok(wf_saved_export_npz(saved, at(scene, "out", ""), false));
	assert_true(text_is(at(scene, name, ""), "mine"));
	assert_int_equal(unlink(at(scene, name, "")), 0);
	assert_int_equal(symlink("archive", at(scene, name, "")), 0);
	assert_int_equal(unlink(at(scene, "out", "")), 0);
	assert_ok(wf_saved_export_paddle(saved, at(scene, "out", ""), false));
	check_archive(scene);
	/* Another name of the file that is replaced keeps what it has. */
	write_text(at(scene, "mine", ""), "mine");
	assert_int_equal(link(at(scene, "mine", ""), at(scene, "model", "")), 0);
	assert_ok(wf_saved_export_npz(saved, at(scene, "model", ""), false));
	assert_true(text_is(at(scene, "mine", ""), "mine"));
	assert_int_equal(symlink("mine", at(scene, "link", "")), 0);
	assert_refused(wf_saved_export_npz(saved, at(scene, "link", ""), false), WEFT_INVALID,
		       "link");
	assert_true(text_is(at(scene, "mine", ""), "mine"));
	wf_saved_close(saved);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(what_has_a_passs_name_and_is_no_save_is_refused_and_left),
		WITH_SCENE(what_has_a_leftovers_name_and_is_none_is_left),
		WITH_SCENE(a_link_aside_is_no_save),
		WITH_SCENE(what_has_the_name_of_a_save_aside_does_not_cost_it),
		WITH_SCENE(of_several_saves_aside_the_newest_whole_one_gets_the_name),
		WITH_SCENE(a_folder_of_passes_may_be_a_link_and_other_names_of_a_file_stay),
		WITH_SCENE(a_link_that_takes_a_passs_place_meanwhile_is_left),
		WITH_SCENE(what_appears_while_a_save_is_removed_is_left),
		WITH_SCENE(a_link_that_takes_a_leftovers_place_meanwhile_leads_nowhere),
		WITH_SCENE(an_export_takes_the_place_of_what_it_names_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

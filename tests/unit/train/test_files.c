/* SPDX-License-Identifier: Apache-2.0 */
/* Items become files, each once and in an order that depends on their names alone; what is missing
 * is named; trainers share the files by the rules of the original. */
#include "tests/unit/train/setup.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/files.h"

struct scene {
	struct wf_env *env;
	char dir[64];
	char here[512]; /* working folder of the test program */
};

/* A file of `bytes` bytes in the scene's folder. */
static void
put(const struct scene *scene, const char *name, size_t bytes)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", scene->dir, name);
	FILE *to = fopen(path, "wb");
	assert_non_null(to);
	for (size_t i = 0; i < bytes; i++) {
		fputc('x', to);
	}
	assert_int_equal(fclose(to), 0);
}

static void
put_text(const struct scene *scene, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", scene->dir, name);
	FILE *to = fopen(path, "wb");
	assert_non_null(to);
	fputs(text, to);
	assert_int_equal(fclose(to), 0);
}

static int
open_scene(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	*state = scene;
	if (scene == NULL || wf_env_system_create(WF_LOG_WARN, -1, &scene->env) != WEFT_OK) {
		return -1;
	}
	snprintf(scene->dir, sizeof(scene->dir), "/tmp/weft_files_XXXXXX");
	if (mkdtemp(scene->dir) == NULL || getcwd(scene->here, sizeof(scene->here)) == NULL ||
	    chdir(scene->dir) != 0) {
		return -1;
	}
	return mkdir("sub", 0755);
}

static int
remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
	return remove(path);
}

static int
close_scene(void **state)
{
	struct scene *scene = *state;

	if (chdir(scene->here) != 0) {
		return -1;
	}
	int rc = nftw(scene->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	wf_env_system_destroy(scene->env);
	free(scene);
	return rc;
}

static void
assert_files(const struct wf_files *files, const char *const *path, size_t count)
{
	for (size_t i = 0; i < files->count && i < count; i++) {
		assert_string_equal(files->file[i].path, path[i]);
	}
	assert_int_equal(files->count, count);
}

static void
items_become_files_in_their_order(void **state)
{
	static const char *const want[] = {"z", "sub/A", "sub/b.gz", "sub/c", "p1", "p2"};
	struct scene *scene = *state;
	struct wf_files files;

	put(scene, "z", 3);
	put(scene, "sub/c", 0);
	put(scene, "sub/A", 1);
	put(scene, "sub/b.gz", 2);
	put(scene, "sub/.hidden", 1);
	put(scene, "sub/c.lock", 1);
	put(scene, "sub/train.list", 1);
	assert_int_equal(mkdir("sub/deeper", 0755), 0);
	assert_int_equal(mkfifo("sub/pipe", 0600), 0);
	put(scene, "p2", 1);
	put(scene, "p1", 1);
	assert_ok(wf_files_list(scene->env, "z,sub,p?", &files));
	assert_files(&files, want, 6);
	assert_int_equal(files.file[0].bytes, 3);
	assert_int_equal(files.file[2].bytes, 2);
	assert_false(files.file[0].is_found);
	assert_true(files.file[1].is_found && files.file[4].is_found);
	wf_files_fini(scene->env, &files);
	assert_ok(wf_files_list(scene->env, "sub/,z", &files));
	assert_int_equal(files.count, 4);
	assert_string_equal(files.file[0].path, "sub/A");
	wf_files_fini(scene->env, &files);
}

/* A name is a name before it is a pattern. */
static void
a_file_with_the_name_of_a_pattern_is_that_file(void **state)
{
	static const char *const want[] = {"p[1]"};
	struct scene *scene = *state;
	struct wf_files files;

	put(scene, "p1", 1);
	put(scene, "p[1]", 1);
	assert_ok(wf_files_list(scene->env, "p[1]", &files));
	assert_files(&files, want, 1);
	wf_files_fini(scene->env, &files);
}

static void
a_list_file_names_files_folders_and_patterns(void **state)
{
	static const char *const want[] = {"a", "sub/x1", "sub/x2", "sub/beside"};
	static const char *const commented[] = {"sub/x1", "a#b"};
	static const char *const nearer[] = {"both"};
	struct scene *scene = *state;
	struct wf_files files;

	put(scene, "a", 1);
	put(scene, "sub/x1", 1);
	put(scene, "sub/x2", 1);
	put(scene, "sub/beside", 1);
	put_text(scene, "sub/train.list", "# parts\na\r\n\nx*\nbeside");
	assert_ok(wf_files_list(scene->env, "sub/train.list", &files));
	assert_files(&files, want, 4);
	wf_files_fini(scene->env, &files);
	put(scene, "a#b", 1);
	put(scene, "#c", 1);
	put_text(scene, "sub/train.list",
		 "sub/x1 # the first\n \t# none\n#c\na#b\t#no comment in front\nsub/x2#\n");
	assert_refused(wf_files_list(scene->env, "sub/train.list", &files), WEFT_DATA,
		       "line 5: sub/x2#: No such file");
	put_text(scene, "sub/train.list", "sub/x1 # the first\n \t# none\n#c\na#b\t#\r\n");
	assert_ok(wf_files_list(scene->env, "sub/train.list", &files));
	assert_files(&files, commented, 2);
	wf_files_fini(scene->env, &files);
	/* What is in the working folder goes before what is beside the list. */
	put(scene, "both", 1);
	put(scene, "sub/both", 1);
	put_text(scene, "sub/train.list", "both\n");
	assert_ok(wf_files_list(scene->env, "sub/train.list", &files));
	assert_files(&files, nearer, 1);
	wf_files_fini(scene->env, &files);
}

static void
what_is_not_there_is_named_with_list_and_line(void **state)
{
	struct scene *scene = *state;
	struct wf_files files;

	put(scene, "a", 1);
	put_text(scene, "t.list", "a\nsub/gone\n");
	assert_refused(wf_files_list(scene->env, "t.list", &files), WEFT_DATA,
		       "t.list: line 2: sub/gone: No such file");
	assert_refused(wf_files_list(scene->env, "a,gone", &files), WEFT_DATA, "gone: No such");
	assert_refused(wf_files_list(scene->env, "a/b", &files), WEFT_DATA, "a/b: Not a dir");
	assert_refused(wf_files_list(scene->env, "gone*", &files), WEFT_DATA,
		       "gone*: no regular file is there");
	assert_refused(wf_files_list(scene->env, "gone/*", &files), WEFT_DATA, "gone/*: ");
	assert_refused(wf_files_list(scene->env, "sub", &files), WEFT_DATA,
		       "sub: no regular file is there");
	assert_refused(wf_files_list(scene->env, "gone.list", &files), WEFT_DATA, "gone.list: No");
	assert_refused(wf_files_list(scene->env, "/dev/null", &files), WEFT_DATA, "/dev/null: is");
	assert_int_equal(symlink("nowhere", "sub/link"), 0);
	assert_refused(wf_files_list(scene->env, "sub", &files), WEFT_DATA, "sub/link: No such");
}

static void
items_and_lists_that_say_nothing_are_refused(void **state)
{
	static const char *const empty[] = {"", ",", "a,", ",a", "a,,a"};
	struct scene *scene = *state;
	struct wf_files files;

	put(scene, "a", 1);
	for (size_t i = 0; i < 5; i++) {
		assert_refused(wf_files_list(scene->env, empty[i], &files), WEFT_DATA,
			       "has an empty name");
	}
	put_text(scene, "t.list", "# nothing\n\n");
	assert_refused(wf_files_list(scene->env, "t.list", &files), WEFT_DATA,
		       "t.list: names no file");
	put_text(scene, "t.list", "a\nt.list\n");
	assert_refused(wf_files_list(scene->env, "t.list", &files), WEFT_DATA,
		       "t.list: line 2: t.list: a list file may not name another one");
	put_text(scene, "t.list", "a\n*.list\n");
	assert_refused(wf_files_list(scene->env, "t.list", &files), WEFT_DATA, "line 2: *.list");
	char name[5000];
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_refused(wf_files_list(scene->env, name, &files), WEFT_DATA, "4095 bytes");
	put_text(scene, "t.list", name);
	assert_refused(wf_files_list(scene->env, "t.list", &files), WEFT_DATA,
		       "t.list: line 1: is no name");
}

static void
a_file_named_twice_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_files files;

	put(scene, "a", 1);
	put(scene, "b", 1);
	assert_refused(wf_files_list(scene->env, "b,a,b", &files), WEFT_DATA,
		       "b: is in the set twice");
	assert_refused(wf_files_list(scene->env, "a,?", &files), WEFT_DATA,
		       "a: is in the set twice");
}

/* The files of trainer `trainer`, as one text. */
static void
keep(struct wf_env *env, const char *items, uint32_t trainer, uint32_t trainers, char out[256])
{
	struct wf_files files;

	out[0] = '\0';
	assert_ok(wf_files_list(env, items, &files));
	assert_ok(wf_files_keep(env, &files, trainer, trainers));
	for (size_t i = 0; i < files.count; i++) {
		strncat(out, files.file[i].path, 255 - strlen(out));
		strncat(out, " ", 255 - strlen(out));
	}
	wf_files_fini(env, &files);
}

static void
files_are_shared_by_their_places_in_the_sorted_set(void **state)
{
	struct scene *scene = *state;
	char kept[256];

	put(scene, "a", 1);
	put(scene, "b", 1);
	put(scene, "c", 1);
	put(scene, "d", 1);
	keep(scene->env, "d,c,b,a", 0, 2, kept);
	assert_string_equal(kept, "c a ");
	keep(scene->env, "d,c,b,a", 1, 2, kept);
	assert_string_equal(kept, "d b ");
	keep(scene->env, "d,c,b,a", 2, 3, kept);
	assert_string_equal(kept, "c ");
	keep(scene->env, "a", 0, 1, kept);
	assert_string_equal(kept, "a ");
}

/* The places would be others: the first file has another number than its place. */
static void
numbered_files_are_shared_by_their_numbers(void **state)
{
	struct scene *scene = *state;
	char kept[256];

	put(scene, "t-00001", 1);
	put(scene, "t-00002", 1);
	put(scene, "t-00003.gz", 1);
	put(scene, "u-00001-of-00003.csv.gz", 1);
	keep(scene->env, "t-00003.gz,t-00002,t-00001,u-00001-of-00003.csv.gz", 1, 2, kept);
	assert_string_equal(kept, "t-00003.gz t-00001 u-00001-of-00003.csv.gz ");
	keep(scene->env, "t-00002,t-00003.gz", 0, 2, kept);
	assert_string_equal(kept, "t-00002 ");
	/* A name without a number, a date: places count. */
	put(scene, "a", 1);
	keep(scene->env, "t-00001,t-00002,a", 0, 2, kept);
	assert_string_equal(kept, "t-00002 a ");
	put(scene, "t-20240102", 1);
	put(scene, "t-20240104", 1);
	keep(scene->env, "t-202401*", 1, 2, kept);
	assert_string_equal(kept, "t-20240104 ");
}

static void
a_trainer_without_a_file_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_files files;

	put(scene, "a", 1);
	put(scene, "b", 1);
	assert_ok(wf_files_list(scene->env, "a,b", &files));
	assert_refused(wf_files_keep(scene->env, &files, 2, 4), WEFT_DATA,
		       "none of the 2 files of the set is trainer 2's");
	wf_files_fini(scene->env, &files);
}

static void
put_numbered(const struct scene *scene, unsigned first, unsigned end, unsigned of)
{
	for (unsigned i = first; i < end; i++) {
		char name[64];
		snprintf(name, sizeof(name), "sub/n-%05u-of-%05u.gz", i, of);
		put(scene, name, 1);
	}
}

static enum weft_status
check_whole(const struct scene *scene, const char *items)
{
	struct wf_files files;

	assert_ok(wf_files_list(scene->env, items, &files));
	enum weft_status st = wf_files_check_whole(scene->env, &files);
	wf_files_fini(scene->env, &files);
	return st;
}

/* Ours count from 0 to one less than their number, those of the original to their number. */
static void
a_gap_in_a_numbered_set_is_named(void **state)
{
	struct scene *scene = *state;
	struct wf_files files;

	put_numbered(scene, 0, 11, 11);
	assert_ok(check_whole(scene, "sub"));
	put_numbered(scene, 11, 12, 11);
	assert_ok(check_whole(scene, "sub"));
	put_numbered(scene, 12, 13, 11);
	assert_refused(check_whole(scene, "sub"), WEFT_DATA,
		       "sub/n-00012-of-00011.gz: is one file too many");
	assert_int_equal(unlink("sub/n-00012-of-00011.gz"), 0);
	assert_int_equal(unlink("sub/n-00007-of-00011.gz"), 0);
	assert_refused(check_whole(scene, "sub"), WEFT_DATA, "sub/n-00007-of-00011.gz: is missing");
	assert_ok(check_whole(scene, "sub/n-00008-of-00011.gz,sub/n-00001-of-00011.gz"));
	assert_ok(wf_files_list(scene->env, "sub/n-*", &files));
	assert_refused(wf_files_keep(scene->env, &files, 0, 2), WEFT_DATA,
		       "sub/n-00007-of-00011.gz: is missing");
	wf_files_fini(scene->env, &files);
	/* Some may be packed, others not; but none both. */
	put(scene, "sub/n-00007-of-00011", 1);
	assert_ok(check_whole(scene, "sub"));
	put(scene, "sub/n-00007-of-00011.zst", 1);
	assert_refused(check_whole(scene, "sub"), WEFT_DATA, "is there twice, packed and not: ");
	assert_int_equal(unlink("sub/n-00007-of-00011"), 0);
	assert_int_equal(unlink("sub/n-00007-of-00011.zst"), 0);
	/* The last one, and another set beside it, which is whole. */
	assert_int_equal(unlink("sub/n-00011-of-00011.gz"), 0);
	put_numbered(scene, 7, 8, 11);
	assert_int_equal(unlink("sub/n-00010-of-00011.gz"), 0);
	put_numbered(scene, 0, 2, 2);
	assert_refused(check_whole(scene, "sub"), WEFT_DATA, "sub/n-00010-of-00011.gz: is missing");
}

static enum weft_status
collect(void *arg, enum weft_status found)
{
	char *all = arg;

	assert_int_equal(found, WEFT_DATA);
	strncat(all, weft_last_error(), 8191 - strlen(all));
	strncat(all, "\n", 8191 - strlen(all));
	return WEFT_OK;
}

/* What is found in folder `sub`, a line each, in `out` [8192]. */
static void
find_gaps(const struct scene *scene, char *out)
{
	struct wf_files files;

	out[0] = '\0';
	assert_ok(wf_files_list(scene->env, "sub", &files));
	assert_ok(wf_files_find_gaps(scene->env, &files, collect, out));
	wf_files_fini(scene->env, &files);
}

static void
all_gaps_of_a_numbered_set_are_found(void **state)
{
	struct scene *scene = *state;
	char found[8192];
	char line[64];

	put_numbered(scene, 1, 2, 9);
	put_numbered(scene, 5, 7, 9);
	put_numbered(scene, 12, 14, 9);
	put(scene, "sub/n-00005-of-00009", 1);
	put(scene, "sub/m-00000-of-00002", 1);
	find_gaps(scene, found);
	assert_string_equal(
		found,
		"sub/m-00001-of-00002: is missing; name the files one by one to do without it\n"
		"sub/n-00000-of-00009.gz: is missing; name the files one by one to do without it\n"
		"sub/n-00002-of-00009.gz to -00004-of-00009.gz: 3 files are missing; name the "
		"files "
		"one by one to do without them\n"
		"sub/n-00005-of-00009.gz: is there twice, packed and not: sub/n-00005-of-00009\n"
		"sub/n-00007-of-00009.gz to -00008-of-00009.gz: 2 files are missing; name the "
		"files "
		"one by one to do without them\n"
		"sub/n-00012-of-00009.gz: is one file too many: by their names there are 9\n"
		"sub/n-00013-of-00009.gz: is one file too many: by their names there are 9\n");
	/* Every other of 200, and one that claims a thousand million. */
	for (unsigned i = 1; i < 200; i += 2) {
		put_numbered(scene, i, i + 1, 200);
	}
	put(scene, "sub/o-00000-of-999999999", 1);
	find_gaps(scene, found);
	for (unsigned i = 0; i < 2 * 64; i += 2) {
		snprintf(line, sizeof(line), "sub/n-%05u-of-00200.gz: is missing", i);
		assert_non_null(strstr(found, line));
	}
	assert_null(strstr(found, "sub/n-00128-of-00200.gz: is missing"));
	assert_non_null(strstr(found, "sub/n-*-of-00200.gz: 36 more gaps or files too many are not "
				      "listed\n"));
	assert_non_null(strstr(found, "sub/o-00001-of-999999999 to -999999998-of-999999999: "
				      "999999998 files are missing"));
}

/* Wherever memory ends, nothing is left over. */
static void
without_memory_nothing_is_left_over(void **state)
{
	struct scene *scene = *state;
	unsigned failures = 0;

	for (unsigned i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof(name), "sub/f%u", i);
		put(scene, name, 1);
	}
	for (unsigned fail_at = 1;; fail_at++) {
		struct heap_env heap = heap_env_make();
		struct wf_files files;
		heap.fail_at = fail_at;
		enum weft_status st = wf_files_list(&heap.env, "sub", &files);
		if (st == WEFT_OK) {
			st = wf_files_keep(&heap.env, &files, 0, 2);
			wf_files_fini(&heap.env, &files);
		}
		assert_int_equal(heap.out_bytes, 0);
		if (st == WEFT_OK) {
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		failures++;
	}
	assert_true(failures > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(items_become_files_in_their_order, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(a_file_with_the_name_of_a_pattern_is_that_file,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(a_list_file_names_files_folders_and_patterns,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_named_with_list_and_line,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(items_and_lists_that_say_nothing_are_refused,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(a_file_named_twice_is_refused, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(files_are_shared_by_their_places_in_the_sorted_set,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(numbered_files_are_shared_by_their_numbers,
						open_scene, close_scene),
		cmocka_unit_test_setup_teardown(a_trainer_without_a_file_is_refused, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(a_gap_in_a_numbered_set_is_named, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(all_gaps_of_a_numbered_set_are_found, open_scene,
						close_scene),
		cmocka_unit_test_setup_teardown(without_memory_nothing_is_left_over, open_scene,
						close_scene),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

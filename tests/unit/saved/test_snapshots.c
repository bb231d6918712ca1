/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot is there when its manifest is, and then its parts are whole; whichever call fails, and
 * wherever a process dies. Nothing that has a name is replaced, and nothing foreign is removed. */
#include "tests/unit/saved/faulty.h"

#include <sys/wait.h>

#include "base/assert.h"
#include "saved/snapshot.h"
#include "wire/head.h"

#define PART_COUNT 3u

static const struct wf_snapshot_id snap = {.epoch = 3, .step = 180};
#define SNAP "epoch-00003-step-0000000180"

static struct wf_saved_folder *
open_folder(struct scene *scene, const struct wf_saved_calls *calls)
{
	const struct wf_saved_place place = place_of(scene, calls);
	struct wf_saved_folder *folder = NULL;

	assert_ok(wf_snapshot_folder_open(&place, &folder));
	return folder;
}

/* One block, whose bytes follow from lane and step. */
static enum weft_status
write_part(struct wf_saved_folder *folder, struct wf_snapshot_id id, enum wf_service service,
	   uint32_t lane, struct wf_part_sum *sum)
{
	const struct wf_part_head head = {.service = (uint8_t)service,
					  .lane = lane,
					  .lane_count = service == WF_SERVICE_DENSE ? 2 : 1,
					  .epoch = id.epoch,
					  .step = id.step};
	const struct wf_part_block block = {.kind = WF_PART_SLICE, .count = 2, .bytes = 8};
	const uint32_t values[2] = {lane, (uint32_t)id.step};
	static struct wf_snapshot_file file;
	struct wf_part_writer *writer = NULL;
	char leaf[WF_MANIFEST_PART_NAME_BYTES];

	wf_manifest_part_name(service, lane, leaf);
	enum weft_status st = wf_snapshot_part_begin(folder, id, leaf, &file);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_part_create(folder->env, &file.spot, &head, &writer);
	if (st == WEFT_OK) {
		st = wf_part_put(writer, &block, values);
		st = wf_part_finish(writer, st, sum);
	}
	return wf_snapshot_part_end(&file, st);
}

static enum weft_status
write_parts(struct wf_saved_folder *folder, struct wf_snapshot_id id,
	    struct wf_part_sum sum[PART_COUNT])
{
	enum weft_status st = write_part(folder, id, WF_SERVICE_DENSE, 0, &sum[0]);
	if (st == WEFT_OK) {
		st = write_part(folder, id, WF_SERVICE_DENSE, 1, &sum[1]);
	}
	return st == WEFT_OK ? write_part(folder, id, WF_SERVICE_SPARSE, 0, &sum[2]) : st;
}

static enum weft_status
write_manifest(struct wf_saved_folder *folder, struct wf_snapshot_id id,
	       const struct wf_part_sum sum[PART_COUNT])
{
	struct wf_manifest_tensor tensor = {.name = "w", .rows = 2, .cols = 2};
	struct wf_manifest_part part[PART_COUNT];
	const struct wf_manifest manifest = {.about = about_pass(1, id.step),
					     .parts = {.epoch = id.epoch,
						       .dense_lanes = 2,
						       .sparse_lanes = 1,
						       .pserver_count = 1,
						       .trainer_count = 1,
						       .part_count = PART_COUNT,
						       .part = part},
					     .tensor_count = 1,
					     .tensor = &tensor};

	for (uint32_t i = 0; i < PART_COUNT; i++) {
		wf_manifest_part_at(&manifest.parts, i, &part[i]);
		part[i].bytes = sum[i].bytes;
		part[i].crc = sum[i].crc;
	}
	return wf_snapshot_manifest_write(folder, id, &manifest);
}

static enum weft_status
write_snapshot(struct wf_saved_folder *folder, struct wf_snapshot_id id)
{
	struct wf_part_sum sum[PART_COUNT];

	enum weft_status st = write_parts(folder, id, sum);
	return st == WEFT_OK ? write_manifest(folder, id, sum) : st;
}

static enum weft_status
open_and_verify(struct scene *scene, struct wf_snapshot_id id)
{
	struct wf_snapshot *snapshot = NULL;

	enum weft_status st =
		wf_snapshot_open(&scene->failing.env, wf_saved_posix(), scene->dir, id, &snapshot);
	if (st == WEFT_OK) {
		st = wf_snapshot_verify(snapshot);
	}
	wf_snapshot_close(snapshot);
	return st;
}

static uint32_t
count_snapshots(struct scene *scene)
{
	struct wf_snapshot_list list;

	assert_ok(wf_snapshot_list(&scene->failing.env, wf_saved_posix(), scene->dir, &list));
	const uint32_t count = list.count;
	wf_snapshot_list_fini(&scene->failing.env, &list);
	return count;
}

static bool
exists(const struct scene *scene, const char *a, const char *b)
{
	struct stat info;

	return lstat(at(scene, a, b), &info) == 0;
}

static void
snapshots_are_listed_newest_first_and_verify(void **state)
{
	static const struct wf_snapshot_id ids[] = {
		{2, 100}, {1, 900}, {2, 20}, {UINT64_MAX, UINT64_MAX}, {0, 0}, {2, 1000}};
	static const size_t order[] = {3, 5, 0, 2, 1, 4};
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_snapshot_list list;
	struct wf_part_sum sum;
	struct wf_snapshot_id id;

	for (size_t i = 0; i < WF_ARRAY_COUNT(ids); i++) {
		assert_ok(write_snapshot(folder, ids[i]));
		assert_ok(open_and_verify(scene, ids[i]));
	}
	/* None of these is a snapshot. */
	assert_ok(write_part(folder, (struct wf_snapshot_id){9, 9}, WF_SERVICE_DENSE, 0, &sum));
	assert_int_equal(mkdir(at(scene, "epoch-3-step-0000000180", ""), 0777), 0);
	write_text(at(scene, "epoch-3-step-0000000180", "manifest"), "");
	write_text(at(scene, "epoch-00008-step-0000000180", ""), "a file");
	assert_int_equal(symlink(at(scene, "epoch-00002-step-0000000020", ""),
				 at(scene, "epoch-00007-step-0000000001", "")),
			 0);
	assert_ok(wf_snapshot_list(&scene->failing.env, &faulty, scene->dir, &list));
	assert_int_equal(list.count, WF_ARRAY_COUNT(ids));
	for (size_t i = 0; i < list.count; i++) {
		assert_int_equal(list.id[i].epoch, ids[order[i]].epoch);
		assert_int_equal(list.id[i].step, ids[order[i]].step);
	}
	wf_snapshot_list_fini(&scene->failing.env, &list);
	wf_saved_folder_close(folder);
	assert_true(wf_snapshot_of_name(SNAP, &id) && id.epoch == 3 && id.step == 180);
	assert_false(wf_snapshot_of_name("epoch-00003-step-00000000180", &id));
	assert_false(wf_snapshot_of_name("epoch- 3-step-0000000180", &id));
	assert_false(wf_snapshot_of_name("epoch-18446744073709551616-step-0000000180", &id));
}

static void
a_name_that_exists_is_never_replaced(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_part_sum sum[PART_COUNT];

	assert_ok(write_snapshot(folder, snap));
	assert_refused(write_parts(folder, snap, sum), WEFT_IO, SNAP "/dense-0: exists already");
	assert_int_equal(names_in(at(scene, SNAP, ""), false), PART_COUNT + 1);
	for (unsigned i = 0; i < PART_COUNT; i++) {
		sum[i] = (struct wf_part_sum){.bytes = 200, .crc = 1};
	}
	assert_refused(write_manifest(folder, snap, sum), WEFT_IO, "manifest: exists already");
	assert_ok(open_and_verify(scene, snap));
	/* Not a link either, though it leads nowhere. */
	assert_int_equal(unlink(at(scene, SNAP, "sparse-0")), 0);
	assert_int_equal(symlink("nowhere", at(scene, SNAP, "sparse-0")), 0);
	assert_refused(write_part(folder, snap, WF_SERVICE_SPARSE, 0, &sum[2]), WEFT_IO,
		       "sparse-0: exists already");
	assert_false(exists(scene, SNAP, "nowhere"));
	wf_saved_folder_close(folder);
}

static void
a_link_in_place_of_the_directory_is_not_followed(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_part_sum sum;

	assert_int_equal(mkdir(at(scene, "elsewhere", ""), 0777), 0);
	assert_int_equal(symlink("elsewhere", at(scene, SNAP, "")), 0);
	assert_refused(write_part(folder, snap, WF_SERVICE_DENSE, 0, &sum), WEFT_IO,
		       "cannot be opened as a folder");
	assert_int_equal(names_in(at(scene, "elsewhere", ""), false), 0);
	assert_refused(wf_snapshot_remove_manifest(folder, snap), WEFT_IO, "is a link or a file");
	assert_refused(wf_snapshot_remove_parts(folder, snap), WEFT_IO, "is a link or a file");
	wf_snapshot_sweep(folder, NULL);
	assert_true(exists(scene, SNAP, ""));
	wf_saved_folder_close(folder);
}

/* What is there is whole: each part that has its name, and with the manifest all of them. */
static void
check_what_is_there(struct scene *scene)
{
	static const char *const names[PART_COUNT] = {"dense-0", "dense-1", "sparse-0"};
	struct wf_part_head head;
	struct wf_part_sum sum;

	for (size_t i = 0; i < PART_COUNT; i++) {
		if (exists(scene, SNAP, names[i])) {
			assert_ok(wf_part_check(&scene->failing.env, wf_saved_posix(),
						at(scene, SNAP, names[i]), &head, &sum));
		}
	}
	if (exists(scene, SNAP, "manifest")) {
		assert_int_equal(count_snapshots(scene), 1);
		assert_ok(open_and_verify(scene, snap));
	} else {
		assert_int_equal(count_snapshots(scene), 0);
	}
}

static void
a_failing_call_leaves_nothing_of_its_file(void **state)
{
	struct scene *scene = *state;
	unsigned failures = 0;

	for (unsigned nth = 1;; nth++) {
		struct wf_saved_folder *folder = open_folder(scene, sound());
		plan.fault = FAIL_ONCE;
		plan.error = ENOSPC;
		plan.nth = nth;
		plan.count = 0;
		enum weft_status st = write_snapshot(folder, snap);
		const bool is_over = plan.count < nth;
		plan.nth = 0;
		/* The close of a directory may fail unnoticed. */
		if (st != WEFT_OK) {
			failures++;
			assert_refused(st, WEFT_IO, strerror(ENOSPC));
			assert_non_null(strstr(weft_last_error(), scene->dir));
			assert_false(exists(scene, SNAP, "manifest"));
		}
		check_what_is_there(scene);
		if (exists(scene, SNAP, "")) {
			assert_int_equal(names_in(at(scene, SNAP, ""), true), 0);
			assert_true(names_in(at(scene, SNAP, ""), false) > 0);
		}
		assert_ok(wf_snapshot_remove_manifest(folder, snap));
		assert_ok(wf_snapshot_remove_parts(folder, snap));
		assert_int_equal(names_in(scene->dir, false), 0);
		wf_saved_folder_close(folder);
		if (is_over) {
			assert_ok(st);
			break;
		}
	}
	assert_true(failures > 4 * 7);
}

static void
a_death_at_any_call_leaves_whole_files_and_a_sweep_the_rest(void **state)
{
	struct scene *scene = *state;
	unsigned with_manifest = 0;
	unsigned swept = 0;

	for (unsigned nth = 1;; nth++) {
		int status = 0;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct wf_saved_folder *folder = open_folder(scene, sound());
			plan.fault = DIE;
			plan.nth = nth;
			plan.count = 0;
			_exit(write_snapshot(folder, snap) == WEFT_OK ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		check_what_is_there(scene);
		const bool has_manifest = exists(scene, SNAP, "manifest");
		with_manifest += has_manifest;
		struct wf_saved_folder *folder = open_folder(scene, sound());
		wf_snapshot_sweep(folder, &snap);
		check_what_is_there(scene);
		wf_snapshot_sweep(folder, NULL);
		assert_int_equal(exists(scene, SNAP, ""), has_manifest);
		swept += !has_manifest;
		if (has_manifest) {
			assert_int_equal(names_in(at(scene, SNAP, ""), false), PART_COUNT + 1);
			assert_ok(open_and_verify(scene, snap));
			assert_ok(wf_snapshot_remove_manifest(folder, snap));
			assert_ok(wf_snapshot_remove_parts(folder, snap));
		}
		assert_int_equal(names_in(scene->dir, false), 0);
		wf_saved_folder_close(folder);
		if (WEXITSTATUS(status) == 0) {
			break;
		}
		assert_int_equal(WEXITSTATUS(status), 3);
	}
	assert_true(with_manifest >= 2 && swept > 30);
}

static void
a_death_during_removal_never_leaves_a_manifest_of_missing_parts(void **state)
{
	struct scene *scene = *state;

	for (unsigned nth = 1;; nth++) {
		int status = 0;
		struct wf_saved_folder *folder = open_folder(scene, sound());
		wf_snapshot_sweep(folder, NULL);
		if (!exists(scene, SNAP, "")) {
			assert_ok(write_snapshot(folder, snap));
		}
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			plan.fault = DIE;
			plan.nth = nth;
			plan.count = 0;
			bool is_done = wf_snapshot_remove_manifest(folder, snap) == WEFT_OK &&
				       wf_snapshot_remove_parts(folder, snap) == WEFT_OK;
			_exit(is_done ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		wf_saved_folder_close(folder);
		check_what_is_there(scene);
		if (WEXITSTATUS(status) == 0) {
			break;
		}
	}
	assert_int_equal(names_in(scene->dir, false), 0);
}

/* Order of what makes things durable, as a machine that loses power needs it. */
static char journal[2000];

static void
note(const char *what, const char *name)
{
	const size_t used = strlen(journal);
	snprintf(journal + used, sizeof(journal) - used, "%s%s ", what,
		 strstr(name, ".tmp-") != NULL ? "tmp" : name);
}

static int
noted_fsync(int fd)
{
	char link[64];
	char path[600] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_true(readlink(link, path, sizeof(path) - 1) > 0);
	note("sync:", strrchr(path, '/') + 1);
	return 0;
}

static int
noted_claim_name(int folder, const char *from, const char *to)
{
	note("name:", to);
	return wf_saved_posix()->claim_name(folder, from, to);
}

static int
noted_unlinkat(int folder, const char *name, int flags)
{
	note("unlink:", name);
	return wf_saved_posix()->unlinkat(folder, name, flags);
}

static void
names_and_contents_are_durable_in_the_right_order(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_calls calls = *wf_saved_posix();
	struct wf_saved_folder *folder = NULL;
	struct wf_part_sum sum[PART_COUNT];
	const char *top = strrchr(scene->dir, '/') + 1;
	char want[400];

	calls.fsync = noted_fsync;
	calls.claim_name = noted_claim_name;
	calls.unlinkat = noted_unlinkat;
	journal[0] = '\0';
	folder = open_folder(scene, &calls);
	assert_string_equal(journal, "sync:tmp ");
	for (unsigned i = 0; i < 2; i++) { /* the second finds the directory, and syncs too */
		journal[0] = '\0';
		assert_ok(write_part(folder, snap, WF_SERVICE_DENSE, i, &sum[i]));
		snprintf(want, sizeof(want), "sync:%s sync:tmp name:dense-%u sync:" SNAP " ", top,
			 i);
		assert_string_equal(journal, want);
	}
	assert_ok(write_part(folder, snap, WF_SERVICE_SPARSE, 0, &sum[2]));
	journal[0] = '\0';
	assert_ok(write_manifest(folder, snap, sum));
	snprintf(want, sizeof(want), "sync:%s sync:tmp name:manifest sync:" SNAP " ", top);
	assert_string_equal(journal, want);
	journal[0] = '\0';
	assert_refused(wf_snapshot_remove_parts(folder, snap), WEFT_INVALID, "has its manifest");
	assert_string_equal(journal, "");
	assert_ok(wf_snapshot_remove_manifest(folder, snap));
	assert_string_equal(journal, "unlink:manifest sync:" SNAP " ");
	assert_ok(wf_snapshot_remove_parts(folder, snap));
	assert_ok(wf_snapshot_remove_manifest(folder, snap));
	assert_ok(wf_snapshot_remove_parts(folder, snap));
	wf_saved_folder_close(folder);
}

static void
foreign_files_stay_and_keep_what_is_beside_them(void **state)
{
	static const char *const names[] = {
		"notes",   "dense-00",         "dense-65536",
		"dense-",  ".dense-0.tmp-123", ".x.tmp-0123456789abcdef",
		"dense-0~"};
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_part_sum sum;

	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		assert_ok(write_part(folder, snap, WF_SERVICE_DENSE, 0, &sum));
		write_text(at(scene, SNAP, names[i]), "mine");
		wf_snapshot_sweep(folder, NULL);
		assert_true(exists(scene, SNAP, "dense-0"));
		assert_refused(wf_snapshot_remove_parts(folder, snap), WEFT_IO, names[i]);
		assert_true(exists(scene, SNAP, "dense-0"));
		assert_true(text_is(at(scene, SNAP, names[i]), "mine"));
		assert_int_equal(unlink(at(scene, SNAP, names[i])), 0);
		assert_ok(wf_snapshot_remove_parts(folder, snap));
	}
	/* A name of weft that is no file. */
	assert_ok(write_snapshot(folder, snap));
	assert_int_equal(mkdir(at(scene, SNAP, "dense-7"), 0777), 0);
	assert_refused(wf_snapshot_remove_manifest(folder, snap), WEFT_IO, "dense-7");
	assert_true(exists(scene, SNAP, "manifest"));
	assert_int_equal(rmdir(at(scene, SNAP, "dense-7")), 0);
	/* Directories of other names, and passes, are nobody's business here. */
	assert_int_equal(mkdir(at(scene, "epoch-00003-step-180", ""), 0777), 0);
	assert_int_equal(mkdir(at(scene, ".pass-00003.tmp-1", ""), 0777), 0);
	wf_snapshot_sweep(folder, NULL);
	assert_true(exists(scene, "epoch-00003-step-180", ""));
	assert_true(exists(scene, ".pass-00003.tmp-1", ""));
	assert_ok(open_and_verify(scene, snap));
	wf_saved_folder_close(folder);
}

static void
a_sweep_removes_temporaries_beside_a_manifest(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());

	assert_ok(write_snapshot(folder, snap));
	write_text(at(scene, SNAP, ".dense-1.tmp-0123456789abcdef"), "half");
	write_text(at(scene, SNAP, ".manifest.tmp-0123456789abcdef"), "half");
	wf_snapshot_sweep(folder, &snap);
	assert_int_equal(names_in(at(scene, SNAP, ""), true), 2);
	wf_snapshot_sweep(folder, NULL);
	assert_int_equal(names_in(at(scene, SNAP, ""), true), 0);
	assert_ok(open_and_verify(scene, snap));
	wf_saved_folder_close(folder);
}

/* Copies a file, which must not exist. */
static void
copy_file(const char *from, const char *to)
{
	char bytes[1000];
	FILE *in = fopen(from, "rbe");
	FILE *out = fopen(to, "wbxe");

	assert_true(in != NULL && out != NULL);
	const size_t count = fread(bytes, 1, sizeof(bytes), in);
	assert_int_equal(fwrite(bytes, 1, count, out), count);
	assert_int_equal(fclose(in), 0);
	assert_int_equal(fclose(out), 0);
}

static void
parts_that_are_not_what_the_manifest_names_are_refused(void **state)
{
	static const struct wf_snapshot_id older = {.epoch = 3, .step = 179};
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_part_sum sum[PART_COUNT];

	assert_ok(write_snapshot(folder, snap));
	assert_ok(write_snapshot(folder, older));
	assert_int_equal(unlink(at(scene, SNAP, "dense-1")), 0);
	assert_refused(open_and_verify(scene, snap), WEFT_DATA, SNAP "/dense-1: cannot be opened");
	copy_file(at(scene, SNAP, "dense-0"), at(scene, SNAP, "dense-1"));
	assert_refused(open_and_verify(scene, snap), WEFT_DATA, "dense lane 0 of 2: it is not the");
	assert_int_equal(unlink(at(scene, SNAP, "dense-1")), 0);
	copy_file(at(scene, "epoch-00003-step-0000000179", "dense-1"), at(scene, SNAP, "dense-1"));
	assert_refused(open_and_verify(scene, snap), WEFT_DATA, "is of epoch 3 and step 179");
	assert_int_equal(unlink(at(scene, SNAP, "dense-1")), 0);
	assert_ok(write_part(folder, snap, WF_SERVICE_DENSE, 1, &sum[1]));
	assert_ok(open_and_verify(scene, snap));

	/* A manifest that names another content, and the manifest of another snapshot. */
	assert_ok(wf_snapshot_remove_manifest(folder, snap));
	assert_ok(wf_snapshot_remove_parts(folder, snap));
	assert_ok(write_parts(folder, snap, sum));
	sum[2].crc ^= 1;
	assert_ok(write_manifest(folder, snap, sum));
	assert_refused(open_and_verify(scene, snap), WEFT_DATA, "sparse-0: has 172 bytes and");
	assert_int_equal(unlink(at(scene, SNAP, "manifest")), 0);
	copy_file(at(scene, "epoch-00003-step-0000000179", "manifest"),
		  at(scene, SNAP, "manifest"));
	assert_refused(open_and_verify(scene, snap), WEFT_DATA, "not the manifest of this");
	wf_saved_folder_close(folder);
}

static void
a_manifest_that_could_not_be_read_back_is_not_written(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_part_sum sum[PART_COUNT];

	assert_ok(write_parts(folder, snap, sum));
	sum[1].bytes = UINT64_MAX;
	assert_refused(write_manifest(folder, snap, sum), WEFT_INVALID, "must end with bytes");
	assert_int_equal(names_in(at(scene, SNAP, ""), false), PART_COUNT);
	wf_saved_folder_close(folder);
}

static void
a_snapshot_is_no_pass(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_saved *saved = NULL;

	assert_ok(write_snapshot(folder, snap));
	assert_refused(
		wf_saved_open(&scene->failing.env, wf_saved_posix(), at(scene, SNAP, ""), &saved),
		WEFT_DATA, "is a snapshot of pservers, not a pass");
	wf_saved_folder_close(folder);
}

static void
without_memory_nothing_is_left_and_nothing_leaks(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_snapshot_list list = {0};
	unsigned refused = 0;

	for (uint64_t nth = 1;; nth++) {
		wf_failing_env_fail(&scene->failing, nth, false);
		enum weft_status st = write_snapshot(folder, snap);
		if (st == WEFT_OK) {
			st = wf_snapshot_list(&scene->failing.env, &faulty, scene->dir, &list);
		}
		if (st == WEFT_OK) {
			wf_snapshot_list_fini(&scene->failing.env, &list);
			st = open_and_verify(scene, snap);
		}
		const bool is_over = scene->failing.failed == 0;
		wf_failing_env_fail(&scene->failing, 0, false);
		if (is_over) {
			assert_ok(st);
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		refused++;
		assert_ok(wf_snapshot_remove_manifest(folder, snap));
		assert_ok(wf_snapshot_remove_parts(folder, snap));
	}
	assert_true(refused > 8);
	wf_saved_folder_close(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(snapshots_are_listed_newest_first_and_verify),
		WITH_SCENE(a_name_that_exists_is_never_replaced),
		WITH_SCENE(a_link_in_place_of_the_directory_is_not_followed),
		WITH_SCENE(a_failing_call_leaves_nothing_of_its_file),
		WITH_SCENE(a_death_at_any_call_leaves_whole_files_and_a_sweep_the_rest),
		WITH_SCENE(a_death_during_removal_never_leaves_a_manifest_of_missing_parts),
		WITH_SCENE(names_and_contents_are_durable_in_the_right_order),
		WITH_SCENE(foreign_files_stay_and_keep_what_is_beside_them),
		WITH_SCENE(a_sweep_removes_temporaries_beside_a_manifest),
		WITH_SCENE(parts_that_are_not_what_the_manifest_names_are_refused),
		WITH_SCENE(a_manifest_that_could_not_be_read_back_is_not_written),
		WITH_SCENE(a_snapshot_is_no_pass),
		WITH_SCENE(without_memory_nothing_is_left_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

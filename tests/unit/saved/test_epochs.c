/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a snapshot directory are read as they were made, in their order; whatever else is
 * in their place is refused by name. A record is durable before anybody goes on, and none is
 * replaced. The history that they make is that of an oracle that goes through all snapshots. */
#include "tests/unit/saved/faulty.h"

#include "base/crc32c.h"
#include "base/rng.h"
#include "saved/epochs.h"

#define RECORD_BYTES_MAX 300u

static const struct wf_epoch_record beginning = {0};
static const struct wf_epoch_record ending = {.is_end = true};

static struct wf_epoch_record
based_on(uint64_t epoch, uint64_t step)
{
	return (struct wf_epoch_record){.has_base = true, .base = {.epoch = epoch, .step = step}};
}

static struct wf_saved_folder *
open_folder(struct scene *scene, const struct wf_saved_calls *calls)
{
	const struct wf_saved_place place = place_of(scene, calls);
	struct wf_saved_folder *folder = NULL;

	assert_ok(wf_snapshot_folder_open(&place, &folder));
	return folder;
}

static enum weft_status
add(struct wf_saved_folder *folder, struct wf_epoch_record record, struct wf_epochs *epochs)
{
	return wf_epochs_add(folder->env, folder, &record, epochs);
}

static void
assert_same(const struct wf_epochs *epochs, const struct wf_epoch_record *record, uint64_t count)
{
	assert_int_equal(epochs->count, count);
	for (uint64_t i = 0; i < count; i++) {
		assert_int_equal(epochs->record[i].is_end, record[i].is_end);
		assert_int_equal(epochs->record[i].has_base, record[i].has_base);
		assert_int_equal(epochs->record[i].base.epoch, record[i].base.epoch);
		assert_int_equal(epochs->record[i].base.step, record[i].base.step);
	}
}

static void
assert_reads(struct wf_saved_folder *folder, const struct wf_epoch_record *record, uint64_t count)
{
	struct wf_epochs epochs;

	assert_ok(wf_epochs_read(folder->env, folder, &epochs));
	assert_same(&epochs, record, count);
	wf_epochs_fini(folder->env, &epochs);
}

/* Why the records cannot be read. */
static enum weft_status
read_and_forget(struct wf_saved_folder *folder)
{
	struct wf_epochs epochs = {0};

	enum weft_status st = wf_epochs_read(folder->env, folder, &epochs);
	wf_epochs_fini(folder->env, &epochs);
	return st;
}

static void
records_are_read_as_they_were_made(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	const struct wf_epoch_record record[] = {
		beginning, based_on(1, 180),        based_on(2, 0), ending,
		beginning, based_on(1, UINT64_MAX), based_on(6, 1), ending};
	struct wf_epochs epochs = {0};

	assert_reads(folder, record, 0);
	assert_false(wf_epochs_are_open(&epochs));
	for (uint64_t i = 0; i < WF_ARRAY_COUNT(record); i++) {
		assert_ok(add(folder, record[i], &epochs));
		assert_same(&epochs, record, i + 1);
		assert_reads(folder, record, i + 1);
		assert_int_equal(wf_epochs_are_open(&epochs), !record[i].is_end);
	}
	assert_int_equal(names_in(scene->dir, false), WF_ARRAY_COUNT(record));
	wf_epochs_fini(folder->env, &epochs);
	assert_int_equal(epochs.count, 0);
	wf_saved_folder_close(folder);
}

static void
a_record_that_exists_is_not_replaced(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	const struct wf_epoch_record record[] = {beginning, based_on(1, 7)};
	struct wf_epochs first = {0};
	struct wf_epochs second;

	/* Two processes have read the same, and each goes on with the job. */
	assert_ok(add(folder, record[0], &first));
	assert_ok(wf_epochs_read(folder->env, folder, &second));
	assert_ok(add(folder, record[1], &first));
	assert_refused(add(folder, based_on(1, 8), &second), WEFT_IO,
		       "/record-00002: exists already: another process goes on with this job");
	assert_same(&second, record, 1);
	assert_reads(folder, record, 2);
	assert_int_equal(names_in(scene->dir, false), 2);
	/* A link to nothing is not followed either. */
	assert_int_equal(symlink("nowhere", at(scene, "record-00003", "")), 0);
	assert_refused(add(folder, ending, &first), WEFT_IO, "/record-00003: exists already");
	assert_int_equal(names_in(scene->dir, false), 3);
	wf_epochs_fini(folder->env, &first);
	wf_epochs_fini(folder->env, &second);
	wf_saved_folder_close(folder);
}

/* A whole file; returns its bytes. */
static size_t
read_file(const char *path, char bytes[RECORD_BYTES_MAX])
{
	FILE *file = fopen(path, "rbe");

	assert_non_null(file);
	size_t count = fread(bytes, 1, RECORD_BYTES_MAX, file);
	assert_int_equal(fclose(file), 0);
	return count;
}

static void
write_file(const char *path, const char *bytes, size_t count)
{
	FILE *file = fopen(path, "wbe");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

/* A record of these lines, with the checksum that belongs to them. */
static void
write_record(const struct scene *scene, const char *name, const char *lines)
{
	char text[RECORD_BYTES_MAX];

	snprintf(text, sizeof(text), "%scrc32c %08x\n", lines, wf_crc32c(0, lines, strlen(lines)));
	write_text(at(scene, name, ""), text);
}

static void
a_record_with_any_bit_changed_or_any_byte_missing_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	const struct wf_epoch_record record[] = {beginning, based_on(1, 180), ending};
	struct wf_epochs epochs = {0};
	char whole[RECORD_BYTES_MAX];

	for (unsigned i = 0; i < 3; i++) {
		char name[20];
		char why[80];
		assert_ok(add(folder, record[i], &epochs));
		snprintf(name, sizeof(name), "record-%05u", i + 1);
		snprintf(why, sizeof(why), "/%s: is not the record of epoch %u", name, i + 1);
		const char *path = at(scene, name, "");
		const size_t count = read_file(path, whole);
		for (size_t bit = 0; bit < 8 * count; bit++) {
			whole[bit / 8] ^= (char)(1 << bit % 8);
			write_file(path, whole, count);
			assert_refused(read_and_forget(folder), WEFT_DATA, why);
			whole[bit / 8] ^= (char)(1 << bit % 8);
		}
		for (size_t bytes = 0; bytes < count; bytes++) {
			write_file(path, whole, bytes);
			assert_refused(read_and_forget(folder), WEFT_DATA, why);
		}
		for (size_t more = 1; more < 100; more += 33) {
			char longer[2 * RECORD_BYTES_MAX] = {0};
			memcpy(longer, whole, count);
			write_file(path, longer, count + more);
			assert_refused(read_and_forget(folder), WEFT_DATA, why);
		}
		write_file(path, whole, count);
		assert_reads(folder, record, i + 1);
	}
	wf_epochs_fini(folder->env, &epochs);
	wf_saved_folder_close(folder);
}

/* What lies in its words, behind a checksum that is right. */
static void
a_record_that_lies_is_refused(void **state)
{
	static const struct {
		const char *lines, *why;
	} lies[] = {
		{"weft record 2\nepoch 2\nbegins nothing\n", "/record-00002: is not"},
		{"weft record 1\nepoch 1\nbegins nothing\n", "/record-00002: is not"},
		{"weft record 1\nepoch 3\nbegins nothing\n", "/record-00002: is not"},
		{"weft record 1\nepoch 02\nbegins nothing\n", "/record-00002: is not"},
		{"weft record 1\nepoch 2\nbegins nothing \n", "/record-00002: is not"},
		{"weft record 1\nepoch 2\nbegins 1\n", "/record-00002: is not"},
		{"weft record 1\nepoch 2\nbegins 1 -1\n", "/record-00002: is not"},
		{"weft record 1\nepoch 2\nbegins 1 2 3\n", "/record-00002: is not"},
		{"weft record 1\nepoch 2\nbegins 1 18446744073709551616\n",
		 "/record-00002: is not"},
		{"weft record 1\nepoch 2\nends\nends\n", "/record-00002: is not"},
		{"", "/record-00002: is not"},
		{"weft record 1\nepoch 2\nbegins 0 5\n", "a snapshot of epoch 0, which did not"},
		{"weft record 1\nepoch 2\nbegins 2 5\n", "a snapshot of epoch 2, which did not"},
		{"weft record 1\nepoch 2\nbegins 9 5\n", "a snapshot of epoch 9, which did not"},
		{"weft record 1\nepoch 2\nbegins 18446744073709551615 5\n",
		 "18446744073709551615, which did not begin before it"},
	};
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());

	write_record(scene, "record-00001", "weft record 1\nepoch 1\nbegins nothing\n");
	for (size_t i = 0; i < WF_ARRAY_COUNT(lies); i++) {
		write_record(scene, "record-00002", lies[i].lines);
		assert_refused(read_and_forget(folder), WEFT_DATA, lies[i].why);
	}
	/* Of the epoch of an end there are no snapshots. */
	write_record(scene, "record-00002", "weft record 1\nepoch 2\nends\n");
	assert_ok(read_and_forget(folder));
	write_record(scene, "record-00003", "weft record 1\nepoch 3\nbegins 2 5\n");
	assert_refused(read_and_forget(folder), WEFT_DATA, "epoch 3 begins with a snapshot of");
	wf_saved_folder_close(folder);
}

static void
a_link_or_a_directory_in_place_of_a_record_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());

	write_record(scene, "elsewhere", "weft record 1\nepoch 1\nbegins nothing\n");
	assert_int_equal(symlink("elsewhere", at(scene, "record-00001", "")), 0);
	assert_int_not_equal(read_and_forget(folder), WEFT_OK);
	assert_non_null(strstr(weft_last_error(), "/record-00001"));
	assert_int_equal(unlink(at(scene, "record-00001", "")), 0);
	assert_int_equal(mkdir(at(scene, "record-00001", ""), 0777), 0);
	assert_int_not_equal(read_and_forget(folder), WEFT_OK);
	assert_non_null(strstr(weft_last_error(), "/record-00001"));
	wf_saved_folder_close(folder);
}

static void
a_missing_record_with_later_ones_is_refused(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());

	write_record(scene, "record-00001", "weft record 1\nepoch 1\nbegins nothing\n");
	write_record(scene, "record-00003", "weft record 1\nepoch 3\nbegins 1 5\n");
	assert_refused(read_and_forget(folder), WEFT_DATA, "/record-00002");
	wf_saved_folder_close(folder);
}

/* Order of what makes a record durable, as a machine that loses power needs it. */
static char journal[1000];

static void
note(const char *what, const char *name)
{
	const size_t used = strlen(journal);
	snprintf(journal + used, sizeof(journal) - used, "%s%s ", what,
		 strstr(name, ".tmp-") != NULL ? "tmp" : name);
}

static ssize_t
noted_write(int fd, const void *bytes, size_t count)
{
	note("write", "");
	return wf_saved_posix()->write(fd, bytes, count);
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

static void
content_and_name_are_durable_before_add_returns(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_calls calls = *wf_saved_posix();
	struct wf_epochs epochs = {0};
	char want[200];

	calls.write = noted_write;
	calls.fsync = noted_fsync;
	calls.claim_name = noted_claim_name;
	struct wf_saved_folder *folder = open_folder(scene, &calls);
	for (unsigned i = 1; i <= 2; i++) {
		journal[0] = '\0';
		assert_ok(add(folder, i == 1 ? beginning : ending, &epochs));
		snprintf(want, sizeof(want), "write sync:tmp name:record-%05u sync:%s ", i,
			 strrchr(scene->dir, '/') + 1);
		assert_string_equal(journal, want);
	}
	wf_epochs_fini(folder->env, &epochs);
	wf_saved_folder_close(folder);
}

static void
a_failing_call_adds_nothing_to_what_is_known(void **state)
{
	struct scene *scene = *state;
	unsigned failures = 0;

	for (unsigned nth = 1;; nth++) {
		struct wf_saved_folder *folder = open_folder(scene, sound());
		const struct wf_epoch_record record[] = {beginning, based_on(1, 2)};
		struct wf_epochs epochs = {0};
		assert_ok(add(folder, record[0], &epochs));
		plan.fault = FAIL_ONCE;
		plan.error = ENOSPC;
		plan.nth = nth;
		plan.count = 0;
		enum weft_status st = add(folder, record[1], &epochs);
		const bool is_over = plan.count < nth;
		plan.nth = 0;
		assert_same(&epochs, record, st == WEFT_OK ? 2 : 1);
		assert_int_equal(names_in(scene->dir, true), 0);
		if (st != WEFT_OK) {
			failures++;
			assert_refused(st, WEFT_IO, strerror(ENOSPC));
			assert_non_null(strstr(weft_last_error(), scene->dir));
			/* It may have its name, and not be durable; never another content. */
			assert_reads(folder, record, names_in(scene->dir, false));
			(void)unlink(at(scene, "record-00002", ""));
		} else {
			assert_reads(folder, record, 2);
			assert_int_equal(unlink(at(scene, "record-00002", "")), 0);
		}
		assert_int_equal(unlink(at(scene, "record-00001", "")), 0);
		wf_epochs_fini(folder->env, &epochs);
		wf_saved_folder_close(folder);
		if (is_over) {
			assert_ok(st);
			break;
		}
	}
	assert_true(failures >= 6); /* open, write, sync, close, name, sync */
}

static void
without_memory_nothing_is_known_and_nothing_leaks(void **state)
{
	struct scene *scene = *state;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	struct wf_epochs epochs = {0};

	for (unsigned i = 0; i < 3; i++) {
		assert_ok(add(folder, beginning, &epochs));
	}
	for (uint64_t nth = 1; nth <= 4; nth++) {
		struct wf_epochs again = {0};
		wf_failing_env_fail(&scene->failing, nth, false);
		enum weft_status st = wf_epochs_read(folder->env, folder, &again);
		wf_failing_env_fail(&scene->failing, 0, false);
		assert_int_equal(st, nth <= 3 ? WEFT_NOMEM : WEFT_OK);
		assert_int_equal(again.count, nth <= 3 ? 0 : 3);
		wf_epochs_fini(folder->env, &again);
	}
	wf_epochs_fini(folder->env, &epochs);
	wf_saved_folder_close(folder);
}

#define CHAIN_MAX 9u
#define STEPS 4u

/* The history of random records, as an oracle has it: which of all snapshots (epoch, step) the
 * state after each record stands on. With record e the state is that of its base and whatever epoch
 * e then makes: all steps after the base's, and any step where it began with nothing. */
struct oracle {
	bool stands[CHAIN_MAX + 1][CHAIN_MAX + 1][STEPS]; /* [record][epoch][step] */
};

static void
oracle_add(struct oracle *oracle, uint64_t e, const struct wf_epoch_record *record)
{
	memset(oracle->stands[e], 0, sizeof(oracle->stands[e]));
	if (record->is_end) {
		return;
	}
	for (uint64_t epoch = 1; epoch < e && record->has_base; epoch++) {
		for (uint64_t step = 0; step < STEPS; step++) {
			/* What the base stood on when it was made. */
			bool is_older = epoch < record->base.epoch ||
					(epoch == record->base.epoch && step <= record->base.step);
			oracle->stands[e][epoch][step] =
				is_older && oracle->stands[record->base.epoch][epoch][step];
		}
	}
	for (uint64_t step = 0; step < STEPS; step++) {
		oracle->stands[e][e][step] = true;
	}
}

static struct wf_epoch_record
draw_record(struct wf_rng *rng, const struct wf_epochs *epochs)
{
	const uint64_t kind = wf_rng_below(rng, 8);
	const uint64_t base = epochs->count == 0 ? 0 : 1 + wf_rng_below(rng, epochs->count);

	if (kind == 0 || base == 0 || epochs->record[base - 1].is_end) {
		return kind == 1 && epochs->count > 0 ? ending : beginning;
	}
	return kind == 1 ? ending : based_on(base, wf_rng_below(rng, STEPS));
}

static void
the_history_is_that_of_an_oracle_for_random_chains(void **state)
{
	struct scene *scene = *state;
	const char *text = getenv("WEFT_SEED");
	const uint64_t first = text != NULL ? strtoull(text, NULL, 0) : 1;
	struct wf_saved_folder *folder = open_folder(scene, sound());
	static struct oracle oracle;
	unsigned had = 0;
	unsigned left = 0;

	for (uint64_t seed = first; seed < first + (text != NULL ? 1 : 300); seed++) {
		struct wf_epochs epochs = {0};
		struct wf_rng rng;
		wf_rng_init(&rng, seed, 81);
		while (epochs.count < CHAIN_MAX) {
			const struct wf_epoch_record record = draw_record(&rng, &epochs);
			assert_ok(add(folder, record, &epochs));
			const uint64_t e = epochs.count;
			oracle_add(&oracle, e, &record);
			for (uint64_t i = 0; i < (CHAIN_MAX + 2) * STEPS; i++) {
				const struct wf_snapshot_id id = {i / STEPS, i % STEPS};
				bool want = id.epoch >= 1 && id.epoch <= e &&
					    oracle.stands[e][id.epoch][id.step];
				if (wf_epochs_have(&epochs, &id) != want) {
					fail_msg("WEFT_SEED=%llu: after record %llu, epoch %llu "
						 "step %llu: it should%s be of the history",
						 (unsigned long long)seed, (unsigned long long)e,
						 (unsigned long long)id.epoch,
						 (unsigned long long)id.step, want ? "" : " not");
				}
				had += want && id.epoch < e;
				left += !want && id.epoch >= 1 && id.epoch < e;
			}
		}
		assert_reads(folder, epochs.record, epochs.count);
		for (uint64_t e = 1; e <= CHAIN_MAX; e++) {
			char name[20];
			snprintf(name, sizeof(name), "record-%05llu", (unsigned long long)e);
			assert_int_equal(unlink(at(scene, name, "")), 0);
		}
		wf_epochs_fini(folder->env, &epochs);
	}
	assert_true(text != NULL || (had > 1000 && left > 1000));
	wf_saved_folder_close(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCENE(records_are_read_as_they_were_made),
		WITH_SCENE(a_record_that_exists_is_not_replaced),
		WITH_SCENE(a_record_with_any_bit_changed_or_any_byte_missing_is_refused),
		WITH_SCENE(a_record_that_lies_is_refused),
		WITH_SCENE(a_link_or_a_directory_in_place_of_a_record_is_refused),
		WITH_SCENE(a_missing_record_with_later_ones_is_refused),
		WITH_SCENE(content_and_name_are_durable_before_add_returns),
		WITH_SCENE(a_failing_call_adds_nothing_to_what_is_known),
		WITH_SCENE(without_memory_nothing_is_known_and_nothing_leaks),
		WITH_SCENE(the_history_is_that_of_an_oracle_for_random_chains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

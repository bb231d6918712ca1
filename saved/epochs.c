/* SPDX-License-Identifier: Apache-2.0 */
/* epochs: see epochs.h. A record is four lines:
 *
 *     weft record 1
 *     epoch 2
 *     begins 1 180        or: begins nothing; ends
 *     crc32c 01234567
 */
#include "saved/epochs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/folder.h"

#define RECORD_BYTES 160u
#define EPOCHS_MAX 1000000u

static void
record_name(uint64_t epoch, char out[WF_SNAPSHOT_LEAF_BYTES])
{
	(void)snprintf(out, WF_SNAPSHOT_LEAF_BYTES, "record-%05" PRIu64, epoch);
}

/* The text, which has one spelling. Returns its bytes. */
static size_t
encode(uint64_t epoch, const struct wf_epoch_record *record, char out[RECORD_BYTES])
{
	char what[64] = "ends";
	if (!record->is_end) {
		(void)snprintf(what, sizeof(what), "begins nothing");
	}
	if (record->has_base) {
		(void)snprintf(what, sizeof(what), "begins %" PRIu64 " %" PRIu64,
			       record->base.epoch, record->base.step);
	}
	int used =
		snprintf(out, RECORD_BYTES, "weft record 1\nepoch %" PRIu64 "\n%s\n", epoch, what);
	WF_ASSERT(used > 0 && (size_t)used + 16 < RECORD_BYTES);
	uint32_t crc = wf_crc32c(0, out, (size_t)used);
	(void)snprintf(out + used, RECORD_BYTES - (size_t)used, "crc32c %08" PRIx32 "\n", crc);
	return (size_t)used + 16;
}

/* Reads what it can, and compares the whole with the one spelling. */
static bool
decode(const char *text, size_t bytes, uint64_t epoch, struct wf_epoch_record *out)
{
	char again[RECORD_BYTES];
	char what[64] = "";
	uint64_t of = 0;
	*out = (struct wf_epoch_record){0};
	if (sscanf(text, "weft record 1\nepoch %" SCNu64 "\n%63[^\n]", &of, what) != 2) {
		return false;
	}
	out->is_end = strcmp(what, "ends") == 0;
	out->has_base =
		sscanf(what, "begins %" SCNu64 " %" SCNu64, &out->base.epoch, &out->base.step) == 2;
	return encode(epoch, out, again) == bytes && memcmp(text, again, bytes) == 0;
}

/* The whole file, which is short. WEFT_CLOSED: there is none, and nothing is recorded. */
static enum weft_status
read_text(const struct wf_saved_folder *folder, const char *name, char *out, size_t *bytes)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved_file file;
	enum weft_status st = wf_saved_join(folder->path, name, path);
	if (st != WEFT_OK) {
		return st;
	}
	if (faccessat(folder->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
		return WEFT_CLOSED;
	}
	const struct wf_saved_spot spot = {folder->calls, folder->fd, path};
	st = wf_saved_file_open_at(&spot, &file);
	if (st != WEFT_OK) {
		return st;
	}
	*bytes = file.bytes < RECORD_BYTES ? (size_t)file.bytes : RECORD_BYTES - 1;
	st = wf_saved_file_read(&file, out, *bytes);
	wf_saved_file_close(&file);
	return st;
}

static enum weft_status
read_one(const struct wf_saved_folder *folder, uint64_t epoch, struct wf_epoch_record *out)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	char text[RECORD_BYTES] = "";
	size_t bytes = 0;
	record_name(epoch, name);
	enum weft_status st = read_text(folder, name, text, &bytes);
	if (st == WEFT_OK && !decode(text, bytes, epoch, out)) {
		return wf_fail(WEFT_DATA, "%s/%s: is not the record of epoch %" PRIu64,
			       folder->path, name, epoch);
	}
	return st;
}

static enum weft_status
append(struct wf_env *env, const struct wf_epoch_record *record, struct wf_epochs *epochs)
{
	const size_t count = epochs->count;
	struct wf_epoch_record *longer = wf_zalloc_array(env, count + 1, sizeof(*longer));
	if (longer == NULL) {
		return wf_fail(WEFT_NOMEM, "%zu records of epochs", count + 1);
	}
	if (count > 0) {
		memcpy(longer, epochs->record, count * sizeof(*longer));
	}
	longer[count] = *record;
	wf_free(env, epochs->record, count * sizeof(*longer));
	epochs->record = longer;
	epochs->count++;
	return WEFT_OK;
}

/* A job has run in the epoch. */
static bool
has_begun(const struct wf_epochs *epochs, uint64_t epoch)
{
	return epoch > 0 && epoch <= epochs->count && !epochs->record[epoch - 1].is_end;
}

/* The highest number of a record in the folder; 0: there is none. */
static enum weft_status
find_last(const struct wf_saved_folder *folder, uint64_t *out)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	uint64_t epoch = 0;
	DIR *names = wf_saved_names(folder->calls, folder->fd);
	if (names == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", folder->path);
	}
	*out = 0;
	for (struct dirent *e = readdir(names); e != NULL; e = readdir(names)) {
		if (sscanf(e->d_name, "record-%" SCNu64, &epoch) == 1 && epoch > *out) {
			record_name(epoch, name);
			*out = strcmp(name, e->d_name) == 0 ? epoch : *out;
		}
	}
	closedir(names);
	return WEFT_OK;
}

/* No record was lost behind the last one that was read: without it the job would go on from an
 * older history, under the numbers of epochs that have been. Records that another process adds
 * meanwhile come in their order. */
static enum weft_status
check_last(const struct wf_saved_folder *folder, uint64_t count)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	uint64_t last = 0;
	enum weft_status st = find_last(folder, &last);
	if (st != WEFT_OK || last <= count + 1) {
		return st;
	}
	record_name(count + 1, name);
	if (faccessat(folder->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_DATA,
		       "%s/%s: is missing, but there is the record of epoch %" PRIu64
		       "; bring it back, or begin anew in another directory",
		       folder->path, name, last);
}

enum weft_status
wf_epochs_read(struct wf_env *env, struct wf_saved_folder *folder, struct wf_epochs *out)
{
	struct wf_epochs epochs = {0};
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && epochs.count < EPOCHS_MAX) {
		struct wf_epoch_record record;
		st = read_one(folder, epochs.count + 1, &record);
		if (st == WEFT_OK && record.has_base && !has_begun(&epochs, record.base.epoch)) {
			st = wf_fail(WEFT_DATA,
				     "the record of epoch %" PRIu64
				     " begins with a snapshot of epoch %" PRIu64
				     ", which did not begin before it",
				     epochs.count + 1, record.base.epoch);
		}
		st = st == WEFT_OK ? append(env, &record, &epochs) : st;
	}
	st = st == WEFT_CLOSED ? check_last(folder, epochs.count) : st;
	if (st != WEFT_OK) {
		wf_epochs_fini(env, &epochs);
		return st;
	}
	*out = epochs;
	return WEFT_OK;
}

void
wf_epochs_fini(struct wf_env *env, struct wf_epochs *epochs)
{
	wf_free(env, epochs->record, epochs->count * sizeof(*epochs->record));
	*epochs = (struct wf_epochs){0};
}

/* The file under a name that no other process has. */
static enum weft_status
write_text(const struct wf_saved_spot *spot, const char *text, size_t bytes)
{
	struct wf_saved_file file;
	enum weft_status st = wf_saved_file_create(spot, &file);
	if (st == WEFT_OK) {
		st = wf_saved_file_write(&file, text, bytes);
		st = wf_saved_file_finish(&file, st);
	}
	return st;
}

/* Gives it its name, which nothing may have, and makes that durable. */
static enum weft_status
publish(const struct wf_saved_folder *folder, const char *temporary, const char *name)
{
	if (folder->calls->claim_name(folder->fd, temporary, name) == 0) {
		return wf_saved_sync_folder(folder->calls, folder->fd, folder->path);
	}
	return errno == EEXIST
		       ? wf_fail(WEFT_IO,
				 "%s/%s: exists already: another process goes on with this job",
				 folder->path, name)
		       : wf_fail_errno(WEFT_IO, errno, "%s/%s: cannot be renamed to %s",
				       folder->path, temporary, name);
}

enum weft_status
wf_epochs_add(struct wf_env *env, struct wf_saved_folder *folder,
	      const struct wf_epoch_record *record, struct wf_epochs *epochs)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	char temporary[WF_SNAPSHOT_LEAF_BYTES + 32];
	char path[WF_SAVED_PATH_BYTES];
	char text[RECORD_BYTES];
	record_name(epochs->count + 1, name);
	(void)snprintf(temporary, sizeof(temporary), ".%s.tmp-%016" PRIx64, name, wf_random(env));
	enum weft_status st = wf_saved_join(folder->path, temporary, path);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_saved_spot spot = {folder->calls, folder->fd, path};
	st = write_text(&spot, text, encode(epochs->count + 1, record, text));
	st = st == WEFT_OK ? publish(folder, temporary, name) : st;
	if (st != WEFT_OK) {
		(void)folder->calls->unlinkat(folder->fd, temporary, 0);
		return st;
	}
	return append(env, record, epochs);
}

bool
wf_epochs_are_open(const struct wf_epochs *epochs)
{
	return epochs->count > 0 && !epochs->record[epochs->count - 1].is_end;
}

bool
wf_epochs_have(const struct wf_epochs *epochs, const struct wf_snapshot_id *id)
{
	uint64_t epoch = epochs->count;
	if (!wf_epochs_are_open(epochs)) {
		return false;
	}
	if (id->epoch == epoch) {
		return true;
	}
	while (epochs->record[epoch - 1].has_base) {
		const struct wf_snapshot_id *base = &epochs->record[epoch - 1].base;
		if (id->epoch == base->epoch) {
			return id->step <= base->step;
		}
		WF_ASSERT(base->epoch < epoch); /* wf_epochs_read */
		epoch = base->epoch;
	}
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole saves. Thread: the caller's. */
#include "saved/saved.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "saved/aside.h"
#include "saved/internal.h"
#include "saved/snapshot.h"
#include "saved/tensors.h"

static struct wf_block_walk
walk_of(const struct wf_saved *saved)
{
	return (struct wf_block_walk){
		.env = saved->env,
		.calls = saved->calls,
		.path = saved->path,
		.manifest = &saved->manifest,
	};
}

/* The path of a table's file. `out` is [WF_SAVED_PATH_BYTES]. */
static enum weft_status
rows_path(const struct wf_saved *saved, uint32_t idx, char *out)
{
	char name[WF_MANIFEST_NAME_BYTES];

	wf_manifest_rows_name(saved->manifest.table[idx].name, name);
	return wf_saved_join(saved->path, name, out);
}

enum weft_status
wf_saved_open_rows(const struct wf_saved *saved, uint32_t idx, struct wf_rows_reader **out)
{
	const struct wf_block_walk walk = walk_of(saved);
	char path[WF_SAVED_PATH_BYTES];

	if (wf_manifest_is_snapshot(&saved->manifest)) {
		return wf_blocks_open_rows(&walk, &saved->blocks, idx, WF_BLOCKS_WINDOW_BYTES, out);
	}
	enum weft_status st = rows_path(saved, idx, path);
	return st == WEFT_OK ? wf_rows_open(saved->env, saved->calls, path, out) : st;
}

enum weft_status
wf_saved_read_tensor(const struct wf_saved *saved, uint32_t idx, unsigned array,
		     const struct wf_tensor_target *to)
{
	const struct wf_manifest_tensor *entry = &saved->manifest.tensor[idx];
	const struct wf_block_walk walk = walk_of(saved);
	char name[WF_MANIFEST_NAME_BYTES];
	char path[WF_SAVED_PATH_BYTES];
	const struct wf_tensor_file file = {
		.path = path,
		.count = entry->rows * entry->cols,
		.crc = entry->crc[array],
	};

	if (wf_manifest_is_snapshot(&saved->manifest)) {
		return wf_blocks_read_tensor(&walk, &saved->blocks, idx, array, to);
	}
	wf_manifest_file_name(entry->name, array, name);
	enum weft_status st = wf_saved_join(saved->path, name, path);
	return st == WEFT_OK ? wf_tensor_read(saved->calls, &file, to) : st;
}

enum weft_status
wf_saved_read_aside(const struct wf_saved *saved, uint32_t idx, void *out, struct wf_saved_file *to)
{
	const struct wf_manifest_aside *entry = &saved->manifest.aside[idx];
	char path[WF_SAVED_PATH_BYTES];
	const struct wf_aside_file file = {.path = path, .bytes = entry->bytes, .crc = entry->crc};

	enum weft_status st = wf_saved_join(saved->path, entry->name, path);
	return st == WEFT_OK ? wf_aside_read(saved->calls, &file, out, to) : st;
}

/* What a table's file has differs from the manifest of the pass. */
static enum weft_status
compare_rows(const struct wf_saved *saved, uint32_t idx, const struct wf_rows_sum *sum)
{
	const struct wf_manifest_table *table = &saved->manifest.table[idx];
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = rows_path(saved, idx, path);
	if (st != WEFT_OK) {
		return st;
	}
	if (sum->bytes != table->bytes || sum->row_count != table->rows ||
	    table->head.shape.dim != table->dim) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " bytes, %" PRIu64 " rows of %" PRIu32
			       " values; the manifest has %" PRIu64 ", %" PRIu64 " and %" PRIu32,
			       path, sum->bytes, sum->row_count, table->head.shape.dim,
			       table->bytes, table->rows, table->dim);
	}
	if (sum->crc != table->crc) {
		return wf_fail(WEFT_DATA,
			       "%s: checksum %08" PRIx32 "; the manifest has %08" PRIx32
			       ": it is damaged",
			       path, sum->crc, table->crc);
	}
	return WEFT_OK;
}

/* Every row of a table, and that they are those which the manifest means. That of a snapshot has no
 * checksum of them: what they have now is what they must have later. */
static enum weft_status
check_rows(struct wf_saved *saved, uint32_t idx)
{
	struct wf_manifest_table *table = &saved->manifest.table[idx];
	struct wf_rows_reader *rows = NULL;
	struct wf_rows_sum sum = {0};

	enum weft_status st = wf_saved_open_rows(saved, idx, &rows);
	if (st == WEFT_OK) {
		st = wf_rows_read_all(rows);
	}
	if (st == WEFT_OK) {
		sum = wf_rows_read_sum(rows);
		table->head = *wf_rows_head(rows);
	}
	wf_rows_close(rows);
	if (st == WEFT_OK && wf_manifest_is_snapshot(&saved->manifest)) {
		if (sum.row_count != table->rows) { /* it is a delta */
			return wf_fail(WEFT_DATA,
				       "%s: table %s: with the snapshots on which it builds it has "
				       "%" PRIu64 " rows, not %" PRIu64,
				       saved->path, table->name, sum.row_count, table->rows);
		}
		table->bytes = sum.bytes;
		table->crc = sum.crc;
		return WEFT_OK;
	}
	return st == WEFT_OK ? compare_rows(saved, idx, &sum) : st;
}

/* In a snapshot all of them are in the blocks of its parts, which show when they are listed that
 * they are whole. */
static enum weft_status
check_tensors(const struct wf_saved *saved)
{
	const struct wf_tensor_target nowhere = {0};
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < saved->manifest.tensor_count; i++) {
		const uint32_t states = saved->manifest.tensor[i].state_count;
		for (unsigned a = 0; st == WEFT_OK && a < 1 + states; a++) {
			st = wf_saved_read_tensor(saved, i, a, &nowhere);
		}
	}
	return st;
}

static enum weft_status
check_content(struct wf_saved *saved)
{
	const struct wf_block_walk walk = walk_of(saved);

	enum weft_status st = wf_manifest_is_snapshot(&saved->manifest)
				      ? wf_blocks_read(&walk, &saved->blocks)
				      : check_tensors(saved);
	if (st == WEFT_OK) {
		st = wf_chain_open(&walk, &saved->blocks, &saved->chain);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < saved->manifest.table_count; i++) {
		st = check_rows(saved, i);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < saved->manifest.aside_count; i++) {
		st = wf_saved_read_aside(saved, i, NULL, NULL);
	}
	return st;
}

static enum weft_status
read_manifest(struct wf_saved *saved, bool may_be_snapshot)
{
	enum weft_status st =
		wf_manifest_load(saved->env, saved->calls, saved->path, &saved->manifest);

	if (st == WEFT_OK && !may_be_snapshot && wf_manifest_is_snapshot(&saved->manifest)) {
		return wf_fail(WEFT_DATA,
			       "%s: is a snapshot of pservers, not a pass; weft ckpt reads it",
			       saved->path);
	}
	return st;
}

static enum weft_status
read_save(struct wf_saved *saved, const char *path, bool may_be_snapshot)
{
	WF_ASSERT(strlen(path) < sizeof(saved->path));
	snprintf(saved->path, sizeof(saved->path), "%s", path);
	enum weft_status st = read_manifest(saved, may_be_snapshot);
	return st == WEFT_OK ? check_content(saved) : st;
}

static enum weft_status
open_save(const struct wf_saved_place *place, bool may_be_snapshot, struct wf_saved **out)
{
	struct wf_saved *saved = wf_zalloc(place->env, sizeof(*saved));

	if (saved == NULL) {
		return wf_fail(WEFT_NOMEM, "save %s: %zu bytes", place->dir, sizeof(*saved));
	}
	saved->env = place->env;
	saved->calls = place->calls;
	enum weft_status st = read_save(saved, place->dir, may_be_snapshot);
	if (st != WEFT_OK) {
		wf_saved_close(saved);
		return st;
	}
	*out = saved;
	return WEFT_OK;
}

enum weft_status
wf_saved_read(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	      struct wf_saved **out)
{
	return open_save(&(struct wf_saved_place){env, calls, path}, false, out);
}

enum weft_status
wf_saved_read_any(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
		  struct wf_saved **out)
{
	return open_save(&(struct wf_saved_place){env, calls, path}, true, out);
}

void
wf_saved_close(struct wf_saved *saved)
{
	if (saved != NULL) {
		wf_chain_close(saved->env, &saved->chain);
		wf_blocks_fini(saved->env, &saved->blocks);
		wf_manifest_fini(saved->env, &saved->manifest);
		wf_free(saved->env, saved, sizeof(*saved));
	}
}

bool
wf_saved_is_flat(const struct wf_saved *saved, uint32_t idx)
{
	const struct wf_manifest_tensor *tensor = &saved->manifest.tensor[idx];

	return wf_manifest_is_snapshot(&saved->manifest) && tensor->rows == 1 &&
	       tensor->shape[0] == '\0';
}

const struct wf_saved_about *
wf_saved_about(const struct wf_saved *saved)
{
	return &saved->manifest.about;
}

bool
wf_saved_snapshot(const struct wf_saved *saved, struct wf_snapshot_id *out)
{
	*out = (struct wf_snapshot_id){
		.epoch = saved->manifest.parts.epoch,
		.step = saved->manifest.about.step,
	};
	return wf_manifest_is_snapshot(&saved->manifest);
}

const char *
wf_saved_path(const struct wf_saved *saved)
{
	return saved->path;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole saves. Thread: the caller's. */
#include "saved/saved.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "saved/aside.h"
#include "saved/internal.h"
#include "saved/tensors.h"

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
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = rows_path(saved, idx, path);
	return st == WEFT_OK ? wf_rows_open(saved->env, saved->calls, path, out) : st;
}

enum weft_status
wf_saved_read_tensor(const struct wf_saved *saved, uint32_t idx, unsigned array,
		     const struct wf_tensor_target *to)
{
	const struct wf_manifest_tensor *entry = &saved->manifest.tensor[idx];
	char name[WF_MANIFEST_NAME_BYTES];
	char path[WF_SAVED_PATH_BYTES];
	const struct wf_tensor_file file = {
		.path = path,
		.count = entry->rows * entry->cols,
		.crc = entry->crc[array],
	};

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

static enum weft_status
read_manifest(struct wf_saved *saved)
{
	enum weft_status st =
		wf_manifest_load(saved->env, saved->calls, saved->path, &saved->manifest);

	if (st == WEFT_OK && wf_manifest_is_snapshot(&saved->manifest)) {
		return wf_fail(WEFT_DATA,
			       "%s: is a snapshot of pservers, not a pass; weft ckpt reads it",
			       saved->path);
	}
	return st;
}

/* Every byte of a table's file, and that it is the one that the manifest means. */
static enum weft_status
check_rows(struct wf_saved *saved, uint32_t idx)
{
	struct wf_manifest_table *table = &saved->manifest.table[idx];
	struct wf_rows_sum sum;
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = rows_path(saved, idx, path);
	if (st == WEFT_OK) {
		st = wf_rows_check(saved->env, saved->calls, path, &table->head, &sum);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (sum.bytes != table->bytes || sum.row_count != table->rows ||
	    table->head.shape.dim != table->dim) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " bytes, %" PRIu64 " rows of %" PRIu32
			       " values; the manifest has %" PRIu64 ", %" PRIu64 " and %" PRIu32,
			       path, sum.bytes, sum.row_count, table->head.shape.dim, table->bytes,
			       table->rows, table->dim);
	}
	if (sum.crc != table->crc) {
		return wf_fail(WEFT_DATA,
			       "%s: checksum %08" PRIx32 "; the manifest has %08" PRIx32
			       ": it is damaged",
			       path, sum.crc, table->crc);
	}
	return WEFT_OK;
}

static enum weft_status
check_files(struct wf_saved *saved)
{
	const struct wf_tensor_target nowhere = {0};

	for (uint32_t i = 0; i < saved->manifest.tensor_count; i++) {
		for (unsigned a = 0; a < 1 + saved->manifest.tensor[i].state_count; a++) {
			enum weft_status st = wf_saved_read_tensor(saved, i, a, &nowhere);
			if (st != WEFT_OK) {
				return st;
			}
		}
	}
	for (uint32_t i = 0; i < saved->manifest.table_count; i++) {
		enum weft_status st = check_rows(saved, i);
		if (st != WEFT_OK) {
			return st;
		}
	}
	for (uint32_t i = 0; i < saved->manifest.aside_count; i++) {
		enum weft_status st = wf_saved_read_aside(saved, i, NULL, NULL);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_saved_read(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	      struct wf_saved **out)
{
	struct wf_saved *saved = wf_zalloc(env, sizeof(*saved));

	WF_ASSERT(strlen(path) < WF_SAVED_PATH_BYTES);
	if (saved == NULL) {
		return wf_fail(WEFT_NOMEM, "save %s: %zu bytes", path, sizeof(*saved));
	}
	saved->env = env;
	saved->calls = calls;
	snprintf(saved->path, sizeof(saved->path), "%s", path);
	enum weft_status st = read_manifest(saved);
	if (st == WEFT_OK) {
		st = check_files(saved);
	}
	if (st != WEFT_OK) {
		wf_saved_close(saved);
		return st;
	}
	*out = saved;
	return WEFT_OK;
}

void
wf_saved_close(struct wf_saved *saved)
{
	if (saved != NULL) {
		wf_manifest_fini(saved->env, &saved->manifest);
		wf_free(saved->env, saved, sizeof(*saved));
	}
}

const struct wf_saved_about *
wf_saved_about(const struct wf_saved *saved)
{
	return &saved->manifest.about;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The original's parameter files: 16 bytes of header (i32 format 0, u32 bytes of a value, u64
 * number of values), then the values; one in a file, many in a folder. They do not know their
 * shapes. Also saves of our own. Thread: the caller's. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "saved/import_internal.h"
#include "saved/parameter_config.h"
#include "wire/little.h"

enum weft_status
wf_import_parameter(struct wf_saved_file *file, uint64_t at, uint64_t bytes,
		    struct wf_import_entry *out)
{
	uint8_t header[WF_TENSOR_HEADER_BYTES];

	*out = (struct wf_import_entry){.at = at + sizeof(header)};
	if (bytes < sizeof(header)) {
		out->array.objection = "is not a parameter file: it has fewer than 16 bytes";
		return WEFT_OK;
	}
	enum weft_status st = wf_saved_file_read_at(file, at, header, sizeof(header));
	if (st != WEFT_OK) {
		return st;
	}
	const uint32_t value_bytes = wf_load_u32(header + 4);
	const uint64_t count = wf_load_u64(header + 8);
	out->stored_bytes = bytes - sizeof(header);
	out->array.type = value_bytes == 8 ? WF_ARRAY_F64 : WF_ARRAY_F32;
	out->array.rows = count;
	if (wf_load_u32(header) != 0 || (value_bytes != 4 && value_bytes != 8)) {
		out->array.objection =
			"is not a parameter file: it does not begin with format 0 and "
			"4 or 8 bytes a value";
	} else if (!wf_import_takes_bytes(out, out->stored_bytes) || out->stored_bytes == 0) {
		out->array.objection = "does not have as many values as its header gives, or has "
				       "more bytes after them, as sparse parameters do";
	}
	return WEFT_OK;
}

/* Whether a file is found again by the name that its array gets. */
static bool
is_settled(const char *name)
{
	char file[WF_SAVED_NAME_BYTES];

	return wf_saved_name_settle(name, file) == WEFT_OK && strcmp(name, file) == 0;
}

static enum weft_status
add_file(struct wf_import *import, struct wf_saved_file *file, const char *name)
{
	struct wf_import_entry entry;

	enum weft_status st = wf_import_parameter(file, 0, file->bytes, &entry);
	if (st == WEFT_OK && !is_settled(name)) {
		entry.array.objection = "has a name that weft export would write in another way";
	}
	return st == WEFT_OK ? wf_import_add_file(import, &entry, name, strlen(name)) : st;
}

static enum weft_status
add_of_folder(struct wf_import *import, const char *name)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved_file file;
	struct stat info;

	enum weft_status st = wf_saved_join(import->path, name, path);
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_parameter_is_aside(name) || (stat(path, &info) == 0 && S_ISDIR(info.st_mode))) {
		return WEFT_OK;
	}
	st = wf_saved_file_open(import->calls, path, &file);
	if (st != WEFT_OK) {
		return st;
	}
	st = add_file(import, &file, name);
	wf_saved_file_close(&file);
	return st;
}

static enum weft_status
list_folder(struct wf_import *import)
{
	enum weft_status st = WEFT_OK;
	DIR *folder = opendir(import->path);

	if (folder == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be listed", import->path);
	}
	for (struct dirent *e = readdir(folder); st == WEFT_OK && e != NULL; e = readdir(folder)) {
		st = add_of_folder(import, e->d_name);
	}
	closedir(folder);
	return st;
}

enum weft_status
wf_import_list_parameters(struct wf_import *import)
{
	const char *slash = strrchr(import->path, '/');

	if (import->is_folder) {
		return list_folder(import);
	}
	return add_file(import, &import->file, slash == NULL ? import->path : slash + 1);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct wf_import_entry *)a)->array.name,
		      ((const struct wf_import_entry *)b)->array.name);
}

/* Under the name that its file has, which may be that of an older weft. */
static enum weft_status
add_of_pass(struct wf_import *import, const struct wf_import_entry *entry, const char *file)
{
	enum weft_status st = wf_import_add_file(import, entry, file, strlen(file));

	if (st == WEFT_OK) {
		struct wf_import_array *array = &import->entry[import->entry_count - 1].array;
		memcpy(array->name, file, strlen(file) + 1);
		array->objection = NULL;
	}
	return st;
}

enum weft_status
wf_import_list_pass(struct wf_import *import)
{
	enum weft_status st =
		wf_saved_open_any(import->env, import->calls, import->path, &import->saved);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_manifest *manifest = &import->saved->manifest;
	for (uint32_t i = 0; st == WEFT_OK && i < manifest->tensor_count; i++) {
		const struct wf_manifest_tensor *tensor = &manifest->tensor[i];
		struct wf_import_entry entry = {
			.array = {.rows = tensor->rows, .cols = tensor->cols}, .idx = i};
		memcpy(entry.array.shape, tensor->shape, sizeof(entry.array.shape));
		if (wf_saved_is_flat(import->saved, i)) {
			entry.array.rows = tensor->cols;
			entry.array.cols = 0;
		}
		st = add_of_pass(import, &entry, tensor->name);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < manifest->aside_count; i++) {
		const struct wf_manifest_aside *aside = &manifest->aside[i];
		struct wf_import_entry entry = {
			.array = {.type = aside->type}, .idx = i, .is_aside = true};
		struct wf_import_shape shape = {0};
		shape.is_bad = !wf_shape_parse(aside->shape, &shape.shape);
		wf_import_shape_apply(&shape, &entry);
		st = add_of_pass(import, &entry, aside->name);
	}
	if (st == WEFT_OK && import->entry_count > 0) {
		qsort(import->entry, import->entry_count, sizeof(*import->entry), by_name);
	}
	return st;
}

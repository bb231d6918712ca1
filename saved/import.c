/* SPDX-License-Identifier: Apache-2.0 */
/* What all formats have alike: which one it is, and the order of its arrays. Thread: the
 * caller's. */
#include "saved/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "saved/directory.h"
#include "saved/import_internal.h"
#include "saved/parameter_config.h"
#include "saved/snapshot.h"
#include "wire/little.h"

#define MAGIC_BYTES 512u

static const char *const format_names[] = {
	[WF_IMPORT_AUTO] = "auto",
	[WF_IMPORT_PASS] = "pass",
	[WF_IMPORT_PADDLE] = "paddle",
	[WF_IMPORT_TAR] = "tar",
	[WF_IMPORT_NPZ] = "npz",
	[WF_IMPORT_NPY] = "npy",
	[WF_IMPORT_SAFETENSORS] = "safetensors",
};

enum weft_status
wf_import_format_parse(const char *name, enum wf_import_format *out)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(format_names); i++) {
		if (strcmp(name, format_names[i]) == 0) {
			*out = (enum wf_import_format)i;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "format=%.40s: must be auto, pass, paddle, tar, npz, npy or safetensors",
		       name);
}

const char *
wf_import_format_name(enum wf_import_format format)
{
	WF_ASSERT(format < WF_ARRAY_COUNT(format_names));
	return format_names[format];
}

static int
by_name(const void *a, const void *b)
{
	const struct wf_import_entry *left = a;
	const struct wf_import_entry *right = b;
	const int order = strcmp(left->array.name, right->array.name);

	return order != 0 ? order : (int)left->is_shape - (int)right->is_shape;
}

/* The shape that the tar of the original keeps beside an array. */
static enum weft_status
join_shape(const struct wf_import *import, struct wf_import_entry *entry,
	   const struct wf_import_entry *shape)
{
	if (entry->array.objection != NULL) {
		return WEFT_OK;
	}
	if (shape->array.objection != NULL) {
		entry->array.objection = shape->array.objection;
		return WEFT_OK;
	}
	if (entry->array.rows != shape->array.rows * shape->array.cols) {
		return wf_fail(WEFT_DATA,
			       "%s: %s has %" PRIu64 " values; its .protobuf has %" PRIu64
			       " x %" PRIu64,
			       import->path, entry->array.name, entry->array.rows,
			       shape->array.rows, shape->array.cols);
	}
	const bool is_turned = shape->array.rows == 1 && wf_parameter_is_bias(entry->array.name);
	entry->array.rows = is_turned ? shape->array.cols : shape->array.rows;
	entry->array.cols = is_turned ? 1 : shape->array.cols;
	if (!is_turned) {
		memcpy(entry->array.shape, shape->array.shape, sizeof(entry->array.shape));
	}
	return WEFT_OK;
}

/* Names ascend, each once; shapes are gone into their arrays. */
static enum weft_status
put_in_order(struct wf_import *import)
{
	uint32_t kept = 0;

	if (import->entry_count == 0 && import->is_folder) {
		return wf_fail(WEFT_DATA,
			       "%s: is not a model: it has neither the manifest of a saved pass "
			       "nor parameter files",
			       import->path);
	}
	if (import->entry_count == 0) {
		return wf_fail(WEFT_DATA, "%s: has no arrays", import->path);
	}
	qsort(import->entry, import->entry_count, sizeof(*import->entry), by_name);
	for (uint32_t i = 0; i < import->entry_count; i++) {
		struct wf_import_entry *entry = &import->entry[i];
		struct wf_import_entry *before = kept == 0 ? NULL : &import->entry[kept - 1];
		const bool is_same =
			before != NULL && strcmp(before->array.name, entry->array.name) == 0;
		if (is_same && entry->is_shape && before->array.cols == 0) {
			enum weft_status st = join_shape(import, before, entry);
			if (st != WEFT_OK) {
				return st;
			}
			continue;
		}
		/* Two that had other names may well be different ones. */
		if (is_same && !(before->is_renamed && entry->is_renamed)) {
			return wf_fail(WEFT_DATA, "%s: %s occurs twice", import->path,
				       entry->array.name);
		}
		if (entry->is_shape) {
			return wf_fail(WEFT_DATA, "%s: %s.protobuf is there, but not %s",
				       import->path, entry->array.name, entry->array.name);
		}
		import->entry[kept++] = *entry;
	}
	import->entry_count = kept;
	return WEFT_OK;
}

/* By what a file begins with. */
static enum weft_status
look_at_file(struct wf_import *import)
{
	uint8_t head[MAGIC_BYTES] = {0};
	const size_t bytes =
		import->file.bytes < sizeof(head) ? (size_t)import->file.bytes : sizeof(head);

	enum weft_status st = wf_saved_file_read_at(&import->file, 0, head, bytes);
	if (st != WEFT_OK) {
		return st;
	}
	if (memcmp(head, "PK\x03\x04", 4) == 0 || memcmp(head, "PK\x05\x06", 4) == 0) {
		import->format = WF_IMPORT_NPZ;
	} else if (memcmp(head, "\x93NUMPY", 6) == 0) {
		import->format = WF_IMPORT_NPY;
	} else if (memcmp(head + 257, "ustar", 5) == 0) {
		import->format = WF_IMPORT_TAR;
	} else if (bytes > 8 && head[8] == '{') {
		import->format = WF_IMPORT_SAFETENSORS;
	} else if (bytes >= WF_TENSOR_HEADER_BYTES && wf_load_u32(head) == 0 &&
		   (wf_load_u32(head + 4) == 4 || wf_load_u32(head + 4) == 8)) {
		import->format = WF_IMPORT_PADDLE;
	} else {
		return wf_fail(WEFT_DATA,
			       "%s: is neither npz nor safetensors nor npy, nor a parameter file "
			       "or a tar of them",
			       import->path);
	}
	return WEFT_OK;
}

static bool
has_manifest(const struct wf_import *import)
{
	char path[WF_SAVED_PATH_BYTES];
	struct stat info;

	return wf_saved_join(import->path, WF_MANIFEST_FILE, path) == WEFT_OK &&
	       lstat(path, &info) == 0;
}

/* A folder of parameter files is none of snapshots, of which one has to be named, as a pass has to
 * be: what is read twice must not be two. */
static enum weft_status
refuse_snapshots(const struct wf_import *import)
{
	char name[WF_SNAPSHOT_LEAF_BYTES];
	struct wf_snapshot_list list;

	enum weft_status st = wf_snapshot_list(import->env, import->calls, import->path, &list);
	if (st != WEFT_OK) {
		return st;
	}
	if (list.count > 0) {
		wf_snapshot_name(list.id[0], name);
		st = wf_fail(WEFT_DATA,
			     "%s: is a folder of snapshots; name one of them, such as %s/%s",
			     import->path, import->path, name);
	}
	wf_snapshot_list_fini(import->env, &list);
	return st;
}

static enum weft_status
open_files(struct wf_import *import)
{
	const bool may_be_folder =
		import->format == WF_IMPORT_AUTO || import->format == WF_IMPORT_PADDLE;
	struct stat info;

	if (import->format == WF_IMPORT_AUTO) {
		/* A pass aside gets its name back before anybody looks. */
		wf_saved_recover(import->env, import->calls, import->path);
	}
	import->is_folder =
		may_be_folder && stat(import->path, &info) == 0 && S_ISDIR(info.st_mode);
	if (import->format == WF_IMPORT_AUTO && import->is_folder) {
		import->format = has_manifest(import) ? WF_IMPORT_PASS : WF_IMPORT_PADDLE;
	}
	if (import->is_folder && import->format == WF_IMPORT_PADDLE) {
		return refuse_snapshots(import);
	}
	if (import->format == WF_IMPORT_PASS || import->is_folder) {
		return WEFT_OK;
	}
	enum weft_status st = wf_saved_file_open(import->calls, import->path, &import->file);
	if (st != WEFT_OK) {
		import->file.calls = NULL;
		return st;
	}
	return import->format == WF_IMPORT_AUTO ? look_at_file(import) : WEFT_OK;
}

static enum weft_status
list(struct wf_import *import)
{
	switch (import->format) {
	case WF_IMPORT_PASS:
		return wf_import_list_pass(import);
	case WF_IMPORT_PADDLE:
		return wf_import_list_parameters(import);
	case WF_IMPORT_TAR:
		return wf_import_list_tar(import);
	case WF_IMPORT_NPZ:
		return wf_import_list_npz(import);
	case WF_IMPORT_NPY:
		return wf_import_list_npy(import);
	case WF_IMPORT_AUTO:
	case WF_IMPORT_SAFETENSORS:
		break;
	}
	return wf_import_list_safetensors(import);
}

enum weft_status
wf_import_open(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	       enum wf_import_format format, struct wf_import **out)
{
	struct wf_import *import = wf_zalloc(env, sizeof(*import));
	enum weft_status st = WEFT_OK;

	if (import == NULL) {
		return wf_fail(WEFT_NOMEM, "import of %s: %zu bytes", path, sizeof(*import));
	}
	import->env = env;
	import->calls = calls;
	import->format = format;
	int bytes = snprintf(import->path, sizeof(import->path), "%s", path);
	if (bytes <= 0 || (size_t)bytes >= sizeof(import->path)) {
		st = wf_fail(WEFT_INVALID, "\"%.60s\": must be a path of 1 to %u bytes", path,
			     WF_SAVED_PATH_BYTES - 1);
	}
	while (st == WEFT_OK && bytes > 1 && import->path[bytes - 1] == '/') {
		import->path[--bytes] = '\0';
	}
	if (st == WEFT_OK) {
		st = open_files(import);
	}
	if (st == WEFT_OK) {
		st = list(import);
	}
	if (st == WEFT_OK && import->format != WF_IMPORT_PASS) {
		st = put_in_order(import);
	}
	if (st != WEFT_OK) {
		wf_import_close(import);
		return st;
	}
	*out = import;
	return WEFT_OK;
}

void
wf_import_close(struct wf_import *import)
{
	if (import == NULL) {
		return;
	}
	if (import->file.calls != NULL) {
		wf_saved_file_close(&import->file);
	}
	wf_saved_close(import->saved);
	wf_free(import->env, import->entry, import->entry_room * sizeof(*import->entry));
	wf_free(import->env, import, sizeof(*import));
}

enum wf_import_format
wf_import_format_of(const struct wf_import *import)
{
	return import->format;
}

uint32_t
wf_import_count(const struct wf_import *import)
{
	return import->entry_count;
}

const struct wf_import_array *
wf_import_at(const struct wf_import *import, uint32_t idx)
{
	WF_ASSERT(idx < import->entry_count);
	return &import->entry[idx].array;
}

const struct wf_saved *
wf_import_saved(const struct wf_import *import)
{
	return import->saved;
}

uint32_t
wf_import_table_count(const struct wf_import *import)
{
	return import->saved == NULL ? 0 : wf_saved_table_count(import->saved);
}

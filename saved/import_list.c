/* SPDX-License-Identifier: Apache-2.0 */
/* The list of arrays that a reader builds from a file: their names, shapes and bytes. Thread: the
 * caller's. */
#include <inttypes.h>
#include <string.h>

#include "saved/import_internal.h"

#define FIRST_ROOM 64u

void
wf_import_shape_add(struct wf_import_shape *shape, uint64_t dim)
{
	shape->is_bad = shape->is_bad || !wf_shape_add(&shape->shape, dim);
}

uint64_t
wf_import_shape_rows(const struct wf_import_shape *shape)
{
	return shape->shape.dims > 0 ? shape->shape.dim[0] : 1;
}

uint64_t
wf_import_shape_cols(const struct wf_import_shape *shape)
{
	const uint64_t rows = wf_import_shape_rows(shape);

	return rows == 0 ? 1 : wf_shape_elements(&shape->shape) / rows;
}

void
wf_import_shape_apply(const struct wf_import_shape *shape, struct wf_import_entry *entry)
{
	struct wf_import_array *array = &entry->array;

	if (shape->is_bad ||
	    wf_shape_elements(&shape->shape) > ((uint64_t)INT64_MAX - WF_TENSOR_HEADER_BYTES) / 8) {
		*array = (struct wf_import_array){.type = array->type, .rows = 1, .cols = 1};
		array->objection =
			"has more values than a file can have, or more than 32 dimensions";
		return;
	}
	array->rows = wf_import_shape_rows(shape);
	array->cols = wf_import_shape_cols(shape);
	if (array->cols ==
	    0) { /* 0 rows: that is what an empty array has, whichever dimension it is */
		array->rows = 0;
		array->cols = 1;
	}
	wf_shape_format(&shape->shape, array->shape);
}

uint64_t
wf_import_elements(const struct wf_import_entry *entry)
{
	return entry->array.rows * (entry->array.cols == 0 ? 1 : entry->array.cols);
}

bool
wf_import_takes_bytes(const struct wf_import_entry *entry, uint64_t bytes)
{
	const unsigned each = wf_array_type_about(entry->array.type)->bytes;

	return entry->array.objection == NULL && bytes % each == 0 &&
	       wf_import_elements(entry) == bytes / each;
}

/* What the file has, as far as it can be shown. */
static void
show_name(const char *name, size_t bytes, char *out)
{
	const size_t kept = bytes < WF_SAVED_NAME_BYTES ? bytes : WF_SAVED_NAME_BYTES - 1;

	for (size_t i = 0; i < kept; i++) {
		out[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '?';
	}
	out[kept] = '\0';
}

static void
set_name(const char *name, size_t bytes, struct wf_import_entry *entry)
{
	struct wf_import_array *out = &entry->array;
	const char *objection = NULL;

	if (!wf_saved_name_is_utf8(name, bytes)) {
		objection = "has a name that is not UTF-8";
	} else if (wf_saved_name_encode(name, bytes, out->name) != WEFT_OK) {
		objection = bytes == 0                          ? "has no name"
			    : memchr(name, '\0', bytes) != NULL ? "has a name with a byte of 0"
								: "has too long a name";
	}
	if (objection != NULL) {
		show_name(name, bytes, out->name);
	}
	entry->is_renamed = objection != NULL;
	out->objection = out->objection == NULL ? objection : out->objection;
}

static enum weft_status
make_room(struct wf_import *import)
{
	const uint32_t room = import->entry_room == 0 ? FIRST_ROOM : 2 * import->entry_room;

	if (import->entry_count >= WF_IMPORT_ARRAYS_MAX) {
		return wf_fail(WEFT_DATA, "%s: has more than %u arrays", import->path,
			       WF_IMPORT_ARRAYS_MAX);
	}
	struct wf_import_entry *more = wf_zalloc_array(import->env, room, sizeof(*more));
	if (more == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: list of %" PRIu32 " arrays", import->path, room);
	}
	if (import->entry_count > 0) {
		memcpy(more, import->entry, import->entry_count * sizeof(*more));
	}
	wf_free(import->env, import->entry, import->entry_room * sizeof(*more));
	import->entry = more;
	import->entry_room = room;
	return WEFT_OK;
}

enum weft_status
wf_import_add(struct wf_import *import, const struct wf_import_entry *entry, const char *name,
	      size_t name_bytes)
{
	if (import->entry_count == import->entry_room) {
		enum weft_status st = make_room(import);
		if (st != WEFT_OK) {
			return st;
		}
	}
	struct wf_import_entry *at = &import->entry[import->entry_count++];
	*at = *entry;
	set_name(name, name_bytes, at);
	return WEFT_OK;
}

enum weft_status
wf_import_add_file(struct wf_import *import, const struct wf_import_entry *entry, const char *name,
		   size_t name_bytes)
{
	char file[WF_SAVED_NAME_BYTES];
	char plain[WF_SAVED_NAME_BYTES];

	if (name_bytes >= sizeof(file) || memchr(name, '\0', name_bytes) != NULL) {
		return wf_import_add(import, entry, name, name_bytes); /* with an objection */
	}
	memcpy(file, name, name_bytes);
	file[name_bytes] = '\0';
	return wf_import_add(import, entry, plain, wf_saved_name_decode(file, plain));
}

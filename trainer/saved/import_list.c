/* SPDX-License-Identifier: Apache-2.0 */
/* The list of arrays that a reader builds from a file: their names, shapes and bytes. Thread: the
 * caller's. */
#include <inttypes.h>
#include <string.h>

#include "trainer/saved/import_internal.h"

#define FIRST_ROOM 64u

void
wf_import_shape_add(struct wf_import_shape *shape, uint64_t dim)
{
	shape->is_bad = shape->is_bad || dim == 0 || !wf_shape_add(&shape->shape, dim);
}

uint64_t
wf_import_shape_rows(const struct wf_import_shape *shape)
{
	return shape->shape.dims > 0 ? shape->shape.dim[0] : 1;
}

uint64_t
wf_import_shape_cols(const struct wf_import_shape *shape)
{
	return wf_shape_elements(&shape->shape) / wf_import_shape_rows(shape);
}

void
wf_import_shape_apply(const struct wf_import_shape *shape, struct wf_import_entry *entry)
{
	const struct wf_shape none = {0};

	entry->array.rows = shape->is_bad ? 1 : wf_import_shape_rows(shape);
	entry->array.cols = shape->is_bad ? 1 : wf_import_shape_cols(shape);
	wf_shape_format(shape->is_bad ? &none : &shape->shape, entry->array.shape);
	if (shape->is_bad || wf_manifest_file_bytes(entry->array.rows, entry->array.cols) == 0) {
		entry->array.objection =
			"has no values, or more than a file can have, or more than 32 dimensions";
	}
}

uint64_t
wf_value_bytes(enum wf_value_type type)
{
	switch (type) {
	case WF_VALUE_F32:
		return 4;
	case WF_VALUE_F16:
	case WF_VALUE_BF16:
		return 2;
	case WF_VALUE_F64:
		break;
	}
	return 8;
}

uint64_t
wf_import_value_bytes(const struct wf_import_entry *entry)
{
	const uint64_t cols = entry->array.cols == 0 ? 1 : entry->array.cols;

	if (entry->array.objection != NULL ||
	    wf_manifest_file_bytes(entry->array.rows, cols) == 0) {
		return 0;
	}
	return entry->array.rows * cols * wf_value_bytes(entry->type);
}

/* Printable, whatever the file has. */
static void
set_name(const char *name, size_t bytes, struct wf_import_entry *entry)
{
	struct wf_import_array *out = &entry->array;
	const size_t kept = bytes < sizeof(out->name) ? bytes : sizeof(out->name) - 1;
	const char *objection = kept < bytes ? "has too long a name" : NULL;

	for (size_t i = 0; i < kept; i++) {
		out->name[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
		if (out->name[i] != name[i]) {
			objection = "has a name with bytes that are not printable";
		}
	}
	out->name[kept] = '\0';
	entry->is_renamed = objection != NULL;
	if (out->objection == NULL) {
		out->objection = objection;
	}
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

/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors: a u64 with the header's bytes, the header (JSON: for each array type, shape and
 * where in the data it is), the data without gaps; all little-endian.
 * https://github.com/huggingface/safetensors. Thread: the caller's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "saved/import_internal.h"
#include "wire/little.h"

#define LENGTH_BYTES 8u
#define HEADER_BYTES_MAX (16u << 20)
#define NAME_ROOM 512u
#define RESERVED_NAME "__metadata__"

/* What the header holds about one array, each once. */
struct about {
	bool has_type, has_shape, has_place;
	char type[16];
	struct wf_import_shape shape;
	uint64_t from, to; /* in the data */
};

static void
parse_shape(struct wf_json *json, struct wf_import_shape *out)
{
	wf_json_need(json, '[');
	if (wf_json_accept(json, ']')) {
		return;
	}
	do {
		wf_import_shape_add(out, wf_json_number(json));
	} while (wf_json_accept(json, ','));
	wf_json_need(json, ']');
}

static void
parse_place(struct wf_json *json, struct about *out)
{
	wf_json_need(json, '[');
	out->from = wf_json_number(json);
	wf_json_need(json, ',');
	out->to = wf_json_number(json);
	wf_json_need(json, ']');
}

static void
parse_about(struct wf_json *json, struct about *out)
{
	char key[16];

	wf_json_need(json, '{');
	do {
		(void)wf_json_string(json, key, sizeof(key));
		wf_json_need(json, ':');
		if (strcmp(key, "dtype") == 0 && !out->has_type) {
			out->has_type = true;
			(void)wf_json_string(json, out->type, sizeof(out->type));
		} else if (strcmp(key, "shape") == 0 && !out->has_shape) {
			out->has_shape = true;
			parse_shape(json, &out->shape);
		} else if (strcmp(key, "data_offsets") == 0 && !out->has_place) {
			out->has_place = true;
			parse_place(json, out);
		} else {
			json->is_bad = true;
		}
	} while (wf_json_accept(json, ','));
	wf_json_need(json, '}');
	json->is_bad = json->is_bad || !out->has_type || !out->has_shape || !out->has_place;
}

/* Texts with names: for people. */
static void
pass_metadata(struct wf_json *json)
{
	char text[2];

	wf_json_need(json, '{');
	if (wf_json_accept(json, '}')) {
		return;
	}
	do {
		(void)wf_json_string(json, text, sizeof(text));
		wf_json_need(json, ':');
		(void)wf_json_string(json, text, sizeof(text));
	} while (wf_json_accept(json, ','));
	wf_json_need(json, '}');
}

static enum weft_status
add_array(struct wf_import *import, struct wf_json *json, uint64_t data_at)
{
	const uint64_t data_bytes = import->file.bytes - data_at;
	char name[NAME_ROOM];
	struct about about = {0};
	struct wf_import_entry entry = {0};

	const size_t name_bytes = wf_json_string(json, name, sizeof(name));
	wf_json_need(json, ':');
	if (!json->is_bad && strcmp(name, RESERVED_NAME) == 0) {
		pass_metadata(json);
		return WEFT_OK;
	}
	parse_about(json, &about);
	if (json->is_bad) {
		return WEFT_OK; /* reported by the caller, which has the whole header */
	}
	if (about.from > about.to || about.to > data_bytes) {
		return wf_fail(WEFT_DATA,
			       "%s: the bytes %" PRIu64 "..%" PRIu64
			       " of an array are not within the data, which has %" PRIu64,
			       import->path, about.from, about.to, data_bytes);
	}
	if (wf_array_type_by_safetensors(about.type, &entry.array.type)) {
		wf_import_shape_apply(&about.shape, &entry);
	} else {
		entry.array.objection = "is not an array of floats of 16, 32 or 64 bits, whole "
					"numbers of 8 to 64, or BOOL";
	}
	entry.at = data_at + about.from;
	entry.stored_bytes = about.to - about.from;
	if (entry.array.objection == NULL && !wf_import_takes_bytes(&entry, entry.stored_bytes)) {
		entry.array.objection = "does not have as many bytes as its shape";
	}
	return wf_import_add(import, &entry, name, name_bytes);
}

static int
by_place(const void *a, const void *b)
{
	const struct wf_import_entry *left = a;
	const struct wf_import_entry *right = b;

	if (left->at != right->at) {
		return left->at < right->at ? -1 : 1;
	}
	return left->stored_bytes < right->stored_bytes   ? -1
	       : left->stored_bytes > right->stored_bytes ? 1
							  : 0;
}

/* Every byte of the data is one array's. */
static enum weft_status
check_places(struct wf_import *import, uint64_t data_at)
{
	uint64_t at = data_at;

	if (import->entry_count > 0) {
		qsort(import->entry, import->entry_count, sizeof(*import->entry), by_place);
	}
	for (uint32_t i = 0; i < import->entry_count; i++) {
		const struct wf_import_entry *entry = &import->entry[i];
		if (entry->at != at) {
			return wf_fail(WEFT_DATA,
				       "%s: array %s is at byte %" PRIu64 " of the data; the one "
				       "before it ends at %" PRIu64 ": it is damaged",
				       import->path, entry->array.name, entry->at - data_at,
				       at - data_at);
		}
		at += entry->stored_bytes;
	}
	if (at != import->file.bytes) {
		return wf_fail(WEFT_DATA,
			       "%s: its arrays have %" PRIu64 " bytes, its data %" PRIu64
			       ": it is truncated or damaged",
			       import->path, at - data_at, import->file.bytes - data_at);
	}
	return WEFT_OK;
}

static enum weft_status
add_arrays(struct wf_import *import, struct wf_json *json, uint64_t data_at)
{
	enum weft_status st = WEFT_OK;

	wf_json_need(json, '{');
	if (!wf_json_accept(json, '}')) {
		do {
			st = add_array(import, json, data_at);
		} while (st == WEFT_OK && wf_json_accept(json, ','));
		wf_json_need(json, '}');
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_json_is_done(json)) {
		return wf_fail(WEFT_DATA, "%s: byte %zu of its header is not valid", import->path,
			       wf_json_at(json));
	}
	return check_places(import, data_at);
}

enum weft_status
wf_import_list_safetensors(struct wf_import *import)
{
	uint8_t length[LENGTH_BYTES];

	enum weft_status st = wf_saved_file_read_at(&import->file, 0, length, sizeof(length));
	if (st != WEFT_OK) {
		return st;
	}
	const uint64_t bytes = wf_load_u64(length);
	if (bytes > import->file.bytes - LENGTH_BYTES || bytes > HEADER_BYTES_MAX) {
		return wf_fail(WEFT_DATA,
			       "%s: its first 8 bytes announce a header of %" PRIu64
			       " bytes; it has %" PRIu64
			       " in all, and at most %u are read: it is not a safetensors file, or "
			       "it is truncated",
			       import->path, bytes, import->file.bytes, HEADER_BYTES_MAX);
	}
	const size_t room = (size_t)bytes + 1; /* not none */
	char *text = wf_zalloc(import->env, room);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: header of %zu bytes", import->path, room);
	}
	st = wf_saved_file_read_at(&import->file, LENGTH_BYTES, text, (size_t)bytes);
	if (st == WEFT_OK) {
		struct wf_json json = {.from = text, .at = text, .end = text + (size_t)bytes};
		st = add_arrays(import, &json, LENGTH_BYTES + bytes);
	}
	wf_free(import->env, text, room);
	return st;
}

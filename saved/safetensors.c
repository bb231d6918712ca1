/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the safetensors format: a u64 with the header's bytes, the header (JSON, padded with
 * blanks so that the data begin on 8 bytes), the data without gaps; all little-endian.
 * https://github.com/huggingface/safetensors. Thread: the caller's. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "saved/arrays.h"

#define ALIGN_BYTES 8u
#define RESERVED_NAME "__metadata__"

/* JSON being written; counts what does not fit. */
struct json {
	char *out;
	size_t room, bytes;
};

static void add(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
add(struct json *json, const char *format, ...)
{
	va_list args;
	size_t room = json->bytes < json->room ? json->room - json->bytes : 0;

	va_start(args, format);
	int bytes = vsnprintf(room > 0 ? json->out + json->bytes : NULL, room, format, args);
	va_end(args);
	WF_ASSERT(bytes >= 0);
	json->bytes += (size_t)bytes;
}

/* Of UTF-8, in which the names of imported arrays are. */
static void
add_string(struct json *json, const char *text)
{
	add(json, "\"");
	for (; *text != '\0'; text++) {
		const unsigned char byte = (unsigned char)*text;
		if (byte < ' ' || byte == 0x7f) {
			add(json, "\\u%04x", byte);
		} else {
			add(json, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
		}
	}
	add(json, "\"");
}

static void
add_metadata(struct json *json, const struct wf_saved_about *about)
{
	add(json, "{\"" RESERVED_NAME "\":{\"weft\":");
	add_string(json, about->version);
	add(json, ",\"pass\":\"%" PRIu64 "\",\"step\":\"%" PRIu64 "\",\"optimizer\":", about->pass,
	    about->step);
	add_string(json, about->optimizer);
	add(json, "}");
}

static void
add_array(struct json *json, const struct wf_saved_array *array, uint64_t at)
{
	add(json, ",");
	add_string(json, array->name);
	add(json, ":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
	    wf_array_type_about(array->type)->safetensors,
	    strcmp(array->shape, WF_SHAPE_SCALAR) == 0 ? "" : array->shape, at,
	    at + wf_array_bytes(array));
}

/* Everything between the length and the data. Returns its bytes. */
static size_t
make_header(const struct wf_saved *saved, bool with_state, char *out, size_t room)
{
	struct json json = {.out = out, .room = room};
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;
	uint64_t at = 0;

	add_metadata(&json, &saved->manifest.about);
	while (wf_arrays_next(saved, with_state, &cursor, &array)) {
		add_array(&json, &array, at);
		at += wf_array_bytes(&array);
	}
	add(&json, "}");
	while (json.bytes % ALIGN_BYTES != 0) {
		add(&json, " ");
	}
	return json.bytes;
}

static enum weft_status
write_header(const struct wf_saved *saved, bool with_state, struct wf_saved_file *to)
{
	const size_t bytes = make_header(saved, with_state, NULL, 0);
	uint8_t length[8];

	char *text = wf_zalloc(saved->env, bytes + 1);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "safetensors header: %zu bytes", bytes);
	}
	size_t again = make_header(saved, with_state, text, bytes + 1);
	WF_ASSERT(again == bytes);
	for (unsigned i = 0; i < sizeof(length); i++) {
		length[i] = (uint8_t)((uint64_t)bytes >> (8 * i));
	}
	enum weft_status st = wf_saved_file_write(to, length, sizeof(length));
	if (st == WEFT_OK) {
		st = wf_saved_file_write(to, text, bytes);
	}
	wf_free(saved->env, text, bytes + 1);
	return st;
}

static enum weft_status
check_reserved(const struct wf_saved *saved)
{
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;

	while (wf_arrays_next(saved, false, &cursor, &array)) {
		if (strcmp(array.name, RESERVED_NAME) == 0) {
			return wf_fail(WEFT_DATA,
				       "%s: a tensor is named " RESERVED_NAME
				       ", which is reserved in safetensors",
				       saved->path);
		}
	}
	return WEFT_OK;
}

static enum weft_status
write_all(const struct wf_saved *saved, bool with_state, struct wf_saved_file *to)
{
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;
	enum weft_status st = write_header(saved, with_state, to);

	while (st == WEFT_OK && wf_arrays_next(saved, with_state, &cursor, &array)) {
		st = wf_array_write(saved, &array, to);
	}
	return st;
}

enum weft_status
wf_saved_export_safetensors(const struct wf_saved *saved, const char *path, bool with_state)
{
	enum weft_status st = check_reserved(saved);
	return st == WEFT_OK ? wf_export(saved, with_state, path, write_all) : st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Export to the safetensors format: a u64 with the header's bytes, the header (JSON, padded with
 * blanks so that the data begin on 8 bytes), the data without gaps; all little-endian.
 * https://github.com/huggingface/safetensors. Thread: the caller's. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "trainer/saved/internal.h"

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

/* Of printable text, as everything from a manifest is. */
static void
add_string(struct json *json, const char *text)
{
	add(json, "\"");
	for (; *text != '\0'; text++) {
		add(json, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
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

static unsigned
file_count(const struct wf_manifest_tensor *tensor, bool with_state)
{
	return 1 + (with_state ? tensor->state_count : 0);
}

/* Everything between the length and the data. Returns its bytes. */
static size_t
make_header(const struct wf_manifest *manifest, bool with_state, char *out, size_t room)
{
	struct json json = {.out = out, .room = room};
	char name[WF_MANIFEST_NAME_BYTES];
	uint64_t at = 0;

	add_metadata(&json, &manifest->about);
	for (uint32_t i = 0; i < manifest->tensor_count; i++) {
		const struct wf_manifest_tensor *tensor = &manifest->tensor[i];
		const uint64_t bytes = tensor->rows * tensor->cols * sizeof(float);
		for (unsigned f = 0; f < file_count(tensor, with_state); f++) {
			wf_manifest_file_name(tensor->name, f, name);
			add(&json, ",");
			add_string(&json, name);
			add(&json,
			    ":{\"dtype\":\"F32\",\"shape\":[%" PRIu64 ",%" PRIu64
			    "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
			    tensor->rows, tensor->cols, at, at + bytes);
			at += bytes;
		}
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
	const size_t bytes = make_header(&saved->manifest, with_state, NULL, 0);
	uint8_t length[8];

	char *text = wf_zalloc(saved->env, bytes + 1);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "safetensors header: %zu bytes", bytes);
	}
	size_t again = make_header(&saved->manifest, with_state, text, bytes + 1);
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
write_data(const struct wf_saved *saved, bool with_state, struct wf_saved_file *to)
{
	struct wf_saved_file_place place;

	for (uint32_t i = 0; i < saved->manifest.tensor_count; i++) {
		const struct wf_manifest_tensor *tensor = &saved->manifest.tensor[i];
		for (unsigned f = 0; f < file_count(tensor, with_state); f++) {
			enum weft_status st = wf_saved_file_of(saved, i, f, &place);
			if (st == WEFT_OK) {
				st = wf_tensor_copy(saved->calls, &place.file, to);
			}
			if (st != WEFT_OK) {
				return st;
			}
		}
	}
	return WEFT_OK;
}

/* "folder/.name.tmp-PID" beside "folder/name", and the folder. Both [WF_SAVED_PATH_BYTES]. */
static enum weft_status
split_path(const char *path, char *folder, char *temporary)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	const int folder_bytes = slash == NULL ? 0 : (int)(name - path);
	int bytes = snprintf(temporary, WF_SAVED_PATH_BYTES, "%.*s.%s.tmp-%ld", folder_bytes, path,
			     name, (long)getpid());

	if (bytes < 0 || (size_t)bytes >= WF_SAVED_PATH_BYTES || name[0] == '\0') {
		return wf_fail(WEFT_INVALID,
			       "path \"%.60s\": has to name a file in less than %u bytes", path,
			       WF_SAVED_PATH_BYTES);
	}
	snprintf(folder, WF_SAVED_PATH_BYTES, "%.*s", folder_bytes, path);
	if (slash == NULL) {
		snprintf(folder, WF_SAVED_PATH_BYTES, ".");
	}
	return WEFT_OK;
}

static enum weft_status
check_reserved(const struct wf_saved *saved)
{
	for (uint32_t i = 0; i < saved->manifest.tensor_count; i++) {
		if (strcmp(saved->manifest.tensor[i].name, RESERVED_NAME) == 0) {
			return wf_fail(WEFT_DATA,
				       "%s: a tensor is named " RESERVED_NAME
				       ", which safetensors keeps for itself",
				       saved->path);
		}
	}
	return WEFT_OK;
}

static enum weft_status
write_file(const struct wf_saved *saved, bool with_state, const char *path)
{
	struct wf_saved_file to;
	enum weft_status st = wf_saved_file_create(saved->calls, path, &to);

	if (st != WEFT_OK) {
		return st;
	}
	st = write_header(saved, with_state, &to);
	if (st == WEFT_OK) {
		st = write_data(saved, with_state, &to);
	}
	return wf_saved_file_finish(&to, st);
}

enum weft_status
wf_saved_export_safetensors(const struct wf_saved *saved, const char *path, bool with_state)
{
	char folder[WF_SAVED_PATH_BYTES];
	char temporary[WF_SAVED_PATH_BYTES];

	enum weft_status st = check_reserved(saved);
	if (st == WEFT_OK) {
		st = split_path(path, folder, temporary);
	}
	if (st != WEFT_OK) {
		return st;
	}
	(void)unlink(temporary); /* of a process that had our number and died */
	st = write_file(saved, with_state, temporary);
	if (st == WEFT_OK && saved->calls->rename(temporary, path) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: cannot be renamed to %s", temporary, path);
	}
	if (st != WEFT_OK) {
		(void)unlink(temporary);
		return st;
	}
	return wf_saved_sync_folder(saved->calls, folder);
}

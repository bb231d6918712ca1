/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading whole saves. Thread: the caller's. */
#include "trainer/saved/saved.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/saved/directory.h"
#include "trainer/saved/internal.h"
#include "trainer/saved/tensors.h"

/* A save being written. */
struct writer {
	struct wf_env *env;
	struct wf_saved_way way;
	struct wf_manifest manifest;
	const struct wf_saved_tensor **tensor; /* [tensor_count], names ascending */
	uint32_t tensor_count;
};

/* One word, or as many as one likes, that a line of the manifest can have. */
static enum weft_status
check_text(const char *what, const char *text, bool is_word)
{
	for (size_t i = 0; text[i] != '\0'; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e || (is_word && text[i] == ' ')) {
			return wf_fail(WEFT_INVALID, "%s \"%.60s\": byte %zu cannot be saved", what,
				       text, i + 1);
		}
	}
	if (is_word && text[0] == '\0') {
		return wf_fail(WEFT_INVALID, "%s: is empty", what);
	}
	return WEFT_OK;
}

static int
compare_names(const void *a, const void *b)
{
	const struct wf_saved_tensor *const *left = a;
	const struct wf_saved_tensor *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

static enum weft_status
check_tensors(const struct writer *writer)
{
	for (uint32_t i = 0; i < writer->tensor_count; i++) {
		const struct wf_saved_tensor *tensor = writer->tensor[i];
		enum weft_status st = wf_saved_check_name(tensor->name);
		if (st != WEFT_OK) {
			return st;
		}
		if (i > 0 && strcmp(writer->tensor[i - 1]->name, tensor->name) == 0) {
			return wf_fail(WEFT_INVALID, "tensor %s: is there twice", tensor->name);
		}
		if (wf_manifest_file_bytes(tensor->rows, tensor->cols) == 0) {
			return wf_fail(WEFT_INVALID, "tensor %s: %" PRIu64 " x %" PRIu64,
				       tensor->name, tensor->rows, tensor->cols);
		}
	}
	return WEFT_OK;
}

static enum weft_status
writer_init(struct writer *writer, const struct wf_saved_about *about,
	    const struct wf_saved_tensor *tensor, uint32_t tensor_count)
{
	struct wf_manifest *manifest = &writer->manifest;

	WF_ASSERT(tensor_count > 0);
	writer->tensor_count = tensor_count;
	manifest->about = *about;
	manifest->tensor_count = tensor_count;
	manifest->tensor = wf_zalloc_array(writer->env, tensor_count, sizeof(*manifest->tensor));
	writer->tensor = wf_zalloc_array(writer->env, tensor_count, sizeof(const void *));
	if (manifest->tensor == NULL || writer->tensor == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest of %u tensors", tensor_count);
	}
	for (uint32_t i = 0; i < tensor_count; i++) {
		WF_ASSERT(tensor[i].state_count <= WF_SAVED_STATE_MAX);
		writer->tensor[i] = &tensor[i];
	}
	qsort(writer->tensor, tensor_count, sizeof(const void *), compare_names);
	enum weft_status st = check_text("version", about->version, true);
	if (st == WEFT_OK) {
		st = check_text("optimizer", about->optimizer, true);
	}
	if (st == WEFT_OK) {
		st = check_text("settings", about->settings, false);
	}
	return st == WEFT_OK ? check_tensors(writer) : st;
}

static void
writer_fini(struct writer *writer)
{
	wf_free(writer->env, writer->tensor, writer->tensor_count * sizeof(const void *));
	wf_manifest_fini(writer->env, &writer->manifest);
}

static enum weft_status
write_tensor(struct writer *writer, uint32_t idx)
{
	const struct wf_saved_tensor *tensor = writer->tensor[idx];
	struct wf_manifest_tensor *entry = &writer->manifest.tensor[idx];
	char name[WF_MANIFEST_NAME_BYTES];
	char path[WF_SAVED_PATH_BYTES];
	enum weft_status st = WEFT_OK;

	entry->rows = tensor->rows;
	entry->cols = tensor->cols;
	entry->state_count = tensor->state_count;
	snprintf(entry->name, sizeof(entry->name), "%s", tensor->name);
	for (unsigned i = 0; st == WEFT_OK && i < 1 + tensor->state_count; i++) {
		struct wf_tensor_file file = {.path = path, .count = tensor->rows * tensor->cols};
		wf_manifest_file_name(tensor->name, i, name);
		st = wf_saved_join(writer->way.temporary, name, path);
		if (st == WEFT_OK) {
			st = wf_tensor_write(writer->way.calls, &file,
					     i == 0 ? tensor->value : tensor->state[i - 1]);
		}
		entry->crc[i] = file.crc;
	}
	return st;
}

static enum weft_status
write_text(const struct writer *writer, const char *text, size_t bytes)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved_file file;

	enum weft_status st = wf_saved_join(writer->way.temporary, WF_MANIFEST_FILE, path);
	if (st == WEFT_OK) {
		st = wf_saved_file_create(writer->way.calls, path, &file);
	}
	if (st != WEFT_OK) {
		return st;
	}
	return wf_saved_file_finish(&file, wf_saved_file_write(&file, text, bytes));
}

static enum weft_status
write_manifest(const struct writer *writer)
{
	const size_t bytes = wf_manifest_encode(&writer->manifest, NULL, 0);

	if (bytes > WF_MANIFEST_BYTES_MAX) {
		return wf_fail(WEFT_INVALID, "manifest: %zu bytes; at most %u can be read again",
			       bytes, WF_MANIFEST_BYTES_MAX);
	}
	char *text = wf_zalloc(writer->env, bytes + 1);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %zu bytes", bytes);
	}
	size_t again = wf_manifest_encode(&writer->manifest, text, bytes + 1);
	WF_ASSERT(again == bytes);
	enum weft_status st = write_text(writer, text, bytes);
	wf_free(writer->env, text, bytes + 1);
	return st;
}

static enum weft_status
write_all(struct writer *writer)
{
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < writer->tensor_count; i++) {
		st = write_tensor(writer, i);
	}
	return st == WEFT_OK ? write_manifest(writer) : st;
}

enum weft_status
wf_saved_write(const struct wf_saved_place *place, const struct wf_saved_about *about,
	       const struct wf_saved_tensor *tensor, uint32_t tensor_count)
{
	struct writer writer = {.env = place->env};

	enum weft_status st = writer_init(&writer, about, tensor, tensor_count);
	if (st == WEFT_OK) {
		st = wf_saved_way_begin(place, about->pass, &writer.way);
	}
	if (st == WEFT_OK) {
		st = wf_saved_way_end(&writer.way, write_all(&writer));
	}
	writer_fini(&writer);
	return st;
}

enum weft_status
wf_saved_file_of(const struct wf_saved *saved, uint32_t idx, unsigned file,
		 struct wf_saved_file_place *out)
{
	const struct wf_manifest_tensor *entry = &saved->manifest.tensor[idx];
	char name[WF_MANIFEST_NAME_BYTES];

	wf_manifest_file_name(entry->name, file, name);
	out->file = (struct wf_tensor_file){
		.path = out->path,
		.count = entry->rows * entry->cols,
		.crc = entry->crc[file],
	};
	return wf_saved_join(saved->path, name, out->path);
}

static enum weft_status
decode(struct wf_saved *saved, struct wf_saved_file *file, char *text)
{
	enum weft_status st = wf_saved_file_read(file, text, (size_t)file->bytes);

	if (st != WEFT_OK) {
		return st;
	}
	st = wf_manifest_decode(saved->env, text, (size_t)file->bytes, &saved->manifest);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "%s: %s", file->path, why.text);
	}
	return WEFT_OK;
}

static enum weft_status
read_manifest(struct wf_saved *saved)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved_file file;

	enum weft_status st = wf_saved_join(saved->path, WF_MANIFEST_FILE, path);
	if (st == WEFT_OK) {
		st = wf_saved_file_open(saved->calls, path, &file);
	}
	if (st != WEFT_OK) {
		return st;
	}
	char *text = NULL;
	const size_t bytes = (size_t)file.bytes + 1; /* not none */
	if (file.bytes > WF_MANIFEST_BYTES_MAX) {
		st = wf_fail(WEFT_DATA, "%s: has %" PRIu64 " bytes; at most %u are read", path,
			     file.bytes, WF_MANIFEST_BYTES_MAX);
	} else {
		text = wf_zalloc(saved->env, bytes);
		st = text == NULL ? wf_fail(WEFT_NOMEM, "%s: %zu bytes", path, bytes)
				  : decode(saved, &file, text);
	}
	wf_free(saved->env, text, bytes);
	wf_saved_file_close(&file);
	return st;
}

static enum weft_status
check_files(const struct wf_saved *saved)
{
	struct wf_saved_file_place place;

	for (uint32_t i = 0; i < saved->manifest.tensor_count; i++) {
		for (unsigned f = 0; f < 1 + saved->manifest.tensor[i].state_count; f++) {
			enum weft_status st = wf_saved_file_of(saved, i, f, &place);
			if (st == WEFT_OK) {
				st = wf_tensor_read(saved->calls, &place.file, NULL);
			}
			if (st != WEFT_OK) {
				return st;
			}
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_saved_open(struct wf_env *env, const struct wf_saved_calls *calls, const char *path,
	      struct wf_saved **out)
{
	struct wf_saved *saved = wf_zalloc(env, sizeof(*saved));
	enum weft_status st = WEFT_OK;

	if (saved == NULL) {
		return wf_fail(WEFT_NOMEM, "save %s: %zu bytes", path, sizeof(*saved));
	}
	saved->env = env;
	saved->calls = calls;
	int bytes = snprintf(saved->path, sizeof(saved->path), "%s", path);
	if (bytes <= 0 || (size_t)bytes >= sizeof(saved->path)) {
		st = wf_fail(WEFT_INVALID, "save \"%.60s\": has to be a path of 1..%u bytes", path,
			     WF_SAVED_PATH_BYTES - 1);
		goto fail;
	}
	while (bytes > 1 && saved->path[bytes - 1] == '/') {
		saved->path[--bytes] = '\0';
	}
	wf_saved_recover(calls, saved->path);
	st = read_manifest(saved);
	if (st == WEFT_OK) {
		st = check_files(saved);
	}
	if (st != WEFT_OK) {
		goto fail;
	}
	*out = saved;
	return WEFT_OK;
fail:
	wf_saved_close(saved);
	return st;
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

static int
compare_entry(const void *name, const void *entry)
{
	return strcmp(name, ((const struct wf_manifest_tensor *)entry)->name);
}

/* The save's tensor of that name; `*out` is its place. */
static enum weft_status
match(const struct wf_saved *saved, const struct wf_saved_tensor *tensor, bool with_state,
      uint32_t *out)
{
	const struct wf_manifest *manifest = &saved->manifest;
	const struct wf_manifest_tensor *entry =
		bsearch(tensor->name, manifest->tensor, manifest->tensor_count, sizeof(*entry),
			compare_entry);

	if (entry == NULL) {
		return wf_fail(WEFT_DATA, "%s: tensor %s of this model is not there", saved->path,
			       tensor->name);
	}
	if (entry->rows != tensor->rows || entry->cols != tensor->cols) {
		return wf_fail(WEFT_DATA,
			       "%s: tensor %s is %" PRIu64 " x %" PRIu64
			       "; this model has it %" PRIu64 " x %" PRIu64,
			       saved->path, tensor->name, entry->rows, entry->cols, tensor->rows,
			       tensor->cols);
	}
	if (with_state && entry->state_count != tensor->state_count) {
		return wf_fail(WEFT_DATA,
			       "%s: tensor %s has %u state arrays; this optimizer has %u",
			       saved->path, tensor->name, entry->state_count, tensor->state_count);
	}
	*out = (uint32_t)(entry - manifest->tensor);
	return WEFT_OK;
}

/* Names of a model are unique, so equal numbers of tensors and all found means the same ones. */
static enum weft_status
match_all(const struct wf_saved *saved, const struct wf_saved_tensor *tensor, uint32_t tensor_count,
	  bool with_state)
{
	uint32_t idx = 0;

	for (uint32_t i = 0; i < tensor_count; i++) {
		enum weft_status st = match(saved, &tensor[i], with_state, &idx);
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (saved->manifest.tensor_count != tensor_count) {
		return wf_fail(WEFT_DATA, "%s: has %u tensors; this model has %u", saved->path,
			       saved->manifest.tensor_count, tensor_count);
	}
	return WEFT_OK;
}

static enum weft_status
load_tensor(const struct wf_saved *saved, const struct wf_saved_tensor *tensor, bool with_state)
{
	struct wf_saved_file_place place;
	uint32_t idx = 0;

	enum weft_status st = match(saved, tensor, with_state, &idx);
	for (unsigned f = 0; st == WEFT_OK && f < 1 + (with_state ? tensor->state_count : 0); f++) {
		st = wf_saved_file_of(saved, idx, f, &place);
		if (st == WEFT_OK) {
			st = wf_tensor_read(saved->calls, &place.file,
					    f == 0 ? tensor->value : tensor->state[f - 1]);
		}
	}
	return st;
}

enum weft_status
wf_saved_load(const struct wf_saved *saved, const struct wf_saved_tensor *tensor,
	      uint32_t tensor_count, bool with_state)
{
	enum weft_status st = match_all(saved, tensor, tensor_count, with_state);

	for (uint32_t i = 0; st == WEFT_OK && i < tensor_count; i++) {
		st = load_tensor(saved, &tensor[i], with_state);
	}
	return st;
}

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
	const struct wf_saved_table **table; /* [table_count], names ascending */
	uint32_t table_count;
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
compare_tensors(const void *a, const void *b)
{
	const struct wf_saved_tensor *const *left = a;
	const struct wf_saved_tensor *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

static int
compare_tables(const void *a, const void *b)
{
	const struct wf_saved_table *const *left = a;
	const struct wf_saved_table *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

static enum weft_status
check_shape(const struct wf_saved_tensor *tensor)
{
	struct wf_shape shape;

	if (wf_manifest_file_bytes(tensor->rows, tensor->cols) == 0) {
		return wf_fail(WEFT_INVALID, "tensor %s: %" PRIu64 " x %" PRIu64, tensor->name,
			       tensor->rows, tensor->cols);
	}
	if (wf_saved_has_shape(tensor) && (!wf_shape_parse(tensor->shape, &shape) ||
				  wf_shape_elements(&shape) != tensor->rows * tensor->cols)) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: shape %.100s is not one of %" PRIu64 " elements",
			       tensor->name, tensor->shape, tensor->rows * tensor->cols);
	}
	return WEFT_OK;
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
			return wf_fail(WEFT_INVALID, "tensor %s: occurs twice", tensor->name);
		}
		st = check_shape(tensor);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_tables(const struct writer *writer)
{
	for (uint32_t i = 0; i < writer->table_count; i++) {
		const struct wf_saved_table *table = writer->table[i];
		enum weft_status st = wf_saved_check_name(table->name);
		if (st == WEFT_OK) {
			st = check_text("optimizer", table->optimizer, true);
		}
		if (st == WEFT_OK) {
			st = wf_rows_check_head(&table->head);
		}
		if (st != WEFT_OK) {
			return st;
		}
		if (i > 0 && strcmp(writer->table[i - 1]->name, table->name) == 0) {
			return wf_fail(WEFT_INVALID, "table %s: occurs twice", table->name);
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_about(const struct wf_saved_about *about)
{
	enum weft_status st = check_text("version", about->version, true);
	if (st == WEFT_OK) {
		st = check_text("optimizer", about->optimizer, true);
	}
	return st == WEFT_OK ? check_text("settings", about->settings, false) : st;
}

/* NULL also where there is nothing to list. */
static void *
alloc_list(struct wf_env *env, uint32_t count, size_t item_bytes)
{
	return count == 0 ? NULL : wf_zalloc_array(env, count, item_bytes);
}

static enum weft_status
writer_init(struct writer *writer, const struct wf_saved_content *content)
{
	struct wf_manifest *manifest = &writer->manifest;
	struct wf_env *env = writer->env;
	const uint32_t tensors = content->tensor_count;
	const uint32_t tables = content->table_count;

	writer->tensor_count = tensors;
	writer->table_count = tables;
	manifest->tensor_count = tensors;
	manifest->table_count = tables;
	manifest->tensor = alloc_list(env, tensors, sizeof(*manifest->tensor));
	manifest->table = alloc_list(env, tables, sizeof(*manifest->table));
	writer->tensor = alloc_list(env, tensors, sizeof(const void *));
	writer->table = alloc_list(env, tables, sizeof(const void *));
	if ((tensors > 0 && (manifest->tensor == NULL || writer->tensor == NULL)) ||
	    (tables > 0 && (manifest->table == NULL || writer->table == NULL))) {
		return wf_fail(WEFT_NOMEM, "manifest of %u tensors and %u tables", tensors, tables);
	}
	return WEFT_OK;
}

/* Writes what is known before any array: the draft of the manifest. */
static void
list_files(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->tensor_count; i++) {
		const struct wf_saved_tensor *tensor = writer->tensor[i];
		struct wf_manifest_tensor *entry = &writer->manifest.tensor[i];
		entry->rows = tensor->rows;
		entry->cols = tensor->cols;
		entry->state_count = tensor->state_count;
		snprintf(entry->name, sizeof(entry->name), "%s", tensor->name);
		if (wf_saved_has_shape(tensor)) {
			snprintf(entry->shape, sizeof(entry->shape), "%s", tensor->shape);
		}
	}
	for (uint32_t i = 0; i < writer->table_count; i++) {
		const struct wf_saved_table *table = writer->table[i];
		struct wf_manifest_table *entry = &writer->manifest.table[i];
		snprintf(entry->name, sizeof(entry->name), "%s", table->name);
		snprintf(entry->optimizer, sizeof(entry->optimizer), "%s", table->optimizer);
		entry->dim = table->head.shape.dim;
	}
}

static enum weft_status
writer_fill(struct writer *writer, const struct wf_saved_about *about,
	    const struct wf_saved_content *content)
{
	writer->manifest.about = *about;
	for (uint32_t i = 0; i < writer->tensor_count; i++) {
		WF_ASSERT(content->tensor[i].state_count <= WF_SAVED_STATE_MAX);
		writer->tensor[i] = &content->tensor[i];
	}
	for (uint32_t i = 0; i < writer->table_count; i++) {
		writer->table[i] = &content->table[i];
	}
	if (writer->tensor_count > 0) {
		qsort(writer->tensor, writer->tensor_count, sizeof(const void *), compare_tensors);
	}
	if (writer->table_count > 0) {
		qsort(writer->table, writer->table_count, sizeof(const void *), compare_tables);
	}
	enum weft_status st = check_about(about);
	if (st == WEFT_OK) {
		st = check_tensors(writer);
	}
	if (st == WEFT_OK) {
		st = check_tables(writer);
	}
	if (st == WEFT_OK) {
		list_files(writer);
	}
	return st;
}

static void
writer_fini(struct writer *writer)
{
	wf_free(writer->env, writer->tensor, writer->tensor_count * sizeof(const void *));
	wf_free(writer->env, writer->table, writer->table_count * sizeof(const void *));
	wf_manifest_fini(writer->env, &writer->manifest);
}

/* Where a file of the save goes. */
static struct wf_saved_spot
spot_of(const struct writer *writer, const char *path)
{
	return (struct wf_saved_spot){writer->way.folder->calls, writer->way.fd, path};
}

static enum weft_status
write_tensor(struct writer *writer, uint32_t idx)
{
	const struct wf_saved_tensor *tensor = writer->tensor[idx];
	struct wf_manifest_tensor *entry = &writer->manifest.tensor[idx];
	char name[WF_MANIFEST_NAME_BYTES];
	char path[WF_SAVED_PATH_BYTES];
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; st == WEFT_OK && i < 1 + tensor->state_count; i++) {
		wf_manifest_file_name(tensor->name, i, name);
		st = wf_saved_join(writer->way.path, name, path);
		if (st == WEFT_OK) {
			const struct wf_saved_spot spot = spot_of(writer, path);
			st = wf_tensor_write(&spot, i == 0 ? tensor->value : tensor->state[i - 1],
					     tensor->rows * tensor->cols, &entry->crc[i]);
		}
	}
	return st;
}

static enum weft_status
write_table(struct writer *writer, uint32_t idx)
{
	const struct wf_saved_table *table = writer->table[idx];
	struct wf_manifest_table *entry = &writer->manifest.table[idx];
	struct wf_rows_writer *rows = NULL;
	struct wf_rows_sum sum = {0};
	char name[WF_MANIFEST_NAME_BYTES];
	char path[WF_SAVED_PATH_BYTES];

	wf_manifest_rows_name(table->name, name);
	enum weft_status st = wf_saved_join(writer->way.path, name, path);
	if (st == WEFT_OK) {
		const struct wf_saved_spot spot = spot_of(writer, path);
		st = wf_rows_create(writer->env, &spot, &table->head, &rows);
	}
	if (st == WEFT_OK) {
		st = wf_rows_finish(rows, table->fill(table, rows), &sum);
	}
	entry->rows = sum.row_count;
	entry->bytes = sum.bytes;
	entry->crc = sum.crc;
	return st;
}

static enum weft_status
write_text(const struct writer *writer, const char *name, const char *text, size_t bytes)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved_file file;

	enum weft_status st = wf_saved_join(writer->way.path, name, path);
	if (st == WEFT_OK) {
		const struct wf_saved_spot spot = spot_of(writer, path);
		st = wf_saved_file_create(&spot, &file);
	}
	if (st != WEFT_OK) {
		return st;
	}
	return wf_saved_file_finish(&file, wf_saved_file_write(&file, text, bytes));
}

/* Writes the manifest in its current state into a file `name`. */
static enum weft_status
write_manifest(const struct writer *writer, const char *name)
{
	const size_t bytes = wf_manifest_encode(&writer->manifest, NULL, 0);

	if (bytes > WF_MANIFEST_BYTES_MAX) {
		return wf_fail(WEFT_INVALID, "manifest: %zu bytes; at most %u can be read back",
			       bytes, WF_MANIFEST_BYTES_MAX);
	}
	char *text = wf_zalloc(writer->env, bytes + 1);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %zu bytes", bytes);
	}
	size_t again = wf_manifest_encode(&writer->manifest, text, bytes + 1);
	WF_ASSERT(again == bytes);
	enum weft_status st = write_text(writer, name, text, bytes);
	wf_free(writer->env, text, bytes + 1);
	return st;
}

/* The draft exists before any file that it names, and until the manifest exists. */
static enum weft_status
write_all(struct writer *writer)
{
	enum weft_status st = write_manifest(writer, WF_MANIFEST_DRAFT);

	for (uint32_t i = 0; st == WEFT_OK && i < writer->tensor_count; i++) {
		st = write_tensor(writer, i);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < writer->table_count; i++) {
		st = write_table(writer, i);
	}
	return st == WEFT_OK ? write_manifest(writer, WF_MANIFEST_FILE) : st;
}

enum weft_status
wf_saved_write_all(struct wf_saved_folder *folder, const struct wf_saved_about *about,
		   const struct wf_saved_content *content)
{
	struct writer writer = {.env = folder->env};

	WF_ASSERT(content->tensor_count > 0 || content->table_count > 0);
	enum weft_status st = writer_init(&writer, content);
	if (st == WEFT_OK) {
		st = writer_fill(&writer, about, content);
	}
	if (st == WEFT_OK) {
		st = wf_saved_way_begin(folder, about->pass, &writer.way);
	}
	if (st == WEFT_OK) {
		st = wf_saved_way_end(&writer.way, write_all(&writer));
	}
	writer_fini(&writer);
	return st;
}

enum weft_status
wf_saved_write(struct wf_saved_folder *folder, const struct wf_saved_about *about,
	       const struct wf_saved_tensor *tensor, uint32_t tensor_count)
{
	const struct wf_saved_content content = {.tensor = tensor, .tensor_count = tensor_count};

	return wf_saved_write_all(folder, about, &content);
}

enum weft_status
wf_saved_rows_path(const struct wf_saved *saved, uint32_t idx, char *out)
{
	char name[WF_MANIFEST_NAME_BYTES];

	wf_manifest_rows_name(saved->manifest.table[idx].name, name);
	return wf_saved_join(saved->path, name, out);
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
decode(struct wf_env *env, struct wf_saved_file *file, char *text, struct wf_manifest *out)
{
	enum weft_status st = wf_saved_file_read(file, text, (size_t)file->bytes);

	if (st != WEFT_OK) {
		return st;
	}
	st = wf_manifest_decode(env, text, (size_t)file->bytes, out);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "%s: %s", file->path, why.text);
	}
	return WEFT_OK;
}

enum weft_status
wf_saved_read_manifest(struct wf_env *env, struct wf_saved_file *file, struct wf_manifest *out)
{
	const size_t bytes = (size_t)file->bytes + 1; /* not none */

	if (file->bytes > WF_MANIFEST_BYTES_MAX) {
		return wf_fail(WEFT_DATA, "%s: has %" PRIu64 " bytes; at most %u are read",
			       file->path, file->bytes, WF_MANIFEST_BYTES_MAX);
	}
	char *text = wf_zalloc(env, bytes);
	enum weft_status st = text == NULL ? wf_fail(WEFT_NOMEM, "%s: %zu bytes", file->path, bytes)
					   : decode(env, file, text, out);
	wf_free(env, text, bytes);
	return st;
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
	st = wf_saved_read_manifest(saved->env, &file, &saved->manifest);
	wf_saved_file_close(&file);
	return st;
}

/* Every byte of a table's file, and that it is the one that the manifest means. */
static enum weft_status
check_rows(struct wf_saved *saved, uint32_t idx)
{
	struct wf_manifest_table *table = &saved->manifest.table[idx];
	struct wf_rows_sum sum;
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = wf_saved_rows_path(saved, idx, path);
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
	for (uint32_t i = 0; i < saved->manifest.table_count; i++) {
		enum weft_status st = check_rows(saved, i);
		if (st != WEFT_OK) {
			return st;
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
		st = wf_fail(WEFT_INVALID, "save \"%.60s\": must be a path of 1 to %u bytes", path,
			     WF_SAVED_PATH_BYTES - 1);
		goto fail;
	}
	while (bytes > 1 && saved->path[bytes - 1] == '/') {
		saved->path[--bytes] = '\0';
	}
	wf_saved_recover(env, calls, saved->path);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Writing whole saves. Thread: the caller's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "saved/aside.h"
#include "saved/directory.h"
#include "saved/internal.h"
#include "saved/tensors.h"

/* Something to save, by the name of its file. */
struct named {
	char name[WF_SAVED_NAME_BYTES];
	const void *from; /* the caller's wf_saved_tensor, _table or _aside */
};

/* A save being written. */
struct writer {
	struct wf_env *env;
	struct wf_saved_way way;
	struct wf_manifest manifest;
	struct named *tensor; /* [tensor_count] of the manifest, names ascending */
	struct named *table;  /* [table_count], likewise */
	struct named *aside;  /* [aside_count], likewise */
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
compare_named(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* `first`: the first of the caller's structs, each of which begins with its name. */
static enum weft_status
name_all(const char *what, const void *first, size_t item_bytes, uint32_t count, struct named *out)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *name = NULL;
		out[i].from = (const char *)first + i * item_bytes;
		memcpy(&name, out[i].from, sizeof(name));
		enum weft_status st = wf_saved_name_settle(name, out[i].name);
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (count > 0) {
		qsort(out, count, sizeof(*out), compare_named);
	}
	for (uint32_t i = 1; i < count; i++) {
		if (strcmp(out[i - 1].name, out[i].name) == 0) {
			return wf_fail(WEFT_INVALID, "%s %s: occurs twice", what, out[i].name);
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_shape(const struct wf_saved_tensor *tensor)
{
	struct wf_shape shape;

	if (wf_manifest_file_bytes(tensor->rows, tensor->cols) == 0) {
		return wf_fail(WEFT_INVALID, "tensor %s: %" PRIu64 " x %" PRIu64, tensor->name,
			       tensor->rows, tensor->cols);
	}
	if (wf_saved_has_shape(tensor) &&
	    (!wf_shape_parse(tensor->shape, &shape) ||
	     wf_shape_elements(&shape) != tensor->rows * tensor->cols)) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: shape %.100s is not one of %" PRIu64 " elements",
			       tensor->name, tensor->shape, tensor->rows * tensor->cols);
	}
	return WEFT_OK;
}

static enum weft_status
check_table(const struct wf_saved_table *table)
{
	enum weft_status st = check_text("optimizer", table->optimizer, true);

	return st == WEFT_OK ? wf_rows_check_head(&table->head) : st;
}

/* An array aside has a shape, and a file that no tensor has. */
static enum weft_status
check_aside(const struct writer *writer, const struct named *named)
{
	const struct wf_saved_aside *aside = named->from;
	uint64_t bytes = 0;

	if (!wf_manifest_aside_bytes(aside->type, aside->shape, &bytes)) {
		return wf_fail(WEFT_INVALID, "array %s: %.100s is no shape", aside->name,
			       aside->shape);
	}
	if (writer->manifest.tensor_count > 0 &&
	    bsearch(named, writer->tensor, writer->manifest.tensor_count, sizeof(*named),
		    compare_named) != NULL) {
		return wf_fail(WEFT_INVALID, "array %s: a tensor has its name", aside->name);
	}
	return WEFT_OK;
}

static enum weft_status
check_items(const struct writer *writer)
{
	const struct wf_manifest *manifest = &writer->manifest;
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 0; st == WEFT_OK && i < manifest->tensor_count; i++) {
		st = check_shape(writer->tensor[i].from);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < manifest->table_count; i++) {
		st = check_table(writer->table[i].from);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < manifest->aside_count; i++) {
		st = check_aside(writer, &writer->aside[i]);
	}
	return st;
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

void
wf_saved_describe(const struct wf_session_values *values, struct wf_saved_about *about)
{
	struct wf_session_values own = *values;
	struct wf_session_values usual;

	snprintf(about->optimizer, sizeof(about->optimizer), "%s", values->opts.optimizer.method);
	wf_session_defaults(&usual);
	own.opts.optimizer.method = usual.opts.optimizer.method; /* a separate setting */
	own.opts.optimizer.first_pass = usual.opts.optimizer.first_pass;
	own.opts.slice_bytes = usual.opts.slice_bytes;
	wf_settings_describe(WEFT_SETTINGS_SESSION, &own, ' ', about->settings,
			     sizeof(about->settings));
}

/* NULL also where there is nothing to list. */
static void *
alloc_list(struct wf_env *env, uint32_t count, size_t item_bytes)
{
	return count == 0 ? NULL : wf_zalloc_array(env, count, item_bytes);
}

static bool
is_lacking(const void *list, uint32_t count)
{
	return list == NULL && count > 0;
}

static enum weft_status
writer_init(struct writer *writer, const struct wf_saved_content *content)
{
	struct wf_manifest *manifest = &writer->manifest;
	struct wf_env *env = writer->env;
	const uint32_t tensors = content->tensor_count;
	const uint32_t tables = content->table_count;
	const uint32_t asides = content->aside_count;

	manifest->tensor_count = tensors;
	manifest->table_count = tables;
	manifest->aside_count = asides;
	manifest->tensor = alloc_list(env, tensors, sizeof(*manifest->tensor));
	manifest->table = alloc_list(env, tables, sizeof(*manifest->table));
	manifest->aside = alloc_list(env, asides, sizeof(*manifest->aside));
	writer->tensor = alloc_list(env, tensors, sizeof(struct named));
	writer->table = alloc_list(env, tables, sizeof(struct named));
	writer->aside = alloc_list(env, asides, sizeof(struct named));
	if (is_lacking(manifest->tensor, tensors) || is_lacking(writer->tensor, tensors) ||
	    is_lacking(manifest->table, tables) || is_lacking(writer->table, tables) ||
	    is_lacking(manifest->aside, asides) || is_lacking(writer->aside, asides)) {
		return wf_fail(WEFT_NOMEM, "manifest of %u tensors, %u tables and %u arrays",
			       tensors, tables, asides);
	}
	return WEFT_OK;
}

static void
list_tensor(const struct named *named, struct wf_manifest_tensor *entry)
{
	const struct wf_saved_tensor *tensor = named->from;

	WF_ASSERT(tensor->state_count <= WF_SAVED_STATE_MAX);
	memcpy(entry->name, named->name, sizeof(entry->name));
	entry->rows = tensor->rows;
	entry->cols = tensor->cols;
	entry->state_count = tensor->state_count;
	if (wf_saved_has_shape(tensor)) {
		snprintf(entry->shape, sizeof(entry->shape), "%s", tensor->shape);
	}
}

/* Writes what is known before any array: the draft of the manifest. */
static void
list_files(struct writer *writer)
{
	struct wf_manifest *manifest = &writer->manifest;

	for (uint32_t i = 0; i < manifest->tensor_count; i++) {
		list_tensor(&writer->tensor[i], &manifest->tensor[i]);
	}
	for (uint32_t i = 0; i < manifest->table_count; i++) {
		const struct wf_saved_table *table = writer->table[i].from;
		struct wf_manifest_table *entry = &manifest->table[i];
		memcpy(entry->name, writer->table[i].name, sizeof(entry->name));
		snprintf(entry->optimizer, sizeof(entry->optimizer), "%s", table->optimizer);
		entry->dim = table->head.shape.dim;
	}
	for (uint32_t i = 0; i < manifest->aside_count; i++) {
		const struct wf_saved_aside *aside = writer->aside[i].from;
		struct wf_manifest_aside *entry = &manifest->aside[i];
		memcpy(entry->name, writer->aside[i].name, sizeof(entry->name));
		entry->type = aside->type;
		snprintf(entry->shape, sizeof(entry->shape), "%s", aside->shape);
		const bool is_shape =
			wf_manifest_aside_bytes(aside->type, aside->shape, &entry->bytes);
		WF_ASSERT(is_shape); /* check_aside */
	}
}

static enum weft_status
writer_fill(struct writer *writer, const struct wf_saved_about *about,
	    const struct wf_saved_content *content)
{
	writer->manifest.about = *about;
	enum weft_status st = check_about(about);
	if (st == WEFT_OK) {
		st = name_all("tensor", content->tensor, sizeof(*content->tensor),
			      content->tensor_count, writer->tensor);
	}
	if (st == WEFT_OK) {
		st = name_all("table", content->table, sizeof(*content->table),
			      content->table_count, writer->table);
	}
	if (st == WEFT_OK) {
		st = name_all("array", content->aside, sizeof(*content->aside),
			      content->aside_count, writer->aside);
	}
	if (st == WEFT_OK) {
		st = check_items(writer);
	}
	if (st == WEFT_OK) {
		list_files(writer);
	}
	return st;
}

static void
writer_fini(struct writer *writer)
{
	const struct wf_manifest *manifest = &writer->manifest;

	wf_free(writer->env, writer->tensor, manifest->tensor_count * sizeof(struct named));
	wf_free(writer->env, writer->table, manifest->table_count * sizeof(struct named));
	wf_free(writer->env, writer->aside, manifest->aside_count * sizeof(struct named));
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
	const struct wf_saved_tensor *tensor = writer->tensor[idx].from;
	struct wf_manifest_tensor *entry = &writer->manifest.tensor[idx];
	char name[WF_MANIFEST_NAME_BYTES];
	char path[WF_SAVED_PATH_BYTES];
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; st == WEFT_OK && i < 1 + tensor->state_count; i++) {
		wf_manifest_file_name(entry->name, i, name);
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
	const struct wf_saved_table *table = writer->table[idx].from;
	struct wf_manifest_table *entry = &writer->manifest.table[idx];
	struct wf_rows_writer *rows = NULL;
	struct wf_rows_sum sum = {0};
	char name[WF_MANIFEST_NAME_BYTES];
	char path[WF_SAVED_PATH_BYTES];

	wf_manifest_rows_name(entry->name, name);
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
write_aside(struct writer *writer, uint32_t idx)
{
	const struct wf_saved_aside *aside = writer->aside[idx].from;
	struct wf_manifest_aside *entry = &writer->manifest.aside[idx];
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = wf_saved_join(writer->way.path, entry->name, path);
	if (st == WEFT_OK) {
		const struct wf_saved_spot spot = spot_of(writer, path);
		st = wf_aside_write(&spot, aside->bytes, entry->bytes, &entry->crc);
	}
	return st;
}

/* Writes the manifest in its current state into a file `name`. */
static enum weft_status
write_manifest(const struct writer *writer, const char *name)
{
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = wf_saved_join(writer->way.path, name, path);
	if (st == WEFT_OK) {
		const struct wf_saved_spot spot = spot_of(writer, path);
		st = wf_manifest_write(writer->env, &spot, &writer->manifest);
	}
	return st;
}

/* The draft exists before any file that it names, and until the manifest exists. */
static enum weft_status
write_all(struct writer *writer)
{
	enum weft_status st = write_manifest(writer, WF_MANIFEST_DRAFT);

	for (uint32_t i = 0; st == WEFT_OK && i < writer->manifest.tensor_count; i++) {
		st = write_tensor(writer, i);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < writer->manifest.table_count; i++) {
		st = write_table(writer, i);
	}
	for (uint32_t i = 0; st == WEFT_OK && i < writer->manifest.aside_count; i++) {
		st = write_aside(writer, i);
	}
	return st == WEFT_OK ? write_manifest(writer, WF_MANIFEST_FILE) : st;
}

enum weft_status
wf_saved_write_all(struct wf_saved_folder *folder, const struct wf_saved_about *about,
		   const struct wf_saved_content *content)
{
	struct writer writer = {.env = folder->env};

	WF_ASSERT(content->tensor_count > 0 || content->table_count > 0 ||
		  content->aside_count > 0);
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

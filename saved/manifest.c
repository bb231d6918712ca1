/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding is strict: manifest_line.h. Memory is bounded by the text: a count is believed only as
 * far as there is text for it. Thread: the caller's. */
#include "saved/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "saved/manifest_line.h"
#include "saved/manifest_parts.h"

#define FIRST_WORDS "weft saved model "
#define CRC_LINE_BYTES 16u /* "crc32c 01234567\n" */
/* "tensor a 1 1 0\n"; and "file a 20 01234567\n", but for a snapshot */
#define TENSOR_TEXT_BYTES_MIN(has_parts) ((has_parts) ? 15u : 34u)
/* "table a b 1 0\n"; and "file a.rows 0 01234567\n", but for a snapshot */
#define TABLE_TEXT_BYTES_MIN(has_parts) ((has_parts) ? 14u : 37u)
/* "aside a i8 0\n" and "file a 0 01234567\n" */
#define ASIDE_TEXT_BYTES_MIN 31u

uint64_t
wf_manifest_file_bytes(uint64_t rows, uint64_t cols)
{
	const uint64_t count_max = ((uint64_t)INT64_MAX - WF_TENSOR_HEADER_BYTES) / sizeof(float);

	if (rows == 0 || cols == 0 || rows > count_max / cols) {
		return 0;
	}
	return WF_TENSOR_HEADER_BYTES + rows * cols * sizeof(float);
}

bool
wf_manifest_aside_bytes(enum wf_array_type type, const char *shape, uint64_t *out)
{
	const unsigned each = wf_array_type_about(type)->bytes;
	struct wf_shape dims;

	if (!wf_shape_parse(shape, &dims) ||
	    wf_shape_elements(&dims) > (uint64_t)INT64_MAX / each) {
		return false;
	}
	*out = wf_shape_elements(&dims) * each;
	return true;
}

void
wf_manifest_file_name(const char *tensor, unsigned idx, char *out)
{
	if (idx == 0) {
		snprintf(out, WF_MANIFEST_NAME_BYTES, "%s", tensor);
	} else {
		snprintf(out, WF_MANIFEST_NAME_BYTES, "%s.state%u", tensor, idx - 1);
	}
}

void
wf_manifest_rows_name(const char *table, char *out)
{
	snprintf(out, WF_MANIFEST_NAME_BYTES, "%s.rows", table);
}

static int
compare_tensor(const void *name, const void *entry)
{
	return strcmp(name, ((const struct wf_manifest_tensor *)entry)->name);
}

static int
compare_aside(const void *name, const void *entry)
{
	return strcmp(name, ((const struct wf_manifest_aside *)entry)->name);
}

static bool
has_aside(const struct wf_manifest *manifest, const char *name)
{
	return manifest->aside_count > 0 &&
	       bsearch(name, manifest->aside, manifest->aside_count, sizeof(*manifest->aside),
		       compare_aside) != NULL;
}

static int
compare_table(const void *name, const void *entry)
{
	return strcmp(name, ((const struct wf_manifest_table *)entry)->name);
}

/* Names of tensors and tables have no ".state" and no ".rows", so the part before it names the
 * owner of a file. */
bool
wf_manifest_has_file(const struct wf_manifest *manifest, const char *file)
{
	if (wf_manifest_is_snapshot(manifest)) {
		return wf_manifest_parts_have(&manifest->parts, file);
	}
	const char *end = strstr(file, ".state");
	char owner[WF_SAVED_NAME_BYTES];
	char name[WF_MANIFEST_NAME_BYTES];

	end = end != NULL ? end : strstr(file, ".rows");
	const size_t bytes = end != NULL ? (size_t)(end - file) : strlen(file);
	if (bytes == 0 || bytes >= sizeof(owner)) {
		return false;
	}
	snprintf(owner, sizeof(owner), "%.*s", (int)bytes, file);
	const struct wf_manifest_tensor *tensor =
		manifest->tensor_count == 0
			? NULL
			: bsearch(owner, manifest->tensor, manifest->tensor_count, sizeof(*tensor),
				  compare_tensor);
	for (unsigned i = 0; tensor != NULL && i < 1 + tensor->state_count; i++) {
		wf_manifest_file_name(owner, i, name);
		if (strcmp(file, name) == 0) {
			return true;
		}
	}
	const struct wf_manifest_table *table =
		manifest->table_count == 0 ? NULL
					   : bsearch(owner, manifest->table, manifest->table_count,
						     sizeof(*table), compare_table);
	wf_manifest_rows_name(owner, name);
	return (table != NULL && strcmp(file, name) == 0) || has_aside(manifest, file);
}

static bool
has_parts(const struct wf_line_cursor *cursor)
{
	return (cursor->has & WF_MANIFEST_FORMAT_PARTS) != 0;
}

static enum weft_status
parse_settings(struct wf_line_cursor *cursor, char *out, size_t room)
{
	enum weft_status st = wf_line_parse(cursor, "settings");

	if (st != WEFT_OK) {
		return st;
	}
	if (strlen(cursor->word) >= room) {
		return wf_line_bad(cursor, "is too long");
	}
	snprintf(out, room, "%s", cursor->word);
	return WEFT_OK;
}

static enum weft_status
parse_file(struct wf_line_cursor *cursor, struct wf_manifest_tensor *tensor, unsigned idx)
{
	char wanted[WF_MANIFEST_NAME_BYTES];
	char name[WF_MANIFEST_NAME_BYTES];
	uint64_t bytes = 0;
	enum weft_status st = wf_line_parse(cursor, "file");

	if (st != WEFT_OK) {
		return st;
	}
	wf_manifest_file_name(tensor->name, idx, wanted);
	if (wf_line_parse_word(cursor, name, sizeof(name)) == NULL || strcmp(name, wanted) != 0) {
		return wf_line_bad(cursor, "must name the tensor's next file");
	}
	if (!wf_line_parse_u64(cursor, &bytes) ||
	    bytes != wf_manifest_file_bytes(tensor->rows, tensor->cols)) {
		return wf_line_bad(cursor, "must give 16 bytes and 4 for each element");
	}
	if (!wf_line_parse_crc(cursor, &tensor->crc[idx]) || !wf_line_at_end(cursor)) {
		return wf_line_bad(cursor, "must end with a checksum of 8 digits");
	}
	return WEFT_OK;
}

static enum weft_status
parse_shape(struct wf_line_cursor *cursor, struct wf_manifest_tensor *out)
{
	struct wf_shape shape;
	enum weft_status st = wf_line_parse(cursor, "shape");

	if (st != WEFT_OK) {
		return st;
	}
	if (wf_line_parse_word(cursor, out->shape, sizeof(out->shape)) == NULL ||
	    !wf_line_at_end(cursor) || !wf_shape_parse(out->shape, &shape)) {
		return wf_line_bad(cursor, "must have a shape like 4,3,3,3");
	}
	if (wf_shape_elements(&shape) != out->rows * out->cols) {
		return wf_line_bad(cursor, "must have as many elements as rows and columns");
	}
	return WEFT_OK;
}

/* The next line, which begins with `key` and a name; names ascend. `out` is [WF_SAVED_NAME_BYTES].
 */
static enum weft_status
parse_named(struct wf_line_cursor *cursor, const char *key, const char *before, char *out)
{
	enum weft_status st = wf_line_parse(cursor, key);

	if (st != WEFT_OK) {
		return st;
	}
	if (wf_line_parse_word(cursor, out, WF_SAVED_NAME_BYTES) == NULL ||
	    !wf_saved_name_is_file(out)) {
		return wf_line_bad(cursor, "must have a name that a file can have");
	}
	return strcmp(before, out) < 0 ? WEFT_OK
				       : wf_line_bad(cursor, "names must be in ascending order");
}

static enum weft_status
parse_tensor(struct wf_line_cursor *cursor, const char *before, struct wf_manifest_tensor *out)
{
	uint64_t states = 0;
	enum weft_status st = parse_named(cursor, "tensor", before, out->name);

	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_line_parse_u64(cursor, &out->rows) || !wf_line_parse_u64(cursor, &out->cols) ||
	    wf_manifest_file_bytes(out->rows, out->cols) == 0) {
		return wf_line_bad(cursor, "must have rows and columns");
	}
	if (!wf_line_parse_u64(cursor, &states) || states > WF_SAVED_STATE_MAX ||
	    !wf_line_at_end(cursor)) {
		return wf_line_bad(cursor, "must end with a number of states");
	}
	out->state_count = (uint32_t)states;
	if ((cursor->has & WF_MANIFEST_FORMAT_SHAPES) != 0 && wf_line_is_next(cursor, "shape ")) {
		st = parse_shape(cursor, out);
		cursor->shape_count++;
	}
	const unsigned file_count = has_parts(cursor) ? 0 : 1 + out->state_count;
	for (unsigned i = 0; st == WEFT_OK && i < file_count; i++) {
		st = parse_file(cursor, out, i);
	}
	return st;
}

/* The first line, then the checksum: a later format may have another one, or none. */
static enum weft_status
check_frame(struct wf_line_cursor *cursor, size_t bytes)
{
	char wanted[CRC_LINE_BYTES + 1];
	uint64_t format = 0;
	enum weft_status st = wf_line_parse(cursor, "weft saved model");

	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_line_parse_u64(cursor, &format) || !wf_line_at_end(cursor)) {
		return wf_line_bad(cursor, "must give the version of the format");
	}
	const uint32_t last = WF_MANIFEST_FORMAT + WF_MANIFEST_FORMAT_ALL;
	if (format < WF_MANIFEST_FORMAT || format > last) {
		return wf_fail(WEFT_DATA,
			       "format version %" PRIu64 ": this weft reads versions %u to %u "
			       "only; use the one that wrote it",
			       format, WF_MANIFEST_FORMAT, last);
	}
	cursor->has = format - WF_MANIFEST_FORMAT;
	if (bytes < CRC_LINE_BYTES) {
		return wf_fail(WEFT_DATA, "has no checksum in its last line: it is truncated");
	}
	cursor->bytes = bytes - CRC_LINE_BYTES;
	snprintf(wanted, sizeof(wanted), "crc32c %08" PRIx32 "\n",
		 wf_crc32c(0, cursor->text, cursor->bytes));
	if (cursor->at > cursor->bytes ||
	    memcmp(cursor->text + cursor->bytes, wanted, CRC_LINE_BYTES) != 0) {
		return wf_fail(WEFT_DATA,
			       "its last line must be \"crc32c %08" PRIx32 "\": it is damaged",
			       wf_crc32c(0, cursor->text, cursor->bytes));
	}
	return WEFT_OK;
}

static enum weft_status
parse_about(struct wf_line_cursor *cursor, struct wf_manifest *out)
{
	struct wf_saved_about *about = &out->about;
	enum weft_status st =
		wf_line_parse_one_word(cursor, "version", about->version, sizeof(about->version));
	if (st == WEFT_OK) {
		st = wf_line_parse_number(cursor, "pass", &about->pass);
	}
	if (st == WEFT_OK && (cursor->has & WF_MANIFEST_FORMAT_BATCH) != 0) {
		st = wf_line_parse_number(cursor, "batch", &about->batch);
		if (st == WEFT_OK && about->batch == 0) {
			st = wf_line_bad(cursor, "must count at least 1");
		}
	}
	if (st == WEFT_OK) {
		st = wf_line_parse_number(cursor, "step", &about->step);
	}
	if (st == WEFT_OK) {
		st = wf_line_parse_number(cursor, "samples", &about->samples);
	}
	if (st == WEFT_OK && has_parts(cursor)) {
		st = wf_manifest_parse_parts_about(cursor, about->step, &out->parts);
	}
	if (st == WEFT_OK) {
		st = wf_line_parse_one_word(cursor, "optimizer", about->optimizer,
					    sizeof(about->optimizer));
	}
	if (st == WEFT_OK) {
		st = parse_settings(cursor, about->settings, sizeof(about->settings));
	}
	return st;
}

static enum weft_status
check_shapes(const struct wf_line_cursor *cursor)
{
	if (cursor->shape_count == 0 && (cursor->has & WF_MANIFEST_FORMAT_SHAPES) != 0) {
		return wf_line_bad(cursor,
				   "no tensor has a shape, as a format of this version must");
	}
	return WEFT_OK;
}

static enum weft_status
parse_tensors(struct wf_env *env, struct wf_line_cursor *cursor, struct wf_manifest *out)
{
	const bool may_be_none =
		(cursor->has & (WF_MANIFEST_FORMAT_TABLES | WF_MANIFEST_FORMAT_ASIDES)) != 0;
	uint32_t count = 0;
	enum weft_status st = wf_line_parse_count(cursor, "tensors",
						  TENSOR_TEXT_BYTES_MIN(has_parts(cursor)), &count);

	if (st != WEFT_OK) {
		return st;
	}
	if (count == 0 && !may_be_none) {
		return wf_line_bad(cursor, "must count at least 1");
	}
	if (count == 0) {
		return check_shapes(cursor);
	}
	out->tensor = wf_zalloc_array(env, count, sizeof(*out->tensor));
	if (out->tensor == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %" PRIu32 " tensors", count);
	}
	out->tensor_count = count;
	for (uint32_t i = 0; st == WEFT_OK && i < out->tensor_count; i++) {
		st = parse_tensor(cursor, i == 0 ? "" : out->tensor[i - 1].name, &out->tensor[i]);
	}
	return st == WEFT_OK ? check_shapes(cursor) : st;
}

static enum weft_status
parse_table(struct wf_line_cursor *cursor, const char *before, struct wf_manifest_table *out)
{
	char wanted[WF_MANIFEST_NAME_BYTES];
	char name[WF_MANIFEST_NAME_BYTES];
	uint64_t dim = 0;
	enum weft_status st = parse_named(cursor, "table", before, out->name);

	if (st != WEFT_OK) {
		return st;
	}
	if (wf_line_parse_word(cursor, out->optimizer, sizeof(out->optimizer)) == NULL ||
	    !wf_line_parse_u64(cursor, &dim) || dim == 0 || dim > WF_ROW_RECORD_DIM_MAX ||
	    !wf_line_parse_u64(cursor, &out->rows) || !wf_line_at_end(cursor)) {
		return wf_line_bad(
			cursor,
			"must have an optimizer, the values of a row, and the number of rows");
	}
	out->dim = (uint32_t)dim;
	if (has_parts(cursor)) {
		return WEFT_OK;
	}
	st = wf_line_parse(cursor, "file");
	if (st != WEFT_OK) {
		return st;
	}
	wf_manifest_rows_name(out->name, wanted);
	if (wf_line_parse_word(cursor, name, sizeof(name)) == NULL || strcmp(name, wanted) != 0 ||
	    !wf_line_parse_u64(cursor, &out->bytes) || !wf_line_parse_crc(cursor, &out->crc) ||
	    !wf_line_at_end(cursor)) {
		return wf_line_bad(
			cursor,
			"must have the table's file, its bytes, and a checksum of 8 digits");
	}
	return WEFT_OK;
}

static enum weft_status
parse_tables(struct wf_env *env, struct wf_line_cursor *cursor, struct wf_manifest *out)
{
	uint32_t count = 0;
	enum weft_status st = wf_line_parse_count(cursor, "tables",
						  TABLE_TEXT_BYTES_MIN(has_parts(cursor)), &count);

	if (st != WEFT_OK) {
		return st;
	}
	if (count == 0) {
		return wf_line_bad(cursor, "must count at least 1");
	}
	out->table = wf_zalloc_array(env, count, sizeof(*out->table));
	if (out->table == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %" PRIu32 " tables", count);
	}
	out->table_count = count;
	for (uint32_t i = 0; st == WEFT_OK && i < out->table_count; i++) {
		st = parse_table(cursor, i == 0 ? "" : out->table[i - 1].name, &out->table[i]);
	}
	return st;
}

static enum weft_status
parse_aside(struct wf_line_cursor *cursor, const char *before, struct wf_manifest_aside *out)
{
	char word[WF_MANIFEST_NAME_BYTES];
	uint64_t bytes = 0;
	enum weft_status st = parse_named(cursor, "aside", before, out->name);

	if (st != WEFT_OK) {
		return st;
	}
	if (wf_line_parse_word(cursor, word, sizeof(word)) == NULL ||
	    !wf_array_type_by_name(word, &out->type) ||
	    wf_line_parse_word(cursor, out->shape, sizeof(out->shape)) == NULL ||
	    !wf_line_at_end(cursor) ||
	    !wf_manifest_aside_bytes(out->type, out->shape, &out->bytes)) {
		return wf_line_bad(cursor, "must have a type like i64 and a shape like 4,3,3,3");
	}
	st = wf_line_parse(cursor, "file");
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_line_parse_word(cursor, word, sizeof(word)) == NULL ||
	    strcmp(word, out->name) != 0 || !wf_line_parse_u64(cursor, &bytes) ||
	    bytes != out->bytes || !wf_line_parse_crc(cursor, &out->crc) ||
	    !wf_line_at_end(cursor)) {
		return wf_line_bad(cursor,
				   "must have the array's file, the bytes of its elements, and a "
				   "checksum of 8 digits");
	}
	return WEFT_OK;
}

static enum weft_status
parse_asides(struct wf_env *env, struct wf_line_cursor *cursor, struct wf_manifest *out)
{
	uint32_t count = 0;
	enum weft_status st = wf_line_parse_count(cursor, "asides", ASIDE_TEXT_BYTES_MIN, &count);

	if (st == WEFT_OK && count == 0) {
		st = wf_line_bad(cursor, "must count at least 1");
	}
	if (st != WEFT_OK) {
		return st;
	}
	out->aside = wf_zalloc_array(env, count, sizeof(*out->aside));
	if (out->aside == NULL) {
		return wf_fail(WEFT_NOMEM, "manifest: %" PRIu32 " arrays aside", count);
	}
	out->aside_count = count;
	for (uint32_t i = 0; st == WEFT_OK && i < count; i++) {
		st = parse_aside(cursor, i == 0 ? "" : out->aside[i - 1].name, &out->aside[i]);
		if (st == WEFT_OK && out->tensor_count > 0 &&
		    bsearch(out->aside[i].name, out->tensor, out->tensor_count,
			    sizeof(*out->tensor), compare_tensor) != NULL) {
			st = wf_line_bad(cursor, "a tensor has the same file");
		}
	}
	return st;
}

enum weft_status
wf_manifest_decode(struct wf_env *env, const char *text, size_t bytes, struct wf_manifest *out)
{
	struct wf_line_cursor cursor = {.text = text, .bytes = bytes};
	struct wf_manifest manifest = {0};

	enum weft_status st = check_frame(&cursor, bytes);
	if (st == WEFT_OK && has_parts(&cursor) && (cursor.has & WF_MANIFEST_FORMAT_ASIDES) != 0) {
		st = wf_line_bad(&cursor, "is no version: a snapshot has no arrays aside");
	}
	if (st == WEFT_OK && (cursor.has & WF_MANIFEST_FORMAT_BASE) != 0 &&
	    (!has_parts(&cursor) || (cursor.has & WF_MANIFEST_FORMAT_TABLES) == 0)) {
		st = wf_line_bad(&cursor, "is no version: only snapshots with tables have a base");
	}
	if (st == WEFT_OK && !has_parts(&cursor) && (cursor.has & WF_MANIFEST_FORMAT_VECTOR) != 0) {
		st = wf_line_bad(&cursor, "is no version: only a snapshot is a vector of versions");
	}
	if (st == WEFT_OK) {
		st = parse_about(&cursor, &manifest);
	}
	if (st == WEFT_OK) {
		st = parse_tensors(env, &cursor, &manifest);
	}
	if (st == WEFT_OK && (cursor.has & WF_MANIFEST_FORMAT_TABLES) != 0) {
		st = parse_tables(env, &cursor, &manifest);
	}
	if (st == WEFT_OK && (cursor.has & WF_MANIFEST_FORMAT_ASIDES) != 0) {
		st = parse_asides(env, &cursor, &manifest);
	}
	if (st == WEFT_OK && has_parts(&cursor)) {
		manifest.parts.is_vector = (cursor.has & WF_MANIFEST_FORMAT_VECTOR) != 0;
		st = wf_manifest_parse_parts(env, &cursor, &manifest.parts);
	}
	if (st == WEFT_OK && cursor.at != cursor.bytes) {
		st = wf_line_bad(&cursor, "must be the last line before the checksum");
	}
	if (st != WEFT_OK) {
		wf_manifest_fini(env, &manifest);
		return st;
	}
	*out = manifest;
	return WEFT_OK;
}

void
wf_manifest_fini(struct wf_env *env, struct wf_manifest *manifest)
{
	wf_free(env, manifest->tensor, manifest->tensor_count * sizeof(*manifest->tensor));
	wf_free(env, manifest->table, manifest->table_count * sizeof(*manifest->table));
	wf_free(env, manifest->aside, manifest->aside_count * sizeof(*manifest->aside));
	wf_manifest_parts_fini(env, &manifest->parts);
	*manifest = (struct wf_manifest){0};
}

static void
add_tensor(struct wf_line_text *text, const struct wf_manifest_tensor *tensor, bool with_files)
{
	char name[WF_MANIFEST_NAME_BYTES];

	wf_line_add(text, "tensor %s %" PRIu64 " %" PRIu64 " %u\n", tensor->name, tensor->rows,
		    tensor->cols, tensor->state_count);
	if (tensor->shape[0] != '\0') {
		wf_line_add(text, "shape %s\n", tensor->shape);
	}
	for (unsigned i = 0; with_files && i < 1 + tensor->state_count; i++) {
		wf_manifest_file_name(tensor->name, i, name);
		wf_line_add(text, "file %s %" PRIu64 " %08" PRIx32 "\n", name,
			    wf_manifest_file_bytes(tensor->rows, tensor->cols), tensor->crc[i]);
	}
}

static void
add_tables(struct wf_line_text *text, const struct wf_manifest *manifest)
{
	char name[WF_MANIFEST_NAME_BYTES];

	if (manifest->table_count > 0) {
		wf_line_add(text, "tables %u\n", manifest->table_count);
	}
	for (uint32_t i = 0; i < manifest->table_count; i++) {
		const struct wf_manifest_table *table = &manifest->table[i];
		wf_manifest_rows_name(table->name, name);
		wf_line_add(text, "table %s %s %" PRIu32 " %" PRIu64 "\n", table->name,
			    table->optimizer, table->dim, table->rows);
		if (!wf_manifest_is_snapshot(manifest)) {
			wf_line_add(text, "file %s %" PRIu64 " %08" PRIx32 "\n", name, table->bytes,
				    table->crc);
		}
	}
}

static void
add_asides(struct wf_line_text *text, const struct wf_manifest *manifest)
{
	if (manifest->aside_count > 0) {
		wf_line_add(text, "asides %u\n", manifest->aside_count);
	}
	for (uint32_t i = 0; i < manifest->aside_count; i++) {
		const struct wf_manifest_aside *aside = &manifest->aside[i];
		wf_line_add(text, "aside %s %s %s\n", aside->name,
			    wf_array_type_about(aside->type)->name, aside->shape);
		wf_line_add(text, "file %s %" PRIu64 " %08" PRIx32 "\n", aside->name, aside->bytes,
			    aside->crc);
	}
}

/* What it has besides the least. */
static uint32_t
extras_of(const struct wf_manifest *manifest)
{
	uint32_t has = manifest->table_count > 0 ? WF_MANIFEST_FORMAT_TABLES : 0;

	has |= manifest->aside_count > 0 ? WF_MANIFEST_FORMAT_ASIDES : 0;
	has |= manifest->about.batch > 0 ? WF_MANIFEST_FORMAT_BATCH : 0;
	has |= wf_manifest_is_snapshot(manifest) ? WF_MANIFEST_FORMAT_PARTS : 0;
	has |= manifest->parts.base_step != 0 ? WF_MANIFEST_FORMAT_BASE : 0;
	has |= manifest->parts.is_vector ? WF_MANIFEST_FORMAT_VECTOR : 0;
	for (uint32_t i = 0; i < manifest->tensor_count; i++) {
		has |= manifest->tensor[i].shape[0] != '\0' ? WF_MANIFEST_FORMAT_SHAPES : 0;
	}
	return has;
}

size_t
wf_manifest_encode(const struct wf_manifest *manifest, char *out, size_t room)
{
	const struct wf_saved_about *about = &manifest->about;
	const bool is_snapshot = wf_manifest_is_snapshot(manifest);
	struct wf_line_text text = {.out = out, .room = room};

	wf_line_add(&text, FIRST_WORDS "%u\nversion %s\npass %" PRIu64 "\n",
		    WF_MANIFEST_FORMAT + extras_of(manifest), about->version, about->pass);
	if (about->batch > 0) {
		wf_line_add(&text, "batch %" PRIu64 "\n", about->batch);
	}
	wf_line_add(&text, "step %" PRIu64 "\nsamples %" PRIu64 "\n", about->step, about->samples);
	if (is_snapshot) {
		wf_manifest_add_parts_about(&text, &manifest->parts);
	}
	wf_line_add(&text, "optimizer %s\nsettings %s\ntensors %u\n", about->optimizer,
		    about->settings, manifest->tensor_count);
	for (uint32_t i = 0; i < manifest->tensor_count; i++) {
		add_tensor(&text, &manifest->tensor[i], !is_snapshot);
	}
	add_tables(&text, manifest);
	add_asides(&text, manifest);
	if (is_snapshot) {
		wf_manifest_add_parts(&text, &manifest->parts);
	}
	uint32_t crc = text.bytes < room ? wf_crc32c(0, out, text.bytes) : 0;
	wf_line_add(&text, "crc32c %08" PRIx32 "\n", crc);
	return text.bytes;
}

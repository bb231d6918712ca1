/* SPDX-License-Identifier: Apache-2.0 */
/* arrays: see arrays.h. A table's arrays lie interleaved in its file: each is gathered by reading
 * the file from end to end. Thread: the caller's. */
#include "saved/arrays.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "wire/little.h"

#define GATHER_BYTES (64u << 10)

enum table_field {
	KEYS,
	VALUES,
	STATE, /* from here on: with state only */
	STAMP,
	BORN,
	SHOW,
	CLICK,
	TABLE_FIELDS,
};

static const char *const field_names[TABLE_FIELDS] = {"keys", "values", "state", "stamp",
						      "born", "show",   "click"};

size_t
wf_array_state_owner(const char *name, size_t bytes)
{
	for (unsigned field = STATE; field < TABLE_FIELDS; field++) {
		const size_t ending = strlen(field_names[field]);
		const size_t owner = bytes > ending + 1 ? bytes - ending - 1 : 0;
		if (owner > 0 && name[owner] == '.' &&
		    memcmp(name + owner + 1, field_names[field], ending) == 0) {
			return owner;
		}
	}
	return 0;
}

/* `cols` 0: it has one dimension. */
static void
set_shape(struct wf_saved_array *out, uint64_t rows, uint64_t cols)
{
	int used = snprintf(out->shape, sizeof(out->shape), "%" PRIu64, rows);

	if (cols > 0) {
		snprintf(out->shape + used, sizeof(out->shape) - (size_t)used, ",%" PRIu64, cols);
	}
	out->count = rows * (cols == 0 ? 1 : cols);
}

static bool
next_of_tensor(const struct wf_saved *saved, uint32_t idx, bool with_state, unsigned field,
	       struct wf_saved_array *out)
{
	const struct wf_manifest_tensor *tensor = &saved->manifest.tensor[idx];

	if (field >= 1 + (with_state ? tensor->state_count : 0)) {
		return false;
	}
	*out = (struct wf_saved_array){.type = WF_ARRAY_F32};
	if (wf_saved_is_flat(saved, idx)) {
		set_shape(out, tensor->cols, 0);
	} else {
		set_shape(out, tensor->rows, tensor->cols);
	}
	if (tensor->shape[0] != '\0') {
		snprintf(out->shape, sizeof(out->shape), "%s", tensor->shape);
	}
	const size_t bytes = wf_saved_name_decode(tensor->name, out->name);
	wf_manifest_file_name("", field, out->name + bytes);
	return true;
}

static bool
has_field(const struct wf_row_shape *shape, bool with_state, unsigned field)
{
	switch ((enum table_field)field) {
	case KEYS:
	case VALUES:
		return true;
	case STATE:
		return with_state && shape->state_floats > 0;
	case STAMP:
	case BORN:
		return with_state;
	case SHOW:
	case CLICK:
		return with_state && shape->has_score;
	case TABLE_FIELDS:
		break;
	}
	return false;
}

static bool
next_of_table(const struct wf_manifest_table *table, bool with_state, unsigned *field,
	      struct wf_saved_array *out)
{
	const struct wf_row_shape *shape = &table->head.shape;

	while (*field < TABLE_FIELDS && !has_field(shape, with_state, *field)) {
		(*field)++;
	}
	if (*field == TABLE_FIELDS) {
		return false;
	}
	*out = (struct wf_saved_array){.type = WF_ARRAY_F32, .source = WF_ARRAY_OF_TABLE};
	const size_t bytes = wf_saved_name_decode(table->name, out->name);
	snprintf(out->name + bytes, sizeof(out->name) - bytes, ".%s", field_names[*field]);
	if (*field == KEYS) {
		out->type = WF_ARRAY_U64;
	} else if (*field == STAMP || *field == BORN) {
		out->type = WF_ARRAY_U32;
	}
	set_shape(out, table->rows,
		  *field == VALUES  ? shape->dim
		  : *field == STATE ? shape->state_floats
				    : 0);
	return true;
}

static bool
next_aside(const struct wf_manifest_aside *aside, unsigned field, struct wf_saved_array *out)
{
	if (field > 0) {
		return false;
	}
	*out = (struct wf_saved_array){.type = aside->type, .source = WF_ARRAY_ASIDE};
	out->count = aside->bytes / wf_array_type_about(aside->type)->bytes;
	memcpy(out->shape, aside->shape, sizeof(out->shape));
	(void)wf_saved_name_decode(aside->name, out->name);
	return true;
}

bool
wf_arrays_next(const struct wf_saved *saved, bool with_state, struct wf_array_cursor *cursor,
	       struct wf_saved_array *out)
{
	const struct wf_manifest *manifest = &saved->manifest;
	const uint32_t tables_at = manifest->tensor_count;
	const uint32_t asides_at = tables_at + manifest->table_count;

	for (; cursor->idx < asides_at + manifest->aside_count; cursor->idx++) {
		const uint32_t idx = cursor->idx;
		const uint32_t first = idx < tables_at   ? 0
				       : idx < asides_at ? tables_at
							 : asides_at;
		if (idx < tables_at ? next_of_tensor(saved, idx, with_state, cursor->field, out)
		    : idx < asides_at
			    ? next_of_table(&manifest->table[idx - first], with_state,
					    &cursor->field, out)
			    : next_aside(&manifest->aside[idx - first], cursor->field, out)) {
			out->idx = idx - first;
			out->field = cursor->field++;
			return true;
		}
		cursor->field = 0;
	}
	return false;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Copies the names of all arrays, `WF_ARRAY_NAME_BYTES` each, and lists them in `name`. */
static void
list_names(const struct wf_saved *saved, char *text, const char **name)
{
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;

	for (size_t i = 0; wf_arrays_next(saved, true, &cursor, &array); i++) {
		memcpy(text + i * WF_ARRAY_NAME_BYTES, array.name, WF_ARRAY_NAME_BYTES);
		name[i] = text + i * WF_ARRAY_NAME_BYTES;
	}
}

enum weft_status
wf_arrays_check(const struct wf_saved *saved)
{
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;
	enum weft_status st = WEFT_OK;
	size_t count = 0;

	while (wf_arrays_next(saved, true, &cursor, &array)) {
		count++;
	}
	char *text = wf_zalloc_array(saved->env, count, WF_ARRAY_NAME_BYTES);
	const char **name = wf_zalloc_array(saved->env, count, sizeof(*name));
	if (text == NULL || name == NULL) {
		st = wf_fail(WEFT_NOMEM, "names of %zu arrays", count);
	} else {
		list_names(saved, text, name);
		qsort(name, count, sizeof(*name), compare_names);
	}
	for (size_t i = 1; st == WEFT_OK && i < count; i++) {
		if (strcmp(name[i - 1], name[i]) == 0) {
			st = wf_fail(WEFT_DATA,
				     "%s: two arrays have the name %s, so it cannot be exported",
				     saved->path, name[i]);
		}
	}
	wf_free(saved->env, name, count * sizeof(*name));
	wf_free(saved->env, text, count * WF_ARRAY_NAME_BYTES);
	return st;
}

uint64_t
wf_array_bytes(const struct wf_saved_array *array)
{
	return array->count * wf_array_type_about(array->type)->bytes;
}

/* Numbers on their way to a file. */
struct gather {
	struct wf_saved_file *to;
	size_t used;
	uint8_t chunk[GATHER_BYTES];
};

static enum weft_status
flush(struct gather *gather)
{
	enum weft_status st = wf_saved_file_write(gather->to, gather->chunk, gather->used);
	gather->used = 0;
	return st;
}

static enum weft_status
add_floats(struct gather *gather, const float *value, size_t count)
{
	enum weft_status st = WEFT_OK;

	for (size_t i = 0; st == WEFT_OK && i < count; i++) {
		uint32_t bits = 0;
		memcpy(&bits, &value[i], sizeof(bits));
		wf_store_u32(gather->chunk + gather->used, bits);
		gather->used += sizeof(bits);
		st = gather->used < GATHER_BYTES ? WEFT_OK : flush(gather);
	}
	return st;
}

static enum weft_status
add_whole(struct gather *gather, uint64_t value, size_t bytes)
{
	uint8_t *at = gather->chunk + gather->used;

	WF_ASSERT(GATHER_BYTES % bytes == 0);
	if (bytes == sizeof(uint64_t)) {
		wf_store_u64(at, value);
	} else {
		wf_store_u32(at, (uint32_t)value);
	}
	gather->used += bytes;
	return gather->used < GATHER_BYTES ? WEFT_OK : flush(gather);
}

static enum weft_status
add_row(struct gather *gather, const struct wf_row_shape *shape, enum table_field field,
	const struct wf_row_record *row)
{
	switch (field) {
	case KEYS:
		return add_whole(gather, row->key, sizeof(row->key));
	case VALUES:
		return add_floats(gather, row->floats, shape->dim);
	case STATE:
		return add_floats(gather, row->floats + shape->dim, shape->state_floats);
	case STAMP:
		return add_whole(gather, row->stamp, sizeof(row->stamp));
	case BORN:
		return add_whole(gather, row->born, sizeof(row->born));
	case SHOW:
		return add_floats(gather, &row->show, 1);
	case CLICK:
	case TABLE_FIELDS:
		break;
	}
	return add_floats(gather, &row->click, 1);
}

static enum weft_status
gather_rows(struct wf_rows_reader *rows, enum table_field field, struct gather *gather)
{
	const struct wf_row_shape *shape = &wf_rows_head(rows)->shape;
	struct wf_rows_partition partition;
	struct wf_row_record row;

	for (;;) {
		enum weft_status st = wf_rows_next_partition(rows, &partition);
		for (uint64_t i = 0; st == WEFT_OK && i < partition.row_count; i++) {
			st = wf_rows_next(rows, &row);
			if (st == WEFT_OK) {
				st = add_row(gather, shape, field, &row);
			}
		}
		if (st != WEFT_OK) {
			return st == WEFT_CLOSED ? flush(gather) : st;
		}
	}
}

/* The file has what was announced when the save was opened. */
static enum weft_status
check_unchanged(const struct wf_saved *saved, uint32_t idx, const struct wf_rows_reader *rows)
{
	const struct wf_manifest_table *table = &saved->manifest.table[idx];
	const struct wf_rows_sum sum = wf_rows_read_sum(rows);

	if (sum.crc != table->crc || sum.row_count != table->rows) {
		return wf_fail(WEFT_DATA, "%s: table %s has changed meanwhile", saved->path,
			       table->name);
	}
	return WEFT_OK;
}

static enum weft_status
write_table_array(const struct wf_saved *saved, const struct wf_saved_array *array,
		  struct wf_saved_file *to)
{
	struct gather gather = {.to = to};
	struct wf_rows_reader *rows = NULL;

	enum weft_status st = wf_saved_open_rows(saved, array->idx, &rows);
	if (st == WEFT_OK) {
		st = gather_rows(rows, (enum table_field)array->field, &gather);
	}
	if (st == WEFT_OK) {
		st = check_unchanged(saved, array->idx, rows);
	}
	wf_rows_close(rows);
	return st;
}

enum weft_status
wf_array_write(const struct wf_saved *saved, const struct wf_saved_array *array,
	       struct wf_saved_file *to)
{
	if (array->source == WF_ARRAY_OF_TABLE) {
		return write_table_array(saved, array, to);
	}
	if (array->source == WF_ARRAY_ASIDE) {
		return wf_saved_read_aside(saved, array->idx, NULL, to);
	}
	return wf_saved_read_tensor(saved, array->idx, array->field,
				    &(struct wf_tensor_target){.file = to});
}

enum weft_status
wf_export_open(const struct wf_saved *saved, const char *path, struct wf_export_place *out)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	const int folder_bytes = (int)(name - path);
	char folder[WF_SAVED_PATH_BYTES];
	int bytes = snprintf(out->temporary, sizeof(out->temporary), "%.*s.%s.tmp-%016" PRIx64,
			     folder_bytes, path, name, wf_random(saved->env));

	if (bytes < 0 || (size_t)bytes >= sizeof(out->temporary) || name[0] == '\0') {
		return wf_fail(WEFT_INVALID,
			       "path \"%.60s\": must name a file in fewer than %u bytes", path,
			       WF_SAVED_PATH_BYTES);
	}
	out->calls = saved->calls;
	out->path = path;
	out->name = name;
	out->made = out->temporary + folder_bytes;
	snprintf(folder, sizeof(folder), "%.*s", folder_bytes, path);
	out->folder = saved->calls->openat(AT_FDCWD, folder_bytes == 0 ? "." : folder,
					   O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return out->folder >= 0
		       ? WEFT_OK
		       : wf_fail_errno(WEFT_IO, errno, "%s: its folder cannot be opened", path);
}

enum weft_status
wf_export_rename(const struct wf_export_place *place)
{
	if (place->calls->renameat(place->folder, place->made, place->folder, place->name) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be renamed to %s",
				     place->temporary, place->path);
	}
	return WEFT_OK;
}

void
wf_export_close(struct wf_export_place *place)
{
	(void)place->calls->close(place->folder); /* nothing was written through it */
}

static enum weft_status
write_file(const struct wf_saved *saved, bool with_state, const struct wf_export_place *place,
	   wf_export_fn *write)
{
	const struct wf_saved_spot spot = {place->calls, place->folder, place->temporary};
	struct wf_saved_file to;

	enum weft_status st = wf_saved_file_create(&spot, &to);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_saved_file_finish(&to, write(saved, with_state, &to));
	if (st == WEFT_OK) {
		st = wf_export_rename(place);
	}
	if (st != WEFT_OK) {
		(void)place->calls->unlinkat(place->folder, place->made, 0);
		return st;
	}
	return wf_saved_sync_folder(place->calls, place->folder, place->path);
}

/* Whether the folder is that of the save itself. */
static bool
is_in_save(const struct wf_saved *saved, const struct wf_export_place *place)
{
	struct stat its, own;

	return fstat(place->folder, &its) == 0 && stat(saved->path, &own) == 0 &&
	       its.st_dev == own.st_dev && its.st_ino == own.st_ino;
}

/* A file replaces only a file, because a rename would also replace /dev/stdout, and none of those
 * that are read. The system refuses to rename it over a folder. */
static enum weft_status
check_place(const struct wf_saved *saved, const struct wf_export_place *place)
{
	struct stat info;

	if (fstatat(place->folder, place->name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
		return WEFT_OK;
	}
	if (S_ISREG(info.st_mode) && is_in_save(saved, place)) {
		return wf_fail(WEFT_INVALID,
			       "%s: is a file of the save that is exported; name another one",
			       place->path);
	}
	if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s: is a device, a pipe or a link; name a file", place->path);
}

enum weft_status
wf_export(const struct wf_saved *saved, bool with_state, const char *path, wf_export_fn *write)
{
	struct wf_export_place place;

	enum weft_status st = wf_arrays_check(saved);
	if (st == WEFT_OK) {
		st = wf_export_open(saved, path, &place);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = check_place(saved, &place);
	if (st == WEFT_OK) {
		st = write_file(saved, with_state, &place, write);
	}
	wf_export_close(&place);
	return st;
}

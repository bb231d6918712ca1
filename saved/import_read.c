/* SPDX-License-Identifier: Apache-2.0 */
/* Values of an import's arrays, and a model filled with them. Thread: the caller's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "saved/import_internal.h"
#include "saved/unpack.h"
#include "wire/little.h"

#define CHUNK_BYTES (32u << 10)

/* An array on its way out of a file. */
struct reading {
	const struct wf_import_entry *entry;
	struct wf_unpack unpack;
	float *value; /* [rows, cols]; NULL: to raw */
	uint8_t *raw; /* of the entry's type, little-endian */
	uint64_t done;
	/* The place of the next element, if the first index runs fastest. */
	struct wf_shape shape;
	uint64_t index[WF_SHAPE_DIMS_MAX];
	uint64_t stride[WF_SHAPE_DIMS_MAX];
	uint64_t place;
	uint8_t chunk[CHUNK_BYTES];
};

static float
float_of_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* IEEE binary16. */
static float
float_of_half(uint16_t half)
{
	const uint32_t sign = (uint32_t)(half >> 15) << 31;
	const uint32_t exponent = half >> 10 & 0x1f;
	const uint32_t fraction = half & 0x3ff;

	if (exponent == 0) {
		const float small = (float)fraction * 0x1p-24f;
		return sign != 0 ? -small : small;
	}
	const uint32_t above = exponent == 31 ? 255u : exponent + 112;
	return float_of_bits(sign | above << 23 | fraction << 13);
}

/* Of a type of floats. */
static float
convert(enum wf_array_type type, const uint8_t *at)
{
	uint64_t bits = 0;
	double value = 0.0;

	switch (wf_array_type_about(type)->bytes) {
	case 4:
		return float_of_bits(wf_load_u32(at));
	case 2:
		return type == WF_ARRAY_F16 ? float_of_half(wf_load_u16(at))
					    : float_of_bits((uint32_t)wf_load_u16(at) << 16);
	default:
		break;
	}
	bits = wf_load_u64(at);
	memcpy(&value, &bits, sizeof(value));
	return (float)value;
}

static void
begin_places(struct reading *reading)
{
	uint64_t stride = 1;
	const bool is_shape = wf_shape_parse(reading->entry->array.shape, &reading->shape);

	WF_ASSERT(is_shape); /* of an npy file, which has one */
	for (unsigned i = reading->shape.dims; i > 0; i--) {
		reading->stride[i - 1] = stride;
		stride *= reading->shape.dim[i - 1];
	}
}

/* The row-major place of the element that comes next. */
static uint64_t
next_place(struct reading *reading)
{
	const uint64_t place = reading->place;
	const uint64_t done = reading->done++;

	if (!reading->entry->is_by_columns) {
		return done;
	}
	for (unsigned i = 0; i < reading->shape.dims; i++) {
		reading->place += reading->stride[i];
		if (++reading->index[i] < reading->shape.dim[i]) {
			break;
		}
		reading->place -= reading->stride[i] * reading->index[i];
		reading->index[i] = 0;
	}
	return place;
}

static void
turn_bytes(uint8_t *at, unsigned bytes)
{
	for (unsigned i = 0; i < bytes / 2; i++) {
		const uint8_t byte = at[i];
		at[i] = at[bytes - 1 - i];
		at[bytes - 1 - i] = byte;
	}
}

/* Values of the chunk to their places. */
static void
place_values(struct reading *reading, size_t count)
{
	const enum wf_array_type type = reading->entry->array.type;
	const unsigned bytes = wf_array_type_about(type)->bytes;

	for (size_t i = 0; i < count; i++) {
		uint8_t *at = reading->chunk + i * bytes;
		const uint64_t to = next_place(reading);
		if (reading->entry->is_big_endian) {
			turn_bytes(at, bytes);
		}
		if (reading->value != NULL) {
			reading->value[to] = convert(type, at);
		} else {
			memcpy(reading->raw + to * bytes, at, bytes);
		}
	}
}

static enum weft_status
read_values(struct reading *reading)
{
	const struct wf_import_entry *entry = reading->entry;
	const uint64_t size = wf_array_type_about(entry->array.type)->bytes;
	const uint64_t count = wf_import_elements(entry);
	enum weft_status st = WEFT_OK;

	for (uint64_t left = entry->skip_bytes; st == WEFT_OK && left > 0;) {
		const size_t part = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
		st = wf_unpack_read(&reading->unpack, reading->chunk, part);
		left -= part;
	}
	while (st == WEFT_OK && reading->done < count) {
		const uint64_t left = count - reading->done;
		const size_t part = left < CHUNK_BYTES / size ? (size_t)left : CHUNK_BYTES / size;
		st = wf_unpack_read(&reading->unpack, reading->chunk, part * size);
		if (st == WEFT_OK) {
			place_values(reading, part);
		}
	}
	return st == WEFT_OK ? wf_unpack_end(&reading->unpack) : st;
}

static enum weft_status
read_from(struct wf_saved_file *file, const struct wf_import_entry *entry, float *value, void *raw)
{
	struct reading reading = {.entry = entry, .value = value, .raw = raw};

	if (entry->is_by_columns) {
		begin_places(&reading);
	}
	enum weft_status st = wf_unpack_open(&reading.unpack, file, entry->at, entry->stored_bytes,
					     entry->is_deflated);
	if (st != WEFT_OK) {
		return st;
	}
	st = read_values(&reading);
	if (st == WEFT_OK && entry->has_crc && entry->zip_crc != reading.unpack.zip_crc) {
		st = wf_fail(WEFT_DATA,
			     "%s: checksum %08" PRIx32 "; its directory has %08" PRIx32
			     ": it is damaged",
			     file->path, reading.unpack.zip_crc, entry->zip_crc);
	}
	wf_unpack_close(&reading.unpack);
	return st;
}

static enum weft_status
read_from_folder(const struct wf_import *import, const struct wf_import_entry *entry, float *value,
		 void *raw)
{
	char path[WF_SAVED_PATH_BYTES];
	struct wf_saved_file file;

	enum weft_status st = wf_saved_join(import->path, entry->array.name, path);
	if (st == WEFT_OK) {
		st = wf_saved_file_open(import->calls, path, &file);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (file.bytes != entry->at + entry->stored_bytes) {
		st = wf_fail(WEFT_DATA, "%s: has changed meanwhile", path);
	} else {
		st = read_from(&file, entry, value, raw);
	}
	wf_saved_file_close(&file);
	return st;
}

/* An array aside as floats. */
static enum weft_status
convert_aside(const struct wf_import *import, const struct wf_import_entry *entry, float *value)
{
	const uint64_t count = wf_import_elements(entry);
	const unsigned each = wf_array_type_about(entry->array.type)->bytes;
	uint8_t *raw = wf_zalloc_array(import->env, count, each);

	if (raw == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %s with %" PRIu64 " values", import->path,
			       entry->array.name, count);
	}
	enum weft_status st = wf_saved_read_aside(import->saved, entry->idx, raw, NULL);
	for (uint64_t i = 0; st == WEFT_OK && i < count; i++) {
		value[i] = convert(entry->array.type, raw + i * each);
	}
	wf_free(import->env, raw, count * each);
	return st;
}

static enum weft_status
read_from_pass(const struct wf_import *import, const struct wf_import_entry *entry, float *value,
	       void *raw)
{
	if (entry->is_aside) {
		return value == NULL ? wf_saved_read_aside(import->saved, entry->idx, raw, NULL)
				     : convert_aside(import, entry, value);
	}
	WF_ASSERT(value != NULL); /* a tensor is of f32 */
	return wf_saved_read_tensor(import->saved, entry->idx, 0,
				    &(struct wf_tensor_target){.value = value});
}

static enum weft_status
check_readable(const struct wf_import *import, const struct wf_import_array *array, bool as_floats)
{
	if (array->objection != NULL) {
		return wf_fail(WEFT_DATA, "%s: %s %s", import->path, array->name, array->objection);
	}
	if (as_floats && !wf_array_type_about(array->type)->is_float) {
		return wf_fail(WEFT_DATA, "%s: %s is not an array of floats, but of %s",
			       import->path, array->name, wf_array_type_about(array->type)->name);
	}
	return WEFT_OK;
}

static enum weft_status
read_entry(struct wf_import *import, uint32_t idx, float *value, void *raw)
{
	WF_ASSERT(idx < import->entry_count);
	const struct wf_import_entry *entry = &import->entry[idx];

	enum weft_status st = check_readable(import, &entry->array, value != NULL);
	if (st != WEFT_OK) {
		return st;
	}
	if (import->format == WF_IMPORT_PASS) {
		return read_from_pass(import, entry, value, raw);
	}
	st = import->is_folder ? read_from_folder(import, entry, value, raw)
			       : read_from(&import->file, entry, value, raw);
	if (st == WEFT_DATA) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st, "%.380s (array %.100s)", why.text, entry->array.name);
	}
	return st;
}

enum weft_status
wf_import_read(struct wf_import *import, uint32_t idx, float *value)
{
	return read_entry(import, idx, value, NULL);
}

enum weft_status
wf_import_read_raw(struct wf_import *import, uint32_t idx, void *bytes)
{
	return read_entry(import, idx, NULL, bytes);
}

enum weft_status
wf_import_missing_parse(const char *name, enum wf_import_missing *out)
{
	static const char *const names[] = {
		[WF_IMPORT_MISSING_FAIL] = "fail",
		[WF_IMPORT_MISSING_RAND] = "rand",
		[WF_IMPORT_MISSING_ZERO] = "zero",
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		if (strcmp(name, names[i]) == 0) {
			*out = (enum wf_import_missing)i;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "load_missing_parameter_strategy=%.40s: must be fail, rand or zero", name);
}

static int
compare_name(const void *name, const void *entry)
{
	return strcmp(name, ((const struct wf_import_entry *)entry)->array.name);
}

const struct wf_import_entry *
wf_import_find(const struct wf_import *import, const char *name)
{
	const struct wf_import_entry *found = NULL;
	char file[WF_SAVED_NAME_BYTES];

	if (import->entry_count == 0) { /* a save of tables alone */
		return NULL;
	}
	found = bsearch(name, import->entry, import->entry_count, sizeof(*found), compare_name);
	if (found == NULL && wf_saved_name_settle(name, file) == WEFT_OK) {
		found = bsearch(file, import->entry, import->entry_count, sizeof(*found),
				compare_name);
	}
	return found;
}

static bool
is_vector(uint64_t rows, uint64_t cols)
{
	return rows == 1 || cols == 1;
}

static enum weft_status
check_shape(const struct wf_import *import, const struct wf_import_array *array,
	    const struct wf_saved_tensor *tensor)
{
	const uint64_t cols = array->cols == 0 ? 1 : array->cols;
	const bool is_same = array->rows == tensor->rows && array->cols == tensor->cols;
	const bool is_alike = array->cols == 0 || (is_vector(array->rows, array->cols) &&
						   is_vector(tensor->rows, tensor->cols));

	if (is_same || (is_alike && array->rows * cols == tensor->rows * tensor->cols)) {
		return WEFT_OK;
	}
	if (array->cols == 0) {
		return wf_fail(WEFT_DATA,
			       "%s: tensor %s has %" PRIu64 " values; this model has it %" PRIu64
			       " x %" PRIu64,
			       import->path, tensor->name, array->rows, tensor->rows, tensor->cols);
	}
	return wf_fail(WEFT_DATA,
		       "%s: tensor %s is %" PRIu64 " x %" PRIu64 "; this model has it %" PRIu64
		       " x %" PRIu64,
		       import->path, tensor->name, array->rows, array->cols, tensor->rows,
		       tensor->cols);
}

/* Before any value is written. */
static enum weft_status
check_tensors(const struct wf_import *import, const struct wf_saved_tensor *tensor,
	      uint32_t tensor_count, enum wf_import_missing missing, struct wf_import_load *out)
{
	for (uint32_t i = 0; i < tensor_count; i++) {
		const struct wf_import_entry *entry = wf_import_find(import, tensor[i].name);
		enum weft_status st = WEFT_OK;
		if (entry == NULL && missing == WF_IMPORT_MISSING_FAIL) {
			return wf_fail(WEFT_DATA,
				       "%s: tensor %s of this model is missing; with "
				       "load_missing_parameter_strategy=rand it begins as it would "
				       "without a file, with zero at 0",
				       import->path, tensor[i].name);
		}
		if (entry == NULL) {
			out->missing = out->missing_count == 0 ? tensor[i].name : out->missing;
			out->missing_count++;
		} else {
			st = check_readable(import, &entry->array, true);
			st = st == WEFT_OK ? check_shape(import, &entry->array, &tensor[i]) : st;
		}
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

static void
count_unused(const struct wf_import *import, const struct wf_saved_tensor *tensor,
	     uint32_t tensor_count, struct wf_import_load *out)
{
	for (uint32_t e = 0; e < import->entry_count; e++) {
		uint32_t i = 0;
		while (i < tensor_count &&
		       wf_import_find(import, tensor[i].name) != &import->entry[e]) {
			i++;
		}
		if (i == tensor_count) {
			out->unused =
				out->unused_count == 0 ? import->entry[e].array.name : out->unused;
			out->unused_count++;
		}
	}
}

enum weft_status
wf_import_load(struct wf_import *import, const struct wf_saved_tensor *tensor,
	       uint32_t tensor_count, enum wf_import_missing missing, struct wf_import_load *out)
{
	struct wf_import_load load = {0};

	enum weft_status st = check_tensors(import, tensor, tensor_count, missing, &load);
	for (uint32_t i = 0; st == WEFT_OK && i < tensor_count; i++) {
		const struct wf_import_entry *entry = wf_import_find(import, tensor[i].name);
		if (entry != NULL) {
			st = wf_import_read(import, (uint32_t)(entry - import->entry),
					    tensor[i].value);
		} else if (missing == WF_IMPORT_MISSING_ZERO) {
			memset(tensor[i].value, 0, tensor[i].rows * tensor[i].cols * sizeof(float));
		}
	}
	if (st != WEFT_OK) {
		return st;
	}
	count_unused(import, tensor, tensor_count, &load);
	*out = load;
	return WEFT_OK;
}

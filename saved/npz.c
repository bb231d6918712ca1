/* SPDX-License-Identifier: Apache-2.0 */
/* Export to numpy's npz: a zip file of npy files, stored without compression. Both formats are
 * public: the npy format of NumPy's documentation, and PKWARE's APPNOTE 6.3. Sizes always have 64
 * bits (zip64), so there is one form for small and large. The checksum of an entry precedes its
 * bytes, so each entry is read twice. Thread: the caller's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/assert.h"
#include "saved/arrays.h"
#include "wire/bytes.h"

#define NPY_ALIGN 64u
#define NPY_PREFIX_BYTES 10u /* magic, version, length */
#define NPY_HEADER_BYTES_MAX 256u
#define RECORD_BYTES_MAX 512u
#define ZIP_VERSION 45u     /* the first with 64-bit sizes */
#define ZIP_DATE 0x21u      /* 1980-01-01, so that a file depends on its contents alone */
#define IN_EXTRA UINT32_MAX /* the size is in the zip64 field */
#define ZIP64_FIELD 1u
#define NAME_IS_UTF8 0x800u

struct entry {
	uint64_t offset; /* of its header in the file */
	uint64_t bytes;
	uint32_t crc;
};

struct npz {
	const struct wf_saved *saved;
	struct entry *entry; /* [entry_count] */
	size_t entry_count;
};

/* "4,3" as Python writes it: (4, 3); "4" as (4,). `out` is [2 * WF_SHAPE_TEXT_BYTES]. */
static void
make_tuple(const char *shape, char *out)
{
	const char *end = strchr(shape, ',') == NULL ? ",)" : ")";
	size_t used = 1;

	if (strcmp(shape, WF_SHAPE_SCALAR) == 0) {
		snprintf(out, 2 * WF_SHAPE_TEXT_BYTES, "%s", shape);
		return;
	}
	out[0] = '(';
	for (; *shape != '\0'; shape++) {
		out[used++] = *shape;
		if (*shape == ',') {
			out[used++] = ' ';
		}
	}
	snprintf(out + used, 2 * WF_SHAPE_TEXT_BYTES - used, "%s", end);
}

/* The header of an npy file. Returns its bytes. */
static size_t
make_npy_header(const struct wf_saved_array *array, uint8_t *out)
{
	const struct wf_array_type_about *type = wf_array_type_about(array->type);
	char shape[2 * WF_SHAPE_TEXT_BYTES];
	char *text = (char *)out + NPY_PREFIX_BYTES;

	make_tuple(array->shape, shape);
	memset(out, ' ', NPY_HEADER_BYTES_MAX);
	int length = snprintf(text, NPY_HEADER_BYTES_MAX - NPY_PREFIX_BYTES,
			      "{'descr': '%s%s', 'fortran_order': False, 'shape': %s, }",
			      type->bytes == 1 ? "|" : "<", type->npy, shape);
	WF_ASSERT(length > 0 && (size_t)length < NPY_HEADER_BYTES_MAX - NPY_PREFIX_BYTES - 1);
	text[length] = ' ';
	size_t bytes = NPY_PREFIX_BYTES + (size_t)length + 1;
	bytes = (bytes + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
	out[bytes - 1] = '\n';
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	wf_store_u16(out + 8, (uint16_t)(bytes - NPY_PREFIX_BYTES));
	return bytes;
}

static enum weft_status
write_npy(const struct wf_saved *saved, const struct wf_saved_array *array,
	  struct wf_saved_file *to)
{
	uint8_t header[NPY_HEADER_BYTES_MAX];
	enum weft_status st = wf_saved_file_write(to, header, make_npy_header(array, header));

	return st == WEFT_OK ? wf_array_write(saved, array, to) : st;
}

static ssize_t
write_nowhere(int fd, const void *bytes, size_t count)
{
	(void)fd;
	(void)bytes;
	return (ssize_t)count;
}

static uint32_t
sum_zip(uint32_t crc, const void *bytes, size_t count)
{
	return (uint32_t)crc32_z(crc, bytes, count);
}

/* Bytes and checksum of an entry, without writing it. */
static enum weft_status
sum_up(const struct npz *npz, const struct wf_saved_array *array, struct entry *out)
{
	const struct wf_saved_calls nowhere = {.write = write_nowhere};
	struct wf_saved_file to = {
		.calls = &nowhere, .path = array->name, .fd = -1, .sum_zip = sum_zip};

	enum weft_status st = write_npy(npz->saved, array, &to);
	out->bytes = to.bytes;
	out->crc = to.zip_crc;
	return st;
}

static bool
is_ascii(const char *name)
{
	while ((unsigned char)*name >= 1 && (unsigned char)*name < 0x80) {
		name++;
	}
	return *name == '\0';
}

/* What local and central headers have alike. */
static void
put_about(struct wf_writer *w, const struct entry *entry, const char *name, uint16_t extra_bytes)
{
	wf_put_u16(w, ZIP_VERSION);
	wf_put_u16(w, is_ascii(name) ? 0 : NAME_IS_UTF8); /* flags */
	wf_put_u16(w, 0);                                 /* stored */
	wf_put_u16(w, 0);                                 /* time */
	wf_put_u16(w, ZIP_DATE);
	wf_put_u32(w, entry->crc);
	wf_put_u32(w, IN_EXTRA); /* bytes, stored */
	wf_put_u32(w, IN_EXTRA); /* bytes */
	wf_put_u16(w, (uint16_t)strlen(name));
	wf_put_u16(w, extra_bytes);
}

/* `offset`: NULL in a local header, which has none. */
static void
put_zip64(struct wf_writer *w, const struct entry *entry, const uint64_t *offset)
{
	wf_put_u16(w, ZIP64_FIELD);
	wf_put_u16(w, offset == NULL ? 16 : 24);
	wf_put_u64(w, entry->bytes);
	wf_put_u64(w, entry->bytes);
	if (offset != NULL) {
		wf_put_u64(w, *offset);
	}
}

static enum weft_status
write_record(const struct wf_writer *w, struct wf_saved_file *to)
{
	WF_ASSERT(!w->bad);
	return wf_saved_file_write(to, w->base, w->used);
}

static enum weft_status
write_local(const struct entry *entry, const char *name, struct wf_saved_file *to)
{
	uint8_t record[RECORD_BYTES_MAX];
	struct wf_writer w = {.base = record, .capacity = sizeof(record)};

	wf_put_u32(&w, 0x04034b50u);
	put_about(&w, entry, name, 20);
	wf_put_bytes(&w, name, strlen(name));
	put_zip64(&w, entry, NULL);
	return write_record(&w, to);
}

static enum weft_status
write_central(const struct entry *entry, const char *name, struct wf_saved_file *to)
{
	uint8_t record[RECORD_BYTES_MAX];
	struct wf_writer w = {.base = record, .capacity = sizeof(record)};

	wf_put_u32(&w, 0x02014b50u);
	wf_put_u16(&w, ZIP_VERSION); /* made by */
	put_about(&w, entry, name, 28);
	wf_put_u16(&w, 0);        /* comment */
	wf_put_u16(&w, 0);        /* disk */
	wf_put_u16(&w, 0);        /* internal attributes */
	wf_put_u32(&w, 0);        /* and externally */
	wf_put_u32(&w, IN_EXTRA); /* offset */
	wf_put_bytes(&w, name, strlen(name));
	put_zip64(&w, entry, &entry->offset);
	return write_record(&w, to);
}

static enum weft_status
write_end(uint64_t count, uint64_t from, struct wf_saved_file *to)
{
	const uint64_t end = to->bytes;
	uint8_t record[RECORD_BYTES_MAX];
	struct wf_writer w = {.base = record, .capacity = sizeof(record)};

	wf_put_u32(&w, 0x06064b50u); /* the directory's end, 64-bit */
	wf_put_u64(&w, 44);
	wf_put_u16(&w, ZIP_VERSION);
	wf_put_u16(&w, ZIP_VERSION);
	wf_put_u32(&w, 0);
	wf_put_u32(&w, 0);
	wf_put_u64(&w, count);
	wf_put_u64(&w, count);
	wf_put_u64(&w, end - from);
	wf_put_u64(&w, from);
	wf_put_u32(&w, 0x07064b50u); /* where that is */
	wf_put_u32(&w, 0);
	wf_put_u64(&w, end);
	wf_put_u32(&w, 1);
	wf_put_u32(&w, 0x06054b50u); /* the directory's end */
	wf_put_u16(&w, 0);
	wf_put_u16(&w, 0);
	wf_put_u16(&w, UINT16_MAX);
	wf_put_u16(&w, UINT16_MAX);
	wf_put_u32(&w, IN_EXTRA);
	wf_put_u32(&w, IN_EXTRA);
	wf_put_u16(&w, 0);
	return write_record(&w, to);
}

/* The name of an array in the zip file. `out` is [WF_ARRAY_NAME_BYTES + 4]. */
static void
name_entry(const struct wf_saved_array *array, char *out)
{
	snprintf(out, WF_ARRAY_NAME_BYTES + 4, "%s.npy", array->name);
}

static enum weft_status
write_entries(struct npz *npz, bool with_state, struct wf_saved_file *to)
{
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;
	enum weft_status st = WEFT_OK;

	for (size_t i = 0; wf_arrays_next(npz->saved, with_state, &cursor, &array); i++) {
		char name[WF_ARRAY_NAME_BYTES + 4];
		name_entry(&array, name);
		npz->entry[i].offset = to->bytes;
		st = sum_up(npz, &array, &npz->entry[i]);
		if (st == WEFT_OK) {
			st = write_local(&npz->entry[i], name, to);
		}
		if (st == WEFT_OK) {
			st = write_npy(npz->saved, &array, to);
		}
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

static enum weft_status
write_directory(const struct npz *npz, bool with_state, struct wf_saved_file *to)
{
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;
	const uint64_t from = to->bytes;

	for (size_t i = 0; wf_arrays_next(npz->saved, with_state, &cursor, &array); i++) {
		char name[WF_ARRAY_NAME_BYTES + 4];
		name_entry(&array, name);
		enum weft_status st = write_central(&npz->entry[i], name, to);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return write_end(npz->entry_count, from, to);
}

static enum weft_status
write_all(const struct wf_saved *saved, bool with_state, struct wf_saved_file *to)
{
	struct wf_array_cursor cursor = {0};
	struct wf_saved_array array;
	struct npz npz = {.saved = saved};

	while (wf_arrays_next(saved, with_state, &cursor, &array)) {
		npz.entry_count++;
	}
	npz.entry = wf_zalloc_array(saved->env, npz.entry_count, sizeof(*npz.entry));
	if (npz.entry == NULL) {
		return wf_fail(WEFT_NOMEM, "directory of %zu arrays", npz.entry_count);
	}
	enum weft_status st = write_entries(&npz, with_state, to);
	if (st == WEFT_OK) {
		st = write_directory(&npz, with_state, to);
	}
	wf_free(saved->env, npz.entry, npz.entry_count * sizeof(*npz.entry));
	return st;
}

enum weft_status
wf_saved_export_npz(const struct wf_saved *saved, const char *path, bool with_state)
{
	for (uint32_t i = 0; i < saved->manifest.aside_count; i++) {
		const struct wf_manifest_aside *aside = &saved->manifest.aside[i];
		if (wf_array_type_about(aside->type)->npy == NULL) {
			return wf_fail(WEFT_DATA,
				       "%s: array %s is of %s, which NumPy does not have; use "
				       "safetensors",
				       saved->path, aside->name,
				       wf_array_type_about(aside->type)->name);
		}
	}
	return wf_export(saved, with_state, path, write_all);
}

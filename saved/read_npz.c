/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's npy, and npz: a zip file of npy files, stored or deflated, as numpy.savez and
 * savez_compressed write it. An npy file is a magic, a version, a length, a Python dictionary of
 * that length with type, order and shape, and the values. Thread: the caller's. */
#include <inttypes.h>
#include <string.h>

#include "saved/import_internal.h"
#include "saved/unpack.h"
#include "saved/zip.h"
#include "wire/little.h"

#define ENDING ".npy"
#define ENDING_BYTES 4u
#define DICTIONARY_BYTES_MAX 4096u

/* A dictionary being read; `is_bad` stays once it is set. */
struct dictionary {
	const char *at, *end;
	bool is_bad;
};

/* The keys that it must have, each once. */
struct about {
	bool has_type, has_order, has_shape;
	char type[16];
	bool is_by_columns;
	struct wf_import_shape shape;
};

static void
skip_blanks(struct dictionary *d)
{
	while (d->at < d->end && (*d->at == ' ' || *d->at == '\n')) {
		d->at++;
	}
}

/* Consumes `text` if it comes next. */
static bool
accept(struct dictionary *d, const char *text)
{
	const size_t bytes = strlen(text);

	skip_blanks(d);
	if (d->is_bad || (size_t)(d->end - d->at) < bytes || memcmp(d->at, text, bytes) != 0) {
		return false;
	}
	d->at += bytes;
	return true;
}

static void
need(struct dictionary *d, const char *text)
{
	if (!accept(d, text)) {
		d->is_bad = true;
	}
}

/* A string without escapes. */
static void
parse_string(struct dictionary *d, char *out, size_t room)
{
	const char quote = accept(d, "'") ? '\'' : '"';

	if (quote == '"') {
		need(d, "\"");
	}
	const char *stop = memchr(d->at, quote, (size_t)(d->end - d->at));
	out[0] = '\0';
	if (d->is_bad || stop == NULL || (size_t)(stop - d->at) >= room) {
		d->is_bad = true;
		return;
	}
	memcpy(out, d->at, (size_t)(stop - d->at));
	out[stop - d->at] = '\0';
	d->at = stop + 1;
}

static uint64_t
parse_number(struct dictionary *d)
{
	uint64_t value = 0;
	const char *from = NULL;

	skip_blanks(d);
	for (from = d->at; d->at < d->end && *d->at >= '0' && *d->at <= '9'; d->at++) {
		d->is_bad = d->is_bad || value > UINT64_MAX / 10 - 1;
		value = d->is_bad ? 0 : value * 10 + (uint64_t)(*d->at - '0');
	}
	d->is_bad = d->is_bad || from == d->at;
	(void)accept(d, "L"); /* as Python 2 wrote it */
	return value;
}

static void
parse_shape(struct dictionary *d, struct wf_import_shape *out)
{
	need(d, "(");
	while (!d->is_bad && !accept(d, ")")) {
		wf_import_shape_add(out, parse_number(d));
		if (!accept(d, ",")) {
			need(d, ")");
			return;
		}
	}
}

static void
parse_order(struct dictionary *d, bool *out)
{
	*out = accept(d, "True");
	if (!*out) {
		need(d, "False");
	}
}

static void
parse_field(struct dictionary *d, struct about *about)
{
	char key[16];

	parse_string(d, key, sizeof(key));
	need(d, ":");
	if (strcmp(key, "descr") == 0 && !about->has_type) {
		about->has_type = true;
		skip_blanks(d);
		if (d->at < d->end && *d->at == '[') {
			/* A list of fields: no array of numbers. */
			d->is_bad = true;
			return;
		}
		parse_string(d, about->type, sizeof(about->type));
	} else if (strcmp(key, "fortran_order") == 0 && !about->has_order) {
		about->has_order = true;
		parse_order(d, &about->is_by_columns);
	} else if (strcmp(key, "shape") == 0 && !about->has_shape) {
		about->has_shape = true;
		parse_shape(d, &about->shape);
	} else {
		d->is_bad = true;
	}
}

static bool
read_dictionary(const char *text, size_t bytes, struct about *out)
{
	struct dictionary d = {.at = text, .end = text + bytes};

	need(&d, "{");
	while (!d.is_bad && !accept(&d, "}")) {
		parse_field(&d, out);
		if (!accept(&d, ",")) {
			need(&d, "}");
			break;
		}
	}
	skip_blanks(&d);
	return !d.is_bad && d.at == d.end && out->has_type && out->has_order && out->has_shape;
}

/* "<f4": the byte order, and the type; "|u1" where there is none. */
static bool
parse_type(const char *text, struct wf_import_entry *out)
{
	if (strchr("<>|", text[0]) == NULL || text[0] == '\0' ||
	    !wf_array_type_by_npy(text + 1, &out->array.type)) {
		return false;
	}
	out->is_big_endian = text[0] == '>';
	return text[0] != '|' || wf_array_type_about(out->array.type)->bytes == 1;
}

static void
apply_about(const struct about *about, struct wf_import_entry *out)
{
	if (!parse_type(about->type, out)) {
		out->array.objection = "is not an array of floats of 16, 32 or 64 bits, whole "
				       "numbers of 8 to 64, or bool";
		return;
	}
	out->is_by_columns = about->is_by_columns;
	wf_import_shape_apply(&about->shape, out);
}

/* The header of an npy file, from its first byte on. */
static enum weft_status
read_header(struct wf_unpack *from, struct wf_import_entry *out)
{
	uint8_t prefix[12] = {0};
	char text[DICTIONARY_BYTES_MAX];
	struct about about = {0};
	size_t prefix_bytes = 10;

	enum weft_status st = wf_unpack_read(from, prefix, prefix_bytes);
	if (st != WEFT_OK) {
		return st;
	}
	uint32_t bytes = wf_load_u16(prefix + 8);
	if (prefix[6] == 2 || prefix[6] == 3) {
		st = wf_unpack_read(from, prefix + prefix_bytes, 2);
		prefix_bytes += 2;
		bytes = wf_load_u32(prefix + 8);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (memcmp(prefix, "\x93NUMPY", 6) != 0 || prefix[6] < 1 || prefix[6] > 3) {
		out->array.objection = "is not an npy file of version 1 to 3";
		return WEFT_OK;
	}
	if (bytes > sizeof(text)) {
		out->array.objection = "has a header of more than 4,096 bytes";
		return WEFT_OK;
	}
	st = wf_unpack_read(from, text, bytes);
	if (st != WEFT_OK) {
		return st;
	}
	out->skip_bytes = prefix_bytes + bytes;
	if (read_dictionary(text, bytes, &about)) {
		apply_about(&about, out);
	} else {
		out->array.objection = "has a header that does not describe an array of numbers";
	}
	return WEFT_OK;
}

/* The npy file that takes `bytes` unpacked. */
static enum weft_status
look_at(struct wf_import *import, uint64_t bytes, struct wf_import_entry *out)
{
	struct wf_unpack from;

	enum weft_status st =
		wf_unpack_open(&from, &import->file, out->at, out->stored_bytes, out->is_deflated);
	if (st != WEFT_OK) {
		return st;
	}
	st = read_header(&from, out);
	wf_unpack_close(&from);
	if (st == WEFT_OK && out->array.objection == NULL &&
	    (bytes < out->skip_bytes || !wf_import_takes_bytes(out, bytes - out->skip_bytes))) {
		out->array.objection = "does not have as many values as its shape";
	}
	return st;
}

static enum weft_status
add_member(void *arg, const struct wf_zip_member *member)
{
	struct wf_import *import = arg;
	size_t name_bytes = member->name_bytes;
	struct wf_import_entry entry = {
		.at = member->at,
		.stored_bytes = member->stored_bytes,
		.is_deflated = member->is_deflated,
		.has_crc = true,
		.zip_crc = member->crc,
	};

	entry.array.objection = member->objection;
	for (size_t i = 0; i < name_bytes && !member->is_utf8; i++) {
		if ((unsigned char)member->name[i] >= 0x80) {
			entry.array.objection = "has a name that is not marked as UTF-8";
		}
	}
	if (entry.array.objection != NULL) {
		return wf_import_add(import, &entry, member->name, name_bytes);
	}
	if (name_bytes <= ENDING_BYTES ||
	    memcmp(member->name + name_bytes - ENDING_BYTES, ENDING, ENDING_BYTES) != 0) {
		entry.array.objection = "is not an npy file";
		return wf_import_add(import, &entry, member->name, name_bytes);
	}
	enum weft_status st = look_at(import, member->bytes, &entry);
	return st == WEFT_OK
		       ? wf_import_add(import, &entry, member->name, name_bytes - ENDING_BYTES)
		       : st;
}

enum weft_status
wf_import_list_npz(struct wf_import *import)
{
	return wf_zip_each(import->env, &import->file, add_member, import);
}

enum weft_status
wf_import_list_npy(struct wf_import *import)
{
	const char *slash = strrchr(import->path, '/');
	const char *name = slash == NULL ? import->path : slash + 1;
	size_t bytes = strlen(name);
	struct wf_import_entry entry = {.stored_bytes = import->file.bytes};

	if (bytes > ENDING_BYTES && strcmp(name + bytes - ENDING_BYTES, ENDING) == 0) {
		bytes -= ENDING_BYTES;
	}
	enum weft_status st = look_at(import, import->file.bytes, &entry);
	return st == WEFT_OK ? wf_import_add(import, &entry, name, bytes) : st;
}

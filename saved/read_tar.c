/* SPDX-License-Identifier: Apache-2.0 */
/* The original's tar of parameters: for each one a member NAME, a parameter file, and a member
 * NAME.protobuf, its ParameterConfig, which has the shape. Headers as of POSIX (ustar, pax) and as
 * of GNU, which is what Python's tarfile has written over the years. Thread: the caller's. */
#include <inttypes.h>
#include <string.h>

#include "saved/import_internal.h"
#include "saved/parameter_config.h"
#include "saved/tar.h"

#define LONG_BYTES_MAX 4096u /* of a long name, or of a pax header */

/* What headers before a member hold about it. */
struct ahead {
	char name[WF_TAR_NAME_BYTES];
	size_t name_bytes; /* 0: nothing */
	bool has_bytes;
	uint64_t bytes;
};

static enum weft_status
read_text(struct wf_import *import, const struct wf_tar_header *header, uint64_t at, char *out)
{
	if (header->bytes > LONG_BYTES_MAX) {
		return wf_fail(WEFT_DATA,
			       "%s: a long name or a pax header has %" PRIu64
			       " bytes; at most %u are read",
			       import->path, header->bytes, LONG_BYTES_MAX);
	}
	return wf_saved_file_read_at(&import->file, at, out, (size_t)header->bytes);
}

static void
copy_name(const char *name, size_t bytes, struct ahead *out)
{
	out->name_bytes = bytes < sizeof(out->name) ? bytes : sizeof(out->name);
	memcpy(out->name, name, out->name_bytes);
}

/* "27 path=a_long_name\n", many of them; the number counts the whole record. */
static bool
parse_pax(const char *text, size_t bytes, struct ahead *out)
{
	while (bytes > 0) {
		size_t record = 0;
		size_t at = 0;
		for (; at < bytes && at < 5 && text[at] >= '0' && text[at] <= '9'; at++) {
			record = record * 10 + (size_t)(text[at] - '0');
		}
		if (at == 0 || at >= bytes || text[at] != ' ' || record <= at + 1 ||
		    record > bytes || text[record - 1] != '\n') {
			return false;
		}
		const char *key = text + at + 1;
		const size_t left = record - at - 2;
		const char *equals = memchr(key, '=', left);
		if (equals == NULL) {
			return false;
		}
		const size_t value_bytes = left - (size_t)(equals + 1 - key);
		if (equals - key == 4 && memcmp(key, "path", 4) == 0) {
			copy_name(equals + 1, value_bytes, out);
		} else if (equals - key == 4 && memcmp(key, "size", 4) == 0) {
			out->has_bytes = true;
			if (!wf_tar_decimal(equals + 1, value_bytes, &out->bytes)) {
				return false;
			}
		}
		text += record;
		bytes -= record;
	}
	return true;
}

/* A member that speaks of the next one. */
static enum weft_status
read_ahead(struct wf_import *import, const struct wf_tar_header *header, uint64_t at,
	   struct ahead *out)
{
	char text[LONG_BYTES_MAX];

	enum weft_status st = read_text(import, header, at, text);
	if (st != WEFT_OK) {
		return st;
	}
	if (header->kind == WF_TAR_LONG_NAME) {
		copy_name(text, strnlen(text, (size_t)header->bytes), out);
	} else if (!parse_pax(text, (size_t)header->bytes, out)) {
		return wf_fail(WEFT_DATA, "%s: the pax header at byte %" PRIu64 " is damaged",
			       import->path, at);
	}
	return WEFT_OK;
}

static enum weft_status
add_config(struct wf_import *import, const struct wf_tar_header *header, uint64_t at)
{
	uint8_t bytes[WF_PARAMETER_CONFIG_BYTES_MAX];
	struct wf_parameter_config config;
	struct wf_import_entry entry = {.is_shape = true};
	const size_t name_bytes = header->name_bytes - WF_PARAMETER_CONFIG_ENDING_BYTES;

	if (header->bytes > sizeof(bytes)) {
		return wf_fail(WEFT_DATA,
			       "%s: a .protobuf has %" PRIu64 " bytes; at most %zu are read",
			       import->path, header->bytes, sizeof(bytes));
	}
	enum weft_status st =
		wf_saved_file_read_at(&import->file, at, bytes, (size_t)header->bytes);
	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_parameter_config_decode(bytes, (size_t)header->bytes, &config)) {
		entry.array.objection = "has a .protobuf that does not describe a parameter, or "
					"describes a sparse one";
	} else if (config.name_bytes != name_bytes ||
		   memcmp(config.name, header->name, name_bytes) != 0) {
		entry.array.objection = "has the .protobuf of another parameter";
	} else {
		wf_import_shape_apply(&config.shape, &entry);
	}
	return wf_import_add_file(import, &entry, header->name, name_bytes);
}

static enum weft_status
add_parameter(struct wf_import *import, const struct wf_tar_header *header, uint64_t at)
{
	struct wf_import_entry entry;

	enum weft_status st = wf_import_parameter(&import->file, at, header->bytes, &entry);
	return st == WEFT_OK ? wf_import_add_file(import, &entry, header->name, header->name_bytes)
			     : st;
}

/* A member as it is called without the folder that a tar of "." has before each. */
static enum weft_status
add_member(struct wf_import *import, struct wf_tar_header *header, uint64_t at)
{
	if (header->name_bytes > 2 && memcmp(header->name, "./", 2) == 0) {
		header->name_bytes -= 2;
		memmove(header->name, header->name + 2, header->name_bytes);
	}
	const size_t ending = WF_PARAMETER_CONFIG_ENDING_BYTES;
	const bool is_config =
		header->name_bytes > ending && memcmp(header->name + header->name_bytes - ending,
						      WF_PARAMETER_CONFIG_ENDING, ending) == 0;
	return is_config ? add_config(import, header, at) : add_parameter(import, header, at);
}

/* Reads the member whose header is at `*at`, and advances `*at` past it. */
static enum weft_status
read_member(struct wf_import *import, struct wf_tar_header *header, struct ahead *ahead,
	    uint64_t *at)
{
	const uint64_t bytes_at = *at + WF_TAR_BLOCK_BYTES;
	enum weft_status st = WEFT_OK;

	if (header->kind == WF_TAR_FILE) {
		if (ahead->name_bytes > 0) {
			memcpy(header->name, ahead->name, ahead->name_bytes);
			header->name_bytes = ahead->name_bytes;
		}
		header->bytes = ahead->has_bytes ? ahead->bytes : header->bytes;
	}
	if (header->bytes > import->file.bytes - bytes_at) {
		return wf_fail(WEFT_DATA,
			       "%s: the member at byte %" PRIu64 " claims %" PRIu64
			       " bytes, and the file has %" PRIu64 ": it is truncated or damaged",
			       import->path, *at, header->bytes, import->file.bytes);
	}
	switch (header->kind) {
	case WF_TAR_FILE:
		st = add_member(import, header, bytes_at);
		*ahead = (struct ahead){0};
		break;
	case WF_TAR_LONG_NAME:
	case WF_TAR_PAX:
		st = read_ahead(import, header, bytes_at, ahead);
		break;
	case WF_TAR_ASIDE:
		*ahead = (struct ahead){0};
		break;
	case WF_TAR_OTHER:
		return wf_fail(WEFT_DATA,
			       "%s: the member at byte %" PRIu64 " is neither a file nor a folder",
			       import->path, *at);
	}
	*at = bytes_at +
	      (header->bytes + WF_TAR_BLOCK_BYTES - 1) / WF_TAR_BLOCK_BYTES * WF_TAR_BLOCK_BYTES;
	return st;
}

enum weft_status
wf_import_list_tar(struct wf_import *import)
{
	uint8_t block[WF_TAR_BLOCK_BYTES];
	struct wf_tar_header header;
	struct ahead ahead = {0};
	uint64_t at = 0;

	/* The writer may have left out the blocks of zeros at the end, which GNU tar accepts. */
	while (at < import->file.bytes) {
		enum weft_status st =
			wf_saved_file_read_at(&import->file, at, block, sizeof(block));
		if (st != WEFT_OK) {
			return st;
		}
		if (wf_tar_is_end(block)) {
			return WEFT_OK;
		}
		if (!wf_tar_decode(block, &header)) {
			return wf_fail(WEFT_DATA,
				       "%s: the bytes at %" PRIu64
				       " are not the header of a tar member: it is not a tar, or "
				       "is damaged",
				       import->path, at);
		}
		st = read_member(import, &header, &ahead, &at);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A zip file is read from its end: the end record says where the directory is, the directory where
 * the members are. Thread: the caller's. */
#include "saved/zip.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "saved/import.h"
#include "saved/unpack.h"
#include "wire/little.h"

#define END_MAGIC 0x06054b50u
#define END_BYTES 22u
#define LOCATOR_MAGIC 0x07064b50u
#define LOCATOR_BYTES 20u
#define END64_MAGIC 0x06064b50u
#define END64_BYTES 56u
#define ENTRY_MAGIC 0x02014b50u
#define ENTRY_BYTES 46u
#define LOCAL_MAGIC 0x04034b50u
#define LOCAL_BYTES 30u
#define COMMENT_BYTES_MAX 65535u
#define FIELD64 1u
#define ENCRYPTED 1u
#define NAME_IS_UTF8 0x800u
#define STORED 0u
#define DEFLATED 8u

/* Where the directory is. */
struct directory {
	uint64_t at, bytes, count;
};

static enum weft_status
damaged(const struct wf_saved_file *file, const char *what)
{
	return wf_fail(WEFT_DATA, "%s: %s: it is not a zip file, or is truncated or damaged",
		       file->path, what);
}

/* Where the end record is: before a comment that ends with the file. */
static enum weft_status
find_end(struct wf_env *env, struct wf_saved_file *file, uint64_t *out)
{
	const uint64_t all = END_BYTES + COMMENT_BYTES_MAX;
	const size_t bytes = (size_t)(file->bytes < all ? file->bytes : all);
	bool is_found = false;

	if (bytes < END_BYTES) {
		return damaged(file, "has no directory");
	}
	uint8_t *tail = wf_zalloc(env, bytes);
	if (tail == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", file->path, bytes);
	}
	enum weft_status st = wf_saved_file_read_at(file, file->bytes - bytes, tail, bytes);
	for (size_t i = bytes - END_BYTES + 1; st == WEFT_OK && !is_found && i > 0; i--) {
		const uint8_t *at = tail + i - 1;
		is_found = wf_load_u32(at) == END_MAGIC &&
			   wf_load_u16(at + 20) == bytes - END_BYTES - (i - 1);
		*out = file->bytes - bytes + (i - 1);
	}
	wf_free(env, tail, bytes);
	return st == WEFT_OK && !is_found ? damaged(file, "has no directory") : st;
}

/* The record with 64-bit sizes, where there is one before the end record. */
static enum weft_status
read_end64(struct wf_saved_file *file, uint64_t end, struct directory *out)
{
	uint8_t locator[LOCATOR_BYTES];
	uint8_t record[END64_BYTES];

	if (end < LOCATOR_BYTES) {
		return WEFT_OK;
	}
	enum weft_status st =
		wf_saved_file_read_at(file, end - LOCATOR_BYTES, locator, sizeof(locator));
	if (st != WEFT_OK || wf_load_u32(locator) != LOCATOR_MAGIC) {
		return st;
	}
	st = wf_saved_file_read_at(file, wf_load_u64(locator + 8), record, sizeof(record));
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_load_u32(record) != END64_MAGIC) {
		return damaged(file, "its 64-bit end record is not where it should be");
	}
	*out = (struct directory){
		.count = wf_load_u64(record + 32),
		.bytes = wf_load_u64(record + 40),
		.at = wf_load_u64(record + 48),
	};
	return WEFT_OK;
}

static enum weft_status
find_directory(struct wf_env *env, struct wf_saved_file *file, struct directory *out)
{
	uint8_t record[END_BYTES];
	uint64_t end = 0;

	enum weft_status st = find_end(env, file, &end);
	if (st == WEFT_OK) {
		st = wf_saved_file_read_at(file, end, record, sizeof(record));
	}
	if (st != WEFT_OK) {
		return st;
	}
	*out = (struct directory){
		.count = wf_load_u16(record + 10),
		.bytes = wf_load_u32(record + 12),
		.at = wf_load_u32(record + 16),
	};
	st = read_end64(file, end, out);
	if (st != WEFT_OK) {
		return st;
	}
	if (out->at > end || out->bytes > end - out->at) {
		return damaged(file, "its directory is not within it");
	}
	if (out->count > WF_IMPORT_ARRAYS_MAX || out->count > out->bytes / ENTRY_BYTES) {
		return wf_fail(WEFT_DATA,
			       "%s: its directory lists %" PRIu64
			       " members, but has room for %" PRIu64 ", and at most %u are read",
			       file->path, out->count, out->bytes / ENTRY_BYTES,
			       WF_IMPORT_ARRAYS_MAX);
	}
	return WEFT_OK;
}

/* The sizes in the extra field, which have no room in the entry. */
static enum weft_status
read_field64(struct wf_saved_file *file, uint64_t at, uint16_t extra_bytes,
	     struct wf_zip_member *member)
{
	uint64_t *const wanted[] = {&member->bytes, &member->stored_bytes, &member->at};
	uint64_t left = extra_bytes;
	uint8_t head[4];
	uint8_t field[24];

	while (left >= sizeof(head)) {
		enum weft_status st = wf_saved_file_read_at(file, at, head, sizeof(head));
		const uint16_t bytes = wf_load_u16(head + 2);
		if (st != WEFT_OK) {
			return st;
		}
		if (bytes > left - sizeof(head)) {
			return damaged(file, "a field of its directory is too long");
		}
		const size_t part = bytes < sizeof(field) ? bytes : sizeof(field);
		st = wf_saved_file_read_at(file, at + sizeof(head), field, part);
		if (st != WEFT_OK) {
			return st;
		}
		size_t used = 0;
		for (unsigned i = 0; wf_load_u16(head) == FIELD64 && i < 3; i++) {
			if (*wanted[i] == UINT32_MAX && part - used >= 8) {
				*wanted[i] = wf_load_u64(field + used);
				used += 8;
			}
		}
		at += sizeof(head) + bytes;
		left -= sizeof(head) + bytes;
	}
	return WEFT_OK;
}

/* From where its header is to where its bytes are. */
static enum weft_status
find_bytes(struct wf_saved_file *file, const struct directory *directory,
	   struct wf_zip_member *member)
{
	uint8_t local[LOCAL_BYTES];

	enum weft_status st = wf_saved_file_read_at(file, member->at, local, sizeof(local));
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_load_u32(local) != LOCAL_MAGIC) {
		return damaged(file, "a member is not where its directory points");
	}
	member->at += LOCAL_BYTES + (uint64_t)wf_load_u16(local + 26) + wf_load_u16(local + 28);
	if (member->at > directory->at || member->stored_bytes > directory->at - member->at) {
		return damaged(file, "a member is not within it");
	}
	const uint64_t most = member->is_deflated ? member->stored_bytes : 1;
	if (member->is_deflated ? member->bytes / WF_UNPACK_RATIO_MAX > most
				: member->bytes != member->stored_bytes) {
		return damaged(file, "a member claims a size that it cannot have");
	}
	return WEFT_OK;
}

static enum weft_status
read_entry(struct wf_saved_file *file, const struct directory *directory, uint64_t *at,
	   struct wf_zip_member *out)
{
	uint8_t entry[ENTRY_BYTES];

	enum weft_status st = wf_saved_file_read_at(file, *at, entry, sizeof(entry));
	if (st != WEFT_OK) {
		return st;
	}
	const uint16_t name_bytes = wf_load_u16(entry + 28);
	const uint16_t extra_bytes = wf_load_u16(entry + 30);
	const uint16_t method = wf_load_u16(entry + 10);
	const uint64_t next =
		*at + ENTRY_BYTES + name_bytes + extra_bytes + wf_load_u16(entry + 32);
	if (wf_load_u32(entry) != ENTRY_MAGIC || next > directory->at + directory->bytes) {
		return damaged(file, "its directory does not have the length that it gives");
	}
	*out = (struct wf_zip_member){
		.name_bytes = name_bytes < WF_ZIP_NAME_BYTES ? name_bytes : WF_ZIP_NAME_BYTES,
		.is_deflated = method == DEFLATED,
		.is_utf8 = (wf_load_u16(entry + 8) & NAME_IS_UTF8) != 0,
		.crc = wf_load_u32(entry + 16),
		.stored_bytes = wf_load_u32(entry + 20),
		.bytes = wf_load_u32(entry + 24),
		.at = wf_load_u32(entry + 42),
	};
	if ((wf_load_u16(entry + 8) & ENCRYPTED) != 0) {
		out->objection = "is encrypted";
	} else if (method != STORED && method != DEFLATED) {
		out->objection = "is compressed, but not with deflate";
	}
	st = wf_saved_file_read_at(file, *at + ENTRY_BYTES, out->name, out->name_bytes);
	if (st == WEFT_OK) {
		st = read_field64(file, *at + ENTRY_BYTES + name_bytes, extra_bytes, out);
	}
	*at = next;
	return st;
}

enum weft_status
wf_zip_each(struct wf_env *env, struct wf_saved_file *file, wf_zip_fn *each, void *arg)
{
	struct directory directory = {0};
	struct wf_zip_member member;
	uint64_t stored = 0;

	enum weft_status st = find_directory(env, file, &directory);
	uint64_t at = directory.at;
	for (uint64_t i = 0; st == WEFT_OK && i < directory.count; i++) {
		st = read_entry(file, &directory, &at, &member);
		if (st == WEFT_OK && member.objection == NULL) {
			st = find_bytes(file, &directory, &member);
		}
		if (st != WEFT_OK) {
			return st;
		}
		/* So that the sizes of all are bounded by the file's. */
		stored += member.objection == NULL ? member.stored_bytes : 0;
		if (stored > file->bytes) {
			return damaged(file, "its members overlap");
		}
		st = each(arg, &member);
	}
	return st;
}

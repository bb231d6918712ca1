/* SPDX-License-Identifier: Apache-2.0 */
/* proto: see proto.h. Thread: any. */
#include "tools/trace/proto.h"

#include <string.h>

#include "base/assert.h"
#include "wire/little.h"

#define LENGTH_BYTES 4u /* of a message's length, which is not known when it begins */
#define FIELD_MAX ((1u << 29) - 1)

enum wire_type {
	VARINT = 0,
	FIXED64 = 1,
	LENGTH = 2,
	FIXED32 = 5,
};

void
wf_proto_fini(struct wf_proto_writer *writer)
{
	wf_free(writer->env, writer->bytes, writer->capacity);
	*writer = (struct wf_proto_writer){.env = writer->env};
}

/* Room for `count` bytes more. */
static bool
reserve(struct wf_proto_writer *writer, size_t count)
{
	if (writer->bad || writer->used + count <= writer->capacity) {
		return !writer->bad;
	}
	size_t larger = writer->capacity == 0 ? 65536 : writer->capacity * 2;
	larger = larger < writer->used + count ? writer->used + count : larger;
	uint8_t *fresh = wf_zalloc(writer->env, larger);
	writer->bad = fresh == NULL;
	if (fresh != NULL) {
		if (writer->used > 0) {
			memcpy(fresh, writer->bytes, writer->used);
		}
		wf_free(writer->env, writer->bytes, writer->capacity);
		writer->bytes = fresh;
		writer->capacity = larger;
	}
	return !writer->bad;
}

static void
put_varint(struct wf_proto_writer *writer, uint64_t value)
{
	if (!reserve(writer, 10)) {
		return;
	}
	for (; value >= 0x80; value >>= 7) {
		writer->bytes[writer->used++] = (uint8_t)(value | 0x80);
	}
	writer->bytes[writer->used++] = (uint8_t)value;
}

static void
put_tag(struct wf_proto_writer *writer, uint32_t field, enum wire_type type)
{
	put_varint(writer, (uint64_t)field << 3 | type);
}

void
wf_proto_varint(struct wf_proto_writer *writer, uint32_t field, uint64_t value)
{
	put_tag(writer, field, VARINT);
	put_varint(writer, value);
}

void
wf_proto_fixed64(struct wf_proto_writer *writer, uint32_t field, uint64_t value)
{
	put_tag(writer, field, FIXED64);
	if (reserve(writer, 8)) {
		wf_store_u64(&writer->bytes[writer->used], value);
		writer->used += 8;
	}
}

void
wf_proto_bytes(struct wf_proto_writer *writer, uint32_t field, const void *bytes, size_t count)
{
	put_tag(writer, field, LENGTH);
	put_varint(writer, count);
	if (count > 0 && reserve(writer, count)) {
		memcpy(&writer->bytes[writer->used], bytes, count);
		writer->used += count;
	}
}

void
wf_proto_text(struct wf_proto_writer *writer, uint32_t field, const char *text)
{
	wf_proto_bytes(writer, field, text, strlen(text));
}

/* The length is a varint of four bytes, which may have leading zeros. */
size_t
wf_proto_begin(struct wf_proto_writer *writer, uint32_t field)
{
	put_tag(writer, field, LENGTH);
	writer->used += reserve(writer, LENGTH_BYTES) ? LENGTH_BYTES : 0;
	return writer->used;
}

void
wf_proto_end(struct wf_proto_writer *writer, size_t begin)
{
	size_t count = writer->used - begin;
	if (writer->bad) {
		return;
	}
	WF_ASSERT(count < 1u << 7 * LENGTH_BYTES);
	for (unsigned i = 0; i < LENGTH_BYTES; i++) {
		uint8_t more = i + 1 < LENGTH_BYTES ? 0x80 : 0;
		writer->bytes[begin - LENGTH_BYTES + i] = (uint8_t)((count >> 7 * i & 0x7f) | more);
	}
}

static uint64_t
get_varint(struct wf_proto_reader *reader)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (reader->used == reader->count) {
			break;
		}
		uint8_t byte = reader->bytes[reader->used++];
		value |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0) {
			return value;
		}
	}
	reader->bad = true;
	return 0;
}

static void
get_bytes(struct wf_proto_reader *reader, uint64_t count, struct wf_proto_field *out)
{
	if (reader->bad || count > reader->count - reader->used) {
		reader->bad = true;
		return;
	}
	out->bytes = &reader->bytes[reader->used];
	out->count = (size_t)count;
	reader->used += (size_t)count;
}

bool
wf_proto_next(struct wf_proto_reader *reader, struct wf_proto_field *out)
{
	if (reader->bad || reader->used == reader->count) {
		return false;
	}
	uint64_t tag = get_varint(reader);
	*out = (struct wf_proto_field){.number = (uint32_t)(tag >> 3)};
	reader->bad = reader->bad || tag >> 3 == 0 || tag >> 3 > FIELD_MAX;
	switch (tag & 7) {
	case VARINT:
		out->value = get_varint(reader);
		break;
	case FIXED64:
		get_bytes(reader, 8, out);
		out->value = reader->bad ? 0 : wf_load_u64(out->bytes);
		break;
	case FIXED32:
		get_bytes(reader, 4, out);
		out->value = reader->bad ? 0 : wf_load_u32(out->bytes);
		break;
	case LENGTH:
		out->is_bytes = true;
		get_bytes(reader, get_varint(reader), out);
		break;
	default:
		reader->bad = true;
		break;
	}
	return !reader->bad;
}

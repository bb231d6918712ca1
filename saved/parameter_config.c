/* SPDX-License-Identifier: Apache-2.0 */
/* parameter_config: see parameter_config.h. Thread: any. */
#include "saved/parameter_config.h"

#include <string.h>

#include "base/assert.h"

enum wire_type {
	VARINT = 0,
	FIXED64 = 1,
	BYTES = 2,
	FIXED32 = 5,
};

enum field {
	NAME = 1,
	SIZE = 2,
	DIMS = 9,
	IS_SPARSE = 14,
};

struct message {
	const uint8_t *at, *end;
	bool is_bad;
};

struct value {
	uint64_t number;
	const uint8_t *bytes;
	size_t count;
};

bool
wf_parameter_is_bias(const char *name)
{
	static const char *const endings[] = {"_b", ".b", "bias"};
	const size_t bytes = strlen(name);

	for (size_t i = 0; i < WF_ARRAY_COUNT(endings); i++) {
		const size_t ending = strlen(endings[i]);
		if (bytes >= ending && strcmp(name + bytes - ending, endings[i]) == 0) {
			return true;
		}
	}
	return false;
}

bool
wf_parameter_is_aside(const char *name)
{
	const char *end = strrchr(name, '.');

	return name[0] == '.' || strcmp(name, "done") == 0 || strcmp(name, "path.txt") == 0 ||
	       (end != NULL && (strcmp(end, ".py") == 0 || strcmp(end, ".conf") == 0));
}

static uint64_t
parse_varint(struct message *m)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
		const uint8_t byte = *m->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0) {
			return value;
		}
	}
	m->is_bad = true;
	return 0;
}

static const uint8_t *
pop_bytes(struct message *m, uint64_t count)
{
	const uint8_t *at = m->at;

	if (m->is_bad || count > (uint64_t)(m->end - m->at)) {
		m->is_bad = true;
		return at;
	}
	m->at += count;
	return at;
}

static struct value
parse_value(struct message *m, unsigned type)
{
	struct value value = {0};

	switch (type) {
	case VARINT:
		value.number = parse_varint(m);
		break;
	case FIXED64:
		(void)pop_bytes(m, 8);
		break;
	case BYTES:
		value.number = parse_varint(m);
		value.bytes = pop_bytes(m, value.number);
		value.count = (size_t)value.number;
		break;
	case FIXED32:
		(void)pop_bytes(m, 4);
		break;
	default:
		m->is_bad = true;
		break;
	}
	return value;
}

/* Each by itself, or many packed together. */
static bool
parse_dims(unsigned type, const struct value *value, struct wf_import_shape *out)
{
	if (type == VARINT) {
		wf_import_shape_add(out, value->number);
		return true;
	}
	if (type != BYTES) {
		return false;
	}
	struct message packed = {.at = value->bytes, .end = value->bytes + value->count};
	while (packed.at < packed.end) {
		wf_import_shape_add(out, parse_varint(&packed));
	}
	return !packed.is_bad;
}

static bool
parse_field(struct message *m, bool *has_size, struct wf_parameter_config *out)
{
	const uint64_t key = parse_varint(m);
	const unsigned type = key & 7;
	const struct value value = parse_value(m, type);

	if (m->is_bad) {
		return false;
	}
	switch (key >> 3) {
	case NAME:
		out->name = (const char *)value.bytes;
		out->name_bytes = value.count;
		return type == BYTES;
	case SIZE:
		out->count = value.number;
		*has_size = true;
		return type == VARINT;
	case DIMS:
		return parse_dims(type, &value, &out->shape);
	case IS_SPARSE:
		return type == VARINT && value.number == 0;
	default:
		return true;
	}
}

bool
wf_parameter_config_decode(const uint8_t *bytes, size_t count, struct wf_parameter_config *out)
{
	struct message m = {.at = bytes, .end = bytes + count};
	bool has_size = false;

	*out = (struct wf_parameter_config){0};
	while (m.at < m.end) {
		if (!parse_field(&m, &has_size, out)) {
			return false;
		}
	}
	if (out->name == NULL || !has_size) {
		return false;
	}
	if (out->shape.shape.dims == 0) {
		wf_import_shape_add(&out->shape, 1);
		wf_import_shape_add(&out->shape, out->count);
	}
	return !out->shape.is_bad && out->count > 0 &&
	       wf_shape_elements(&out->shape.shape) == out->count;
}

static uint8_t *
put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static uint8_t *
put_number(uint8_t *at, enum field field, uint64_t value)
{
	at = put_varint(at, (uint64_t)field << 3 | VARINT);
	return put_varint(at, value);
}

size_t
wf_parameter_config_encode(const char *name, const struct wf_shape *shape, uint8_t *out)
{
	const size_t name_bytes = strlen(name);
	uint8_t *at = out;

	WF_ASSERT(name_bytes < WF_SAVED_NAME_BYTES);
	at = put_varint(at, (uint64_t)NAME << 3 | BYTES);
	at = put_varint(at, name_bytes);
	memcpy(at, name, name_bytes);
	at = put_number(at + name_bytes, SIZE, wf_shape_elements(shape));
	for (unsigned i = 0; i < shape->dims; i++) {
		at = put_number(at, DIMS, shape->dim[i]);
	}
	WF_ASSERT((size_t)(at - out) <= WF_PARAMETER_CONFIG_BYTES_MAX);
	return (size_t)(at - out);
}

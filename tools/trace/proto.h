/* SPDX-License-Identifier: Apache-2.0 */
/* proto: protocol buffers on the wire, as far as a timeline needs them: fields that are varints, 64
 * bits, bytes or messages. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

/* Grows. `bad`: there was no memory, and everything after that is left out. */
struct wf_proto_writer {
	struct wf_env *env;
	uint8_t *bytes; /* [used] */
	size_t used, capacity;
	bool bad;
};

void wf_proto_fini(struct wf_proto_writer *writer);
void wf_proto_varint(struct wf_proto_writer *writer, uint32_t field, uint64_t value);
void wf_proto_fixed64(struct wf_proto_writer *writer, uint32_t field, uint64_t value);
void wf_proto_bytes(struct wf_proto_writer *writer, uint32_t field, const void *bytes,
		    size_t count);
void wf_proto_text(struct wf_proto_writer *writer, uint32_t field, const char *text);
/* What is written until `end` is the message in the field. Its length is below 2^28. */
size_t wf_proto_begin(struct wf_proto_writer *writer, uint32_t field);
void wf_proto_end(struct wf_proto_writer *writer, size_t begin);

/* A field that was read. */
struct wf_proto_field {
	uint32_t number;
	bool is_bytes;        /* else a number */
	uint64_t value;       /* varint, or of 64 or 32 bits */
	const uint8_t *bytes; /* [count] within what is read */
	size_t count;
};

struct wf_proto_reader {
	const uint8_t *bytes; /* [count] */
	size_t count, used;
	bool bad; /* what is left is no field */
};

/* The next field; false: there is none, or it is bad. */
bool wf_proto_next(struct wf_proto_reader *reader, struct wf_proto_field *out);

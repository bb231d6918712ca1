/* SPDX-License-Identifier: Apache-2.0 */
/* piece: see piece.h. Thread: any. */
#include "wire/piece.h"

#include <string.h>

#include "base/assert.h"
#include "base/type.h"
#include "wire/little.h"
#include "wire/shape.h"

#define PIECE "piece"
#define MAGIC 0x43504657u /* "WFPC" */
#define FIELDS_BYTES 40u
#define ARRAY_BYTES_MAX (1ull << 60)

void
wf_piece_encode(const struct wf_piece *piece, uint8_t *out)
{
	memset(out, 0, WF_PIECE_HEAD_BYTES);
	wf_store_u32(out, MAGIC);
	wf_store_u32(out + 4, piece->type);
	wf_store_u64(out + 8, piece->call);
	wf_store_u64(out + 16, piece->array_bytes);
	wf_store_u64(out + 24, piece->before_bytes);
	wf_store_u64(out + 32, piece->bytes);
}

/* Whole elements, which lie within the array. */
static enum weft_status
check_extent(const struct wf_piece *piece, uint64_t most)
{
	uint64_t each = wf_type_bytes(piece->type);
	if (each == 0) {
		return wf_refuse(PIECE, "type", piece->type, "0 to 5");
	}
	if (piece->array_bytes == 0 || piece->array_bytes > ARRAY_BYTES_MAX ||
	    piece->array_bytes % each != 0) {
		return wf_refuse(PIECE, "array_bytes", piece->array_bytes,
				 "whole elements, at least one, below 2^60 bytes");
	}
	if (piece->before_bytes >= piece->array_bytes || piece->before_bytes % each != 0) {
		return wf_refuse(PIECE, "before_bytes", piece->before_bytes,
				 "whole elements, fewer than the array has");
	}
	if (piece->bytes == 0 || piece->bytes > most || piece->bytes % each != 0 ||
	    piece->bytes > piece->array_bytes - piece->before_bytes) {
		return wf_refuse(PIECE, "bytes", piece->bytes,
				 "whole elements of the rest of the array, at least one, that fit "
				 "a slice");
	}
	return WEFT_OK;
}

enum weft_status
wf_piece_decode(const uint8_t *head, uint64_t most, struct wf_piece *out)
{
	static const uint8_t zero[WF_PIECE_HEAD_BYTES - FIELDS_BYTES];
	const struct wf_piece piece = {
		.type = wf_load_u32(head + 4),
		.call = wf_load_u64(head + 8),
		.array_bytes = wf_load_u64(head + 16),
		.before_bytes = wf_load_u64(head + 24),
		.bytes = wf_load_u64(head + 32),
	};
	if (wf_load_u32(head) != MAGIC) {
		return wf_refuse(PIECE, "magic", wf_load_u32(head), "1129334359");
	}
	if (memcmp(head + FIELDS_BYTES, zero, sizeof(zero)) != 0) {
		return wf_refuse(PIECE, "the first unused byte", head[FIELDS_BYTES],
				 "0, as all are");
	}
	if (piece.call == 0) {
		return wf_refuse(PIECE, "call", piece.call, "above 0");
	}
	enum weft_status st = check_extent(&piece, most);
	if (st == WEFT_OK) {
		*out = piece;
	}
	return st;
}

bool
wf_piece_equals(const struct wf_piece *a, const struct wf_piece *b)
{
	return a->type == b->type && a->call == b->call && a->array_bytes == b->array_bytes &&
	       a->before_bytes == b->before_bytes && a->bytes == b->bytes;
}

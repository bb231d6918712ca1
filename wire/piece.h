/* SPDX-License-Identifier: Apache-2.0 */
/* piece: the head of a piece of an array that all trainers reduce (weft_all_reduce). It stands in
 * front of the piece's data, in the PUT to the lane and in the answer. All trainers send the same
 * one; otherwise they make different calls. Thread: any; pure functions.
 *
 * Little-endian:
 *
 *     offset | bytes | field
 *     -------+-------+------------------------------------------------------------------
 *          0 |     4 | magic, "WFPC"
 *          4 |     4 | type of the elements (enum weft_type)
 *          8 |     8 | number of the call, from 1
 *         16 |     8 | bytes of the whole array
 *         24 |     8 | bytes of the array before this piece
 *         32 |     8 | bytes of this piece, above 0
 *         40 |    24 | 0
 *
 * Behind the data up to three more bytes make the PUT a multiple of four. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_PIECE_HEAD_BYTES 64u
#define WF_PIECE_SLICE_BYTES_MIN 128u /* of head and data */

struct wf_piece {
	uint32_t type; /* enum weft_type */
	uint64_t call;
	uint64_t array_bytes;
	uint64_t before_bytes;
	uint64_t bytes;
};

/* The bytes of the PUT: head, data and padding. */
static inline uint64_t
wf_piece_put_bytes(const struct wf_piece *piece)
{
	return WF_PIECE_HEAD_BYTES + ((piece->bytes + 3) & ~(uint64_t)3);
}

/* `out` has WF_PIECE_HEAD_BYTES. */
void wf_piece_encode(const struct wf_piece *piece, uint8_t *out);
/* `head` has WF_PIECE_HEAD_BYTES; `most`: the most bytes that the data of a piece may have, a
 * multiple of 8. WEFT_PROTOCOL: the text names field and value. */
enum weft_status wf_piece_decode(const uint8_t *head, uint64_t most,
				 struct wf_piece *out) WEFT_MUST_CHECK;
bool wf_piece_equals(const struct wf_piece *a, const struct wf_piece *b);

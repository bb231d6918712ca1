/* SPDX-License-Identifier: Apache-2.0 */
/* chunks: see chunks.h. Thread: the lane's. */
#include "sparse/table/chunks.h"

#include "base/assert.h"

#define CHUNK_PIECES 64u /* 2 MiB: a huge page */
#define CHUNK_BYTES (CHUNK_PIECES * WF_PIECE_BYTES)
#define CHUNKS_SMALL 6u /* from one piece to half of a full chunk */
/* No spare is allocated that would be more than this share of what the cap leaves. */
#define SPARE_SHARE 4u
#define AT_FIRST 16u

WF_STATIC_ASSERT(1u << CHUNKS_SMALL == CHUNK_PIECES, "full ones follow");

static uint32_t
pieces_of(uint32_t nth)
{
	return nth < CHUNKS_SMALL ? 1u << nth : CHUNK_PIECES;
}

static bool
reserve_entry(struct wf_chunks *chunks)
{
	if (chunks->count < chunks->capacity) {
		return true;
	}
	uint32_t capacity = chunks->capacity == 0 ? AT_FIRST : 2 * chunks->capacity;
	void *chunk = chunks->chunk;
	if (!wf_budget_grow(chunks->budget, &chunk, chunks->capacity * sizeof(*chunks->chunk),
			    capacity * sizeof(*chunks->chunk))) {
		return false;
	}
	chunks->chunk = chunk;
	chunks->capacity = capacity;
	return true;
}

static bool
add_chunk(struct wf_chunks *chunks)
{
	const size_t bytes = pieces_of(chunks->count) * WF_PIECE_BYTES;

	if (!reserve_entry(chunks)) {
		return false;
	}
	char *base = wf_budget_alloc(chunks->budget, bytes);
	if (base == NULL) {
		return false;
	}
	if (bytes >= WF_AHEAD_LEAST_BYTES) {
		wf_ahead_place(base, bytes, chunks->node);
	}
	chunks->chunk[chunks->count++] = base;
	return true;
}

/* See how far the helper has got with the chunk that is being cut. */
static void
note_ready(struct wf_chunks *chunks)
{
	if (chunks->asked == chunks->cut && chunks->asked > 0) {
		chunks->cut_ready = wf_ahead_reached(&chunks->ahead);
	}
}

static void
alloc_spare(struct wf_chunks *chunks)
{
	const uint64_t left = chunks->budget->cap_bytes - chunks->budget->used_bytes;

	chunks->has_spare = chunks->makes_spares && chunks->count > CHUNKS_SMALL &&
			    CHUNK_BYTES <= left / SPARE_SHARE && add_chunk(chunks);
}

/* Ask for the spare, as soon as the helper is free. */
static void
ask_for_spare(struct wf_chunks *chunks)
{
	const uint32_t spare = chunks->count - 1;

	if (chunks->has_spare && chunks->asked != spare && wf_ahead_is_free(&chunks->ahead)) {
		note_ready(chunks);
		chunks->asked = spare;
		wf_ahead_begin(&chunks->ahead, chunks->chunk[spare], CHUNK_BYTES);
	}
}

/* From the spare, or from a new chunk. */
static bool
begin_chunk(struct wf_chunks *chunks)
{
	if (!chunks->has_spare && !add_chunk(chunks)) {
		return false;
	}
	chunks->cut = chunks->count - 1;
	chunks->cut_count = 0;
	chunks->cut_ready = 0;
	note_ready(chunks);
	alloc_spare(chunks);
	return true;
}

void
wf_chunks_init(struct wf_chunks *chunks, struct wf_budget *budget, struct wf_env *env,
	       unsigned node)
{
	*chunks = (struct wf_chunks){.budget = budget, .node = node, .makes_spares = env != NULL};
	wf_ahead_init(&chunks->ahead, env);
}

void
wf_chunks_fini(struct wf_chunks *chunks)
{
	wf_ahead_fini(&chunks->ahead);
	for (uint32_t i = 0; i < chunks->count; i++) {
		wf_budget_give(chunks->budget, chunks->chunk[i], pieces_of(i) * WF_PIECE_BYTES);
	}
	if (chunks->chunk != NULL) {
		wf_budget_give(chunks->budget, chunks->chunk,
			       chunks->capacity * sizeof(*chunks->chunk));
	}
	*chunks = (struct wf_chunks){0};
}

void *
wf_chunks_alloc(struct wf_chunks *chunks)
{
	bool is_cut = chunks->count == 0 || chunks->cut_count == pieces_of(chunks->cut);

	if (is_cut && !begin_chunk(chunks)) {
		return NULL;
	}
	note_ready(chunks);
	ask_for_spare(chunks);
	const size_t offset = chunks->cut_count++ * WF_PIECE_BYTES;
	bool is_ready = offset + WF_PIECE_BYTES <= chunks->cut_ready;
	chunks->readied_bytes += is_ready ? WF_PIECE_BYTES : 0;
	chunks->cleared_bytes += is_ready ? 0 : WF_PIECE_BYTES;
	return chunks->chunk[chunks->cut] + offset;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over sets in memory and streamed ones. Thread: the owner's. */
#include "trainer/program/walk.h"

enum weft_status
wf_walk_init(struct wf_env *env, const struct wf_set *set, enum wf_part part, uint64_t ahead_until,
	     struct wf_walk *out)
{
	struct wf_walk walk = {.set = set, .is_over = true};
	uint64_t first = 0;
	uint64_t end = 0;

	if (set->is_streamed) {
		enum weft_status st = wf_stream_open(
			env,
			&(struct wf_stream_opts){
				.set = set, .part = part, .ahead_until = ahead_until},
			&walk.stream);
		if (st != WEFT_OK) {
			return st;
		}
	}
	wf_set_part(set, part, &first, &end);
	walk.piece = (struct wf_piece){
		.first = (size_t)first, .count = (size_t)(end - first), .row = first};
	*out = walk;
	return WEFT_OK;
}

void
wf_walk_fini(struct wf_walk *walk)
{
	wf_stream_close(walk->stream);
	*walk = (struct wf_walk){0};
}

void
wf_walk_begin(struct wf_walk *walk, uint64_t seed, uint64_t pass)
{
	walk->is_over = false;
	if (walk->stream != NULL) {
		wf_stream_begin(walk->stream, seed, pass);
	}
}

enum weft_status
wf_walk_next(struct wf_walk *walk, struct wf_block *out)
{
	if (walk->stream != NULL) {
		return wf_stream_next(walk->stream, out);
	}
	*out = (struct wf_block){.source = &walk->set->source};
	if (!walk->is_over) {
		out->piece = &walk->piece;
		out->piece_count = 1;
		out->rows = walk->piece.count;
		walk->is_over = true;
	}
	return WEFT_OK;
}

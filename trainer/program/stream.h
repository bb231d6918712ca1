/* SPDX-License-Identifier: Apache-2.0 */
/* stream: the blocks of a set that is larger than a window. In each pass a stream reads the files
 * once; those to train on come in an order drawn from seed and pass, those to test on in the order
 * of their list. Two blocks and the text of one window are in memory.
 *
 * Threads: with ahead_until a thread reads the next block while the owner uses the current one;
 * everything that both see is under one lock. Without it, the owner reads when it needs a block.
 * The blocks are the same. */
#pragma once

#include "trainer/program/set.h"

struct wf_stream;

struct wf_stream_opts {
	const struct wf_set *set; /* streamed; lent until close */
	enum wf_part part;
	/* The first pass that is not read ahead: as soon as a pass has been read, the next one is
	 * begun, if it is before this one. 0: there is no thread. */
	uint64_t ahead_until;
};

/* WEFT_NOMEM */
enum weft_status wf_stream_open(struct wf_env *env, const struct wf_stream_opts *opts,
				struct wf_stream **out) WEFT_MUST_CHECK;
/* Ends the thread, which takes at most as long as reading one window. Accepts NULL. */
void wf_stream_close(struct wf_stream *stream);
/* Begins a pass, also in the middle of another. */
void wf_stream_begin(struct wf_stream *stream, uint64_t seed, uint64_t pass);
/* The next block, which is lent until the next call of a function of the stream. Its `rows` are 0
 * when the pass is over. After a failure the stream can only be closed. */
enum weft_status wf_stream_next(struct wf_stream *stream, struct wf_block *out) WEFT_MUST_CHECK;

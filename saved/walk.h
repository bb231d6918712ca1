/* SPDX-License-Identifier: Apache-2.0 */
/* walk: the blocks of a snapshot's parts, one after the other, and one of them again. A walk reads
 * every byte of a part and compares it with the manifest, so whoever has walked over all parts
 * knows that they are whole. Thread: the caller's. Blocks on the disk. */
#pragma once

#include "saved/manifest.h"
#include "saved/part.h"

/* A snapshot whose manifest has been read. */
struct wf_block_walk {
	struct wf_env *env;
	const struct wf_saved_calls *calls;
	const char *path;                   /* of its directory; lent */
	const struct wf_manifest *manifest; /* lent */
};

/* Where a block is. */
struct wf_block_walk_block {
	struct wf_part_block block;
	uint64_t at;     /* in the file, of its head */
	uint64_t number; /* from 0 on */
	uint32_t part;   /* of the manifest */
	uint32_t crc;    /* wf_part_block_crc, once it has been read */
};

/* Called with each block of a part; what it does not read of the payload is skipped. */
typedef enum weft_status wf_block_walk_fn(void *arg, struct wf_part_reader *reader,
					  const struct wf_block_walk_block *block);

/* The path of a part. `out` is [WF_SAVED_PATH_BYTES]. */
enum weft_status wf_block_walk_path(const struct wf_block_walk *walk, uint32_t part,
				    char *out) WEFT_MUST_CHECK;
/* Reads a part from end to end. `fn` NULL: that is all. WEFT_DATA: file, block and what is wrong,
 * also if it is another file than the manifest names; WEFT_IO; WEFT_NOMEM; what `fn` returns */
enum weft_status wf_block_walk_part(const struct wf_block_walk *walk, uint32_t part,
				    wf_block_walk_fn *fn, void *arg) WEFT_MUST_CHECK;
/* All parts of a service, WF_SERVICE_DENSE or WF_SERVICE_SPARSE, in their order. */
enum weft_status wf_block_walk_service(const struct wf_block_walk *walk, enum wf_service service,
				       wf_block_walk_fn *fn, void *arg) WEFT_MUST_CHECK;

/* For blocks that are read again: the part that was opened last. All zeroes: none. */
struct wf_block_walk_cursor {
	struct wf_part_reader *reader;
	uint32_t part;
};

/* Reads one block again that a walk has read: `fn` reads all of its payload. WEFT_DATA also if the
 * block has changed meanwhile. After a failure the cursor can only be closed. */
enum weft_status wf_block_walk_again(const struct wf_block_walk *walk,
				     struct wf_block_walk_cursor *cursor,
				     const struct wf_block_walk_block *block, wf_block_walk_fn *fn,
				     void *arg) WEFT_MUST_CHECK;
void wf_block_walk_close(struct wf_block_walk_cursor *cursor);

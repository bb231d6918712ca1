/* SPDX-License-Identifier: Apache-2.0 */
/* blocks: where the parts of a snapshot have what. One walk over all parts lists their blocks, and
 * shows that each element of each tensor is there once, and the rows and counters of each table;
 * afterwards single blocks are read again. A list takes some 80 bytes for each block, so it grows
 * with the number of blocks, and not with what they hold. Private to this folder. Thread: the
 * caller's. Blocks on the disk. */
#pragma once

#include "saved/part_table.h"
#include "saved/rows.h"
#include "saved/tensors.h"
#include "saved/walk.h"

struct wf_blocks_entry {
	struct wf_block_walk_block place;
	uint32_t low, high; /* of rows and keys: the first and the last partition that has one */
};

struct wf_blocks_table {
	struct wf_part_table about; /* the same in all parts */
	uint32_t described_in;      /* the last part that describes it, and 1; 0: none */
	uint64_t rows;              /* in all parts; a delta has not all rows of its table */
};

struct wf_blocks_base;

/* All zeroes: none. */
struct wf_blocks {
	struct wf_blocks_entry
		*entry; /* [count] of [room]; by kind, item, first but of rows and keys, part,
			 * number */
	size_t count, room;
	struct wf_blocks_table *table; /* [table_count], as in the manifest */
	uint32_t table_count;
	/* The snapshot on which a delta builds, lent by whoever sets it (chain.h); NULL: none, or
	 * not known. */
	const struct wf_blocks_base *base;
};

struct wf_blocks_base {
	struct wf_block_walk walk;
	struct wf_blocks blocks;
};

/* Reads all parts. WEFT_DATA: file, block and reason, or the tensor or table of which something is
 * missing or there twice; WEFT_IO; WEFT_NOMEM. wf_blocks_fini ends it. */
enum weft_status wf_blocks_read(const struct wf_block_walk *walk,
				struct wf_blocks *out) WEFT_MUST_CHECK;
void wf_blocks_fini(struct wf_env *env, struct wf_blocks *blocks);
/* Whether both describe table `idx` in the same way, so that rows of one fit into the other. */
bool wf_blocks_has_same_table(const struct wf_blocks *a, const struct wf_blocks *b, uint32_t idx);
/* Those of a kind that a tensor or table has. */
const struct wf_blocks_entry *wf_blocks_of(const struct wf_blocks *blocks, enum wf_part_kind kind,
					   uint32_t item, size_t *count);

/* What the file of the table's rows would have in front. */
struct wf_rows_head wf_blocks_head(const struct wf_block_walk *walk,
				   const struct wf_part_table *about);
/* The partition of a key. */
uint32_t wf_blocks_partition(const struct wf_rows_head *head, uint64_t key);

/* Array `array` of tensor `idx`, 0: its values. WEFT_DATA, WEFT_IO, WEFT_NOMEM */
enum weft_status wf_blocks_read_tensor(const struct wf_block_walk *walk,
				       const struct wf_blocks *blocks, uint32_t idx, unsigned array,
				       const struct wf_tensor_target *to) WEFT_MUST_CHECK;

/* The table's rows as files of rows have them: partition by partition, by ascending key. Blocks
 * have them in any order, so they are collected and sorted: as many partitions at a time as have
 * `window_bytes` of rows together, but at least one. Each window reads the blocks again that have
 * rows of it. Of a delta those of the snapshots below it are among them, and of each key what the
 * newest says of it counts: its row, or that it is gone. `walk` is copied; what it points to, and
 * `blocks`, are lent until wf_rows_close. WEFT_DATA, WEFT_IO, WEFT_NOMEM */
#define WF_BLOCKS_WINDOW_BYTES ((uint64_t)256 << 20)
enum weft_status wf_blocks_open_rows(const struct wf_block_walk *walk,
				     const struct wf_blocks *blocks, uint32_t idx,
				     uint64_t window_bytes,
				     struct wf_rows_reader **out) WEFT_MUST_CHECK;

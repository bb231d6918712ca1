/* SPDX-License-Identifier: Apache-2.0 */
/* chain: see chain.h. Thread: the caller's. */
#include "saved/chain.h"

#include <inttypes.h>
#include <string.h>

#include "saved/snapshot.h"

#define FIRST_ROOM 4u

struct wf_chain_link {
	struct wf_snapshot *snapshot;
	struct wf_blocks_base at;
};

static enum weft_status
make_room(struct wf_env *env, struct wf_chain *chain, uint32_t room)
{
	struct wf_chain_link *more = wf_zalloc_array(env, room, sizeof(*more));

	if (more == NULL) {
		return wf_fail(WEFT_NOMEM, "chain of %" PRIu32 " snapshots", room);
	}
	if (chain->count > 0) {
		memcpy(more, chain->link, chain->count * sizeof(*more));
	}
	wf_free(env, chain->link, chain->room * sizeof(*more));
	chain->link = more;
	chain->room = room;
	return WEFT_OK;
}

/* Opens the base of the newest links' last one. */
static enum weft_status
add_link(const struct wf_block_walk *newest, struct wf_chain *chain)
{
	const struct wf_block_walk *walk =
		chain->count == 0 ? newest : &chain->link[chain->count - 1].at.walk;
	enum weft_status st = WEFT_OK;

	if (chain->count == WF_SNAPSHOT_CHAIN_MAX) {
		return wf_fail(WEFT_DATA, "%s: more than %u snapshots build on each other",
			       newest->path, WF_SNAPSHOT_CHAIN_MAX);
	}
	if (chain->count == chain->room) {
		st = make_room(newest->env, chain, chain->room == 0 ? FIRST_ROOM : 2 * chain->room);
		walk = chain->count == 0 ? newest : &chain->link[chain->count - 1].at.walk;
	}
	struct wf_snapshot *base = NULL;
	if (st == WEFT_OK) {
		st = wf_snapshot_open_base_of(walk, &base);
	}
	if (st == WEFT_OK) {
		chain->link[chain->count++] =
			(struct wf_chain_link){.snapshot = base, .at.walk = wf_snapshot_walk(base)};
	}
	return st;
}

/* Reads all parts of a link. */
static enum weft_status
read_link(const struct wf_block_walk *newest, const struct wf_blocks *blocks,
	  struct wf_blocks_base *link)
{
	enum weft_status st = wf_blocks_read(&link->walk, &link->blocks);

	for (uint32_t i = 0; st == WEFT_OK && i < newest->manifest->table_count; i++) {
		if (!wf_blocks_has_same_table(blocks, &link->blocks, i)) {
			st = wf_fail(WEFT_DATA, "%s: table %s is not as in %s, which builds on it",
				     link->walk.path, newest->manifest->table[i].name,
				     newest->path);
		}
	}
	return st;
}

enum weft_status
wf_chain_open(const struct wf_block_walk *walk, struct wf_blocks *blocks, struct wf_chain *out)
{
	const struct wf_manifest *last = walk->manifest;
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK && last->parts.base_step != 0) {
		st = add_link(walk, out);
		last = st == WEFT_OK ? out->link[out->count - 1].at.walk.manifest : last;
	}
	for (uint32_t i = 0; st == WEFT_OK && i < out->count; i++) {
		st = read_link(walk, blocks, &out->link[i].at);
		if (st == WEFT_OK) {
			struct wf_blocks *above = i == 0 ? blocks : &out->link[i - 1].at.blocks;
			above->base = &out->link[i].at;
		}
	}
	return st;
}

void
wf_chain_close(struct wf_env *env, struct wf_chain *chain)
{
	for (uint32_t i = 0; i < chain->count; i++) {
		wf_blocks_fini(env, &chain->link[i].at.blocks);
		wf_snapshot_close(chain->link[i].snapshot);
	}
	wf_free(env, chain->link, chain->room * sizeof(*chain->link));
	*chain = (struct wf_chain){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: the caller's. */
#include "saved/walk.h"

#include <inttypes.h>

#include "base/assert.h"

enum weft_status
wf_block_walk_path(const struct wf_block_walk *walk, uint32_t part, char *out)
{
	WF_ASSERT(part < walk->manifest->parts.part_count);
	return wf_saved_join(walk->path, walk->manifest->parts.part[part].name, out);
}

static enum wf_service
service_of(const struct wf_block_walk *walk, uint32_t part, uint32_t *lane)
{
	enum wf_service service = WF_SERVICE_DENSE;
	const bool is_named =
		wf_manifest_part_lane(walk->manifest->parts.part[part].name, &service, lane);

	WF_ASSERT(is_named); /* the manifest was decoded */
	return service;
}

/* The part's own head: the file may be whole, and not the one that belongs here. */
static enum weft_status
check_head(const struct wf_block_walk *walk, uint32_t part, const char *path,
	   const struct wf_part_head *head)
{
	const struct wf_manifest_parts *parts = &walk->manifest->parts;
	uint32_t lane = 0;
	const enum wf_service service = service_of(walk, part, &lane);
	const uint32_t lane_count =
		parts->pserver_count *
		(service == WF_SERVICE_DENSE ? parts->dense_lanes : parts->sparse_lanes);

	if (head->service == service && head->lane == lane && head->lane_count == lane_count &&
	    head->epoch == parts->epoch && head->step == walk->manifest->about.step) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_DATA,
		       "%s: is of epoch %" PRIu64 " and step %" PRIu64 ", %s lane %" PRIu32
		       " of %" PRIu32 ": it is not the part that the manifest names",
		       path, head->epoch, head->step,
		       head->service == WF_SERVICE_DENSE ? "dense" : "sparse", head->lane,
		       head->lane_count);
}

/* WEFT_CLOSED: the last block has been read (nothing is recorded). */
static enum weft_status
visit(struct wf_part_reader *reader, uint32_t part, wf_block_walk_fn *fn, void *arg)
{
	const struct wf_part_sum before = wf_part_sum(reader);
	struct wf_block_walk_block block = {
		.at = before.bytes, .number = before.blocks, .part = part};

	enum weft_status st = wf_part_next(reader, &block.block);
	if (st == WEFT_OK && fn != NULL) {
		st = fn(arg, reader, &block);
	}
	return st == WEFT_OK ? wf_part_skip(reader) : st;
}

enum weft_status
wf_block_walk_part(const struct wf_block_walk *walk, uint32_t part, wf_block_walk_fn *fn, void *arg)
{
	const struct wf_manifest_part *named = &walk->manifest->parts.part[part];
	struct wf_part_reader *reader = NULL;
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = wf_block_walk_path(walk, part, path);
	if (st == WEFT_OK) {
		st = wf_part_open(walk->env, walk->calls, path, &reader);
	}
	if (st != WEFT_OK) {
		return st;
	}
	st = check_head(walk, part, path, wf_part_head(reader));
	while (st == WEFT_OK) {
		st = visit(reader, part, fn, arg);
	}
	const struct wf_part_sum sum = wf_part_sum(reader);
	wf_part_close(reader);
	if (st == WEFT_CLOSED && (sum.bytes != named->bytes || sum.crc != named->crc)) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " bytes and checksum %08" PRIx32
			       "; the manifest has %" PRIu64 " and %08" PRIx32
			       ": it is another file",
			       path, sum.bytes, sum.crc, named->bytes, named->crc);
	}
	return st == WEFT_CLOSED ? WEFT_OK : st;
}

enum weft_status
wf_block_walk_service(const struct wf_block_walk *walk, enum wf_service service,
		      wf_block_walk_fn *fn, void *arg)
{
	enum weft_status st = WEFT_OK;
	uint32_t lane = 0;

	for (uint32_t i = 0; st == WEFT_OK && i < walk->manifest->parts.part_count; i++) {
		if (service_of(walk, i, &lane) == service) {
			st = wf_block_walk_part(walk, i, fn, arg);
		}
	}
	return st;
}

static bool
is_same(const struct wf_part_block *a, const struct wf_part_block *b)
{
	return a->kind == b->kind && a->item == b->item && a->first == b->first &&
	       a->count == b->count && a->bytes == b->bytes;
}

void
wf_block_walk_close(struct wf_block_walk_cursor *cursor)
{
	wf_part_close(cursor->reader);
	*cursor = (struct wf_block_walk_cursor){0};
}

/* The cursor is in that part. */
static enum weft_status
go_to(const struct wf_block_walk *walk, struct wf_block_walk_cursor *cursor, uint32_t part)
{
	char path[WF_SAVED_PATH_BYTES];

	if (cursor->reader != NULL && cursor->part == part) {
		return WEFT_OK;
	}
	wf_block_walk_close(cursor);
	cursor->part = part;
	enum weft_status st = wf_block_walk_path(walk, part, path);
	return st == WEFT_OK ? wf_part_open(walk->env, walk->calls, path, &cursor->reader) : st;
}

enum weft_status
wf_block_walk_again(const struct wf_block_walk *walk, struct wf_block_walk_cursor *cursor,
		    const struct wf_block_walk_block *block, wf_block_walk_fn *fn, void *arg)
{
	struct wf_part_block found = {0};

	enum weft_status st = go_to(walk, cursor, block->part);
	if (st != WEFT_OK) {
		return st;
	}
	wf_part_seek(cursor->reader, block->number, block->at);
	st = wf_part_next(cursor->reader, &found);
	bool is_other = st == WEFT_CLOSED || (st == WEFT_OK && !is_same(&found, &block->block));
	if (st == WEFT_OK && !is_other) {
		st = fn(arg, cursor->reader, block);
		is_other = st == WEFT_OK && wf_part_block_crc(cursor->reader) != block->crc;
	}
	return is_other ? wf_part_refuse(cursor->reader, "has changed since it was read first")
			: st;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* registry_messages: encode and decode the messages of the registry service. One check for each
 * message is both what decode refuses and what encode asserts. Layouts: wire/protocol.md. Thread:
 * any; pure functions. */
#include "wire/registry_messages.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/shape.h"
#include "wire/tables.h"

#define JOIN_BYTES 40
#define LOAD_BYTES 28
#define LOADED_BYTES 24
#define BAD_FIXED_BYTES 26
#define RUN_BYTES 32
#define SNAPSHOT_BYTES 24
#define PART_FIXED_BYTES 39
#define FAILED_FIXED_BYTES 18

WF_STATIC_ASSERT(PART_FIXED_BYTES + WF_REGISTRY_ROWS_MAX * sizeof(uint64_t) <= WF_MSG_BODY_MAX,
		 "a full PART fits a message");
WF_STATIC_ASSERT(WF_REGISTRY_TABLE_ROWS_MAX <= INT64_MAX / WF_LANE_COUNT_MAX,
		 "the rows of all lanes can be added");

static const struct wf_shape join_shape = {
	.name = "JOIN",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_JOIN,
	.body_min = JOIN_BYTES,
	.body_max = JOIN_BYTES,
};

static const struct wf_shape load_shape = {
	.name = "LOAD",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_LOAD,
	.body_min = LOAD_BYTES,
	.body_max = LOAD_BYTES,
};

static const struct wf_shape loaded_shape = {
	.name = "LOADED",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_LOADED,
	.body_min = LOADED_BYTES,
	.body_max = LOADED_BYTES,
};

static const struct wf_shape bad_shape = {
	.name = "BAD",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_BAD,
	.body_min = BAD_FIXED_BYTES + 1,
	.body_max = BAD_FIXED_BYTES + WF_REASON_BYTES - 1,
};

static const struct wf_shape run_shape = {
	.name = "RUN",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_RUN,
	.body_min = RUN_BYTES,
	.body_max = RUN_BYTES,
};

static const struct wf_shape snapshot_shape = {
	.name = "SNAPSHOT",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_SNAPSHOT,
	.body_min = SNAPSHOT_BYTES,
	.body_max = SNAPSHOT_BYTES,
};

static const struct wf_shape part_shape = {
	.name = "PART",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_PART,
	.body_min = PART_FIXED_BYTES,
	.body_max = PART_FIXED_BYTES + WF_REGISTRY_ROWS_MAX * sizeof(uint64_t),
};

static const struct wf_shape failed_shape = {
	.name = "FAILED",
	.service = WF_SERVICE_REGISTRY,
	.type = WF_REGISTRY_FAILED,
	.body_min = FAILED_FIXED_BYTES + 1,
	.body_max = FAILED_FIXED_BYTES + WF_REASON_BYTES - 1,
};

/* What several messages have. */

static void
put_id(struct wf_writer *w, const struct wf_registry_id *id)
{
	wf_put_u64(w, id->epoch);
	wf_put_u64(w, id->step);
}

static struct wf_registry_id
get_id(struct wf_reader *r)
{
	uint64_t epoch = wf_get_u64(r);
	return (struct wf_registry_id){.epoch = epoch, .step = wf_get_u64(r)};
}

/* Checks a snapshot with which an epoch begins; epoch 0 has none. */
static enum weft_status
check_id(const char *message, const struct wf_registry_id *id, uint64_t epoch)
{
	if (id->epoch != 0 && id->epoch >= epoch) {
		return wf_refuse(message, "epoch of the snapshot", id->epoch,
				 "below the epoch that begins with it, or 0");
	}
	if (id->epoch == 0 && id->step != 0) {
		return wf_refuse(message, "step of the snapshot", id->step, "0 in epoch 0");
	}
	if (id->step > INT64_MAX) {
		return wf_refuse(message, "step of the snapshot", id->step, "below 2^63");
	}
	return WEFT_OK;
}

static enum weft_status
check_epoch(const char *message, uint64_t epoch)
{
	if (epoch == 0 || epoch > INT64_MAX) {
		return wf_refuse(message, "epoch", epoch, "1 or more, below 2^63");
	}
	return WEFT_OK;
}

static enum weft_status
check_base(const char *message, uint64_t epoch, const struct wf_registry_id *base)
{
	enum weft_status st = check_epoch(message, epoch);
	return st == WEFT_OK ? check_id(message, base, epoch) : st;
}

static enum weft_status
check_border(const char *message, uint64_t epoch, uint64_t border)
{
	enum weft_status st = check_epoch(message, epoch);
	if (st == WEFT_OK && (border == 0 || border > INT64_MAX)) {
		st = wf_refuse(message, "border", border, "1 or more, below 2^63");
	}
	return st;
}

/* Reads the text at the end of a message; `reason` is [WF_REASON_BYTES]. */
static enum weft_status
get_reason(const char *message, struct wf_reader *r, char *reason)
{
	wf_get_string(r, reason, WF_REASON_BYTES);
	if (r->bad) {
		return wf_refuse_text(message, "reason", r, WF_REASON_BYTES);
	}
	if (!wf_reader_done(r)) {
		return wf_refuse_length(message, r);
	}
	WF_ASSERT(reason[0] != '\0'); /* body_min */
	return WEFT_OK;
}

/* JOIN. */

static enum weft_status
check_join(const struct wf_registry_join *join)
{
	if (join->serves > INT64_MAX) {
		return wf_refuse("JOIN", "serves", join->serves, "below 2^63");
	}
	if (join->loaded_epoch > INT64_MAX) {
		return wf_refuse("JOIN", "loaded_epoch", join->loaded_epoch, "below 2^63");
	}
	if (join->dense_lanes == 0 || join->dense_lanes > WF_PSERVER_LANES_MAX) {
		return wf_refuse("JOIN", "dense_lanes", join->dense_lanes, "1 to 256");
	}
	if (join->sparse_lanes >= WF_PSERVER_LANES_MAX) {
		return wf_refuse("JOIN", "sparse_lanes", join->sparse_lanes, "0 to 255");
	}
	return check_id("JOIN", &join->loaded, join->loaded_epoch);
}

void
wf_registry_join_encode(const struct wf_registry_join *in, struct wf_msg *out)
{
	WF_ASSERT(check_join(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&join_shape, out);
	wf_put_u64(&w, in->serves);
	wf_put_u64(&w, in->loaded_epoch);
	put_id(&w, &in->loaded);
	wf_put_u32(&w, in->dense_lanes);
	wf_put_u32(&w, in->sparse_lanes);
	wf_shape_end(&join_shape, &w, out);
}

enum weft_status
wf_registry_join_decode(const struct wf_head *head, const uint8_t *body,
			struct wf_registry_join *out)
{
	enum weft_status st = wf_shape_check(&join_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_join join = {.serves = wf_get_u64(&r)};
	join.loaded_epoch = wf_get_u64(&r);
	join.loaded = get_id(&r);
	join.dense_lanes = wf_get_u32(&r);
	join.sparse_lanes = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_join(&join);
	if (st != WEFT_OK) {
		return st;
	}
	*out = join;
	return WEFT_OK;
}

/* LOAD, LOADED, BAD and RUN. */

static enum weft_status
check_load(const struct wf_registry_load *load)
{
	enum weft_status st = check_base("LOAD", load->epoch, &load->base);
	if (st == WEFT_OK && load->base.epoch == 0 && load->crc != 0) {
		st = wf_refuse("LOAD", "crc", load->crc, "0 without a snapshot");
	}
	return st;
}

void
wf_registry_load_encode(const struct wf_registry_load *in, struct wf_msg *out)
{
	WF_ASSERT(check_load(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&load_shape, out);
	wf_put_u64(&w, in->epoch);
	put_id(&w, &in->base);
	wf_put_u32(&w, in->crc);
	wf_shape_end(&load_shape, &w, out);
}

enum weft_status
wf_registry_load_decode(const struct wf_head *head, const uint8_t *body,
			struct wf_registry_load *out)
{
	enum weft_status st = wf_shape_check(&load_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_load load = {.epoch = wf_get_u64(&r)};
	load.base = get_id(&r);
	load.crc = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_load(&load);
	if (st != WEFT_OK) {
		return st;
	}
	*out = load;
	return WEFT_OK;
}

void
wf_registry_loaded_encode(const struct wf_registry_loaded *in, struct wf_msg *out)
{
	WF_ASSERT(check_base("LOADED", in->epoch, &in->base) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&loaded_shape, out);
	wf_put_u64(&w, in->epoch);
	put_id(&w, &in->base);
	wf_shape_end(&loaded_shape, &w, out);
}

enum weft_status
wf_registry_loaded_decode(const struct wf_head *head, const uint8_t *body,
			  struct wf_registry_loaded *out)
{
	enum weft_status st = wf_shape_check(&loaded_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_loaded loaded = {.epoch = wf_get_u64(&r)};
	loaded.base = get_id(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_base("LOADED", loaded.epoch, &loaded.base);
	if (st != WEFT_OK) {
		return st;
	}
	*out = loaded;
	return WEFT_OK;
}

void
wf_registry_bad_encode(const struct wf_registry_bad *in, struct wf_msg *out)
{
	WF_ASSERT(check_base("BAD", in->epoch, &in->base) == WEFT_OK);
	WF_ASSERT(in->reason[0] != '\0');

	struct wf_writer w = wf_shape_begin(&bad_shape, out);
	wf_put_u64(&w, in->epoch);
	put_id(&w, &in->base);
	wf_put_text(&w, in->reason, sizeof(in->reason));
	wf_shape_end(&bad_shape, &w, out);
}

enum weft_status
wf_registry_bad_decode(const struct wf_head *head, const uint8_t *body, struct wf_registry_bad *out)
{
	enum weft_status st = wf_shape_check(&bad_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_bad bad = {.epoch = wf_get_u64(&r)};
	bad.base = get_id(&r);
	st = check_base("BAD", bad.epoch, &bad.base);
	if (st == WEFT_OK) {
		st = get_reason("BAD", &r, bad.reason);
	}
	if (st != WEFT_OK) {
		return st;
	}
	*out = bad;
	return WEFT_OK;
}

static enum weft_status
check_run(const struct wf_registry_run *run)
{
	enum weft_status st = check_base("RUN", run->epoch, &run->base);
	if (st == WEFT_OK && run->samples > INT64_MAX) {
		st = wf_refuse("RUN", "samples", run->samples, "below 2^63");
	}
	return st;
}

void
wf_registry_run_encode(const struct wf_registry_run *in, struct wf_msg *out)
{
	WF_ASSERT(check_run(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&run_shape, out);
	wf_put_u64(&w, in->epoch);
	put_id(&w, &in->base);
	wf_put_u64(&w, in->samples);
	wf_shape_end(&run_shape, &w, out);
}

enum weft_status
wf_registry_run_decode(const struct wf_head *head, const uint8_t *body, struct wf_registry_run *out)
{
	enum weft_status st = wf_shape_check(&run_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_run run = {.epoch = wf_get_u64(&r)};
	run.base = get_id(&r);
	run.samples = wf_get_u64(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_run(&run);
	if (st != WEFT_OK) {
		return st;
	}
	*out = run;
	return WEFT_OK;
}

/* SNAPSHOT, PART and FAILED. */

static enum weft_status
check_snapshot(const struct wf_registry_snapshot *snapshot)
{
	enum weft_status st = check_border("SNAPSHOT", snapshot->epoch, snapshot->border);
	return st != WEFT_OK || snapshot->base < snapshot->border
		       ? st
		       : wf_refuse("SNAPSHOT", "base", snapshot->base, "below the border");
}

void
wf_registry_snapshot_encode(const struct wf_registry_snapshot *in, struct wf_msg *out)
{
	WF_ASSERT(check_snapshot(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&snapshot_shape, out);
	wf_put_u64(&w, in->epoch);
	wf_put_u64(&w, in->border);
	wf_put_u64(&w, in->base);
	wf_shape_end(&snapshot_shape, &w, out);
}

enum weft_status
wf_registry_snapshot_decode(const struct wf_head *head, const uint8_t *body,
			    struct wf_registry_snapshot *out)
{
	enum weft_status st = wf_shape_check(&snapshot_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_snapshot snapshot = {.epoch = wf_get_u64(&r)};
	snapshot.border = wf_get_u64(&r);
	snapshot.base = wf_get_u64(&r);
	WF_ASSERT(wf_reader_done(&r));
	st = check_snapshot(&snapshot);
	if (st != WEFT_OK) {
		return st;
	}
	*out = snapshot;
	return WEFT_OK;
}

/* Checks which tables the rows of a PART are of. */
static enum weft_status
check_tables(const struct wf_registry_part *part)
{
	bool is_dense = part->service == WF_SERVICE_DENSE;

	if (part->table_count > (is_dense ? 0 : WF_TABLE_COUNT_MAX)) {
		return wf_refuse("PART", "table_count", part->table_count,
				 is_dense ? "0 for a dense lane" : "0 to 1024");
	}
	if (part->first != 0 && part->first >= part->table_count) {
		return wf_refuse("PART", "first", part->first, "below table_count, or 0");
	}
	uint32_t left = (uint32_t)part->table_count - part->first;
	if (part->count > left || part->count > WF_REGISTRY_ROWS_MAX ||
	    (part->count == 0 && left > 0)) {
		return wf_refuse("PART", "count", part->count,
				 "1 to 256 of the tables from the first on, or 0 without tables");
	}
	return WEFT_OK;
}

static enum weft_status
check_part(const struct wf_registry_part *part)
{
	enum weft_status st = check_border("PART", part->epoch, part->border);
	if (st != WEFT_OK) {
		return st;
	}
	if (part->service != WF_SERVICE_DENSE && part->service != WF_SERVICE_SPARSE) {
		return wf_refuse("PART", "service", part->service, "2 (dense) or 3 (sparse)");
	}
	if (part->lane >= WF_LANE_COUNT_MAX) {
		return wf_refuse("PART", "lane", part->lane, "below 65536");
	}
	if (part->bytes == 0 || part->bytes > INT64_MAX) {
		return wf_refuse("PART", "bytes", part->bytes, "1 or more, below 2^63");
	}
	st = check_tables(part);
	for (uint32_t i = 0; st == WEFT_OK && i < part->count; i++) {
		if (part->rows[i] > WF_REGISTRY_TABLE_ROWS_MAX) {
			st = wf_refuse("PART", "rows", part->rows[i], "below 2^47");
		}
	}
	return st;
}

void
wf_registry_part_encode(const struct wf_registry_part *in, struct wf_msg *out)
{
	WF_ASSERT(check_part(in) == WEFT_OK);

	struct wf_writer w = wf_shape_begin(&part_shape, out);
	wf_put_u64(&w, in->epoch);
	wf_put_u64(&w, in->border);
	wf_put_u8(&w, in->service);
	wf_put_u32(&w, in->lane);
	wf_put_u64(&w, in->bytes);
	wf_put_u32(&w, in->crc);
	wf_put_u16(&w, in->table_count);
	wf_put_u16(&w, in->first);
	wf_put_u16(&w, in->count);
	for (uint32_t i = 0; i < in->count; i++) {
		wf_put_u64(&w, in->rows[i]);
	}
	wf_shape_end(&part_shape, &w, out);
}

/* Reads the body of a PART, of which wf_shape_check has seen that it is not too long. */
static enum weft_status
get_part(struct wf_reader *r, struct wf_registry_part *part)
{
	part->epoch = wf_get_u64(r);
	part->border = wf_get_u64(r);
	part->service = wf_get_u8(r);
	part->lane = wf_get_u32(r);
	part->bytes = wf_get_u64(r);
	part->crc = wf_get_u32(r);
	part->table_count = wf_get_u16(r);
	part->first = wf_get_u16(r);
	part->count = wf_get_u16(r);
	if (part->count * sizeof(uint64_t) != r->bytes - r->used) {
		return wf_refuse("PART", "count", part->count, "an eighth of the bytes after it");
	}
	WF_ASSERT(part->count <= WF_REGISTRY_ROWS_MAX);
	for (uint32_t i = 0; i < part->count; i++) {
		part->rows[i] = wf_get_u64(r);
	}
	WF_ASSERT(wf_reader_done(r));
	return WEFT_OK;
}

enum weft_status
wf_registry_part_decode(const struct wf_head *head, const uint8_t *body,
			struct wf_registry_part *out)
{
	enum weft_status st = wf_shape_check(&part_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_part part;
	st = get_part(&r, &part);
	if (st == WEFT_OK) {
		st = check_part(&part);
	}
	if (st != WEFT_OK) {
		return st;
	}
	memcpy(out, &part, offsetof(struct wf_registry_part, rows));
	memcpy(out->rows, part.rows, part.count * sizeof(part.rows[0]));
	return WEFT_OK;
}

void
wf_registry_failed_encode(const struct wf_registry_failed *in, struct wf_msg *out)
{
	WF_ASSERT(check_border("FAILED", in->epoch, in->border) == WEFT_OK);
	WF_ASSERT(in->reason[0] != '\0');

	struct wf_writer w = wf_shape_begin(&failed_shape, out);
	wf_put_u64(&w, in->epoch);
	wf_put_u64(&w, in->border);
	wf_put_text(&w, in->reason, sizeof(in->reason));
	wf_shape_end(&failed_shape, &w, out);
}

enum weft_status
wf_registry_failed_decode(const struct wf_head *head, const uint8_t *body,
			  struct wf_registry_failed *out)
{
	enum weft_status st = wf_shape_check(&failed_shape, head);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_registry_failed failed = {.epoch = wf_get_u64(&r)};
	failed.border = wf_get_u64(&r);
	st = check_border("FAILED", failed.epoch, failed.border);
	if (st == WEFT_OK) {
		st = get_reason("FAILED", &r, failed.reason);
	}
	if (st != WEFT_OK) {
		return st;
	}
	*out = failed;
	return WEFT_OK;
}

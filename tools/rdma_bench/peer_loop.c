/* SPDX-License-Identifier: Apache-2.0 */
/* peer_loop: to and fro, and streams, over any path: weft's and the raw ones run the same loops.
 * Both ends spin. */
#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/pattern.h"
#include "tools/rdma_bench/peer.h"

#define ALIGN_BYTES 64u
#define HALF_BYTES (1u << 20) /* least memory of one direction */
#define TABLE_SLOTS 65536u    /* that updates go to */
#define IDLE_POLLS 4096u      /* between looks at the clock and the other side */
#define SILENCE_NS (30 * WF_NS_PER_S)

static uint64_t
half_bytes_of(const struct wf_peer_plan *plan)
{
	uint64_t bytes = (plan->bytes_max + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	return bytes > HALF_BYTES ? bytes : HALF_BYTES;
}

enum weft_status
wf_peer_path_init(struct wf_peer_path *path, const struct wf_peer_path_ops *ops,
		  struct wf_peer_end *end)
{
	path->ops = ops;
	path->end = end;
	path->areas.half_bytes = half_bytes_of(&end->plan);
	path->table = wf_zalloc_array(end->env, TABLE_SLOTS, sizeof(*path->table));
	if (path->table == NULL) {
		return wf_fail(WEFT_NOMEM, "a table of %u slots", TABLE_SLOTS);
	}
	return WEFT_OK;
}

void
wf_peer_path_fini(struct wf_peer_path *path)
{
	wf_free(path->end->env, path->table, TABLE_SLOTS * sizeof(*path->table));
	path->table = NULL;
}

/* ---- what comes ---- */

/* Each end numbers its own messages. */
static uint64_t
pattern_number(const struct wf_peer_leg *leg, uint64_t number, bool own)
{
	return number * 2 + (leg->client == own ? 1 : 0);
}

static void
apply_updates(struct wf_peer_path *path, const uint8_t *data)
{
	for (uint64_t i = 0; i < path->leg->bytes; i += WF_PEER_UPDATE_BYTES) {
		uint32_t place, value;
		memcpy(&place, data + i, sizeof(place));
		memcpy(&value, data + i + sizeof(place), sizeof(value));
		path->table[place % TABLE_SLOTS] += value;
	}
}

/* Message `number` of the leg, which the other end sent. */
static void
check(struct wf_peer_report *verified, const struct wf_peer_leg *leg, uint64_t number,
      const uint8_t *data)
{
	uint64_t right = wf_pattern_check(data, leg->bytes, pattern_number(leg, number, false));
	verified->checked++;
	if (right < leg->bytes) {
		if (verified->wrong == 0) {
			verified->wrong_number = number;
			verified->wrong_at = right;
		}
		verified->wrong++;
	}
}

enum weft_status
wf_peer_on_message(struct wf_peer_path *path, const uint8_t *data)
{
	const struct wf_peer_leg *leg = path->leg;
	if (leg == NULL || path->received == leg->receive_count) {
		return wf_fail(WEFT_PROTOCOL, "one more message arrived than was due");
	}
	if (leg->verify) {
		check(&path->verified, leg, path->received, data);
	}
	if (leg->updates) {
		apply_updates(path, data);
	}
	path->received++;
	path->moved = true;
	return WEFT_OK;
}

/* ---- one turn ---- */

/* Counts a poll that brought nothing. Returns true if it is time to look around. */
static bool
count_idle(struct wf_peer_idle *idle)
{
	idle->polls++;
	return idle->polls % IDLE_POLLS == 0;
}

static bool
is_silent(struct wf_peer_idle *idle, uint64_t now_ns)
{
	idle->since_ns = idle->since_ns == 0 ? now_ns : idle->since_ns;
	return now_ns - idle->since_ns > SILENCE_NS;
}

static enum weft_status
look_around(struct wf_peer_path *path)
{
	if (is_silent(&path->idle, wf_now_ns(path->end->env))) {
		return wf_fail(WEFT_TIMEOUT,
			       "nothing moved for %llu s: sent %llu, of them over %llu; received "
			       "%llu of %llu",
			       SILENCE_NS / WF_NS_PER_S, (unsigned long long)path->sent,
			       (unsigned long long)path->done, (unsigned long long)path->received,
			       (unsigned long long)path->leg->receive_count);
	}
	return wf_peer_control_look(&path->end->control);
}

static enum weft_status
turn(struct wf_peer_path *path)
{
	path->moved = false;
	enum weft_status st = path->ops->progress(path);
	if (path->moved) {
		path->idle = (struct wf_peer_idle){0};
		return st;
	}
	bool looks = count_idle(&path->idle);
	return st == WEFT_OK && looks ? look_around(path) : st;
}

/* Writes the patterns of messages below `end`, without overwriting what is under way. */
static void
prepare(struct wf_peer_path *path, uint64_t end)
{
	for (; path->leg->verify && path->prepared < end; path->prepared++) {
		wf_pattern_fill(wf_peer_src(path, path->prepared), path->leg->bytes,
				pattern_number(path->leg, path->prepared, true));
	}
}

/* Until operations of this end are over. */
static enum weft_status
settle(struct wf_peer_path *path)
{
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && (path->done < path->sent || path->busy > 0)) {
		st = turn(path);
	}
	return st;
}

/* ---- to and fro ---- */

static enum weft_status
send_one(struct wf_peer_path *path)
{
	uint64_t taken = 0;
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && path->leg->verify && path->sent - path->done >= path->areas.count) {
		st = turn(path);
	}
	prepare(path, path->sent + 1);
	while (st == WEFT_OK && taken == 0) {
		st = path->ops->send(path, path->sent, 1, &taken);
		path->sent += taken;
		if (st == WEFT_OK && taken == 0) {
			st = turn(path);
		}
	}
	return st;
}

static enum weft_status
receive_one(struct wf_peer_path *path, uint64_t number)
{
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && path->received <= number) {
		st = turn(path);
	}
	return st;
}

static enum weft_status
ping(struct wf_peer_path *path, struct wf_meter *meter)
{
	const struct wf_peer_leg *leg = path->leg;
	enum weft_status st = WEFT_OK;
	for (uint64_t i = 0; i < leg->send_count && st == WEFT_OK; i++) {
		st = leg->client ? send_one(path) : receive_one(path, i);
		if (st == WEFT_OK) {
			st = leg->client ? receive_one(path, i) : send_one(path);
		}
		if (meter != NULL && (i + 1) % leg->batch == 0) {
			wf_meter_mark(meter);
		}
	}
	return st;
}

/* ---- streams ---- */

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many messages may go out now. */
static uint64_t
allowance(const struct wf_peer_path *path)
{
	const struct wf_peer_leg *leg = path->leg;
	uint64_t depth = path->end->plan.depth;
	depth = leg->verify ? min_u64(depth, path->areas.count) : depth;
	uint64_t under_way = path->sent - path->done;
	uint64_t count = min_u64(leg->send_count - path->sent, WF_PEER_TOGETHER);
	count = under_way < depth ? min_u64(count, depth - under_way) : 0;
	if (path->room > 0) {
		uint64_t untold = path->sent - path->peer_has;
		count = untold < path->room ? min_u64(count, path->room - untold) : 0;
	}
	return count;
}

static enum weft_status
send_some(struct wf_peer_path *path)
{
	uint64_t count = allowance(path);
	uint64_t taken = 0;
	if (count == 0) {
		return WEFT_OK;
	}
	prepare(path, path->sent + count);
	enum weft_status st = path->ops->send(path, path->sent, count, &taken);
	path->sent += taken;
	return st;
}

static bool
should_report(const struct wf_peer_path *path)
{
	const struct wf_peer_leg *leg = path->leg;
	uint64_t untold = path->received - path->told;
	bool all = path->received == leg->receive_count && path->sent == leg->send_count;
	bool half = path->room > 0 && untold >= (path->room + 1) / 2;
	return untold > 0 && (all || half);
}

static enum weft_status
report(struct wf_peer_path *path)
{
	bool taken = false;
	if (!should_report(path)) {
		return WEFT_OK;
	}
	enum weft_status st = path->ops->report(path, path->received, &taken);
	if (taken) {
		path->told = path->received;
	}
	return st;
}

static bool
stream_is_over(const struct wf_peer_path *path)
{
	const struct wf_peer_leg *leg = path->leg;
	return path->peer_has == leg->send_count && path->told == leg->receive_count;
}

static enum weft_status
stream(struct wf_peer_path *path)
{
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && !stream_is_over(path)) {
		st = send_some(path);
		if (st == WEFT_OK) {
			st = turn(path);
		}
		if (st == WEFT_OK) {
			st = report(path);
		}
	}
	return st;
}

/* ---- a leg ---- */

/* As many as half of the memory holds, and at most count_max. */
static void
count_areas(struct wf_peer_areas *areas)
{
	uint64_t most = min_u64(areas->half_bytes / areas->stride, areas->count_max);
	WF_ASSERT(most > 0);
	areas->count = 1;
	while (areas->count * 2 <= most) {
		areas->count *= 2;
	}
}

static void
begin(struct wf_peer_path *path, const struct wf_peer_leg *leg)
{
	path->leg = leg;
	path->areas.stride = (leg->bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	path->areas.count_max = WF_PEER_DEPTH_MAX;
	path->room = 0;
	path->prepared = 0;
	path->sent = path->done = path->received = 0;
	path->peer_has = path->told = 0;
	path->idle = (struct wf_peer_idle){0};
	path->ops->begin(path);
	count_areas(&path->areas);
	path->room = min_u64(path->room, path->areas.count);
}

enum weft_status
wf_peer_leg_run(struct wf_peer_path *path, const struct wf_peer_leg *leg, struct wf_meter *meter)
{
	begin(path, leg);
	if (meter != NULL) {
		wf_meter_begin(meter, leg->ping ? leg->batch : 1);
	}
	enum weft_status st = leg->ping ? ping(path, meter) : stream(path);
	if (st == WEFT_OK && meter != NULL && !leg->ping) {
		wf_meter_mark(meter);
	}
	if (st == WEFT_OK) {
		st = settle(path);
	}
	path->leg = NULL;
	return st;
}

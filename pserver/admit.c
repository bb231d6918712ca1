/* SPDX-License-Identifier: Apache-2.0 */
/* admit: who may come in, the job's description, coming back. Thread: the lane's. */
#include "pserver/lane_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "wire/layout.h"

/* For the job's description to arrive; less than a held trainer's attempt to connect may take. */
#define LOADING_TIMEOUT_NS (4 * WF_NS_PER_S)

struct wf_peer *
wf_admit_peer_of(struct wf_lane *lane, const struct wf_conn *conn)
{
	struct wf_peer *peer = conn->user;
	if (peer == NULL || peer->conn != conn) {
		return NULL; /* refused, held, or superseded */
	}
	WF_ASSERT(peer->lane == lane);
	return peer;
}

/* Say no with the recorded failure. `job_is_over`: it is the first cause of the job's end. */
static void
refuse(struct wf_lane *lane, struct wf_conn *conn, bool job_is_over)
{
	const struct wf_error *why = wf_error_record();
	struct wf_welcome no = {
		.refusal = (uint16_t)why->status,
		.flags = job_is_over ? WF_WELCOME_JOB_OVER : 0,
	};
	(void)snprintf(no.reason, sizeof(no.reason), "%.*s", WF_REASON_BYTES - 1, why->text);
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = wf_welcome_encode(&no, bytes);
	wf_stats_add(&lane->stats, WF_LANE_HELLO_REFUSED_COUNT, 1);
	wf_log(lane->env, WF_LOG_WARN, "lane %u: refused a trainer: %s", lane->opts.idx, no.reason);
	conn->user = NULL;
	if (wf_transport_answer(conn, false, bytes, used) != WEFT_OK) {
		wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	}
}

static enum weft_status
check_address(const struct wf_lane *lane, const struct wf_hello *hello)
{
	const struct wf_lane_opts *opts = &lane->opts;
	if (hello->service != WF_SERVICE_DENSE) {
		return wf_fail(WEFT_MISMATCH, "service %u asked of a dense lane", hello->service);
	}
	if (hello->lane_count != opts->lane_count) {
		return wf_fail(
			WEFT_MISMATCH,
			"trainer %u has ports_num %u, this pserver has %u; give both the same",
			hello->trainer_id, hello->lane_count, opts->lane_count);
	}
	if (hello->lane_idx != opts->idx) {
		return wf_fail(
			WEFT_MISMATCH,
			"trainer %u looks for lane %u and has found lane %u; check --port and the "
			"order of --pservers",
			hello->trainer_id, hello->lane_idx, opts->idx);
	}
	if (opts->num_gradient_servers != 0 && hello->trainer_count != opts->num_gradient_servers) {
		return wf_fail(
			WEFT_MISMATCH,
			"trainer %u has num_gradient_servers %u, this pserver has %u; give both "
			"the same",
			hello->trainer_id, hello->trainer_count, opts->num_gradient_servers);
	}
	if (hello->version_min > WF_WIRE_VERSION || hello->version_max < WF_WIRE_VERSION_MIN) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u speaks wire versions %u to %u, this pserver %u to %u",
			       hello->trainer_id, hello->version_min, hello->version_max,
			       WF_WIRE_VERSION_MIN, WF_WIRE_VERSION);
	}
	if (hello->job_bytes == 0 || hello->job_bytes > WF_JOB_BYTES_MAX) {
		return wf_fail(WEFT_PROTOCOL, "job of %" PRIu64 " bytes, allowed are 1 to %llu",
			       hello->job_bytes, WF_JOB_BYTES_MAX);
	}
	return WEFT_OK;
}

/* May this incarnation be trainer `peer`? */
static enum weft_status
check_identity(const struct wf_peer *peer, const struct wf_hello *hello)
{
	if (peer->state == WF_PEER_ABSENT) {
		return WEFT_OK;
	}
	char who[WF_REASON_BYTES];
	wf_peer_describe(peer, who, sizeof(who));
	if (hello->incarnation == peer->hello.incarnation && peer->offended) {
		return wf_fail(WEFT_PROTOCOL, "%.60s broke the protocol: %.160s", who,
			       peer->lost_why);
	}
	if (hello->incarnation == peer->hello.incarnation) {
		uint32_t newest =
			peer->successor != NULL ? peer->successor_hello.path : peer->hello.path;
		if (hello->path > newest) {
			return WEFT_OK;
		}
		return wf_fail(WEFT_REFUSED, "path %u of %.100s is older than path %u", hello->path,
			       who, newest);
	}
	if (peer->state == WF_PEER_UP) {
		return wf_fail(
			WEFT_MISMATCH,
			"trainer_id %u is used by two processes: %.100s is here, host %s, pid %u "
			"wants in; give each trainer its own trainer_id",
			hello->trainer_id, who, hello->host, hello->pid);
	}
	/* Lost or gone: the old job is about to end, the new process may be the next job's. */
	return wf_fail(WEFT_UNAVAILABLE, "%.100s belongs to a job that is ending; try again", who);
}

/* Is it a member of the job that has failed here, on its way back or late? */
static bool
is_of_this_job(const struct wf_lane *lane, const struct wf_hello *hello)
{
	if (hello->trainer_id >= lane->peer_count) {
		return false;
	}
	const struct wf_peer *peer = &lane->peer[hello->trainer_id];
	if (peer->state == WF_PEER_ABSENT) {
		return wf_hello_match(&lane->first, hello) == WEFT_OK;
	}
	return peer->hello.incarnation == hello->incarnation;
}

static enum weft_status
check_failed(const struct wf_lane *lane, const struct wf_hello *hello)
{
	if (is_of_this_job(lane, hello)) {
		return wf_fail(lane->cause.status, "%s", lane->cause.reason);
	}
	return wf_fail(WEFT_UNAVAILABLE, "lane %u: another job is ending here; try again",
		       lane->opts.idx);
}

static enum weft_status
check_hello(struct wf_lane *lane, const struct wf_hello *hello)
{
	enum weft_status st = check_address(lane, hello);
	if (st != WEFT_OK) {
		return st;
	}
	if (lane->state == WF_LANE_FAILED) {
		return check_failed(lane, hello);
	}
	if (!lane->have_first) {
		return WEFT_OK;
	}
	struct wf_peer *peer =
		hello->trainer_id < lane->peer_count ? &lane->peer[hello->trainer_id] : NULL;
	if (peer != NULL && peer->state != WF_PEER_ABSENT) {
		st = check_identity(peer, hello); /* says more than a difference of the job would */
		if (st != WEFT_OK) {
			return st;
		}
	}
	return wf_hello_match(&lane->first, hello);
}

static enum weft_status
open_job(struct wf_lane *lane, const struct wf_hello *hello)
{
	lane->peer = wf_zalloc_array(lane->env, hello->trainer_count, sizeof(*lane->peer));
	lane->job_bytes = wf_zalloc_array(lane->env, 1, hello->job_bytes);
	if (lane->peer == NULL || lane->job_bytes == NULL) {
		wf_free(lane->env, lane->peer, hello->trainer_count * sizeof(*lane->peer));
		wf_free(lane->env, lane->job_bytes, hello->job_bytes);
		lane->peer = NULL;
		lane->job_bytes = NULL;
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for %u trainers", lane->opts.idx,
			       hello->trainer_count);
	}
	lane->first = *hello;
	lane->have_first = true;
	lane->peer_count = hello->trainer_count;
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		lane->peer[i].lane = lane;
		lane->peer[i].trainer = i;
		lane->peer[i].step_next = 1;
	}
	lane->state = WF_LANE_RUNNING;
	lane->start_ns = wf_now_ns(lane->env);
	lane->start_deadline_ns = lane->start_ns + lane->opts.connect_timeout_ns;
	wf_report_job_begins(lane);
	return WEFT_OK;
}

static bool
is_loading(const struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		if (lane->peer[i].loading) {
			return true;
		}
	}
	return false;
}

static void
warn_numerics(struct wf_lane *lane, const struct wf_hello *hello)
{
	if (lane->numerics_said || hello->numerics_digest == lane->first.numerics_digest) {
		return;
	}
	lane->numerics_said = true;
	wf_log(lane->env, WF_LOG_WARN,
	       "lane %u: trainer %u computes with another binary, BLAS or thread setting than "
	       "trainer "
	       "%u: equal bits are not promised",
	       lane->opts.idx, hello->trainer_id, lane->first.trainer_id);
}

/* Say yes. The path begins when the job is there. */
static void
welcome(struct wf_lane *lane, struct wf_peer *peer, struct wf_conn *conn,
	const struct wf_hello *hello)
{
	bool returns = peer->state != WF_PEER_ABSENT;
	bool gone = peer->state == WF_PEER_GONE;
	bool send_job = !lane->ready;
	struct wf_welcome yes = {
		.version = WF_WIRE_VERSION,
		.flags = send_job ? WF_WELCOME_SEND_JOB : 0,
		.incarnation = lane->opts.incarnation,
		.epoch = 0,
		.slot_count = lane->opts.slot_count,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = lane->opts.slot_bytes_max,
	};
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = wf_welcome_encode(&yes, bytes);
	if (wf_transport_answer(conn, true, bytes, used) != WEFT_OK) {
		conn->user = NULL; /* its DOWN is nobody's business */
		return;
	}
	conn->user = peer;
	peer->conn = conn;
	peer->hello = *hello;
	peer->state = gone ? WF_PEER_GONE : WF_PEER_UP;
	peer->closing = false;
	peer->loading = send_job;
	peer->loading_deadline_ns = wf_now_ns(lane->env) + LOADING_TIMEOUT_NS;
	/* It was a successor when the job failed. */
	peer->abort_due = lane->state == WF_LANE_FAILED;
	wf_peer_due(peer);
	peer->left_in_order = false;
	if (send_job) {
		lane->job_received = 0;
	}
	warn_numerics(lane, hello);
	wf_stats_add(&lane->stats, WF_LANE_PEER_RECONNECTED_COUNT, returns ? 1 : 0);
	char who[WF_REASON_BYTES];
	wf_peer_describe(peer, who, sizeof(who));
	struct wf_path_info path;
	wf_transport_path(conn, &path);
	wf_log(lane->env, WF_LOG_INFO, "lane %u: %s %s over %s: %s", lane->opts.idx, who,
	       returns ? "is back" : "is here", path.name, path.why);
	if (lane->ready) {
		wf_answer_path_begins(lane, peer);
	}
}

/* A hello that passed all checks. */
static void
let_in(struct wf_lane *lane, struct wf_conn *conn, const struct wf_hello *hello)
{
	struct wf_peer *peer = &lane->peer[hello->trainer_id];
	conn->user = NULL;
	if (peer->conn != NULL) { /* the old path goes DOWN before the new one is UP */
		if (peer->successor != NULL) {
			wf_transport_disconnect(peer->successor, WF_DISCONNECT_NOW);
		}
		peer->successor = conn;
		peer->successor_hello = *hello;
		peer->closing = true;
		wf_transport_disconnect(peer->conn, WF_DISCONNECT_NOW);
		return;
	}
	welcome(lane, peer, conn, hello);
}

static void
hold(struct wf_lane *lane, struct wf_conn *conn, const struct wf_hello *hello)
{
	if (lane->held_count == WF_HELD_MAX) {
		(void)wf_fail(WEFT_UNAVAILABLE, "the job is still being read; try again");
		refuse(lane, conn, false);
		return;
	}
	conn->user = NULL;
	lane->held[lane->held_count++] = (struct wf_held){.conn = conn, .hello = *hello};
}

static void
consider(struct wf_lane *lane, struct wf_conn *conn, const struct wf_hello *hello)
{
	/* Asked first: it records why not, and the refusal is what check_hello records. */
	bool over = lane->state == WF_LANE_FAILED && is_of_this_job(lane, hello);
	enum weft_status st = check_hello(lane, hello);
	if (st == WEFT_OK && !lane->have_first) {
		st = open_job(lane, hello);
	}
	if (st != WEFT_OK) {
		refuse(lane, conn, over && st == lane->cause.status);
		return;
	}
	bool loader = lane->peer[hello->trainer_id].loading;
	if (!lane->ready && is_loading(lane) && !loader) {
		hold(lane, conn, hello);
		return;
	}
	let_in(lane, conn, hello);
}

void
wf_admit_up(struct wf_lane *lane, const struct wf_event *event)
{
	WF_ASSERT(event->up.incoming);
	struct wf_hello hello;
	if (wf_hello_decode(event->up.blob, event->up.blob_bytes, &hello) != WEFT_OK) {
		refuse(lane, event->conn, false);
		return;
	}
	consider(lane, event->conn, &hello);
}

/* The job is there, or who was sending it is gone: look again at those who wait. */
static void
reconsider_held(struct wf_lane *lane)
{
	uint32_t count = lane->held_count;
	for (uint32_t i = 0; i < count; i++) {
		struct wf_held next = lane->held[0];
		lane->held_count--;
		memmove(&lane->held[0], &lane->held[1], lane->held_count * sizeof(lane->held[0]));
		consider(lane, next.conn, &next.hello);
	}
}

static void
forget_held(struct wf_lane *lane, const struct wf_conn *conn)
{
	for (uint32_t i = 0; i < lane->held_count; i++) {
		if (lane->held[i].conn == conn) {
			lane->held[i] = lane->held[--lane->held_count];
			return;
		}
	}
}

static struct wf_peer *
find_successor(struct wf_lane *lane, const struct wf_conn *conn)
{
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		if (lane->peer[i].successor == conn) {
			return &lane->peer[i];
		}
	}
	return NULL;
}

/* The path is gone: forget what belonged to it. What was received stays. */
static void
forget_path(struct wf_lane *lane, struct wf_peer *peer)
{
	peer->conn = NULL;
	peer->loading = false;
	peer->resume_next = UINT32_MAX;
	peer->slots_due = false;
	peer->init_due = false;
	peer->slots_granted = false;
	peer->have_values = false;
	memset(peer->have_state, 0, sizeof(peer->have_state));
	peer->goodbye_due = false;
	peer->abort_due = false;
	peer->reduced_due = false;
	peer->credit_count = 0;
	peer->pull_count = 0;
	peer->nack_due = false;
	wf_answer_forget(peer);
	if (lane->ready) {
		wf_round_park_window(lane, peer);
	}
}

static void
note_loss(struct wf_lane *lane, struct wf_peer *peer, const struct wf_event *event)
{
	if (peer->state == WF_PEER_GONE) {
		return; /* it comes back if it has not heard that its GOODBYE was heard */
	}
	peer->state = WF_PEER_LOST;
	peer->lost_deadline_ns = wf_now_ns(lane->env) + lane->opts.reconnect_timeout_ns;
	if (!peer->closing) { /* else the offence has been noted */
		(void)snprintf(peer->lost_why, sizeof(peer->lost_why), "%.*s", WF_WHY_BYTES - 1,
			       event->down.why);
	}
	if (lane->state == WF_LANE_RUNNING && peer->successor == NULL) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: trainer %u is lost: %s; it has %.1f s to come back",
		       lane->opts.idx, peer->trainer, peer->lost_why,
		       (double)lane->opts.reconnect_timeout_ns / 1e9);
	}
}

void
wf_admit_down(struct wf_lane *lane, const struct wf_event *event)
{
	forget_held(lane, event->conn);
	struct wf_peer *heir = find_successor(lane, event->conn);
	if (heir != NULL) {
		heir->successor = NULL;
		return;
	}
	struct wf_peer *peer = wf_admit_peer_of(lane, event->conn);
	if (peer == NULL) {
		return;
	}
	bool was_loading = peer->loading;
	forget_path(lane, peer);
	note_loss(lane, peer, event);
	if (peer->successor != NULL) {
		struct wf_conn *next = peer->successor;
		struct wf_hello hello = peer->successor_hello;
		peer->successor = NULL;
		welcome(lane, peer, next, &hello);
	} else if (was_loading) {
		reconsider_held(lane);
	}
}
static enum weft_status
take_peer_memory(struct wf_lane *lane, struct wf_peer *peer)
{
	uint32_t slots = lane->opts.slot_count;
	peer->credit = wf_zalloc_array(lane->env, slots, sizeof(*peer->credit));
	peer->buffer = wf_zalloc_array(lane->env, slots, sizeof(*peer->buffer));
	peer->answer =
		wf_zalloc_array(lane->env, lane->store.stored_count + 1u, sizeof(*peer->answer));
	if (peer->credit == NULL || peer->buffer == NULL || peer->answer == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for trainer %u", lane->opts.idx,
			       peer->trainer);
	}
	for (uint32_t i = 0; i < slots; i++) {
		peer->buffer[i] = WF_BUFFER_FREE;
	}
	return WEFT_OK;
}

static enum weft_status
take_inbox(struct wf_lane *lane)
{
	uint64_t bytes = (uint64_t)lane->peer_count * lane->opts.slot_count * lane->slot_bytes;
	enum weft_status st =
		lane->env->ops->slab_open(lane->env, bytes, lane->opts.numa_node, &lane->inbox);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_region inbox = {lane->inbox.base, lane->inbox.bytes, lane->inbox.memfd};
	st = wf_transport_region_add(lane->transport, &inbox, &lane->inbox_region);
	if (st != WEFT_OK) {
		return st;
	}
	lane->inbox_added = true;
	const struct wf_slab *slab = &lane->store.slab;
	const struct wf_region store = {slab->base, slab->bytes, slab->memfd};
	st = wf_transport_region_add(lane->transport, &store, &lane->store_region);
	lane->store_added = st == WEFT_OK;
	return st;
}

/* Windows and tables grow with the number of trainers: bounded like the shard itself. */
static enum weft_status
check_memory(const struct wf_lane *lane)
{
	const struct wf_store *store = &lane->store;
	uint64_t most = lane->opts.max_shard_bytes;
	uint64_t windows = (uint64_t)lane->peer_count * lane->opts.slot_count * lane->slot_bytes;
	uint64_t tables = (uint64_t)lane->peer_count * store->stored_count * sizeof(struct wf_push);
	if (windows > most || tables > most - windows) {
		return wf_fail(WEFT_NOMEM,
			       "lane %u: windows of %u trainers x %u slots x %" PRIu64
			       " bytes and tables of %" PRIu64
			       " bytes, --max_shard_bytes allows %" PRIu64
			       "; raise it, or change --slice_bytes or --slot_count",
			       lane->opts.idx, lane->peer_count, lane->opts.slot_count,
			       lane->slot_bytes, tables, most);
	}
	return WEFT_OK;
}

static enum weft_status
take_memory(struct wf_lane *lane)
{
	const struct wf_store *store = &lane->store;
	lane->slot_bytes = store->park_bytes; /* the longest slice */
	enum weft_status checked = check_memory(lane);
	if (checked != WEFT_OK) {
		return checked;
	}
	uint64_t pushes = (uint64_t)store->stored_count * lane->peer_count;
	lane->push = wf_zalloc_array(lane->env, pushes + 1, sizeof(*lane->push));
	lane->round = wf_zalloc_array(lane->env, store->stored_count + 1u, sizeof(*lane->round));
	lane->gradient = wf_zalloc_array(lane->env, lane->peer_count, sizeof(*lane->gradient));
	if (lane->push == NULL || lane->round == NULL || lane->gradient == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for %u slices of %u trainers",
			       lane->opts.idx, store->stored_count, lane->peer_count);
	}
	for (uint64_t i = 0; i < pushes; i++) {
		bool by_zero =
			i % lane->peer_count == 0; /* initial values come from trainer 0 only */
		lane->push[i].next = by_zero ? 0 : 1;
		lane->push[i].buffer = WF_BUFFER_FREE;
		lane->push[i].chunk = WF_PARK_NONE;
	}
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		enum weft_status st = take_peer_memory(lane, &lane->peer[i]);
		if (st != WEFT_OK) {
			return st;
		}
	}
	lane->uninitialised = store->stored_count;
	lane->init = (struct wf_msg_init){.sections = 1};
	lane->sum = (struct wf_step_sum){.step = 1};
	return store->stored_count == 0 ? WEFT_OK : take_inbox(lane);
}

/* Slices of the lane that has most. */
static uint32_t
longest_lane(const struct wf_placement *placement)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < placement->lane_count; i++) {
		uint32_t count = placement->lane_first[i + 1] - placement->lane_first[i];
		most = count > most ? count : most;
	}
	return most;
}

/* The whole description is here: check it against the hello, then take the memory it needs. */
static enum weft_status
accept_job(struct wf_lane *lane)
{
	const struct wf_hello *first = &lane->first;
	enum weft_status st =
		wf_job_decode(lane->env, lane->job_bytes, first->job_bytes, &lane->job);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_job *job = &lane->job;
	if (wf_job_digest(job) != first->job_digest ||
	    wf_job_tensors_digest(job) != first->tensors_digest ||
	    job->trainer_count != first->trainer_count || job->lane_count != first->lane_count ||
	    job->pserver_count != first->pserver_count) {
		return wf_fail(WEFT_MISMATCH, "job description and hello of trainer %u differ",
			       first->trainer_id);
	}
	if (job->slice_bytes > lane->opts.slot_bytes_max) {
		return wf_fail(WEFT_INVALID,
			       "slice_bytes %" PRIu64 " is above this pserver's limit %" PRIu64,
			       job->slice_bytes, lane->opts.slot_bytes_max);
	}
	st = wf_placement_init(lane->env, job, &lane->placement);
	if (st != WEFT_OK) {
		return st;
	}
	if ((uint64_t)longest_lane(&lane->placement) * lane->opts.slot_count > WF_SLOT_MAX) {
		return wf_fail(
			WEFT_INVALID,
			"%u slices on a lane and %u slots a trainer do not fit a tag of 24 bits; "
			"raise --slice_bytes or lower --slot_count",
			longest_lane(&lane->placement), lane->opts.slot_count);
	}
	if (wf_placement_digest(&lane->placement) != first->placement_digest) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u places slices otherwise than this pserver",
			       first->trainer_id);
	}
	uint32_t lane_number = first->pserver_idx * lane->opts.lane_count + lane->opts.idx;
	st = wf_store_init(lane->env, job, &lane->placement, lane_number,
			   lane->opts.max_shard_bytes, lane->opts.numa_node, &lane->store);
	return st != WEFT_OK ? st : take_memory(lane);
}

static void
describe_job(struct wf_lane *lane)
{
	const struct wf_store *store = &lane->store;
	uint64_t shard_bytes = store->elements * sizeof(float) * (1 + store->state_count);
	wf_stats_set(&lane->stats, WF_LANE_SHARD_ALLOCATED_BYTES, shard_bytes);
	if (store->stored_count == 0) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: no slice for this lane: %u slices, %u lanes; fewer ports_num or a "
		       "smaller "
		       "slice_bytes would use it",
		       lane->opts.idx, lane->placement.slice_count, lane->placement.lane_count);
		return;
	}
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: job of %u trainers, %u tensors: %u of %u slices here, %" PRIu64
	       " bytes of parameters and state, optimizer %s, kernels %s",
	       lane->opts.idx, lane->peer_count, lane->job.tensor_count, store->stored_count,
	       lane->placement.slice_count, shard_bytes, wf_optimizer_name(store->optimizer.kind),
	       store->kernels->name);
}

enum weft_status
wf_admit_job(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_job *msg)
{
	if (!peer->loading || msg->total_bytes != lane->first.job_bytes ||
	    msg->offset != lane->job_received) {
		return wf_fail(WEFT_PROTOCOL,
			       "JOB: bytes %" PRIu64 " of %" PRIu64 " were not asked for",
			       msg->offset, msg->total_bytes);
	}
	memcpy(lane->job_bytes + msg->offset, msg->bytes, msg->byte_count);
	lane->job_received += msg->byte_count;
	if (lane->job_received < lane->first.job_bytes) {
		return WEFT_OK;
	}
	peer->loading = false;
	enum weft_status st = accept_job(lane);
	if (st != WEFT_OK) {
		wf_lane_fail(lane, st, 0, "%.200s", weft_last_error());
		return WEFT_OK; /* told by ABORT */
	}
	lane->ready = true;
	describe_job(lane);
	wf_answer_path_begins(lane, peer);
	reconsider_held(lane);
	return WEFT_OK;
}

static void
release_peers(struct wf_lane *lane)
{
	for (uint32_t i = 0; i < lane->peer_count; i++) {
		struct wf_peer *peer = &lane->peer[i];
		wf_free(lane->env, peer->credit, lane->opts.slot_count * sizeof(*peer->credit));
		wf_free(lane->env, peer->buffer, lane->opts.slot_count * sizeof(*peer->buffer));
		wf_free(lane->env, peer->answer,
			(lane->store.stored_count + 1u) * sizeof(*peer->answer));
	}
	wf_free(lane->env, lane->peer, lane->peer_count * sizeof(*lane->peer));
	lane->peer = NULL;
	lane->due = NULL;
}

void
wf_admit_release_job(struct wf_lane *lane)
{
	uint64_t pushes = (uint64_t)lane->store.stored_count * lane->peer_count;
	if (lane->transport != NULL && lane->inbox_added) {
		wf_transport_region_remove(lane->transport, lane->inbox_region);
	}
	if (lane->transport != NULL && lane->store_added) {
		wf_transport_region_remove(lane->transport, lane->store_region);
	}
	lane->inbox_added = false;
	lane->store_added = false;
	wf_free(lane->env, lane->push, (pushes + 1) * sizeof(*lane->push));
	wf_free(lane->env, lane->round, (lane->store.stored_count + 1u) * sizeof(*lane->round));
	wf_free(lane->env, lane->gradient, lane->peer_count * sizeof(*lane->gradient));
	lane->push = NULL;
	lane->round = NULL;
	lane->gradient = NULL;
	release_peers(lane);
	if (lane->inbox.base != NULL) {
		lane->env->ops->slab_close(lane->env, &lane->inbox);
	}
	lane->inbox = (struct wf_slab){0};
	wf_free(lane->env, lane->job_bytes, lane->first.job_bytes);
	lane->job_bytes = NULL;
	wf_store_fini(&lane->store);
	wf_placement_fini(lane->env, &lane->placement);
	wf_job_fini(lane->env, &lane->job);
	lane->job = (struct wf_job){0};
	lane->placement = (struct wf_placement){0};
	lane->first = (struct wf_hello){0};
	lane->have_first = false;
	lane->ready = false;
	lane->numerics_said = false;
	lane->peer_count = 0;
	lane->gone_count = 0;
	lane->tick_ns = 0;
	lane->held_count = 0;
	lane->reduction = (struct wf_reduction){0};
	lane->sum = (struct wf_step_sum){0};
	lane->waiting_log_ns = 0;
}

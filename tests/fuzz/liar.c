/* SPDX-License-Identifier: Apache-2.0 */
/* liar: see liar.h. Thread: the world's. */
#include "tests/fuzz/liar.h"

#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "tests/double/sim/sim.h"
#include "transport/ops.h"
#include "transport/transport.h"
#include "wire/little.h"

#define SAID_MAX 32u

/* The linker calls these in place of those of the transport, which are __real_ here. */
enum weft_status __wrap_wf_sim_conn_take(struct wf_sim_conn *conn, const struct wf_op *op);
enum weft_status __real_wf_sim_conn_take(struct wf_sim_conn *conn, const struct wf_op *op);
enum weft_status __wrap_wf_transport_connect(struct wf_transport *transport,
					     const struct wf_host *to, const void *hello,
					     size_t hello_bytes, void *user, struct wf_conn **out);
enum weft_status __real_wf_transport_connect(struct wf_transport *transport,
					     const struct wf_host *to, const void *hello,
					     size_t hello_bytes, void *user, struct wf_conn **out);
enum weft_status __wrap_wf_transport_answer(struct wf_conn *conn, bool accept, const void *verdict,
					    size_t verdict_bytes);
enum weft_status __real_wf_transport_answer(struct wf_conn *conn, bool accept, const void *verdict,
					    size_t verdict_bytes);

struct lie {
	uint16_t at;
	uint8_t what, how, where;
	uint64_t value;
};

/* An operation with what it points to, but for the payload of a PUT. */
struct said {
	struct wf_sim_conn *conn; /* NULL: nothing */
	struct wf_op op;
	struct wf_op truth; /* PUT */
	struct wf_head head;
	uint8_t body[WF_MSG_BODY_MAX];
	unsigned times;
	bool later, old, leave;
};

static struct {
	const struct wf_env *env; /* who lies; NULL: nobody */
	struct lie lie[LIAR_LIES_MAX];
	unsigned lie_count;
	uint64_t op_count, hello_count;
	struct said said[SAID_MAX]; /* ring */
	unsigned said_next;
	struct said held; /* LIAR_LATER */
	struct said now;
	uint8_t hello[WF_BLOB_ROOM]; /* as the wrapper passes it on, too */
} liar;

void
liar_begin(const uint8_t *lies, size_t bytes)
{
	liar.env = NULL;
	liar.lie_count = 0;
	liar.op_count = 0;
	liar.hello_count = 0;
	liar.said_next = 0;
	liar.held.conn = NULL;
	for (unsigned i = 0; i < SAID_MAX; i++) {
		liar.said[i].conn = NULL;
	}
	for (; bytes >= LIAR_LIE_BYTES && liar.lie_count < LIAR_LIES_MAX; bytes -= LIAR_LIE_BYTES) {
		liar.lie[liar.lie_count++] = (struct lie){
			.at = wf_load_u16(lies),
			.what = (lies[2] & 63) % LIAR_WHAT_COUNT,
			.how = lies[2] >> 6,
			.where = lies[3],
			.value = wf_load_u64(lies + 4),
		};
		lies += LIAR_LIE_BYTES;
	}
}

void
liar_is(const struct wf_env *env)
{
	liar.env = env;
}

uint64_t
liar_operations(void)
{
	return liar.op_count;
}

static bool
is_about(const struct lie *lie, uint64_t number)
{
	return lie->at == LIAR_ALL || lie->at == number;
}

static uint64_t
changed(const struct lie *lie, uint64_t was)
{
	return lie->how == 1 ? was + lie->value : lie->how == 2 ? was ^ lie->value : lie->value;
}

static void
change_bytes(const struct lie *lie, uint8_t *bytes, size_t count, size_t width, size_t at)
{
	uint8_t raw[8] = {0};
	if (at >= count || count - at < width) {
		return;
	}
	memcpy(raw, bytes + at, width);
	wf_store_u64(raw, changed(lie, wf_load_u64(raw)));
	memcpy(bytes + at, raw, width);
}

static void
change_message(const struct lie *lie, struct said *said)
{
	struct wf_head *head = &said->head;
	size_t *count = &said->op.body_bytes;
	switch (lie->what) {
	case LIAR_SERVICE:
		head->service = (uint8_t)changed(lie, head->service);
		break;
	case LIAR_TYPE:
		head->type = (uint8_t)changed(lie, head->type);
		break;
	case LIAR_REQUEST:
		head->request_id = changed(lie, head->request_id);
		break;
	case LIAR_STEP:
		head->step = changed(lie, head->step);
		break;
	case LIAR_SLICE:
		head->slice = (uint32_t)changed(lie, head->slice);
		break;
	case LIAR_REGION:
		head->region = (uint32_t)changed(lie, head->region);
		break;
	case LIAR_OFFSET:
		head->offset = changed(lie, head->offset);
		break;
	case LIAR_EPOCH:
		head->epoch = changed(lie, head->epoch);
		break;
	case LIAR_BODY_8:
	case LIAR_BODY_16:
	case LIAR_BODY_32:
	case LIAR_BODY_64:
		change_bytes(lie, said->body, *count, (size_t)1 << (lie->what - LIAR_BODY_8),
			     lie->where);
		break;
	case LIAR_BODY_BYTES:
		*count = changed(lie, *count) % (WF_MSG_BODY_MAX + 1);
		break;
	default:
		break;
	}
}

/* The payload is changed where it lies: it is the liar's. */
static void
change_put(const struct lie *lie, struct said *said)
{
	struct wf_op *op = &said->op;
	switch (lie->what) {
	case LIAR_PUT_OFFSET:
		op->offset = changed(lie, op->offset);
		break;
	case LIAR_PUT_BYTES:
		op->bytes = changed(lie, op->bytes);
		break;
	case LIAR_PUT_TAG:
		op->tag = (uint32_t)changed(lie, op->tag);
		break;
	case LIAR_PUT_KEY:
		change_bytes(lie, op->key.bytes, sizeof(op->key.bytes), 1, lie->where);
		break;
	case LIAR_PUT_DATA:
		change_bytes(lie, (uint8_t *)(uintptr_t)op->src, said->truth.bytes, 8,
			     4 * (size_t)lie->where);
		break;
	default:
		break;
	}
}

/* A PUT is not left out nor held back: the liar itself waits for the end of each. */
static void
change_order(const struct lie *lie, struct said *said)
{
	bool sends = said->op.kind == WF_OP_SEND;
	said->times = lie->what == LIAR_DROP && sends ? 0 : said->times;
	said->times = lie->what == LIAR_TWICE ? 2 : said->times;
	said->later = said->later || (lie->what == LIAR_LATER && sends);
	said->old = said->old || lie->what == LIAR_OLD;
	said->leave = said->leave || lie->what == LIAR_LEAVE;
}

static void
keep(struct said *said, struct wf_sim_conn *conn, const struct wf_op *op)
{
	said->conn = conn;
	said->op = *op;
	said->op.copied = NULL; /* the flag is gone when it is said later: DONE follows */
	said->truth = said->op;
	said->times = 1;
	said->later = said->old = said->leave = false;
	if (op->kind == WF_OP_SEND) {
		said->head = *op->head;
		if (op->body_bytes > 0) {
			memcpy(said->body, op->body, op->body_bytes);
		}
	}
}

/* With the checks of a post: a lie may have taken the connection down. */
static enum weft_status
post_one(struct wf_sim_conn *conn, const struct wf_op *op)
{
	if (conn->state != WF_SIM_UP) {
		return WEFT_CLOSED;
	}
	return wf_op_is_valid(op) ? __real_wf_sim_conn_take(conn, op) : WEFT_INVALID;
}

/* The liar hears of the end of one operation, if that: of the others it knows nothing. It waits for
 * the end of each PUT, so where no transport carries what it became it is made as it was. */
static enum weft_status
say(struct said *said, bool hears)
{
	struct wf_op op = said->op;
	op.cookie = hears ? op.cookie : 0;
	if (op.kind == WF_OP_SEND) {
		op.head = &said->head;
		op.body = said->body;
	}
	enum weft_status st = post_one(said->conn, &op);
	if (st == WEFT_INVALID && hears && op.kind == WF_OP_PUT) {
		st = post_one(said->conn, &said->truth);
	}
	return st == WEFT_INVALID ? WEFT_OK : st;
}

static void
say_held(struct wf_sim_conn *conn)
{
	if (liar.held.conn == conn) {
		(void)say(&liar.held, false);
		liar.held.conn = NULL;
	}
}

/* One of those before. */
static void
say_old(struct wf_sim_conn *conn, uint64_t which)
{
	struct said *said = &liar.said[which % SAID_MAX];
	if (said->conn == conn) {
		(void)say(said, false);
	}
}

static enum weft_status
lie_about(struct wf_sim_conn *conn, const struct wf_op *op)
{
	struct said *now = &liar.now;
	uint64_t which = 0;
	keep(now, conn, op);
	for (unsigned i = 0; i < liar.lie_count; i++) {
		const struct lie *lie = &liar.lie[i];
		if (!is_about(lie, liar.op_count)) {
			continue;
		}
		if (op->kind == WF_OP_SEND) {
			change_message(lie, now);
		} else {
			change_put(lie, now);
		}
		change_order(lie, now);
		which = lie->value;
	}
	if (now->later && liar.held.conn == NULL) {
		liar.held = *now;
		liar.op_count++;
		return WEFT_OK;
	}
	enum weft_status st = now->times > 0 ? say(now, true) : WEFT_OK;
	if (st != WEFT_OK) {
		return st;
	}
	liar.op_count++;
	if (now->times > 1) {
		(void)say(now, false);
	}
	say_held(conn);
	if (now->old) {
		say_old(conn, which);
	}
	liar.said[liar.said_next++ % SAID_MAX] = *now;
	if (now->leave) {
		wf_transport_disconnect(&conn->base, WF_DISCONNECT_NOW);
	}
	return WEFT_OK;
}

enum weft_status
__wrap_wf_sim_conn_take(struct wf_sim_conn *conn, const struct wf_op *op)
{
	const bool lies = liar.env != NULL && conn->base.transport->env == liar.env;
	return lies ? lie_about(conn, op) : __real_wf_sim_conn_take(conn, op);
}

static const void *
lie_in_hello(const void *hello, size_t *bytes)
{
	if (hello != NULL) {
		memcpy(liar.hello, hello, *bytes);
	}
	for (unsigned i = 0; i < liar.lie_count; i++) {
		const struct lie *lie = &liar.lie[i];
		size_t at = lie->where + (size_t)(lie->value >> 8 & 0xff);
		if (!is_about(lie, liar.hello_count)) {
			continue;
		}
		if (lie->what == LIAR_HELLO && at < *bytes) {
			liar.hello[at] = (uint8_t)changed(lie, liar.hello[at]);
		} else if (lie->what == LIAR_HELLO_BYTES) {
			*bytes = changed(lie, *bytes) % (WF_BLOB_MAX + 1);
		}
	}
	liar.hello_count++;
	return liar.hello;
}

enum weft_status
__wrap_wf_transport_connect(struct wf_transport *transport, const struct wf_host *to,
			    const void *hello, size_t hello_bytes, void *user, struct wf_conn **out)
{
	if (liar.env != NULL && transport->env == liar.env) {
		hello = lie_in_hello(hello, &hello_bytes);
	}
	return __real_wf_transport_connect(transport, to, hello, hello_bytes, user, out);
}

enum weft_status
__wrap_wf_transport_answer(struct wf_conn *conn, bool accept, const void *verdict,
			   size_t verdict_bytes)
{
	if (liar.env != NULL && conn->transport->env == liar.env) {
		verdict = lie_in_hello(verdict, &verdict_bytes);
	}
	return __real_wf_transport_answer(conn, accept, verdict, verdict_bytes);
}

/* --- the mutator --- */

static uint64_t
draw_value(struct wf_rng *rng)
{
	static const uint64_t edges[] = {
		0,
		1,
		2,
		3,
		4,
		7,
		8,
		16,
		24,
		31,
		32,
		60,
		63,
		64,
		65,
		127,
		128,
		192,
		255,
		256,
		4032,
		4033,
		65535,
		65536,
		INT32_MAX,
		1u << 31,
		UINT32_MAX,
		1ull << 32,
		INT64_MAX,
		1ull << 63,
		UINT64_MAX,
		UINT64_MAX - 3,
		UINT64_MAX - 63,
		1ull << 20,
		1ull << 26,
		1ull << 58,
	};
	if (wf_rng_below(rng, 4) > 0) {
		return edges[wf_rng_below(rng, sizeof(edges) / sizeof(edges[0]))];
	}
	return wf_rng_u64(rng) >> wf_rng_below(rng, 64);
}

/* Most of what is said is said early. */
static void
draw_lie(struct wf_rng *rng, uint8_t *lie)
{
	uint64_t at = wf_rng_below(rng, 2 + wf_rng_below(rng, 200));
	wf_store_u16(lie, (uint16_t)(wf_rng_below(rng, 40) == 0 ? LIAR_ALL : at));
	lie[2] = (uint8_t)(wf_rng_below(rng, LIAR_WHAT_COUNT) | wf_rng_below(rng, 3) << 6);
	lie[3] = (uint8_t)(wf_rng_below(rng, 1 + wf_rng_below(rng, 256)));
	wf_store_u64(lie + 4, draw_value(rng));
}

static void
redraw_part(struct wf_rng *rng, uint8_t *lie)
{
	uint8_t other[LIAR_LIE_BYTES];
	draw_lie(rng, other);
	switch (wf_rng_below(rng, 5)) {
	case 0:
		memcpy(lie, other, 2);
		break;
	case 1:
		wf_store_u16(lie, (uint16_t)(wf_load_u16(lie) + 1 - 2 * wf_rng_below(rng, 2)));
		break;
	case 2:
		lie[2] = other[2];
		break;
	case 3:
		lie[3] = (uint8_t)(lie[3] + 1 + wf_rng_below(rng, 8));
		break;
	default:
		memcpy(lie + 4, other + 4, 8);
		break;
	}
}

size_t
liar_mutate(uint8_t *lies, size_t bytes, size_t bytes_max, unsigned seed)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	size_t count = bytes / LIAR_LIE_BYTES;
	size_t most = bytes_max / LIAR_LIE_BYTES;
	most = most < LIAR_LIES_MAX ? most : LIAR_LIES_MAX;
	uint64_t choice = wf_rng_below(&rng, 8);
	if (count > 0 && choice == 0) {
		size_t at = wf_rng_below(&rng, count);
		memmove(lies + at * LIAR_LIE_BYTES, lies + (at + 1) * LIAR_LIE_BYTES,
			(count - at - 1) * LIAR_LIE_BYTES);
		return (count - 1) * LIAR_LIE_BYTES;
	}
	if (count < most && (count == 0 || choice < 4)) {
		draw_lie(&rng, lies + count * LIAR_LIE_BYTES);
		return (count + 1) * LIAR_LIE_BYTES;
	}
	if (count > 0) {
		redraw_part(&rng, lies + wf_rng_below(&rng, count) * LIAR_LIE_BYTES);
	}
	return count * LIAR_LIE_BYTES;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* life: from CONNECTING to DEAD. Thread: the transport's owner. */
#include "transport/life.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* ---- a medium and its connections ---- */

void
wf_medium_init(struct wf_medium *medium, const struct wf_transport_ops *transport_ops,
	       const struct wf_life_ops *ops, const struct wf_transport_opts *opts)
{
	medium->transport.ops = transport_ops;
	medium->transport.env = opts->env;
	medium->opts = *opts;
	medium->info.name = transport_ops->name;
	medium->info.put_bytes_max = opts->put_bytes_max;
	medium->ops = ops;
	wf_loop_init(&medium->loop, opts->env, NULL);
	medium->loop.owner = opts->loop;
	medium->loop.member.told = &medium->transport.told;
	wf_places_init(&medium->places, opts->conn_max, opts->newcomer_max);
}

void
wf_medium_end_all(struct wf_medium *medium)
{
	for (struct wf_life *life = medium->first; life != NULL; life = life->next) {
		wf_life_disconnect(&life->conn, WF_DISCONNECT_NOW);
	}
	while (medium->first != NULL) {
		wf_life_destroy(medium->first);
	}
}

void
wf_medium_query(struct wf_transport *transport, struct wf_transport_info *out)
{
	*out = wf_medium_of(transport)->info;
}

int
wf_medium_wait_fd(struct wf_transport *transport)
{
	return wf_medium_of(transport)->loop.epoll_fd;
}

void
wf_medium_wake(struct wf_transport *transport)
{
	wf_loop_kick(&wf_medium_of(transport)->loop);
}

void
wf_medium_stranger(struct wf_medium *medium, const char *why)
{
	medium->info.strangers_refused++;
	snprintf(medium->info.last_stranger, sizeof(medium->info.last_stranger), "%s", why);
}

/* The loop's list releases it at the next visit. */
static bool
is_held(struct wf_life *life)
{
	const struct wf_life_ops *ops = life->medium->ops;
	return life->ready.queued || (ops->is_held != NULL && ops->is_held(life));
}

void
wf_medium_reap(struct wf_medium *medium)
{
	struct wf_life *next = NULL;
	medium->dead_waiting = false;
	for (struct wf_life *life = medium->first; life != NULL; life = next) {
		next = life->next;
		if (life->state == WF_LIFE_DEAD && !is_held(life)) {
			wf_life_destroy(life);
		}
	}
}

struct wf_life *
wf_life_create(struct wf_medium *medium, bool incoming)
{
	struct wf_env *env = medium->transport.env;
	if (wf_places_table_is_full(&medium->places)) {
		return NULL;
	}
	struct wf_life *life = wf_zalloc(env, medium->ops->conn_bytes);
	if (life == NULL) {
		return NULL;
	}
	if (incoming) {
		wf_places_come(&medium->places, &life->place, life);
	} else if (!wf_places_claim(&medium->places, &life->place)) {
		wf_free(env, life, medium->ops->conn_bytes);
		return NULL;
	}
	wf_conn_init(&life->conn, &medium->transport);
	life->medium = medium;
	life->incoming = incoming;
	life->deadline_ns = WF_NEVER;
	wf_grants_init(&life->grants, env, &medium->regions, life->peer);
	life->next = medium->first;
	life->prev_next = &medium->first;
	if (medium->first != NULL) {
		medium->first->prev_next = &life->next;
	}
	medium->first = life;
	medium->conn_count++;
	return life;
}

void
wf_life_destroy(struct wf_life *life)
{
	struct wf_medium *medium = life->medium;
	medium->ops->fini(life);
	wf_life_enter(life, WF_LIFE_DEAD);
	*life->prev_next = life->next;
	if (life->next != NULL) {
		life->next->prev_next = life->prev_next;
	}
	medium->conn_count--;
	wf_places_leave(&medium->places, &life->place);
	wf_free(medium->transport.env, life, medium->ops->conn_bytes);
}

struct wf_life *
wf_life_come(struct wf_medium *medium, const char *peer)
{
	const struct wf_transport_opts *opts = &medium->opts;
	while (wf_places_are_crowded(&medium->places)) {
		(void)wf_medium_make_room(medium);
	}
	struct wf_life *life = wf_life_create(medium, true);
	if (life == NULL) {
		char why[WF_WHY_BYTES];
		snprintf(why, sizeof(why), "%.110s: no room for another connection; try again",
			 peer);
		wf_medium_stranger(medium, why);
		return NULL;
	}
	snprintf(life->peer, sizeof(life->peer), "%s", peer);
	wf_life_enter(life, WF_LIFE_SHAKING);
	wf_life_deadline(life, wf_now_ns(opts->env) + opts->handshake_timeout_ns);
	return life;
}

enum weft_status
wf_life_begin(struct wf_medium *medium, const struct wf_host *to, void *user, struct wf_life **out)
{
	const struct wf_transport_opts *opts = &medium->opts;
	if (medium->places.conn_count >= opts->conn_max) {
		return wf_fail(WEFT_NOMEM, "connect to %s: this end has its %u connections",
			       to->name, opts->conn_max);
	}
	struct wf_life *life = wf_life_create(medium, false);
	if (life == NULL) {
		return wf_fail(WEFT_NOMEM, "connect to %s: %zu bytes", to->name,
			       medium->ops->conn_bytes);
	}
	life->visible = true;
	life->conn.user = user;
	life->to = *to;
	wf_host_format(to, life->peer, WF_HOST_BYTES + 8);
	life->attempt_ns = wf_now_ns(opts->env) + opts->connect_timeout_ns;
	wf_life_deadline(life, life->attempt_ns);
	*out = life;
	return WEFT_OK;
}

/* ---- up ---- */

void
wf_life_deadline(struct wf_life *life, uint64_t deadline_ns)
{
	life->deadline_ns = deadline_ns;
	wf_loop_timer_before(&life->medium->loop, deadline_ns);
}

static void
come_up(struct wf_life *life)
{
	struct wf_medium *medium = life->medium;
	life->state = WF_LIFE_UP;
	life->was_up = true;
	life->deadline_ns = WF_NEVER;
	medium->up_count++;
	medium->info.conns_up++;
	if (medium->ops->up != NULL) {
		medium->ops->up(life);
	}
}

void
wf_life_decide(struct wf_life *life, const void *blob, size_t blob_bytes, bool is_no)
{
	WF_ASSERT(life->state < WF_LIFE_DECIDED && (life->visible || life->incoming));
	life->word = (struct wf_life_word){blob, (uint32_t)blob_bytes, is_no};
	life->state = WF_LIFE_DECIDED;
	life->deadline_ns = WF_NEVER; /* a connection whose answer has arrived is not late */
	if (life->incoming) {
		wf_places_keep(&life->medium->places, &life->place);
	}
}

__attribute__((cold, format(printf, 2, 3))) static void turn_away_for_room(struct wf_life *life,
									   const char *format, ...);

/* DECIDED: delivers UP. */
static void
show(struct wf_life *life, struct wf_events *events)
{
	struct wf_medium *medium = life->medium;
	if (life->word.is_no) {
		wf_life_down(life, WEFT_REFUSED, "refused by the peer");
		return;
	}
	if (medium->ops->may_show != NULL && !medium->ops->may_show(life)) {
		return;
	}
	if (wf_events_full(events)) {
		medium->ops->ready(life);
		return;
	}
	if (life->incoming && !wf_places_claim(&medium->places, &life->place)) {
		turn_away_for_room(life, "no room beside %u connections; try again",
				   medium->places.conn_count);
		return;
	}
	struct wf_event *event = wf_events_add(events, &life->conn, WF_EVENT_UP);
	event->up.incoming = life->incoming;
	event->up.blob = life->word.blob;
	event->up.blob_bytes = life->word.blob_bytes;
	if (!life->incoming) {
		come_up(life);
		return;
	}
	life->visible = true;
	life->state = WF_LIFE_WAITING;
	if (medium->ops->shown != NULL) {
		medium->ops->shown(life);
	}
}

/* Enters DRAINING, which ends within WF_LIFE_DRAIN_NS. */
static void
drain(struct wf_life *life)
{
	wf_life_enter(life, WF_LIFE_DRAINING);
	wf_life_deadline(life, wf_now_ns(life->medium->transport.env) + WF_LIFE_DRAIN_NS);
	life->medium->ops->ready(life);
}

static enum weft_status
check_waiting(const struct wf_life *life)
{
	if (life->state == WF_LIFE_WAITING) {
		return WEFT_OK;
	}
	if (life->incoming && life->state >= WF_LIFE_ENDING) {
		return wf_fail(WEFT_CLOSED, "answer to %s: the connection has gone", life->peer);
	}
	return wf_fail(WEFT_INVALID, "answer to %s: it does not wait for one", life->peer);
}

enum weft_status
wf_life_answer(struct wf_conn *conn, bool accept, const void *verdict, size_t verdict_bytes)
{
	struct wf_life *life = wf_life_of(conn);
	enum weft_status st = check_waiting(life);
	if (st != WEFT_OK) {
		return st;
	}
	life->refused = !accept;
	if (!accept) {
		wf_places_refuse(&life->medium->places, &life->place);
	}
	bool sent = life->medium->ops->answer(life, accept, verdict, verdict_bytes);
	if (life->state >= WF_LIFE_DYING) {
		return wf_fail(life->end.status, "%s", life->end.why);
	}
	st = check_waiting(life); /* its end may have arrived together with it */
	if (st != WEFT_OK) {
		return st;
	}
	if (accept) {
		come_up(life);
	} else if (sent) {
		wf_life_lost(life, WEFT_CLOSED, "");
	} else {
		drain(life);
	}
	return WEFT_OK;
}

enum weft_status
wf_life_fail_not_up(const struct wf_life *life, const char *what)
{
	if (life->state >= WF_LIFE_UP) {
		return wf_fail(WEFT_CLOSED, "%s %s: the connection is going down", what,
			       life->peer);
	}
	return wf_fail(WEFT_INVALID, "%s %s: the connection is not up yet", what, life->peer);
}

enum weft_status
wf_life_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	struct wf_life *life = wf_life_of(conn);
	enum weft_status st = wf_life_check_up(life, "grant to");
	return st == WEFT_OK ? wf_grants_add(&life->grants, grant, out) : st;
}

enum weft_status
wf_life_fail_region(const struct wf_life *life, const struct wf_op *op)
{
	return wf_fail(WEFT_INVALID, "put to %s: %llu bytes at %p, not in region %u", life->peer,
		       (unsigned long long)op->bytes, op->src, op->region);
}

enum weft_status
wf_life_fail_room(struct wf_life *life)
{
	enum weft_status st = wf_life_check_up(life, "post to");
	if (st != WEFT_OK) {
		return st;
	}
	life->medium->info.posts_again++;
	return WEFT_AGAIN;
}

/* ---- down ---- */

static void
count_down(struct wf_life *life)
{
	struct wf_transport_info *info = &life->medium->info;
	if (!life->visible) {
		wf_medium_stranger(life->medium, life->end.why);
	} else if (life->end.status == WEFT_PROTOCOL) {
		info->protocol_errors++;
	}
	info->conns_down += life->was_up ? 1 : 0;
}

/* A peer's name may be as long as the line: it is cut, so that more than half is left for the
 * text. */
static void
record_end(struct wf_life_end *end, enum weft_status status, const char *peer, const char *text)
{
	int named = snprintf(end->why, sizeof(end->why), "%.110s: ", peer);
	snprintf(end->why + named, sizeof(end->why) - (size_t)named, "%.*s",
		 (int)sizeof(end->why) - named - 1, text);
	end->status = status;
}

/* Fills in the event DOWN, with the verdict of a peer that refused. */
static void
fill_down(const struct wf_life *life, struct wf_event *event)
{
	static const struct wf_life_word none;
	const struct wf_life_word *word = life->end.status == WEFT_REFUSED ? &life->word : &none;
	event->down.status = life->end.status;
	event->down.why = life->end.why;
	event->down.blob = word->blob;
	event->down.blob_bytes = word->blob_bytes;
}

static void
go_down(struct wf_life *life, enum weft_status status, const char *text)
{
	struct wf_medium *medium = life->medium;
	enum wf_life_state before = life->state;
	record_end(&life->end, status, life->peer, text);
	life->deadline_ns = WF_NEVER;
	wf_life_enter(life, WF_LIFE_DYING); /* before the cut, which may read the state */
	medium->ops->cut(life, before);
	wf_grants_drop(&life->grants);
	count_down(life);
	wf_places_end(&medium->places, &life->place);
	if (life->visible) {
		medium->ops->ready(life);
	} else {
		life->state = WF_LIFE_DEAD;
		medium->dead_waiting = true;
	}
}

void
wf_life_down(struct wf_life *life, enum weft_status status, const char *format, ...)
{
	if (life->state >= WF_LIFE_DYING) {
		return;
	}
	char text[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	go_down(life, status, text);
}

enum weft_status
wf_life_cause(const struct wf_life *life, enum weft_status status, const char *text,
	      char out[WF_WHY_BYTES])
{
	if (life->disconnected || life->refused) {
		snprintf(out, WF_WHY_BYTES, "%s by this end", life->refused ? "refused" : "closed");
		return WEFT_CLOSED;
	}
	bool attempt = !life->incoming && life->state < WF_LIFE_UP;
	snprintf(out, WF_WHY_BYTES, "%s%s", attempt ? "ended before it was answered: " : "", text);
	return attempt && status != WEFT_TIMEOUT ? WEFT_UNAVAILABLE : status;
}

void
wf_life_lost(struct wf_life *life, enum weft_status status, const char *text)
{
	char why[WF_WHY_BYTES];
	enum weft_status cause = wf_life_cause(life, status, text, why);
	wf_life_down(life, cause, "%s", why);
}

/* For want of room. How many connections there are is for this end's log alone: nothing shows yet
 * that the peer is of the job. */
__attribute__((cold, format(printf, 2, 3))) static void
turn_away_for_room(struct wf_life *life, const char *format, ...)
{
	char text[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	life->medium->ops->deny(life, "no room; try again");
	wf_life_down(life, life->refused ? WEFT_CLOSED : WEFT_UNAVAILABLE, "%s", text);
}

void
wf_life_turn_away(struct wf_life *life, enum weft_status status, const char *format, ...)
{
	char text[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	life->medium->ops->deny(life, text);
	wf_life_down(life, life->refused ? WEFT_CLOSED : status, "%s", text);
}

bool
wf_medium_make_room(struct wf_medium *medium)
{
	const struct wf_places *places = &medium->places;
	while (places->first != NULL) {
		struct wf_life *life = places->first->owner;
		if (medium->ops->on_handshake != NULL && life->state == WF_LIFE_SHAKING) {
			medium->ops->on_handshake(life);
		}
		if (places->first == &life->place) {
			turn_away_for_room(
				life,
				"no room: %u others are coming in beside %u connections; "
				"try again",
				places->newcomer_count - 1, places->conn_count);
			return true;
		}
	}
	return false;
}

void
wf_life_disconnect(struct wf_conn *conn, enum wf_disconnect how)
{
	struct wf_life *life = wf_life_of(conn);
	if (life->state >= WF_LIFE_DYING) {
		return;
	}
	bool drains = how == WF_DISCONNECT_DRAIN && life->state >= WF_LIFE_UP &&
		      life->state < WF_LIFE_ENDING;
	if (drains && life->state > WF_LIFE_UP) {
		return; /* it is ending already */
	}
	life->disconnected = true;
	if (drains) {
		drain(life);
	} else {
		wf_life_down(life, WEFT_CLOSED, "closed by this end");
	}
}

/* DYING: delivers the remaining events, and then DOWN. */
static void
report_down(struct wf_life *life, struct wf_events *events)
{
	struct wf_medium *medium = life->medium;
	bool over = medium->ops->finish(life, events);
	if (wf_events_full(events)) {
		medium->ops->ready(life);
		return;
	}
	if (!over) {
		return;
	}
	fill_down(life, wf_events_add(events, &life->conn, WF_EVENT_DOWN));
	life->state = WF_LIFE_DEAD;
	life->deadline_ns = WF_NEVER;
	medium->dead_waiting = true;
}

/* ---- turns and time ---- */

void
wf_life_ready(struct wf_life *life)
{
	if (life->state != WF_LIFE_DEAD) { /* otherwise it is about to be freed */
		wf_loop_push(&life->medium->loop, &life->ready);
	}
}

void
wf_life_visit(struct wf_life *life, struct wf_events *events)
{
	const struct wf_life_ops *ops = life->medium->ops;
	enum wf_life_state before;
	do {
		before = life->state;
		if (before == WF_LIFE_DECIDED) {
			show(life, events);
		} else if (before < WF_LIFE_DYING) {
			ops->visit(life, events);
		} else if (before == WF_LIFE_DYING) {
			report_down(life, events);
		} else {
			life->medium->dead_waiting = true; /* it is not visited any more */
		}
	} while (life->state != before && !wf_events_full(events));
	if (life->state != before && life->state != WF_LIFE_DEAD) {
		ops->ready(life);
	}
}

/* Whether something has arrived that was not read yet: such a connection is not late, because this
 * end may not have been running. */
static bool
is_heard(struct wf_life *life)
{
	const struct wf_life_ops *ops = life->medium->ops;
	if (life->state != WF_LIFE_SHAKING || ops->on_handshake == NULL) {
		return false;
	}
	ops->on_handshake(life);
	ops->ready(life);
	return life->state != WF_LIFE_SHAKING;
}

/* An attempt makes several tries; the time of one of them may be over. */
static void
expire(struct wf_life *life)
{
	const struct wf_transport_opts *opts = &life->medium->opts;
	uint64_t attempt_ms = opts->connect_timeout_ns / WF_NS_PER_MS;
	const char *missing = "connected, but not answered";
	if (life->state == WF_LIFE_DRAINING || life->state == WF_LIFE_LINGERING) {
		/* Not everything was sent in time, or the peer did not close. */
		if (life->medium->ops->end != NULL) {
			life->medium->ops->end(life);
		} else {
			wf_life_lost(life, WEFT_LOST, "");
		}
		return;
	}
	if (life->state == WF_LIFE_SHAKING && life->incoming) {
		wf_life_down(life, WEFT_TIMEOUT, "no whole hello within %llu ms, but %u bytes",
			     (unsigned long long)(opts->handshake_timeout_ns / WF_NS_PER_MS),
			     life->heard_bytes);
		return;
	}
	if (life->state != WF_LIFE_SHAKING) {
		missing = life->medium->ops->late(life);
	}
	if (missing != NULL) {
		wf_life_down(life, WEFT_TIMEOUT, "%s within %llu ms", missing,
			     (unsigned long long)attempt_ms);
	}
}

void
wf_medium_expire(struct wf_medium *medium, uint64_t now_ns)
{
	medium->loop.timer_ns = WF_NEVER;
	for (struct wf_life *life = medium->first; life != NULL; life = life->next) {
		bool late = life->state < WF_LIFE_DYING && life->deadline_ns <= now_ns;
		if (late && !is_heard(life)) {
			expire(life);
		}
		/* A connection that is dying or ending checks its deadline itself, once it has
		 * passed. */
		if (life->deadline_ns > now_ns) {
			wf_loop_timer_before(&medium->loop, life->deadline_ns);
		}
	}
}

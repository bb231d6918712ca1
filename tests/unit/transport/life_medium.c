/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/transport/life_medium.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint64_t medium_now_ns;
struct medium_did did;
struct medium_will will;

static uint64_t
env_now_ns(struct wf_env *env)
{
	(void)env;
	return medium_now_ns;
}

static uint64_t
env_random(struct wf_env *env)
{
	(void)env;
	return 1;
}

static void *
env_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	(void)env;
	(void)align;
	return calloc(1, bytes);
}

static void
env_free(struct wf_env *env, void *memory, size_t bytes)
{
	(void)env;
	(void)bytes;
	free(memory);
}

static void
env_log(struct wf_env *env, enum weft_log_level level, const char *text)
{
	(void)env;
	(void)level;
	did.logged++;
	(void)snprintf(did.last_log, sizeof(did.last_log), "%s", text);
}

static const struct wf_env_ops env_ops = {
	.now_ns = env_now_ns,
	.random = env_random,
	.alloc = env_alloc,
	.free = env_free,
	.log = env_log,
};

/* ---- a medium that does what it is told ---- */

struct wf_medium medium;
struct wf_event event[MEDIUM_EVENTS];
struct wf_events events;

static void
ready(struct wf_life *life)
{
	(void)life;
	did.ready++;
}

static void
visit(struct wf_life *life, struct wf_events *at)
{
	(void)at;
	did.visit++;
	if (will.visit_decides && life->state == WF_LIFE_SHAKING) {
		wf_life_decide(life, "hi", 2, false);
	}
}

static const char *
late(struct wf_life *life)
{
	did.late++;
	if (will.next_try_ns != 0) {
		wf_life_deadline(life, will.next_try_ns);
		return NULL;
	}
	return life->state == WF_LIFE_CONNECTING ? will.missing : NULL;
}

static bool
may_show(struct wf_life *life)
{
	(void)life;
	return will.may_show;
}

static void
up(struct wf_life *life)
{
	(void)life;
	did.up++;
}

static bool
answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes)
{
	(void)accept;
	(void)verdict;
	(void)verdict_bytes;
	did.answer++;
	if (will.answer_takes_down) {
		wf_life_down(life, WEFT_NOMEM, "no queue pair");
	}
	if (will.answer_leads != WF_LIFE_CONNECTING) {
		wf_life_enter(life, will.answer_leads);
	}
	return will.answer_is_sent;
}

static void
on_handshake(struct wf_life *life)
{
	if (will.hear_decides) {
		wf_life_decide(life, "hi", 2, false);
	}
}

static void
deny(struct wf_life *life, const char *why)
{
	(void)life;
	did.deny++;
	(void)snprintf(did.denied, sizeof(did.denied), "%s", why);
}

static void
cut(struct wf_life *life, enum wf_life_state before)
{
	assert_int_equal(life->state, WF_LIFE_DYING);
	did.cut++;
	did.cut_from = before;
}

static bool
finish(struct wf_life *life, struct wf_events *at)
{
	(void)life;
	(void)at;
	did.finish++;
	return will.finishes;
}

static bool
is_held(struct wf_life *life)
{
	(void)life;
	return will.is_held;
}

static void
fini(struct wf_life *life)
{
	(void)life;
	did.fini++;
}

const struct wf_life_ops medium_life_ops = {
	.conn_bytes = sizeof(struct wf_life),
	.ready = ready,
	.visit = visit,
	.late = late,
	.may_show = may_show,
	.up = up,
	.answer = answer,
	.on_handshake = on_handshake,
	.deny = deny,
	.cut = cut,
	.finish = finish,
	.is_held = is_held,
	.fini = fini,
};

static const struct wf_transport_ops transport_ops = {.name = "none"};
static struct wf_env env = {.ops = &env_ops};

void
medium_begin(void)
{
	const struct wf_transport_opts opts = {
		.env = &env,
		.conn_max = MEDIUM_CONNS,
		.newcomer_max = MEDIUM_NEWCOMERS,
		.connect_timeout_ns = 500 * MS,
		.handshake_timeout_ns = 300 * MS,
	};
	memset(&did, 0, sizeof(did));
	memset(&will, 0, sizeof(will));
	memset(&medium, 0, sizeof(medium));
	will.may_show = true;
	will.finishes = true;
	will.missing = "not connected";
	medium_now_ns = 1000 * MS;
	events = (struct wf_events){.at = event, .max = 4};
	wf_medium_init(&medium, &transport_ops, &medium_life_ops, &opts);
}

void
medium_end(void)
{
	wf_medium_end_all(&medium);
	assert_null(medium.first);
	assert_int_equal(medium.conn_count, 0);
	assert_int_equal(medium.up_count, 0);
	assert_int_equal(wf_places_count(&medium.places), 0);
}

struct wf_life *
medium_conn(bool incoming)
{
	const struct wf_host to = {.name = "node7", .port = 7164};
	struct wf_life *life = NULL;
	if (incoming) {
		life = wf_life_create(&medium, true);
		assert_non_null(life);
		(void)snprintf(life->peer, sizeof(life->peer), "10.0.0.7:7164");
	} else {
		assert_int_equal(wf_life_begin(&medium, &to, &medium, &life), WEFT_OK);
	}
	return life;
}

void
medium_visit(struct wf_life *life, unsigned max)
{
	events = (struct wf_events){.at = event, .max = max};
	wf_life_visit(life, &events);
}

static void
come_to_up(struct wf_life *life)
{
	wf_life_enter(life, WF_LIFE_SHAKING);
	wf_life_decide(life, "hi", 2, false);
	medium_visit(life, 4);
	if (life->incoming) {
		assert_int_equal(wf_life_answer(&life->conn, true, NULL, 0), WEFT_OK);
	}
	assert_int_equal(life->state, WF_LIFE_UP);
}

/* By the way that leads there. */
struct wf_life *
medium_conn_in(enum wf_life_state state, bool incoming)
{
	struct wf_life *life = medium_conn(incoming);
	if (state >= WF_LIFE_UP) {
		come_to_up(life);
	} else if (state >= WF_LIFE_SHAKING) {
		wf_life_enter(life, WF_LIFE_SHAKING);
	}
	if (state == WF_LIFE_DECIDED || state == WF_LIFE_WAITING) {
		wf_life_decide(life, "hi", 2, false);
	}
	if (state == WF_LIFE_WAITING) {
		medium_visit(life, 4);
	}
	if (state == WF_LIFE_DRAINING || state == WF_LIFE_LINGERING) {
		wf_life_disconnect(&life->conn, WF_DISCONNECT_DRAIN);
	}
	if (state == WF_LIFE_LINGERING || state == WF_LIFE_ENDING) {
		wf_life_enter(life, state);
	}
	if (state >= WF_LIFE_DYING) {
		wf_life_down(life, WEFT_LOST, "gone");
	}
	if (state == WF_LIFE_DEAD) {
		medium_visit(life, 4);
	}
	assert_int_equal(life->state, state);
	return life;
}

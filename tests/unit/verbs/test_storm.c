/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over devices that are late, lose things and break, by seed: what arrives is right and
 * in order, every end is told at both ends, and nothing is left behind. In a simulated world.
 * Usage: test_verbs_storm FIRST COUNT; WEFT_SEED=S runs one seed, WEFT_LONG ten times as many.
 * Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/double/verbs/fake.h"
#include "tests/conformance/conformance.h"
#include "tests/support/sweep.h"

#define LIVES 4u
#define ROUNDS 30u
#define PLACE_BYTES 4096u
#define MESSAGE_BYTES 200u

struct storm {
	struct conf *t;
	struct node *server, *client;
	struct wf_conn *sc, *cc; /* of this life */
	size_t looked;           /* events of the server that were looked at */
	unsigned messages, puts; /* that arrived in this life */
	unsigned life;
	uint64_t removals;
	bool calm; /* late, and nothing breaks */
};

static struct fake_happened all;
static uint64_t ups, arrived;

/* ---- what the server sees ---- */

static bool
take_put(struct storm *s, const struct seen *seen)
{
	CHECK(seen->tag == s->puts); /* in order, none left out */
	s->puts++;
	return conf_is_filled(s->server->memory + (size_t)seen->tag * PLACE_BYTES, PLACE_BYTES,
			      s->life * 1000 + seen->tag);
}

/* Events that came since: at once, while what they say has to be true. */
static bool
look(struct storm *s)
{
	for (; s->looked < s->server->seen_count; s->looked++) {
		const struct seen *seen = &s->server->seen[s->looked];
		if (seen->kind == WF_EVENT_UP) {
			s->sc = seen->conn;
			enum weft_status st = wf_transport_answer(seen->conn, true, "ok", 2);
			CHECK(st == WEFT_OK || weft_last_error()[0] != '\0');
		} else if (seen->kind == WF_EVENT_MSG) {
			CHECK(seen->conn == s->sc);
			CHECK(conf_is_message(seen, s->messages, MESSAGE_BYTES));
			s->messages++;
		} else if (seen->kind == WF_EVENT_PUT) {
			CHECK(seen->conn == s->sc && take_put(s, seen));
		}
	}
	return true;
}

static bool
turn(struct storm *s)
{
	conf_pump(s->t);
	return look(s);
}

static bool
is_down(const struct storm *s)
{
	return conf_count(s->client, s->cc, WF_EVENT_DOWN) > 0;
}

/* Until both ends have heard of the end; whoever came up here has to. */
static bool
see_the_end(struct storm *s)
{
	uint64_t limit_ns = wf_now_ns(s->t->env) + 30 * WF_NS_PER_S;
	while (!is_down(s) || conf_count(s->server, NULL, WF_EVENT_UP) >
				      conf_count(s->server, NULL, WF_EVENT_DOWN)) {
		CHECK(turn(s));
		CHECK(wf_now_ns(s->t->env) < limit_ns);
	}
	return true;
}

/* ---- a life ---- */

/* Listeners go with their device. */
static void
listen_again(struct storm *s)
{
	enum weft_status st = WEFT_AGAIN;
	for (unsigned i = 0; i < 10 && st != WEFT_OK; i++) { /* there may be no memory now */
		s->server->at.port = 0;
		st = wf_transport_listen(s->server->transport, &s->server->at, &s->server->at.port);
	}
}

/* UP at both ends, or DOWN at the client's. */
static bool
connect_client(struct storm *s)
{
	uint64_t limit_ns = wf_now_ns(s->t->env) + 30 * WF_NS_PER_S;
	conf_forget(s->server); /* the next connections may be at the same addresses */
	conf_forget(s->client);
	s->looked = 0;
	s->sc = NULL;
	s->messages = 0;
	s->puts = 0;
	if (fake_happened.removals != s->removals) {
		s->removals = fake_happened.removals;
		listen_again(s);
	}
	CHECK(wf_transport_connect(s->client->transport, &s->server->at, "hi", 2, NULL, &s->cc) ==
	      WEFT_OK);
	while (conf_count(s->client, s->cc, WF_EVENT_UP) == 0 && !is_down(s)) {
		CHECK(turn(s));
		CHECK(wf_now_ns(s->t->env) < limit_ns);
	}
	ups += is_down(s) ? 0 : 1;
	return true;
}

static void
post_round(struct storm *s, const struct wf_grant_key *key, unsigned i)
{
	struct wf_op put = conf_put_op(s->client, key, (uint64_t)i * PLACE_BYTES, PLACE_BYTES, i);
	unsigned taken = 0;
	conf_fill(s->client->memory + (size_t)i * PLACE_BYTES, PLACE_BYTES, s->life * 1000 + i);
	put.offset = (uint64_t)i * PLACE_BYTES;
	put.tag = i;
	enum weft_status st = WEFT_AGAIN;
	while (st == WEFT_AGAIN && look(s) && !is_down(s)) {
		st = wf_transport_post(s->cc, &put, 1, &taken);
		conf_pump(s->t);
	}
	st = WEFT_AGAIN;
	while (st == WEFT_AGAIN && look(s) && !is_down(s)) {
		st = conf_send(s->cc, i, MESSAGE_BYTES);
		conf_pump(s->t);
	}
}

static bool
live(struct storm *s, struct wf_rng *rng)
{
	struct wf_grant_key key;
	if (!is_down(s) && s->sc != NULL && conf_count(s->server, s->sc, WF_EVENT_DOWN) == 0 &&
	    conf_grant_place(s->server, s->sc, 0, ROUNDS * PLACE_BYTES, &key)) {
		memset(s->server->memory, 0, ROUNDS * PLACE_BYTES);
		for (unsigned i = 0; i < ROUNDS && !is_down(s); i++) {
			post_round(s, &key, i);
			CHECK(turn(s));
		}
	}
	bool drains = wf_rng_below(rng, 2) == 0;
	bool was_down = is_down(s); /* then nobody may name it any more */
	if (!was_down) {
		wf_transport_disconnect(s->cc, drains ? WF_DISCONNECT_DRAIN : WF_DISCONNECT_NOW);
	}
	CHECK(see_the_end(s));
	arrived += s->messages + s->puts;
	if (drains && !was_down && s->calm) {
		CHECK(s->messages == ROUNDS && s->puts == ROUNDS);
	}
	return true;
}

static bool
storm_body(struct conf *t)
{
	struct storm s = {.t = t};
	struct fake_knobs knobs;
	struct wf_rng rng;
	struct pair p;
	wf_rng_init(&rng, t->seed, 25);
	s.calm = wf_rng_below(&rng, 4) == 0;
	fake_draw_knobs(t->seed, 4, s.calm ? 0 : 3, &knobs);
	s.server = conf_server(t, NULL);
	s.client = conf_node(t, NULL);
	CHECK(s.server != NULL && s.client != NULL);
	fake_turn_knobs(&knobs);
	for (s.life = 0; s.life < LIVES; s.life++) {
		CHECK(connect_client(&s));
		CHECK(live(&s, &rng));
	}
	struct fake_happened happened = fake_happened;
	for (unsigned i = 0; i < sizeof(all) / sizeof(uint64_t); i++) {
		((uint64_t *)&all)[i] += ((uint64_t *)&happened)[i];
	}
	fake_turn_knobs(NULL);
	if (happened.removals > 0) {
		listen_again(&s);
	}
	uint64_t whole_ns = wf_now_ns(t->env) + 5 * WF_NS_PER_S; /* ports are up again */
	while (wf_now_ns(t->env) < whole_ns) {
		conf_pump(t);
		wf_wait(t->env, -1, wf_now_ns(t->env) + 20 * WF_NS_PER_MS);
	}
	conf_forget(s.server);
	conf_forget(s.client);
	CHECK(conf_join(t, s.server, s.client, &p)); /* it is as good as new */
	for (unsigned i = 0; i < 100; i++) {
		CHECK(conf_send_all(t, p.cc, i, 300));
	}
	return conf_await_count(t, s.server, p.sc, WF_EVENT_MSG, 100);
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0;
	unsigned kinds = 0;
	while (fake_habits[kinds].name != NULL) {
		kinds++;
	}
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		char url[32];
		(void)snprintf(url, sizeof(url), "fake-%s", fake_habits[seed % kinds].name);
		if (!conf_run(url, seed, storm_body)) {
			(void)printf("FAILED seed %" PRIu64 " on %s; repeat: WEFT_SEED=%" PRIu64
				     " test_verbs_storm\n",
				     seed, url, seed);
			failed++;
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed: %" PRIu64 " connections up, %" PRIu64
		     " messages and PUTs, %" PRIu64 " cuts, %" PRIu64 " fatal, %" PRIu64
		     " removed, %" PRIu64 " ports down, %" PRIu64 " queues unreadable, %" PRIu64
		     " calls without memory, %" PRIu64 " datagrams lost, %" PRIu64 " late, %" PRIu64
		     " dry, %" PRIu64 " slow registrations\n",
		     sweep.count, failed, ups, arrived, all.cuts, all.fatals, all.removals,
		     all.ports, all.polls, all.nomem, all.cm_lost, all.late, all.dry, all.slow);
	/* A sweep that injected nothing proves nothing. */
	bool idle = !sweep.is_part && sweep.count >= 100 &&
		    (all.cuts == 0 || all.fatals == 0 || all.removals == 0 || all.ports == 0 ||
		     all.polls == 0 || all.nomem == 0 || all.cm_lost == 0 || all.late == 0 ||
		     all.dry == 0 || all.slow == 0);
	return failed == 0 && !idle ? 0 : 1;
}

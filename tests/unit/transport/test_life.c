/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a connection, without a medium: every state with everything that may happen in it,
 * and what is counted, said and timed on the way. Thread: the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/transport/life_medium.h"

#define STATES (WF_LIFE_DEAD + 1)

enum happening {
	VISIT,
	VISIT_WITHOUT_ROOM,
	DOWN,
	LOST,
	TIME,
	DRAIN,
	NOW,
	YES,
	NO,      /* which has to be sent yet */
	NO_SENT, /* with the call */
	HAPPENINGS
};

static void
happen(struct wf_life *life, enum happening what)
{
	will.answer_is_sent = what == NO_SENT;
	switch (what) {
	case VISIT:
		medium_visit(life, 4);
		break;
	case VISIT_WITHOUT_ROOM:
		medium_visit(life, 0);
		break;
	case DOWN:
		wf_life_down(life, WEFT_PROTOCOL, "nonsense");
		break;
	case LOST:
		wf_life_lost(life, WEFT_LOST, "reset");
		break;
	case TIME:
		life->deadline_ns = medium_now_ns;
		wf_medium_expire(&medium, medium_now_ns);
		break;
	case DRAIN:
		wf_life_disconnect(&life->conn, WF_DISCONNECT_DRAIN);
		break;
	case NOW:
		wf_life_disconnect(&life->conn, WF_DISCONNECT_NOW);
		break;
	case YES:
		(void)!wf_life_answer(&life->conn, true, NULL, 0);
		break;
	case NO:
	case NO_SENT:
		(void)!wf_life_answer(&life->conn, false, NULL, 0);
		break;
	case HAPPENINGS:
		break;
	}
}

/* Where each leads, a letter a state: Connecting, Shaking, deciDed, Waiting, Up, dRaining,
 * Lingering, Ending, dYing, deaX. */
static const char letters[] = "CSDWURLEYX";

struct row {
	const char *states; /* of `letters`, where it begins */
	const char *leads;
};

static void
check_row(bool incoming, enum happening what, const struct row *row)
{
	for (unsigned i = 0; row->states[i] != '\0'; i++) {
		medium_begin();
		enum wf_life_state from =
			(enum wf_life_state)(strchr(letters, row->states[i]) - letters);
		struct wf_life *life = medium_conn_in(from, incoming);
		unsigned downs = did.cut;
		happen(life, what);
		if (letters[life->state] != row->leads[i]) {
			fail_msg("%s, %d: from %c to %c, not %c",
				 incoming ? "incoming" : "connecting", (int)what, row->states[i],
				 letters[life->state], row->leads[i]);
		}
		assert_int_equal(medium.up_count, life->state == WF_LIFE_UP ? 1 : 0);
		bool falls = from < WF_LIFE_DYING && life->state >= WF_LIFE_DYING;
		assert_int_equal(did.cut, downs + (falls ? 1 : 0));
		if (falls) {
			assert_int_equal(did.cut_from, from);
			assert_int_equal(life->deadline_ns, WF_NEVER);
			assert_memory_equal(life->end.why, life->peer, strlen(life->peer));
		}
		medium_end();
		assert_int_equal(did.fini, 1);
	}
}

static void
connecting_end_goes_its_way_from_every_state(void **state)
{
	static const struct row row[HAPPENINGS] = {
		[VISIT] = {"CSDURLEYX", "CSUURLEXX"},
		[VISIT_WITHOUT_ROOM] = {"CSDURLEYX", "CSDURLEYX"},
		[DOWN] = {"CSDURLEYX", "YYYYYYYYX"},
		[LOST] = {"CSDURLEYX", "YYYYYYYYX"},
		[TIME] = {"CSDURLEYX", "YYDUYYEYX"},
		[DRAIN] = {"CSDURLEYX", "YYYRRLYYX"},
		[NOW] = {"CSDURLEYX", "YYYYYYYYX"},
		[YES] = {"CSDURLEYX", "CSDURLEYX"},
		[NO] = {"CSDURLEYX", "CSDURLEYX"},
		[NO_SENT] = {"CSDURLEYX", "CSDURLEYX"},
	};
	(void)state;
	for (unsigned what = 0; what < HAPPENINGS; what++) {
		check_row(false, (enum happening)what, &row[what]);
	}
}

/* Who was never shown has no DOWN to wait for. */
static void
accepting_end_goes_its_way_from_every_state(void **state)
{
	static const struct row row[HAPPENINGS] = {
		[VISIT] = {"SDWURLEYX", "SWWURLEXX"},
		[VISIT_WITHOUT_ROOM] = {"SDWURLEYX", "SDWURLEYX"},
		[DOWN] = {"SDWURLEYX", "XXYYYYYYX"},
		[LOST] = {"SDWURLEYX", "XXYYYYYYX"},
		[TIME] = {"SDWURLEYX", "XDWUYYEYX"},
		[DRAIN] = {"SDWURLEYX", "XXYRRLYYX"},
		[NOW] = {"SDWURLEYX", "XXYYYYYYX"},
		[YES] = {"SDWURLEYX", "SDUURLEYX"},
		[NO] = {"SDWURLEYX", "SDRURLEYX"},
		[NO_SENT] = {"SDWURLEYX", "SDYURLEYX"},
	};
	(void)state;
	for (unsigned what = 0; what < HAPPENINGS; what++) {
		check_row(true, (enum happening)what, &row[what]);
	}
}

static void
an_answer_is_asked_for_once_and_of_who_came_in(void **state)
{
	(void)state;
	for (unsigned from = WF_LIFE_SHAKING; from < STATES; from++) {
		medium_begin();
		bool gone = from >= WF_LIFE_ENDING;
		struct wf_life *life = medium_conn_in((enum wf_life_state)from, true);
		unsigned asked = did.answer;
		enum weft_status st = wf_life_answer(&life->conn, true, NULL, 0);
		assert_int_equal(st, from == WF_LIFE_WAITING ? WEFT_OK
				     : gone                  ? WEFT_CLOSED
							     : WEFT_INVALID);
		assert_int_equal(did.answer - asked, from == WF_LIFE_WAITING ? 1 : 0);
		medium_end();
	}
}

static void
an_answer_may_be_the_end(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_WAITING, true);
	will.answer_takes_down = true;
	assert_int_equal(wf_life_answer(&life->conn, true, NULL, 0), WEFT_NOMEM);
	assert_int_equal(life->state, WF_LIFE_DYING);
	assert_int_equal(did.up, 0);
	medium_end();
	for (unsigned yes = 0; yes < 2; yes++) { /* the peer gave up meanwhile */
		medium_begin();
		life = medium_conn_in(WF_LIFE_WAITING, true);
		will.answer_leads = WF_LIFE_ENDING;
		assert_int_equal(wf_life_answer(&life->conn, yes == 1, NULL, 0), WEFT_CLOSED);
		assert_int_equal(life->state, WF_LIFE_ENDING);
		assert_int_equal(did.up, 0);
		medium_end();
	}
}

static void
grants_and_posts_say_why_not(void **state)
{
	(void)state;
	for (unsigned from = 0; from < STATES; from++) {
		medium_begin();
		struct wf_life *life =
			medium_conn_in((enum wf_life_state)from, from == WF_LIFE_WAITING);
		assert_int_equal(wf_life_check_up(life, "grant to"),
				 from < WF_LIFE_UP    ? WEFT_INVALID
				 : from == WF_LIFE_UP ? WEFT_OK
						      : WEFT_CLOSED);
		medium_end();
	}
}

/* ---- what is said ---- */

static void
up_and_down_say_what_the_peer_said(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_SHAKING, false);
	wf_life_decide(life, "yes", 3, false);
	medium_visit(life, 4);
	assert_int_equal(events.count, 1);
	assert_int_equal(event[0].kind, WF_EVENT_UP);
	assert_ptr_equal(event[0].conn, &life->conn);
	assert_false(event[0].up.incoming);
	assert_memory_equal(event[0].up.blob, "yes", 3);
	assert_int_equal(event[0].up.blob_bytes, 3);
	wf_life_down(life, WEFT_LOST, "%s", "reset");
	medium_visit(life, 4);
	assert_int_equal(event[0].kind, WF_EVENT_DOWN);
	assert_int_equal(event[0].down.status, WEFT_LOST);
	assert_string_equal(event[0].down.why, "node7:7164: reset");
	assert_null(event[0].down.blob);
	life = medium_conn_in(WF_LIFE_SHAKING, false);
	wf_life_decide(life, "never", 5, true);
	medium_visit(life, 4);
	assert_int_equal(events.count, 1);
	assert_int_equal(event[0].down.status, WEFT_REFUSED);
	assert_memory_equal(event[0].down.blob, "never", 5);
	assert_int_equal(event[0].down.blob_bytes, 5);
	medium_end();
}

static void
a_long_name_leaves_the_cause_its_room(void **state)
{
	char text[WF_WHY_BYTES];
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_UP, false);
	memset(life->peer, 'p', sizeof(life->peer) - 1);
	memset(text, 't', sizeof(text));
	text[140] = '\0';
	wf_life_down(life, WEFT_LOST, "%s", text);
	assert_int_equal(strlen(life->end.why), 110 + 2 + 140);
	assert_string_equal(life->end.why + 112, text);
	medium_end();
}

static void
an_end_is_called_by_who_wanted_it(void **state)
{
	char why[WF_WHY_BYTES];
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_UP, false);
	assert_int_equal(wf_life_cause(life, WEFT_LOST, "reset", why), WEFT_LOST);
	assert_string_equal(why, "reset");
	wf_life_disconnect(&life->conn, WF_DISCONNECT_DRAIN);
	assert_int_equal(wf_life_cause(life, WEFT_LOST, "reset", why), WEFT_CLOSED);
	assert_string_equal(why, "closed by this end");
	life = medium_conn_in(WF_LIFE_SHAKING, false);
	assert_int_equal(wf_life_cause(life, WEFT_LOST, "reset", why), WEFT_UNAVAILABLE);
	assert_string_equal(why, "ended before it was answered: reset");
	assert_int_equal(wf_life_cause(life, WEFT_TIMEOUT, "silent", why), WEFT_TIMEOUT);
	medium_end();
	medium_begin();
	life = medium_conn_in(WF_LIFE_WAITING, true);
	assert_int_equal(wf_life_cause(life, WEFT_LOST, "reset", why), WEFT_LOST);
	assert_int_equal(wf_life_answer(&life->conn, false, NULL, 0), WEFT_OK);
	assert_int_equal(wf_life_cause(life, WEFT_LOST, "reset", why), WEFT_CLOSED);
	assert_string_equal(why, "refused by this end");
	medium_end();
}

static void
what_happened_is_counted_once(void **state)
{
	struct wf_transport_info info;
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_UP, false);
	wf_life_down(life, WEFT_PROTOCOL, "nonsense");
	wf_life_down(life, WEFT_PROTOCOL, "more of it");
	life = medium_conn(true);
	wf_life_down(life, WEFT_PROTOCOL, "no hello");
	wf_medium_query(&medium.transport, &info);
	assert_int_equal(info.conns_up, 1);
	assert_int_equal(info.conns_down, 1);
	assert_int_equal(info.protocol_errors, 1);
	assert_int_equal(info.strangers_refused, 1);
	assert_string_equal(info.last_stranger, "10.0.0.7:7164: no hello");
	assert_string_equal(info.name, "none");
	medium_end();
}

/* ---- places ---- */

static void
who_finds_no_place_is_told_why(void **state)
{
	const struct wf_host to = {.name = "node7", .port = 7164};
	struct wf_life *more = NULL;
	(void)state;
	medium_begin();
	for (unsigned i = 0; i < MEDIUM_CONNS; i++) {
		(void)medium_conn_in(WF_LIFE_UP, false);
	}
	assert_int_equal(wf_life_begin(&medium, &to, NULL, &more), WEFT_NOMEM);
	struct wf_life *life = medium_conn_in(WF_LIFE_DECIDED, true);
	medium_visit(life, 4);
	assert_int_equal(events.count, 0);
	assert_int_equal(life->state, WF_LIFE_DEAD);
	assert_int_equal(did.deny, 1);
	assert_string_equal(did.denied, "no room; try again"); /* and no number */
	assert_string_equal(medium.info.last_stranger,
			    "10.0.0.7:7164: no room beside 2 connections; try again");
	medium_end();
}

static void
who_says_nothing_makes_room(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *silent = medium_conn_in(WF_LIFE_SHAKING, true);
	struct wf_life *here = medium_conn_in(WF_LIFE_DECIDED, true);
	assert_ptr_equal(medium.places.first->owner, silent);
	assert_true(wf_medium_make_room(&medium));
	assert_int_equal(silent->state, WF_LIFE_DEAD);
	assert_string_equal(did.denied, "no room; try again"); /* and no number */
	assert_non_null(strstr(medium.info.last_stranger,
			       "no room: 1 others are coming in beside 0 connections; try again"));
	assert_int_equal(here->state, WF_LIFE_DECIDED);
	assert_false(wf_medium_make_room(&medium)); /* whose hello is here does not go */
	medium_end();
}

/* Nobody goes whose hello is here, though nobody has looked. */
static void
who_has_spoken_unheard_stays(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *spoken = medium_conn_in(WF_LIFE_SHAKING, true);
	will.hear_decides = true;
	assert_false(wf_medium_make_room(&medium));
	assert_int_equal(spoken->state, WF_LIFE_DECIDED);
	assert_int_equal(did.deny, 0);
	medium_end();
}

static void
who_comes_in_has_a_place_and_a_time(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = wf_life_come(&medium, "10.0.0.8:7164");
	assert_non_null(life);
	assert_int_equal(life->state, WF_LIFE_SHAKING);
	assert_string_equal(life->peer, "10.0.0.8:7164");
	assert_true(life->incoming);
	assert_int_equal(medium.loop.timer_ns, medium_now_ns + 300 * MS);
	for (unsigned i = 0; i < MEDIUM_NEWCOMERS; i++) { /* who came first makes room */
		assert_non_null(wf_life_come(&medium, "10.0.0.9:7164"));
	}
	assert_int_equal(did.deny, 1);
	assert_int_equal(life->state, WF_LIFE_DEAD);
	while (wf_life_come(&medium, "10.0.0.9:7164") != NULL) {
	}
	assert_true(wf_places_table_is_full(&medium.places));
	assert_string_equal(medium.info.last_stranger,
			    "10.0.0.9:7164: no room for another connection; try again");
	wf_medium_reap(&medium);
	assert_non_null(wf_life_come(&medium, "10.0.0.9:7164"));
	medium_end();
}

static void
who_was_refused_gives_up_its_place(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_WAITING, true);
	assert_int_equal(medium.places.conn_count, 1);
	assert_int_equal(wf_life_answer(&life->conn, false, NULL, 0), WEFT_OK);
	assert_int_equal(medium.places.conn_count, 0);
	assert_ptr_equal(medium.places.first->owner, life);
	assert_true(wf_medium_make_room(&medium));
	assert_int_equal(life->end.status, WEFT_CLOSED); /* not UNAVAILABLE: it was shown */
	medium_end();
}

static void
nothing_is_made_when_the_table_is_full(void **state)
{
	(void)state;
	medium_begin();
	for (unsigned i = 0; i < MEDIUM_CONNS + 2 * MEDIUM_NEWCOMERS; i++) {
		(void)medium_conn(true);
	}
	assert_null(wf_life_create(&medium, true));
	assert_null(wf_life_create(&medium, false));
	medium_end();
}

/* ---- time ---- */

static void
each_state_has_its_time(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_SHAKING, false);
	assert_int_equal(life->attempt_ns, medium_now_ns + 500 * MS);
	assert_int_equal(medium.loop.timer_ns, medium_now_ns + 500 * MS);
	wf_medium_expire(&medium, medium_now_ns + 500 * MS - 1);
	assert_int_equal(life->state, WF_LIFE_SHAKING);
	assert_int_equal(medium.loop.timer_ns, medium_now_ns + 500 * MS);
	wf_life_decide(life, "hi", 2, false); /* nobody is late whose word is here */
	assert_int_equal(life->deadline_ns, WF_NEVER);
	wf_medium_expire(&medium, medium_now_ns + 1000 * MS);
	assert_int_equal(life->state, WF_LIFE_DECIDED);
	assert_int_equal(did.late, 0);
	assert_int_equal(medium.loop.timer_ns, WF_NEVER);
	medium_visit(life, 4);
	assert_int_equal(life->deadline_ns, WF_NEVER);
	medium_now_ns += 2000 * MS;
	wf_life_disconnect(&life->conn, WF_DISCONNECT_DRAIN);
	assert_int_equal(life->deadline_ns, medium_now_ns + WF_LIFE_DRAIN_NS);
	wf_life_disconnect(&life->conn, WF_DISCONNECT_DRAIN); /* begins no second time */
	assert_int_equal(life->deadline_ns, medium_now_ns + WF_LIFE_DRAIN_NS);
	wf_medium_expire(&medium, medium_now_ns + WF_LIFE_DRAIN_NS);
	assert_int_equal(life->end.status, WEFT_CLOSED);
	assert_int_equal(medium.loop.timer_ns, WF_NEVER);
	medium_end();
}

/* This end was away for longer than the time that the peer had: its word is read first. */
static void
who_has_spoken_unheard_is_not_late(void **state)
{
	(void)state;
	for (unsigned incoming = 0; incoming < 2; incoming++) {
		medium_begin();
		struct wf_life *spoken = medium_conn_in(WF_LIFE_SHAKING, incoming != 0);
		will.hear_decides = true;
		did.ready = 0;
		wf_life_deadline(spoken, medium_now_ns);
		wf_medium_expire(&medium, medium_now_ns);
		assert_int_equal(spoken->state, WF_LIFE_DECIDED);
		assert_int_equal(did.ready, 1); /* for its event */
		assert_int_equal(spoken->deadline_ns, WF_NEVER);
		assert_int_equal(medium.loop.timer_ns, WF_NEVER);
		medium_end();
	}
}

static void
an_attempt_that_is_late_says_what_is_missing(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_CONNECTING, false);
	will.next_try_ns = medium_now_ns + 600 * MS;
	wf_medium_expire(&medium, medium_now_ns + 500 * MS);
	assert_int_equal(life->state, WF_LIFE_CONNECTING); /* the medium tries again */
	assert_int_equal(medium.loop.timer_ns, medium_now_ns + 600 * MS);
	will.next_try_ns = 0;
	wf_medium_expire(&medium, medium_now_ns + 600 * MS);
	assert_int_equal(life->end.status, WEFT_TIMEOUT);
	assert_string_equal(life->end.why, "node7:7164: not connected within 500 ms");
	medium_end();
	medium_begin();
	life = medium_conn_in(WF_LIFE_SHAKING, false);
	wf_medium_expire(&medium, medium_now_ns + 500 * MS);
	assert_string_equal(life->end.why, "node7:7164: connected, but not answered within 500 ms");
	assert_int_equal(did.late, 0);
	life = medium_conn_in(WF_LIFE_SHAKING, true);
	life->heard_bytes = 7;
	wf_life_deadline(life, medium_now_ns);
	wf_medium_expire(&medium, medium_now_ns);
	assert_string_equal(medium.info.last_stranger,
			    "10.0.0.7:7164: no whole hello within 300 ms, but 7 bytes");
	medium_end();
}

static void
lead_to_its_end(struct wf_life *life)
{
	wf_life_enter(life, WF_LIFE_ENDING);
}

static void
a_medium_may_end_by_itself_what_drains_for_too_long(void **state)
{
	struct wf_life_ops ops = medium_life_ops;
	(void)state;
	medium_begin();
	ops.end = lead_to_its_end;
	medium.ops = &ops;
	struct wf_life *life = medium_conn_in(WF_LIFE_LINGERING, false);
	wf_medium_expire(&medium, medium_now_ns + WF_LIFE_DRAIN_NS);
	assert_int_equal(life->state, WF_LIFE_ENDING);
	assert_int_equal(did.late, 0);
	assert_int_equal(did.cut, 0);
	/* Whose deadline has come, and who looks at it itself, is no reason for another timer. */
	assert_int_equal(medium.loop.timer_ns, WF_NEVER);
	wf_life_down(life, WEFT_LOST, "reset");
	wf_life_deadline(life, medium_now_ns + 5 * MS);
	wf_medium_expire(&medium, medium_now_ns + 4 * MS);
	assert_int_equal(medium.loop.timer_ns, medium_now_ns + 5 * MS);
	wf_medium_expire(&medium, medium_now_ns + 5 * MS);
	assert_int_equal(medium.loop.timer_ns, WF_NEVER);
	assert_int_equal(did.late, 0);
	medium_end();
}

/* A turn that changes nothing asks for no other; one that left an event for want of room does. */
static void
what_waits_for_room_is_visited_again(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_SHAKING, false);
	unsigned before = did.ready;
	will.visit_decides = true;
	medium_visit(life, 0);
	assert_int_equal(life->state, WF_LIFE_DECIDED);
	assert_int_equal(did.ready, before + 1);
	before = did.ready;
	will.may_show = false;
	medium_visit(life, 4);
	assert_int_equal(did.ready, before); /* whoever holds it up tells when that ends */
	will.may_show = true;
	medium_visit(life, 0);
	assert_int_equal(did.ready, before + 1);
	medium_visit(life, 4);
	medium_visit(life, 4);
	assert_int_equal(did.ready, before + 1);
	assert_int_equal(did.visit, 3); /* SHAKING; UP: at once behind its event, and again */
	wf_life_down(life, WEFT_LOST, "reset");
	before = did.ready;
	will.finishes = false;
	medium_visit(life, 4);
	assert_int_equal(did.ready, before);
	assert_int_equal(events.count, 0);
	will.finishes = true;
	medium_visit(life, 0);
	assert_int_equal(did.ready, before + 1);
	assert_int_equal(life->state, WF_LIFE_DYING);
	medium_end();
}

static void
the_dead_are_freed_unless_somebody_holds_them(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_DEAD, false);
	struct wf_life *other = medium_conn_in(WF_LIFE_UP, false);
	assert_true(medium.dead_waiting);
	will.is_held = true;
	wf_medium_reap(&medium);
	assert_int_equal(medium.conn_count, 2);
	assert_false(medium.dead_waiting);
	medium_visit(life, 4); /* whoever holds it has let go */
	assert_true(medium.dead_waiting);
	will.is_held = false;
	wf_medium_reap(&medium);
	assert_int_equal(medium.conn_count, 1);
	assert_ptr_equal(medium.first, other);
	assert_int_equal(did.fini, 1);
	medium_end();
}

/* Nor while it is in the loop's list, which lets go of it with the next visit. */
static void
who_is_ready_is_visited_before_it_is_freed(void **state)
{
	(void)state;
	medium_begin();
	struct wf_life *life = medium_conn_in(WF_LIFE_UP, false);
	wf_life_ready(life);
	wf_life_ready(life);
	assert_int_equal(medium.loop.ready_count, 1);
	assert_ptr_equal(medium.loop.ready_first, &life->ready);
	wf_life_down(life, WEFT_LOST, "reset");
	medium_visit(life, 4);
	assert_int_equal(life->state, WF_LIFE_DEAD);
	wf_medium_reap(&medium);
	assert_int_equal(medium.conn_count, 1);
	assert_ptr_equal(wf_loop_pop(&medium.loop), &life->ready);
	wf_life_ready(life);
	assert_int_equal(medium.loop.ready_count, 0);
	medium_visit(life, 4);
	assert_true(medium.dead_waiting);
	wf_medium_reap(&medium);
	assert_int_equal(medium.conn_count, 0);
	medium_end();
}

static unsigned room; /* operations that are taken */
static bool breaks;   /* the next one takes the connection down */

static bool
take(struct wf_life *life, const struct wf_op *op)
{
	(void)op;
	if (breaks) {
		wf_life_down(life, WEFT_PROTOCOL, "it says what cannot be");
	}
	return room > 0 && room-- > 0;
}

static void
operations_are_taken_in_order_as_far_as_there_is_room(void **state)
{
	static uint8_t memory[64];
	const struct wf_region region = {.base = memory, .bytes = sizeof(memory), .memfd = -1};
	struct wf_op op[3] = {{.kind = WF_OP_SEND},
			      {.kind = WF_OP_PUT, .src = memory, .bytes = 64},
			      {.kind = WF_OP_PUT, .src = memory + 1, .bytes = 64}};
	unsigned taken = 0;
	(void)state;
	medium_begin();
	assert_int_equal(wf_regions_add(&medium.regions, "none", &region, &op[1].region), WEFT_OK);
	op[2].region = op[1].region;
	struct wf_life *life = medium_conn_in(WF_LIFE_UP, false);
	room = 3;
	assert_int_equal(wf_life_post(life, op, 2, &taken, take), WEFT_OK);
	assert_int_equal(taken, 2);
	assert_int_equal(wf_life_post(life, op, 3, &taken, take), WEFT_AGAIN);
	assert_int_equal(taken, 1);
	assert_int_equal(medium.info.posts_again, 1);
	room = 3;
	assert_int_equal(wf_life_post(life, op, 3, &taken, take), WEFT_INVALID);
	assert_int_equal(taken, 2); /* the third ends a byte behind its region */
	assert_int_equal(room, 1);
	breaks = true;
	taken = 0;
	room = 0;
	assert_int_equal(wf_life_post(life, op, 1, &taken, take), WEFT_CLOSED);
	assert_int_equal(taken, 0);
	assert_int_equal(medium.info.posts_again, 1);
	breaks = false;
	life = medium_conn_in(WF_LIFE_SHAKING, false);
	room = 1;
	assert_int_equal(wf_life_post(life, op, 1, &taken, take), WEFT_INVALID);
	assert_int_equal(room, 1);
	medium_end();
}

/* What was granted is worth nothing after the end. */
static void
grants_die_with_it(void **state)
{
	static uint8_t memory[64];
	const struct wf_region region = {.base = memory, .bytes = sizeof(memory), .memfd = -1};
	struct wf_grant grant = {.kind = WF_GRANT_PLACE, .bytes = sizeof(memory)};
	struct wf_grant_key key;
	(void)state;
	medium_begin();
	assert_int_equal(wf_regions_add(&medium.regions, "none", &region, &grant.region), WEFT_OK);
	struct wf_life *life = medium_conn_in(WF_LIFE_UP, false);
	assert_int_equal(wf_life_grant(&life->conn, &grant, &key), WEFT_OK);
	assert_int_equal(life->grants.count, 1);
	wf_life_down(life, WEFT_LOST, "reset");
	assert_int_equal(life->grants.count, 0);
	assert_int_equal(wf_life_grant(&life->conn, &grant, &key), WEFT_CLOSED);
	medium_end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connecting_end_goes_its_way_from_every_state),
		cmocka_unit_test(accepting_end_goes_its_way_from_every_state),
		cmocka_unit_test(an_answer_is_asked_for_once_and_of_who_came_in),
		cmocka_unit_test(an_answer_may_be_the_end),
		cmocka_unit_test(grants_and_posts_say_why_not),
		cmocka_unit_test(up_and_down_say_what_the_peer_said),
		cmocka_unit_test(a_long_name_leaves_the_cause_its_room),
		cmocka_unit_test(an_end_is_called_by_who_wanted_it),
		cmocka_unit_test(what_happened_is_counted_once),
		cmocka_unit_test(who_finds_no_place_is_told_why),
		cmocka_unit_test(who_says_nothing_makes_room),
		cmocka_unit_test(who_has_spoken_unheard_stays),
		cmocka_unit_test(who_comes_in_has_a_place_and_a_time),
		cmocka_unit_test(who_was_refused_gives_up_its_place),
		cmocka_unit_test(nothing_is_made_when_the_table_is_full),
		cmocka_unit_test(each_state_has_its_time),
		cmocka_unit_test(who_has_spoken_unheard_is_not_late),
		cmocka_unit_test(an_attempt_that_is_late_says_what_is_missing),
		cmocka_unit_test(a_medium_may_end_by_itself_what_drains_for_too_long),
		cmocka_unit_test(what_waits_for_room_is_visited_again),
		cmocka_unit_test(the_dead_are_freed_unless_somebody_holds_them),
		cmocka_unit_test(who_is_ready_is_visited_before_it_is_freed),
		cmocka_unit_test(operations_are_taken_in_order_as_far_as_there_is_room),
		cmocka_unit_test(grants_die_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

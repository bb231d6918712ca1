/* SPDX-License-Identifier: Apache-2.0 */
/* core: the turn of a session: events, deadlines, commands. Thread: the core's. */
#include "trainer/session/dense.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/service.h"

#define TICK_NS (WF_NS_PER_S / 10)
#define AWAY_NS WF_NS_PER_S

static enum weft_status
open_transport(struct wf_core *core, const char *verbs)
{
	struct wf_transport_opts opts = {
		.env = core->end.env,
		.conn_max = core->links.count * 2 + 8,
		.put_bytes_max = wf_core_put_bytes_max(core),
	};
	wf_transport_opts_set(&core->values, &opts);
	opts.verbs = verbs;
	enum weft_status st = wf_transport_open("paths", &opts, &core->turn.transport);
	return st == WEFT_OK ? wf_memory_add(core) : st;
}

void
wf_core_init(struct wf_core *core)
{
	wf_turn_init(&core->turn, core->end.env, core, 0);
	wf_core_report_init(core);
}

static void
open_end(struct wf_core *core)
{
	struct wf_link_end *end = &core->end;
	uint64_t of_life_ns = core->start.connect_timeout_ns;
	end->ops = &wf_core_end_ops;
	end->turn = &core->turn;
	end->connect_timeout_ns = of_life_ns != 0 ? of_life_ns : core->opts.connect_timeout_ns;
	end->reconnect_timeout_ns = core->opts.reconnect_timeout_ns;
	(void)snprintf(end->name, sizeof(end->name), "trainer %u", core->opts.trainer_id);
}

enum weft_status
wf_core_open(struct wf_core *core, const char *verbs)
{
	core->turn.tick_ns = WF_NEVER;
	core->step.pass = 1;
	open_end(core);
	enum weft_status st = wf_flow_open(core);
	if (st == WEFT_OK) {
		st = wf_greeting_open(core);
	}
	if (st == WEFT_OK) {
		st = wf_links_open(core);
	}
	return st == WEFT_OK ? open_transport(core, verbs) : st;
}

void
wf_core_close(struct wf_core *core)
{
	wf_transport_close(core->turn.transport);
	core->turn.transport = NULL;
	wf_links_close(core);
	wf_flow_close(core);
	wf_greeting_close(core);
	core->turn.due = NULL;
}

/* A lane that does not keep to the protocol will not do so on another connection either. */
static void
offence(struct wf_link *link)
{
	wf_core_fail(wf_core_of(link), WEFT_PROTOCOL, "pserver %u %s %u broke the protocol: %s",
		     link->pserver_idx, link->ops->lane_name, link->lane_idx, weft_last_error());
}

/* `link`: NULL: of a path that is gone. */
static void
handle_done(struct wf_core *core, struct wf_link *link, const struct wf_event *event)
{
	uint64_t cookie = event->done.cookie;
	if (link != NULL) {
		wf_beat_done(&link->beat, cookie);
	}
	if (wf_beat_is_other(cookie)) {
		struct wf_link *of = core->links.all[(cookie - 1) >> 32];
		of->ops->done(of, (uint32_t)(cookie - 1));
	}
}

/* Whether it is the payload's own: it changes nothing that ticks look at. */
static bool
is_of_payload(const struct wf_link *link, const struct wf_event *event)
{
	return event->kind == WF_EVENT_PUT ||
	       (event->kind == WF_EVENT_MSG && event->msg.head->service == link->ops->service);
}

static void
handle_event(void *end, const struct wf_event *event)
{
	struct wf_core *core = end;
	struct wf_link *link = event->conn->user;
	if (link != NULL && link->conn != event->conn) {
		link = NULL; /* of a path that it has left */
	}
	if (event->kind == WF_EVENT_DONE) {
		handle_done(core, link, event);
		return;
	}
	if (link == NULL) {
		return;
	}
	if (event->kind != WF_EVENT_PUT) {
		wf_link_due(link);
	}
	if (!is_of_payload(link, event)) {
		core->turn.tick_ns = 0;
	}
	if (event->kind == WF_EVENT_DOWN) {
		wf_link_down(link, event);
		return;
	}
	if (wf_core_failed(core)) {
		return;
	}
	link->beat.heard = true;
	if (event->kind == WF_EVENT_UP) {
		wf_link_up(link, event);
		wf_core_report_measure(core);
		return;
	}
	enum weft_status st = event->kind == WF_EVENT_MSG ? wf_link_msg(link, event)
							  : link->ops->put(link, &event->put);
	if (st == WEFT_NOMEM) { /* a failure of this end, not of the lane */
		wf_core_fail(core, st, "%s", weft_last_error());
	} else if (st != WEFT_OK) {
		offence(link);
	}
}

static void
leave(struct wf_link *link)
{
	link->to_send.goodbye = link->state == WF_LINK_READY;
	wf_link_due(link);
}

/* The first lane comes last: its answer means that the job has ended, on all lanes. */
static void
check_leaving(struct wf_core *core)
{
	if (!core->end.leaving) {
		return;
	}
	bool all_left = true;
	for (uint32_t i = 1; i < core->links.count; i++) {
		const struct wf_link *link = core->links.all[i];
		all_left = all_left && link->state == WF_LINK_LEFT && link->conn == NULL;
	}
	if (all_left && core->end.last_leaving_ns == 0) {
		core->end.last_leaving_ns = wf_now_ns(core->end.env);
		leave(core->links.all[0]);
	}
	const struct wf_link *last = core->links.all[0];
	if (!all_left || last->state != WF_LINK_LEFT || last->conn != NULL) {
		return;
	}
	wf_core_report_end(core);
	/* L1: is_left's acquire */
	atomic_store_explicit(&core->farewell.left, 1, memory_order_release);
}

static void
check_farewell(struct wf_core *core, uint64_t now)
{
	if (wf_failure_is_told(core, now)) {
		wf_core_report_end(core);
		/* is_quiet's acquire */
		atomic_store_explicit(&core->farewell.quiet, 1, memory_order_release);
	}
}

/* Everything that the clock decides, and what follows from the state of all links: not every
 * turn's business. */
static void
tick(void *end, uint64_t now)
{
	struct wf_core *core = end;
	core->turn.tick_ns = now + TICK_NS; /* unless what follows wants it sooner */
	wf_core_heed_stop(core);
	if (wf_core_failed(core)) {
		check_farewell(core, now);
		return;
	}
	bool all_up = true;
	for (uint32_t i = 0; i < core->links.count; i++) {
		struct wf_link *link = core->links.all[i];
		wf_link_tick(link, now);
		all_up = all_up && link->was_ready;
		if (link->state == WF_LINK_IDLE && link->conn == NULL) {
			wf_turn_tick_before(&core->turn, link->retry.at_ns);
		}
	}
	bool news = all_up && !core->start.all_were_up;
	if (news && core->service.ops != NULL) {
		core->service.ops->all_up(core);
	}
	core->start.all_were_up = core->start.all_were_up || all_up;
	core->start.initialised =
		core->start.initialised ||
		(core->start.all_were_up && core->start.asked && core->flow.busy_slices == 0);
	if (news) {
		atomic_store_explicit(&core->start.busy, 0, memory_order_release); /* B1 */
	}
	check_leaving(core);
	wf_core_beats_look(core, now, wf_core_waits(core));
	if (wf_core_failed(core)) {
		return;
	}
	wf_core_check_waits(core, now);
	if (now >= core->report.lines.next_ns) {
		wf_core_report_period(core, now);
	}
	wf_turn_tick_before(&core->turn, core->report.lines.next_ns);
}

static inline struct wf_link *
link_of(struct wf_due *due)
{
	return (struct wf_link *)(void *)((char *)due - offsetof(struct wf_link, due));
}

static bool
flush(struct wf_due *due)
{
	return wf_link_flush(link_of(due));
}

static bool
flush_owed(struct wf_due *due)
{
	struct wf_link *link = link_of(due);
	return link->ops->flush_owed(link);
}

static void
transport_failed(void *end, enum weft_status status)
{
	(void)status;
	wf_core_fail(end, WEFT_IO, "transport: %s", weft_last_error());
}

static void
look_at_clock(void *end, uint64_t before_ns)
{
	struct wf_core *core = end;
	if (core->turn.now_ns - before_ns >= AWAY_NS) {
		core->waits.back_ns = core->turn.now_ns;
	}
	wf_wait_stamp(&core->waits.tensors, core->turn.now_ns);
}

static const struct wf_turn_ops turn_ops = {
	.event = handle_event,
	.flush = flush,
	.flush_owed = flush_owed,
	.failed = transport_failed,
	.clock = look_at_clock,
	.tick = tick,
};

static void
own(struct wf_core *core)
{
	if (core->owner.thread == 0) {
		wf_owner_claim(&core->owner);
	}
	WF_ASSERT_OWNER(core);
}

bool
wf_core_poll(struct wf_core *core)
{
	own(core);
	return wf_turn_run(&core->turn, &turn_ops);
}

static void
note_dones(struct wf_core *core)
{
	core->turn.awaits_done = core->flow.undone_slices > 0 || core->service.undone > 0;
}

enum wf_rest
wf_core_arm(struct wf_core *core, uint64_t *deadline_ns)
{
	note_dones(core);
	return wf_turn_arm(&core->turn, &turn_ops, deadline_ns);
}

bool
wf_core_advance(struct wf_core *core, uint64_t *deadline_ns)
{
	own(core);
	note_dones(core);
	return wf_turn_round(&core->turn, &turn_ops, deadline_ns);
}

void
wf_core_start(struct wf_core *core)
{
	core->end.started_ns = wf_now_ns(core->end.env);
	core->turn.tick_ns = 0;
	/* Without tensors there are no initial values, and pieces, which come last, have none. */
	core->start.asked = core->job.tensor_count == 0 || core->job.tensor[0].is_piece;
	wf_core_report_start(core);
}

void
wf_core_leave(struct wf_core *core, bool goes_on)
{
	core->end.leaving = true;
	core->end.leaves = goes_on;
	core->end.leaving_ns = wf_now_ns(core->end.env);
	core->turn.tick_ns = 0;
	if (goes_on) { /* no lane answers before all of them know the border */
		core->end.last_leaving_ns = core->end.leaving_ns;
		leave(core->links.all[0]);
	}
	for (uint32_t i = 1; i < core->links.count; i++) {
		leave(core->links.all[i]);
	}
}

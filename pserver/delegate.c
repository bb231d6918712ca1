/* SPDX-License-Identifier: Apache-2.0 */
/* delegate: see delegate.h. Thread: lane 0's. */
#include "pserver/delegate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/url.h"
#include "exchange/send.h"
#include "pserver/members.h"
#include "saved/epochs.h"
#include "wire/registry_messages.h"

#define DEFAULT_PORT 7164
#define CONNECT_NS (WF_NS_PER_S / 20) /* between two attempts to connect */
#define RECORD_NS (WF_NS_PER_S / 10)  /* between two looks for the record of the epoch */
#define LOOK_NS WF_NS_PER_MS          /* between two looks while a snapshot is under way */

/* The connection. */
struct link {
	struct wf_conn *conn; /* NULL: none */
	bool is_up;
	bool join_due;
	uint32_t path;             /* attempts so far */
	uint64_t retry_ns;         /* the next one */
	uint64_t lost_ns;          /* since when there is none, and it is to be logged; 0: not */
	char why[WF_REASON_BYTES]; /* the last one failed; "": there was none */
};

/* What the job begins with, as the registrar says. */
struct beginning {
	struct wf_snapshot_base base; /* of the last LOAD or RUN; epoch 0: none */
	bool has_loaded;
	bool loaded_due, bad_due; /* the answer is */
	char bad[WF_REASON_BYTES];
	bool run_due; /* RUN came, and the record of the epoch has not been seen */
	bool serves;
	uint64_t record_ns; /* next look for the record */
};

/* The snapshot that the registrar wants. */
struct reporting {
	uint64_t border;                    /* 0: none */
	uint64_t base;                      /* of which it is a delta; 0: it is complete */
	uint32_t lane;                      /* whose part is sent next, */
	uint32_t table;                     /* with this table first */
	struct wf_snapshot_outcome outcome; /* of one lane, scratch */
	struct wf_registry_part part;       /* scratch of one encode */
};

/* All trainers have left. */
struct ending {
	uint64_t since_ns; /* 0: not yet */
	uint64_t look_ns;  /* for the record, again */
	bool is_over;      /* the end is recorded */
};

/* The change of members under way. */
struct leaving {
	uint64_t change; /* 0: none */
	bool has_border;
	bool answer_due;
};

struct wf_delegate {
	struct wf_lane *lane;
	struct wf_snapshots *snapshots; /* NULL: none are taken */
	struct wf_host to;
	struct link link;
	struct beginning beginning;
	struct reporting reporting;
	struct ending ending;
	struct leaving leaving;
};

/* As --registrar has it. */
static const char *
registrar_of(const struct wf_lane *lane)
{
	return lane->opts.snapshots != NULL ? wf_snapshots_opts(lane->opts.snapshots)->registrar
					    : lane->opts.registrar;
}

enum weft_status
wf_delegate_open(struct wf_lane *lane, struct wf_delegate **out)
{
	struct wf_snapshots *all = lane->opts.snapshots;
	const char *registrar = registrar_of(lane);
	if (registrar[0] == '\0') {
		return wf_fail(WEFT_INVALID,
			       "%s of a job with %u pservers need --registrar=HOST:PORT at "
			       "each of them, which is where pserver 0 listens; this is pserver %u",
			       all != NULL ? "snapshots" : "changes of the members",
			       lane->admission.first.pserver_count,
			       lane->admission.first.pserver_idx);
	}
	struct wf_delegate *self = wf_zalloc(lane->env, sizeof(*self));
	if (self == NULL) {
		return wf_fail(WEFT_NOMEM, "delegate: %zu bytes", sizeof(*self));
	}
	self->lane = lane;
	self->snapshots = all;
	enum weft_status st = wf_host_parse(registrar, DEFAULT_PORT, &self->to);
	if (st != WEFT_OK) {
		wf_free(lane->env, self, sizeof(*self));
		return st;
	}
	if (all != NULL) {
		wf_snapshots_set_wait(all, "pserver 0 at %.100s, which is the registrar",
				      registrar);
	}
	*out = self;
	return WEFT_OK;
}

void
wf_delegate_close(struct wf_delegate *self)
{
	if (self == NULL) {
		return;
	}
	if (self->link.conn != NULL && self->lane->turn.transport != NULL) {
		wf_transport_disconnect(self->link.conn, WF_DISCONNECT_DRAIN);
	}
	wf_free(self->lane->env, self, sizeof(*self));
}

/* ---- the connection ---- */

/* The hello of a trainer of the job, in the name of this pserver. */
static void
make_hello(struct wf_delegate *self, struct wf_hello *out)
{
	const struct wf_lane *lane = self->lane;
	*out = lane->admission.first;
	out->service = WF_SERVICE_REGISTRY;
	out->trainer_id = lane->admission.first.pserver_idx;
	out->trainer_count = lane->admission.first.pserver_count;
	out->pserver_idx = 0;
	out->lane_idx = 0;
	out->incarnation = lane->opts.incarnation;
	out->path = ++self->link.path;
	out->epoch = self->beginning.serves ? self->beginning.base.epoch : 0;
	out->pid = (uint32_t)getpid();
	(void)gethostname(out->host, sizeof(out->host) - 1);
}

static void
connect_to_registrar(struct wf_delegate *self, uint64_t now_ns)
{
	struct wf_hello hello;
	uint8_t bytes[WF_HELLO_MAX];
	make_hello(self, &hello);
	size_t used = wf_hello_encode(&hello, bytes);
	self->link.retry_ns = now_ns + CONNECT_NS;
	if (wf_transport_connect(self->lane->turn.transport, &self->to, bytes, used, NULL,
				 &self->link.conn) != WEFT_OK) {
		self->link.conn = NULL;
		(void)snprintf(self->link.why, sizeof(self->link.why), "%.*s", WF_REASON_BYTES - 1,
			       weft_last_error());
	}
}

/* The registrar's own reason, if it gave one. Whether it is for good. */
static bool
is_refused(struct wf_delegate *self, const struct wf_event *event)
{
	struct wf_welcome no;
	(void)snprintf(self->link.why, sizeof(self->link.why), "%.*s", WF_REASON_BYTES - 1,
		       event->down.why);
	if (event->down.status != WEFT_REFUSED ||
	    wf_welcome_decode(event->down.blob, event->down.blob_bytes, &no) != WEFT_OK) {
		return false;
	}
	(void)snprintf(self->link.why, sizeof(self->link.why), "%.*s", WF_REASON_BYTES - 1,
		       no.reason);
	return no.refusal != WEFT_UNAVAILABLE;
}

/* The job cannot go on, with the recorded failure. */
static void
refuse(struct wf_delegate *self)
{
	if (self->snapshots != NULL) {
		wf_snapshots_refuse(self->snapshots);
	} else {
		wf_lane_fail(self->lane, wf_error_record()->status, self->lane->order.sum.step,
			     "%.200s", weft_last_error());
	}
}

static void
on_down(struct wf_delegate *self, const struct wf_event *event)
{
	bool was_up = self->link.is_up;
	bool is_final = is_refused(self, event);
	self->link.conn = NULL;
	self->link.is_up = false;
	self->reporting.border = 0; /* it is ordered again */
	self->leaving.answer_due = false;
	bool serves = self->beginning.serves || self->snapshots == NULL;
	if (serves && was_up) {
		self->link.lost_ns = wf_now_ns(self->lane->env);
	} else if (is_final && !self->beginning.serves) {
		(void)wf_fail(WEFT_REFUSED, "pserver %u is refused at --registrar=%.60s: %.160s",
			      self->lane->admission.first.pserver_idx, registrar_of(self->lane),
			      self->link.why);
		refuse(self);
	}
}

/* ---- messages ---- */

static struct wf_snapshot_base
base_of(uint64_t epoch, const struct wf_registry_id *id)
{
	return (struct wf_snapshot_base){.epoch = epoch,
					 .id = {.epoch = id->epoch, .step = id->step}};
}

/* Whether this pserver sees the snapshot that the registrar has read from end to end. */
static enum weft_status
look_at_base(struct wf_delegate *self, const struct wf_registry_load *msg)
{
	const struct wf_snapshot_id id = {.epoch = msg->base.epoch, .step = msg->base.step};
	const char *dir = wf_snapshots_opts(self->snapshots)->dir;
	struct wf_snapshot *snapshot = NULL;
	uint32_t crc = 0;
	if (id.step == 0) {
		return WEFT_OK;
	}
	enum weft_status st =
		wf_snapshot_open(self->lane->env, wf_saved_posix(), dir, id, &snapshot);
	st = st == WEFT_OK ? wf_snapshot_crc(snapshot, &crc) : st;
	wf_snapshot_close(snapshot);
	if (st == WEFT_OK && crc != msg->crc) {
		st = wf_fail(WEFT_DATA,
			     "%.120s has another snapshot of that step than pserver 0 has; give "
			     "all pservers one --snapshot_dir, in a directory that they share",
			     dir);
	}
	return st;
}

static enum weft_status
on_load(struct wf_delegate *self, const struct wf_registry_load *msg)
{
	struct beginning *beginning = &self->beginning;
	if (beginning->serves && msg->epoch > beginning->base.epoch &&
	    wf_snapshots_opts(self->snapshots)->goes_back) {
		wf_lane_fail(self->lane, WEFT_ROLLED_BACK, self->lane->order.sum.step,
			     "pserver 0 begins epoch %" PRIu64 " of the job", msg->epoch);
		return WEFT_OK;
	}
	if (beginning->serves) {
		return wf_fail(WEFT_PROTOCOL, "LOAD: this pserver serves in epoch %" PRIu64,
			       beginning->base.epoch);
	}
	beginning->base = base_of(msg->epoch, &msg->base);
	beginning->has_loaded = look_at_base(self, msg) == WEFT_OK;
	beginning->loaded_due = beginning->has_loaded;
	beginning->bad_due = !beginning->has_loaded;
	if (beginning->bad_due) {
		(void)snprintf(beginning->bad, sizeof(beginning->bad), "%.*s", WF_REASON_BYTES - 1,
			       weft_last_error());
	}
	return WEFT_OK;
}

static enum weft_status
on_run(struct wf_delegate *self, const struct wf_registry_run *msg)
{
	struct beginning *beginning = &self->beginning;
	const struct wf_snapshot_base base = base_of(msg->epoch, &msg->base);
	bool is_same = beginning->base.epoch == base.epoch &&
		       beginning->base.id.epoch == base.id.epoch &&
		       beginning->base.id.step == base.id.step;
	if (!is_same || !beginning->has_loaded) {
		return wf_fail(WEFT_PROTOCOL,
			       "RUN: epoch %" PRIu64 " with a snapshot that is not loaded here",
			       msg->epoch);
	}
	beginning->run_due = !beginning->serves;
	return WEFT_OK;
}

static enum weft_status
on_snapshot(struct wf_delegate *self, const struct wf_registry_snapshot *msg)
{
	struct reporting *reporting = &self->reporting;
	bool is_on = self->beginning.serves || self->beginning.run_due;
	if (!is_on || msg->epoch != self->beginning.base.epoch) {
		return wf_fail(WEFT_PROTOCOL,
			       "SNAPSHOT: of epoch %" PRIu64
			       ", in which this pserver does not serve",
			       msg->epoch);
	}
	reporting->border = msg->border;
	reporting->base = msg->base;
	reporting->lane = 0;
	reporting->table = 0;
	if (self->beginning.serves) {
		wf_snapshots_order(self->snapshots, msg->border, msg->base);
	}
	return WEFT_OK;
}

static enum weft_status
on_leave(struct wf_delegate *self, const struct wf_registry_member *msg)
{
	struct leaving *leaving = &self->leaving;
	bool has_border = msg->border != 0;
	bool is_next = msg->change > leaving->change && !has_border;
	bool is_same = msg->change == leaving->change && has_border >= leaving->has_border;
	if (msg->trainer >= self->lane->peers.count || !(is_next || is_same)) {
		return wf_fail(WEFT_PROTOCOL,
			       "MEMBER: change %" PRIu64 " of trainer %u, after %" PRIu64,
			       msg->change, msg->trainer, leaving->change);
	}
	*leaving = (struct leaving){
		.change = msg->change, .has_border = has_border, .answer_due = true};
	wf_members_order(self->lane->opts.members, msg);
	return WEFT_OK;
}

/* About snapshots. */
static enum weft_status
on_snapshot_message(struct wf_delegate *self, const struct wf_head *head, const uint8_t *body)
{
	union {
		struct wf_registry_load load;
		struct wf_registry_run run;
		struct wf_registry_snapshot snapshot;
	} msg;
	enum weft_status st = WEFT_OK;
	switch (head->type) {
	case WF_REGISTRY_LOAD:
		st = wf_registry_load_decode(head, body, &msg.load);
		return st != WEFT_OK ? st : on_load(self, &msg.load);
	case WF_REGISTRY_RUN:
		st = wf_registry_run_decode(head, body, &msg.run);
		return st != WEFT_OK ? st : on_run(self, &msg.run);
	default:
		st = wf_registry_snapshot_decode(head, body, &msg.snapshot);
		return st != WEFT_OK ? st : on_snapshot(self, &msg.snapshot);
	}
}

static enum weft_status
on_message(struct wf_delegate *self, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	struct wf_registry_member leave;
	bool of_snapshots = head->type == WF_REGISTRY_LOAD || head->type == WF_REGISTRY_RUN ||
			    head->type == WF_REGISTRY_SNAPSHOT;
	if (head->service != WF_SERVICE_REGISTRY) {
		return wf_fail(WEFT_PROTOCOL, "message for service %u", head->service);
	}
	if (of_snapshots && self->snapshots != NULL) {
		return on_snapshot_message(self, head, event->msg.body);
	}
	if (head->type == WF_REGISTRY_MEMBER && self->lane->opts.members != NULL) {
		enum weft_status st = wf_registry_member_decode(head, event->msg.body, &leave);
		return st == WEFT_OK ? on_leave(self, &leave) : st;
	}
	return wf_fail(WEFT_PROTOCOL, "message of type %u, which this pserver does not take",
		       head->type);
}

void
wf_delegate_event(struct wf_delegate *self, const struct wf_event *event)
{
	enum weft_status st = WEFT_OK;
	if (event->conn != self->link.conn) {
		return;
	}
	switch (event->kind) {
	case WF_EVENT_UP:
		self->link.is_up = true;
		self->link.join_due = true;
		self->link.lost_ns = 0;
		self->link.why[0] = '\0';
		break;
	case WF_EVENT_DOWN:
		on_down(self, event);
		break;
	case WF_EVENT_MSG:
		st = on_message(self, event);
		break;
	case WF_EVENT_PUT:
		st = wf_fail(WEFT_PROTOCOL, "only messages go between pservers");
		break;
	case WF_EVENT_DONE:
		break;
	}
	if (st != WEFT_OK) {
		wf_log(self->lane->env, WF_LOG_WARN,
		       "the connection to the registrar is closed: %s", weft_last_error());
		wf_transport_disconnect(self->link.conn, WF_DISCONNECT_NOW);
	}
}

/* ---- what is due ---- */

static uint32_t
lane_count(const struct wf_delegate *self)
{
	return self->snapshots != NULL ? wf_snapshots_lane_count(self->snapshots)
				       : wf_members_lane_count(self->lane->opts.members);
}

static bool
send_join(struct wf_delegate *self)
{
	const struct beginning *beginning = &self->beginning;
	struct wf_lane *lane = self->lane;
	struct wf_registry_join msg = {
		.serves = beginning->serves ? beginning->base.epoch : 0,
		.dense_lanes = lane->opts.lane_count,
		.sparse_lanes = lane_count(self) - lane->opts.lane_count,
	};
	if (beginning->has_loaded) {
		msg.loaded_epoch = beginning->base.epoch;
		msg.loaded = wf_registry_id_of(&beginning->base);
	}
	wf_registry_join_encode(&msg, &lane->msg);
	return wf_send(self->link.conn, &lane->msg, 0);
}

static bool
send_answer(struct wf_delegate *self)
{
	struct beginning *beginning = &self->beginning;
	struct wf_lane *lane = self->lane;
	const struct wf_registry_id id = wf_registry_id_of(&beginning->base);
	if (beginning->loaded_due) {
		wf_registry_loaded_encode(
			&(struct wf_registry_loaded){.epoch = beginning->base.epoch, .base = id},
			&lane->msg);
	} else {
		struct wf_registry_bad msg = {.epoch = beginning->base.epoch, .base = id};
		memcpy(msg.reason, beginning->bad, sizeof(msg.reason));
		wf_registry_bad_encode(&msg, &lane->msg);
	}
	if (!wf_send(self->link.conn, &lane->msg, 0)) {
		return false;
	}
	beginning->loaded_due = false;
	beginning->bad_due = false;
	return true;
}

/* A file system that is shared may show the record later than the message comes. */
static void
look_for_record(struct wf_delegate *self, uint64_t now_ns)
{
	struct beginning *beginning = &self->beginning;
	struct wf_saved_folder *folder = wf_snapshots_folder(self->snapshots);
	struct wf_epochs epochs = {0};
	beginning->record_ns = now_ns + RECORD_NS;
	enum weft_status st = wf_epochs_read(self->lane->env, folder, &epochs);
	bool is_here = st == WEFT_OK && epochs.count >= beginning->base.epoch;
	wf_epochs_fini(self->lane->env, &epochs);
	if (!is_here) {
		wf_snapshots_set_wait(self->snapshots,
				      "%.80s to show what pserver 0 has written there",
				      wf_snapshots_opts(self->snapshots)->dir);
		return;
	}
	beginning->run_due = false;
	beginning->serves = true;
	wf_snapshots_run(self->snapshots, &beginning->base);
	wf_snapshots_order(self->snapshots, self->reporting.border, self->reporting.base);
}

/* Whether the newest record is the end of the job, of this epoch or a later one. */
static bool
has_end(const struct wf_delegate *self)
{
	struct wf_saved_folder *folder = wf_snapshots_folder(self->snapshots);
	struct wf_epochs epochs = {0};
	bool has_end = wf_epochs_read(self->lane->env, folder, &epochs) == WEFT_OK &&
		       epochs.count > self->beginning.base.epoch && !wf_epochs_are_open(&epochs);
	wf_epochs_fini(self->lane->env, &epochs);
	return has_end;
}

bool
wf_delegate_is_over(struct wf_delegate *self, uint64_t now_ns, uint64_t *next_ns)
{
	struct ending *ending = &self->ending;
	if (self->snapshots == NULL || !wf_snapshots_opts(self->snapshots)->goes_back) {
		return true;
	}
	ending->since_ns = ending->since_ns == 0 ? now_ns : ending->since_ns;
	if (now_ns >= ending->look_ns) {
		ending->look_ns = now_ns + RECORD_NS;
		ending->is_over = has_end(self);
	}
	if (!ending->is_over && now_ns >= ending->since_ns + self->lane->opts.rejoin_timeout_ns) {
		wf_log(self->lane->env, WF_LOG_WARN,
		       "pserver 0 has not recorded the end of the job within %.0f s, after all "
		       "trainers had left this pserver",
		       (double)self->lane->opts.rejoin_timeout_ns / 1e9);
		ending->is_over = true;
	}
	*next_ns = ending->look_ns;
	return ending->is_over;
}

/* Before the job begins. */
static void
check_deadline(struct wf_delegate *self, uint64_t now_ns)
{
	const char *dir = wf_snapshots_opts(self->snapshots)->dir;
	if (now_ns < self->lane->admission.deadline_ns) {
		return;
	}
	if (self->beginning.run_due) {
		(void)wf_fail(WEFT_DATA,
			      "%.120s does not show what pserver 0 has written; give all pservers "
			      "one --snapshot_dir, in a directory that they share",
			      dir);
	} else {
		(void)wf_fail(WEFT_TIMEOUT,
			      "the registrar at %.60s did not begin the job in time: "
			      "%.150s",
			      registrar_of(self->lane),
			      self->link.why[0] != '\0' ? self->link.why
							: "it waits for another pserver");
	}
	wf_snapshots_refuse(self->snapshots);
	self->beginning.run_due = false;
}

/* ---- reports ---- */

static bool
send_failed(struct wf_delegate *self, const char *reason)
{
	struct wf_registry_failed msg = {.epoch = self->beginning.base.epoch,
					 .border = self->reporting.border};
	(void)snprintf(msg.reason, sizeof(msg.reason), "%.*s", WF_REASON_BYTES - 1, reason);
	wf_registry_failed_encode(&msg, &self->lane->msg);
	if (!wf_send(self->link.conn, &self->lane->msg, 0)) {
		return false;
	}
	self->reporting.border = 0;
	wf_snapshots_order(self->snapshots, 0, 0);
	return true;
}

/* The next tables of the part of lane reporting->lane. */
static bool
send_part(struct wf_delegate *self)
{
	const struct wf_lane *lane = self->lane;
	const uint32_t pserver = lane->admission.first.pserver_idx;
	const uint32_t dense = lane->opts.lane_count;
	const uint32_t sparse = wf_snapshots_lane_count(self->snapshots) - dense;
	struct reporting *reporting = &self->reporting;
	const struct wf_snapshot_outcome *outcome = &reporting->outcome;
	struct wf_registry_part *part = &reporting->part;
	bool is_dense = reporting->lane < dense;
	uint32_t count = outcome->table_count - reporting->table;
	count = count < WF_REGISTRY_ROWS_MAX ? count : WF_REGISTRY_ROWS_MAX;
	part->epoch = self->beginning.base.epoch;
	part->border = reporting->border;
	part->bytes = outcome->sum.bytes;
	part->crc = outcome->sum.crc;
	part->service = is_dense ? WF_SERVICE_DENSE : WF_SERVICE_SPARSE;
	part->lane = is_dense ? pserver * dense + reporting->lane
			      : pserver * sparse + reporting->lane - dense;
	part->table_count = (uint16_t)outcome->table_count;
	part->first = (uint16_t)reporting->table;
	part->count = (uint16_t)count;
	memcpy(part->rows, outcome->rows + reporting->table, count * sizeof(*part->rows));
	wf_registry_part_encode(part, &self->lane->msg);
	if (!wf_send(self->link.conn, &self->lane->msg, 0)) {
		return false;
	}
	reporting->table += count;
	return true;
}

/* Whether all lanes have reported; the first failure. */
static bool
gather(struct wf_delegate *self, struct wf_error *why)
{
	struct reporting *reporting = &self->reporting;
	const uint32_t lanes = wf_snapshots_lane_count(self->snapshots);
	bool all = true;
	*why = (struct wf_error){0};
	for (uint32_t i = 0; i < lanes && all; i++) {
		struct wf_snapshot_outcome *outcome = &reporting->outcome;
		all = wf_snapshots_outcome(self->snapshots, i, reporting->border, outcome);
		if (all && outcome->error.status != WEFT_OK && why->status == WEFT_OK) {
			*why = outcome->error;
		}
	}
	return all;
}

/* Sends the parts when all lanes have reported. */
static uint64_t
report(struct wf_delegate *self, uint64_t now_ns)
{
	struct reporting *reporting = &self->reporting;
	struct wf_error why;
	uint64_t highest;
	bool all_in = wf_snapshots_highest(self->snapshots, &highest);
	if (!all_in && now_ns < self->lane->admission.start_ns + WF_REGISTRY_EARLY_NS) {
		return now_ns + WF_REGISTRY_RETRY_NS;
	}
	if (!all_in) {
		return send_failed(self, "some of its lanes have no job; give "
					 "--ports_num_for_sparse=0 if the job has no tables")
			       ? WF_NEVER
			       : now_ns + WF_REGISTRY_RETRY_NS;
	}
	if (!gather(self, &why)) {
		return now_ns + LOOK_NS;
	}
	if (why.status != WEFT_OK) {
		return send_failed(self, why.text) ? WF_NEVER : now_ns + WF_REGISTRY_RETRY_NS;
	}
	while (reporting->lane < wf_snapshots_lane_count(self->snapshots)) {
		bool is_here = wf_snapshots_outcome(self->snapshots, reporting->lane,
						    reporting->border, &reporting->outcome);
		if (!is_here || !send_part(self)) {
			return now_ns + WF_REGISTRY_RETRY_NS;
		}
		if (reporting->table == reporting->outcome.table_count) {
			reporting->table = 0;
			reporting->lane++;
		}
	}
	reporting->border = 0;
	wf_snapshots_order(self->snapshots, 0, 0);
	return WF_NEVER;
}

/* At the end of a job the registrar may be done a moment before this pserver. */
static void
warn_lost(struct wf_delegate *self, uint64_t now_ns)
{
	struct link *link = &self->link;
	if (link->lost_ns != 0 && now_ns >= link->lost_ns + WF_REGISTRY_LOST_NS) {
		link->lost_ns = 0;
		wf_log(self->lane->env, WF_LOG_WARN,
		       "the registrar cannot be reached, and %s before it is back: %s",
		       self->snapshots != NULL ? "no snapshot ends" : "no trainer is dropped",
		       link->why);
	}
}

/* ---- members ---- */

/* The answer to MEMBER, when all lanes have it. False: the transport accepts no more. */
static bool
send_leave_answer(struct wf_delegate *self)
{
	struct leaving *leaving = &self->leaving;
	struct wf_registry_stands stands;
	struct wf_msg *msg = &self->lane->msg;
	if (!leaving->answer_due || !wf_members_answered(self->lane->opts.members, &stands)) {
		return true;
	}
	if (leaving->has_border) {
		wf_registry_settled_encode(&(struct wf_registry_settled){.change = leaving->change},
					   msg);
	} else {
		wf_registry_stands_encode(&stands, msg);
	}
	leaving->answer_due = !wf_send(self->link.conn, msg, 0);
	return !leaving->answer_due;
}

static void
encode_news(const struct wf_member_news *news, struct wf_msg *out)
{
	union {
		struct wf_registry_lost lost;
		struct wf_registry_comes comes;
	} msg;
	if (news->what == WF_MEMBER_COMES) {
		wf_members_fill_comes(news, &msg.comes);
		wf_registry_comes_encode(&msg.comes, out);
	} else {
		wf_members_fill_lost(news, &msg.lost);
		wf_registry_lost_encode(&msg.lost, out);
	}
}

/* What lanes here know of trainers, once on each connection, and answers. */
static uint64_t
look_at_members(struct wf_delegate *self, uint64_t now_ns)
{
	struct wf_members *members = self->lane->opts.members;
	struct wf_member_news news;
	while (members != NULL && wf_members_next_asked(members, self->link.path, &news)) {
		encode_news(&news, &self->lane->msg);
		if (!wf_send(self->link.conn, &self->lane->msg, 0)) {
			wf_members_ask_again(members, news.trainer);
			return now_ns + WF_REGISTRY_RETRY_NS;
		}
	}
	if (members == NULL || !self->leaving.answer_due) {
		return WF_NEVER;
	}
	return send_leave_answer(self) && !self->leaving.answer_due ? WF_NEVER : now_ns + LOOK_NS;
}

static uint64_t
look_at_snapshots(struct wf_delegate *self, uint64_t now_ns)
{
	struct beginning *beginning = &self->beginning;
	if ((beginning->loaded_due || beginning->bad_due) && !send_answer(self)) {
		return now_ns + WF_REGISTRY_RETRY_NS;
	}
	if (beginning->run_due && now_ns >= beginning->record_ns) {
		look_for_record(self, now_ns);
		return beginning->run_due ? beginning->record_ns : 0;
	}
	return beginning->serves && self->reporting.border != 0 ? report(self, now_ns) : WF_NEVER;
}

uint64_t
wf_delegate_look(struct wf_delegate *self, uint64_t now_ns)
{
	struct link *link = &self->link;
	warn_lost(self, now_ns);
	const struct beginning *beginning = &self->beginning;
	if (!beginning->serves && self->snapshots != NULL) {
		check_deadline(self, now_ns);
	}
	if (link->conn == NULL && now_ns >= link->retry_ns) {
		connect_to_registrar(self, now_ns);
	}
	if (!link->is_up) {
		return link->conn == NULL ? link->retry_ns : WF_NEVER;
	}
	if (link->join_due) {
		link->join_due = !send_join(self);
	}
	if (link->join_due) {
		return now_ns + WF_REGISTRY_RETRY_NS;
	}
	uint64_t members_ns = look_at_members(self, now_ns);
	uint64_t snapshots_ns =
		self->snapshots != NULL ? look_at_snapshots(self, now_ns) : WF_NEVER;
	return members_ns < snapshots_ns ? members_ns : snapshots_ns;
}

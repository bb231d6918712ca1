/* SPDX-License-Identifier: Apache-2.0 */
/* server: the lanes of one pserver process, a thread each. Lanes share nothing but the control
 * block here: whether to stop, and the first cause of a failed job. Each looks at it whenever it
 * looks at the clock, so at least ten times a second. */
#include "pserver/server.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/pin.h"
#include "base/signals.h"
#include "base/spin.h"
#include "pserver/lane.h"
#include "pserver/members.h"
#include "pserver/registrar.h"
#include "pserver/snapshot.h"
#include "pserver/trace.h"
#include "pserver/view.h"
#include "transport/address.h"
#include "transport/verbs/verbs_settings.h"
#include "wire/job.h"

struct lane_thread {
	struct wf_server *server;
	struct wf_lane *lane;
	uint32_t idx;
	pthread_t thread;
	bool started;
	uint32_t causes_seen;
	uint64_t life;     /* jobs, or lives of one, that the lane has behind it */
	bool needs_all;    /* this lane is counted in the server's needs_all_count */
	bool told;         /* the cause of this lane's job is known to the server */
	bool over;         /* run to its end: once, or stopped */
	enum wf_rest rest; /* inline lanes: the result of the last arm */
};

struct wf_server {
	struct wf_env *env;
	struct wf_server_opts opts;
	struct wf_pin *pin;
	uint64_t incarnation;
	struct lane_thread *lane; /* [lane_count]: dense ones, then sparse ones */
	uint32_t lane_count;
	struct wf_snapshots *snapshots; /* NULL: none are taken */
	struct wf_views *views;
	struct wf_members *members; /* NULL: a lost trainer ends the job */
	struct wf_traces *traces;

	/* Control. */
	/* 1 + the signal, or 1. Any: store release; lanes: load acquire; S1. */
	_Atomic uint32_t stop;
	_Atomic uint64_t stop_job_ns; /* when a stop ends a running job; written before `stop` */
	/* Lanes whose job has ended well, with `once`. Lanes: add relaxed, load relaxed; carries no
	 * data. */
	_Atomic uint32_t finished_count;
	/* When a lane last had a job; at first, when it began to serve. Lanes: store relaxed, load
	 * relaxed; carries no data. */
	_Atomic uint64_t used_ns;
	/* A lane has had a job. The same. */
	_Atomic uint32_t begun;
	/* A job has ended, and does not go back. The same. */
	_Atomic uint32_t has_ended;
	/* Lanes whose own part of their job needs every trainer. Lanes: add relaxed, load relaxed;
	 * carries no data. */
	_Atomic uint32_t needs_all_count;
	_Atomic uint32_t cause_count; /* store release under lock; lanes: load acquire */
	pthread_mutex_t lock;         /* guards cause, failed */
	struct wf_lane_cause cause;   /* the last job's first cause */
	uint64_t cause_life;          /* the life that it has ended */
	bool failed;
	bool ended_job; /* the cause is that this pserver was stopped; under the lock */
};

/* Where a lane looks for a state to begin with. */
static const struct wf_lane_source *
source_of(const struct wf_server *server, bool sparse)
{
	if (server->snapshots != NULL) {
		return &wf_snapshot_lane_source;
	}
	return sparse ? NULL : server->opts.source; /* of tensors */
}

static enum weft_status
open_lane(struct wf_server *server, uint32_t idx)
{
	const struct wf_server_opts *opts = &server->opts;
	bool sparse = idx >= opts->session.ports_num;
	struct wf_lane_opts lane = {
		.env = server->env,
		.network = &opts->values,
		.listen = opts->listen,
		.idx = idx,
		.service = sparse ? opts->sparse : NULL,
		.service_idx = sparse ? idx - opts->session.ports_num : idx,
		.lane_count = sparse ? opts->session.ports_num_for_sparse : opts->session.ports_num,
		.has_tables = server->lane_count > opts->session.ports_num,
		.num_gradient_servers = opts->session.num_gradient_servers,
		.max_trainers = opts->max_trainers,
		.newcomer_max = opts->newcomer_max,
		.numa_node = wf_pin_place_of(server->pin, idx).numa_node,
		.incarnation = server->incarnation,
		.slot_count = opts->slot_count > 0 ? opts->slot_count : WF_SERVER_SLOT_COUNT,
		.slot_count_max =
			opts->slot_count > 0 ? opts->slot_count : WF_SERVER_SLOT_COUNT_MAX,
		.slot_bytes_max = opts->slot_bytes_max,
		.max_shard_bytes = opts->max_shard_bytes,
		.inbox_bytes = opts->inbox_bytes,
		.snapshots = server->snapshots,
		.views = server->views,
		.members = server->members,
		.registrar = opts->snapshots.registrar != NULL ? opts->snapshots.registrar : "",
		.traces = server->traces,
		.source = source_of(server, sparse),
		.reconnect_timeout_ns = opts->session.reconnect_timeout_ns,
		.stall_timeout_ns = opts->session.stall_timeout_ns,
		.connect_timeout_ns = opts->session.connect_timeout_ns,
		.rejoin_timeout_ns = opts->snapshots.goes_back ? opts->values.rejoin_timeout : 0,
		.spin_ns = wf_spin_setting(opts->session.spin_ns, server->lane_count),
		.stats_period_ns = opts->session.stats_period_ns,
	};
	if (lane.listen.port != 0) {
		lane.listen.port = (uint16_t)(lane.listen.port + idx);
	}
	server->lane[idx].server = server;
	server->lane[idx].idx = idx;
	return wf_lane_create(&lane, &server->lane[idx].lane);
}

static enum weft_status
open_snapshots(struct wf_server *server)
{
	const struct wf_snapshots_opts *opts = &server->opts.snapshots;
	bool has_dir = opts->dir != NULL && opts->dir[0] != '\0';
	if (!has_dir && opts->goes_back) {
		return wf_fail(WEFT_INVALID, "--on_trainer_death=wait: a job goes back to a "
					     "snapshot; give --snapshot_dir, too");
	}
	if (!has_dir) {
		return WEFT_OK;
	}
	enum weft_status st =
		wf_snapshots_open(server->env, opts, server->lane_count, &server->snapshots);
	return st == WEFT_OK ? wf_registrar_check_start(server->env, server->snapshots) : st;
}

/* What lets a job go on that has lost a trainer. */
static enum weft_status
open_members(struct wf_server *server)
{
	const struct wf_server_opts *opts = &server->opts;
	const uint32_t trainers = opts->session.num_gradient_servers;
	if (opts->min_trainers == 0) {
		return WEFT_OK;
	}
	if (opts->snapshots.goes_back) {
		return wf_fail(WEFT_INVALID, "a job that has lost a trainer goes on or goes back, "
					     "not both");
	}
	if (trainers != 0 && opts->min_trainers > trainers) {
		return wf_fail(WEFT_INVALID,
			       "--min_trainers=%u: the job has %u trainers (num_gradient_servers)",
			       opts->min_trainers, trainers);
	}
	return wf_members_open(server->env, server->lane_count, opts->min_trainers,
			       &server->members);
}

static enum weft_status
plan_places(struct wf_server *server)
{
	const struct wf_server_opts *opts = &server->opts;
	const struct wf_seat_process seats = {.dense = opts->session.ports_num,
					      .sparse =
						      server->lane_count - opts->session.ports_num};
	struct wf_verbs_settings verbs;
	enum weft_status st = wf_verbs_settings_parse(opts->session.verbs, &verbs);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_seat_ask ask = {.process = &seats,
					.process_count = 1,
					.device = verbs.device[0] != '\0' ? verbs.device : NULL,
					.port = verbs.port};
	return wf_pin_create_for(opts->env, opts->session.pin, &ask, &server->pin);
}

/* What whoever watches learns of the process. */
static void
describe_views(struct wf_server *server)
{
	struct wf_watch_record record = {.kind = WF_WATCH_PSERVER};
	uint64_t now_ns = wf_now_ns(server->env);
	record.value[WF_PSERVER_START_AT_NS] = now_ns;
	record.value[WF_PSERVER_PID] = (uint64_t)getpid();
	record.value[WF_PSERVER_DENSE_LANES] = server->opts.session.ports_num;
	record.value[WF_PSERVER_SPARSE_LANES] = server->lane_count - server->opts.session.ports_num;
	record.value[WF_PSERVER_PORT] = wf_server_port(server, 0);
	record.value[WF_PSERVER_HAS_SNAPSHOTS] = server->snapshots != NULL;
	(void)snprintf(record.text[WF_PSERVER_VERSION], WF_REASON_BYTES, "%s",
		       server->opts.version != NULL ? server->opts.version : "");
	(void)gethostname(record.text[WF_PSERVER_HOST], WF_MEMBER_NAME_BYTES - 1);
	wf_views_describe(server->views, &record);
	wf_views_want(server->views, server->opts.is_watched ? WF_NEVER : 0);
}

enum weft_status
wf_server_create(const struct wf_server_opts *opts, struct wf_server **out)
{
	enum weft_status st = wf_server_opts_check(opts);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_server *server = wf_zalloc(opts->env, sizeof(*server));
	if (server == NULL) {
		return wf_fail(WEFT_NOMEM, "pserver: %zu bytes", sizeof(*server));
	}
	server->env = opts->env;
	server->opts = *opts;
	server->incarnation = wf_random(opts->env) | 1;
	(void)pthread_mutex_init(&server->lock, NULL);
	server->lane_count = opts->session.ports_num +
			     (opts->sparse != NULL ? opts->session.ports_num_for_sparse : 0);
	server->lane = wf_zalloc_array(opts->env, server->lane_count, sizeof(*server->lane));
	if (server->lane == NULL) {
		st = wf_fail(WEFT_NOMEM, "pserver: %u lanes", server->lane_count);
		goto fail;
	}
	st = open_snapshots(server);
	st = st == WEFT_OK ? open_members(server) : st;
	st = st == WEFT_OK ? plan_places(server) : st;
	st = st == WEFT_OK ? wf_views_open(server->env, server->lane_count, &server->views) : st;
	st = st == WEFT_OK ? wf_traces_open(server->env, server->lane_count, &server->traces) : st;
	for (uint32_t i = 0; i < server->lane_count && st == WEFT_OK; i++) {
		st = open_lane(server, i);
	}
	if (st != WEFT_OK) {
		goto fail;
	}
	describe_views(server);
	*out = server;
	return WEFT_OK;
fail:
	wf_server_destroy(server);
	return st;
}

void
wf_server_destroy(struct wf_server *server)
{
	if (server == NULL) {
		return;
	}
	for (uint32_t i = 0; server->lane != NULL && i < server->lane_count; i++) {
		WF_ASSERT(!server->lane[i].started);
		wf_lane_destroy(server->lane[i].lane);
	}
	wf_snapshots_close(server->snapshots);
	wf_views_close(server->views);
	wf_members_close(server->members);
	wf_traces_close(server->traces);
	wf_free(server->env, server->lane, server->lane_count * sizeof(*server->lane));
	wf_pin_destroy(server->pin);
	(void)pthread_mutex_destroy(&server->lock);
	wf_free(server->env, server, sizeof(*server));
}

uint32_t
wf_server_lane_count(const struct wf_server *server)
{
	return server->lane_count;
}

uint16_t
wf_server_port(const struct wf_server *server, uint32_t lane_idx)
{
	WF_ASSERT(lane_idx < server->lane_count);
	return wf_lane_port(server->lane[lane_idx].lane);
}

const struct wf_stats *
wf_server_stats(const struct wf_server *server, uint32_t lane_idx)
{
	WF_ASSERT(lane_idx < server->lane_count);
	return wf_lane_stats(server->lane[lane_idx].lane);
}

struct wf_views *
wf_server_views(const struct wf_server *server)
{
	return server->views;
}

/* Of a host's name, too: in many systems that of the host itself is 127.0.1.1. */
static bool
is_loopback(const char *name)
{
	struct wf_addresses here;
	if (wf_addresses_here(name, &here) != WEFT_OK) {
		return false; /* it was known a moment ago */
	}
	for (unsigned i = 0; i < here.count; i++) {
		if (!wf_address_is_loopback(&here.at[i])) {
			return false;
		}
	}
	return true;
}

/* That only this host can reach it, with the address that a name stands for; "" if others can. */
static void
describe_loopback(const struct wf_server *server, char *out, size_t bytes)
{
	struct wf_host at = server->opts.listen;
	struct wf_addresses here;
	char name[WF_HOST_BYTES] = "";
	out[0] = '\0';
	if (!is_loopback(at.name)) {
		return;
	}
	at.port = wf_server_port(server, 0);
	if (!wf_addresses_numeric(&at, &here) && wf_addresses_here(at.name, &here) == WEFT_OK) {
		wf_address_set_port(&here.at[0], at.port);
		wf_address_name(&at, &here.at[0], name, sizeof(name));
	}
	(void)snprintf(out, bytes,
		       "%s%sonly this host can reach it; --listen=ADDR opens it to others\n", name,
		       name[0] != '\0' ? ": " : "");
}

void
wf_server_describe(const struct wf_server *server, char *out, size_t bytes)
{
	const struct wf_server_opts *opts = &server->opts;
	const char *name = opts->listen.name;
	char loopback[WF_HOST_BYTES + 80];
	const uint32_t trainer_count = opts->session.num_gradient_servers;
	const uint32_t dense = opts->session.ports_num;
	const uint32_t sparse = opts->session.ports_num_for_sparse;
	char trainers[48];
	(void)snprintf(trainers, sizeof(trainers), "as many trainers as they say, up to %u",
		       opts->max_trainers);
	if (trainer_count != 0) {
		(void)snprintf(trainers, sizeof(trainers), "%u %s", trainer_count,
			       trainer_count == 1 ? "trainer" : "trainers");
	}
	char beside[64] = "";
	if (sparse > 0) {
		(void)snprintf(beside, sizeof(beside), "%s%u%s", opts->sparse != NULL ? ", " : "; ",
			       sparse,
			       opts->sparse != NULL ? " sparse" : " more ports are kept free");
	}
	describe_loopback(server, loopback, sizeof(loopback));
	(void)snprintf(out, bytes,
		       "pserver listens on %s, ports %u to %u: %u dense %s%s\n"
		       "%s"
		       "it serves %s, over transport %s, with pin %s",
		       name, wf_server_port(server, 0),
		       wf_server_port(server, server->lane_count - 1), dense,
		       dense == 1 ? "lane" : "lanes", beside, loopback, trainers,
		       opts->session.transport, opts->session.pin);
}

/* Whoever reaches the ports of a pserver without a secret is a trainer if it says so. */
static void
warn_open(const struct wf_server *server)
{
	const struct wf_session_values *values = &server->opts.values;
	bool has_secret = values->secret_file != NULL && values->secret_file[0] != '\0';
	if (has_secret || is_loopback(server->opts.listen.name)) {
		return;
	}
	wf_log(server->env, WF_LOG_WARN,
	       "anyone who reaches %s port %u can read and change the parameters of the job: "
	       "there is no secret. Give pservers and trainers the same --secret_file=FILE (weft "
	       "launch --hosts makes one), or close these ports to others",
	       server->opts.listen.name, wf_server_port(server, 0));
}

/* Whether the job that ended so has a next life, in this process. */
static bool
goes_back(const struct wf_server *server, const struct wf_lane_cause *cause)
{
	return cause->status == WEFT_ROLLED_BACK && server->opts.snapshots.goes_back &&
	       atomic_load_explicit(&server->stop, memory_order_relaxed) == 0;
}

/* The first lane whose job failed passes the cause to the others. */
static void
publish_cause(struct wf_server *server, uint64_t life, const struct wf_lane_cause *cause,
	      bool stopped)
{
	if (!goes_back(server, cause)) {
		atomic_store_explicit(&server->has_ended, 1, memory_order_relaxed);
	}
	(void)pthread_mutex_lock(&server->lock);
	/* Some lanes may have the next life already when others notice the end of the last one. */
	if (!server->failed || life > server->cause_life) {
		server->failed = true;
		server->cause = *cause;
		server->cause_life = life;
		server->ended_job = stopped;
		atomic_fetch_add_explicit(&server->cause_count, 1, memory_order_release); /* C1 */
	}
	(void)pthread_mutex_unlock(&server->lock);
}

static void
copy_cause(struct lane_thread *self)
{
	struct wf_server *server = self->server;
	uint32_t count = atomic_load_explicit(&server->cause_count, memory_order_acquire); /* C1 */
	if (count == self->causes_seen) {
		return;
	}
	self->causes_seen = count;
	(void)pthread_mutex_lock(&server->lock);
	struct wf_lane_cause cause = server->cause;
	uint64_t life = server->cause_life;
	(void)pthread_mutex_unlock(&server->lock);
	if (life < self->life) {
		return; /* of a life that the lane has behind it */
	}
	wf_lane_abort(self->lane, &cause); /* a no-op for a lane without a job */
	self->life = wf_lane_job_state(self->lane) == WF_LANE_IDLE ? life + 1 : life;
	/* Also if it has failed by itself meanwhile: what it would add is of the same life. */
	self->told = self->told || wf_lane_job_state(self->lane) == WF_LANE_FAILED;
}

/* The cause, as a message continues after the name. */
static void
describe_stop(uint32_t stop, char *out, size_t bytes)
{
	char name[WF_SIGNAL_NAME_BYTES];
	if (stop == 1) {
		(void)snprintf(out, bytes, "was asked to stop");
		return;
	}
	wf_signal_name((int)stop - 1, name);
	(void)snprintf(out, bytes, "was stopped by %s", name);
}

static void
stop_job(struct lane_thread *self, uint32_t stop)
{
	struct wf_server *server = self->server;
	char host[WF_MEMBER_NAME_BYTES] = "unknown";
	char where[128];
	char how[64];
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(where, sizeof(where), "host %s, pid %u, port %u", host, (unsigned)getpid(),
		       wf_lane_port(server->lane[0].lane));
	describe_stop(stop, how, sizeof(how));
	if (wf_lane_stop(self->lane, where, how)) {
		publish_cause(server, self->life, wf_lane_cause(self->lane), true);
		self->told = true;
	}
}

/* With `once`: whether no trainer has connected to any lane, and none will be waited for any
 * longer. The expected trainers may have ended with an error before they got here, and cannot
 * report it. */
static bool
is_forsaken(const struct wf_server *server)
{
	const struct wf_server_opts *opts = &server->opts;
	bool has_begun = atomic_load_explicit(&server->begun, memory_order_relaxed) != 0;
	uint64_t used_ns = atomic_load_explicit(&server->used_ns, memory_order_relaxed);
	uint64_t limit_ns =
		has_begun ? opts->values.rejoin_timeout : opts->session.connect_timeout_ns;
	return opts->once && (!has_begun || opts->snapshots.goes_back) &&
	       wf_now_ns(server->env) >= used_ns + limit_ns;
}

/* The job was to go back, and none of its trainers has come. */
static void
describe_forsaken_life(const struct wf_server *server, char *out, size_t bytes)
{
	(void)snprintf(out, bytes,
		       "no trainer has come back to the pserver on %.100s port %u within %.0f s, "
		       "after the job had lost a member (--rejoin_timeout)",
		       server->opts.listen.name, wf_lane_port(server->lane[0].lane),
		       (double)server->opts.values.rejoin_timeout / 1e9);
}

static void
give_up(struct wf_server *server)
{
	struct wf_lane_cause cause = {.status = WEFT_TIMEOUT};
	(void)snprintf(cause.who, sizeof(cause.who), "pserver");
	if (atomic_load_explicit(&server->begun, memory_order_relaxed) != 0) {
		describe_forsaken_life(server, cause.reason, sizeof(cause.reason));
		publish_cause(server, UINT64_MAX, &cause, false);
		return;
	}
	(void)snprintf(cause.reason, sizeof(cause.reason),
		       "no trainer came to the pserver on %.100s port %u within %.0f s; give it a "
		       "longer connect_timeout, or start it without once",
		       server->opts.listen.name, wf_lane_port(server->lane[0].lane),
		       (double)server->opts.session.connect_timeout_ns / 1e9);
	publish_cause(server, UINT64_MAX, &cause, false);
}

/* Whether a lane has no job, and had none of its members here if one has ended elsewhere: a member
 * of a job is on all its lanes before the first step. */
static void
look_at_idle(struct lane_thread *self)
{
	struct wf_server *server = self->server;
	uint32_t finished = atomic_load_explicit(&server->finished_count, memory_order_relaxed);
	bool has_ended = atomic_load_explicit(&server->has_ended, memory_order_relaxed) != 0;
	bool ended_elsewhere = has_ended || finished > 0;
	bool forsaken = !ended_elsewhere && is_forsaken(server);
	if (forsaken) {
		give_up(server);
	}
	self->over = server->opts.once && (ended_elsewhere || forsaken);
}

/* Lane 0 knows when a job that goes back has really ended; until then the other lanes may get its
 * next life. */
static bool
awaits_first_lane(const struct lane_thread *self, enum wf_lane_job state)
{
	return self->server->opts.snapshots.goes_back && state == WF_LANE_FINISHED && self->idx > 0;
}

/* What the end of the lane's job means for the lane. */
static void
look_at_job(struct lane_thread *self)
{
	struct wf_server *server = self->server;
	enum wf_lane_job state = wf_lane_job_state(self->lane);
	uint32_t stop = atomic_load_explicit(&server->stop, memory_order_acquire); /* S1 */
	const struct wf_lane_cause *cause = wf_lane_cause(self->lane);
	if (state != WF_LANE_IDLE) {
		atomic_store_explicit(&server->begun, 1, memory_order_relaxed);
		atomic_store_explicit(&server->used_ns, wf_now_ns(server->env),
				      memory_order_relaxed);
	}
	if (cause->status != WEFT_OK && !self->told) {
		publish_cause(server, self->life, cause, false);
		self->told = true; /* once: another lane may have a new job by the next turn */
	}
	if (stop != 0 && state == WF_LANE_RUNNING &&
	    wf_now_ns(server->env) >=
		    atomic_load_explicit(&server->stop_job_ns, memory_order_relaxed)) {
		stop_job(self, stop);
	}
	if (state == WF_LANE_FINISHED || state == WF_LANE_FAILED) {
		bool has_next = !server->opts.once || goes_back(server, cause) ||
				awaits_first_lane(self, state);
		self->over = stop != 0 || !has_next;
		if (state == WF_LANE_FINISHED && self->over) {
			atomic_fetch_add_explicit(&server->finished_count, 1, memory_order_relaxed);
		}
		if (!self->over) {
			wf_log(server->env, WF_LOG_INFO,
			       server->opts.once ? "lane %u: waiting for the members of the job"
						 : "lane %u: the job is over; waiting for the next",
			       self->idx);
			wf_lane_reset(self->lane);
			self->told = false;
			self->life++;
		}
	} else if (state == WF_LANE_IDLE) {
		look_at_idle(self);
		self->over = self->over || stop != 0;
	}
}

/* A failed job's cause is dropped when the lane that continues has no job any more. */
static void
forget_cause(struct lane_thread *self)
{
	struct wf_server *server = self->server;
	if (wf_lane_job_state(self->lane) != WF_LANE_IDLE) {
		return;
	}
	(void)pthread_mutex_lock(&server->lock);
	server->failed = false;
	(void)pthread_mutex_unlock(&server->lock);
}

/* Lanes of tensors do not know what tables the job has beside them, nor these those. */
static void
share_needs(struct lane_thread *self)
{
	_Atomic uint32_t *count = &self->server->needs_all_count;
	bool needs_all = wf_lane_needs_all(self->lane);
	if (needs_all && !self->needs_all) {
		atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	} else if (!needs_all && self->needs_all) {
		atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
	}
	self->needs_all = needs_all;
	if (atomic_load_explicit(count, memory_order_relaxed) > 0) {
		wf_lane_on_needs_all(self->lane);
	}
}

/* Not inlined: most turns do not come here, and should be short. */
__attribute__((noinline)) static void
look_around(struct lane_thread *self)
{
	copy_cause(self);
	share_needs(self);
	enum wf_lane_job before = wf_lane_job_state(self->lane);
	look_at_job(self);
	if (before == WF_LANE_FAILED) {
		forget_cause(self);
	}
}

/* One turn without waiting; whether anything happened. */
static bool
turn(struct lane_thread *self)
{
	if (self->over) {
		return false;
	}
	bool busy = wf_lane_poll(self->lane);
	if (wf_lane_looked(self->lane)) {
		look_around(self);
	}
	return busy;
}

static void
run_lane(struct lane_thread *self)
{
	while (!self->over) {
		uint64_t deadline_ns;
		bool idle = wf_lane_advance(self->lane, &deadline_ns);
		if (wf_lane_looked(self->lane)) {
			look_around(self);
		}
		if (idle && !self->over) {
			wf_lane_wait(self->lane, deadline_ns);
			(void)turn(self); /* what ended the sleep */
		}
	}
}

static void *
lane_main(void *arg)
{
	struct lane_thread *self = arg;
	if (wf_pin_self(self->server->pin, self->idx) != WEFT_OK) {
		wf_log(self->server->env, WF_LOG_WARN, "lane %u is not pinned: %s", self->idx,
		       weft_last_error());
	} else if (wf_pin_place_of(self->server->pin, self->idx).cpu >= 0) {
		char place[128];
		wf_pin_describe(self->server->pin, self->idx, place, sizeof(place));
		wf_log(self->server->env, WF_LOG_INFO, "lane %u: %s", self->idx, place);
	}
	run_lane(self);
	return NULL;
}

/* One of several lanes that sleep together. False: it has work to do. */
static bool
arm(struct lane_thread *self, uint64_t *deadline_ns)
{
	uint64_t at_ns = WF_NEVER;
	self->rest = self->over ? WF_REST_NOW : wf_lane_arm(self->lane, &at_ns);
	*deadline_ns = at_ns < *deadline_ns ? at_ns : *deadline_ns;
	return self->rest != WF_REST_NOT;
}

static void
run_inline(struct wf_server *server)
{
	uint32_t count = server->lane_count;
	uint32_t over;
	do {
		bool busy = false;
		over = 0;
		uint64_t deadline = WF_NEVER;
		for (uint32_t i = 0; i < count; i++) {
			busy = turn(&server->lane[i]) || busy;
		}
		for (uint32_t i = 0; i < count && !busy; i++) {
			busy = !arm(&server->lane[i], &deadline);
		}
		for (uint32_t i = 0; i < count && !busy; i++) {
			struct lane_thread *self = &server->lane[i];
			busy = self->rest != WF_REST_NOW && turn(self);
		}
		for (uint32_t i = 0; i < count; i++) {
			over += server->lane[i].over ? 1 : 0;
		}
		if (!busy && over < count) {
			wf_wait(server->env, -1, deadline);
		}
	} while (over < count);
}

static enum weft_status
run_threads(struct wf_server *server)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < server->lane_count && st == WEFT_OK; i++) {
		struct lane_thread *self = &server->lane[i];
		int err = pthread_create(&self->thread, NULL, lane_main, self);
		if (err != 0) {
			st = wf_fail_errno(WEFT_NOMEM, err, "lane %u: no thread", i);
			wf_server_stop(server);
		}
		self->started = err == 0;
	}
	for (uint32_t i = 0; i < server->lane_count; i++) {
		if (server->lane[i].started) {
			(void)pthread_join(server->lane[i].thread, NULL);
			server->lane[i].started = false;
		}
	}
	return st;
}

enum weft_status
wf_server_run(struct wf_server *server)
{
	enum weft_status st = WEFT_OK;
	atomic_store_explicit(&server->used_ns, wf_now_ns(server->env), memory_order_relaxed);
	warn_open(server);
	if (server->opts.inline_lanes) {
		run_inline(server);
	} else {
		st = run_threads(server);
	}
	if (st != WEFT_OK) {
		server->ended_job = false; /* what it stopped for is not the reason for its end */
		return st;
	}
	/* A pserver that is stopped after its job failed by itself has reported the failure by
	 * then. */
	bool stopped = atomic_load_explicit(&server->stop, memory_order_relaxed) != 0;
	bool counts = !stopped || server->opts.once || server->ended_job;
	if (server->failed && counts) {
		return wf_fail(server->cause.status, "%s", server->cause.reason);
	}
	return WEFT_OK;
}

void
wf_server_stop_by(struct wf_server *server, int signal_number)
{
	uint64_t grace_ns = signal_number == SIGTERM ? server->opts.stop_grace_ns : 0;
	if (grace_ns > 0) {
		atomic_store_explicit(&server->stop_job_ns, wf_now_ns(server->env) + grace_ns,
				      memory_order_relaxed);
	}
	atomic_store_explicit(&server->stop, 1 + (uint32_t)signal_number,
			      memory_order_release); /* S1: look_at_job */
}

bool
wf_server_ended_job(const struct wf_server *server)
{
	return server->failed && server->ended_job;
}

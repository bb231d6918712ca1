/* SPDX-License-Identifier: Apache-2.0 */
/* session: options, start and end of a session. Thread: the owner's. */
#include "trainer/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "base/role.h"
#include "base/secret.h"
#include "kernels/kernels.h"
#include "kernels/optimizer.h"
#include "trainer/session/gate.h"
#include "trainer/session/rejoin.h"
#include "transport/address.h"
#include "transport/verbs/verbs_settings.h"
#include "weft/members.h"
#include "weft/restart.h"

#define PSERVERS_MAX 1024u
#define VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define VERSION_TEXT(a, b, c) VERSION_TEXT_(a, b, c)

const char *
weft_version(void)
{
	return VERSION_TEXT(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
}

void
weft_session_opts_init_sized(struct weft_session_opts *opts, size_t struct_bytes)
{
	struct wf_session_values defaults;
	wf_session_defaults(&defaults);
	wf_opts_give(opts, struct_bytes, &defaults.opts, sizeof(defaults.opts));
}

#undef weft_session_opts_init /* also a function, for languages without macros */

void
weft_session_opts_init(struct weft_session_opts *opts)
{
	weft_session_opts_init_sized(opts, sizeof(*opts));
}

static char *
copy_string(struct wf_env *env, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = wf_zalloc_array(env, 1, bytes);
	if (copy != NULL) {
		memcpy(copy, text, bytes);
	}
	return copy;
}

/* Copy the options, and the strings they point at. */
static enum weft_status
copy_opts(struct weft_session *session, const struct wf_session_values *values)
{
	struct wf_session_values *own = &session->core.values;
	*own = *values;
	own->opts.settings = NULL; /* lent for the call */
	const char **text[WF_SETTING_TEXTS_MAX];
	unsigned count = wf_session_texts(own, text);
	for (unsigned i = 0; i < count; i++) {
		session->strings[i] =
			copy_string(session->core.end.env, *text[i] != NULL ? *text[i] : "");
		if (session->strings[i] == NULL) {
			return wf_fail(WEFT_NOMEM, "session: no memory for options");
		}
		*text[i] = session->strings[i];
	}
	return WEFT_OK;
}

/* The caller's struct, overridden by what was set by name, and defaults for the rest. */
static enum weft_status
read_opts(const struct weft_session_opts *given, struct wf_session_values *out)
{
	wf_session_defaults(out);
	enum weft_status st =
		wf_opts_read("weft_session_opts", given, offsetof(struct weft_session_opts, port),
			     &out->opts, sizeof(out->opts));
	return st == WEFT_OK ? wf_settings_apply(out->opts.settings, WEFT_SETTINGS_SESSION, out)
			     : st;
}

/* The transport reads it when the session is sealed; a file that is none is refused at once. */
static enum weft_status
check_secret(const char *file)
{
	if (file == NULL || file[0] == '\0') {
		return WEFT_OK;
	}
	struct wf_secret *secret = NULL;
	enum weft_status st = wf_secret_open(file, &secret);
	wf_secret_close(secret);
	return st;
}

static enum weft_status
check_opts(const struct wf_session_values *values)
{
	const struct weft_session_opts *opts = &values->opts;
	enum weft_status st = wf_settings_check(WEFT_SETTINGS_SESSION, values);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_session_place_check(opts);
	if (st == WEFT_OK) {
		st = wf_session_rules_check(values);
	}
	if (st == WEFT_OK) {
		st = wf_greeting_check(opts);
	}
	struct wf_verbs_settings unused;
	st = st == WEFT_OK ? wf_verbs_settings_parse(opts->verbs, &unused) : st;
	return st == WEFT_OK ? check_secret(values->secret_file) : st;
}

/* Lane i of a pserver listens on its port + i. */
static enum weft_status
check_ports(const struct weft_session *session, unsigned pserver_count)
{
	uint32_t sparse = session->core.opts.ports_num_for_sparse;
	uint32_t lanes = session->core.opts.ports_num + sparse;
	for (unsigned i = 0; i < pserver_count; i++) {
		const struct wf_host *host = &session->pserver[i];
		if (host->port == 0 || host->port + lanes - 1 > UINT16_MAX) {
			return wf_fail(WEFT_INVALID,
				       "pserver %u: port %u with ports_num %u and "
				       "ports_num_for_sparse %u is outside 1 to 65,535; give it "
				       "another port",
				       i, host->port, lanes - sparse, sparse);
		}
	}
	return WEFT_OK;
}

static enum weft_status
fill_job(struct weft_session *session)
{
	const struct weft_session_opts *opts = &session->core.opts;
	struct wf_job *job = &session->core.job;
	unsigned count = 0;
	session->pserver =
		wf_zalloc_array(session->core.end.env, PSERVERS_MAX, sizeof(*session->pserver));
	if (session->pserver == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for the list of pservers");
	}
	bool here = strcmp(opts->pservers, WF_LOOPBACK) == 0; /* by default, mostly */
	const char *pservers = here ? wf_address_loopback() : opts->pservers;
	enum weft_status st =
		wf_host_list_parse(pservers, opts->port, session->pserver, PSERVERS_MAX, &count);
	if (st != WEFT_OK) {
		return st;
	}
	st = check_ports(session, count);
	if (st != WEFT_OK) {
		return st;
	}
	*job = (struct wf_job){.values = session->core.values, .pserver_count = count};
	wf_session_settle(&job->set);
	struct wf_optimizer_opts optimizer;
	st = wf_optimizer_read(&opts->optimizer, &optimizer);
	if (st == WEFT_OK) {
		job->set.optimizer = optimizer.set;
		job->method = optimizer.method;
	}
	return st;
}

/* What the bits of a run depend on besides the job. */
static uint64_t
numerics_of(const struct weft_session *session)
{
	char text[512];
	(void)snprintf(text, sizeof(text), "weft %s, %.400s", weft_version(),
		       session->core.opts.numerics);
	return wf_digest_of(text, strlen(text));
}

/* Frees what weft_session_seal allocated, also if it failed half way. */
static void
release_arrays(struct weft_session *session, bool keep)
{
	struct wf_env *env = session->core.end.env;
	struct wf_core *core = &session->core;
	wf_memory_close(core, keep);
	wf_local_close(session);
	wf_placement_fini(env, &core->placement);
}

static void
free_session(struct weft_session *session)
{
	struct wf_env *env = session->core.end.env;
	struct wf_core *core = &session->core;
	wf_progress_close(session);
	if (session->core_open) {
		wf_core_close(core);
	}
	if (core->service.ops != NULL) {
		core->service.ops->close(session);
	}
	if (session->past.close != NULL) {
		session->past.close(session->past.state);
	}
	release_arrays(session, core->opts.keep_arrays != 0);
	for (uint32_t i = 0; i < wf_session_tensor_count(session); i++) {
		wf_free(env, session->tensor[i], sizeof(*session->tensor[i]));
	}
	wf_free(env, core->changes.change, core->changes.capacity * sizeof(*core->changes.change));
	wf_free(env, session->tensor, session->tensor_capacity * sizeof(struct weft_tensor *));
	wf_free(env, core->job.tensor, session->tensor_capacity * sizeof(*core->job.tensor));
	wf_names_fini(env, &session->names);
	wf_free(env, session->pserver, PSERVERS_MAX * sizeof(*session->pserver));
	for (size_t i = 0; i < WF_ARRAY_COUNT(session->strings); i++) {
		char *text = session->strings[i];
		wf_free(env, text, text != NULL ? strlen(text) + 1 : 0);
	}
	bool own_env = session->own_env;
	wf_free(env, session, sizeof(*session));
	if (own_env) {
		wf_env_system_destroy(env);
	}
}

/* The place of the progress thread. */
static enum weft_status
plan_place(struct weft_session *session)
{
	const struct weft_session_opts *opts = &session->core.opts;
	const struct wf_seat_process seats = {.progress = 1};
	struct wf_verbs_settings verbs;
	enum weft_status st = wf_verbs_settings_parse(opts->verbs, &verbs);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_seat_ask ask = {.process = &seats,
					.process_count = 1,
					.device = verbs.device[0] != '\0' ? verbs.device : NULL,
					.port = verbs.port};
	return wf_pin_create_for(session->core.end.env, opts->pin, &ask, &session->progress.pin);
}

enum weft_status
weft_session_open(const struct weft_session_opts *given, struct weft_session **out)
{
	struct wf_session_values values;
	enum weft_status st = read_opts(given, &values);
	if (st == WEFT_OK) {
		st = check_opts(&values);
	}
	if (st != WEFT_OK) {
		return st;
	}
	wf_role_name_process("trainer");
	struct wf_env *env = wf_settings_env(values.opts.settings);
	bool own_env = env == NULL;
	if (own_env) {
		st = wf_env_system_create(WF_LOG_WARN, 2, &env);
	}
	if (st != WEFT_OK) {
		return st;
	}
	struct weft_session *session = wf_zalloc(env, sizeof(*session));
	if (session == NULL) {
		if (own_env) {
			wf_env_system_destroy(env);
		}
		return wf_fail(WEFT_NOMEM, "session: %zu bytes", sizeof(*session));
	}
	session->own_env = own_env;
	session->gate.forks = wf_forked_depth();
	session->core.end.env = env;
	wf_core_init(&session->core);
	wf_progress_init(session);
	st = copy_opts(session, &values);
	if (st == WEFT_OK) {
		st = fill_job(session);
	}
	if (st == WEFT_OK) {
		st = plan_place(session);
	}
	if (st != WEFT_OK) {
		free_session(session);
		return st;
	}
	session->core.end.hello.incarnation = wf_random(env) | 1;
	session->core.end.hello.numerics_digest = numerics_of(session);
	session->core.start.init.sections = 1;
	*out = session;
	return WEFT_OK;
}

enum weft_status
weft_session_seal(struct weft_session *session)
{
	WF_ENTER(session);
	struct wf_core *core = &session->core;
	if (session->sealed) {
		return wf_fail(WEFT_INVALID, "session: sealed already");
	}
	if (core->job.tensor_count == 0 && core->service.ops == NULL &&
	    core->values.all_reduce_ring == 0) {
		return wf_fail(WEFT_INVALID, "session: no tensor and no table was declared");
	}
	enum weft_status st = wf_pieces_declare(session);
	if (st == WEFT_OK) {
		st = wf_job_check(&core->job);
	}
	if (st == WEFT_OK) {
		st = wf_placement_init(session->core.end.env, &core->job, &core->placement);
	}
	if (st == WEFT_OK) {
		uint32_t state_count = core->opts.keep_state != 0 ? weft_state_count(session) : 0;
		int node = wf_pin_place_of(session->progress.pin, 0).numa_node;
		st = wf_memory_open(core, state_count, node);
	}
	if (st == WEFT_OK && wf_local_is_on(core)) {
		st = wf_local_open(session);
	}
	if (st == WEFT_OK && core->service.ops != NULL) {
		/* Last: its memory is not freed here. */
		st = core->service.ops->seal(session);
	}
	if (st != WEFT_OK) {
		release_arrays(session, false); /* it may be tried again */
		wf_pieces_undeclare(session);
	}
	session->sealed = st == WEFT_OK;
	return st;
}

enum weft_status
weft_session_start(struct weft_session *session)
{
	WF_ENTER(session);
	if (!session->sealed || session->started) {
		return wf_fail(WEFT_INVALID, "session: %s",
			       session->started ? "started already"
						: "start before weft_session_seal");
	}
	session->started = true;
	enum weft_status st = wf_rejoin_start(session);
	if (st == WEFT_OK && session->past.start != NULL) {
		st = session->past.start(session);
	}
	return st;
}

static int
by_name(const void *a, const void *b)
{
	const struct wf_job_tensor *const *x = a;
	const struct wf_job_tensor *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

enum weft_status
weft_digest(struct weft_session *session, uint64_t *out)
{
	WF_ENTER(session);
	const struct wf_core *core = &session->core;
	uint32_t count = wf_session_tensor_count(session);
	if (!session->sealed) {
		return wf_fail(WEFT_INVALID, "digest: before weft_session_seal there is nothing");
	}
	const struct wf_job_tensor **order =
		wf_zalloc_array(session->core.end.env, count, sizeof(struct wf_job_tensor *));
	struct wf_digest *digest = NULL;
	enum weft_status st = order == NULL ? wf_fail(WEFT_NOMEM, "digest: %u tensors", count)
					    : wf_digest_create(session->core.end.env, &digest);
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		order[i] = &core->job.tensor[i];
	}
	if (st == WEFT_OK) {
		qsort(order, count, sizeof(struct wf_job_tensor *), by_name);
	}
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		wf_digest_string(digest, order[i]->name);
		wf_digest_u64(digest, order[i]->count);
		wf_digest_bytes(digest,
				(const char *)core->memory.section[0].base +
					core->memory.offset[order[i] - core->job.tensor],
				order[i]->count * sizeof(float));
	}
	if (st == WEFT_OK) {
		*out = wf_digest_value(digest);
	}
	wf_digest_destroy(digest);
	wf_free(session->core.end.env, order, count * sizeof(struct wf_job_tensor *));
	return st;
}

uint64_t
weft_steps(const struct weft_session *session)
{
	return session->step;
}

static bool
is_left(struct weft_session *session)
{
	const struct wf_core *core = &session->core;
	return atomic_load_explicit(&core->farewell.left, memory_order_acquire) != 0 || /* L1 */
	       wf_core_failed(core);
}

static enum weft_status
leave(struct weft_session *session, bool goes_on)
{
	if (!session->core.end.leaving && !wf_core_failed(&session->core)) {
		wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_LEAVE,
								  .a = goes_on ? 1 : 0});
		wf_progress_wait(session, is_left);
	}
	enum weft_status st = wf_session_failure(session);
	if (st != WEFT_OK) {
		wf_session_await_quiet(session);
		return wf_session_failure(session);
	}
	if (session->core.end.unacknowledged[0] != '\0') {
		return wf_fail(WEFT_LOST, "%s", session->core.end.unacknowledged);
	}
	return WEFT_OK;
}

/* To end now would leave the others waiting: ends the job for all, with the reason. */
static void
fail_if_unfinished(struct weft_session *session)
{
	if (wf_core_failed(&session->core) || wf_exchange_finished(session) == WEFT_OK) {
		return;
	}
	wf_session_fail(session, WEFT_ABORTED,
			"trainer %u closed its session in the middle of a step or call: %.160s",
			session->core.opts.trainer_id, weft_last_error());
}

/* Says GOODBYE, unless that was done. */
static enum weft_status
finish(struct weft_session *session, bool goes_on)
{
	if (session->running && !session->core.end.leaving) {
		wf_progress_heed_stop(session); /* it came first, and is the reason for this call */
		fail_if_unfinished(session);
		if (session->core.service.ops != NULL) {
			session->core.service.ops->drain(session);
		}
	}
	enum weft_status st = session->running ? leave(session, goes_on) : WEFT_OK;
	session->running = session->running && st != WEFT_OK;
	return st;
}

enum weft_status
weft_session_finish(struct weft_session *session)
{
	WF_ENTER(session);
	if (!session->running) {
		return wf_exchange_refuse(session);
	}
	return finish(session, false);
}

bool
weft_session_joined(const struct weft_session *session)
{
	return session->resumed &&
	       atomic_load_explicit(&session->core.end.joins, memory_order_relaxed);
}

enum weft_status
weft_session_leave(struct weft_session *session)
{
	WF_ENTER(session);
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (atomic_load_explicit(&session->core.end.must_stay, memory_order_relaxed)) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "leave: the pservers end the job when it loses a trainer; start "
			       "them with --on_trainer_death=drop");
	}
	st = wf_exchange_finished(session);
	return st == WEFT_OK ? finish(session, true) : st;
}

enum weft_status
weft_session_close(struct weft_session *session)
{
	if (session == NULL) {
		return WEFT_OK;
	}
	if (wf_gate_enter(session).status != WEFT_OK) { /* and it stays there to the end */
		return WEFT_AGAIN;
	}
	enum weft_status st = finish(session, false);
	free_session(session);
	return st;
}

enum weft_status
weft_session_abort(struct weft_session *session, enum weft_status status, const char *reason)
{
	if (session == NULL) {
		return WEFT_OK;
	}
	if (wf_gate_enter(session).status != WEFT_OK) {
		return WEFT_AGAIN;
	}
	if (session->running) {
		wf_progress_heed_stop(session); /* it came first, and is the reason for this call */
		bool none = status == WEFT_OK || status == WEFT_AGAIN;
		wf_session_fail(session, none ? WEFT_ABORTED : status, "trainer %u: %.200s",
				session->core.opts.trainer_id, reason);
		wf_session_await_quiet(session); /* also an earlier failure: it is reported */
	}
	free_session(session);
	return WEFT_OK;
}

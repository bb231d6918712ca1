/* SPDX-License-Identifier: Apache-2.0 */
/* fabric: see fabric.h. Thread: the test's. */
#include "tests/unit/trainer/fabric.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fault_log.h"

#define PORT_TRIES 100

static void
server_opts(const struct fabric *fabric, uint64_t spin_ns, struct wf_server_opts *opts)
{
	wf_server_opts_init(opts);
	opts->env = fabric->env;
	opts->session.ports_num = fabric->lane_count;
	opts->listen.port = 0;
	opts->session.spin_ns = spin_ns;
	if (fabric->transport != NULL) {
		opts->session.transport = fabric->transport;
	}
	if (fabric->reconnect_timeout_ns != 0) {
		opts->session.reconnect_timeout_ns = fabric->reconnect_timeout_ns;
	}
}

/* Lanes stand on consecutive ports: one that is free says where to try. */
static void
open_server(struct fabric *fabric, uint64_t spin_ns, struct wf_server **out)
{
	struct wf_server_opts opts;
	server_opts(fabric, spin_ns, &opts);
	for (int i = 0; i < PORT_TRIES; i++) {
		opts.session.ports_num = 1;
		opts.listen.port = 0;
		assert_ok(wf_server_create(&opts, out));
		if (fabric->lane_count == 1) {
			return;
		}
		opts.listen.port = wf_server_port(*out, 0);
		wf_server_destroy(*out);
		opts.session.ports_num = fabric->lane_count;
		if (opts.listen.port < 65000 && wf_server_create(&opts, out) == WEFT_OK) {
			return;
		}
	}
	fail_msg("no %u neighbouring ports are free", fabric->lane_count);
}

static void *
serve(void *arg)
{
	struct fabric_server *self = arg;
	self->status = wf_server_run(self->server);
	if (self->status != WEFT_OK) {
		(void)snprintf(self->text, sizeof(self->text), "%s", weft_last_error());
	}
	return NULL;
}

void
fabric_start(struct fabric *fabric, uint32_t pservers, uint32_t lanes, uint64_t spin_ns)
{
	fabric_start_over(fabric, NULL, pservers, lanes, spin_ns, 0);
}

void
fabric_start_over(struct fabric *fabric, const char *transport, uint32_t pservers, uint32_t lanes,
		  uint64_t spin_ns, uint64_t reconnect_timeout_ns)
{
	*fabric = (struct fabric){.pserver_count = pservers,
				  .lane_count = lanes,
				  .transport = transport,
				  .reconnect_timeout_ns = reconnect_timeout_ns};
	assert_true(pservers <= FABRIC_PSERVERS_MAX && lanes <= FABRIC_LANES_MAX);
	fabric->log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(fabric->log_fd >= 0);
	assert_ok(wf_env_system_create(WF_LOG_DEBUG, fabric->log_fd, &fabric->env));
	assert_ok(weft_settings_create(WEFT_SETTINGS_SESSION, &fabric->settings));
	wf_settings_set_env(fabric->settings, fabric->env);
	for (uint32_t i = 0; i < pservers; i++) {
		struct fabric_server *self = &fabric->server[i];
		open_server(fabric, spin_ns, &self->server);
		size_t used = strlen(fabric->pservers);
		(void)snprintf(fabric->pservers + used, sizeof(fabric->pservers) - used,
			       "%s127.0.0.1:%u", i > 0 ? "," : "", wf_server_port(self->server, 0));
		assert_int_equal(pthread_create(&self->thread, NULL, serve, self), 0);
	}
}

/* Add up what the wrappers have said when they were closed. */
static void
count_faults(struct fabric *fabric)
{
	FILE *log = fdopen(fabric->log_fd, "r");
	char line[1200];
	assert_non_null(log);
	rewind(log);
	while (fgets(line, sizeof(line), log) != NULL) {
		wf_fault_log_add(line, &fabric->faults);
	}
	(void)fclose(log);
}

void
fabric_stop(struct fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->pserver_count; i++) {
		wf_server_stop(fabric->server[i].server);
	}
	for (uint32_t i = 0; i < fabric->pserver_count; i++) {
		(void)pthread_join(fabric->server[i].thread, NULL);
		wf_server_destroy(fabric->server[i].server);
	}
	weft_settings_destroy(fabric->settings);
	wf_env_system_destroy(fabric->env);
	count_faults(fabric);
}

/* From the session's thread, or the owner's before it is started: never both at once. */
static void
keep_line(void *arg, enum weft_log_level level, const char *line)
{
	struct member *member = arg;
	(void)level;
	size_t used = strlen(member->log);
	(void)snprintf(member->log + used, sizeof(member->log) - used, "%s\n", line);
}

void
member_init(struct member *member, const struct fabric *fabric, uint32_t id, uint32_t count)
{
	*member = (struct member){.id = id};
	weft_session_opts_init(&member->opts);
	member->opts.pservers = fabric->pservers;
	member->opts.ports_num = fabric->lane_count;
	member->opts.num_gradient_servers = count;
	member->opts.trainer_id = id;
	member->opts.log = keep_line;
	member->opts.log_arg = member;
	if (fabric->transport != NULL) {
		member->opts.transport = fabric->transport;
		member->opts.settings = fabric->settings;
	}
}

enum weft_status
member_note(struct member *member, enum weft_status status)
{
	member->status = status;
	(void)snprintf(member->text, sizeof(member->text), "%s",
		       status == WEFT_OK ? "" : weft_last_error());
	return status;
}

static void *
run_member(void *arg)
{
	struct member *member = arg;
	enum weft_status st = member->run(member);
	if (member->status == WEFT_OK) { /* else it has noted an earlier one */
		(void)member_note(member, st);
	}
	return NULL;
}

void
members_start(struct member *member, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(pthread_create(&member[i].thread, NULL, run_member, &member[i]),
				 0);
	}
}

void
members_join(struct member *member, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		(void)pthread_join(member[i].thread, NULL);
	}
}

void
members_run(struct member *member, unsigned count)
{
	members_start(member, count);
	members_join(member, count);
}

enum weft_status
one_tensor(const struct weft_session_opts *opts, uint64_t rows, float initial,
	   struct weft_session **session, struct weft_tensor **tensor)
{
	const struct weft_tensor_opts w = {.name = "w", .rows = rows};
	enum weft_status st = weft_session_open(opts, session);
	if (st != WEFT_OK) {
		*session = NULL;
		return st;
	}
	st = weft_tensor_add(*session, &w, tensor);
	if (st == WEFT_OK) {
		st = weft_session_seal(*session);
	}
	for (uint64_t i = 0; i < rows && st == WEFT_OK; i++) {
		weft_tensor_param(*tensor)[i] = initial;
	}
	return st != WEFT_OK ? st : weft_session_start(*session);
}

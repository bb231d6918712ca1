/* SPDX-License-Identifier: Apache-2.0 */
/* remote: see remote.h. Each step is requested of all hosts, and then awaited of all. */
#include "tools/launch/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/launch/package.h"
#include "tools/launch/remote_internal.h"

#define ANSWER_NS (60 * WF_NS_PER_S) /* for one request, and for ssh to connect */
#define COPY_NS (600 * WF_NS_PER_S)  /* for tar, which has received all by then */
#define END_NS (10 * WF_NS_PER_S)    /* for the agents, after the job */
#define ADDRESSES_BYTES (WF_LINK_TEXT_BYTES + 64)

extern char **environ;

static struct wf_remote_node *
node_of(struct wf_remote *remote, uint32_t idx)
{
	const struct wf_hosts *hosts = remote->opts->hosts;
	return &remote->node[hosts->entry[idx % hosts->entry_count]];
}

static enum weft_status
send_to(struct wf_remote_node *node)
{
	return wf_link_send(&node->link);
}

/* A step may take one host long; the others are told meanwhile that this one is there. */
static void
pulse_all(void *arg)
{
	struct wf_remote *remote = arg;

	for (unsigned i = 0; i < remote->count; i++) {
		wf_link_pulse(&remote->node[i].link);
	}
}

static enum weft_status
await_all(struct wf_remote *remote, uint64_t timeout_ns)
{
	enum weft_status st = WEFT_OK;
	uint64_t deadline_ns =
		timeout_ns == WF_NEVER ? WF_NEVER : wf_now_ns(remote->env) + timeout_ns;

	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		st = wf_link_await(&remote->node[i].link, deadline_ns);
	}
	return st;
}

/* ---- connecting ---- */

enum weft_status
wf_remote_plan_ssh(const struct wf_remote *remote, const struct wf_launch_host *host,
		   struct wf_args *out)
{
	char words[WF_ARGS_TEXT_BYTES];
	uint32_t port = host->at.port != 0 ? host->at.port : remote->opts->ssh_port;
	char *rest = NULL;

	wf_args_init(out);
	snprintf(words, sizeof(words), "%s", remote->opts->ssh);
	for (char *word = strtok_r(words, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest)) {
		wf_args_add(out, "%s", word);
	}
	if (out->count == 0) {
		return wf_fail(WEFT_INVALID, "--ssh needs a command");
	}
	if (port != 0) {
		wf_args_add(out, "-p");
		wf_args_add(out, "%u", port);
	}
	wf_args_add(out, "%s%s%s", host->user, host->user[0] != '\0' ? "@" : "", host->at.name);
	wf_args_add(out, "%s", remote->opts->weft);
	wf_args_add(out, "_node");
	return wf_args_check(out);
}

static enum weft_status
connect_all(struct wf_remote *remote)
{
	struct wf_args ssh;
	enum weft_status st = WEFT_OK;
	uint64_t deadline_ns = wf_now_ns(remote->env) + ANSWER_NS;

	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		st = wf_remote_plan_ssh(remote, &remote->opts->hosts->host[i], &ssh);
		if (st == WEFT_OK) {
			st = wf_link_open(&remote->node[i].link, &ssh);
		}
	}
	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		st = wf_link_await_hello(&remote->node[i].link, remote->opts->version, deadline_ns);
	}
	return st;
}

/* ---- workspaces ---- */

/* "JOB20261123173055-1a2b3c4d", as the original named it; nobody can know it beforehand. */
static void
name_workspace(const struct wf_remote *remote, char *out, size_t bytes)
{
	char when[32] = "";
	struct tm now;
	time_t seconds = time(NULL);

	if (localtime_r(&seconds, &now) != NULL) {
		(void)strftime(when, sizeof(when), "%Y%m%d%H%M%S", &now);
	}
	snprintf(out, bytes, "%s/JOB%s-%08" PRIx32, remote->opts->root, when,
		 (uint32_t)remote->stamp);
}

static enum weft_status
open_workspaces(struct wf_remote *remote)
{
	const struct wf_remote_opts *opts = remote->opts;
	enum wf_workspace kind = WF_WORKSPACE_NONE;
	char path[4096] = "";
	enum weft_status st = WEFT_OK;

	if (opts->workspace != NULL) {
		kind = WF_WORKSPACE_THERE;
		snprintf(path, sizeof(path), "%s", opts->workspace);
	} else if (opts->package != NULL) {
		kind = WF_WORKSPACE_NEW;
		name_workspace(remote, path, sizeof(path));
	}
	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		struct wf_frame_writer *writer = &remote->node[i].link.writer;
		wf_frame_begin(writer, WF_FRAME_WORKSPACE);
		wf_frame_add_number(writer, kind);
		wf_frame_add_text(writer, path);
		wf_frame_add_number(writer, i);
		wf_frame_add_number(writer, remote->node[i].processes);
		st = send_to(&remote->node[i]);
	}
	if (st == WEFT_OK) {
		st = await_all(remote, ANSWER_NS);
	}
	for (unsigned i = 0; kind != WF_WORKSPACE_NONE && i < remote->count && st == WEFT_OK; i++) {
		fprintf(stderr, "%s: %s: workspace %s\n", remote->program, remote->node[i].name,
			remote->node[i].link.reply.text);
	}
	return st;
}

static enum weft_status
send_piece(void *arg, const void *bytes, size_t count)
{
	struct wf_remote *remote = arg;
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		wf_frame_begin(&remote->node[i].link.writer, WF_FRAME_DATA);
		wf_frame_add_bytes(&remote->node[i].link.writer, bytes, count);
		st = send_to(&remote->node[i]);
	}
	return st;
}

/* Copies the content of a folder to a folder in every workspace. */
static enum weft_status
copy_folder(struct wf_remote *remote, const char *from, const char *to)
{
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		wf_frame_begin(&remote->node[i].link.writer, WF_FRAME_PACKAGE);
		wf_frame_add_text(&remote->node[i].link.writer, to);
		st = send_to(&remote->node[i]);
	}
	if (st == WEFT_OK) {
		st = wf_package_pack(remote->env, from, send_piece, remote);
	}
	if (st == WEFT_OK) {
		st = send_piece(remote, "", 0); /* the end */
	}
	return st == WEFT_OK ? await_all(remote, COPY_NS) : st;
}

static enum weft_status
run_hooks(struct wf_remote *remote)
{
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		wf_frame_begin(&remote->node[i].link.writer, WF_FRAME_HOOK);
		st = send_to(&remote->node[i]);
	}
	return st == WEFT_OK ? await_all(remote, WF_NEVER) : st;
}

static enum weft_status
prepare_workspaces(struct wf_remote *remote)
{
	enum weft_status st = open_workspaces(remote);

	if (st == WEFT_OK && remote->opts->package != NULL) {
		st = copy_folder(remote, remote->opts->package, "");
	}
	if (st == WEFT_OK && remote->opts->third != NULL) {
		st = copy_folder(remote, remote->opts->third, "thirdparty");
		if (st == WEFT_OK) {
			st = run_hooks(remote);
		}
	}
	return st;
}

/* ---- addresses ---- */

/* The addresses by which other hosts may reach this one: those that its name has for another host,
 * and the one that ssh has used. */
static enum weft_status
find_addresses(struct wf_remote *remote, unsigned idx, char *out, size_t bytes)
{
	struct wf_remote_node *node = &remote->node[idx];
	struct wf_remote_node *other = &remote->node[idx == 0 ? 1 : 0];
	const char *name = remote->opts->hosts->host[idx].at.name;

	if (remote->is_one_machine) {
		snprintf(out, bytes, "%s", wf_reach_is_loopback(name) ? name : "127.0.0.1 ::1");
		return WEFT_OK;
	}
	wf_frame_begin(&other->link.writer, WF_FRAME_RESOLVE);
	wf_frame_add_text(&other->link.writer, name);
	enum weft_status st = send_to(other);
	if (st == WEFT_OK) {
		st = wf_link_await(&other->link, wf_now_ns(remote->env) + ANSWER_NS);
	}
	if (st != WEFT_OK && (other->link.lost || node->link.hello.ssh_address[0] == '\0')) {
		return st;
	}
	snprintf(out, bytes, "%s %s", st == WEFT_OK ? other->link.reply.text : "",
		 node->link.hello.ssh_address);
	return WEFT_OK;
}

/* All ports of all pservers of one host. */
static enum weft_status
request_ports(struct wf_remote *remote, unsigned idx)
{
	struct wf_remote_node *node = &remote->node[idx];
	char addresses[ADDRESSES_BYTES];
	unsigned lanes = remote->plan->ports_num + remote->plan->ports_num_for_sparse;
	uint32_t lowest = remote->plan->listen.port;
	uint32_t count = node->pservers * lanes;
	uint32_t highest =
		remote->opts->highest_port != 0 ? remote->opts->highest_port : lowest + count - 1;

	if (highest > UINT16_MAX || lowest + count - 1 > highest) {
		return wf_fail(WEFT_INVALID, "%s needs %u ports, from %u to %u there are %u",
			       node->name, count, lowest, highest, highest - lowest + 1);
	}
	enum weft_status st = find_addresses(remote, idx, addresses, sizeof(addresses));
	if (st == WEFT_OK) {
		wf_frame_begin(&node->link.writer, WF_FRAME_LISTEN);
		wf_frame_add_text(&node->link.writer, addresses);
		wf_frame_add_number(&node->link.writer, lowest);
		wf_frame_add_number(&node->link.writer, highest);
		wf_frame_add_number(&node->link.writer, count);
		st = send_to(node);
	}
	return st == WEFT_OK ? wf_link_await(&node->link, wf_now_ns(remote->env) + ANSWER_NS) : st;
}

/* "10.0.0.7 7164": what the agent says about itself. */
static enum weft_status
parse_address(const struct wf_remote_node *node, struct wf_host *out)
{
	const char *text = node->link.reply.text;
	size_t bytes = strcspn(text, " ");
	char *end = NULL;

	if (bytes > 0 && bytes < sizeof(out->name) && text[bytes] == ' ') {
		unsigned long port = strtoul(text + bytes, &end, 10);
		snprintf(out->name, sizeof(out->name), "%.*s", (int)bytes, text);
		out->port = (uint16_t)port;
		if (*end == '\0' && port >= 1 && port <= UINT16_MAX) {
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_PROTOCOL, "%s: its agent gave no address", node->name);
}

/* The pservers of one host have its ports in their order. */
enum weft_status
wf_remote_place(struct wf_remote *remote, unsigned idx)
{
	unsigned lanes = remote->plan->ports_num + remote->plan->ports_num_for_sparse;
	struct wf_remote_node *node = &remote->node[idx];
	struct wf_host at = {0};
	unsigned placed = 0;

	enum weft_status st = request_ports(remote, idx);
	if (st == WEFT_OK) {
		st = parse_address(node, &at);
	}
	for (uint32_t i = 0; i < remote->plan->pservers && st == WEFT_OK; i++) {
		if (node_of(remote, i) != node) {
			continue;
		}
		remote->pserver_at[i] = at;
		remote->pserver_at[i].port = (uint16_t)(at.port + placed++ * lanes);
	}
	return st;
}

/* "2 Connection refused": the first port that a host does not reach; "": it reaches all. */
static enum weft_status
refuse_unreached(struct wf_remote *remote, const struct wf_remote_node *from)
{
	unsigned lanes = remote->plan->ports_num + remote->plan->ports_num_for_sparse;
	const char *text = from->link.reply.text;
	char *why = NULL;
	char at[WF_REMOTE_NAME_BYTES];

	if (text[0] == '\0') {
		return WEFT_OK;
	}
	unsigned long idx = strtoul(text, &why, 10);
	uint32_t pserver = (uint32_t)(idx / lanes);
	if (why == text || pserver >= remote->plan->pservers) {
		return wf_fail(WEFT_PROTOCOL, "%s: its agent sent nonsense", from->name);
	}
	struct wf_host host = remote->pserver_at[pserver];
	host.port = (uint16_t)(host.port + idx % lanes);
	wf_host_format(&host, at, sizeof(at));
	return wf_fail(WEFT_UNAVAILABLE,
		       "host %s does not reach pserver %u on host %s at %s:%.100s; let the port "
		       "through there, or choose others with --port or --port_range",
		       from->name, pserver, node_of(remote, pserver)->name, at, why);
}

static enum weft_status
check_reach(struct wf_remote *remote)
{
	unsigned lanes = remote->plan->ports_num + remote->plan->ports_num_for_sparse;
	enum weft_status st = WEFT_OK;

	for (unsigned n = 0; n < remote->count && st == WEFT_OK; n++) {
		struct wf_frame_writer *writer = &remote->node[n].link.writer;
		wf_frame_begin(writer, WF_FRAME_REACH);
		wf_frame_add_number(writer, remote->plan->pservers * lanes);
		for (uint32_t i = 0; i < remote->plan->pservers * lanes; i++) {
			const struct wf_host *at = &remote->pserver_at[i / lanes];
			wf_frame_add_text(writer, at->name);
			wf_frame_add_number(writer, at->port + i % lanes);
		}
		st = send_to(&remote->node[n]);
	}
	if (st == WEFT_OK) {
		st = await_all(remote, ANSWER_NS);
	}
	for (unsigned n = 0; n < remote->count && st == WEFT_OK; n++) {
		st = refuse_unreached(remote, &remote->node[n]);
	}
	return st;
}

static void
report_places(struct wf_remote *remote, const struct wf_remote_node *node)
{
	char text[WF_REMOTE_NAME_BYTES];

	for (uint32_t i = 0; i < remote->plan->pservers; i++) {
		if (node_of(remote, i) == node) {
			wf_host_format(&remote->pserver_at[i], text, sizeof(text));
			fprintf(stderr, "%s: pserver %u listens on %s, on host %s\n",
				remote->program, i, text, node->name);
		}
	}
}

static enum weft_status
place_all(struct wf_remote *remote)
{
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		if (remote->node[i].pservers > 0) {
			st = wf_remote_place(remote, i);
			if (st == WEFT_OK) {
				report_places(remote, &remote->node[i]);
			}
		}
	}
	return st == WEFT_OK ? check_reach(remote) : st;
}

/* ---- processes ---- */

/* Settings in the launcher's environment are for the job, as they are on this host. */
static void
borrow_environment(struct wf_args *out)
{
	static const char *const prefixes[] = {"WEFT_", "PADDLE_INIT_"};

	wf_args_init(out);
	for (char **i = environ; *i != NULL; i++) {
		for (size_t p = 0; p < WF_ARRAY_COUNT(prefixes); p++) {
			if (strncmp(*i, prefixes[p], strlen(prefixes[p])) == 0 &&
			    strncmp(*i, "WEFT_SECRET", strlen("WEFT_SECRET")) != 0) {
				wf_args_borrow(out, *i);
			}
		}
	}
}

/* What follows from the number of processes on its host. */
static enum weft_status
settle(const struct wf_remote *remote, uint32_t idx, struct wf_remote_node *node,
       struct wf_child_spec *spec)
{
	const struct wf_remote_auto *set =
		idx < remote->plan->pservers ? &remote->opts->pserver : &remote->opts->trainer;
	char pin[64];
	enum weft_status st = WEFT_OK;

	if (set->pins && node->processes > 1) {
		snprintf(pin, sizeof(pin), "auto:%u/%u", spec->number, node->processes);
		st = wf_plan_set(spec, "pin", pin);
	}
	if (st == WEFT_OK && set->spins && node->threads > node->link.hello.cpu_count) {
		st = wf_plan_set(spec, "spin", "0");
	}
	return st;
}

/* The original's names; a second one on the same host has its number behind it. */
static void
name_log(const struct wf_remote *remote, uint32_t idx, const struct wf_remote_node *node, char *out,
	 size_t bytes)
{
	bool is_pserver = idx < remote->plan->pservers;
	uint32_t number = is_pserver ? idx : idx - remote->plan->pservers;
	const char *name = is_pserver ? "server" : "train";

	for (uint32_t i = is_pserver ? 0 : remote->plan->pservers; i < idx; i++) {
		if (remote->spec[i].site == &node->link.site) {
			snprintf(out, bytes, "%s-%u", name, number);
			return;
		}
	}
	snprintf(out, bytes, "%s", name);
}

static enum weft_status
send_process(struct wf_remote *remote, struct wf_remote_node *node, uint32_t idx)
{
	const struct wf_child_spec *spec = &remote->spec[idx];
	struct wf_frame_writer *writer = &node->link.writer;
	struct wf_args variables;
	char log[sizeof(spec->log)];

	name_log(remote, idx, node, log, sizeof(log));
	borrow_environment(&variables);
	wf_args_borrow_all(&variables, &spec->variables);
	enum weft_status st = wf_args_check(&variables);
	if (st != WEFT_OK) {
		return st;
	}
	wf_frame_begin(writer, WF_FRAME_PROCESS);
	wf_frame_add_number(writer, spec->number);
	wf_frame_add_text(writer, spec->name);
	wf_frame_add_text(writer, log);
	wf_frame_add_text(writer, spec->program != NULL ? spec->program : "");
	wf_frame_add_texts(writer, &spec->args);
	wf_frame_add_texts(writer, &variables);
	wf_frame_add_text(writer, spec->again != NULL ? spec->again : "");
	st = send_to(node);
	return st == WEFT_OK ? wf_link_await(&node->link, wf_now_ns(remote->env) + ANSWER_NS) : st;
}

static enum weft_status
plan_processes(struct wf_remote *remote)
{
	enum weft_status st = wf_plan_job(remote->plan, remote->spec);

	for (unsigned i = 0; i < remote->count; i++) {
		remote->node[i].processes = 0; /* they are counted again, as numbers */
	}
	for (uint32_t i = 0; i < remote->spec_count && st == WEFT_OK; i++) {
		uint32_t role_idx = i < remote->plan->pservers ? i : i - remote->plan->pservers;
		struct wf_remote_node *node = node_of(remote, role_idx);
		remote->spec[i].site = &node->link.site;
		remote->spec[i].number = node->processes++;
	}
	for (uint32_t i = 0; i < remote->spec_count && st == WEFT_OK; i++) {
		uint32_t role_idx = i < remote->plan->pservers ? i : i - remote->plan->pservers;
		struct wf_remote_node *node = node_of(remote, role_idx);
		st = settle(remote, i, node, &remote->spec[i]);
		if (st == WEFT_OK) {
			st = send_process(remote, node, i);
		}
	}
	return st;
}

static enum weft_status
send_secret(struct wf_remote *remote)
{
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < remote->count && st == WEFT_OK; i++) {
		struct wf_frame_writer *writer = &remote->node[i].link.writer;
		wf_frame_begin(writer, WF_FRAME_SECRET);
		wf_frame_add_bytes(writer, remote->opts->secret, remote->opts->secret_bytes);
		st = send_to(&remote->node[i]);
		memset(writer->bytes, 0, writer->used);
	}
	return st == WEFT_OK ? await_all(remote, ANSWER_NS) : st;
}

/* ---- the job ---- */

enum weft_status
wf_remote_open(struct wf_remote *remote)
{
	const struct wf_hosts *hosts = remote->opts->hosts;
	unsigned lanes = remote->plan->ports_num + remote->plan->ports_num_for_sparse;

	remote->node = wf_zalloc_array(remote->env, remote->count, sizeof(*remote->node));
	remote->site = wf_zalloc_array(remote->env, remote->count, sizeof(struct wf_site *));
	remote->pserver_at =
		wf_zalloc_array(remote->env, remote->plan->pservers, sizeof(*remote->pserver_at));
	remote->spec = wf_zalloc_array(remote->env, remote->spec_count, sizeof(*remote->spec));
	if (remote->node == NULL || remote->site == NULL || remote->pserver_at == NULL ||
	    remote->spec == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for %u hosts", remote->count);
	}
	remote->is_one_machine = true;
	for (unsigned i = 0; i < remote->count; i++) {
		struct wf_remote_node *node = &remote->node[i];
		const struct wf_host *at = &hosts->host[i].at;
		remote->is_one_machine &= remote->count == 1 || wf_reach_is_loopback(at->name);
		snprintf(node->name, sizeof(node->name), "%s", at->name);
		if (at->port != 0) {
			wf_host_format(at, node->name, sizeof(node->name));
		}
		wf_link_init(&node->link, remote->env, node->name);
		node->link.life.on_wait = pulse_all;
		node->link.life.on_wait_arg = remote;
		remote->site[i] = &node->link.site;
	}
	for (uint32_t i = 0; i < remote->spec_count; i++) {
		bool is_pserver = i < remote->plan->pservers;
		struct wf_remote_node *node =
			node_of(remote, is_pserver ? i : i - remote->plan->pservers);
		node->processes++;
		node->pservers += is_pserver;
		node->threads += is_pserver ? lanes : 1;
	}
	for (unsigned i = 0; i < remote->count; i++) {
		struct wf_link *link = &remote->node[i].link;
		link->child_count = remote->node[i].processes;
		link->child = wf_zalloc_array(remote->env, link->child_count + 1,
					      sizeof(struct wf_child *));
		if (link->child == NULL) {
			return wf_fail(WEFT_NOMEM, "no memory for %u processes", link->child_count);
		}
	}
	return WEFT_OK;
}

void
wf_remote_close(struct wf_remote *remote)
{
	uint64_t deadline_ns = wf_now_ns(remote->env) + END_NS;

	for (unsigned i = 0; remote->node != NULL && i < remote->count; i++) {
		wf_process_close(&remote->node[i].link.ssh, WF_PROCESS_STDIN); /* all at once */
	}
	for (unsigned i = 0; remote->node != NULL && i < remote->count; i++) {
		struct wf_link *link = &remote->node[i].link;
		wf_link_close(link, deadline_ns);
		wf_free(remote->env, link->child,
			(link->child_count + 1) * sizeof(struct wf_child *));
	}
	wf_free(remote->env, remote->spec, remote->spec_count * sizeof(*remote->spec));
	wf_free(remote->env, remote->pserver_at,
		remote->plan->pservers * sizeof(*remote->pserver_at));
	wf_free(remote->env, remote->site, remote->count * sizeof(struct wf_site *));
	wf_free(remote->env, remote->node, remote->count * sizeof(*remote->node));
}

enum weft_status
wf_remote_run(const struct wf_remote_opts *opts, struct wf_plan_opts *plan,
	      struct wf_supervise_opts *supervise, struct wf_supervise_end *out)
{
	struct wf_remote remote = {
		.opts = opts,
		.plan = plan,
		.env = supervise->env,
		.program = supervise->program,
		.count = opts->hosts->count,
		.spec_count = plan->pservers + plan->trainers,
		.stamp = wf_random(supervise->env),
	};

	enum weft_status st = wf_remote_open(&remote);
	if (st == WEFT_OK) {
		st = connect_all(&remote);
	}
	if (st == WEFT_OK) {
		st = prepare_workspaces(&remote);
	}
	if (st == WEFT_OK) {
		st = place_all(&remote);
	}
	if (st == WEFT_OK) {
		st = send_secret(&remote);
	}
	if (st == WEFT_OK) {
		plan->pserver_at = remote.pserver_at;
		st = plan_processes(&remote);
	}
	if (st == WEFT_OK) {
		supervise->spec = remote.spec;
		supervise->count = remote.spec_count;
		supervise->site = remote.site;
		supervise->site_count = remote.count;
		st = wf_supervise(supervise, out);
		for (unsigned i = 0; i < remote.count; i++) {
			wf_link_detach(&remote.node[i].link);
		}
	}
	wf_remote_close(&remote);
	return st;
}

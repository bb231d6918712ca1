/* SPDX-License-Identifier: Apache-2.0 */
/* open: finds the backend with a name, wraps it in faults if the name asks for them, and fills in
 * default options. Thread: any. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "transport/fault/fault.h"
#include "transport/ops.h"

#define CONN_MAX_DEFAULT 1024u
#define NEWCOMER_MAX_DEFAULT 64u
#define NEWCOMER_MAX_LIMIT 4096u
#define OP_MAX_DEFAULT 256u
#define OP_MAX_LIMIT 65536u
#define PUT_BYTES_MAX_DEFAULT (64ull << 20)
#define PEER_TIMEOUT_DEFAULT (10 * WF_NS_PER_S)
#define CONNECT_TIMEOUT_DEFAULT (5 * WF_NS_PER_S)
#define HANDSHAKE_TIMEOUT_DEFAULT (5 * WF_NS_PER_S)

static enum weft_status
fail_unknown_backend(const char *name)
{
	char known[128] = "";
	for (unsigned i = 0; wf_backends[i] != NULL; i++) {
		size_t used = strlen(known);
		if (wf_backends[i]->open != NULL) {
			snprintf(known + used, sizeof(known) - used, "%s%s", used == 0 ? "" : ", ",
				 wf_backends[i]->name);
		}
	}
	return wf_fail(WEFT_UNSUPPORTED, "transport \"%s\" is not built in; there are: %s", name,
		       known);
}

static void
set_default_u64(uint64_t *value, uint64_t initial)
{
	if (*value == 0) {
		*value = initial;
	}
}

void
wf_transport_opts_set(const struct wf_session_values *values, struct wf_transport_opts *opts)
{
	opts->paths = values->opts.transport;
	opts->congestion = values->opts.tcp_congestion;
	opts->verbs = values->opts.verbs;
	opts->peer_timeout_ns = values->opts.peer_timeout_ns;
	opts->path_retry_ns = values->path_retry;
	opts->secret_file = values->secret_file;
}

static struct wf_transport_opts
with_defaults(const struct wf_transport_opts *opts)
{
	struct wf_transport_opts full = *opts;
	full.conn_max = opts->conn_max == 0 ? CONN_MAX_DEFAULT : opts->conn_max;
	full.newcomer_max = opts->newcomer_max == 0 ? NEWCOMER_MAX_DEFAULT : opts->newcomer_max;
	full.op_max = opts->op_max == 0 ? OP_MAX_DEFAULT : opts->op_max;
	set_default_u64(&full.put_bytes_max, PUT_BYTES_MAX_DEFAULT);
	set_default_u64(&full.peer_timeout_ns, PEER_TIMEOUT_DEFAULT);
	set_default_u64(&full.connect_timeout_ns, CONNECT_TIMEOUT_DEFAULT);
	set_default_u64(&full.handshake_timeout_ns, HANDSHAKE_TIMEOUT_DEFAULT);
	full.blob_max = opts->blob_max == 0 ? WF_BLOB_MAX : opts->blob_max;
	full.paths = opts->paths == NULL ? "auto" : opts->paths;
	return full;
}

static enum weft_status
open_backend(const char *name, const struct wf_transport_opts *opts, struct wf_transport **out)
{
	bool has_secret = opts->secret_file != NULL && opts->secret_file[0] != '\0';
	if (has_secret && strcmp(name, "paths") != 0) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "transport \"%s\" by itself knows no secret_file; paths does", name);
	}
	for (unsigned i = 0; wf_backends[i] != NULL; i++) {
		bool is_here = wf_backends[i]->open != NULL;
		if (is_here && strcmp(wf_backends[i]->name, name) == 0) {
			return wf_backends[i]->open(opts, out);
		}
	}
	return fail_unknown_backend(name);
}

/* Opens what is inside, which may be a wrapper too, and wraps it. */
static enum weft_status
open_wrapped(const char *name, const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct wf_fault_spec spec;
	struct wf_transport *inner = NULL;
	const char *rest = NULL;
	enum weft_status st = wf_fault_parse_name(name, &spec, &rest);
	if (st == WEFT_OK) {
		st = wf_transport_open(rest, opts, &inner);
	}
	if (st == WEFT_OK) {
		st = wf_fault_wrap(name, &spec, opts, inner, out);
	}
	if (st != WEFT_OK) {
		wf_transport_close(inner);
	}
	return st;
}

enum weft_status
wf_transport_open(const char *name, const struct wf_transport_opts *opts, struct wf_transport **out)
{
	WF_ASSERT(opts->env != NULL && opts->blob_max <= WF_BLOB_ROOM);
	struct wf_transport_opts full = with_defaults(opts);
	if (full.conn_max > WF_CONN_MAX_LIMIT || full.op_max > OP_MAX_LIMIT) {
		return wf_fail(WEFT_INVALID,
			       "transport: conn_max %u and op_max %u; at most %u of either",
			       full.conn_max, full.op_max, WF_CONN_MAX_LIMIT);
	}
	if (full.newcomer_max > NEWCOMER_MAX_LIMIT) {
		return wf_fail(WEFT_INVALID, "transport: newcomer_max %u; at most %u",
			       full.newcomer_max, NEWCOMER_MAX_LIMIT);
	}
	char around[WF_FAULT_NAME_BYTES];
	if (strcmp(name, "paths") == 0 && wf_fault_around_paths(full.paths, around, &full.paths)) {
		name = around;
	}
	enum weft_status st = wf_fault_is_name(name) ? open_wrapped(name, &full, out)
						     : open_backend(name, &full, out);
	if (st == WEFT_OK) {
		(*out)->blob_max = full.blob_max;
		(*out)->active = *out;
		(*out)->rest_ns = WF_NEVER;
	}
	return st;
}

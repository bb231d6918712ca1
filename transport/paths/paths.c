/* SPDX-License-Identifier: Apache-2.0 */
/* paths: the backend that chooses among others: open and close, regions and counters.
 * Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <string.h>

static void
paths_close(struct wf_transport *transport)
{
	struct wf_paths *t = wf_paths_of(transport);
	for (unsigned i = t->path_count; i-- > 0;) {
		wf_transport_close(t->path[i].inner); /* the bootstrap last */
	}
	while (t->conns.first != NULL) {
		wf_paths_conn_free(t->conns.first);
	}
	wf_loop_close(&t->loop);
	wf_paths_guard_close(t);
	wf_free(transport->env, t, sizeof(*t));
}

static void
add_counters(struct wf_transport_info *sum, const struct wf_transport_info *inner)
{
	sum->protocol_errors += inner->protocol_errors;
	sum->strangers_refused += inner->strangers_refused;
	sum->bytes_sent += inner->bytes_sent;
	sum->bytes_received += inner->bytes_received;
	sum->msgs_sent += inner->msgs_sent;
	sum->msgs_received += inner->msgs_received;
	sum->puts_sent += inner->puts_sent;
	sum->puts_received += inner->puts_received;
	sum->posts_again += inner->posts_again;
	sum->wakeups_lost += inner->wakeups_lost;
}

static void
paths_query(struct wf_transport *transport, struct wf_transport_info *out)
{
	struct wf_paths *t = wf_paths_of(transport);
	for (unsigned i = 0; i < t->path_count; i++) {
		struct wf_transport_info inner = {0};
		if (t->path[i].inner != NULL) {
			wf_transport_query(t->path[i].inner, &inner);
		}
		if (inner.strangers_refused > t->inner_strangers[i]) {
			t->inner_strangers[i] = inner.strangers_refused;
			memcpy(t->info.last_stranger, inner.last_stranger,
			       sizeof(t->info.last_stranger));
		}
	}
	*out = t->info;
	out->path_count = 0;
	for (unsigned i = 0; i < t->path_count; i++) {
		const struct wf_path *path = &t->path[i];
		struct wf_transport_info inner = {0};
		if (path->inner == NULL) {
			continue;
		}
		wf_transport_query(path->inner, &inner);
		add_counters(out, &inner);
		out->in_place |= inner.in_place && !path->lost;
		out->locks_memory |= inner.locks_memory && !path->lost;
		out->path[out->path_count++] = (struct wf_path_counts){
			.name = path->kind->name,
			.conns_up = path->conns_up,
			.conns_broken = path->conns_broken,
			.bytes_sent = inner.bytes_sent,
			.bytes_received = inner.bytes_received,
		};
	}
}

static void
paths_region_remove(struct wf_transport *transport, uint32_t region)
{
	struct wf_paths *t = wf_paths_of(transport);
	WF_ASSERT(region <= WF_REGIONS_MAX && t->path[0].regions[region]);
	for (unsigned i = 0; i < t->path_count; i++) {
		if (t->path[i].regions[region]) {
			wf_transport_region_remove(t->path[i].inner, region);
			t->path[i].regions[region] = false;
		}
	}
}

/* A path failed with the last error: it is left out from now on, and the connections that it
 * carries end. */
static void
lose(struct wf_paths *t, struct wf_path *path)
{
	wf_paths_leave(t, path);
	for (struct wf_paths_conn *m = t->conns.first; m != NULL; m = m->next) {
		bool uses = m->path == path && m->fast != NULL;
		if (uses && m->state < WF_PATHS_DYING) {
			wf_paths_conn_cause(m, WEFT_LOST, "%s: %s", path->kind->name,
					    path->missing);
			wf_paths_conn_kill(m);
		}
	}
}

/* Every inner transport assigns the lowest free number, so they agree on it. A path that has no
 * memory for the region (RDMA devices lock it) is left out, unless it is required. */
static enum weft_status
paths_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	struct wf_paths *t = wf_paths_of(transport);
	uint32_t number = 0;
	for (unsigned i = 0; i < t->path_count; i++) {
		struct wf_path *path = &t->path[i];
		if (path->inner == NULL || path->lost) {
			continue;
		}
		uint32_t got = 0;
		enum weft_status st = wf_transport_region_add(path->inner, region, &got);
		if (st == WEFT_NOMEM && i > 0 && !t->must) {
			lose(t, path);
			continue;
		}
		if (st != WEFT_OK) {
			if (i > 0) {
				paths_region_remove(transport, number);
			}
			return st;
		}
		WF_ASSERT(got <= WF_REGIONS_MAX && (i == 0 || got == number));
		number = got;
		path->regions[number] = true;
	}
	*out = number;
	return WEFT_OK;
}

static enum weft_status
fail_not_up(const struct wf_paths_conn *m, const char *what)
{
	if (m->state >= WF_PATHS_DYING) {
		return wf_fail(WEFT_CLOSED, "%s: the connection is going down", what);
	}
	return wf_fail(WEFT_INVALID, "%s: the connection is not up", what);
}

/* While a path carries a connection, its grants, releases and posts go to that path. */
static enum weft_status
paths_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	return fail_not_up(wf_paths_conn_of(conn), "grant");
}

static void
paths_release(struct wf_conn *conn, uint32_t slot)
{
}

static enum weft_status
paths_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct wf_paths *t = wf_paths_of(transport);
	enum weft_status st = wf_transport_listen(t->path[0].inner, at, port);
	return st != WEFT_OK ? st : wf_paths_listen_all(t, at);
}

static void
paths_path(struct wf_conn *conn, struct wf_path_info *out)
{
	const struct wf_paths_conn *m = wf_paths_conn_of(conn);
	*out = (struct wf_path_info){
		.name = m->path == NULL ? m->t->path[0].kind->name : m->path->kind->name,
		.why = m->path_why,
	};
	if (conn->carrier != conn) {
		struct wf_path_info carrier;
		wf_transport_path(conn->carrier, &carrier);
		out->in_place = carrier.in_place;
	}
}

static enum weft_status
paths_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	return fail_not_up(wf_paths_conn_of(conn), "post");
}

static int
paths_wait_fd(struct wf_transport *transport)
{
	return wf_paths_of(transport)->wait_fd;
}

static const struct wf_transport_ops paths_ops = {
	.name = "paths",
	.close = paths_close,
	.query = paths_query,
	.region_add = paths_region_add,
	.region_remove = paths_region_remove,
	.grant = paths_grant,
	.release = paths_release,
	.listen = paths_listen,
	.answer = wf_paths_answer,
	.connect = wf_paths_connect,
	.disconnect = wf_paths_disconnect,
	.path = paths_path,
	.post = paths_post,
	.poll = wf_paths_poll,
	.wait_fd = paths_wait_fd,
	.arm = wf_paths_arm,
	.wait = wf_wait_on_fd,
	.wake = wf_paths_wake,
};

static enum weft_status
keep_settings(struct wf_paths *t, const char *verbs)
{
	size_t bytes = verbs == NULL ? 0 : strlen(verbs);
	if (bytes >= sizeof(t->verbs)) {
		return wf_fail(WEFT_INVALID,
			       "paths: settings of verbs of %zu bytes; %zu are the most", bytes,
			       sizeof(t->verbs) - 1);
	}
	memcpy(t->verbs, verbs == NULL ? "" : verbs, bytes);
	t->opts.verbs = t->verbs;
	return WEFT_OK;
}

static enum weft_status
paths_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct wf_paths *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "paths: %zu bytes", sizeof(*t));
	}
	t->transport.ops = &paths_ops;
	t->transport.sift = wf_paths_sift;
	t->transport.env = opts->env;
	t->opts = *opts;
	wf_places_init(&t->conns.places, opts->conn_max, opts->newcomer_max);
	t->info.name = "paths";
	t->info.put_bytes_max = opts->put_bytes_max;
	wf_loop_init(&t->loop, opts->env, NULL);
	t->turn.timer_ns = WF_NEVER;
	wf_paths_changed(t);
	wf_host_id(opts->env, t->host_id);
	enum weft_status st = keep_settings(t, opts->verbs);
	if (st == WEFT_OK) {
		st = wf_paths_guard_open(t, opts->secret_file);
	}
	if (st == WEFT_OK) {
		st = wf_paths_open_all(t);
	}
	if (st != WEFT_OK) {
		paths_close(&t->transport);
		return st;
	}
	t->wait_fd = wf_transport_wait_fd(t->path[0].inner); /* all paths share it, or have none */
	*out = &t->transport;
	return WEFT_OK;
}

const struct wf_backend wf_backend_paths = {
	.name = "paths",
	.open = paths_open,
};

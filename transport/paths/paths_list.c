/* SPDX-License-Identifier: Apache-2.0 */
/* paths_list: which paths a transport has, where they listen, and which may be used towards a peer.
 * Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <stdio.h>
#include <string.h>

#define ITEM_BYTES 192

/* "fault(cut=3)+shm" is a kind of shm. */
static const char *
base_name(const char *item)
{
	const char *base = item;
	int depth = 0;
	for (const char *at = item; *at != '\0'; at++) {
		depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
		if (*at == '+' && depth == 0) {
			base = at + 1;
		}
	}
	return base;
}

static const struct wf_backend *
find_kind(const char *name)
{
	for (unsigned i = 0; wf_backends[i] != NULL; i++) {
		if (strcmp(wf_backends[i]->name, name) == 0 && wf_backends[i]->is_path) {
			return wf_backends[i];
		}
	}
	return NULL;
}

static void
set_missing(struct wf_path *path)
{
	(void)snprintf(path->missing, sizeof(path->missing), "%.*s", WF_PATH_TEXT_BYTES - 1,
		       weft_last_error());
}

static enum weft_status
open_inner(struct wf_paths *t, struct wf_path *path, const char *item)
{
	struct wf_transport_opts opts = t->opts;
	opts.blob_max = WF_BLOB_ROOM;
	/* Room for connections that were accepted by the bootstrap and offered a faster path. */
	uint32_t spare = opts.newcomer_max + WF_PATHS_SPARE_CONNS;
	opts.conn_max += opts.conn_max < 65536 - spare ? spare : 0;
	opts.knows = NULL; /* this transport calls it itself, with the user's hello */
	opts.loop = t->shares ? &t->loop : NULL;
	opts.secret_file = NULL; /* this transport has read it */
	enum weft_status st = path->kind->rdma ? wf_rdma_present() : WEFT_OK;
	path->quiet = st == WEFT_UNAVAILABLE;
	const struct wf_loop *last = t->loop.member.first;
	if (st == WEFT_OK) {
		st = wf_transport_open(item, &opts, &path->inner);
	}
	path->loop = t->loop.member.first != last ? t->loop.member.first : NULL;
	return st;
}

/* Opens a path. A fast path that cannot be opened is left out, unless it is required. */
static enum weft_status
open_path(struct wf_paths *t, const char *item)
{
	bool is_first = t->path_count == 0;
	const struct wf_backend *kind = find_kind(base_name(item));
	if (kind == NULL || (kind->path_id == WF_PATH_BOOTSTRAP) != is_first ||
	    t->path_count == WF_PATHS_MAX) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "transport \"%s\" is none: there are auto, shm, verbs and tcp",
			       t->asked);
	}
	struct wf_path *path = &t->path[t->path_count];
	*path = (struct wf_path){.kind = kind, .armed_ns = WF_NEVER};
	enum weft_status st = open_inner(t, path, item);
	if (st != WEFT_OK && t->must && !is_first) {
		char why[WF_WHY_BYTES];
		(void)snprintf(why, sizeof(why), "%s", weft_last_error());
		return wf_fail(st, "--transport=%.20s: %.180s; auto and tcp do without", t->asked,
			       why);
	}
	if (st != WEFT_OK && is_first) {
		return st;
	}
	if (st != WEFT_OK) {
		path->inner = NULL;
		set_missing(path);
	}
	t->path_count++;
	if (is_first) {
		t->shares = path->loop != NULL;
	}
	return WEFT_OK;
}

/* Several share descriptors. */
static enum weft_status
open_loop(struct wf_paths *t, const char *items)
{
	t->shares = strchr(items, ',') != NULL;
	return t->shares ? wf_loop_open(&t->loop) : WEFT_OK;
}

enum weft_status
wf_paths_open_all(struct wf_paths *t)
{
	const char *at = t->opts.paths;
	t->asked = t->opts.paths;
	for (const struct wf_path_setting *s = wf_path_settings; s->name != NULL; s++) {
		if (strcmp(s->name, t->opts.paths) == 0) {
			at = s->items;
			t->asked = s->name;
			t->must = s->must;
		}
	}
	enum weft_status st = open_loop(t, at);
	while (st == WEFT_OK && *at != '\0') {
		char item[ITEM_BYTES];
		size_t used = 0;
		int depth = 0;
		for (; *at != '\0' && (*at != ',' || depth > 0); at++) {
			depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
			if (used < sizeof(item) - 1) {
				item[used++] = *at;
			}
		}
		item[used] = '\0';
		st = open_path(t, item);
		at += *at == ',' ? 1 : 0;
	}
	if (st == WEFT_OK && t->path_count == 0) {
		st = open_path(t, "");
	}
	if (st == WEFT_OK && t->opts.path_retry_ns == 0) {
		t->opts.path_retry_ns = t->path[0].kind->path_retry_ns;
	}
	return st;
}

static bool
is_loopback(const char *name)
{
	return strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0 ||
	       strcmp(name, "localhost") == 0;
}

static void
keep_ipv4(struct wf_rdma_addresses *at)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < at->count; i++) {
		if (strchr(at->at[i].text, ':') == NULL) {
			at->at[kept++] = at->at[i];
		}
	}
	at->count = kept;
}

/* Listens at the bootstrap's address if that leads to a device, otherwise at all addresses that do:
 * RDMA devices often have networks of their own. If the settings name devices, all of those are
 * used. */
static enum weft_status
listen_rdma(struct wf_paths *t, struct wf_path *path, struct wf_host *where)
{
	struct wf_rdma_addresses *at = &path->at;
	if (strcmp(t->asked, "auto") == 0 && is_loopback(where->name)) {
		path->quiet = true;
		return wf_fail(WEFT_UNAVAILABLE, "it listens on %s only", where->name);
	}
	enum weft_status st = wf_rdma_addresses(t->verbs, at);
	if (st != WEFT_OK) {
		return st;
	}
	for (unsigned i = 0; i < at->count + at->slow_count && !at->named; i++) {
		if (strcmp(at->at[i].text, where->name) == 0) {
			at->at[0] = at->at[i];
			at->count = 1;
			return wf_transport_listen(path->inner, where, &path->port);
		}
	}
	if (at->slow_count > 0) {
		wf_log(t->transport.env, WF_LOG_INFO,
		       "%s: a slow rail is not used: %s (--verbs=device=... uses those it names)",
		       path->kind->name, at->slow);
	}
	if (strcmp(where->name, "0.0.0.0") != 0) {
		(void)snprintf(where->name, sizeof(where->name), "::");
		st = wf_transport_listen(path->inner, where, &path->port);
		if (st == WEFT_OK) {
			return st;
		}
	}
	keep_ipv4(at); /* the bootstrap listens on IPv4, or the host has no IPv6 */
	(void)snprintf(where->name, sizeof(where->name), "0.0.0.0");
	return wf_transport_listen(path->inner, where, &path->port);
}

static enum weft_status
listen_path(struct wf_paths *t, struct wf_path *path, const struct wf_host *at)
{
	struct wf_host where = *at;
	where.port = 0;
	if (path->kind->rdma) {
		return listen_rdma(t, path, &where);
	}
	if (path->kind->listen != NULL) {
		(void)snprintf(where.name, sizeof(where.name), "%s", path->kind->listen);
	}
	return wf_transport_listen(path->inner, &where, &path->port);
}

enum weft_status
wf_paths_listen_all(struct wf_paths *t, const struct wf_host *at)
{
	for (unsigned i = 1; i < t->path_count; i++) {
		struct wf_path *path = &t->path[i];
		if (path->inner == NULL || path->port != 0 || path->lost) {
			continue; /* one listener serves all of the bootstrap's addresses */
		}
		enum weft_status st = listen_path(t, path, at);
		if (st != WEFT_OK && t->must) {
			return st;
		}
		path->missing[0] = '\0';
		if (st != WEFT_OK) {
			path->port = 0;
			set_missing(path);
		}
	}
	return WEFT_OK;
}

void
wf_paths_leave(struct wf_paths *t, struct wf_path *path)
{
	set_missing(path);
	path->lost = true;
	path->port = 0;
	wf_log(t->transport.env, WF_LOG_WARN, "%s is left out from now on: %s", path->kind->name,
	       weft_last_error());
}

struct wf_path *
wf_paths_find(struct wf_paths *t, uint8_t id)
{
	for (unsigned i = 1; i < t->path_count; i++) {
		const struct wf_path *path = &t->path[i];
		if (path->kind->path_id == id && path->inner != NULL && !path->lost) {
			return &t->path[i];
		}
	}
	return NULL;
}

void
wf_paths_left_out(char left_out[WF_PATH_TEXT_BYTES], const char *text)
{
	char before[WF_PATH_TEXT_BYTES];
	memcpy(before, left_out, sizeof(before));
	if (before[0] == '\0') {
		(void)snprintf(left_out, WF_PATH_TEXT_BYTES, "%.*s", WF_PATH_TEXT_BYTES - 1, text);
	} else {
		(void)snprintf(left_out, WF_PATH_TEXT_BYTES, "%.60s; %.60s", before, text);
	}
}

uint32_t
wf_paths_towards(struct wf_paths *t, const struct wf_host *peer, char left_out[WF_PATH_TEXT_BYTES])
{
	uint64_t now_ns = wf_now_ns(t->transport.env);
	uint32_t paths = 0;
	memset(left_out, 0, WF_PATH_TEXT_BYTES);
	for (unsigned i = 1; i < t->path_count; i++) {
		const struct wf_path *path = &t->path[i];
		const struct wf_paths_broken *broken =
			t->must ? NULL : wf_paths_broken_find(&t->broken, path, peer);
		char text[WF_PATH_TEXT_BYTES] = "";
		if ((path->inner == NULL || path->lost) && path->quiet) {
			continue;
		}
		if (path->inner == NULL || path->lost) {
			(void)snprintf(text, sizeof(text), "%s: %.110s", path->kind->name,
				       path->missing);
			wf_paths_left_out(left_out, text);
		} else if (broken != NULL && now_ns < broken->until_ns) {
			(void)snprintf(text, sizeof(text), "%s broke %.1f s ago: %.90s",
				       path->kind->name, (double)(now_ns - broken->at_ns) / 1e9,
				       broken->why);
			wf_paths_left_out(left_out, text);
		} else {
			paths |= wf_paths_bit(path);
		}
	}
	return paths;
}

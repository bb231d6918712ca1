/* SPDX-License-Identifier: Apache-2.0 */
/* observe: see observe.h. */
#include "tools/observe.h"

#include "pserver/server.h"
#include "pserver/view.h"
#include "status/http.h"

struct wf_observer {
	struct wf_status_source source; /* first */
	struct wf_env *env;
	const struct wf_views *views;
	struct wf_status_server *page;
};

static enum weft_status
read_all(const struct wf_status_source *source, struct wf_picture *into)
{
	const struct wf_observer *observer = (const struct wf_observer *)source;
	struct wf_view_cursor cursor = {0};
	struct wf_watch_record record;
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK &&
	       wf_views_next(observer->views, wf_now_ns(observer->env), &cursor, &record)) {
		st = wf_picture_add(into, &record);
	}
	return st;
}

enum weft_status
wf_observer_start(struct wf_env *env, const struct wf_server *server, const char *where,
		  struct wf_observer **out)
{
	char text[WF_HOST_BYTES + 8];
	struct wf_status_opts opts = {.env = env};
	*out = NULL;
	if (where == NULL || where[0] == '\0') {
		return WEFT_OK;
	}
	enum weft_status st = wf_status_parse(where, &opts.listen);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_observer *observer = wf_zalloc(env, sizeof(*observer));
	if (observer == NULL) {
		return wf_fail(WEFT_NOMEM, "--status: %zu bytes", sizeof(*observer));
	}
	observer->source.read = read_all;
	observer->env = env;
	observer->views = wf_server_views(server);
	opts.source = &observer->source;
	st = wf_status_start(&opts, &observer->page);
	if (st != WEFT_OK) {
		wf_free(env, observer, sizeof(*observer));
		return st;
	}
	opts.listen.port = wf_status_port(observer->page);
	wf_host_format(&opts.listen, text, sizeof(text));
	wf_log(env, WF_LOG_INFO, "the page of this pserver is http://%s/", text);
	*out = observer;
	return WEFT_OK;
}

void
wf_observer_stop(struct wf_observer *observer)
{
	if (observer == NULL) {
		return;
	}
	wf_status_stop(observer->page);
	wf_free(observer->env, observer, sizeof(*observer));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* client: see client.h. */
#include "tools/watch/client.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exchange/send.h"
#include "transport/transport.h"

#define EVENTS_MAX 32u
#define RECORDS_MAX 2000000u /* of one answer: more is no pserver's */

struct wf_watch_client {
	struct wf_env *env;
	struct wf_host host;
	char name[WF_HOST_BYTES + 8];
	uint64_t timeout_ns;
	struct wf_transport *transport;
	struct wf_conn *conn;
	bool is_up;
	enum weft_status status; /* why it failed; the text is recorded */
	struct wf_error error;
	uint64_t request_id;
	bool is_answered;
	struct wf_picture *into;       /* during a request */
	struct wf_watch_answer answer; /* scratch */
	struct wf_msg msg;             /* scratch */
};

/* With a text that names the pserver. */
static void
fail_as(struct wf_watch_client *client, enum weft_status status, const char *text)
{
	if (client->status == WEFT_OK) {
		client->status = wf_fail(status, "%s", text);
		client->error = *wf_error_record();
	}
}

static void
fail(struct wf_watch_client *client, enum weft_status status, const char *text)
{
	char named[400];
	(void)snprintf(named, sizeof(named), "%.90s: %.300s", client->name, text);
	fail_as(client, status, named);
}

/* The lane's reason, if it has given one. */
static void
on_down(struct wf_watch_client *client, const struct wf_event *event)
{
	struct wf_welcome verdict;
	client->conn = NULL;
	bool refused =
		event->down.status == WEFT_REFUSED && event->down.blob_bytes > 0 &&
		wf_welcome_decode(event->down.blob, event->down.blob_bytes, &verdict) == WEFT_OK &&
		verdict.refusal != WEFT_OK;
	if (refused) {
		fail(client, (enum weft_status)verdict.refusal, verdict.reason);
	} else if (event->down.status == WEFT_UNAVAILABLE) {
		char text[WF_WHY_BYTES + 96];
		(void)snprintf(
			text, sizeof(text),
			"%s; no pserver answers there: give HOST:PORT, the first port of one "
			"that runs",
			event->down.why);
		fail_as(client, event->down.status, text);
	} else {
		fail_as(client, event->down.status, event->down.why);
	}
}

static enum weft_status
on_end(struct wf_watch_client *client, const struct wf_event *event)
{
	struct wf_watch_end end;
	enum weft_status st = wf_watch_end_decode(event->msg.head, event->msg.body, &end);
	if (st == WEFT_OK && end.request_id == client->request_id) {
		client->is_answered = true;
		if (end.status != WEFT_OK) {
			fail(client, (enum weft_status)end.status, end.reason);
		}
	}
	return st;
}

static enum weft_status
on_record(struct wf_watch_client *client, const struct wf_event *event)
{
	struct wf_watch_answer *answer = &client->answer;
	enum weft_status st = wf_watch_answer_decode(event->msg.head, event->msg.body, answer);
	if (st != WEFT_OK || client->into == NULL || answer->request_id != client->request_id) {
		return st;
	}
	if (client->into->count >= RECORDS_MAX) {
		return wf_fail(WEFT_PROTOCOL, "its answer has more than %u records", RECORDS_MAX);
	}
	return wf_picture_add(client->into, &answer->record);
}

static enum weft_status
on_message(struct wf_watch_client *client, const struct wf_event *event)
{
	if (event->msg.head->service != WF_SERVICE_WATCH) {
		return wf_fail(WEFT_PROTOCOL, "message of service %u", event->msg.head->service);
	}
	return event->msg.head->type == WF_WATCH_END ? on_end(client, event)
						     : on_record(client, event);
}

static unsigned
handle_events(struct wf_watch_client *client)
{
	struct wf_event events[EVENTS_MAX];
	unsigned count = 0;
	enum weft_status st = wf_transport_poll(client->transport, events, EVENTS_MAX, &count);
	if (st != WEFT_OK) {
		fail(client, st, weft_last_error());
	}
	for (unsigned i = 0; i < count; i++) {
		const struct wf_event *event = &events[i];
		if (event->kind == WF_EVENT_UP) {
			client->is_up = true;
		} else if (event->kind == WF_EVENT_DOWN) {
			on_down(client, event);
		} else if (event->kind == WF_EVENT_MSG) {
			st = on_message(client, event);
			if (st != WEFT_OK) {
				fail(client, st, weft_last_error());
			}
		}
	}
	return count;
}

/* Runs until `*done`, or a failure. `what`: is waited for. */
static enum weft_status
run_until(struct wf_watch_client *client, const bool *done, const char *what)
{
	uint64_t deadline_ns = wf_now_ns(client->env) + client->timeout_ns;
	while (!*done && client->status == WEFT_OK) {
		uint64_t wake_ns = deadline_ns;
		if (handle_events(client) > 0) {
			continue;
		}
		if (wf_now_ns(client->env) >= deadline_ns) {
			char text[96];
			(void)snprintf(text, sizeof(text), "no %s within %.1f s", what,
				       (double)client->timeout_ns / 1e9);
			fail(client, WEFT_TIMEOUT, text);
			break;
		}
		(void)wf_transport_arm(client->transport, &wake_ns);
		if (handle_events(client) == 0) {
			wf_transport_wait(client->transport,
					  wake_ns < deadline_ns ? wake_ns : deadline_ns);
		}
	}
	/* What came last may have recorded something else. */
	return client->status == WEFT_OK ? WEFT_OK
					 : wf_fail(client->status, "%s", client->error.text);
}

static enum weft_status
connect(struct wf_watch_client *client)
{
	struct wf_hello hello = {
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_WATCH,
		.pserver_count = 1,
		.lane_count = 1,
		.trainer_count = 1,
		.incarnation = wf_random(client->env) | 1,
		.path = 1,
		.job_bytes = 1,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = 1,
		.pid = (uint32_t)getpid(),
	};
	uint8_t bytes[WF_HELLO_MAX];
	(void)gethostname(hello.host, sizeof(hello.host) - 1);
	return wf_transport_connect(client->transport, &client->host, bytes,
				    wf_hello_encode(&hello, bytes), NULL, &client->conn);
}

/* Over one of the paths that are named as --transport names them. */
static enum weft_status
open_over(const char *paths, const struct wf_watch_opts *opts, struct wf_watch_client **out)
{
	const struct wf_transport_opts transport = {
		.env = opts->env,
		.paths = paths,
		.secret_file = opts->secret_file,
		.connect_timeout_ns = opts->timeout_ns,
	};
	struct wf_watch_client *client = wf_zalloc(opts->env, sizeof(*client));
	if (client == NULL) {
		return wf_fail(WEFT_NOMEM, "watch: %zu bytes", sizeof(*client));
	}
	client->env = opts->env;
	client->host = opts->host;
	client->timeout_ns = opts->timeout_ns;
	wf_host_format(&client->host, client->name, sizeof(client->name));
	enum weft_status st = wf_transport_open("paths", &transport, &client->transport);
	st = st == WEFT_OK ? connect(client) : st;
	st = st == WEFT_OK ? run_until(client, &client->is_up, "connection") : st;
	if (st != WEFT_OK) {
		wf_watch_client_close(client);
		return st;
	}
	*out = client;
	return WEFT_OK;
}

enum weft_status
wf_watch_open(const struct wf_watch_opts *opts, struct wf_watch_client **out)
{
	/* TCP is there within a millisecond. A pserver that demands another path refuses it. */
	enum weft_status st = open_over("tcp", opts, out);
	return st == WEFT_REFUSED ? open_over("auto", opts, out) : st;
}

enum weft_status
wf_watch_request(struct wf_watch_client *client, const struct wf_watch_ask *ask,
		 struct wf_picture *into)
{
	struct wf_watch_ask request = *ask;
	request.request_id = ++client->request_id;
	client->is_answered = false;
	client->into = into;
	(void)handle_events(client);
	if (client->status == WEFT_OK) {
		wf_watch_ask_encode(&request, &client->msg);
		if (!wf_send(client->conn, &client->msg, 0)) {
			fail(client, WEFT_LOST, "the question cannot be sent");
		}
	}
	enum weft_status st = run_until(client, &client->is_answered, "answer");
	client->into = NULL;
	return st;
}

void
wf_watch_client_close(struct wf_watch_client *client)
{
	if (client == NULL) {
		return;
	}
	wf_transport_close(client->transport);
	wf_free(client->env, client, sizeof(*client));
}

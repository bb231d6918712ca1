/* SPDX-License-Identifier: Apache-2.0 */
/* http: see http.h. libmicrohttpd reads requests and writes answers; it runs in this file's thread,
 * which sleeps until a socket is ready, a second is over, or it is to stop. Limits: connections,
 * bytes of a request's head, and seconds that a peer may do nothing. Thread: the server's own, but
 * for start, stop and port. */
#include "status/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "status/document.h"
#include "status/history.h"
#include "status/host.h"
#include "status/metrics.h"
#include "status/page.h"
#include "transport/address.h"

#define PERIOD_NS WF_NS_PER_S
#define CONNECTIONS_MAX 64u
#define HEAD_BYTES_MAX ((size_t)16 * 1024)
#define IDLE_TIMEOUT_S 3u
#define STALE_NS (10 * WF_NS_PER_S) /* a lane that has shown nothing for so long takes no turns */
#define NICENESS 5                  /* of the thread: lanes come first */
#define BACKLOG 64

/* A text that many requests may get. */
struct body {
	char *text; /* malloc's, by open_memstream; NULL: not made of this picture yet */
	size_t bytes;
};

struct wf_status_server {
	struct wf_env *env;
	const struct wf_status_source *source;
	struct wf_host listen;
	bool is_loopback;
	char own_name[WF_HOST_BYTES];
	struct MHD_Daemon *daemon;
	int socket_fd, stop_fd;
	pthread_t thread;
	bool started;
	_Atomic bool stop; /* stop: store release; the thread: load acquire; S1 */

	/* The thread's. */
	uint64_t next_ns;
	struct wf_picture now, before;
	bool has_before;
	struct wf_summary summary;
	struct wf_history history;
	struct body document, metrics;
};

/* ---- pictures ---- */

static void
free_body(struct body *body)
{
	free(body->text);
	*body = (struct body){0};
}

static void
look(struct wf_status_server *server)
{
	struct wf_picture last = server->now;
	server->now = server->before;
	server->before = last;
	wf_picture_clear(&server->now);
	bool is_whole = server->source->read(server->source, &server->now) == WEFT_OK;
	wf_summary_make(&server->now, server->has_before ? &server->before : NULL,
			&server->summary);
	if (is_whole && server->has_before) {
		wf_history_add(&server->history, &server->summary);
	}
	server->has_before = is_whole;
	free_body(&server->document);
	free_body(&server->metrics);
}

typedef void write_body(const struct wf_status_server *server, FILE *out);

static void
write_document(const struct wf_status_server *server, FILE *out)
{
	wf_document_write(&server->now, &server->summary, &server->history, out);
}

static void
write_metrics(const struct wf_status_server *server, FILE *out)
{
	wf_metrics_write(&server->now, &server->summary, out);
}

/* Makes the text unless it is there. */
static bool
make_body(const struct wf_status_server *server, struct body *body, write_body *write)
{
	if (body->text != NULL) {
		return true;
	}
	FILE *out = open_memstream(&body->text, &body->bytes);
	if (out == NULL) {
		return false;
	}
	write(server, out);
	if (fclose(out) != 0) {
		free_body(body);
	}
	return body->text != NULL;
}

/* ---- answers ---- */

static void
add_headers(struct MHD_Response *response, const char *type, const char *policy)
{
	const struct {
		const char *name, *value;
	} header[] = {
		{"Content-Type", type},
		{"Content-Security-Policy", policy},
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(header); i++) {
		(void)MHD_add_response_header(response, header[i].name, header[i].value);
	}
}

struct answer {
	unsigned status;
	const char *type;
	const char *text;
	size_t bytes;
	const char *policy; /* NULL: nothing may be loaded or run */
	const char *allow;  /* NULL: no such header */
};

static enum MHD_Result
send_answer(struct MHD_Connection *connection, const struct answer *answer)
{
	/* Copied: the text may be replaced while a slow reader reads. */
	struct MHD_Response *response = MHD_create_response_from_buffer(
		answer->bytes, (void *)(uintptr_t)answer->text, MHD_RESPMEM_MUST_COPY);
	if (response == NULL) {
		return MHD_NO; /* which closes the connection */
	}
	add_headers(response, answer->type,
		    answer->policy != NULL ? answer->policy : "default-src 'none'");
	if (answer->allow != NULL) {
		(void)MHD_add_response_header(response, "Allow", answer->allow);
	}
	enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result
send_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
	return send_answer(connection,
			   &(struct answer){.status = status,
					    .type = "text/plain; charset=utf-8",
					    .text = text,
					    .bytes = strlen(text),
					    .allow = status == MHD_HTTP_METHOD_NOT_ALLOWED
							     ? "GET, HEAD"
							     : NULL});
}

static enum MHD_Result
send_body(struct wf_status_server *server, struct MHD_Connection *connection, struct body *body,
	  write_body *write, const char *type)
{
	if (!make_body(server, body, write)) {
		return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	}
	return send_answer(connection, &(struct answer){.status = MHD_HTTP_OK,
							.type = type,
							.text = body->text,
							.bytes = body->bytes});
}

/* The lane that has taken no turn for long; -1: all have. */
static int
find_stuck(const struct wf_status_server *server)
{
	const struct wf_summary *summary = &server->summary;
	uint64_t now_ns = wf_now_ns(server->env);
	uint64_t lanes = summary->pserver != NULL
				 ? summary->pserver->value[WF_PSERVER_DENSE_LANES] +
					   summary->pserver->value[WF_PSERVER_SPARSE_LANES]
				 : 0;
	for (uint32_t i = 0; i < summary->lane_count; i++) {
		if (now_ns > summary->lane[i].record->value[WF_WLANE_AT_NS] + STALE_NS) {
			return (int)summary->lane[i].record->lane;
		}
	}
	return summary->lane_count < lanes ? (int)summary->lane_count : -1;
}

/* Whether it lives: all lanes take turns. */
static enum MHD_Result
send_health(const struct wf_status_server *server, struct MHD_Connection *connection)
{
	char text[96];
	int stuck = find_stuck(server);
	if (stuck < 0) {
		return send_text(connection, MHD_HTTP_OK, "ok\n");
	}
	(void)snprintf(text, sizeof(text), "lane %d takes no turns\n", stuck);
	return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

/* Whether trainers may come, or are here: it lives, and no job is ending in failure. */
static enum MHD_Result
send_readiness(const struct wf_status_server *server, struct MHD_Connection *connection)
{
	if (find_stuck(server) >= 0) {
		return send_health(server, connection);
	}
	if (server->summary.job == WF_WATCH_JOB_FAILED) {
		return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "a job has failed\n");
	}
	return send_text(connection, MHD_HTTP_OK, "ready\n");
}

static enum MHD_Result
route(struct wf_status_server *server, struct MHD_Connection *connection, const char *url)
{
	if (strcmp(url, "/") == 0) {
		return send_answer(connection, &(struct answer){.status = MHD_HTTP_OK,
								.type = "text/html; charset=utf-8",
								.text = wf_status_page,
								.bytes = wf_status_page_bytes,
								.policy = wf_status_page_policy});
	}
	if (strcmp(url, "/api/v1/status") == 0) {
		return send_body(server, connection, &server->document, write_document,
				 "application/json");
	}
	if (strcmp(url, "/metrics") == 0) {
		return send_body(server, connection, &server->metrics, write_metrics,
				 WF_METRICS_TYPE);
	}
	if (strcmp(url, "/healthz") == 0) {
		return send_health(server, connection);
	}
	if (strcmp(url, "/readyz") == 0) {
		return send_readiness(server, connection);
	}
	return send_text(connection, MHD_HTTP_NOT_FOUND,
			 "there are /, /api/v1/status, /metrics, /healthz and /readyz\n");
}

static enum MHD_Result
answer_request(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
	       const char *version, const char *upload, size_t *upload_bytes, void **context)
{
	struct wf_status_server *server = arg;
	(void)version;
	(void)upload;
	(void)upload_bytes;
	(void)context;
	const char *host =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				 "only GET and HEAD: nothing can be changed here\n");
	}
	if (!wf_status_host_is_ours(host, &server->listen, server->is_loopback, server->own_name)) {
		return send_text(connection, MHD_HTTP_FORBIDDEN,
				 "the Host of the request is none of this server's names; use the "
				 "address that --status was given\n");
	}
	return route(server, connection, url);
}

/* ---- the thread ---- */

static int
timeout_ms(struct wf_status_server *server, uint64_t now_ns)
{
	MHD_UNSIGNED_LONG_LONG asked_ms;
	uint64_t wait_ms =
		now_ns < server->next_ns ? (server->next_ns - now_ns) / WF_NS_PER_MS + 1 : 0;
	if (MHD_get_timeout(server->daemon, &asked_ms) == MHD_YES && asked_ms < wait_ms) {
		wait_ms = asked_ms;
	}
	return (int)wait_ms;
}

static void *
serve(void *arg)
{
	struct wf_status_server *server = arg;
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = {
		{.fd = server->stop_fd, .events = POLLIN},
		{.fd = info->epoll_fd, .events = POLLIN},
	};
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
	while (!atomic_load_explicit(&server->stop, memory_order_acquire)) { /* S1 */
		uint64_t now_ns = wf_now_ns(server->env);
		if (now_ns >= server->next_ns) {
			look(server);
			server->next_ns = now_ns + PERIOD_NS;
		}
		(void)poll(fds, WF_ARRAY_COUNT(fds), timeout_ms(server, wf_now_ns(server->env)));
		(void)MHD_run(server->daemon);
	}
	return NULL;
}

/* ---- start and stop ---- */

static enum weft_status
bind_one(struct wf_status_server *server, const struct wf_addresses *here)
{
	struct sockaddr_storage at = here->at[0];
	socklen_t bytes = sizeof(at);
	const int on = 1;
	wf_address_set_port(&at, server->listen.port);
	server->is_loopback = wf_address_is_loopback(&at);
	server->socket_fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->socket_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "--status: no socket");
	}
	(void)setsockopt(server->socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(server->socket_fd, (struct sockaddr *)&at, wf_address_bytes(&at)) != 0 ||
	    listen(server->socket_fd, BACKLOG) != 0) {
		return wf_fail_errno(WEFT_UNAVAILABLE, errno,
				     "--status: cannot listen on %.200s port %u; give it another "
				     "port",
				     server->listen.name, server->listen.port);
	}
	if (getsockname(server->socket_fd, (struct sockaddr *)&at, &bytes) == 0) {
		server->listen.port = wf_address_port(&at);
	}
	return WEFT_OK;
}

static enum weft_status
start_daemon(struct wf_status_server *server)
{
	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, answer_request, server, MHD_OPTION_LISTEN_SOCKET,
		server->socket_fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEAD_BYTES_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		IDLE_TIMEOUT_S, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (server->daemon == NULL) {
		return wf_fail(WEFT_NOMEM, "--status: libmicrohttpd does not start");
	}
	server->socket_fd = -1; /* the daemon's */
	server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->stop_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "--status: eventfd");
	}
	int err = pthread_create(&server->thread, NULL, serve, server);
	server->started = err == 0;
	return err == 0 ? WEFT_OK : wf_fail_errno(WEFT_NOMEM, err, "--status: no thread");
}

enum weft_status
wf_status_start(const struct wf_status_opts *opts, struct wf_status_server **out)
{
	struct wf_addresses here;
	struct wf_status_server *server = wf_zalloc(opts->env, sizeof(*server));
	if (server == NULL) {
		return wf_fail(WEFT_NOMEM, "--status: %zu bytes", sizeof(*server));
	}
	server->env = opts->env;
	server->source = opts->source;
	server->listen = opts->listen;
	server->socket_fd = server->stop_fd = -1;
	(void)gethostname(server->own_name, sizeof(server->own_name) - 1);
	enum weft_status st = wf_addresses_here(opts->listen.name, &here);
	st = st == WEFT_OK ? bind_one(server, &here) : st;
	st = st == WEFT_OK ? start_daemon(server) : st;
	if (st != WEFT_OK) {
		wf_status_stop(server);
		return st;
	}
	*out = server;
	return WEFT_OK;
}

uint16_t
wf_status_port(const struct wf_status_server *server)
{
	return server->listen.port;
}

void
wf_status_stop(struct wf_status_server *server)
{
	if (server == NULL) {
		return;
	}
	atomic_store_explicit(&server->stop, true, memory_order_release); /* S1: serve */
	if (server->started) {
		(void)eventfd_write(server->stop_fd, 1);
		(void)pthread_join(server->thread, NULL);
	}
	if (server->daemon != NULL) {
		MHD_stop_daemon(server->daemon);
	}
	if (server->socket_fd >= 0) {
		(void)close(server->socket_fd);
	}
	if (server->stop_fd >= 0) {
		(void)close(server->stop_fd);
	}
	free_body(&server->document);
	free_body(&server->metrics);
	wf_picture_fini(&server->now);
	wf_picture_fini(&server->before);
	wf_free(server->env, server, sizeof(*server));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A crowd whose sockets stay open: members are still admitted. It speaks TCP by hand, because a
 * transport would close. One thread. */
#include "tests/unit/paths/paths_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp_internal.h"

#define CROWD 100
#define POLLS_MAX 20000

/* Somebody says hello on the bootstrap as transport/paths would. */
static int
come(struct conf *t, const struct node *server)
{
	uint8_t frame[WF_TCP_BLOB_FRAME_BYTES];
	struct wf_path_head hello = {.kind = WF_PATH_HELLO, .paths = 1u << WF_PATH_SHM};
	wf_host_id(t->env, hello.id);
	const size_t bytes = wf_path_encode(&hello, frame + WF_HEAD_BYTES);
	const struct wf_head head = {
		.service = WF_SERVICE_TRANSPORT, .type = WF_TCP_HELLO, .body_bytes = bytes};
	wf_head_encode(&head, frame);
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(server->at.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
	    send(fd, frame, WF_HEAD_BYTES + bytes, MSG_NOSIGNAL) < 0) {
		perror("come");
		abort();
	}
	return fd;
}

/* What it is offered. */
static bool
await_offer(struct conf *t, struct node *server, int fd, struct wf_path_head *out)
{
	uint8_t frame[WF_TCP_BLOB_FRAME_BYTES];
	struct wf_head head = {0};
	size_t got = 0;
	size_t need = WF_HEAD_BYTES;
	for (int i = 0; i < POLLS_MAX && got < need; i++) {
		(void)conf_poll(t, server);
		ssize_t n = recv(fd, frame + got, need - got, MSG_DONTWAIT);
		got += n > 0 ? (size_t)n : 0;
		if (n <= 0) {
			conf_rest(t);
		} else if (got == WF_HEAD_BYTES) {
			CHECK(wf_head_decode(frame, WF_BLOB_ROOM, &head) == WEFT_OK);
			need += head.body_bytes;
		}
	}
	size_t used = 0;
	CHECK(got == need && head.type == WF_TCP_ACCEPT);
	CHECK(wf_path_decode(frame + WF_HEAD_BYTES, head.body_bytes, out, &used) == WEFT_OK);
	CHECK(out->kind == WF_PATH_UPGRADE && out->offer_count == 1);
	return true;
}

/* It shows its ticket, is refused by the user or sent away without an answer, and stays on the
 * bootstrap. */
static bool
is_not_let_in(struct conf *t, struct node *server, struct node *fast, int fd, bool answered)
{
	struct wf_path_head offer;
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head ticket = {.kind = WF_PATH_TICKET, .path = WF_PATH_SHM};
	struct wf_conn *conn = NULL;
	CHECK(await_offer(t, server, fd, &offer));
	memcpy(ticket.id, offer.id, sizeof(ticket.id));
	const struct wf_host to = {.name = "127.0.0.1", .port = offer.offer[0].port};
	const size_t bytes = wf_path_encode(&ticket, blob);
	CHECK(wf_transport_connect(fast->transport, &to, blob, bytes, NULL, &conn) == WEFT_OK);
	const struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	if (answered) {
		CHECK(wf_transport_answer(up->conn, false, "no", 2) == WEFT_OK);
	} else {
		wf_transport_disconnect(up->conn, WF_DISCONNECT_NOW);
	}
	CHECK(conf_await(t, server, NULL, WF_EVENT_DOWN) != NULL);
	return conf_await(t, fast, conn, WF_EVENT_DOWN) != NULL;
}

static bool
stay(struct conf *t, bool answered)
{
	const struct wf_transport_opts few = {.conn_max = 4, .newcomer_max = 2};
	struct node *server = conf_server(t, &few);
	const char *usual = t->transport;
	t->transport = "shm";
	struct node *fast = conf_node(t, &(struct wf_transport_opts){.blob_max = WF_BLOB_ROOM});
	t->transport = usual;
	struct node *client = conf_node(t, NULL);
	int fd[CROWD];
	struct pair p;
	CHECK(server != NULL && fast != NULL && client != NULL);
	for (int i = 0; i < CROWD; i++) {
		fd[i] = come(t, server);
		CHECK(is_not_let_in(t, server, fast, fd[i], answered));
	}
	CHECK(conf_join(t, server, client, &p));
	for (int i = 0; i < CROWD; i++) {
		(void)close(fd[i]);
	}
	return true;
}

static bool
stay_after_a_refusal(struct conf *t)
{
	return stay(t, true);
}

static bool
stay_without_an_answer(struct conf *t)
{
	return stay(t, false);
}

/* Each leaves a bootstrap on which nothing was said, and which it does not close. */
static void
who_is_not_let_in_over_a_path_and_stays_keeps_nobody_out(void **state)
{
	(void)state;
	run_on("paths", stay_after_a_refusal);
	run_on("paths", stay_without_an_answer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_not_let_in_over_a_path_and_stays_keeps_nobody_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

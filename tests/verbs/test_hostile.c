/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that speaks verbs and not the rules: it harms its own connection and nobody else's. Once
 * over RoCE, once over iWARP. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "rig.h"
#include "transport/verbs/verbs_internal.h"

#define BUFFER_BYTES (1u << 20)
#define DEPTH 256u
#define STRANGERS 20u

/* Where all of it happens. */
static const char *host;
static bool iwarp;

/* Made by hand, out of the two libraries alone. */
struct raw {
	const struct wf_verbs_lib *lib;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buffer;
	struct rdma_cm_event event; /* the last, without its pointers */
	uint8_t data[256];          /* that came with it */
};

/* The good one, beside which the bad one lives. */
struct scene {
	struct pair good;
	struct wf_grant_key good_key;
	struct raw raw;
	struct wf_conn *bad; /* the server's end */
};

static bool
raw_event(struct conf *t, struct raw *r, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event = NULL;
	for (int i = 0; i < 20000 && event == NULL; i++) {
		if (r->lib->get_cm_event(r->channel, &event) != 0) {
			event = NULL;
			conf_pump(t);
		}
	}
	CHECK(event != NULL);
	r->event = *event;
	if (event->param.conn.private_data != NULL) {
		memcpy(r->data, event->param.conn.private_data, event->param.conn.private_data_len);
	}
	(void)r->lib->ack_cm_event(event);
	if (r->event.event != wanted) {
		fprintf(stderr, "%s, and not %s\n", r->lib->event_str(r->event.event),
			r->lib->event_str(wanted));
	}
	return r->event.event == wanted;
}

static bool
raw_state(struct raw *r, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	int mask = 0;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = state;
	CHECK(r->lib->init_qp_attr(r->id, &attr, &mask) == 0);
	return r->lib->modify_qp(r->qp, &attr, mask) == 0;
}

static bool
raw_link(struct conf *t, struct raw *r)
{
	r->context = r->lib->open_device(r->id->verbs->device);
	CHECK(r->context != NULL);
	r->pd = r->lib->alloc_pd(r->context);
	r->cq = r->lib->create_cq(r->context, 4 * DEPTH, NULL, NULL, 0);
	r->buffer = t->env->ops->alloc(t->env, BUFFER_BYTES, 4096);
	CHECK(r->pd != NULL && r->cq != NULL && r->buffer != NULL);
	memset(r->buffer, 0x66, BUFFER_BYTES);
	r->mr = r->lib->reg_mr_iova2(r->pd, r->buffer, BUFFER_BYTES, (uintptr_t)r->buffer,
				     IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	r->qp = r->lib->create_qp(r->pd, &init);
	CHECK(r->mr != NULL && r->qp != NULL && raw_state(r, IBV_QPS_INIT));
	for (unsigned i = 0; i < DEPTH; i++) {
		struct ibv_sge sge = {(uintptr_t)r->buffer + BUFFER_BYTES / 2, 4096, r->mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad = NULL;
		CHECK(ibv_post_recv(r->qp, &wr, &bad) == 0);
	}
	return true;
}

/* As far as the request, with this private data. */
static bool
raw_request(struct conf *t, struct raw *r, const struct wf_host *at, const uint8_t *data,
	    size_t data_bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(at->port)};
	CHECK(inet_pton(AF_INET, at->name, &to.sin_addr) == 1);
	CHECK(wf_verbs_lib_get(&r->lib) == WEFT_OK);
	r->channel = r->lib->create_event_channel();
	CHECK(r->channel != NULL && fcntl(r->channel->fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(r->lib->create_id(r->channel, &r->id, NULL, RDMA_PS_TCP) == 0);
	CHECK(r->lib->resolve_addr(r->id, NULL, (struct sockaddr *)&to, 5000) == 0);
	CHECK(raw_event(t, r, RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(r->lib->resolve_route(r->id, 5000) == 0);
	CHECK(raw_event(t, r, RDMA_CM_EVENT_ROUTE_RESOLVED));
	CHECK(raw_link(t, r));
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)data_bytes,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 1,
		.rnr_retry_count = 6,
		.qp_num = r->qp->qp_num,
	};
	return r->lib->connect(r->id, &param) == 0;
}

static void
raw_close(struct conf *t, struct raw *r)
{
	if (r->qp != NULL) {
		(void)r->lib->destroy_qp(r->qp);
	}
	if (r->id != NULL) {
		(void)r->lib->destroy_id(r->id);
	}
	if (r->context != NULL) {
		(void)r->lib->dereg_mr(r->mr);
		(void)r->lib->destroy_cq(r->cq);
		(void)r->lib->dealloc_pd(r->pd);
		(void)r->lib->close_device(r->context);
		t->env->ops->free(t->env, r->buffer, BUFFER_BYTES);
	}
	if (r->channel != NULL) {
		r->lib->destroy_event_channel(r->channel);
	}
	*r = (struct raw){0};
}

static bool
raw_send(struct raw *r, struct ibv_send_wr *wr, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)r->buffer, bytes, r->mr->lkey};
	struct ibv_send_wr *bad = NULL;
	wr->sg_list = &sge;
	wr->num_sge = bytes > 0 ? 1 : 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	return ibv_post_send(r->qp, wr, &bad) == 0;
}

static bool
raw_frame(struct raw *r, const struct wf_verbs_frame *frame)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	wf_verbs_frame_encode(frame, r->buffer);
	return raw_send(r, &wr, (uint32_t)(WF_VERBS_FRAME_BYTES + frame->head.body_bytes));
}

/* The last status other than success that was polled. */
static enum ibv_wc_status
raw_poll(struct raw *r)
{
	struct ibv_wc wc;
	enum ibv_wc_status last = IBV_WC_SUCCESS;
	while (ibv_poll_cq(r->cq, 1, &wc) > 0) {
		last = wc.status != IBV_WC_SUCCESS && last == IBV_WC_SUCCESS ? wc.status : last;
	}
	return last;
}

/* A good connection, and a bad one that is UP as far as the server can see. */
static bool
set_scene(struct conf *t, const char *settings, struct scene *s)
{
	struct node *server = rig_node(t, settings, host, NULL);
	struct node *client = rig_node(t, settings, NULL, NULL);
	CHECK(server != NULL && client != NULL);
	CHECK(rig_join(t, server, client, &s->good));
	CHECK(conf_grant_place(server, s->good.sc, 0, 4096, &s->good_key));
	const struct wf_verbs_private p = {.type = WF_VERBS_REQUEST,
					   .features = iwarp ? 0 : WF_VERBS_TAKES_IMMEDIATE,
					   .credits = 32,
					   .mark = 7,
					   .put_bytes_max = 1 << 20};
	uint8_t data[WF_VERBS_PRIVATE_MAX];
	CHECK(raw_request(t, &s->raw, &server->at, data, wf_verbs_private_encode(&p, data)));
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	s->bad = up->conn;
	CHECK(wf_transport_answer(s->bad, true, NULL, 0) == WEFT_OK);
	if (iwarp) {
		CHECK(raw_event(t, &s->raw, RDMA_CM_EVENT_ESTABLISHED));
	} else {
		CHECK(raw_event(t, &s->raw, RDMA_CM_EVENT_CONNECT_RESPONSE));
		CHECK(raw_state(&s->raw, IBV_QPS_RTR) && raw_state(&s->raw, IBV_QPS_RTS));
		CHECK(s->raw.lib->establish(s->raw.id) == 0);
	}
	const struct wf_verbs_frame start = {.kind = WF_VERBS_START};
	return raw_frame(&s->raw, &start);
}

/* The good one still does all that it did. */
static bool
good_lives(struct conf *t, struct scene *s)
{
	conf_fill(s->good.client->memory, 4096, 9);
	struct wf_op put = conf_put_op(s->good.client, &s->good_key, 0, 4096, 1);
	CHECK(conf_post_all(t, s->good.cc, &put));
	CHECK(conf_await(t, s->good.server, s->good.sc, WF_EVENT_PUT) != NULL);
	CHECK(conf_is_filled(s->good.server->memory, 4096, 9));
	for (uint64_t i = 0; i < 100; i++) {
		CHECK(conf_send_all(t, s->good.cc, i, 2000));
	}
	CHECK(conf_await_count(t, s->good.server, s->good.sc, WF_EVENT_MSG, 100));
	CHECK(conf_count(s->good.server, s->good.sc, WF_EVENT_DOWN) == 0);
	return true;
}

static bool
bad_ends(struct conf *t, struct scene *s, enum weft_status status)
{
	enum weft_status got = rig_down(t, s->good.server, s->bad);
	/* What an iWARP device refuses looks like an end. */
	CHECK(got == status || (iwarp && got == WEFT_LOST));
	CHECK(good_lives(t, s));
	raw_close(t, &s->raw);
	return true;
}

/* ---- what it does ---- */

static bool
write_somewhere(struct conf *t, const char *settings, int64_t shift, uint32_t rkey_xor)
{
	struct scene s = {0};
	CHECK(set_scene(t, settings, &s));
	struct wf_grant_key key;
	struct wf_verbs_key target;
	memset(s.good.server->memory, 0x11, 16384);
	CHECK(conf_grant_place(s.good.server, s.bad, 4096, 4096, &key));
	wf_verbs_key_read(&key, &target);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	wr.wr.rdma.remote_addr = target.at + (uint64_t)shift;
	wr.wr.rdma.rkey = target.rkey ^ rkey_xor;
	CHECK(raw_send(&s.raw, &wr, 4096));
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	for (int i = 0; i < 20000 && status == IBV_WC_SUCCESS && !iwarp; i++) {
		conf_pump(t);
		status = raw_poll(&s.raw);
	}
	CHECK(iwarp || status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_WR_FLUSH_ERR);
	if (!iwarp) { /* it says nothing more, and still has its device: the server asks */
		(void)s.raw.lib->disconnect(s.raw.id);
	} else { /* there a WRITE succeeds when it is sent, and the server's device ends it all */
		CHECK(conf_await(t, s.good.server, s.bad, WF_EVENT_DOWN) != NULL);
		conf_nth(s.good.server, s.bad, WF_EVENT_DOWN, 0)->used = false;
	}
	for (size_t i = 0; i < 16384; i++) {
		CHECK(s.good.server->memory[i] == 0x11);
	}
	return bad_ends(t, &s, WEFT_PROTOCOL);
}

static bool
writes_body(struct conf *t, const char *settings)
{
	static const struct {
		int64_t shift;
		uint32_t rkey_xor;
	} cases[] = {{4096, 0}, {-1, 0}, {1, 0}, {0, 1}, {0, 0x100}, {0, 0xffffff00}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK(write_somewhere(t, settings, cases[i].shift, cases[i].rkey_xor));
		while (t->node_count > 0) {
			conf_node_close(t, &t->node[--t->node_count]);
		}
	}
	return true;
}

static bool
writes_windows_body(struct conf *t)
{
	return writes_body(t, "");
}

static bool
writes_domains_body(struct conf *t)
{
	return writes_body(t, "mw=off");
}

/* More than it was given credits for, as fast as it can. */
static bool
flood_body(struct conf *t)
{
	struct scene s = {0};
	CHECK(set_scene(t, "", &s));
	const struct wf_verbs_frame frame = {
		.kind = WF_VERBS_MESSAGE,
		.head = {.service = WF_SERVICE_CONTROL, .body_bytes = 4000},
	};
	unsigned sent = 0;
	while (sent < DEPTH - 8 && raw_frame(&s.raw, &frame)) {
		sent++; /* siw may end it on the way, for want of a receive */
	}
	CHECK(sent > 0);
	return bad_ends(t, &s, WEFT_PROTOCOL);
}

static bool
frames_body(struct conf *t)
{
	static const struct wf_verbs_frame frames[] = {
		{.kind = WF_VERBS_START},
		{.kind = WF_VERBS_HELLO},
		{.kind = WF_VERBS_ACCEPTS},
		{.kind = WF_VERBS_CREDIT, .credits = 1},
		{.kind = WF_VERBS_MESSAGE, .head.service = WF_SERVICE_TRANSPORT},
		{.kind = WF_VERBS_MESSAGE, .head.service = 1, .credits = 1000},
		{.kind = WF_VERBS_PUT, .head.region = 1, .head.step = 100},
		{.kind = WF_VERBS_PUT, .head.region = 1, .head.step = UINT64_MAX},
		{.kind = (enum wf_verbs_frame_kind)99},
	};
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct scene s = {0};
		CHECK(set_scene(t, "", &s));
		CHECK(raw_frame(&s.raw, &frames[i]));
		CHECK(bad_ends(t, &s, WEFT_PROTOCOL));
		while (t->node_count > 0) {
			conf_node_close(t, &t->node[--t->node_count]);
		}
	}
	return true;
}

/* A notice of a PUT where nothing was granted. */
static bool
notice_body(struct conf *t)
{
	struct scene s = {0};
	CHECK(set_scene(t, "", &s));
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(5)};
	CHECK(raw_send(&s.raw, &wr, 0));
	return bad_ends(t, &s, WEFT_PROTOCOL);
}

/* All of them are there before anybody looks at what became of one, and a good one among them. */
static bool
strangers_body(struct conf *t)
{
	static struct raw raw[STRANGERS];
	struct node *server = rig_node(t, "", host, NULL);
	struct node *client = rig_node(t, "", NULL, NULL);
	CHECK(server != NULL && client != NULL);
	for (unsigned i = 0; i < STRANGERS; i++) {
		uint8_t data[56];
		for (size_t at = 0; at < sizeof(data); at++) {
			data[at] = (uint8_t)wf_rng_below(&t->rng, 256);
		}
		CHECK(raw_request(t, &raw[i], &server->at, data, i == 0 ? 0 : sizeof(data)));
	}
	struct pair p;
	CHECK(rig_join(t, server, client, &p));
	for (unsigned i = 0; i < STRANGERS; i++) {
		CHECK(raw_event(t, &raw[i], RDMA_CM_EVENT_REJECTED));
		raw_close(t, &raw[i]);
	}
	struct wf_transport_info info;
	wf_transport_query(server->transport, &info);
	CHECK(info.strangers_refused == STRANGERS && strstr(info.last_stranger, host) != NULL);
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 1);
	return conf_send_all(t, p.cc, 1, 100) && conf_await(t, server, p.sc, WF_EVENT_MSG) != NULL;
}

static bool
on_roce(bool (*body)(struct conf *t))
{
	host = "10.9.0.1";
	iwarp = false;
	return rig_run(body);
}

static bool
on_iwarp(bool (*body)(struct conf *t))
{
	if (!rig_has("siw0")) {
		skip();
	}
	host = "10.8.0.1";
	iwarp = true;
	return rig_run(body);
}

static void
writes_outside_a_window_reach_nothing(void **state)
{
	assert_true(on_roce(writes_windows_body));
}

static void
writes_outside_a_domain_reach_nothing(void **state)
{
	assert_true(on_roce(writes_domains_body));
}

static void
writes_outside_a_domain_reach_nothing_over_iwarp(void **state)
{
	assert_true(on_iwarp(writes_domains_body));
}

static void
flood_ends_the_one_who_floods(void **state)
{
	assert_true(on_roce(flood_body));
}

static void
flood_ends_the_one_who_floods_over_iwarp(void **state)
{
	assert_true(on_iwarp(flood_body));
}

static void
frames_out_of_turn_end_their_connection(void **state)
{
	assert_true(on_roce(frames_body));
}

static void
frames_out_of_turn_end_their_connection_over_iwarp(void **state)
{
	assert_true(on_iwarp(frames_body));
}

static void
notice_of_nothing_ends_its_connection(void **state)
{
	assert_true(on_roce(notice_body));
}

static void
strangers_are_turned_away_and_counted(void **state)
{
	assert_true(on_roce(strangers_body));
}

static void
strangers_are_turned_away_and_counted_over_iwarp(void **state)
{
	assert_true(on_iwarp(strangers_body));
}

/* argv[1]: a pattern of the tests to run. */
int
main(int argc, char **argv)
{
	if (!rig_has("rxe0")) {
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_are_turned_away_and_counted),
		cmocka_unit_test(strangers_are_turned_away_and_counted_over_iwarp),
		cmocka_unit_test(writes_outside_a_window_reach_nothing),
		cmocka_unit_test(writes_outside_a_domain_reach_nothing),
		cmocka_unit_test(writes_outside_a_domain_reach_nothing_over_iwarp),
		cmocka_unit_test(flood_ends_the_one_who_floods),
		cmocka_unit_test(flood_ends_the_one_who_floods_over_iwarp),
		cmocka_unit_test(frames_out_of_turn_end_their_connection),
		cmocka_unit_test(frames_out_of_turn_end_their_connection_over_iwarp),
		cmocka_unit_test(notice_of_nothing_ends_its_connection),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

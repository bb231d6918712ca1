/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream of slices costs, counted where it is handed to the device: work requests, calls,
 * completions, regions. And that the bytes are read where the caller has them and written where the
 * peer wants them, by the device, and are copied nowhere. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"
#include "transport/verbs/verbs_internal.h"

#define SLICE_BYTES (16u << 10) /* a WRITE and its notice */
#define STEP_SLICES 64u
#define STEPS 10u
#define SLICES (STEPS * STEP_SLICES)
#define BATCH 8u /* slices of one post */
#define PLACE_BYTES ((uint64_t)STEP_SLICES * SLICE_BYTES)

struct counts {
	unsigned posts, writes, sends, signaled, completions;
	uint64_t written_bytes;
	unsigned
		copied; /* WRITEs out of other memory than the caller's, or to other than granted */
};

/* One end: its device's table is ours. */
struct end {
	struct ibv_context *context;
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
	struct ibv_cq *send_cq;
	uint64_t from, to;      /* addresses of the caller's memory, as the device has them */
	struct wf_verbs_key at; /* granted by the peer */
	struct counts counts;
};

static struct end end[2]; /* of the client, of the server */

static struct end *
end_of(const struct ibv_context *context)
{
	return &end[context == end[0].context ? 0 : 1];
}

static void
count_write(struct end *e, const struct ibv_send_wr *wr)
{
	uint64_t bytes = wr->num_sge == 0 ? 0 : wr->sg_list[0].length;
	uint64_t remote = wr->wr.rdma.remote_addr;
	e->counts.writes++;
	e->counts.written_bytes += bytes;
	bool ours = bytes == 0 ||
		    (wr->num_sge == 1 && (wr->send_flags & IBV_SEND_INLINE) == 0 &&
		     wr->sg_list[0].addr >= e->from && wr->sg_list[0].addr + bytes <= e->to);
	bool theirs =
		bytes == 0 || (remote >= e->at.at && remote + bytes <= e->at.at + e->at.bytes);
	e->counts.copied += ours && theirs ? 0 : 1;
}

static int
counting_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct end *e = end_of(qp->context);
	e->counts.posts++;
	for (const struct ibv_send_wr *at = wr; at != NULL; at = at->next) {
		if (at->opcode == IBV_WR_SEND) {
			e->counts.sends++;
		} else {
			count_write(e, at);
		}
		e->counts.signaled += (at->send_flags & IBV_SEND_SIGNALED) != 0;
	}
	return e->post_send(qp, wr, bad);
}

static int
counting_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	struct end *e = end_of(cq->context);
	int n = e->poll_cq(cq, count, wc);
	e->counts.completions += cq == e->send_cq && n > 0 ? (unsigned)n : 0;
	return n;
}

static void
hook(struct end *e, const struct node *n, struct wf_conn *conn, const struct wf_grant_key *key)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(conn);
	*e = (struct end){
		.context = c->link.dev->context,
		.post_send = c->link.dev->context->ops.post_send,
		.poll_cq = c->link.dev->context->ops.poll_cq,
		.send_cq = c->link.queues->send.cq,
		.from = wf_verbs_iova(&c->link.dev->caps, n->memory, n->memory),
	};
	e->to = e->from + NODE_REGION_BYTES;
	wf_verbs_key_read(key, &e->at);
}

/* Of all devices. */
static uint64_t
count_hw(const char *name)
{
	char path[128];
	char line[32] = "";
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/rxe0/ports/1/hw_counters/%s",
		       name);
	FILE *file = fopen(path, "re");
	if (file == NULL || fgets(line, sizeof(line), file) == NULL) {
		fprintf(stderr, "%s cannot be read\n", path);
		exit(1);
	}
	(void)fclose(file);
	return strtoull(line, NULL, 10);
}

static uint64_t
count_rnr(void)
{
	return count_hw("rcvd_rnr_err") + count_hw("send_rnr_err") +
	       count_hw("retry_rnr_exceeded_err");
}

/* Queue pairs, regions and so on, as text. */
static bool
resources(char *out, size_t bytes)
{
	const char *words[] = {"rdma", "resource", "show", NULL};
	int fd = memfd_create("resources", MFD_CLOEXEC);
	CHECK(fd >= 0 && rig_command_output(words, fd) == 0);
	ssize_t n = pread(fd, out, bytes - 1, 0);
	(void)close(fd);
	CHECK(n > 0);
	out[n] = '\0';
	return true;
}

/* Post `count` slices from number `first` of the step on, as one call. */
static bool
post(struct node *n, struct wf_conn *conn, const struct wf_grant_key *key, unsigned first,
     unsigned count)
{
	struct wf_op op[STEP_SLICES];
	unsigned taken = 0;
	for (unsigned i = 0; i < count; i++) {
		uint64_t offset = (uint64_t)(first + i) * SLICE_BYTES;
		op[i] = conf_put_op(n, key, offset, SLICE_BYTES, first + i);
		op[i].offset = offset;
	}
	CHECK(wf_transport_post(conn, op, count, &taken) == WEFT_OK && taken == count);
	return true;
}

/* One step: all slices there, in batches, and each back when it has come. */
static bool
step(struct conf *t, const struct pair *p, const struct wf_grant_key key[2])
{
	unsigned before = conf_count(p->server, p->sc, WF_EVENT_PUT);
	unsigned back = conf_count(p->client, p->cc, WF_EVENT_PUT) + STEP_SLICES;
	for (unsigned i = 0; i < STEP_SLICES; i += BATCH) {
		CHECK(post(p->client, p->cc, &key[0], i, BATCH));
	}
	for (unsigned answered = 0; answered < STEP_SLICES;) {
		unsigned came = conf_count(p->server, p->sc, WF_EVENT_PUT) - before;
		if (came > answered) {
			CHECK(post(p->server, p->sc, &key[1], answered, came - answered));
			answered = came;
		}
		conf_pump(t);
	}
	return conf_await_count(t, p->client, p->cc, WF_EVENT_PUT, back);
}

/* Slices of one end, and what they have cost. */
static bool
is_cheap(const char *name, const struct counts *c)
{
	printf("%s: %u slices: %u posts, %u writes, %u sends, %u signaled, %u completions\n", name,
	       SLICES, c->posts, c->writes, c->sends, c->signaled, c->completions);
	CHECK(c->written_bytes == (uint64_t)SLICES * SLICE_BYTES);
	CHECK(c->copied == 0);
	CHECK(c->writes <= 2 * SLICES);
	CHECK(c->sends <= SLICES / 8); /* credits */
	CHECK(c->signaled <= c->posts);
	CHECK(c->completions <= c->signaled);
	return true;
}

static bool
stream_body(struct conf *t)
{
	static char before[4096], after[4096];
	struct node *server = rig_node(t, "", "10.9.0.1", NULL);
	struct node *client = rig_node(t, "", NULL, NULL);
	struct pair p;
	struct wf_grant_key key[2];
	CHECK(server != NULL && client != NULL && rig_join(t, server, client, &p));
	CHECK(rig_warm(t, &p));
	conf_forget(server);
	conf_forget(client);
	CHECK(conf_grant_place(server, p.sc, 0, PLACE_BYTES, &key[0]));
	CHECK(conf_grant_place(client, p.cc, 8u << 20, PLACE_BYTES, &key[1]));
	conf_settle(t);
	hook(&end[0], client, p.cc, &key[0]);
	hook(&end[1], server, p.sc, &key[1]);
	end[0].context->ops.post_send = counting_post_send;
	end[0].context->ops.poll_cq = counting_poll_cq;
	end[1].context->ops.post_send = counting_post_send;
	end[1].context->ops.poll_cq = counting_poll_cq;

	/* A batch of slices is one call, and one completion. */
	CHECK(post(client, p.cc, &key[0], 0, BATCH));
	CHECK(end[0].counts.posts == 1 && end[0].counts.signaled == 1);
	CHECK(end[0].counts.writes == 2 * BATCH && end[0].counts.sends == 0);
	CHECK(conf_await_count(t, server, p.sc, WF_EVENT_PUT, BATCH));
	CHECK(conf_await_count(t, client, p.cc, WF_EVENT_DONE, BATCH));
	CHECK(end[0].counts.completions == 1);
	conf_settle(t);

	end[0].counts = (struct counts){0};
	end[1].counts = (struct counts){0};
	uint64_t rnr = count_rnr();
	CHECK(resources(before, sizeof(before)));
	conf_fill(client->memory, PLACE_BYTES, 1);
	conf_fill(server->memory, PLACE_BYTES, 2);
	for (unsigned i = 0; i < STEPS; i++) {
		CHECK(step(t, &p, key));
	}
	CHECK(resources(after, sizeof(after)));
	CHECK(strcmp(before, after) == 0); /* regions know neither slices nor steps */
	CHECK(count_rnr() == rnr);
	CHECK(is_cheap("client", &end[0].counts) && is_cheap("server", &end[1].counts));
	CHECK(end[0].counts.posts <= SLICES / 4); /* a fraction of a call, and of a completion */
	CHECK(end[0].counts.completions <= SLICES / 4);
	return true;
}

static void
slices_cost_what_they_should(void **state)
{
	assert_true(rig_run(stream_body));
}

int
main(void)
{
	if (!rig_has("rxe0")) {
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_cost_what_they_should),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

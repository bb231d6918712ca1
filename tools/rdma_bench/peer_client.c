/* SPDX-License-Identifier: Apache-2.0 */
/* peer_client: the client: one leg over weft and one without alternate; then it prints the
 * results. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/limits/paths.h"
#include "tools/rdma_bench/median.h"
#include "tools/rdma_bench/peer_run.h"
#include "transport/rdma.h"

#define STREAM_BYTES (64ull << 20) /* of a stream, unless the user sets the number of messages */
#define STREAM_COUNT 5000u
#define STREAM_COUNT_MIN 8u
#define PING_COUNT 1000u
#define SHM_BATCH 16u /* a look at the clock takes a part of one way */
#define SIZES_MIN 2u

struct client {
	struct wf_peer_end *end;
	struct wf_peer_path *weft, *bare; /* NULL: none yet */
	struct wf_meter meter;
	struct wf_peer_run *run;
	struct wf_peer_report server; /* its last report */
};

/* What each pair of a figure gave. */
struct sides {
	double value[WF_PEER_PAIRS_MAX], p50[WF_PEER_PAIRS_MAX];
	double p99[WF_PEER_PAIRS_MAX], p999[WF_PEER_PAIRS_MAX];
};

static enum weft_status
choose_transport(struct wf_peer_end *end)
{
	const struct wf_peer_settings *set = end->set;
	const char *asked = set->transport;
	bool wants_rdma = set->device != NULL || set->ib_port_given || set->verbs != NULL;
	if (strcmp(asked, "auto") == 0) {
		bool rdma = wants_rdma || wf_rdma_present() == WEFT_OK;
		end->plan.over = rdma ? WF_PEER_VERBS : WF_PEER_TCP;
	} else if (strcmp(asked, "verbs") == 0) {
		end->plan.over = WF_PEER_VERBS;
	} else {
		end->plan.over = strcmp(asked, "shm") == 0 ? WF_PEER_SHM : WF_PEER_TCP;
	}
	if (end->plan.over != WF_PEER_VERBS) {
		return WEFT_OK;
	}
	/* A mistake is reported before another process is involved. */
	return wf_peer_address_find(end);
}

static uint64_t
largest(const struct wf_peer_settings *set)
{
	if (set->kind == WF_PEER_RATE) {
		return WF_PEER_MESSAGE_MAX;
	}
	return set->all ? WF_PEER_BYTES_MAX : set->bytes;
}

static enum weft_status
meet(struct client *c)
{
	struct wf_peer_end *end = c->end;
	struct wf_peer_frame frame;
	uint8_t body[WF_PEER_BODY_MAX];
	struct wf_peer_offer offer = {0};
	enum weft_status st = wf_peer_control_connect(end->env, &end->set->to, &end->control.fd);
	if (st == WEFT_OK) {
		wf_peer_control_peer_address(end->control.fd, end->address);
		size_t bytes = wf_peer_plan_encode(&end->plan, body);
		st = wf_peer_control_send(&end->control, WF_PEER_PLAN, body, bytes);
	}
	if (st == WEFT_OK) {
		st = wf_peer_control_expect(&end->control, WF_PEER_OFFER, &frame);
	}
	if (st == WEFT_OK) {
		st = wf_peer_offer_decode(frame.body, frame.bytes, &offer);
	}
	if (st == WEFT_OK && end->plan.over != WF_PEER_TCP) {
		memcpy(end->address, offer.address, sizeof(end->address));
		st = end->plan.over == WF_PEER_VERBS ? wf_peer_address_find(end) : WEFT_OK;
	}
	if (st == WEFT_OK) {
		st = wf_peer_weft_open(end, &c->weft);
	}
	if (st == WEFT_OK) {
		st = wf_bare_open(end, &offer, &c->bare);
	}
	if (st == WEFT_OK) {
		st = wf_peer_weft_join(c->weft);
	}
	return st == WEFT_OK ? wf_bare_join(c->bare, &offer) : st;
}

static enum weft_status
run_leg(struct client *c, struct wf_peer_leg *leg, bool bare, struct wf_figures *out)
{
	const struct wf_peer_control *control = &c->end->control;
	struct wf_peer_frame frame;
	uint8_t body[WF_PEER_BODY_MAX];
	struct wf_peer_leg this = *leg;
	this.bare = bare;
	this.verify = leg->verify && !bare;
	size_t bytes = wf_peer_leg_encode(&this, body);
	enum weft_status st = wf_peer_control_send(control, WF_PEER_GO, body, bytes);
	if (st == WEFT_OK) {
		st = wf_peer_control_expect(control, WF_PEER_READY, &frame);
	}
	if (st == WEFT_OK) {
		st = wf_peer_leg_run(bare ? c->bare : c->weft, &this, &c->meter);
	}
	if (st == WEFT_OK) {
		wf_meter_figures(&c->meter, this.send_count, out);
		st = wf_peer_control_expect(control, WF_PEER_REPORT, &frame);
	}
	return st == WEFT_OK ? wf_peer_report_decode(frame.body, frame.bytes, &c->server) : st;
}

/* ---- a figure ---- */

static double
value_of(const struct wf_peer_leg *leg, const struct wf_peer_figure *figure,
	 const struct wf_figures *f)
{
	double ns = f->elapsed_ns > 0 ? (double)f->elapsed_ns : 1;
	double messages = (double)(leg->send_count + leg->receive_count);
	if (leg->ping) {
		return f->p50_ns / 2e3;
	}
	if (leg->updates) {
		return messages * (double)(leg->bytes / figure->bytes) * 1e3 / ns;
	}
	return messages * (double)leg->bytes / ns;
}

static void
note(struct sides *side, uint64_t pair, const struct wf_figures *f, double value)
{
	side->value[pair] = value;
	side->p50[pair] = f->p50_ns / 2e3;
	side->p99[pair] = f->p99_ns / 2e3;
	side->p999[pair] = f->p999_ns / 2e3;
}

static void
conclude(struct wf_peer_figure *figure, struct sides side[2], uint64_t pairs, bool ping)
{
	double fraction[WF_PEER_PAIRS_MAX];
	for (uint64_t i = 0; i < pairs; i++) {
		double value = side[0].value[i], limit = side[1].value[i];
		fraction[i] = figure->lower_is_better ? limit / value : value / limit;
	}
	figure->fraction = wf_median(fraction, pairs);
	figure->fraction_min = fraction[0];
	figure->fraction_max = fraction[pairs - 1];
	figure->value = wf_median(side[0].value, pairs);
	figure->samples.count = (unsigned)pairs;
	memcpy(figure->samples.value, side[0].value, pairs * sizeof(side[0].value[0]));
	memcpy(figure->samples.fraction, fraction, pairs * sizeof(fraction[0]));
	figure->limit = wf_median(side[1].value, pairs);
	if (ping) {
		figure->p50_us = wf_median(side[0].p50, pairs);
		figure->p99_us = wf_median(side[0].p99, pairs);
		figure->p999_us = wf_median(side[0].p999, pairs);
		figure->limit_p50_us = wf_median(side[1].p50, pairs);
		figure->limit_p99_us = wf_median(side[1].p99, pairs);
		figure->limit_p999_us = wf_median(side[1].p999, pairs);
	}
}

/* The first legs touch memory and open windows. */
static enum weft_status
warm_up(struct client *c, const struct wf_peer_leg *leg)
{
	struct wf_figures unused;
	struct wf_peer_leg less = *leg;
	uint64_t part = leg->batch * (leg->send_count / leg->batch / 10 + 1);
	less.send_count = leg->send_count < part ? leg->send_count : part;
	less.receive_count = leg->receive_count < part ? leg->receive_count : part;
	enum weft_status st = run_leg(c, &less, false, &unused);
	return st == WEFT_OK ? run_leg(c, &less, true, &unused) : st;
}

static enum weft_status
measure(struct client *c, struct wf_peer_leg *leg, struct wf_peer_figure *figure)
{
	uint64_t pairs = c->end->set->pairs;
	struct sides side[2]; /* weft, bare */
	enum weft_status st = warm_up(c, leg);
	WF_ASSERT(pairs > 0 && pairs <= WF_PEER_PAIRS_MAX);
	for (uint64_t i = 0; i < 2 * pairs && st == WEFT_OK; i++) {
		struct wf_figures f;
		bool bare = (i / 2 + i) % 2 == 1; /* the sides take turns at being first */
		st = run_leg(c, leg, bare, &f);
		if (st == WEFT_OK) {
			note(&side[bare ? 1 : 0], i / 2, &f, value_of(leg, figure, &f));
		}
	}
	if (st != WEFT_OK) {
		return st;
	}
	figure->limited_by = c->bare->ops->name(c->bare, leg);
	conclude(figure, side, pairs, leg->ping);
	return WEFT_OK;
}

static uint64_t
count_for(const struct wf_peer_settings *set, uint64_t bytes, uint64_t batch)
{
	uint64_t count = set->count;
	if (count == 0 && set->kind == WF_PEER_LAT) {
		count = PING_COUNT;
	} else if (count == 0) {
		count = STREAM_BYTES / bytes;
		count = count > STREAM_COUNT ? STREAM_COUNT : count;
		count = count < STREAM_COUNT_MIN ? STREAM_COUNT_MIN : count;
	}
	return (count + batch - 1) / batch * batch;
}

static enum weft_status
figure_of(struct client *c, enum wf_peer_op op, uint64_t bytes, bool coalesced)
{
	const struct wf_peer_settings *set = c->end->set;
	bool lat = set->kind == WF_PEER_LAT, rate = set->kind == WF_PEER_RATE;
	uint32_t batch = lat && c->end->plan.over == WF_PEER_SHM ? SHM_BATCH : 1;
	uint64_t message = coalesced ? WF_PEER_MESSAGE_MAX / bytes * bytes : bytes;
	struct wf_peer_leg leg = {
		.ping = lat,
		.verify = set->verify,
		.updates = rate,
		.op = op,
		.bytes = message,
		.send_count = count_for(set, message, batch),
		.client = true,
		.batch = batch,
	};
	leg.receive_count = lat || set->both_ways ? leg.send_count : 0;
	WF_ASSERT(c->run->figure_count < WF_PEER_FIGURES_MAX);
	struct wf_peer_figure *figure = &c->run->figure[c->run->figure_count];
	bool put = op == WF_PEER_PUT;
	*figure = (struct wf_peer_figure){
		.name = lat    ? (put ? "put_latency" : "send_latency")
			: rate ? (put ? "put_rate" : "send_rate")
			       : (put ? "put_bandwidth" : "send_bandwidth"),
		.mode = lat              ? "to and fro"
			: rate           ? (coalesced ? "coalesced" : "plain")
			: set->both_ways ? "both ways"
					 : "one way",
		.unit = lat    ? "us"
			: rate ? "M/s"
			       : "GB/s",
		.bytes = bytes,
		.count = leg.send_count,
		.lower_is_better = lat,
	};
	enum weft_status st = measure(c, &leg, figure);
	c->run->figure_count += st == WEFT_OK ? 1 : 0;
	return st;
}

static enum weft_status
figures_of_size(struct client *c, uint64_t bytes)
{
	const struct wf_peer_settings *set = c->end->set;
	enum weft_status st = WEFT_OK;
	if (strcmp(set->op, "send") != 0) {
		st = figure_of(c, WF_PEER_PUT, bytes, false);
	}
	if (st == WEFT_OK && strcmp(set->op, "put") != 0 && bytes <= WF_PEER_MESSAGE_MAX) {
		st = figure_of(c, WF_PEER_SEND, bytes, false);
	}
	if (st == WEFT_OK && set->kind == WF_PEER_RATE && strcmp(set->op, "put") != 0) {
		st = figure_of(c, WF_PEER_SEND, bytes, true);
	}
	return st;
}

static enum weft_status
figures(struct client *c)
{
	const struct wf_peer_settings *set = c->end->set;
	if (!set->all) {
		return figures_of_size(c, set->bytes);
	}
	enum weft_status st = WEFT_OK;
	for (uint64_t bytes = SIZES_MIN; bytes <= WF_PEER_BYTES_MAX && st == WEFT_OK; bytes *= 2) {
		bool none = strcmp(set->op, "send") == 0 && bytes > WF_PEER_MESSAGE_MAX;
		if (!none) {
			fprintf(stderr, "rdma_bench: measuring messages of %" PRIu64 " bytes\n",
				bytes);
		}
		st = none ? WEFT_OK : figures_of_size(c, bytes);
	}
	return st;
}

static void
sum_up(const struct client *c)
{
	const struct wf_peer_report *own = &c->weft->verified;
	const struct wf_peer_report *server = &c->server;
	c->run->verified = server->wrong > 0 ? *server : *own;
	c->run->verified.checked = own->checked + server->checked;
	c->run->verified.wrong = own->wrong + server->wrong;
}

enum weft_status
wf_peer_measure(struct wf_peer_end *end, struct wf_peer_run *out)
{
	static const char *const names[] = {
		[WF_PEER_TCP] = "tcp", [WF_PEER_SHM] = "shm", [WF_PEER_VERBS] = "verbs"};
	struct client c = {.end = end, .run = out};
	end->port = end->set->to.port;
	end->plan = (struct wf_peer_plan){
		.token = wf_random(end->env),
		.bytes_max = largest(end->set),
		.depth = (uint32_t)end->set->depth,
	};
	out->end = end;
	enum weft_status st = choose_transport(end);
	out->transport = names[end->plan.over];
	if (st == WEFT_OK) {
		st = wf_meter_init(&c.meter, end->env);
		c.meter.counter = true;
	}
	if (st == WEFT_OK) {
		st = meet(&c);
	}
	if (st == WEFT_OK) {
		st = figures(&c);
	}
	if (st == WEFT_OK) {
		sum_up(&c);
		st = wf_peer_control_send(&end->control, WF_PEER_BYE, NULL, 0);
	} else {
		wf_peer_control_fail(&end->control, st);
	}
	if (c.bare != NULL) {
		c.bare->ops->close(c.bare);
	}
	if (c.weft != NULL) {
		c.weft->ops->close(c.weft);
	}
	if (c.meter.env != NULL) {
		wf_meter_fini(&c.meter);
	}
	return st;
}

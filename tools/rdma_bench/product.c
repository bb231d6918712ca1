/* SPDX-License-Identifier: Apache-2.0 */
/* product: see product.h. Thread: pserver and trainer: main of their worker. */
#include "tools/rdma_bench/product.h"

#include <pthread.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/settings.h"
#include "pserver/server.h"
#include "sparse/server/service.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/harness.h"
#include "tools/rdma_bench/table_product.h"
#include "transport/address.h"

#define READY_TIMEOUT_NS (120 * WF_NS_PER_S)
#define END_TIMEOUT_NS (5 * WF_NS_PER_S)
#define PORT_FIRST 20000u
#define PORT_COUNT 20000u
#define PORT_TRIES 50u
/* A caller that drives progress is away between runs. */
#define PEER_TIMEOUT_NS (600 * WF_NS_PER_S)

static const char *const pserver_name[WF_PRODUCT_PSERVERS_MAX] = {"pserver 0", "pserver 1",
								  "pserver 2", "pserver 3"};

struct trainer_arg {
	const struct wf_product_opts *opts;
	uint32_t id;
	char pservers[WF_PRODUCT_HOSTS_BYTES];
};

/* Dense and sparse ports are consecutive, so the system cannot choose them. */
static enum weft_status
create_server(struct wf_server_opts *opts, struct wf_server **out)
{
	enum weft_status st = WEFT_INTERNAL;
	if (opts->session.ports_num_for_sparse == 0) {
		return wf_server_create(opts, out);
	}
	for (unsigned i = 0; i < PORT_TRIES && st != WEFT_OK; i++) {
		uint64_t pair = wf_random(opts->env) % (PORT_COUNT / 2);
		opts->listen.port = (uint16_t)(PORT_FIRST + 2 * pair);
		st = wf_server_create(opts, out);
	}
	return st;
}

/* Answers each order with the memory that the pserver has. Its main thread is in the server by
 * now, and uses the socket only to report that it has failed. */
static void *
report_memory(void *arg)
{
	struct wf_bench_seat *seat = arg;
	struct wf_work_order order;
	while (wf_seat_order(seat, &order)) {
		wf_seat_ready(seat, wf_env_system_bytes());
	}
	return NULL;
}

static enum weft_status
serve(struct wf_bench_seat *seat, struct wf_server *server)
{
	pthread_t thread;
	wf_seat_ready(seat, wf_server_port(server, 0));
	int err = pthread_create(&thread, NULL, report_memory, seat);
	if (err != 0) {
		return wf_fail_errno(WEFT_NOMEM, err, "a thread");
	}
	/* It ends with the process, which is about to. */
	err = pthread_detach(thread);
	WF_ASSERT(err == 0);
	return wf_server_run(server);
}

static enum weft_status
run_pserver(struct wf_bench_seat *seat, const void *arg)
{
	const struct wf_product_opts *opts = arg;
	struct wf_server_opts server_opts;
	struct wf_server *server = NULL;

	wf_server_opts_init(&server_opts);
	server_opts.env = seat->env;
	server_opts.session.transport = opts->transport;
	enum weft_status st = wf_host_parse(wf_address_loopback(), 1, &server_opts.listen);
	server_opts.listen.port = 0;
	server_opts.session.num_gradient_servers = opts->trainer_count;
	server_opts.once = true;
	server_opts.session.spin_ns = opts->spin_ns;
	server_opts.session.peer_timeout_ns = PEER_TIMEOUT_NS;
	server_opts.session.tcp_congestion = opts->congestion;
	if (opts->rows > 0) {
		server_opts.session.ports_num_for_sparse = 1;
		server_opts.sparse = &wf_sparse_service;
	}
	if (st == WEFT_OK) {
		st = create_server(&server_opts, &server);
	}
	if (st == WEFT_OK) {
		st = serve(seat, server);
	}
	wf_server_destroy(server);
	return st;
}

static enum weft_status
open_session(const struct trainer_arg *arg, struct wf_env *env, struct weft_session **out)
{
	const struct wf_product_opts *opts = arg->opts;
	struct weft_session_opts session;

	weft_session_opts_init(&session);
	session.pservers = arg->pservers;
	session.num_gradient_servers = opts->trainer_count;
	session.trainer_id = arg->id;
	session.ports_num_for_sparse = opts->rows > 0 ? 1 : 0;
	session.slice_bytes = opts->slice_bytes;
	session.transport = opts->transport;
	session.dense_mode = opts->dense_mode;
	session.progress = opts->progress;
	session.spin_ns = opts->spin_ns;
	session.peer_timeout_ns = PEER_TIMEOUT_NS;
	session.tcp_congestion = opts->congestion;
	return wf_session_open_in(env, &session, out);
}

static void
fill(struct weft_tensor *tensor)
{
	float *grad = weft_tensor_grad(tensor);
	float *param = weft_tensor_param(tensor);
	for (uint64_t i = 0; i < weft_tensor_count(tensor); i++) {
		grad[i] = 0.5f;
		param[i] = 1;
	}
}

/* Everything before the first step. */
static enum weft_status
begin_job(struct weft_session *session, uint64_t bytes)
{
	const struct weft_tensor_opts declared = {.name = "w", .rows = bytes / sizeof(float)};
	struct weft_tensor *tensor = NULL;
	enum weft_status st = weft_tensor_add(session, &declared, &tensor);
	if (st == WEFT_OK) {
		st = weft_session_seal(session);
	}
	if (st == WEFT_OK) {
		fill(tensor);
		st = weft_session_start(session);
	}
	return st;
}

static enum weft_status
run_steps(void *work, const struct wf_work_order *order, struct wf_meter *meter)
{
	for (uint64_t i = 1; i <= order->count; i++) {
		enum weft_status st = weft_exchange(work, 1, 0);
		if (st != WEFT_OK) {
			return st;
		}
		if (i % meter->batch == 0) {
			wf_meter_mark(meter);
		}
	}
	return WEFT_OK;
}

static enum weft_status
run_dense(struct wf_bench_seat *seat, struct weft_session *session,
	  const struct wf_product_opts *opts)
{
	const struct wf_duty duty = {.run = run_steps, .work = session, .batch = opts->batch};
	enum weft_status st = begin_job(session, opts->bytes);
	return st == WEFT_OK ? wf_seat_follow(seat, &duty) : st;
}

static enum weft_status
run_trainer(struct wf_bench_seat *seat, const void *arg)
{
	const struct trainer_arg *trainer = arg;
	const struct wf_product_opts *opts = trainer->opts;
	struct weft_session *session = NULL;
	enum weft_status st = open_session(trainer, seat->env, &session);
	if (st == WEFT_OK) {
		st = opts->rows > 0 ? wf_table_product_run(seat, session, opts)
				    : run_dense(seat, session, opts);
	}
	if (st == WEFT_OK) {
		return weft_session_close(session);
	}
	/* The first failure is reported, not what closing adds to it. */
	char why[WF_FIGURE_TEXT_BYTES];
	snprintf(why, sizeof(why), "%s", weft_last_error());
	if (session != NULL) {
		weft_session_abort(session, st, why);
	}
	return wf_fail(st, "%s", why);
}

static enum weft_status
start_pservers(const struct wf_product_opts *opts, struct wf_product *product)
{
	size_t used = 0;
	for (unsigned i = 0; i < opts->pserver_count; i++) {
		const struct wf_worker_opts worker = {
			.name = pserver_name[i],
			.cpu = opts->pserver_cpu,
			.either = {opts->either[0], opts->either[1]},
			.run = run_pserver,
			.arg = opts,
		};
		char text[WF_HOST_BYTES + 8];
		struct wf_figures ready;
		struct wf_host at;
		enum weft_status st = wf_worker_start(&worker, &product->pserver[i]);
		if (st == WEFT_OK) {
			st = wf_worker_await(&product->pserver[i], READY_TIMEOUT_NS, &ready);
		}
		if (st == WEFT_OK) {
			st = wf_host_parse(wf_address_loopback(), (uint16_t)ready.number, &at);
		}
		if (st != WEFT_OK) {
			return st;
		}
		wf_host_format(&at, text, sizeof(text));
		used += (size_t)snprintf(product->hosts + used, sizeof(product->hosts) - used,
					 "%s%s", i > 0 ? "," : "", text);
		WF_ASSERT(used < sizeof(product->hosts));
	}
	return WEFT_OK;
}

static enum weft_status
start_trainers(const struct wf_product_opts *opts, struct wf_product *product)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < opts->trainer_count && st == WEFT_OK; i++) {
		struct trainer_arg arg = {.opts = opts, .id = i};
		snprintf(arg.pservers, sizeof(arg.pservers), "%s", product->hosts);
		snprintf(product->name[i], sizeof(product->name[i]), "trainer %u", i);
		const struct wf_worker_opts worker = {
			.name = product->name[i],
			.cpu = opts->trainer_cpu,
			.either = {opts->either[0], opts->either[1]},
			.run = run_trainer,
			.arg = &arg, /* the process has its own copy from the fork on */
		};
		st = wf_worker_start(&worker, &product->trainer[i]);
	}
	for (unsigned i = 0; i < opts->trainer_count && st == WEFT_OK; i++) {
		struct wf_figures ready;
		st = wf_worker_await(&product->trainer[i], READY_TIMEOUT_NS, &ready);
	}
	return st;
}

enum weft_status
wf_product_open(const struct wf_product_opts *opts, struct wf_product *out)
{
	WF_ASSERT(opts->pserver_count >= 1 && opts->pserver_count <= WF_PRODUCT_PSERVERS_MAX);
	return start_pservers(opts, out);
}

enum weft_status
wf_product_join(const struct wf_product_opts *opts, struct wf_product *product)
{
	WF_ASSERT(opts->trainer_count <= WF_PRODUCT_TRAINERS_MAX);
	enum weft_status st = start_trainers(opts, product);
	for (unsigned i = 0; i < opts->trainer_count; i++) {
		product->side.worker[i] = &product->trainer[i];
	}
	product->side.worker_count = opts->trainer_count;
	product->side.bytes =
		opts->rows > 0 ? WF_EXCHANGE_BATCH : opts->bytes * opts->trainer_count;
	product->side.multiple = opts->batch;
	return st;
}

enum weft_status
wf_product_start(const struct wf_product_opts *opts, struct wf_product *out)
{
	enum weft_status st = wf_product_open(opts, out);
	return st == WEFT_OK ? wf_product_join(opts, out) : st;
}

enum weft_status
wf_product_memory(struct wf_product *product, unsigned pserver, uint64_t *out)
{
	const struct wf_work_order order = {0};
	struct wf_figures figures;
	enum weft_status st = wf_worker_order(&product->pserver[pserver], &order);
	if (st == WEFT_OK) {
		st = wf_worker_await(&product->pserver[pserver], READY_TIMEOUT_NS, &figures);
	}
	*out = st == WEFT_OK ? figures.number : 0;
	return st;
}

void
wf_product_end(struct wf_product *product)
{
	bool had_trainers = product->trainer[0].pid > 0;
	/* A session waits for its pservers' goodbye, and those for all of their trainers: stop all
	 * first.
	 */
	const struct wf_work_order stop = {.stop = 1};
	for (unsigned i = 0; i < WF_PRODUCT_TRAINERS_MAX; i++) {
		if (product->trainer[i].pid > 0) {
			enum weft_status st = wf_worker_order(&product->trainer[i], &stop);
			(void)st; /* gone: the end below finds it out */
		}
	}
	for (unsigned i = 0; i < WF_PRODUCT_TRAINERS_MAX; i++) {
		wf_worker_end(&product->trainer[i], END_TIMEOUT_NS);
	}
	for (unsigned i = 0; i < WF_PRODUCT_PSERVERS_MAX; i++) {
		wf_worker_end(&product->pserver[i], had_trainers ? END_TIMEOUT_NS : 0);
	}
}

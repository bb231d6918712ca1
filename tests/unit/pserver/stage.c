/* SPDX-License-Identifier: Apache-2.0 */
/* stage: the world, the lanes in it, and the expected values of their slices. Thread: the
 * test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/settings.h"
#include "pserver/members.h"
#include "pserver/snapshot.h"
#include "wire/layout.h"

/* --- the job --- */

static void
make_job(struct stage *stage)
{
	const struct stage_opts *opts = &stage->opts;
	struct wf_optimizer_opts defaults = wf_optimizer_defaults();
	static const char *const names[STAGE_TENSORS] = {"w", "b", "fixed"};
	const uint64_t counts[STAGE_TENSORS] = {opts->w_count, 16, opts->has_piece ? 32 : 16};
	for (uint32_t i = 0; i < STAGE_TENSORS; i++) {
		struct wf_job_tensor *tensor = &stage->tensor[i];
		(void)snprintf(tensor->name, sizeof(tensor->name), "%s", names[i]);
		tensor->count = counts[i];
		tensor->rate_multiplier = 1;
		tensor->decay = -1;
		tensor->clip = -1;
		tensor->is_static = i == 2 || opts->all_static;
		tensor->is_piece = i == 2 && opts->has_piece;
		tensor->mode = i == 1 ? opts->b_mode : WEFT_TENSOR_AS_SESSION;
		tensor->staleness = i == 1 ? opts->b_staleness : 0;
	}
	stage->job = (struct wf_job){
		.pserver_count = opts->pserver_count,
		.set = {.num_gradient_servers = opts->trainers,
			.ports_num = opts->lanes,
			.slice_bytes = opts->slice_bytes,
			.grad_reduce = WEFT_REDUCE_SUM,
			.skip_nonfinite = opts->skips_nonfinite,
			.optimizer = {.learning_rate = opts->learning_rate,
				      .momentum = opts->optimizer == WF_MOMENTUM ||
								  opts->optimizer == WF_TORCH_SGD
							  ? 0.5
							  : 0,
				      .beta1 = defaults.set.beta1,
				      .beta2 = defaults.set.beta2,
				      .epsilon = defaults.set.epsilon,
				      .rho = defaults.set.rho,
				      .clip_norm = opts->clip_norm},
			.dense_mode = opts->mode,
			.dense_staleness = opts->staleness,
			.dense_discard_ratio = opts->discard_ratio},
		.method = {.kind = (enum wf_optimizer)opts->optimizer},
		.tensor = stage->tensor,
		.tensor_count = STAGE_TENSORS,
	};
	stage->tensor[1].priority = opts->priority_of_b;
	stage->job_byte_count = wf_job_encoded_bytes(&stage->job);
	CHECK(stage, stage->job_byte_count <= sizeof(stage->job_bytes));
	wf_job_encode(&stage->job, stage->job_bytes);
	stage->layout_bytes = wf_layout_offsets(&stage->job, stage->place);
	CHECK(stage,
	      wf_placement_init(stage->script.env, &stage->job, &stage->placement) == WEFT_OK);
}

/* Where the slices of a lane begin among those of all lanes of all pservers. */
static const uint32_t *
lane_first(const struct stage *stage, uint32_t lane)
{
	const struct stage_opts *opts = &stage->opts;
	return &stage->placement.lane_first[opts->pserver_idx * opts->lanes + lane];
}

uint32_t
stage_slice_count(const struct stage *stage, uint32_t lane)
{
	const uint32_t *first = lane_first(stage, lane);
	return first[1] - first[0];
}

const struct wf_slice *
stage_slice(const struct stage *stage, uint32_t lane, uint32_t ordinal)
{
	uint32_t at = *lane_first(stage, lane) + ordinal;
	return &stage->placement.slice[stage->placement.lane_slice[at]];
}

bool
stage_is_static(const struct stage *stage, uint32_t lane, uint32_t ordinal)
{
	return stage->tensor[stage_slice(stage, lane, ordinal)->tensor].is_static;
}

uint64_t
stage_samples(uint32_t trainer)
{
	return 2 + trainer;
}

/* Step 0: the initial values. Sums of these depend on their order. */
float
stage_gradient(uint32_t trainer, uint64_t step, uint32_t ordinal, uint32_t element)
{
	float base = 0.1f * (float)(ordinal + 1) + 0.003f * (float)element;
	return step == 0 ? base : base * (float)(trainer + 1) - 0.07f * (float)step;
}

/* Trainers first .. first + count - 1 push the slice. */
static void
expect(struct stage *stage, uint32_t first, uint32_t trainers, uint64_t step, uint32_t ordinal,
       uint64_t updates)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	opts.method.kind = (enum wf_optimizer)stage->opts.optimizer;
	opts.set.learning_rate = stage->opts.learning_rate;
	opts.set.momentum = stage->job.set.optimizer.momentum;
	float gradient[STAGE_PUPPETS_MAX][STAGE_SLICE_FLOATS];
	const float *list[STAGE_PUPPETS_MAX];
	uint64_t count = stage_slice(stage, 0, ordinal)->count;
	for (uint32_t t = 0; t < trainers; t++) {
		list[t] = gradient[t];
		for (uint32_t e = 0; e < count; e++) {
			gradient[t][e] = stage_gradient(first + t, step, ordinal, e);
		}
	}
	struct wf_apply apply = {
		.param = stage->value[ordinal],
		.state = {stage->state[0][ordinal], stage->state[1][ordinal]},
		.grad = list,
		.grad_count = trainers,
		.count = count,
		.divisor = 1,
	};
	wf_apply_scalars(&opts, opts.set.learning_rate, updates, &apply);
	if (!stage_is_static(stage, 0, ordinal)) {
		(void)wf_kernels_ref()->apply[opts.method.kind](&apply);
	}
}

void
stage_expect_step(struct stage *stage, uint64_t step)
{
	for (uint32_t i = 0; i < stage_slice_count(stage, 0); i++) {
		if (!stage->tensor[stage_slice(stage, 0, i)->tensor].is_piece) {
			expect(stage, 0, stage->opts.trainers, step, i, step);
		}
	}
}

void
stage_expect_push(struct stage *stage, uint32_t trainer, uint64_t step, uint32_t ordinal,
		  uint64_t updates)
{
	expect(stage, trainer, 1, step, ordinal, updates);
}

/* --- the lanes --- */

static void
open_lane(struct stage *stage, uint32_t idx)
{
	const struct stage_opts *opts = &stage->opts;
	struct wf_session_values network;
	wf_session_defaults(&network);
	network.opts.transport = "sim";
	const struct wf_lane_opts lane = {
		.env = stage->script.env,
		.network = &network,
		.listen = {.name = "::", .port = (uint16_t)(STAGE_PORT + idx)},
		.idx = idx,
		.service_idx = idx,
		.lane_count = opts->lanes,
		.has_tables = opts->has_tables,
		.num_gradient_servers = opts->num_gradient_servers,
		.max_trainers = opts->max_trainers == 0 ? 64 : opts->max_trainers,
		.numa_node = -1,
		.incarnation = 77,
		.slot_count = opts->slot_count,
		.slot_bytes_max = opts->slot_bytes_max,
		.max_shard_bytes = opts->max_shard_bytes,
		.inbox_bytes = opts->inbox_bytes,
		.reconnect_timeout_ns = 3 * WF_NS_PER_S,
		.rejoin_timeout_ns = stage->opts.rejoin_timeout_ns,
		.stall_timeout_ns = opts->stall_timeout_ns,
		.connect_timeout_ns = 300 * WF_NS_PER_S,
		.stats_period_ns = opts->stats_period_ns,
		.source = stage->snapshots != NULL ? &wf_snapshot_lane_source : opts->source,
		.snapshots = stage->snapshots,
		.members = stage->members,
		.views = stage->views,
		.traces = stage->traces,
	};
	CHECK(stage, wf_lane_create(&lane, &stage->lane[idx]) == WEFT_OK);
}

static int
run_server(struct wf_env *env, void *arg)
{
	struct stage *stage = arg;
	struct wf_server_opts opts;
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.session.transport = "sim";
	(void)snprintf(opts.listen.name, sizeof(opts.listen.name), "::");
	opts.session.ports_num = stage->opts.lanes;
	opts.inline_lanes = true;
	opts.once = stage->opts.once;
	opts.slot_count = stage->opts.slot_count;
	enum weft_status st = wf_server_create(&opts, &stage->server);
	if (st == WEFT_OK) {
		st = wf_server_run(stage->server);
		wf_server_destroy(stage->server);
	}
	stage->server = NULL;
	stage->server_status = st;
	(void)snprintf(stage->server_text, sizeof(stage->server_text), "%s",
		       st == WEFT_OK ? "" : weft_last_error());
	stage->server_ended = true;
	return 0;
}

static bool
turn(struct script *script)
{
	struct stage *stage = (struct stage *)script;
	bool busy = false;
	for (uint32_t i = 0; i < STAGE_LANES_MAX; i++) {
		if (stage->lane[i] != NULL && !stage->reads[i]) {
			busy = wf_lane_poll(stage->lane[i]) || busy;
		}
	}
	for (uint32_t i = 0; i < stage->puppet_count; i++) {
		busy = puppet_poll(&stage->puppet[i]) > 0 || busy;
	}
	return busy;
}

void
stage_check_waits(struct stage *stage, enum wf_lane_awaits kind, const char *part)
{
	const struct wf_lane *lane = stage->lane[0];
	uint64_t since = wf_waits_since(lane, kind);
	char text[WF_REASON_BYTES];
	CHECK(stage, since != 0);
	stage_run(stage, 3 * WF_NS_PER_S);
	wf_waits_describe(lane, kind, text, sizeof(text));
	CHECK_SAYS(stage, text, part);
	CHECK(stage, wf_waits_since(lane, kind) == since);
	CHECK(stage, lane->waits.gate[kind].told_ns >= since + 2 * WF_NS_PER_S);
}

/* --- the process --- */

static void
close_all(struct stage *stage)
{
	for (uint32_t i = 0; i < stage->puppet_count; i++) {
		peer_close(&stage->puppet[i].peer);
	}
	for (uint32_t i = 0; i < STAGE_LANES_MAX; i++) {
		wf_lane_destroy(stage->lane[i]);
	}
	wf_snapshots_close(stage->snapshots);
	wf_members_close(stage->members);
	wf_views_close(stage->views);
	wf_traces_close(stage->traces);
	wf_placement_fini(stage->script.env, &stage->placement);
}

static void
body(struct script *script)
{
	struct stage *stage = (struct stage *)script;
	make_job(stage);
	if (stage->opts.has_views) {
		CHECK(stage,
		      wf_views_open(script->env, stage->opts.lanes, &stage->views) == WEFT_OK);
		CHECK(stage,
		      wf_traces_open(script->env, stage->opts.lanes, &stage->traces) == WEFT_OK);
	}
	if (stage->opts.snapshots != NULL) {
		CHECK(stage, wf_snapshots_open(script->env, stage->opts.snapshots,
					       stage->opts.lanes, &stage->snapshots) == WEFT_OK);
	}
	if (stage->opts.min_trainers > 0) {
		CHECK(stage, wf_members_open(script->env, stage->opts.lanes,
					     stage->opts.min_trainers, &stage->members) == WEFT_OK);
	}
	for (uint32_t i = 0; i < stage->opts.lanes && !stage->opts.server; i++) {
		open_lane(stage, i);
	}
	stage->run(stage);
	if (stage->server != NULL) {
		wf_server_stop(stage->server); /* a script that failed leaves it running */
	}
	close_all(stage);
}

static void
fill_opts(struct stage_opts *opts)
{
	opts->seed = opts->seed == 0 ? 1 : opts->seed;
	opts->lanes = opts->lanes == 0 ? 1 : opts->lanes;
	opts->pserver_count = opts->pserver_count == 0 ? 1 : opts->pserver_count;
	opts->slot_count = opts->slot_count == 0 ? 4 : opts->slot_count;
	if (opts->has_piece) {
		opts->w_count = STAGE_SLICE_FLOATS;
		opts->slice_bytes = 128;
	}
	opts->w_count = opts->w_count == 0 ? 40 : opts->w_count;
	opts->learning_rate = opts->learning_rate > 0 ? opts->learning_rate : 0.5;
	opts->slice_bytes = opts->slice_bytes == 0 ? 64 : opts->slice_bytes;
	opts->slot_bytes_max = opts->slot_bytes_max == 0 ? 65536 : opts->slot_bytes_max;
	opts->max_shard_bytes = opts->max_shard_bytes == 0 ? 1 << 20 : opts->max_shard_bytes;
}

void
stage_play(const struct stage_opts *opts, void (*run)(struct stage *stage), const void *arg)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	assert_non_null(stage);
	stage->opts = *opts;
	fill_opts(&stage->opts);
	stage->run = run;
	stage->arg = arg;
	stage->script = (struct script){
		.turn = turn,
		.body = body,
		.beside = opts->server ? run_server : NULL,
	};
	bool passed = script_play(&stage->script, stage->opts.seed);
	free(stage);
	assert_true(passed);
}

void *
stage_feature(const struct wf_lane *lane, const struct wf_feature_hooks *hooks)
{
	const struct wf_features *features = &((const struct wf_dense *)lane->own)->features;
	uint32_t i = 0;
	while (i < features->count && features->on[i].hooks != hooks) {
		i++;
	}
	return i < features->count ? features->on[i].state : NULL;
}

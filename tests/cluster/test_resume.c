/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose lanes begin with the state that another job had in the middle: with other numbers of
 * pservers, lanes and slots, under faults, and each trainer at the position that it had given. In
 * the synchronous mode it ends with the bits of the job that went on. Lanes that do not begin
 * alike, and trainers that restore besides, are refused. Usage: test_resume FIRST COUNT;
 * WEFT_SEED=S runs one seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/settings.h"
#include "sparse/server/service.h"
#include "tests/cluster/kept.h"
#include "tests/support/crew.h"
#include "tests/support/fleet.h"
#include "tests/support/sweep.h"
#include "weft/restart.h"
#include "weft/sparse.h"
#include "weft/weft.h"

#define TRAINERS_MAX 3u
#define TENSORS KEPT_TENSORS
#define ELEMENTS 700u
#define PASSES 3u
#define BATCHES 5u   /* of a pass; trainer 1 has one less */
#define RATE_STEP 3u /* the rate of t0 changes with it */

static const char *const methods[] = {"sgd", "momentum", "adam", "adagrad", "rmsprop"};

/* How pserver 1 differs, in the tests of refusals. */
enum odd { ALIKE, WITHOUT, OTHER_STEP, OTHER_SAMPLES, RESTORED, TABLES };

struct job {
	struct crew crew;
	struct wf_lane_source source;
	const char *method;
	enum weft_dense_mode mode;
	enum weft_dense_wire wire;
	bool averages, has_ring, changes_rate;
	bool tiny; /* fewer slices than lanes */
	double clip_norm;
	enum odd odd;
	struct kept *from; /* what lanes begin with; NULL: nothing */
	struct kept *to;   /* the state after step keep_at; NULL: not kept */
	uint64_t keep_at;
	struct kept_lanes lanes;
	uint64_t ended, before; /* passes by trainer 0, when it was kept; when `from` was */
	uint64_t digest;        /* of trainer 0 at the end */
	enum weft_status status[TRAINERS_MAX];
	char text[TRAINERS_MAX][256];
};

static uint64_t
batches_of(uint32_t trainer)
{
	return trainer == 1 ? BATCHES - 1 : BATCHES;
}

static bool
is_local(const struct job *job)
{
	return job->mode == WEFT_DENSE_LOCAL || job->mode == WEFT_DENSE_ELASTIC;
}

/* --- the lanes --- */

static enum weft_status
load(const struct wf_lane_source *source, struct wf_lane *lane, struct wf_msg_init *out)
{
	struct job *job =
		(struct job *)(void *)((char *)(uintptr_t)source - offsetof(struct job, source));
	const bool odd = lane->admission.first.pserver_idx == 1;
	kept_note(&job->lanes, lane);
	if (job->from == NULL || (odd && job->odd == WITHOUT)) {
		return WEFT_CLOSED;
	}
	enum weft_status st = kept_load(job->from, lane, out);
	out->step += odd && job->odd == OTHER_STEP ? 1 : 0;
	out->samples += odd && job->odd == OTHER_SAMPLES ? 1 : 0;
	return st;
}

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct job *job = crew->run;
	out->source = &job->source;
}

/* --- the trainers --- */

/* The last tensor is static, and the one before it only reduced, where that can be. */
static enum weft_status
declare(const struct job *job, struct weft_session *s, struct weft_tensor **t)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < TENSORS && st == WEFT_OK; i++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "t%u", i);
		const struct weft_tensor_opts opts = {
			.name = name,
			.rows = job->tiny ? 10 : ELEMENTS - 100 * i,
			.is_static = i == TENSORS - 1,
			.is_reduced = i == TENSORS - 2 && !(job->clip_norm > 0) &&
				      job->mode == WEFT_DENSE_SYNC && job->wire == WEFT_WIRE_F32,
		};
		st = weft_tensor_add(s, &opts, &t[i]);
	}
	if (st == WEFT_OK && job->crew.sparse != NULL) {
		struct weft_table_opts rows;
		struct weft_table *table = NULL;
		weft_table_opts_init(&rows);
		rows.name = "rows";
		rows.dim = 4;
		st = weft_table_add(s, &rows, &table);
	}
	return st != WEFT_OK ? st : weft_session_seal(s);
}

/* Of a job that begins with a state these are replaced. */
static void
fill_values(const struct job *job, struct weft_tensor **t)
{
	struct wf_rng rng;
	wf_rng_init(&rng, job->from == NULL ? 5 : 6, 0);
	for (uint32_t i = 0; i < TENSORS; i++) {
		float *param = weft_tensor_param(t[i]);
		for (uint64_t e = 0; e < weft_tensor_count(t[i]); e++) {
			param[e] = (float)wf_rng_f64(&rng) - 0.5f;
		}
	}
}

/* Batch `batch` of a trainer, in plain arithmetic. */
static void
fill_gradient(struct weft_tensor *t, uint64_t batch, uint32_t trainer)
{
	const float *param = weft_tensor_param(t);
	float *grad = weft_tensor_grad(t);
	for (uint64_t e = 0; grad != NULL && e < weft_tensor_count(t); e++) {
		grad[e] = param[e] * 0.25f + (float)((e * 7 + batch * 3 + trainer) % 11) * 0.01f;
	}
}

/* Where a trainer is in its data. */
struct place {
	uint64_t batch; /* the next one, over all passes */
	uint64_t ended; /* passes */
};

/* The batch that the program gave, as a text; not in the first pass the trainer's number too. */
static enum weft_status
go_to_position(const struct crew_seat *seat, struct weft_session *s, struct place *place)
{
	const struct job *job = seat->crew->run;
	struct weft_resumed resumed;
	unsigned trainer = 0;
	if (weft_session_resumed(s, &resumed) != (job->from != NULL)) {
		return wf_fail(WEFT_DATA, "resumed, or not");
	}
	if (job->from == NULL) {
		return WEFT_OK;
	}
	/* One that has begun no step where each has its own has given none. */
	char text[WEFT_POSITION_BYTES_MAX + 1] = "";
	if (resumed.position_bytes == 0 && job->from->position_bytes[seat->idx] == 0) {
		(void)snprintf(text, sizeof(text), "batch 0 of %u", seat->idx);
	}
	memcpy(text, resumed.position, resumed.position_bytes);
	if (resumed.step != job->from->step || resumed.step != weft_steps(s) ||
	    resumed.samples != job->from->samples ||
	    sscanf(text, "batch %" SCNu64 " of %u", &place->batch, &trainer) != 2 ||
	    trainer != seat->idx) {
		return wf_fail(WEFT_DATA,
			       "resumed at step %" PRIu64 ", %" PRIu64 " samples, position '%s'",
			       resumed.step, resumed.samples, text);
	}
	if (job->mode == WEFT_DENSE_SYNC && resumed.pass_count != job->before) {
		return wf_fail(WEFT_DATA, "resumed after %" PRIu64 " passes, not %" PRIu64,
			       resumed.pass_count, job->before);
	}
	place->ended = resumed.pass_count;
	if (place->batch < place->ended * batches_of(seat->idx)) {
		place->batch = place->ended * batches_of(seat->idx);
	}
	return WEFT_OK;
}

static enum weft_status
give_position(const struct crew_seat *seat, struct weft_session *s, uint64_t next)
{
	char text[64];
	int count = snprintf(text, sizeof(text), "batch %" PRIu64 " of %u", next, seat->idx);
	return weft_session_position(s, text, (size_t)count);
}

static enum weft_status
reduce_array(const struct crew_seat *seat, struct weft_session *s)
{
	const struct job *job = seat->crew->run;
	double array[40];
	for (uint32_t i = 0; i < 40 && job->has_ring; i++) {
		array[i] = seat->idx + i;
	}
	enum weft_status st =
		job->has_ring ? weft_all_reduce(s, array, 40, WEFT_TYPE_F64, WEFT_REDUCE_SUM)
			      : WEFT_OK;
	const uint32_t n = job->crew.trainers;
	bool right = !job->has_ring || array[39] == (double)(39 * n + n * (n - 1) / 2);
	return st == WEFT_OK && !right ? wf_fail(WEFT_DATA, "a wrong sum of arrays") : st;
}

static enum weft_status
make_step(const struct crew_seat *seat, struct weft_session *s, struct weft_tensor **t,
	  const struct place *place)
{
	struct job *job = seat->crew->run;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < TENSORS; i++) {
		fill_gradient(t[i], place->batch, seat->idx);
	}
	if (job->changes_rate && weft_steps(s) + 1 == RATE_STEP) {
		st = weft_tensor_change(t[0], "learning_rate", 0.0625);
	}
	st = st == WEFT_OK ? give_position(seat, s, place->batch + 1) : st;
	st = st == WEFT_OK ? weft_exchange(s, 1 + (place->batch + seat->idx) % 5, 0) : st;
	if (st == WEFT_OK && seat->idx == 0 && job->to != NULL && job->to->step == 0 &&
	    weft_steps(s) == job->keep_at) {
		/* Nobody applies another step before this trainer has pushed its part, if steps are
		 * common. */
		job->ended = place->ended;
		kept_copy(job->to, &job->lanes, weft_steps(s));
	}
	return st;
}

static enum weft_status
train(const struct crew_seat *seat, struct weft_session *s, struct weft_tensor **t)
{
	struct job *job = seat->crew->run;
	const uint64_t batches = batches_of(seat->idx);
	struct place place = {0};
	if (job->odd != ALIKE) {
		return weft_barrier(s); /* trainer 0, which fails, may come later */
	}
	enum weft_status st = go_to_position(seat, s, &place);
	st = st == WEFT_OK ? reduce_array(seat, s) : st;
	while (st == WEFT_OK && place.ended < PASSES) {
		if (place.batch < (place.ended + 1) * batches) {
			st = make_step(seat, s, t, &place);
			place.batch++;
		} else {
			st = weft_pass_end(s);
			place.ended++;
		}
	}
	if (st == WEFT_OK && seat->idx == 0) {
		st = weft_digest(s, &job->digest);
	}
	return st;
}

static void
fill_opts(const struct crew_seat *seat, struct weft_session_opts *opts)
{
	const struct job *job = seat->crew->run;
	crew_fill_opts(seat->crew, seat->idx, opts);
	opts->slice_bytes = 256;
	opts->grad_reduce = WEFT_REDUCE_MEAN;
	opts->dense_wire = job->wire;
	opts->dense_mode = job->mode;
	opts->dense_staleness = job->mode == WEFT_DENSE_BOUNDED ? 1 : 0;
	opts->local_steps = is_local(job) ? 2 : opts->local_steps;
	opts->optimizer.method = job->method;
	opts->optimizer.learning_rate = 0.05;
	opts->optimizer.momentum = strcmp(job->method, "momentum") == 0 ? 0.9 : 0;
	opts->optimizer.epsilon = 1e-6;
	opts->optimizer.average_window = job->averages ? 0.5 : 0;
	opts->optimizer.max_average_window = 6; /* ends in both halves */
	opts->optimizer.clip_norm = job->clip_norm;
	opts->optimizer.schedule = "pass_manual";
	opts->optimizer.schedule_args = "0:1,1:0.5,2:0.25";
}

static enum weft_status
open_session(struct wf_env *env, const struct crew_seat *seat, struct weft_session **out)
{
	const struct job *job = seat->crew->run;
	struct weft_settings *settings = NULL;
	struct weft_session_opts opts;
	fill_opts(seat, &opts);
	enum weft_status st = weft_settings_create(WEFT_SETTINGS_SESSION, &settings);
	if (st == WEFT_OK && job->has_ring) {
		st = weft_settings_set(settings, "all_reduce_ring", "16KiB");
	}
	if (st == WEFT_OK) {
		wf_settings_set_env(settings, env);
		opts.settings = settings;
		st = weft_session_open(&opts, out);
	}
	weft_settings_destroy(settings);
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct job *job = seat->crew->run;
	struct weft_session *s = NULL;
	struct weft_tensor *t[TENSORS];
	enum weft_status st = open_session(env, seat, &s);
	st = st == WEFT_OK ? declare(job, s, t) : st;
	if (st == WEFT_OK && seat->idx == 0) {
		fill_values(job, t);
		st = job->odd == RESTORED ? weft_session_restore(s, 4, 40) : WEFT_OK;
	}
	st = st == WEFT_OK ? weft_session_start(s) : st;
	st = st == WEFT_OK ? train(seat, s, t) : st;
	job->status[seat->idx] = st;
	if (st != WEFT_OK) {
		(void)snprintf(job->text[seat->idx], sizeof(job->text[0]), "%s", weft_last_error());
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	enum weft_status end = weft_session_close(s);
	seat->crew->ended += st == WEFT_OK && end == WEFT_OK ? 1 : 0;
	return 0;
}

/* Trainer 0 comes last, when the others have waited for a while. */
static uint64_t
start_late(struct fleet *fleet, uint32_t i)
{
	return i == fleet->pservers ? 3 * WF_NS_PER_S : i * WF_NS_PER_MS;
}

/* --- jobs --- */

static bool
run(struct job *job)
{
	uint64_t cuts = 0;
	job->crew.run = job;
	job->source.load = load;
	return crew_ends_well(&job->crew, &cuts);
}

static void
draw_mode(uint64_t seed, struct job *job)
{
	static const enum weft_dense_mode modes[] = {
		WEFT_DENSE_SYNC,  WEFT_DENSE_SYNC,    WEFT_DENSE_SYNC,  WEFT_DENSE_SYNC,
		WEFT_DENSE_ASYNC, WEFT_DENSE_BOUNDED, WEFT_DENSE_LOCAL, WEFT_DENSE_ELASTIC};
	static const enum weft_dense_wire wires[] = {WEFT_WIRE_F32, WEFT_WIRE_F16, WEFT_WIRE_F32,
						     WEFT_WIRE_BF16};
	const bool sync = modes[seed % 8] == WEFT_DENSE_SYNC;
	job->mode = modes[seed % 8];
	job->wire = sync || job->mode == WEFT_DENSE_ASYNC ? wires[seed / 8 % 4] : WEFT_WIRE_F32;
	job->averages = sync && seed % 3 == 1;
	job->clip_norm = sync && seed % 5 < 2 ? 0.5 : 0;
	job->changes_rate = sync && seed % 2 == 0;
	job->has_ring = job->wire == WEFT_WIRE_F32 && seed % 7 < 2;
	job->method = methods[seed % (sizeof(methods) / sizeof(methods[0]))];
}

static struct job
draw(uint64_t seed, uint64_t stream)
{
	static const uint32_t slots[] = {1, 2, 8};
	const bool calm = stream == 0 && seed % 4 < 2;
	struct wf_rng rng;
	wf_rng_init(&rng, seed, stream);
	struct job job = {.crew.seed = seed * 3 + stream, .crew.transport = "sim"};
	crew_draw_world(&rng, calm, 6000, 200, &job.crew);
	job.crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, 3);
	job.crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 3);
	job.crew.slot_count = slots[wf_rng_below(&rng, 3)];
	job.crew.inbox_bytes = !calm && seed % 4 == 1 && seed % 5 >= 2 ? 8192 : 0;
	job.crew.run_trainer = run_trainer;
	job.crew.fill_server = fill_server;
	job.crew.start_ns = !calm && seed % 2 == 1 ? start_late : NULL;
	draw_mode(seed, &job);
	/* Pieces of a ring would take the first lanes, and positions travel with steps of those. */
	job.tiny = seed % 9 == 8 && !job.has_ring;
	/* With one trainer the asynchronous modes have an order, too. */
	job.crew.trainers = job.mode != WEFT_DENSE_SYNC && seed / 8 % 2 == 0 ? 1 : TRAINERS_MAX;
	return job;
}

static bool
complain(uint64_t seed, const struct job *job, const char *what)
{
	(void)printf("FAILED seed %" PRIu64 " (mode %d, %s, %u trainers): %s; repeat: "
		     "WEFT_SEED=%" PRIu64 " test_resume\n",
		     seed, (int)job->mode, job->method, job->crew.trainers, what, seed);
	return false;
}

/* The job that goes on to its end, one that begins in its middle, and one that begins in the middle
 * of that. */
static bool
run_seed(uint64_t seed)
{
	static struct kept kept[2];
	static struct job job[3];
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 9);
	memset(kept, 0, sizeof(kept));
	for (unsigned i = 0; i < WF_ARRAY_COUNT(job); i++) {
		job[i] = draw(seed, i);
		uint64_t left = (is_local(&job[i]) ? 6 : PASSES * BATCHES - 1) / (i + 1);
		job[i].from = i > 0 ? &kept[i - 1] : NULL;
		job[i].before = i > 0 ? job[i - 1].ended : 0;
		job[i].to = i < WF_ARRAY_COUNT(kept) ? &kept[i] : NULL;
		job[i].keep_at = 1 + wf_rng_below(&rng, left) + (i > 0 ? job[i - 1].keep_at : 0);
		if (i > 0 && kept[i - 1].step == 0) {
			return true; /* the job before was over */
		}
		if (!run(&job[i])) {
			return complain(seed, &job[i], job[i].crew.why);
		}
		bool ordered = job[i].mode == WEFT_DENSE_SYNC || job[i].crew.trainers == 1;
		if (ordered && !is_local(&job[i]) && job[i].digest != job[0].digest) {
			return complain(seed, &job[i], "other bits");
		}
	}
	return true;
}

/* --- refusals --- */

static const struct {
	enum odd odd;
	enum weft_status status;
	const char *says[2]; /* one of these: lanes answer in any order */
} refusals[] = {
	{WITHOUT,
	 WEFT_MISMATCH,
	 {"the pservers do not begin at the same step: pserver 0 lane 0 is at step 5, pserver 1 "
	  "lane 0 at step 0; start all pservers with the same snapshot",
	  "the pservers do not begin at the same step: pserver 1 lane 0 is at step 0, pserver 0 "
	  "lane 0 at step 5; start all pservers with the same snapshot"}},
	{OTHER_STEP,
	 WEFT_MISMATCH,
	 {"the pservers do not begin at the same step: pserver 0 lane 0 is at step 5, pserver 1 "
	  "lane 0 at step 6; ",
	  "the pservers do not begin at the same step: pserver 1 lane 0 is at step 6, pserver 0 "
	  "lane 0 at step 5; "}},
	{OTHER_SAMPLES, WEFT_MISMATCH, {"are at step 5, over different numbers of samples; "}},
	{RESTORED,
	 WEFT_INVALID,
	 {" goes on from a snapshot, of step 5, and trainer 0 was to begin with a saved job, of "
	  "step 4: start the pservers without --resume, or the trainers without --start_pass"}},
	{TABLES, WEFT_MISMATCH, {" sparse lane 0 is at step 0, the dense lanes at step 5; "}},
};

/* Every trainer ends with the first cause. */
static bool
run_refusal(size_t at, uint64_t seed)
{
	static struct kept kept;
	static struct job job;
	memset(&kept, 0, sizeof(kept));
	kept.step = 5;
	kept.samples = 50;
	job = draw(0, seed);
	job.crew.seed = seed;
	job.odd = refusals[at].odd;
	job.crew.pservers = 2;
	job.crew.lanes = 1;
	job.crew.ends_badly = true;
	job.crew.sparse = job.odd == TABLES ? &wf_sparse_service : NULL;
	job.crew.world.cut_per_million = 0; /* an ABORT that is lost is another cause */
	job.changes_rate = false;
	job.from = &kept;
	(void)run(&job);
	for (uint32_t t = 0; t < job.crew.trainers; t++) {
		const char *const *says = refusals[at].says;
		bool named = strstr(job.text[t], says[0]) != NULL ||
			     (says[1] != NULL && strstr(job.text[t], says[1]) != NULL);
		if (job.status[t] != refusals[at].status || !named) {
			char what[400];
			(void)snprintf(what, sizeof(what), "refusal %zu: trainer %u: status %d, %s",
				       at, t, (int)job.status[t], job.text[t]);
			return complain(seed, &job, what);
		}
	}
	return true;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		failed += run_seed(seed) ? 0 : 1;
		failed += run_refusal(seed % WF_ARRAY_COUNT(refusals), seed) ? 0 : 1;
	}
	(void)printf("%" PRIu64 " jobs resumed, %" PRIu64 " failed\n", sweep.count, failed);
	return failed == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is saved in the middle and continued by another one, with other numbers of pservers,
 * lanes and slots and under faults, ends with the bits of a job that was never interrupted. Rates
 * change in both, and values are replaced. What is saved has the samples of all trainers. Usage:
 * test_restore FIRST COUNT; WEFT_SEED=S runs one seed. */
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/rng.h"
#include "saved/saved.h"
#include "tests/support/crew.h"
#include "tests/support/sweep.h"
#include "weft/members.h"
#include "weft/weft.h"
#include "base/settings.h"

#define TRAINERS 3u
#define TENSORS 4u
#define ELEMENTS 700u
#define STATE_MAX 5u
#define STEPS 8u /* of each half */
#define LEAVE_STEP 3u

static const char *const methods[] = {
	"sgd",    "momentum",        "adam",           "adagrad",    "rmsprop",  "adadelta",
	"adamax", "decayed_adagrad", "torch_momentum", "torch_adam", "torch_sgd"};

/* What trainer 0 keeps between two jobs. */
struct kept {
	uint64_t step, samples;
	uint32_t state_count;
	float param[TENSORS][ELEMENTS];
	float state[TENSORS][STATE_MAX][ELEMENTS];
};

struct job {
	struct crew crew;
	const char *method;
	bool averages;
	double clip_norm;
	enum weft_dense_wire wire;
	enum weft_rounding rounding;
	uint64_t steps;
	bool is_async;
	bool leaves;            /* the last trainer, after step LEAVE_STEP */
	struct kept *from, *to; /* NULL: from the beginning; not saved */
	/* The same by weft_session_load and _save, through files; NULL: not by these. */
	const char *load_dir, *save_dir;
	uint64_t digest; /* of trainer 0 at the end */
};

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
			.rows = ELEMENTS - 100 * i,
			.is_static = i == TENSORS - 1,
			.is_reduced = i == TENSORS - 2 && !(job->clip_norm > 0) &&
				      job->wire == WEFT_WIRE_F32 && !job->is_async,
		};
		st = weft_tensor_add(s, &opts, &t[i]);
	}
	return st != WEFT_OK ? st : weft_session_seal(s);
}

static void
copy_state(struct weft_session *s, struct weft_tensor *t, float (*kept)[ELEMENTS], bool save)
{
	size_t bytes = weft_tensor_count(t) * sizeof(float);
	for (uint32_t i = 0; i < weft_state_count(s); i++) {
		float *own = weft_tensor_state(t, i);
		if (own != NULL) {
			memcpy(save ? kept[i] : own, save ? own : kept[i], bytes);
		}
	}
}

static enum weft_status
load(struct job *job, struct weft_session *s, struct weft_tensor **t)
{
	struct wf_rng rng;
	wf_rng_init(&rng, 5, 0);
	for (uint32_t i = 0; i < TENSORS; i++) {
		float *param = weft_tensor_param(t[i]);
		for (uint64_t e = 0; e < weft_tensor_count(t[i]); e++) {
			param[e] = (float)wf_rng_f64(&rng) - 0.5f;
		}
		if (job->from != NULL) {
			memcpy(param, job->from->param[i], weft_tensor_count(t[i]) * sizeof(float));
			copy_state(s, t[i], job->from->state[i], false);
		}
	}
	return job->from == NULL ? WEFT_OK
				 : weft_session_restore(s, job->from->step, job->from->samples);
}

static void
save(struct job *job, struct weft_session *s, struct weft_tensor **t, uint64_t samples)
{
	struct kept *to = job->to;
	to->step = weft_steps(s);
	to->samples = samples;
	for (uint32_t i = 0; i < TENSORS; i++) {
		memcpy(to->param[i], weft_tensor_exact(t[i]),
		       weft_tensor_count(t[i]) * sizeof(float));
		copy_state(s, t[i], to->state[i], true);
	}
}

/* A gradient that depends on the parameters, the step and the trainer, in plain arithmetic. */
static void
fill(struct weft_tensor *t, uint64_t step, uint32_t trainer)
{
	const float *param = weft_tensor_param(t);
	float *grad = weft_tensor_grad(t);
	for (uint64_t e = 0; grad != NULL && e < weft_tensor_count(t); e++) {
		grad[e] = param[e] * 0.5f + (float)((e * 7 + step * 3 + trainer) % 11) * 0.01f;
	}
}

#define ASSIGNED_STEP 5u /* of the first half */

/* The rate changes in every fourth step; a job that continues begins with the one that is in force.
 * In one step what trainer 0 pushes takes the place of the values, which the optimizer does not
 * count. */
static enum weft_status
change(const struct job *job, struct weft_session *s, struct weft_tensor **t, bool begins)
{
	const uint64_t step = weft_steps(s) + 1;
	const bool assigns = job->wire == WEFT_WIRE_F32 && !job->averages;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = TENSORS - 2; i-- > 0 && st == WEFT_OK;) {
		if (begins || step % 4 == 2) {
			st = weft_tensor_change(t[i], "learning_rate",
						0.05 / (1.0 + (double)((step + 2) / 4)));
		}
		if (st == WEFT_OK && begins && assigns && step > ASSIGNED_STEP) {
			st = weft_tensor_change(t[i], "updates", (double)(step - 2));
		}
		if (st == WEFT_OK && assigns && step == ASSIGNED_STEP) {
			st = weft_tensor_assign(t[i], 0);
		}
	}
	return st;
}

/* The digest is of the averages too. */
static enum weft_status
add_averages(struct job *job, struct weft_tensor **t)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < TENSORS && st == WEFT_OK; i++) {
		float average[ELEMENTS];
		st = weft_tensor_average(t[i], average);
		job->digest = job->digest * 31 +
			      wf_digest_of(average, weft_tensor_count(t[i]) * sizeof(float));
	}
	return st;
}

/* Of a trainer; 0: it takes no part in the step. */
static uint64_t
samples_of(const struct job *job, uint32_t trainer, uint64_t step)
{
	const bool has_left = job->leaves && trainer + 1 == TRAINERS && step > LEAVE_STEP;
	return has_left ? 0 : 1 + (step + trainer) % 5;
}

/* Of all trainers, in the steps since the first job's first. */
static uint64_t
samples_until(const struct job *job, uint64_t last)
{
	uint64_t samples = 0;
	for (uint64_t step = 1; step <= last; step++) {
		for (uint32_t t = 0; t < TRAINERS; t++) {
			samples += samples_of(job, t, step);
		}
	}
	return samples;
}

/* Between two steps of trainer 0 all lanes have applied the same ones, whatever the others do. */
static enum weft_status
check_samples(struct weft_session *s, uint64_t samples)
{
	uint64_t counted = 0;
	enum weft_status st = weft_samples(s, &counted);
	if (st == WEFT_OK && counted != samples) {
		return wf_fail(WEFT_DATA,
			       "%" PRIu64 " samples after step %" PRIu64 ", not %" PRIu64, counted,
			       weft_steps(s), samples);
	}
	return st;
}

/* All trainers do; what trainer 0 has written is looked at. */
static enum weft_status
save_pass(const struct job *job, struct weft_session *s, struct wf_env *env, uint32_t idx)
{
	struct wf_saved *saved = NULL;
	char path[WF_SAVED_PATH_BYTES];
	enum weft_status st = weft_session_save(s, idx == 0 ? job->save_dir : NULL);
	if (st != WEFT_OK || idx != 0) {
		return st;
	}
	st = wf_saved_pass_path(job->save_dir, 0, path);
	st = st == WEFT_OK ? wf_saved_open_any(env, wf_saved_posix(), path, &saved) : st;
	const uint64_t written = st == WEFT_OK ? wf_saved_about(saved)->samples : 0;
	const uint64_t samples = samples_until(job, weft_steps(s));
	wf_saved_close(saved);
	return st == WEFT_OK && written != samples
		       ? wf_fail(WEFT_DATA, "saved with %" PRIu64 " samples, not %" PRIu64, written,
				 samples)
		       : st;
}

static enum weft_status
train(struct job *job, struct weft_session *s, struct wf_env *env, struct weft_tensor **t,
      uint32_t idx)
{
	enum weft_status st = WEFT_OK;
	for (uint64_t n = 0; n < job->steps && st == WEFT_OK; n++) {
		uint64_t step = weft_steps(s) + 1;
		for (uint32_t i = 0; i < TENSORS; i++) {
			fill(t[i], step, idx);
		}
		if (samples_of(job, idx, step) == 0) {
			return weft_session_leave(s);
		}
		st = job->is_async ? WEFT_OK : change(job, s, t, n == 0);
		st = st != WEFT_OK ? st : weft_exchange(s, samples_of(job, idx, step), 0);
		if (st == WEFT_OK && idx == 0 && !job->is_async) {
			st = check_samples(s, samples_until(job, step));
		}
	}
	if (st == WEFT_OK) {
		st = weft_pass_end(s);
	}
	if (st == WEFT_OK && job->save_dir != NULL) {
		st = save_pass(job, s, env, idx);
	}
	if (st != WEFT_OK || idx != 0) {
		return st;
	}
	st = weft_pull_state(s);
	if (st == WEFT_OK && job->to != NULL) {
		save(job, s, t, samples_until(job, weft_steps(s)));
	}
	st = st != WEFT_OK ? st : weft_digest(s, &job->digest);
	return st == WEFT_OK && job->averages ? add_averages(job, t) : st;
}

static void
fill_opts(const struct crew_seat *seat, struct weft_session_opts *opts)
{
	const struct job *job = seat->crew->run;
	crew_fill_opts(seat->crew, seat->idx, opts);
	opts->slice_bytes = 256;
	opts->grad_reduce = WEFT_REDUCE_MEAN;
	opts->keep_state = seat->idx == 0;
	opts->dense_wire = job->wire;
	opts->dense_rounding = job->rounding;
	opts->dense_mode = job->is_async ? WEFT_DENSE_ASYNC : WEFT_DENSE_SYNC;
	opts->optimizer.method = job->method;
	opts->optimizer.learning_rate = 0.05;
	opts->optimizer.momentum =
		strstr(job->method, "momentum") != NULL || strcmp(job->method, "torch_sgd") == 0
			? 0.9
			: 0;
	opts->optimizer.epsilon = 1e-6;
	opts->optimizer.l1 = 1e-4;
	opts->optimizer.average_window = job->averages ? 0.5 : 0;
	opts->optimizer.max_average_window = 6; /* ends in both halves */
	opts->optimizer.clip_norm = job->clip_norm;
	opts->optimizer.schedule = "linear"; /* depends on the samples before */
	opts->optimizer.schedule_a = 1e-5;
	opts->optimizer.schedule_b = 1e-3;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct job *job = seat->crew->run;
	struct weft_session_opts opts;
	struct weft_session *s = NULL;
	struct weft_tensor *t[TENSORS];
	fill_opts(seat, &opts);
	enum weft_status st = wf_session_open_in(env, &opts, &s);
	if (st == WEFT_OK) {
		st = declare(job, s, t);
	}
	if (st == WEFT_OK && seat->idx == 0) {
		st = load(job, s, t);
	}
	if (st == WEFT_OK && job->load_dir != NULL) {
		st = weft_session_load(s, seat->idx == 0 ? job->load_dir : NULL);
	}
	if (st == WEFT_OK) {
		st = weft_session_start(s);
	}
	if (st == WEFT_OK) {
		st = train(job, s, env, t, seat->idx);
	}
	if (st != WEFT_OK) {
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	enum weft_status end = weft_session_close(s);
	if (end != WEFT_OK) {
		crew_complain(seat->crew, "trainer (close)", seat->idx);
	}
	seat->crew->ended += st == WEFT_OK && end == WEFT_OK ? 1 : 0;
	return 0;
}

static bool
run(struct job *job)
{
	uint64_t cuts = 0;
	job->crew.run = job;
	return crew_ends_well(&job->crew, &cuts);
}

static struct job
draw(uint64_t seed, uint64_t stream, const char *method)
{
	static const uint32_t slots[] = {1, 2, 8};
	static const enum weft_dense_wire wires[] = {WEFT_WIRE_F32, WEFT_WIRE_F16, WEFT_WIRE_F32,
						     WEFT_WIRE_BF16};
	struct wf_rng rng;
	wf_rng_init(&rng, seed, stream);
	return (struct job){
		.crew.world =
			{
				.seed = seed * 3 + stream,
				.delay_min_ns = WF_NS_PER_US,
				.delay_max_ns = (1 + wf_rng_below(&rng, 2000)) * WF_NS_PER_US,
				.split_per_mille = (uint32_t)wf_rng_below(&rng, 500),
				.cut_per_million = (uint32_t)wf_rng_below(&rng, 6000),
				.cut_max = 1 + (uint32_t)wf_rng_below(&rng, 20),
				.refuse_per_mille =
					(uint32_t)wf_rng_below(&rng, WF_WORLD_REFUSE_PER_MILLE_MAX),
				.down_delay_max_ns = wf_rng_below(&rng, 50) * WF_NS_PER_MS,
				.log_fd = getenv("WEFT_CLUSTER_LOG") != NULL ? 2 : -1,
			},
		.crew.transport = "sim",
		.crew.trainers = TRAINERS,
		.crew.run_trainer = run_trainer,
		.method = method,
		.crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, 3),
		.crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 3),
		.crew.slot_count = slots[wf_rng_below(&rng, 3)],
		.averages = seed % 2 == 1,
		.clip_norm = seed % 5 < 2 ? 0.5 : 0, /* some steps are longer, some are not */
		.wire = wires[seed % 4],
		.rounding =
			seed % 8 == 5 || seed % 8 == 7 ? WEFT_ROUND_STOCHASTIC : WEFT_ROUND_NEAREST,
		.steps = STEPS,
	};
}

static int
remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
	(void)info;
	(void)kind;
	(void)place;
	return remove(path);
}

/* Every second seed goes through files. */
static bool
run_seed(uint64_t seed)
{
	static struct kept kept;
	char dir[] = "/tmp/weft-restore-XXXXXX";
	const bool has_files = seed / 3 % 2 == 1; /* with every format on the wire */
	const char *method = methods[seed % (sizeof(methods) / sizeof(methods[0]))];
	struct job whole = draw(seed, 0, method);
	struct job first = draw(seed, 1, method);
	struct job second = draw(seed, 2, method);
	whole.steps = 2 * STEPS;
	first.to = has_files ? NULL : &kept;
	second.from = has_files ? NULL : &kept;
	if (mkdtemp(dir) != NULL) {
		first.save_dir = second.load_dir = has_files ? dir : NULL;
		second.save_dir = has_files ? NULL : dir;
	}
	memset(&kept, 0, sizeof(kept));
	const struct job *bad = !run(&whole)    ? &whole
				: !run(&first)  ? &first
				: !run(&second) ? &second
						: NULL;
	(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (bad == NULL && whole.digest == second.digest && (has_files || kept.step == STEPS)) {
		return true;
	}
	(void)printf("FAILED seed %" PRIu64 " (%s): %s; whole %016" PRIx64 ", in two %016" PRIx64
		     "; repeat: WEFT_SEED=%" PRIu64 " test_restore\n",
		     seed, method, bad != NULL ? bad->crew.why : "other bits", whole.digest,
		     second.digest, seed);
	return false;
}

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	(void)crew;
	out->snapshots.registrar = "ps0";
	out->min_trainers = 1;
}

/* A job that a trainer leaves is saved by the others, and an asynchronous one that goes on from
 * another is saved, too. */
static bool
check_saved(bool is_async)
{
	static struct kept kept;
	char dir[] = "/tmp/weft-restore-XXXXXX";
	struct job job = draw(2, 0, "sgd");
	job.is_async = is_async;
	job.leaves = !is_async;
	job.crew.fill_server = is_async ? NULL : fill_server;
	kept = (struct kept){.step = STEPS, .samples = samples_until(&job, STEPS)};
	job.from = is_async ? &kept : NULL;
	job.save_dir = mkdtemp(dir);
	const bool ok = job.save_dir != NULL && run(&job);
	(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (!ok) {
		(void)printf("FAILED: what is saved of a job %s: %s\n",
			     is_async ? "without common steps" : "that a trainer leaves",
			     job.crew.why);
	}
	return ok;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		failed += run_seed(seed) ? 0 : 1;
	}
	failed += check_saved(false) ? 0 : 1;
	failed += check_saved(true) ? 0 : 1;
	(void)printf("%" PRIu64 " jobs saved and restored, %" PRIu64 " failed\n", sweep.count,
		     failed);
	return failed == 0 ? 0 : 1;
}

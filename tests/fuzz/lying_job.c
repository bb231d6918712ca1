/* SPDX-License-Identifier: Apache-2.0 */
/* lying_job: see lying_job.h. Thread: one. */
#include "tests/fuzz/lying_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "pserver/server.h"
#include "sparse/server/service.h"
#include "tests/fuzz/liar.h"
#include "tests/support/fleet.h"
#include "weft/sparse.h"
#include "weft/weft.h"
#include "base/settings.h"

#define TRAINERS LYING_TRAINERS
#define TENSORS 3u
#define TABLES 2u
#define KEYS 24u
#define DIM 3u
#define RECORDS_MAX 64u
#define SLICE_BYTES 64u
#define TIGHT_BYTES 60000u /* a few rows more than a batch of KEYS */
/* Virtual time. Every wait of the job is bounded by some of the first, and they may follow each
 * other. */
#define PATIENCE_NS (2 * WF_NS_PER_S)
#define UNTIL_NS (200 * WF_NS_PER_S)

enum dense_mode {
	SYNC,
	ASYNC,
	BOUNDED,
	LOCAL,
	ELASTIC,
	MIXED, /* one tensor is asynchronous in a synchronous job */
	DENSE_MODES,
};

enum feature { /* bits of byte 2 */
	       INBOX = 1,
	       CLIP_NORM = 2,
	       AVERAGES = 4,
	       SKIPS = 8, /* values that are not finite */
	       MEAN = 16,
	       PRIORITIES = 32,
	       DISCARDS = 64,
	       ROUNDS_BY_CHANCE = 128,
};

enum deed { /* bits of byte 5 */
	    RESTORES = 1,
	    PULLS_STATE = 2,
	    READS_TABLES = 4,
	    REDUCES = 8,
	    ASKS_STATS = 16,
	    PREFETCHES = 32,
	    SECOND_PASS = 64,
	    PULLS = 128,
};

enum table_feature { /* bits of byte 4, above the format */
		     SCORES = 4,
		     CAP = 8,
		     ADMITS = 16,
		     RAW_KEYS = 32,
		     ANY_ORDER = 64,
		     TIGHT = 128, /* lanes hold few rows more than trainers push */
};

enum rough {                 /* bits of byte 11 */
	     CUTS = 1,       /* the network cuts and refuses */
	     NOT_FINITE = 2, /* gradients of trainer 1 and its rows */
	     MEASURES = 4,   /* lanes and trainers write stats lines */
	     REDUCED = 8,    /* one tensor is only reduced */
	     BOUNDS = 16,    /* MIXED: the tensor is bounded, not asynchronous */
	     CHANGES = 32,   /* numbers of the optimizer, before each step but the first */
	     ASSIGNS = 64,   /* and the values of a tensor, in the second */
};

struct scene {
	uint8_t dense_mode; /* enum dense_mode */
	uint8_t wire;       /* enum weft_dense_wire */
	uint8_t features;   /* enum feature */
	uint8_t sparse;     /* 0: no tables; 1 + enum weft_sparse_mode */
	uint8_t tables;     /* enum weft_value_format, and enum table_feature */
	uint8_t deeds;      /* enum deed */
	uint8_t method;
	uint8_t slots; /* log2, to 8 */
	uint8_t steps;
	uint8_t seed;  /* of the world */
	uint8_t who;   /* the trainer that lies */
	uint8_t rough; /* enum rough */
};

static const char *const methods[] = {"sgd",     "momentum",        "adam",
				      "adagrad", "rmsprop",         "adadelta",
				      "adamax",  "decayed_adagrad", "torch_momentum"};

struct job {
	struct scene scene;
	enum lying_who liar;
	struct lying_end *end;
};

static struct scene
scene_of(const uint8_t *data)
{
	struct scene s;
	WF_STATIC_ASSERT(sizeof(s) == LYING_SCENE_BYTES, "byte by byte");
	memcpy(&s, data, sizeof(s));
	s.dense_mode %= DENSE_MODES;
	s.wire %= 3;
	s.sparse %= 4;
	s.method %= sizeof(methods) / sizeof(methods[0]);
	s.slots %= 4;
	s.steps = (uint8_t)(2 + s.steps % 2); /* trainer 1 makes one less */
	s.who %= TRAINERS;
	/* What does not go together is refused, and says nothing of what follows. */
	bool steps_alone = s.dense_mode == LOCAL || s.dense_mode == ELASTIC;
	if (s.dense_mode != SYNC) {
		s.features &= (uint8_t) ~(CLIP_NORM | AVERAGES);
		s.rough &= (uint8_t) ~(CHANGES | ASSIGNS);
	}
	if (s.wire > 0 || (s.features & AVERAGES) != 0) {
		s.rough &= (uint8_t)~ASSIGNS;
	}
	if (s.dense_mode != SYNC || (s.features & (CLIP_NORM | INBOX)) != 0 || s.wire > 0) {
		s.rough &= (uint8_t)~REDUCED;
	}
	if (steps_alone) {
		s.sparse = 0;
		s.deeds &= (uint8_t) ~(RESTORES | PULLS_STATE);
	}
	return s;
}

static void
keep_end(struct wf_env *env, const struct fleet_end *end, int *status, char text[512])
{
	*status = (int)end->status;
	(void)snprintf(text, 512, "%.500s", end->text);
	if (end->status != WEFT_OK) {
		wf_log(env, WF_LOG_INFO, "ends with %d: %s", *status, text);
	}
}

static int
run_pserver(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	const struct job *job = seat->fleet->run;
	const struct scene *s = &job->scene;
	struct wf_server_opts opts;
	if (job->liar == LYING_PSERVER) {
		liar_is(env);
	}
	fleet_server_opts(env, "sim", &opts);
	opts.session.ports_num_for_sparse = s->sparse > 0 ? 1 : 0;
	opts.sparse = s->sparse > 0 ? &wf_sparse_service : NULL;
	opts.slot_count = 1u << s->slots;
	opts.slot_bytes_max = 1024;
	opts.max_shard_bytes = 4u << 20;
	opts.inbox_bytes = (s->features & INBOX) != 0 ? (uint64_t)TRAINERS * SLICE_BYTES : 0;
	opts.session.reconnect_timeout_ns = PATIENCE_NS;
	opts.session.peer_timeout_ns = PATIENCE_NS;
	opts.session.connect_timeout_ns = PATIENCE_NS;
	opts.session.stats_period_ns = (s->rough & MEASURES) != 0 ? WF_NS_PER_MS : 0;
	fleet_serve(seat, &opts, NULL);
	keep_end(env, seat->end, &job->end->pserver, job->end->pserver_text);
	return 0;
}

struct trainer {
	const struct scene *scene;
	uint32_t idx;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS];
	struct weft_table *table[TABLES];
	struct weft_rows *next[TABLES]; /* pulled ahead */
	double value;                   /* that is reduced */
};

static void
drop_line(void *arg, enum weft_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

static void
fill_opts(const struct scene *s, uint32_t idx, struct weft_session_opts *out)
{
	static const enum weft_dense_mode modes[DENSE_MODES] = {
		[SYNC] = WEFT_DENSE_SYNC,       [ASYNC] = WEFT_DENSE_ASYNC,
		[BOUNDED] = WEFT_DENSE_BOUNDED, [LOCAL] = WEFT_DENSE_LOCAL,
		[ELASTIC] = WEFT_DENSE_ELASTIC, [MIXED] = WEFT_DENSE_SYNC,
	};
	weft_session_opts_init(out);
	out->pservers = "ps0";
	out->ports_num_for_sparse = s->sparse > 0 ? 1 : 0;
	out->num_gradient_servers = TRAINERS;
	out->grad_reduce = (s->features & MEAN) != 0 ? WEFT_REDUCE_MEAN : WEFT_REDUCE_SUM;
	out->skip_nonfinite = (s->features & SKIPS) != 0;
	out->slice_bytes = SLICE_BYTES;
	out->optimizer.method =
		s->dense_mode >= LOCAL && s->dense_mode != MIXED ? "sgd" : methods[s->method];
	out->optimizer.learning_rate = 0.125;
	out->optimizer.clip_norm = (s->features & CLIP_NORM) != 0 ? 0.5 : 0;
	out->optimizer.average_window = (s->features & AVERAGES) != 0 ? 0.5 : 0;
	out->trainer_id = idx;
	out->transport = "sim";
	out->progress = WEFT_PROGRESS_CALLER;
	out->connect_timeout_ns = PATIENCE_NS;
	out->reconnect_timeout_ns = PATIENCE_NS;
	out->peer_timeout_ns = PATIENCE_NS;
	out->step_timeout_ns = 2 * PATIENCE_NS;
	out->keep_state =
		(s->deeds & (RESTORES | PULLS_STATE)) != 0 || (s->features & AVERAGES) != 0;
	out->dense_mode = modes[s->dense_mode];
	out->dense_staleness = s->dense_mode == BOUNDED ? 1 : 0;
	bool discards = (s->features & DISCARDS) != 0;
	out->dense_discard_ratio =
		discards && (s->dense_mode == ASYNC || s->dense_mode == BOUNDED) ? 0.5 : 0;
	out->local_steps = s->dense_mode == LOCAL || s->dense_mode == ELASTIC ? 2 : 0;
	out->dense_wire = (enum weft_dense_wire)s->wire;
	bool by_chance = s->wire > 0 && (s->features & ROUNDS_BY_CHANCE) != 0;
	out->dense_rounding = by_chance ? WEFT_ROUND_STOCHASTIC : WEFT_ROUND_NEAREST;
	out->sparse_mode =
		s->sparse > 1 ? (enum weft_sparse_mode)(s->sparse - 1) : WEFT_SPARSE_SYNC;
	out->sparse_staleness = s->sparse == 3 ? 1 : 0;
	out->sparse_discard_ratio = discards && s->sparse > 1 ? 0.5 : 0;
	out->stats_period_ns = (s->rough & MEASURES) != 0 ? WF_NS_PER_MS : 0;
	out->log = drop_line;
}

/* Of 40, 16 and, static, 8 values: slices of 64, 64, 32, 64 and 32 bytes. */
static enum weft_status
add_tensors(struct trainer *t)
{
	static const uint64_t rows[TENSORS] = {40, 16, 8};
	static const char *const names[TENSORS] = {"w", "b", "fixed"};
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < TENSORS && st == WEFT_OK; i++) {
		struct weft_tensor_opts opts = {
			.name = names[i],
			.rows = rows[i],
			.is_static = i == 2,
			.priority = (t->scene->features & PRIORITIES) != 0 ? (int32_t)i : 0,
		};
		if (t->scene->dense_mode == MIXED && i == 0) {
			bool bounded = (t->scene->rough & BOUNDS) != 0;
			opts.mode = bounded ? WEFT_TENSOR_BOUNDED : WEFT_TENSOR_ASYNC;
			opts.staleness = bounded ? 1 : 0;
		}
		opts.is_reduced = (t->scene->rough & REDUCED) != 0 && i == 1;
		st = weft_tensor_add(t->session, &opts, &t->tensor[i]);
	}
	return st;
}

static enum weft_status
add_tables(struct trainer *t)
{
	const uint8_t tables = t->scene->tables;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < TABLES && st == WEFT_OK && t->scene->sparse > 0; i++) {
		struct weft_table_opts opts;
		weft_table_opts_init(&opts);
		opts.name = i == 0 ? "few" : "any";
		opts.dim = DIM;
		opts.vocabulary = i == 0 ? 64 : 0;
		opts.batch_keys_max = KEYS;
		opts.wire = (enum weft_value_format)(tables % 3);
		opts.raw_keys = (tables & RAW_KEYS) != 0;
		opts.optimizer.method = i == 0 ? "sgd" : "adagrad";
		opts.optimizer.learning_rate = 0.25;
		opts.init = "uniform";
		opts.init_a = -1;
		opts.init_b = 1;
		opts.memory_cap_bytes = (tables & CAP) != 0 && i == 1 ? 1u << 20 : 0;
		opts.memory_cap_bytes =
			(tables & TIGHT) != 0 && i == 1 ? TIGHT_BYTES : opts.memory_cap_bytes;
		opts.evict_at_cap = (tables & CAP) != 0 && i == 1;
		opts.evict_score_least = (tables & SCORES) != 0 && i == 1 ? 0.125 : 0;
		opts.admit_count = (tables & ADMITS) != 0 && i == 1 ? 2 : 0;
		opts.admit_slots = opts.admit_count > 0 ? 64 : 0;
		st = weft_table_add(t->session, &opts, &t->table[i]);
	}
	return st;
}

static enum weft_status
read_partition(void *arg, const struct weft_table_partition *partition)
{
	(void)arg;
	(void)partition;
	return WEFT_OK;
}

static enum weft_status
read_record(void *arg, const struct weft_table_record *record)
{
	(void)arg;
	(void)record;
	return WEFT_OK;
}

static enum weft_status
write_partition(void *arg, uint32_t partition, struct weft_table_partition *out)
{
	uint32_t *left = arg;
	*out = (struct weft_table_partition){.partition = partition};
	*left = 0;
	return WEFT_OK;
}

static enum weft_status
write_record(void *arg, struct weft_table_record *out)
{
	(void)arg;
	(void)out;
	return WEFT_INTERNAL; /* there are none */
}

static enum weft_status
restore(struct trainer *t)
{
	uint32_t left = 0;
	const struct weft_table_writer from = {
		.partition = write_partition, .record = write_record, .arg = &left};
	enum weft_status st = weft_session_restore(t->session, 3, 12);
	if (st == WEFT_OK) {
		st = weft_session_start(t->session);
	}
	for (uint32_t i = 0; i < TABLES && t->table[i] != NULL && st == WEFT_OK; i++) {
		st = weft_table_write(t->table[i], &from);
	}
	return st;
}

static enum weft_status
open_session(struct trainer *t, struct wf_env *env)
{
	struct weft_session_opts opts;
	fill_opts(t->scene, t->idx, &opts);
	enum weft_status st = wf_session_open_in(env, &opts, &t->session);
	st = st == WEFT_OK ? add_tensors(t) : st;
	st = st == WEFT_OK ? add_tables(t) : st;
	st = st == WEFT_OK ? weft_session_seal(t->session) : st;
	if (st != WEFT_OK) {
		return st;
	}
	bool restores = (t->scene->deeds & RESTORES) != 0;
	st = restores && t->idx == 0 ? restore(t) : weft_session_start(t->session);
	return st == WEFT_OK && restores ? weft_barrier(t->session) : st;
}

static bool
is_odd(const struct trainer *t)
{
	return (t->scene->rough & NOT_FINITE) != 0 && t->idx == 1;
}

/* Ascending, or falling, some of them twice. */
static enum weft_status
pull_rows(struct trainer *t, uint32_t table, uint64_t step)
{
	uint64_t key[KEYS];
	bool any_order = (t->scene->tables & ANY_ORDER) != 0;
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t at = any_order ? KEYS - 1 - i : i;
		key[i] = (at * 2 + step % 3) / (any_order ? 2 : 1) + (table == 1 ? 100 * at : 0);
	}
	return weft_rows_pull(t->table[table], key, KEYS,
			      WEFT_ROWS_CREATE | (any_order ? WEFT_ROWS_IN_ORDER : 0),
			      &t->next[table]);
}

static enum weft_status
push_rows(struct trainer *t, uint32_t table, struct weft_rows *rows)
{
	static const float ones[KEYS] = {1, 1, 1, 1, 1, 1, 1, 1};
	float grad[KEYS * DIM];
	for (uint32_t i = 0; i < KEYS * DIM; i++) {
		grad[i] = 0.25f * (float)(i % 5) - 0.5f;
	}
	grad[0] = is_odd(t) ? NAN : grad[0];
	bool scores = (t->scene->tables & SCORES) != 0 && table == 1;
	return weft_rows_push(rows, grad, scores ? ones : NULL, scores ? ones : NULL);
}

static void
fill_gradients(struct trainer *t, uint64_t step)
{
	for (uint32_t i = 0; i < TENSORS; i++) {
		float *grad = weft_tensor_grad(t->tensor[i]);
		for (uint64_t e = 0; grad != NULL && e < weft_tensor_count(t->tensor[i]); e++) {
			grad[e] = (float)((e + step + t->idx) % 7) * 0.125f - 0.25f;
		}
		if (grad != NULL && is_odd(t)) {
			grad[0] = INFINITY;
		}
	}
}

static enum weft_status
begin_step(struct trainer *t, uint64_t step, struct weft_rows **rows)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < TABLES && t->table[i] != NULL && st == WEFT_OK; i++) {
		st = t->next[i] == NULL ? pull_rows(t, i, step) : WEFT_OK;
		rows[i] = t->next[i];
		t->next[i] = NULL;
		st = st == WEFT_OK ? weft_rows_wait(rows[i]) : st;
	}
	return st == WEFT_OK ? weft_step(t->session, 1 + t->idx, 0) : st;
}

static enum weft_status
change(struct trainer *t, uint64_t step)
{
	enum weft_status st = WEFT_OK;
	if ((t->scene->rough & CHANGES) != 0 && step > 1) {
		st = weft_tensor_change(t->tensor[0], "learning_rate", 1.0 / (double)(8 * step));
		st = st == WEFT_OK ? weft_tensor_change(t->tensor[0], "decay", 0.25) : st;
	}
	if (st == WEFT_OK && (t->scene->rough & ASSIGNS) != 0 && step == 2) {
		st = weft_tensor_assign(t->tensor[0], 0);
	}
	return st;
}

static enum weft_status
one_step(struct trainer *t, uint64_t step)
{
	struct weft_rows *rows[TABLES] = {NULL};
	enum weft_status st = change(t, step);
	st = st == WEFT_OK ? begin_step(t, step, rows) : st;
	fill_gradients(t, step);
	for (uint32_t i = 0; i < TENSORS - 1 && st == WEFT_OK; i++) {
		st = weft_push(t->tensor[t->idx == 0 ? i : TENSORS - 2 - i]);
	}
	for (uint32_t i = 0; i < TABLES && t->table[i] != NULL && st == WEFT_OK; i++) {
		if ((t->scene->deeds & PREFETCHES) != 0 && step < t->scene->steps) {
			st = pull_rows(t, i, step + 1);
		}
		st = st == WEFT_OK ? push_rows(t, i, rows[i]) : st;
	}
	return st == WEFT_OK ? weft_wait_all(t->session) : st;
}

static enum weft_status
look_around(struct trainer *t)
{
	const struct weft_table_reader to = {.partition = read_partition, .record = read_record};
	struct weft_trainer_stats stats = {.struct_bytes = sizeof(stats)};
	const uint8_t deeds = t->scene->deeds;
	enum weft_status st = WEFT_OK;
	if ((deeds & REDUCES) != 0) {
		st = weft_reduce(t->session, &t->value, 1);
		st = st == WEFT_OK ? weft_barrier(t->session) : st;
	}
	if (st == WEFT_OK && (deeds & PULLS) != 0) {
		st = weft_pull(t->tensor[0]);
	}
	if (st == WEFT_OK && (deeds & PULLS_STATE) != 0) {
		st = weft_pull_state(t->session);
	}
	if (st == WEFT_OK && (deeds & ASKS_STATS) != 0) {
		st = weft_trainer_stats(t->session, 1 - t->idx, &stats);
	}
	if (st == WEFT_OK && (deeds & READS_TABLES) != 0 && t->table[0] != NULL && t->idx == 0) {
		st = weft_table_read(t->table[1], &to);
	}
	return st;
}

static enum weft_status
train(struct trainer *t)
{
	uint32_t passes = (t->scene->deeds & SECOND_PASS) != 0 ? 2 : 1;
	enum weft_status st = WEFT_OK;
	for (uint32_t pass = 0; pass < passes && st == WEFT_OK; pass++) {
		/* Trainer 1 runs out of data first. */
		for (uint64_t step = 1; step + t->idx <= t->scene->steps && st == WEFT_OK; step++) {
			st = one_step(t, step);
		}
		st = st == WEFT_OK ? weft_pass_end(t->session) : st;
		st = st == WEFT_OK ? look_around(t) : st;
	}
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	const struct job *job = seat->fleet->run;
	struct trainer t = {.scene = &job->scene, .idx = seat->idx, .value = 1};
	if (job->liar == LYING_TRAINER && t.scene->who == t.idx) {
		liar_is(env);
	}
	enum weft_status st = open_session(&t, env);
	st = st == WEFT_OK ? train(&t) : st;
	fleet_note(seat, env, st);
	keep_end(env, seat->end, &job->end->trainer[t.idx], job->end->trainer_text[t.idx]);
	if (t.session != NULL && st == WEFT_OK) {
		st = weft_session_close(t.session);
	} else if (t.session != NULL) {
		weft_session_abort(t.session, st, "that is how it ended");
	}
	return (int)st;
}

static struct wf_world_opts
world_of(const struct scene *s)
{
	bool rough = (s->rough & CUTS) != 0;
	return (struct wf_world_opts){
		.seed = 1 + s->seed,
		.delay_min_ns = WF_NS_PER_US,
		.delay_max_ns = WF_NS_PER_MS,
		.split_per_mille = rough ? 200 : 0,
		.cut_per_million = rough ? 20000 : 0,
		.cut_max = 3,
		.refuse_per_mille = rough ? 100 : 0,
		.down_delay_max_ns = rough ? 20 * WF_NS_PER_MS : 0,
		.writes_lent = true, /* the liar, by saying things twice */
		.log_level = WF_LOG_DEBUG,
		.log_fd = getenv("WEFT_FUZZ_LOG") != NULL ? 2 : -1,
	};
}

static void
print_end(const struct fleet_end *end, const char *who, uint32_t idx)
{
	(void)fprintf(stderr, "%s %u: %s %d\n", who, idx,
		      end->returned ? "ended with" : "still runs", (int)end->status);
}

void
lying_job_run(const uint8_t *data, size_t bytes, enum lying_who who, struct lying_end *out)
{
	*out = (struct lying_end){0};
	if (bytes < LYING_SCENE_BYTES) {
		return;
	}
	struct job job = {.scene = scene_of(data), .liar = who, .end = out};
	struct fleet fleet = {
		.world = world_of(&job.scene),
		.pservers = 1,
		.trainers = TRAINERS,
		.run_pserver = run_pserver,
		.run_trainer = run_trainer,
		.run = &job,
		.until_ns = UNTIL_NS,
	};
	liar_begin(data + LYING_SCENE_BYTES, bytes - LYING_SCENE_BYTES);
	enum weft_status st = fleet_run(&fleet);
	if (getenv("WEFT_FUZZ_LOG") != NULL || st != WEFT_OK) {
		print_end(&fleet.pserver[0], "pserver", 0);
		for (uint32_t i = 0; i < TRAINERS; i++) {
			print_end(&fleet.trainer[i], "trainer", i);
		}
		(void)fprintf(stderr, "%llu operations\n", (unsigned long long)liar_operations());
	}
	WF_ASSERT(st == WEFT_OK); /* else somebody waits for ever */
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t bytes_max, unsigned seed)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 1);
	if (bytes < LYING_SCENE_BYTES && bytes_max >= LYING_SCENE_BYTES) {
		memset(data + bytes, 0, LYING_SCENE_BYTES - bytes);
		return LYING_SCENE_BYTES;
	}
	if (bytes < LYING_SCENE_BYTES) {
		return bytes;
	}
	if (wf_rng_below(&rng, 12) == 0) {
		data[wf_rng_below(&rng, LYING_SCENE_BYTES)] = (uint8_t)wf_rng_u64(&rng);
		return bytes;
	}
	return LYING_SCENE_BYTES + liar_mutate(data + LYING_SCENE_BYTES, bytes - LYING_SCENE_BYTES,
					       bytes_max - LYING_SCENE_BYTES, seed);
}

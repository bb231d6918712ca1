/* SPDX-License-Identifier: Apache-2.0 */
/* stage: a lane (or a whole pserver) and puppets: scripted trainers (tests/support/peer.h) with
 * tensors, over the sim transport under a virtual clock. A test is a script
 * (tests/support/script.h). Thread: the one that runs the test. */
#pragma once

#include "kernels/kernels.h"
#include "pserver/dense.h"
#include "pserver/server.h"
#include "pserver/trace.h"
#include "pserver/view.h"
#include "tests/support/peer.h"

#define STAGE_PUPPETS_MAX 6u
#define STAGE_LANES_MAX 2u
#define STAGE_SLICES_MAX 64u
#define STAGE_TENSORS 3u       /* w, b, fixed (static) */
#define STAGE_SLICE_FLOATS 16u /* elements of a slice */
#define STAGE_PORT 7164u

struct stage_opts {
	uint64_t seed;
	uint32_t trainers;
	uint32_t lanes;       /* 0: 1 */
	uint32_t slot_count;  /* 0: 4 */
	uint64_t w_count;     /* elements of tensor w; 0: 40, three slices */
	uint32_t optimizer;   /* enum wf_optimizer */
	double learning_rate; /* 0: 0.5 */
	bool skips_nonfinite;
	enum weft_dense_mode mode;
	uint32_t staleness;
	double discard_ratio;
	enum weft_tensor_mode b_mode; /* of tensor b */
	uint32_t b_staleness;         /* of that mode */
	double clip_norm;
	uint64_t slice_bytes;     /* of the job; 0: 64 */
	uint64_t slot_bytes_max;  /* of the pserver; 0: 64 KiB */
	uint64_t max_shard_bytes; /* 0: 1 MiB */
	uint64_t inbox_bytes;     /* 0: room for all */
	int32_t priority_of_b;
	bool has_piece;  /* "fixed" is a piece of 32 elements; w has 16, slice_bytes is 128 */
	bool all_static; /* nothing is pushed, */
	bool has_tables; /* or it may be of a table: the pserver has sparse lanes */
	uint32_t num_gradient_servers; /* of the pserver; 0: as the first trainer sends */
	uint32_t max_trainers;         /* of the pserver; 0: 64 */
	uint64_t stats_period_ns;
	uint64_t stall_timeout_ns;                 /* 0: no limit */
	uint64_t rejoin_timeout_ns;                /* of bare lanes; 0: a loss ends the job */
	const struct wf_lane_source *source;       /* what lanes begin with; NULL: none */
	const struct wf_snapshots_opts *snapshots; /* that bare lanes take; NULL: none */
	uint32_t pserver_count;                    /* of the job; 0: 1 */
	uint32_t pserver_idx;                      /* of the bare lanes' pserver */
	bool has_views;                            /* of bare lanes: somebody may watch them */
	uint32_t min_trainers; /* of bare lanes, with which trainers leave and join; 0: none do */
	bool server;           /* a wf_server in its own process, not bare lanes */
	bool once;
};

struct stage;

struct puppet {
	struct peer peer; /* first: its functions cast back; memory: values, states, source */
	struct stage *stage;
	uint32_t trainer;
	uint32_t lane;

	/* What it received on this path. */
	uint32_t allowed[STAGE_SLICES_MAX]; /* ordinals, in the order received */
	uint32_t allowed_count;
	uint64_t received[STAGE_SLICES_MAX];

	/* Over all paths. */
	uint64_t have[STAGE_SLICES_MAX]; /* last step answered */
	uint32_t answers;
	uint32_t answered[STAGE_SLICES_MAX]; /* ordinals: the last answers, by their number */
	uint32_t discarded;                  /* of them, those that are marked so */
	uint32_t nacks;
	struct wf_msg_nack nack;
	uint32_t traces;
	struct wf_msg_trace trace; /* the last one */
	uint32_t norms;
	struct wf_msg_norm norm;   /* the last one */
	uint32_t inits, positions; /* INIT and POSITION before RESUME */
	struct wf_msg_init init;   /* the last ones */
	struct wf_msg_position position;

	/* Pushes that wait for a buffer; buffers hold ordinals. */
	uint32_t queue[STAGE_SLICES_MAX];
	uint32_t queue_first, queue_count;
	uint64_t queue_step;
	uint32_t lent[STAGE_SLICES_MAX]; /* PUTs of the slice's source that are not DONE */
	uint64_t step_said;
	uint64_t compute_ns; /* what it sends with STEP about the step before */
};

struct stage {
	struct script script; /* first: its functions cast back */
	struct stage_opts opts;
	struct wf_lane *lane[STAGE_LANES_MAX];
	bool reads[STAGE_LANES_MAX]; /* the lane takes no turns: it reads a snapshot */
	struct wf_snapshots *snapshots;
	struct wf_members *members; /* NULL: none leave */
	struct wf_views *views;     /* NULL: none */
	struct wf_traces *traces;   /* likewise */
	struct wf_server *server;
	enum weft_status server_status;   /* of wf_server_run */
	char server_text[WF_ERROR_BYTES]; /* of that; "": it ended well */
	bool server_ended;
	struct wf_job job;
	struct wf_job_tensor tensor[STAGE_TENSORS];
	struct wf_placement placement;
	uint8_t job_bytes[1024];
	size_t job_byte_count;
	uint64_t layout_bytes;
	uint64_t place[STAGE_TENSORS];
	struct puppet puppet[STAGE_PUPPETS_MAX];
	uint32_t puppet_count;
	uint64_t samples_applied;                          /* of the steps in `value` */
	float value[STAGE_SLICES_MAX][STAGE_SLICE_FLOATS]; /* lane 0, by ordinal, computed here */
	float state[2][STAGE_SLICES_MAX][STAGE_SLICE_FLOATS];
	void (*run)(struct stage *stage);
	const void *arg; /* the test's */
};

/* Run `run` as a script. */
void stage_play(const struct stage_opts *opts, void (*run)(struct stage *stage), const void *arg);
/* The state of a feature; NULL: the lane's job does not have it. */
void *stage_feature(const struct wf_lane *lane, const struct wf_feature_hooks *hooks);
static inline struct wf_dense *
stage_dense(const struct wf_lane *lane)
{
	return lane->own;
}

static inline void
stage_run(struct stage *stage, uint64_t ns)
{
	script_run(&stage->script, ns);
}

static inline void
stage_settle(struct stage *stage)
{
	script_settle(&stage->script);
}

/* Checks that three seconds later lane 0 has logged what it waits for, in a line with `part`. */
void stage_check_waits(struct stage *stage, enum wf_lane_awaits kind, const char *part);
/* Slices of lane `lane`, and one of them. */
uint32_t stage_slice_count(const struct stage *stage, uint32_t lane);
const struct wf_slice *stage_slice(const struct stage *stage, uint32_t lane, uint32_t ordinal);
bool stage_is_static(const struct stage *stage, uint32_t lane, uint32_t ordinal);
float stage_gradient(uint32_t trainer, uint64_t step, uint32_t ordinal, uint32_t element);
uint64_t stage_samples(uint32_t trainer);
/* Computes the result of the step on `value` and `state` when trainers 0 to trainers - 1 push. */
void stage_expect_step(struct stage *stage, uint64_t step);

/* Creates a puppet for trainer `trainer` and a lane: nothing is sent yet. */
struct puppet *puppet_add(struct stage *stage, uint32_t trainer, uint32_t lane);
/* Its next path: HELLO goes out. */
void puppet_connect(struct puppet *puppet);
/* Connects, sends the job if requested, receives grants and RESUME, grants, sends HAVE. */
void puppet_meet(struct puppet *puppet);
void puppet_send_job(struct puppet *puppet);
void puppet_grant(struct puppet *puppet, uint8_t place);
void puppet_have(struct puppet *puppet);
void puppet_say_step(struct puppet *puppet, uint64_t step, uint32_t pass);
void puppet_say_out(struct puppet *puppet, uint64_t step, uint32_t pass);
void puppet_announce(struct puppet *puppet, uint64_t step, uint32_t first, uint32_t count);
void puppet_pull(struct puppet *puppet, uint64_t step, uint32_t first, uint32_t count);
void puppet_reduce(struct puppet *puppet, uint64_t id, uint32_t count, double value);
/* PUTs the source bytes of a slice, whatever the books contain. */
void puppet_put(struct puppet *puppet, uint32_t ordinal, uint32_t buffer, uint64_t step);
/* The same with this many bytes, from this one of the slot on. */
void puppet_put_bytes(struct puppet *puppet, uint32_t ordinal, uint64_t step, uint64_t offset,
		      uint64_t bytes);
/* Queue a slice; it is PUT when a buffer is free. */
void puppet_push(struct puppet *puppet, uint32_t ordinal, uint64_t step);
/* Sends STEP and all pushes of `step` that the lane lacks according to RESUME. */
void puppet_continue(struct puppet *puppet, uint64_t step);
/* Trainer 0 PUTs all initial values, others PULL them. */
void puppet_initialise(struct puppet *puppet);
/* One for each trainer of the job: they meet lane 0, and all have the initial values. */
void puppets_begin(struct stage *stage);
float *puppet_values(struct puppet *puppet, uint32_t ordinal);
float *puppet_state(struct puppet *puppet, uint32_t idx, uint32_t ordinal);
float *puppet_source(struct puppet *puppet, uint32_t ordinal);
/* Its parameter array holds `value`. */
bool puppet_values_are_right(struct puppet *puppet);
/* Push of one trainer in an asynchronous mode: the result on slice `ordinal` of lane 0, to which
 * `updates` - 1 were applied before. */
void stage_expect_push(struct stage *stage, uint32_t trainer, uint64_t step, uint32_t ordinal,
		       uint64_t updates);
unsigned puppet_poll(struct puppet *puppet);

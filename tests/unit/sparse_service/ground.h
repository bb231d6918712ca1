/* SPDX-License-Identifier: Apache-2.0 */
/* ground: sparse lanes and dolls: scripted trainers (tests/support/peer.h) with tables, over the
 * sim transport under a virtual clock; and a table on which every step is done a second time, in
 * one piece, for comparison. A test is a script (tests/support/script.h). Thread: the one that runs
 * the test. */
#pragma once

#include "pserver/service.h"
#include "sparse/server/service.h"
#include "sparse/server/service_internal.h"
#include "sparse/table/table.h"
#include "tests/support/peer.h"
#include "wire/partition.h"
#include "wire/sparse_messages.h"

#define GROUND_DOLLS_MAX 4u
#define GROUND_LANES_MAX 2u
#define GROUND_TABLES 2u /* words: any u64; names: 0 .. 2,047 */
#define GROUND_VOCABULARY 2048u
#define GROUND_DIM 4u
#define GROUND_PORT 7164u
#define GROUND_ROWS_BYTES 65536u /* that a doll grants */
#define GROUND_KEYS_MAX 512u
#define GROUND_NACKS_MAX 32u

struct doll;

struct ground_opts {
	uint64_t seed;
	uint32_t trainers;
	uint32_t lanes;            /* 0: 1 */
	uint32_t slot_count;       /* 0: 4 */
	uint64_t slot_bytes;       /* 0: 1,024 */
	uint64_t max_shard_bytes;  /* 0: 64 MiB */
	uint64_t memory_cap_bytes; /* of table words */
	bool skips_nonfinite;
	enum weft_grad_reduce grad_reduce;
	enum weft_sparse_mode mode;
	uint32_t staleness;
	double discard_ratio;
	uint64_t stats_period_ns;
	bool has_scores;                   /* of table words, */
	enum weft_value_format value_wire; /* and of it, too */
	/* Of ground_offend. */
	void (*act)(struct doll *doll);
	const char *says;
};

struct ground;

struct doll {
	struct peer peer; /* first: its functions cast back; memory: requested rows, data to send */
	struct ground *ground;
	uint32_t trainer;
	uint32_t lane;
	size_t send_at; /* bytes of the second half in use */

	/* What it received on this path. Buffers hold request << 8 | part, of pushes request 0, so
	 * that an answer or APPLIED frees them. */

	/* Over all paths. */
	uint32_t answers;
	uint32_t answer_tag[64];
	uint32_t nacks;
	struct wf_sparse_nack nack[GROUND_NACKS_MAX];
	uint32_t applieds;
	struct wf_sparse_applied applied;
	struct wf_sparse_restored restored; /* the last */
	uint32_t changes;
	uint32_t changed_rows; /* in all of them */
	uint64_t correct_at;   /* where the rows of the part lie that they correct; 0: nowhere */
	struct wf_sparse_changed changed; /* the last, and its values */
	uint8_t changed_values[WF_MSG_BODY_MAX];
};

struct ground {
	struct script script; /* first: its functions cast back */
	struct ground_opts opts;
	struct wf_lane *lane[GROUND_LANES_MAX];
	struct wf_table_desc desc[GROUND_TABLES];
	struct wf_tables tables;
	struct wf_table *model[GROUND_TABLES]; /* of one lane with all partitions */
	uint64_t model_samples;
	struct doll doll[GROUND_DOLLS_MAX];
	uint32_t doll_count;
	bool lanes_rest; /* time passes, and they do nothing */
	void (*run)(struct ground *ground);
};

/* Keys of one table, as a doll sends them. */
struct wish {
	uint32_t table;
	const uint64_t *key; /* ascending */
	uint32_t count;
	uint8_t coding;
	float scale;     /* of its gradients: ground_gradient */
	uint64_t offset; /* pulls: where the rows go */
};

/* Run `run` as a script. */
void ground_play(const struct ground_opts *opts, void (*run)(struct ground *ground));
/* One doll, whose job has begun, does `act`: it costs its connection, for a reason that contains
 * `says`, and it is not admitted again. */
void ground_offend(uint64_t seed, void (*act)(struct doll *doll), const char *says);
static inline void
ground_run(struct ground *ground, uint64_t ns)
{
	script_run(&ground->script, ns);
}

static inline void
ground_settle(struct ground *ground)
{
	script_settle(&ground->script);
}

/* Puts what the last CHANGED has where the rows lie, as a session does. */
void doll_correct(struct doll *doll, uint64_t offset);
/* Element e of the gradient of a key. */
float ground_gradient(uint64_t key, uint32_t element, float scale);
/* The result of the wishes of a step, in trainer order, on the model. */
void ground_model_step(struct ground *ground, uint64_t step, uint64_t samples,
		       const struct wish *wish, uint32_t count);
/* Are the rows that the doll was given those of the model? */
bool ground_rows_are_right(struct ground *ground, const struct doll *doll, const struct wish *wish);

struct doll *doll_add(struct ground *ground, uint32_t trainer, uint32_t lane);
void doll_send_table(struct doll *doll, uint32_t idx);
void doll_grant(struct doll *doll);
void doll_have(struct doll *doll, uint64_t step, uint64_t applied);
/* Connects, describes the tables if asked, sends GRANT and HAVE (nothing received yet). */
void doll_meet(struct doll *doll);
/* Messages without their PUTs. `said` NULL: sent as filled from the wishes. */
void doll_say_push(struct doll *doll, const struct wf_sparse_push *push);
void doll_say_pull(struct doll *doll, const struct wf_sparse_pull *pull);
void doll_fill_push(const struct doll *doll, uint64_t step, const struct wish *wish, uint32_t count,
		    struct wf_sparse_push *out);
void doll_fill_pull(const struct doll *doll, uint64_t id, uint64_t step, const struct wish *wish,
		    uint32_t count, struct wf_sparse_pull *out);
/* The PUT of one part, into a free buffer; `request` 0: of a push. */
void doll_put(struct doll *doll, uint64_t request, uint32_t part, uint64_t step,
	      const struct wish *wish);
void doll_put_raw(struct doll *doll, uint32_t tag, const void *bytes, size_t count);
void doll_push(struct doll *doll, uint64_t step, const struct wish *wish, uint32_t count);
void doll_pull(struct doll *doll, uint64_t id, uint64_t step, const struct wish *wish,
	       uint32_t count);
void doll_say_out(struct doll *doll, uint64_t step, uint32_t pass);
const float *doll_rows(const struct doll *doll, uint64_t offset);

/* SPDX-License-Identifier: Apache-2.0 */
/* fake_internal: shared by the two files of the scripted pserver: fake_lane.c has connections and
 * what every lane sends; fake_tables.c tables, pulls, pushes. Thread: the world's. */
#pragma once

#include "fake_lane.h"
#include "sparse/table/table.h"
#include "tests/support/peer.h"
#include "wire/sparse_messages.h"

#define TABLES_MAX 8u
#define PULLS_MAX 2u
#define GATHER_BYTES (1u << 20) /* of one pull */

/* Keys, and gradients, of one part, copied out of the slot. */
struct part {
	struct wf_sparse_part at;
	uint64_t *key;
	float *grad, *show, *click;
};

struct batch_list {
	struct part *part;
	uint32_t count;
};

struct pull {
	bool used, whole;
	uint64_t id, step;
	uint32_t flags;
	struct batch_list list;
	uint32_t in_flight;
};

struct lane;

/* A trainer, as its lane sees it. */
struct member {
	struct peer peer; /* first: its functions cast back */
	struct lane *lane;
	bool loading, out_of_data;
	uint32_t tables_told;
	struct wf_grant_key slots_key;
	bool had;          /* HAVE was received */
	uint64_t received; /* last step whose push is whole */
	uint64_t applied_heard;
	uint64_t samples;
	uint32_t out_pass;
	struct batch_list push; /* of the step under way */
	struct pull pull[PULLS_MAX];
	/* The message whose parts are coming. */
	unsigned coming; /* 0: none; WF_SPARSE_PUSH, WF_SPARSE_PULL */
	struct wf_sparse_push push_msg;
	struct wf_sparse_pull pull_msg;
	struct pull *pull_now;
	uint32_t part_next;
	bool nacked;          /* the pull whose parts are coming */
	uint16_t last_buffer; /* of the message under way */
	/* Dense. */
	bool reduces;
	struct wf_msg_reduce reduce;
	uint8_t *gather; /* PULLS_MAX areas */
};

struct lane {
	struct script *script;
	struct wf_env *env;
	const struct fake_opts *opts;
	struct fake_seen *seen;
	bool sparse;
	uint32_t idx;
	struct wf_transport *transport;
	uint16_t port;
	struct wf_slab slots, answers;
	uint32_t slots_region, answers_region;
	uint64_t incarnation;
	struct member member[FAKE_TRAINERS_MAX];
	uint32_t table_count;
	struct wf_table_desc desc[TABLES_MAX];
	struct wf_table *table[TABLES_MAX];
	bool mean;
	uint64_t applied;
	uint32_t pass;
	uint64_t samples_before;
	uint64_t nacked;
	struct wf_sparse_applied said;
	struct wf_msg_reduce reduced; /* the last one that is complete */
};

/* fake_lane.c: WEFT_OK, or the end of the test. */
void fake_must(enum weft_status st);
void fake_free_list(struct batch_list *list);
struct part *fake_add_part(struct batch_list *list, const struct wf_sparse_part *at);
void fake_resume(struct member *p);

/* fake_tables.c: the service of a sparse lane. */
void fake_say_applied(struct member *p);
void fake_recv_sparse(struct member *p, const struct wf_head *head, const uint8_t *body);
void fake_recv_have(struct peer *peer);
void fake_recv_put(struct member *p, const struct wf_event *event);
/* A PUT of the answer to pull `cookie` - 1 is over. */
void fake_done(struct member *p, uint64_t cookie);

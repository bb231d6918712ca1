/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue: every message with its coders behind one signature and a sample, for tests of all of
 * them. */
#pragma once

#include "wire/messages.h"
#include "wire/registry_messages.h"
#include "wire/sparse_messages.h"
#include "wire/watch_messages.h"

/* Room for any message's struct. */
union any_message {
	struct wf_msg_job job;
	struct wf_msg_steps steps;
	struct wf_msg_grant grant;
	struct wf_msg_credit credit;
	struct wf_msg_step step;
	struct wf_msg_pull pull;
	struct wf_msg_nack nack;
	struct wf_msg_init init;
	struct wf_msg_norm norm;
	struct wf_msg_runs runs;
	struct wf_msg_changes change;
	struct wf_msg_position position;
	struct wf_msg_report report;
	struct wf_msg_trace trace;
	struct wf_msg_traced traced;
	struct wf_msg_goodbye goodbye;
	struct wf_msg_beat beat;
	struct wf_msg_abort abort;
	struct wf_msg_absent absent;
	struct wf_msg_reduce reduce;
	struct wf_sparse_table table;
	struct wf_sparse_push push;
	struct wf_sparse_pull sparse_pull;
	struct wf_sparse_applied applied;
	struct wf_sparse_nack sparse_nack;
	struct wf_sparse_fetch fetch;
	struct wf_sparse_restore restore;
	struct wf_sparse_restored restored;
	struct wf_sparse_changed changed;
	struct wf_registry_join join;
	struct wf_registry_load load;
	struct wf_registry_loaded loaded;
	struct wf_registry_bad bad;
	struct wf_registry_run run;
	struct wf_registry_snapshot snapshot;
	struct wf_registry_part part;
	struct wf_registry_failed failed;
	struct wf_registry_lost lost;
	struct wf_registry_comes comes;
	struct wf_registry_member member;
	struct wf_registry_stands stands;
	struct wf_registry_settled settled;
	struct wf_watch_ask ask;
	struct wf_watch_answer answer;
	struct wf_watch_end end;
};

struct catalogue_entry {
	const char *name; /* also of the golden file */
	uint8_t service;
	uint8_t type;
	void (*sample)(union any_message *out); /* `out` is zeroed */
	void (*encode)(const union any_message *in, struct wf_msg *out);
	enum weft_status (*decode)(const struct wf_head *head, const uint8_t *body,
				   union any_message *out);
};

extern const struct catalogue_entry catalogue[];
extern const size_t catalogue_count;

/* NULL: no such message. */
const struct catalogue_entry *catalogue_find(uint8_t service, uint8_t type);

/* SPDX-License-Identifier: Apache-2.0 */
/* pserver_options: the options of `weft pserver`: its own, those that trainers have as well, and
 * the original's. Thread: main. */
#pragma once

#include "base/settings.h"

#define WF_PSERVER_OPTION_MAX 56

struct wf_pserver_settings {
	uint64_t max_trainers;
	const char *listen; /* NULL: loopback, or the address of --nics */
	bool once;
	const char *ready_file; /* NULL: none */
	const char *status;     /* NULL or "": no page */
	const char *job_name;   /* NULL or "": none */
	bool save_on_term;
	uint64_t term_grace_ns;
	uint64_t slot_count;
	uint64_t max_shard_bytes;
	uint64_t inbox_bytes;     /* 0: all */
	const char *snapshot_dir; /* NULL or "": none */
	const char *registrar;    /* NULL or "": it is this one */
	uint64_t snapshot_period_ns, snapshot_steps;
	uint64_t snapshot_bytes, snapshot_rate;
	uint64_t snapshot_full;
	uint64_t keep;
	uint64_t resume;           /* enum wf_resume */
	uint64_t on_trainer_death; /* enum wf_on_death */
	uint64_t min_trainers;     /* with WF_ON_DEATH_DROP */
	enum weft_log_level log_level;
	/* Of the settings, as far as they are options here. */
	union {
		struct weft_session_opts session;
		struct wf_session_values values; /* the same, with what has no field there */
	};

	/* The original's. */
	const char *nics;
	const char *rdma_tcp;
	const char *comment;
	bool use_gpu;
	bool small_messages;
	uint64_t sock_send_buf_size;
	uint64_t sock_recv_buf_size;
	uint64_t sock_listen_queue_size;
	uint64_t pserver_num_threads;
	uint64_t log_period_server;
};

/* Writes the options into the caller's memory and returns their number. The caller sets fields of
 * `values` that are not options to their defaults. */
unsigned wf_pserver_options(struct wf_option table[WF_PSERVER_OPTION_MAX]);
/* Checks what the table cannot express. */
enum weft_status wf_pserver_options_check(const struct wf_options *options) WEFT_MUST_CHECK;

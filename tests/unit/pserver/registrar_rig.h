/* SPDX-License-Identifier: Apache-2.0 */
/* registrar_rig: a registrar and the lanes of its pserver without any lane: a directory of their
 * own, a clock that is set, a helper thread that is the caller, and calls in the names of the other
 * pservers. Thread: the test's. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pserver/registrar.h"
#include "saved/epochs.h"
#include "tests/unit/saved/setup.h"

#define RIG_LANES_MAX 6u
#define RIG_TABLES 3u
#define RIG_PSERVERS_MAX 3u
#define RIG_TRAINER_INCARNATION 50u /* of trainer 0 in the first job, then one more for each job */
#define RIG_DEADLINE_NS (300 * WF_NS_PER_S)

struct rig_opts {
	uint32_t pservers;      /* 0: 1 */
	uint32_t dense, sparse; /* lanes of each pserver; dense 0: 1 */
	uint32_t keep;          /* 0: 2 */
	uint32_t full;          /* as in wf_snapshots_opts */
	uint64_t steps;         /* 0: 10, unless there is a period */
	uint64_t period_ns;
	enum wf_resume resume;
	bool is_vector; /* the job's snapshots are vectors of versions */
};

struct rig {
	struct wf_env env;   /* first: its ops cast back */
	struct scene *scene; /* the directory, the memory */
	struct rig_opts opts;
	uint64_t now_ns;
	bool holds_tasks; /* a task waits until somebody waits for it */
	struct wf_task *held;
	bool watches_base;            /* whenever a record is about to be written, */
	enum weft_status base_before; /* what wf_snapshots_base answered then */
	char log[8192];               /* all lines */

	struct wf_snapshots *all;
	struct wf_snapshot_seat *seat[RIG_LANES_MAX];
	struct wf_registrar *registrar;
	uint64_t trainer_incarnation; /* of trainer 0 in lane 0's job */
	struct wf_manifest_table table[RIG_TABLES];
	uint64_t rows[RIG_LANES_MAX][RIG_TABLES]; /* of the own sparse lanes */
};

int rig_setup(void **state);
int rig_teardown(void **state);
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

/* Opens the pserver's snapshots; the rig is then without a job. */
void rig_open(struct rig *rig, const struct rig_opts *opts);
void rig_close(struct rig *rig);
uint32_t rig_lanes(const struct rig *rig); /* of a pserver */
/* A lane has a job whose first trainer is trainer 0 of this incarnation. */
void rig_join_lane(struct rig *rig, uint32_t lane, uint64_t incarnation);
/* Lets the lanes in whose trainer 0 is that of lane 0. */
uint32_t rig_match(struct rig *rig);
/* Lane 0 has a job, and a registrar. The result of wf_registrar_open. */
enum weft_status rig_open_registrar(struct rig *rig);
/* The same, and so have all other lanes of this pserver. */
void rig_begin(struct rig *rig);
/* The job is over on all lanes of this pserver. */
void rig_end(struct rig *rig, bool well);
/* The job begins: all pservers come and have loaded. Pserver i's incarnation is 900 + i. */
void rig_run(struct rig *rig);
uint64_t rig_look(struct rig *rig);
enum weft_status rig_base(struct rig *rig, uint32_t lane, struct wf_snapshot_base *out);

/* In the names of other pservers. */
enum weft_status rig_join(struct rig *rig, uint32_t idx, uint64_t incarnation, uint64_t serves);
enum weft_status rig_loaded(struct rig *rig, uint32_t idx);
/* The part of a lane, with all of its tables at once. */
enum weft_status rig_part(struct rig *rig, uint32_t idx, uint32_t lane, uint64_t border);
/* What that is, to be changed. Its file is written first. */
struct wf_registry_part rig_part_of(struct rig *rig, uint32_t idx, uint32_t lane, uint64_t border);
enum weft_status rig_failed(struct rig *rig, uint32_t idx, uint64_t border, const char *reason);

/* A border is named, and returned. */
uint64_t rig_name_border(struct rig *rig);
/* All lanes of this pserver apply the step of the border, and have written their parts. */
void rig_write_own(struct rig *rig, uint64_t border);
/* The rows that lane `lane` of pserver `idx` has of a table in rig_part_of. */
uint64_t rig_rows(uint32_t idx, uint32_t lane, uint32_t table);
/* A snapshot of all, with what the rig is set to; returns its border. */
uint64_t rig_snapshot(struct rig *rig);
/* Whether the manifest of that snapshot is there, and all of its files whole. */
bool rig_has_snapshot(struct rig *rig, struct wf_snapshot_id id);
bool rig_has_directory(const struct rig *rig, struct wf_snapshot_id id);
bool rig_has_record(const struct rig *rig, uint64_t epoch);
/* "job", "end": what the newest record is; "none". */
const char *rig_newest_record(struct rig *rig);

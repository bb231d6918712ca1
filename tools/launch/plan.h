/* SPDX-License-Identifier: Apache-2.0 */
/* plan: which processes a job has, and with which arguments. Thread: any one. */
#pragma once

#include "base/url.h"
#include "tools/launch/supervise.h"

#define WF_PLAN_PSERVERS_MAX 64u
#define WF_PLAN_TRAINERS_MAX 256u

struct wf_plan_opts {
	uint32_t pservers; /* 1..WF_PLAN_PSERVERS_MAX */
	uint32_t trainers; /* 1..WF_PLAN_TRAINERS_MAX */
	uint32_t ports_num;
	uint32_t ports_num_for_sparse;
	struct wf_host listen;              /* and the port of pserver 0 */
	const struct wf_host *pserver_at;   /* [pservers] instead of `listen`; NULL: side by side */
	const struct wf_args *pserver_args; /* of every pserver: "pserver", options */
	const struct wf_args *trainer_args; /* of every trainer: "train", MODEL, options */
	/* A user's program instead of `weft train`, or NULL. Its arguments are then trainer_args,
	 * the first of which is its name. */
	const char *program;
	const struct wf_args *variables; /* of such a program: its session's settings */
	/* A further argument of each pserver from its second start on, or NULL. */
	const char *pserver_again;
	/* Trainers that are started again join the job. */
	bool trainers_join;
};

/* How many port numbers the pservers take, from listen.port upwards. */
uint32_t wf_plan_port_count(const struct wf_plan_opts *opts);
/* Fills in pservers + trainers specs, pservers first. Arguments are borrowed. WEFT_INVALID: too
 * many arguments. */
enum weft_status wf_plan_job(const struct wf_plan_opts *opts,
			     struct wf_child_spec *spec) WEFT_MUST_CHECK;
/* One process that is no member of a job: `weft` with these arguments. */
enum weft_status wf_plan_alone(const char *name, const struct wf_args *with,
			       struct wf_child_spec *spec) WEFT_MUST_CHECK;
/* Adds WEFT_<NAME>=value, with the name in capitals. */
void wf_plan_variable(struct wf_args *variables, const char *name, const char *value);
/* Gives a child a setting: as an option, or as a variable if it is a user's program. WEFT_INVALID:
 * there is no room. */
enum weft_status wf_plan_set(struct wf_child_spec *spec, const char *name,
			     const char *value) WEFT_MUST_CHECK;
/* How many threads move bytes: a lane's each, and one of each trainer. */
unsigned wf_plan_thread_count(const struct wf_plan_opts *opts);

/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: what the launcher of this process (mpirun, srun, torchrun, Volcano, ...) says in the
 * environment about its place in a job. Several may say something, as where mpirun runs in a job of
 * Slurm: of each fact the word of the innermost one counts.
 *
 * Nothing here is trusted: a value that is not a number, or a list that is malformed, is not used,
 * and the finding says why. Settings of weft's own (WEFT_*, PADDLE_INIT_*) are not looked at here;
 * they win over all of this (base/options.h). Thread: the caller's; the environment must not change
 * meanwhile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define WF_LAUNCHER_FINDINGS_MAX 32u
#define WF_LAUNCHER_TEXT_BYTES 16384u

enum wf_launcher_role {
	WF_ROLE_UNKNOWN,
	WF_ROLE_PSERVER,
	WF_ROLE_TRAINER,
};

enum wf_launcher_fact {
	WF_FACT_ROLE,          /* "pserver" or "trainer" */
	WF_FACT_RANK,          /* number of this trainer */
	WF_FACT_SIZE,          /* number of trainers */
	WF_FACT_PSERVERS,      /* host or host:port of each, with commas */
	WF_FACT_PORT,          /* of those that name none */
	WF_FACT_LISTEN,        /* address of this host: where a pserver listens */
	WF_FACT_PSERVER_COUNT, /* number of pservers, to check their list */
	WF_FACT_COUNT,
};

/* One thing that a launcher says. */
struct wf_launcher_finding {
	enum wf_launcher_fact fact;
	const char *launcher; /* "Open MPI" */
	const char *text;     /* "OMPI_COMM_WORLD_RANK=3": the variable or file, and the value */
	const char *value;    /* in `text`, behind the first '=' */
	const char *ignored;  /* why it is not used; NULL: it is */
};

struct wf_launcher {
	enum wf_launcher_role role; /* as given, else as a launcher says */
	unsigned count;
	struct wf_launcher_finding finding[WF_LAUNCHER_FINDINGS_MAX]; /* innermost launcher first */
	size_t text_used;
	char text[WF_LAUNCHER_TEXT_BYTES];
};

/* Where it is looked for; a zeroed one: in this process's environment and file system. */
struct wf_launcher_source {
	const char *const *variables; /* "NAME=value", the last one NULL; NULL: the environment */
	const char *root;             /* comes before the names of files; NULL: none */
};

/* `role`: what this process is; unknown: what a launcher says, else a trainer. */
void wf_launcher_detect(const struct wf_launcher_source *source, enum wf_launcher_role role,
			struct wf_launcher *out);
/* What counts as this fact; NULL: no launcher says it. */
const struct wf_launcher_finding *wf_launcher_find(const struct wf_launcher *launcher,
						   enum wf_launcher_fact fact);
/* What counts as the value of a setting (trainer_id, num_gradient_servers, pservers, port, listen);
 * NULL: no launcher says it. */
const struct wf_launcher_finding *wf_launcher_find_setting(const struct wf_launcher *launcher,
							   const char *name);
/* WEFT_INVALID: `said` is a list of pservers, and a launcher says that there are more or fewer. */
enum weft_status wf_launcher_check(const struct wf_launcher *launcher,
				   const struct wf_launcher_finding *said) WEFT_MUST_CHECK;
/* "num_gradient_servers"; of what is no setting "role", "pserver_count". */
const char *wf_launcher_fact_name(enum wf_launcher_fact fact);

/* SPDX-License-Identifier: Apache-2.0 */
/* job: what `weft gen` writes a script or manifest for, and what it refuses to write one for.
 * Thread: main. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

#define WF_GEN_VARIABLES_MAX 64u
#define WF_GEN_VOLUMES_MAX 16u
#define WF_GEN_TRAINERS_MAX 4096u
#define WF_GEN_SECRET_BYTES 32u
#define WF_GEN_NAME_BYTES 255u  /* of a variable or an address */
#define WF_GEN_PATH_BYTES 4095u /* of a file or a volume */

/* Kinds of script or manifest; also bits, of those that an option is for. */
enum wf_gen_kind {
	WF_GEN_SLURM = 1,
	WF_GEN_MPI = 2,
	WF_GEN_VOLCANO = 4,
	WF_GEN_JOBSET = 8,
	WF_GEN_SCRIPTS = WF_GEN_SLURM | WF_GEN_MPI,
	WF_GEN_MANIFESTS = WF_GEN_VOLCANO | WF_GEN_JOBSET,
	WF_GEN_ALL = WF_GEN_SCRIPTS | WF_GEN_MANIFESTS,
};

/* Options, as given. Texts are borrowed; NULL or empty: not given. */
struct wf_gen_settings {
	const char *job_name;
	uint64_t pservers; /* 0: as many as trainers */
	uint64_t trainers;
	uint16_t port;
	uint32_t ports_num;
	uint32_t ports_num_for_sparse;
	const char *listen;
	const char *weft; /* path of the program where the job runs */
	const char *entry;
	const char *workdir;
	uint64_t num_passes; /* 0: not given */
	const char *env;     /* of the environment or a file; those of arguments are listed */
	const char *image;
	const char *registry;
	const char *cpu;
	const char *memory;
	uint64_t gpu;
	const char *pscpu;
	const char *psmemory;
	const char *volume;
	bool secret;             /* a new one, in the manifest */
	const char *secret_file; /* of hosts in scripts; the user's in manifests */
	const char *queue;
	uint64_t restarts;
	bool save_on_term;
	uint64_t term_grace_ns;
	uint64_t time_limit_ns; /* 0: no limit */
	uint64_t nodes;         /* 0: the engine decides */
	const char *sbatch;
	const char *hostfile;
	const char *out;
};

/* A variable of the job's processes. */
struct wf_gen_variable {
	const char *name; /* not terminated */
	size_t name_bytes;
	const char *value;
};

/* "pvc:CLAIM:/path[:ro]" or "host:/folder:/path[:ro]", in parts that are not terminated. */
struct wf_gen_volume {
	bool is_claim;
	const char *source;
	size_t source_bytes;
	const char *path;
	size_t path_bytes;
	bool is_read_only;
};

struct wf_gen_job {
	struct wf_gen_settings set;
	enum wf_gen_kind kind;
	uint64_t pservers; /* the number that counts */
	unsigned program_count;
	char *const *program; /* [program_count], behind "--"; with --entry there is none */
	bool is_built_in;     /* the program is "train MODEL" */
	unsigned variable_count;
	struct wf_gen_variable variable[WF_GEN_VARIABLES_MAX];
	unsigned volume_count;
	struct wf_gen_volume volume[WF_GEN_VOLUMES_MAX];
	char secret[2 * WF_GEN_SECRET_BYTES]; /* a new one, as text; with set.secret */
};

/* Reads "NAME=VALUE". WEFT_INVALID: it is none, or there are too many. */
enum weft_status wf_gen_add_variable(struct wf_gen_job *job, const char *text) WEFT_MUST_CHECK;
/* Reads a volume. WEFT_INVALID: it is none, or there are too many. */
enum weft_status wf_gen_add_volume(struct wf_gen_job *job, const char *text) WEFT_MUST_CHECK;
/* Checks everything against everything else, and fills in what follows from it. WEFT_INVALID. */
enum weft_status wf_gen_job_settle(struct wf_gen_job *job) WEFT_MUST_CHECK;

/* Seconds from a stop to the kill: those of --term_grace, and some for what follows the save. */
uint64_t wf_gen_grace_s(const struct wf_gen_job *job);

/* Each writes one kind. */
void wf_gen_script(const struct wf_gen_job *job, FILE *out); /* Slurm, MPI */
enum weft_status wf_gen_volcano(const struct wf_gen_job *job, FILE *out) WEFT_MUST_CHECK;
enum weft_status wf_gen_jobset(const struct wf_gen_job *job, FILE *out) WEFT_MUST_CHECK;

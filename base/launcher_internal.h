/* SPDX-License-Identifier: Apache-2.0 */
/* What launcher.c and the readers of single launchers share. */
#pragma once

#include "base/launcher.h"

struct wf_launcher_probe {
	const struct wf_launcher_source *source;
	struct wf_launcher *out;
	const char *launcher; /* whose reader runs */
};

/* A variable's value; NULL: it is not set, or empty. */
const char *wf_probe_get(const struct wf_launcher_probe *probe, const char *name);
/* All variables, "NAME=value", the last one NULL. */
const char *const *wf_probe_variables(const struct wf_launcher_probe *probe);
/* Notes what `from` says. `ignored`: NULL, or why it cannot be used. */
void wf_probe_add(struct wf_launcher_probe *probe, enum wf_launcher_fact fact, const char *from,
		  const char *value, const char *ignored);
/* Entries of a list with commas. */
unsigned wf_probe_count_entries(const char *list);
/* A whole number; false: it is none, or has more than six digits. */
bool wf_probe_number(const char *text, unsigned *out);

/* Why a size that counts the group of this process is not used; NULL: it is. */
const char *wf_probe_size_objection(const struct wf_launcher_probe *probe);

/* Notes the host in this variable, that of rank 0, as where pserver 0 is. None: the variable is not
 * set. */
void wf_probe_add_master(struct wf_launcher_probe *probe, const char *name);

/* Processes in groups that have one row of ranks: those of group 0 come first. */
struct wf_probe_groups {
	const unsigned *counts; /* [group_count] processes of each */
	unsigned group_count;
	const char *rank_name; /* the variable with the rank, and that with the counts */
	const char *size_name;
	const char *too_many; /* why no number is known if there are more than two groups */
};
/* Notes the rank within the group `own`, and the number of trainers: for a trainer those of its
 * group, for a pserver those of the other one. Returns false, and notes nothing, if the rank is not
 * there. */
bool wf_probe_add_group(struct wf_launcher_probe *probe, const struct wf_probe_groups *groups,
			unsigned own, unsigned rank);

/* Each looks for what one launcher says. One that runs inside of another stands before it. */
typedef void wf_launcher_reader(struct wf_launcher_probe *probe);
wf_launcher_reader wf_launcher_read_torchrun;
wf_launcher_reader wf_launcher_read_open_mpi;
wf_launcher_reader wf_launcher_read_slurm;
wf_launcher_reader wf_launcher_read_paddle;
wf_launcher_reader wf_launcher_read_volcano;
wf_launcher_reader wf_launcher_read_torchrun_options;
wf_launcher_reader wf_launcher_read_indexed_job;
/* Those of Volcano whose names are not pserver and trainer, as far as something is not known. */
void wf_launcher_read_tasks(struct wf_launcher_probe *probe, bool wants_size, bool wants_pservers);

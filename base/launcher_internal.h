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
/* Notes what `from` says. `ignored`: NULL, or why it cannot be used. */
void wf_probe_add(struct wf_launcher_probe *probe, enum wf_launcher_fact fact, const char *from,
		  const char *value, const char *ignored);
/* A whole number; false: it is none, or has more than six digits. */
bool wf_probe_number(const char *text, unsigned *out);

/* Each looks for what one launcher says. One that runs inside of another stands before it. */
typedef void wf_launcher_reader(struct wf_launcher_probe *probe);
wf_launcher_reader wf_launcher_read_torchrun;
wf_launcher_reader wf_launcher_read_open_mpi;
wf_launcher_reader wf_launcher_read_slurm;
wf_launcher_reader wf_launcher_read_paddle;
wf_launcher_reader wf_launcher_read_volcano;
wf_launcher_reader wf_launcher_read_indexed_job;

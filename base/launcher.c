/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: see launcher.h. All readers add to one list; then it is decided which finding counts.
 */
#include "base/launcher.h"

#include <string.h>

#include "base/assert.h"
#include "base/launcher_internal.h"

static const struct {
	const char *name;
	wf_launcher_reader *read;
} readers[] = {
	{"torchrun", wf_launcher_read_torchrun},
	{"Open MPI", wf_launcher_read_open_mpi},
	{"Slurm", wf_launcher_read_slurm},
	{"PaddlePaddle's job", wf_launcher_read_paddle},
	{"Volcano", wf_launcher_read_volcano},
	{"Kubeflow", wf_launcher_read_torchrun_options},
	{"Kubernetes Job", wf_launcher_read_indexed_job},
};

const struct wf_launcher_finding *
wf_launcher_find(const struct wf_launcher *launcher, enum wf_launcher_fact fact)
{
	for (unsigned i = 0; i < launcher->count; i++) {
		const struct wf_launcher_finding *finding = &launcher->finding[i];
		if (finding->fact == fact && finding->ignored == NULL) {
			return finding;
		}
	}
	return NULL;
}

static void
settle(struct wf_launcher *out)
{
	bool known[WF_FACT_COUNT] = {false};

	for (unsigned i = 0; i < out->count; i++) {
		struct wf_launcher_finding *finding = &out->finding[i];
		if (finding->ignored != NULL) {
			continue;
		}
		if (out->role == WF_ROLE_PSERVER && finding->fact == WF_FACT_RANK) {
			finding->ignored = "this process is no trainer";
		} else if (out->role != WF_ROLE_PSERVER && finding->fact == WF_FACT_LISTEN) {
			finding->ignored = "this process is no pserver";
		} else if (known[finding->fact]) {
			finding->ignored = "another variable above counts";
		} else {
			known[finding->fact] = true;
		}
	}
	for (unsigned i = 0; i < out->count; i++) {
		struct wf_launcher_finding *finding = &out->finding[i];
		if (finding->fact == WF_FACT_PSERVER_COUNT && finding->ignored == NULL &&
		    !known[WF_FACT_PSERVERS]) {
			finding->ignored = "it says how many there are, not where";
		}
	}
}

void
wf_launcher_detect(const struct wf_launcher_source *source, enum wf_launcher_role role,
		   struct wf_launcher *out)
{
	struct wf_launcher_probe probe = {.source = source, .out = out};

	memset(out, 0, sizeof(*out));
	out->role = role;
	if (role == WF_ROLE_UNKNOWN) { /* only the job's own variables have it */
		probe.launcher = "";
		wf_launcher_read_paddle(&probe);
		const struct wf_launcher_finding *said = wf_launcher_find(out, WF_FACT_ROLE);
		bool serves = said != NULL && strcmp(said->value, "pserver") == 0;
		memset(out, 0, sizeof(*out));
		out->role = serves ? WF_ROLE_PSERVER : WF_ROLE_TRAINER;
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(readers); i++) {
		probe.launcher = readers[i].name;
		readers[i].read(&probe);
	}
	settle(out);
}

const char *
wf_launcher_fact_name(enum wf_launcher_fact fact)
{
	static const char *const names[WF_FACT_COUNT] = {
		[WF_FACT_ROLE] = "role",
		[WF_FACT_RANK] = "trainer_id",
		[WF_FACT_SIZE] = "num_gradient_servers",
		[WF_FACT_PSERVERS] = "pservers",
		[WF_FACT_PORT] = "port",
		[WF_FACT_LISTEN] = "listen",
		[WF_FACT_PSERVER_COUNT] = "pserver_count",
	};
	WF_ASSERT(fact < WF_FACT_COUNT);
	return names[fact];
}

const struct wf_launcher_finding *
wf_launcher_find_setting(const struct wf_launcher *launcher, const char *name)
{
	for (unsigned fact = WF_FACT_RANK; fact < WF_FACT_COUNT; fact++) {
		if (strcmp(wf_launcher_fact_name(fact), name) == 0) {
			return wf_launcher_find(launcher, fact);
		}
	}
	return NULL;
}

enum weft_status
wf_launcher_check(const struct wf_launcher *launcher, const struct wf_launcher_finding *said)
{
	const struct wf_launcher_finding *count = wf_launcher_find(launcher, WF_FACT_PSERVER_COUNT);
	unsigned wanted;

	if (said->fact != WF_FACT_PSERVERS || count == NULL ||
	    !wf_probe_number(count->value, &wanted) ||
	    wf_probe_count_entries(said->value) == wanted) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID,
		       "%.80s does not fit %.200s, a list of %u; correct one of them, or give "
		       "pservers",
		       count->text, said->text, wf_probe_count_entries(said->value));
}

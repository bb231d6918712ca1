/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values from a saved pass, or a file of another program. Thread: the run's. */
#include "trainer/program/initial.h"

#include <inttypes.h>

#include "saved/import.h"
#include "saved/snapshot.h"

static enum weft_status
parse_missing(const struct wf_run *job, enum wf_import_missing *out)
{
	const char *name = job->opts->load_missing_parameter_strategy;

	return wf_import_missing_parse(name == NULL ? "fail" : name, out);
}

enum weft_status
wf_run_check_initial(const struct wf_run *job)
{
	enum wf_import_missing missing;

	return parse_missing(job, &missing);
}

static void
log_initial(const struct wf_run *job, const struct wf_import *import,
	    enum wf_import_missing missing, const struct wf_import_load *load)
{
	const char *path = job->opts->init_model_path;

	const struct wf_saved *saved = wf_import_saved(import);
	struct wf_snapshot_id id;

	if (saved != NULL && wf_saved_snapshot(saved, &id)) {
		wf_log(job->env, WF_LOG_INFO,
		       "initial values from %s (snapshot of step %" PRIu64 " in epoch %" PRIu64
		       "); the optimizer's state, the steps so far and the positions in the data "
		       "that it has are not used",
		       path, id.step, id.epoch);
	} else {
		wf_log(job->env, WF_LOG_INFO, "initial values from %s (%s)", path,
		       wf_import_format_name(wf_import_format_of(import)));
	}
	if (load->missing_count > 0) {
		wf_log(job->env, WF_LOG_WARN,
		       "init_model_path: %" PRIu32
		       " tensors of this model are missing in %s, the first one is %s: "
		       "they begin %s",
		       load->missing_count, path, load->missing,
		       missing == WF_IMPORT_MISSING_ZERO ? "at 0" : "as without a file");
	}
	if (load->unused_count > 0) {
		wf_log(job->env, WF_LOG_WARN,
		       "init_model_path: %" PRIu32
		       " arrays of %s are not tensors of this model, the first one is %s",
		       load->unused_count, path, load->unused);
	}
}

enum weft_status
wf_run_load_initial(const struct wf_run *job, const struct wf_saved_tensor *tensor,
		    uint32_t tensor_count)
{
	enum wf_import_missing missing = WF_IMPORT_MISSING_FAIL;
	struct wf_import *import = NULL;
	struct wf_import_load load;

	enum weft_status st = parse_missing(job, &missing);
	if (st == WEFT_OK) {
		st = wf_import_open(job->env, wf_saved_posix(), job->opts->init_model_path,
				    WF_IMPORT_AUTO, &import);
		if (st != WEFT_OK) {
			const struct wf_error why = *wf_error_record();
			st = wf_fail(st, "%s (--init_model_path)", why.text);
		}
	}
	if (st == WEFT_OK) {
		st = wf_import_load(import, tensor, tensor_count, missing, &load);
	}
	if (st == WEFT_OK) {
		log_initial(job, import, missing, &load);
	}
	wf_import_close(import);
	return st;
}

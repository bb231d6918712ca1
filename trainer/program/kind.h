/* SPDX-License-Identifier: Apache-2.0 */
/* kind: the table of models that can be trained: for each its data and the settings it does well
 * with. To add a model, add its init function and one entry here. Thread: any. */
#pragma once

#include <stdbool.h>

#include "trainer/models/model.h"
#include "trainer/readers/dataset.h"

struct wf_kind {
	const char *name;
	const char *summary;
	const char *data_file;
	bool has_closed_form;
	enum weft_status (*read)(struct wf_env *env, const char *path, struct wf_dataset *out);
	enum weft_status (*init)(const struct wf_model_opts *opts, struct wf_model *out);
	/* Settings where neither command line nor environment says anything. */
	uint64_t num_passes;
	uint64_t batch_size;
	double learning_rate;
	const char *hidden;
};

/* WEFT_INVALID lists the names there are. `name` may be NULL. */
enum weft_status wf_kind_by_name(const char *name, const struct wf_kind **out) WEFT_MUST_CHECK;
/* Entry `idx`, NULL past the end. */
const struct wf_kind *wf_kind_at(unsigned idx);

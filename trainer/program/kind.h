/* SPDX-License-Identifier: Apache-2.0 */
/* kind: the table of models that can be trained: for each its data and the settings it does well
 * with. To add a model, add its init function and one entry here. Thread: any. */
#pragma once

#include <stdbool.h>

#include "trainer/models/model.h"
#include "trainer/program/source.h"

/* Settings of a model that neither command line nor environment gives. */
struct wf_kind_settings {
	uint64_t num_passes;
	uint64_t batch_size;
	const char *optimizer;
	double learning_rate;
	double sparse_learning_rate;
	const char *hidden;
	uint64_t embedding;
};

struct wf_kind {
	const char *name;
	const char *summary;
	const char *data_file;     /* that comes with weft */
	const char *data_format;   /* its --format; NULL: there is but one */
	const char *other_format;  /* a --format whose data the system may have; NULL: none */
	const char *other_data;    /* where, */
	const char *other_package; /* and what brings it */
	bool can_stream;           /* a set may be larger than memory */
	const char *whole; /* what it does with all rows of a set, in a message; NULL: nothing */
	bool has_closed_form;
	bool has_words; /* its data is running text */
	bool has_tables;
	wf_source_reader *read;
	wf_source_opener *open_sheet; /* of tables of numbers; otherwise NULL */
	enum weft_status (*init)(const struct wf_model_opts *opts, struct wf_model *out);
	struct wf_kind_settings usual;
};

/* Whether there is a model of this name; WEFT_INVALID lists those there are. `name` may be NULL. */
enum weft_status wf_kind_check_name(const char *name) WEFT_MUST_CHECK;
/* As wf_kind_check_name. */
enum weft_status wf_kind_by_name(const char *name, const struct wf_kind **out) WEFT_MUST_CHECK;
/* Entry `idx`, NULL past the end. */
const struct wf_kind *wf_kind_at(unsigned idx);

/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_modes: --tensor_modes, which sets when pushes of single tensors are applied:
 * "PATTERN=MODE,...", where PATTERN is a shell pattern for the whole name; the first one that
 * matches counts. Thread: any. */
#pragma once

#include <stdbool.h>

#include "trainer/program/train.h"
#include "weft/weft.h"

struct wf_model;

/* WEFT_INVALID: not of that form, or no such mode. */
enum weft_status wf_tensor_modes_check(const struct wf_train_opts *opts) WEFT_MUST_CHECK;
/* WEFT_INVALID: a pattern fits no tensor of the model. */
enum weft_status wf_tensor_modes_fit(const struct wf_train_opts *opts,
				     const struct wf_model *model) WEFT_MUST_CHECK;
/* Some are given, or one of them is "bounded". */
bool wf_tensor_modes_given(const struct wf_train_opts *opts);
bool wf_tensor_modes_bound(const struct wf_train_opts *opts);
/* The mode of the tensor of this name, and what goes with it. */
void wf_tensor_modes_set(const struct wf_train_opts *opts, struct weft_tensor_opts *tensor);

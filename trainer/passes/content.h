/* SPDX-License-Identifier: Apache-2.0 */
/* content: the tensors and tables of a session as a save lists them. Private to this folder.
 * Thread: the session's owner. */
#pragma once

#include "saved/saved.h"
#include "trainer/session/session.h"

/* Lists of the session's memory. */
struct wf_pass_content {
	struct wf_env *env;
	struct wf_saved_tensor *tensor; /* [tensor_count] */
	struct wf_saved_table *table;   /* [table_count]; `source` is the weft_table */
	uint32_t tensor_count, table_count;
};

/* `exact`: values as the pservers have them, otherwise the parameter arrays. WEFT_NOMEM */
enum weft_status wf_pass_content_init(struct weft_session *session, bool exact,
				      struct wf_pass_content *out) WEFT_MUST_CHECK;
void wf_pass_content_fini(struct wf_pass_content *content); /* accepts a zeroed one */
/* What both calls need: on all trainers, a state of the optimizer that pservers have; */
enum weft_status wf_pass_check_mode(const struct weft_session *session,
				    const char *what) WEFT_MUST_CHECK;
/* on trainer 0, arrays for it, and the name of a folder. WEFT_INVALID */
enum weft_status wf_pass_check_first(const struct weft_session *session, const char *dir,
				     const char *what) WEFT_MUST_CHECK;

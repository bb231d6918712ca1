/* SPDX-License-Identifier: Apache-2.0 */
/* stragglers: lines at the end of a pass about trainers that kept others waiting, and about pushes
 * that came late. Thread: the session's owner. */
#pragma once

#include "base/env.h"
#include "weft/weft.h"

struct wf_stragglers {
	uint32_t trainer_count;
	struct weft_trainer_stats *before, *now; /* [trainer_count]; at the end of passes */
};

enum weft_status wf_stragglers_init(struct wf_env *env, uint32_t trainer_count,
				    struct wf_stragglers *out) WEFT_MUST_CHECK;
void wf_stragglers_fini(struct wf_env *env, struct wf_stragglers *s); /* accepts zeroed */
/* Requests the lanes' statistics, and logs what is new since the last time. */
enum weft_status wf_stragglers_report(struct wf_env *env, struct wf_stragglers *s,
				      struct weft_session *session, uint64_t pass) WEFT_MUST_CHECK;

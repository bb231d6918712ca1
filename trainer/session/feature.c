/* SPDX-License-Identifier: Apache-2.0 */
/* feature: calls of the hooks. Thread: the core's. */
#include "trainer/session/feature.h"

#include "trainer/session/dense.h"

static const struct wf_link_hooks *const hooks[WF_FEATURE_COUNT] = {
	[WF_FEATURE_NORM] = &wf_link_norm_hooks,
	[WF_FEATURE_ANNOUNCE] = &wf_link_announce_hooks,
	[WF_FEATURE_OTHERS] = &wf_link_others_hooks,
	[WF_FEATURE_POSITION] = &wf_link_position_hooks,
	[WF_FEATURE_TRACE] = &wf_link_trace_hooks,
};

enum weft_status
wf_link_features_open(struct wf_dense_link *dense)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < WF_FEATURE_COUNT && st == WEFT_OK; i++) {
		st = hooks[i]->open != NULL ? hooks[i]->open(dense) : WEFT_OK;
	}
	return st;
}

void
wf_link_features_close(struct wf_dense_link *dense)
{
	for (unsigned i = 0; i < WF_FEATURE_COUNT; i++) {
		if (hooks[i]->close != NULL) {
			hooks[i]->close(dense);
		}
	}
}

enum weft_status
wf_link_features_recv(struct wf_dense_link *dense, const struct wf_event *event)
{
	const uint8_t type = event->msg.head->type;
	for (unsigned i = 0; i < WF_FEATURE_COUNT; i++) {
		if (hooks[i]->message == type) {
			return hooks[i]->recv(dense, event);
		}
	}
	return wf_fail(WEFT_PROTOCOL, "dense message of type %u at a trainer", type);
}

void
wf_link_feature_due(struct wf_dense_link *dense, enum wf_link_feature feature)
{
	dense->features_due |= 1u << feature;
	wf_link_due(&dense->link);
}

bool
wf_link_features_flush(struct wf_dense_link *dense)
{
	while (dense->features_due != 0) {
		unsigned i = (unsigned)__builtin_ctz(dense->features_due);
		if (dense->link.to_send.step || !hooks[i]->flush(dense)) {
			return false;
		}
		dense->features_due &= dense->features_due - 1;
	}
	return true;
}

void
wf_link_features_path_begins(struct wf_dense_link *dense)
{
	for (unsigned i = 0; i < WF_FEATURE_COUNT; i++) {
		if (hooks[i]->path_begins != NULL) {
			hooks[i]->path_begins(dense);
		}
	}
}

void
wf_link_features_path_ends(struct wf_dense_link *dense)
{
	dense->features_due = 0;
	for (unsigned i = 0; i < WF_FEATURE_COUNT; i++) {
		if (hooks[i]->path_ends != NULL) {
			hooks[i]->path_ends(dense);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* service_view: asynchronous modes: how old the rows are from which a push was computed. A trainer
 * reads the rows of a batch while others push; its lag is the number of pushes of others that are
 * applied after that. Thread: the lane's. */
#include "sparse/server/service_internal.h"

void
wf_view_note_rows(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step)
{
	struct wf_view *view = &own->lag.view[step % WF_VIEWS_MAX];
	if (view->is_set && view->step == step && view->has_rows) {
		return; /* the rows of the batch that were read first count */
	}
	*view = (struct wf_view){.step = step,
				 .others = wf_order_others(&own->lag.pushes, sparse->async.pushes),
				 .is_set = true,
				 .has_rows = true};
}

void
wf_view_note_end(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step)
{
	struct wf_view *view = &own->lag.view[step % WF_VIEWS_MAX];
	if (!view->is_set || view->step != step) {
		*view = (struct wf_view){
			.step = step,
			.others = wf_order_others(&own->lag.pushes, sparse->async.pushes),
			.is_set = true};
	}
}

void
wf_view_forget_end(struct wf_sparse_peer *own, uint64_t step)
{
	struct wf_view *view = &own->lag.view[step % WF_VIEWS_MAX];
	if (view->step == step && !view->has_rows) {
		view->is_set = false;
	}
}

void
wf_view_judge(const struct wf_sparse *sparse, struct wf_sparse_peer *own, uint64_t step)
{
	if (own->lag.verdict != 0) {
		own->lag.pushes.discarded = own->lag.verdict == WF_SPARSE_PUSH_DROP;
		return;
	}
	const struct wf_view *view = &own->lag.view[(step - 1) % WF_VIEWS_MAX];
	bool known = view->is_set && view->step == step - 1;
	if (known) {
		own->lag.pushes.others = view->others;
	} else {
		wf_order_read(&own->lag.pushes, sparse->async.pushes);
	}
	(void)wf_order_judge(&own->lag.pushes, &sparse->async.terms, sparse->async.pushes);
}

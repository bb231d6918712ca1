/* SPDX-License-Identifier: Apache-2.0 */
/* topo_open: which process reads a machine: this one, or, where it is a file, a child. Thread: any,
 * one at a time. */
#include "base/assert.h"
#include "base/topo_internal.h"

enum weft_status
wf_topo_open(struct wf_env *env, const struct wf_topo_source *source, struct wf_topo **out)
{
	WF_ASSERT(source->xml == NULL || source->synthetic == NULL);
	static const struct wf_topo_limits limits = {.wall_ms = 10000, .cpu_s = 5};
	return source->xml != NULL ? wf_topo_ask_child(env, source, &limits, out)
				   : wf_topo_read(env, source, out);
}

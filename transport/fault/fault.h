/* SPDX-License-Identifier: Apache-2.0 */
/* fault: a transport that wraps another one and misbehaves within the contract.
 *
 * Its name for wf_transport_open is "fault(SPEC)+NAME", or "fault+NAME" for WF_FAULT_SPEC_DEFAULT;
 * NAME is any transport, wrapped ones included. For tests. Thread: the transport's owner. */
#pragma once

#include <stdbool.h>

#include "transport/fault/fault_spec.h"
#include "transport/transport.h"

#define WF_FAULT_NAME_BYTES (2 * WF_FAULT_SPEC_BYTES) /* of "fault(SPEC)+NAME", with the final 0 */

/* How often each kind of fault was injected since open. */
struct wf_fault_counts {
	uint64_t injected[WF_FAULT_KINDS];
};

/* Whether the name requests a wrapper, well-formed or not. */
bool wf_fault_is_name(const char *name);
/* Splits such a name, "fault(SPEC)+NAME": parses the SPEC into `out`; `*rest` is NAME, in `name`.
 * WEFT_INVALID: it is malformed. */
enum weft_status wf_fault_parse_name(const char *name, struct wf_fault_spec *out,
				     const char **rest) WEFT_MUST_CHECK;
/* In a setting of paths "fault(SPEC)+auto" wraps the whole transport: `name` becomes
 * "fault(SPEC)+paths", and `*rest` "auto". Returns false if `paths` does not begin with a wrapper,
 * or is a list, in which each item has its own wrappers. A malformed one is copied to `name`
 * unchanged. */
bool wf_fault_around_paths(const char *paths, char name[WF_FAULT_NAME_BYTES], const char **rest);
/* Wraps `inner`, which `*out` closes from then on, in the faults of `spec`. `name` is the whole
 * name of the wrapper; `opts` are complete, and those of `inner`. */
enum weft_status wf_fault_wrap(const char *name, const struct wf_fault_spec *spec,
			       const struct wf_transport_opts *opts, struct wf_transport *inner,
			       struct wf_transport **out) WEFT_MUST_CHECK;
/* Returns the counts of the outermost wrapper, or false if the transport is no wrapper. */
bool wf_fault_query(const struct wf_transport *transport, struct wf_fault_counts *out);

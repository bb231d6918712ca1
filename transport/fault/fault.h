/* SPDX-License-Identifier: Apache-2.0 */
/* fault: a transport that wraps another one and misbehaves within the contract.
 *
 * Its name is what is given to wf_transport_open: "fault(SPEC)+NAME", or "fault+NAME" for
 * WF_FAULT_SPEC_DEFAULT; NAME is any transport, wrapped ones included. For tests.
 * Thread: the transport's owner. */
#pragma once

#include <stdbool.h>

#include "transport/fault/fault_spec.h"
#include "transport/transport.h"

#define WF_FAULT_NAME_BYTES (2 * WF_FAULT_SPEC_BYTES) /* of "fault(SPEC)+NAME", with its end */

/* How often each kind of fault was injected since open. */
struct wf_fault_counts {
	uint64_t injected[WF_FAULT_KINDS];
};

/* Does the name ask for a wrapper? Then wf_fault_open is to open it, good or bad as it may be. */
bool wf_fault_is_name(const char *name);
/* "fault(SPEC)+auto", where a transport is told its paths, wraps all of it: `name` becomes
 * "fault(SPEC)+paths", `*rest` "auto". false: no wrapper comes first, or `paths` is a list, where
 * each item has wrappers of its own. One that is written wrongly becomes `name` as it is. */
bool wf_fault_around_paths(const char *paths, char name[WF_FAULT_NAME_BYTES], const char **rest);
/* `opts` are complete; the transport within gets them as they are. */
enum weft_status wf_fault_open(const char *name, const struct wf_transport_opts *opts,
			       struct wf_transport **out) WEFT_MUST_CHECK;
/* false: it is no such wrapper. Of the outermost one. */
bool wf_fault_query(const struct wf_transport *transport, struct wf_fault_counts *out);

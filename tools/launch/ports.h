/* SPDX-License-Identifier: Apache-2.0 */
/* ports: checks whether a range of TCP ports is free, by binding each for a moment. A free port may
 * be in use a moment later: the process that then opens it reports that itself. Thread: any. */
#pragma once

#include "base/url.h"

/* at->name is a numeric address or a name of this host. WEFT_OK: host:port .. host:port + count - 1
 * can be bound. WEFT_UNAVAILABLE names the first that cannot; WEFT_INVALID: not an address of this
 * host, or the range leaves 1..65535. */
enum weft_status wf_ports_probe(const struct wf_host *at, unsigned count) WEFT_MUST_CHECK;
/* Opens a listening socket at this one port, with close-on-exec. Fails as wf_ports_probe does; for
 * want of descriptors, of which the caller needs `count`, with WEFT_IO. */
enum weft_status wf_ports_open(const struct wf_host *at, unsigned count, int *out) WEFT_MUST_CHECK;
/* Fails with `err`, EMFILE or ENFILE, and what to do about it. */
enum weft_status wf_ports_fail_descriptors(int err, unsigned count) WEFT_MUST_CHECK;
/* The first free range of `count` at `at->port` or above, in steps of `count`; at most 64 tries. */
enum weft_status wf_ports_find(struct wf_host *at, unsigned count) WEFT_MUST_CHECK;

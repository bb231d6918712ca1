/* SPDX-License-Identifier: Apache-2.0 */
/* reach: who reaches whom: the addresses of a name, listening sockets that stand in for pservers,
 * and connections to them. Thread: any one. */
#pragma once

#include "base/env.h"
#include "base/url.h"

#define WF_REACH_LISTENERS_MAX 1024u /* of one host */

struct wf_reach {
	int fd[WF_REACH_LISTENERS_MAX]; /* [count] listening sockets */
	unsigned count;
};

/* The numeric addresses of a host as this one sees them, with blanks between them, except for those
 * of loopback. WEFT_UNAVAILABLE: there is none. */
enum weft_status wf_reach_resolve(const char *name, char *out, size_t bytes) WEFT_MUST_CHECK;
/* Whether a numeric address is one of loopback. */
bool wf_reach_is_loopback(const char *address);
/* Listens at the first `count` consecutive ports that are free, from `lowest` to `highest`, of the
 * first of `addresses`, with blanks between them, that belongs to this host. WEFT_INVALID: none of
 * them does; WEFT_UNAVAILABLE: too few ports are free. */
enum weft_status wf_reach_listen(struct wf_reach *reach, const char *addresses, uint16_t lowest,
				 uint16_t highest, unsigned count,
				 struct wf_host *out) WEFT_MUST_CHECK;
/* Connects to all of `host`, at the same time. Returns the index of the first that cannot be
 * reached by `deadline_ns`, with the reason in `why`; `count`: all can. */
unsigned wf_reach_connect(struct wf_env *env, const struct wf_host *host, unsigned count,
			  uint64_t deadline_ns, char *why, size_t bytes);
void wf_reach_close(struct wf_reach *reach);

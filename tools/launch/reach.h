/* SPDX-License-Identifier: Apache-2.0 */
/* reach: who reaches whom: the addresses of a name, listening sockets that stand in for pservers,
 * and connections to them. Thread: any one. */
#pragma once

#include "base/env.h"
#include "base/url.h"

#define WF_REACH_LISTENERS_MAX 1024u /* ports of all pservers of a job on several hosts */

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
/* What wf_reach_connect finds: the index of the first host that cannot be reached, and the reason;
 * the number of hosts: all can. */
struct wf_reach_result {
	unsigned failed;
	char why[128];
};
/* Connects to all of `host`, at the same time, until `deadline_ns`. WEFT_IO: this process may not
 * open so many descriptors. */
enum weft_status wf_reach_connect(struct wf_env *env, const struct wf_host *host, unsigned count,
				  uint64_t deadline_ns,
				  struct wf_reach_result *out) WEFT_MUST_CHECK;
/* The way to a listener: what this end may put into a packet, what TCP puts there, and whether a
 * packet of that size has arrived. */
struct wf_reach_path {
	unsigned mtu;     /* of the interface, or of the route if it is smaller; 0: unknown */
	unsigned segment; /* bytes of data in a packet of TCP */
	bool acknowledged;
};
/* Connects, sends one packet of the largest size, and waits until it is acknowledged, at most until
 * `deadline_ns`. Nobody has to accept the connection. WEFT_UNAVAILABLE: it cannot be reached. */
enum weft_status wf_reach_measure(struct wf_env *env, const struct wf_host *host,
				  uint64_t deadline_ns, struct wf_reach_path *out) WEFT_MUST_CHECK;
void wf_reach_close(struct wf_reach *reach);

/* SPDX-License-Identifier: Apache-2.0 */
/* doors: listening sockets of a medium, and letting in who stands before them: in turns, as far as
 * there are places, descriptors and memory; where there are none, somebody who came in makes room
 * (transport/life.h), or it is tried again a little later. Thread: the transport's owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/url.h"
#include "transport/life.h"
#include "transport/loop.h"

#define WF_DOORS_MAX 8u       /* sockets, not calls: a name may have several addresses */
#define WF_DOORS_BACKLOG 4096 /* of listen(2) */

struct wf_doors;

struct wf_door {
	struct wf_loop_source source;
	struct wf_doors *doors;
	struct wf_host at; /* for texts */
	int fd;
	bool readable;     /* accept has not said EAGAIN since the last edge */
	uint64_t retry_ns; /* there were no descriptors, or no memory: not before */
};

/* Embedded in the medium's transport. */
struct wf_doors {
	struct wf_medium *medium;
	/* `fd` is connected, and the medium's from here on: it makes a connection of it, or closes
	 * it. `peer`: as accept(2) gave it. */
	void (*adopt)(struct wf_medium *medium, int fd, const struct sockaddr_storage *peer,
		      const struct wf_door *door);
	struct wf_door door[WF_DOORS_MAX];
	unsigned count;
	bool readable; /* one of them is */
	struct wf_log_limit log;
};

/* Take over listening sockets, all or none: on failure they are closed. WEFT_NOMEM: there are
 * WF_DOORS_MAX. */
enum weft_status wf_doors_add(struct wf_doors *doors, const int *fd, unsigned fd_count,
			      const struct wf_host *at) WEFT_MUST_CHECK;
void wf_doors_close(struct wf_doors *doors);
/* Let in who stands there, 32 at a door. */
void wf_doors_accept(struct wf_doors *doors);
bool wf_doors_look(struct wf_doors *doors);
/* Somebody may stand there who is to be let in now. */
static inline bool
wf_doors_are_due(struct wf_doors *doors)
{
	return doors->readable && wf_doors_look(doors);
}
/* Set the loop's timer for those that are tried again later. */
void wf_doors_expire(struct wf_doors *doors, uint64_t now_ns);

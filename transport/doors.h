/* SPDX-License-Identifier: Apache-2.0 */
/* doors: the listening sockets of a medium. Connections are accepted from all of them in turn,
 * while there are places, descriptors and memory. If there are none, a newcomer is dropped to make
 * room (transport/life.h), or accepting is retried a little later. Thread: the transport's owner.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/url.h"
#include "transport/life.h"
#include "transport/loop.h"

#define WF_DOORS_MAX 8u       /* counts sockets: a name may have several addresses */
#define WF_DOORS_BACKLOG 4096 /* of listen(2) */

struct wf_doors;

struct wf_door {
	struct wf_loop_source source;
	struct wf_doors *doors;
	struct wf_host at; /* for texts */
	int fd;
	bool readable;     /* accept has not returned EAGAIN since the last edge */
	uint64_t retry_ns; /* when to retry after a lack of descriptors or memory */
};

/* Embedded in the medium's transport. */
struct wf_doors {
	struct wf_medium *medium;
	/* Called with a connected `fd`, which the medium owns from here on: it makes a connection
	 * of it, or closes it. `peer` is the address from accept(2). */
	void (*adopt)(struct wf_medium *medium, int fd, const struct sockaddr_storage *peer,
		      const struct wf_door *door);
	struct wf_door door[WF_DOORS_MAX];
	unsigned count;
	bool readable; /* at least one door is readable */
	struct wf_log_limit log;
};

/* Adds listening sockets, which the doors then own, all or none: on failure they are closed.
 * WEFT_NOMEM: there would be more than WF_DOORS_MAX. */
enum weft_status wf_doors_add(struct wf_doors *doors, const int *fd, unsigned fd_count,
			      const struct wf_host *at) WEFT_MUST_CHECK;
void wf_doors_close(struct wf_doors *doors);
/* Accepts waiting connections, at most 32 at each socket. */
void wf_doors_accept(struct wf_doors *doors);
bool wf_doors_look(struct wf_doors *doors);
/* Whether a connection may be waiting that can be accepted now. */
static inline bool
wf_doors_are_due(struct wf_doors *doors)
{
	return doors->readable && wf_doors_look(doors);
}
/* Sets the loop's timer for the sockets that are retried later. */
void wf_doors_expire(struct wf_doors *doors, uint64_t now_ns);

/* SPDX-License-Identifier: Apache-2.0 */
/* locked: how much memory this process may lock, which is what an RDMA device requires of the
 * memory that it reads and writes. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Short: with the name of a peer it has to fit into the reason of a connection's end. */
#define WF_LOCKED_RAISE                                                                            \
	"raise it: ulimit -l unlimited, limits.conf, LimitMEMLOCK=infinity (systemd), "            \
	"--ulimit memlock=-1 (container)"

struct wf_locked {
	uint64_t bytes;       /* locked by this process so far */
	uint64_t limit_bytes; /* UINT64_MAX: no limit */
	/* It has the host's CAP_IPC_LOCK: most devices do not check the limit then. */
	bool privileged;
};

struct wf_locked wf_locked_read(void);
/* The same of a process whose /proc/self/status is `status`. `of_host`: it is in the initial user
 * namespace. A capability in another one, such as that of a rootless container, does not count:
 * the kernel checks for the host's. */
struct wf_locked wf_locked_of(const char *status, uint64_t limit_bytes, bool of_host);
/* Whether this process is in the initial user namespace; true if that is unknown. */
bool wf_locked_is_of_host(void);

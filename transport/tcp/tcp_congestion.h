/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_congestion: which algorithm decides how fast a TCP socket sends. Thread: any. */
#pragma once

#include "base/status.h"

#define WF_TCP_CONGESTION_BYTES 16 /* the kernel's TCP_CA_NAME_MAX */

/* Whether a socket of this process may have it; "" stands for the system's own choice, and may.
 * WEFT_INVALID: unknown or not loaded, lists those there are; WEFT_PERM: not for this user, lists
 * those that are. */
enum weft_status wf_tcp_congestion_check(const char *name) WEFT_MUST_CHECK;
/* For a name that was checked; "": nothing. Listening sockets hand it on to what they accept. */
void wf_tcp_congestion_set(int fd, const char *name);

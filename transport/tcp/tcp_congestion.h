/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_congestion: the algorithm that decides how fast a TCP socket sends. Thread: any. */
#pragma once

#include "base/status.h"

#define WF_TCP_CONGESTION_BYTES 16 /* the kernel's TCP_CA_NAME_MAX */

/* Checks that a socket of this process may use it; "" stands for the system's choice, which is
 * always allowed. WEFT_INVALID: it is unknown or not loaded; the text lists those that exist.
 * WEFT_PERM: this user may not use it; the text lists those that are allowed. */
enum weft_status wf_tcp_congestion_check(const char *name) WEFT_MUST_CHECK;
/* Sets an algorithm that was checked; "" changes nothing. Listening sockets pass it on to the
 * sockets that they accept. */
void wf_tcp_congestion_set(int fd, const char *name);

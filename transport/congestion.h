/* SPDX-License-Identifier: Apache-2.0 */
/* congestion: the algorithm that decides how fast a TCP socket sends. Thread: any. */
#pragma once

#include "base/status.h"

#define WF_CONGESTION_BYTES 16 /* the kernel's TCP_CA_NAME_MAX */

struct wf_congestion {
	char name[WF_CONGESTION_BYTES]; /* "": the system's choice */
};

/* Checks that a socket of this process may use the algorithm `name`, and copies it. NULL and ""
 * stand for the system's choice, which is always allowed. WEFT_INVALID: it is unknown or not
 * loaded; the text lists those that exist. WEFT_PERM: this user may not use it; the text lists
 * those that are allowed. */
enum weft_status wf_congestion_choose(const char *name, struct wf_congestion *out) WEFT_MUST_CHECK;
/* Sets it on a socket. Listening sockets pass it on to the sockets that they accept. */
void wf_congestion_set(const struct wf_congestion *congestion, int fd);

/* SPDX-License-Identifier: Apache-2.0 */
/* congestion: one algorithm for both sides of every ratio: loopback under bbr is four times slower
 * than under cubic, whoever sends. Thread: main. */
#pragma once

#include "base/status.h"

#define WF_CONGESTION_BYTES 16 /* the kernel's TCP_CA_NAME_MAX */

/* `asked`; where that is NULL cubic, or "", the system's, where there is no cubic for this user.
 * WEFT_INVALID, WEFT_PERM: as wf_tcp_congestion_check. */
enum weft_status wf_congestion_choose(const char *asked,
				      char out[WF_CONGESTION_BYTES]) WEFT_MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* congestion: one algorithm for both sides of every ratio, because loopback under bbr is four times
 * slower than under cubic, whichever program sends. Thread: main. */
#pragma once

#include "base/status.h"

#define WF_BENCH_CONGESTION_BYTES 16 /* the kernel's TCP_CA_NAME_MAX */

/* The algorithm `asked`. If that is NULL: cubic, or "", the system's, if this user may not choose
 * cubic. WEFT_INVALID, WEFT_PERM: as wf_congestion_choose. */
enum weft_status wf_bench_congestion(const char *asked,
				     char out[WF_BENCH_CONGESTION_BYTES]) WEFT_MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* hostlist: the lists of hosts that Slurm writes: "n[1-3,7],gpu[001-003]" is n1, n2, n3, n7,
 * gpu001, gpu002, gpu003. Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_HOSTLIST_MAX 65536u /* hosts of a list */

/**
 * Expand a list. Zeros in front of a number are kept; a name may have several brackets, the last of
 * which runs fastest.
 * @param most  how many names are written at most; the rest is only counted
 * @param out   [bytes] the names, with commas
 * @param count how many there are
 * @return WEFT_OK; WEFT_INVALID: the list is malformed, names more than WF_HOSTLIST_MAX hosts, or
 *         does not fit
 */
enum weft_status wf_hostlist_expand(const char *list, uint32_t most, char *out, size_t bytes,
				    uint32_t *count) WEFT_MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* exit_code: what a program's exit says about a status. tools/exit_code.h is the same mapping for
 * the command. Thread: any. */
#pragma once

#include "base/status.h"

enum wf_exit {
	WF_EXIT_OK = 0,
	WF_EXIT_FAILED = 1,       /* what was asked for was checked, and failed */
	WF_EXIT_USAGE = 64,       /* change the command line */
	WF_EXIT_DATA = 65,        /* change the data */
	WF_EXIT_UNAVAILABLE = 69, /* a peer is not there, has gone or says no */
	WF_EXIT_INTERNAL = 70,    /* no memory, a defect */
	WF_EXIT_IO = 74,
	WF_EXIT_AGAIN = 75, /* the same may work later */
	WF_EXIT_PERM = 77,
};

static inline enum wf_exit
wf_exit_code(enum weft_status status)
{
	switch (status) {
	case WEFT_OK:
		return WF_EXIT_OK;
	case WEFT_INVALID:
	case WEFT_UNSUPPORTED:
	case WEFT_MISMATCH: /* members were started with different settings: trying again is no use
			     */
		return WF_EXIT_USAGE;
	case WEFT_DATA:
		return WF_EXIT_DATA;
	case WEFT_TIMEOUT:
	case WEFT_UNAVAILABLE:
	case WEFT_REFUSED:
	case WEFT_LOST:
	case WEFT_PROTOCOL:
	case WEFT_ABORTED:
	case WEFT_CLOSED:
		return WF_EXIT_UNAVAILABLE;
	case WEFT_IO:
		return WF_EXIT_IO;
	case WEFT_AGAIN:
		return WF_EXIT_AGAIN;
	case WEFT_PERM:
		return WF_EXIT_PERM;
	case WEFT_NOMEM:
	case WEFT_INTERNAL:
		return WF_EXIT_INTERNAL;
	}
	return WF_EXIT_INTERNAL;
}

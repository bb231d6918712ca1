/* SPDX-License-Identifier: Apache-2.0 */
/* exit_code: the exit code of a status; those of sysexits where they have one.
 * Thread: any. */
#pragma once

#include "weft/status.h"

enum wf_exit {
	WF_EXIT_OK = 0,
	WF_EXIT_FAILED = 1,       /* the requested check was made, and failed */
	WF_EXIT_USAGE = 64,       /* bad option or value, members that disagree */
	WF_EXIT_DATA = 65,        /* bad data */
	WF_EXIT_UNAVAILABLE = 69, /* peer unavailable or lost, address in use */
	WF_EXIT_INTERNAL = 70,    /* no memory, a defect */
	WF_EXIT_IO = 74,          /* input or output failed */
	WF_EXIT_AGAIN = 75,       /* try again */
	WF_EXIT_PERM = 77,        /* not permitted */
	WF_EXIT_SIGNAL = 128,     /* plus the number of the signal that ended it, as shells count */
};

static inline int
wf_exit_code(enum weft_status status)
{
	switch (status) {
	case WEFT_OK:
		return WF_EXIT_OK;
	case WEFT_AGAIN:
	case WEFT_ROLLED_BACK:
		return WF_EXIT_AGAIN;
	case WEFT_INVALID:
	case WEFT_MISMATCH:
	case WEFT_UNSUPPORTED:
		return WF_EXIT_USAGE;
	case WEFT_DATA:
		return WF_EXIT_DATA;
	case WEFT_TIMEOUT:
	case WEFT_UNAVAILABLE:
	case WEFT_REFUSED:
	case WEFT_PROTOCOL:
	case WEFT_LOST:
	case WEFT_ABORTED:
	case WEFT_CLOSED:
		return WF_EXIT_UNAVAILABLE;
	case WEFT_IO:
		return WF_EXIT_IO;
	case WEFT_PERM:
		return WF_EXIT_PERM;
	case WEFT_NOMEM:
	case WEFT_INTERNAL:
		return WF_EXIT_INTERNAL;
	}
	return WF_EXIT_INTERNAL;
}

/* The meaning of an exit code, as text. */
static inline const char *
wf_exit_meaning(int code)
{
	switch (code) {
	case WF_EXIT_FAILED:
		return "checked, and failed";
	case WF_EXIT_USAGE:
		return "usage";
	case WF_EXIT_DATA:
		return "bad data";
	case WF_EXIT_UNAVAILABLE:
		return "peer unavailable or address in use";
	case WF_EXIT_INTERNAL:
		return "internal";
	case WF_EXIT_IO:
		return "input or output";
	case WF_EXIT_AGAIN:
		return "try again";
	case WF_EXIT_PERM:
		return "not permitted";
	default:
		return "unknown";
	}
}

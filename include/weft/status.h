/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes: the one error idiom of weft. */
#ifndef WEFT_STATUS_H
#define WEFT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The result of a call. The code that finds a failure records one line of text with it;
 * weft_last_error() returns that line on the thread that got the status.
 */
enum weft_status {
	WEFT_OK = 0,
	WEFT_AGAIN = 1,        /* nothing can be done now; ordinary: no text is recorded */
	WEFT_INVALID = 2,      /* the caller broke the rules of the call */
	WEFT_NOMEM = 3,        /* memory, or a limit on memory */
	WEFT_TIMEOUT = 4,      /* a deadline passed */
	WEFT_UNAVAILABLE = 5,  /* the peer cannot be reached, or an address is in use */
	WEFT_REFUSED = 6,      /* the peer refused, and gave its reason */
	WEFT_MISMATCH = 7,     /* members of the job disagree (version, job, placement) */
	WEFT_PROTOCOL = 8,     /* the peer sent what the protocol does not allow */
	WEFT_LOST = 9,         /* a member of the job has gone */
	WEFT_ABORTED = 10,     /* the job was aborted; the text is the first cause */
	WEFT_CLOSED = 11,      /* closed in good order */
	WEFT_IO = 12,          /* the operating system refused input or output */
	WEFT_DATA = 13,        /* bad data: NaN in a gradient, a damaged file */
	WEFT_PERM = 14,        /* not permitted */
	WEFT_UNSUPPORTED = 15, /* not built in, or not offered by this machine */
	WEFT_INTERNAL = 16,    /* a defect in weft */
	WEFT_ROLLED_BACK = 17, /* a member was lost, and the job goes back (weft/restart.h) */
};

#define WEFT_STATUS_COUNT 18

#if defined(__GNUC__)
#define WEFT_MUST_CHECK __attribute__((warn_unused_result))
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_MUST_CHECK
#define WEFT_API
#endif

/**
 * The name of a status in lower case ("timeout"). Never NULL; "unknown" for other values.
 */
WEFT_API const char *weft_status_name(enum weft_status status);

/**
 * The text recorded with the last failure on this thread: one line, no newline, "" if none.
 * Lives until the next failure on this thread.
 */
WEFT_API const char *weft_last_error(void);

#ifdef __cplusplus
}
#endif
#endif

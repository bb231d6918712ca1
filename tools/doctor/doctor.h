/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: what works on this machine, and why the rest does not. A table of small checks; each
 * looks at one thing and adds findings, which have a text and, where something is to be done, a
 * remedy. The checks believe nothing that they read: a file may be missing, damaged or a lie.
 * Thread: any one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define WF_DOCTOR_NAME_BYTES 32u    /* of a check */
#define WF_DOCTOR_SUBJECT_BYTES 80u /* "rxe0 port 1" */
#define WF_DOCTOR_TEXT_BYTES 400u   /* of a finding, and of its remedy */

enum wf_doctor_level {
	WF_DOCTOR_OK,      /* it works */
	WF_DOCTOR_NOTE,    /* it is not needed for what was asked, or good to know */
	WF_DOCTOR_FINDING, /* it works, and something is to be done about it */
	WF_DOCTOR_FAILS,   /* something that was asked for cannot work */
	WF_DOCTOR_LEVELS,
};

struct wf_doctor_finding {
	char check[WF_DOCTOR_NAME_BYTES];
	enum wf_doctor_level level;
	char subject[WF_DOCTOR_SUBJECT_BYTES]; /* which of several; "": there is one */
	char text[WF_DOCTOR_TEXT_BYTES];
	char remedy[WF_DOCTOR_TEXT_BYTES]; /* "": none is needed */
};

/* What the machine is to be used for. */
struct wf_doctor_ask {
	const char *root;           /* below which /proc, /sys, /dev and /etc are read; "": here */
	const char *transport;      /* "auto", "tcp", "shm", "verbs" */
	const char *verbs;          /* settings of verbs; NULL: none */
	const char *tcp_congestion; /* NULL or "": the system's choice */
	const char *listen;         /* a numeric address, "": loopback */
	const char *secret_file;    /* NULL or "": none */
	bool has_secret;            /* weft launch will give the job one */
	uint16_t port;              /* of the first lane */
	uint32_t lanes;             /* of one pserver; 0: there is no pserver here */
	uint32_t trainers;          /* of the job */
	uint64_t memory_bytes;      /* of one process */
};

/* Called for each finding, in the order of the checks. */
typedef void wf_doctor_sink(void *arg, const struct wf_doctor_finding *finding);

/* Runs all checks in a child process: one that does not end within 10 s, or crashes, is a finding
 * by itself, and the others go on. */
void wf_doctor_run(const struct wf_doctor_ask *ask, wf_doctor_sink *sink, void *arg);
/* Runs, in this process, the few checks that matter when a job starts. They read only files of the
 * kernel. */
void wf_doctor_run_at_start(const struct wf_doctor_ask *ask, wf_doctor_sink *sink, void *arg);
/* The number of checks, and the name and the purpose of one. */
unsigned wf_doctor_check_count(void);
const char *wf_doctor_check_name(unsigned idx);
const char *wf_doctor_check_purpose(unsigned idx);
/* "ok", "note", "finding", "fails" */
const char *wf_doctor_level_name(enum wf_doctor_level level);

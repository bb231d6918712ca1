/* SPDX-License-Identifier: Apache-2.0 */
/* fabric: pservers on loopback within the test's process, and trainers in threads of their own.
 *
 * cmocka's assertions belong to the test's thread: a trainer's thread returns a status, and the
 * test looks at it. Thread: the test's, but for what a member's run does. */
#pragma once

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/settings.h"
#include "pserver/server.h"
#include "transport/fault/fault.h"
#include "weft/weft.h"

#define FABRIC_PSERVERS_MAX 4u
#define FABRIC_LANES_MAX 4u
#define MEMBER_VALUES_MAX 64u
#define MEMBER_LOG_BYTES 4096u

struct fabric_server {
	struct wf_server *server;
	pthread_t thread;
	enum weft_status status; /* of its run, after fabric_stop */
	char text[WF_ERROR_BYTES];
};

struct fabric {
	struct wf_env *env;
	struct weft_settings *settings; /* with this env, for members over a transport of a test */
	struct fabric_server server[FABRIC_PSERVERS_MAX];
	uint32_t pserver_count, lane_count;
	char pservers[256];    /* the list, as passed to trainers */
	const char *transport; /* of the pservers, and of trainers by default; NULL: the default */
	uint64_t reconnect_timeout_ns; /* of the pservers; 0: the default */
	int log_fd; /* all lines of the pservers, and of trainers with a transport */
	struct wf_fault_counts faults; /* by all wrappers; after fabric_stop */
};

/* Each pserver with `lanes` lanes; they serve one job after another until fabric_stop. */
void fabric_start(struct fabric *fabric, uint32_t pservers, uint32_t lanes, uint64_t spin_ns);
/* The same over a transport of the test's, which may be wrapped in faults. What the pservers wait
 * for a lost lane is `reconnect_timeout_ns`; 0: the default. */
void fabric_start_over(struct fabric *fabric, const char *transport, uint32_t pservers,
		       uint32_t lanes, uint64_t spin_ns, uint64_t reconnect_timeout_ns);
/* Idle pservers end with OK; what others ended with is in `server[i]`. */
void fabric_stop(struct fabric *fabric);

/* One trainer. */
struct member {
	uint32_t id;
	struct weft_session_opts opts;
	enum weft_status (*run)(struct member *member); /* on a separate thread */
	const void *arg;                                /* of the test, for run */
	unsigned arg_count;

	/* Results. */
	enum weft_status status; /* what run returned, and its text */
	char text[WF_ERROR_BYTES];
	float value[MEMBER_VALUES_MAX];
	uint64_t digest;
	uint64_t steps;
	char log[MEMBER_LOG_BYTES]; /* all lines, complete when the session is gone */

	pthread_t thread;
};

/* Options of a trainer for this fabric; its log lines go to `member`. */
void member_init(struct member *member, const struct fabric *fabric, uint32_t id, uint32_t count);
/* Run all, each on its thread, until all have returned; or that in two parts. */
void members_start(struct member *member, unsigned count);
void members_join(struct member *member, unsigned count);
void members_run(struct member *member, unsigned count);
/* Copy status and text of the calling thread's last failure into the member. */
enum weft_status member_note(struct member *member, enum weft_status status);

/* A session of one tensor "w" of `rows` elements, all `initial`, started. */
enum weft_status one_tensor(const struct weft_session_opts *opts, uint64_t rows, float initial,
			    struct weft_session **session, struct weft_tensor **tensor);

/* Fails with the recorded error. */
#define assert_ok(call)                                                                            \
	do {                                                                                       \
		enum weft_status assert_ok_status = (call);                                        \
		if (assert_ok_status != WEFT_OK) {                                                 \
			fail_msg("%s: %s: %s", #call, weft_status_name(assert_ok_status),          \
				 weft_last_error());                                               \
		}                                                                                  \
	} while (0)

#define assert_text(text, part)                                                                    \
	do {                                                                                       \
		if (strstr((text), (part)) == NULL) {                                              \
			fail_msg("\"%s\" is not in \"%s\"", (part), (text));                       \
		}                                                                                  \
	} while (0)

/* The call is refused with `expected`, and the text has `part` in it. */
#define assert_refused(call, expected, part)                                                       \
	do {                                                                                       \
		enum weft_status refused_status = (call);                                          \
		if (refused_status != (expected)) {                                                \
			fail_msg("%s: %s, not %s: %s", #call, weft_status_name(refused_status),    \
				 weft_status_name(expected), weft_last_error());                   \
		}                                                                                  \
		assert_text(weft_last_error(), part);                                              \
	} while (0)

/* The member ended with `expected`, and its text has `part` in it. */
#define assert_ended(member, expected, part)                                                       \
	do {                                                                                       \
		if ((member)->status != (expected)) {                                              \
			fail_msg("trainer %u: %s, not %s: %s", (member)->id,                       \
				 weft_status_name((member)->status), weft_status_name(expected),   \
				 (member)->text);                                                  \
		}                                                                                  \
		assert_text((member)->text, part);                                                 \
	} while (0)

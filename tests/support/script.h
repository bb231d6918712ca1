/* SPDX-License-Identifier: Apache-2.0 */
/* script: a test as straight-line code in a simulated process. Time passes in `script_run` alone,
 * in which all participants get their turns. Nothing may jump out of a simulated process: CHECK
 * records the first condition that is false, and the test asserts that there was none when the
 * world has ended. Thread: the one that runs the test. */
#pragma once

#include "base/env.h"

#define SETTLE_NS (60 * WF_NS_PER_MS) /* all that is under way has arrived */

/* Embedded as `script` in what the test works with. */
struct script {
	/* A turn of all participants while script_run lets time pass; false: there was nothing to
	 * do. */
	bool (*turn)(struct script *script);
	/* The process: creates what is needed, does what the test is about, frees everything. */
	void (*body)(struct script *script);
	/* A second process, on host "ps", that begins before it; NULL: none. The script is its
	 * `arg`. The body's host is "tr" then, and "ps" else. */
	int (*beside)(struct wf_env *env, void *script);
	struct wf_env *env; /* of the body's process */
	char failure[640];  /* the first one, followed by the last error; "": none */
};

void script_check(struct script *script, bool holds, const char *what, const char *file, int line);
void script_check_says(struct script *script, const char *text, const char *part, const char *file,
		       int line);
/* Of anything that embeds a script. */
#define CHECK(who, condition)                                                                      \
	script_check(&(who)->script, (condition), #condition, __FILE__, __LINE__)
#define CHECK_SAYS(who, text, part)                                                                \
	script_check_says(&(who)->script, (text), (part), __FILE__, __LINE__)
static inline bool
script_failed(const struct script *script)
{
	return script->failure[0] != '\0';
}

/* Lets `ns` of time pass, or the time until the first failure. */
void script_run(struct script *script, uint64_t ns);
void script_settle(struct script *script);
/* Runs the body in a world of this seed, or of WEFT_SEED's; false: a check failed, and was
 * reported. With WEFT_STAGE_LOG set the processes' log lines go to stderr. */
bool script_play(struct script *script, uint64_t seed) WEFT_MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/* paths_rig: nodes of the conformance suite, in its worlds, and what only transport/paths is asked.
 * One thread.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "tests/conformance/conformance.h"
#include "tests/double/sim/sim.h"
#include "wire/path.h"

#define SIM_HOST "alpha" /* the harness's */

/* Run `body` on the URL of the suite: "paths", "paths-tcp", "paths-sim-auto"; the seed is
 * WEFT_SEED's. */
static inline void
run_on(const char *url, bool (*body)(struct conf *t))
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 0);
	if (!conf_run(url, seed, body)) {
		fail_msg("on %s; to see it again: WEFT_SEED=%llu", url, (unsigned long long)seed);
	}
}

/* The world that a case on "paths-sim..." runs in. */
static inline struct wf_world *
world_of(struct conf *t)
{
	return wf_sim_proc_of(t->env)->world;
}

/* Which path carries, and why: of that name, with a reason that has the text. */
static inline bool
is_over(struct wf_conn *conn, const char *name, const char *why)
{
	struct wf_path_info info;
	wf_transport_path(conn, &info);
	bool good = strcmp(info.name, name) == 0 && strstr(info.why, why) != NULL;
	if (!good) {
		fprintf(stderr, "it is over %s: %s; expected were %s: %s\n", info.name, info.why,
			name, why);
	}
	return good;
}

/* Connect until it is UP over whatever, with the answer given. */
static inline bool
ended_with(struct seen *down, enum weft_status status, const char *why)
{
	bool good = down != NULL && down->status == status && strstr(down->why, why) != NULL;
	if (!good && down != NULL) {
		fprintf(stderr, "it ended with %s: %s\n", weft_status_name(down->status),
			down->why);
	}
	return good;
}

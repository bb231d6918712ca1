/* SPDX-License-Identifier: Apache-2.0 */
/* recording: what the members of a job have recorded of some steps, collected from their pservers,
 * or read from a file of `weft trace`; and their clocks brought to one. Thread: main. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"
#include "base/trace.h"
#include "wire/messages.h"

#define WF_RECORDING_MEMBERS_MAX 4096u

struct wf_recording_member {
	bool is_trainer;
	uint32_t pserver; /* of a lane */
	uint32_t idx;     /* of the lane, or the trainer */
	char host[WF_REASON_BYTES];
	uint64_t dropped; /* events before the first one */
	uint32_t count;
	struct wf_trace_event *event; /* [capacity] at_ns: of the clock of the first pserver, after
				       * wf_recording_align */
	uint32_t capacity;
	/* What was added to its times for that, and by how much it may be wrong; has_clock: false:
	 * no message went to and fro, and nothing was added. */
	bool has_clock;
	int64_t offset_ns;
	uint64_t error_ns;
};

struct wf_recording {
	struct wf_env *env;
	struct wf_recording_member *member; /* [capacity] */
	uint32_t count, capacity;
	uint32_t steps; /* that were asked for */
};

void wf_recording_init(struct wf_recording *recording, struct wf_env *env);
void wf_recording_fini(struct wf_recording *recording);
/* The member, which is added if it is new. NULL: there is no memory. */
struct wf_recording_member *wf_recording_member(struct wf_recording *recording, bool is_trainer,
						uint32_t pserver, uint32_t idx);
/* WEFT_NOMEM. */
enum weft_status wf_recording_add(struct wf_recording *recording,
				  struct wf_recording_member *member,
				  const struct wf_trace_event *event) WEFT_MUST_CHECK;

/* Has the pservers record `steps` steps: `at` is a list of addresses, of lane 0 of each pserver,
 * separated by commas; the first one's trainers are recorded with it. */
enum weft_status wf_recording_collect(struct wf_recording *recording, const char *at,
				      const char *secret_file, uint32_t steps) WEFT_MUST_CHECK;

/* Brings all times to the clock of the first pserver. Each message between two members says that it
 * arrived after it was made: from both directions follow a lowest and a highest possible offset, of
 * which the middle is taken. */
void wf_recording_align(struct wf_recording *recording);

/* "trainer 1", "lane 0", "pserver 1 lane 0". */
void wf_recording_name(const struct wf_recording *recording,
		       const struct wf_recording_member *member, char *out, size_t bytes);

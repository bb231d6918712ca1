/* SPDX-License-Identifier: Apache-2.0 */
/* seating: seats for all processes of a job on one host, so that none of them uses another's core.
 * Thread: any one. */
#pragma once

#include "base/seats.h"

/* The processes that run here. Processes that are not placed are not counted. */
struct wf_seating_job {
	uint32_t pservers, dense, sparse;     /* lanes of each */
	uint32_t trainers, compute, progress; /* threads of each */
	const char *device; /* the only ones to be used, as in wf_seat_ask; NULL: all */
	uint32_t port;      /* of them; 0: any */
};

struct wf_seating {
	struct wf_env *env;
	struct wf_seat_process *process; /* [process_count]: pservers, then trainers */
	uint32_t process_count;
	struct wf_seat *seat; /* [seat_count], as wf_seats_plan orders them */
	uint32_t seat_count;
	enum wf_seat_share share;
};

/* WEFT_INVALID: no such device. WEFT_NOMEM. */
enum weft_status wf_seating_plan(const struct wf_topo *topo, const struct wf_seating_job *job,
				 struct wf_seating *out) WEFT_MUST_CHECK;
void wf_seating_fini(struct wf_seating *seating);
/* The value of --pin for a process: "0,2,4", or "off". WEFT_INVALID: it is too long. */
enum weft_status wf_seating_pin(const struct wf_seating *seating, uint32_t process, char *out,
				size_t bytes) WEFT_MUST_CHECK;

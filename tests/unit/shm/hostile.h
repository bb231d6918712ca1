/* SPDX-License-Identifier: Apache-2.0 */
/* hostile: a transport, and a peer of it that writes its segment and its packets by hand; they take
 * turns. Thread: the test's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/shm/shm_rig.h"
#include "transport/shm/shm_internal.h"

#define HOSTILE_GRANT_AT 4096u
#define HOSTILE_GRANT_BYTES 8192u

struct hostile {
	struct shm_rig rig;
	int fd;
	struct wf_shm_segment *segment;
	struct wf_shm_way *way; /* the one that the peer fills */
	uint64_t filled;
	struct wf_grant_key key;
};

/* A memfd of this many bytes; the caller closes it. */
int hostile_memfd(size_t bytes, int seals);
/* A socket to the rig, which listens. */
void hostile_dial(struct hostile *h);
/* With the descriptor of a segment, or -1. */
void hostile_hello(struct hostile *h, int memfd);
/* Opens the rig, and is admitted. */
void hostile_join(struct hostile *h, const struct wf_transport_opts *opts);
/* Fills the next cell. */
void hostile_fill(struct hostile *h, const union wf_shm_note *note);
/* Sends the packet that makes a memfd its region. */
void hostile_region(struct hostile *h, uint32_t id, uint64_t bytes, int memfd);
/* Nothing was written outside HOSTILE_GRANT. */
void hostile_close(struct hostile *h);

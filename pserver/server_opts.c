/* SPDX-License-Identifier: Apache-2.0 */
/* server_opts: what a server may be told (server.h). Thread: any. */
#include <inttypes.h>

#include "base/settings.h"
#include "pserver/server.h"
#include "wire/hello.h"
#include "wire/job.h"

void
wf_server_opts_init(struct wf_server_opts *opts)
{
	*opts = (struct wf_server_opts){
		.listen = {.name = "127.0.0.1", .port = 7164},
		.max_trainers = 1024,
		.slot_bytes_max = WF_SLICE_BYTES_MAX,
		.max_shard_bytes = 64ull << 30,
	};
	wf_session_defaults(&opts->values);
	opts->session.num_gradient_servers = 0;
	opts->session.stall_timeout_ns = 1800 * WF_NS_PER_S;
}

enum weft_status
wf_server_opts_check(const struct wf_server_opts *opts)
{
	uint64_t ports = (uint64_t)opts->session.ports_num + opts->session.ports_num_for_sparse;
	enum weft_status st = wf_settings_check_pserver(&opts->values);
	if (st != WEFT_OK) {
		return st;
	}
	if (ports > WF_PSERVER_LANES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "ports_num %u and ports_num_for_sparse %u: together up to %u are "
			       "allowed",
			       opts->session.ports_num, opts->session.ports_num_for_sparse,
			       WF_PSERVER_LANES_MAX);
	}
	if (opts->session.num_gradient_servers == 0 &&
	    (opts->max_trainers == 0 || opts->max_trainers > WF_TRAINER_COUNT_MAX)) {
		return wf_fail(WEFT_INVALID, "max_trainers %u: 1 to %u are allowed",
			       opts->max_trainers, WF_TRAINER_COUNT_MAX);
	}
	if (opts->listen.port != 0 && opts->listen.port + ports - 1 > UINT16_MAX) {
		return wf_fail(WEFT_INVALID, "port %u with %u ports goes beyond 65,535",
			       opts->listen.port, (unsigned)ports);
	}
	if (opts->slot_count > 256 || (opts->slot_count & (opts->slot_count - 1)) != 0) {
		return wf_fail(WEFT_INVALID,
			       "slot_count %u: a power of two from 1 to 256, or 0, is needed",
			       opts->slot_count);
	}
	/* The lanes know how long slices are when a job comes, and look again. */
	uint64_t least = (uint64_t)opts->session.num_gradient_servers * WF_SLICE_BYTES_MIN;
	if (opts->inbox_bytes != 0 && opts->inbox_bytes < least) {
		return wf_fail(WEFT_INVALID,
			       "--inbox_bytes=%" PRIu64
			       " has no room for one slice of each of %u trainers, which are "
			       "%" PRIu64
			       " bytes at the least; give trainers x --slice_bytes or more, or 0",
			       opts->inbox_bytes, opts->session.num_gradient_servers, least);
	}
	return WEFT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* hello: one that is in order, to change where a test wants another. Thread: any. */
#pragma once

#include "wire/head.h"
#include "wire/hello.h"

/* Of the only trainer of a job, for the only dense lane. */
static inline struct wf_hello
hello_in_order(void)
{
	return (struct wf_hello){
		.version_min = WF_WIRE_VERSION_MIN,
		.version_max = WF_WIRE_VERSION,
		.service = WF_SERVICE_DENSE,
		.pserver_count = 1,
		.lane_count = 1,
		.trainer_count = 1,
		.incarnation = 1,
		.path = 1,
		.job_bytes = 200,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = 1 << 20,
		.host = "test",
		.pid = 1,
	};
}

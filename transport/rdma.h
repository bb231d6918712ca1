/* SPDX-License-Identifier: Apache-2.0 */
/* rdma: what may be asked about the RDMA devices of this host, whether the backend "verbs" is built
 * in or not. Thread: any. */
#pragma once

#include "base/status.h"

#define WF_RDMA_ADDRESSES_MAX 8u
#define WF_RDMA_ADDRESS_BYTES 46 /* an IPv6 address in full */

struct wf_rdma_addresses {
	unsigned count;
	char text[WF_RDMA_ADDRESSES_MAX][WF_RDMA_ADDRESS_BYTES]; /* "10.0.0.1", "fd00::1" */
};

/* A device, and the libraries? WEFT_UNAVAILABLE: there is no device, or no backend. Costs a look
 * at a folder where there is none. */
enum weft_status wf_rdma_present(void) WEFT_MUST_CHECK;
/* The addresses of this host that lead to a device which `settings` (those of the backend) allow:
 * where a listener on any address is to be found. WEFT_UNAVAILABLE: there are none. */
enum weft_status wf_rdma_addresses(const char *settings,
				   struct wf_rdma_addresses *out) WEFT_MUST_CHECK;

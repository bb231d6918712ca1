/* SPDX-License-Identifier: Apache-2.0 */
/* rdma: what may be asked about the RDMA devices of this host, whether the backend "verbs" is built
 * in or not. A rail is a port of a device at one end and one at the other. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What paths/ has to know of the backend "verbs", also where it is not built in: a member list of
 * its struct wf_backend. */
#define WF_RDMA_BACKEND                                                                            \
	.name = "verbs", .is_path = true, .path_id = WF_PATH_VERBS, .may_hang = true,              \
	.rdma = true, .why = "RDMA at both ends"

#define WF_RDMA_ADDRESSES_MAX 8u
#define WF_RDMA_ADDRESS_BYTES 46 /* an IPv6 address in full */
#define WF_RDMA_DEVICE_BYTES 64  /* name of a device */
#define WF_RDMA_SLOW_BYTES 128
#define WF_RDMA_SETTINGS_BYTES 512 /* settings of the backend, as text */

struct wf_rdma_address {
	char text[WF_RDMA_ADDRESS_BYTES]; /* "10.0.0.1", "fd00::1" */
	char device[WF_RDMA_DEVICE_BYTES];
	unsigned port;
};

struct wf_rdma_addresses {
	unsigned count;
	unsigned slow_count; /* behind them in `at`: not to be used unless somebody asks for them */
	bool named;          /* the settings name the devices */
	char slow[WF_RDMA_SLOW_BYTES];                    /* which, and why, as text; "": none */
	struct wf_rdma_address at[WF_RDMA_ADDRESSES_MAX]; /* best first */
};

/* A device, and the libraries? WEFT_UNAVAILABLE: there is no device, or no backend. Costs a look
 * at a folder where there is none. */
enum weft_status wf_rdma_present(void) WEFT_MUST_CHECK;
/* The addresses of this host that lead to a device which `settings` (those of the backend) allow:
 * where a listener on any address is to be found. Best first: devices near the NUMA node of the
 * settings, of equally near ones the fastest, of those the lane's turn; each once, then their
 * further addresses.
 * Devices that are much slower than the fastest one are left out, unless the settings name them.
 * WEFT_UNAVAILABLE: there are none. */
enum weft_status wf_rdma_addresses(const char *settings,
				   struct wf_rdma_addresses *out) WEFT_MUST_CHECK;
/* The port of the device is there, and not down. */
bool wf_rdma_is_up(const char *device, unsigned port);
/* The address lies in a network that one of this host's interfaces is in. */
bool wf_rdma_is_on_link(const char *address);
/* Out of which device this end goes to rail `rail` of a peer: of those that the settings name, the
 * one whose turn that is; "" where they name none, and the route to the address decides.
 * WEFT_UNAVAILABLE: it is not there, or down. A host name "ADDRESS%DEVICE" asks the backend for it.
 */
enum weft_status wf_rdma_device_for(const char *settings, unsigned rail,
				    char out[WF_RDMA_DEVICE_BYTES]) WEFT_MUST_CHECK;
/* `settings` (NULL: none), for lane number `lane` on NUMA node `node` (-1: any), unless they say so
 * themselves. WEFT_INVALID: they are too long. */
enum weft_status wf_rdma_settings_for_lane(const char *settings, unsigned lane, int node,
					   char out[WF_RDMA_SETTINGS_BYTES]) WEFT_MUST_CHECK;

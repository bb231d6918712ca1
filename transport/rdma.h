/* SPDX-License-Identifier: Apache-2.0 */
/* rdma: questions about the RDMA devices of this host, which work whether the backend "verbs" is
 * built in or not. A rail is a pair of device ports, one at each end. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What paths/ has to know about the backend "verbs", even if it is not built in: initialisers of
 * its struct wf_backend. */
#define WF_RDMA_BACKEND                                                                            \
	.name = "verbs", .is_path = true, .path_id = WF_PATH_VERBS, .may_hang = true,              \
	.rdma = true, .why = "RDMA at both ends"

#define WF_RDMA_ADDRESSES_MAX 8u
#define WF_RDMA_ADDRESS_BYTES 46 /* an IPv6 address in full */
#define WF_RDMA_DEVICE_BYTES 64  /* name of a device */
#define WF_RDMA_SLOW_BYTES 128
#define WF_RDMA_SETTINGS_BYTES 512 /* settings of the backend as text */

struct wf_rdma_address {
	char text[WF_RDMA_ADDRESS_BYTES]; /* "10.0.0.1", "fd00::1" */
	char device[WF_RDMA_DEVICE_BYTES];
	unsigned port;
};

struct wf_rdma_addresses {
	unsigned count;
	/* The number of addresses of slow devices, behind the others in `at`; used only on request.
	 */
	unsigned slow_count;
	bool named; /* the settings name the devices */
	/* Text that says which devices are slow, and why; "": none. */
	char slow[WF_RDMA_SLOW_BYTES];
	struct wf_rdma_address at[WF_RDMA_ADDRESSES_MAX]; /* best first */
};

/* Checks that there is a device, and that the libraries are installed. WEFT_UNAVAILABLE: there is
 * no device, or no backend. On a host without devices it only reads a folder. */
enum weft_status wf_rdma_present(void) WEFT_MUST_CHECK;
/* The addresses of this host that lead to a device which the backend's `settings` allow: those at
 * which a listener on any address can be reached. The best come first: devices near the NUMA node
 * of the settings; among equally near ones the fastest; among equally fast ones the lanes take
 * turns. Each device is listed once, then further addresses of each. Devices that are much slower
 * than the fastest one are left out, unless the settings name them. WEFT_UNAVAILABLE: there are
 * none. */
enum weft_status wf_rdma_addresses(const char *settings,
				   struct wf_rdma_addresses *out) WEFT_MUST_CHECK;
/* Whether the port of the device exists and is not down. */
bool wf_rdma_is_up(const char *device, unsigned port);
/* The largest payload, in bytes, of a packet that the port sends; 0: unknown. Opens the device. */
unsigned wf_rdma_mtu(const char *device, unsigned port);
/* Whether the address is in the network of one of this host's interfaces. */
bool wf_rdma_is_on_link(const char *address);
/* The device through which this end connects to rail `rail` of a peer: the settings' devices take
 * turns; "" if they name none, so that the route to the address decides. WEFT_UNAVAILABLE: the
 * device does not exist, or is down. A host name "ADDRESS%DEVICE" requests it from the backend.
 */
enum weft_status wf_rdma_device_for(const char *settings, unsigned rail,
				    char out[WF_RDMA_DEVICE_BYTES]) WEFT_MUST_CHECK;
/* Adds lane number `lane` and NUMA node `node` (-1: any) to `settings` (NULL: none), unless they
 * are set there already. WEFT_INVALID: the text is too long. */
enum weft_status wf_rdma_settings_for_lane(const char *settings, unsigned lane, int node,
					   char out[WF_RDMA_SETTINGS_BYTES]) WEFT_MUST_CHECK;

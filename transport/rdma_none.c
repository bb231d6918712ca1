/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_none: transport/rdma.h for builds without the backend "verbs". Thread: any. */
#include "transport/ops.h"
#include "transport/rdma.h"
#include "wire/path.h"

const struct wf_backend wf_backend_verbs = {WF_RDMA_BACKEND};

enum weft_status
wf_rdma_probe(void)
{
	return wf_fail(WEFT_UNSUPPORTED, "verbs: not built in (the option `verbs`)");
}

enum weft_status
wf_rdma_present(void)
{
	return wf_fail(WEFT_UNAVAILABLE, "RDMA is not built in (the option `verbs`)");
}

enum weft_status
wf_rdma_addresses(const char *settings, struct wf_rdma_addresses *out)
{
	(void)settings;
	*out = (struct wf_rdma_addresses){0};
	return wf_rdma_present();
}

bool
wf_rdma_is_up(const char *device, unsigned port)
{
	(void)device;
	(void)port;
	return false;
}

unsigned
wf_rdma_mtu(const char *device, unsigned port)
{
	(void)device;
	(void)port;
	return 0;
}

bool
wf_rdma_is_on_link(const char *address)
{
	(void)address;
	return false;
}

enum weft_status
wf_rdma_device_for(const char *settings, unsigned rail, char out[WF_RDMA_DEVICE_BYTES])
{
	(void)settings;
	(void)rail;
	out[0] = '\0';
	return wf_rdma_present();
}

enum weft_status
wf_rdma_settings_for_lane(const char *settings, unsigned lane, int node,
			  char out[WF_RDMA_SETTINGS_BYTES])
{
	(void)settings;
	(void)lane;
	(void)node;
	out[0] = '\0';
	return WEFT_OK;
}

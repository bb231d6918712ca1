/* SPDX-License-Identifier: Apache-2.0 */
/* backends: the backends that are built in, in the order in which they are named to users.
 * Thread: any; constant. */
#include "transport/ops.h"
#include "transport/rdma.h"
#if WF_HAVE_VERBS
#include "transport/verbs/verbs_lib.h"
#endif

const struct wf_backend *const wf_backends[] = {
	&wf_backend_tcp,
	&wf_backend_shm,
#if WF_HAVE_VERBS
	&wf_backend_verbs,
#endif
	&wf_backend_mux,
#if WF_HAVE_SIM
	&wf_backend_sim,
	&wf_backend_sim2,
#endif
	NULL,
};

enum weft_status
wf_rdma_probe(void)
{
#if WF_HAVE_VERBS
	const struct wf_verbs_lib *lib = NULL;
	return wf_verbs_lib_get(&lib);
#else
	return wf_fail(WEFT_UNSUPPORTED, "verbs: not built in (the option `verbs`)");
#endif
}

#if !WF_HAVE_VERBS
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
#endif

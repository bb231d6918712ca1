/* SPDX-License-Identifier: Apache-2.0 */
/* fake_rdma: the answers of transport/rdma.h on a host whose device is the fake. The program is
 * linked with --wrap of these names. Thread: any. */
#include <stdio.h>

#include "fake.h"
#include "transport/rdma.h"

enum weft_status __wrap_wf_rdma_present(void);
enum weft_status __wrap_wf_rdma_addresses(const char *settings, struct wf_rdma_addresses *out);
bool __wrap_wf_rdma_is_up(const char *device, unsigned port);

enum weft_status
__wrap_wf_rdma_present(void)
{
	return WEFT_OK;
}

enum weft_status
__wrap_wf_rdma_addresses(const char *settings, struct wf_rdma_addresses *out)
{
	*out = (struct wf_rdma_addresses){.count = 1, .at[0].port = 1};
	(void)snprintf(out->at[0].text, sizeof(out->at[0].text), "10.77.0.1");
	(void)snprintf(out->at[0].device, sizeof(out->at[0].device), "fake0");
	return WEFT_OK;
}

bool
__wrap_wf_rdma_is_up(const char *device, unsigned port)
{
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_grant: regions and grants of this backend, which are only the tables of transport/regions.h
 * and transport/grants.h. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

enum weft_status
wf_tcp_region_add(struct wf_transport *transport, const struct wf_region *region, uint32_t *out)
{
	return wf_regions_add(&wf_medium_of(transport)->regions, "tcp", region, out);
}

void
wf_tcp_region_remove(struct wf_transport *transport, uint32_t region)
{
	wf_regions_remove(&wf_medium_of(transport)->regions, region);
}

void
wf_tcp_release(struct wf_conn *conn, uint32_t slot)
{
	uint32_t buffer = 0;
	(void)wf_grants_release(&wf_life_of(conn)->grants, slot, &buffer);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_grant: regions and grants of this backend (transport/regions.h, transport/grants.h), and the
 * frame that a PUT begins with. Thread: the transport's owner. */
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

enum weft_status
wf_tcp_put_open(struct wf_tcp_conn *c, const struct wf_head *head)
{
	struct wf_put_claim claim = {
		.grant = head->region,
		.tag = head->slice,
		.nonce = head->request_id,
		.offset = head->offset,
		.bytes = head->body_bytes,
	};
	if (claim.bytes == 0 || claim.bytes > c->t->medium.opts.put_bytes_max || head->flags != 0) {
		return wf_put_claim_refuse(claim, "its length or flags are not allowed");
	}
	enum weft_status st = wf_grants_open(&c->life.grants, &claim, &c->rx.put);
	c->rx.put_open = st == WEFT_OK;
	return st;
}

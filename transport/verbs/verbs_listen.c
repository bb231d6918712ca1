/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_listen: listeners, and requests that arrive at them. A request is checked before anything
 * but the connection's own struct is created for it. Thread: the transport's owner. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

#define BACKLOG 1024

static enum weft_status
fail_listen(const struct sockaddr_storage *address, int err)
{
	char text[WF_ADDRESS_TEXT_BYTES];
	wf_address_format((const struct sockaddr *)address, text);
	if (err == EADDRINUSE) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "listen on %s: the port is in use; stop the program that uses it "
			       "(rdma resource "
			       "show cm_id names it) or choose another port",
			       text);
	}
	if (err == ENODEV || err == EADDRNOTAVAIL || err == EAFNOSUPPORT) {
		return wf_fail_errno(WEFT_UNAVAILABLE, err,
				     "listen on %s: not an address of an RDMA device (rdma link "
				     "show names them, ip address show their addresses)",
				     text);
	}
	return wf_fail_errno(err == EACCES ? WEFT_PERM : WEFT_IO, err, "listen on %s", text);
}

/* 0, or errno. */
static int
listen_one(struct wf_verbs *t, struct sockaddr_storage *address, struct rdma_cm_id **out)
{
	struct rdma_cm_id *id = NULL;
	if (t->lib->create_id(t->cm, &id, NULL, RDMA_PS_TCP) != 0) {
		return errno;
	}
	if (t->lib->bind_addr(id, (struct sockaddr *)address) != 0 ||
	    t->lib->listen(id, BACKLOG) != 0) {
		int err = errno;
		(void)t->lib->destroy_id(id);
		return err;
	}
	*out = id;
	return 0;
}

static enum weft_status
listener_add(struct wf_verbs *t, struct sockaddr_storage *address, uint16_t *port)
{
	struct rdma_cm_id *id = NULL;
	if (t->listener_count == WF_VERBS_LISTENERS_MAX) {
		return wf_fail(WEFT_NOMEM, "verbs: %u listeners are the most",
			       WF_VERBS_LISTENERS_MAX);
	}
	wf_address_set_port(address, *port);
	int err = listen_one(t, address, &id);
	if (err != 0) {
		return fail_listen(address, err);
	}
	*port = ntohs(t->lib->get_src_port(id));
	wf_address_set_port(address, *port);
	struct wf_verbs_listener *l = &t->listener[t->listener_count++];
	*l = (struct wf_verbs_listener){.id = id};
	wf_address_format((const struct sockaddr *)address, l->at);
	return WEFT_OK;
}

/* An address that no RDMA device has is left out as long as another one can be used. */
static enum weft_status
listen_all(struct wf_verbs *t, struct wf_addresses *at, uint16_t *port)
{
	enum weft_status st = WEFT_UNAVAILABLE;
	unsigned count = 0;
	for (unsigned i = 0; i < at->count; i++) {
		st = listener_add(t, &at->at[i], port);
		count += st == WEFT_OK ? 1 : 0;
	}
	return count > 0 ? WEFT_OK : st;
}

enum weft_status
wf_verbs_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct wf_addresses here;
	uint16_t got = at->port;
	enum weft_status st = wf_addresses_here(at->name, &here);
	if (st == WEFT_OK) {
		st = listen_all(wf_verbs_of(transport), &here, &got);
	}
	if (st == WEFT_OK) {
		*port = got;
	}
	return st;
}

void
wf_verbs_listeners_close(struct wf_verbs *t)
{
	for (unsigned i = 0; i < t->listener_count; i++) {
		if (t->listener[i].id != NULL) {
			(void)t->lib->destroy_id(t->listener[i].id);
		}
	}
	t->listener_count = 0;
}

/* ---- requests ---- */

/* Rejects a request for which nothing was created. */
static void
reject(struct wf_verbs *t, struct rdma_cm_id *id, const char *why)
{
	struct wf_verbs_private p = {.type = WF_VERBS_DENY};
	uint8_t data[WF_VERBS_PRIVATE_MAX];
	snprintf((char *)p.blob, sizeof(p.blob), "%s", why);
	p.blob_bytes = (uint8_t)strlen((const char *)p.blob);
	size_t bytes = wf_verbs_private_encode(&p, data);
	(void)t->lib->reject(id, data, (uint8_t)bytes);
	(void)t->lib->destroy_id(id);
}

void
wf_verbs_request(struct wf_verbs *t, struct rdma_cm_id *id, const uint8_t *data, size_t data_bytes)
{
	char text[WF_ADDRESS_TEXT_BYTES];
	char line[WF_WHY_BYTES];
	struct wf_verbs_private p;
	wf_address_format(rdma_get_peer_addr(id), text);
	enum weft_status st = wf_verbs_private_decode(data, data_bytes, &p);
	if (st == WEFT_OK && p.type != WF_VERBS_REQUEST) {
		st = wf_fail(WEFT_PROTOCOL, "private data: type %d in a request", (int)p.type);
	}
	if (st == WEFT_OK && !wf_places_may_come(&t->medium.places)) {
		st = wf_fail(WEFT_UNAVAILABLE, "no room for another connection; try again");
	}
	if (st != WEFT_OK) {
		snprintf(line, sizeof(line), "%s: %.180s", text, weft_last_error());
		wf_medium_stranger(&t->medium, line);
		reject(t, id, weft_last_error());
		return;
	}
	struct wf_life *life = wf_life_come(&t->medium, text);
	if (life == NULL) {
		reject(t, id, "no room for another connection; try again");
		return;
	}
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	wf_verbs_conn_init(c);
	wf_verbs_link_adopt(c, id);
	wf_verbs_conn_adopt(c, &p);
	memcpy(c->blob, p.blob, p.blob_bytes);
	c->blob_bytes = p.blob_bytes;
	c->show_ns = t->medium.loop.now_ns +
		     t->medium.opts.connect_timeout_ns / 4; /* the peer repeats the request later */
	if ((p.features & WF_VERBS_BLOB_FOLLOWS) != 0) {
		wf_verbs_accept_link(c, NULL, 0);
		return;
	}
	wf_life_decide(life, c->blob, c->blob_bytes, false);
	if (wf_verbs_regions_begin(c) != WEFT_OK) {
		wf_life_turn_away(life, WEFT_UNAVAILABLE, "%s", weft_last_error());
		return;
	}
	wf_life_ready(&c->life);
}

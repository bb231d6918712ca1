/* SPDX-License-Identifier: Apache-2.0 */
/* transport: checks the arguments of every call, once for all backends, and passes it on. Thread:
 * the transport's owner. */
#include "transport/transport.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "transport/ops.h"

void
wf_transport_close(struct wf_transport *transport)
{
	if (transport != NULL) {
		transport->ops->close(transport);
	}
}

void
wf_transport_query(struct wf_transport *transport, struct wf_transport_info *out)
{
	transport->ops->query(transport, out);
	if (out->path_count == 0) {
		out->path_count = 1;
		out->path[0] = (struct wf_path_counts){
			.name = out->name,
			.conns_up = out->conns_up,
			.bytes_sent = out->bytes_sent,
			.bytes_received = out->bytes_received,
		};
	}
}

void
wf_transport_paths_format(const struct wf_transport_info *now, const struct wf_path_counts *then,
			  char *out, size_t bytes)
{
	size_t used = 0;
	uint64_t broken = 0;
	out[0] = '\0';
	for (unsigned i = 0; i < now->path_count && used < bytes; i++) {
		const struct wf_path_counts *path = &now->path[i];
		used += (size_t)snprintf(out + used, bytes - used,
					 " %s_sent_bytes %" PRIu64 " %s_received_bytes %" PRIu64,
					 path->name, path->bytes_sent - then[i].bytes_sent,
					 path->name, path->bytes_received - then[i].bytes_received);
		broken += path->conns_broken - then[i].conns_broken;
	}
	if (used < bytes) {
		(void)snprintf(out + used, bytes - used, " paths_broken %" PRIu64, broken);
	}
}

enum weft_status
wf_transport_region_add(struct wf_transport *transport, const struct wf_region *region,
			uint32_t *out)
{
	if (region->base == NULL || region->bytes == 0 ||
	    region->bytes > UINTPTR_MAX - (uintptr_t)region->base) {
		return wf_fail(WEFT_INVALID, "region: %zu bytes at %p", region->bytes,
			       region->base);
	}
	return transport->ops->region_add(transport, region, out);
}

void
wf_transport_region_remove(struct wf_transport *transport, uint32_t region)
{
	transport->ops->region_remove(transport, region);
}

static enum weft_status
check_slots(const struct wf_grant *grant)
{
	uint32_t count = grant->slot_count;
	if (count == 0 || count > WF_SLOT_COUNT_MAX || (count & (count - 1)) != 0) {
		return wf_fail(WEFT_INVALID, "grant: %u slots; a power of two up to %u is needed",
			       count, WF_SLOT_COUNT_MAX);
	}
	if (grant->bytes > UINT64_MAX / count) {
		return wf_fail(WEFT_INVALID, "grant: %u slots of %llu bytes", count,
			       (unsigned long long)grant->bytes);
	}
	return WEFT_OK;
}

enum weft_status
wf_transport_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	if (grant->kind != WF_GRANT_PLACE && grant->kind != WF_GRANT_SLOTS) {
		return wf_fail(WEFT_INVALID, "grant: kind %d", (int)grant->kind);
	}
	if (grant->bytes == 0) {
		return wf_fail(WEFT_INVALID, "grant: 0 bytes");
	}
	if (grant->kind == WF_GRANT_SLOTS) {
		enum weft_status st = check_slots(grant);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return conn->ops->grant(conn->carrier, grant, out);
}

enum weft_status
wf_transport_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	if (at->name[0] == '\0') {
		return wf_fail(WEFT_INVALID, "listen: no address; 127.0.0.1, say, or ::");
	}
	return transport->ops->listen(transport, at, port);
}

static enum weft_status
check_blob(const struct wf_transport *transport, const char *what, const void *blob,
	   size_t blob_bytes)
{
	if (blob_bytes > transport->blob_max) {
		return wf_fail(WEFT_INVALID, "%s: %zu bytes; at most %zu", what, blob_bytes,
			       transport->blob_max);
	}
	if (blob == NULL && blob_bytes > 0) {
		return wf_fail(WEFT_INVALID, "%s: %zu bytes at NULL", what, blob_bytes);
	}
	return WEFT_OK;
}

enum weft_status
wf_transport_answer(struct wf_conn *conn, bool accept, const void *verdict, size_t verdict_bytes)
{
	enum weft_status st = check_blob(conn->transport, "verdict", verdict, verdict_bytes);
	if (st != WEFT_OK) {
		return st;
	}
	return conn->transport->ops->answer(conn, accept, verdict, verdict_bytes);
}

enum weft_status
wf_transport_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
		     size_t hello_bytes, void *user, struct wf_conn **out)
{
	enum weft_status st = check_blob(transport, "hello", hello, hello_bytes);
	if (st != WEFT_OK) {
		return st;
	}
	if (to->name[0] == '\0' || to->port == 0) {
		return wf_fail(WEFT_INVALID, "connect: host \"%s\" port %u", to->name, to->port);
	}
	return transport->ops->connect(transport, to, hello, hello_bytes, user, out);
}

void
wf_transport_disconnect(struct wf_conn *conn, enum wf_disconnect how)
{
	conn->transport->ops->disconnect(conn, how);
}

void
wf_transport_path(struct wf_conn *conn, struct wf_path_info *out)
{
	conn->transport->ops->path(conn, out);
}

void
wf_path_alone(struct wf_conn *conn, struct wf_path_info *out)
{
	*out = (struct wf_path_info){.name = conn->transport->ops->name, .why = "the only one"};
}

bool
wf_send_is_valid(const struct wf_op *op)
{
	return op->kind == WF_OP_SEND && op->head != NULL &&
	       op->head->service != WF_SERVICE_TRANSPORT &&
	       (op->head->flags & ~(unsigned)WF_HEAD_FLAGS_KNOWN) == 0 &&
	       op->body_bytes <= WF_MSG_BODY_MAX && (op->body != NULL || op->body_bytes == 0);
}

enum weft_status
wf_op_refuse(const struct wf_op *op)
{
	if (op->kind == WF_OP_SEND) {
		return wf_fail(WEFT_INVALID,
			       "send: service %d, flags %#x, body of %zu bytes%s; see struct wf_op",
			       op->head == NULL ? -1 : op->head->service,
			       op->head == NULL ? 0u : op->head->flags, op->body_bytes,
			       op->head == NULL ? ", no head" : "");
	}
	return wf_fail(WEFT_INVALID, "operation of kind %d: %llu bytes at %p; see struct wf_op",
		       (int)op->kind, (unsigned long long)op->bytes, op->src);
}

int
wf_transport_wait_fd(struct wf_transport *transport)
{
	return transport->ops->wait_fd(transport);
}

void
wf_transport_kick(struct wf_transport *transport)
{
	transport->ops->wake(transport);
}

void
wf_wait_on_fd(struct wf_transport *transport, uint64_t deadline_ns)
{
	wf_wait(transport->env, transport->ops->wait_fd(transport), deadline_ns);
}

void
wf_peer_text(const uint8_t *said, size_t bytes, char out[WF_WHY_BYTES])
{
	size_t kept = bytes < WF_WHY_BYTES - 1 ? bytes : WF_WHY_BYTES - 1;
	for (size_t i = 0; i < kept; i++) {
		out[i] = said[i] >= 0x20 && said[i] < 0x7f ? (char)said[i] : '?';
	}
	out[kept] = '\0';
}

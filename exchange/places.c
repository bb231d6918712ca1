/* SPDX-License-Identifier: Apache-2.0 */
/* places: see the header. Thread: the end's. */
#include "exchange/places.h"

#include <string.h>

#include "base/assert.h"
#include "exchange/send.h"

static enum weft_status
grant(struct wf_answer_grants *grants, struct wf_conn *conn, const struct wf_answer_place *place)
{
	const struct wf_grant grant = {
		.kind = WF_GRANT_PLACE,
		.region = place->region,
		.bytes = place->bytes,
	};
	enum weft_status st = wf_transport_grant(conn, &grant, &grants->key);
	grants->granted += st == WEFT_OK ? 1 : 0;
	return st == WEFT_CLOSED ? WEFT_AGAIN : st;
}

enum weft_status
wf_answer_places_send(struct wf_answer_grants *grants, struct wf_conn *conn,
		      const struct wf_answer_place *place, unsigned count, struct wf_msg *msg)
{
	WF_ASSERT(count <= WF_ANSWER_PLACES_MAX);
	while (grants->sent < count) {
		enum weft_status st = grants->granted > grants->sent
					      ? WEFT_OK
					      : grant(grants, conn, &place[grants->granted]);
		if (st != WEFT_OK) {
			return st;
		}
		struct wf_msg_grant grant = {
			.kind = WF_GRANT_WIRE_PLACE,
			.place = (uint8_t)grants->sent,
			.bytes = place[grants->sent].bytes,
		};
		memcpy(grant.key, grants->key.bytes, sizeof(grant.key));
		wf_msg_grant_encode(&grant, msg);
		if (!wf_send(conn, msg, 0)) {
			return WEFT_AGAIN;
		}
		grants->sent++;
	}
	return WEFT_OK;
}

enum weft_status
wf_answer_places_recv(struct wf_answer_places *places, const struct wf_msg_grant *msg,
		      unsigned count)
{
	WF_ASSERT(count <= WF_ANSWER_PLACES_MAX);
	bool is_place = msg->kind == WF_GRANT_WIRE_PLACE && msg->place < count;
	if (!is_place || wf_answer_places_has(places, msg->place)) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: kind %u (place %u of %u) from a trainer%s",
			       msg->kind, msg->place, count,
			       is_place ? ", which has granted it before" : "");
	}
	places->known |= 1u << msg->place;
	places->bytes[msg->place] = msg->bytes;
	memcpy(places->key[msg->place].bytes, msg->key, sizeof(msg->key));
	return WEFT_OK;
}

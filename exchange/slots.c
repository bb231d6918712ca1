/* SPDX-License-Identifier: Apache-2.0 */
/* slots: see slots.h. Thread: the lane's. */
#include "exchange/slots.h"

#include <inttypes.h>
#include <string.h>

WF_STATIC_ASSERT(WF_GRANT_SLOT_COUNT_MAX <= UINT16_MAX, "a slot's number fits a CREDIT");

uint64_t
wf_slots_table_bytes(uint32_t count)
{
	const struct wf_slots *slots = NULL;
	return count * (sizeof(*slots->word) + sizeof(*slots->credit));
}

static void
make_free(struct wf_slots *slots)
{
	for (uint32_t i = 0; i < slots->count; i++) {
		slots->word[i] = WF_SLOT_FREE;
	}
	slots->held = 0;
}

void
wf_slots_resize(struct wf_slots *slots, uint32_t count)
{
	WF_ASSERT(count > 0 && count <= slots->capacity && (count & (count - 1)) == 0);
	WF_ASSERT(slots->held == 0 && slots->credit_count == 0 && !slots->granted);
	slots->count = count;
	make_free(slots);
}

enum weft_status
wf_slots_open(struct wf_env *env, uint32_t capacity, struct wf_slots *slots)
{
	WF_ASSERT(capacity > 0 && capacity <= WF_GRANT_SLOT_COUNT_MAX);
	slots->capacity = capacity;
	slots->word = wf_zalloc_array(env, capacity, sizeof(*slots->word));
	slots->credit = wf_zalloc_array(env, capacity, sizeof(*slots->credit));
	if (slots->word == NULL || slots->credit == NULL) {
		wf_slots_close(env, slots);
		return wf_fail(WEFT_NOMEM, "a window: %" PRIu64 " bytes",
			       wf_slots_table_bytes(capacity));
	}
	wf_slots_resize(slots, capacity);
	return WEFT_OK;
}

void
wf_slots_close(struct wf_env *env, struct wf_slots *slots)
{
	if (slots->capacity == 0) {
		return; /* its memory may be untouched, and is not touched here */
	}
	wf_free(env, slots->word, slots->capacity * sizeof(*slots->word));
	wf_free(env, slots->credit, slots->capacity * sizeof(*slots->credit));
	*slots = (struct wf_slots){0};
}

enum weft_status
wf_slots_grant(struct wf_slots *slots, struct wf_conn *conn, uint32_t region, uint64_t offset,
	       uint64_t slot_bytes)
{
	const struct wf_grant grant = {
		.kind = WF_GRANT_SLOTS,
		.region = region,
		.offset = offset,
		.bytes = slot_bytes,
		.slot_count = slots->count,
	};
	enum weft_status st =
		slots->granted ? WEFT_OK : wf_transport_grant(conn, &grant, &slots->key);
	slots->granted = st == WEFT_OK;
	return st;
}

enum weft_status
wf_slots_fail(const struct wf_slots *slots, uint32_t slot)
{
	return wf_fail(WEFT_PROTOCOL, "PUT: into slot %u%s", slot,
		       slots->word[slot] == WF_SLOT_CREDIT ? " before its CREDIT"
							   : ", which is in use");
}

void
wf_slots_credit(struct wf_slots *slots, struct wf_conn *conn, uint32_t slot)
{
	uint32_t word = slots->word[slot];
	WF_ASSERT(word != WF_SLOT_CREDIT && slots->credit_count < slots->count);
	if (word < WF_SLOT_WORDS) {
		slots->held--;
	}
	if (word != WF_SLOT_READ) {
		wf_transport_release(conn, slot);
	}
	slots->word[slot] = WF_SLOT_CREDIT;
	slots->credit[slots->credit_count++] = (uint16_t)slot;
}

struct wf_slots_parked
wf_slots_park(struct wf_slots *slots, struct wf_conn *conn, wf_slots_copy *copy, void *arg)
{
	struct wf_slots_parked parked = {0};
	for (uint32_t i = 0; slots->held > 0; i++) {
		WF_ASSERT(i < slots->count);
		if (slots->word[i] >= WF_SLOT_WORDS) {
			continue;
		}
		uint64_t bytes = copy(arg, slots->word[i]);
		parked.bytes += bytes;
		parked.slots += bytes > 0 ? 1 : 0;
		if (conn != NULL) {
			wf_slots_credit(slots, conn, i);
		} else {
			slots->word[i] = WF_SLOT_FREE;
			slots->held--;
		}
	}
	return parked;
}

void
wf_slots_credit_all(struct wf_slots *slots, struct wf_conn *conn)
{
	for (uint32_t i = 0; slots->held > 0; i++) {
		if (slots->word[i] < WF_SLOT_WORDS) {
			wf_slots_credit(slots, conn, i);
		}
	}
}

void
wf_slots_free_all(struct wf_slots *slots, struct wf_conn *conn)
{
	for (uint32_t i = 0; slots->held > 0; i++) {
		if (slots->word[i] < WF_SLOT_WORDS) {
			wf_slots_free(slots, conn, i);
		}
	}
}

void
wf_slots_fill_credit(const struct wf_slots *slots, struct wf_msg_credit *out)
{
	out->count = slots->credit_count;
	memcpy(out->buffer, slots->credit, slots->credit_count * sizeof(*slots->credit));
}

void
wf_slots_credit_sent(struct wf_slots *slots)
{
	for (uint32_t i = 0; i < slots->credit_count; i++) {
		WF_ASSERT(slots->word[slots->credit[i]] == WF_SLOT_CREDIT);
		slots->word[slots->credit[i]] = WF_SLOT_FREE;
	}
	slots->credit_count = 0;
}

void
wf_slots_path_ends(struct wf_slots *slots)
{
	make_free(slots);
	slots->credit_count = 0;
	slots->granted = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* slots: the window that a lane has granted to one trainer: what each slot holds, and which slots
 * the trainer still has to be notified of because they are free again. The meaning of the bytes is
 * the payload's: it marks a slot that it holds with a word of its own, a number below
 * WF_SLOT_WORDS.
 *
 * A slot is
 *
 *     FREE    The trainer may PUT there.
 *     held    It holds the bytes of a PUT, which are still needed.
 *     READ    They have been read. The trainer has not been notified yet; an answer will do that.
 *     CREDIT  They have been read, and a CREDIT that reports it is due.
 *
 *     from \ by | hold | read | free | credit | park   | CREDIT sent | path ends
 *     ----------+------+------+------+--------+--------+-------------+----------
 *     FREE      | held | READ | -    | CREDIT | FREE   | FREE        | FREE
 *     held      | -    | -    | FREE | CREDIT | CREDIT | held        | FREE
 *     READ      | -    | -    | FREE | CREDIT | READ   | READ        | FREE
 *     CREDIT    | -    | -    | -    | -      | CREDIT | FREE        | FREE
 *
 * A PUT into a slot that is not FREE is a protocol error (wf_slots_check): bytes that are being
 * read must not change, and no slot may get two CREDITs. A full window whose bytes all wait for
 * other trainers is parked: the payload copies them aside, because otherwise two trainers that push
 * in opposite orders would block each other. Bytes that are still needed when the path ends are
 * parked as well; the rest is dropped.
 *
 * Thread: the lane's. */
#pragma once

#include "base/assert.h"
#include "base/env.h"
#include "transport/transport.h"
#include "wire/messages.h"

#define WF_SLOT_FREE UINT32_MAX
#define WF_SLOT_READ (UINT32_MAX - 1)
#define WF_SLOT_CREDIT (UINT32_MAX - 2)
#define WF_SLOT_WORDS (UINT32_MAX - 2) /* the payload's words are below */

struct wf_slots {
	uint32_t count; /* of this path: a power of two; 0: no window */
	uint32_t capacity;
	uint32_t held;
	uint32_t *word; /* [capacity] WF_SLOT_ ..., or the payload's word */

	/* State of the path, reset when it ends. */
	bool granted;
	struct wf_grant_key key;
	uint32_t credit_count;
	uint16_t *credit; /* [capacity] slots in state CREDIT, in the order of entering it */
};

/* Copies aside the bytes that the payload marked with `word`; they lie in no slot from then on.
 * Returns their number; 0: they are not needed any more. */
typedef uint64_t wf_slots_copy(void *arg, uint32_t word);

/* What wf_slots_park has copied. */
struct wf_slots_parked {
	uint32_t slots;
	uint64_t bytes;
};

/* A window of at most `capacity` slots, which it has at first. `slots` is zeroed; afterwards all
 * slots are FREE. close accepts one that is half open, or zero. */
enum weft_status wf_slots_open(struct wf_env *env, uint32_t capacity,
			       struct wf_slots *slots) WEFT_MUST_CHECK;
void wf_slots_close(struct wf_env *env, struct wf_slots *slots);
/* The bytes that open allocates. */
uint64_t wf_slots_table_bytes(uint32_t count);

/* How many slots the window has on the path that begins: a power of two, at most the capacity.
 * Before it is granted; all are FREE. */
void wf_slots_resize(struct wf_slots *slots, uint32_t count);
/* Grants the window, whose memory begins at `offset` of `region`, on the path of `conn`; once per
 * path. WEFT_CLOSED: the path is about to end. Other failures: what the peer asked for is
 * impossible. */
enum weft_status wf_slots_grant(struct wf_slots *slots, struct wf_conn *conn, uint32_t region,
				uint64_t offset, uint64_t slot_bytes) WEFT_MUST_CHECK;
/* Fills a message with the slots in state CREDIT; and records that it was sent. */
void wf_slots_fill_credit(const struct wf_slots *slots, struct wf_msg_credit *out);
void wf_slots_credit_sent(struct wf_slots *slots);
/* The path has ended: all slots are FREE. */
void wf_slots_path_ends(struct wf_slots *slots);

/* The bytes of `slot` are not needed any more; the trainer is notified by CREDIT. */
void wf_slots_credit(struct wf_slots *slots, struct wf_conn *conn, uint32_t slot);
/* Copies aside everything that is held. With `conn` those slots become CREDIT; NULL: the path has
 * ended. */
struct wf_slots_parked wf_slots_park(struct wf_slots *slots, struct wf_conn *conn,
				     wf_slots_copy *copy, void *arg);
/* Releases everything that is held: the trainer is notified by CREDIT, or by the payload's next
 * answer. */
void wf_slots_credit_all(struct wf_slots *slots, struct wf_conn *conn);
void wf_slots_free_all(struct wf_slots *slots, struct wf_conn *conn);

enum weft_status wf_slots_fail(const struct wf_slots *slots, uint32_t slot) WEFT_MUST_CHECK;

/* Checks that a PUT into the slot is allowed. WEFT_PROTOCOL: it is not. */
WEFT_MUST_CHECK static inline enum weft_status
wf_slots_check(const struct wf_slots *slots, uint32_t slot)
{
	return slots->word[slot] == WF_SLOT_FREE ? WEFT_OK : wf_slots_fail(slots, slot);
}

/* The slot of a PUT, from a tag whose slot number is a multiple of count plus the slot. */
static inline uint32_t
wf_slots_of_tag(const struct wf_slots *slots, uint32_t tag)
{
	return wf_tag_slot(tag) & (slots->count - 1);
}

/* A PUT has arrived, and its bytes are needed where they lie. */
static inline void
wf_slots_hold(struct wf_slots *slots, uint32_t slot, uint32_t word)
{
	WF_ASSERT(slots->word[slot] == WF_SLOT_FREE && word < WF_SLOT_WORDS);
	slots->word[slot] = word;
	slots->held++;
}

static inline bool
wf_slots_are_full(const struct wf_slots *slots)
{
	return slots->held == slots->count;
}

/* A PUT has arrived, and its bytes have been read. */
static inline void
wf_slots_read(struct wf_slots *slots, struct wf_conn *conn, uint32_t slot)
{
	WF_ASSERT(slots->word[slot] == WF_SLOT_FREE);
	wf_transport_release(conn, slot);
	slots->word[slot] = WF_SLOT_READ;
}

/* The next answer reports that the slot is free. free: it was held; answered: it was READ. */
static inline void
wf_slots_free(struct wf_slots *slots, struct wf_conn *conn, uint32_t slot)
{
	WF_ASSERT(conn != NULL && slots->word[slot] < WF_SLOT_WORDS && slots->held > 0);
	wf_transport_release(conn, slot);
	slots->word[slot] = WF_SLOT_FREE;
	slots->held--;
}

static inline void
wf_slots_answered(struct wf_slots *slots, uint32_t slot)
{
	WF_ASSERT(slots->word[slot] == WF_SLOT_READ);
	slots->word[slot] = WF_SLOT_FREE;
}

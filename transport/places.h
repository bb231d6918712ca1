/* SPDX-License-Identifier: Apache-2.0 */
/* places: limits the number of connections of a transport. A connection that this end began, or
 * that was shown to the caller or accepted, holds one of conn_max places. An incoming connection
 * holds one of newcomer_max others until its hello has arrived, and again after it was refused and
 * before it is gone. So newcomers, however many, never use a place of the former. If there are too
 * many newcomers, the one that has been silent for longest is dropped. Thread: the transport's
 * owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wf_place_kind {
	WF_PLACE_NONE,
	WF_PLACE_NEWCOMER,
	WF_PLACE_CONN,
	WF_PLACE_ENDING, /* a newcomer that has ended and is not freed yet */
};

/* The place of one connection, embedded in it. */
struct wf_place {
	enum wf_place_kind kind;
	bool listed;
	void *owner; /* the connection */
	struct wf_place *next, *prev;
};

struct wf_places {
	uint32_t conn_max, newcomer_max;
	uint32_t conn_count, newcomer_count, ending_count;
	/* Newcomers that may be dropped, in the order in which they last sent something. */
	struct wf_place *first, *last;
};

void wf_places_init(struct wf_places *places, uint32_t conn_max, uint32_t newcomer_max);

/* Claims a place for a connection that this end begins, or that is now shown. Returns false if all
 * conn_max places are in use. */
bool wf_places_claim(struct wf_places *places, struct wf_place *place);
/* Lists an incoming connection as a newcomer. */
void wf_places_come(struct wf_places *places, struct wf_place *place, void *owner);
/* The newcomer has sent something. */
void wf_places_spoke(struct wf_places *places, struct wf_place *place);
/* Its hello has arrived: it will be shown as soon as possible, and is not dropped for others. */
void wf_places_keep(struct wf_places *places, struct wf_place *place);
/* It was shown and refused; it is a newcomer again until it is gone. */
void wf_places_refuse(struct wf_places *places, struct wf_place *place);
/* The connection has ended. Only newcomers give up their place now; others keep it until they
 * leave. */
void wf_places_end(struct wf_places *places, struct wf_place *place);
/* The connection is freed. */
void wf_places_leave(struct wf_places *places, struct wf_place *place);

/* The most connections of all kinds: the size of a table of them. */
static inline uint32_t
wf_places_table(const struct wf_places *places)
{
	return places->conn_max + 2 * places->newcomer_max;
}

static inline uint32_t
wf_places_count(const struct wf_places *places)
{
	return places->conn_count + places->newcomer_count + places->ending_count;
}

/* Whether a table of that size has no room for another connection, whichever end begins it. */
static inline bool
wf_places_table_is_full(const struct wf_places *places)
{
	return wf_places_count(places) >= wf_places_table(places);
}

/* Whether another connection may come in now, possibly after a newcomer is dropped. */
static inline bool
wf_places_may_come(const struct wf_places *places)
{
	bool room = places->newcomer_count < places->newcomer_max || places->first != NULL;
	uint32_t others = places->newcomer_count + places->ending_count;
	return room && others < 2 * places->newcomer_max && !wf_places_table_is_full(places);
}

/* Whether there are too many newcomers, so that `first` has to be dropped. */
static inline bool
wf_places_are_crowded(const struct wf_places *places)
{
	return places->newcomer_count >= places->newcomer_max && places->first != NULL;
}

/* Whether there are more newcomers than newcomer_max, because refused ones were added to them. If
 * no other can come in for that reason, `first` has to be dropped, or those that stay keep others
 * out. */
static inline bool
wf_places_are_overfull(const struct wf_places *places)
{
	return places->newcomer_count > places->newcomer_max && places->first != NULL;
}

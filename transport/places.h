/* SPDX-License-Identifier: Apache-2.0 */
/* places: who may be on a transport. What it has begun, shown or let in has one of conn_max places.
 * Who comes in has one of newcomer_max others until its hello is here, and again when it was
 * refused and has not gone: however many they are, they take no place of the former. Where there
 * are too many, who has been silent for longest goes. Thread: the transport's owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wf_place_kind {
	WF_PLACE_NONE,
	WF_PLACE_NEWCOMER,
	WF_PLACE_CONN,
	WF_PLACE_ENDING, /* a newcomer that has ended, and is not freed yet */
};

/* Of one connection, which embeds it. */
struct wf_place {
	enum wf_place_kind kind;
	bool listed;
	void *owner; /* the connection */
	struct wf_place *next, *prev;
};

struct wf_places {
	uint32_t conn_max, newcomer_max;
	uint32_t conn_count, newcomer_count, ending_count;
	/* Newcomers that may be sent away; who spoke last is last. */
	struct wf_place *first, *last;
};

void wf_places_init(struct wf_places *places, uint32_t conn_max, uint32_t newcomer_max);

/* This end begins a connection, or shows one that came. False: all conn_max places are taken. */
bool wf_places_claim(struct wf_places *places, struct wf_place *place);
/* Somebody comes in, and is listed. */
void wf_places_come(struct wf_places *places, struct wf_place *place, void *owner);
/* It has said something. */
void wf_places_spoke(struct wf_places *places, struct wf_place *place);
/* Its hello is here: it is shown as soon as may be, and not sent away for others. */
void wf_places_keep(struct wf_places *places, struct wf_place *place);
/* It was shown, and this end does not want it; it is listed until it has gone. */
void wf_places_refuse(struct wf_places *places, struct wf_place *place);
/* The connection has ended. No-op but for a newcomer: others keep their place until they leave. */
void wf_places_end(struct wf_places *places, struct wf_place *place);
/* It is freed. */
void wf_places_leave(struct wf_places *places, struct wf_place *place);

/* Connections at the most, of all kinds: what a table of them has to hold. */
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

/* Nobody, whoever begins, fits into such a table. */
static inline bool
wf_places_table_is_full(const struct wf_places *places)
{
	return wf_places_count(places) >= wf_places_table(places);
}

/* May another one come in now, if need be after somebody was sent away? */
static inline bool
wf_places_may_come(const struct wf_places *places)
{
	bool room = places->newcomer_count < places->newcomer_max || places->first != NULL;
	uint32_t others = places->newcomer_count + places->ending_count;
	return room && others < 2 * places->newcomer_max && !wf_places_table_is_full(places);
}

/* Too many newcomers: `first` is to be sent away. */
static inline bool
wf_places_are_crowded(const struct wf_places *places)
{
	return places->newcomer_count >= places->newcomer_max && places->first != NULL;
}

/* More than may be, for who was refused came on top of them. Where nobody may come for that,
 * `first` is to be sent away: else those who stay keep others out. */
static inline bool
wf_places_are_overfull(const struct wf_places *places)
{
	return places->newcomer_count > places->newcomer_max && places->first != NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/places.h"

#include <stddef.h>

#include "base/assert.h"

void
wf_places_init(struct wf_places *places, uint32_t conn_max, uint32_t newcomer_max)
{
	WF_ASSERT(conn_max > 0 && newcomer_max > 0);
	*places = (struct wf_places){.conn_max = conn_max, .newcomer_max = newcomer_max};
}

static void
unlist(struct wf_places *places, struct wf_place *place)
{
	if (!place->listed) {
		return;
	}
	if (place->prev != NULL) {
		place->prev->next = place->next;
	} else {
		places->first = place->next;
	}
	if (place->next != NULL) {
		place->next->prev = place->prev;
	} else {
		places->last = place->prev;
	}
	place->next = NULL;
	place->prev = NULL;
	place->listed = false;
}

static void
list_last(struct wf_places *places, struct wf_place *place)
{
	WF_ASSERT(!place->listed);
	place->prev = places->last;
	place->next = NULL;
	if (places->last != NULL) {
		places->last->next = place;
	} else {
		places->first = place;
	}
	places->last = place;
	place->listed = true;
}

static uint32_t *
count_of(struct wf_places *places, enum wf_place_kind kind)
{
	switch (kind) {
	case WF_PLACE_NONE:
		break;
	case WF_PLACE_NEWCOMER:
		return &places->newcomer_count;
	case WF_PLACE_CONN:
		return &places->conn_count;
	case WF_PLACE_ENDING:
		return &places->ending_count;
	}
	return NULL;
}

static void
move(struct wf_places *places, struct wf_place *place, enum wf_place_kind kind)
{
	uint32_t *from = count_of(places, place->kind);
	uint32_t *to = count_of(places, kind);
	unlist(places, place);
	if (from != NULL) {
		WF_ASSERT(*from > 0);
		(*from)--;
	}
	if (to != NULL) {
		(*to)++;
	}
	place->kind = kind;
}

bool
wf_places_claim(struct wf_places *places, struct wf_place *place)
{
	WF_ASSERT(place->kind == WF_PLACE_NONE || place->kind == WF_PLACE_NEWCOMER);
	if (places->conn_count >= places->conn_max) {
		return false;
	}
	move(places, place, WF_PLACE_CONN);
	return true;
}

void
wf_places_come(struct wf_places *places, struct wf_place *place, void *owner)
{
	WF_ASSERT(place->kind == WF_PLACE_NONE);
	place->owner = owner;
	move(places, place, WF_PLACE_NEWCOMER);
	list_last(places, place);
}

void
wf_places_spoke(struct wf_places *places, struct wf_place *place)
{
	if (place->listed) {
		unlist(places, place);
		list_last(places, place);
	}
}

void
wf_places_keep(struct wf_places *places, struct wf_place *place)
{
	WF_ASSERT(place->kind == WF_PLACE_NEWCOMER);
	unlist(places, place);
}

void
wf_places_refuse(struct wf_places *places, struct wf_place *place)
{
	WF_ASSERT(place->kind == WF_PLACE_CONN);
	move(places, place, WF_PLACE_NEWCOMER);
	list_last(places, place);
}

void
wf_places_end(struct wf_places *places, struct wf_place *place)
{
	if (place->kind == WF_PLACE_NEWCOMER) {
		move(places, place, WF_PLACE_ENDING);
	}
}

void
wf_places_leave(struct wf_places *places, struct wf_place *place)
{
	move(places, place, WF_PLACE_NONE);
}

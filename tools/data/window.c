/* SPDX-License-Identifier: Apache-2.0 */
/* window: see window.h. The order depends on seed, number of the window and number of records
 * alone. Thread: the caller's. */
#include "tools/data/window.h"

#include <string.h>

#include "base/rng.h"

bool
wf_window_is_full(const struct wf_window *window, size_t count)
{
	uint64_t used = window->bytes.count + window->count * sizeof(*window->entry);
	return window->count > 0 && used + count + sizeof(*window->entry) > window->bytes_max;
}

static enum weft_status
grow_entries(struct wf_window *window)
{
	size_t room = window->room == 0 ? 1024 : 2 * window->room;
	struct wf_window_entry *entry = wf_zalloc_array(window->env, room, sizeof(*entry));

	if (entry == NULL) {
		return wf_fail(WEFT_NOMEM, "a window of %zu records", room);
	}
	if (window->count > 0) {
		memcpy(entry, window->entry, window->count * sizeof(*entry));
	}
	wf_free(window->env, window->entry, window->room * sizeof(*entry));
	window->entry = entry;
	window->room = room;
	return WEFT_OK;
}

enum weft_status
wf_window_add(struct wf_window *window, const struct wf_record *record)
{
	struct wf_bytes *bytes = &window->bytes;
	size_t want = bytes->count + record->count;
	enum weft_status st = window->count < window->room ? WEFT_OK : grow_entries(window);

	if (st == WEFT_OK && want > bytes->room) {
		st = wf_bytes_reserve(window->env, bytes,
				      want < 2 * bytes->room ? 2 * bytes->room : want);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (record->count > 0) {
		memcpy(bytes->at + bytes->count, record->bytes, record->count);
	}
	window->entry[window->count++] =
		(struct wf_window_entry){.at = bytes->count, .count = record->count};
	bytes->count = want;
	return WEFT_OK;
}

void
wf_window_shuffle(struct wf_window *window)
{
	struct wf_rng rng;

	wf_rng_init(&rng, window->seed, window->number);
	for (size_t left = window->count; left > 1; left--) {
		size_t drawn = (size_t)wf_rng_below(&rng, left);
		struct wf_window_entry last = window->entry[left - 1];
		window->entry[left - 1] = window->entry[drawn];
		window->entry[drawn] = last;
	}
}

struct wf_record
wf_window_record(const struct wf_window *window, size_t i)
{
	const struct wf_window_entry *entry = &window->entry[i];
	/* Not NULL where all records are empty. */
	const uint8_t *bytes = window->bytes.at == NULL ? (const uint8_t *)"" : window->bytes.at;
	return (struct wf_record){.bytes = bytes + entry->at, .count = entry->count};
}

void
wf_window_next(struct wf_window *window)
{
	window->count = 0;
	window->bytes.count = 0;
	window->number++;
}

void
wf_window_fini(struct wf_window *window)
{
	wf_bytes_fini(window->env, &window->bytes);
	wf_free(window->env, window->entry, window->room * sizeof(*window->entry));
}

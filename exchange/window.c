/* SPDX-License-Identifier: Apache-2.0 */
/* window: see the header. Thread: the session's core. */
#include "exchange/window.h"

#include <string.h>

static enum weft_status
reserve(struct wf_send_window *window, struct wf_env *env, uint32_t slot_count)
{
	if (slot_count <= window->capacity) {
		return WEFT_OK;
	}
	wf_send_window_close(window, env);
	window->capacity = slot_count;
	window->free = wf_zalloc_array(env, slot_count, sizeof(*window->free));
	window->held = wf_zalloc_array(env, slot_count, sizeof(uint32_t *));
	if (window->free == NULL || window->held == NULL) {
		wf_send_window_close(window, env);
		return wf_fail(WEFT_NOMEM, "session: no memory for %u slots", slot_count);
	}
	return WEFT_OK;
}

enum weft_status
wf_send_window_open(struct wf_send_window *window, struct wf_env *env,
		    const struct wf_msg_grant *msg)
{
	if (msg->kind != WF_GRANT_WIRE_SLOTS || wf_send_window_is_open(window)) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: kind %u was not expected", msg->kind);
	}
	enum weft_status st = reserve(window, env, msg->slot_count);
	if (st != WEFT_OK) {
		return st;
	}
	for (uint32_t i = 0; i < msg->slot_count; i++) {
		window->free[i] = msg->slot_count - 1 - i; /* 0 is claimed first */
		window->held[i] = NULL;
	}
	window->slot_count = msg->slot_count;
	window->free_count = msg->slot_count;
	window->announced = msg->announced;
	memcpy(window->key.bytes, msg->key, sizeof(msg->key));
	return WEFT_OK;
}

void
wf_send_window_close(struct wf_send_window *window, struct wf_env *env)
{
	wf_free(env, window->free, window->capacity * sizeof(*window->free));
	wf_free(env, window->held, window->capacity * sizeof(uint32_t *));
	*window = (struct wf_send_window){0};
}

enum weft_status
wf_send_window_credit(struct wf_send_window *window, const struct wf_msg_credit *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		uint32_t slot = msg->buffer[i];
		if (slot >= window->slot_count || window->held[slot] == NULL) {
			return wf_fail(WEFT_PROTOCOL, "CREDIT: slot %u is not in use", slot);
		}
		*window->held[slot] = WF_SLOT_NONE;
		wf_send_window_free_slot(window, slot);
	}
	return WEFT_OK;
}

void
wf_send_window_forget(struct wf_send_window *window)
{
	for (uint32_t i = 0; i < window->slot_count; i++) {
		if (window->held[i] != NULL) {
			*window->held[i] = WF_SLOT_NONE;
			window->held[i] = NULL;
		}
	}
	window->slot_count = 0;
	window->free_count = 0;
	window->announced = false;
}

void
wf_send_window_release_all(struct wf_send_window *window, const uint32_t *held)
{
	for (uint32_t i = 0; i < window->slot_count; i++) {
		if (window->held[i] == held) {
			wf_send_window_free_slot(window, i);
		}
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* address: IP addresses as texts, and names to addresses. Numeric ones at once; names on the env's
 * helper thread, which may take longer than the connection that asked.
 * Thread: the transport's owner, but for the run of a look-up, which touches its struct only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/url.h"

#define WF_ADDRESS_TEXT_BYTES 64 /* "[v6 address]:port" */
#define WF_ADDRESSES_MAX 8u      /* of a name; others are left out */

struct wf_addresses {
	unsigned count;
	struct sockaddr_storage at[WF_ADDRESSES_MAX];
};

void wf_address_format(const struct sockaddr *address, char out[WF_ADDRESS_TEXT_BYTES]);
/* "node7:7164 (10.0.0.7:7164)" into `out`, or the address alone where that is what was asked for.
 */
void wf_address_name(const struct wf_host *asked, const struct sockaddr_storage *address, char *out,
		     size_t bytes);
/* Of bind(2) and connect(2). */
socklen_t wf_address_bytes(const struct sockaddr_storage *address);
uint16_t wf_address_port(const struct sockaddr_storage *address);
void wf_address_set_port(struct sockaddr_storage *address, uint16_t port);

/* Addresses of this host to listen on, with port 0. May block. WEFT_UNAVAILABLE. */
enum weft_status wf_addresses_here(const char *name, struct wf_addresses *out) WEFT_MUST_CHECK;
/* Of a numeric name, at once. False: it is none. */
bool wf_addresses_numeric(const struct wf_host *host, struct wf_addresses *out);

/* A look-up of a name. Outlives who asked until the helper thread is done with it. */
struct wf_look_up {
	struct wf_task task;
	struct wf_host host;
	int error; /* of getaddrinfo */
	struct wf_addresses found;
	struct wf_look_up *next; /* of the abandoned ones */
};

/* `wake_fd`: an eventfd that is told of the end. WEFT_NOMEM. */
enum weft_status wf_look_up_start(struct wf_env *env, const struct wf_host *host, int wake_fd,
				  struct wf_look_up **out) WEFT_MUST_CHECK;
/* WEFT_AGAIN: not yet. Else it is freed: its addresses, or WEFT_UNAVAILABLE with why. */
enum weft_status wf_look_up_end(struct wf_env *env, struct wf_look_up **look_up,
				struct wf_addresses *out) WEFT_MUST_CHECK;
/* Nobody asks any more: to `list`, until it is done. Accepts NULL in `*look_up`. */
void wf_look_up_abandon(struct wf_look_up **look_up, struct wf_look_up **list);
/* Free those that are done; `wait`: all of them. */
void wf_look_up_reap(struct wf_env *env, struct wf_look_up **list, bool wait);

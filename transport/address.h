/* SPDX-License-Identifier: Apache-2.0 */
/* address: formats IP addresses, and resolves names. Numeric names are resolved at once, others on
 * the env's helper thread, which may take longer than the connection lives. Thread: the transport's
 * owner, except for the run of a look-up, which touches only its own struct. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/url.h"

#define WF_ADDRESS_TEXT_BYTES 64 /* "[v6 address]:port" */
#define WF_ADDRESSES_MAX 8u      /* used of one name; others are left out */

struct wf_addresses {
	unsigned count;
	struct sockaddr_storage at[WF_ADDRESSES_MAX];
};

void wf_address_format(const struct sockaddr *address, char out[WF_ADDRESS_TEXT_BYTES]);
/* Writes "node7:7164 (10.0.0.7:7164)" to `out`, or only the address if `asked` is numeric.
 */
void wf_address_name(const struct wf_host *asked, const struct sockaddr_storage *address, char *out,
		     size_t bytes);
/* The length for bind(2) and connect(2). */
socklen_t wf_address_bytes(const struct sockaddr_storage *address);
uint16_t wf_address_port(const struct sockaddr_storage *address);
void wf_address_set_port(struct sockaddr_storage *address, uint16_t port);
/* Whether only this host reaches it: 127.0.0.0/8, ::1, or the former as an IPv6 address. */
bool wf_address_is_loopback(const struct sockaddr_storage *address);
/* What stands for this host where no address is given: "127.0.0.1", or "::1" on a host that has
 * only the latter. */
const char *wf_address_loopback(void);

/* Resolves a name of this host to addresses to listen on, with port 0. May block. WEFT_UNAVAILABLE:
 * it has none. */
enum weft_status wf_addresses_here(const char *name, struct wf_addresses *out) WEFT_MUST_CHECK;
/* Resolves a numeric name, without blocking. Returns false if it is not numeric. */
bool wf_addresses_numeric(const struct wf_host *host, struct wf_addresses *out);

/* A look-up of a name. It lives until the helper thread is done with it, even if its caller has
 * gone. */
struct wf_look_up {
	struct wf_task task;
	struct wf_host host;
	int error; /* of getaddrinfo */
	struct wf_addresses found;
	struct wf_look_up *next; /* list of abandoned look-ups */
};

/* Starts a look-up. `wake_fd` is an eventfd that is written when it ends. WEFT_NOMEM. */
enum weft_status wf_look_up_start(struct wf_env *env, const struct wf_host *host, int wake_fd,
				  struct wf_look_up **out) WEFT_MUST_CHECK;
/* WEFT_AGAIN: it has not ended. Otherwise it is freed, and its addresses are returned, or
 * WEFT_UNAVAILABLE with the reason. */
enum weft_status wf_look_up_end(struct wf_env *env, struct wf_look_up **look_up,
				struct wf_addresses *out) WEFT_MUST_CHECK;
/* Abandons a look-up: moves it to `list` until it is done. Accepts NULL in `*look_up`. */
void wf_look_up_abandon(struct wf_look_up **look_up, struct wf_look_up **list);
/* Frees abandoned look-ups that are done; with `wait` it waits for all of them. */
void wf_look_up_reap(struct wf_env *env, struct wf_look_up **list, bool wait);

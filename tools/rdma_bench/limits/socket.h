/* SPDX-License-Identifier: Apache-2.0 */
/* socket: plain raw TCP sockets: no copy, no queue, no head. Thread: the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* No delay; the congestion control `congestion`, "" for the system's. */
void wf_socket_set_up(int fd, const char *congestion);
/* Both ends of one connection over loopback, set up. WEFT_IO */
enum weft_status wf_socket_pair(const char *congestion, int fd[2]) WEFT_MUST_CHECK;
void wf_socket_close_pair(const int fd[2]); /* accepts -1 */

/* As much as goes at once, perhaps nothing: `*done` grows by it. WEFT_LOST: the other end is
 * gone. */
enum weft_status wf_socket_put(int fd, const void *from, uint64_t bytes,
			       uint64_t *done) WEFT_MUST_CHECK;
enum weft_status wf_socket_get(int fd, void *to, uint64_t bytes, uint64_t *done) WEFT_MUST_CHECK;

/* Transfers all of it; a side that does not spin sleeps. */
enum weft_status wf_socket_put_all(int fd, const void *from, uint64_t bytes,
				   bool spin) WEFT_MUST_CHECK;
enum weft_status wf_socket_get_all(int fd, void *to, uint64_t bytes, bool spin) WEFT_MUST_CHECK;

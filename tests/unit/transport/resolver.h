/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: what the system says of names in a test that is linked with this: getaddrinfo and
 * freeaddrinfo in the place of the C library's. Every name is 127.0.0.1, but for
 *
 *	many	an address of a family that nobody speaks, then RESOLVER_MANY from 127.0.0.1 on
 *	slow	is not answered while it is held
 *	nobody	is not known
 *
 * Thread: any. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/address.h"

#define RESOLVER_MANY (WF_ADDRESSES_MAX + 3u) /* more than are used of one name */

/* 127.0.0.1 for 0, and the addresses after it. */
struct sockaddr_in resolver_loopback(unsigned number, uint16_t port);
/* Whether "slow" is held: a thread that looks it up waits. */
void resolver_hold(bool held);
/* The flags of the last question. */
int resolver_flags(void);

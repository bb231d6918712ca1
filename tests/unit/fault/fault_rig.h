/* SPDX-License-Identifier: Apache-2.0 */
/* fault_rig: the nodes of the conformance suite behind a SPEC of the test's. Thread: the test's. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/conformance/conformance.h"
#include "transport/fault/fault.h"

/* Run the body on tcp, on shm and on sim; fails the test where it fails. */
void everywhere(bool (*body)(struct conf *t));
/* The same on the simulated network alone, where time is exact. */
void in_world(bool (*body)(struct conf *t));
/* Nodes that are opened from now on are wrapped by `spec`; NULL: not wrapped. */
void behind(struct conf *t, const char *spec);
/* A listening node with one SPEC and another with a second one, connected. */
bool faulty_pair(struct conf *t, const char *server_spec, const char *client_spec,
		 struct pair *out);
uint64_t injected(const struct node *n, enum wf_fault_kind kind);
/* Pumps until this many faults have been injected. */
bool await_injected(struct conf *t, const struct node *n, enum wf_fault_kind kind, uint64_t count);
/* Checks that DOWN came with this status, and that its text names the peer and, if `by_fault`, the
 * wrapper. */
bool ended(struct conf *t, const struct seen *down, enum weft_status status, bool by_fault);
/* `count` messages of 8 bytes with cookies from 0 on in one post. */
enum weft_status post_messages(struct wf_conn *conn, unsigned count, unsigned *taken);

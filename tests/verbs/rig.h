/* SPDX-License-Identifier: Apache-2.0 */
/* rig: nodes of the conformance tests on RDMA devices, and the commands that break their links.
 * Thread: one. */
#pragma once

#include <sys/types.h>

#include "tests/conformance/conformance.h"

/* Whether the devices exist; otherwise the test ends with 77. */
bool rig_has(const char *device);
/* Runs `body` in its own env; true: it passed. */
bool rig_run(bool (*body)(struct conf *t));
/* A node with these settings ("" : none) that listens at `host`, or, NULL, does not. Unless `opts`
 * say otherwise, it gives a connection half a minute to come up. */
struct node *rig_node(struct conf *t, const char *settings, const char *host,
		      const struct wf_transport_opts *opts);

/* Run a command; its exit status, or -1. `words` ends with NULL. */
int rig_command(const char *const *words);
/* Begins one; rig_command_wait returns its exit status, and pumps meanwhile. */
pid_t rig_command_start(const char *const *words);
int rig_command_wait(struct conf *t, pid_t pid);
/* Begin one whose standard output goes to `fd`. */
int rig_command_output(const char *const *words, int fd);

/* Both ends UP, from a node that connects out of its own device. */
bool rig_join(struct conf *t, struct node *server, struct node *client, struct pair *out);
/* A PUT each way, so that the regions of both ends are registered. */
bool rig_warm(struct conf *t, const struct pair *p);
/* The DOWN of one end, taken; its status. */
enum weft_status rig_down(struct conf *t, struct node *n, const struct wf_conn *conn);

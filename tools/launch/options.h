/* SPDX-License-Identifier: Apache-2.0 */
/* options: the options of `weft launch`, for one host and for several. Thread: any one. */
#pragma once

#include "base/options.h"
#include "tools/launch/remote_options.h"

#define WF_LAUNCH_OPTIONS (11u + WF_REMOTE_OPTIONS)

struct wf_launch_settings {
	bool local;
	uint64_t pservers;
	uint64_t trainers;
	uint16_t port;
	uint32_t ports_num;
	uint32_t ports_num_for_sparse;
	uint64_t num_gradient_servers;
	const char *listen;
	uint64_t restarts;
	const char *log_dir;
	const char *color;
	struct wf_remote_set remote;
};

/* Writes the rows, with what the table of settings has of them. */
void wf_launch_options(struct wf_option rows[WF_LAUNCH_OPTIONS]);
/* Whether `weft launch` itself has an option of this name. */
bool wf_launch_has_option(const char *name);

/* SPDX-License-Identifier: Apache-2.0 */
/* peer_command: `rdma_bench lat`, `bw` and `rate` as commands. Thread: main. */
#pragma once

#include "tools/rdma_bench/peer_options.h"

/* argv[0] is the command's name. Returns the exit code. */
int wf_peer_command(enum wf_peer_kind kind, int argc, char **argv);

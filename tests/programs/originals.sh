#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The flags of the original: --help=original has an answer for each, and the commands act on it.
. "${0%/*}/lib.sh"

expect 0 "$WEFT" pserver --help=original
awk 'length > 80 { exit 1 }' last.out || fail "a line above 80 columns"
says last.out "--ports_num: an option" "--log_barrier_abstract: accepted, without effect" \
	"--async_lagged_ratio_default: refused unless it is 1.5"
says_not last.out "--config_args"
expect 64 "$WEFT" pserver --async_lagged_ratio_default=3
says last.err "async_lagged_ratio_default=3 (argument)" "--async_lagged_grad_discard_ratio"
expect 0 "$WEFT" pserver --log_barrier_abstract --log_barrier_lowest_nodes 5 --print_options

needs_training
expect 0 "$WEFT" train --help=original
says last.out "--config: an option" "--config_args: refused" "--job: refused unless it is train" \
	"--async_lagged_ratio_default: mapped to --async_lagged_grad_discard_ratio" \
	"--use_mkldnn: accepted, without effect"
[ "$(grep -c '^  --' last.out)" -ge 75 ] || fail "flags are missing"
expect 64 "$WEFT" train linear --sequential --job=test
says last.err "job=test (argument), of the original: weft train trains"
expect 0 "$WEFT" train linear --sequential --num_passes=1 --job=train --parallel_nn=0 --use_mkldnn
says last.err "use_mkldnn=true (argument) accepted, without effect: weft computes with OpenBLAS" \
	"parallel_nn=0 (argument)"

# weft launch passes each flag to the processes that it is for.
port=$(free_ports)
expect 0 "$WEFT" launch --local --port="$port" --log_barrier_abstract --gpu_id 3 -- train linear \
	--num_passes=1 --show_layer_stat
says last.err "gpu_id=3 (argument)" "show_layer_stat=true (argument)" "log_barrier_abstract=true"

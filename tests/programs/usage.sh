#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mistakes on the command line end with 64, and messages name the thing, the value and the remedy.
. "${0%/*}/lib.sh"

expect 64 "$WEFT" trian
says last.err "there is no command 'trian'; did you mean 'train'?"
expect 64 "$WEFT" xyzzy
says last.err "there is no command 'xyzzy'" "weft help"
says_not last.err "did you mean"
expect 64 "$WEFT" help trian
expect 64 "$WEFT" --nonsense

expect 64 "$WEFT" pserver --prot=7164
says last.err "unknown option --prot" "did you mean --port"
expect 64 "$WEFT" pserver --port=seven
says last.err "--port=seven" "from 0 to 65535"
expect 64 "$WEFT" pserver --port=65536
# Somebody who counts on snapshots would have none.
for option in snapshot_period=60s snapshot_steps=5 snapshot_bytes=1MiB snapshot_rate=1MiB snapshot_full=3 keep=3 \
	resume=auto; do
	expect 64 "$WEFT" pserver --$option
	says last.err "--${option%=*} has no effect without --snapshot_dir"
done
expect 64 "$WEFT" pserver --ports_num=0
expect 64 "$WEFT" pserver --port=65535 --ports_num=2
says last.err "--port=65535" "use --port=65534"
expect 64 "$WEFT" pserver --slot_count=3
says last.err "--slot_count=3" "power of two"
expect 64 "$WEFT" pserver --transport=carrier_pigeon
says last.err "--transport=carrier_pigeon" "tcp"
expect 64 "$WEFT" pserver --pin=nowhere
says last.err "nowhere"
expect 64 "$WEFT" pserver --max_shard_bytes=many
expect 64 "$WEFT" pserver --reconnect_timeout=soon
expect 64 "$WEFT" pserver stray
says last.err "stray"
expect 64 "$WEFT" pserver --rdma_tcp=rdma
says last.err "--rdma_tcp=rdma" "--transport=verbs"
expect 64 "$WEFT" pserver --use_gpu=true
says last.err "--use_gpu=true" "no GPU code" "--use_gpu=false"
expect 64 "$WEFT" pserver --nics=no_such_device
says last.err "--nics=no_such_device" "--listen=ADDR"
expect 64 "$WEFT" pserver --nics=lo,eth0
says last.err "one address"

expect 64 "$WEFT" train
expect 64 "$WEFT" train nothing_known
says last.err "nothing_known" "linear"
expect 64 "$WEFT" train linear --use_gpu=True
says last.err "use_gpu"
expect 64 "$WEFT" train linear --num_gradient_servers=2 --trainer_id=2
says last.err "trainer_id" "num_gradient_servers"
expect 64 "$WEFT" train linear --sequential --num_pases=1
says last.err "did you mean --num_passes"
expect 64 "$WEFT" train mlp --closed_form

expect 64 "$WEFT" demo no_such_demo
says last.err "no_such_demo" "linear" "mlp"

expect 64 "$WEFT" why --steps=1000
says last.err "--steps=1000: must be a whole number, from 2 to 999"

# A text that is lost is an error of every command that prints one.
for command in "pserver --help" "pserver --print_options" "train --help" "train mlp --print_options"; do
	expect 74 sh -c "'$WEFT' $command >/dev/full"
done

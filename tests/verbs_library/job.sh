#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole jobs of unmodified processes over RDMA devices of every kind, kind and unkind: the digest of
# one process, each pair over verbs, and nothing left behind. So is the demo.
. "${0%/*}/lib.sh"

port=$(free_ports)
settings="--num_passes=3 --slice_bytes=64 --seed=5"
in_one_process linear 2 2 "$settings"
seed=1
for kind in kind mlx5 irdma bnxt cxgb4 rxe anyorder; do
	be $kind ""
	job linear 2 2 0 "$settings"
	be $kind $seed
	job linear 2 2 0 "$settings"
	seed=$((seed + 1))
done

# Rows of tables, and the demo, with a secret: also over iWARP, where the answer to a ticket comes
# over the link.
head -c 32 /dev/urandom >secret
chmod 0400 secret
export WEFT_SECRET_FILE="$work/secret"
strikes="--num_passes=1 --batch_size=900 --slice_bytes=64 --no-baseline"
in_one_process ctr 2 1 "$strikes"
for kind in mlx5 cxgb4; do
	be $kind 11
	job ctr 2 1 1 "$strikes"
done

be irdma ""
expect 0 "$WEFT" demo --transport=verbs --log_dir="$work/logs"
says last.out PASS "equal"
[ "$(cat logs/pserver-*.log logs/trainer-*.log | grep -c "$both")" -eq 8 ] ||
	fail "the demo does not say of each pair that it runs over verbs"
books_are_closed 4 "the demo"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft launch refuses mistakes before it starts anything.
. "${0%/*}/lib.sh"

expect 64 "$WEFT" launch --pservers=1 --trainers=1 -- train linear
says last.err "give --local for a job on this host, or --hosts=HOST,HOST or --hostfile=FILE"
expect 64 "$WEFT" launch --local
says last.err "-- train linear"
expect 64 "$WEFT" launch --local --
expect 64 "$WEFT" launch --local -- demo
says last.err "'demo' is no program in PATH" "train MODEL for a built-in model"
expect 64 "$WEFT" launch --local -- train --num_passes=1
says last.err "needs a model"
expect 64 "$WEFT" launch --local train linear
says last.err "unexpected 'train'"
expect 64 "$WEFT" launch --local --pservers=0 -- train linear
says last.err "--pservers=0"
expect 64 "$WEFT" launch --local --pservers=127.0.0.1 -- train linear
expect 64 "$WEFT" launch --local --trainers=100000 -- train linear

# Options of either, and of neither.
expect 64 "$WEFT" launch --local --slice_byts=256 -- train linear
says last.err "--slice_byts" "did you mean --slice_bytes"
expect 64 "$WEFT" launch --local --slot_cuont=4 -- train linear
says last.err "did you mean --slot_count"
expect 64 "$WEFT" launch --local --qqqqqqqqqqqq -- train linear
says last.err "--qqqqqqqqqqqq"
expect 64 "$WEFT" launch --local --slot_count=many -- train linear
says last.err "--slot_count=many"
expect 64 "$WEFT" launch --local -- train linear --num_pases=1
says last.err "did you mean --num_passes"
expect 64 "$WEFT" launch --local -- train linear --trainer_id=1
says last.err "--trainer_id=1 after --"
expect 64 "$WEFT" launch --local --trainer-id=0 -- train linear
says last.err "--trainer-id=0: launch numbers the trainers itself"
expect 64 "$WEFT" launch --local --trainer_id 0 -- sh
expect 64 "$WEFT" launch --local --trainers=2 --num_gradient_servers=3 -- train linear
says last.err "--num_gradient_servers=3" "--trainers=2"
expect 64 "$WEFT" launch --local --port=65535 --pservers=2 -- train linear
says last.err "65535"
# What launch gives itself would override these.
expect 64 "$WEFT" launch --local -- train linear --sequential
says last.err "--sequential: the trainers of launch have pservers"
expect 64 "$WEFT" launch --local --sequential -- train linear
says last.err "--sequential: the trainers of launch have pservers"
expect 64 "$WEFT" launch --local -- train linear --local
says last.err "--local after the model: the trainers of launch have pservers"
expect 64 "$WEFT" launch --local --no-once -- train linear
says last.err "--no-once: the pservers of launch end with their job"
expect 64 "$WEFT" launch --local --once=false -- sh
expect 0 "$WEFT" launch --local --once --no-sequential --print_options -- train linear --no-local

# The agent is not started by hand.
expect 64 "$WEFT" _node </dev/null
says last.err "weft launch --hosts starts this on each host" "it is not meant to be started by hand"
: >empty
expect 64 "$WEFT" _node <empty
expect 64 "$WEFT" _node <&-
expect 0 sh -c ': | "$WEFT" _node' # a launcher that is gone

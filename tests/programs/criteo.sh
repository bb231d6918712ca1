#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctr on a file in the layout of Criteo's logs. The file is generated: it is not Criteo's data, so
# the figures mean nothing. They do improve, because the label depends on one category and one
# count. A job and one process end with the same bits.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
criteo_rows 1500 >generated_in_criteos_layout.tsv

options="--format=criteo --data=$work/generated_in_criteos_layout.tsv --num_passes=3"
# shellcheck disable=SC2086
expect 0 "$WEFT" train ctr --sequential --num_gradient_servers=2 $options
alone=$(digest_of last.out)
told=$(grep '^auc ' last.out)
echo "$told" | grep -Eq '^auc 0\.[89][0-9]* logistic regression 0\.[0-9]+$' ||
	fail "nothing was learned: $told"
# shellcheck disable=SC2086
expect 0 "$WEFT" launch --local --port="$port" --pservers=2 --ports_num=1 \
	--ports_num_for_sparse=2 --trainers=2 -- train ctr $options
[ "$(digest_of last.out)" = "$alone" ] || fail "a job ends with another digest than $alone"
[ "$(grep '^auc ' last.out)" = "$told" ] || fail "a job prints other figures than '$told'"

# A line that is short of columns is named.
head -n 20 generated_in_criteos_layout.tsv >short.tsv
printf '1\t2\t3\n' >>short.tsv
expect 65 "$WEFT" train ctr --sequential --format=criteo --data=short.tsv
says last.err "line 21"

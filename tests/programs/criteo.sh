#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ctr on a file in the layout of Criteo's logs. The file is generated: it is not Criteo's data, and
# what is learned from it says nothing. It is learned, though: the label hangs on one category and
# one count. A job and one process end with the same bits.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
awk '
function below(n) {
	state = state * 16807 % 2147483647
	return state % n
}
BEGIN {
	state = 20240
	for (row = 0; row < 1500; row++) {
		kind = below(6)
		count = below(50)
		clicked = kind < 2 || count > 40 ? 1 : 0
		if (below(20) == 0) {
			clicked = 1 - clicked
		}
		line = clicked "\t" count
		for (i = 2; i <= 13; i++) {
			line = line "\t" (below(8) == 0 ? "" : below(1000) - 2)
		}
		line = line "\t" sprintf("%08x", 16777216 + kind)
		for (i = 2; i <= 26; i++) {
			line = line "\t" (below(10) == 0 ? "" : sprintf("%08x", below(300) * 7919))
		}
		print line
	}
}' >generated_in_criteos_layout.tsv

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
[ "$(grep '^auc ' last.out)" = "$told" ] || fail "a job tells other figures than '$told'"

# A line that is short of columns is named.
head -n 20 generated_in_criteos_layout.tsv >short.tsv
printf '1\t2\t3\n' >>short.tsv
expect 65 "$WEFT" train ctr --sequential --format=criteo --data=short.tsv
says last.err "line 21"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mlp learns Fashion-MNIST where Debian's package of it is installed: a job and a sequential run with
# the same bits, by the package's place and by the folder's name.
. "${0%/*}/lib.sh"
needs_training

mkdir nothing
expect 74 "$WEFT" train mlp --sequential --format=idx --data=nothing
says last.err "nothing/train-images-idx3-ubyte: no such file"
expect 64 "$WEFT" train ctr --sequential --format=idx --data=nothing
says last.err "format=idx"
folder=/usr/share/datasets/fashion-mnist
if [ ! -e $folder ]; then
	expect 74 "$WEFT" train mlp --sequential --format=idx
	says last.err "install Debian's dataset-fashion-mnist"
	echo "SKIPPED: Fashion-MNIST is not there: install dataset-fashion-mnist" >&2
	exit 77
fi

port=$(free_ports)
with="--format=idx --num_passes=1 --hidden=64 --batch_size=64 --learning_rate=0.1"
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $with
alone=$(digest_of last.out)
# A fifth of the 10,000 wrong, or not many more.
sed -n 's/^pass 0 .* test \([0-9.]*\) digest .*/\1/p' last.out | awk '{ good = $1 < 0.24 } END { exit !good }' ||
	fail "Fashion-MNIST is not learnt: $(cat last.out)"
# shellcheck disable=SC2086
expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --trainers=2 -- train mlp $with --data=$folder
[ "$(digest_of last.out)" = "$alone" ] || fail "a job ends with another digest"

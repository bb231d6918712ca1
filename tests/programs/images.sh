#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mlp learns Fashion-MNIST if Debian's package of it is installed: a job and a sequential run end
# with the same bits, with the package found by default and by the folder's name.
. "${0%/*}/lib.sh"
needs_training

mkdir nothing
for folder in nothing nothing/there; do
	expect 65 "$WEFT" train mlp --sequential --format=idx --data=$folder
	says last.err "$folder/train-images-idx3-ubyte: no such file"
done
# Six images of one pixel to train on, and one to test with.
mkdir small
{ printf '\0\0\10\3\0\0\0\6\0\0\0\1\0\0\0\1'; printf '\1\2\3\4\5\6'; } >small/train-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\6\0\1\0\1\0\1' >small/train-labels-idx1-ubyte
printf '\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\1\7' >small/t10k-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\1\1' >small/t10k-labels-idx1-ubyte
expect 0 "$WEFT" train mlp --sequential --format=idx --data=small --num_passes=1
says last.err "data of trainer 0: 7 rows in a folder of idx files, in memory"
expect 64 "$WEFT" train ctr --sequential --format=idx --data=nothing
says last.err "format=idx"
folder=/usr/share/datasets/fashion-mnist
if [ ! -e $folder ]; then
	expect 65 "$WEFT" train mlp --sequential --format=idx
	says last.err "install Debian's dataset-fashion-mnist"
	echo "SKIPPED: Fashion-MNIST is not there: install dataset-fashion-mnist" >&2
	exit 77
fi

port=$(free_ports)
with="--format=idx --num_passes=1 --hidden=64 --batch_size=64 --learning_rate=0.1"
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $with
alone=$(digest_of last.out)
# About a fifth of the 10,000 are wrong, or few more.
sed -n 's/^pass 0 .* test \([0-9.]*\) digest .*/\1/p' last.out | awk '{ good = $1 < 0.24 } END { exit !good }' ||
	fail "Fashion-MNIST is not learnt: $(cat last.out)"
# shellcheck disable=SC2086
expect 0 "$WEFT" launch --local --port="$port" --pservers=1 --trainers=2 -- train mlp $with --data=$folder
[ "$(digest_of last.out)" = "$alone" ] || fail "a job ends with another digest"

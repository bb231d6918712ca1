#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft ckpt lists, shows and verifies snapshots and passes, names each damaged part, and ends with
# 65 then. The files are fixtures, which another program made.
fixtures=$(cd "${0%/*}/../fixtures/saved" && pwd)
. "${0%/*}/lib.sh"

snapshot=epoch-00003-step-0000000180
mkdir out passes
cp -r "$fixtures/$snapshot" "$fixtures/pass-00002" out
cp -r "$fixtures/pass-00002" passes
chmod -R u+w out passes

expect 0 "$WEFT" ckpt list out
awk '{ print $1 }' last.out >names
printf 'name\n%s\npass-00002\n' "$snapshot" | cmp -s - names || fail "list: other names"
grep -Eq "^$snapshot +3 +180 +- +1 +5760 +1 +1 +4 +[0-9]+$" last.out || fail "list: another snapshot"
grep -Eq '^pass-00002 +- +7 +- +2 ' last.out || fail "list: another pass"

for path in out "out/$snapshot" "out/$snapshot/"; do
	expect 0 "$WEFT" ckpt show "$path"
	for line in "name $snapshot" 'epoch 3' 'step 180' 'pservers 2' 'dense_lanes 2' 'trainers 2' \
		'tensor w rows 2 cols 2 states 0' 'table e optimizer adagrad values 8 rows 4' \
		'position 0 00ff' 'position 1 -'; do
		grep -qx "$line" last.out || fail "show $path: no line: $line"
	done
	grep -q '^part sparse-1 pserver 1 bytes ' last.out || fail "show $path: no part"
	expect 0 "$WEFT" ckpt verify "$path"
	[ "$(grep -c ' ok$' last.out)" = 4 ] || fail "verify $path: not four parts"
done
expect 0 "$WEFT" ckpt show passes
grep -qx 'name pass-00002' last.out || fail "show: not the pass"
expect 0 "$WEFT" ckpt verify out/pass-00002
grep -qx 'pass-00002 ok' last.out || fail "verify: not the pass"

# Two parts are bad, and both are named.
hurt "out/$snapshot/dense-1" 112
rm "out/$snapshot/sparse-0"
expect 65 "$WEFT" ckpt verify out
grep -Eq '^dense-1 +[0-9]+ damaged .*/dense-1: block 0: checksum of its payload' last.out ||
	fail "verify: dense-1 is not named"
grep -Eq '^sparse-0 +[0-9]+ damaged .*/sparse-0: cannot be opened' last.out ||
	fail "verify: sparse-0 is not named"
[ "$(grep -c ' ok$' last.out)" = 2 ] || fail "verify: the others are not ok"
grep -q '2 of 4 parts cannot be used' last.err || fail "verify: no sum"

echo more >>"out/$snapshot/manifest"
expect 65 "$WEFT" ckpt list out
grep -Eq "^$snapshot .* damaged$" last.out || fail "list: not damaged"
grep -q '^pass-00002 ' last.out || fail "list: ends at the damaged one"
expect 65 "$WEFT" ckpt show out
expect 65 "$WEFT" ckpt verify out

mkdir empty
expect 65 "$WEFT" ckpt list empty
expect 65 "$WEFT" ckpt show empty
expect 74 "$WEFT" ckpt verify nowhere
expect 64 "$WEFT" ckpt verify
expect 64 "$WEFT" ckpt
expect 64 "$WEFT" ckpt lits out
for verb in list show verify; do
	expect 0 "$WEFT" ckpt "$verb" --help
	head -n 1 last.out | grep -q "^Usage: weft ckpt $verb" || fail "$verb --help: no usage"
	awk 'length > 80 { exit 1 }' last.out || fail "$verb --help: a line above 80 columns"
done

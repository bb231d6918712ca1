#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Saving does not touch what it did not make: links to an archive, in the place of a pass, of what
# an interrupted save left, or of the folder's lock; files of the user in a pass. One job at a time
# saves to a folder, and the message for the next one names the job that has it.
. "${0%/*}/lib.sh"
needs_training

train() {
	"$WEFT" train mlp --sequential --seed=5 --learning_rate=0.01 "$@"
}

expect 0 train --num_passes=1 --save_dir=archive
echo mine >archive/notes
digests() {
	find archive -type f | sort | xargs cksum
}
before=$(digests)

# A pass that is a link is refused before any training, and left as it is.
mkdir out
ln -s ../archive/pass-00000 out/pass-00000
expect 74 train --num_passes=2 --save_dir=out
says last.err "save_dir: out/pass-00000: is a link or a file" "move it elsewhere"
says_not last.out "pass 0"
[ -L out/pass-00000 ] || fail "the link is gone"
[ "$(digests)" = "$before" ] || fail "a pass that is a link: the archive has lost files"
# If a pass follows it, it is read like any other, and is not removed with the older ones.
expect 0 train --num_passes=2 --save_dir=out --start_pass=1 --save_only_one
says last.err "continuing from out/pass-00000" "save_only_one: out/pass-00000: is a link or a file"
[ -L out/pass-00000 ] && [ -f out/pass-00001/manifest ] || fail "out has: $(ls -A out)"
[ "$(digests)" = "$before" ] || fail "older passes removed: the archive has lost files"
rm out/pass-00000

# So is one that has a file of the user's, or that weft did not make.
cp -r archive/pass-00000 out/pass-00003
mkdir out/pass-00004
for name in out/pass-00003 out/pass-00004; do
	echo mine >"$name/notes"
	expect 74 train --num_passes=5 --save_dir=out
	says last.err "$name: holds notes" "remove it yourself"
	[ -f "$name/notes" ] || fail "notes are gone"
	rm -r "$name"
done

# A folder that has the name of a leftover and is none stays, and training goes on.
dead=$(sh -c 'echo $$')
for name in ".pass-00000.tmp-$dead" .pass-00000.tmp-1 .pass-00001.old-1; do
	ln -s ../archive/pass-00000 "out/$name"
	expect 0 train --num_passes=2 --save_dir=out
	says last.err "remains of an interrupted save are still there: out/$name"
	[ -L "out/$name" ] || fail "the link out/$name is gone"
	[ "$(digests)" = "$before" ] || fail "$name: the archive has lost files"
	rm "out/$name"
done
[ "$(ls -A out)" = ".weft-lock
pass-00000
pass-00001" ] || fail "out has: $(ls -A out)"

# The folder of averages may be elsewhere, and a pass in it is as safe.
mkdir elsewhere
ln -s ../elsewhere out/average
ln -s ../archive/pass-00000 elsewhere/pass-00001
expect 74 train --num_passes=2 --save_dir=out --average_window=0.5
says last.err "out/average/pass-00001: is a link or a file"
rm elsewhere/pass-00001
expect 0 train --num_passes=2 --save_dir=out --average_window=0.5
[ -f elsewhere/pass-00001/manifest ] || fail "averages: $(ls -A elsewhere)"
[ "$(digests)" = "$before" ] || fail "averages: the archive has lost files"

# The lock of another program, or a link of its name, is not written to.
cp archive/notes notes
mkdir held
ln -s ../notes held/.weft-lock
expect 74 train --num_passes=1 --save_dir=held
says last.err "held/.weft-lock"
cmp notes archive/notes || fail "the lock's link was written through"
rm held/.weft-lock

# One job at a time, of any user; a dead job holds no lock.
start holder "$WEFT" train mlp --sequential --num_passes=1000000 --save_dir=held
holder=$last_pid
until_true 60 test -e held/pass-00001 || fail "nothing was saved"
expect 69 train --num_passes=2 --save_dir=held
says last.err "save_dir: held: process " " on $(uname -n) saves there" "name another folder"
says_not last.out "pass 0"
expect 69 "$WEFT" import archive/pass-00000/fc1_w --format=paddle -o held --pass=1000000
says last.err "held: process " "saves there"
expect 0 "$WEFT" export held/pass-00000 -o copy.npz --format=npz
kill -9 "$holder"
ends "$holder" 10 "the job that held the folder"
expect 0 train --num_passes=1 --save_dir=held

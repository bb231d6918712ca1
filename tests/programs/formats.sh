#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models go out to the formats of other programs and come in from them, checked by a program that
# shares nothing with ours; what is damaged or cannot be a model is refused.
. "${0%/*}/lib.sh"
if ! command -v python3 >/dev/null 2>&1; then
	echo "SKIPPED: python3 is not there" >&2
	exit 77
fi
cd - >/dev/null
other=$(cd "${0%/*}" && pwd)/formats.py
cd "$work"

# check FORMAT PATH [PASS]
check() {
	python3 "$other" check "$@" 2>check.err || fail "$1 $2 reads otherwise: $(tail -n 1 check.err)"
}

# Import, by content and with the format given.
python3 "$other" make
for from in model.tar:tar model_pax.tar:tar model.safetensors:safetensors; do
	model=${from%:*}
	format=${from#*:}
	rm -rf auto named
	expect 0 "$WEFT" import "$model" -o auto
	says last.out "auto/pass-00000: 5 tensors, 3016 values, from $format"
	check pass auto/pass-00000
	expect 0 "$WEFT" import "$model" --format="$format" --output named --pass=12
	check pass named/pass-00012
done
# Parameter files do not know their shapes.
expect 0 "$WEFT" import params/ -o bare
says last.out "from paddle"
grep -q '^tensor fc1_w 2560 1 0$' bare/pass-00000/manifest || fail "parameter files with shapes"
expect 0 "$WEFT" import params -o shaped --like=auto/pass-00000
check pass shaped/pass-00000
expect 0 "$WEFT" import params/fc1_w --format=paddle -o one
says last.out "one/pass-00000: 1 tensors, 2560 values"
# An existing pass stays.
expect 64 "$WEFT" import model.tar -o auto
says last.err "auto/pass-00000: exists already"
check pass auto/pass-00000

# Export, and import again.
for format in npz safetensors tar paddle; do
	expect 0 "$WEFT" export auto/pass-00000 --format=$format -o "out.$format"
	check $format "out.$format"
	expect 0 "$WEFT" import "out.$format" -o "again.$format" --like=auto/pass-00000
	check pass "again.$format/pass-00000"
done
expect 74 "$WEFT" export auto/pass-00000 --format=paddle -o out.paddle
# No file of the pass is replaced, whatever the way to it.
ln -s auto/pass-00000 linked
for path in auto/pass-00000/fc1_b linked/manifest; do
	expect 64 "$WEFT" export auto/pass-00000 -o $path
	says last.err "$path: is a file of the save that is exported; name another one"
done
rm linked
expect 0 "$WEFT" ckpt verify auto/pass-00000
check paddle out.paddle
# A file replaces only a file.
mkfifo pipe
ln -s pipe link
for place in pipe link; do
	expect 64 "$WEFT" export auto/pass-00000 -o "$place"
	says last.err "$place: is a device, a pipe or a link"
done
[ -p pipe ] && [ -L link ] || fail "an export replaced a pipe or a link"
mkdir empty
expect 0 "$WEFT" export auto/pass-00000 --format=paddle -o empty
check paddle empty
for format in tar paddle; do
	expect 64 "$WEFT" export auto/pass-00000 --format=$format --state -o no
	says last.err "values only"
done
[ -z "$(find . -name '*.tmp-*')" ] || fail "left behind: $(find . -name '*.tmp-*')"

# Refused, with the reason.
refused() {
	expect "$1" "$WEFT" import "$2" -o no
	says last.err "$2" "$3"
	[ ! -e no/pass-00000 ] || fail "a pass out of $2"
}
for model in model.tar model.safetensors out.npz; do
	head -c 5000 "$model" >"cut_$model"
	refused 65 "cut_$model" ": "
done
cp out.npz hurt.npz
hurt hurt.npz 6000
refused 65 hurt.npz "checksum"
echo "no model" >text
refused 65 text "is neither npz nor safetensors"
refused 65 nowhere "No such file"
mkdir nothing
refused 65 nothing "has neither the manifest"
cp -r params more
echo notes >more/notes
refused 65 more "notes is not a parameter file"
expect 65 "$WEFT" import params -o no --like=one/pass-00001
expect 65 "$WEFT" import params/fc1_b --format=npz -o no
expect 64 "$WEFT" import
expect 64 "$WEFT" import model.tar
says last.err "-o DIR"
expect 64 "$WEFT" import model.tar -o no --format=onnx
# Each pass that can be made is listed.
expect 64 "$WEFT" import model.tar -o last --pass=18446744073709551615
expect 0 "$WEFT" import model.tar -o last --pass=18446744073709551614
expect 0 "$WEFT" ckpt list last
says last.out "pass-18446744073709551614"
expect 74 "$WEFT" import model.tar -o no/such/folder
expect 0 "$WEFT" help import
says last.out "Examples:" "--like"

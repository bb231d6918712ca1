#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Snapshots that pservers make while a job trains have the bits of the passes that its trainer saves
# at the same steps: in every format that weft export writes, and as initial values of another run.
# Damage is refused with file and block, and of a folder the newest whole snapshot counts.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
data=${WEFT_DATA_DIR:-${0%/*}/../../data}
head -n 150 "$data/moby-dick.txt" >text

cat >compare.py <<'PY'
"""compare.py PASS SNAPSHOT: two files of safetensors, or of NumPy, have the same arrays, those of
the second one flat. The first kind is read by the description of the format."""
import json, struct, sys


def read(path):
    data = open(path, "rb").read()
    if data[:2] == b"PK":
        import numpy as np

        with np.load(path) as arrays:
            return {k: (list(v.shape), v.dtype.str, v.tobytes()) for k, v in arrays.items()}
    (size,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + size])
    head.pop("__metadata__")
    body = data[8 + size :]
    return {k: (e["shape"], e["dtype"], body[slice(*e["data_offsets"])]) for k, e in head.items()}


one, two = read(sys.argv[1]), read(sys.argv[2])
assert sorted(one) == sorted(two), (sorted(one), sorted(two))
for name, (shape, kind, data) in one.items():
    count = 1
    for dim in shape:
        count *= dim
    is_of_table = name.endswith(tuple(".keys .values .state .stamp .born .show .click".split()))
    assert two[name][1:] == (kind, data), name
    assert two[name][0] == (shape if is_of_table else [count]), (name, shape, two[name][0])
print(len(one))
PY

python=
for one in python3 /usr/bin/python3; do
	if [ -z "$python" ] && "$one" -c 'import numpy' 2>/dev/null; then
		python=$one
	fi
done

# same_files PASS SNAPSHOT FORMAT [options]
same_files() {
	of_pass=$1
	of_snapshot=$2
	format=$3
	shift 3
	expect 0 "$WEFT" export "$of_pass" --format="$format" -o pass.file "$@"
	expect 0 "$WEFT" export "$of_snapshot" --format="$format" -o snapshot.file "$@"
	says last.err "its tensors come out flat"
	"${python:-python3}" compare.py pass.file snapshot.file >compared ||
		fail "$of_snapshot as $format: not what $of_pass has"
	[ "$(cat compared)" -gt 3 ] || fail "$of_snapshot as $format: too few arrays"
}

# snapshots_of MODEL OPTIONS LANES: a job whose snapshots and saved passes are of the same steps. Which of
# the steps get a snapshot depends on the machine, and each that is there is compared.
snapshots_of() {
	rm -rf probe saved snapshots
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train "$1" --sequential --num_gradient_servers=2 $2 --num_passes=1 \
		--save_dir=probe
	steps=$(sed -n 's/^step //p' probe/pass-00000/manifest)
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --port="$port" --ports_num=2 --trainers=2 $3 \
		--snapshot_dir=snapshots --snapshot_steps="$steps" --snapshot_bytes=1MiB --keep=100 \
		-- train "$1" $2 --num_passes=8 --save_dir=saved
	"$WEFT" ckpt list snapshots >list.out 2>list.err || fail "no snapshot of $1"
	# The job may end while another one is being written, which has no manifest then.
	for snapshot in snapshots/epoch-*; do
		[ -f "$snapshot/manifest" ] || rm -r "$snapshot"
	done
	for snapshot in snapshots/epoch-*; do
		step=$(sed -n 's/^step //p' "$snapshot/manifest")
		pass=$(printf 'saved/pass-%05d' $((step / steps - 1)))
		[ "$(sed -n 's/^step //p' "$pass/manifest")" = "$step" ] || fail "$pass: another step"
		same_files "$pass" "$snapshot" safetensors --state
		same_files "$pass" "$snapshot" safetensors
		[ -z "$python" ] || same_files "$pass" "$snapshot" npz --state
	done
}

snapshots_of mlp "--optimizer=adam --hidden=40 --slice_bytes=256" --ports_num_for_sparse=0
for format in paddle tar; do
	expect 0 "$WEFT" export "$pass" --format="$format" -o "pass.$format"
	expect 0 "$WEFT" export "$snapshot" --format="$format" -o "snapshot.$format"
done
# Folders and files may be read and written by all whom the umask lets.
mask=$(umask)
odd=$(find saved snapshots pass.paddle pass.tar pass.file \
	\( -type d ! -perm "$(printf %o $((0777 & ~mask)))" -o \
	-type f ! -perm "$(printf %o $((0666 & ~mask)))" \) -exec ls -ld {} +)
[ -z "$odd" ] || fail "the umask is $mask, and these have another mode: $odd"
for file in pass.paddle/*; do
	cmp "$file" "snapshot.paddle/${file##*/}" || fail "$snapshot: another ${file##*/}"
done
expect 64 "$WEFT" export "$snapshot" --format=tar --state -o state.tar
says last.err "hold values only"

# The same beginning, and the shapes of a pass for what has none.
begin() {
	model=$1
	from=$2
	shift 2
	expect 0 "$WEFT" train "$model" --sequential --num_passes=1 --init_model_path="$from" "$@"
	begun=$(digest_of last.out)
	[ -n "$begun" ] || fail "$model: no digest"
}
begin mlp "$pass" --hidden=40
of_pass=$begun
begin mlp "$snapshot/" --hidden=40
[ "$begun" = "$of_pass" ] || fail "init_model_path: another digest"
says last.err "initial values from $snapshot/ (snapshot of step $step in epoch 1)" "are not used"
expect 65 "$WEFT" train mlp --sequential --hidden=40 --num_passes=1 --init_model_path=snapshots
says last.err "is a folder of snapshots; name one of them, such as snapshots/epoch-00001-step-"
expect 65 "$WEFT" train mlp --sequential --hidden=41 --num_passes=1 --init_model_path="$snapshot"
says last.err "values; this model has it"
expect 0 "$WEFT" import "$snapshot" --like="$pass" -o again
for file in "$pass"/*; do
	case $file in
	*.state? | */manifest) ;;
	*) cmp "$file" "again/pass-00000/${file##*/}" || fail "import: another ${file##*/}" ;;
	esac
done
# A snapshot has no shapes to give, and says how many values there have to be.
expect 0 "$WEFT" import "$pass" --like="$snapshot" -o kept
grep '^tensor' "$pass/manifest" | cut -d ' ' -f 1-4 >tensors
grep '^tensor' kept/pass-00000/manifest | cut -d ' ' -f 1-4 | cmp tensors - ||
	fail "import like a snapshot: other shapes"
mkdir less
cp pass.paddle/fc1_b less/fc2_b
expect 65 "$WEFT" import less --like="$snapshot" -o no
says last.err "less: fc2_b is 40 x 1; $snapshot has it 10 x 1"

# Of the folder it is the newest, and after damage the one before.
expect 0 "$WEFT" export snapshots -o newest
says last.err "exporting $snapshot, the snapshot of step $step in epoch 1"
hurt "$snapshot/dense-1" 200
expect 65 "$WEFT" export "$snapshot" -o damaged
says last.err "$snapshot/dense-1: block 0: checksum of its payload: it is damaged"
[ ! -e damaged ] || fail "a damaged snapshot was exported"
set -- snapshots/epoch-*
if [ $# -gt 1 ]; then
	expect 0 "$WEFT" export snapshots -o before
	says last.err "cannot be used, and the one before it is" "checksum of its payload"
fi
rm -r snapshots/record-*
expect 65 "$WEFT" export snapshots -o without
says last.err "snapshots is of the history that remains; name the one that is meant"

# Tables: rows by partition and key, whichever lane had them; and of deltas, those of the snapshots on
# which they build. The last one is a delta if there are two.
words="--vocabulary=200 --hidden=8 --embedding=6 --slice_bytes=256 --batch_size=500"
snapshots_of ngram "$words --data=$work/text" "--ports_num_for_sparse=2 --snapshot_full=100"
set -- snapshots/epoch-*
if [ $# -gt 1 ]; then
	says "$snapshot/manifest" "base 1 "
	mv "$1" aside
	expect 65 "$WEFT" export "$snapshot" -o without_base
	says last.err "which cannot be used: " "$1"
	mv aside "$1"
fi
snapshots_of ngram "$words --data=$work/text" --ports_num_for_sparse=2
# shellcheck disable=SC2086
begin ngram "$pass" $words --data="$work/text"
of_pass=$begun
# shellcheck disable=SC2086
begin ngram "$snapshot" $words --data="$work/text"
[ "$begun" = "$of_pass" ] || fail "init_model_path: another digest of ngram"
expect 64 "$WEFT" export "$snapshot" --format=paddle -o tables
says last.err "has tables"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run that is saved and goes on ends with the digest of one that was never interrupted:
# sequentially, and as a job with other numbers of pservers and lanes. A damaged save is refused
# with 65; a run that cannot save ends with 74, after training.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
both="--slice_bytes=256 --learning_rate=0.01 --seed=5"
both="$both --learning_rate_schedule=warmup --learning_rate_decay_a=7000"
job="$both --num_gradient_servers=2" # of sequential runs: the launcher gives it to the others

# run_job PSERVERS LANES [options]
run_job() {
	pservers=$1
	lanes=$2
	shift 2
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=tcp --port="$port" --pservers="$pservers" \
		--ports_num="$lanes" --trainers=2 -- train mlp $both "$@"
}

for optimizer in momentum adam adagrad; do
	with="--optimizer=$optimizer"
	wire="--dense_wire=f32"
	[ "$optimizer" != adam ] || wire="--dense_wire=bf16" # what is saved is f32 all the same
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential $job $with $wire --num_passes=4
	whole=$(digest_of last.out)
	[ -n "$whole" ] || fail "no digest of the uninterrupted run"

	rm -rf seq dist
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential $job $with $wire --num_passes=2 --save_dir=seq
	[ "$(ls seq)" = "pass-00000
pass-00001" ] || fail "saved: $(ls seq)"
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential $job $with $wire --num_passes=4 --save_dir=seq --start_pass=2
	[ "$(digest_of last.out)" = "$whole" ] || fail "$optimizer: sequential, resumed: another digest"
	says_not last.err "settings differ"

	run_job 1 2 "$with" "$wire" --num_passes=2 --save_dir=dist --saving_period=2
	[ "$(ls dist)" = pass-00001 ] || fail "saved every second pass: $(ls dist)"
	cmp seq/pass-00001/manifest dist/pass-00001/manifest || fail "$optimizer: another save"
	run_job 3 1 "$with" "$wire" --num_passes=4 --save_dir=dist --start_pass=2 --save_only_one
	[ "$(digest_of last.out)" = "$whole" ] || fail "$optimizer: job, resumed: another digest"
	[ "$(ls -A dist)" = ".weft-lock
pass-00003" ] || fail "save_only_one leaves: $(ls -A dist)"
	# Between the two ways of training too.
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential $job $with $wire --num_passes=5 --save_dir=dist --start_pass=4
	after=$(digest_of last.out)
	run_job 2 2 "$with" "$wire" --num_passes=5 --save_dir=seq --start_pass=4
	[ "$(digest_of last.out)" = "$after" ] || fail "$optimizer: the two ways differ after a save"
done

# A run with another optimizer cannot go on, but can begin with the values. Other settings that
# differ are logged.
# shellcheck disable=SC2086
expect 64 "$WEFT" train mlp --sequential $job --optimizer=sgd --num_passes=9 --save_dir=seq --start_pass=4
says last.err "optimizer adagrad" "init_model_path"
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential $job --optimizer=sgd --num_passes=2 --init_model_path=seq/pass-00003/
says last.err "initial values from"
alone=$(digest_of last.out)
run_job 2 1 --optimizer=sgd --num_passes=2 --init_model_path=seq/pass-00003
[ "$(digest_of last.out)" = "$alone" ] || fail "initial values: the two ways differ"
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential $job --optimizer=adagrad --num_passes=5 --save_dir=seq \
	--start_pass=4 --l2=0.5
says last.err "the settings differ from the saved ones" "l2=0.5"
# shellcheck disable=SC2086
expect 65 "$WEFT" train mlp --sequential $job --optimizer=adagrad --num_passes=9 --save_dir=seq \
	--start_pass=4 --hidden=41
says last.err "fc1_w is 64 x 40; this model has it 64 x 41"
expect 64 "$WEFT" train mlp --sequential --start_pass=2
says last.err "start_pass=2" "save_dir"
expect 64 "$WEFT" train mlp --sequential --start_pass=2 --num_passes=2 --save_dir=seq
says last.err "less than num_passes=2"

# After a kill at any moment, a folder with a pass's name is whole.
# shellcheck disable=SC2086
start killed "$WEFT" train mlp --sequential $job --num_passes=1000000 --save_dir=killed
killed=$last_pid
until_true 60 test -e killed/pass-00020 || fail "no pass 20 was saved"
kill -9 "$killed"
ends "$killed" 10 "the killed run"
last=$(find killed -name 'pass-*' | sort | tail -n 1)
next=$(($(echo "$last" | sed 's/.*pass-0*//') + 1))
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential $job --num_passes=$((next + 1)) --save_dir=killed --start_pass=$next
resumed=$(digest_of last.out)
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential $job --num_passes=$((next + 1))
[ "$(digest_of last.out)" = "$resumed" ] || fail "after a kill: another digest"
[ -z "$(find killed -name '.pass*')" ] || fail "after a kill: $(find killed -name '.pass*') is left"

# Damage.
damaged() {
	# shellcheck disable=SC2086
	expect 65 "$WEFT" train mlp --sequential $job --optimizer=adagrad --num_passes=9 \
		--save_dir=hurt --start_pass=4
	says last.err "hurt/pass-00003/$1"
	expect 65 "$WEFT" export hurt/pass-00003 -o hurt.safetensors
	[ ! -e hurt.safetensors ] || fail "an export of a damaged save"
	rm -rf hurt
	mkdir hurt
	cp -r seq/pass-00003 hurt
}
mkdir hurt
damaged manifest
for hit in manifest fc1_w fc2_b.state0; do
	rm "hurt/pass-00003/$hit"
	damaged "$hit"
	echo >>"hurt/pass-00003/$hit"
	damaged "$hit"
	hurt "hurt/pass-00003/$hit" 30
	damaged "$hit"
	head -c 40 "seq/pass-00003/$hit" >"hurt/pass-00003/$hit"
	damaged "$hit"
done

# A folder that cannot be saved to is refused before any training.
echo file >file
expect 74 "$WEFT" train mlp --sequential --num_passes=1 --save_dir=file
says last.err "save_dir: file"
expect 74 "$WEFT" train mlp --sequential --num_passes=1 --save_dir=file/inside
expect 74 "$WEFT" train mlp --sequential --num_passes=1 --save_dir=no/such
says_not last.out "pass 0"

# A limit on the size of files stands for a full disk, on every machine. fc1_w has 10 KiB.
expect 0 "$WEFT" train mlp --sequential --num_passes=1 --save_dir=full
expect 74 sh -c "ulimit -f 8; exec '$WEFT' train mlp --sequential --num_passes=3 --save_dir=full --start_pass=1"
says last.out "pass 1 " "pass 2 "
says last.err "pass 1 is not saved, training goes on: full/" "pass 2 is not saved" \
	"training has finished, but 2 of its saves failed; the first is that of pass 1"
[ "$(ls -A full)" = ".weft-lock
pass-00000" ] || fail "a full disk leaves: $(ls -A full)"
expect 0 "$WEFT" train mlp --sequential --num_passes=2 --save_dir=full --start_pass=1
# In a job that limit applies to the memory that processes share, too: that is an error of input and
# output, not a defect. 16: the lines of the job have to fit into 8 KiB, too.
expect 74 sh -c "ulimit -f 16; exec '$WEFT' launch --local --port=$port --trainers=2 -- train mlp --num_passes=3 \
	--save_dir=full --start_pass=1"
says last.err "raise that limit (ulimit -f)"
# The memory of a connection is refused by that name, where slabs fit and no other transport is allowed.
expect 64 sh -c "ulimit -f 600; exec '$WEFT' launch --local --port=$port --trainers=2 -- train mlp --num_passes=1 \
	--transport=shm"
says last.err "--transport=shm, but shm: " "segment of " "raise that limit (ulimit -f)"
# If only the average cannot be saved, the message says so, and the pass is saved.
start kept "$WEFT" train mlp --sequential --num_passes=100 --average_window=0.5 --save_dir=kept
kept=$last_pid
until_true 60 test -e kept/average/pass-00002 || fail "no average was saved"
ln -s nowhere kept/average/pass-00099
ends "$kept" 60 "the run whose last average is not saved"
[ "$code" -eq 74 ] || fail "an average that is not saved: exit code $code"
says kept.err "average of pass 99 is not saved, training goes on: kept/average/" "1 of its saves failed"
[ -f kept/pass-00099/manifest ] || fail "the pass without an average is not saved"
# A disk that is really full, if one can be mounted: as root, outside of containers that forbid it.
# In a job the trainer that saves reports it, and all train to the end.
mkdir small
# shellcheck disable=SC2154 # lib.sh sets $work
trap 'umount "$work/small" 2>/dev/null || true; clean_up' EXIT
if mount -t tmpfs -o size=64k none small 2>/dev/null; then
	got=0
	"$WEFT" train mlp --sequential --num_passes=4 --save_dir=small/dir >last.out 2>last.err || got=$?
	left=$(ls -A small/dir)
	"$WEFT" launch --local --transport=tcp --port="$port" --pservers=1 --trainers=2 -- train mlp \
		--num_passes=4 --save_dir=small/dir --start_pass=1 >job.out 2>job.err || got="$got, $?"
	"$WEFT" train mlp --sequential --num_passes=2 --init_model_path=small/dir/pass-00000 \
		>again.out 2>again.err || got="$got, then $?"
	umount small
	[ "$got" = "74, 74" ] || fail "a full tmpfs: exit codes $got"
	says last.err "No space left on device"
	says last.out "pass 3 "
	says job.err "training goes on: small/dir" "of its saves failed"
	says job.out "pass 3 "
	[ "$(echo "$left" | sed -n 2p)" = pass-00000 ] || fail "a full tmpfs has: $left"
	case $left in *tmp*) fail "a full tmpfs has: $left" ;; esac
else
	echo "no tmpfs may be mounted here: the test of a full one is left out" >&2
fi

# Export, read by a program that shares nothing with ours.
expect 0 "$WEFT" export seq/pass-00003 --format=safetensors -o model.safetensors
expect 0 "$WEFT" export seq/pass-00003 --state --output=state.safetensors
if command -v python3 >/dev/null 2>&1; then
	cat >check.py <<'PY'
import json, struct, sys


def read(path):
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    assert size % 8 == 0 and data[8:9] == b"{"
    header = json.loads(data[8 : 8 + size])
    assert all(type(v) is str for v in header.pop("__metadata__").values())
    at = 0
    for entry in sorted(header.values(), key=lambda e: e["data_offsets"]):
        begin, end = entry["data_offsets"]
        assert begin == at and entry["dtype"] == "F32"
        assert end - begin == 4 * entry["shape"][0] * entry["shape"][1]
        at = end
    assert at == len(data) - 8 - size
    return {n: data[8 + size :][slice(*e["data_offsets"])] for n, e in header.items()}


def parameter(path):
    data = open(path, "rb").read()
    version, bytes_each, count = struct.unpack("<iIQ", data[:16])
    assert (version, bytes_each, 16 + 4 * count) == (0, 4, len(data))
    return data[16:]


folder = sys.argv[1]
names = ["fc1_b", "fc1_w", "fc2_b", "fc2_w"]
model, state = read(sys.argv[2]), read(sys.argv[3])
assert sorted(model) == names
assert sorted(state) == sorted(names + [n + ".state0" for n in names])
for name, values in state.items():
    assert values == parameter(folder + "/" + name), name
    assert model.get(name, values) == values, name
PY
	python3 check.py seq/pass-00003 model.safetensors state.safetensors || fail "the export reads otherwise"
fi
expect 64 "$WEFT" export seq/pass-00003
says last.err "-o FILE"
expect 64 "$WEFT" export seq/pass-00003 -o -
says last.err "name a file"
expect 64 "$WEFT" export seq/pass-00003 --format=onnx -o x
expect 64 "$WEFT" export -o x
expect 65 "$WEFT" export seq -o x
expect 74 "$WEFT" export seq/pass-00003 -o no/such/folder
expect 0 "$WEFT" help export
says last.out "Examples:" "-o mlp.safetensors"

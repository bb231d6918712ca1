#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run begins with the values of a saved pass or of any model file, and ends with the same bits;
# the strategy decides about tensors that the file lacks; other shapes are refused.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
train="--sequential --num_passes=1 --num_gradient_servers=2"
expect 0 "$WEFT" train mlp --sequential --num_passes=2 --save_dir=from
# from_file PATH [options]: a run that begins with it; its digest in $digest.
from_file() {
	path=$1
	shift
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp $train --init_model_path="$path" "$@"
	digest=$(digest_of last.out)
	[ -n "$digest" ] || fail "no digest of a run from $path"
}

from_file from/pass-00001
whole=$digest
says last.err "initial values from from/pass-00001 (pass)"
for format in npz safetensors tar paddle; do
	expect 0 "$WEFT" export from/pass-00001 --format=$format -o model.$format
	from_file model.$format
	[ "$digest" = "$whole" ] || fail "$format: another digest"
	says last.err "initial values from model.$format ($format)"
	says_not last.err "init_model_path:"
done
expect 0 "$WEFT" launch --local --port="$port" --pservers=2 --trainers=2 -- train mlp --num_passes=1 \
	--init_model_path=model.tar
[ "$(digest_of last.out)" = "$whole" ] || fail "a job that begins with a tar: another digest"

# Tensors that the model does not know are ignored.
cp -r model.paddle more
cp more/fc1_b more/fc9_b
echo "no parameters" >more/notes
from_file more
[ "$digest" = "$whole" ] || fail "with more files: another digest"
says last.err "2 arrays of more are not tensors of this model, the first one is fc9_b"

# Tensors that the file lacks.
cp -r model.paddle less
rm less/fc2_w
for strategy in "" --load_missing_parameter_strategy=fail; do
	# shellcheck disable=SC2086
	expect 65 "$WEFT" train mlp $train --init_model_path=less $strategy
	says last.err "less: tensor fc2_w of this model is missing"
done
from_file less --load_missing_parameter_strategy=rand
says last.err "1 tensors of this model are missing in less, the first one is fc2_w: they begin as without"
rand=$digest
from_file less --load_missing_parameter_strategy=zero
says last.err "they begin at 0"
[ "$digest" != "$rand" ] || fail "zero and rand give the same result"
[ "$digest" != "$whole" ] && [ "$rand" != "$whole" ] || fail "without fc2_w nothing changes"
export PADDLE_INIT_LOAD_MISSING_PARAMETER_STRATEGY=rand
from_file less
[ "$digest" = "$rand" ] || fail "the environment's strategy: another digest"
unset PADDLE_INIT_LOAD_MISSING_PARAMETER_STRATEGY
# shellcheck disable=SC2086
expect 64 "$WEFT" train mlp $train --init_model_path=less --load_missing_parameter_strategy=perhaps
says last.err "one of fail|rand|zero"

# Other shapes are refused, whatever the strategy.
for strategy in fail rand zero; do
	for format in npz safetensors tar; do
		# shellcheck disable=SC2086
		expect 65 "$WEFT" train mlp $train --init_model_path=model.$format --hidden=41 \
			--load_missing_parameter_strategy=$strategy
		says last.err "tensor fc1_w is 64 x 40; this model has it 64 x 41"
	done
	# shellcheck disable=SC2086
	expect 65 "$WEFT" train mlp $train --init_model_path=model.paddle --hidden=41 \
		--load_missing_parameter_strategy=$strategy
	says last.err "tensor fc1_w has 2560 values; this model has it 64 x 41"
done
head -c 9000 model.npz >cut.npz
# shellcheck disable=SC2086
expect 65 "$WEFT" train mlp $train --init_model_path=absent.npz
says last.err "absent.npz: cannot be opened: No such file or directory (--init_model_path)"
# shellcheck disable=SC2086
expect 65 "$WEFT" train mlp $train --init_model_path=cut.npz
says last.err "cut.npz"
hurt model.paddle/fc1_b 0
# shellcheck disable=SC2086
expect 65 "$WEFT" train mlp $train --init_model_path=model.paddle
says last.err "fc1_b is not a parameter file"

# The formats of parameters cannot hold tables.
expect 0 "$WEFT" train ctr --sequential --num_passes=1 --save_dir=tables --no-baseline
for format in tar paddle; do
	expect 64 "$WEFT" export tables/pass-00000 --format=$format -o no
	says last.err "has tables"
done
expect 65 "$WEFT" import tables/pass-00000 -o no
says last.err "has tables"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each optimizer trains, with settings that affect it, and a job ends with the bits of the
# sequential run; different optimizers end with different bits.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
digests=""

# OPTIMIZER SCHEDULE A B, as words.
power()
{
	echo "$1 --learning_rate_schedule=$2 --learning_rate_decay_a=$3 --learning_rate_decay_b=$4"
}

# Decay, clipping and a schedule everywhere: they enter each formula at a place of its own.
for settings in \
	"sgd --learning_rate=0.05" \
	"momentum --learning_rate=0.02 --momentum=0.8" \
	"nesterov --learning_rate=0.02 --momentum=0.8" \
	"adagrad --learning_rate=0.02 --ada_epsilon=1e-5" \
	"adam --learning_rate=0.002 --adam_epsilon=1e-6" \
	"adamw --learning_rate=0.002 --adam_epsilon=1e-6" \
	"torch_adam --learning_rate=0.002 --adam_epsilon=1e-6" \
	"torch_adamw --learning_rate=0.002 --adam_epsilon=1e-6" \
	"adamax --learning_rate=0.002 --adam_epsilon=1e-6" \
	"torch_momentum --learning_rate=0.05 --momentum=0.8" \
	"torch_sgd --learning_rate=0.02 --momentum=0.8" \
	"decayed_adagrad --learning_rate=0.002 --ada_rou=0.9 --l1=0.001" \
	"rmsprop --learning_rate=0.002 --ada_epsilon=1e-4" \
	"adadelta --learning_rate=1 --ada_rou=0.9" \
	"adam --learning_rate=0.002 --global_norm_clipping_threshold=0.05" \
	"$(power sgd poly 1e-3 0.75)" \
	"$(power sgd caffe_poly 5000 0.9)" \
	"$(power sgd exp 0.5 400)" \
	"$(power sgd discexp 0.5 400)" \
	"sgd --learning_rate_schedule=manual --learning_rate_args=100:1,300:0.5,900:0.25" \
	"sgd --learning_rate_schedule=pass_manual --learning_rate_args=0:1,1:0.25 --num_passes=2"; do
	case $settings in
	*schedule*) ;;
	*) settings="$settings --learning_rate_schedule=warmup --learning_rate_decay_a=500" ;;
	esac
	settings="--num_passes=1 --optimizer=$settings --l2=0.01
		--gradient_clipping_threshold=0.1 --slice_bytes=1024 --seed=5"
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $settings
	alone=$(digest_of last.out)
	[ -n "$alone" ] || fail "no digest of the sequential run with $settings"
	case $digests in
	*"$alone"*) fail "the digest $alone occurs twice: $settings" ;;
	esac
	digests="$digests $alone"
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=tcp --port="$port" --pservers=2 --ports_num=2 \
		--trainers=2 -- train mlp $settings
	[ "$(digest_of last.out)" = "$alone" ] ||
		fail "another digest than $alone with $settings"
done

line()
{
	grep '^pass 2 ' last.out
}

# OPTIONS: a run that goes on from a save ends with the same bits.
goes_on()
{
	options="--num_passes=3 --seed=5 $*"
	rm -rf saved
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $options
	alone=$(line)
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=tcp --port="$port" --pservers=2 --ports_num=2 \
		--trainers=2 -- train mlp $options --num_passes=2 --save_dir="$PWD/saved"
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=tcp --port="$port" --pservers=1 --trainers=2 \
		-- train mlp $options --slice_bytes=1024 --save_dir="$PWD/saved" --start_pass=2
	[ "$(line)" = "$alone" ] || fail "$(line) instead of $alone with $options"
}

goes_on --optimizer=torch_momentum --learning_rate_schedule=pass_manual \
	--learning_rate_args=0:1,1:0.5,2:0.25
# With averages, the averages are tested.
averages="--optimizer=momentum --average_window=0.5 --max_average_window=60"
# shellcheck disable=SC2086
goes_on $averages
# The model that was saved beside the pass is the one that was tested.
expect 0 "$WEFT" export saved/average/pass-00002 -o average.safetensors
expect 0 "$WEFT" export saved/pass-00002 -o values.safetensors
cmp -s average.safetensors values.safetensors && fail "averages are the values"
expect 0 "$WEFT" train mlp --sequential --num_passes=1 --learning_rate=1e-30 --optimizer=sgd \
	--init_model_path="$PWD/saved/average/pass-00002"
tested=${alone% digest *}
tested=${tested##* }
[ "$(sed -n 's/^pass 0 .* test \([^ ]*\) digest.*/\1/p' last.out)" = "$tested" ] ||
	fail "averages that were saved test otherwise than $tested"
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 --num_passes=3 --seed=5 \
	$averages --average_window=0
[ "$(line)" != "$alone" ] || fail "averages make no difference"
[ "$(digest_of last.out)" = "${alone##* }" ] || fail "averages change the parameters"

expect 64 "$WEFT" train ctr --sequential --global_norm_clipping_threshold=1
says last.err global_norm_clipping_threshold "no part"
expect 64 "$WEFT" train mlp --sequential --average_window=1e-5
says last.err average_window 0.001
expect 64 "$WEFT" train ctr --sequential --average_window=0.5
says last.err average_window "no averages"
expect 64 "$WEFT" train mlp --sequential --optimizer=rprop
says last.err nesterov adagrad adamw torch_momentum adadelta
expect 64 "$WEFT" train mlp --sequential --learning_rate_args=1:1
says last.err learning_rate_args manual constant
expect 64 "$WEFT" train mlp --sequential --learning_rate_schedule=manual --learning_rate_args=1:1,b
says last.err '"b"' until:factor
expect 64 "$WEFT" train mlp --sequential --learning_rate_schedule=exp --learning_rate_decay_a=2
says last.err schedule_a "at most 1"
expect 64 "$WEFT" train ctr --sequential --learning_rate_schedule=manual --learning_rate_args=1:1
says last.err "rows of tables have none by hand"

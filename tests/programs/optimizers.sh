#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each optimizer trains, with settings that matter to it, and a job ends with the bits of the
# sequential run; different optimizers end with different bits.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
digests=""

# Decay, clipping and a schedule everywhere: they enter each formula at a place of its own.
for settings in \
	"sgd --learning_rate=0.05" \
	"momentum --learning_rate=0.02 --momentum=0.8" \
	"nesterov --learning_rate=0.02 --momentum=0.8" \
	"adagrad --learning_rate=0.02 --ada_epsilon=1e-5" \
	"adam --learning_rate=0.002 --adam_epsilon=1e-6" \
	"adamw --learning_rate=0.002 --adam_epsilon=1e-6"; do
	settings="--optimizer=$settings --l2=0.01 --gradient_clipping_threshold=0.1
		--learning_rate_schedule=warmup --learning_rate_decay_a=500
		--num_passes=1 --slice_bytes=1024 --seed=5"
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $settings
	alone=$(digest_of last.out)
	[ -n "$alone" ] || fail "no digest of the sequential run with $settings"
	case $digests in
	*"$alone"*) fail "the digest $alone comes twice: $settings" ;;
	esac
	digests="$digests $alone"
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=tcp --port="$port" --pservers=2 --ports_num=2 \
		--trainers=2 -- train mlp $settings
	[ "$(digest_of last.out)" = "$alone" ] ||
		fail "another digest than $alone with $settings"
done

expect 64 "$WEFT" train mlp --sequential --optimizer=rmsprop
says last.err nesterov adagrad adamw

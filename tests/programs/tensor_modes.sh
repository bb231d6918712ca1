#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Modes of groups of tensors: if all are in fact synchronous, the bits are those of a sequential
# run; otherwise the job trains; settings that make no sense are refused.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
settings="--slice_bytes=256 --num_passes=2 --seed=11"

# in_job OPTION...: a job of two trainers
in_job() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --port="$port" --pservers=2 --trainers=2 -- \
		train mlp $settings "$@"
}

# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $settings
alone=$(digest_of last.out)
[ -n "$alone" ] || fail "no digest of the sequential run"
for options in "--dense_mode=async --tensor_modes=*=sync" "--tensor_modes=*_b=bounded" \
	"--dense_mode=bounded --staleness=2 --tensor_modes=*_w=sync,*=sync,*=async"; do
	set -f
	# shellcheck disable=SC2086
	in_job $options
	set +f
	[ "$(digest_of last.out)" = "$alone" ] || fail "$options: another digest than $alone"
done

in_job --tensor_modes='*_b=async' --stats_period=60s
says last.out "pass 1 cost"
in_job --tensor_modes='fc[0-9]_b=bounded,*=sync' --staleness=3 --save_dir=saved
says saved/pass-00001/manifest "tensor_modes=fc[0-9]_b=bounded,*=sync"

refuses() {
	expect 64 "$WEFT" train mlp --pservers=127.0.0.1 --port="$port" "$1" ${3+"$3"}
	says last.err "$2"
}
refuses --tensor_modes=none=async "tensor_modes: none matches no tensor"
refuses '--tensor_modes=*=fast' '"*=fast": must be PATTERN=MODE, where MODE is sync, async or bounded'
refuses '--tensor_modes=*=sync,,' '"": must be PATTERN=MODE, where MODE is sync, async or bounded'
refuses --tensor_modes=sync '"sync": must be PATTERN=MODE'
refuses '--tensor_modes=*=async' "leave this out with sequential" --sequential
refuses '--tensor_modes=*=async' "exchange all tensors together" --local_steps=2
refuses '--tensor_modes=*=async' "needs dense_mode=bounded, sparse_mode=bounded or" --staleness=2

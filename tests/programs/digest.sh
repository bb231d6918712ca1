#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training ends with the same bits for any number of lanes and pservers, and as in one process. Slices
# are so small that every lane has at least three.
. "${0%/*}/lib.sh"
needs_training

port=$(free_ports)
settings="--slice_bytes=256 --num_passes=2 --seed=11"

for trainers in 2 3; do
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=$trainers $settings
	alone=$(digest_of last.out)
	[ -n "$alone" ] || fail "no digest of the sequential run"
	for pservers in 1 3; do
		for lanes in 1 2 5; do
			# shellcheck disable=SC2086
			expect 0 "$WEFT" launch --local --transport=tcp --port="$port" \
				--pservers=$pservers --ports_num=$lanes --trainers=$trainers \
				-- train mlp $settings
			[ "$(digest_of last.out)" = "$alone" ] ||
				fail "$trainers trainers, $pservers pservers, $lanes lanes: another digest than $alone"
			sparse=$(sed -n 's/.*: \([0-9]*\) of [0-9]* slices here.*/\1/p' last.err |
				awk '$1 < 3' | wc -l)
			told=$(grep -c ' slices here' last.err)
			[ "$sparse" -eq 0 ] && [ "$told" -eq $((pservers * lanes)) ] ||
				fail "a lane has fewer than three slices"
		done
	done
	# shellcheck disable=SC2086
	for slice_bytes in 256 65536; do # copied through the way, and published in place
		for transport in shm auto; do
			expect 0 "$WEFT" launch --local --transport=$transport --port="$port" \
				--pservers=3 --ports_num=1 --trainers=$trainers \
				-- train mlp $settings --slice_bytes=$slice_bytes
			[ "$(digest_of last.out)" = "$alone" ] ||
				fail "$transport, $trainers trainers, slices of $slice_bytes bytes: another digest than $alone"
			says last.err "is here over shm: same host"
			says_not last.err "over tcp"
		done
	done
done

# The same in 16 bits: rounded out of slabs of their own, whatever the path.
# shellcheck disable=SC2086
expect 0 "$WEFT" train mlp --sequential --num_gradient_servers=2 $settings --dense_wire=bf16
rounded=$(digest_of last.out)
[ -n "$rounded" ] || fail "no digest of the sequential run in bf16"
for transport in tcp shm; do
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --transport=$transport --port="$port" --pservers=2 \
		--trainers=2 -- train mlp $settings --dense_wire=bf16
	[ "$(digest_of last.out)" = "$rounded" ] || fail "bf16 over $transport: another digest than $rounded"
done

# Elastic averaging in 16 bits: no sequential run has it, but every job ends with the same bits.
first=
for lanes in "1 1" "2 3"; do
	# shellcheck disable=SC2086
	expect 0 "$WEFT" launch --local --port="$port" --pservers=${lanes% *} --ports_num=${lanes#* } \
		--trainers=2 -- train mlp $settings --dense_mode=elastic --local_steps=3 \
		--dense_wire=bf16 --dense_rounding=stochastic
	digest=$(digest_of last.out)
	[ -n "$digest" ] || fail "elastic, 16 bits: no digest"
	[ "$digest" = "${first:=$digest}" ] ||
		fail "elastic, 16 bits, $lanes pservers and lanes: another digest than $first"
done

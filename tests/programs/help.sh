#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Help is printed on stdout with code 0 if it is asked for, usage first; without a command it is
# short and on stderr.
. "${0%/*}/lib.sh"

for command in pserver train launch ckpt data demo doctor drill export gen import status top topo \
	version; do
	expect 0 "$WEFT" "$command" --help
	[ ! -s last.err ] || fail "$command --help wrote on stderr"
	head -n 1 last.out | grep -q "^Usage: weft $command" || fail "$command --help: no usage on top"
	cp last.out asked.out
	expect 0 "$WEFT" "$command" -h
	cmp -s last.out asked.out || fail "$command -h is not --help"
	expect 0 "$WEFT" help "$command"
	cmp -s last.out asked.out || fail "help $command is not $command --help"
	awk 'length > 80 { exit 1 }' last.out || fail "$command --help: a line above 80 columns"
	expect 0 "$WEFT" "$command" --help=json
	python3 -c 'import json, sys; json.load(sys.stdin)' <last.out || fail "$command --help=json: no JSON"
	[ ! -s last.err ] || fail "$command --help=json wrote on stderr"
	# A value may come from the file of --config where there is such an option.
	if grep -qF -e "  --config=FILE" asked.out; then
		says last.out ", and then in the file of --config;"
	else
		says_not last.out "the file of --config;"
	fi
done
for option in port ports_num ports_num_for_sparse num_gradient_servers listen pin once transport \
	slot_count max_shard_bytes reconnect_timeout peer_timeout stall_timeout connect_timeout spin stats_period log_level; do
	"$WEFT" pserver --help | grep -Eq -e "--(\[no-\])?$option" || fail "pserver --help: no $option"
done
for option in local pservers trainers port log_dir; do
	"$WEFT" launch --help | grep -Eq -e "--(\[no-\])?$option" || fail "launch --help: no $option"
done
"$WEFT" launch --help | tr '\n' ' ' | grep -q "help of weft pserver and of weft train lists their options" ||
	fail "launch --help: does not say where the options of its children are listed"
"$WEFT" demo --help | grep -q '^  mlp ' || fail "demo --help: does not list mlp"

expect 0 "$WEFT" help
cp last.out asked.out
for command in pserver train launch ckpt data demo doctor drill export gen import version help; do
	grep -q "^  $command " last.out || fail "help does not list $command"
done
expect 64 "$WEFT"
[ ! -s last.out ] || fail "without a command it wrote on stdout"
cmp -s last.err asked.out || fail "without a command: another text"

# Help is printed even if another argument is a mistake.
expect 0 "$WEFT" pserver --port=nonsense --help

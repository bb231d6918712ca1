#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --config: one file serves all processes of a job; the order of sources holds; mistakes are named
# by file and line; what --print_options prints can be used as a file.
. "${0%/*}/lib.sh"

port=$(free_ports)
cat >job.conf <<END
# A job of two pservers and two trainers.
ports_num = 2
num_gradient_servers = 2

[launch]
local = true
pservers = 2
trainers = 2
port = $port

[pserver train]
reconnect_timeout = 2s

[train]
num_passes = 3
batch_size = 0 # all
save_dir = "first try"    # quotes only where blanks at an end or # need them
END

# Where each value came from, from the source that wins to the one that loses.
expect 0 env WEFT_PORTS_NUM=3 WEFT_RECONNECT_TIMEOUT=4s "$WEFT" pserver --config=job.conf \
	--reconnect_timeout=5s --print_options
awk '/^ports_num = 3 +# WEFT_PORTS_NUM$/ { a = 1 }
	/^num_gradient_servers = 2 +# job.conf:3$/ { b = 1 }
	/^reconnect_timeout = 5s +# argument$/ { c = 1 }
	/^# peer_timeout = 10s +# default$/ { d = 1 }
	END { exit !(a && b && c && d) }' last.out || fail "other values, or from elsewhere"

# The output is a file that gives the same values, for every command.
cp last.out printed.conf
sed 's/ *#[^#]*$//' last.out >before.out
expect 0 "$WEFT" pserver --config=printed.conf --print_options
sed 's/ *#[^#]*$//' last.out >after.out
cmp -s before.out after.out || fail "pserver: the printed options are not the same when read"
for command in demo export topo; do
	expect 0 "$WEFT" "$command" --print_options
	cp last.out printed.conf
	expect 0 "$WEFT" "$command" --config=printed.conf --print_options
	grep -qx "\[$command\]" last.out || fail "$command prints no section of its own"
done
for command in self lat bw rate; do
	expect 0 "$RDMA_BENCH" "$command" --print_options
	cp last.out printed.conf
	expect 0 "$RDMA_BENCH" "$command" --config printed.conf --print_options
	grep -qx "\[$command\]" last.out || fail "rdma_bench $command prints no section of its own"
done

# Mistakes.
printf 'ports_num = 2\n[pserver]\nprot = 1\n' >wrong.conf
expect 64 "$WEFT" pserver --config=wrong.conf
says last.err "weft pserver: wrong.conf:3: unknown option prot; did you mean port?"
printf 'num_passes = 2\n' >wrong.conf
expect 64 "$WEFT" pserver --config=wrong.conf
says last.err "wrong.conf:1: unknown option num_passes" "under its [COMMAND]"
printf '[pserver]\nports_num = many\n' >wrong.conf
expect 64 env WEFT_CONFIG=wrong.conf "$WEFT" pserver
says last.err "wrong.conf:2: ports_num = many: must be a whole number, from 1 to 256"
expect 74 "$WEFT" pserver --config=missing.conf
says last.err "--config=missing.conf: No such file"
expect 74 env WEFT_CONFIG=missing.conf "$WEFT" pserver
says last.err "weft pserver: WEFT_CONFIG=missing.conf: No such file"
expect 64 "$WEFT" launch --confg=job.conf -- train linear
says last.err "did you mean --config"
expect 64 "$WEFT" pserver --config=trainer_config.py
says last.err "trainer_config.py: a model written in Python is the original's"
expect 0 "$WEFT" pserver --config=missing.conf --help
says last.out "--config=FILE" "--print_options"

needs_training
expect 64 "$WEFT" train linear --config=trainer_config.py
says last.err "trainer_config.py: a model written in Python is the original's"

# Launch, pservers and trainers read one file; what launch gives to them wins.
expect 0 "$WEFT" launch --config=job.conf --print_options -- train linear
[ "$(grep -c '^\[' last.out)" -eq 3 ] || fail "not the options of three commands"
expect 0 "$WEFT" train linear --sequential --num_gradient_servers=2 --num_passes=3
digest=$(digest_of last.out)
expect 0 "$WEFT" launch --config=job.conf -- train linear
says last.err "2 pservers with 2 lanes each" "num_passes=3 (job.conf:"
[ "$(digest_of last.out)" = "$digest" ] || fail "another digest than without a file"
[ "$(grep -c '^pass ' last.out)" -eq 3 ] || fail "not three passes"
[ -d "first try/pass-00002" ] || fail "nothing is saved in a folder whose name has a blank"
expect 0 env WEFT_CONFIG=job.conf "$WEFT" launch -- train linear --num_passes=1
[ "$(grep -c '^pass ' last.out)" -eq 1 ] || fail "an argument does not win over the file"

# A file that one of the children would refuse stops the job before it begins.
printf '[train]\nnum_pases = 3\n' >>job.conf
expect 64 "$WEFT" launch --config=job.conf -- train linear
says last.err "unknown option num_pases; did you mean num_passes?"
says_not last.err "pservers with"
sed -i '/num_pases/d; s/^trainers = 2/trainers = 3/' job.conf
expect 64 "$WEFT" launch --config=job.conf -- train linear
says last.err "both are the number of trainers"

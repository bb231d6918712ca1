#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of a running job in a real browser: elements and values, the keyboard, light and dark, a
# phone, a trainer that is stopped. Pictures go to $WEFT_PICTURES if that names a folder.
long=${WEFT_LONG-} # lib.sh forgets what the user has set
pictures=${WEFT_PICTURES-.}
. "${0%/*}/lib.sh"

if [ -z "$long" ]; then
	echo "SKIPPED: WEFT_LONG=1 runs it, in make check-all" >&2
	exit 77
fi
if ! command -v chromedriver >/dev/null || ! command -v chromium >/dev/null; then
	echo "SKIPPED: chromium and chromium-driver are not there" >&2
	exit 77
fi
if "$WEFT" version | grep -q 'with_status: OFF'; then
	echo "SKIPPED: built without libmicrohttpd" >&2
	exit 77
fi
needs_training

port=$(free_ports)
start pserver "$WEFT" pserver --port="$port" --ports_num=2 --ports_num_for_sparse=1 \
	--num_gradient_servers=2 --once --status=0 --snapshot_dir=snapshots --snapshot_period=2s
wait_for pserver.err 'the page of this pserver is http://127.0.0.1:'
page=$(sed -n 's/.*the page of this pserver is http:\/\/127.0.0.1:\([0-9]*\)\/.*/\1/p' pserver.err)
for trainer in 0 1; do
	start "trainer$trainer" "$WEFT" train ngram --port="$port" --ports_num=2 \
		--ports_num_for_sparse=1 --num_gradient_servers=2 --trainer_id=$trainer \
		--num_passes=1000
done
stopped=$last_pid
start chromedriver chromedriver --port=$((port + 10))
wait_for chromedriver.out 'started successfully'
python3 "${0%/*}/page.py" "$((port + 10))" "$page" "$stopped" "$pictures" \
	>last.out 2>last.err || fail "$(tail -n 1 last.err)"

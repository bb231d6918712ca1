#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests whether tests/guest/run does what its first lines say. Reports in the form of cmocka. Needs
# no devices. With WEFT_LONG three guests boot, side by side.
# shellcheck disable=SC2317 # the functions are called by name
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
children=
trap 'kill $children 2>/dev/null || true; wait; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
failed=0

fail() {
	echo "$*"
	return 1
}

says() {
	grep -qF -e "$2" "$1" || fail "'$2' is not in $1: $(tail -n 30 "$1")"
}

same() {
	[ "$2" = "$3" ] || fail "$1: '$2', not '$3'"
}

# guest NAME OPTION...: in the background; NAME.status when it is over
guest() {
	name=$1
	shift
	(
		status=0
		TMPDIR=$work "$here/run" -d none "$@" >"$name.out" 2>"$name.err" </dev/null || status=$?
		echo "$status" >"$name.status"
	) &
	children="$children $!"
}

# What the job wrote to its standard error; on a busy machine, `run` reports a second boot there too.
from_job() {
	grep -v -e '^guest: ' -e '^   | ' "$1"
}

exit_status_output_and_files_come_back() {
	same "exit status" "$(cat back.status)" 7 &&
		same "standard output" "$(cat back.out)" "to stdout" &&
		same "standard error" "$(from_job back.err)" "to stderr" &&
		same "the file" "$(cat back.d/kept/file)" "it's \"kept\"" &&
		says back.d/console "guest: ready"
}

what_hangs_is_ended_at_its_limit_and_shown() {
	same "exit status" "$(cat hang.status)" 124 &&
		same "output from before" "$(cat hang.out)" "before" &&
		says hang.err "guest: ended at its limit of 5 s: sh -c" &&
		says hang.err "sleep 12345"
}

a_guest_that_dies_is_shown() {
	same "exit status" "$(cat panic.status)" 70 &&
		says panic.err "guest: the guest ended without a word of its job" &&
		says panic.err "Kernel panic"
}

# The processes of this guest, except the one that looks.
running() {
	grep -la "[p]ath=$work/signal/" /proc/[0-9]*/cmdline 2>/dev/null | wc -l
}

# It need not come up: the processes that have to end are there when QEMU opens the console.
a_signal_ends_the_guest() {
	mkdir signal
	TMPDIR=$work/signal "$here/run" -d none sleep 12345 >signal.out 2>signal.err </dev/null &
	signalled=$!
	children="$children $signalled"
	until [ -f "$(echo signal/*/console)" ] || ! kill -0 "$signalled" 2>/dev/null; do
		sleep 0.1
	done
	[ "$(running)" -gt 0 ] || fail "no guest runs: $(cat signal.err)" || return
	kill "$signalled"
	status=0
	wait "$signalled" || status=$?
	same "exit status" "$status" 143 &&
		same "what is left" "$(ls "$work/signal")" "" &&
		same "processes that are left" "$(running)" 0
}

without_qemu_it_says_so() {
	mkdir bin
	cp -s /usr/bin/* /usr/sbin/* bin/ 2>/dev/null || true
	rm -f bin/qemu-system-x86_64
	status=0
	PATH=$work/bin "$here/run" true >without.out 2>without.err || status=$?
	same "exit status" "$status" 77 &&
		same "lines" "$(wc -l <without.err)" 1 &&
		says without.err "guest: qemu-system-x86_64 is missing"
}

# QEMU is a script here that hangs at the first boot, and whose job begins at the second one after
# 300 looks of the watcher. Its seconds pass at once.
a_slow_second_boot_is_waited_for() {
	mkdir slow
	printf '#!/bin/sh\necho >>"%s/looks"\n' "$work" >slow/sleep
	cat >slow/qemu-system-x86_64 <<-END
		#!/bin/sh
		job=\$(echo "\$*" | sed 's/.*local,path=\([^,]*\),mount_tag=job.*/\1/')
		: >"\${job%/job}/stdout"
		: >"\${job%/job}/stderr"
		! mkdir "$work/first" 2>/dev/null || exec /bin/sleep 600
		: >"$work/looks"
		until [ "\$(wc -l <"$work/looks")" -gt 300 ]; do
			/bin/sleep 0.01
		done
		: >"\$job/started"
		echo 7 >"\$job/status"
	END
	chmod +x slow/sleep slow/qemu-system-x86_64
	status=0
	PATH=$work/slow:$PATH "$here/run" true >slow.out 2>slow.err || status=$?
	same "exit status" "$status" 7 && says slow.err "it did not boot (QEMU's status"
}

check() {
	echo "[ RUN      ] $1"
	if "$1"; then
		echo "[       OK ] $1"
	else
		echo "[  FAILED  ] $1"
		failed=1
	fi
}

if ! "$here/prepare" >prepared 2>&1; then
	tail -n 1 prepared
	exit 77
fi
boot_all() {
	# shellcheck disable=SC2016 # for the guest's shell
	guest back -o back.d sh -c 'echo to stdout; echo to stderr >&2; mkdir "$GUEST_OUT/kept"
		echo "$1" >"$GUEST_OUT/kept/file"; exit 7' sh "it's \"kept\""
	guest hang -t 5 sh -c 'echo before; sleep 12345'
	guest panic sh -c 'echo c >/proc/sysrq-trigger'
}
[ -z "${WEFT_LONG-}" ] || boot_all
check without_qemu_it_says_so
check a_slow_second_boot_is_waited_for
check a_signal_ends_the_guest
wait
if [ -n "${WEFT_LONG-}" ]; then
	check exit_status_output_and_files_come_back
	check what_hangs_is_ended_at_its_limit_and_shown
	check a_guest_that_dies_is_shown
fi
children=
exit "$failed"

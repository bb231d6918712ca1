# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What .ci/check and .ci/check-all share. Sourced, with $top set.
#
# A stage builds in build-check/NAME and leaves build-check/results/NAME.json: meson's test log, or
# one line of the same form for what is not a meson test. summary.py adds them up.

check=${top:?}/build-check
results=$check/results
mkdir -p "$results"

# A version manager's python3 is a script that searches for the interpreter at each start, for half a
# second of processor time. The tests start hundreds.
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || python=
[ ! -x "$python" ] || export PATH="${python%/*}:$PATH"

# record STAGE NAME OK|FAIL|SKIP [TEXT]: a result of something that is not a meson test
record() {
	python3 -c 'import json, sys; print(json.dumps(dict(
		name=sys.argv[1], result=sys.argv[2], stdout=sys.argv[3])))' \
		"$2" "$3" "${4-}" >>"$results/$1.json"
}

# begin STAGE TEXT; end STAGE
begin() {
	rm -f "$results/$1.json"
	echo "== $1: $2"
	stage_start=$(date +%s)
}

end() {
	python3 "$top/.ci/summary.py" --stage "$1" $(($(date +%s) - stage_start)) \
		"$results/$1.json"
}

# build_stage STAGE [MESON_OPTION...]: false, with a failure on record, if it does not build. A
# build in the background is ended, because it has the lowest priority, and the rest is built here,
# so that failures appear here.
build_stage() {
	stage=$1
	shift
	if [ -n "$begun" ]; then
		end_begun
		wait "$begun" || true
		begun=
	fi
	if ! "$top/.ci/build" "$check/$stage" "$@" </dev/null; then
		record "$stage" "configure and build" FAIL "see above"
		return 1
	fi
	echo "   built in $(($(date +%s) - stage_start)) s"
}

# begin_build STAGE [MESON_OPTION...]: builds in the background, in time that nothing else uses.
# $begun is its process; timeout puts all of it into one group, so that it ends with the check.
begun=
begin_build() {
	stage=$1
	shift
	nice -n 19 timeout 3600 "$top/.ci/build" "$check/$stage" "$@" </dev/null >/dev/null 2>&1 &
	begun=$!
}

# Ends that build, unless it has ended and another process has its number.
end_begun() {
	[ "$(cat "/proc/${begun:-none}/comm" 2>/dev/null)" != timeout ] || kill "$begun" || true
}
trap end_begun EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# test_stage STAGE MULTIPLIER [SUITE...]: runs suites (all if none is named; -SUITE leaves one out),
# and collects the log. It runs twice as many at a time as there are cores, and one more, because
# tests wait for their own processes; the next build uses the time that they leave.
test_stage() {
	[ -z "$next_build" ] || "$next_build" begin_build
	stage=$1
	multiplier=$2
	shift 2
	logs=$check/$stage/meson-logs
	rm -f "$logs/testlog.json"
	suites=
	for suite in "$@"; do
		case $suite in
		-*) suites="$suites --no-suite weft:${suite#-}" ;;
		*) suites="$suites --suite weft:$suite" ;;
		esac
	done
	# shellcheck disable=SC2086 # suites and $wrapper are words
	$wrapper meson test -C "$check/$stage" --no-rebuild --timeout-multiplier "$multiplier" \
		--num-processes $((2 * $(nproc) + 1)) $suites >"$check/$stage/test.log" 2>&1 </dev/null || true
	if [ -s "$logs/testlog.json" ]; then
		cat "$logs/testlog.json" >>"$results/$stage.json"
	else
		record "$stage" "run tests" FAIL "$(tail -n 20 "$check/$stage/test.log")"
	fi
}

# guest_selftest STAGE: does tests/guest/run what it says; with WEFT_LONG guests boot for it
guest_selftest() {
	status=0
	said=$("$top/tests/guest/selftest.sh" 2>&1 </dev/null) || status=$?
	case $status in
	0) record "$1" "tests/guest/run" OK "$said" ;;
	77) record "$1" "tests/guest/run" SKIP "$said" ;;
	*) record "$1" "tests/guest/run" FAIL "$said" ;;
	esac
}

# guest_stage STAGE DIR SECONDS SUITE...: runs suites of the build in DIR that need the guest, in
# one boot
guest_stage() {
	guest_name=$1
	guest_dir=$2
	guest_limit=$3
	shift 3
	log=$check/$guest_name-suite
	rm -f "$log.json"
	"$top/tests/guest/suite.py" --limit "$guest_limit" --json "$log.json" "$guest_dir" "$@" \
		>"$log.log" 2>&1 </dev/null || true
	if [ -s "$log.json" ]; then
		cat "$log.json" >>"$results/$guest_name.json"
	else
		record "$guest_name" "run tests" FAIL "$(tail -n 20 "$log.log")"
	fi
}

wrapper=
export ASAN_OPTIONS="${ASAN_OPTIONS-detect_leaks=1:abort_on_error=0}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS-halt_on_error=1:print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS-halt_on_error=1:second_deadlock_stack=1}"

# ThreadSanitizer of gcc 12 crashes if the kernel randomises addresses over a wide range.
without_randomisation() {
	if setarch "$(uname -m)" -R true 2>/dev/null; then
		wrapper="setarch $(uname -m) -R"
	fi
}

# first_build STAGE...: prints the first function build_STAGE that exists; such a function calls its
# argument, build_stage or begin_build.
first_build() {
	for later_stage; do
		if command -v "build_$later_stage"; then
			break
		fi
	done
}

# run_stages DEFAULT... -- ASKED...: calls stage_NAME for each, then prints the total and exits with
# it
run_stages() {
	wanted=
	while [ "$1" != -- ]; do
		wanted="$wanted $1"
		shift
	done
	shift
	[ $# -eq 0 ] || wanted="$*"
	rm -f "$results"/*.json
	for wanted_stage in $wanted; do
		if ! command -v "stage_$wanted_stage" >/dev/null; then
			echo "check: there is no stage '$wanted_stage'" >&2
			exit 64
		fi
	done
	files=
	start=$(date +%s)
	# shellcheck disable=SC2086 # words
	set -- $wanted
	while [ $# -gt 0 ]; do
		wanted_stage=$1
		shift
		next_build=$(first_build "$@")
		"stage_$wanted_stage"
		files="$files $results/$wanted_stage.json"
	done
	echo "== all: $(($(date +%s) - start)) s"
	# shellcheck disable=SC2086
	python3 "$top/.ci/summary.py" $files
}

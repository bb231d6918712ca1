# SPDX-License-Identifier: Apache-2.0
# Functions that the scripts here share. $WEFT is the program, $STRANGER a program that connects
# without belonging to a job; both come from meson.build. Each script runs in a folder of its own,
# which is removed afterwards, and every process that the script started is ended.
set -eu
export LC_ALL=C # sorted by bytes; and a quarter of what grep, sed or sleep costs is another locale

: "${WEFT:?the program to test}"
# Settings and launchers of the user who runs the tests must not affect them.
for variable in $(env | sed -n -E 's/^((WEFT|PADDLE|TRAINING|OMPI|SLURM|VC|VK|PET)_[A-Za-z0-9_]*)=.*/\1/p
	s/^(RANK|WORLD_SIZE|MASTER_ADDR|JOB_COMPLETION_INDEX)=.*/\1/p'); do
	case $variable in
	WEFT_SEED | WEFT_DATA_DIR) ;;
	*) unset "$variable" ;;
	esac
done

work=$(mktemp -d)
started=""
port=""
claims=${TMPDIR:-/tmp}/weft_claim_
cd "$work"

clean_up() {
	for pid in $started; do
		kill -9 "$pid" 2>/dev/null || true
	done
	cd /
	rm -rf "$work"
	if [ -n "$port" ]; then
		rm -f "$claims$port"
	fi
}
trap clean_up EXIT
trap 'exit 1' INT TERM

fail() {
	echo "FAILED: $*" >&2
	for file in "$work"/*.out "$work"/*.err; do
		if [ -s "$file" ]; then
			echo "--- ${file##*/}" >&2
			tail -n 40 "$file" >&2
		fi
	done
	exit 1
}

# expect CODE command...: runs it, with its output in last.out and last.err, and checks its exit
# code.
expect() {
	wanted=$1
	shift
	got=0
	"$@" >last.out 2>last.err || got=$?
	[ "$got" -eq "$wanted" ] || fail "exit code $got, not $wanted, of: $*"
}

# says FILE TEXT...: checks that the file has each text (a fixed string).
says() {
	file=$1
	shift
	for text; do
		grep -qF -e "$text" "$file" || fail "'$text' is not in $file"
	done
}

says_not() {
	if grep -qF -e "$2" "$1"; then
		fail "'$2' is in $1"
	fi
}

# criteo_rows COUNT: generated rows in the layout of Criteo's logs. The label depends on one
# category and one count, so that something can be learned; figures say nothing about Criteo's data.
criteo_rows() {
	awk -v rows="$1" '
	function below(n) {
		state = state * 16807 % 2147483647
		return state % n
	}
	BEGIN {
		state = 20240
		for (row = 0; row < rows; row++) {
			kind = below(6)
			count = below(50)
			clicked = kind < 2 || count > 40 ? 1 : 0
			if (below(20) == 0) {
				clicked = 1 - clicked
			}
			line = clicked "\t" count
			for (i = 2; i <= 13; i++) {
				line = line "\t" (below(8) == 0 ? "" : below(1000) - 2)
			}
			line = line "\t" sprintf("%08x", 16777216 + kind)
			for (i = 2; i <= 26; i++) {
				line = line "\t" (below(10) == 0 ? "" : sprintf("%08x", below(300) * 7919))
			}
			print line
		}
	}'
}

# start NAME command...: runs it in the background; output in NAME.out and NAME.err, its process
# number in $last_pid.
start() {
	name=$1
	shift
	# Emptied here, because the background process might do so only after the next lines.
	: >"$name.out"
	: >"$name.err"
	"$@" >>"$name.out" 2>>"$name.err" </dev/null &
	last_pid=$!
	started="$started $last_pid"
}

# Whether the process lives and is not a zombie. Starts none, because waiting repeats it.
alive() {
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	case ${stat##*) } in Z*) return 1 ;; esac
}

# until_true SECONDS command...: repeats it until it succeeds; the seconds only bound a failure.
until_true() {
	tries=$(($1 * 20))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

has() {
	grep -qF -e "$2" "$1" 2>/dev/null
}

# wait_for FILE TEXT: waits until the file has the text.
wait_for() {
	until_true 60 has "$1" "$2" || fail "'$2' did not appear in $1"
}

ended() {
	! alive "$1"
}

# ends PID SECONDS NAME: waits until the process ends by itself; its exit code is in $code.
ends() {
	until_true "$2" ended "$1" || fail "$3 (pid $1) still runs after $2 seconds"
	code=0
	wait "$1" || code=$?
}

# claim BASE: claims the block for this script, unless another script that still runs has it; blocks
# of killed scripts are free. Called under the lock of free_ports.
claim() {
	holder=$(readlink "$claims$1") || holder=none
	[ ! -d "/proc/$holder" ] && rm -f "$claims$1" 2>/dev/null && ln -s "$$" "$claims$1" 2>/dev/null
}

# Prints the first port of a free block of 64, from 10000 to 25999; for $port. Scripts that run side
# by side begin to search at different places, and claim their blocks. The tests of Python use the
# ports from 26000 to 30991, .ci/check-install those from 31000 to 31999; the system gives out ports
# from 32768 on.
free_ports() (
	exec 9>"${claims}lock_$(id -u)"
	flock 9
	block=$(($$ % 250))
	while :; do
		base=$((10000 + block * 64))
		if cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v from="$base" '
			function hex(text, n, i) {
				n = 0
				for (i = 1; i <= length(text); i++)
					n = n * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
				return n
			}
			NR > 1 && split($2, at, ":") == 2 {
				port = hex(at[2])
				if (port >= from && port < from + 64) used = 1
			}
			END { exit used }' && claim "$base"; then
			echo "$base"
			exit
		fi
		block=$(((block + 1) % 250))
	done
)

# Training needs the second program, which needs OpenBLAS.
needs_training() {
	if ! "$WEFT" train --help >/dev/null 2>&1; then
		echo "SKIPPED: weft train is not there: built without OpenBLAS" >&2
		exit 77
	fi
}

# start_job PSERVERS TRAINERS MODEL [options of the trainers]: starts each as a process of its own,
# with ports from $port upwards; their process numbers are in $pserver_0.. and $trainer_0.., their
# lines in pserver_0.err etc. If set, $job_address is where the pservers listen, $job_pserver has
# options for them, and $job_host is a command put before that of each trainer.
start_job() {
	pservers=$1
	trainers=$2
	shift 2
	list=""
	i=0
	while [ "$i" -lt "$pservers" ]; do
		# shellcheck disable=SC2086
		start "pserver_$i" "$WEFT" pserver --port=$((port + i)) --once \
			${job_address:+--listen=$job_address} ${job_pserver-} \
			--num_gradient_servers="$trainers"
		eval "pserver_$i=$last_pid"
		list="${list:+$list,}${job_address:-127.0.0.1}:$((port + i))"
		i=$((i + 1))
	done
	i=0
	while [ "$i" -lt "$trainers" ]; do
		# shellcheck disable=SC2086
		start "trainer_$i" ${job_host-} "$WEFT" train "$@" --trainer_id="$i" \
			--num_gradient_servers="$trainers" --pservers="$list"
		eval "trainer_$i=$last_pid"
		i=$((i + 1))
	done
}

# hurt FILE OFFSET: changes the byte there, whatever it is.
hurt() {
	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	printf "\\$(printf %o $((255 - byte)))" |
		dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# digest_of FILE: prints the digest of the last pass.
digest_of() {
	sed -n 's/^pass .* digest \([0-9a-f]\{16\}\)$/\1/p' "$1" | tail -n 1
}

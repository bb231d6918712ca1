#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft launch on several hosts, where a script stands in for ssh: it starts the command in a session
# of its own, in the host's own folder, and joins it by pipes, as sshd does.
. "${0%/*}/lib.sh"

port=$(free_ports)
cat >ssh.sh <<'SH'
#!/bin/sh
# ssh.sh [-p PORT] HOST COMMAND
echo "$*" >>"$0.asked"
ssh_port=22
while [ "$1" = -p ]; do
	ssh_port=$2
	shift 2
done
folder=${0%/*}/host-$1-$ssh_port
shift
mkdir -p "$folder" && cd "$folder" || exit 1
setsid env -u TRAINER TMPDIR="${0%/*}/secrets" sh -c "$*" | cat
SH
chmod +x ssh.sh

# on_hosts.sh HOSTS [options]: weft launch on these hosts.
cat >on_hosts.sh <<SH
#!/bin/sh
hosts=\$1
shift
exec "$WEFT" launch --hosts="\$hosts" --ssh="$work/ssh.sh -p 7" --remote_weft="$WEFT" \
	--port="$port" "\$@"
SH
chmod +x on_hosts.sh

no_secret() {
	[ -z "$(ls secrets)" ]
}

job_pids() {
	sed -n 's/^[a-z]* [0-9]* | pid \([0-9]*\) on .*/\1/p' "$1"
}

# child_of PID: one of its processes, which leads its group.
child_of() {
	cat /proc/[0-9]*/stat 2>/dev/null | sed 's/([^()]*)//' |
		awk -v parent="$1" '$3 == parent { print $1; exit }'
}

all_gone() {
	for pid in $children; do
		! alive "$pid" || return 1
	done
}
mkdir secrets

# ---- a package, whatever the names in it, to two hosts with three slots ----
mkdir -p "package/a folder" third
printf '%s' "$TRAINER" >package/trainer
echo "quoted" >"package/a folder/it's \"odd\" \$HOME"
ln -s /etc package/link
cat >package/train.sh <<'SH'
#!/bin/sh
for piece in $(cat pieces 2>/dev/null); do
	yes "$(head -c 3000 /dev/zero | tr '\0' x)" | head -n 1000
	echo "$piece" >written
done
echo "arguments $# <$1> <$2> <$3>"
echo "in $PWD" >&2
stat -c '%a %s' "$WEFT_SECRET_FILE" >secret-"$WEFT_RANK"
cksum <"$WEFT_SECRET_FILE" >>secret-"$WEFT_RANK"
env | grep -E '^(WEFT|PADDLE_INIT)_[A-Z_]*=' >environment-"$WEFT_RANK"
printf 'step\nclose\n' |
	"$(cat trainer)" "$WEFT_PSERVERS" "$WEFT_TRAINER_ID" "$WEFT_NUM_GRADIENT_SERVERS" 3 >&2
SH
chmod 770 package/train.sh
mkdir package/log
echo old >package/log/old.log
echo 7 >package/nodefile
cat >third/before_hook.sh <<'SH'
function private_script()
{
	local l_thirdparty_dir=$1
	local l_workspace_dir=$2
	echo "the hook runs"
	cp $l_thirdparty_dir/lib.py $l_workspace_dir/
}
SH
echo "lib" >third/lib.py
printf '# two machines\n127.0.0.1 slots=2\n\n127.0.0.2   # the other\n' >machines
export WEFT_STEP_TIMEOUT=200
mkdir jobs
start package "$WEFT" launch --hostfile=machines --ssh="$work/ssh.sh" --ssh_port=7 \
	--remote_weft="$WEFT" --port="$port" --job_dispatch_package=package --job_root="$work/jobs" \
	--thirdparty=third --peer_timeout=50 -- ./train.sh "two words" "it's \$HOME" "*"
ends "$last_pid" 60 "weft launch"
[ "$code" -eq 0 ] || fail "exit code $code"
unset WEFT_STEP_TIMEOUT
[ "$(cat package.out)" = "arguments 3 <two words> <it's \$HOME> <*>" ] || fail "other arguments"
says package.err "127.0.0.1 | before_hook: the hook runs" "127.0.0.2 | before_hook: the hook runs" \
	"pserver 2 listens on 127.0.0.2:$port, on host 127.0.0.2" \
	"pserver 1 listens on 127.0.0.1:$((port + 1)), on host 127.0.0.1" \
	"trainer 1 | in $work/jobs/JOB" "on 127.0.0.2: weft pserver --peer_timeout=50 --listen=127.0.0.2"
[ "$(sort ssh.sh.asked)" = "-p 7 127.0.0.1 $WEFT _node
-p 7 127.0.0.2 $WEFT _node" ] || fail "more than a fixed command went to ssh: $(cat ssh.sh.asked)"
first=$(sed -n 's/^weft launch: 127.0.0.1: workspace //p' package.err)
second=$(sed -n 's/^weft launch: 127.0.0.2: workspace //p' package.err)
[ "$(cat "$first/nodefile")" = 0 ] && [ "$(cat "$second/nodefile")" = 1 ] || fail "no nodefile"
[ -d "$first/output" ] && [ ! -e "$second/output" ] || fail "output/ is for the first host alone"
for folder in "$first" "$second"; do
	[ "$(stat -c %a "$folder")" = 700 ] || fail "others can enter $folder"
	[ "$(stat -c %a "$folder/train.sh")" = 770 ] || fail "other permissions"
	[ ! -e "$folder/log/old.log" ] || fail "the log of another job"
	[ "$(readlink "$folder/link")" = /etc ] || fail "the link is no link any more"
	has "$folder/a folder/it's \"odd\" \$HOME" quoted || fail "a file is missing"
	[ -f "$folder/lib.py" ] || fail "the hook did nothing"
done
says "$first/log/server.log" "ports $port to $port"
says "$first/log/server-1.log" "ports $((port + 1)) to $((port + 1))"
says "$first/log/train.log" "arguments 3"
says "$first/log/train-1.log" "in $first"
says "$second/log/train.log" "in $second"
says "$second/environment-2" WEFT_TRAINER_ID=2 WEFT_STEP_TIMEOUT=200 WEFT_PEER_TIMEOUT=50s \
	"PADDLE_INIT_PSERVERS=127.0.0.1:$port,127.0.0.1:$((port + 1)),127.0.0.2:$port"

# ---- the secret: the same on all hosts, in a file that only its user can read, removed at the end
# ----
says "$first/secret-0" "400 32"
cmp -s "$first/secret-0" "$second/secret-2" || fail "two secrets"
no_secret || fail "a secret is left"
head -c 32 /dev/zero >given
chmod 400 given
: >zeros
head -c 32 /dev/zero | cksum >zeros
expect 0 ./on_hosts.sh 127.0.0.1 --secret_file=given --job_workspace="$first" -- ./train.sh 1 2 3
has "$first/secret-0" "$(cat zeros)" || fail "another secret than the one that was given"

# ---- results wait for their reader, and none is lost: more than the queues of launcher and agent hold,
# which the trainer has filled when it writes no more ----
slow_reader() {
	before=
	until [ -n "$before" ] && [ "$before" = "$(cat "$first/written")" ]; do
		before=$(cat "$first/written" 2>/dev/null) || before=
		sleep 0.7
	done
	echo "$before" >filled
	cksum
}
seq 24 >"$first/pieces"
./on_hosts.sh 127.0.0.1 --job_workspace="$first" -- ./train.sh 1 2 3 2>flood.err | slow_reader >flood.sum
[ "$( (yes "$(head -c 3000 /dev/zero | tr '\0' x)" | head -n 24000
	echo "arguments 3 <1> <2> <3>") | cksum)" = "$(cat flood.sum)" ] || fail "lines are lost"
[ "$(cat filled)" -lt 24 ] || echo "the queues were not filled" >&2
rm "$first/pieces"

# ---- a workspace that exists; two jobs cannot use the same ----
mkdir there
printf '#!/bin/sh\necho here; sleep 1000\n' >there/wait.sh
chmod +x there/wait.sh
expect 69 ./on_hosts.sh 127.0.0.1,127.0.0.2 --job_workspace="$work/there" -- ./wait.sh
says last.err "the workspace $work/there is in use"
expect 74 ./on_hosts.sh 127.0.0.1 --job_workspace=/nowhere -- ./wait.sh
says last.err "127.0.0.1: the workspace /nowhere: No such file"
expect 64 ./on_hosts.sh 127.0.0.1 --job_workspace="$work/there" -- ./no_such.sh
says last.err "127.0.0.1: ./no_such.sh: No such file"

# ---- a hook fails on one host, while that of another prints more than a link holds ----
mkdir hooks
cat >hooks/before_hook.sh <<'SH'
if [ "$(cat nodefile)" = 0 ]; then
	until [ -e "$HOOK_PRINTS" ]; do sleep 0.1; done
	exit 7
fi
for number in $(seq 400); do printf '%02000d\n' "$number"; done
: >"$HOOK_PRINTS"
sleep 1000
SH
HOOK_PRINTS=$work/prints
export HOOK_PRINTS
expect 74 ./on_hosts.sh 127.0.0.1,127.0.0.2 --job_dispatch_package=there --job_root="$work/jobs" \
	--thirdparty=hooks -- ./wait.sh
says last.err "127.0.0.1: before_hook ended with exit code 7"

# ---- the status and the line of the first failure; the others are stopped ----
printf '#!/bin/sh\n[ "$WEFT_RANK" = 0 ] || { echo why >&2; exit 65; }\nsleep 1000\n' >fail.sh
chmod +x fail.sh
start failing ./on_hosts.sh 127.0.0.1,127.0.0.2 -- "$work/fail.sh"
ends "$last_pid" 60 "weft launch"
[ "$code" -eq 65 ] || fail "exit code $code, not 65"
[ "$(tail -n 1 failing.err)" = "weft launch: trainer 1 ended with exit code 65: why" ] ||
	fail "the last line is not the first cause"
children=$(job_pids failing.err)
[ "$(echo "$children" | wc -w)" -eq 4 ] || fail "not four processes: $children"
until_true 30 all_gone || fail "a process is left"

# ---- a signal, the launcher's sudden death, and a lost connection end all processes on all hosts
# ----
for how in INT KILL ssh; do
	start "by_$how" ./on_hosts.sh 127.0.0.1,127.0.0.2 -- "$work/there/wait.sh"
	job=$last_pid
	wait_for "by_$how.out" here
	wait_for "by_$how.err" "trainer 1 | here"
	[ "$(ls secrets | wc -l)" -eq 2 ] || fail "not one secret for each host"
	children=$(job_pids "by_$how.err")
	[ "$(echo "$children" | wc -w)" -eq 4 ] || fail "not four processes: $children"
	case $how in
	ssh) kill -9 "-$(child_of "$job")" ;;
	*) kill -"$how" "$job" ;;
	esac
	ends "$job" 30 "weft launch"
	echo "$code" >>codes
	until_true 30 all_gone || fail "a process is left after $how"
	until_true 30 no_secret || fail "a secret is left after $how"
done

[ "$(tr '\n' ' ' <codes)" = "130 137 69 " ] || fail "exit codes $(cat codes)"
says by_ssh.err "the connection ended"

# ---- a program that is not an agent, and an agent of another version ----
refuses() {
	text=$1
	status=$2
	shift 2
	expect "$status" ./on_hosts.sh 127.0.0.1,127.0.0.2 "$@" -- true
	says last.err "$text"
	says_not last.err " | pid "
}
printf '#!/bin/sh\necho Welcome to this host\nexec "%s" _node\n' "$WEFT" >noisy.sh
printf '#!/bin/sh\nprintf "\\001\\0\\0\\0\\025\\0\\0\\0\\001\\0\\0\\0\\003\\0\\0\\0old\\0\\001\\0\\0\\0\\0\\0\\0\\0\\0"\nsleep 1\n' >old.sh
chmod +x noisy.sh old.sh
refuses "127.0.0.1: printed 'Welcome to this host' instead" 69 --remote_weft="$work/noisy.sh"
refuses "127.0.0.1 has weft old (messages of version 1), this is weft" 64 --remote_weft="$work/old.sh"
refuses "not found" 69 --remote_weft=/nowhere/weft

# An agent refuses anything that is not a request, and ends.
printf 'GET / HTTP/1.0\r\n\r\n' >request
expect 69 sh -c '"$0" _node <request | cat >answer; cat request | "$0" _node >answer' "$WEFT"
says last.err "a message has the unknown type 71"

# ---- ports ----
start busy "$WEFT" pserver --port="$port" --listen=127.0.0.2
wait_for busy.err "listens"
refuses "127.0.0.2: a port is needed on 127.0.0.2, and there is none free from $port to " 69
expect 0 ./on_hosts.sh 127.0.0.2 --port_range="$port-$((port + 3))" --job_workspace="$second" -- ./train.sh 1 2 3
says last.err "pserver 0 listens on 127.0.0.2:$((port + 1)), on host 127.0.0.2"

# ---- impossible options are refused before ssh is started ----
rm ssh.sh.asked
refuses "give one of --local, --hosts and --hostfile" 64 --local
refuses "give --job_dispatch_package" 64 --job_dispatch_package=package --job_workspace=there
refuses "--thirdparty needs a workspace" 64 --thirdparty=third
refuses "--job_dispatch_package=/nosuch: No such file or directory" 64 --job_dispatch_package=/nosuch
refuses "--job_dispatch_package=/dev/null: it is no folder" 64 --job_dispatch_package=/dev/null
refuses "--thirdparty=nosuch: No such file or directory" 64 --job_workspace=/tmp --thirdparty=nosuch
refuses "64 pservers of 17 ports each have 1088 ports, and a job on several hosts has 1024 at most" 64 \
	--pservers=64 --ports_num=17
refuses "--port_range=7: give two ports" 64 --port_range=7
refuses "because a shell reads it" 64 "--remote_weft=weft;id"
refuses "--listen=127.0.0.1: pservers on several hosts" 64 --listen=127.0.0.1
expect 64 "$WEFT" launch --local --job_workspace=there -- true
says last.err "--job_workspace is for a job on several hosts"
expect 64 "$WEFT" launch --hosts=a,,b -- true
says last.err "an entry is empty"
expect 64 "$WEFT" launch --hosts=-oProxyCommand=id -- true
says last.err "not a host name"
expect 64 "$WEFT" launch "--hosts=a;id@b" -- true
says last.err "the user's name before @"
[ ! -e ssh.sh.asked ] || fail "ssh was asked: $(cat ssh.sh.asked)"

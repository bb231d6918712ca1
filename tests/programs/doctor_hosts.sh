#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft doctor --hosts: two hosts, which are network namespaces with a switch between them, and a
# script that stands in for ssh. It finds a smaller MTU at one end, a smaller one of the switch that
# swallows packets, a port that is not let through, a port in use, and a host that is not there.
if [ "${WEFT_TEST_WITHIN-}" != doctor_hosts ]; then
	if ! unshare -nm --propagation private ip link add switch0 type bridge 2>/dev/null; then
		echo "SKIPPED: no network namespaces or no bridges here" >&2
		exit 77
	fi
	WEFT_TEST_WITHIN=doctor_hosts exec unshare -nm --propagation private sh "$0"
fi
. "${0%/*}/lib.sh"

mount -t tmpfs tmpfs /run
ip link set lo up
ip link add switch0 type bridge
ip link set switch0 up
for host in 1 2; do
	ip netns add "$host"
	ip link add "port$host" type veth peer name eth0 netns "$host"
	ip link set "port$host" master switch0 up
	ip -n "$host" link set lo up
	ip -n "$host" link set eth0 up
	ip -n "$host" address add "10.77.0.$host/24" dev eth0
done

cat >ssh.sh <<'SH'
#!/bin/sh
host=${1##*.}
shift
exec ip netns exec "$host" env TMPDIR="${0%/*}" setsid sh -c "$*"
SH
chmod +x ssh.sh

# doctor CODE [options]: the JSON in doctor.json.
doctor() {
	wanted=$1
	shift
	code=0
	"$WEFT" doctor --json --hosts=10.77.0.1,10.77.0.2 --ssh="$work/ssh.sh" --remote_weft="$WEFT" \
		--port=7164 --ports_num=2 "$@" >doctor.json 2>doctor.err || code=$?
	case $wanted:$code in
	"$code:$code" | 0:1) ;;
	*) fail "exit code $code, not $wanted: $(cat doctor.json doctor.err)" ;;
	esac
}

# is CHECK LEVEL HOST SUBJECT TEXT
is() {
	grep -F -e "{\"check\": \"$1\", \"level\": \"$2\", \"host\": \"$3\", \"subject\": \"$4\"" doctor.json |
		grep -qF -e "$5" || fail "$1 does not say of $3 $4 as $2: $5: $(grep -F "\"$1\"" doctor.json)"
}

mtu() {
	ip link set port1 mtu "$3"
	ip link set port2 mtu "$3"
	ip -n 1 link set eth0 mtu "$1"
	ip -n 2 link set eth0 mtu "$2"
}

mtu 1500 1500 1500
doctor 0
is hosts_connect ok 10.77.0.1 "" "ssh reaches it: weft "
is hosts_reach ok 10.77.0.1 10.77.0.2 "it reaches 2 ports of 10.77.0.2 from 10.77.0.2:7164 on"
is hosts_reach ok 10.77.0.2 10.77.0.1 "it reaches 2 ports of 10.77.0.1 from 10.77.0.1:7164 on"
is hosts_mtu ok 10.77.0.1 10.77.0.2 "packets to 10.77.0.2 have 1448 bytes of data, MTU 1500"
is hosts_clock ok 10.77.0.2 "" "its clock is "
is hosts_numerics ok 10.77.0.2 "" "the processor of 10.77.0.1"
is hosts_protection note "" "" "strangers are refused"
is calls ok 10.77.0.2 "" "memfd_create"

# One end has another MTU.
mtu 9000 1500 9000
doctor 1
is hosts_mtu finding 10.77.0.1 10.77.0.2 "its MTU is 9000, but packets to 10.77.0.2 have 1448 bytes"
is hosts_mtu ok 10.77.0.2 10.77.0.1 "MTU 1500"

# The switch has, and swallows what is larger.
mtu 9000 9000 1500
doctor 69
is hosts_mtu fails 10.77.0.1 10.77.0.2 "packets with 8948 bytes of data do not arrive at 10.77.0.2"
mtu 1500 1500 1500

# The second port is not let through, in one direction.
ip -n 1 rule add to 10.77.0.2 ipproto tcp dport 7165 prohibit
doctor 69
is hosts_reach fails 10.77.0.1 10.77.0.2 "it does not reach 10.77.0.2 at 10.77.0.2:7165: Permission denied"
is hosts_reach ok 10.77.0.2 10.77.0.1 "it reaches 2 ports"
ip -n 1 rule delete to 10.77.0.2 ipproto tcp dport 7165 prohibit

# A port is in use, and a host is not there.
start pserver ip netns exec 2 "$WEFT" pserver --listen=10.77.0.2 --port=7165
wait_for pserver.err "listens on"
doctor 69
is hosts_listen fails 10.77.0.2 "" "7165"
is hosts_reach ok 10.77.0.2 10.77.0.1 "it reaches 2 ports"
kill -9 "$last_pid"
ends "$last_pid" 30 pserver
doctor 69 --hosts=10.77.0.1,10.77.0.3
is hosts_connect fails 10.77.0.3 "" "10.77.0.3"
is calls ok 10.77.0.1 "" "memfd_create"
doctor 69 --remote_weft=/nowhere/weft
is hosts_connect fails 10.77.0.1 "" "/nowhere/weft"

expect 64 "$WEFT" doctor --hosts=a,,b
says last.err "an entry is empty"

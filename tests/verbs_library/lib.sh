# SPDX-License-Identifier: Apache-2.0
# What the scripts here share, beside tests/programs/lib.sh: a network and a /sys/class of their own,
# in which there is the RDMA device fake0, and what the library wrote down of it. $VERBS_LIBRARY is the
# folder of the library; it comes from meson.build.

# Again, in namespaces. Without root in a user namespace, where memory that may be locked is counted.
if [ -z "${INSIDE_NAMESPACES-}" ]; then
	: "${VERBS_LIBRARY:?the folder of libibverbs.so.1}"
	user=
	[ "$(id -u)" -eq 0 ] || user=-r
	if ! unshare -mn $user sh -c 'mount -t tmpfs none /sys/class && ip link add fake0 type veth peer name fake1' \
		>/dev/null 2>&1; then
		echo "SKIPPED: unshare gives no namespaces here, or the kernel no veth" >&2
		exit 77
	fi
	INSIDE_NAMESPACES=yes exec unshare -mn $user sh "$0" "$@"
fi
long=${WEFT_LONG-}
. "${0%/*}/../programs/lib.sh"
needs_training

address=10.9.0.1
both="over verbs: RDMA at both ends"
device=/sys/class/infiniband/fake0
books=$work/books

# As the kernel shows a device whose port is up.
add_device() {
	mkdir -p "$device/ports/1"
	echo "4: ACTIVE" >"$device/ports/1/state"
}

mount -t tmpfs none /sys/class
mkdir /sys/class/infiniband "$books"
add_device
ip link set lo up
ip link add fake0 type veth peer name fake1
ip link set fake1 up
ip link set fake0 up
ip address add $address/24 dev fake0
export WEFT_FAKE_RDMA="$books"
export LD_LIBRARY_PATH="$VERBS_LIBRARY"

# be KIND SEED: what is started from here on has a device like this; no seed: no faults.
be() {
	export WEFT_FAKE_RDMA_KIND="$1" WEFT_FAKE_RDMA_SEED="$2"
	rm -f "$books"/*
}

# books_are_closed PROCESSES WHAT: so many have ended, and left nothing behind.
books_are_closed() {
	[ "$(cat "$books"/books.* | grep -c ': nothing is left. ')" -eq "$1" ] ||
		fail "$2: not each of $1 processes left nothing behind: $(cat "$books"/books.*)"
	[ "$(cat "$books"/books.* | wc -l)" -eq "$1" ] || fail "$2: more processes than $1"
}

# in_one_process MODEL TRAINERS PSERVERS OPTIONS: sets $alone.
in_one_process() {
	# shellcheck disable=SC2086
	expect 0 "$WEFT" train "$1" --sequential --num_gradient_servers="$2" $4
	alone=$(digest_of last.out)
	[ -n "$alone" ] || fail "no digest of the sequential run of $1"
}

# job MODEL TRAINERS PSERVERS SPARSE_PORTS OPTIONS: all of it over verbs, with that digest.
job() {
	what="$1 over $WEFT_FAKE_RDMA_KIND, seed ${WEFT_FAKE_RDMA_SEED:-none}"
	rm -f "$books"/*
	# shellcheck disable=SC2086
	expect 0 timeout 120 "$WEFT" launch --local --transport=verbs --listen=$address \
		--port="$port" --pservers="$3" --trainers="$2" --ports_num_for_sparse="$4" -- \
		train "$1" $5
	[ "$(digest_of last.out)" = "$alone" ] || fail "$what: another digest than $alone"
	pairs=$((2 * $2 * $3 * ($4 + 1)))
	[ "$(grep -c "$both" last.err)" -eq "$pairs" ] ||
		fail "$what: not each of $pairs ends says that it runs over verbs"
	books_are_closed $(($2 + $3)) "$what"
}

# A host of its own has other numbers of its boot: what it would share memory by.
cat >"$work/other_host" <<-'END'
	cat /proc/sys/kernel/random/uuid >"$0.$$"
	mount --bind "$0.$$" /proc/sys/kernel/random/boot_id
	exec "$@"
END
other_host="unshare -m sh $work/other_host"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest is the machine that tests/guest/README.md describes.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

same "the host's name" "$(hostname)" guest
# shellcheck disable=SC3045 # Debian's sh has it
same "the locked memory" "$(ulimit -l)" unlimited
same "the loopback's address" "$(ip -brief address show lo | awk '{print $3}')" 127.0.0.1/8
same "CPUs of the nodes" "$(cat /sys/devices/system/node/node[01]/cpulist | tr '\n' ' ')" "0-1 2-3 "
same "nodes" "$(numactl --hardware | head -n 1)" "available: 2 nodes (0-1)"
same "memory is bound where asked" "$(numactl -m 1 numactl --show | grep '^membind')" "membind: 1 "
for folder in /tmp /var/tmp /dev/shm; do
	same "the file system of $folder" "$(stat -f -c %T "$folder")" tmpfs
done
same "huge pages" "$(cat /sys/devices/system/node/node[01]/hugepages/hugepages-2048kB/nr_hugepages |
	tr '\n' ' ')" "32 32 "
grep -qw avx2 /proc/cpuinfo || fail "there is no AVX2"
: >/usr/weft_was_here || fail "the overlay cannot be written"
for program in weft rdma_bench; do
	"$program" --help >/dev/null || fail "$program of the build cannot be called by its name"
done

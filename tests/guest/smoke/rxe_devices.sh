#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Soft RoCE: the devices, their state, GIDs of both address families, and access for everybody.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

for number in 0 1 2 3 4; do
	device=rxe$number
	ibv_devices | grep -qw "$device" || fail "ibv_devices does not list $device"
	ibv_devinfo -d "$device" >info.log || fail "ibv_devinfo $device: status $?"
	grep -q 'PORT_ACTIVE' info.log || fail "$device is not active"
	mtu=$(sed -n 's/.*active_mtu:[^0-9]*\([0-9]*\).*/\1/p' info.log)
	same "the active MTU of $device" "$mtu" 4096
	gids=/sys/class/infiniband/$device/ports/1/gids
	same "GID 1 of $device" "$(cat "$gids/1")" "0000:0000:0000:0000:0000:ffff:0a09:0${number}01"
	same "GID 2 of $device" "$(cat "$gids/2")" "fd09:0000:0000:0000:0000:0000:000${number}:0001"
done
same "the mode of rdma_cm" "$(stat -c %a /dev/infiniband/rdma_cm)" 666
same "the mode of uverbs0" "$(stat -c %a /dev/infiniband/uverbs0)" 666

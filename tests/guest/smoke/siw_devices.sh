#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Soft iWARP: the devices and their state.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
needs_siw

ip netns exec far true || fail "there is no namespace far"
for device in siw0 siw1 siw2; do
	ibv_devices | grep -qw "$device" || fail "ibv_devices does not list $device"
	ibv_devinfo -d "$device" >info.log || fail "ibv_devinfo $device: status $?"
	grep -q 'transport:.*iWARP' info.log || fail "$device is no iWARP device"
	grep -q 'PORT_ACTIVE' info.log || fail "$device is not active"
done

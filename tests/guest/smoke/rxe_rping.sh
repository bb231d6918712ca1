#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Connections through the connection manager over soft RoCE: both ends on one device, and over the
# veth pairs, where the device's counters show that packets really left it.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

rping_between 10.9.0.1 10.9.0.1
for network in "10.9.2.1 10.9.1.1" "fd09::2:1 fd09::1:1"; do
	before=$(sent rxe1)
	rping_between "${network% *}" "${network#* }"
	[ "$(sent rxe1)" -gt "$before" ] || fail "nothing was sent through rxe1 for ${network#* }"
done
before=$(sent rxe3)
rping_between 10.9.4.1 10.9.3.1
[ "$(sent rxe3)" -gt "$before" ] || fail "nothing was sent through rxe3"

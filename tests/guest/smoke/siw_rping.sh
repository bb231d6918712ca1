#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Connections over soft iWARP: both ends on one device, and from one network namespace to another.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
needs_siw

rping_between 10.8.0.1 10.8.0.1
rping_between 10.8.2.1 10.8.1.1 ip netns exec far
rping_between fd08::2:1 fd08::1:1 ip netns exec far

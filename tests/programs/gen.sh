#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft gen: manifests have only fields that their kinds have, scripts and manifests pass every
# argument unchanged, and weft finds its place by what an engine makes of them.
. "${0%/*}/lib.sh"

if ! python3 -c 'import yaml' 2>/dev/null; then
	echo "SKIPPED: python3-yaml is not there" >&2
	exit 77
fi
needs_training
port=$(free_ports)
python3 "${0%/*}/gen.py" "$port" >last.out 2>last.err || fail "$(tail -n 1 last.err)"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent that weft launch starts on other hosts ends, with all that it has started, and leaves no
# secret, if its launcher, its disk or one of its processes hangs or is gone.
. "${0%/*}/lib.sh"

if ! python3 "${0%/*}/launch_agent.py" >last.out 2>last.err; then
	fail "$(tail -n 1 last.err)"
fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh MODULE PACKAGE SCRIPT...
# Run the script with the first Python that has the module; skip where none has it. A library that
# was built with a sanitizer cannot be loaded into a Python that was not.
set -eu
module=$1
package=$2
shift 2
if [ "${SANITIZER-none}" != none ]; then
	echo "SKIPPED: libweft.so with sanitizer $SANITIZER does not load into Python" >&2
	exit 77
fi
for python in python3 /usr/bin/python3; do
	if command -v "$python" >/dev/null && "$python" -c "import $module" 2>/dev/null; then
		exec "$python" "$@"
	fi
done
echo "SKIPPED: no Python has $module: apt-get install $package" >&2
exit 77

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh MODULE PACKAGE SCRIPT...
# Run the script with the first Python that has the modules (MODULE: names with commas); skip where
# none has them. They are looked for and not imported, which takes PyTorch seconds. A library that was
# built with a sanitizer cannot be loaded into a Python that was not.
set -eu
module=$1
package=$2
shift 2
if [ "${SANITIZER-none}" != none ]; then
	echo "SKIPPED: libweft.so with sanitizer $SANITIZER does not load into Python" >&2
	exit 77
fi
has='import importlib.util, sys
sys.exit(not all(importlib.util.find_spec(name) for name in sys.argv[1].split(", ")))'
for python in python3 /usr/bin/python3; do
	if command -v "$python" >/dev/null && "$python" -c "$has" "$module"; then
		exec "$python" "$@"
	fi
done
echo "SKIPPED: no Python has $module: apt-get install $package" >&2
exit 77

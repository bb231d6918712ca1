#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pages about porting and clusters: their commands print what the pages show. The table of flags
# is that of the program.
. "${0%/*}/lib.sh"

needs_training
pages=${0%/*}/../../docs
mkdir bin
for one in python3 /usr/bin/python3; do # the first that has NumPy, for blocks with a program of Python
	if "$one" -c 'import numpy' 2>/dev/null; then
		ln -s "$(command -v "$one")" bin/python3
		break
	fi
done
PATH=${WEFT%/*}:$work/bin:$PATH
PYTHONPATH=${0%/*}/../../bindings/python
WEFT_LIBRARY=${WEFT%/*}/../trainer/libweft.so.0
cat >ssh.sh <<'SH'
#!/bin/sh
# Stands in for ssh: [-p PORT] HOST COMMAND, in a session of its own.
while [ "$1" = -p ]; do shift 2; done
shift
setsid sh -c "$*" | cat
SH
chmod +x ssh.sh
WEFT_SSH=$work/ssh.sh
DATA=${0%/*}/../../data
export PATH PYTHONPATH WEFT_LIBRARY WEFT_SSH DATA
port=$(free_ports)
python3 "${0%/*}/porting.py" "$port" "$pages/porting.md" "$pages/porting-documents.md" \
	"$pages/clusters.md" "$pages/../README.md" >last.out 2>last.err || fail "$(head -n 1 last.err)"
python3 "${0%/*}/porting_flags.py" "$pages/porting-flags.md" >last.out 2>last.err ||
	fail "$(tail -n 1 last.err)"

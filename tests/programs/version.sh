#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft version: the original's form, which scripts read: a first line with name, version and
# "compiled with", then rows of four spaces, key, colon, ON or OFF.
. "${0%/*}/lib.sh"

expect 0 "$WEFT" version
head -n 1 last.out | grep -Eq '^weft [0-9]+\.[0-9]+\.[0-9]+, compiled with$' ||
	fail "first line: $(head -n 1 last.out)"
for key in with_avx with_gpu with_double with_python with_rdma with_timer with_openblas with_hwloc; do
	grep -Eq "^    $key: (ON|OFF)\$" last.out || fail "no row for $key"
done
grep -Eq '^    transports: .*tcp' last.out || fail "no row for transports"
grep -Eq '^    kernels: (ref|avx2|avx512)$' last.out || fail "no row for kernels"
if tail -n +2 last.out | grep -vEq '^    [a-z_]+: [^ ]'; then
	fail "a row of another form"
fi
[ ! -s last.err ] || fail "it wrote on stderr"
expect 0 "$WEFT" --version
grep -q 'compiled with' last.out || fail "--version is not version"
expect 64 "$WEFT" version extra
says last.err 'weft version: unexpected argument "extra"'

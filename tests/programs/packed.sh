#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packed files, made by Python's zlib and by weft data, some of them damaged. What gzip and zstd
# accept is read (several members and frames, empty ones, skippable frames); what is damaged,
# truncated or followed by other bytes is refused with file, offset and reason, and so are chunks of
# RecordIO with a false header.
. "${0%/*}/lib.sh"
if ! command -v python3 >/dev/null 2>&1; then
	echo "SKIPPED: python3 is not there" >&2
	exit 77
fi
cd - >/dev/null
PYTHONPATH=$(cd "${0%/*}/../support" && pwd)
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
cd "$work"

mkdir good bad z
seq 1 5000 >text
head -n 2000 text >first
tail -n +2001 text >rest
for part in text first rest; do
	expect 0 "$WEFT" data convert $part z/$part --to=text --compressor=zstd
	mv z/$part-00000-of-00001 z/$part
done
python3 - >expected <<'EOF' || fail "the files cannot be made"
import gzip, recordio as r, struct

def flip(data, at, bits=1):
    data = bytearray(data)
    data[at] ^= bits
    return bytes(data)

text, first, rest = (open(name, "rb").read() for name in ("text", "first", "rest"))
gz = gzip.compress(text, mtime=0)
one, two = gzip.compress(first, mtime=0), gzip.compress(rest, mtime=0)
z, z1, z2 = (open("z/" + name, "rb").read() for name in ("text", "first", "rest"))
skip = struct.pack("<II", 0x184D2A53, 5) + b"12345"
good = {
    "gz": gz, "gz-two": one + two, "gz-empty": one + gzip.compress(b"") + two,
    "zst": z, "zst-two": z1 + z2, "zst-skip": skip + z1 + skip + z2 + skip,
}
cpp = r.chunk([b"a"], r.NONE, cpp_order=True)
chunk = r.chunk([b"one", b"two"], r.NONE)
gone = "the file ends after %d of its %d bytes: it is truncated"
bad = {  # the file, and what is said behind its name
    "gz-crc": (flip(gz, -8), "offset %d of %d: the gzip data are damaged (incorrect data check)" % (len(gz) - 4, len(gz))),
    "gz-length": (flip(gz, -1), "the gzip data are damaged (incorrect length check)"),
    "gz-second-crc": (one + flip(two, -8), "the gzip data are damaged (incorrect data check)"),
    "gz-cut": (gz[:-1], "offset %d of %d: the gzip data end too early" % (2 * (len(gz) - 1,))),
    "gz-no-trailer": (gz[:-8], "the gzip data end too early: the file is truncated"),
    "gz-second-cut": (one + two[:15], "the gzip data end too early: the file is truncated"),
    "gz-more": (gz + b"more", "offset %d of %d: the gzip data are over, but more bytes follow" % (len(gz), len(gz) + 4)),
    "gz-half-magic": (gz + b"\x1f", "the gzip data are over, but more bytes follow"),
    "gz-method": (flip(gz, 2), "the gzip data are damaged (unknown compression method)"),
    "zst-more": (z + b"more", "offset %d of %d: the zstd data are over, but more bytes follow" % (len(z), len(z) + 4)),
    "zst-cut": (z[:-1], "offset %d of %d: the zstd data end too early" % (2 * (len(z) - 1,))),
    "zst-second-cut": (z1 + z2[:9], "the zstd data end too early: the file is truncated"),
    "zst-skip-cut": (z + skip[:-1], "the zstd data end too early: the file is truncated"),
    "zst-sum": (flip(z, -1), "the zstd data are damaged (Restored data doesn't match checksum)"),
    "rec-crc": (chunk + flip(chunk, 4), "the chunk at byte %d: its checksum is wrong" % len(chunk)),
    "rec-data": (flip(chunk, -1), "the chunk at byte 0: its checksum is wrong"),
    "rec-short": (struct.pack("<5I", *struct.unpack("<5I", chunk[:20])) + chunk[20:-3], "the chunk at byte 0: " + gone % (11, 14)),
    "rec-long": (flip(chunk, 12, 16), "the chunk at byte 0: " + gone % (14, 30)),
    "rec-huge": (flip(chunk, 15, 128), "the chunk at byte 0: has %d bytes, if its header is right" % (14 + (1 << 31))),
    "rec-many": (flip(chunk, 19, 255), "the chunk at byte 0: has 2 of the %d records" % (2 + (255 << 24))),
    "rec-none": (flip(chunk, 16, 2), "the chunk at byte 0: has 14 bytes behind the last of its 0 records"),
    "rec-cpp-many": (flip(cpp, 7, 255), "the chunk at byte 0: has 1 of the %d records" % (1 + (255 << 24))),
    "rec-compressor": (flip(chunk, 8, 8), "the chunk at byte 0: has the compressor 8"),
    "rec-more": (chunk + b"more", "the chunk at byte %d: the file ends within its header" % len(chunk)),
    "rec-other": (chunk + bytes(20), "the chunk at byte %d: begins with 0x00000000" % len(chunk)),
}
for name, data in good.items():
    open("good/" + name, "wb").write(data)
for name, (data, why) in bad.items():
    open("bad/" + name, "wb").write(data)
    print("%s\t%s" % (name, why))
# A chunk without records is valid, and is skipped.
open("good-empty", "wb").write(r.chunk([], r.NONE, stored=b"") + chunk)
EOF

for file in good/*; do
	expect 0 "$WEFT" data cat "$file"
	cmp -s last.out text || fail "$file is not the text that was packed"
done
expect 0 "$WEFT" data verify good
says last.out "6 files, 30000 records, 0 findings"
expect 0 "$WEFT" data cat good-empty
[ "$(tr '\n' ' ' <last.out)" = "one two " ] || fail "an empty chunk hides what follows it"

[ "$(wc -l <expected)" -ge 25 ] || fail "not all files were made"
expect 65 "$WEFT" data verify bad
mv last.out verified
# refuses FILE NAME WHY: a line of FILE names the packed file, the place in it, and the reason
refuses() {
	grep -E "bad/$2: (offset [0-9]+ of [0-9]+|the chunk at byte [0-9]+): " "$1" | grep -qF -e "$3" ||
		fail "$1 does not say '$3' of $2"
}
while IFS='	' read -r name why; do
	refuses verified "$name" "$why"
	expect 65 "$WEFT" data cat "bad/$name"
	refuses last.err "$name" "$why"
done <expected

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weft data reads files of another program, which reads those of weft data; text, gzip, zstd and
# RecordIO are converted into each other without losing a byte; sets are cut, listed and verified;
# no file is overwritten, and none is left behind unfinished.
. "${0%/*}/lib.sh"
if ! command -v python3 >/dev/null 2>&1; then
	echo "SKIPPED: python3 is not there" >&2
	exit 77
fi
cd - >/dev/null
PYTHONPATH=$(cd "${0%/*}/../support" && pwd)
housing=$(cd "${0%/*}/../../data" && pwd)/housing.csv
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1
cd "$work"

# python: the program on stdin has `r`, the other reader and writer
python() {
	{
		echo "import recordio as r, gzip, glob, os, struct, sys"
		cat
	} >script.py
	python3 script.py "$@" >script.out 2>script.err || fail "another program: $(tail -n 1 script.err)"
}

nothing_hidden() {
	[ -z "$(find . -name '.*tmp*')" ] || fail "left behind: $(find . -name '.*tmp*')"
}

mkdir in back parts # out is made by convert
python <<'EOF'
lines = [b"line %d %s" % (i, b"x" * (i * i % 400)) for i in range(1000)]
lines[7] = b""
lines[8] = b"carriage return\r"
open("in/a.txt", "wb").write(b"\n".join(lines[:600]) + b"\n")
open("in/b.txt", "wb").write(b"\n".join(lines[600:]))  # no line feed at its end
with gzip.open("in/a.gz", "wb") as out:
    out.write(open("in/a.txt", "rb").read())
for name, code in r.COMPRESSORS.items():
    r.write("in/" + name, lines[:600], code, 100)
r.write("in/cpp", lines[:600], r.SNAPPY, 100, cpp_order=True)
EOF

# Every form into every other.
for from in a.txt a.gz none snappy gzip cpp; do
	expect 0 "$WEFT" data cat "in/$from"
	cmp -s last.out in/a.txt || fail "cat of $from is not the text"
	for compressor in none snappy gzip; do
		expect 0 "$WEFT" data convert "in/$from" out/x --force --compressor=$compressor
		says last.out "1 file, 600 records: out/x-00000-of-00001"
		python "$compressor" <<'EOF'
chunks = list(r.read_chunks("out/x-00000-of-00001"))
assert {code for code, _ in chunks} == {r.COMPRESSORS[sys.argv[1]]}
lines = open("in/a.txt", "rb").read().split(b"\n")[:-1]
assert [record for _, records in chunks for record in records] == lines
EOF
	done
	for compressor in none gzip zstd; do
		expect 0 "$WEFT" data convert "in/$from" out/x --to=text --force --compressor=$compressor
		expect 0 "$WEFT" data cat out/x-00000-of-00001
		cmp -s last.out in/a.txt || fail "$from as text with $compressor is another one"
	done
done
expect 0 "$WEFT" data convert in/a.gz in/snappy out/two --to=text --compressor=gzip
gzip -dc out/two-00000-of-00002 | cmp -s - in/a.txt || fail "gzip reads otherwise"
gzip -dc out/two-00001-of-00002 | cmp -s - in/a.txt || fail "gzip reads the second otherwise"
expect 0 "$WEFT" data cat in/a.txt --skip=598 --count=3
[ "$(wc -l <last.out)" = 2 ] || fail "skip and count"
expect 0 "$WEFT" data cat in/a.txt in/b.txt --skip=599 --count=2
printf '%s\n' "$(sed -n '600p' in/a.txt)" "$(sed -n '1p' in/b.txt)" | cmp -s - last.out || fail "skip over files"

# A cut set has each record once, in order, in as many files as requested.
expect 0 "$WEFT" data split in/a.txt in/b.txt --files=7 parts/p
says last.out "7 files, 1000 records: parts/p-00000-of-00007"
[ "$(find parts -type f | wc -l)" = 7 ] || fail "seven files"
cat parts/p-0000?-of-00007 >joined
{ cat in/a.txt in/b.txt && echo; } | cmp -s - joined || fail "the parts are not the whole"
[ "$(wc -l <parts/p-00005-of-00007)" = 143 ] && [ "$(wc -l <parts/p-00006-of-00007)" = 142 ] ||
	fail "the parts are not even"
expect 0 "$WEFT" data split in/none --lines=250 --to=recordio parts/q
[ "$(find parts -name 'q-*' | wc -l)" = 3 ] || fail "files of 250 records"
python <<'EOF'
parts = [r.read(path) for path in sorted(glob.glob("parts/q-*-of-00003"))]
assert [len(part) for part in parts] == [250, 250, 100]
assert sum(parts, []) == r.read("in/none")
assert next(r.read_chunks("parts/q-00000-of-00003"))[0] == r.NONE
EOF
for seed in 1 1 2; do
	rm -rf shuffled && mkdir shuffled
	expect 0 "$WEFT" data split in/a.txt --files=2 --shuffle_window=20000 --seed=$seed shuffled/s
	cat shuffled/s-* >"order.$seed.new"
	[ ! -e "order.$seed" ] || cmp -s "order.$seed" "order.$seed.new" || fail "a seed gives two orders"
	mv "order.$seed.new" "order.$seed"
	sort "order.$seed" >sorted
	sort in/a.txt | cmp -s - sorted || fail "shuffling loses lines"
done
! cmp -s order.1 order.2 || fail "two seeds give one order"
! cmp -s order.1 in/a.txt || fail "nothing is shuffled"
# A window of 20,000 bytes moves no line further than that.
python <<'EOF'
before = {line: i for i, line in enumerate(open("in/a.txt", "rb"))}
far = max(abs(before[line] - i) for i, line in enumerate(open("order.1", "rb")))
assert 20 < far < 600, far
EOF

# A header is in every part, and is not counted as a record.
printf 'x,y\n1,2\n3,4\n' >in/h1.csv
printf 'x,y\n5,6\n' >in/h2.csv
printf 'y,x\n5,6\n' >in/h3.csv
expect 0 "$WEFT" data split in/h1.csv in/h2.csv --header --lines=2 parts/h
says last.out "2 files, 3 records"
printf 'x,y\n1,2\n3,4\n' | cmp -s - parts/h-00000-of-00002 || fail "first part with header"
printf 'x,y\n5,6\n' | cmp -s - parts/h-00001-of-00002 || fail "second part with header"
expect 65 "$WEFT" data split in/h1.csv in/h3.csv --header --lines=2 parts/i
says last.err "in/h3.csv: its first line is another header than that of in/h1.csv"

# Listed, with whose they are.
expect 0 "$WEFT" data ls parts/p-*
grep -Eq '^ +143 +[0-9]+ +[0-9]+ text +none +parts/p-00000-of-00007$' last.out || fail "ls of text"
expect 0 "$WEFT" data ls in/cpp in/a.gz --trainers=2
grep -Eq '^ +600 +[0-9]+ +[0-9]+ recordio snappy +1 in/cpp$' last.out || fail "ls of RecordIO"
grep -Eq '^ +600 +[0-9]+ +[0-9]+ text +gzip +0 in/a.gz$' last.out || fail "ls of gzip"
python <<'EOF'
text = os.path.getsize("in/a.txt")
for line in open("last.out"):
    if line.endswith("in/a.gz\n"):
        assert line.split()[1:3] == [str(os.path.getsize("in/a.gz")), str(text)], line
EOF
expect 0 "$WEFT" data ls parts/p-00006-of-00007 parts/p-00003-of-00007 --trainers=4
grep -q ' 2 parts/p-00006' last.out && grep -q ' 3 parts/p-00003' last.out || fail "number modulo trainers"

# verify accepts whole sets, and the original's own names, and reports each defect and what follows
# it.
expect 0 "$WEFT" data verify parts/p-*
says last.out "7 files, 1000 records, 0 findings"
mkdir ten
for i in 0 1 2 3 4 5 6 7 8 9; do cp in/h1.csv "ten/t-0000$i-of-00009"; done
expect 0 "$WEFT" data verify ten
rm ten/t-00004-of-00009
expect 65 "$WEFT" data verify ten/t-*
says last.out "ten/t-00004-of-00009: is missing" "9 files, 27 records, 1 finding"
rm ten/t-00000-of-00009 ten/t-00007-of-00009 ten/t-00006-of-00009
expect 65 "$WEFT" data verify ten
says last.out "ten/t-00000-of-00009: is missing" "ten/t-00004-of-00009: is missing" \
	"ten/t-00006-of-00009 to -00007-of-00009: 2 files are missing" "6 files, 18 records, 3 findings"
mkdir hurt
python <<'EOF'
records = [b"record %d" % i for i in range(40)]
chunks = [bytearray(r.chunk(records[i : i + 10], r.SNAPPY)) for i in range(0, 40, 10)]
chunks[1][30] ^= 1
chunks[3] = chunks[3][:-5]
open("hurt/one", "wb").write(b"".join(chunks))
data = bytearray(open("in/a.gz", "rb").read())
open("hurt/three.gz", "wb").write(data[:-9])
EOF
cp in/a.txt hurt/two
expect 65 "$WEFT" data verify hurt
says last.out "hurt/one: the chunk at byte " "its checksum is wrong" "it is truncated" "hurt/three.gz: " \
	"3 files, 620 records, 3 findings"
expect 65 "$WEFT" data cat hurt/one
says last.err "weft data cat: hurt/one: the chunk at byte "
[ "$(wc -l <last.out)" = 10 ] || fail "a damaged chunk was delivered, or the one before was not"
# None of the files that were written before the damage stays.
expect 65 "$WEFT" data convert in/a.txt hurt/one out/never
[ -z "$(find out -name 'never*')" ] || fail "half a set stayed"
nothing_hidden

# Never overwritten.
cp parts/p-00003-of-00007 kept
expect 74 "$WEFT" data split in/a.txt --files=7 parts/p
says last.err "parts/p-00000-of-00007: exists; --force replaces it"
cmp -s kept parts/p-00003-of-00007 || fail "a file was overwritten"
expect 0 "$WEFT" data split in/a.txt --files=7 parts/p --force
! cmp -s kept parts/p-00003-of-00007 || fail "--force replaced nothing"
# A set with another number of files would be read beside the new one, so it is removed. Files of
# other names and shapes stay.
expect 74 "$WEFT" data split in/a.txt --files=3 parts/p
says last.err "-of-00007: exists; --force replaces it"
for name in q-00000-of-00007 pp-00000-of-00007 p-00000-of-00007.gz p-0000-of-00007 p-0000x-of-00007; do
	echo kept >"parts/$name"
done
expect 0 "$WEFT" data split in/a.txt --files=3 parts/p --force
[ "$(ls parts | grep -c '^p-[0-9]*-of-[0-9]*$')" = 4 ] || fail "a file of the old set is left: $(ls parts)"
[ "$(grep -l kept parts/* | wc -l)" = 5 ] || fail "a file of another name is gone"
ln -s /nowhere parts/p-00000-of-00009
expect 74 "$WEFT" data split in/a.txt --files=2 parts/p --force
says last.err "parts/p-00000-of-00009: is no regular file, and is not replaced"
[ -f parts/p-00002-of-00003 ] || fail "the old set was removed before the new one was complete"
rm -r parts
ln -s "$work/kept" out/l-00000-of-00001
expect 74 "$WEFT" data convert in/b.txt out/l --force
says last.err "is no regular file"

# The disk is full.
if (ulimit -f 1) 2>/dev/null; then
	code=0
	(ulimit -f 8 && "$WEFT" data convert in/a.txt in/b.txt out/full --compressor=none) >last.out 2>last.err || code=$?
	[ "$code" = 74 ] || fail "a full disk ends with $code"
	says last.err "cannot be written"
	[ -z "$(find out -name 'full*')" ] || fail "half a set on a full disk"
	nothing_hidden
fi

# Refused: a record of two lines, a compressor that a form does not have, too few records.
python <<'EOF'
r.write("in/bin", [b"\x00\x01", b"two\nlines"], r.NONE)
EOF
expect 0 "$WEFT" data convert in/bin out/bin
python <<'EOF'
assert r.read("out/bin-00000-of-00001") == [b"\x00\x01", b"two\nlines"]
EOF
expect 65 "$WEFT" data convert in/bin out/bin2 --to=text
says last.err "has a line feed in it"
expect 64 "$WEFT" data convert in/a.txt out/no --compressor=zstd
says last.err "none, snappy, gzip"
expect 64 "$WEFT" data convert in/a.txt out/no --to=text --compressor=snappy
expect 65 "$WEFT" data split in/h2.csv --files=3 out/no
says last.err "too few for 3 files"
expect 64 "$WEFT" data split in/a.txt out/no
says last.err "either --files=N or --lines=K"
expect 64 "$WEFT" data split in/a.txt --files=2 --lines=3 out/no
expect 64 "$WEFT" data split --files=2 out/no
expect 64 "$WEFT" data ls
expect 64 "$WEFT" data
expect 64 "$WEFT" data list in
expect 65 "$WEFT" data ls in/absent
expect 74 "$WEFT" data convert in/a.txt no/folder/x
expect 64 "$WEFT" data convert in/a.txt out/
nothing_hidden

# Training reads the records as lines: the same bits.
if "$WEFT" train --help >/dev/null 2>&1; then
	expect 0 "$WEFT" train linear --sequential --num_passes=1 --data="$housing"
	mv last.out text.out
	expect 0 "$WEFT" data convert "$housing" out/housing
	expect 0 "$WEFT" train linear --sequential --num_passes=1 --data=out/housing-00000-of-00001
	[ -n "$(digest_of text.out)" ] && [ "$(digest_of last.out)" = "$(digest_of text.out)" ] ||
		fail "RecordIO trains to other bits than its text"
fi

# Words by count, then bytes; a window without one; of records, too.
printf "the sea, the Whale's\n" >in/text
printf '1 2 3\nsea the ship\n' >in/more
expect 0 "$WEFT" data words in/text in/more
[ "$(cat last.out)" = "the
sea
ship
whale's" ] || fail "words: $(cat last.out)"
expect 0 "$WEFT" data words in/text in/more --vocabulary=3
[ "$(cat last.out)" = "the
sea" ] || fail "two words: $(cat last.out)"
expect 0 "$WEFT" data convert in/text out/text
expect 0 "$WEFT" data words out/text-00000-of-00001 in/more --vocabulary=3
[ "$(cat last.out)" = "the
sea" ] || fail "words of records: $(cat last.out)"
printf '1 2 3\n' >in/numbers
expect 65 "$WEFT" data words in/numbers
says last.err "in/numbers: has no words"
printf 'a word\nno\377text\n' >in/bytes
expect 65 "$WEFT" data words in/text in/bytes
says last.err "in/bytes: line 2, column 3: \"?\" is not UTF-8"
expect 64 "$WEFT" data words in/text --vocabulary=1

# If the reader of the output leaves, the command ends silently and at once.
code=0
{ "$WEFT" data cat in/a.txt in/none in/gzip in/a.gz 2>last.err || echo $? >code; } | head -n 1 >last.out
[ ! -e code ] || code=$(cat code)
[ "$code" = 74 ] && [ ! -s last.err ] || fail "cat into a closed pipe ends with $code: $(cat last.err)"

for verb in convert split ls cat verify words; do
	expect 0 "$WEFT" data $verb --help
	head -n 1 last.out | grep -q "^Usage: weft data $verb" || fail "$verb --help: no usage on top"
	awk 'length > 80 { exit 1 }' last.out || fail "$verb --help: a line above 80 columns"
done
expect 0 "$WEFT" help data
says last.out "convert" "split" "ls" "cat" "verify" "words"

# SPDX-License-Identifier: Apache-2.0
"""weft.data and `weft data` on the same folders: the same files in the same order, the same trainer for
each, the same refusals, and the same that is left of older sets."""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile

import support

sys.path.insert(0, os.path.join(support.TOP, "tests/support"))
import recordio as other

try:
    import weft
    import weft.data
    from weft import _files
except ImportError:  # support.main says so
    weft = None


def numbered(stem, numbers, of, extension=""):
    return ["%s-%05d-of-%05d%s" % (stem, number, of, extension) for number in numbers]


# What lies there, the items, and what both say: "" for a list of files, or what is refused. A name that
# ends in / is a folder, one with -> in it a link, and one with = in it a file with such a text.
CASES = [
    ("a folder is sorted by bytes", ["d/b", "d/A", "d/a", "d/\u00e9", "d/\U0001f600", "d/\ufb01"], ["d"], ""),
    ("a folder with a slash", ["d/a", "d/b"], ["d/"], ""),
    ("what does not count", ["d/.x", "d/a.lock", "d/a.list=a", "d/a", "d/sub/", "d/lists"], ["d"], ""),
    ("nothing counts", ["d/.x", "d/a.lock", "d/sub/"], ["d"], "d: no regular file is there"),
    ("an empty folder", ["d/"], ["d"], "d: no regular file is there"),
    ("a link counts", ["a", "d/l->../a"], ["d"], ""),
    ("a link that leads nowhere", ["d/a", "d/l->x"], ["d"], "d/l: No such file"),
    ("a pattern", ["b", "a1", "a2", "a.lock", "a3.list=b", "a4/", "a5/x"], ["a*"], ""),
    ("a pattern of the C library", ["a1", "ab", "a]"], ["a[[:digit:]]"], ""),
    ("a pattern with an escape", ["a*b", "axb", "a*c"], ["a\\*[bc]"], ""),
    ("a pattern in the middle", ["d1/x", "d2/x", ".d3/x", "d4"], ["d*/x"], ""),
    ("hidden ones that a pattern names", [".x1", ".x2"], [".x*"], ".x*: no regular file is there"),
    ("a pattern that is a name", ["a1", "a[1]"], ["a[1]"], ""),
    ("a pattern that nothing matches", ["a"], ["b*"], "b*: no regular file is there"),
    ("a hidden or locked file that is named", [".x", "a.lock"], [".x", "a.lock"], ""),
    ("items in their order", ["c", "d/b", "d/a", "a"], ["c", "d", "a"], ""),
    ("a file twice", ["a", "b"], ["a", "b", "?"], "a: is in the set twice"),
    ("a file that is not there", ["a"], ["a", "b"], "b: No such file"),
    ("a file is no folder", ["a"], ["a/b"], "a/b: Not a directory"),
    ("no regular file", [], ["/dev/null"], "/dev/null: is neither"),
    ("a list", ["a", "d/b", "d/c1", "d/c2", "d/t.list=# x\nb\r\n\nc*\na"], ["d/t.list"], ""),
    ("comments in a list", ["a#b", "c", "#d", "t.list=c \t# one\n \t#\n#d\na#b #\r\n"], ["t.list"], ""),
    ("a name with a # at its end", ["a", "t.list=a#"], ["t.list"], "t.list: line 1: a#: No such file"),
    ("a list in a list's place", ["t.list=a\nt.list", "a"], ["t.list"], "t.list: line 2: t.list: a list file may"),
    ("a list of nothing", ["t.list=# a\n\n"], ["t.list"], "t.list: names no file"),
    ("a list of what is not there", ["a", "d/t.list=b"], ["d/t.list"], "d/t.list: line 1: b: No such file"),
    ("a list that is packed", ["a", "b", "t.list=gzip:b\na\n"], ["t.list"], ""),
    ("numbers count", numbered("p", [1, 3, 4], 5), numbered("p", [4, 1, 3], 5), ""),
    ("numbers without a count", ["t-00001", "t-00003", "t-00005.x.gz"], ["t*"], ""),
    ("places count where one has no number", ["t-00001", "t-00003", "u"], ["t-00003", "u", "t-00001"], ""),
    ("dates are no numbers", ["t-20240102", "t-20240104"], ["t-*"], ""),
    ("digits of other scripts are none", ["t-\u0661\u0662\u0663\u0664\u0665", "t-00001"], ["t*"], ""),
    ("a name with a line feed is none", ["t-00001\n=", "t-00003"], ["t*"], ""),
    ("a whole set", numbered("d/p", range(3), 3), ["d"], ""),
    ("ten that count to nine", numbered("d/p", range(10), 9), ["d"], ""),
    ("a gap", numbered("d/p", [0, 1, 3, 4], 5), ["d"], "d/p-00002-of-00005: is missing"),
    ("a gap of several", numbered("d/p", [0, 4], 5), ["d/p*"], "d/p-00001-of-00005 to -00003-of-00005: 3 files"),
    ("the last are missing", numbered("d/p", [0], 3, ".x"), ["d"], "d/p-00001-of-00003.x to"),
    ("a gap in ten that count to nine", numbered("d/p", [0, 9], 9), ["d"], "d/p-00001-of-00009 to -00008-of-00009"),
    ("one too many", numbered("d/p", range(5), 3), ["d"], "d/p-00004-of-00003: is one file too many"),
    ("named ones may have gaps", numbered("p", [0, 3], 5), numbered("p", [0, 3], 5), ""),
    ("packed and not", numbered("d/p", [0, 2], 3, ".x") + numbered("d/p", [1], 3, ".x.gz"), ["d"], ""),
    ("zstd and gzip", numbered("d/p", [0], 2, ".zst") + numbered("d/p", [1], 2, ".gz"), ["d"], ""),
    ("both packed and not", numbered("d/p", [0, 1], 2) + numbered("d/p", [1], 2, ".gz"), ["d"], "is there twice"),
    ("two sets, the second with a gap", numbered("d/p", [0], 1) + numbered("d/q", [0], 2), ["d"], "d/q-00001-of-0"),
    ("a set counts in its folder", numbered("d/p", [0], 2) + numbered("e/p", [1], 2), ["d", "e"], "d/p-00001-of-"),
    ("six digits", ["d/p-%05d-of-%06d" % (1, 100000)], ["d"], "d/p-00000-of-100000: is missing"),
]

# Of a folder: what `weft data split` and `weft.data.convert` do with it that write three files p.
OLDER = [
    ("nothing there", []),
    ("as many files", numbered("p", range(3), 3)),
    ("more files", numbered("p", range(5), 5)),
    ("fewer files", numbered("p", [0], 1)),
    ("other names", ["p-00000", "pp-00000-of-00007", "p-00000-of-00007.gz", "p-0000-of-00007", "q-00000-of-00001"]),
    ("a link", ["p-00000-of-00009->x"]),
    ("a link in its place", ["p-00001-of-00003->x"]),
]


def make(folder, names):
    os.mkdir(folder)
    for name in names:
        name, _, target = name.partition("->")
        name, has_text, text = name.partition("=")
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if target:
            os.symlink(target, path)
        elif not name.endswith("/"):
            text = text.encode() if has_text else b"x\n"
            with open(path, "wb") as file:
                file.write(gzip.compress(text[5:]) if text.startswith(b"gzip:") else text)


def tree(folder):
    """Names, and the records of what is RecordIO."""
    names = sorted(os.listdir(folder))
    paths = [os.path.join(folder, name) for name in names]
    return [
        (name, other.read(path) if os.path.isfile(path) and os.path.getsize(path) > 2 else None)
        for name, path in zip(names, paths)
    ]


class Same(support.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.folder = folder.name

    def command(self, *arguments):
        return subprocess.run(
            [support.WEFT, "data", *arguments], capture_output=True, env=support.environment(), encoding="utf-8"
        )

    def listed(self, items):
        """The files of each of two trainers, or the refusal, by the command."""
        done = self.command("ls", "--trainers=2", *items)
        if done.returncode == 65:
            return done.stderr.rstrip("\n").partition("weft data ls: ")[2]
        self.assertEqual(done.returncode, 0, done.stderr)
        mine = [[], []]
        for line in done.stdout.replace("\n\n", "\n").splitlines()[1:-1]:
            trainer, path = line.split(None, 6)[5:]
            mine[int(trainer)].append(path)
        return mine

    def shared(self, items):
        """The same by Python."""
        mine = []
        for trainer in range(2):
            try:
                mine.append(_files.share(items, 2, trainer))
            except weft.DataError as error:
                if not str(error).startswith("none of the "):
                    return str(error)
                mine.append([])
        return [[path.rstrip("\n") for path in paths] for paths in mine]

    def test_both_find_the_same_files_for_the_same_trainers(self):
        for number, (what, names, items, refusal) in enumerate(CASES):
            with self.subTest(what):
                os.chdir(self.folder)
                make("case%d" % number, names)
                os.chdir("case%d" % number)
                by_command, by_python = self.listed(items), self.shared(items)
                self.assertEqual(by_python, by_command)
                if refusal:
                    self.assertIsInstance(by_python, str)
                    self.assertIn(refusal, by_python)
                else:
                    self.assertNotEqual(by_python, [[], []])
                    self.assertIsInstance(by_python, list)

    def test_both_leave_the_same_of_older_sets(self):
        lines = [b"line %d" % i for i in range(6)]
        with open("text", "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        for what, names in OLDER:
            for force in (False, True):
                with self.subTest(what, force=force):
                    make("c", names)
                    make("python", names)
                    arguments = ["--files=3", "--to=recordio", "--compressor=none"] + ["--force"] * force
                    done = self.command("split", "text", *arguments, "c/p")
                    try:
                        weft.data.convert(
                            "python", lambda: lines, 2, "p", dumper=bytes, compressor="none", force=force
                        )
                        why = ""
                    except FileExistsError as error:
                        why = str(error).partition(";")[0].replace("python/", "c/")
                    self.assertEqual(done.returncode, 74 if why else 0, done.stderr)
                    self.assertIn(why.partition(": ")[2], done.stderr)
                    self.assertEqual(tree("python"), tree("c"))
                    shutil.rmtree("c")
                    shutil.rmtree("python")

    def test_an_older_and_longer_split_does_not_stay(self):
        weft.data.split(lambda: range(50), 10, "s-%05d.pickle")
        with self.assertRaisesRegex(FileExistsError, "s-00000.pickle: exists"):
            weft.data.split(lambda: range(30), 10, "s-%05d.pickle")
        weft.data.split(lambda: range(30), 10, "s-%05d.pickle", force=True)
        self.assertEqual(list(weft.data.cluster_files_reader("s-*", 1, 0)()), list(range(30)))
        os.unlink("s-00000.pickle")  # two of another set's are left
        with self.assertRaisesRegex(FileExistsError, "s-00001.pickle: exists"):
            weft.data.split(lambda: range(10), 10, "s-%05d.pickle")
        for suffix in ("d%d/x", "x"):
            with self.assertRaisesRegex(weft.InvalidError, "one %d in it, behind its folder"):
                weft.data.split(lambda: [1], 1, suffix)

    def test_a_packed_file_is_unpacked_or_refused_as_by_the_command(self):
        text = b"".join(b"%d %s\n" % (i, b"y" * (i % 300)) for i in range(9000))
        half = len(text) // 2
        packed = gzip.compress(text)
        wrong = bytearray(packed)
        wrong[-5] ^= 1  # the checksum; the length is behind it
        for what, data, why in (
            ("one member", packed, ""),
            ("two members", gzip.compress(text[:half]) + gzip.compress(text[half:]), ""),
            ("an empty member", gzip.compress(text) + gzip.compress(b""), ""),
            ("bytes behind it", packed + b"x", "are over, but more bytes follow them"),
            ("zeros behind it", packed + bytes(512), "are over, but more bytes follow them"),
            ("truncated", packed[:-9], "end too early: the file is truncated"),
            ("without its length", packed[:-2], "end too early: the file is truncated"),
            ("another checksum", bytes(wrong), "are damaged"),
            ("another length", packed[:-1] + b"\x07", "are damaged"),
        ):
            with self.subTest(what):
                with open("x", "wb") as file:
                    file.write(data)
                done = self.command("cat", "x")
                reader = weft.data.cluster_files_reader("x", 1, 0, loader=lambda file: [file.read()], mode="r")
                if why:
                    self.assertEqual(done.returncode, 65)
                    self.assertIn("the gzip data " + why, done.stderr)
                    self.assertRaisesRegex(weft.DataError, "x: the gzip data " + why, list, reader())
                else:
                    self.assertEqual(done.stdout.encode(), text)
                    self.assertEqual(list(reader()), [text.decode()])
        with open("x", "wb") as file:
            file.write(b"\x28\xb5\x2f\xfd\x00")
        self.assertRaisesRegex(weft.UnsupportedError, "x: is packed with zstd", list, reader())


if __name__ == "__main__":
    support.main()

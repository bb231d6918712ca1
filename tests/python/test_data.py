# SPDX-License-Identifier: Apache-2.0
"""weft.data: no sample is lost at any seam, RecordIO goes both ways between it, `weft data` and a program
that shares no code with them, and what is damaged or in the way is refused."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from unittest import mock

import support

sys.path.insert(0, os.path.join(support.TOP, "tests/support"))
import recordio as other

try:
    import numpy as np
    import weft
    import weft.data
    from weft import _recordio
except ImportError:  # support.main says so
    np = None


class Folder(support.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def names(self):
        return sorted(os.listdir(self.folder))

    def weft(self, *arguments, code=0):
        done = subprocess.run([support.WEFT, "data", *arguments], capture_output=True, env=support.environment())
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout


class Split(Folder):
    def test_every_sample_is_in_one_file_whatever_the_counts(self):
        for samples in (1, 2, 5, 9, 10, 11, 20):
            for line_count in (1, 2, 5, 10, 30):
                pattern = self.path("s%d-%d" % (samples, line_count))
                paths = weft.data.split(lambda: iter(range(samples)), line_count, pattern + "-%05d.pickle")
                read = []
                for i, path in enumerate(paths):
                    self.assertEqual(path, pattern + "-%05d.pickle" % i)
                    with open(path, "rb") as file:
                        read.append(pickle.load(file))
                self.assertEqual(sum(read, []), list(range(samples)))
                self.assertEqual({len(part) for part in read[:-1]} - {line_count}, set())
                self.assertTrue(0 < len(read[-1]) <= line_count)

    def test_the_trainers_read_every_sample_once(self):
        weft.data.split(lambda: range(103), 10, self.path("t-%05d.pickle"))
        for trainers in (1, 2, 3, 11):
            read = [list(weft.data.cluster_files_reader(self.path("t-*"), trainers, i)()) for i in range(trainers)]
            self.assertEqual(sorted(sum(read, [])), list(range(103)))
        with self.assertRaisesRegex(weft.DataError, "none of the 11 files is that of trainer 11 of 12"):
            list(weft.data.cluster_files_reader(self.path("t-*"), 12, 11)())
        with self.assertRaisesRegex(weft.InvalidError, "trainer_id=3"):
            list(weft.data.cluster_files_reader(self.path("t-*"), 3, 3)())
        with self.assertRaisesRegex(weft.DataError, "no regular file is there"):
            list(weft.data.cluster_files_reader(self.path("u-*"), 1, 0)())

    def test_whose_a_file_is_the_command_says_too(self):
        for names in (("t-00001.p", "t-00003.p"), ("t-20240102", "t-20240104")):  # dates: their places count
            paths = [self.path(name) for name in names]
            for path in paths:
                with open(path, "wb") as file:
                    pickle.dump([path], file)
            shown = self.weft("ls", "--trainers=2", *paths).decode().splitlines()[1:-1]
            owner = {line.split()[-1]: int(line.split()[-2]) for line in shown}
            self.assertEqual(sorted(owner), paths)
            for trainer in range(2):
                mine = [path for path in paths if owner[path] == trainer]
                reader = weft.data.cluster_files_reader(paths, 2, trainer)
                if mine:
                    self.assertEqual(list(reader()), mine)
                else:
                    self.assertRaises(weft.DataError, list, reader())

    def test_loader_and_dumper_are_the_callers(self):
        samples = [{"x": i} for i in range(7)]
        weft.data.split(lambda: samples, 3, self.path("%05d.json"), dumper=json.dump, mode="w")
        reader = weft.data.cluster_files_reader(self.path("*.json"), 1, 0, loader=json.load, mode="r")
        self.assertEqual(list(reader()), samples)
        self.assertEqual(list(reader()), samples)  # a pass later
        with self.assertRaises(TypeError):
            weft.data.split(lambda: samples, 3, self.path("%d"), dumper=None)
        with self.assertRaises(TypeError):
            weft.data.cluster_files_reader("*", 1, 0, loader="json")

    def test_nothing_half_stays_and_nothing_is_overwritten(self):
        def breaks_off():
            yield from range(25)
            raise RuntimeError("no more")

        with self.assertRaisesRegex(RuntimeError, "no more"):
            weft.data.split(breaks_off, 10, self.path("%05d"))
        self.assertEqual(self.names(), [])
        with open(self.path("00001"), "w") as file:
            file.write("mine")
        with self.assertRaisesRegex(FileExistsError, "00001: exists"):
            weft.data.split(lambda: range(25), 10, self.path("%05d"))
        self.assertEqual(self.names(), ["00001"])
        weft.data.split(lambda: range(25), 10, self.path("%05d"), force=True)
        self.assertEqual(self.names(), ["00000", "00001", "00002"])

    def test_a_folder_is_made_and_goes_with_what_fails(self):
        paths = weft.data.split(lambda: range(3), 2, self.path("parts/train-%05d.pickle"))
        self.assertEqual(paths, [self.path("parts/train-0000%d.pickle" % i) for i in range(2)])
        paths = weft.data.convert(self.path("records"), lambda: range(3), 2, "train", compressor="none")
        self.assertEqual([os.path.dirname(path) for path in paths], [self.path("records")] * 2)
        with self.assertRaises(ZeroDivisionError):
            weft.data.split(lambda: (1 // (1 - i) for i in range(3)), 1, self.path("none/%d"))
        with self.assertRaisesRegex(FileNotFoundError, "deep/parts'"):
            weft.data.split(lambda: range(3), 2, self.path("deep/parts/%d"))
        self.assertEqual(self.names(), ["parts", "records"])

    def test_a_loader_or_dumper_that_does_not_fit_is_named_with_its_file(self):
        text, packed = self.path("0.json"), self.path("0.pickle")
        with self.assertRaisesRegex(weft.InvalidError, "0.json: dumper=dump with mode='wb': .*mode=\"w\""):
            weft.data.split(lambda: [1], 1, self.path("%d.json"), dumper=json.dump)
        self.assertEqual(self.names(), [])
        weft.data.split(lambda: [1], 1, self.path("%d.json"), dumper=json.dump, mode="w")
        weft.data.split(lambda: [1], 1, self.path("%d.pickle"))
        for path, options in ((text, {}), (packed, {"loader": json.load, "mode": "r"}), (packed, {"loader": len})):
            with self.assertRaisesRegex(weft.DataError, "; give the loader= that fits") as seen:
                list(weft.data.cluster_files_reader(path, 1, 0, **options)())
            self.assertTrue(str(seen.exception).startswith(path + ": loader="), seen.exception)
        with self.assertRaisesRegex(weft.DataError, "TypeError: 'int' object is not iterable"):
            list(weft.data.cluster_files_reader(packed, 1, 0, loader=lambda file: 1)())

    def test_a_suffix_without_a_number_is_refused(self):
        for suffix in ("x", "%s-%s", "%%"):
            with self.assertRaisesRegex(weft.InvalidError, "one %d in it"):
                weft.data.split(lambda: [1], 1, suffix)

    def test_a_file_has_a_whole_number_of_samples_above_0(self):
        for line_count in (0, -1, 2.5, float("nan"), float("inf")):
            with self.assertRaisesRegex(weft.InvalidError, "line_count=%r: is a whole number" % line_count):
                weft.data.split(lambda: [1, 2, 3], line_count, self.path("%d"))
            with self.assertRaisesRegex(weft.InvalidError, "line_count=%r: is a whole number" % line_count):
                weft.data.convert(self.path("records"), lambda: [1, 2, 3], line_count, "train", compressor="none")
        self.assertEqual(self.names(), [])


class RecordIO(Folder):
    records = [b"", b"one", b"two words", b"\x00\xff\n", b"abc" * 40000, bytes(range(256)) * 300]

    def test_what_is_written_reads_the_same_everywhere(self):
        for compressor in ("none", "snappy", "gzip"):
            paths = weft.data.convert(
                self.folder, lambda: self.records, 4, compressor, dumper=bytes, compressor=compressor
            )
            names = ["%s-%05d-of-00002" % (compressor, i) for i in range(2)]
            self.assertEqual(paths, [self.path(name) for name in names])
            pattern = self.path(compressor + "-*")
            self.assertEqual(list(weft.data.recordio_reader(pattern)()), self.records)
            self.assertEqual(other.read(paths[0]) + other.read(paths[1]), self.records)
            self.assertEqual(self.weft("cat", *paths), b"".join(one + b"\n" for one in self.records))
            self.weft("verify", *paths)

    def test_what_weft_data_writes_is_read(self):
        lines = [b"line %d" % i + b"." * (i % 300) for i in range(5000)]
        with open(self.path("text"), "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        for compressor in ("none", "snappy", "gzip"):
            self.weft(
                "split", self.path("text"), "--files=3", "--to=recordio", "--compressor=" + compressor,
                self.path(compressor),
            )
            pattern = self.path(compressor + "-*")
            self.assertEqual(list(weft.data.recordio_reader(pattern)()), lines)
            shares = [list(weft.data.recordio_reader(pattern, 2, i)()) for i in range(2)]
            self.assertEqual(sorted(shares[0] + shares[1]), sorted(lines))
            self.assertEqual(shares[1], lines[1667:3334])  # file 1 of 0, 1, 2

    def test_what_the_originals_tools_write_is_read(self):
        for cpp_order in (False, True):
            for compressor in other.COMPRESSORS.values():
                other.write(self.path("x"), self.records, compressor, 2, cpp_order)
                self.assertEqual(list(weft.data.recordio_reader(self.path("x"))()), self.records)

    def test_samples_go_through_the_loader_and_the_dumper(self):
        samples = [(i, "x" * i) for i in range(9)]
        weft.data.convert(self.folder, lambda: samples, 5, "p", compressor="gzip")
        self.assertEqual(list(weft.data.recordio_reader(self.path("p-*"), loader=pickle.loads)()), samples)
        weft.data.convert(self.folder, lambda: samples, 9, "q", compressor="none", shuffle_seed=3)
        shuffled = list(weft.data.recordio_reader(self.path("q-*"), loader=pickle.loads)())
        self.assertNotEqual(shuffled, samples)
        self.assertEqual(sorted(shuffled), samples)

    def test_shards_get_the_samples_in_turn_as_the_original_dealt_them(self):
        paths = weft.data.convert(
            output_path=self.path("dataset"), reader=lambda: range(25), num_shards=10, name_prefix="train",
            compressor="none",
        )  # fmt: skip
        self.assertEqual(paths, [self.path("dataset/train-%05d-of-00010" % i) for i in range(10)])
        for i, path in enumerate(paths):
            self.assertEqual(list(weft.data.recordio_reader(path, loader=pickle.loads)()), list(range(i, 25, 10)))
        self.weft("verify", self.path("dataset"))
        for options, why in (
            ({"num_shards": 0}, "num_shards=0"),
            ({}, "give one of them"),
            ({"num_shards": 2, "line_count": 3}, "give one of them"),
            ({"num_shards": 2, "shuffle_seed": 3}, "shuffle_seed=3"),
            ({"num_shards": 26}, "num_shards=26: there are 25 samples"),
        ):
            with self.assertRaisesRegex(weft.InvalidError, why):
                weft.data.convert(self.folder, lambda: range(25), name_prefix="x", compressor="none", **options)
        self.assertEqual(self.names(), ["dataset"])

    def test_a_loader_or_dumper_that_does_not_fit_is_named_with_its_record(self):
        with self.assertRaisesRegex(weft.InvalidError, "dumper=dumps: returned str, but a record is bytes"):
            weft.data.convert(self.folder, lambda: [1], 1, "x", dumper=json.dumps, compressor="none")
        self.assertEqual(self.names(), [])
        other.write(self.path("x"), [pickle.dumps(1), b"text"], other.NONE)
        reader = weft.data.recordio_reader(self.path("x"), loader=pickle.loads)
        with self.assertRaisesRegex(weft.DataError, "x: record 2: loader=loads: .*; give the loader="):
            list(reader())
        buffer = bytearray()  # whose bytes are another sample's before the chunk is written

        def dump(sample):
            buffer[:] = b"%d" % sample
            return memoryview(bytes(buffer)) if sample == 2 else buffer

        paths = weft.data.convert(self.folder, lambda: range(4), 4, "y", dumper=dump, compressor="none")
        self.assertEqual(list(weft.data.recordio_reader(paths)()), [b"0", b"1", b"2", b"3"])

    def test_a_damaged_file_is_refused_with_the_place(self):
        def refused(data, why):
            with open(self.path("x"), "wb") as file:
                file.write(data)
            with self.assertRaisesRegex(weft.DataError, "x: the chunk at byte " + why):
                list(weft.data.recordio_reader(self.path("x"))())
            self.weft("verify", self.path("x"), code=65)  # of one mind

        good = other.chunk([b"a", b"b"], other.GZIP)
        refused(good + good[:-1], "%d: the file ends after" % len(good))
        refused(good + good[:7], "%d: the file ends within its header" % len(good))
        for bit in range(0, 8 * len(good), 7):
            damaged = bytearray(good)
            damaged[bit // 8] ^= 1 << bit % 8
            with open(self.path("y"), "wb") as file:
                file.write(damaged)
            with self.assertRaises(weft.DataError):
                list(weft.data.recordio_reader(self.path("y"))())
        refused(other.chunk([b"a"], other.NONE, stored=b"\x02\0\0\0a"), "0: its record 1 reaches beyond")
        refused(other.chunk([b"a", b"b"], other.NONE, stored=b"\x01\0\0\0a"), "0: has 1 of the 2 records")
        refused(other.chunk([], other.NONE, stored=b"\x01\0\0\0a"), "0: has 5 bytes behind the last of its 0")
        refused(other.chunk([b"a"], other.GZIP, stored=other.pack(b"\x01\0\0\0a", 2)[:-3]), "0: its gzip stream")
        refused(other.chunk([b"a"], other.SNAPPY, stored=other.IDENTIFIER + b"\x02\0\0\0"), "0: a snappy frame has")
        refused(other.chunk([b"a"], other.SNAPPY, stored=b"\x01\x05\0\0"), "0: its snappy stream does not begin")

    def test_a_set_with_a_gap_is_refused(self):
        paths = weft.data.convert(self.folder, lambda: range(40), 10, "g", compressor="none")
        os.unlink(paths[2])
        with self.assertRaisesRegex(weft.DataError, "g-00002-of-00004: is missing"):
            list(weft.data.recordio_reader(self.path("g-*"))())
        for i in range(3):  # as the original counts
            other.write(self.path("h-%05d-of-00002" % i), [b"%d" % i], other.NONE)
        self.assertEqual(list(weft.data.recordio_reader(self.path("h-*"))()), [b"0", b"1", b"2"])

    def test_without_libsnappy_the_remedy_is_named(self):
        _recordio._snappy.cache_clear()
        self.addCleanup(_recordio._snappy.cache_clear)
        with mock.patch("ctypes.CDLL", side_effect=OSError("not there")):
            with self.assertRaisesRegex(weft.UnsupportedError, "libsnappy1v5"):
                weft.data.convert(self.folder, lambda: [1], 1, "x")
            weft.data.convert(self.folder, lambda: [1], 1, "y", compressor="gzip")
        self.assertEqual(self.names(), ["y-00000-of-00001"])

    def test_the_checksum_of_frames_is_the_published_one(self):
        self.assertEqual(_recordio.masked_crc32c(b"123456789"), 0xC78AB0E5)


if __name__ == "__main__":
    support.main()

# SPDX-License-Identifier: Apache-2.0
"""Process groups of backend weft: real ranks on loopback (tests/python/distributed_member.py), beside
NumPy and beside Gloo."""

import glob
import os
import select
import sys

import support

try:
    import torch
except ImportError:
    torch = None
else:
    import distributed_member as member
    import numpy as np
    from ddp_bench import hosts

    torch.set_num_threads(1)  # of support.Child


def is_gone(pid):
    """Whether a process has ended, whoever looks after it."""
    try:
        return support.state_of("/proc/%s" % pid) in "ZX"
    except FileNotFoundError:
        return True


def with_environment(text):
    """Processes that were started with a variable."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if text.encode() in file.read().split(b"\0"):
                    found.append(path)
        except OSError:
            pass  # it has ended
    return found


def array(tensor):
    """Of NumPy, which has no bfloat16: wider, exactly."""
    return tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def rounded(values, dtype):
    """To a dtype, by PyTorch for what NumPy does not have."""
    if dtype == torch.bfloat16:
        return torch.from_numpy(np.asarray(values, np.float32)).to(dtype).float().numpy()
    return np.asarray(values, torch.empty(0, dtype=dtype).numpy().dtype)


def total(tensors, is_mean):
    """In the order of ranks, each addition rounded."""
    dtype = tensors[0].dtype
    with np.errstate(all="ignore"):
        result = array(tensors[0])
        for tensor in tensors[1:]:
            result = rounded(result + array(tensor), dtype)
        if is_mean:
            wide = np.float64 if dtype == torch.float64 else np.float32
            result = rounded(np.asarray(result, wide) / wide(len(tensors)), dtype)
    return result


class Ranks(support.Case):
    def start(self, what, size=2, backend="weft", **more):
        self.folder = self.own_folder()
        ranks = []
        for rank in range(size):
            own = {name: v[rank] if isinstance(v, list) else v % {"rank": rank} for name, v in more.items()}
            ranks.append(self.run_child(member.main, what, backend, self.folder, size, rank, **own))
        return ranks

    def found(self, rank):
        return torch.load(os.path.join(self.folder, str(rank)))

    def pserver_pid(self, rank=0):
        """The one that this rank has started."""
        with open(os.path.join(self.folder, "pserver%d" % rank), encoding="ascii") as file:
            return file.read()

    def none_is_left(self):
        starters = [int(name[7:]) for name in os.listdir(self.folder) if name.startswith("pserver")]
        self.assertIn(0, starters)
        for rank in starters:
            self.assertTrue(is_gone(self.pserver_pid(rank)), "the pserver of rank %d is left" % rank)

    def run_all(self, what, size=2, backend="weft", **more):
        """What all ranks have found; each ended well, and nothing is left."""
        for rank in self.start(what, size, backend, **more):
            self.ends_well(rank)
        if backend == "weft" and "WEFT_PSERVERS" not in more:
            self.none_is_left()
        return [self.found(rank) for rank in range(size)]

    def assert_bits(self, got, wanted, what=None):
        self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape), what)
        self.assertEqual(got.contiguous().numpy().tobytes(), wanted.contiguous().numpy().tobytes(), what)


class Operations(Ranks):
    def test_sums_and_means_are_numpys_to_the_bit_in_the_order_of_ranks(self):
        size = 3
        for rank, found in enumerate(self.run_all("sums", size)):
            for is_mean, dtype, shape, reduced, scattered, at_once in found:
                what = (rank, is_mean, dtype, shape)
                wanted = total([member.values(dtype, shape, other) for other in range(size)], is_mean)
                np.testing.assert_array_equal(array(reduced), wanted, str(what))
                parts = [member.values(dtype, shape, other + 10 * rank) for other in range(size)]
                np.testing.assert_array_equal(array(scattered), total(parts, is_mean), str(what))
                np.testing.assert_array_equal(array(at_once), total(parts, is_mean), str(what))

    def test_broadcast_and_gather_keep_all_bits_of_every_dtype(self):
        size = 3
        dtypes = member.SUMMED + (torch.uint8, torch.int8, torch.int16, torch.bool, torch.complex64)
        sources = [
            [member.values(dtype, shape, rank) for rank in range(size)] for dtype in dtypes for shape in member.SHAPES
        ]
        sources += [[member.special(dtype)] * size for dtype in member.BITS]
        for found in self.run_all("bits", size):
            self.assertEqual(len(found), len(sources))
            for (here, gathered, whole, within), wanted in zip(found, sources):
                what = (wanted[0].dtype, wanted[0].shape)
                kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[wanted[0].element_size()]

                def bits(tensor, kind=kind):
                    return tensor.reshape(-1).view(kind)

                self.assert_bits(bits(here), bits(wanted[size - 1]), what)
                for number, one in enumerate(wanted):
                    self.assert_bits(bits(gathered[number]), bits(one), what)
                    self.assert_bits(bits(whole[number]), bits(one), what)
                    self.assert_bits(bits(within[number]), bits(one), what)

    def test_ranks_may_have_their_tensors_in_other_layouts(self):
        one = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)
        for images, negated, unaligned in self.run_all("layouts"):
            for image, times in zip(images, (3, 2, 1)):
                self.assertTrue(torch.equal(image, one * times))
            self.assertTrue(torch.equal(negated, -2 * torch.arange(4.0)))
            self.assertEqual(unaligned.tolist(), list(range(1, 33)))

    def test_objects_are_gathered_and_broadcast(self):
        for gathered, sent in self.run_all("objects", 3):
            self.assertEqual(gathered, [{"rank": rank, "text": "x" * rank} for rank in range(3)])
            self.assertEqual(sent, ["of 1", 1])

    def test_work_is_done_when_it_is_returned_and_a_group_may_have_all_ranks(self):
        for facts, tensor, several in self.run_all("works", 3):
            self.assertEqual(facts, [True, True, True, True, [True, 7]])
            self.assertEqual(tensor.tolist(), [9.0] * 3)  # (0 + 1 + 2) of each of three
            self.assertEqual([each.tolist() for each in several], [[6.0] * 2, [9] * 3])

    def test_what_there_is_not_is_refused_by_name_and_the_group_goes_on(self):
        no = "UnsupportedError: %s: backend weft does not have it; use "
        sums = "all_reduce: backend weft sums torch.float32, .* and not torch."
        operations = ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")
        patterns = ["all_reduce: %s: backend weft has SUM and AVG" % op for op in operations]
        patterns += [sums + dtype for dtype in "uint8 bool int8 int16".split()]
        patterns += ["all_reduce: AVG of torch.int32: integers have a SUM only"]
        patterns += [r"InvalidError: all_reduce: the tensor is not contiguous \(shape \(4,\), strides \(4,\)\): give"]
        patterns += ["InvalidError: broadcast: the tensor is not contiguous"]
        patterns += ["all_reduce: the tensor is torch.sparse_coo"]
        patterns += ["InvalidError: broadcast: src is 2; ranks are 0 to 1"]
        patterns += ["all_gather: the list has 1 tensors; one for each of 2 ranks is needed"]
        patterns += [r"all_gather: tensor 0 of the list is \(5,\) of torch.float32, and the single one is \(4,\)"]
        patterns += ["all_gather: the large tensor has 3 elements of torch.float32, and the small one 4 "]
        patterns += ["reduce_scatter: the large tensor has 3 elements"]
        patterns += [no % name for name in ("send", "recv", "recv of any source", "reduce", "gather", "scatter")]
        patterns += [no % name for name in ("all_to_all", "all_to_all_single")]
        for texts, tensor in self.run_all("refused"):
            self.assertEqual(len(texts), len(patterns))
            for text, pattern in zip(texts, patterns):
                self.assertRegex(text, pattern)
            self.assertEqual(tensor.tolist(), [2.0] * 4)

    def test_a_group_of_some_ranks_is_refused(self):
        texts = self.run_all("subgroup")
        self.assertRegex(texts[0], "UnsupportedError: new_group: 1 of 2 ranks; backend weft has groups of all ranks")

    def test_tensors_are_reduced_in_a_session_without_a_process_group(self):
        where = self.pserver(trainers=2)
        wanted = total([member.values(torch.bfloat16, (1000,), rank) for rank in range(2)], False)
        for images, halves, texts in self.run_all("weft_torch", backend="none", WEFT_PSERVERS=where):
            self.assertTrue(torch.equal(images, torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)))
            np.testing.assert_array_equal(array(halves), wanted)
            patterns = ("dtype is torch.uint8; torch.float32, ", "not contiguous .*: give tensor.contiguous")
            patterns += ("a tensor is needed, not list", "op='max': 'sum' or 'mean'", "'mean' of torch.int64: integers")
            for text, pattern in zip(texts, patterns):
                self.assertRegex(text, "InvalidError: all_reduce: .*" + pattern)
        self.jobs_end_well()


class Training(Ranks):
    def test_of_two_ranks_ddp_ends_with_gloos_bits(self):
        ours, gloos = self.run_all("ddp"), self.run_all("ddp", backend="gloo")
        for rank in range(2):
            for step, (got, wanted) in enumerate(zip(ours[rank], gloos[rank])):
                self.assertEqual(list(got), list(wanted))
                for name, value in wanted.items():
                    self.assert_bits(got[name], value, (rank, step, name))
        self.assertFalse(torch.equal(gloos[0][3]["odd.weight"], gloos[0][4]["odd.weight"]))

    def test_of_three_ranks_gradients_are_sums_in_the_order_of_ranks(self):
        size = 3
        for found in self.run_all("gradients", size):
            for step, got in enumerate(found):
                given = [array(member.values(torch.float32, (5000,), step + rank)) for rank in range(size)]
                thirds = [one * (np.float32(1) / np.float32(size)) for one in given]
                divided = [one / np.float32(size) for one in given]
                wanted = [(parts[0] + parts[1]) + parts[2] for parts in (thirds, divided)]
                self.assertTrue(any(np.array_equal(array(got), one) for one in wanted), step)

    def test_a_group_can_be_made_again_while_a_model_holds_the_one_before(self):
        for tensor, is_another in self.run_all("again"):
            self.assertEqual(tensor.tolist(), [2, 2])
            self.assertTrue(is_another)


class Places(Ranks):
    def test_timeouts_and_the_address_come_from_the_group_and_rank_0(self):
        for (settings, pid), rank in zip(self.run_all("settings"), range(2)):
            self.assertEqual((settings["connect_timeout"], settings["step_timeout"]), ("2m", "2m"))
            self.assertRegex(settings["pservers"], r"^127\.0\.0\.1:\d+$")
            self.assertEqual(pid is not None, rank == 0)

    def test_pservers_that_are_named_are_used_and_the_environment_wins(self):
        where = self.pserver(trainers=2, count=2)
        more = {"WEFT_PSERVERS": where, "WEFT_ALL_REDUCE_RING": "64KiB", "WEFT_STEP_TIMEOUT": "50"}
        for settings, pid in self.run_all("settings", **more):
            self.assertEqual((settings["pservers"], pid), (where, None))
            self.assertEqual((settings["all_reduce_ring"], settings["step_timeout"]), ("64KiB", "50s"))
        self.jobs_end_well()

    def test_the_address_where_ranks_meet_names_no_pserver(self):
        port = support.free_port(1)
        more = {"RANK": "%(rank)d", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        for settings, _ in self.run_all("settings", **more):
            self.assertNotIn(":7164", settings["pservers"])

    def test_a_program_that_cannot_be_started_ends_all_ranks_with_its_name(self):
        for program, text in (("/nowhere/weft", "directory: '/nowhere/weft'"), ("/bin/false", "ended with 1")):
            for rank in self.start("settings", WEFT_PROGRAM=program):
                status, said = rank.end()
                self.assertNotEqual(status, 0)
                self.assertIn(text, said)


class Hosts(Ranks):
    """A pserver for each host."""

    def check_sums(self, found):
        size = len(found)
        wanted = total([member.values(torch.float32, (1 << 20,), rank) for rank in range(size)], False)
        for tensor, *_ in found:
            np.testing.assert_array_equal(array(tensor), wanted)
        self.assertEqual(len({where for _, where, *_ in found}), 1)

    def test_the_first_rank_of_each_host_starts_one_and_all_use_all(self):
        try:
            with hosts.Hosts(2) as network:
                meeting = "tcp://%s:29400" % network.address[0]
                ranks = self.start("shared", 4, MEETING=meeting, NETWORK=[str(network.pid[n // 2]) for n in range(4)])
                for rank in ranks:
                    self.ends_well(rank)
        except hosts.Unavailable as error:
            self.skipTest("networks of their own: %s" % error)
        self.none_is_left()
        found = [self.found(rank) for rank in range(4)]
        self.check_sums(found)
        where = found[0][1].split(",")
        self.assertEqual([place.rpartition(":")[0] for place in where], network.address)
        self.assertEqual([starts for _, _, starts, _, _ in found], [True, False, True, False])
        self.assertEqual({ring for *_, ring in found}, {("8MiB", "256KiB")})
        size = 4 << 20
        for _, _, _, sent, _ in found:
            # Half of each of two ranks' values goes to the other host, and that half's sums come back to two
            # ranks: twice what one tensor has. On one's own host nothing goes through sockets.
            self.assertGreater(sent["eth0"], 1.9 * size)
            self.assertLess(sent["eth0"], 2.3 * size)
            self.assertLess(sent["lo"], 0.1 * size)

    def test_a_host_without_its_pserver_ends_all_ranks_and_leaves_none(self):
        mark = self.own_folder()
        for rank in (0, 2):
            programs = ["/bin/false" if n == rank else support.WEFT for n in range(4)]
            ranks = self.start("shared", 4, HOST=[str(n // 2) for n in range(4)], WEFT_PROGRAM=programs, MARK=mark)
            for one in ranks:
                status, said = one.end()
                self.assertNotEqual(status, 0)
                self.assertIn("the pserver ended with 1", said)
            self.assertEqual(with_environment("MARK=" + mark), [], rank)


class Failures(Ranks):
    def errors(self, what, pattern):
        """All ranks end with an error that fits, and nothing is left."""
        for found in self.run_all_failing(what):
            self.assertRegex(found, pattern)

    def run_all_failing(self, what):
        for rank in self.start(what):
            rank.end()
        self.none_is_left()
        return [self.found(rank) for rank in range(2)]

    def test_tensors_of_other_sizes_end_all_ranks_with_both_in_the_text(self):
        self.errors("differs", "(40.*44|44.*40) bytes")

    def test_bytes_of_other_numbers_end_all_ranks_though_they_need_as_many_words(self):
        self.errors("differs_odd", "MismatchError: broadcast: rank . has . bytes, and rank . has .|broadcast: rank ")

    def test_an_error_in_backward_has_its_kind_and_text(self):
        self.errors("differs_in_ddp", r"MismatchError: trainer . reduces (20000 bytes.* 28|28 bytes.* 20000) bytes")
        self.assertRegex(self.found(0), "^RuntimeError: MismatchError")

    def test_the_other_ranks_name_one_that_died(self):
        ranks = self.start("dies")
        for rank in ranks:
            rank.end()
        self.assertRegex(self.found(0), "LostError: .*trainer 1")
        self.none_is_left()

    def test_the_pserver_ends_when_the_rank_that_has_started_it_dies(self):
        ranks = self.start("first_dies")
        for rank in ranks:
            rank.end()
        self.assertRegex(self.found(1), "LostError: .*trainer 0")
        pid = int(self.pserver_pid())
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self.addCleanup(os.close, descriptor)
        self.assertTrue(select.select([descriptor], [], [], support.LIMIT)[0], "the pserver is left")


if __name__ == "__main__":
    if torch is None:
        print("SKIPPED: PyTorch is not there: apt-get install python3-torch")
        sys.exit(77)
    support.main()

# SPDX-License-Identifier: Apache-2.0
"""weft.all_reduce: arrays that were not declared, in jobs of three trainers, each on a thread."""

import threading

import support

try:
    import numpy as np
    import weft
except ImportError:  # support.main says so
    np = None

TRAINERS = 3
SHAPES = ((), (1,), (0,), (3, 0, 2), (7, 11, 3), (200000,))


def given(dtype, shape, number):
    """A trainer's array, with what is hard to add: it depends on the order."""
    random = np.random.RandomState(17 * number + len(shape))
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return np.asarray(random.randint(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype))
    array = np.asarray(random.standard_normal(shape) * 10.0 ** random.randint(-3, 4, shape), dtype)
    flat = array.reshape(-1)
    if flat.size > 9:
        flat[5], flat[7], flat[9] = (-0.0, np.inf, np.finfo(dtype).max)
        flat[7] *= -1 if number == 1 else 1  # Inf - Inf
        flat[3] = np.nan if number == 2 else 1
    return array


def total(dtype, shape, op):
    """What NumPy makes of it, in the order of the trainers."""
    with np.errstate(all="ignore"):
        result = given(dtype, shape, 0)
        for number in range(1, TRAINERS):
            result = np.asarray(result + given(dtype, shape, number), dtype)
        if op == "mean":
            wide = np.float64 if dtype == np.float64 else np.float32
            result = np.asarray(result.astype(wide) / wide(TRAINERS), dtype)
    return result


class AllReduce(support.Case):
    def all_of(self, train, **settings):
        """Call train(session, number) on threads; what each returned."""
        where = self.pserver(TRAINERS, lanes=2)
        found = [None] * TRAINERS

        def run(number):
            try:
                with weft.Session(
                    pservers=where,
                    ports_num=2,
                    num_gradient_servers=TRAINERS,
                    trainer_id=number,
                    **settings,
                ) as session:
                    session.start()
                    found[number] = train(session, number)
            except weft.Error as error:
                found[number] = error

        threads = [threading.Thread(target=run, args=(number,)) for number in range(TRAINERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def assert_bits(self, got, wanted, what):
        self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape), what)
        same = np.asarray(got == wanted)
        if got.dtype.kind == "f":
            same = (same & (np.signbit(got) == np.signbit(wanted))) | (np.isnan(got) & np.isnan(wanted))
        self.assertTrue(same.all(), "%s: %d of %d differ" % (what, (~same).sum(), same.size))

    def test_sums_and_means_have_numpys_bits_in_every_dtype_and_shape(self):
        runs = [
            (dtype, shape, op)
            for dtype in ("float32", "float64", "float16", "int32", "int64", "longlong")
            for shape in SHAPES
            for op in ("sum", "mean")[: 1 if "f" not in dtype else 2]
        ]

        def train(session, number):
            found = []
            for dtype, shape, op in runs:
                array = given(dtype, shape, number)
                self.assertIsNone(session.all_reduce(array, op))
                found.append(array)
            return found

        with np.errstate(all="ignore"):
            for found in self.all_of(train, all_reduce_ring="1MiB"):
                self.assertIsInstance(found, list, found)
                for got, (dtype, shape, op) in zip(found, runs):
                    self.assert_bits(got, total(np.dtype(dtype), shape, op), (dtype, shape, op))
        self.jobs_end_well()

    def test_it_may_be_called_while_tensors_are_pushed(self):
        with weft.Session(pservers=self.pserver(), all_reduce_ring="64KiB") as session:
            tensor = session.empty(1000, name="w", reduce=True)
            session.start()
            tensor.grad[:] = 7
            session.step(1)
            session.push(tensor)
            array = np.full(100, 8, np.float32)
            session.all_reduce(array)
            session.wait()
            self.assertTrue((array == 8).all() and (tensor.param == 7).all())
        self.jobs_end_well()

    def test_calls_that_differ_end_the_job_for_all_with_both_in_the_text(self):
        for sizes, dtypes in (((10, 11, 10), ["f4"] * 3), ((10, 10, 10), ["f4", "f4", "i4"])):
            found = self.all_of(
                lambda session, number: session.all_reduce(np.zeros(sizes[number], dtypes[number])),
                all_reduce_ring="64KiB",
            )
            for error in found:
                self.assertIsInstance(error, weft.Error, found)
                self.assertRegex(str(error), "f32.*i32|i32.*f32|40 bytes.*44|44 bytes.*40")
            for pserver in self.pservers:
                self.assertNotEqual(pserver.end()[0], 0)


class Refused(support.Case):
    """What is refused before anything is sent: the session goes on."""

    def setUp(self):
        weft.init(pservers=self.pserver(), all_reduce_ring="64KiB")
        weft.start()
        self.addCleanup(weft.close)

    def refused(self, pattern, *arguments):
        with self.assertRaisesRegex(weft.InvalidError, pattern):
            weft.all_reduce(*arguments)

    def test_arrays_that_cannot_be_summed_in_place_are_named_with_the_remedy(self):
        square = np.zeros((4, 4), np.float32)
        fixed = np.zeros(3, np.float32)
        fixed.flags.writeable = False
        self.refused("dtype is bool; float32, float64, float16, int32, int64", np.zeros(3, bool))
        for dtype in ("uint8", "int8", "uint32", "complex64", "object"):
            self.refused("dtype is %s;" % (np.dtype(dtype).str if dtype == "int8" else dtype), np.zeros(3, dtype))
        self.refused("dtype is >f4; .* in the machine's order of bytes", np.zeros(3, ">f4"))
        self.refused(r"not C-contiguous \(shape \(4, 2\), strides \(16, 8\)\): give numpy.asc", square[:, ::2])
        self.refused("not C-contiguous", np.asfortranarray(np.arange(16, dtype=np.float32).reshape(4, 4)))
        self.refused("read-only, .* give array.copy", fixed)
        self.refused("multiple of 4 bytes: give array.copy", np.zeros(17, np.uint8)[1:].view(np.float32))
        self.refused("is masked; give array.filled", np.ma.zeros(3))
        self.refused("a NumPy array is needed, not list", [1.0])
        self.assertTrue((square == 0).all())

    def test_operations_are_sum_and_mean_and_of_integers_sum(self):
        array = np.ones(3, np.float32)
        for op in ("max", "SUM", None, 0, ["sum"]):
            self.refused("op=.*: 'sum' or 'mean' is needed", array, op)
        self.refused("op='mean' of int32: integers have a sum only", np.zeros(3, np.int32), "mean")
        weft.all_reduce(array, op="mean")
        self.assertEqual(list(array), [1, 1, 1])

    def test_without_a_ring_the_setting_is_named(self):
        weft.close()
        weft.init(pservers=self.pserver())
        weft.empty(3, name="w")
        weft.start()
        self.refused("has no ring of pieces; set all_reduce_ring", np.zeros(3, np.float32))
        weft.close()


if __name__ == "__main__":
    support.main()

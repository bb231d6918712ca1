# SPDX-License-Identifier: Apache-2.0
"""The binding in jobs of its own: real pservers on loopback, this process as the trainer."""

import asyncio
import concurrent.futures
import contextlib
import gc
import os
import re
import signal
import subprocess
import threading
import time
from unittest import mock

import support

try:
    import numpy as np
    import weft
except ImportError:  # support.main says so
    np = None


class Knock(Exception):
    """What the handler of a signal raises."""


def interrupted(call, waits, then=lambda: None):
    """The call ends with what a handler raises, of a signal that comes when `waits` says so."""

    over = []

    def handler(*_):
        if not over:
            raise Knock

    def knock():
        while not waits():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGUSR1)
        then()

    before = signal.signal(signal.SIGUSR1, handler)
    knocker = threading.Thread(target=knock, daemon=True)
    knocker.start()
    try:
        call()
        over.append(True)
    except Knock:
        return
    finally:
        knocker.join()  # no signal comes once the handler is gone: it would end the program
        signal.signal(signal.SIGUSR1, before)
    raise AssertionError("it was not interrupted")


class Job(support.Case):
    def open(self, trainers=1, sparse=0, **settings):
        where = self.pserver(trainers, sparse)
        settings.setdefault("connect_timeout", 60)
        session = weft.Session(
            pservers=where, num_gradient_servers=trainers, ports_num_for_sparse=sparse, **settings
        )
        self.addCleanup(session.abort, "the test is over")
        return session

    def refused(self, pattern, call, *arguments):
        with self.assertRaisesRegex(weft.InvalidError, pattern):
            call(*arguments)

    def test_a_step_is_that_of_the_formula_and_nothing_is_copied(self):
        session = self.open(learning_rate=0.5, optimizer="sgd")
        w = session.empty((300, 7), name="w")
        b = session.empty(7, name="b")
        w.param[:] = np.arange(2100, dtype=np.float32).reshape(300, 7)
        expected = w.param.copy()
        param, grad = w.param, w.grad
        session.start()
        for step in range(3):
            grad[:] = step + 1
            b.grad[:] = 1
            session.step(samples=2)
            session.push(b)
            session.push(grad)  # by its array: the same as by the tensor
            session.wait()
            expected -= np.float32(0.5) * np.float32(step + 1)
        self.assertTrue(np.array_equal(w.param, expected))
        self.assertTrue(np.array_equal(b.param, np.full(7, -1.5, np.float32)))
        self.assertTrue(np.shares_memory(param, w.param))
        stats = session.stats()
        self.assertEqual((stats["copied_bytes"], stats["steps"]), (0, 3))
        self.assertGreaterEqual(stats["sent_bytes"], 3 * grad.nbytes)
        session.close()
        self.jobs_end_well()

    def test_answers_that_go_past_the_caches_have_the_values_of_the_formula(self):
        """Of pushes that are applied as they come, through shared memory: more than 8 MiB of them."""
        session = self.open(
            learning_rate=0.5, optimizer="sgd", dense_mode="async", transport="shm", clip=2.0
        )
        plain = session.empty(9 << 18, name="plain", clip=0)
        clipped = session.empty(1 << 16, name="clipped")
        for tensor in (plain, clipped):
            tensor.param[:] = np.arange(tensor.param.size, dtype=np.float32)
        expected = [plain.param.copy(), clipped.param.copy()]
        session.start()
        for step in range(3):
            plain.grad[:] = np.arange(plain.grad.size, dtype=np.float32) % 7 + step
            clipped.grad[:] = np.arange(clipped.grad.size, dtype=np.float32) % 5 - 2 * step
            session.exchange()
            expected[0] -= np.float32(0.5) * plain.grad
            expected[1] -= np.float32(0.5) * np.clip(clipped.grad, -2, 2)
            np.testing.assert_array_equal(plain.param, expected[0])
            np.testing.assert_array_equal(clipped.param, expected[1])

    def test_what_is_reduced_comes_back_with_numpys_bits(self):
        """Three trainers, each on a thread of its own: sums in their order, whatever is in them."""
        given = np.random.RandomState(1).standard_normal((3, 70000)) * [[1], [1e-4], [1e4]]
        given = given.astype(np.float32)
        given[1, 5], given[2, 65537], given[:, 9] = np.nan, -np.inf, 3e38
        with np.errstate(all="ignore"):
            total = given[0] + given[1] + given[2]
        for reduced, wanted in (("sum", total), ("mean", total / np.float32(6))):
            where = self.pserver(3, lanes=2)
            found = {}

            def train(number, where=where, reduced=reduced, found=found):
                with weft.Session(
                    pservers=where, ports_num=2, num_gradient_servers=3, trainer_id=number, grad_reduce=reduced
                ) as session:
                    w = session.empty(70000, name="w", reduce=True, in_place=number == 2)
                    session.start()
                    self.assertEqual(np.shares_memory(w.param, w.grad), number == 2)
                    for step in range(2):
                        w.grad[:] = given[number] if step == 1 else 1
                        session.exchange(samples=number + 1)
                    found[number] = w.param.copy(), w.state

            threads = [threading.Thread(target=train, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.jobs_end_well()
            for got, state in found.values():
                same = (got.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))
                self.assertTrue(same.all(), (~same).sum())
                self.assertEqual(state, [])
            self.assertEqual(sorted(found), [0, 1, 2])

    def test_a_foreign_array_is_copied_and_counted(self):
        session = self.open(learning_rate=1)
        w = session.empty((10, 10), name="w")
        session.start()
        session.step(1)
        session.push(w, np.ones((10, 10), np.float32))
        session.wait(w)
        self.assertEqual(session.stats()["copied_bytes"], 400)
        out = np.empty((10, 10), np.float32)
        session.pull(w, out)
        self.assertTrue((out == -1).all())
        self.assertEqual(session.stats()["copied_bytes"], 800)
        session.close()
        self.jobs_end_well()

    def test_rules_of_a_step_are_kept_and_name_the_tensor(self):
        session = self.open()
        w = session.empty(5, name="w")
        v = session.empty(5, name="v")
        s = session.empty(5, name="s", static=True)
        session.start()
        self.refused("push of w before weft_step", session.push, w)
        session.step(1)
        session.push(w)
        self.refused("push of w twice in step 1", session.push, w)
        self.refused("push of s, which is static", session.push, s)
        self.refused("tensor v was not pushed in step 1", session.step, 1)
        self.refused("0 samples|samples", lambda: (session.push(v), session.wait(), session.step(0)))
        session.exchange(4, 1.5)
        self.assertEqual(session.steps, 2)
        self.refused("reduce of 257", session.reduce, np.zeros(257))
        self.assertEqual(list(session.reduce([1.5, 2])), [1.5, 2])
        session.barrier()
        session.pass_end()
        digest = session.digest()
        session.close()
        self.assertEqual(len("%016x" % digest), 16)
        self.jobs_end_well()

    def test_the_first_cause_is_an_exception_and_stays(self):
        session = self.open()
        w = session.empty(5, name="w")
        session.start()
        w.grad[:] = np.nan
        for _ in range(2):
            with self.assertRaisesRegex(weft.DataError, "w"):
                session.exchange(1)
        with self.assertRaises(weft.DataError):
            session.close()
        self.assertTrue((w.grad != w.grad).all())

    def test_a_wait_on_a_lost_session_names_the_tensor_and_the_cause(self):
        session = self.open(reconnect_timeout=0.2)
        w = session.empty(5, name="w")
        session.start()
        session.step(1)
        self.pservers[0].kill()
        session.push(w)
        for call in (session.wait, session.wait, session.push):
            with self.assertRaisesRegex(weft.LostError, "^tensor w: pserver 0 .*127.0.0.1"):
                call(w)
        with self.assertRaises(weft.LostError):
            session.close()

    def test_rates_by_samples_and_by_passes(self):
        rates = {  # by the samples, or passes, before the step
            "manual": ("4:1,6:0.5,100:0.25", [1, 1, 1, 0.5, 0.25]),
            "pass_manual": ("1:1,2:0.5,9:0.25", [1, 1, 0.5, 0.25, 0.25]),
        }
        for schedule, (arguments, wanted) in rates.items():
            session = self.open(schedule=schedule, schedule_args=arguments, learning_rate=1)
            w = session.empty(5, name="w")
            session.start()
            moved = []
            for _ in range(5):
                before = w.param[0]
                w.grad[:] = 1
                session.exchange(2)
                session.pass_end()
                moved.append(float(before - w.param[0]))
            self.assertEqual(moved, wanted, schedule)
            session.close()
            self.jobs_end_well()

    def test_a_job_goes_on_from_its_saved_state(self):
        def steps(session, w, count):
            for step in range(count):
                w.grad[:] = np.arange(5) + session.steps
                session.exchange(2)
            session.pass_end()

        settings = dict(optimizer="momentum", momentum=0.9, learning_rate=0.1, keep_state=1)
        first, whole, second = self.open(**settings), self.open(**settings), self.open(**settings)
        w, v, u = (session.empty(5, name="w") for session in (first, whole, second))
        for session in (first, whole):
            session.start()
        steps(first, w, 2)
        first.pull_state()
        self.assertEqual(len(w.state), 1)
        self.assertTrue(np.array_equal(w.exact(), w.param))
        steps(whole, v, 2)
        steps(whole, v, 2)
        u.param[:], u.state[0][:] = w.param, w.state[0]
        second.restore(2, 4)
        second.start()
        self.assertEqual(second.steps, 2)
        steps(second, u, 2)
        self.assertTrue(np.array_equal(u.param, v.param))
        for session in (first, whole, second):
            session.close()
        self.assertTrue(np.isfinite(w.state[0]).all())

    def test_positions_travel_with_steps(self):
        session = self.open()
        w = session.empty(5, name="w")
        self.refused("session: not started", session.position, b"early")
        session.start()
        self.assertIsNone(session.resumed)
        self.refused("position of 257 bytes, 256 at most", session.position, bytes(257))
        self.refused("position: 'text' is not bytes", session.position, "text")
        for where in (b"", bytearray(b"batch 1"), bytes(256)):
            session.position(where)
            w.grad[:] = 0
            session.exchange(1)
        session.pass_end()
        session.close()
        self.jobs_end_well()

    def test_tensors_have_modes_and_the_wire_its_format(self):
        session = self.open(dense_wire="bf16", learning_rate=1, average_window=0)
        w = session.empty(5, name="w", mode="async", discard_ratio=0.5, priority=-3)
        v = session.empty(5, name="v", mode="sync", priority=7)
        session.start()
        w.grad[:] = v.grad[:] = 1 + 2.0**-12  # what bf16 cannot tell from 1
        session.exchange(1)
        self.assertTrue((w.param == -1).all() and (v.param == -1).all())
        session.pass_end()
        self.assertEqual(session.trainer_stats(0)["slices_applied"], 1)
        self.refused("samples: each trainer of this job has steps of its own", session.samples)
        self.refused("trainer_id 1: the job has 1", session.trainer_stats, 1)
        self.refused("tensor x: mode=often", lambda: weft.Session().empty(3, name="x", mode="often"))
        session.close()
        self.jobs_end_well()

    def test_keys_are_exact_or_refused(self):
        session = self.open(sparse=1)
        table = session.table("words", 2)
        session.start()
        keys = [1, 2**63, 2**63 + 1, 2**64 - 1, 2**53 + 1]  # NumPy makes float64 of the list
        for given in (keys, tuple(keys), np.array(keys, object), np.array(keys, np.uint64)):
            rows = table.lookup(given)
            self.assertEqual([int(rows.keys[at]) for at in rows.place], keys)
            rows.free()
        for given in ([1.0, 2.0], np.array([1.0, 2.0]), [1, 2**64], [-1, 2**63], [-1], ["a"], [None]):
            with self.assertRaisesRegex(weft.InvalidError, "table words"):
                table.lookup(given)
        self.assertEqual(table.lookup([]).row_count, 0)
        session.close()
        self.jobs_end_well()

    def test_rows_of_ordered_keys_are_in_order(self):
        session = self.open(sparse=1)
        table = session.table("words", 2, init="uniform", init_a=1, init_b=2)
        session.start()
        keys = [9, 3, 7]
        rows = table.lookup(keys, in_order=True)
        self.assertTrue(rows.in_order)
        self.assertTrue(np.array_equal(rows.keys, keys))
        self.assertEqual((table.key_lane(9), table.stats()["copied_bytes"]), (0, 0))
        self.assertTrue(np.array_equal(rows.gather(), rows.values))
        self.assertEqual(table.stats()["copied_bytes"], 3 * 2 * 4)
        rows.free()
        session.close()
        self.jobs_end_well()

    def test_nobody_there_is_a_typed_error_within_the_deadline(self):
        port = support.free_port(1)
        session = weft.Session(pservers="127.0.0.1:%d" % port, connect_timeout=0.3)
        session.empty(3, name="w")
        with self.assertRaisesRegex(weft.Error, "127.0.0.1:%d" % port) as caught:
            session.start()
        self.assertIsInstance(caught.exception, (TimeoutError, ConnectionError))
        session.abort("nobody is there")

    def test_an_exception_in_a_with_block_ends_the_job_with_its_text(self):
        session = self.open()
        session.empty(3, name="w")
        with self.assertRaises(KeyError):
            with session:
                session.start()
                raise KeyError("what went wrong")
        status, said = self.pservers[0].end()
        self.assertNotEqual(status, 0)
        self.assertIn("what went wrong", said)

    def test_an_exception_that_nobody_catches_ends_the_job_with_its_text(self):
        where = self.pserver()
        program = "import weft; weft.init(pservers=%r); weft.empty(3); weft.start(); {}['oops']" % where
        trainer = self.run_program(*support.python("-c", program))
        status, said = trainer.end()
        self.assertEqual(status, 1)
        self.assertIn("KeyError", said)
        status, said = self.pservers[0].end()
        self.assertNotEqual(status, 0)
        self.assertIn("KeyError: 'oops'", said)

    def test_log_lines_come_to_the_callers_function(self):
        lines = []
        session = self.open(log=lambda level, line: lines.append((level, line)))
        session.empty(3, name="w")
        session.start()
        session.close()
        self.assertTrue(any("127.0.0.1" in line for _, line in lines), lines)
        self.jobs_end_well()

    def test_a_table_learns_and_its_rows_are_given_back(self):
        session = self.open(sparse=1)
        table = session.table("words", 3, optimizer="sgd", learning_rate=1)
        session.start()
        keys = np.array([7, 1 << 40, 7], dtype=np.int64)
        for _ in range(2):
            rows = table.lookup(keys)
            before = rows.gather()
            self.assertEqual((rows.values.shape, before.shape), ((2, 3), (3, 3)))
            self.assertEqual(sorted(rows.keys), [7, 1 << 40])
            session.step(3)
            table.update(rows, np.ones((3, 3), np.float32))
            session.wait()
            self.refused("was given back", lambda: rows.values)
        rows = table.lookup([7, 1 << 40], create=False)
        self.assertTrue(np.array_equal(rows.gather(), [[-4, -4, -4], [-2, -2, -2]]))
        rows.free()
        self.assertEqual(table.stats()["keys_pushed"], 6)
        self.refused("table words: key -1", table.lookup, [-1])
        self.refused("table words, key: 0.5 is no whole number", table.lookup, [0.5])
        self.refused("table words, key: None is no whole number", table.lookup, None)
        self.refused("table words, keys: ", table.lookup, [[1], [1, 2]])
        self.refused("table words, keys: the array is masked", table.lookup, np.ma.masked_array([1, 2], mask=[0, 1]))
        vast = np.broadcast_to(np.uint64(1), (1 << 32) + 1)  # of 8 bytes
        self.refused("table words: 4294967297 keys, which is 2.32 or more", table.lookup, vast)
        self.refused("table words, gradient: rows of lookup or prefetch", table.update, keys, before)
        session.close()
        self.jobs_end_well()

    def test_rmsprop_is_one_formula_for_tensors_and_for_rows(self):
        """In float32, operation by operation, as kernels/formulas.md has it: the first square counts in
        full, of a tensor in the job's first step, of a row in its own."""
        settings = {"learning_rate": 0.01, "rho": 0.9, "epsilon": 1e-6, "optimizer": "rmsprop"}
        rate, rho, epsilon = np.float32(0.01), np.float32(0.9), np.float32(1e-6)

        def follow(kept, grad, is_first):
            share = np.float32(1) if is_first else np.float32(1) - rho
            kept["a"] = rho * kept["a"] + share * (grad * grad)
            kept["f"] = rho * kept["f"] + (np.float32(1) - rho) * grad
            variance = np.maximum(kept["a"] - kept["f"] * kept["f"], np.float32(0))
            kept["w"] = kept["w"] - rate * grad / np.sqrt(variance + epsilon)

        session = self.open(sparse=1, **settings)
        w = session.empty(37, name="w")
        table = session.table("rows", 37, init="uniform", init_a=-1, init_b=1, **settings)
        w.param[:] = np.linspace(-1, 1, 37, dtype=np.float32)
        session.start()
        zero = np.zeros(37, np.float32)
        tensor, rows = {"w": w.param.copy(), "a": zero, "f": zero}, {}
        chance = np.random.RandomState(3)
        for step in range(8):
            keys = [key for key in range(12) if key % (step + 1) == step % 3]
            given = table.lookup(keys)
            before = given.gather()
            grads = chance.standard_normal((len(keys) + 1, 37)).astype(np.float32)
            grads[:, step] = 0  # a first square of 0 counts as one
            w.grad[:] = grads[-1]
            session.step(1)
            session.push(w)
            table.update(given, grads[:-1])
            session.wait()
            follow(tensor, grads[-1], step == 0)
            for key, first, grad in zip(keys, before, grads):
                is_first = key not in rows
                follow(rows.setdefault(key, {"w": first, "a": zero, "f": zero}), grad, is_first)
        self.assertTrue(np.array_equal(w.param, tensor["w"]))
        values = table.lookup(sorted(rows), create=False).gather()
        for got, key in zip(values, sorted(rows)):
            self.assertTrue(np.array_equal(got, rows[key]["w"]), key)
        session.abort("the test is over")

    def test_rows_that_are_sent_ahead_have_the_bits_of_their_step(self):
        """Of batches that meet, and rows that take several corrections: how many come ahead is up to the
        machine, what is in them is not. That none comes in ten jobs is not left to it."""
        for wire in ("f32", "bf16"):
            without, lines = self.train_rows(wire, False)
            for _ in range(10):
                with_it, told = self.train_rows(wire, True)
                if any(re.search(r" parts_ahead [1-9]", line) for line in told):
                    break
            else:
                self.fail("no part of a pull came ahead: %s" % told)
            self.assertEqual(len(with_it), 13)
            for step, (one, other) in enumerate(zip(with_it, without)):
                self.assertTrue(np.array_equal(one, other), (wire, step))
            self.assertTrue(any(" parts_ahead 0" in line for line in lines), lines)

    def train_rows(self, wire, looks_ahead):
        lines, seen = [], []
        session = self.open(
            sparse=1,
            sparse_look_ahead=looks_ahead,
            stats_period="60m",
            log=lambda _, line: lines.append(line),
        )
        table = session.table(
            "rows", 256, optimizer="adagrad", learning_rate=0.1, init="uniform", init_a=-1, init_b=1, wire=wire
        )
        session.start()
        table.lookup(np.arange(4000)).free()
        chance = np.random.RandomState(5)
        rows = table.lookup(chance.randint(0, 4000, 600))
        for _ in range(12):
            session.step(1)
            following = table.prefetch(chance.randint(0, 4000, 600))
            seen.append(rows.gather())
            table.update(rows, np.sin(seen[-1]))
            session.wait()
            rows = following
        seen.append(rows.gather())
        rows.free()
        session.close()
        self.jobs_end_well()
        return seen, lines

    def test_views_of_rows_outlive_their_session(self):
        for wire in ("f32", "bf16"):
            session = weft.Session(pservers=self.pserver(sparse=1), ports_num_for_sparse=1)
            table = session.table("words", 700, init="uniform", init_a=1, init_b=2, wire=wire)
            session.start()
            rows, other = table.lookup(np.arange(900)), table.prefetch([5])
            values, keys, place, more = rows.values, rows.keys, rows.place, other.values
            before = values.copy()
            if wire == "f32":
                session.close()
            else:
                session.abort("on purpose")
            self.assertTrue(np.array_equal(values, before))
            self.assertTrue(np.array_equal(more[0], before[place[5]]))
            self.assertTrue(np.array_equal(keys[place], np.arange(900)))
            self.assertTrue((values >= 1).all())
            self.assertFalse(values.flags.writeable or keys.flags.writeable)
            with self.assertRaises(weft.ClosedError):
                rows.values  # noqa: B018
            where = values.ctypes.data
            self.assertTrue(support.mapped(where))
            del values, more, rows, other, table, session
            gc.collect()
            self.assertFalse(support.mapped(where), "memory of a session that nobody holds")

    def test_rows_that_nobody_looked_at_go_with_their_session(self):
        session = weft.Session(pservers=self.pserver(sparse=1), ports_num_for_sparse=1)
        table = session.table("words", 700, init="uniform", init_a=1, init_b=2)
        session.start()
        rows = table.lookup(np.arange(900))
        copy, where = rows.gather(), session._call.weft_rows_values(rows._handle)
        session.close()
        self.assertTrue((copy >= 1).all())
        self.assertTrue(support.mapped(where))
        del rows, table, session
        gc.collect()
        self.assertFalse(support.mapped(where), "memory that was never shown to anybody")

    def test_an_array_of_gradients_and_answers_is_unmapped_once(self):
        for kept in ("grad", "param"):
            session = weft.Session()
            w = session.empty(5000, name="w", reduce=True, in_place=True)
            apart = session.empty(5000, name="apart", reduce=True).grad
            w.grad[:] = 7
            array = getattr(w, kept)
            session.close()
            del w, session
            gc.collect()
            where = array.ctypes.data
            self.assertTrue(support.mapped(where), "unmapped below " + kept)
            self.assertTrue(support.mapped(apart.ctypes.data))
            self.assertEqual(array.sum(), 35000)
            del array
            gc.collect()
            self.assertFalse(support.mapped(where), "memory of a session that nobody holds")
            self.assertEqual(apart.sum(), 0)

    def test_gradients_of_rows_are_checked_and_named(self):
        session = self.open(sparse=1)
        table = session.table("words", 3)
        session.start()
        rows = table.lookup([1, 2])
        other = table.lookup([3])
        with self.assertRaisesRegex(weft.AgainError, "table words: two batches .* Rows.free"):
            table.lookup([4])
        other.free()
        session.step(1)
        self.refused("table words, gradient: its shape", table.update, rows, np.ones((3, 3), np.float32))
        self.refused("table words, gradient: its dtype", table.update, rows, np.ones((2, 3)))
        odd = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
        self.refused("table words, gradient: it does not begin", table.update, rows, odd)
        table.update(rows, np.ones((2, 3), np.float32))
        session.wait()
        session.close()
        self.jobs_end_well()


    def test_a_lookup_that_fails_keeps_no_batch(self):
        session = self.open(sparse=1)
        table = session.table("words", 3)
        session.start()
        session.step(1)
        for _ in range(2):
            self.refused("has not handed in", table.lookup, [1])
        session.wait()
        session.exchange(1)  # answered after what was asked before it
        rows = [table.lookup([1]), table.lookup([2])]
        for batch in rows:
            batch.free()
        session.close()
        self.jobs_end_well()

    def test_rows_of_a_step_that_nobody_waited_for_are_given_back(self):
        session = self.open(sparse=1)
        table = session.table("words", 3)
        session.start()
        rows = table.lookup([1, 2])
        session.step(1)
        table.update(rows, np.ones((2, 3), np.float32))
        begun = False
        while not begun:
            with contextlib.suppress(weft.AgainError):
                session.step(1)
                begun = True
        self.refused("was given back", lambda: rows.values)
        self.refused("was given back", table.update, rows, np.ones((2, 3), np.float32))


class Lent(support.Case):
    """Two trainers; the second one, in a thread of its own, pushes when it is let."""

    def late(self, where, go):
        with weft.Session(pservers=where, num_gradient_servers=2, trainer_id=1, learning_rate=1) as session:
            w = session.empty(5, name="w")
            w.grad[:] = 2
            session.start()
            for _ in range(2):
                go.acquire()
                session.exchange(1)
            session.pass_end()
            session.exchange(1)

    def not_written_over(self, session, w, grad):
        with self.assertRaisesRegex(weft.InvalidError, "tensor w: its arrays are lent"):
            session.push(w, np.full(5, 7, np.float32))
        self.assertTrue((w.grad == grad).all())

    def test_a_gradient_that_is_lent_is_not_written_over(self):
        where, go = self.pserver(trainers=2), threading.Semaphore(0)
        thread = threading.Thread(target=self.late, args=(where, go), daemon=True)
        thread.start()
        session = weft.Session(pservers=where, num_gradient_servers=2, learning_rate=1)
        self.addCleanup(session.abort, "the test is over")
        w = session.empty(5, name="w")
        session.start()
        session.step(1)
        session.push(w, np.full(5, 3, np.float32))
        self.not_written_over(session, w, 3)
        go.release()
        session.wait(w)
        self.assertTrue((w.param == -5).all())
        w.grad[:] = 4
        interrupted(session.exchange, lambda: session._waiter)
        self.not_written_over(session, w, 4)
        go.release()
        session.wait()
        self.assertTrue((w.param == -11).all())
        session.pass_end()
        session.step(1)
        session.push(w, np.full(5, 3, np.float32))
        session.wait()
        self.assertTrue((w.grad == 3).all())
        thread.join(support.LIMIT)
        self.assertFalse(thread.is_alive())


class Compared(support.Case):
    """Two trainers that say in words what they have to have alike."""

    def take_part(self, where, number, words, here=None):
        with weft.Session(pservers=where, num_gradient_servers=2, trainer_id=number, compared=words) as session:
            session.empty(5, name="w")
            session.start()
            if here is not None:
                here.set()
            session.barrier()

    def test_who_differs_in_a_word_is_refused_and_told_which(self):
        where, here = self.pserver(trainers=2), threading.Event()
        words = "seed=1 data=%016x" % 0x9F86D081
        thread = threading.Thread(target=self.take_part, args=(where, 0, words, here), daemon=True)
        thread.start()
        self.assertTrue(here.wait(support.LIMIT))  # whoever is first is who the other is compared with
        named = "trainer 1 .* has seed=2, trainer 0 .* has seed=1: give every trainer the same"
        with self.assertRaisesRegex(weft.MismatchError, named):
            self.take_part(where, 1, words.replace("1", "2", 1))
        self.take_part(where, 1, words)
        thread.join(support.LIMIT)
        self.assertFalse(thread.is_alive())
        self.jobs_end_well()


class Signals(support.Case):
    """A trainer that waits for a second one, which takes part in the start and in nothing else."""

    def waiting(self, call):
        """The trainer's process, which says "waits", then what becomes of its call, line by line."""
        program = """if True:
            import weft
            s = weft.Session(pservers=%r, num_gradient_servers=2, trainer_id=0, ports_num_for_sparse=1)
            w = s.empty(3, name="w")
            t = s.table("t", 3)
            s.start()
            rows = t.lookup([1])
            s.step(1)
            s.push(w)
            t.update(rows, rows.gather())
            print("waits", flush=True)
            try:
                %s
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            try:
                s.step(1)
            except weft.Error as error:
                print(type(error).__name__, error, flush=True)
            s.abort("enough")
            """
        where = self.pserver(trainers=2, sparse=1)
        process = subprocess.Popen(
            support.python("-c", program % (where, call)),
            env=support.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        other = weft.Session(pservers=where, num_gradient_servers=2, trainer_id=1, ports_num_for_sparse=1)
        self.addCleanup(other.abort, "the test is over")
        other.empty(3, name="w")
        other.table("t", 3)
        other.start()
        self.assertEqual(process.stdout.readline(), "waits\n")
        return process

    def interrupt(self, process, number=signal.SIGINT):
        """When it has nothing to do but to wait."""
        while self.state_of(process.pid) != "S":
            time.sleep(0.01)
        process.send_signal(number)

    @staticmethod
    def state_of(pid):
        with open("/proc/%d/stat" % pid, encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]

    def test_ctrl_c_ends_a_wait_and_the_session_lives(self):
        for call in ("s.wait()", "s.wait(w)", "t.lookup([1])")[: 3 if support.LONG else 1]:
            process = self.waiting(call)
            self.interrupt(process)
            self.assertEqual(process.stdout.readline(), "interrupted\n")
            self.assertRegex(process.stdout.readline(), "^AgainError .*unanswered")
            self.assertEqual(process.wait(support.LIMIT), 0)

    def test_ctrl_c_ends_a_barrier_and_leaves_the_session_to_be_closed(self):
        for call in ("barrier()", "reduce([1])", "pass_end()")[: 3 if support.LONG else 1]:
            process = self.waiting("s." + call)
            self.interrupt(process)
            self.assertEqual(process.stdout.readline(), "interrupted\n")
            self.assertRegex(process.stdout.readline(), "^AbortedError .*interrupted in " + call.split("(")[0])
            self.assertEqual(process.wait(support.LIMIT), 0)

    def test_a_signal_that_nobody_catches_names_who_was_stopped_to_the_others(self):
        self.stopped_by(signal.SIGINT, "", -signal.SIGINT)
        handle = "import signal; signal.signal(signal.SIGTERM, weft.stopped)\n"
        self.stopped_by(signal.SIGTERM, handle, 128 + signal.SIGTERM)

    def stopped_by(self, number, before, code):
        session = "weft.Session(pservers=%r, num_gradient_servers=2, trainer_id=0)"
        work = """s.empty(3, name="w"); s.start(); print("waits", flush=True); s.barrier()"""
        for form in ("with " + session + " as s: " + work, "s = " + session + "; " + work):
            where = self.pserver(trainers=2)
            process = subprocess.Popen(
                support.python("-c", "import weft\n" + before + form % where),
                env=support.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.kill)
            other = weft.Session(pservers=where, num_gradient_servers=2, trainer_id=1)
            self.addCleanup(other.abort, "the test is over")
            other.empty(3, name="w")
            other.start()
            self.assertEqual(process.stdout.readline(), "waits\n")
            self.interrupt(process, number)
            text = r"^trainer 0 \(host .*, pid %d\) was stopped by %s$" % (process.pid, number.name)
            self.assertEqual(process.wait(support.LIMIT), code)
            with self.assertRaisesRegex(weft.AbortedError, text):
                other.barrier()
            status, said = self.pservers[-1].end()
            self.assertEqual(status, 69)
            self.assertIn("was stopped by " + number.name, said)

    def test_ctrl_c_in_close_is_not_lost_nor_is_the_memory(self):
        session = weft.Session(pservers=self.pserver(sparse=1), ports_num_for_sparse=1)
        table = session.table("t", 700)
        session.start()
        pserver = self.pservers[0].process
        self.pservers[0].stop()
        rows = table.prefetch([1])
        where = session._call.weft_rows_values(rows._handle)
        interrupted(session.close, lambda: session._handle is None, lambda: pserver.send_signal(signal.SIGCONT))
        with self.assertRaisesRegex(weft.ClosedError, "closed"):
            rows.wait()
        session.close()
        self.assertTrue(support.mapped(where))
        del rows, table, session
        gc.collect()
        self.assertFalse(support.mapped(where))

    def test_ctrl_c_while_close_waits_for_a_step_closes_all_the_same(self):
        """A step that weft.torch has left to be waited for."""
        where = self.pserver(trainers=2, sparse=1)
        sessions = [
            weft.Session(pservers=where, num_gradient_servers=2, trainer_id=number, ports_num_for_sparse=1)
            for number in range(2)
        ]
        tables = [session.table("t", 3) for session in sessions]
        other = threading.Thread(target=sessions[1].start)
        other.start()
        sessions[0].start()
        other.join()
        session, table = sessions[0], tables[0]
        rows = table.lookup([1])
        session.step(1)
        table.update(rows, rows.gather())
        session._end_later()
        self.assertTrue(session._ends_later)
        interrupted(session.close, lambda: session._waiter is not None)
        self.assertIsNone(session._handle)
        with self.assertRaisesRegex(weft.ClosedError, "closed"):
            session.barrier()
        with self.assertRaisesRegex(weft.AbortedError, "closed its session in the middle of a step"):
            sessions[1].barrier()
        sessions[1].abort("the test is over")

    def test_a_handler_that_returns_does_not_end_a_wait(self):
        calls = []
        where = self.pserver(trainers=1)
        session = weft.Session(pservers=where)
        self.addCleanup(session.abort, "the test is over")
        session.empty(3, name="w")
        old = signal.signal(signal.SIGALRM, lambda *_: (calls.append(1), self.wake(calls)))
        self.addCleanup(signal.signal, signal.SIGALRM, old)
        self.pservers[0].stop()
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        session.start()
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertGreaterEqual(len(calls), 3)
        session.close()

    def session_that_would_wait(self):
        """It, and its tensor, which it has pushed: the other trainer never comes."""
        session = weft.Session(pservers=self.pserver(trainers=2), num_gradient_servers=2)
        self.addCleanup(session.abort, "the test is over")
        w = session.empty(3, name="w")
        session.start()
        session.step(1)
        session.push(w)
        return session, w

    def test_a_second_thread_is_refused_while_one_is_in_a_call(self):
        session, w = self.session_that_would_wait()
        caught, free = [], threading.Event()

        def wait():
            try:
                while not caught or "another thread" in caught[-1]:  # the poll below came first
                    try:
                        session.wait()
                    except weft.Error as error:
                        caught.append(str(error))
            finally:
                free.set()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        while not session._waiter:  # until it is in the call
            time.sleep(0.001)
        for call in (session.wait, session.close, session.barrier, lambda: session.push(w), session.stats):
            with self.assertRaisesRegex(weft.InvalidError, "another thread is in a call"):
                call()
        # Two threads may pass the binding's own check at once. The library refuses one of them, as soon as
        # the other one is in the call.
        while session._call.weft_poll(session._handle) == 0:
            time.sleep(0)
        self.assertIn(b"another thread is in one of its calls", session._call.weft_last_error())
        for end in (session.close, lambda: session.abort("beside another thread")):
            with mock.patch.object(session, "_waiter", None):  # as beside a push, which does not wait
                with self.assertRaisesRegex(weft.InvalidError, "another thread is in a call"):
                    end()
        self.assertFalse(free.is_set())
        session._stop(signal.SIGUSR1)
        self.assertTrue(free.wait(support.LIMIT))
        thread.join()
        self.assertIn("SIGUSR1", caught[-1])

    def test_a_second_thread_cannot_free_rows_beside_a_call_and_lose_them(self):
        """The library ignores that, and the table would be left with one batch."""
        with weft.Session(pservers=self.pserver(sparse=1), ports_num_for_sparse=1) as session:
            table = session.table("words", 2)
            session.start()
            rows, other, found = table.lookup([1, 2]), table.lookup([3]), []

            def free():
                try:
                    other.free()
                except weft.InvalidError as error:
                    found.append(str(error))

            class Beside:
                """The library, with another thread in each call."""

                def __getattr__(self, name, call=session._call):
                    def beside(*arguments):
                        if threading.current_thread() is threading.main_thread():
                            thread = threading.Thread(target=free)
                            thread.start()
                            thread.join()
                        return getattr(call, name)(*arguments)

                    return beside

            session.step(1)
            for call in (rows.gather, lambda: table._push(rows, rows.gather().ctypes.data), lambda: table.prefetch([4])):
                with mock.patch.object(session, "_call", Beside()):
                    try:
                        call()
                    except weft.AgainError:
                        found.append("another thread is in a call of two batches")
                self.assertIn("another thread is in a call", " ".join(found))
                found.clear()
            session.wait()
            other.free()

    def test_asyncio_trains_on_whichever_threads_its_executors_have(self):
        session = weft.Session(pservers=self.pserver(), learning_rate=1)
        w = session.empty(5, name="w")
        session.start()

        async def train():
            for _ in range(3):
                w.grad[:] = 1
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    await asyncio.get_running_loop().run_in_executor(pool, session.exchange)
            w.grad[:] = 1
            await asyncio.get_running_loop().run_in_executor(None, session.exchange)

        asyncio.run(train())
        self.assertEqual(w.param.tolist(), [-4] * 5)
        closer = threading.Thread(target=session.close)
        closer.start()
        closer.join()
        self.assertRaises(weft.ClosedError, session.exchange)
        self.jobs_end_well()

    def test_a_handler_cannot_make_a_call_inside_another_one(self):
        session, w = self.session_that_would_wait()
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))

        def knock():
            while not session._waiter:  # until it is in the call
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGUSR1)

        for call in (session.close, session.barrier, session.wait):
            signal.signal(signal.SIGUSR1, lambda *_: call())
            knocker = threading.Thread(target=knock, daemon=True)
            knocker.start()
            with self.assertRaisesRegex(weft.InvalidError, "handler cannot"):
                session.wait()
            knocker.join()

    def test_two_signals_at_once_end_a_wait_and_the_next_one_listens_too(self):
        session, w = self.session_that_would_wait()
        handled = []

        def fall(number, _):
            handled.append(number)
            raise BlockingIOError

        both = (signal.SIGUSR1, signal.SIGUSR2)
        for number in both:
            self.addCleanup(signal.signal, number, signal.signal(number, fall))
        for _ in range(3):
            handled.clear()
            sender = threading.Timer(0.05, lambda: [os.kill(os.getpid(), number) for number in both])
            sender.start()
            with contextlib.suppress(BlockingIOError):  # outside of a wait
                while len(handled) < 2:
                    with contextlib.suppress(BlockingIOError):
                        session.wait()
            sender.join()
            self.assertEqual(sorted(handled), sorted(both))

    def wake(self, calls):
        if len(calls) == 3:
            self.pservers[0].process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    support.main()

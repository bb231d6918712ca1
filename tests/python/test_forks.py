#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Children of fork beside a session: they read its arrays, write garbage into all of them, make calls,
and end in every way, while the parent trains to the same bits as undisturbed."""

import ctypes
import multiprocessing
import os
import signal

import support

try:
    import numpy as np
    import weft
except ImportError:  # support.main says so
    np = None

STEPS = 6


class Training:
    """One trainer with tensors of several sizes, state and a table."""

    def __init__(self, where, transport):
        self.session = weft.Session(pservers=where, transport=transport, ports_num_for_sparse=1, keep_state=1,
                                    optimizer="adam", learning_rate=0.1)
        self.tensors = [self.session.empty(shape, name="t%d" % i) for i, shape in enumerate([(300, 2000), 7])]
        self.table = self.session.table("rows", 16, optimizer="adagrad", learning_rate=0.1)
        for tensor in self.tensors:
            tensor.param[:] = np.linspace(-1, 1, tensor.param.size).reshape(tensor.shape)
        self.session.start()
        self.found = [array for tensor in self.tensors for array in [tensor.param, tensor.grad] + tensor.state]
        self.values = None

    def step(self, number):
        rows = self.table.lookup(np.arange(number, number + 50))
        self.values = rows.values
        self.session.step(1)
        for tensor in self.tensors:
            tensor.grad[:] = tensor.param * 0.5 + number
            self.session.push(tensor)
        self.table.update(rows, rows.gather() + 1)
        self.session.wait()

    def arrays(self):
        return self.found + [self.values]

    def end(self):
        """All bits that there are."""
        self.session.pass_end()
        self.session.pull_state()
        bits = [array.tobytes() for tensor in self.tensors for array in [tensor.param] + tensor.state]
        bits.append(self.table.lookup(np.arange(STEPS + 50), create=False).gather().tobytes())
        digest = self.session.digest()
        self.session.close()
        return [digest] + bits


def overwrite(arrays):
    """Also those that NumPy knows as read-only."""
    for array in arrays:
        ctypes.memset(array.ctypes.data, 0xFF, array.nbytes)


def work(training, wanted):
    """In a child. The number of the first thing that is wrong, or 0."""
    arrays = training.arrays()
    if [array.tobytes() for array in arrays] != wanted:
        return 1
    overwrite(arrays)
    if not all(np.isnan(array).all() for array in arrays):
        return 2
    for call in (training.session.wait, training.session.close, weft.Session, lambda: training.session.step(1)):
        try:
            call()
        except weft.ForkedError:
            continue
        if call != training.session.close:  # which does nothing
            return 3
    return 0


def in_child(function, *arguments):
    """Its exit status, from os._exit."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = function(*arguments)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def load(training, wanted, batches):
    """A worker as those of a data loader: it lives beside several steps."""
    code = work(training, wanted)
    while batches.recv() is not None:
        overwrite(training.arrays())
        batches.send(code)
    os.kill(os.getpid(), signal.SIGKILL)


class Children(support.Case):
    def train(self, transport, children):
        training = Training(self.pserver(sparse=1), transport)
        workers = []
        for number in range(STEPS):
            training.step(number)
            if children:
                wanted = [array.tobytes() for array in training.arrays()]
                self.assertEqual(in_child(work, training, wanted), 0)
                context = multiprocessing.get_context("fork")
                ours, theirs = context.Pipe()
                worker = context.Process(target=load, args=(training, wanted, theirs))
                worker.start()
                workers.append((worker, ours))
            for _, pipe in workers:
                pipe.send("batch")
            for _, pipe in workers:
                self.assertEqual(pipe.recv(), 0)
            for array, before in zip(training.arrays(), wanted if children else []):
                self.assertEqual(array.tobytes(), before)
        bits = training.end()
        for worker, pipe in workers:
            pipe.send(None)
            worker.join(support.LIMIT)
            self.assertEqual(worker.exitcode, -signal.SIGKILL)
        self.jobs_end_well()
        if children:  # arrays outlive the session, and are the parent's alone
            arrays = [training.tensors[0].param, training.tensors[0].state[0]]
            before = [array.tobytes() for array in arrays]
            self.assertEqual(in_child(lambda: overwrite(arrays) or 0), 0)
            self.assertEqual([array.tobytes() for array in arrays], before)
        return bits

    def test_training_beside_children_that_write_has_the_bits_of_training_without(self):
        alone = self.train("tcp", False)
        for transport in ("tcp", "shm"):
            with self.subTest(transport=transport):
                self.assertTrue(self.train(transport, True) == alone)

    def test_a_child_that_ends_as_programs_do_leaves_the_session_of_its_parent_alone(self):
        for transport in ("tcp", "shm"):
            with self.subTest(transport=transport):
                where = self.pserver()
                self.ends_well(self.run_program(*support.python("-c", PROGRAM, where, transport)))
                self.jobs_end_well()

    def test_a_parent_that_is_killed_is_missed_though_a_child_of_it_lives(self):
        for transport in ("tcp", "shm"):
            with self.subTest(transport=transport):
                where = self.pserver()
                status, child = self.run_program(*support.python("-c", KILLED, where, transport)).end()
                self.assertEqual(status, -signal.SIGKILL, child)
                status, said = self.pservers[0].end()
                os.kill(int(child), signal.SIGKILL)  # it lives
                self.assertEqual(status, 69, said)
                self.assertRegex(said, "trainer 0 .*was lost in step 2: .*closed without warning")

    def test_a_child_sees_its_parent_in_pages_that_it_has_not_written(self):
        """What the documentation says of reading while the parent goes on."""
        page = os.sysconf("SC_PAGESIZE") // 4
        w = weft.Session().empty(4 * page, name="w")
        w.param[:] = 1
        ask, answer = os.pipe(), os.pipe()

        def read():
            w.param[:page] = 2
            os.write(answer[1], b"x")
            os.read(ask[0], 1)
            os.write(answer[1], w.param[[0, page - 1, 2 * page]].tobytes())
            return 0

        child = os.fork()
        if child == 0:
            os._exit(read())
        self.assertEqual(os.read(answer[0], 1), b"x")
        w.param[:] = 3
        os.write(ask[1], b"x")
        self.assertEqual(np.frombuffer(os.read(answer[0], 12), np.float32).tolist(), [2, 2, 3])
        os.waitpid(child, 0)
        w.session.close()


PROGRAM = """
import os, sys, weft
session = weft.Session(pservers=sys.argv[1], transport=sys.argv[2], learning_rate=1)
w = session.empty(1000, name="w")
w.param[:] = 5
session.start()
child = os.fork()
if child == 0:
    w.param[:] = w.grad[:] = 7
    sys.exit(3)  # with all that Python and libweft do at exit
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
w.grad[:] = 1
session.exchange()
assert (w.param == 4).all(), w.param
session.close()
"""

KILLED = """
import os, signal, sys, weft
session = weft.Session(pservers=sys.argv[1], transport=sys.argv[2], peer_timeout="10m")
w = session.empty(1000, name="w")
session.start()
session.exchange()
child = os.fork()
if child == 0:
    signal.alarm(300)
    signal.pause()
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


if __name__ == "__main__":
    support.main()

# SPDX-License-Identifier: Apache-2.0
"""Session.save and Session.load: a job goes on from its files with the bits of one that never stopped,
and weft train reads them as it reads its own. The files are read here, by their description
(saved/README.md)."""

import functools
import glob
import os
import pickle
import select
import subprocess
import tempfile
import threading
import time

import support

try:
    import numpy as np
    import weft
except ImportError:  # support.main says so
    np = None

SETTINGS = dict(optimizer="momentum", momentum=0.9, learning_rate=0.1, keep_state=1, connect_timeout=60)
TABLE = dict(optimizer="adagrad", learning_rate=0.1, init="uniform", init_a=-1, init_b=1)


def values(path):
    """The floats of a parameter file: i32 0, u32 4, u64 count."""
    with open(path, "rb") as file:
        data = file.read()
    head = np.frombuffer(data[:16], "<u4")
    assert (head[0], head[1], head[2] + (int(head[3]) << 32)) == (0, 4, (len(data) - 16) // 4)
    return np.frombuffer(data[16:], "<f4")


def lines(path):
    """The manifest: the values of its lines by their first word."""
    found = {}
    with open(path + "/manifest") as file:
        for line in file:
            key, _, value = line.rstrip("\n").partition(" ")
            found.setdefault(key, []).append(value)
    return found


class Trainer(threading.Thread):
    """A trainer of a job, in a thread of its own, which its session belongs to."""

    def __init__(self, number, where, passes, load=None, save=None, tables=True):
        super().__init__(daemon=True)
        self.number, self.where, self.passes, self.tables = number, where, passes, tables
        self.folders = load, save
        self.error, self.tried = None, None
        self.start()

    def run(self):
        try:
            self.train()
        except Exception as error:  # the test looks at it
            self.error = error

    def declare(self):
        more = dict(SETTINGS, num_gradient_servers=2, trainer_id=self.number)
        session = weft.Session(pservers=self.where, ports_num_for_sparse=int(self.tables), **more)
        self.kernel = session.empty((2, 3, 1, 2), name="conv/kernel.rows")
        self.scalar = session.empty((), name="sca lär%20")
        self.fixed = session.empty(4, name="fixed", static=True)
        self.table = session.table("words", 3, **TABLE) if self.tables else None
        return session

    def train(self):
        load, save = self.folders
        session = self.declare()
        if load is not None:
            session.load(load)
        elif self.number == 0:
            self.kernel.param[:] = np.arange(12).reshape(2, 3, 1, 2)
            self.fixed.param[:] = [1, 2, 3, 4]
        session.start()
        self.began = session.steps
        for number in range(self.passes):
            for _ in range(2):
                self.step(session)
            session.pass_end()
            if save is not None:
                try:
                    session.save(save)
                except weft.Error as error:
                    self.tried = error
        self.end = [tensor.param.copy() for tensor in (self.kernel, self.scalar, self.fixed)]
        if self.table is not None:
            self.rows = self.table.lookup(np.arange(5), create=False).gather()
        self.digest = session.digest()
        session.close()

    def step(self, session):
        if self.table is not None:
            rows = self.table.lookup(np.array([session.steps % 5, self.number, 2]))
        session.step(3 + self.number)
        for tensor in (self.kernel, self.scalar):
            tensor.grad[...] = tensor.param * 0.5 + 0.01 * (session.steps + self.number)
            session.push(tensor)
        if self.table is not None:
            self.table.update(rows, rows.gather() * np.float32(0.25) + np.float32(self.number + 1))
        session.wait()

    def result(self):
        self.join(support.LIMIT)
        if self.is_alive():
            raise AssertionError("trainer %d does not end" % self.number)
        if self.error is not None:
            raise self.error
        return self


class Returning(Trainer):
    """A trainer that goes back with its job, and calls `meet` at step 20."""

    def __init__(self, number, where, passes, meet):
        self.meet, self.went_back, self.held = meet, [], None
        super().__init__(number, where, passes)

    def train(self):
        session = self.declare()
        if self.number == 0:
            self.kernel.param[:] = np.arange(12).reshape(2, 3, 1, 2)
            self.fixed.param[:] = [1, 2, 3, 4]
        session.start()
        at, is_over = int((session.resumed or {}).get("position") or b"0"), False
        while not is_over:
            try:
                self.go_on(session, at)
                session.finish()
                is_over = True
            except weft.RolledBack as back:
                self.went_back.append(back)
                at = int(back.position or b"0")
                self.steps = session.steps
                self.refuse_held()
        session.close()

    def refuse_held(self):
        """Rows of before, while others are in their place."""
        if self.held is None:
            return
        now = self.table.lookup(np.arange(3), create=False)
        for call in (self.held.wait, self.held.gather, lambda: self.table.update(self.held, np.zeros((5, 3), "f4"))):
            try:
                call()
            except weft.InvalidError as error:
                assert "void when the job went back" in str(error), error
            else:
                raise AssertionError("rows of before the job went back are used")
        self.held.free()
        assert now.gather().shape == (3, 3)  # that was not freed
        now.free()
        self.held = None

    def go_on(self, session, at):
        if at > 0 and at % 2 == 0 and session.resumed["pass_count"] < at // 2:
            session.pass_end()  # the snapshot is of the last step of its pass
        for number in range(at, 2 * self.passes):
            if number == 20:
                self.held = self.table.lookup(np.arange(5), create=False)
                self.meet()
            session.position(b"%d" % (number + 1))
            self.step(session)
            if self.held is not None:
                self.held.free()
                self.held = None
            if number % 2 == 1:
                session.pass_end()
        self.rows = self.table.lookup(np.arange(5), create=False).gather()
        self.digest = session.digest()


def print_returning(number, where, passes, there, go):
    """A trainer in a process of its own. It writes a byte to `there` at step 20, and goes on with one of
    `go`."""

    def meet():
        os.write(there, b"x")
        os.read(go, 1)

    trainer = Returning(number, where, passes, meet).result()
    print("digest %016x rows %s" % (trainer.digest, trainer.rows.tobytes().hex()))
    print("went back to %s" % [back.step for back in trainer.went_back])


class Saved(support.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def job(self, passes, tables=True, **more):
        where = self.pserver(2, int(tables))
        trainers = [Trainer(number, where, passes, tables=tables, **more) for number in range(2)]
        found = [trainer.result() for trainer in trainers]
        self.jobs_end_well()
        return found

    def test_a_job_goes_on_with_the_bits_of_one_that_never_stopped(self):
        whole = self.job(4)
        self.job(2, save=self.folder)
        self.assertEqual(sorted(os.listdir(self.folder)), [".weft-lock", "pass-00000", "pass-00001"])
        half = self.job(2, load=self.folder, save=self.folder)
        for one, other in zip(whole, half):
            self.assertEqual((other.began, one.digest), (4, other.digest))
            self.assertEqual([a.tobytes() for a in one.end], [a.tobytes() for a in other.end])
            self.assertEqual(one.rows.tobytes(), other.rows.tobytes())
        # Passes are numbered on, and samples summed on: 3 and 4 in each of 8 steps.
        about = lines(self.folder + "/pass-00003")
        self.assertEqual((about["pass"], about["step"], about["samples"]), (["3"], ["8"], ["56"]))
        # An older pass by its own name.
        again = self.job(3, load=self.folder + "/pass-00000")
        self.assertEqual(again[0].digest, whole[0].digest)

    def test_the_files_are_those_of_the_description(self):
        done = self.job(1, save=self.folder, tables=False)[0]
        path = self.folder + "/pass-00000"
        about = lines(path)
        self.assertEqual(about["weft"], ["saved model 5"])
        self.assertEqual(about["optimizer"], ["momentum"])
        self.assertEqual(about["settings"], ["learning_rate=0.1 momentum=0.9"])
        names = ["conv%2Fkernel%2Erows 2 6 1", "fixed 4 1 0", "sca%20l%C3%A4r%2520 1 1 1"]
        self.assertEqual((about["tensor"], about["shape"]), (names, ["2,3,1,2", "4", "()"]))
        for tensor, name in zip(done.end, ("conv%2Fkernel%2Erows", "sca%20l%C3%A4r%2520", "fixed")):
            self.assertEqual(values(path + "/" + name).tobytes(), tensor.tobytes())
        self.assertEqual(values(path + "/sca%20l%C3%A4r%2520.state0").shape, (1,))

    def test_a_save_that_fails_is_known_to_all_and_ends_no_job(self):
        first, second = self.job(1, save=self.folder + "/no/such/folder", tables=False)
        self.assertIn("/no/such/folder", str(first.tried))
        self.assertIn("trainer 0 could not save", str(second.tried))
        self.assertIs(type(first.tried), type(second.tried))

    def test_a_session_that_reduces_arrays_is_saved_without_its_ring(self):
        session = self.open(pservers=self.pserver(), all_reduce_ring="64KiB")
        w = session.empty(3, name="w")
        session.start()
        for _ in range(2):
            w.grad[:] = 10
            session.all_reduce(np.ones(1000))
            session.exchange()
            session.pass_end()
            session.save(self.folder)
        self.assertEqual(lines(self.folder + "/pass-00001")["tensor"], ["w 3 1 1"])
        self.assertEqual(values(self.folder + "/pass-00001/w").tobytes(), w.param.tobytes())
        session.close()
        self.jobs_end_well()

    def open(self, **more):
        session = weft.Session(**dict(dict(SETTINGS, pservers="127.0.0.1"), **more))
        self.addCleanup(session.abort, "the test is over")
        return session

    def test_what_does_not_agree_is_refused_by_name(self):
        self.job(1, save=self.folder, tables=False)

        def refused(kind, pattern, shapes, **more):
            session = self.open(**more)
            for name, shape in shapes.items():
                session.empty(shape, name=name, static=name == "fixed")
            with self.assertRaisesRegex(kind, pattern):
                session.load(self.folder)

        good = {"conv/kernel.rows": (2, 3, 1, 2), "sca lär%20": (), "fixed": 4}
        refused(weft.InvalidError, "load: set keep_state", good, keep_state=0)
        refused(weft.MismatchError, "optimizer momentum, this session has sgd", good, optimizer="sgd", momentum=0)
        refused(weft.DataError, "kernel.rows has the shape 2,3,1,2; .* 2,6", dict(good, **{"conv/kernel.rows": (2, 6)}))
        refused(weft.DataError, "fixed is 4 x 1; this model has it 5 x 1", dict(good, fixed=5))
        refused(weft.DataError, "tensor more of this model is missing", dict(good, more=1))
        refused(weft.DataError, "has 3 tensors; this model has 2", {"sca lär%20": (), "fixed": 4})
        session = self.open()
        session.empty(4, name="w")
        os.mkdir(self.folder + "/empty")
        for name, pattern in (("/pass-00007", "pass-00007/manifest: "), ("", "has no saved pass")):
            with self.assertRaisesRegex(weft.DataError, pattern):
                session.load(self.folder + "/empty" + name)
        with self.assertRaisesRegex(weft.InvalidError, "is empty"):
            session.load("")

    def test_a_session_goes_on_from_a_snapshot_as_from_the_pass_of_its_step(self):
        """Each pass of the job has 2 steps, after which there may be a snapshot; the newest is loaded."""
        taken = self.folder + "/taken"
        snapshots = "--snapshot_dir=" + taken, "--snapshot_steps=2"
        where = self.pserver(trainers=2, sparse=1, more=snapshots)
        both = [Trainer(n, where, 30, save=self.folder) for n in range(2)]
        for trainer in both:
            trainer.result()
        self.jobs_end_well()
        # The job may end while another one is being written, which has no manifest then.
        snapshot = max(name for name in glob.glob(taken + "/epoch-*") if os.path.exists(name + "/manifest"))
        number = int(lines(snapshot)["step"][0]) // 2 - 1
        ends = []
        for load in (snapshot, self.folder + "/pass-%05d" % number):
            where = self.pserver(trainers=2, sparse=1)
            both = [Trainer(n, where, 2, load=load) for n in range(2)]
            for trainer in both:
                self.assertEqual(trainer.result().began, 2 * number + 2)
            self.jobs_end_well()
            ends.append([part.tobytes() for part in both[0].end + [both[0].rows]])
            ends.append(both[0].digest)
        self.assertEqual(ends[:2], ends[2:])

    def wait_for_snapshot(self, folder):
        deadline = time.monotonic() + support.LIMIT
        while not glob.glob(folder + "/epoch-*/manifest"):
            self.assertLess(time.monotonic(), deadline, "no snapshot")
            time.sleep(0.01)

    def test_a_session_goes_back_with_its_job_when_a_pserver_is_killed(self):
        whole = self.job(20)
        taken = self.folder + "/taken"
        more = "--snapshot_dir=" + taken, "--snapshot_steps=3", "--resume=auto", "--on_trainer_death=wait"
        where = self.pserver(trainers=2, sparse=1, more=more)
        there, may_go_on = [threading.Event(), threading.Event()], threading.Event()

        def meet(number):
            there[number].set()
            may_go_on.wait(support.LIMIT)

        both = [Returning(n, where, 20, functools.partial(meet, n)) for n in range(2)]
        for trainer, is_there in zip(both, there):
            self.assertTrue(is_there.wait(support.LIMIT), trainer.error)
        self.wait_for_snapshot(taken)
        killed = self.pservers[0]
        killed.kill()
        self.pservers = [self.run_program(*killed.command)]
        may_go_on.set()
        for trainer, other in zip(both, whole):
            trainer.result()
            self.assertEqual(trainer.digest, other.digest)
            self.assertEqual(trainer.rows.tobytes(), other.rows.tobytes())
            back = trainer.went_back[-1]
            self.assertEqual((back.step, back.position), (trainer.steps, b"%d" % back.step))
            self.assertGreater(back.step, 0)
            self.assertIn("lost", str(back))
            again = pickle.loads(pickle.dumps(back))
            self.assertEqual((str(again), again.step, again.position), (str(back), back.step, back.position))
        self.jobs_end_well()

    def test_a_session_goes_back_with_its_job_when_the_other_trainer_is_killed(self):
        """In processes: the one that is killed is started again, and the other one stays."""
        whole = self.job(20)
        taken = self.folder + "/taken"
        more = "--snapshot_dir=" + taken, "--snapshot_steps=3", "--resume=auto", "--on_trainer_death=wait"
        where = self.pserver(trainers=2, sparse=1, more=more)
        (there, is_there), (goes, go) = os.pipe(), os.pipe()
        for end in (there, is_there, goes, go):
            self.addCleanup(os.close, end)
        both = [self.run_child(print_returning, n, where, 20, is_there, goes) for n in range(2)]
        for _ in both:
            self.assertTrue(select.select([there], [], [], support.LIMIT)[0], "a trainer does not come to step 20")
            os.read(there, 1)
        self.wait_for_snapshot(taken)
        both[1].kill()
        os.write(go, b"x" * 16)  # more often than they come to that step
        both[1] = self.run_child(print_returning, 1, where, 20, is_there, goes)
        for number, (child, other) in enumerate(zip(both, whole)):
            said = self.ends_well(child)
            self.assertIn("digest %016x rows %s" % (other.digest, other.rows.tobytes().hex()), said)
            self.assertRegex(said, r"went back to \[[1-9]\d*" if number == 0 else r"went back to \[")
        self.jobs_end_well()

    def test_weft_train_goes_on_from_a_pass_of_a_session_and_the_other_way_round(self):
        there = subprocess.run([support.WEFT, "train", "--help"], capture_output=True, check=False)
        if there.returncode != 0:
            self.skipTest("weft train is not there: built without OpenBLAS")

        def train(*options):
            command = (support.WEFT, "train", "mlp", "--save_dir=" + self.folder, "--optimizer=adam")
            said = self.ends_well(self.run_program(*command, "--pservers=" + self.pserver(), *options))
            self.jobs_end_well()
            return said

        train("--num_passes=1")
        first = lines(self.folder + "/pass-00000")
        session = self.open(pservers=self.pserver(), optimizer="adam", momentum=0)
        tensors = {}
        for line in first["tensor"]:
            name, rows, cols, _ = line.split()
            tensors[name] = session.empty((int(rows), int(cols)), name=name)
        session.load(self.folder)
        session.start()
        self.assertEqual(session.steps, int(first["step"][0]))
        for name, tensor in tensors.items():
            self.assertEqual(tensor.param.tobytes(), values(self.folder + "/pass-00000/" + name).tobytes())
            state = values(self.folder + "/pass-00000/%s.state1" % name)
            self.assertEqual(tensor.state[1].tobytes(), state.tobytes())
        session.exchange(samples=5)
        session.pass_end()
        session.save(self.folder)
        session.close()
        self.jobs_end_well()
        second = lines(self.folder + "/pass-00001")
        self.assertEqual(int(second["step"][0]), int(first["step"][0]) + 1)
        self.assertEqual(int(second["samples"][0]), int(first["samples"][0]) + 5)
        said = train("--num_passes=3", "--start_pass=2")
        self.assertIn("continuing from", said)
        third = lines(self.folder + "/pass-00002")
        self.assertEqual(int(third["step"][0]) - int(second["step"][0]), int(first["step"][0]))

    def test_where_a_call_does_not_belong_it_is_refused(self):
        session = self.open(pservers=self.pserver())
        w = session.empty(3, name="w")
        session.start()
        session.step(1)
        w.grad[:] = 1
        session.push(w)
        session.wait()
        for pattern, call in (("after weft_pass_end", session.save), ("between weft_session_seal", session.load)):
            with self.assertRaisesRegex(weft.InvalidError, pattern):
                call(self.folder)
        session.pass_end()
        for call in (session.save, session.load):
            for pattern, folder in (("a path is needed, not NoneType", None), ("has a byte of 0", self.folder + "/a\0b")):
                with self.assertRaisesRegex(weft.InvalidError, pattern):
                    call(folder)
        self.assertFalse(os.path.exists(self.folder + "/a"))
        session.save(self.folder)
        session.close()
        self.jobs_end_well()
        session = self.open(pservers=self.pserver(), keep_state=0)
        session.empty(3, name="w")
        session.start()
        with self.assertRaisesRegex(weft.InvalidError, "save: set keep_state"):
            session.save(self.folder)
        session.close()
        self.jobs_end_well()
        session = self.open(dense_mode="local", local_steps=2, optimizer="sgd", momentum=0)
        session.empty(3, name="w")
        with self.assertRaisesRegex(weft.InvalidError, "load: with local steps"):
            session.load(self.folder)


if __name__ == "__main__":
    support.main()

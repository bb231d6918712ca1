# SPDX-License-Identifier: Apache-2.0
"""Session.leave, Session(join=True) and Session.joined: a trainer leaves a job that goes on, and another
takes its place. Gradients are whole numbers, so the values say exactly who took part in how many steps."""

import threading

import support

try:
    import numpy as np
    import weft
except ImportError:  # support.main says so
    np = None


class Member(threading.Thread):
    """A trainer, in a thread of its own, which its session belongs to: three steps, each of which subtracts
    `grad`, and then it leaves."""

    def __init__(self, where, number, grad, **more):
        super().__init__(daemon=True)
        self.where, self.number, self.grad, self.more = where, number, grad, more
        self.steps = 0
        self.enough = threading.Event()
        self.error = self.resumed = self.joined = self.end = None
        self.start()

    def run(self):
        try:
            self.train()
        except Exception as error:  # the test looks at it
            self.error = error

    def train(self):
        session = weft.Session(
            pservers=self.where,
            num_gradient_servers=2,
            trainer_id=self.number,
            optimizer="sgd",
            learning_rate=1,
            connect_timeout=60,
            **self.more,
        )
        tensor = session.empty(5, name="w")
        session.start()
        self.resumed, self.joined = session.resumed, session.joined
        while not self.is_done():
            session.position(b"%d" % (self.steps + 1))
            session.step(1)
            tensor.grad[:] = self.grad
            session.push(tensor)
            session.wait()
            self.steps += 1
        self.finish(session)
        self.end = tensor.param.copy()
        session.close()

    def is_done(self):
        return self.steps == 3

    def finish(self, session):
        session.leave()

    def result(self):
        self.join(support.LIMIT)
        if self.is_alive():
            raise AssertionError("trainer %d does not end" % self.number)
        if self.error is not None:
            raise self.error
        return self


class Alone(Member):
    """Trainer 0, which makes steps until it is told that they are enough."""

    def is_done(self):
        return self.enough.is_set()

    def finish(self, session):
        session.pass_end()


class Members(support.Case):
    def test_a_trainer_leaves_and_another_takes_its_place(self):
        where = self.pserver(trainers=2, more=("--on_trainer_death=drop",))
        first = Alone(where, 0, 100)
        leaver = Member(where, 1, 1).result()
        self.assertEqual((leaver.joined, leaver.resumed), (False, None))
        joiner = Member(where, 1, 10, join=True).result()
        self.assertTrue(joiner.joined)
        self.assertEqual(joiner.resumed["position"], b"3")
        self.assertEqual(joiner.resumed["pass_count"], 0)
        self.assertGreaterEqual(joiner.resumed["step"], 3)
        first.enough.set()
        first.result()
        self.assertEqual(first.end.tolist(), [-(100 * first.steps + 3 * 1 + 3 * 10)] * 5)
        self.jobs_end_well()

    def test_a_trainer_cannot_leave_a_job_that_ends_without_it(self):
        where = self.pserver(trainers=1)
        session = weft.Session(pservers=where, connect_timeout=60)
        session.empty(5, name="w")
        session.start()
        with self.assertRaisesRegex(weft.UnsupportedError, "--on_trainer_death=drop"):
            session.leave()
        session.close()
        self.jobs_end_well()


if __name__ == "__main__":
    support.main()

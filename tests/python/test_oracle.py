# SPDX-License-Identifier: Apache-2.0
"""Every optimizer on real pservers beside oracle.py, which is kernels/formulas.md in NumPy: the same bits.

WEFT_SEED draws other values; WEFT_LONG runs each method with each schedule, mode and transport."""

import itertools
import os
import threading

SEED = int(os.environ.get("WEFT_SEED", "1"))  # support takes it out of the environment

import support  # noqa: E402

try:
    import numpy as np
    import oracle
    import weft
except ImportError:  # support.main says so
    np = None

STEPS = 6
SHAPES = [(37,), (300, 5), (2, 3, 7), (1,), (64,)]
OWN = [
    {},
    {"decay": 0.02, "rate_multiplier": 2.5},
    {"l1": 0.03},
    {"clip": 0.05, "decay": 0.5},
    {"l1": 0.01, "clip": 0.3, "decay": 0.03, "rate_multiplier": 0.3},
]
SCHEDULES = [
    {"schedule": "constant"},
    {"schedule": "linear", "schedule_a": 1e-4, "schedule_b": 0.047},
    {"schedule": "warmup", "schedule_a": 40},
    {"schedule": "poly", "schedule_a": 0.02, "schedule_b": 0.75},
    {"schedule": "caffe_poly", "schedule_a": 70, "schedule_b": 0.9},
    {"schedule": "exp", "schedule_a": 0.5, "schedule_b": 30},
    {"schedule": "discexp", "schedule_a": 0.5, "schedule_b": 30},
    {"schedule": "manual", "schedule_args": "20:1,45:0.5,60:0.25"},
    {"schedule": "pass_manual", "schedule_args": "0:1,1:0.3"},
]
JOB = {
    "learning_rate": 0.05, "momentum": 0.8, "beta1": 0.85, "beta2": 0.95, "rho": 0.9, "epsilon": 1e-4, "decay": 0.01,
}  # fmt: skip
SAMPLES = [[7, 4, 9, 5, 8, 6], [3, 8, 2, 6, 5, 7]]  # of each trainer, in each step


def drawn(rng, shape):
    """Values of all sizes, and zeros."""
    values = rng.standard_normal(shape) * 10.0 ** rng.uniform(-4, 1, shape)
    return np.where(rng.random_sample(shape) < 0.05, 0, values).astype(np.float32)


def same_bits(got, wanted):
    return np.array_equal(
        np.asarray(got, np.float32).view(np.uint32).ravel(), np.asarray(wanted, np.float32).view(np.uint32).ravel()
    )


def declared(session, first):
    """Tensors of SHAPES with these values, in a session that has begun."""
    tensors = [session.empty(shape, name="t%d" % i, **OWN[i]) for i, shape in enumerate(SHAPES)]
    for tensor, values in zip(tensors, first):
        tensor.param[:] = values
    session.start()
    return tensors


class Oracle(support.Case):
    def setUp(self):
        self.rng = np.random.RandomState(SEED)

    def in_threads(self, count, train):
        errors = []

        def guarded(number):
            try:
                train(number)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def gradients(self, trainers, shapes, rough):
        """[step][trainer][tensor]. `rough`: some are not finite, and of some the square is not. Else one step
        has a norm that is not."""
        grads = [[[drawn(self.rng, shape) for shape in shapes] for _ in range(trainers)] for _ in range(STEPS)]
        if rough:
            grads[1][0][0][3], grads[2][-1][1][7, 2], grads[3][0][4][60] = np.nan, np.inf, 3e38
            grads[2][0][4][10], grads[4][0][4][11], grads[1][-1][1][200, 0] = 2e19, -1e20, -3e38
        else:
            grads[2][0][1][:] = np.where(grads[2][0][1] > 0, 3e38, -3e38)
        return grads

    def of_tensors(self, method, trainers=2, reduce="sum", transport="tcp", **more):
        """Run the job, and the oracle, and compare; `more`: settings of the session."""
        with self.subTest(method=method, trainers=trainers, reduce=reduce, transport=transport, **more):
            self.tensors_agree(method, trainers, reduce, transport, more)

    def tensors_agree(self, method, trainers, reduce, transport, more):
        job = dict(JOB, **more)
        rough = not more.get("clip_norm")
        first = [drawn(self.rng, shape) for shape in SHAPES]
        grads = self.gradients(trainers, SHAPES, rough)
        where, found = self.pserver(trainers, lanes=2), {}

        def train(number):
            with weft.Session(
                pservers=where, ports_num=2, num_gradient_servers=trainers, trainer_id=number, transport=transport,
                optimizer=method, grad_reduce=reduce, skip_nonfinite=True, keep_state=1, log=lambda *_: None, **job
            ) as session:  # fmt: skip
                tensors = declared(session, first)
                for step in range(STEPS):
                    if step == 3:
                        session.pass_end()
                    for tensor, grad in zip(tensors, grads[step][number]):
                        tensor.grad[:] = grad
                    session.exchange(SAMPLES[number][step])
                session.pull_state()
                averages = [t.average() for t in tensors] if "average_window" in more else []
                found[number] = [(t.param.copy(), [s.copy() for s in t.state]) for t in tensors], averages

        self.in_threads(trainers, train)
        self.jobs_end_well()
        wanted, averages = self.tensors_wanted(method, first, grads, reduce, job)
        for number in range(trainers):
            for i, (param, state) in enumerate(found[number][0]):
                what = "%s, trainer %d, tensor %d" % (method, number, i)
                self.compare(what, param, wanted[i].w)
                self.assertGreaterEqual(len(state), len(wanted[i].state))
                for got, want in zip(state, wanted[i].state):
                    self.compare(what + ", state", got, want)
                if averages:
                    self.compare(what + ", average", found[number][1][i], averages[i].value())

    def compare(self, what, got, wanted):
        if not same_bits(got, wanted):
            bad = np.flatnonzero(np.ravel(got).view(np.uint32) != np.ravel(wanted).view(np.uint32))
            self.fail(
                "WEFT_SEED=%d: %s: %d of %d differ, element %d is %r, not %r"
                % (SEED, what, bad.size, np.size(got), bad[0], np.ravel(got)[bad[0]], np.ravel(wanted)[bad[0]])
            )

    def tensors_wanted(self, method, first, grads, reduce, job):
        trainers = len(grads[0])
        tensors = [oracle.Tensor(method, w, job, own) for w, own in zip(first, OWN)]
        window, longest = job.get("average_window"), job.get("max_average_window")
        averages = [oracle.Average(w, window, longest) for w in first] if window else []
        o, before = oracle.settings_of(job), 0
        with np.errstate(all="ignore"):
            for step in range(STEPS):
                samples = sum(SAMPLES[number][step] for number in range(trainers))
                divisor = samples if reduce == "mean" else 1
                of = [[grads[step][number][i] for number in range(trainers)] for i in range(len(first))]
                if job.get("clip_norm"):
                    divisor = oracle.norm_divisor(of, divisor, job["clip_norm"])
                rate = oracle.rate_at(o, before, samples, int(step >= 3))
                for i, tensor in enumerate(tensors):
                    tensor.step(of[i], divisor, rate, step + 1)
                    if averages:
                        averages[i].add(tensor.w)
                before += samples
        return tensors, averages

    def test_every_optimizer_of_tensors_has_the_bits_of_its_formula(self):
        modes = [{}, {"dense_mode": "async"}, {"dense_mode": "bounded", "dense_staleness": 1}]
        extras = [{}, {"clip_norm": 0.5}, {"average_window": 0.5, "max_average_window": 4}]
        for i, method in enumerate(oracle.METHODS):
            for j, schedule in enumerate(SCHEDULES):
                if j == i % len(SCHEDULES) or support.LONG:
                    for reduce, transport in (("sum", "shm"), ("mean", "tcp")):
                        if support.LONG or (i % 2 == 0) == (reduce == "sum"):
                            extra = extras[(i + j) % 3]
                            self.of_tensors(method, 2, reduce, transport, **schedule, **extra)
        for i, method in enumerate(oracle.METHODS):
            for mode in modes[1:]:
                if support.LONG or i % 6 == modes.index(mode):
                    self.of_tensors(method, 1, "mean", "tcp", **SCHEDULES[i % 7], **mode)

    def changes(self, method):
        """For each step {tensor: numbers}, of what the method has."""
        names = ["learning_rate", "decay", "clip", "l1", "updates"]
        names += ["momentum"] * (method in ("momentum", "nesterov") or method.startswith("torch_mom"))
        names += ["momentum", "dampening", "nesterov"] * (method == "torch_sgd")
        names += ["beta1", "beta2"] * ("adam" in method) + ["rho"] * (method in ("rmsprop", "adadelta", "decayed_adagrad"))
        names += ["epsilon"] * (method not in ("sgd", "momentum", "nesterov", "torch_momentum", "torch_sgd"))
        highest = {"learning_rate": 0.2, "l1": 0.05, "decay": 0.3, "clip": 0.5, "dampening": 0.9}
        drawn = {}
        for step, tensor in itertools.product((1, 2, 4), (0, 1, 3)):
            numbers = {}
            for name in self.rng.permutation(names)[:3]:
                numbers[name] = self.rng.random_sample() * highest.get(name, 0.99)
                if name in ("updates", "nesterov"):
                    numbers[name] = int(self.rng.randint(0, 5) if name == "updates" else self.rng.randint(0, 2))
            numbers["learning_rate"] = numbers.get("learning_rate", 0.0)  # an l1 of a rate of 0, too
            drawn.setdefault(step, {})[tensor] = numbers
        return drawn

    def of_changes(self, method, trainers, transport, assigned):
        """Numbers change in some steps, and in step 3 an array of each tensor is replaced."""
        changes = self.changes(method)
        first = [drawn(self.rng, shape) for shape in SHAPES]
        grads = [[[drawn(self.rng, shape) for shape in SHAPES] for _ in range(trainers)] for _ in range(STEPS)]
        grads[3][0] = [np.abs(array) for array in grads[3][0]]  # state may be a mean of squares
        job = dict(JOB, schedule="poly", schedule_a=0.02, schedule_b=0.75)
        where, found = self.pserver(trainers, lanes=2), {}

        def train(number):
            with weft.Session(
                pservers=where, ports_num=2, num_gradient_servers=trainers, trainer_id=number, transport=transport,
                optimizer=method, grad_reduce="mean", keep_state=1, log=lambda *_: None, **job
            ) as session:  # fmt: skip
                tensors = declared(session, first)
                for step in range(STEPS):
                    own = changes.get(step, {})
                    for i in sorted(own, reverse=number == 1):  # in any order
                        tensors[i].change(**own[i])
                    for tensor, grad in zip(tensors, grads[step][number]):
                        tensor.grad[:] = grad
                        if step == 3:
                            tensor.assign(assigned)
                    session.exchange(SAMPLES[number][step])
                session.pull_state()
                found[number] = [(t.param.copy(), [s.copy() for s in t.state]) for t in tensors]

        self.in_threads(trainers, train)
        self.jobs_end_well()
        tensors, before = [oracle.Tensor(method, w, job, own) for w, own in zip(first, OWN)], 0
        for step in range(STEPS):
            samples = sum(SAMPLES[number][step] for number in range(trainers))
            for i, tensor in enumerate(tensors):
                tensor.change(step + 1, changes.get(step, {}).get(i, {}))
                if step == 3:
                    tensor.assign(assigned, grads[step][0][i])
                else:
                    rate = oracle.rate_at(tensor.o, before, samples, 0)
                    with np.errstate(all="ignore"):
                        tensor.step([of[i] for of in grads[step]], samples, rate, step + 1)
            before += samples
        for number, i in itertools.product(range(trainers), range(len(SHAPES))):
            what = "%s with changes, trainer %d, tensor %d" % (method, number, i)
            param, state = found[number][i]
            self.compare(what, param, tensors[i].w)
            for got, want in zip(state, tensors[i].state):
                self.compare(what + ", state", got, want)

    def test_numbers_that_change_in_a_job_have_the_bits_of_a_sequential_run(self):
        for i, (method, (_, states)) in enumerate(oracle.METHODS.items()):
            with self.subTest(method=method):
                self.of_changes(method, 1 + i % 2, ("tcp", "shm")[i // 2 % 2], i % (1 + states))

    def test_more_numbers_may_change_in_a_step_than_a_message_holds(self):
        """Of every second tensor to a rate of 0: it stays, the others move by their gradient of 1."""
        where, found = self.pserver(2, lanes=2), {}

        def train(number):
            with weft.Session(
                pservers=where, ports_num=2, num_gradient_servers=2, trainer_id=number, optimizer="torch_sgd",
                learning_rate=1, momentum=0.5, log=lambda *_: None
            ) as session:  # fmt: skip
                tensors = [session.empty((3,), name="t%d" % i) for i in range(120)]
                session.start()
                for i in range(0, 120):
                    tensors[i].change(decay=0, momentum=0, learning_rate=i % 2)
                for tensor in tensors:
                    tensor.grad[:] = 1
                session.exchange()
                found[number] = [tensor.param[0] for tensor in tensors]

        self.in_threads(2, train)
        self.jobs_end_well()
        self.assertEqual(found[0], [-2.0 * (i % 2) for i in range(120)])
        self.assertEqual(found[1], found[0])

    def refuses(self, text, call, *arguments, error=None, **numbers):
        with self.assertRaisesRegex(error or weft.InvalidError, text):
            call(*arguments, **numbers)

    def test_a_change_of_several_numbers_is_made_as_a_whole_or_not_at_all(self):
        """The refused one comes last, or it is no number of any optimizer; then the same without it."""
        with weft.Session(pservers=self.pserver(), optimizer="torch_sgd", learning_rate=1, momentum=0.5) as session:
            w = session.empty((3,), name="w")
            session.start()
            w.grad[:] = 1
            self.refuses("w: decay -1", w.change, learning_rate=0, momentum=0, decay=-1)
            self.refuses('"rate" is no number', w.change, learning_rate=0, rate=1)
            self.refuses("momentum.0. is no number", w.change, **{"learning_rate": 0, "momentum\0": 0})
            self.refuses("tensor w, decay: 'much' is no number", w.change, learning_rate=0, decay="much")
            session.exchange()
            session.exchange()
            self.assertEqual(list(w.param), [-2.5] * 3)  # 1, then 1 and half of it
            w.change(learning_rate=2, momentum=0)
            self.refuses("w: decay -1", w.change, learning_rate=0, momentum=0.5, decay=-1)
            session.exchange()
            self.assertEqual(list(w.param), [-4.5] * 3)

    def test_what_cannot_be_changed_is_refused_by_name(self):
        with weft.Session(optimizer="adam") as session:
            w = session.empty((3,), name="w")
            kept = [session.empty((3,), name="s", static=True), session.empty((3,), name="r", reduce=True)]
            for tensor, what in zip(kept, ("s is static, and has no optimizer", "r is only reduced, and has no")):
                self.refuses(what, tensor.change, learning_rate=1)
                self.refuses(what, tensor.assign)
            self.refuses('w: "rate" is no number of an optimizer: give learning_rate', w.change, rate=1)
            self.refuses("w: momentum 0.5: the optimizer adam has no momentum", w.change, momentum=0.5)
            self.refuses("w: beta1 1: ", w.change, beta1=1)
            self.refuses("w: learning_rate nan", w.change, learning_rate=float("nan"))
            self.refuses("w: updates 1.5: must be a whole number", w.change, updates=1.5)
            self.refuses("tensor w, decay: 'much' is no number", w.change, decay="much")
            self.refuses("w: the assigned array 3: must be a whole number from 0", w.assign, 3)
        for settings, text in (
            ({"dense_mode": "async"}, "w: pushes of w are applied as they arrive, so there is no step"),
            ({"dense_mode": "local", "local_steps": 2}, "w: with local steps each trainer applies its gradients itself"),
        ):
            with weft.Session(**settings) as session:
                self.refuses(text, session.empty((3,), name="w").change, learning_rate=1)
        for settings, text in (
            ({"dense_wire": "bf16"}, "w: gradients travel in 16 bits"),
            ({"average_window": 0.5, "max_average_window": 4}, "w: averages are kept of its values"),
        ):
            with weft.Session(**settings) as session:
                w = session.empty((3,), name="w")
                w.change(learning_rate=1)
                self.refuses(text, w.assign)
        with weft.Session(pservers=self.pserver(), log=lambda *_: None) as session:
            w = session.empty((3,), name="w")
            session.start()
            session.step(1)
            self.refuses("w was not pushed in step 1|w: .*not pushed", w.change, learning_rate=1)
            session.push(w)
            session.wait()
            w.change(learning_rate=2)
            w.change(learning_rate=0)  # the last one counts
            w.grad[:] = 1
            session.exchange()
            self.assertEqual(list(w.param), [0, 0, 0])

    def tables(self):
        """Every method, with settings that each has: [(name, method, settings)]."""
        plain = [{}, {"decay": 0.02, "l1": 0.01}, {"clip": 0.3, "l2": 0.05, "decay": 0.1}]
        own = [{"l1": 0.1}, {"l1": 0.01, "l2": 0.1, "l21": 0.05, "ftrl_beta": 0.5}, {"clip": 0.3}]
        found = []
        for i, method in enumerate(oracle.ROW_METHODS):
            for j in range(3):
                settings = dict(own[j] if method.startswith("ftrl") else plain[j])
                if not method.startswith("ftrl_group"):
                    settings.pop("l21", None)
                if method == "sparse_momentum":
                    settings.pop("l1", None)
                for key in ("learning_rate", "momentum", "beta1", "beta2", "rho", "epsilon"):
                    settings[key] = JOB[key]
                schedule = SCHEDULES[(i + j) % 7]
                if method == "sparse_momentum" or (method.startswith("ftrl") and schedule["schedule"] == "caffe_poly"):
                    schedule = {}
                found.append(("%s_%d" % (method, j), method, dict(settings, **schedule)))
        return found

    def of_rows(self, trainers, reduce, transport, dim, keys=12):
        """All tables in one job. Each trainer pushes rows of its own choice in each step; of sparse_momentum,
        which makes up for steps that a row missed in another way, all of them."""
        tables = self.tables()
        some = [[np.sort(self.rng.permutation(keys)[:9]) for _ in range(trainers)] for _ in range(STEPS)]
        grads = {
            name: [[drawn(self.rng, (keys, dim)) for _ in range(trainers)] for _ in range(STEPS)]
            for name, _, _ in tables
        }
        where, first, found = self.pserver(trainers, sparse=2), {}, {}

        def chosen(method, step, number):
            return np.arange(keys) if method == "sparse_momentum" else some[step][number]

        def train(number):
            with weft.Session(
                pservers=where, num_gradient_servers=trainers, trainer_id=number, ports_num_for_sparse=2,
                transport=transport, grad_reduce=reduce, log=lambda *_: None
            ) as session:  # fmt: skip
                made = [
                    session.table(name, dim, optimizer=method, init="uniform", init_a=-1, init_b=1, **settings)
                    for name, method, settings in tables
                ]
                session.start()
                for table in made:
                    rows = table.lookup(np.arange(keys))
                    if number == 0:
                        first[table.name] = rows.gather()
                    rows.free()
                for step in range(STEPS):
                    picked = [chosen(method, step, number) for _, method, _ in tables]
                    rows = [table.lookup(mine) for table, mine in zip(made, picked)]
                    session.step(SAMPLES[number][step])
                    for table, batch, mine in zip(made, rows, picked):
                        table.update(batch, grads[table.name][step][number][mine])
                    session.wait()
                found[number] = {}
                for table in made:
                    rows = table.lookup(np.arange(keys))
                    found[number][table.name] = rows.gather()
                    rows.free()

        self.in_threads(trainers, train)
        self.jobs_end_well()
        for name, method, settings in tables:
            o = oracle.settings_of(settings, rows=True)
            rows, before = [oracle.Row(method, w, o) for w in first[name]], 0
            for step in range(STEPS):
                samples = sum(SAMPLES[number][step] for number in range(trainers))
                rate = oracle.rate_at(o, before, samples, 0)
                before += samples
                for key, row in enumerate(rows):
                    given = [
                        grads[name][step][number][key]
                        for number in range(trainers)
                        if key in chosen(method, step, number)
                    ]
                    if given:
                        row.step(given, samples if reduce == "mean" else 1, rate, step + 1)
            wanted = np.stack([row.w for row in rows])
            for number in range(trainers):
                with self.subTest(rows=method, number=number, **settings):
                    self.compare("rows of %s, trainer %d" % (name, number), found[number][name], wanted)

    def test_every_optimizer_of_rows_has_the_bits_of_its_formula(self):
        self.of_rows(2, "mean", "shm", 20)
        if support.LONG:
            for job in itertools.product((1, 2), ("sum", "mean"), ("tcp", "shm"), (1, 16, 37)):
                self.of_rows(*job)


if __name__ == "__main__":
    support.main()

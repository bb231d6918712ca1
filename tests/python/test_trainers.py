# SPDX-License-Identifier: Apache-2.0
"""examples/python/mlp.py: a trainer in NumPy against `weft train mlp`, pass by pass.

Both sum in f32, in different orders (OpenBLAS here and there, exp and log of different makes), and
a network that learns grows such differences. TOLERANCE is that of the cost of a pass, relative."""

import os
import re
import subprocess

import support

TOLERANCE = 1e-4
PASSES = 5
MLP = os.path.join(support.TOP, "examples/python/mlp.py")


class Trainers(support.Case):
    def setUp(self):
        there = subprocess.run([support.WEFT, "train", "--help"], capture_output=True, check=False)
        if there.returncode != 0:
            self.skipTest("weft train is not there: built without OpenBLAS")

    def numpy_trainer(self, where, number, trainers):
        options = ["--num_passes=%d" % PASSES, "--pservers=" + where, "--trainer_id=%d" % number]
        return self.run_program(*support.python(MLP, "--num_gradient_servers=%d" % trainers, *options))

    def c_trainer(self, where, number, trainers):
        options = ["--num_passes=%d" % PASSES, "--pservers=" + where, "--trainer_id=%d" % number]
        return self.run_program(
            support.WEFT, "train", "mlp", "--num_gradient_servers=%d" % trainers, *options
        )

    def sequential(self, trainers):
        """What `weft train mlp` comes to with so many trainers."""
        done = self.run_program(
            support.WEFT,
            "train",
            "mlp",
            "--sequential",
            "--num_passes=%d" % PASSES,
            "--num_gradient_servers=%d" % trainers,
        )
        return support.passes_in(self.ends_well(done))

    def compare(self, said, trainers):
        passes, wanted = support.passes_in(said), self.sequential(trainers)
        self.assertEqual((len(passes), len(wanted)), (PASSES, PASSES), said)
        for number, (got, right) in enumerate(zip(passes, wanted)):
            off = abs(got[0] - right[0]) / right[0]
            print("pass %d cost %.8g of %.8g, off by %.1e" % (number, got[0], right[0], off))
            self.assertLess(off, TOLERANCE)
            self.assertLess(abs(got[1] - right[1]), 0.01)  # four of 360 digits

    def test_a_numpy_trainer_reaches_the_cost_of_weft_train(self):
        said = self.ends_well(self.numpy_trainer(self.pserver(), 0, 1))
        self.compare(said, 1)
        self.jobs_end_well()

    def test_a_numpy_trainer_works_beside_a_c_trainer(self):
        where = self.pserver(trainers=2, count=2)
        c_side = self.c_trainer(where, 1, 2)
        said = self.ends_well(self.numpy_trainer(where, 0, 2))
        self.ends_well(c_side)
        self.compare(said, 2)
        self.jobs_end_well()

    def test_a_c_trainer_works_beside_a_numpy_trainer(self):
        where = self.pserver(trainers=2, count=2)
        numpy_side = self.numpy_trainer(where, 1, 2)
        said = self.ends_well(self.c_trainer(where, 0, 2))
        self.ends_well(numpy_side)
        self.compare(said, 2)
        self.jobs_end_well()

    def test_weft_launch_starts_numpy_trainers(self):
        command = [support.WEFT, "launch", "--local", "--pservers=2", "--trainers=2"]
        command += ["--port=%d" % support.free_port(2), "--"]
        command += support.python(MLP, "--num_passes=%d" % PASSES)
        self.compare(self.ends_well(self.run_program(*command)), 2)

    def test_the_example_has_at_most_60_lines(self):
        with open(MLP, encoding="ascii") as file:
            self.assertLessEqual(len(re.findall("\n", file.read())), 60)


if __name__ == "__main__":
    support.main()

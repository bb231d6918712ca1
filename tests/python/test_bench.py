#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/python_bench.py: the arithmetic of ddp, and runs that measure next to nothing. What it
measures is no business of a test."""

import os
import subprocess
import sys
import tempfile
import unittest

import support

sys.path.insert(0, os.path.join(support.TOP, "tools"))

from ddp_bench import models, overlap, recording, table  # noqa: E402

BENCH = os.path.join(support.TOP, "tools/python_bench.py")


class Arithmetic(support.Case):
    def test_an_interval_has_the_ranks_of_the_sign_test(self):
        self.assertIsNone(table.interval(range(table.ROUNDS_MIN - 1)))
        self.assertEqual(table.interval(range(table.ROUNDS_MIN)), (0, 5))
        self.assertEqual(table.interval(range(8)), (0, 7))  # 1 - 18 / 256 would be too little
        self.assertEqual(table.interval(range(9)), (1, 7))
        self.assertEqual(table.interval(range(11)), (1, 9))

    def test_models_are_scaled_to_about_what_was_asked_for(self):
        for name in models.NAMES:
            for mebibytes in (8, 32, 90):
                bytes_of = models.bytes_of(models.shapes_of(name, mebibytes))
                self.assertAlmostEqual(bytes_of / 2**20 / mebibytes, 1, delta=0.25, msg=name)

    def test_shares_count_slices_and_time_before_the_last_gradient(self):
        # One is answered by then, one is under way, and one is pushed later; nothing is between 40 and 50.
        slices = [(10, 40), (50, 110), (120, 130)]
        begun, answered, inside = overlap.shares((0, 100, 140), slices)
        self.assertAlmostEqual(begun, 200 / 3)
        self.assertAlmostEqual(answered, 100 / 3)
        self.assertAlmostEqual(inside, 100 * (30 + 50) / (30 + 60 + 10))
        # Time in which several are under way counts once.
        self.assertEqual(overlap.shares((0, 100, 100), [(50, 150), (60, 150)])[2], 50)


class Run(support.Case):
    @unittest.skipUnless(support.LONG, "takes seconds: WEFT_LONG=1")
    def test_every_way_to_make_a_step_of_rows_is_there(self):
        command = [sys.executable, BENCH, "rows", "--rounds=1", "--steps=1", "--keys=64"]
        more = {"stdout": subprocess.PIPE, "text": True, "timeout": support.LIMIT}
        done = subprocess.run(command, check=False, env=support.environment(WEFT=support.WEFT), **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 10, done.stdout)
        for line in lines:
            self.assertRegex(line, r"^[CPE].{26} +\d+\.\d us, \d+\.\d\d \(\?\) of C$")

    def test_a_recording_has_every_slice_and_the_backward_passes(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, BENCH, "ddp", "--model=resnet50", "--mebibytes=1", "--rounds=1", "--steps=1"]
            command += ["--only=hook shm", "--record=" + folder]
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                timeout=support.LIMIT,
                env=support.environment(WEFT=support.WEFT),
            )
            self.assertEqual(done.returncode, 0, done.stdout)
            path = os.path.join(folder, "hook_shm.pftrace")
            self.assertIn(path, done.stdout)
            found = recording.pushes(path)
            self.assertEqual(sorted(found), [0, 1])
            counts = {len(slices) for steps in found.values() for slices in steps.values()}
            self.assertGreater(max(counts), 0)
            for posted, answered in (push for steps in found.values() for slices in steps.values() for push in slices):
                self.assertLess(posted, answered)
            with open(path, "rb") as file:
                self.assertIn(b"backward of trainer 1", file.read())
            # Whoever else reads the file still can.
            why = subprocess.run([support.WEFT, "why", path], stdout=subprocess.PIPE, text=True, check=False)
            self.assertEqual(why.returncode, 0)
            self.assertIn("trainer 1", why.stdout)


if __name__ == "__main__":
    unittest.main()

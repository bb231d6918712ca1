# SPDX-License-Identifier: Apache-2.0
"""The PyTorch examples as jobs of two trainers and two pservers, beside one process that computes
what all trainers would.

Sums of halves and sums of wholes are rounded in other orders, and a network that learns grows the
difference, the VGG a hundredfold in its second pass, by what each processor's kernels round: each
comparison says how far the cost of a pass may be off, relative. That the exchange itself adds little
is shown by the tagger."""

import importlib.util
import os
import re
import sys

import support

EXAMPLES = os.path.join(support.TOP, "examples/python")
FASHION = "/usr/share/datasets/fashion-mnist"


class Examples(support.Case):
    """Two trainers and two pservers, against one process."""

    def passes(self, said):
        lines = re.findall(r"^pass \d+ cost (\S+) test (\S+) weights (\S+)$", said, re.MULTILINE)
        return [tuple(map(float, line)) for line in lines]

    def alone(self, script, options):
        command = support.python(os.path.join(EXAMPLES, script), "--num_gradient_servers=2", *options)
        return self.passes(self.ends_well(self.run_program(*command)))

    def job(self, mode, script, options):
        where = self.pserver(trainers=2, count=2)
        port = support.free_port(1)
        members = []
        for number in range(2):
            place = ["--mode=" + mode, "--pservers=" + where, "--num_gradient_servers=2"]
            place += ["--trainer_id=%d" % number, "--ddp_port=%d" % port]
            members.append(
                self.run_program(*support.python(os.path.join(EXAMPLES, script), *place, *options))
            )
        said = [self.ends_well(member) for member in members]
        self.jobs_end_well()
        copied = [int(re.search(r"^copied_bytes (\d+)$", text, re.MULTILINE).group(1)) for text in said]
        return self.passes(said[0]), copied

    def compare(self, script, options, learned, tolerances):
        """`learned`: the test figure of the last pass is below it; `tolerances`: of each pass."""
        wanted = self.alone(script, options)
        self.assertLess(wanted[-1][1], learned)
        for mode in ("workers", "pservers", "ddp"):
            got, copied = self.job(mode, script, options)
            self.assertEqual(len(got), len(wanted))
            for number, (one, other) in enumerate(zip(got, wanted)):
                off = abs(one[0] - other[0]) / other[0]
                print("%s pass %d cost %.6f of %.6f, off by %.1e" % (mode, number, one[0], other[0], off))
                self.assertLess(off, tolerances[number])
            self.assertLess(got[-1][1], learned)
            if mode == "ddp":
                self.assertGreater(min(copied), 0)
            else:
                self.assertEqual(copied, [0, 0])

    def test_a_vgg_learns_fashion_mnist_in_a_job_as_in_one_process(self):
        if not os.path.isdir(FASHION):
            self.skipTest("Fashion-MNIST is not there: apt-get install dataset-fashion-mnist")
        size = ["--rows=4000", "--test_rows=500", "--batch_size=20"]
        self.compare("fashion.py", ["--num_passes=2"] + size, 0.45, [5e-3, 0.4])

    def test_a_tagger_learns_samuel_in_a_job_as_in_one_process(self):
        self.compare("tagger.py", ["--num_passes=2"], 0.11, [1e-3, 2e-3])


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("SKIPPED: PyTorch is not there: apt-get install python3-torch")
        sys.exit(77)
    if not support.LONG:
        print("SKIPPED: takes a minute: WEFT_LONG=1, as in make check-all STAGES=python")
        sys.exit(77)
    support.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A user's train.py: digits learned with PyTorch. It names no pserver, no number and no port: the
environment does. --sequential=N computes what N trainers would, in one process, without weft's
library: the oracle of the tests."""
import argparse
import hashlib
import os
import sys

import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--data", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/digits.csv"))
parser.add_argument("--num_passes", type=int, default=2)
parser.add_argument("--sequential", type=int, default=0, metavar="TRAINERS")
options = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(1)
table = torch.from_numpy(np.loadtxt(options.data, delimiter=",", dtype=np.float32))
x, y = table[:, :64] / 16, table[:, 64].long()
model = torch.nn.Sequential(torch.nn.Linear(64, 40), torch.nn.ReLU(), torch.nn.Linear(40, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
if options.sequential:
    trainer, trainers = 0, options.sequential
else:
    import weft
    import weft.torch

    weft.init()
    trainer, trainers = weft.trainer_id(), weft.num_gradient_servers()
    optimizer = weft.torch.DistributedOptimizer(optimizer, model.named_parameters(), on="workers")
    weft.torch.broadcast_parameters(model.state_dict())
    print("trainer %d of %d" % (trainer, trainers), file=sys.stderr)


def backward(rows):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()


def backward_of_all(rows):
    """The mean of all trainers' gradients as weft defines it: summed in their order, divided once."""
    sums = None
    for number in range(trainers):
        backward(rows[number::trainers])
        grads = [p.grad.clone() for p in model.parameters()]
        sums = grads if sums is None else [a + b for a, b in zip(sums, grads)]
    for p, total in zip(model.parameters(), sums):
        p.grad.copy_(total / trainers)


for number in range(options.num_passes):
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(number))
    for first in range(0, len(x) - 64 + 1, 64):
        rows = order[first : first + 64]
        if options.sequential:
            backward_of_all(rows)
        else:
            backward(rows[trainer::trainers])
        optimizer.step()
    if trainer == 0:
        values = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        print("pass %d digest %s" % (number, hashlib.sha256(values).hexdigest()[:16]), flush=True)
if not options.sequential:
    weft.close()

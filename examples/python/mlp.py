#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft train mlp` in NumPy: 64 pixels, 40 ReLU units, 10 digits; momentum on the pservers.

    weft launch --local --pservers=1 --trainers=2 -- python3 mlp.py [--num_passes=5]

It prints the lines of `weft train mlp`, and can stand in for any trainer of such a job."""
import argparse
import os

import numpy as np
import weft
from weft.rng import Rng, order_of_rows

here = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser()
parser.add_argument("--data", default=os.path.join(here, "../../data/digits.csv"))
parser.add_argument("--num_passes", type=int, default=5)
for name in ("pservers", "port", "ports_num", "num_gradient_servers", "trainer_id", "transport"):
    parser.add_argument("--" + name)  # not given: from PADDLE_INIT_*, as weft.init does
options = vars(parser.parse_args())
table = np.loadtxt(options.pop("data"), delimiter=",", dtype=np.float32)
x, y = table[:, :64] / 16, table[:, 64].astype(int)
passes, train = options.pop("num_passes"), len(x) * 4 // 5

weft.init(grad_reduce="mean", optimizer="momentum", momentum=0.9, learning_rate=0.05, **options)
w1, b1 = weft.empty((64, 40), name="fc1_w"), weft.empty((1, 40), name="fc1_b")
w2, b2 = weft.empty((40, 10), name="fc2_w"), weft.empty((1, 10), name="fc2_b")
if weft.trainer_id() == 0:
    rng = Rng(seed=1)
    w1.param[:], w2.param[:] = rng.uniform(6**0.5 / 8, w1.shape), rng.uniform((6 / 40) ** 0.5, w2.shape)
weft.start()


def forward(rows):
    hidden = np.maximum(x[rows] @ w1.param + b1.param, 0)
    z = hidden @ w2.param + b2.param
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return hidden, p / p.sum(axis=1, keepdims=True)


for number in range(passes):
    order = order_of_rows(1, number, weft.trainer_id(), weft.num_gradient_servers(), train)
    total = 0.0
    for rows in np.split(order, range(32, len(order), 32)):
        hidden, p = forward(rows)
        cost = -np.log(p[range(len(rows)), y[rows]]).sum()
        total += cost
        p[range(len(rows)), y[rows]] -= 1  # the gradient at the outputs, and back through the layers
        back = (p @ w2.param.T) * (hidden > 0)
        w2.grad[:], b2.grad[:] = hidden.T @ p, p.sum(axis=0)
        w1.grad[:], b1.grad[:] = x[rows].T @ back, back.sum(axis=0)
        weft.exchange(len(rows), cost)
    weft.pass_end()
    cost, samples = weft.reduce([total, len(order)])
    wrong = (forward(slice(train, None))[1].argmax(axis=1) != y[train:]).mean()
    if weft.trainer_id() == 0:
        print("pass %d cost %.8g test %.8g digest %016x" % (number, cost / samples, wrong, weft.digest()))
weft.close()

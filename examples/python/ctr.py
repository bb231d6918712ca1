#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two towers guess whether a bird that met an aircraft did damage (data/birdstrikes.csv).

The aircraft has airport, type, operator, state and phase of flight, the wildlife species, size and
time of day: each value is a key, and its row is on the pservers. A tower is a mean of rows and a
layer; their product and a layer of all rows give the score. Run it in a job of pservers with
--ports_num_for_sparse=1, each trainer with its own trainer_id:

    python3 ctr.py --pservers=127.0.0.1 --num_gradient_servers=2 --trainer_id=0

Prints the cost of each pass, and of 100 pairs of a test row with damage and one without, how many the
score puts in the right order."""
import argparse
import csv
import os
import zlib

import torch
import weft
import weft.torch
from torch import nn

here = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("pservers", "trainer_id", "num_gradient_servers"):
    parser.add_argument("--" + name)  # not given: from PADDLE_INIT_*, as weft.init does
parser.add_argument("--on", choices=("workers", "pservers"), default="workers")
parser.add_argument("--data", default=os.path.join(here, "../../data/birdstrikes.csv"))
parser.add_argument("--num_passes", type=int, default=2)
parser.add_argument("--batch_size", type=int, default=64, help="of all trainers together")
parser.add_argument("--no_lookahead", action="store_true")
options = parser.parse_args()

AIRCRAFT, WILDLIFE = (0, 1, 4, 5, 6), (7, 8, 9)
with open(options.data, encoding="utf-8", newline="") as file:
    rows = list(csv.reader(file))[1:]
keys = torch.tensor([[zlib.crc32(b"%d=%s" % (i, row[i].encode())) for i in AIRCRAFT + WILDLIFE] for row in rows])
damage = torch.tensor([float(row[2] != "None") for row in rows])
learned = len(rows) * 4 // 5  # to test on: the later ones


class Towers(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.rows = weft.torch.Embedding(table)
        self.aircraft, self.wildlife = nn.Linear(table.dim, 16), nn.Linear(table.dim, 16)
        self.all = nn.Linear(table.dim * len(AIRCRAFT + WILDLIFE), 1)

    def forward(self, keys):
        rows = self.rows(keys)
        aircraft = self.aircraft(rows[:, : len(AIRCRAFT)].mean(1)).tanh()
        wildlife = self.wildlife(rows[:, len(AIRCRAFT) :].mean(1)).tanh()
        return (aircraft * wildlife).sum(1) + self.all(rows.flatten(1))[:, 0]


torch.set_num_threads(1)
torch.manual_seed(1)
place = {name: getattr(options, name) for name in ("pservers", "trainer_id", "num_gradient_servers")}
weft.init(ports_num_for_sparse=1, **place)
trainer, trainers = weft.trainer_id(), weft.num_gradient_servers()
table = weft.table("values", 8, optimizer="adagrad", learning_rate=0.1, init="uniform", init_a=-0.1, init_b=0.1)
model = Towers(table)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
optimizer = weft.torch.DistributedOptimizer(optimizer, model.named_parameters(), on=options.on)
weft.torch.broadcast_parameters(model.state_dict())


def batches(number):
    order = torch.randperm(learned, generator=torch.Generator().manual_seed(number))
    for first in range(0, learned - options.batch_size + 1, options.batch_size):
        which = order[first : first + options.batch_size][trainer::trainers]
        yield keys[which], damage[which]


for number in range(options.num_passes):
    total, count = 0.0, 0
    loader = batches(number)
    if not options.no_lookahead:
        loader = weft.torch.lookahead(loader, {model.rows: lambda batch: batch[0]})
    for batch, wanted in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch), wanted)
        loss.backward()
        optimizer.step()
        total, count = total + loss.item(), count + 1
    total, count = weft.reduce([total, count])
    with torch.no_grad():
        score, wanted = model(keys[learned:]), damage[learned:] > 0
    ordered = (score[wanted][:, None] > score[~wanted]).float().mean().item()
    if trainer == 0:
        print("pass %d cost %.6f ordered %.1f" % (number, total / count, 100 * ordered), flush=True)
weft.close()

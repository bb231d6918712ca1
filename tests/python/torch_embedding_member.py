# SPDX-License-Identifier: Apache-2.0
"""One of several trainers whose rows get gradients that are given numbers, so that what becomes of them
is known to the bit.

main: `on` is that of weft.torch.DistributedOptimizer, and `ahead` whether there is lookahead. It writes to
`out` all rows of both tables and the parameter after STEPS steps."""


import numpy as np
import support  # noqa: F401, so that the package is found
import torch

import weft
import weft.torch

DIM, KEYS, STEPS = 5, 40, 6
RATE = 0.5  # a power of 2: no product with it is rounded


def batch(step, trainer):
    """Keys [12] with repetitions and their gradients, keys of 4 bags with the third empty, and theirs."""
    chance = np.random.RandomState(100 * step + trainer)
    keys, bagged = chance.randint(0, KEYS, 12), chance.randint(0, KEYS, 9)
    grads = [chance.standard_normal((count, DIM)).astype(np.float32) for count in (12, 4, 1)]
    return keys, grads[0], bagged, np.array([0, 3, 7, 7]), grads[1], grads[2][0]


class Model(torch.nn.Module):
    """A loss whose gradients are what it is given."""

    def __init__(self, words, places):
        super().__init__()
        self.words = weft.torch.Embedding(words)
        self.places = weft.torch.EmbeddingBag(places)
        self.scale = torch.nn.Parameter(torch.zeros(DIM))

    def forward(self, keys, grad, bagged, offsets, grad_of_bags, grad_of_scale):
        loss = (self.words(keys) * grad).sum() + (self.places(bagged, offsets) * grad_of_bags).sum()
        return loss + (self.scale * grad_of_scale).sum()


def train(model, optimizer, number, ahead):
    batches = [tuple(map(torch.from_numpy, batch(step, number))) for step in range(STEPS)]
    if ahead:
        batches = weft.torch.lookahead(batches, {model.words: lambda b: b[0], model.places: lambda b: b[2]})
    for each in batches:
        optimizer.zero_grad()
        model(*each).backward()
        optimizer.step()


def main(on, ahead, where, number, trainers, out):
    torch.set_num_threads(1)
    weft.init(pservers=where, ports_num_for_sparse=2, num_gradient_servers=trainers, trainer_id=number)
    rows = {"init": "uniform", "init_a": -1, "init_b": 1, "learning_rate": RATE}
    words = weft.table("words", DIM, optimizer="sgd", **rows)
    places = weft.table("places", DIM, optimizer="adagrad", **rows)
    model = Model(words, places)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    optimizer = weft.torch.DistributedOptimizer(optimizer, model.named_parameters(), on=on)
    weft.torch.broadcast_parameters(model.state_dict())
    every = torch.arange(KEYS)
    model.eval()
    first = model.words(every), model.places(every[:, None])
    weft.session().barrier()
    model.train()
    train(model, optimizer, number, ahead)
    weft.session().pass_end()
    model.eval()
    last = model.words(every), model.places(every[:, None])
    torch.save({"first": first, "last": last, "scale": model.scale.detach()}, out)
    weft.session().barrier()
    weft.close()

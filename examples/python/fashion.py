#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small VGG learns Fashion-MNIST (Debian's dataset-fashion-mnist) with PyTorch and weft.

    python3 fashion.py                                        # one process
    weft pserver --num_gradient_servers=2 --once &
    python3 fashion.py --mode=workers --pservers=127.0.0.1 --num_gradient_servers=2 --trainer_id=0 &
    python3 fashion.py --mode=workers --pservers=127.0.0.1 --num_gradient_servers=2 --trainer_id=1

Prints the cost, and the share of test images that are taken for something else."""
import gzip
import os

import numpy as np
import torch
from distribute import Job, parser_of
from torch import nn

parser = parser_of(
    __doc__, data="/usr/share/datasets/fashion-mnist", rows=12000, test_rows=2000, batch_size=50, rate=0.05
)
options = parser.parse_args()


def read(name, count, head):
    with gzip.open(os.path.join(options.data, name + ".gz")) as file:
        return np.frombuffer(file.read(head + count), np.uint8, offset=head)


def images(name, rows):
    """[rows, 1, 28, 28], and their kinds."""
    x = read(name + "-images-idx3-ubyte", rows * 784, 16).reshape(rows, 1, 28, 28)
    y = read(name + "-labels-idx1-ubyte", rows, 8)
    return torch.from_numpy(x.astype(np.float32) / 255 - 0.3), torch.from_numpy(y.astype(np.int64))


def block(channels_in, channels):
    """Two convolutions of 3 x 3, and the half of the size."""
    return [
        nn.Conv2d(channels_in, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]


torch.manual_seed(1)
vgg = nn.Sequential(*block(1, 8), *block(8, 16), nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
job = Job(options, vgg, lambda parameters: torch.optim.SGD(parameters, lr=options.rate, momentum=0.9))
x, y = images("train", options.rows)
test_x, test_y = images("t10k", options.test_rows)


def loss_of(model, batch):
    return nn.functional.cross_entropy(model(x[batch]), y[batch])


for number in range(options.num_passes):
    cost = job.train(loss_of, job.batches(options.rows, options.batch_size, number))
    with torch.no_grad():
        wrong = (vgg(test_x).argmax(1) != test_y).float().mean().item()
    job.tell(number, cost, wrong)
job.end()

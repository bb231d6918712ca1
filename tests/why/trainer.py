# SPDX-License-Identifier: Apache-2.0
"""A trainer of why.py: steps of which one part is slow, as it is told. Numbers come from arguments:
trainer_id=1 sleep=0.2 ..."""

import mmap
import os
import sys
import time

import numpy as np

import weft

PAGES = 512
PAGE = mmap.PAGESIZE


def touch(path):
    """Reads pages of a file that are not in memory: each is a major fault."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        with mmap.mmap(file.fileno(), PAGES * PAGE) as pages:
            pages.madvise(mmap.MADV_RANDOM)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return sum(pages[i * PAGE] for i in range(PAGES))


ROW = 1024  # values
FEW = 8  # keys of a batch that the first sparse lane has
HOTTEST = 5  # keys of the last lane that are in every batch; of the others each is in one of some


class Embedding:
    """A table nearly all keys of which are the last sparse lane's, in every step."""

    def __init__(self, rows, lanes):
        self.rows, self.lanes = rows, lanes
        self.table = weft.table("emb", ROW, batch_keys_max=rows + FEW)

    def choose(self, seed):
        first, last = [], []
        key = 0
        while len(first) < FEW or len(last) < 4 * self.rows:
            lane = self.table.key_lane(key)
            if lane == self.lanes - 1 and len(last) < 4 * self.rows:
                last.append(key)
            elif lane == 0:
                first.append(key)
            key += 1
        self.hottest, self.rest = last[:HOTTEST], np.array(last[HOTTEST:])
        self.few, self.random = first[:FEW], np.random.default_rng(seed)

    def step(self):
        more = self.random.choice(self.rest, self.rows - HOTTEST, replace=False)
        keys = np.concatenate([self.hottest, more, self.few]).astype(np.uint64)
        rows = self.table.lookup(keys)
        return rows, np.full((rows.count, ROW), 1e-3, np.float32)


def main():
    args = dict(word.split("=", 1) for word in sys.argv[1:])
    trainer, trainers = int(args["trainer_id"]), int(args["trainers"])
    weft.init(
        pservers=args["pservers"],
        ports_num=int(args["lanes"]),
        num_gradient_servers=trainers,
        trainer_id=trainer,
        slice_bytes=int(args.get("slice_bytes", 16384)),
        ports_num_for_sparse=int(args.get("sparse_lanes", 0)),
        transport="tcp",
    )
    tensors = [weft.empty((int(args["floats"]),), name=f"w{i}") for i in range(2)]
    embedding = None
    if "sparse_lanes" in args:
        lanes = len(args["pservers"].split(",")) * int(args["sparse_lanes"])
        embedding = Embedding(int(args["rows"]), lanes)
    for tensor in tensors:
        tensor.param[:] = 0
    if "paging" in args:
        with open(args["paging"], "wb") as file:
            file.write(os.urandom(PAGES * PAGE))
    weft.start()
    if embedding:
        embedding.choose(trainer)
    while True:  # until it is killed
        rows, grad = embedding.step() if embedding else (None, None)
        time.sleep(float(args.get("sleep", 0)))
        if "paging" in args:
            touch(args["paging"])
        for tensor in tensors:
            tensor.grad[:] = np.float32(1e-3)
        if not embedding:
            weft.exchange(samples=1)
            continue
        weft.step(1)
        for tensor in tensors:
            weft.push(tensor)
        embedding.table.update(rows, grad)
        weft.wait()


main()

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


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def touch(path):
    """Reads pages of a file that are not in memory: each is a major fault."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        with mmap.mmap(file.fileno(), PAGES * PAGE) as pages:
            pages.madvise(mmap.MADV_RANDOM)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return sum(pages[i * PAGE] for i in range(PAGES))


def main():
    args = dict(word.split("=", 1) for word in sys.argv[1:])
    trainer, trainers = int(args["trainer_id"]), int(args["trainers"])
    weft.init(
        pservers=args["pservers"],
        ports_num=int(args["lanes"]),
        num_gradient_servers=trainers,
        trainer_id=trainer,
        slice_bytes=int(args.get("slice_bytes", 16384)),
        transport="tcp",
    )
    tensors = [weft.empty((int(args["floats"]),), name=f"w{i}") for i in range(2)]
    for tensor in tensors:
        tensor.param[:] = 0
    if "paging" in args:
        with open(args["paging"], "wb") as file:
            file.write(os.urandom(PAGES * PAGE))
    weft.start()
    while True:  # until it is killed
        time.sleep(float(args.get("sleep", 0)))
        busy(float(args.get("busy", 0)))
        if "paging" in args:
            touch(args["paging"])
        for tensor in tensors:
            tensor.grad[:] = np.float32(1e-3)
        weft.exchange(samples=1)


main()

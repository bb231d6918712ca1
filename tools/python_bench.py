#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python binding costs, and what a step of PyTorch costs with it. Not part of the check: run it
on a quiet machine, from a checkout that is built.

    PYTHONPATH=bindings/python tools/python_bench.py calls
    PYTHONPATH=bindings/python tools/python_bench.py rows
    PYTHONPATH=bindings/python tools/python_bench.py ddp [--model=resnet50,vgg16,bert,chain --ranks=2,4]
                                [--mebibytes=32 --steps=3 --rounds=11 --lanes=2 --only=hook,pservers]
                                [--bucket_cap_mb=25]

calls  microseconds that Python adds to a call: the same steps of the same session, by turns from
       Python and from ten lines of C that call the library (compiled for it: cc is needed)
rows   a step of 4,096 distinct keys, rows of 64 values: pull, push, wait, by turns from C, from
       Python, and by weft.torch.Embedding with autograd; medians, and rows per second beside C
ddp    a step of DistributedDataParallel whose gradients weft exchanges, beside Gloo's all-reduce, for so
       many trainers and the lists of parameters of so many models, scaled to about --mebibytes. The loss
       is the sum of all values, so that backward brings gradients as fast as memory takes them, the last
       layer's first. All jobs exist at the same time, and take turns of --steps steps in an order that is
       drawn for each round; ratios are taken within a round, and the median over the rounds is printed
       with the interval that has it with 95 % (the sign test; six rounds are needed).
       CPU ms is processor time of all trainers and pservers together: where all cores are busy it is what
       counts. "beyond no exchange" is what a step takes beyond the same step without an exchange; Gloo's
       is 1. "MiB sent" is what left through sockets in a step, of all processes.
         shm, tcp  one host, one pserver of --lanes lanes; with tcp each gradient goes to the pserver and
                   comes back, which for two trainers is twice what Gloo's ring sends
         spread    one host; rank 0 by shared memory, the others by tcp
         hosts     each trainer has a network of its own (namespaces, veth and a bridge; needs root), and in
                   it a pserver of one lane, which has an equal part of the values: with transport=auto
                   that one is reached by shared memory, the others by tcp, as in a cluster
       At the end weft trace records some steps of weft's jobs: of how many of a step's slices the push had
       begun, and how many were answered, when backward had computed the last gradient; and which part of
       the time in which slices were under way lies before that. With --record=DIR the recordings stay,
       with a track of backward for each trainer, for https://ui.perfetto.dev."""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from ddp_bench.job import free_ports

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WEFT = os.environ.get("WEFT", os.path.join(TOP, "build/tools/weft"))
# What the binding is measured against: the same calls of the library, from C.
IN_C = """
#include <weft/sparse.h>
#include <weft/weft.h>
int rows(struct weft_session *session, struct weft_table *table, const uint64_t *key, uint32_t count,
         const float *grad)
{
        struct weft_rows *rows = NULL;
        enum weft_status status = weft_rows_pull(table, key, count, WEFT_ROWS_CREATE, &rows);
        if (status == WEFT_OK) {
                status = weft_rows_wait(rows);
        }
        if (status == WEFT_OK) {
                status = weft_step(session, 1, 0);
        }
        if (status == WEFT_OK) {
                status = weft_rows_push(rows, grad, NULL, NULL);
        }
        return status == WEFT_OK ? (int)weft_wait_all(session) : (int)status;
}
int run(struct weft_session *session, struct weft_tensor **tensor, int count)
{
        enum weft_status status = weft_step(session, 1, 0);
        for (int i = 0; status == WEFT_OK && i < count; i++) {
                status = weft_push(tensor[i]);
        }
        return status == WEFT_OK ? (int)weft_wait_all(session) : (int)status;
}
int wait(struct weft_tensor *tensor, int times)
{
        int status = 0;
        for (int i = 0; i < times; i++) {
                status |= (int)weft_wait(tensor);
        }
        return status;
}
int all_reduce(struct weft_session *session, float *array, int count, int times)
{
        int status = 0;
        for (int i = 0; i < times; i++) {
                status |= (int)weft_all_reduce(session, array, (uint64_t)count, WEFT_TYPE_F32, WEFT_REDUCE_SUM);
        }
        return status;
}
"""


def pserver(trainers, lanes, transport="auto", sparse=0):
    port = free_ports(lanes + sparse)
    command = [WEFT, "pserver", "--once", "--port=%d" % port, "--ports_num=%d" % lanes]
    command += ["--num_gradient_servers=%d" % trainers, "--transport=" + transport]
    command += ["--ports_num_for_sparse=%d" % sparse]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL), "127.0.0.1:%d" % port


def microseconds(call):
    begin = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begin) / 1e3


def by_turns(times, *calls, fastest=4):
    """Microseconds of each call, the quarter that was fastest; all of them once, then again. `fastest`:
    the part of the turns that counts, 400 of 400: one turn, where others share the processors."""
    found = [[microseconds(call) for call in calls] for _ in range(times)]
    return [statistics.mean(sorted(each)[: max(1, times // fastest)]) for each in zip(*found)]


def in_c(folder):
    """IN_C, compiled against the library that the binding has found."""
    import weft

    path = os.path.join(folder, "calls.so")
    command = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-I" + os.path.join(TOP, "include")]
    command += ["-x", "c", "-", "-x", "none", "-o", path, weft._abi.api().path]
    subprocess.run(command, input=IN_C, text=True, check=True)
    return ctypes.CDLL(path)


def bench_calls(_):
    import weft

    server, where = pserver(1, 1)
    session = weft.Session(pservers=where, all_reduce_ring="1MiB")
    tensors = [session.empty(16, name="t%d" % i) for i in range(256)]
    session.start()
    with tempfile.TemporaryDirectory() as folder:
        library = in_c(folder)
    handles = (ctypes.c_void_p * 256)(*[tensor._handle for tensor in tensors])
    first, handle, several = tensors[0], ctypes.c_void_p(session._handle), range(1000)
    failed = []
    some, none = np.zeros(16, np.float32), np.zeros(0, np.float32)

    def reduces(array):
        def run():
            for _ in range(100):
                session.all_reduce(array)

        return run

    def reduces_in_c(array):
        def run():
            address = ctypes.c_void_p(array.ctypes.data)
            failed.append(library.all_reduce(handle, address, array.size, 100))

        return run

    def step():
        session.step(1)
        for tensor in tensors:
            session.push(tensor)
        session.wait()

    def waits():
        for _ in several:
            session.wait(first)

    def step_in_c():
        failed.append(library.run(handle, handles, 256))

    def waits_in_c():
        failed.append(library.wait(ctypes.c_void_p(first._handle), 1000))

    python, c = by_turns(100, waits, waits_in_c)
    print("wait, nothing under way          %7.3f us from Python, %.3f from C" % (python / 1000, c / 1000))
    print("  so Python adds                 %7.3f us to a call" % ((python - c) / 1000))
    python, c, one = by_turns(400, step, step_in_c, lambda: session.exchange(1))
    print("step, 256 pushes, wait           %7.1f us from Python, %.1f from C" % (python, c))
    print("  so Python adds                 %7.3f us to a call" % ((python - c) / 258))
    print("the same as one call, exchange   %7.1f us from Python" % one)
    for array in (none, some):
        python, c = by_turns(400, reduces(array), reduces_in_c(array), fastest=400)
        print("all_reduce of %2d values          %7.3f us from Python, %.3f from C" % (array.size, python / 100, c / 100))
        print("  so Python adds                 %7.3f us to a call" % ((python - c) / 100))
    if any(failed):
        raise SystemExit("a call from C failed")
    session.close()
    server.wait()


def bench_rows(options):
    import torch
    import weft.torch

    torch.set_num_threads(1)
    count, dim = 4096, 64
    server, where = pserver(1, 1, options.transport or "auto", sparse=1)
    session = weft.init(pservers=where, ports_num_for_sparse=1)
    table = weft.table("rows", dim, init="uniform", init_a=-1, init_b=1)
    module, bias = weft.torch.Embedding(table), torch.nn.Parameter(torch.zeros(1))
    optimizer = weft.torch.DistributedOptimizer(torch.optim.SGD([bias], lr=0.1), [], on="ddp")
    weft.torch.broadcast_parameters({})
    chance = np.random.default_rng(1)
    batches = [chance.choice(1 << 20, count, replace=False).astype(np.int64) for _ in range(16)]
    grad = chance.standard_normal((count, dim)).astype(np.float32)
    tensor, given = torch.from_numpy(grad), [torch.from_numpy(keys) for keys in batches]
    with tempfile.TemporaryDirectory() as folder:
        library = in_c(folder)
    failed, at = [], [0, 0, 0]

    def turn(place):
        at[place] += 1
        return at[place] % len(batches)

    def from_c():
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (batches[turn(0)], grad)]
        handles = ctypes.c_void_p(session._handle), ctypes.c_void_p(table._handle)
        failed.append(library.rows(*handles, pointers[0], count, pointers[1]))

    def from_python():
        rows = table.lookup(batches[turn(1)])
        session.step(1)
        table.update(rows, grad)
        session.wait()

    def by_module():
        optimizer.zero_grad()
        module(given[turn(2)]).backward(tensor)
        optimizer.step()

    calls = (from_c, from_python, by_module)
    for call in calls * len(batches):  # every row exists
        call()
    found = [[microseconds(call) for call in calls] for _ in range(options.steps * 20)]
    medians = [statistics.median(each) for each in zip(*found)]
    for name, median in zip(("C", "Python", "weft.torch.Embedding"), medians):
        print("%-22s %8.1f us, %5.2f million rows/s, %.2f of C" % (name, median, count / median, medians[0] / median))
    if any(failed):
        raise SystemExit("a call from C failed")
    weft.close()
    server.wait()


def bench_ddp(options):
    import ddp_bench.compare

    ddp_bench.compare.main(WEFT, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("calls", "rows", "ddp"))
    parser.add_argument("--model", default="resnet50,vgg16,bert", help="models, with commas between them")
    parser.add_argument("--ranks", default="2", help="numbers of trainers, with commas between them")
    parser.add_argument("--mebibytes", type=float, default=32, help="of the parameters, about")
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn; rows: 20 times as many")
    parser.add_argument("--rounds", type=int, default=11, help="turns of each job")
    parser.add_argument("--lanes", type=int, default=2, help="of a pserver that all trainers share")
    parser.add_argument("--bucket_cap_mb", type=float, default=25, help="of DistributedDataParallel")
    parser.add_argument("--only", help="jobs whose name has one of these words, with commas between them")
    parser.add_argument("--record", metavar="DIR", help="where the recordings of weft trace stay; nowhere unless given")
    parser.add_argument("--transport", help="of rows")
    options = parser.parse_args()
    {"calls": bench_calls, "rows": bench_rows, "ddp": bench_ddp}[options.what](options)


if __name__ == "__main__":
    main()

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
rows   a step of --keys distinct keys, rows of 64 values: pull, push, wait, from C, from Python, and by
       weft.torch.Embedding with autograd; each with and without looking ahead, where the pull of the next
       batch travels while the step is computed and pushed. They take turns of 10 x --steps steps in an
       order that is drawn for each round. Medians over the rounds, and within a round the speed beside
       that of C, with the interval that has the median with 95 % (?: it needs six rounds).
         with a copy    the rows are copied to the caller's memory, in the order of its keys, as the
                        module has to: what it returns lasts longer than the step
         PyTorch alone  zero_grad, backward and step of PyTorch for a function that does nothing
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
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from ddp_bench.job import free_ports
from ddp_bench.table import with_interval

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WEFT = os.environ.get("WEFT", os.path.join(TOP, "build/tools/weft"))
# What the binding is measured against: the same calls of the library, from C.
IN_C = """
#include <weft/sparse.h>
#include <weft/weft.h>
/* Steps with the batches of keys key[first], key[first + 1] and so on, again and again. */
int rows(struct weft_session *session, struct weft_table *table, const uint64_t *const *key, uint32_t batches,
         uint32_t count, const float *grad, float *copy, uint32_t first, uint32_t steps, int ahead)
{
        struct weft_rows *rows = NULL, *next = NULL;
        enum weft_status status = WEFT_OK;
        for (uint32_t i = first; status == WEFT_OK && i < first + steps; i++, rows = next, next = NULL) {
                if (rows == NULL) {
                        status = weft_rows_pull(table, key[i % batches], count, WEFT_ROWS_CREATE, &rows);
                }
                if (status == WEFT_OK) {
                        status = weft_rows_wait(rows);
                }
                if (status == WEFT_OK && copy != NULL) {
                        status = weft_rows_gather(rows, copy);
                }
                if (status == WEFT_OK) {
                        status = weft_step(session, 1, 0);
                }
                if (status == WEFT_OK && ahead && i + 1 < first + steps) {
                        status = weft_rows_pull(table, key[(i + 1) % batches], count, WEFT_ROWS_CREATE, &next);
                }
                if (status == WEFT_OK) {
                        status = weft_rows_push(rows, grad, NULL, NULL);
                }
                if (status == WEFT_OK) {
                        status = weft_wait_all(session);
                }
        }
        return (int)status;
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


class RowsBench:
    """A session with a table, and steps of it in several ways: of `steps` from batch `first` on."""

    def __init__(self, session, table, count, library):
        import torch
        import weft.torch

        self.session, self.table, self.count, self.library = session, table, count, library
        self.module, self.bias = weft.torch.Embedding(table), torch.nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.SGD([self.bias], lr=0.1)
        self.optimizer = weft.torch.DistributedOptimizer(self.optimizer, [], on="ddp")
        self.plain = torch.optim.SGD([self.bias], lr=0.1)
        weft.torch.broadcast_parameters({})
        chance = np.random.default_rng(1)
        self.batches = [chance.choice(1 << 20, count, replace=False).astype(np.int64) for _ in range(16)]
        self.grad = chance.standard_normal((count, table.dim)).astype(np.float32)
        self.copy = np.empty_like(self.grad)
        self.tensor, self.given = torch.from_numpy(self.grad), [torch.from_numpy(keys) for keys in self.batches]
        self.keys = (ctypes.c_void_p * len(self.batches))(*(keys.ctypes.data for keys in self.batches))
        self.ways = {
            "C": lambda first, steps: self.in_c(first, steps),
            "C, with a copy": lambda first, steps: self.in_c(first, steps, copy=True),
            "C, looking ahead": lambda first, steps: self.in_c(first, steps, ahead=1),
            "C, ahead, with a copy": lambda first, steps: self.in_c(first, steps, copy=True, ahead=1),
            "Python": self.in_python,
            "Python, looking ahead": self.in_python_ahead,
            "Embedding": self.by_module,
            "Embedding, looking ahead": self.by_module_ahead,
            "PyTorch alone": self.by_nothing,
        }

    def some(self, of, first, steps):
        return (of[number % len(of)] for number in range(first, first + steps))

    def in_c(self, first, steps, copy=False, ahead=0):
        handles = ctypes.c_void_p(self.session._handle), ctypes.c_void_p(self.table._handle)
        grad, out = (ctypes.c_void_p(array.ctypes.data) for array in (self.grad, self.copy))
        given = (self.keys, len(self.batches), self.count, grad, out if copy else None)
        if self.library.rows(*handles, *given, first, steps, ahead) != 0:
            raise SystemExit("a call from C failed")

    def in_python(self, first, steps):
        for keys in self.some(self.batches, first, steps):
            rows = self.table.lookup(keys)
            self.session.step(1)
            self.table.update(rows, self.grad)
            self.session.wait()

    def in_python_ahead(self, first, steps):
        rows = self.table.prefetch(self.batches[first % len(self.batches)])
        for number in range(first + 1, first + steps + 1):
            rows.wait()
            self.session.step(1)
            following = None
            if number < first + steps:
                following = self.table.prefetch(self.batches[number % len(self.batches)])
            self.table.update(rows, self.grad)
            self.session.wait()
            rows = following

    def train(self, batches):
        for keys in batches:
            self.optimizer.zero_grad()
            self.module(keys).backward(self.tensor)
            self.optimizer.step()

    def by_module(self, first, steps):
        self.train(self.some(self.given, first, steps))

    def by_module_ahead(self, first, steps):
        import weft.torch

        self.train(weft.torch.lookahead(self.some(self.given, first, steps), {self.module: lambda keys: keys}))

    def by_nothing(self, first, steps):
        import torch

        class Nothing(torch.autograd.Function):
            @staticmethod
            def forward(ctx, _, values):
                return values

            @staticmethod
            def backward(ctx, _):
                return None, None

        values, anchor = torch.from_numpy(self.copy), torch.zeros(0, requires_grad=True)
        for _ in range(steps):
            self.plain.zero_grad()
            Nothing.apply(anchor, values).backward(self.tensor)
            self.plain.step()


def bench_rows(options):
    import torch
    import weft

    torch.set_num_threads(1)
    server, where = pserver(1, 1, options.transport or "auto", sparse=1)
    session = weft.init(pservers=where, ports_num_for_sparse=1)
    table = weft.table("rows", 64, init="uniform", init_a=-1, init_b=1)
    with tempfile.TemporaryDirectory() as folder:
        library = in_c(folder)
    bench = RowsBench(session, table, options.keys, library)
    steps, found = 10 * options.steps, {way: [] for way in bench.ways}
    bench.in_c(0, len(bench.batches))  # every row exists
    for call in bench.ways.values():
        call(0, steps)
    chance, order = random.Random(1), list(bench.ways)
    for number in range(options.rounds):
        chance.shuffle(order)
        for way in order:
            found[way].append(microseconds(lambda: bench.ways[way](number * steps, steps)) / steps)
    both = "C with a copy, then PyTorch"
    found[both] = [sum(times) for times in zip(found["C, with a copy"], found["PyTorch alone"])]
    for way, times in found.items():
        shares = with_interval([c / time for c, time in zip(found["C"], times)])
        print("%-27s %8.1f us, %s of C" % (way, statistics.median(times), shares))
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
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn; rows: 10 times as many")
    parser.add_argument("--rounds", type=int, default=11, help="turns of each job")
    parser.add_argument("--lanes", type=int, default=2, help="of a pserver that all trainers share")
    parser.add_argument("--bucket_cap_mb", type=float, default=25, help="of DistributedDataParallel")
    parser.add_argument("--only", help="jobs whose name has one of these words, with commas between them")
    parser.add_argument("--record", metavar="DIR", help="where the recordings of weft trace stay; nowhere unless given")
    parser.add_argument("--transport", help="of rows")
    parser.add_argument("--keys", type=int, default=4096, help="of a batch; of rows")
    options = parser.parse_args()
    if options.keys < 1 or options.steps < 1 or options.rounds < 1:
        parser.error("--keys, --steps and --rounds: at least 1")
    {"calls": bench_calls, "rows": bench_rows, "ddp": bench_ddp}[options.what](options)


if __name__ == "__main__":
    main()

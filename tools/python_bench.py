#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python binding costs, and what a step of PyTorch costs with it. Not part of the check: run it
on a quiet machine, from a checkout that is built.

    PYTHONPATH=bindings/python tools/python_bench.py calls
    PYTHONPATH=bindings/python tools/python_bench.py rows
    PYTHONPATH=bindings/python tools/python_bench.py ddp [--mebibytes=100 --steps=20 --lanes=2 --rounds=3]
                                                         [--ranks=2] [--model=resnet50|vgg16|bert]

calls  microseconds that Python adds to a call: the same steps of the same session, by turns from
       Python and from ten lines of C that call the library (compiled for it: cc is needed)
rows   a step of 4,096 distinct keys, rows of 64 values: pull, push, wait, by turns from C, from
       Python, and by weft.torch.Embedding with autograd; medians, and rows per second beside C
ddp    milliseconds of a step of so many trainers, a model of so many MiB, median of the slowest. The
       model is a chain of square matrices, or, with --model, the list of parameters of ResNet-50, VGG-16
       or BERT-base, with as many values, or fewer if they have more than so many MiB: then each of
       their dimensions is smaller by the same factor. Its loss is the sum of all values, so that backward
       brings gradients as fast as memory takes them, the last layer's first. Beside each other are
       DistributedDataParallel's all-reduce over Gloo, over the process group "weft", weft's hook and
       weft's optimizers, over shared memory and TCP. "hosts": the transports of ranks that have a host
       each, where rank 0 has started the pserver: shared memory for rank 0, TCP for the others. All of
       them in turn, so many rounds of it; ratios are taken within a round, and their median is printed.
       Without an exchange the same step is the floor; the exchange's own time is what a step takes
       beyond it. The second column is processor time, of all trainers and the pserver together: where
       all cores are busy it is what counts, and it says more than the first on a machine with other
       work."""

import argparse
import ctypes
import glob
import math
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import weft

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WEFT = os.environ.get("WEFT", os.path.join(TOP, "build/tools/weft"))
# name, how, transport, whether the optimizer's step is in it
RUNS = [
    ("no exchange", "none", "tcp", False),
    ("no exchange, optimizer", "none", "tcp", True),
    ("no exchange, under DDP", "nothing", "tcp", False),
    ("gloo all-reduce", "gloo", "tcp", False),
    ("gloo all-reduce, optimizer", "gloo", "tcp", True),
    ("process group weft, shm", "group", "shm", False),
    ("process group weft, tcp", "group", "tcp", False),
    ("process group weft, hosts", "group", "hosts", False),
    ("weft hook, shm", "hook", "shm", False),
    ("weft hook, tcp", "hook", "tcp", False),
    ("weft at the workers, shm", "workers", "shm", False),
    ("weft at the workers, shm, optimizer", "workers", "shm", True),
    ("weft on the pservers, shm, optimizer", "pservers", "shm", True),
    ("weft on the pservers, tcp, optimizer", "pservers", "tcp", True),
]
# one, other, the floor of both: of their whole steps, and of what these take beyond the floor
RATIOS = [
    ("process group weft, shm", "gloo all-reduce", "no exchange, under DDP"),
    ("process group weft, tcp", "gloo all-reduce", "no exchange, under DDP"),
    ("process group weft, hosts", "gloo all-reduce", "no exchange, under DDP"),
    ("weft hook, shm", "gloo all-reduce", "no exchange, under DDP"),
    ("weft at the workers, shm", "gloo all-reduce", "no exchange"),
    ("weft on the pservers, shm, optimizer", "gloo all-reduce, optimizer", "no exchange"),
    ("weft hook, tcp", "gloo all-reduce", "no exchange, under DDP"),
    ("weft on the pservers, tcp, optimizer", "gloo all-reduce, optimizer", "no exchange"),
]
UNDER_DDP = ("hook", "gloo", "group", "nothing")
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


def free_ports(count):
    """The first of so many ports in a row."""
    base = 20000 + os.getpid() % 5000
    while True:
        try:
            for port in range(base, base + count):
                socket.create_server(("127.0.0.1", port)).close()
            return base
        except OSError:
            base += count


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
    path = os.path.join(folder, "calls.so")
    command = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-I" + os.path.join(TOP, "include")]
    command += ["-x", "c", "-", "-x", "none", "-o", path, weft._abi.api().path]
    subprocess.run(command, input=IN_C, text=True, check=True)
    return ctypes.CDLL(path)


def bench_calls(_):
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
    import numpy as np
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


def spent_by(pid):
    """Nanoseconds of processor time of another process, 0: of none."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid) if pid else []:
        with open(path, encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def resnet50():
    yield from ((64, 3, 7, 7), (64,), (64,))
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for shape in ((width, inputs, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)):
                yield from (shape, shape[:1], shape[:1])
            if block == 0:
                yield from ((4 * width, inputs, 1, 1), (4 * width,), (4 * width,))
            inputs = 4 * width
    yield from ((1000, 2048), (1000,))


def vgg16():
    inputs = 3
    for outputs in (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512):
        yield from ((outputs, inputs, 3, 3), (outputs,))
        inputs = outputs
    for outputs, inputs in ((4096, 25088), (4096, 4096), (1000, 4096)):
        yield from ((outputs, inputs), (outputs,))


def bert():
    norm = ((768,), (768,))
    yield from ((30522, 768), (512, 768), (2, 768), *norm)
    for _ in range(12):
        for outputs, inputs in ((768, 768), (768, 768), (768, 768), (768, 768)):
            yield from ((outputs, inputs), (outputs,))
        yield from (*norm, (3072, 768), (3072,), (768, 3072), (768,), *norm)
    yield from ((768, 768), (768,))


# Parameters as their authors' implementations count them.
MODELS = {"resnet50": (resnet50, 25557032), "vgg16": (vgg16, 138357544), "bert": (bert, 109482240)}


def shapes_of(name, mebibytes):
    """Of the model's parameters, with at most about so many MiB."""
    of, count = MODELS[name]
    shapes = list(of())
    if sum(map(math.prod, shapes)) != count:
        raise AssertionError("%s has %d values, not %d" % (name, sum(map(math.prod, shapes)), count))
    factor = min(1, mebibytes * 2**18 / count)
    return [tuple(max(1, round(n * factor ** (1 / len(shape)))) for n in shape) for shape in shapes]


def make_model(options):
    """The model, and the loss of one step as a function of it, which DistributedDataParallel may have wrapped."""
    import torch

    torch.manual_seed(1)
    if options.model:

        class Sums(torch.nn.Module):
            def __init__(self):
                super().__init__()
                shapes = shapes_of(options.model, options.mebibytes)
                self.all = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(shape)) for shape in shapes])

            def forward(self):
                return torch.stack([parameter.sum() for parameter in self.all]).sum()

        return Sums(), lambda model: model()
    size = 512
    layers = max(1, round(options.mebibytes * 2**18 / (size * size)))
    model = torch.nn.Sequential(*[torch.nn.Linear(size, size, bias=False) for _ in range(layers)])
    x = torch.randn(4, size)
    return model, lambda model: model(x).square().mean()


def rank_main(options):
    """One trainer of a run: prints the median of its steps, in ms."""
    import torch
    import weft.distributed
    import weft.torch

    torch.set_num_threads(1)
    model, loss_of = make_model(options)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
    if options.how != "group":
        weft.init(
            pservers=options.pservers,
            ports_num=options.lanes,
            num_gradient_servers=options.ranks,
            trainer_id=options.rank,
            transport=options.transport,
        )

    def nothing(_, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    whole = model
    if options.how in ("workers", "pservers"):
        optimizer = weft.torch.DistributedOptimizer(optimizer, model.named_parameters(), on=options.how)
        weft.torch.broadcast_parameters(model.state_dict())
    if options.how in UNDER_DDP:
        torch.distributed.init_process_group(
            "weft" if options.how == "group" else "gloo",
            init_method="tcp://127.0.0.1:%d" % options.port,
            rank=options.rank,
            world_size=options.ranks,
        )
        state = weft.torch.HookState(model) if options.how == "hook" else None
        whole = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        if state is not None:
            whole.register_comm_hook(state, weft.torch.push_pull_hook)
        if options.how == "nothing":
            whole.register_comm_hook(None, nothing)

    def step():
        optimizer.zero_grad()
        loss_of(whole).backward()
        if options.optimizer:
            optimizer.step()
        elif options.how == "workers":
            optimizer.synchronize()

    times = []
    for number in range(options.steps + 3):
        if number == 3:
            spent = time.process_time_ns() + spent_by(options.server)
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    spent = time.process_time_ns() + spent_by(options.server) - spent
    print(statistics.median(times[3:]), spent / options.steps / 1e6)
    if options.how in UNDER_DDP:
        torch.distributed.barrier()
    if options.how == "group":
        torch.distributed.destroy_process_group()
    else:
        weft.close()


def one_run(options, how, transport, optimizer):
    needs = how in ("group", "hook", "workers", "pservers")
    # One for each rank.
    transports = ["shm"] + ["tcp"] * (options.ranks - 1) if transport == "hosts" else [transport] * options.ranks
    accepts = "auto" if transport == "hosts" else transport
    server, where = pserver(options.ranks, options.lanes, accepts) if needs else (None, "127.0.0.1")
    group = {"WEFT_PSERVERS": where, "WEFT_PORTS_NUM": str(options.lanes)} if how == "group" else {}
    port = free_ports(16) + 15
    ranks = []
    for rank in range(options.ranks):
        command = [sys.executable, os.path.abspath(__file__), "rank", "--rank=%d" % rank, "--how=" + how]
        command += ["--transport=" + transports[rank], "--pservers=" + where, "--port=%d" % port]
        command += ["--mebibytes=%g" % options.mebibytes, "--steps=%d" % options.steps]
        command += ["--lanes=%d" % options.lanes, "--ranks=%d" % options.ranks]
        command += ["--model=" + options.model] if options.model else []
        command += ["--optimizer"] if optimizer else []
        command += ["--server=%d" % server.pid] if server is not None and rank == 0 else []
        environment = dict(os.environ, WEFT_TRANSPORT=transports[rank], **group)
        ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
    said = [rank.communicate()[0] for rank in ranks]
    if server is not None:
        server.wait()
    found = [tuple(map(float, text.split())) for text in said]
    return max(ms for ms, _ in found), sum(spent for _, spent in found)


def bench_ddp(options):
    rounds = []
    runs = [run for run in RUNS if not options.only or any(word in run[0] for word in options.only.split(","))]
    for number in range(options.rounds):
        rounds.append({name: one_run(options, *how) for name, *how in runs})
        print("round %d of %d: load average %s" % (number + 1, options.rounds, os.getloadavg()[0]), flush=True)
    for name, *_ in runs:
        ms, spent = (statistics.median(found[name][i] for found in rounds) for i in range(2))
        print("%-38s %9.2f ms %9.2f ms of processors" % (name, ms, spent))
    for one, other, floor in RATIOS:
        if all(name in rounds[0] for name in (one, other, floor)):
            told = []
            for i in range(2):
                whole = [found[one][i] / found[other][i] for found in rounds]
                beyond = [(found[one][i] - found[floor][i]) / (found[other][i] - found[floor][i]) for found in rounds]
                told += [statistics.median(whole), statistics.median(beyond)]
            print("%s / %s: %.2f, beyond the floor %.2f; of processors %.2f, %.2f" % (one, other, *told))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("calls", "rows", "ddp", "rank"))
    parser.add_argument("--mebibytes", type=float, default=100)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--model", choices=sorted(MODELS))
    parser.add_argument("--only", help="runs whose name has one of these words, with commas between them")
    for name in ("--how", "--transport", "--pservers"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    for name in ("--rank", "--port", "--server"):
        parser.add_argument(name, type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--optimizer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    {"calls": bench_calls, "rows": bench_rows, "ddp": bench_ddp, "rank": rank_main}[options.what](options)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What one rank of a process group of backend weft does, or of another (main)."""

import os
import signal
import sys
from datetime import timedelta

import support  # so that the package is found
import torch
import torch.distributed as dist

import weft
import weft.distributed
import weft.torch
from weft import _own_pserver

sys.path.insert(0, os.path.join(support.TOP, "tools"))

from ddp_bench import hosts  # noqa: E402

# Bits that no arithmetic keeps: NaNs with a payload, negative ones, -0.0, the smallest of all.
BITS = {
    torch.float32: (torch.int32, [0x7FC12345, -0x00234567, -0x80000000, 1, 0x7F800001, 5]),
    torch.float64: (torch.int64, [0x7FF8123456789ABC, -1, -0x8000000000000000, 1, 0x7FF0000000000001]),
    torch.bfloat16: (torch.int16, [0x7FC1, -0x23, -0x8000, 1, 0x7F81]),
    torch.float16: (torch.int16, [0x7E01, -0x23, -0x8000, 1, 0x7C01, 7, 9]),
}
SUMMED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64)
SHAPES = ((), (0,), (5,), (3, 7), (70001,))


def values(dtype, shape, rank):
    """A rank's tensor of this dtype, of any that there is."""
    generator = torch.Generator().manual_seed(100 * rank + len(shape))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).mul(10.0 ** (rank % 5)).to(dtype)
    low, high = (0, 2) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.randint(low, high, shape, generator=generator, dtype=dtype)


def special(dtype):
    kind, bits = BITS[dtype]
    return torch.tensor(bits, dtype=kind).view(dtype)


def strided(tensor):
    """The same tensor in channels_last."""
    return tensor.contiguous(memory_format=torch.channels_last)


def sums(rank, size):
    """[(op, tensor of all_reduce, of reduce_scatter, of the same with one tensor)]"""
    found = []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        for dtype in SUMMED[: 6 if op == dist.ReduceOp.SUM else 4]:
            for shape in SHAPES:
                tensor = values(dtype, shape, rank)
                dist.all_reduce(tensor, op)
                parts = [values(dtype, shape, rank + 10 * part) for part in range(size)]
                scattered = torch.empty(shape, dtype=dtype)
                dist.reduce_scatter(scattered, parts, op)
                at_once = torch.empty(shape, dtype=dtype)
                dist._reduce_scatter_base(at_once, torch.stack(parts), op)
                found.append((op == dist.ReduceOp.AVG, dtype, shape, tensor, scattered, at_once))
    return found


def layouts(rank, size):
    """Rank 1 has its tensors in channels_last, and a view that is negated; the others have not."""
    images = [torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5) * (rank + 1) for _ in range(3)]
    images = [strided(image) if rank == 1 else image for image in images]
    negated = torch._neg_view(torch.arange(4.0)) if rank == 1 else -torch.arange(4.0)
    wanted_strides = images[0].stride()
    dist.all_reduce(images[0])
    dist.broadcast(images[1], 1)
    dist.broadcast(images[2], 0)
    dist.all_reduce(negated)
    unaligned = torch.frombuffer(bytearray(range(rank, 33 + rank)), dtype=torch.uint8, offset=1)[:32]
    dist.broadcast(unaligned, 0)
    assert images[0].stride() == images[1].stride() == wanted_strides
    return images, negated.resolve_neg(), unaligned


def bits(rank, size):
    """Tensors that each rank has broadcast and all have gathered, of every dtype."""
    found = []
    dtypes = SUMMED + (torch.uint8, torch.int8, torch.int16, torch.bool, torch.complex64)
    sources = [(dtype, values(dtype, shape, rank)) for dtype in dtypes for shape in SHAPES]
    sources += [(dtype, special(dtype)) for dtype in BITS]
    for _, source in sources:
        here = source.clone() if rank == size - 1 else torch.full_like(source, 1)
        dist.broadcast(here, size - 1)
        gathered = [torch.full_like(source, 1) for _ in range(size)]
        dist.all_gather(gathered, source)
        whole = torch.full((size,) + tuple(source.shape), 1, dtype=source.dtype)
        dist._all_gather_base(whole, source)
        within = torch.full((size,) + tuple(source.shape), 1, dtype=source.dtype)
        within[rank] = source  # the part is given as a view of the whole
        dist._all_gather_base(within, within[rank])
        found.append((here, gathered, whole, within))
    return found


def objects(rank, size):
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    sent = ["of %d" % rank, rank]
    dist.broadcast_object_list(sent, 1)
    return gathered, sent


def works(rank, size):
    """Work that is returned, and a group of all ranks, which has the same members."""
    tensor = torch.full((3,), float(rank))
    work = dist.all_reduce(tensor, async_op=True)
    facts = [work.is_completed(), work.wait(), work.is_success()]
    facts.append(work.get_future().wait()[0].data_ptr() == tensor.data_ptr())
    facts.append([dist.barrier(async_op=True).wait(), work.get_future().then(lambda f: 7).wait()])
    group = dist.new_group(list(range(size)))
    dist.all_reduce(tensor, group=group)
    dist.destroy_process_group(group)
    del group
    several = [torch.full((2,), 1.0 + rank), torch.full((3,), 2.0 + rank)]
    dist.all_reduce_coalesced(several)
    return facts, tensor, several


def refused(rank, size):
    """Texts of what there is not; the group goes on after each."""
    tensor, square = torch.ones(4), torch.ones(4, 4)
    whole = torch.ones(4 * size)
    texts = []

    def attempt(call, *arguments, **more):
        try:
            call(*arguments, **more)
        except (weft.UnsupportedError, weft.InvalidError) as error:
            texts.append("%s: %s" % (type(error).__name__, error))
        else:
            texts.append("not refused")

    for op in ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR"):
        attempt(dist.all_reduce, tensor, getattr(dist.ReduceOp, op))
    for dtype in (torch.uint8, torch.bool, torch.int8, torch.int16):
        attempt(dist.all_reduce, torch.ones(4).to(dtype))
    attempt(dist.all_reduce, torch.ones(4, dtype=torch.int32), dist.ReduceOp.AVG)
    attempt(dist.all_reduce, square[:, 1])
    attempt(dist.broadcast, square.t(), 0)
    attempt(dist.all_reduce, torch.ones(4).to_sparse())
    attempt(dist.broadcast, tensor, size)
    attempt(dist.all_gather, [tensor] * (size - 1), tensor)
    attempt(dist.all_gather, [torch.ones(5)] * size, tensor)
    attempt(dist._all_gather_base, torch.ones(3), tensor)
    attempt(dist._reduce_scatter_base, tensor, torch.ones(3))
    attempt(dist.send, tensor, 1 - rank)
    attempt(dist.recv, tensor, 1 - rank)
    attempt(dist.recv, tensor)
    attempt(dist.reduce, tensor, 0)
    attempt(dist.gather, tensor, [tensor] * size if rank == 0 else None, 0)
    attempt(dist.scatter, tensor, [tensor] * size if rank == 0 else None, 0)
    attempt(dist.all_to_all, [tensor] * size, [tensor] * size)
    attempt(dist.all_to_all_single, whole, whole)
    dist.all_reduce(tensor)
    return texts, tensor


class Network(torch.nn.Module):
    """With buffers, of which one counts, a layer that is not used in each step, and some buckets."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(20, 300)
        self.norm = torch.nn.BatchNorm1d(300)
        self.odd = torch.nn.Linear(300, 300)
        self.last = torch.nn.Linear(300, 3)

    def forward(self, x, uses_odd):
        x = torch.relu(self.norm(self.first(x)))
        return self.last(self.odd(x) if uses_odd else x)


def ddp(rank, size):
    """What is trained: all of state_dict after each step."""
    torch.manual_seed(rank)  # ranks begin with other parameters: rank 0's become all's
    model = Network()
    whole = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1, find_unused_parameters=True)
    its = torch.optim.SGD(whole.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(50 + rank)
    found = []
    for step in range(5):
        its.zero_grad()
        x, y = torch.randn(16, 20, generator=generator), torch.randn(16, 3, generator=generator)
        torch.nn.functional.mse_loss(whole(x, step % 2 == 0), y).backward()
        its.step()
        found.append({name: value.clone() for name, value in model.state_dict().items()})
    return found


class Given(torch.nn.Module):
    """Its gradient is what it is called with."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(5000))

    def forward(self, gradient):
        return (self.weight * gradient).sum()


def gradients(rank, size):
    """The gradient of each of some steps, which is given as values(torch.float32, (5000,), step + rank)."""
    whole = torch.nn.parallel.DistributedDataParallel(Given())
    found = []
    for step in range(3):
        whole.zero_grad()
        whole(values(torch.float32, (5000,), step + rank)).backward()
        found.append(whole.module.weight.grad.clone())
    return found


def again(rank, size):
    """A group after a group that was destroyed, which a model still holds."""
    whole = torch.nn.parallel.DistributedDataParallel(Given())
    whole(torch.ones(5000)).backward()
    first = pserver_pid()
    dist.destroy_process_group()
    begin("weft", "second")
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    return tensor, first != pserver_pid() or rank > 0


def fails(call):
    """The error that ends the job, with its kind."""
    try:
        call()
    except (weft.Error, RuntimeError) as error:
        return "%s: %s" % (type(error).__name__, error)
    return "no error"


def differs(rank, size):
    return fails(lambda: dist.all_reduce(torch.ones(10 + rank)))


def differs_odd(rank, size):
    """Both need one word of 8 bytes, and more."""
    return fails(lambda: dist.broadcast(torch.ones(5 + rank, dtype=torch.uint8), 0))


def differs_in_ddp(rank, size):
    """Rank 0 is in backward, of which PyTorch makes each error a RuntimeError."""
    whole = torch.nn.parallel.DistributedDataParallel(Given())
    for _ in range(2):  # the second one builds the buckets anew
        whole(torch.ones(5000)).backward()
    loss = whole(torch.ones(5000))
    return fails(loss.backward if rank == 0 else lambda: dist.all_reduce(torch.ones(7)))


def dies(rank, size):
    """The last rank is gone without a word."""
    dist.barrier()
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return fails(lambda: dist.all_reduce(torch.ones(1000)))


def first_dies(rank, size):
    """Rank 0, which has started the pserver."""
    dist.barrier()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return fails(lambda: dist.all_reduce(torch.ones(1000)))


def settings(rank, size):
    session = dist.distributed_c10d.GroupMember.WORLD._session
    dist.barrier()  # rank 0 may have the store of PyTorch, in which the others look for it
    names = ("connect_timeout", "step_timeout", "all_reduce_ring", "pservers")
    return {name: session.setting(name) for name in names}, pserver_pid()


def subgroup(rank, size):
    """A group of some: its member is refused. The others wait for it in the store of PyTorch."""
    if rank == 0:
        return fails(lambda: dist.new_group([0]))
    return "no member"


def weft_torch(rank, size):
    """weft.torch.all_reduce, which needs no process group."""
    images = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)
    images = strided(images) if rank == 1 else images
    weft.torch.all_reduce(images, "mean")
    halves = values(torch.bfloat16, (1000,), rank)
    weft.torch.all_reduce(halves)
    texts = []
    for tensor, op in ((torch.ones(3, dtype=torch.uint8), "sum"), (images[:, 1], "sum"), ([1], "sum"), (halves, "max")):
        texts.append(fails(lambda tensor=tensor, op=op: weft.torch.all_reduce(tensor, op)))
    texts.append(fails(lambda: weft.torch.all_reduce(torch.ones(3, dtype=torch.int64), "mean")))
    return images, halves, texts


def shared(rank, size):
    """Sums of a large tensor, the session's pservers, whether this rank has started one, what this rank's
    network has sent meanwhile, and the ring of pieces."""
    session = dist.distributed_c10d.GroupMember.WORLD._session
    tensor = values(torch.float32, (1 << 20,), rank)
    dist.all_reduce(torch.ones(1))
    dist.barrier()
    before = hosts.sent_bytes(os.getpid())
    dist.barrier()  # the other rank of this host sends nothing of the tensor before
    dist.all_reduce(tensor)
    dist.barrier()
    after = hosts.sent_bytes(os.getpid())
    sent = {name: after[name] - before[name] for name in after}
    ring = session.setting("all_reduce_ring"), session.setting("slice_bytes")
    return tensor, session.setting("pservers"), pserver_pid() is not None, sent, ring


def pserver_pid():
    job = getattr(dist.distributed_c10d.GroupMember.WORLD, "_job", None)
    return job.pserver.process.pid if job is not None and job.pserver is not None else None


_place = {}  # of this rank: folder, size and rank


def begin(backend, name):
    method = "file://" + os.path.join(_place["folder"], name)
    where = {"init_method": method, "rank": _place["rank"], "world_size": _place["size"]}
    if "RANK" in os.environ:
        where = {"init_method": "env://"}
    if "MEETING" in os.environ:
        where["init_method"] = os.environ["MEETING"]
    dist.init_process_group(backend, timeout=timedelta(seconds=support.LIMIT), **where)


def enter_host():
    """NETWORK: the process whose network this rank has. HOST: a host that it says it is on, though all are
    on one."""
    if "NETWORK" in os.environ:
        hosts.enter(int(os.environ["NETWORK"]))
    if "HOST" in os.environ:
        _own_pserver._host_id = lambda: os.environ["HOST"]
        _own_pserver._listen_address = lambda _: "127.0.0.1"


def main(what, backend, folder, size, rank):
    """`what`: one of the functions above, which gets rank and size, and whose result is written to
    FOLDER/RANK. All ranks have the same folder."""
    torch.set_num_threads(1)
    enter_host()
    _place.update(folder=folder, size=size, rank=rank)
    if backend == "none":
        weft.init(trainer_id=rank, num_gradient_servers=size, all_reduce_ring="64KiB")
        weft.start()
    else:
        begin(backend, "first")
        if pserver_pid() is not None:
            with open(os.path.join(folder, "pserver%d" % rank), "w", encoding="ascii") as file:
                file.write("%d" % pserver_pid())
    torch.save(globals()[what](rank, size), os.path.join(folder, str(rank)))
    if backend != "none":
        dist.destroy_process_group()
    else:
        weft.close()

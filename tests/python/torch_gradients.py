# SPDX-License-Identifier: Apache-2.0
"""One of several trainers whose gradients are given numbers, so that their mean is known to the bit.

main: `mode` is workers; clip: the same, with the norm clipped between backward and step, and a signal that
comes while backward waits; hook, or views (gradient_as_bucket_view), which also do it without weft, by
Gloo. It writes to `out`, by the name of how it was done ("weft", "gloo"): for each step, all gradients
after backward and all parameters after the step. All trainers have the same `folder`."""

import os
import signal
import time

import numpy as np
import support  # noqa: F401, so that the package is found
import torch

import weft
import weft.torch

SHAPES = {"long": (1100,), "flat": (7, 3), "one": ()}
COUNT = 1100 + 21 + 1
SCALES = (1.0, 1e-3, 1.0, 1e-6, 1e4, 1e-4)  # each step's error was that of the step before


def gradient(step, trainer):
    """float32 [COUNT] of sizes so different that the order of a sum shows."""
    chance = np.random.RandomState(100 * step + trainer)
    values = chance.standard_normal(COUNT) * 10.0 ** chance.uniform(-3, 3, COUNT) * SCALES[step]
    if step == len(SCALES) - 1:
        values[[3 + trainer, 1119]] = np.nan, np.inf
    return values.astype(np.float32)


class Given(torch.nn.Module):
    """A loss whose gradient is what it is given."""

    def __init__(self):
        super().__init__()
        for name, shape in SHAPES.items():
            setattr(self, name, torch.nn.Parameter(torch.zeros(shape)))

    def forward(self, values):
        parts = torch.split(values, [p.numel() for p in self.parameters()])
        return sum((p * part.view_as(p)).sum() for p, part in zip(self.parameters(), parts))


def flat(tensors):
    return torch.cat([tensor.detach().flatten() for tensor in tensors]).clone()


class Knock(Exception):
    """What the handler of a signal raises."""


def knock(_number, frame):
    """For a signal that comes again and again: it is early while backward does not wait for means yet."""
    while frame is not None and frame.f_code.co_name != "take_means":
        frame = frame.f_back
    if frame is not None:
        raise Knock


def backward(loss, number, knocked):
    """Trainer 0's is interrupted in its wait for the others, and the step goes on from there. These come
    when it has been: there is a file `knocked` then. None: no step of an interruption."""
    if knocked is None:
        loss.backward()
    elif number > 0:
        while not os.path.exists(knocked):
            time.sleep(0.01)
        loss.backward()
    else:
        signal.signal(signal.SIGALRM, knock)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        try:
            loss.backward()
        except Knock:
            signal.setitimer(signal.ITIMER_REAL, 0)
            open(knocked, "w").close()
            return
        raise AssertionError("it was not interrupted")


def train(mode, made, whole, its, number, knocked=None):
    kept = []
    for step in range(len(SCALES)):
        its.zero_grad()
        knocked_here = knocked if step == 1 else None
        backward(whole(torch.from_numpy(gradient(step, number))), number, knocked_here)
        if knocked_here is not None:
            its.synchronize()
        if mode == "clip":
            torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        gradients = flat(parameter.grad for parameter in made.parameters())
        its.step()
        kept.append((gradients, flat(made.parameters())))
    return kept


def under_ddp(mode, number, hooked):
    made = Given()
    state = weft.torch.HookState(made) if hooked else None
    whole = torch.nn.parallel.DistributedDataParallel(made, gradient_as_bucket_view=mode == "views")
    if hooked:
        whole.register_comm_hook(state, weft.torch.push_pull_hook)
    return train(mode, made, whole, torch.optim.SGD(made.parameters(), lr=1.0), number)


def at_the_workers(mode, number, folder):
    made = Given()
    its = torch.optim.SGD(made.parameters(), lr=1.0)
    its = weft.torch.DistributedOptimizer(its, made.named_parameters())
    weft.torch.broadcast_parameters(made.state_dict())
    knocked = os.path.join(folder, "knocked") if mode == "clip" else None
    return train(mode, made, made, its, number, knocked)


def main(mode, where, number, trainers, folder, out):
    torch.set_num_threads(1)
    weft.init(pservers=where, num_gradient_servers=trainers, trainer_id=number)
    if mode in ("hook", "views"):
        rendezvous = "file://" + os.path.join(folder, "gloo")
        torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=number, world_size=trainers)
        torch.save({"weft": under_ddp(mode, number, True), "gloo": under_ddp(mode, number, False)}, out)
        torch.distributed.barrier()
    else:
        torch.save({"weft": at_the_workers(mode, number, folder)}, out)
    weft.close()

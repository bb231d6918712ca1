# SPDX-License-Identifier: Apache-2.0
"""One of two trainers that do not begin alike: its own parameters, buffers and data, by its number.

main: `mode` is workers, pservers, backward (pservers, pushed in backward) or ddp. It makes one step, and writes its model's state_dict before and
after it to `out`; both trainers have the same `folder`."""

import os

import support  # noqa: F401, so that the package is found
import torch

import weft
import weft.torch


def model(number):
    torch.manual_seed(number)
    made = torch.nn.Sequential(torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    made[0].num_batches_tracked.fill_((1 << 40) + number)
    made[0].running_mean.fill_(0.5 + number)
    return made


def optimizer(made):
    return torch.optim.SGD(made.parameters(), 0.1)


def loss(made, number):
    generator = torch.Generator().manual_seed(10 + number)
    x, y = torch.randn(8, 6, generator=generator), torch.randn(8, 2, generator=generator)
    return torch.nn.functional.cross_entropy(made(x), y.argmax(1))


def copy_of(made):
    return {name: value.clone() for name, value in made.state_dict().items()}


def main(mode, where, number, folder, out):
    torch.set_num_threads(1)
    weft.init(pservers=where, num_gradient_servers=2, trainer_id=number)
    made = whole = model(number)
    its = optimizer(made)
    if mode == "ddp":
        rendezvous = "file://" + os.path.join(folder, "gloo")
        torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=number, world_size=2)
        state = weft.torch.HookState(made)
    else:
        early = mode == "backward"
        on = "pservers" if early else mode
        its = weft.torch.DistributedOptimizer(its, made.named_parameters(), on=on, push_in_backward=early)
        weft.torch.broadcast_parameters(made.state_dict())
    before = copy_of(made)
    if mode == "ddp":
        whole = torch.nn.parallel.DistributedDataParallel(made, gradient_as_bucket_view=True)
        whole.register_comm_hook(state, weft.torch.push_pull_hook)
    loss(whole, number).backward()
    its.step()
    torch.save((before, copy_of(made)), out)
    if mode == "ddp":
        torch.distributed.barrier()
    weft.close()


def train_until_lost(where, number, there):
    """Steps with the optimizer on the pservers, until a call raises; a byte to `there` after the third."""
    torch.set_num_threads(1)
    weft.init(pservers=where, num_gradient_servers=2, trainer_id=number)
    made = model(number)
    its = weft.torch.DistributedOptimizer(optimizer(made), made.named_parameters(), on="pservers")
    weft.torch.broadcast_parameters(made.state_dict())
    try:
        for step in range(1 << 30):
            its.zero_grad()
            loss(made, number).backward()
            its.step()
            if step == 2:
                os.write(there, b"x")
    except weft.LostError as error:
        print("lost: %s" % error)
    try:
        weft.step(1)
    except weft.LostError as error:
        print("again: %s" % error)

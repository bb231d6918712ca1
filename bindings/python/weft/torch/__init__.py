# SPDX-License-Identifier: Apache-2.0
"""weft under PyTorch: gradients averaged by pservers, or the optimizer itself on the pservers.

    import weft, weft.torch
    weft.init(pservers="127.0.0.1", num_gradient_servers=2, trainer_id=0)
    optimizer = weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                                model.named_parameters())
    weft.torch.broadcast_parameters(model.state_dict())
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    weft.close()

or under DistributedDataParallel:

    state = weft.torch.HookState(model)
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(state, weft.torch.push_pull_hook)

CPU tensors of float32; at the workers float64, bfloat16 and float16, too. What the workers get is
the mean over trainers of what each has: exactly ((g0 + g1) + g2) + ... in float32 (or the other
type), from trainer 0 to the last, divided by their number; NaN and Inf pass. The pservers keep no
parameters then, and what the optimizer keeps is the trainers' own.

Everything here uses the session of weft.init, whose rules for threads, waiting and exceptions hold
(weft.Session); before weft.init it raises InvalidError."""

from __future__ import annotations

import torch

import weft
from weft import _reduction, _tensors
from weft.embedding import Embedding, EmbeddingBag, lookahead
from weft.errors import InvalidError
from weft.torch._exchange import broadcast_parameters
from weft.torch._hook import HookState, push_pull_hook
from weft.torch._optimizer import DistributedOptimizer


def rank() -> int:
    """This trainer's number, from 0."""
    return weft.trainer_id()


def size() -> int:
    """The number of trainers of the job."""
    return weft.num_gradient_servers()


def all_reduce(tensor: torch.Tensor, op: str = "sum") -> None:
    """Sum a tensor over all trainers, in place: weft.all_reduce for tensors on the CPU. Waits.

    tensor  of any shape, contiguous or in channels_last (which is copied, so that trainers may differ
            in this); float32, float64, float16, bfloat16, int32 or int64. Autograd does not record it
    op      "sum" or "mean": as weft.all_reduce

    Needs weft.init(all_reduce_ring="4MiB"). Raises what weft.all_reduce does."""
    session = weft.session()._enter()
    _tensors.check("all_reduce", tensor)
    kind = _tensors.element_types().get(tensor.dtype)
    if kind is None:
        names = ", ".join(str(dtype) for dtype in _tensors.element_types())
        raise InvalidError("all_reduce: the tensor's dtype is %s; %s are summed" % (tensor.dtype, names))
    _reduction.check_operation(op, not tensor.dtype.is_floating_point, tensor.dtype)
    _tensors.all_reduce(session, tensor, kind, session._operations[op])


__all__ = [
    "DistributedOptimizer",
    "Embedding",
    "EmbeddingBag",
    "HookState",
    "all_reduce",
    "broadcast_parameters",
    "lookahead",
    "push_pull_hook",
    "rank",
    "size",
]

# SPDX-License-Identifier: Apache-2.0
"""push_pull_hook: the buckets of DistributedDataParallel."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
import torch.distributed

from weft import _tensors
from weft.errors import InternalError, InvalidError
from weft.session import Tensor, _window
from weft.torch._exchange import MEAN, Exchange, broadcast_parameters, check

_PIECE = 1 << 18  # values of a tensor of push_pull_hook's
Future = torch.futures.Future[torch.Tensor]


class _Run(Exchange):
    """Gradients of a model one behind the other, in the order in which buckets bring them.

    Which parameter a place belongs to changes when DistributedDataParallel builds its buckets anew;
    nothing is kept from one step to the next, so it does not matter. The run is cut into tensors
    of a megabyte, so that each can leave when it is full. They follow one another in memory, so
    that a bucket's means can be had as one array. Means come into the array of the gradients. The
    step ends in backward, too early for rows."""

    pushes_rows = False

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        for name, parameter in self.pairs:
            check(name, parameter)
        self.claim_session()
        self.count = sum(parameter.numel() for _, parameter in self.pairs)
        firsts = range(0, self.count, _PIECE)
        self.pieces = [
            self.session.empty(min(_PIECE, self.count - at), name="gradients_%d" % at, reduce=True, in_place=True)
            for at in firsts
        ]
        self.at = 0  # values of this step that are here
        # Buckets whose gradients lie in weft's memory, by their places in the run.
        self.adopted: Dict[int, torch.Tensor] = {}

    def take_first(self) -> None:
        self.grad = _joined([piece.grad for piece in self.pieces])
        torch.cat([parameter.flatten() for _, parameter in self.pairs], out=self.grad)

    def give_first(self) -> None:
        values = torch.split(self.grad, [parameter.numel() for _, parameter in self.pairs])
        for (_, parameter), value in zip(self.pairs, values):
            parameter.copy_(value.view_as(parameter))

    def parts(self, first: int, end: int) -> Iterator[Tuple[Tensor, slice]]:
        """Pieces, and what of them is in [first, end) of the run."""
        for number in range(first // _PIECE, -(-end // _PIECE)):
            at = number * _PIECE
            yield self.pieces[number], slice(max(at, first), min(at + _PIECE, end))

    def take(self, bucket: Any) -> slice:
        """Push a bucket, each piece that is full; copied before, while it is in the cache, if it is
        not in weft's memory yet."""
        self.begin()
        values = bucket.buffer()
        if values.layout != torch.strided:
            raise InvalidError("a bucket has gradients that are %s; strided float32 is needed" % values.layout)
        first, end = self.at, self.at + values.numel()
        if end > self.count:
            raise InvalidError("the buckets have more than the %d values of HookState's model" % self.count)
        is_here = self._is_adopted(values, first)
        for piece, part in self.parts(first, end):
            if not is_here:
                self.grad[part].copy_(values[part.start - first : part.stop - first])
                self.session._copied += 4 * (part.stop - part.start)
            self.at = part.stop
            if self.at % _PIECE == 0 or self.at == self.count:
                self.session.push(piece)
        return slice(first, end)

    def _is_adopted(self, values: torch.Tensor, first: int) -> bool:
        kept = self.adopted.get(first)
        return kept is not None and kept.data_ptr() == values.data_ptr()

    def means(self, bucket: Any, where: slice) -> torch.Tensor:
        """Of a bucket."""
        adopted = self._is_adopted(bucket.buffer(), where.start) or self._adopt(bucket, where)
        for piece, _ in self.parts(where.start, where.stop):
            self.session.wait(piece)
        if adopted:
            return self.grad[where]
        # DistributedDataParallel counts from where the storage begins, so it has to be the bucket's.
        return _tensors.of_array(self.grad.numpy()[where])

    def _adopt(self, bucket: Any, where: slice) -> bool:
        """With gradient_as_bucket_view=True a parameter's .grad is the very tensor by which
        DistributedDataParallel knows its place in the bucket. It is moved to weft's memory, so that
        autograd adds up there from the next step on, and nothing is copied. The bucket's own memory is
        kept, and not used: no other bucket can come to lie there and be taken for this one."""
        values, parameters = bucket.buffer(), bucket.parameters()
        at = values.data_ptr()
        for parameter in parameters:
            # In channels_last the bucket has another order than the indices.
            if parameter.grad is None or parameter.grad.data_ptr() != at or not parameter.grad.is_contiguous():
                return False
            at += 4 * parameter.numel()
        places = torch.split(self.grad[where], [parameter.numel() for parameter in parameters])
        for parameter, place in zip(parameters, places):
            parameter.grad.set_(place.view_as(parameter))
        self.adopted[where.start] = values
        return True

    def end_step(self) -> None:
        self.session.wait()
        self.begun, self.at = False, 0


def _joined(arrays: List[Any]) -> torch.Tensor:
    """Arrays that lie one behind the other, as one."""
    end = arrays[0].ctypes.data
    for array in arrays:
        if array.ctypes.data != end:
            raise InternalError("the library's arrays have gaps between them")
        end += array.nbytes
    whole = _window(arrays[0].base, arrays[0].ctypes.data, (sum(a.size for a in arrays),))
    return _tensors.of_array(whole)


class HookState:
    """What push_pull_hook needs. It declares the parameters of `model` that require a gradient in the
    session, starts it, and gives trainer 0's parameters and buffers to all trainers. Waits. All trainers
    make one, with the same model, before the session has any tensor.

    InvalidError: a parameter is not float32 on the CPU (it is named), none requires a gradient, or the
    session has tensors, another HookState or a DistributedOptimizer; and what weft.start raises."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.run = _Run(model.named_parameters(), MEAN)
        self.run.declare(lambda _: {})
        self.waiting: List[Tuple[Future, Any, slice]] = []
        broadcast_parameters(model.state_dict())


def push_pull_hook(state: HookState, bucket: Any) -> Future:
    """For DistributedDataParallel.register_comm_hook: the mean over trainers of a bucket.

    state   HookState of the model; of one DistributedDataParallel
    bucket  GradBucket: strided float32 gradients, one behind the other

    Returns a future, whose value is a float32 tensor with as many elements as bucket.buffer(). Buckets are
    pushed piece by piece as they come, while backward goes on; with the last one all are waited for, and
    all futures are done. With gradient_as_bucket_view=True gradients lie in weft's memory from the third
    step on, and nothing is copied; else they are copied to weft's memory, and back by
    DistributedDataParallel itself. stats()["copied_bytes"] counts what is copied here.
    InvalidError: a sparse gradient, or buckets that are not those of the model; and what weft.push and
    weft.wait raise."""
    future: Future = torch.futures.Future()
    state.waiting.append((future, bucket, state.run.take(bucket)))
    if bucket.is_last():
        if state.run.at != state.run.count:
            raise InvalidError(
                "the buckets have %d values, HookState's model has %d" % (state.run.at, state.run.count)
            )
        _answer(state)
    return future


# DistributedDataParallel looks at these, and takes no text for them.
push_pull_hook.__annotations__ = {
    "state": HookState,
    "bucket": torch.distributed.GradBucket,  # type: ignore[attr-defined]
    "return": Future,
}


def _answer(state: HookState) -> None:
    waiting, state.waiting = state.waiting, []
    with torch.no_grad():
        found = [(future, state.run.means(bucket, where)) for future, bucket, where in waiting]
    state.run.end_step()
    for future, means in found:
        future.set_result(means)

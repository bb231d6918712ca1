# SPDX-License-Identifier: Apache-2.0
"""A backend of torch.distributed: process groups whose collective operations are weft's.

    import torch.distributed as dist
    import weft.distributed
    dist.init_process_group("weft")                 # RANK, WORLD_SIZE, MASTER_ADDR as for "gloo"
    model = torch.nn.parallel.DistributedDataParallel(model)
    ...
    dist.destroy_process_group()

Where no pservers are named, the first rank of each host starts one, which ends with the group. Tensors are on
the CPU. All operations are done when they return, whatever async_op says. Sums have the bits of adding the ranks'
tensors in the order of their ranks. The timeout of init_process_group is the
connect_timeout and step_timeout of the group's session, unless the environment has them. Operations that
weft does not have are refused by name."""

from __future__ import annotations

import ctypes
import sys
import weakref
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from weft import _settings, _tensors
from weft._own_pserver import OwnPserver, are_named, meet
from weft.errors import Error, InvalidError, MismatchError, UnsupportedError
from weft.session import Session

_dist: Any = dist  # PyTorch's hints are not those of each of its versions
if TYPE_CHECKING:
    ProcessGroup = Any
    Work = Any
    _create_work_from_future: Any
else:
    from torch._C._distributed_c10d import ProcessGroup, Work, _create_work_from_future

# Bytes of an operation that are under way at a time, and of a piece. On one host they stay in the processors'
# caches; across hosts fewer, larger ones wake fewer threads.
_WITHIN_HOST = {"all_reduce_ring": "1MiB", "slice_bytes": "64KiB"}
_ACROSS_HOSTS = {"all_reduce_ring": "8MiB", "slice_bytes": "256KiB"}
_WORD = 8
_OPERATIONS = ("PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")


class _Job:
    """This rank's session, and on the first rank of a host the pserver that it has started. It belongs to the groups
    of all ranks, and ends with the last of them."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        self.session: Optional[Session] = None
        self.pserver: Optional[OwnPserver] = None
        settings = _limits(timeout)
        if not are_named():
            settings["ports_num_for_sparse"] = 0
            settings["pservers"], self.pserver = meet(store, rank, size, settings)
            if "," in settings["pservers"]:
                settings.update({name: value for name, value in _ACROSS_HOSTS.items() if name in settings})
        try:
            self.session = Session(num_gradient_servers=size, trainer_id=rank, **settings)
            self.session._stays = "torch.distributed"
            self.session.start()
        except BaseException as error:
            if self.session is not None:
                self.session.abort("%s: %s" % (type(error).__name__, error))
            if self.pserver is not None:
                self.pserver.stop()
            raise

    def close(self) -> None:
        if self.session is not None:
            self.session.close()

    def __del__(self) -> None:
        if self.session is not None and self.session._waiter:
            return  # another thread is in a call: it is closed at exit
        try:
            self.close()
        except Error as error:
            print("weft: %s" % error, file=sys.stderr)


def _limits(timeout: timedelta) -> Dict[str, Any]:
    """Settings of a group's session that the environment leaves open."""
    own: Dict[str, Any] = {
        **_WITHIN_HOST,
        "connect_timeout": timeout.total_seconds(),
        "step_timeout": timeout.total_seconds(),
    }
    return {name: value for name, value in own.items() if _settings._from_environment(name) is None}


def _refused(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError("%s: backend weft does not have it; %s" % (name, instead))

    refuse.__doc__ = "UnsupportedError: %s." % instead
    return refuse


def _done(result: List[torch.Tensor]) -> Work:
    """What is done already, in a form that lives as long as C++ needs it."""
    future: Any = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _one(name: str, tensors: Sequence[Any]) -> Any:
    if len(tensors) != 1:
        raise UnsupportedError("%s: %d tensors of one rank; backend weft does one at a time" % (name, len(tensors)))
    return tensors[0]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


class ProcessGroupWeft(ProcessGroup):  # type: ignore[misc]
    """What torch.distributed calls, one method for each operation of its functions. All ranks call the same
    operations in the same order; each waits until it is done, and returns a Work that is done. `opts` is
    that of the function, such as AllreduceOptions.

    One thread at a time; the rules of weft.Session hold. InvalidError: a tensor is not strided on the CPU,
    or does not fit the others; UnsupportedError: an operation, its ReduceOp or a dtype that weft does not
    have. Nothing has been sent then. MismatchError and others: the ranks differ, and the job is over."""

    def __init__(self, rank: int, size: int, job: _Job) -> None:
        super().__init__(rank, size)
        assert job.session is not None
        self._job = job
        self._session: Session = job.session

    def getBackendName(self) -> str:
        """The name for init_process_group."""
        return "weft"

    # Operations with arithmetic: SUM and, of floating point, AVG.

    def allreduce(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        """Sum the one tensor of the list `tensors` over all ranks, in place; the dtypes are those of
        weft.torch.all_reduce."""
        self._sum("all_reduce", _one("all_reduce", tensors), opts)
        return _done(tensors)

    def allreduce_coalesced(self, tensors: List[torch.Tensor], opts: Any = None) -> Work:
        """Sum each tensor of the list `tensors` over all ranks, in place, one after the other."""
        for tensor in tensors:
            self._sum("all_reduce_coalesced", tensor, opts)
        return _done(tensors)

    def reduce_scatter(self, outputs: List[torch.Tensor], inputs: List[List[torch.Tensor]], opts: Any = None) -> Work:
        """Sum the list inputs[0], a tensor for each rank, over all ranks; outputs[0], of the same shape and
        dtype, gets the sum of this rank's."""
        output, parts = _one("reduce_scatter", outputs), _one("reduce_scatter", inputs)
        self._check_parts("reduce_scatter", output, parts)
        whole = torch.stack([part.detach() for part in parts])
        self._sum("reduce_scatter", whole, opts)
        output.detach().copy_(whole[self.rank()])
        return _done(outputs)

    def _reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        self._check_whole("reduce_scatter", output, given)
        whole = given.detach().clone(memory_format=torch.contiguous_format)
        self._sum("reduce_scatter", whole, opts)
        output.detach().copy_(whole.view(self.size(), -1)[self.rank()].view(output.shape))
        return _done([output])

    def _sum(self, name: str, tensor: torch.Tensor, opts: Any) -> None:
        _tensors.check(name, tensor)
        kind = _tensors.element_types().get(tensor.dtype)
        how = self._how(name, dist.ReduceOp.SUM if opts is None else opts.reduceOp)
        if kind is None:
            names = ", ".join(str(dtype) for dtype in _tensors.element_types())
            raise UnsupportedError("%s: backend weft sums %s, and not %s" % (name, names, tensor.dtype))
        if how == "mean" and not tensor.dtype.is_floating_point:
            text = "%s: AVG of %s: integers have a SUM only, which can be divided"
            raise UnsupportedError(text % (name, tensor.dtype))
        _tensors.all_reduce(self._session, tensor, kind, self._session._operations[how])

    @staticmethod
    def _how(name: str, op: Any) -> str:
        if op == dist.ReduceOp.SUM:
            return "sum"
        if op == _dist.ReduceOp.AVG:
            return "mean"
        known = [text for text in _OPERATIONS if op == getattr(dist.ReduceOp, text, None)]
        raise UnsupportedError("%s: %s: backend weft has SUM and AVG" % (name, known[0] if known else op))

    # Operations that move bits, whatever they mean.

    def broadcast(self, tensors: List[torch.Tensor], opts: Any) -> Work:
        """The one tensor of the list `tensors`, of any dtype, gets the bits that it has on opts.rootRank."""
        tensor = _one("broadcast", tensors)
        _tensors.check("broadcast", tensor)
        if not 0 <= opts.rootRank < self.size():
            raise InvalidError("broadcast: src is %d; ranks are 0 to %d" % (opts.rootRank, self.size() - 1))
        memory = _tensors.in_order("broadcast", tensor)
        is_root = opts.rootRank == self.rank()
        self._join("broadcast", memory, (0, _bytes(memory) if is_root else 0))
        if memory is not tensor and not is_root:
            tensor.detach().copy_(memory)
        return _done(tensors)

    def allgather(self, outputs: List[List[torch.Tensor]], inputs: List[torch.Tensor], opts: Any = None) -> Work:
        """The list outputs[0], a tensor for each rank, gets the bits of inputs[0] of each rank, in their
        order; all have the same shape and dtype, which may be any."""
        parts, given = _one("all_gather", outputs), _one("all_gather", inputs)
        self._check_parts("all_gather", given, parts)
        whole = torch.empty((self.size(),) + tuple(given.shape), dtype=given.dtype)
        self._gather("all_gather", whole, given)
        for part, got in zip(parts, whole):
            part.detach().copy_(got)
        return _done(parts)

    def _allgather_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        self._check_whole("all_gather", given, output)
        memory = _tensors.in_order("all_gather", output)
        self._gather("all_gather", memory, given)
        if memory is not output:
            output.detach().copy_(memory)
        return _done([output])

    def barrier(self, opts: Any = None) -> Work:
        """Wait until every rank has called barrier."""
        self._session.barrier()
        return _done([])

    def _gather(self, name: str, whole: torch.Tensor, given: torch.Tensor) -> None:
        """`whole`: in order; `given` may be this rank's part of it."""
        own = whole.detach().view(self.size(), -1)[self.rank()]
        if own.data_ptr() != given.data_ptr():
            own.copy_(given.detach().reshape(-1))
        each = _bytes(own)
        self._join(name, whole, (self.rank() * each, (self.rank() + 1) * each))

    def _join(self, name: str, memory: torch.Tensor, own: Tuple[int, int]) -> None:
        """Each byte of the tensor's memory becomes that of the rank that has it; this one has those
        from own[0] to own[1]. They are summed as whole numbers, to which the others add zeros, so
        that any bits arrive as they are."""
        self._session._enter()
        count, address = _bytes(memory), memory.data_ptr()
        if count % 4 != 0:
            self._join_odd(name, memory, own)
            return
        ctypes.memset(address, 0, own[0])
        ctypes.memset(address + own[1], 0, count - own[1])
        words = memory
        if address % 4 != 0:
            words = torch.empty(count // 4, dtype=torch.int32)
            ctypes.memmove(words.data_ptr(), address, count)
        types, how = _tensors.element_types(), self._session._operations["sum"]
        self._session._all_reduce(words.data_ptr(), count // 4, types[torch.int32], how)
        if words is not memory:
            ctypes.memmove(address, words.data_ptr(), count)

    def _join_odd(self, name: str, memory: torch.Tensor, own: Tuple[int, int]) -> None:
        """Bytes that do not fill words of 4: as words of 8, and behind them the number of bytes that
        each rank has, because other numbers may need as many words."""
        count, address = _bytes(memory), memory.data_ptr()
        words = torch.zeros(-(-count // _WORD) + self.size(), dtype=torch.int64)
        ctypes.memmove(words.data_ptr() + own[0], address + own[0], own[1] - own[0])
        counts = words[-self.size() :]
        counts[self.rank()] = count
        types, how = _tensors.element_types(), self._session._operations["sum"]
        self._session._all_reduce(words.data_ptr(), words.numel(), types[torch.int64], how)
        for rank, other in enumerate(counts.tolist()):
            if other != count:
                text = "%s: rank %d has %d bytes, and rank %d has %d" % (name, rank, other, self.rank(), count)
                self._session.abort(text)
                raise MismatchError(text)
        ctypes.memmove(address, words.data_ptr(), count)

    # What tensors have to be to each other.

    def _check_parts(self, name: str, one: Any, parts: Sequence[Any]) -> None:
        """A tensor, and a list with one like it for each rank."""
        if len(parts) != self.size():
            text = "%s: the list has %d tensors; one for each of %d ranks is needed"
            raise InvalidError(text % (name, len(parts), self.size()))
        for tensor in (one, *parts):
            _tensors.check(name, tensor)
        for rank, part in enumerate(parts):
            if part.shape != one.shape or part.dtype != one.dtype:
                raise InvalidError(
                    "%s: tensor %d of the list is %s of %s, and the single one is %s of %s; they have to be alike"
                    % (name, rank, tuple(part.shape), part.dtype, tuple(one.shape), one.dtype)
                )

    def _check_whole(self, name: str, part: Any, whole: Any) -> None:
        """A tensor, and one with the elements of one such for each rank."""
        for tensor in (part, whole):
            _tensors.check(name, tensor)
        if whole.numel() != self.size() * part.numel() or whole.dtype != part.dtype:
            raise InvalidError(
                "%s: the large tensor has %d elements of %s, and the small one %d of %s; %d times as many of the "
                "same dtype are needed"
                % (name, whole.numel(), whole.dtype, part.numel(), part.dtype, self.size())
            )

    # What there is not.

    reduce = _refused("reduce", "use all_reduce")
    gather = _refused("gather", "use all_gather")
    scatter = _refused("scatter", "use broadcast, and the rank's own part of it")
    alltoall = _refused("all_to_all", "use all_gather")
    alltoall_base = _refused("all_to_all_single", "use all_gather")
    allgather_coalesced = _refused("all_gather_coalesced", "use all_gather for each tensor")
    monitored_barrier = _refused("monitored_barrier", "use barrier, whose error names who is missing")
    send = _refused("send", "use broadcast, or a group of backend gloo")
    recv = _refused("recv", "use broadcast, or a group of backend gloo")
    recv_anysource = _refused("recv of any source", "use broadcast, or a group of backend gloo")


_last: "List[weakref.ref[_Job]]" = []  # of the default group that was made last


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroupWeft:
    """For init_process_group and new_group."""
    world = dist.distributed_c10d.GroupMember.WORLD  # None: this is to be the default group
    if world is not None and size != world.size():
        raise UnsupportedError(
            "new_group: %d of %d ranks; backend weft has groups of all ranks only: use backend='gloo' for this one"
            % (size, world.size())
        )
    if isinstance(world, ProcessGroupWeft):
        return ProcessGroupWeft(rank, size, world._job)
    for left in [job() for job in _last]:
        if world is None and left is not None:  # destroyed, and a model holds it
            left.close()
    job = _Job(store, rank, size, timeout)
    if world is None:
        _last[:] = [weakref.ref(job)]
    return ProcessGroupWeft(rank, size, job)


_dist.Backend.register_backend("weft", _create)

__all__ = ["ProcessGroupWeft"]

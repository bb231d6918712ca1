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

CPU tensors of float32. What the workers average is the mean over trainers of what each has, as in
DistributedDataParallel. How it is done with an optimizer that only subtracts: "sgd" with a rate and
a decay of 1 makes w - (g + w) of w, which is -g, the mean gradient negated; so the pservers keep no
parameters then, and what the optimizer keeps is the trainers' own."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import torch
import torch.distributed

import weft
from weft.errors import InternalError, InvalidError, UnsupportedError
from weft.session import Session, Tensor, _window

# Of the library, so that a push-pull is a mean over trainers: see above.
_MEAN = {"optimizer": "sgd", "learning_rate": 1.0, "decay": 1.0, "grad_reduce": "mean"}
_REDUCE_MAX = 256
_PIECE = 1 << 18  # values of a tensor of push_pull_hook's
Future = torch.futures.Future[torch.Tensor]


def rank() -> int:
    """This trainer's number."""
    return weft.trainer_id()


def size() -> int:
    """The number of trainers."""
    return weft.num_gradient_servers()


class _Slot:
    """A parameter of the model and the tensor that stands for it."""

    def __init__(self, name: str, parameter: torch.Tensor, tensor: Tensor) -> None:
        self.name = name
        self.parameter = parameter
        self.tensor = tensor
        self.passes = 0  # backward passes since the last step
        self.pushed = False

    def take_views(self) -> None:
        self.param = torch.from_numpy(self.tensor.param)
        self.grad = torch.from_numpy(self.tensor.grad)


class _Exchange:
    """The parameters of a model in a session: declared here, started with broadcast_parameters."""

    def __init__(self, named: Iterable[Tuple[str, torch.Tensor]], settings: Mapping[str, Any]) -> None:
        self.session: Session = weft.session()
        if getattr(self.session, "_torch", None) is not None:
            raise InvalidError("this session has a DistributedOptimizer or HookState already")
        self.on_pservers = settings is not _MEAN
        if not self.on_pservers:
            _check_means(self.session)
        self.session._open_again(settings)
        self.slots: List[_Slot] = []
        self.started = False
        self.begun = False
        self.pairs = [(name, parameter) for name, parameter in named if parameter.requires_grad]
        if not self.pairs:
            raise InvalidError("no parameter of the model requires a gradient")
        self.session._torch = self  # type: ignore[attr-defined]

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        for name, parameter in self.pairs:
            _check(name, parameter)
            tensor = self.session.empty(tuple(parameter.shape), name=name, **settings_of(parameter))  # type: ignore[arg-type]
            self.slots.append(_Slot(name, parameter, tensor))

    def start(self, others: Mapping[str, torch.Tensor]) -> None:
        """Trainer 0's parameters, and `others` of its state, become everybody's."""
        still = {name: self.session.empty(tuple(t.shape), name=name, static=True) for name, t in others.items()}
        with torch.no_grad():
            self.take_first()
            for name, tensor in still.items():
                torch.from_numpy(tensor.param).copy_(others[name])
            self.session.start()
            for name, tensor in still.items():
                others[name].copy_(torch.from_numpy(tensor.param))
            self.give_first()
        self.started = True

    def take_first(self) -> None:
        """The parameters' values, which the job begins with if they are trainer 0's."""
        for slot in self.slots:
            slot.take_views()
            slot.param.copy_(slot.parameter)

    def give_first(self) -> None:
        """Trainer 0's, to the parameters; and gradients get their places."""
        for slot in self.slots:
            if self.on_pservers:
                slot.parameter.data = slot.param
            else:
                slot.parameter.copy_(slot.param)
        if not self.on_pservers:
            self.session.exchange()  # with gradients of 0: w is 0 then, and -g after each step
        for slot in self.slots:
            slot.parameter.grad = slot.grad

    def begin(self) -> None:
        if not self.started:
            raise InvalidError("call weft.torch.broadcast_parameters(model.state_dict()) before the first step")
        if not self.begun:
            self.session.step(1)
            self.begun = True

    def push(self, slot: _Slot) -> None:
        """Its gradient is complete. It is in weft's memory unless somebody has replaced it."""
        self.begin()
        grad = slot.parameter.grad
        if grad is not slot.grad:
            _check_grad(slot, grad)
            with torch.no_grad():
                slot.grad.zero_() if grad is None else slot.grad.copy_(grad)
            if grad is not None:
                self.session._copied += 4 * slot.grad.numel()
                slot.parameter.grad = slot.grad
        self.session.push(slot.tensor)
        slot.pushed = True

    def finish(self) -> None:
        """Push what no gradient came for, wait, and have the results in place."""
        for slot in reversed(self.slots):
            if not slot.pushed:
                self.push(slot)
        if not self.on_pservers:
            for slot in reversed(self.slots):  # as they were pushed, mostly: what has come is in the cache
                self.session.wait(slot.tensor)
                torch.neg(slot.param, out=slot.grad)
        self.session.wait()
        for slot in self.slots:
            slot.pushed = False
            slot.passes = 0
            slot.parameter.grad = slot.grad
        self.begun = False


def _check_means(session: Session) -> None:
    """With these the pservers would keep, or answer with, something else than mean gradients. They may
    come from the environment too."""
    opts = session._opts
    others = {
        "dense_mode": opts.dense_mode != session._api.enums["weft_dense_mode"]["WEFT_DENSE_SYNC"],
        "l1": opts.optimizer.l1 != 0,
        "schedule": (opts.optimizer.schedule or b"constant") != b"constant",
        "skip_nonfinite": opts.skip_nonfinite != 0,
    }
    for name, differs in others.items():
        if differs:
            raise InvalidError(
                "means at the workers need dense_mode=sync, l1=0, schedule=constant and skip_nonfinite=0; "
                "this session has another %s" % name
            )


def _check(name: str, parameter: torch.Tensor) -> None:
    if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
        raise InvalidError(
            "parameter %s: it is %s on %s; float32 on the CPU is needed"
            % (name, parameter.dtype, parameter.device)
        )
    if not parameter.is_contiguous():
        raise InvalidError("parameter %s: it is not contiguous" % name)


def _check_grad(slot: _Slot, grad: Optional[torch.Tensor]) -> None:
    """One that took the place of weft's, to be copied."""
    if grad is not None and grad.shape != slot.grad.shape:
        raise InvalidError(
            "tensor %s, gradient: its shape is %s, declared is %s"
            % (slot.name, tuple(grad.shape), tuple(slot.grad.shape))
        )
    if grad is not None and (grad.layout != torch.strided or grad.dtype != torch.float32):
        raise InvalidError(
            "tensor %s, gradient: it is %s, %s; strided float32 is needed" % (slot.name, grad.layout, grad.dtype)
        )


def _exchange() -> _Exchange:
    found = getattr(weft.session(), "_torch", None)
    if found is None:
        raise InvalidError("make a weft.torch.DistributedOptimizer or HookState first")
    assert isinstance(found, _Exchange)
    return found


def broadcast_parameters(
    state: Union[Mapping[str, torch.Tensor], Iterable[Tuple[str, torch.Tensor]]], root_rank: int = 0
) -> None:
    """Start the job: trainer 0's values of a state_dict become everybody's, parameters and buffers.
    To be called once, after DistributedOptimizer, by all trainers, with the same names."""
    if root_rank != 0:
        raise InvalidError("root_rank=%d: trainer 0's values are everybody's" % root_rank)
    exchange = _exchange()
    if exchange.started:
        raise InvalidError("broadcast_parameters a second time: the job has started")
    named = dict(state)
    known = {parameter.data_ptr() for _, parameter in exchange.pairs}
    others = {n: t for n, t in named.items() if t.data_ptr() not in known and t.numel() > 0}
    exchange.start({n: t for n, t in others.items() if t.dtype == torch.float32})
    for tensor in (t for t in others.values() if t.dtype != torch.float32):
        _broadcast_few(exchange.session, tensor)


def _broadcast_few(session: Session, tensor: torch.Tensor) -> None:
    """Counters and the like, as f64: whole numbers up to 2^53 arrive as they are."""
    flat = tensor.detach().reshape(-1).to(torch.float64).numpy().copy()
    if session.trainer_id != 0:
        flat[:] = 0
    for first in range(0, flat.size, _REDUCE_MAX):
        flat[first : first + _REDUCE_MAX] = session.reduce(flat[first : first + _REDUCE_MAX])
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(flat).reshape(tensor.shape))


class _Distributed:
    """What DistributedOptimizer puts before the methods of the optimizer that it was given."""

    _weft: _Exchange
    _weft_rates: List[float]
    _weft_synchronized: bool

    def synchronize(self) -> None:
        """Wait for the mean gradients, before step: to clip them, say. Optimizer at the workers."""
        if self._weft.on_pservers:
            raise InvalidError("synchronize: the optimizer is on the pservers, which give parameters back")
        self._weft.finish()
        self._weft_synchronized = True

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not self._weft_synchronized:
            self._weft_check_rates()
            self._weft.finish()
        self._weft_synchronized = False
        if not self._weft.on_pservers:
            super().step()  # type: ignore[misc]
        return loss

    def _weft_check_rates(self) -> None:
        rates = [group["lr"] for group in self.param_groups]  # type: ignore[attr-defined]
        if self._weft.on_pservers and rates != self._weft_rates:
            raise UnsupportedError(
                "the learning rate was %s when the job began and is %s: the optimizer is on the pservers; "
                "use a schedule of theirs (weft.init(schedule=...)), or on='workers'" % (self._weft_rates, rates)
            )

    def zero_grad(self, set_to_none: bool = False) -> None:
        """In place: the gradients are in weft's memory, whatever set_to_none says."""
        for slot in self._weft.slots:
            if slot.pushed:
                raise InvalidError("zero_grad between backward and step: tensor %s is pushed" % slot.name)
            slot.passes = 0
            if slot.parameter.grad is not None:
                slot.parameter.grad.detach_()
                slot.parameter.grad.zero_()


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[Tuple[str, torch.Tensor]],
    on: str = "workers",
    backward_passes_per_step: int = 1,
) -> torch.optim.Optimizer:
    """Make an optimizer distributed; it is given back, and has the methods of its own class still.

    on="workers": gradients are pushed while backward goes on, their means come back, and each
    trainer applies them with the optimizer as it is. on="pservers": gradients are pushed in step,
    the pservers apply them, and the model's parameters, which lie in weft's memory then, are fresh;
    that is for SGD, Adam and AdamW, and the state of these stays on the pservers. To be called
    after weft.init and before broadcast_parameters, with the same model on all trainers.

    backward_passes_per_step: gradients of so many backward passes are added up before they go."""
    if on not in ("workers", "pservers"):
        raise InvalidError("on=%r: 'workers' or 'pservers' is needed" % on)
    if backward_passes_per_step < 1:
        raise InvalidError("backward_passes_per_step=%d: at least 1" % backward_passes_per_step)
    settings, of_parameter = (_MEAN, lambda _: {}) if on == "workers" else _on_pservers(optimizer)
    exchange = _Exchange(named_parameters, settings)
    _check_groups(optimizer, exchange)
    exchange.declare(of_parameter)
    kind = type(optimizer.__class__.__name__, (_Distributed, optimizer.__class__), {})
    optimizer.__class__ = kind
    optimizer._weft = exchange  # type: ignore[attr-defined]
    optimizer._weft_rates = [group["lr"] for group in optimizer.param_groups]  # type: ignore[attr-defined]
    optimizer._weft_synchronized = False  # type: ignore[attr-defined]
    if on == "workers":
        for slot in exchange.slots:
            _push_in_backward(exchange, slot, backward_passes_per_step)
    return optimizer


def _check_groups(optimizer: torch.optim.Optimizer, exchange: _Exchange) -> None:
    """What is optimized is what is exchanged."""
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    wanted = {id(parameter) for parameter in parameters if parameter.requires_grad}
    for name, parameter in exchange.pairs:
        if id(parameter) not in wanted:
            raise InvalidError("parameter %s is not one of the optimizer's" % name)
    if len(wanted) != len(exchange.pairs):
        raise InvalidError(
            "the optimizer has %d parameters, %d with names were given" % (len(wanted), len(exchange.pairs))
        )


def _push_in_backward(exchange: _Exchange, slot: _Slot, passes: int) -> None:
    """Push when the gradient of a parameter is added up. The node that does it is found behind a
    view; it has to be kept, for autograd holds it weakly."""
    node = slot.parameter.expand_as(slot.parameter).grad_fn.next_functions[0][0]

    def added(*_: Any) -> None:
        slot.passes += 1
        if slot.passes == passes:
            exchange.push(slot)
        elif slot.passes > passes:
            raise InvalidError(
                "tensor %s is pushed already: call step and zero_grad after %d backward passes, or set "
                "backward_passes_per_step" % (slot.name, passes)
            )

    node.register_hook(added)
    slot.node = node  # type: ignore[attr-defined]


def _on_pservers(
    optimizer: torch.optim.Optimizer,
) -> Tuple[Dict[str, Any], Callable[[torch.Tensor], Dict[str, float]]]:
    """The library's settings for an optimizer, and those of each parameter."""
    first = optimizer.param_groups[0]
    name = optimizer.__class__.__name__
    for group in optimizer.param_groups:
        for setting in ("amsgrad", "maximize"):
            if group.get(setting):
                raise UnsupportedError("%s with %s=%r: the pservers have none" % (name, setting, group[setting]))
        for setting in ("momentum", "dampening", "nesterov", "betas", "eps"):
            if group.get(setting) != first.get(setting):
                raise UnsupportedError("%s: %s differs between parameter groups" % (name, setting))
    settings: Dict[str, Any] = {"learning_rate": first["lr"], "grad_reduce": "mean"}
    if name == "SGD":
        settings.update(optimizer=_sgd_method(first), momentum=first["momentum"])
    elif name in ("Adam", "AdamW"):
        settings.update(optimizer=name.lower(), beta1=first["betas"][0], beta2=first["betas"][1], epsilon=first["eps"])
    else:
        raise UnsupportedError("%s: on the pservers there are SGD, Adam and AdamW; use on='workers'" % name)
    group_of = {id(p): group for group in optimizer.param_groups for p in group["params"]}

    def of_parameter(parameter: torch.Tensor) -> Dict[str, float]:
        group = group_of[id(parameter)]
        return {"rate_multiplier": group["lr"] / first["lr"], "decay": group["weight_decay"]}

    return settings, of_parameter


def _sgd_method(group: Mapping[str, Any]) -> str:
    """PaddlePaddle's "torch_momentum" is SGD with a dampening that is the momentum."""
    momentum, dampening = group["momentum"], group["dampening"]
    if momentum == 0:
        return "sgd"
    if dampening not in (0, momentum):
        raise UnsupportedError("SGD with dampening=%g: 0 or the momentum, %g, on the pservers" % (dampening, momentum))
    if dampening != 0:
        return "torch_momentum"
    return "nesterov" if group["nesterov"] else "momentum"


class _Run(_Exchange):
    """Gradients of a model one behind the other, in the order in which buckets bring them.

    Which parameter a place belongs to changes when DistributedDataParallel builds its buckets anew;
    nothing is kept from one step to the next, so it does not matter. The run is cut into tensors
    of a megabyte, so that each can leave when it is full. They follow one another in memory, so
    that a bucket's means can be had as one array."""

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        for name, parameter in self.pairs:
            _check(name, parameter)
        self.count = sum(parameter.numel() for _, parameter in self.pairs)
        firsts = range(0, self.count, _PIECE)
        self.pieces = [self.session.empty(min(_PIECE, self.count - at), name="gradients_%d" % at) for at in firsts]
        self.at = 0  # values of this step that are here
        # Buckets whose gradients lie in weft's memory, by their places in the run.
        self.adopted: Dict[int, torch.Tensor] = {}

    def take_first(self) -> None:
        self.param = _joined([piece.param for piece in self.pieces])
        self.grad = _joined([piece.grad for piece in self.pieces])
        torch.cat([parameter.flatten() for _, parameter in self.pairs], out=self.param)

    def give_first(self) -> None:
        values = torch.split(self.param, [parameter.numel() for _, parameter in self.pairs])
        for (_, parameter), value in zip(self.pairs, values):
            parameter.copy_(value.view_as(parameter))
        self.session.exchange()

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
        """Of a bucket, each part taken as soon as it is there. They come negated: see the top."""
        values = bucket.buffer()
        adopted = self._is_adopted(values, where.start) or self._adopt(bucket, where)
        means = self.grad if adopted else self.param
        for piece, part in self.parts(where.start, where.stop):
            self.session.wait(piece)
            torch.neg(self.param[part], out=means[part])
        if adopted:
            return means[where]
        # DistributedDataParallel counts from where the storage begins, so it has to be the bucket's.
        return torch.from_numpy(means.numpy()[where])

    def _adopt(self, bucket: Any, where: slice) -> bool:
        """With gradient_as_bucket_view=True a parameter's .grad is the very tensor by which
        DistributedDataParallel knows its place in the bucket. It is moved to weft's memory, so that
        autograd adds up there from the next step on, and nothing is copied. The bucket's own memory is
        kept, and not used: no other bucket can come to lie there and be taken for this one."""
        values, parameters = bucket.buffer(), bucket.parameters()
        at = values.data_ptr()
        for parameter in parameters:
            if parameter.grad is None or parameter.grad.data_ptr() != at:
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
    return torch.from_numpy(whole)


class HookState:
    """What push_pull_hook needs: a model's parameters, declared in the session, which is started
    here: trainer 0's parameters and buffers become everybody's."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.run = _Run(model.named_parameters(), _MEAN)
        self.run.declare(lambda _: {})
        self.waiting: List[Tuple[Future, Any, slice]] = []
        broadcast_parameters(model.state_dict())


def push_pull_hook(state: HookState, bucket: Any) -> Future:
    """For DistributedDataParallel.register_comm_hook: the mean over trainers of a bucket.

    Buckets are pushed piece by piece as they come, while backward goes on; with the last one all
    are waited for. With gradient_as_bucket_view=True gradients lie in weft's memory from the third
    step on, and nothing is copied; else they are copied to weft's memory, and back by
    DistributedDataParallel itself. stats()["copied_bytes"] counts what is copied here."""
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


__all__ = ["DistributedOptimizer", "HookState", "broadcast_parameters", "push_pull_hook", "rank", "size"]

# SPDX-License-Identifier: Apache-2.0
"""The parameters of a model in a session: declared, started, pushed, and what comes back."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

import torch

import weft
from weft.embedding import embeddings_of
from weft.errors import InvalidError, UnsupportedError
from weft.session import Session, Tensor

MEAN = {"grad_reduce": "mean"}  # of the library: with a sample of each trainer, over trainers
OPEN, PUSHED, ANSWERED = range(3)
_REDUCE_MAX = 256


class Slot:
    """A parameter of the model and the tensor that stands for it."""

    def __init__(self, name: str, parameter: torch.Tensor, tensor: Tensor) -> None:
        self.name = name
        self.parameter = parameter
        self.tensor = tensor
        self.state = OPEN  # of this step
        self.passes = 0  # backward passes of this step
        self.version = 0  # of the gradient, when it was pushed
        self.bits: Optional[int] = None  # their sum, if somebody may come to it before it is answered
        self.written = 0  # version of the parameter, when nobody but weft had written to it

    def take_views(self) -> None:
        self.param = torch.from_numpy(self.tensor.param)
        self.grad = torch.from_numpy(self.tensor.grad)

    def sum_of_bits(self) -> int:
        return int(self.grad.view(torch.int32).sum())

    def is_as_pushed(self) -> bool:
        """Whether nobody has changed or replaced the gradient since. `.data` has no version."""
        return (
            self.parameter.grad is self.grad
            and self.grad._version == self.version
            and (self.bits is None or self.bits == self.sum_of_bits())
        )


class Exchange:
    """The parameters of a model in a session: declared here, started with broadcast_parameters.

    A step begins with its first push. At the workers it is `ready` when all means are in `.grad`,
    and over when the optimizer has taken them: `forget`. While a gradient is pushed and not answered
    it is lent, and who changes it ends the job, for pservers may have read anything. Rows of
    embeddings are pushed last, in the optimizer's step, which ends the session's."""

    pushes_rows = True
    pushes_tensors = True

    def __init__(self, named: Iterable[Tuple[str, torch.Tensor]], settings: Mapping[str, Any]) -> None:
        self.session: Session = weft.session()
        if getattr(self.session, "_torch", None) is not None:
            raise InvalidError("this session has a DistributedOptimizer or HookState already")
        self.on_pservers = settings is not MEAN
        self.session._open_again(settings)
        self.slots: List[Slot] = []
        self.started = False
        self.begun = False
        self.ready = False
        self.pushed = 0  # slots that are not open
        self.pairs = [(name, parameter) for name, parameter in named if parameter.requires_grad]
        if not self.pairs and self.pushes_tensors:
            raise InvalidError("no parameter of the model requires a gradient")
        self.session._torch = self  # type: ignore[attr-defined]

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        for name, parameter in self.pairs:
            check(name, parameter)
            settings: Dict[str, Any] = settings_of(parameter) if self.on_pservers else {"reduce": True}
            tensor = self.session.empty(tuple(parameter.shape), name=name, **settings)
            self.slots.append(Slot(name, parameter, tensor))

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
            slot.parameter.grad = slot.grad
            slot.written = slot.parameter._version

    def begin(self) -> None:
        if not self.started:
            raise InvalidError("call weft.torch.broadcast_parameters(model.state_dict()) before the first step")
        if not self.begun:
            self.session.step(1)
            self.begun = True

    def push(self, slot: Slot) -> None:
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
        slot.version, slot.bits = slot.grad._version, None
        self.session.push(slot.tensor)
        slot.state = PUSHED
        self.pushed += 1

    def came(self, slot: Slot, passes: int) -> None:
        """Autograd has added to a gradient, at the workers; the means of the step before may be in it."""
        if self.ready:
            self.forget()
        slot.passes += 1
        if slot.state != OPEN:
            self.spoil(
                "tensor %s is pushed already: call step and zero_grad after %d backward passes, or set "
                "backward_passes_per_step" % (slot.name, passes)
            )
        if slot.passes == passes:
            self.push(slot)
            torch.autograd.Variable._execution_engine.queue_callback(self.backward_ends)

    def backward_ends(self) -> None:
        """Before backward returns: if that was all, the means are waited for, and `.grad` is the
        caller's. Else what is pushed stays lent, and it is noted what it was."""
        if self.ready or self.pushed == 0:
            return
        if self.pushed == len(self.slots):
            self.finish()
            return
        for slot in self.slots:
            if slot.state == PUSHED and slot.bits is None:
                slot.bits = slot.sum_of_bits()

    def finish(self) -> None:
        """Push what no gradient came for, wait, and have the results in place."""
        self.begin()
        for slot in self.slots:
            if slot.state == PUSHED and not slot.is_as_pushed():
                self.spoil(
                    "tensor %s: its gradient was changed or replaced after it was pushed in backward; not all "
                    "parameters got a gradient there, so the step was not complete: call "
                    "optimizer.synchronize() first, and step will take .grad as you leave it" % slot.name
                )
        for slot in reversed(self.slots):
            if slot.state == OPEN:
                self.push(slot)
        if self.on_pservers:
            self.end()
            self.forget()
            return
        self.take_means()
        if embeddings_of(self.session) is None:
            self.end()
        self.ready = True

    def end(self) -> None:
        """The rows' gradients go, and with them the session's step."""
        embeddings = embeddings_of(self.session)
        if self.begun and embeddings is not None:
            embeddings.push()
        self.end_without_rows()

    def end_without_rows(self) -> None:
        if self.begun:
            self.session.wait()
            self.begun = False

    def take_means(self) -> None:
        """As they were pushed, mostly: what has come is in the cache."""
        with torch.no_grad():
            for slot in reversed(self.slots):
                if slot.state == PUSHED:
                    self.session.wait(slot.tensor)
                    slot.grad.copy_(slot.param)
                    slot.state = ANSWERED

    def forget(self) -> None:
        """The next push begins another step. One that was given up before its rows were pushed has none."""
        self.end_without_rows()
        self.ready, self.pushed = False, 0
        for slot in self.slots:
            slot.state, slot.passes = OPEN, 0

    def spoil(self, text: str) -> None:
        """What pservers have read of the gradient may be neither what it was nor what it is."""
        self.session.abort(text)
        raise InvalidError(text)

    def check_parameters(self) -> None:
        """On the pservers: what others have written to them the next step would undo."""
        for slot in self.slots:
            if slot.parameter._version != slot.written or slot.parameter.data_ptr() != slot.param.data_ptr():
                raise UnsupportedError(
                    "parameter %s was written to, or moved, since the last step: its values are on the "
                    "pservers, and the next step would undo that; load a model before "
                    "weft.torch.broadcast_parameters, or use on='workers'" % slot.name
                )


def check(name: str, parameter: torch.Tensor) -> None:
    if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
        raise InvalidError(
            "parameter %s: it is %s on %s; float32 on the CPU is needed"
            % (name, parameter.dtype, parameter.device)
        )
    if not parameter.is_contiguous():
        raise InvalidError("parameter %s: it is not contiguous" % name)


def _check_grad(slot: Slot, grad: Optional[torch.Tensor]) -> None:
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


def _exchange() -> Exchange:
    found = getattr(weft.session(), "_torch", None)
    if found is None:
        raise InvalidError("make a weft.torch.DistributedOptimizer or HookState first")
    assert isinstance(found, Exchange)
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
    named = {name: value for name, value in dict(state).items() if isinstance(value, torch.Tensor)}
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

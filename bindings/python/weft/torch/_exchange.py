# SPDX-License-Identifier: Apache-2.0
"""The parameters of a model in a session: declared, started, pushed, and what comes back."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import torch

import weft
from weft import _tensors
from weft.embedding import embeddings_of
from weft.errors import InvalidError, UnsupportedError
from weft.session import Session, Tensor

MEAN = {"grad_reduce": "mean"}  # of the library: with a sample of each trainer, over trainers
TYPED = (torch.float64, torch.bfloat16, torch.float16)  # that are summed by weft.all_reduce
OPEN, PUSHED, ANSWERED = range(3)
_REDUCE_MAX = 256
_WORDS = {1: torch.uint8, 2: torch.int16}  # of elements of so many bytes; larger ones are several of 4
# Why it was pushed already, and what to do.
_PUSHED_AT_WORKERS = (
    "not all parameters got a gradient there, so the step was not complete: call optimizer.synchronize() first, and "
    "step will take .grad as you leave it"
)
_PUSHED_ON_PSERVERS = "with push_in_backward nobody may do that before step: leave push_in_backward out"


class Slot:
    """A parameter of the model and the tensor that stands for it. None for a parameter that is not
    float32: its gradient stays where it is, and is summed over the trainers when all are there."""

    def __init__(self, name: str, parameter: torch.Tensor, tensor: Optional[Tensor]) -> None:
        self.name = name
        self.parameter = parameter
        self.tensor = tensor
        self.is_copied = not parameter.is_contiguous()  # its values cannot lie in weft's memory
        self.skipped = 0  # steps of the session that were none of its optimizer on the pservers
        self.state = OPEN  # of this step
        self.passes = 0  # backward passes of this step
        self.version = 0  # of the gradient, when it was pushed
        self.bits: Optional[int] = None  # their sum, if somebody may come to it before it is answered
        self.written = 0  # version of the parameter, when nobody but weft had written to it
        self.nothing: Optional[torch.Tensor] = None  # of the parameter: a view without elements

    def take_views(self) -> None:
        assert self.tensor is not None
        self.param = _tensors.of_array(self.tensor.param)
        self.grad = _tensors.of_array(self.tensor.grad)

    def count_write(self) -> None:
        """Autograd refuses to go on with values that were written to, and does not see what weft writes: a
        write to no element counts, too."""
        if self.nothing is None:
            self.nothing = self.parameter.detach().view(-1)[:0]
        self.nothing.zero_()
        self.written += 1

    def change(self, numbers: Mapping[str, float]) -> None:
        """Of its optimizer on the pservers, from the next step on."""
        assert self.tensor is not None
        self.tensor.change(**numbers)
        if "updates" in numbers:
            self.skipped = self.tensor.session.steps - int(numbers["updates"])

    def updates(self) -> int:
        """Steps that its optimizer on the pservers has made."""
        assert self.tensor is not None
        return self.tensor.session.steps - self.skipped

    def sum_of_bits(self) -> int:
        return int(self.grad.view(torch.int32).sum())

    def is_as_pushed(self) -> bool:
        """Whether nobody has changed or replaced the gradient since. `.data` has no version."""
        return self.tensor is None or (
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

    def __init__(
        self, named: Iterable[Tuple[str, torch.Tensor]], settings: Mapping[str, Any], on_pservers: bool = False
    ) -> None:
        self.session: Session = weft.session()
        if getattr(self.session, "_torch", None) is not None:
            raise InvalidError("this session has a DistributedOptimizer or HookState already")
        self.on_pservers = on_pservers
        self.settings = settings
        self.slots: List[Slot] = []
        self.started = False
        self.begun = False
        self.ready = False
        self.pushed = 0  # slots that are not open
        self.on_start: Callable[[], None] = lambda: None
        self.on_begin: Callable[[], None] = lambda: None  # before the first push of a step
        named = list(named)
        # Empty ones have nothing to exchange.
        self.pairs = [(name, p) for name, p in named if p.requires_grad and p.numel() > 0]
        self.names = {id(p): name for name, p in named}
        self.known = {id(p) for _, p in self.pairs}
        if not self.pairs and self.pushes_tensors:
            raise InvalidError("no parameter of the model requires a gradient")

    def claim_session(self) -> None:
        """Opens the session with this exchange's settings. Called after all checks, so that a session can
        have another exchange if this one is refused."""
        self.session._open_again(self.settings)
        self.session._torch = self  # type: ignore[attr-defined]
        self.session._stays = "weft.torch"

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        for name, parameter in self.pairs:
            check(name, parameter, () if self.on_pservers else TYPED)
        self.claim_session()
        for name, parameter in self.pairs:
            if parameter.dtype != torch.float32:
                self.slots.append(Slot(name, parameter, None))
                continue
            settings: Dict[str, Any] = settings_of(parameter) if self.on_pservers else {"reduce": True}
            tensor = self.session.empty(tuple(parameter.shape), name=name, **settings)
            self.slots.append(Slot(name, parameter, tensor))

    def tensors(self) -> List[Slot]:
        """Those with one."""
        return [slot for slot in self.slots if slot.tensor is not None]

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
        for slot in self.slots:
            if slot.tensor is None:
                _broadcast(self.session, slot.parameter)
        self.started = True

    def set_values(self) -> None:
        """Trainer 0's parameters become everybody's, in the middle of the job."""
        if not self.on_pservers:
            for _, parameter in self.pairs:
                _broadcast(self.session, parameter)
            return
        with torch.no_grad():
            self.assign(0, [slot.parameter for slot in self.slots])
            self.give_values()

    def assign(self, array: int, values: Sequence[Optional[torch.Tensor]]) -> None:
        """Trainer 0's values, or array - 1 of its state, take the place of what the pservers have, in a
        step of its own. None: zeros. The gradients that are there stay, and beside new state the values,
        which somebody may have written to."""
        with torch.no_grad():
            kept = [slot.grad.clone() for slot in self.slots]
            written = [slot.param.clone() for slot in self.slots] if array > 0 else []
            for slot in self.slots:
                assert slot.tensor is not None
                slot.tensor.assign(array)
            self.session.step(1)
            for slot, value in zip(self.slots, values):
                slot.grad.zero_() if value is None else slot.grad.copy_(value)
                assert slot.tensor is not None
                self.session.push(slot.tensor)
            self.session.wait()
            for slot, grad in zip(self.slots, kept):
                slot.grad.copy_(grad)
                slot.skipped += 1
            for slot, value in zip(self.slots, written):
                slot.param.copy_(value)

    def take_first(self) -> None:
        """The parameters' values, which the job begins with if they are trainer 0's."""
        for slot in self.tensors():
            slot.take_views()
            slot.param.copy_(slot.parameter)

    def give_first(self) -> None:
        """Trainer 0's, to the parameters; and gradients get their places."""
        for slot in self.tensors():
            slot.parameter.grad = slot.grad
            if not self.on_pservers:
                slot.parameter.copy_(slot.param)
        if self.on_pservers:
            self.give_values()

    def give_values(self) -> None:
        """Those of the pservers, to the parameters."""
        for slot in self.slots:
            if slot.is_copied:
                slot.parameter.copy_(slot.param)
            else:
                if slot.parameter.data_ptr() != slot.param.data_ptr():
                    slot.parameter.data = slot.param
                slot.count_write()
            slot.written = slot.parameter._version

    def begin(self) -> None:
        if not self.started:
            raise InvalidError("call weft.torch.broadcast_parameters(model.state_dict()) before the first step")
        if not self.begun:
            self.on_begin()
            self.session.step(1)
            self.begun = True

    def push(self, slot: Slot) -> None:
        """Its gradient is complete. It is in weft's memory unless somebody has replaced it."""
        if slot.tensor is None:
            slot.state = PUSHED
            self.pushed += 1
            return
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
        """Autograd has added to a gradient; at the workers the means of the step before may be in it. On the
        pservers the step waits for what is pushed here, and parameters get new values until then."""
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
            if not self.on_pservers:
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
            if slot.state == PUSHED and slot.bits is None and slot.tensor is not None:
                slot.bits = slot.sum_of_bits()

    def finish(self) -> None:
        """Push what no gradient came for, wait, and have the results in place."""
        if not self.started or self.tensors() or embeddings_of(self.session) is not None:
            self.begin()
        for slot in self.slots:
            if slot.state == PUSHED and not slot.is_as_pushed():
                self.spoil(
                    "tensor %s: its gradient was changed or replaced after it was pushed in backward; %s"
                    % (slot.name, _PUSHED_ON_PSERVERS if self.on_pservers else _PUSHED_AT_WORKERS)
                )
        for slot in reversed(self.slots):
            if slot.state == OPEN:
                self.push(slot)
        if self.on_pservers:
            self.end()
            self.forget()
            with torch.no_grad():
                for slot in self.slots:
                    if slot.is_copied:
                        slot.parameter.copy_(slot.param)
                        slot.written = slot.parameter._version
                    else:
                        slot.count_write()
            return
        self.take_means()
        if embeddings_of(self.session) is None:
            self.end()
        self.ready = True

    def push_rows(self) -> None:
        """The rows' gradients go."""
        embeddings = embeddings_of(self.session)
        if self.begun and embeddings is not None:
            embeddings.push()

    def end(self) -> None:
        """The rows' gradients go, and with them the session's step."""
        self.push_rows()
        self.end_without_rows()

    def end_later(self) -> None:
        """The caller goes on, and the pservers update rows, until the step has to have ended."""
        if self.begun:
            self.session._end_later()
            self.begun = False

    def end_without_rows(self) -> None:
        if self.begun:
            self.session.wait()
            self.begun = False

    def take_means(self) -> None:
        """As they were pushed, mostly: what has come is in the cache."""
        if not self.slots:
            return
        with torch.no_grad():
            for slot in reversed(self.slots):
                if slot.state == PUSHED and slot.tensor is not None:
                    self.session.wait(slot.tensor)
                    slot.grad.copy_(slot.param)
                    slot.state = ANSWERED
            for slot in self.slots:
                if slot.state == PUSHED:
                    _sum_typed(self.session, slot)
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

    def check_frozen(self, groups: Iterable[Mapping[str, Any]]) -> None:
        """Nobody exchanges the gradient of a parameter that required none when the others were declared."""
        for group in groups:
            for parameter in group["params"]:
                if id(parameter) not in self.known and parameter.requires_grad and parameter.numel() > 0:
                    raise UnsupportedError(
                        "parameter %s requires a gradient, and did not when weft.torch.DistributedOptimizer was "
                        "called: the parameters of a job are fixed; let it require one there, in a group with lr=0 "
                        "until it learns" % self.names.get(id(parameter), "of shape %s" % list(parameter.shape))
                    )

    def check_parameters(self) -> None:
        """On the pservers: what others have written to them the next step would undo."""
        for slot in self.slots:
            moved = not slot.is_copied and slot.parameter.data_ptr() != slot.param.data_ptr()
            if slot.parameter._version != slot.written or moved:
                raise UnsupportedError(
                    "parameter %s was written to, or moved, since the last step: its values are on the "
                    "pservers, and the next step would undo that; call "
                    "weft.torch.broadcast_parameters(model.state_dict()) on all trainers, which gives "
                    "trainer 0's to the pservers, or use on='workers'" % slot.name
                )


def check(name: str, parameter: torch.Tensor, others: Sequence[torch.dtype] = ()) -> None:
    """`others`: types beside float32 that it may have."""
    if (parameter.dtype != torch.float32 and parameter.dtype not in others) or parameter.device.type != "cpu":
        wanted = ", ".join(["float32"] + [str(dtype).replace("torch.", "") for dtype in others])
        raise InvalidError(
            "parameter %s: it is %s on %s; %s on the CPU is needed%s"
            % (
                name,
                parameter.dtype,
                parameter.device,
                wanted,
                "" if others or parameter.dtype not in TYPED else ", or DistributedOptimizer(on='workers')",
            )
        )
    if torch.empty_like(parameter).stride() != parameter.stride():
        raise InvalidError(
            "parameter %s: its memory has gaps or overlaps (shape %s, strides %s): give parameter.contiguous()"
            % (name, tuple(parameter.shape), parameter.stride())
        )


def _sum_typed(session: Session, slot: Slot) -> None:
    """The mean of gradients that are not float32; zeros where there is none, as for the others."""
    parameter = slot.parameter
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    if parameter.grad.dtype != parameter.dtype or parameter.grad.layout != torch.strided:
        raise InvalidError(
            "tensor %s, gradient: it is %s, %s; strided %s is needed"
            % (slot.name, parameter.grad.layout, parameter.grad.dtype, parameter.dtype)
        )
    kind = _tensors.element_types()[parameter.dtype]
    memory = _tensors.packed(parameter.grad)  # gradients have the layout of their parameters
    _tensors.all_reduce(session, memory, kind, session._operations["mean"])
    if memory is not parameter.grad:
        parameter.grad.copy_(memory)


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
    """Give trainer 0's parameters and buffers to all trainers. Waits. All trainers call it together, after
    DistributedOptimizer: the first call starts the job. Later ones set values in the middle of it, after
    model.load_state_dict, say.

    state      model.state_dict(), or pairs of name and tensor, with the same names everywhere. Buffers
               have any dtype. The optimizer's parameters count whether or not they are in it
    root_rank  has to be 0

    InvalidError: there is no DistributedOptimizer, or root_rank; and what weft.start raises."""
    if root_rank != 0:
        raise InvalidError("root_rank=%d: trainer 0's values are everybody's" % root_rank)
    exchange = _exchange()
    named = {name: value for name, value in dict(state).items() if isinstance(value, torch.Tensor)}
    known = {parameter.data_ptr() for _, parameter in exchange.pairs}
    others = {n: t for n, t in named.items() if t.data_ptr() not in known and t.numel() > 0}
    if exchange.started:
        exchange.set_values()
        for tensor in others.values():
            _broadcast(exchange.session, tensor)
        return
    exchange.start({n: t for n, t in others.items() if t.dtype == torch.float32})
    for tensor in (t for t in others.values() if t.dtype != torch.float32):
        _broadcast(exchange.session, tensor)
    exchange.on_start()


def _broadcast(session: Session, tensor: torch.Tensor) -> None:
    """To the bit, some words at a time: f64 holds each of them, and the others add zeros."""
    whole = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu").copy_(tensor.detach())
    words = whole.view(-1).view(_WORDS.get(tensor.element_size(), torch.int32))
    flat = words.to(torch.float64).numpy()
    if session.trainer_id != 0:
        flat[:] = 0
    for first in range(0, flat.size, _REDUCE_MAX):
        flat[first : first + _REDUCE_MAX] = session.reduce(flat[first : first + _REDUCE_MAX])
    words.copy_(torch.from_numpy(flat))
    with torch.no_grad():
        tensor.copy_(whole)

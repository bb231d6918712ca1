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

CPU tensors of float32. What the workers get is the mean over trainers of what each has: exactly
((g0 + g1) + g2) + ... in float32, from trainer 0 to the last, divided by their number; NaN and Inf
pass. The pservers keep no parameters then, and what the optimizer keeps is the trainers' own."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

import torch
import torch.distributed

import weft
from weft import _reduction, _tensors
from weft.embedding import Embedding, EmbeddingBag, embeddings_of, lookahead
from weft.errors import InternalError, InvalidError, UnsupportedError
from weft.session import Session, Tensor, _window

_MEAN = {"grad_reduce": "mean"}  # of the library: with a sample of each trainer, over trainers
_OPEN, _PUSHED, _ANSWERED = range(3)
_REDUCE_MAX = 256
_PIECE = 1 << 18  # values of a tensor of push_pull_hook's
Future = torch.futures.Future[torch.Tensor]


def rank() -> int:
    """This trainer's number."""
    return weft.trainer_id()


def size() -> int:
    """The number of trainers."""
    return weft.num_gradient_servers()


def all_reduce(tensor: torch.Tensor, op: str = "sum") -> None:
    """Sum a tensor over all trainers, in place: weft.all_reduce for tensors on the CPU. Waits.

    tensor  of any shape, contiguous or in channels_last (which is copied, so that trainers may differ
            in this); float32, float64, float16, bfloat16, int32 or int64. Autograd sees nothing of it
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


class _Slot:
    """A parameter of the model and the tensor that stands for it."""

    def __init__(self, name: str, parameter: torch.Tensor, tensor: Tensor) -> None:
        self.name = name
        self.parameter = parameter
        self.tensor = tensor
        self.state = _OPEN  # of this step
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


class _Exchange:
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
        self.on_pservers = settings is not _MEAN
        self.session._open_again(settings)
        self.slots: List[_Slot] = []
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
            _check(name, parameter)
            settings: Dict[str, Any] = settings_of(parameter) if self.on_pservers else {"reduce": True}
            tensor = self.session.empty(tuple(parameter.shape), name=name, **settings)
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
            slot.parameter.grad = slot.grad
            slot.written = slot.parameter._version

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
        slot.version, slot.bits = slot.grad._version, None
        self.session.push(slot.tensor)
        slot.state = _PUSHED
        self.pushed += 1

    def came(self, slot: _Slot, passes: int) -> None:
        """Autograd has added to a gradient, at the workers; the means of the step before may be in it."""
        if self.ready:
            self.forget()
        slot.passes += 1
        if slot.state != _OPEN:
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
            if slot.state == _PUSHED and slot.bits is None:
                slot.bits = slot.sum_of_bits()

    def finish(self) -> None:
        """Push what no gradient came for, wait, and have the results in place."""
        self.begin()
        for slot in self.slots:
            if slot.state == _PUSHED and not slot.is_as_pushed():
                self.spoil(
                    "tensor %s: its gradient was changed or replaced after it was pushed in backward; not all "
                    "parameters got a gradient there, so the step was not complete: call "
                    "optimizer.synchronize() first, and step will take .grad as you leave it" % slot.name
                )
        for slot in reversed(self.slots):
            if slot.state == _OPEN:
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
                if slot.state == _PUSHED:
                    self.session.wait(slot.tensor)
                    slot.grad.copy_(slot.param)
                    slot.state = _ANSWERED

    def forget(self) -> None:
        """The next push begins another step. One that was given up before its rows were pushed has none."""
        self.end_without_rows()
        self.ready, self.pushed = False, 0
        for slot in self.slots:
            slot.state, slot.passes = _OPEN, 0

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


class _Distributed:
    """What DistributedOptimizer puts before the methods of the optimizer that it was given."""

    _weft: _Exchange
    _weft_groups: List[Dict[str, Any]]

    def synchronize(self) -> None:
        """Have the mean gradients in `.grad` before step: to clip them, say. Optimizer at the workers.
        Where all parameters got a gradient in backward they are there already."""
        if self._weft.on_pservers:
            raise InvalidError("synchronize: the optimizer is on the pservers, which give parameters back")
        if not self._weft.ready:
            self._weft.finish()

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._weft.on_pservers:
            self._weft_check_groups()
            self._weft.check_parameters()
            self._weft.finish()
        else:
            self.synchronize()
            self._weft.end()
            super().step()  # type: ignore[misc]
            self._weft.forget()
        return loss

    def zero_grad(self, set_to_none: bool = False) -> None:
        """In place: the gradients are in weft's memory, whatever set_to_none says. Means that no step
        has taken are given up, on all trainers or on none."""
        exchange = self._weft
        if exchange.ready:
            exchange.forget()
        embeddings = embeddings_of(exchange.session)
        if embeddings is not None:
            embeddings.zero()
        if not exchange.pushes_tensors:
            super().zero_grad(set_to_none)  # type: ignore[misc]
        for slot in exchange.slots:
            if slot.state != _OPEN:
                raise InvalidError(
                    "zero_grad between backward and step: tensor %s is pushed; call optimizer.synchronize() "
                    "first" % slot.name
                )
            slot.passes = 0
            if slot.parameter.grad is not None:
                slot.parameter.grad.detach_()
                slot.parameter.grad.zero_()

    def state_dict(self) -> Dict[str, Any]:
        self._weft_has_state("state_dict", "would hold nothing of it")
        return super().state_dict()  # type: ignore[misc, no-any-return]

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._weft_has_state("load_state_dict", "would change nothing of it")
        super().load_state_dict(state_dict)  # type: ignore[misc]

    def _weft_has_state(self, call: str, why: str) -> None:
        if self._weft.on_pservers:
            raise UnsupportedError(
                "%s: the optimizer's state is on the pservers, and this %s; use on='workers'" % (call, why)
            )

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        raise UnsupportedError(
            "add_param_group: the parameters of a job are fixed; give the group to the optimizer before "
            "weft.torch.DistributedOptimizer"
        )

    def _weft_check_groups(self) -> None:
        """The pservers have the settings that the job began with. What a scheduler keeps in a group
        besides (initial_lr) is its own."""
        groups = _settings_of(self)  # type: ignore[arg-type]
        for number, (before, now) in enumerate(zip(self._weft_groups, groups)):
            for key, value in before.items():
                if key not in now or now[key] != value:
                    raise UnsupportedError(
                        "%s of parameter group %d was %s when the job began and is %s: the optimizer is on the "
                        "pservers, which go on with what it was; put it back, use a schedule of theirs for the "
                        "rate (weft.init(schedule=...)), or on='workers'"
                        % (key, number, value, now.get(key, "gone"))
                    )
        if len(groups) != len(self._weft_groups):
            raise UnsupportedError(
                "the optimizer had %d parameter groups when the job began and has %d: it is on the pservers; use "
                "on='workers'" % (len(self._weft_groups), len(groups))
            )


def _settings_of(optimizer: torch.optim.Optimizer) -> List[Dict[str, Any]]:
    """Of each group, and which parameters are in it."""
    return [
        {
            key: [id(parameter) for parameter in value] if key == "params" else copy.deepcopy(value)
            for key, value in group.items()
        }
        for group in optimizer.param_groups
    ]


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[Tuple[str, torch.Tensor]],
    on: str = "workers",
    backward_passes_per_step: int = 1,
) -> torch.optim.Optimizer:
    """Make an optimizer distributed; it is given back, and has the methods of its own class still.

    on="workers": gradients are pushed while backward goes on, and when it returns their means are in
    `.grad`, as under DistributedDataParallel: clip or unscale them, and step takes them as they are,
    with the optimizer as it is. A parameter that gets no gradient is pushed in step, as it is, and
    the others are lent until then: call optimizer.synchronize() before `.grad` is touched. Who does
    not is told so, and the job ends. on="pservers": gradients are pushed in step, as they are then,
    the pservers apply them, and the model's parameters, which lie in weft's memory then, are fresh;
    that is for SGD, Adam and AdamW. The state of these stays on the pservers, with the settings that
    the job began with: what would change them is refused. on="ddp": for a model with weft.torch.Embedding
    whose other parameters DistributedDataParallel exchanges, or nobody does: step pushes the rows'
    gradients alone, and then makes the optimizer's own step. To be called after weft.init and before
    broadcast_parameters, with the same model on all trainers.

    backward_passes_per_step: gradients of so many backward passes are added up before they go."""
    if on not in ("workers", "pservers", "ddp"):
        raise InvalidError("on=%r: 'workers', 'pservers' or 'ddp' is needed" % on)
    if backward_passes_per_step < 1:
        raise InvalidError("backward_passes_per_step=%d: at least 1" % backward_passes_per_step)
    settings, of_parameter = _on_pservers(optimizer) if on == "pservers" else (_MEAN, lambda _: {})
    if on == "ddp":
        exchange: _Exchange = _RowsAlone((), _MEAN)
    else:
        exchange = _Exchange(named_parameters, settings)
        _check_groups(optimizer, exchange)
    exchange.declare(of_parameter)
    kind = type(optimizer.__class__.__name__, (_Distributed, optimizer.__class__), {})
    optimizer.__class__ = kind
    optimizer._weft = exchange  # type: ignore[attr-defined]
    optimizer._weft_groups = _settings_of(optimizer)  # type: ignore[attr-defined]
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
        exchange.came(slot, passes)

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
    if any(group["lr"] == 0 for group in optimizer.param_groups):
        if any(group["lr"] != 0 for group in optimizer.param_groups):
            raise UnsupportedError(
                "lr=0 in one parameter group and not in all: on the pservers a group's rate is a multiple of the first "
                "one's, and never 0; use requires_grad_(False) for parameters that stay, or on='workers'"
            )
    settings: Dict[str, Any] = {"learning_rate": first["lr"], "grad_reduce": "mean"}
    if name == "SGD":
        settings.update(optimizer=_sgd_method(first), momentum=first["momentum"])
    elif name in ("Adam", "AdamW"):
        settings.update(optimizer="torch_" + name.lower(), beta1=first["betas"][0], beta2=first["betas"][1], epsilon=first["eps"])
    else:
        raise UnsupportedError("%s: on the pservers there are SGD, Adam and AdamW; use on='workers'" % name)
    group_of = {id(p): group for group in optimizer.param_groups for p in group["params"]}

    def of_parameter(parameter: torch.Tensor) -> Dict[str, float]:
        group = group_of[id(parameter)]
        multiplier = group["lr"] / first["lr"] if first["lr"] != 0 else 1.0
        return {"rate_multiplier": multiplier, "decay": group["weight_decay"]}

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


class _RowsAlone(_Exchange):
    """The rows of embeddings, where gradients of parameters are none of weft's business."""

    pushes_tensors = False

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        if embeddings_of(self.session) is None:
            raise InvalidError(
                "on='ddp': weft has only the rows of weft.torch.Embedding and EmbeddingBag, and there is none: "
                "make the model first, or use another value"
            )


class _Run(_Exchange):
    """Gradients of a model one behind the other, in the order in which buckets bring them.

    Which parameter a place belongs to changes when DistributedDataParallel builds its buckets anew;
    nothing is kept from one step to the next, so it does not matter. The run is cut into tensors
    of a megabyte, so that each can leave when it is full. They follow one another in memory, so
    that a bucket's means can be had as one array. Its step ends in backward, too early for rows."""

    pushes_rows = False

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        for name, parameter in self.pairs:
            _check(name, parameter)
        self.count = sum(parameter.numel() for _, parameter in self.pairs)
        firsts = range(0, self.count, _PIECE)
        self.pieces = [
            self.session.empty(min(_PIECE, self.count - at), name="gradients_%d" % at, reduce=True) for at in firsts
        ]
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
        """Of a bucket, each part taken as soon as it is there."""
        values = bucket.buffer()
        adopted = self._is_adopted(values, where.start) or self._adopt(bucket, where)
        for piece, part in self.parts(where.start, where.stop):
            self.session.wait(piece)
            if adopted:
                self.grad[part].copy_(self.param[part])
        if adopted:
            return self.grad[where]
        # DistributedDataParallel counts from where the storage begins, so it has to be the bucket's.
        return torch.from_numpy(self.param.numpy()[where])

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

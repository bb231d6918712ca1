# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: the methods that it puts before those of the optimizer that it is given."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple

import torch

import weft
from weft.embedding import embeddings_of
from weft.errors import InvalidError, UnsupportedError
from weft.torch._exchange import MEAN, OPEN, TYPED, Exchange, Slot
from weft.torch._pservers import OnPservers


class _Distributed:
    """What DistributedOptimizer puts before the methods of the optimizer that it was given."""

    _weft: Exchange
    _weft_pservers: Optional[OnPservers]
    param_groups: Any
    state: Any

    def synchronize(self) -> None:
        """Have the mean gradients in `.grad` before step: to clip them, say. Optimizer at the workers.
        Where all parameters got a gradient in backward they are there already."""
        if self._weft.on_pservers:
            raise InvalidError("synchronize: the optimizer is on the pservers, which give parameters back")
        if not self._weft.ready:
            self._weft.finish()

    def step(self, closure: Optional[Callable[[], Any]] = None, grad_scaler: Any = None) -> Any:
        """grad_scaler: what GradScaler.step gives to an optimizer that supports it, which is one on the
        pservers: a gradient of any trainer that is not finite leaves the step out on all, in one more
        round, and the scaler of each is told so. At the workers the means show it to each scaler."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._weft_pservers is not None:
            self._weft_pservers.check_groups()
            self._weft.check_parameters()
            if not self._weft_skips(grad_scaler):
                self._weft_pservers.change(self._weft.slots)
                self._weft.finish()
        else:
            self.synchronize()
            self._weft.end()
            super().step()  # type: ignore[misc]
            self._weft.forget()
        return loss

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Which a GradScaler asks for: whether step itself looks at what it has found."""
        return self._weft_pservers is not None

    def _weft_skips(self, grad_scaler: Any) -> bool:
        """Whether some trainer's scaler has found a gradient that is not finite. Their scalers may speak
        either of PyTorch's languages: step(grad_scaler=), or the attributes grad_scale and found_inf."""
        found: Any = getattr(self, "found_inf", None)
        if grad_scaler is not None:
            state = grad_scaler._per_optimizer_states[id(self)]
            if state["stage"].name == "READY":
                grad_scaler.unscale_(self)
            found = list(state["found_inf_per_device"].values())
        elif found is not None:
            found = [found]
        else:
            return False
        assert self._weft_pservers is not None
        self._weft_check_scaler(self._weft_pservers.mode)
        total = self._weft.session.reduce([sum(float(one) for one in found)])[0]
        for one in found:
            one.fill_(float(total > 0))
        scale = getattr(self, "grad_scale", None)
        if total == 0 and scale is not None and grad_scaler is None:
            for slot in self._weft.slots:
                if slot.parameter.grad is not None:
                    slot.parameter.grad.mul_(1.0 / float(scale))
        return bool(total > 0)

    def _weft_check_scaler(self, mode: str) -> None:
        if mode != "sync":
            raise UnsupportedError(
                "GradScaler: in dense_mode %s trainers have no step in common that all could leave out; use "
                "dense_mode sync, or on='workers'" % mode
            )
        if embeddings_of(self._weft.session) is not None:
            raise UnsupportedError(
                "GradScaler: rows of embeddings are fetched for the step, which cannot be left out; use on='workers'"
            )

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
            if slot.state != OPEN:
                raise InvalidError(
                    "zero_grad between backward and step: tensor %s is pushed; call optimizer.synchronize() "
                    "first" % slot.name
                )
            slot.passes = 0
            if slot.parameter.grad is not None:
                slot.parameter.grad.detach_()
                slot.parameter.grad.zero_()

    def state_dict(self) -> Dict[str, Any]:
        """With the pservers' state in PyTorch's form, which is fetched: between two steps, by any trainer."""
        if self._weft_pservers is None or not self._weft.started:
            return super().state_dict()  # type: ignore[misc, no-any-return]
        self._weft_pservers.check_state("state_dict")
        self.state.update(self._weft_pservers.state(self._weft.slots))
        try:
            return super().state_dict()  # type: ignore[misc, no-any-return]
        finally:
            self.state.clear()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """On the pservers by all trainers together, with the same contents: trainer 0's arrays go to the
        pservers, in a step of the session for each array of the optimizer's state."""
        if self._weft_pservers is None:
            super().load_state_dict(state_dict)  # type: ignore[misc]
            return
        self._weft_pservers.check_state("load_state_dict")
        if self._weft.started:
            self._weft_pservers.check_values("load_state_dict")
        self._weft_pservers.check_loaded(state_dict)
        super().load_state_dict(state_dict)  # type: ignore[misc]
        if self._weft.started:
            self._weft_put_state()

    def _weft_put_state(self) -> None:
        """What was loaded, to the pservers."""
        assert self._weft_pservers is not None
        if self.state:
            self._weft_pservers.check_values("load_state_dict")
            self._weft_pservers.put_state(self._weft, self.state)
            self.state.clear()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy, and what is unpickled, is the optimizer without weft: of the class that it had, with its
        state, which is fetched from the pservers."""
        state = {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}  # type: ignore[attr-defined]
        if self._weft_pservers is not None and self._weft.started:
            self._weft_pservers.check_state("pickling or copying the optimizer")
            state["state"] = self._weft_pservers.state(self._weft.slots)
        return _new, (self.__class__.__mro__[2],), state

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        raise UnsupportedError(
            "add_param_group: the parameters of a job are fixed; give the group to the optimizer before "
            "weft.torch.DistributedOptimizer"
        )


def _new(kind: Any) -> Any:
    """What a copy of an optimizer begins with."""
    return kind.__new__(kind)


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
    that is for SGD, Adam and AdamW. Numbers that a scheduler changes in param_groups go to the pservers
    with the next step, on all trainers alike; state_dict fetches their state. on="ddp": for a model with weft.torch.Embedding
    whose other parameters DistributedDataParallel exchanges, or nobody does: step pushes the rows'
    gradients alone, and then makes the optimizer's own step. To be called after weft.init and before
    broadcast_parameters, with the same model on all trainers.

    backward_passes_per_step: gradients of so many backward passes are added up before they go."""
    if on not in ("workers", "pservers", "ddp"):
        raise InvalidError("on=%r: 'workers', 'pservers' or 'ddp' is needed" % on)
    if backward_passes_per_step < 1:
        raise InvalidError("backward_passes_per_step=%d: at least 1" % backward_passes_per_step)
    _check_closure(optimizer)
    pservers = OnPservers(optimizer, weft.session()) if on == "pservers" else None
    if on == "ddp":
        exchange: Exchange = _RowsAlone((), MEAN)
    elif pservers is not None:
        exchange = Exchange(named_parameters, pservers.settings(), on_pservers=True)
    else:
        named_parameters = list(named_parameters)
        exchange = Exchange(named_parameters, _settings_at_workers(named_parameters))
    if on != "ddp":
        _check_groups(optimizer, exchange)
    exchange.declare(pservers.of_parameter if pservers is not None else lambda _: {})
    kind = type(optimizer.__class__.__name__, (_Distributed, optimizer.__class__), {})
    optimizer.__class__ = kind
    optimizer._weft = exchange  # type: ignore[attr-defined]
    optimizer._weft_pservers = pservers  # type: ignore[attr-defined]
    if pservers is not None:
        exchange.on_start = optimizer._weft_put_state  # type: ignore[attr-defined]
    if on == "workers":
        for slot in exchange.slots:
            _push_in_backward(exchange, slot, backward_passes_per_step)
    return optimizer


def _check_closure(optimizer: torch.optim.Optimizer) -> None:
    """LBFGS evaluates the loss as often as it likes, and goes where the loss of its own data tells it."""
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise UnsupportedError(
            "%s: its step evaluates the loss itself, of each trainer's own data, so trainers would part; use an "
            "optimizer whose step does not need a closure" % type(optimizer).__name__
        )


def _settings_at_workers(named: Iterable[Tuple[str, torch.Tensor]]) -> Mapping[str, Any]:
    """Gradients that are not float32 are summed through the ring of weft.all_reduce."""
    typed = any(parameter.requires_grad and parameter.dtype in TYPED for _, parameter in named)
    if typed and weft.session().setting("all_reduce_ring").strip("0B ") == "":
        return dict(MEAN, all_reduce_ring="4MiB")
    return MEAN


def _check_groups(optimizer: torch.optim.Optimizer, exchange: Exchange) -> None:
    """What is optimized is what is exchanged."""
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    wanted = {id(p) for p in parameters if p.requires_grad and p.numel() > 0}
    for name, parameter in exchange.pairs:
        if id(parameter) not in wanted:
            raise InvalidError("parameter %s is not one of the optimizer's" % name)
    if len(wanted) != len(exchange.pairs):
        raise InvalidError(
            "the optimizer has %d parameters, %d with names were given" % (len(wanted), len(exchange.pairs))
        )


def _push_in_backward(exchange: Exchange, slot: Slot, passes: int) -> None:
    """Push when the gradient of a parameter is added up. The node that does it is found behind a
    view; it has to be kept, for autograd holds it weakly."""
    node = slot.parameter.expand_as(slot.parameter).grad_fn.next_functions[0][0]

    def added(*_: Any) -> None:
        exchange.came(slot, passes)

    node.register_hook(added)
    slot.node = node  # type: ignore[attr-defined]


class _RowsAlone(Exchange):
    """The rows of embeddings, where gradients of parameters are none of weft's business."""

    pushes_tensors = False

    def declare(self, settings_of: Callable[[torch.Tensor], Dict[str, float]]) -> None:
        if embeddings_of(self.session) is None:
            raise InvalidError(
                "on='ddp': weft has only the rows of weft.torch.Embedding and EmbeddingBag, and there is none: "
                "make the model first, or use another value"
            )

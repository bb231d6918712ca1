# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: the methods that it puts before those of the optimizer that it is given."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import torch

from weft.embedding import embeddings_of
from weft.errors import InvalidError, UnsupportedError
from weft.torch._exchange import MEAN, OPEN, Exchange, Slot
from weft.torch._pservers import on_pservers, settings_of


class _Distributed:
    """What DistributedOptimizer puts before the methods of the optimizer that it was given."""

    _weft: Exchange
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
        groups = settings_of(self)  # type: ignore[arg-type]
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
    settings, of_parameter = on_pservers(optimizer) if on == "pservers" else (MEAN, lambda _: {})
    if on == "ddp":
        exchange: Exchange = _RowsAlone((), MEAN)
    else:
        exchange = Exchange(named_parameters, settings)
        _check_groups(optimizer, exchange)
    exchange.declare(of_parameter)
    kind = type(optimizer.__class__.__name__, (_Distributed, optimizer.__class__), {})
    optimizer.__class__ = kind
    optimizer._weft = exchange  # type: ignore[attr-defined]
    optimizer._weft_groups = settings_of(optimizer)  # type: ignore[attr-defined]
    if on == "workers":
        for slot in exchange.slots:
            _push_in_backward(exchange, slot, backward_passes_per_step)
    return optimizer


def _check_groups(optimizer: torch.optim.Optimizer, exchange: Exchange) -> None:
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

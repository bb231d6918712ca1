# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: the methods that it puts before those of the optimizer that it is given."""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple

import torch
from torch.optim import lr_scheduler

import weft
from weft.embedding import embeddings_of
from weft.errors import InvalidError, UnsupportedError
from weft.torch._exchange import MEAN, OPEN, TYPED, Exchange, Slot
from weft.torch._pservers import OnPservers


class _Distributed:
    """What DistributedOptimizer puts before the methods of the optimizer that it was given."""

    _weft: Exchange
    _weft_pservers: Optional[OnPservers]
    _weft_in_backward: bool  # gradients go to the pservers in backward
    param_groups: Any
    state: Any

    def synchronize(self) -> None:
        """Push what no gradient came for, and wait until the mean gradients are in `.grad`: to clip them
        before step, say. If all parameters got a gradient in backward they are there already, and it
        returns at once. InvalidError: on="pservers", which answers parameters, or before
        broadcast_parameters."""
        if self._weft.on_pservers:
            raise InvalidError("synchronize: the optimizer is on the pservers, which give parameters back")
        if not self._weft.ready:
            self._weft.finish()

    def step(self, closure: Optional[Callable[[], Any]] = None, grad_scaler: Any = None) -> Any:
        """Exchange the gradients, as far as backward has not, and update the parameters. Waits, but not for
        rows of embeddings to be updated: what needs that does.

        closure      computes the gradients and returns the loss, which is returned here; None: they are
                     there, and None is returned
        grad_scaler  what GradScaler.step gives to an optimizer on the pservers: if a gradient of any
                     trainer is not finite, the step is left out on all, in one more round, and found_inf
                     of each scaler is set. At the workers each scaler sees it in the means

        InvalidError: before broadcast_parameters; a group was changed after the forward pass of a batch of
        lookahead, on="pservers"; or a gradient was changed while it was lent, and the job is over.
        UnsupportedError: a parameter requires a gradient that did not when the optimizer was made
        distributed; a GradScaler beside embeddings; or, and nothing was pushed, on="pservers", and a number
        or a parameter was changed in a way that the pservers cannot follow."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._weft_in_backward and self._weft.begun:
            self._weft_finish_backward(grad_scaler)
        elif self._weft_pservers is not None:
            if self._weft.begun:
                self._weft_check_begun()
            if not self._weft_skips(grad_scaler):
                self._weft.finish()
        else:
            self._weft_check_scaler(grad_scaler)
            if self._weft.pushes_tensors:
                self._weft.check_frozen(self.param_groups)
            self.synchronize()
            self._weft.push_rows()
            try:
                super().step()  # type: ignore[misc]
            finally:
                self._weft.end_later()  # the pservers have updated rows meanwhile, or go on
            self._weft.forget()
        return loss

    def _weft_check(self) -> None:
        """Whether the pservers can make a step with the groups and parameters as they are."""
        assert self._weft_pservers is not None
        self._weft_pservers.check_groups()
        self._weft.check_frozen(self.param_groups)
        self._weft.check_parameters()

    def _weft_begin(self) -> None:
        """The step begins, with the numbers that groups have now: in step, with the first gradient that is
        pushed in backward, or with the first forward pass of a batch of lookahead."""
        assert self._weft_pservers is not None
        self._weft_check()
        self._weft_pservers.change(self._weft.slots)

    def _weft_check_begun(self) -> None:
        """The same for a step that has begun with a forward pass of lookahead."""
        assert self._weft_pservers is not None
        self._weft_check()
        if self._weft_pservers.has_changed():
            raise InvalidError(
                "a parameter group was changed after the forward pass, with which the step of a batch of lookahead "
                "begins: put it back, and change groups after step"
            )

    def _weft_finish_backward(self, grad_scaler: Any) -> None:
        """What was pushed in backward cannot be taken back."""
        assert self._weft_pservers is not None
        if self._weft_is_scaled(grad_scaler):
            self._weft.spoil(
                "GradScaler: gradients were pushed in backward, before anybody has unscaled them: leave "
                "push_in_backward out"
            )
        if self._weft_pservers.has_changed():
            self._weft.spoil(
                "a parameter group was changed between backward and step, and gradients were pushed with the numbers "
                "of before: change groups after step, or leave push_in_backward out"
            )
        self._weft.finish()

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Which a GradScaler asks for: whether step itself looks at what it has found."""
        return self._weft_pservers is not None or embeddings_of(self._weft.session) is not None

    def _weft_is_scaled(self, grad_scaler: Any) -> bool:
        """Whether a scaler calls step. Scalers may speak either of PyTorch's languages: step(grad_scaler=), or
        the attributes grad_scale and found_inf."""
        return grad_scaler is not None or getattr(self, "found_inf", None) is not None

    def _weft_skips(self, grad_scaler: Any) -> bool:
        """Whether some trainer's scaler has found a gradient that is not finite."""
        if not self._weft_is_scaled(grad_scaler):
            return False
        self._weft_check_scaler(grad_scaler)
        self._weft_check()
        if grad_scaler is not None:
            state = grad_scaler._per_optimizer_states[id(self)]
            if state["stage"].name == "READY":
                grad_scaler.unscale_(self)
            found: Any = list(state["found_inf_per_device"].values())
        else:
            found = [self.found_inf]  # type: ignore[attr-defined]
        total = self._weft.session.reduce([sum(float(one) for one in found)])[0]
        for one in found:
            one.fill_(float(total > 0))
        scale = getattr(self, "grad_scale", None)
        if total == 0 and scale is not None and grad_scaler is None:
            for slot in self._weft.slots:
                if slot.parameter.grad is not None:
                    slot.parameter.grad.mul_(1.0 / float(scale))
        return bool(total > 0)

    def _weft_check_scaler(self, grad_scaler: Any) -> None:
        if not self._weft_is_scaled(grad_scaler):
            return
        if embeddings_of(self._weft.session) is not None:
            raise UnsupportedError(
                "GradScaler: it does not see the gradients of rows of embeddings, which would be pushed as they were "
                "scaled: train without it"
            )
        if self._weft_pservers is not None and self._weft_pservers.mode != "sync":
            raise UnsupportedError(
                "GradScaler: in dense_mode %s trainers have no step in common that all could leave out; use "
                "dense_mode sync, or on='workers'" % self._weft_pservers.mode
            )

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set the gradients to zero in place: they are in weft's memory, whatever set_to_none says. Means
        that no step has used are dropped; all trainers do so, or none. InvalidError: a gradient is pushed
        and not answered; call synchronize first."""
        exchange = self._weft
        embeddings = embeddings_of(exchange.session)
        is_left = not exchange.pushes_tensors and embeddings is not None and not embeddings.is_ahead()
        if exchange.ready or is_left:  # a step of lookahead, whose loop was left in the middle of it
            exchange.forget()
        if embeddings is not None:
            embeddings.zero()
        if not exchange.pushes_tensors:
            super().zero_grad(set_to_none)  # type: ignore[misc]
        for slot in exchange.slots:
            if slot.state != OPEN:
                raise InvalidError(
                    "zero_grad between backward and step: tensor %s is pushed; call %s first"
                    % (slot.name, "step" if exchange.on_pservers else "optimizer.synchronize()")
                )
            slot.passes = 0
            grad = slot.parameter.grad
            if grad is not None:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:  # somebody may have put a view there, which cannot be detached
                    grad.requires_grad_(False)
                grad.zero_()

    def state_dict(self) -> Dict[str, Any]:
        """The optimizer's state in PyTorch's form. On the pservers it is fetched, and waited for: between two
        steps, by any trainer. UnsupportedError: on="pservers" with a dense_mode other than "sync"."""
        if self._weft_pservers is None or not self._weft.started:
            return super().state_dict()  # type: ignore[misc, no-any-return]
        self._weft_pservers.check_state("state_dict")
        self.state.update(self._weft_pservers.state(self._weft.slots))
        try:
            return super().state_dict()  # type: ignore[misc, no-any-return]
        finally:
            self.state.clear()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Load what state_dict returned. With on="pservers" all trainers call it together, with the same
        contents, and wait: trainer 0's arrays go to the pservers, in a step of the session for each array
        of the optimizer's state; before broadcast_parameters they go when that starts the job.
        UnsupportedError: state that the pservers cannot have, or whose steps embeddings or a schedule count."""
        if self._weft_pservers is None:
            super().load_state_dict(state_dict)  # type: ignore[misc]
            return
        self._weft_pservers.check_state("load_state_dict")
        if self._weft.started or state_dict["state"]:
            self._weft_pservers.check_values()
        self._weft_pservers.check_loaded(state_dict)
        super().load_state_dict(state_dict)  # type: ignore[misc]
        if self._weft.started:
            self._weft_put_state()

    def _weft_put_state(self) -> None:
        """What was loaded, to the pservers."""
        assert self._weft_pservers is not None
        if self.state:
            self._weft_pservers.check_values()
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
        """UnsupportedError: the parameters of a job are fixed, and no param_group can be added."""
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
    push_in_backward: bool = False,
) -> torch.optim.Optimizer:
    """Make an optimizer distributed. Returns the same object, still an instance of its class, with
    synchronize() in addition. All trainers call it with the same model, after weft.init and before
    broadcast_parameters.

    optimizer         of any class whose step needs no closure; on="pservers": SGD, Adam or AdamW
    named_parameters  model.named_parameters(): the optimizer's, and no others; float32 on the CPU,
                      on="workers" float64, bfloat16 and float16 too. on="ddp" does not use them
    on                "workers", "pservers" or "ddp", see below
    backward_passes_per_step  gradients of this number of backward passes are added up before they are
                      pushed in backward; at least 1
    push_in_backward  on="pservers": push each gradient as soon as it is there, see below

    "workers": gradients are pushed while backward goes on, and when it returns their means are in
    `.grad`, as under DistributedDataParallel: clip or unscale them, and step uses them as they are then,
    with the optimizer as it is. A parameter that gets no gradient is pushed in step, as it is, and the
    others are lent until then: call optimizer.synchronize() before you change `.grad`; otherwise the job
    ends, with an InvalidError that names the tensor.
    "pservers": gradients are pushed in step, as they are then, and the pservers apply them. The model's
    parameters lie in weft's memory and have the new values after step. Numbers that a scheduler changes
    in param_groups go to the pservers with the next step, on all trainers alike. With push_in_backward
    gradients are pushed while backward goes on, as at the workers, and step waits for the parameters.
    Each of these gets its new value while backward goes on, when all trainers have pushed its gradient:
    nothing but backward itself may use it between the two, and backward not detached from its gradient.
    Between backward and step nobody may change `.grad`, a parameter or a group, or call zero_grad.
    "ddp": for a model with weft.torch.Embedding whose other parameters DistributedDataParallel
    exchanges, or nobody does. step pushes the gradients of rows alone, then makes the optimizer's own step.

    Schedulers may be made before or after it. Whoever replaces optimizer.step does so after it.

    InvalidError: a parameter (it is named) or an argument is wrong, optimizer.step was replaced, or the
    session has tensors or an optimizer already. UnsupportedError: the pservers do not have this optimizer
    or one of its numbers."""
    if on not in ("workers", "pservers", "ddp"):
        raise InvalidError("on=%r: 'workers', 'pservers' or 'ddp' is needed" % on)
    if backward_passes_per_step < 1:
        raise InvalidError("backward_passes_per_step=%d: at least 1" % backward_passes_per_step)
    if push_in_backward and on != "pservers":
        raise InvalidError("push_in_backward: on='pservers' has it; on='workers' always does so, on='ddp' never")
    _check_closure(optimizer)
    _check_step(optimizer)
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
    _count_again(optimizer)
    optimizer._weft = exchange  # type: ignore[attr-defined]
    optimizer._weft_pservers = pservers  # type: ignore[attr-defined]
    optimizer._weft_in_backward = push_in_backward  # type: ignore[attr-defined]
    if pservers is not None:
        exchange.on_start = optimizer._weft_put_state  # type: ignore[attr-defined]
        exchange.on_begin = optimizer._weft_begin  # type: ignore[attr-defined]
    if on == "workers" or push_in_backward:
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


def _check_step(optimizer: torch.optim.Optimizer) -> None:
    """A scheduler replaces the method of the object by one that calls that of its class at that time."""
    replaced = vars(optimizer).get("step")
    if replaced is not None and getattr(replaced, "__globals__", None) is not vars(lr_scheduler):
        raise InvalidError(
            "%s: its method step was replaced, which would pass weft by: replace it after "
            "weft.torch.DistributedOptimizer" % type(optimizer).__name__
        )


def _count_again(optimizer: torch.optim.Optimizer) -> None:
    """If a scheduler has replaced step: the same around the step of the class that the optimizer has now.
    It keeps the marks by which schedulers know it, and notes what they look at: the number of calls
    before PyTorch 2.4, and since then whether there was one."""
    replaced = vars(optimizer).pop("step", None)
    if replaced is None:
        return
    own, function = weakref.ref(optimizer), type(optimizer).step

    @functools.wraps(function)
    def counting(*args: Any, **kwargs: Any) -> Any:
        itself: Any = own()
        itself._step_count = getattr(itself, "_step_count", 0) + 1
        itself._opt_called = True
        return function(itself, *args, **kwargs)

    vars(counting).update(vars(replaced), __wrapped__=function)
    vars(optimizer)["step"] = counting


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
        if exchange.session._handle is not None:  # the model may live longer than its job
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
        self.claim_session()

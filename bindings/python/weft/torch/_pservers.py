# SPDX-License-Identifier: Apache-2.0
"""An optimizer of PyTorch that the pservers run: its numbers, and its state."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

import torch

from weft.embedding import embeddings_of
from weft.errors import UnsupportedError
from weft.session import Session
from weft.torch._exchange import Exchange, Slot

_ADAM = ("exp_avg", "exp_avg_sq")
_ARRAYS = {"torch_sgd": ("momentum_buffer",), "torch_adam": _ADAM, "torch_adamw": _ADAM}  # of state
_AS_PYTORCH = {"learning_rate": "lr", "decay": "weight_decay", "beta1": "betas", "beta2": "betas", "epsilon": "eps"}


def _check_settings(name: str, groups: Sequence[Mapping[str, Any]]) -> None:
    for group in groups:
        for setting in ("amsgrad", "maximize"):
            if group.get(setting):
                raise UnsupportedError("%s with %s=%r: the pservers have none" % (name, setting, group[setting]))


class OnPservers:
    """What the pservers know of an optimizer. In a synchronous job whatever numbers its groups have go
    to them with the next step; in other modes it is what it was when the job began."""

    def __init__(self, optimizer: torch.optim.Optimizer, session: Session) -> None:
        self.optimizer = optimizer
        self.session = session
        self.name = optimizer.__class__.__name__
        self.mode = session.setting("dense_mode")
        groups = optimizer.param_groups
        if self.name not in ("SGD", "Adam", "AdamW"):
            raise UnsupportedError("%s: on the pservers there are SGD, Adam and AdamW; use on='workers'" % self.name)
        _check_settings(self.name, groups)
        if self.mode != "sync":
            self._check_alike(groups)
        self.method = self._method(groups)
        self.members = [[id(parameter) for parameter in group["params"]] for group in groups]
        self.declared = self._declared(groups)
        self.had_momentum = [False] * len(groups)

    def _check_alike(self, groups: Sequence[Mapping[str, Any]]) -> None:
        """Nothing can be changed, so groups have what can be declared."""
        for group in groups:
            for setting in ("momentum", "dampening", "nesterov", "betas", "eps"):
                if group.get(setting) != groups[0].get(setting):
                    raise UnsupportedError(
                        "%s: %s differs between parameter groups, which takes dense_mode sync" % (self.name, setting)
                    )
        if any(group["lr"] == 0 for group in groups) and any(group["lr"] != 0 for group in groups):
            raise UnsupportedError(
                "lr=0 in one parameter group and not in all: in dense_mode %s a group's rate is a multiple of the "
                "first one's, and never 0; use requires_grad_(False) for parameters that stay" % self.mode
            )

    def _method(self, groups: Sequence[Mapping[str, Any]]) -> str:
        if self.name != "SGD":
            return "torch_" + self.name.lower()
        if all(group["momentum"] == 0 for group in groups):
            return "sgd"  # without an array of momenta
        return "torch_sgd" if self.mode == "sync" else _method_without_changes(groups[0])

    def settings(self) -> Dict[str, Any]:
        """Of the session."""
        first = self.optimizer.param_groups[0]
        settings = {"optimizer": self.method, "learning_rate": first["lr"], "grad_reduce": "mean"}
        if self.name == "SGD":
            settings.update(momentum=first["momentum"])
        else:
            settings.update(beta1=first["betas"][0], beta2=first["betas"][1], epsilon=first["eps"])
        if "keep_state" not in self.session._settings and self.mode == "sync":
            settings.update(keep_state=1)  # for state_dict
        return settings

    def of_parameter(self, parameter: torch.Tensor) -> Dict[str, float]:
        """Settings of a tensor."""
        groups = self.optimizer.param_groups
        group = next(g for g in groups if any(p is parameter for p in g["params"]))
        settings = {"decay": group["weight_decay"]}
        if self.mode != "sync" and groups[0]["lr"] != 0:
            settings.update(rate_multiplier=group["lr"] / groups[0]["lr"])
        return settings

    def _numbers(self, group: Mapping[str, Any]) -> Dict[str, float]:
        numbers = {"learning_rate": float(group["lr"]), "decay": float(group["weight_decay"])}
        if self.method == "torch_sgd":
            numbers.update(momentum=group["momentum"], dampening=group["dampening"], nesterov=bool(group["nesterov"]))
        elif self.name == "SGD":
            numbers.update(momentum=group["momentum"])
        else:
            numbers.update(beta1=group["betas"][0], beta2=group["betas"][1], epsilon=group["eps"])
        if self.mode != "sync" and self.name == "SGD":
            numbers.update(dampening=group["dampening"], nesterov=bool(group["nesterov"]))
        return numbers

    def _declared(self, groups: Sequence[Mapping[str, Any]]) -> List[Dict[str, float]]:
        """The numbers of each group as the declaration has them."""
        declared = [self._numbers(group) for group in groups]
        if self.mode == "sync":
            for numbers in declared:
                numbers.update(declared[0], decay=numbers["decay"])
                if self.method == "torch_sgd":
                    numbers.update(dampening=0.0, nesterov=False)
        return declared

    def check_groups(self) -> None:
        """The parameters are those that were declared, and the pservers have what is asked for."""
        groups = self.optimizer.param_groups
        _check_settings(self.name, groups)
        if [[id(parameter) for parameter in group["params"]] for group in groups] != self.members:
            raise UnsupportedError(
                "the optimizer had other parameters when the job began (%d parameter groups, now %d): it is on the "
                "pservers, where they are fixed; use on='workers'" % (len(self.members), len(groups))
            )
        for number, (before, group) in enumerate(zip(self.declared, groups)):
            for name, value in self._numbers(group).items():
                if value != before.get(name, value) and (self.mode != "sync" or (self.method == "sgd" and name == "momentum")):
                    self._refuse(number, name, before[name], value)

    def _refuse(self, number: int, name: str, before: float, now: float) -> None:
        why = "in dense_mode %s there is no step from which all pservers have another value" % self.mode
        if self.mode == "sync":
            why = "they keep no momentum then; begin with one above 0"
        raise UnsupportedError(
            "%s of parameter group %d was %s when the job began and is %s: the optimizer is on the pservers, and %s; "
            "put it back, or use on='workers'" % (_AS_PYTORCH.get(name, name), number, before, now, why)
        )

    def has_changed(self) -> bool:
        """Whether a group differs from what the pservers have been given."""
        groups = self.optimizer.param_groups
        return self.mode == "sync" and any(
            self._numbers(group) != before for group, before in zip(groups, self.declared)
        )

    def change(self, slots: Sequence[Slot]) -> None:
        """What is different in a group since the last step is different on the pservers in the next."""
        if self.mode != "sync":
            return
        slot_of = {id(slot.parameter): slot for slot in slots}
        for number, group in enumerate(self.optimizer.param_groups):
            numbers, before = self._numbers(group), self.declared[number]
            if numbers != before:
                new = {name: value for name, value in numbers.items() if before.get(name) != value}
                if new.get("momentum") and not self.had_momentum[number]:
                    new.update(updates=0)  # PyTorch's first step with a momentum has no dampening
                self.declared[number] = {}  # unless all of it is right
                for member in group["params"]:
                    if id(member) in slot_of:
                        slot_of[id(member)].change(new)
                self.declared[number] = numbers
            self.had_momentum[number] = self.had_momentum[number] or bool(numbers.get("momentum"))

    # State.

    def check_state(self, call: str) -> None:
        if self.mode != "sync":
            raise UnsupportedError(
                "%s: the optimizer's state is on the pservers, which count the updates of each slice by itself in "
                "dense_mode %s; use on='workers', or dense_mode sync" % (call, self.mode)
            )

    def check_values(self) -> None:
        """Arrays of state are set in steps of their own, which other things count."""
        self.check_state("load_state_dict")
        schedule = self.session.setting("schedule")
        has_rows = embeddings_of(self.session) is not None
        if self.method in _ARRAYS and (schedule != "constant" or has_rows):
            raise UnsupportedError(
                "load_state_dict: the optimizer's state goes to the pservers in steps of the session, which %s; leave "
                "it out, go on from a snapshot of the pservers, or use on='workers'"
                % ("embeddings count" if has_rows else "the schedule %r counts" % schedule)
            )

    def state(self, slots: Sequence[Slot]) -> Dict[torch.Tensor, Dict[str, Any]]:
        """As PyTorch's own optimizer has it."""
        names = _ARRAYS.get(self.method, ())
        found: Dict[torch.Tensor, Dict[str, Any]] = {}
        if names:
            self.session.pull_state()
        group_of = {id(p): group for group in self.optimizer.param_groups for p in group["params"]}
        for slot in slots:
            assert slot.tensor is not None
            updates = slot.updates()
            if updates == 0:
                continue  # no step yet: PyTorch has nothing either
            arrays = {name: torch.from_numpy(array.copy()) for name, array in zip(names, slot.tensor.state)}
            if self.name != "SGD":
                found[slot.parameter] = {"step": torch.tensor(float(updates)), **arrays}
            elif group_of[id(slot.parameter)]["momentum"] == 0:
                found[slot.parameter] = {"momentum_buffer": None}
            else:
                found[slot.parameter] = arrays
        return found

    def check_loaded(self, state_dict: Mapping[str, Any]) -> None:
        _check_settings(self.name, state_dict["param_groups"])
        if self.method == "sgd" and any(group["momentum"] != 0 for group in state_dict["param_groups"]):
            raise UnsupportedError(
                "load_state_dict: it has a momentum, and the optimizer on the pservers has none; begin with one above 0"
            )

    def put_state(self, exchange: Exchange, state: Mapping[torch.Tensor, Mapping[str, Any]]) -> None:
        """Trainer 0's, to the pservers; all trainers have the same."""
        slots = [slot for slot in exchange.slots if slot.tensor is not None]
        for slot in slots:
            of = state.get(slot.parameter, {})
            updates = int(of["step"]) if "step" in of else int(of.get("momentum_buffer") is not None)
            slot.change({"updates": updates})
        for number, name in enumerate(_ARRAYS.get(self.method, ())):
            values = [state.get(slot.parameter, {}).get(name) for slot in slots]
            exchange.assign(1 + number, values)
        self.had_momentum = [
            any(state.get(p, {}).get("momentum_buffer") is not None for p in group["params"])
            for group in self.optimizer.param_groups
        ]


def _method_without_changes(group: Mapping[str, Any]) -> str:
    """The original's, where the rate is part of the momentum; "torch_momentum" is PaddlePaddle's SGD with
    a dampening that is the momentum."""
    momentum, dampening = group["momentum"], group["dampening"]
    if dampening not in (0, momentum):
        raise UnsupportedError(
            "SGD with dampening=%g: 0 or the momentum, %g, on the pservers, if dense_mode is not sync" % (dampening, momentum)
        )
    if dampening != 0:
        return "torch_momentum"
    return "nesterov" if group["nesterov"] else "momentum"

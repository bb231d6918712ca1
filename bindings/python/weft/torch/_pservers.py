# SPDX-License-Identifier: Apache-2.0
"""What the pservers are to know of an optimizer of PyTorch."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Mapping, Tuple

import torch

from weft.errors import UnsupportedError


def settings_of(optimizer: torch.optim.Optimizer) -> List[Dict[str, Any]]:
    """Of each group, and which parameters are in it."""
    return [
        {
            key: [id(parameter) for parameter in value] if key == "params" else copy.deepcopy(value)
            for key, value in group.items()
        }
        for group in optimizer.param_groups
    ]


def on_pservers(
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

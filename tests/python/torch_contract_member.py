# SPDX-License-Identifier: Apache-2.0
"""One of two trainers of test_torch_contract.py. main: mode scaled, typed or buffers, PSERVERS, TRAINER_ID,
FILE. scaled: under a scaler, with a gradient of trainer 1 in step 1 that is not finite, a rate that changes,
values that are set; in the end with rates that differ. typed: parameters of several types. buffers: tensors
of any type that are broadcast. FILE gets what came of it.

As a program, `fails` PSERVERS ON: a job of its own whose second backward raises."""

import enum
import sys

import support  # noqa: F401, so that the package is found
import torch

import weft
import weft.torch

STEPS = 4


class Stage(enum.Enum):
    READY = 0
    UNSCALED = 1
    STEPPED = 2


class Scaler:
    """What torch.cuda.amp.GradScaler does with an optimizer, for the CPU, where 1.13 has none. `attributes`:
    as later versions, which set grad_scale and found_inf, and read found_inf again in update."""

    def __init__(self, attributes):
        self.attributes, self.factor = attributes, 512.0
        self._per_optimizer_states = {}

    def state_of(self, optimizer):
        new = {"stage": Stage.READY, "found_inf_per_device": {}}
        return self._per_optimizer_states.setdefault(id(optimizer), new)

    def scale(self, loss):
        return loss * self.factor

    def look(self, optimizer, by):
        found = torch.zeros(1)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    found.fill_(max(found.item(), float(not torch.isfinite(parameter.grad).all())))
                    parameter.grad.mul_(by)
        self.state_of(optimizer)["found_inf_per_device"] = {"cpu": found}

    def unscale_(self, optimizer):
        state = self.state_of(optimizer)
        if state["stage"] is not Stage.READY:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        self.look(optimizer, 1 / self.factor)
        state["stage"] = Stage.UNSCALED

    def step(self, optimizer):
        state = self.state_of(optimizer)
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            if self.attributes:
                if state["stage"] is Stage.READY:
                    self.look(optimizer, 1.0)
                optimizer.grad_scale = self.factor if state["stage"] is Stage.READY else None
                optimizer.found_inf = state["found_inf_per_device"]["cpu"]
                optimizer.step()
                del optimizer.grad_scale, optimizer.found_inf
            else:
                optimizer.step(grad_scaler=self)
            return
        if state["stage"] is Stage.READY:
            self.unscale_(optimizer)
        if not sum(found.item() for found in state["found_inf_per_device"].values()):
            optimizer.step()

    def update(self):
        found = [found.item() for state in self._per_optimizer_states.values() for found in state["found_inf_per_device"].values()]
        self.factor *= 0.5 if sum(found) else 1
        self._per_optimizer_states.clear()


def network(seed=3):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def loss(model, step, number=0):
    generator = torch.Generator().manual_seed(10 * step + number)
    x, y = torch.randn(8, 6, generator=generator), torch.randn(8, 2, generator=generator)
    return torch.nn.functional.mse_loss(model(x), y)


def make(model):
    return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def alone():
    """What both come to: without step 1, with the mean of both gradients."""
    model = network()
    optimizer = make(model)
    for step in (0, 2, 3):
        optimizer.zero_grad()
        if step == 2:
            optimizer.param_groups[0].update(lr=0.05, momentum=0.5)
        if step == 3:
            model.load_state_dict(network(8).state_dict())
        for number in range(2):
            (loss(model, step, number) / 2).backward()
        optimizer.step()
    return model.state_dict()


def scaled_steps(number):
    model = network()
    optimizer = weft.torch.DistributedOptimizer(make(model), model.named_parameters(), on="pservers")
    weft.torch.broadcast_parameters(model.state_dict())
    scaler, factors = Scaler(False), []
    for step in range(STEPS):
        factors.append(scaler.factor)
        optimizer.zero_grad()
        if step == 2:
            optimizer.param_groups[0].update(lr=0.05, momentum=0.5)
        if step == 3:
            model.load_state_dict(network(8 + number).state_dict())
            weft.torch.broadcast_parameters(model.state_dict())
        scaler.scale(loss(model, step, number)).backward()
        if (step, number) == (1, 1):
            model[2].bias.grad[0] = float("nan")
        scaler.step(optimizer)
        scaler.update()
    return model, optimizer, factors


def differ(model, optimizer, number):
    optimizer.param_groups[0]["lr"] = 0.01 * (1 + number)
    loss(model, 0, number).backward()
    try:
        optimizer.step()
    except weft.Error as error:
        return str(error)
    return ""


DTYPES = (torch.float32, torch.float64, torch.bfloat16)
WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
KINDS = (*DTYPES, torch.float16, torch.complex64, torch.complex128, *WHOLE)


def typed_gradients(number):
    generator = torch.Generator().manual_seed(number)
    return [torch.randn(300, 5, generator=generator).to(dtype) for dtype in DTYPES]


def typed(number):
    """Of each type, a parameter's gradient after backward, and its value after it was set."""
    parameters = [torch.nn.Parameter(torch.zeros(300, 5, dtype=dtype)) for dtype in DTYPES]
    named = [("p%d" % i, p) for i, p in enumerate(parameters)]
    optimizer = weft.torch.DistributedOptimizer(torch.optim.SGD(parameters, 0.1), named)
    weft.torch.broadcast_parameters({name: p.data for name, p in named})
    sum((p * g).sum() for p, g in zip(parameters, typed_gradients(number))).backward()
    gradients = [p.grad.clone() for p in parameters]
    optimizer.step()
    for p in parameters:
        p.data.fill_(5 + number)
    weft.torch.broadcast_parameters({name: p.data for name, p in named})
    return list(zip(gradients, [p.detach().clone() for p in parameters]))


def buffers(number):
    """Tensors of any kind, with other values on each trainer."""
    random = torch.Generator().manual_seed(number)
    bytes_of = {dtype: torch.zeros((), dtype=dtype).element_size() for dtype in KINDS}
    made = {
        str(dtype): torch.randint(256, (300 * size,), dtype=torch.uint8, generator=random).view(dtype)
        for dtype, size in bytes_of.items()
    }
    made["bool"] = torch.rand(7, generator=random) > 0.5
    made["counter"] = torch.tensor((1 << 62) + 12345 + number)
    made["turned"] = made["torch.complex64"].reshape(3, 100).t()
    made["conjugate"] = made["torch.complex128"].clone().conj()
    made["nothing"] = torch.zeros(0, 3, dtype=torch.float64)
    return made


def broadcast_buffers(number):
    """Those that come of it when a job starts, and in the middle of it."""
    parameter, found = torch.nn.Parameter(torch.zeros(3)), []
    weft.torch.DistributedOptimizer(torch.optim.SGD([parameter], 0.1), [("p", parameter)])
    for first in (0, 10):
        made = buffers(first + number)
        weft.torch.broadcast_parameters(made)
        found.append({name: bits(value) for name, value in made.items()})
    return found


def bits(value):
    return value.resolve_conj().contiguous().view(-1).view(torch.uint8)


def scaled(number):
    model, optimizer, factors = scaled_steps(number)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    return {"model": state, "factors": factors, "differs": differ(model, optimizer, number)}


def main(mode, where, number, file):
    torch.set_num_threads(1)
    weft.init(pservers=where, num_gradient_servers=2, trainer_id=number, log=lambda *_: None)
    torch.save({"scaled": scaled, "typed": typed, "buffers": broadcast_buffers}[mode](number), file)
    if mode != "scaled":  # whose job has ended
        weft.close()


def fails(where, on):
    """`on` is that of weft.torch.DistributedOptimizer; "ddp": with rows alone. Nodes of the graph stay behind."""
    weft.init(pservers=where, ports_num_for_sparse=1)
    if on == "ddp":
        table = weft.table("words", 6, init="uniform", init_a=-1, init_b=1)
        model = torch.nn.Sequential(weft.torch.Embedding(table, padding_idx=0), *network())
        x = torch.tensor([1, 2, 0])
    else:
        model, x = network(), torch.ones(3, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer = weft.torch.DistributedOptimizer(optimizer, model.named_parameters(), on=on)
    weft.torch.broadcast_parameters(model.state_dict())
    for step in range(2):
        optimizer.zero_grad()
        if step == 1:
            model[-1].weight.register_hook(lambda _: 1 // 0)
        model(x).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    fails(*sys.argv[1:])

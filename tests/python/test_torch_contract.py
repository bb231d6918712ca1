# SPDX-License-Identifier: Apache-2.0
"""What users of optimizers do: the rows of bindings/python/contract.md, with PyTorch's own optimizers beside.

Jobs of one trainer, but for Agreement, whose two trainers are tests/python/torch_contract_member.py."""

import copy
import functools
import gc
import io
import os
import pickle
import re
import sys
import tempfile
import types
import warnings

import support

try:
    import torch
except ImportError:
    torch = None
else:
    import numpy as np
    import torch_contract_member
    import weft
    import weft.torch
    from torch.optim import lr_scheduler

    torch.set_num_threads(1)  # of support.Child

HERE = os.path.dirname(os.path.abspath(__file__))


def network(seed=3):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def one_step(model, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    dtype = next(model.parameters()).dtype
    x, y = torch.randn(8, 6, generator=generator).to(dtype), torch.randn(8, 2, generator=generator).to(dtype)
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    optimizer.step()


def two_groups(kind, **settings):
    """Of network(): the first layer, and the others."""

    def make(model):
        first, second, *others = model.parameters()
        return kind([{"params": [first, second]}, {"params": others}], **settings)

    return make


class Contract(support.Case):
    def setUp(self):
        self.begin()

    def begin(self, **settings):
        weft.close()
        weft.init(pservers=self.pserver(), **settings)
        self.addCleanup(weft.close)  # before the pserver is ended

    def distributed(self, make, model=None, on="pservers", start=True):
        model = network() if model is None else model
        optimizer = weft.torch.DistributedOptimizer(make(model), model.named_parameters(), on=on)
        if start:
            weft.torch.broadcast_parameters(model.state_dict())
        return model, optimizer

    def near(self, model, plain, off=2e-6):
        for (name, one), other in zip(model.named_parameters(), plain.parameters()):
            self.assertLess((one.detach() - other.detach()).abs().max().item(), off, name)

    def beside_pytorch(self, make, change, steps=6, off=2e-6):
        """`change` gets the optimizer and the number of the step before each."""
        plain = network()
        model, optimizer = self.distributed(make)
        its = make(plain)
        for step in range(steps):
            for net, steps_of in ((model, optimizer), (plain, its)):
                change(steps_of, step)
                one_step(net, steps_of, step)
            self.near(model, plain, off)

    def test_schedulers_of_pytorch_work_on_the_pservers(self):
        sgd = dict(lr=0.1, momentum=0.9)
        makers = [
            two_groups(torch.optim.SGD, lr=0.1),
            two_groups(torch.optim.SGD, **sgd),
            two_groups(torch.optim.SGD, nesterov=True, **sgd),
            two_groups(torch.optim.Adam, lr=0.01),
        ]
        schedules = [
            lambda o: lr_scheduler.StepLR(o, 2, gamma=0.5),
            lambda o: lr_scheduler.OneCycleLR(o, 0.2, total_steps=8),  # the momentum too
            lambda o: lr_scheduler.LambdaLR(o, [lambda n: 0.9**n, lambda n: float(n != 2)]),  # a rate of 0, too
            lambda o: lr_scheduler.OneCycleLR(o, 0.02, total_steps=8),  # beta1 too
        ]
        for make, schedule in zip(makers, schedules):
            self.begin()
            plain, model = network(), network()
            its, optimizer = make(plain), make(model)
            kept = [schedule(its), schedule(optimizer)]
            self.distributed(lambda _: optimizer, model)  # noqa: B023
            for step in range(6):
                for net, steps, each in ((plain, its, kept[0]), (model, optimizer, kept[1])):
                    one_step(net, steps, step)
                    each.step()
            self.assertEqual(weft.session().steps, 6)
            self.near(model, plain)
            weft.close()
            self.jobs_end_well()

    def test_a_scheduler_may_be_made_before_or_after_the_optimizer_is_wrapped(self):
        """Each finds the step that it counts, and nothing to warn of. The gradients of a step are pushed."""
        for on in ("workers", "pservers"):
            self.begin()
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), 0.5)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                schedulers = [lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]
                self.distributed(lambda _: optimizer, model, on)  # noqa: B023
                schedulers.append(lr_scheduler.StepLR(optimizer, 1, gamma=0.5))
                for _ in range(3):
                    optimizer.step()
                    for each in schedulers:
                        each.step()
            self.assertEqual(weft.session().steps, 3)
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.5**7)

    def test_a_step_that_was_replaced_before_is_refused_unless_a_scheduler_did_it(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        lr_scheduler.StepLR(optimizer, 1)
        optimizer.step = functools.wraps(optimizer.step)(lambda: None)  # with a scheduler's marks
        with self.assertRaisesRegex(weft.InvalidError, "SGD: its method step was replaced.* after weft.torch"):
            self.distributed(lambda _: optimizer, model)
        since_2_4 = types.FunctionType((lambda: None).__code__, vars(lr_scheduler))
        optimizer.step = since_2_4
        optimizer.step._wrapped_by_lr_sched = True
        self.distributed(lambda _: optimizer, model)
        one_step(model, optimizer, 0)
        self.assertEqual(weft.session().steps, 1)
        self.assertTrue(optimizer.step._wrapped_by_lr_sched and optimizer._opt_called)

    def test_a_frozen_parameter_that_learns_later_is_refused_by_name(self):
        for more in ({"on": "workers"}, {"on": "pservers"}, {"on": "pservers", "push_in_backward": True}):
            self.begin()
            model = network()
            first, odd = model[0].weight.requires_grad_(False), torch.nn.Parameter(torch.zeros(2))
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            weft.torch.DistributedOptimizer(optimizer, model.named_parameters(), **more)
            weft.torch.broadcast_parameters(model.state_dict())
            one_step(model, optimizer, 0)
            before = [parameter.detach().clone() for parameter in model.parameters()]
            first.requires_grad_(True)
            with self.assertRaisesRegex(weft.UnsupportedError, r"parameter 0\.weight requires a gradient, and did not"):
                one_step(model, optimizer, 1)
            first.requires_grad_(False).grad = None
            if more["on"] == "workers":  # the pservers look at groups themselves
                optimizer.param_groups[0]["params"].append(odd)
                with self.assertRaisesRegex(weft.UnsupportedError, r"parameter of shape \[2\] requires"):
                    optimizer.step()
                optimizer.param_groups[0]["params"].pop()
            for one, other in zip(model.parameters(), before):
                self.assertTrue(torch.equal(one, other))
            one_step(model, optimizer, 1)
            self.assertTrue(torch.equal(first, before[0]))
            self.assertFalse(torch.equal(model[0].bias, before[1]))
            weft.close()
            self.jobs_end_well()

    def test_a_model_may_be_used_when_its_job_has_ended(self):
        """Alone, and in another job; the optimizer of the job is over."""
        for on in ("workers", "pservers"):
            self.begin()
            plain, model = network(), network()
            make, its = two_groups(torch.optim.SGD, lr=0.1), two_groups(torch.optim.SGD, lr=0.1)(plain)
            optimizer = weft.torch.DistributedOptimizer(
                make(model), model.named_parameters(), on=on, push_in_backward=on == "pservers"
            )
            weft.torch.broadcast_parameters(model.state_dict())
            one_step(model, optimizer, 0)
            weft.close()
            self.jobs_end_well()
            with self.assertRaises(weft.ClosedError):
                one_step(model, optimizer, 1)
            one_step(model, make(model), 1)
            self.begin()
            _, other = self.distributed(make, model, on)
            one_step(model, other, 2)
            for step in range(3):
                one_step(plain, its, step)
            self.near(model, plain)
            weft.close()
            self.jobs_end_well()

    def test_any_number_of_a_parameter_group_may_change_on_the_pservers(self):
        rng = np.random.RandomState(4)
        sgd = [(rng.uniform(0, 0.2), rng.uniform(0, 0.9), rng.choice([0, 0.3]), rng.uniform(0, 0.1)) for _ in range(6)]
        adam = [(rng.uniform(0, 0.02), tuple(rng.uniform(0, 0.99, 2)), rng.uniform(1e-6, 1e-2), rng.uniform(0, 0.1)) for _ in range(6)]

        def change_sgd(optimizer, step):
            group = optimizer.param_groups[step % 2]
            group["lr"], group["momentum"], group["dampening"], group["weight_decay"] = sgd[step]
            group["nesterov"] = step >= 3 and sgd[step][2] == 0
            if step == 4:
                group["momentum"], group["nesterov"] = 0, False  # and the buffer stays

        def change_adam(optimizer, step):
            group = optimizer.param_groups[step % 2]
            group["lr"], group["betas"], group["eps"], group["weight_decay"] = adam[step]

        self.beside_pytorch(two_groups(torch.optim.SGD, lr=0.1, momentum=0.9), change_sgd)

        def begin_a_momentum(optimizer, step):
            if step == 0:
                optimizer.param_groups[1]["momentum"] = 0
            if step == 2:  # the first gradient of a momentum is not dampened
                optimizer.param_groups[1].update(momentum=0.5, dampening=0.75)

        self.begin()
        self.beside_pytorch(two_groups(torch.optim.SGD, lr=0.1, momentum=0.9), begin_a_momentum)
        for kind in (torch.optim.Adam, torch.optim.AdamW):
            self.begin()
            self.beside_pytorch(two_groups(kind, lr=0.01), change_adam, off=2e-5)

    def test_groups_may_differ_in_every_number_from_the_start(self):
        def sgd(model):
            first, *others = model.parameters()
            groups = [{"params": [first], "lr": 0.0}, {"params": others, "momentum": 0.5, "dampening": 0.25}]
            return torch.optim.SGD(groups, lr=0.1, momentum=0.9)

        def adam(model):
            first, *others = model.parameters()
            groups = [{"params": others, "betas": (0.5, 0.9), "eps": 1e-3}, {"params": [first], "weight_decay": 0.1}]
            return torch.optim.Adam(groups, lr=0.01)

        self.beside_pytorch(sgd, lambda *_: None)
        self.begin()
        self.beside_pytorch(adam, lambda *_: None)

    def test_a_change_that_the_pservers_cannot_make_is_refused_and_nothing_is_pushed(self):
        sgd, adam = two_groups(torch.optim.SGD, lr=0.1), two_groups(torch.optim.Adam, lr=0.01)
        asynchronous = two_groups(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True)
        changes = [
            (sgd, {}, "momentum", 0.9, r"momentum of parameter group 1 was 0 when .* and is 0\.9: .* keep no momentum"),
            (sgd, {}, "maximize", True, "SGD with maximize=True"),
            (adam, {}, "amsgrad", True, "Adam with amsgrad=True"),
            (adam, {}, "eps", -1.0, r"tensor 2\.bias|2\.weight: epsilon -1"),
            (adam, {}, "betas", (1.0, 0.9), "beta1 1"),
            (adam, {}, "params", [], "the optimizer had other parameters"),
            (asynchronous, {"dense_mode": "async"}, "lr", 0.01, "lr of parameter group 1 was 0.1 .* is 0.01.* async"),
        ]
        for make, settings, key, value, text in changes:
            with self.subTest(key=key, **settings):
                self.begin(**settings)
                model, optimizer = self.distributed(make)
                one_step(model, optimizer, 0)
                steps = weft.session().steps
                plain = network()
                its = make(plain)
                one_step(plain, its, 0)
                group, rate = optimizer.param_groups[1], optimizer.param_groups[1]["lr"]
                before, group[key] = group[key], value
                if key in ("eps", "betas"):
                    group["lr"] = 0.5  # which was right, and must not stay
                with self.assertRaisesRegex((weft.UnsupportedError, weft.InvalidError), text):
                    one_step(model, optimizer, 1)
                self.assertEqual(weft.session().steps, steps)
                group["lr"], group[key] = rate, before
                one_step(model, optimizer, 1)
                one_step(plain, its, 1)
                self.near(model, plain)
                weft.close()
                self.jobs_end_well()

    MAKERS = (
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
        (torch.optim.SGD, {"lr": 0.1}),
        (torch.optim.AdamW, {"lr": 0.01}),
    ) if torch is not None else ()  # fmt: skip

    def test_state_dict_has_the_pservers_state_in_pytorchs_form(self):
        for kind, settings in self.MAKERS:
            self.begin()
            plain = network()
            model, optimizer = self.distributed(two_groups(kind, **settings))
            its = two_groups(kind, **settings)(plain)
            self.assertEqual(optimizer.state_dict()["state"], {})  # as before the first step
            for step in range(3):
                one_step(model, optimizer, step)
                one_step(plain, its, step)
            kept, wanted = optimizer.state_dict(), its.state_dict()
            self.assertEqual(kept["param_groups"], wanted["param_groups"])
            self.assertEqual(list(kept["state"]), list(wanted["state"]))
            for number, state in wanted["state"].items():
                self.assertEqual(list(state), list(kept["state"][number]))
                for name, value in state.items():
                    got = kept["state"][number][name]
                    self.assertTrue(value is got or torch.allclose(value, got, rtol=1e-5, atol=1e-7), name)
            other = network()
            other.load_state_dict(model.state_dict())
            its = two_groups(kind, **settings)(other)
            its.load_state_dict(kept)
            for step in range(3, 6):
                one_step(model, optimizer, step)
                one_step(other, its, step)
            self.near(model, other)

    def test_load_state_dict_puts_state_to_the_pservers_before_the_start_and_later(self):
        for kind, settings in self.MAKERS:
            for late in (False, True):
                self.begin()
                plain = network()
                its = two_groups(kind, **settings)(plain)
                for step in range(3):
                    one_step(plain, its, step)
                its.param_groups[1]["lr"] *= 0.5
                kept = copy.deepcopy(its.state_dict())
                model, optimizer = self.distributed(two_groups(kind, **settings), start=late)
                if late:
                    one_step(model, optimizer, 7)
                    grads = [parameter.grad.clone() for parameter in model.parameters()]
                model.load_state_dict(plain.state_dict())
                optimizer.load_state_dict(kept)
                weft.torch.broadcast_parameters(model.state_dict())
                for grad, parameter in zip(grads if late else (), model.parameters()):
                    self.assertTrue(torch.equal(grad, parameter.grad))
                self.near(model, plain, 1e-30)
                for step in range(3, 6):
                    one_step(model, optimizer, step)
                    one_step(plain, its, step)
                self.near(model, plain)
                weft.close()
                self.jobs_end_well()

    def test_state_that_the_pservers_cannot_have_is_refused(self):
        kept = torch.optim.Adam(network().parameters(), amsgrad=True).state_dict()
        model, optimizer = self.distributed(lambda m: torch.optim.Adam(m.parameters(), 0.01))
        with self.assertRaisesRegex(weft.UnsupportedError, "Adam with amsgrad=True"):
            optimizer.load_state_dict(kept)
        self.begin(dense_mode="async")
        model, optimizer = self.distributed(lambda m: torch.optim.Adam(m.parameters(), 0.01))
        for call in (optimizer.state_dict, lambda: optimizer.load_state_dict(kept), lambda: pickle.dumps(optimizer)):
            with self.assertRaisesRegex(weft.UnsupportedError, "count the updates of each slice .* dense_mode async"):
                call()
        plain = network()
        its = torch.optim.Adam(plain.parameters(), 0.01)
        one_step(plain, its, 0)
        for start in (False, True):
            self.begin(schedule="poly", schedule_a=0.1, schedule_b=0.5)
            model, optimizer = self.distributed(lambda m: torch.optim.Adam(m.parameters(), 0.01), start=start)
            with self.assertRaisesRegex(weft.UnsupportedError, "load_state_dict: .* which the schedule 'poly' counts"):
                optimizer.load_state_dict(its.state_dict())
        self.begin()
        model, optimizer = self.distributed(lambda m: torch.optim.SGD(m.parameters(), 0.01))
        with self.assertRaisesRegex(weft.UnsupportedError, "it has a momentum"):
            optimizer.load_state_dict(torch.optim.SGD(network().parameters(), 0.01, momentum=0.9).state_dict())

    def test_values_of_a_model_may_be_set_in_the_middle_of_training(self):
        make = two_groups(torch.optim.Adam, lr=0.01)
        for on in ("pservers", "workers"):
            self.begin()
            plain = network()
            model, optimizer = self.distributed(make, on=on)
            its = make(plain)
            for step in range(5):
                if step == 2:
                    for net in (model, plain):
                        net.load_state_dict(network(8).state_dict())
                    if on == "pservers":
                        with self.assertRaisesRegex(weft.UnsupportedError, r"written to.*broadcast_parameters\("):
                            one_step(model, optimizer, step)
                    weft.torch.broadcast_parameters(model.state_dict())
                if step == 3 and on == "pservers":  # moved, too
                    model[0].weight.data = model[0].weight.data * 2
                    plain[0].weight.data.mul_(2)
                    weft.torch.broadcast_parameters(model.state_dict())
                one_step(model, optimizer, step)
                one_step(plain, its, step)
                self.near(model, plain)
                self.assertEqual(optimizer.state_dict()["state"][0]["step"].item(), step + 1)

    def test_a_parameter_that_is_clamped_keeps_it_unless_pytorch_did_not_count_that(self):
        """Through .data, where the next step of the pservers undoes it."""
        for on in ("workers", "pservers"):
            self.begin()
            model, optimizer = self.distributed(two_groups(torch.optim.SGD, lr=0.1), on=on)
            weight = model[0].weight
            before = weight.detach().clone()
            clamped = before.clamp(-0.1, 0.1)
            self.assertFalse(torch.equal(before, clamped))
            weight.data.clamp_(-0.1, 0.1)
            optimizer.step()  # with gradients that are zeros
            self.assertTrue(torch.equal(weight, clamped if on == "workers" else before))
            with torch.no_grad():
                weight.clamp_(-0.1, 0.1)
            if on == "pservers":
                with self.assertRaisesRegex(weft.UnsupportedError, r"parameter 0\.weight was written to"):
                    optimizer.step()
                weft.torch.broadcast_parameters(model.state_dict())
            optimizer.step()
            self.assertTrue(torch.equal(weight, clamped))

    def test_an_infinite_gradient_skips_the_step_under_a_scaler(self):
        """With one trainer; Agreement has two. A scaler speaks one of two languages."""
        for attributes in (False, True):
            self.begin()
            plain = network()
            model, optimizer = self.distributed(two_groups(torch.optim.SGD, lr=0.1, momentum=0.9))
            its = two_groups(torch.optim.SGD, lr=0.1, momentum=0.9)(plain)
            scalers = [torch_contract_member.Scaler(attributes) for _ in range(2)]
            for step in range(4):
                for net, steps, scaler in ((model, optimizer, scalers[0]), (plain, its, scalers[1])):
                    steps.zero_grad()
                    scaler.scale(torch_contract_member.loss(net, step)).backward()
                    if step == 1:
                        net[0].weight.grad[0, 0] = float("inf")
                    if step == 3:
                        scaler.unscale_(steps)
                    scaler.step(steps)
                    scaler.update()
                self.near(model, plain)
                self.assertEqual(scalers[0].factor, scalers[1].factor)
            self.assertEqual(scalers[0].factor, 256)
            self.assertEqual(weft.session().steps, 3)

    def test_a_scaler_is_refused_where_trainers_have_no_step_in_common(self):
        self.begin(dense_mode="async")
        model, optimizer = self.distributed(lambda m: torch.optim.SGD(m.parameters(), 0.1))
        scaler = torch_contract_member.Scaler(False)
        scaler.scale(torch_contract_member.loss(model, 0)).backward()
        with self.assertRaisesRegex(weft.UnsupportedError, "GradScaler: in dense_mode async"):
            scaler.step(optimizer)

    def test_a_closure_computes_the_gradients_of_the_step_on_the_pservers(self):
        plain = network()
        model, optimizer = self.distributed(lambda m: torch.optim.SGD(m.parameters(), 0.1))
        its = torch.optim.SGD(plain.parameters(), 0.1)
        for net, steps in ((model, optimizer), (plain, its)):

            def closure(net=net, steps=steps):
                steps.zero_grad()
                loss = torch_contract_member.loss(net, 0)
                loss.backward()
                return loss

            for _ in range(3):
                self.assertGreater(steps.step(closure).item(), 0)
        self.near(model, plain)

    def test_an_optimizer_that_needs_a_closure_is_refused_when_it_is_wrapped(self):
        for on in ("workers", "pservers"):
            model = network()
            with self.assertRaisesRegex(weft.UnsupportedError, "LBFGS: its step evaluates the loss itself"):
                weft.torch.DistributedOptimizer(torch.optim.LBFGS(model.parameters()), model.named_parameters(), on=on)

    def test_a_copy_of_the_optimizer_is_one_without_weft(self):
        for on in ("workers", "pservers"):
            self.begin()
            model, optimizer = self.distributed(lambda m: torch.optim.Adam(m.parameters(), 0.01), on=on)
            one_step(model, optimizer, 0)
            other, its = copy.deepcopy((model, optimizer))
            self.assertIs(type(its), torch.optim.Adam)
            file = io.BytesIO()
            torch.save((model, optimizer), file)
            file.seek(0)
            third, others = torch.load(file)
            for step in range(1, 4):
                for net, steps in ((model, optimizer), (other, its), (third, others)):
                    one_step(net, steps, step)
                self.near(other, model)
                self.near(third, model)
            self.assertEqual(copy.copy(optimizer).param_groups[0]["params"][0] is model[0].weight, True)

    def test_backward_through_a_graph_of_before_a_write_is_refused_as_by_pytorch(self):
        def passes(net, write):
            x = torch.ones(1, 6, requires_grad=True)
            loss = net(x).pow(2).sum()
            loss.backward(retain_graph=True)
            write()
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                loss.backward()

        plain = network()
        passes(plain, torch.optim.SGD(plain.parameters(), 0.1).step)
        for on in ("workers", "pservers"):
            self.begin()
            model, optimizer = self.distributed(lambda m: torch.optim.SGD(m.parameters(), 0.1), on=on)
            passes(model, optimizer.step)
            one_step(model, optimizer, 0)  # the job goes on
            passes(model, lambda: weft.torch.broadcast_parameters(model.state_dict()))  # noqa: B023
            one_step(model, optimizer, 1)

    def convolution(self):
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 4, 2))
        return net.to(memory_format=torch.channels_last)

    def test_parameters_in_channels_last_keep_their_layout(self):
        for on in ("workers", "pservers"):
            self.begin()
            plain = self.convolution()
            model, optimizer = self.distributed(
                lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.9), self.convolution(), on
            )
            its = torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9)
            for step in range(3):
                x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(step))
                for net, steps in ((model, optimizer), (plain, its)):
                    steps.zero_grad()
                    net(x.to(memory_format=torch.channels_last)).pow(2).sum().backward()
                    steps.step()
                self.near(model, plain)
            self.assertTrue(model[0].weight.is_contiguous(memory_format=torch.channels_last))
            self.assertFalse(model[0].weight.is_contiguous())
        overlapping = torch.nn.Parameter(torch.zeros(1, 3).expand(4, 3))
        self.begin()
        with self.assertRaisesRegex(weft.InvalidError, "parameter w: its memory has gaps or overlaps"):
            weft.torch.DistributedOptimizer(torch.optim.SGD([overlapping], 0.1), [("w", overlapping)])

    def test_the_hook_exchanges_parameters_in_channels_last(self):
        with tempfile.NamedTemporaryFile() as file:
            torch.distributed.init_process_group("gloo", init_method="file://" + file.name, rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            for views in (False, True):
                self.begin()
                model, plain = self.convolution(), self.convolution()
                state = weft.torch.HookState(model)
                whole = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=views)
                whole.register_comm_hook(state, weft.torch.push_pull_hook)
                for step in range(4):
                    x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(step))
                    for net, its in ((whole, model), (plain, plain)):
                        its.zero_grad()
                        net(x.to(memory_format=torch.channels_last)).pow(2).sum().backward()
                    for one, other in zip(model.parameters(), plain.parameters()):
                        self.assertTrue(torch.allclose(one.grad, other.grad, rtol=1e-5, atol=1e-6))

    def test_parameters_that_are_not_float32_work_at_the_workers(self):
        for dtype in (torch.float64, torch.bfloat16):
            self.begin()
            plain = network().to(dtype)
            model, optimizer = self.distributed(
                lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.9), network().to(dtype), "workers"
            )
            its = torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9)
            for step in range(3):
                one_step(model, optimizer, step)
                one_step(plain, its, step)
            for one, other in zip(model.parameters(), plain.parameters()):
                self.assertTrue(torch.equal(one, other))

    def turned(self, dtype):
        """network() with a weight whose columns lie one behind the other."""
        net = network().to(dtype)
        net[0].weight = torch.nn.Parameter(net[0].weight.detach().t().contiguous().t())
        return net

    def test_parameters_with_permuted_memory_work(self):
        for dtype, on in ((torch.float64, "workers"), (torch.float32, "workers"), (torch.float32, "pservers")):
            self.begin()
            plain = self.turned(dtype)
            model, optimizer = self.distributed(lambda m: torch.optim.SGD(m.parameters(), 0.1), self.turned(dtype), on)
            its = torch.optim.SGD(plain.parameters(), 0.1)
            for step in range(3):
                one_step(model, optimizer, step)
                one_step(plain, its, step)
            self.near(model, plain)
            self.assertEqual(model[0].weight.stride(), (1, 5))

    def test_parameters_that_are_not_float32_are_refused_on_the_pservers(self):
        for dtype in (torch.float64, torch.bfloat16):
            self.begin()
            with self.assertRaisesRegex(weft.InvalidError, r"parameter 0\.weight: it is %s .*on='workers'" % dtype):
                self.distributed(lambda m: torch.optim.SGD(m.parameters(), 0.1), network().to(dtype))

    def test_empty_parameters_and_any_name_are_accepted(self):
        class Odd(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.none = torch.nn.Parameter(torch.zeros(0, 3))
                self.inner = network()

            def forward(self, x):
                return self.inner(x)

        for on in ("workers", "pservers"):
            self.begin()
            model, plain = Odd(), Odd()
            names = [("a b/ü%%20 %d" % i, p) for i, p in enumerate(model.parameters())]
            optimizer = weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), names, on=on)
            weft.torch.broadcast_parameters(model.state_dict())
            its = torch.optim.SGD(plain.parameters(), 0.1)
            one_step(model, optimizer, 0)
            one_step(plain, its, 0)
            self.near(model.inner, plain.inner)


class Memory(support.Case):
    """Of weft, in PyTorch's hands: as long as somebody has it, but for who is left when the process ends."""

    def test_a_process_whose_backward_has_failed_ends(self):
        program = os.path.join(HERE, "torch_contract_member.py")
        started = [
            self.run_program(*support.python(program, self.pserver(sparse=1), on))
            for on in ("workers", "pservers", "ddp")
        ]
        for member in started:
            status, said = member.end()
            self.assertEqual(status, 1, said)
            self.assertIn("ZeroDivisionError", said)

    def trained(self, on, early):
        """A model of a job that is over, and where its arrays lie."""
        weft.init(pservers=self.pserver())
        self.addCleanup(weft.close)
        model = network()
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters(), on=on, push_in_backward=early
        )
        weft.torch.broadcast_parameters(model.state_dict())
        one_step(model, optimizer, 0)
        places = [array.data_ptr() for slot in optimizer._weft.slots for array in (slot.param, slot.grad)]
        weft.close()
        self.jobs_end_well()
        return model, places

    def test_the_memory_of_a_job_goes_with_its_model(self):
        for on, early in (("workers", False), ("pservers", False), ("pservers", True)):
            model, places = self.trained(on, early)
            weft.init()  # another job of the same process
            gc.collect()
            self.assertTrue(all(support.mapped(p.grad.data_ptr()) for p in model.parameters()), on)
            del model
            gc.collect()
            self.assertEqual([support.mapped(place) for place in places], [False] * 8, on)
            weft.close()


class Agreement(support.Case):
    """Two trainers: what they do alike, and what happens when they differ."""

    def both(self, mode):
        where = self.pserver(trainers=2, count=2)
        folder = self.own_folder()
        files = [os.path.join(folder, "trainer_%d" % number) for number in range(2)]
        started = [
            self.run_child(torch_contract_member.main, mode, where, number, file)
            for number, file in enumerate(files)
        ]
        for member in started:
            self.ends_well(member)
        return [torch.load(file) for file in files]

    def test_gradients_that_are_not_float32_are_means_to_the_bit(self):
        found = self.both("typed")
        own = [torch_contract_member.typed_gradients(number) for number in range(2)]
        self.jobs_end_well()
        for i, dtype in enumerate(torch_contract_member.DTYPES):
            mean = (own[0][i] + own[1][i]) / 2
            self.assertEqual(mean.dtype, dtype)
            self.assertFalse(torch.equal(mean, own[0][i]))
            for kept in found:
                gradients, values = kept[i]
                self.assertTrue(torch.equal(gradients, mean), dtype)
                self.assertTrue(torch.equal(values, torch.full_like(values, 5)), dtype)  # trainer 0's, set later

    def test_buffers_of_any_type_are_trainer_0s_to_the_bit(self):
        found = self.both("buffers")
        self.jobs_end_well()
        for when, first in enumerate((0, 10)):
            wanted, others = torch_contract_member.buffers(first), torch_contract_member.buffers(first + 1)
            for name, value in wanted.items():
                for kept in found:
                    self.assertTrue(torch.equal(kept[when][name], torch_contract_member.bits(value)), name)
                self.assertEqual(torch.equal(value, others[name]), name == "nothing", name)

    def test_two_trainers_skip_and_change_alike_and_one_that_differs_is_named(self):
        zero, one = self.both("scaled")
        self.assertEqual(zero["factors"], [512, 512, 256, 256])  # trainer 1's gradient of step 1 was infinite
        self.assertEqual(one["factors"], zero["factors"])
        for name, value in zero["model"].items():
            self.assertTrue(torch.equal(value, one["model"][name]), name)
        wanted = torch_contract_member.alone()
        for name, value in wanted.items():
            self.assertLess((zero["model"][name] - value).abs().max().item(), 2e-6, name)
        text = r"step \d+: trainer \d changes learning_rate of 0\.weight to 0\.\d+, trainer \d to 0\.\d+;"
        for found in (zero, one):
            self.assertRegex(found["differs"], text)


class Page(support.unittest.TestCase):
    """bindings/python/contract.md."""

    def test_each_row_of_the_page_has_its_test_and_each_test_its_row(self):
        with open(os.path.join(support.PACKAGE, "contract.md"), encoding="utf-8") as file:
            rows = [line for line in file if line.startswith("| ") and not line.startswith(("| what", "| ---", "| |"))]
        defined = {}
        for name in os.listdir(HERE):
            if name.startswith("test_"):
                with open(os.path.join(HERE, name), encoding="utf-8") as file:
                    defined[name] = set(re.findall(r"^    def (test_\w+)\(self\)", file.read(), re.MULTILINE))
        self.assertGreater(len(rows), 40)
        named = set()
        for row in rows:
            tests = re.findall(r"`(test_\w+)`", row)
            self.assertNotEqual(tests, [], row)
            for test in tests:
                self.assertTrue(any(test in names for names in defined.values()), "no test %s: %s" % (test, row))
            named.update(tests)
        own = defined["test_torch_contract.py"] - {self._testMethodName}
        self.assertEqual(own - named, set(), "tests without a row")


if __name__ == "__main__":
    if torch is None:
        print("SKIPPED: PyTorch is not there: apt-get install python3-torch")
        sys.exit(77)
    support.main()

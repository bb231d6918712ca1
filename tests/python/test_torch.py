# SPDX-License-Identifier: Apache-2.0
"""weft.torch: its rules, and its arithmetic beside the optimizers' own, in jobs of one trainer."""

import os
import select
import sys
import tempfile
from unittest import mock

import support

try:
    import torch
except ImportError:
    torch = None
else:
    import docstrings
    import numpy as np
    import torch_gradients
    import torch_member
    import weft
    import weft.torch

    torch.set_num_threads(1)  # of support.Child


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def some_data(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(8, 6, generator=generator), torch.randn(8, 2, generator=generator)


def train(model, optimizer, steps=4):
    for step in range(steps):
        x, y = some_data(step)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


class Here(support.Case):
    """A job of one trainer: it has to come to what the optimizer alone comes to."""

    def setUp(self):
        weft.init(pservers=self.pserver())
        self.addCleanup(weft.close)

    def against_the_optimizer_alone(self, on, make, tolerance, **settings):
        plain, model = network(), network()
        wanted = train(plain, make(plain.parameters()))
        optimizer = weft.torch.DistributedOptimizer(
            make(model.parameters()), model.named_parameters(), on=on, **settings
        )
        weft.torch.broadcast_parameters(model.state_dict())
        got = train(model, optimizer)
        self.assertLess((got - wanted).abs().max().item(), tolerance)
        self.assertEqual(weft.stats()["copied_bytes"], 0)
        self.assertGreater(weft.stats()["sent_bytes"], 4 * 4 * got.numel())
        weft.close()
        self.jobs_end_well()
        self.assertTrue(torch.equal(got, torch.cat([p.detach().flatten() for p in model.parameters()])))

    def test_sgd_at_the_workers(self):
        self.against_the_optimizer_alone("workers", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), 1e-6)

    def test_adagrad_at_the_workers(self):
        self.against_the_optimizer_alone("workers", lambda p: torch.optim.Adagrad(p, 0.1), 1e-5)

    def test_sgd_with_momentum_on_the_pservers(self):
        self.against_the_optimizer_alone(
            "pservers", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01), 1e-6
        )

    def test_nesterov_on_the_pservers(self):
        self.against_the_optimizer_alone(
            "pservers", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True), 1e-6
        )

    def test_dampening_that_is_the_momentum_on_the_pservers(self):
        self.against_the_optimizer_alone(
            "pservers", lambda p: torch.optim.SGD(p, 0.1, momentum=0.5, dampening=0.5), 1e-6
        )

    def test_adam_on_the_pservers(self):
        self.against_the_optimizer_alone("pservers", lambda p: torch.optim.Adam(p, 0.01), 1e-5)

    def test_adamw_on_the_pservers(self):
        self.against_the_optimizer_alone(
            "pservers", lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1), 1e-5
        )

    def test_gradients_that_are_pushed_in_backward_make_the_same_steps(self):
        def make(parameters):
            return torch.optim.SGD(parameters, 0.1, momentum=0.9)

        self.against_the_optimizer_alone("pservers", make, 1e-6, push_in_backward=True)

    def in_backward(self, model, optimizer, **settings):
        made = weft.torch.DistributedOptimizer(
            optimizer, model.named_parameters(), on="pservers", push_in_backward=True, **settings
        )
        weft.torch.broadcast_parameters(model.state_dict())
        return made

    def test_with_push_in_backward_all_gradients_are_pushed_when_backward_returns(self):
        model = network()
        optimizer = self.in_backward(model, torch.optim.SGD(model.parameters(), 0.1))
        session = weft.session()
        with mock.patch.object(session, "push", wraps=session.push) as push:
            self.backward(model)
            self.assertEqual(push.call_count, len(list(model.parameters())))
            optimizer.step()
            self.assertEqual(push.call_count, len(list(model.parameters())))

    def test_with_push_in_backward_passes_are_added_up_and_the_rest_is_zeros(self):
        model, plain = network(), network()
        optimizer = self.in_backward(model, torch.optim.SGD(model.parameters(), 0.1), backward_passes_per_step=2)
        its = torch.optim.SGD(plain.parameters(), 0.1)
        for net, one in ((model, optimizer), (plain, its)):
            for step in range(3):
                one.zero_grad()
                for seed in range(2):
                    self.backward(net, 2 * step + seed)
                one.step()
            one.zero_grad()
            net[2].bias.sum().backward()  # one pass: none of this is pushed before step
            one.step()
        for one, other in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.allclose(one, other, atol=1e-6))

    def test_with_push_in_backward_a_group_has_the_numbers_of_before_backward(self):
        model, plain = network(), network()
        optimizer = self.in_backward(model, torch.optim.SGD(model.parameters(), 0.1))
        its = torch.optim.SGD(plain.parameters(), 0.1)
        for net, one in ((model, optimizer), (plain, its)):
            for rate in (0.1, 0.01):
                one.param_groups[0]["lr"] = rate
                one.zero_grad()
                self.backward(net)
                one.step()
        for one, other in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.allclose(one, other, atol=1e-6))
        self.backward(model)
        optimizer.param_groups[0]["lr"] = 0.5
        with self.assertRaisesRegex(weft.InvalidError, "changed between backward and step"):
            optimizer.step()

    def test_with_push_in_backward_what_comes_too_late_is_refused_by_name(self):
        def clips(model, optimizer):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optimizer.step()

        def scales(model, optimizer):
            optimizer.found_inf = torch.zeros(1)
            optimizer.step()

        def passes_again(model, optimizer):
            self.backward(model)

        for act, said in (
            (clips, "tensor 0.weight: its gradient was changed .* leave push_in_backward out"),
            (scales, "GradScaler: .* leave push_in_backward out"),
            (passes_again, "tensor .* is pushed already"),
        ):
            with self.subTest(said=said):
                weft.close()
                weft.init(pservers=self.pserver())
                model = network()
                optimizer = self.in_backward(model, torch.optim.SGD(model.parameters(), 0.1))
                self.backward(model)
                with self.assertRaisesRegex(weft.InvalidError, "call step first"):
                    optimizer.zero_grad()
                with self.assertRaisesRegex(weft.InvalidError, said):
                    act(model, optimizer)
                with self.assertRaisesRegex(weft.Error, said.partition(" ")[0]):
                    weft.step(1)

    def test_a_written_parameter_is_found_before_anything_is_pushed_in_backward(self):
        model = network()
        optimizer = self.in_backward(model, torch.optim.SGD(model.parameters(), 0.1))
        with torch.no_grad():
            model[0].bias.add_(1)
        with self.assertRaisesRegex(weft.UnsupportedError, "0.bias was written to"):
            self.backward(model)
        weft.torch.broadcast_parameters(model.state_dict())
        optimizer.zero_grad()
        self.backward(model)
        with torch.no_grad():
            model[0].bias.add_(1)  # what comes back may be there already, or not yet
        optimizer.step()
        optimizer.zero_grad()
        with self.assertRaisesRegex(weft.UnsupportedError, "0.bias was written to"):
            self.backward(model)

    def test_push_in_backward_is_refused_where_it_means_nothing(self):
        model = network()
        for on in ("workers", "ddp"):
            with self.assertRaisesRegex(weft.InvalidError, "push_in_backward"):
                weft.torch.DistributedOptimizer(
                    torch.optim.SGD(model.parameters(), 0.1), model.named_parameters(), on=on, push_in_backward=True
                )

    def test_optimizers_on_the_pservers_have_torchs_formulas(self):
        """Thirty steps with gradients of all sizes: what is left is the rounding of additions that torch
        fuses with multiplications. An epsilon in another place is 1e-3 off, and 3e-3 with eps=1e-3."""
        gradients = np.random.RandomState(5).standard_normal((30, 2000)) * np.logspace(-6, 1, 2000)
        first = np.random.RandomState(6).standard_normal(2000).astype(np.float32)
        makers = []
        for decay in (0, 0.1):
            for rest in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "dampening": 0.9}):
                makers.append((torch.optim.SGD, dict(rest, lr=0.01, weight_decay=decay)))
            for kind in (torch.optim.Adam, torch.optim.AdamW):
                for eps in (1e-8, 1e-3):
                    makers.append((kind, {"lr": 0.001, "eps": eps, "weight_decay": decay}))
        for kind, settings in makers:
            with self.subTest(kind=kind.__name__, **settings):
                found = []
                for distributed in (False, True):
                    w = torch.nn.Parameter(torch.from_numpy(first.copy()))
                    optimizer = kind([w], **settings)
                    if distributed:
                        weft.close()
                        weft.init(pservers=self.pserver())
                        optimizer = weft.torch.DistributedOptimizer(optimizer, [("w", w)], on="pservers")
                        weft.torch.broadcast_parameters({"w": w.data})
                    for gradient in torch.from_numpy(gradients.astype(np.float32)):
                        w.grad = gradient.clone()
                        optimizer.step()
                    found.append(w.detach().numpy().copy())
                weft.close()
                alone, got = found
                self.assertGreater(np.abs(got - first).max(), 0.01)
                self.assertLess((np.abs(got - alone) / np.maximum(np.abs(alone), 1)).max(), 1e-6)

    def test_parameter_groups_keep_their_rates_on_the_pservers(self):
        def make(parameters):
            first, *others = parameters
            return torch.optim.SGD([{"params": [first], "lr": 0.02}, {"params": others}], lr=0.1)

        self.against_the_optimizer_alone("pservers", make, 1e-6)

    def test_a_rate_of_zero_moves_nothing_on_the_pservers(self):
        for kind in (torch.optim.SGD, torch.optim.AdamW):
            model = network()
            before = [parameter.detach().clone() for parameter in model.parameters()]
            optimizer = weft.torch.DistributedOptimizer(
                kind(model.parameters(), lr=0.0, weight_decay=0.1), model.named_parameters(), on="pservers"
            )
            weft.torch.broadcast_parameters(model.state_dict())
            train(model, optimizer)
            for one, other in zip(model.parameters(), before):
                self.assertTrue(torch.equal(one, other))
            weft.close()
            weft.init(pservers=self.pserver())

    def test_gradients_of_several_backward_passes_are_added_up(self):
        model, plain = network(), network()
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters(), backward_passes_per_step=2
        )
        weft.torch.broadcast_parameters(model.state_dict())
        for net, its in ((model, optimizer), (plain, torch.optim.SGD(plain.parameters(), 0.1))):
            its.zero_grad()
            for seed in range(2):
                x, y = some_data(seed)
                torch.nn.functional.mse_loss(net(x), y).backward()
            its.step()
        for one, other in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.allclose(one, other, atol=1e-6))

    def at_the_workers(self, model, **settings):
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters(), **settings
        )
        weft.torch.broadcast_parameters(model.state_dict())
        return optimizer

    @staticmethod
    def backward(model, seed=0, scale=1.0):
        x, y = some_data(seed)
        (torch.nn.functional.mse_loss(model(x), y) * scale).backward()

    def same_parameters(self, model, plain):
        for one, other in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(one, other))

    def test_a_step_before_broadcast_parameters_is_refused(self):
        model = network()
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters()
        )
        with self.assertRaisesRegex(weft.InvalidError, "broadcast_parameters"):
            optimizer.step()
        weft.abort("the test is over")

    def test_backward_passes_add_to_the_means_as_under_ddp(self):
        model, plain = network(), network()
        optimizer, its = self.at_the_workers(model), torch.optim.SGD(plain.parameters(), 0.1)
        for net in (model, plain):
            for seed in range(3):
                self.backward(net, seed)
        optimizer.step()
        its.step()
        self.same_parameters(model, plain)

    def test_gradients_that_are_changed_after_backward_are_those_of_the_step(self):
        model, plain = network(), network()
        optimizer, its = self.at_the_workers(model), torch.optim.SGD(plain.parameters(), 0.1)

        def unscaled(grad):  # in place, as GradScaler does it
            grad.div_(1024)

        def clamped(grad):  # past the versions of tensors
            grad.data.clamp_(-0.01, 0.01)

        for change in (unscaled, clamped, lambda grad: grad.zero_()):
            for net, steps in ((model, optimizer), (plain, its)):
                steps.zero_grad()
                self.backward(net, scale=1024.0)
                for parameter in net.parameters():
                    change(parameter.grad)
                steps.step()
            self.same_parameters(model, plain)

    def test_a_gradient_that_is_replaced_or_removed_is_that_of_the_step(self):
        model, plain = network(), network()
        optimizer, its = self.at_the_workers(model), torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9)
        optimizer.param_groups[0]["momentum"] = 0.9
        for step in range(3):
            for net, steps in ((model, optimizer), (plain, its)):
                steps.zero_grad()
                self.backward(net, step)
                first, second = list(net.parameters())[:2]
                first.grad = first.grad * 0.5
                if step == 1:
                    second.grad = None  # no decay and no momentum for it in this step
                steps.step()
        self.same_parameters(model, plain)

    def test_gradients_may_be_replaced_by_views(self):
        """As of one vector that all of them were put into; zero_grad cannot detach these."""
        model, plain = network(), network()
        optimizer, its = self.at_the_workers(model), torch.optim.SGD(plain.parameters(), 0.1)
        for step in range(3):
            for net, steps in ((model, optimizer), (plain, its)):
                steps.zero_grad()
                self.backward(net, step)
                parameters = list(net.parameters())
                flat = torch.cat([parameter.grad.flatten() for parameter in parameters]) * 0.5
                for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters])):
                    parameter.grad = part.view_as(parameter)
                steps.step()
            self.same_parameters(model, plain)

    def test_a_step_may_be_left_out_after_backward(self):
        model, plain = network(), network()
        optimizer, its = self.at_the_workers(model), torch.optim.SGD(plain.parameters(), 0.1)
        for net, steps in ((model, optimizer), (plain, its)):
            for seed in range(4):
                if net is plain or seed % 2 == 0:
                    steps.zero_grad()
                else:
                    net.zero_grad(set_to_none=True)  # the module's own
                self.backward(net, seed)
                if seed != 1:  # what a GradScaler does that has found an infinite one
                    steps.step()
        self.same_parameters(model, plain)

    def test_a_closure_computes_the_gradients_of_the_step(self):
        model, plain = network(), network()
        optimizer, its = self.at_the_workers(model), torch.optim.SGD(plain.parameters(), 0.1)
        for net, steps in ((model, optimizer), (plain, its)):

            def closure(net=net, steps=steps):
                steps.zero_grad()
                loss = torch.nn.functional.mse_loss(net(some_data(0)[0]), some_data(0)[1])
                loss.backward()
                return loss

            for _ in range(3):
                self.assertGreater(steps.step(closure).item(), 0)
        self.same_parameters(model, plain)

    def with_an_unused_parameter(self):
        """Backward brings no gradient for its last layer."""
        model = torch.nn.ModuleList([network(), torch.nn.Linear(2, 2)])
        optimizer = self.at_the_workers(model)
        self.backward(model[0])
        return model, optimizer

    def test_who_changes_a_gradient_that_is_pushed_is_told_and_so_are_the_others(self):
        def replace(model):
            model[0][0].weight.grad = model[0][0].weight.grad.clone()

        changes = {
            "clipped": lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3),
            "changed past its version": lambda model: model[0][0].weight.grad.data.clamp_(-1e-3, 1e-3),
            "replaced": replace,
            "removed": lambda model: model.zero_grad(set_to_none=True),
            "added to": lambda model: self.backward(model[0], 1),
        }
        for name, change in changes.items():
            with self.subTest(name):
                model, optimizer = self.with_an_unused_parameter()
                remedy = "set backward_passes_per_step" if name == "added to" else r"optimizer\.synchronize\(\) first"
                with self.assertRaisesRegex(weft.InvalidError, r"tensor 0\.\d\.\w+.*" + remedy):
                    change(model)
                    optimizer.step()
                with self.assertRaisesRegex(weft.ClosedError, "was aborted: tensor 0"):
                    weft.barrier()
                status, said = self.pservers[0].end()
                self.assertNotEqual(status, 0)
                self.assertRegex(said, r"trainer 0: tensor 0\.\d\.\w+")
            weft.close()
            weft.init(pservers=self.pserver())

    def test_after_synchronize_gradients_are_the_callers(self):
        model, optimizer = self.with_an_unused_parameter()
        with self.assertRaisesRegex(weft.InvalidError, r"zero_grad between .* call optimizer\.synchronize"):
            optimizer.zero_grad()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        optimizer.step()
        moved = torch.cat([(old - new).flatten() for old, new in zip(before, model.parameters())]).norm().item()
        self.assertAlmostEqual(moved, 0.1 * 1e-3, delta=1e-6)
        self.assertTrue(torch.equal(before[-1], model[1].bias))
        optimizer.zero_grad()
        self.backward(model[0])
        optimizer.step()  # untouched gradients need no synchronize

    def test_gradients_that_somebody_replaced_are_copied_and_counted(self):
        model = network()
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters()
        )
        weft.torch.broadcast_parameters(model.state_dict())
        for parameter in model.parameters():
            parameter.grad = None
        train(model, optimizer, 1)
        for parameter in model.parameters():
            parameter.grad = None
        x, y = some_data(0)
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        count = sum(p.numel() for p in model.parameters())
        self.assertEqual(weft.stats()["copied_bytes"], 2 * 4 * count)

    def test_what_cannot_be_is_refused_with_its_name(self):
        model = network().double()
        with self.assertRaisesRegex(weft.InvalidError, r"parameter 0\.weight: it is torch\.float64"):
            weft.torch.HookState(model)
        model = network()
        with self.assertRaisesRegex(weft.UnsupportedError, "RMSprop"):
            weft.torch.DistributedOptimizer(
                torch.optim.RMSprop(model.parameters()), model.named_parameters(), on="pservers"
            )
        with self.assertRaisesRegex(weft.InvalidError, "make a weft.torch"):
            weft.torch.broadcast_parameters(model.state_dict())
        first = list(model.named_parameters())[:1]
        with self.assertRaisesRegex(weft.InvalidError, "4 parameters, 1 with names"):
            weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), first)
        with self.assertRaisesRegex(weft.InvalidError, "on='ddp': weft has only the rows"):
            weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), (), on="ddp")
        last = torch.nn.ParameterList([*model.parameters(), torch.nn.Parameter(torch.zeros(2, 2).double())])
        with self.assertRaisesRegex(weft.InvalidError, "parameter 4: it is torch.float64"):
            optimizer = torch.optim.Adam(last.parameters(), 0.3)
            weft.torch.DistributedOptimizer(optimizer, last.named_parameters(), on="pservers")
        self.against_the_optimizer_alone("pservers", lambda p: torch.optim.SGD(p, 0.1), 1e-6)

    def test_the_pservers_optimizer_has_no_part_in_means_at_the_workers(self):
        settings = [("schedule", "poly"), ("l1", 0.001), ("skip_nonfinite", 1), ("optimizer", "adam")]
        settings += [("dense_mode", "async"), ("average_window", 0.5), ("clip", 1e-3), ("decay", 0.5)]
        weft.close()
        for name, value in settings:
            plain, model = network(), network()
            weft.init(pservers=self.pserver(), **{name: value})
            wanted = train(plain, torch.optim.SGD(plain.parameters(), 0.1))
            self.assertTrue(torch.equal(train(model, self.at_the_workers(model)), wanted), name)
            weft.close()
            self.jobs_end_well()

    def test_settings_that_make_no_means_at_the_workers_are_refused(self):
        model = network()
        makes = (
            lambda: weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), model.named_parameters()),
            lambda: weft.torch.HookState(model),
        )
        settings = {"dense_mode": ("local", "elastic"), "clip_norm": ("1",), "dense_wire": ("bf16", "f16")}
        for name, value in [(name, value) for name, values in settings.items() for value in values]:
            local = {"local_steps": 2} if value in ("local", "elastic") else {}
            for given in ({name: value}, {}):
                said = {} if given else {"WEFT_" + name.upper(): value}
                for make in makes:
                    weft.close()
                    with mock.patch.dict(os.environ, said):
                        weft.init(**given, **local)
                        with self.assertRaisesRegex(weft.InvalidError, r"(?i)tensor \S+: is_reduced: .*" + name[:5]):
                            make()

    def with_a_frozen_parameter(self, on):
        plain, model = network(), network()
        for net in (plain, model):
            net[0].weight.requires_grad_(False)
        frozen = model[0].weight.clone()
        wanted = train(plain, torch.optim.SGD([p for p in plain.parameters() if p.requires_grad], 0.1))
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters(), on=on
        )
        weft.torch.broadcast_parameters(model.state_dict())
        got = train(model, optimizer)
        self.assertLess((got - wanted).abs().max().item(), 1e-6)
        self.assertTrue(torch.equal(model[0].weight, frozen))

    def test_parameters_without_a_gradient_stay_as_they_are(self):
        self.with_a_frozen_parameter("workers")
        weft.close()
        weft.init(pservers=self.pserver())
        self.with_a_frozen_parameter("pservers")
        weft.close()
        self.jobs_end_well()

    def test_state_at_the_workers_is_the_optimizers_own(self):
        model = network()
        its = torch.optim.Adam(model.parameters(), 0.01)
        optimizer = weft.torch.DistributedOptimizer(its, model.named_parameters())
        weft.torch.broadcast_parameters(model.state_dict())
        train(model, optimizer, 2)
        other = network()
        other.load_state_dict(model.state_dict())
        its = torch.optim.Adam(other.parameters(), 0.01)
        its.load_state_dict(optimizer.state_dict())
        self.assertTrue(torch.equal(train(model, optimizer, 2), train(other, its, 2)))
        optimizer.load_state_dict(its.state_dict())

    def test_a_group_that_is_added_is_refused(self):
        for on in ("workers", "pservers"):
            model = network()
            optimizer = weft.torch.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), 0.1), model.named_parameters(), on=on
            )
            with self.assertRaisesRegex(weft.UnsupportedError, "add_param_group: the parameters of a job are fixed"):
                optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})
            weft.close()
            weft.init()

    def test_schedulers_work_at_the_workers(self):
        model = network()
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters()
        )
        weft.torch.broadcast_parameters(model.state_dict())
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        train(model, optimizer, 1)
        schedule.step()
        self.assertEqual(optimizer.param_groups[0]["lr"], 0.05)

    @staticmethod
    def small_buckets():
        """The first one of 8 bytes: else it is of a megabyte, whatever bucket_cap_mb is."""
        return mock.patch.object(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 8)

    @staticmethod
    def hook(whole, state):
        """weft's; the sizes of the buckets that it is given."""
        sizes = []

        def noted(state, bucket):
            sizes.append(bucket.buffer().numel())
            return weft.torch.push_pull_hook(state, bucket)

        noted.__annotations__ = weft.torch.push_pull_hook.__annotations__
        whole.register_comm_hook(state, noted)
        return sizes

    def under_ddp(self, views):
        """Four steps with one bucket, and two from the second step on: the gradients are those of
        the model alone. How often each value was copied in each step."""
        model, plain = network(), network()
        with mock.patch.object(weft.torch._hook, "_PIECE", 16), self.small_buckets():
            state = weft.torch.HookState(model)
            whole = torch.nn.parallel.DistributedDataParallel(
                model, bucket_cap_mb=1e-4, gradient_as_bucket_view=views
            )
            buckets = self.hook(whole, state)
            copied = [weft.stats()["copied_bytes"]]
            for step in range(4):
                for net, its in ((whole, model), (plain, plain)):
                    its.zero_grad(set_to_none=step % 2 == 1)
                    x, y = some_data(step)
                    torch.nn.functional.mse_loss(net(x), y).backward()
                for one, other in zip(model.parameters(), plain.parameters()):
                    self.assertTrue(torch.allclose(one.grad, other.grad, atol=1e-6), (one.grad, other.grad))
                copied.append(weft.stats()["copied_bytes"])
        self.assertEqual(buckets, [47, 2, 45, 2, 45, 2, 45])
        count = sum(p.numel() for p in model.parameters())
        return [(after - before) / (4 * count) for before, after in zip(copied, copied[1:])]

    def test_the_hook_gives_means_to_buckets_of_either_kind(self):
        with tempfile.NamedTemporaryFile() as file:
            torch.distributed.init_process_group("gloo", init_method="file://" + file.name, rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            self.assertEqual(self.under_ddp(views=False), [1, 1, 1, 1])
            weft.close()
            weft.init(pservers=self.pserver())
            # In the first step, and in the second, which has other buckets.
            self.assertEqual(self.under_ddp(views=True), [1, 1, 0, 0])
            weft.close()
            self.jobs_end_well()

    def without_some_gradients(self, views):
        """A layer is not used in each step: its gradient is that of before, or none."""

        def loss(net, step):
            x, y = some_data(step)
            return torch.nn.functional.mse_loss(net((x, step % 2)), y)

        class Layers(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(3)
                self.first, self.odd, self.last = (torch.nn.Linear(6, n) for n in (6, 6, 2))

            def forward(self, given):
                x, uses_odd = given
                x = self.first(x)
                return self.last(self.odd(x) if uses_odd else x)

        model, plain = Layers(), Layers()
        with self.small_buckets():
            state = weft.torch.HookState(model)
            whole = torch.nn.parallel.DistributedDataParallel(
                model, bucket_cap_mb=2e-4, gradient_as_bucket_view=views, find_unused_parameters=True
            )
            buckets = self.hook(whole, state)
        for step in range(6):
            for net, its in ((whole, model), (plain, plain)):
                its.zero_grad(set_to_none=step == 4)
                loss(net, step).backward()
            for one, other in zip(model.parameters(), plain.parameters()):
                self.assertEqual(one.grad is None, other.grad is None)
                self.assertTrue(one.grad is None or torch.allclose(one.grad, other.grad, atol=1e-6))
        self.assertEqual(buckets[:3], [2, 60, 36])  # the layer is in the second, with others

    def test_the_hook_goes_on_without_the_gradients_of_some_parameters(self):
        with tempfile.NamedTemporaryFile() as file:
            torch.distributed.init_process_group("gloo", init_method="file://" + file.name, rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            self.without_some_gradients(views=False)
            weft.close()
            weft.init(pservers=self.pserver())
            self.without_some_gradients(views=True)
            weft.close()
            self.jobs_end_well()

    def test_the_hook_refuses_the_buckets_of_another_model(self):
        state = weft.torch.HookState(network())
        bucket = mock.MagicMock()
        bucket.buffer.return_value = torch.zeros(1000)
        with self.assertRaisesRegex(weft.InvalidError, "more than the 47 values"):
            weft.torch.push_pull_hook(state, bucket)
        bucket.buffer.return_value = torch.zeros(47).to_sparse()
        with self.assertRaisesRegex(weft.InvalidError, "gradients that are torch.sparse_coo"):
            weft.torch.push_pull_hook(state, bucket)
        weft.abort("the test is over")

    def test_buffers_of_any_kind_are_broadcast(self):
        model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5))
        model[1].num_batches_tracked.fill_(1 << 40)
        weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), model.named_parameters())
        weft.torch.broadcast_parameters(model.state_dict())
        self.assertEqual(model[1].num_batches_tracked.item(), 1 << 40)
        self.assertTrue(torch.equal(model[1].running_var, torch.ones(5)))


class Documented(support.Case):
    def test_docstrings_name_every_parameter(self):
        count, missing = docstrings.missing(with_torch=True)
        self.assertEqual(missing, [])
        self.assertGreater(count, 40)


class Two(support.Case):
    """Two trainers that begin with other parameters, buffers and chance, and compute with other data:
    tests/python/torch_member.py."""

    def members(self, mode):
        """What each trainer's state_dict is before its one step, and after it."""
        where = self.pserver(trainers=2, count=2)
        folder = self.own_folder()
        files = [os.path.join(folder, "trainer_%d" % number) for number in range(2)]
        started = [
            self.run_child(torch_member.main, mode, where, number, folder, file)
            for number, file in enumerate(files)
        ]
        for member in started:
            self.ends_well(member)
        self.jobs_end_well()
        return [torch.load(file) for file in files]

    def test_it_does_not_go_back_with_its_job_and_says_so(self):
        """Nobody would put back the model's and the optimizer's own state."""
        more = "--snapshot_dir=" + self.own_folder(), "--snapshot_steps=2", "--on_trainer_death=wait"
        where = self.pserver(trainers=2, more=more)
        there, is_there = os.pipe()
        for end in (there, is_there):
            self.addCleanup(os.close, end)
        both = [self.run_child(torch_member.train_until_lost, where, number, is_there) for number in range(2)]
        for _ in both:
            self.assertTrue(select.select([there], [], [], support.LIMIT)[0], "a trainer does not come to step 3")
            os.read(there, 1)
        both[1].kill()
        said = self.ends_well(both[0])
        for word in ("lost", "again"):
            self.assertRegex(said, "(?m)^%s: .*trainer 1.* goes back to a snapshot, and weft.torch cannot" % word)

    def alone(self):
        """Trainer 0's first state, and the parameters after a step with the mean of both gradients."""
        model = torch_member.model(0)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        optimizer = torch_member.optimizer(model)
        for number in range(2):
            (torch_member.loss(model, number) / 2).backward()
        optimizer.step()
        return before, dict(model.named_parameters())

    def one_step(self, mode):
        wanted_before, wanted_after = self.alone()
        (before, after), (other_before, other_after) = self.members(mode)
        for name, wanted in wanted_before.items():
            self.assertTrue(torch.equal(before[name], wanted), name)
            self.assertTrue(torch.equal(other_before[name], wanted), name)
        for name, wanted in wanted_after.items():
            self.assertTrue(torch.equal(after[name], other_after[name]), name)
            self.assertTrue(torch.allclose(after[name], wanted, rtol=0, atol=1e-6), name)
            self.assertFalse(torch.allclose(wanted, wanted_before[name], rtol=0, atol=1e-4), name)

    def test_trainers_begin_and_go_on_alike_at_the_workers(self):
        self.one_step("workers")

    def test_trainers_begin_and_go_on_alike_on_the_pservers(self):
        self.one_step("pservers")

    def test_trainers_begin_and_go_on_alike_where_gradients_go_to_the_pservers_in_backward(self):
        self.one_step("backward")

    def test_trainers_begin_and_go_on_alike_under_the_hook(self):
        self.one_step("ddp")


class Gradients(support.Case):
    """Trainers whose gradients are given numbers: tests/python/torch_gradients.py."""

    def kept(self, mode, trainers):
        """Of each trainer, by name: for each step all gradients after backward, all parameters after it."""
        where = self.pserver(trainers=trainers, count=2)
        folder = self.own_folder()
        files = [os.path.join(folder, "trainer_%d" % number) for number in range(trainers)]
        started = [
            self.run_child(torch_gradients.main, mode, where, number, trainers, folder, file)
            for number, file in enumerate(files)
        ]
        for member in started:
            self.ends_well(member)
        self.jobs_end_well()
        return [torch.load(file) for file in files]

    @staticmethod
    def means(trainers):
        """What NumPy makes of it: a sum in float32, from trainer 0 to the last, divided by their number."""
        for step in range(len(torch_gradients.SCALES)):
            total = torch_gradients.gradient(step, 0)
            for number in range(1, trainers):
                total = total + torch_gradients.gradient(step, number)
            yield total / np.float32(trainers)

    def assert_bits(self, got, wanted, what):
        same = (got.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))
        self.assertEqual((got.dtype, wanted.dtype), (np.float32, np.float32))
        self.assertTrue(same.all(), "%s: %d of %d differ" % (what, (~same).sum(), same.size))

    def gradients_are_means(self, found):
        parameters = np.zeros(torch_gradients.COUNT, np.float32)
        for step, mean in enumerate(self.means(len(found))):
            parameters = parameters - mean
            for number, kept in enumerate(found):
                gradients, after = kept["weft"][step]
                self.assert_bits(gradients.numpy(), mean, "step %d of trainer %d" % (step, number))
                self.assert_bits(after.numpy(), parameters, "after step %d of trainer %d" % (step, number))
        self.assertTrue(np.isnan(mean).any() and np.isinf(mean).any())  # of the last step, and they passed

    def they_are_near_gloos(self, found, off):
        """Gloo is given what is divided already, and adds in an order of its own."""
        for step, (wanted, _) in enumerate(found[0]["gloo"]):
            wanted, got = wanted.numpy(), found[0]["weft"][step][0].numpy()
            size = sum(np.abs(torch_gradients.gradient(step, number)) for number in range(len(found)))
            with np.errstate(invalid="ignore"):
                near = np.abs(wanted - got) <= off * size
            same = (wanted == got) | (np.isnan(wanted) & np.isnan(got))
            self.assertTrue((near | same).all(), "step %d" % step)

    def test_gradients_at_the_workers_are_the_means_to_the_bit(self):
        self.gradients_are_means(self.kept("workers", 3))

    def test_gradients_under_the_hook_are_the_means_to_the_bit_and_near_gloos(self):
        found = self.kept("views", 3)
        self.gradients_are_means(found)
        self.they_are_near_gloos(found, 3e-7)

    def test_of_two_trainers_under_the_hook_gradients_are_gloos_to_the_bit(self):
        found = self.kept("hook", 2)  # halves may be taken before or after the sum
        self.gradients_are_means(found)
        self.they_are_near_gloos(found, 0)

    def test_a_norm_that_is_clipped_after_backward_is_that_of_the_means(self):
        """One backward is interrupted in its wait, and step goes on from there."""
        found = self.kept("clip", 2)
        plain = torch_gradients.Given()
        its = torch.optim.SGD(plain.parameters(), lr=1.0)
        clipped = 0
        for step, mean in enumerate(self.means(2)):
            parts = torch.split(torch.from_numpy(mean), [p.numel() for p in plain.parameters()])
            for parameter, part in zip(plain.parameters(), parts):
                parameter.grad = part.view_as(parameter).clone()
            clipped += torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0).item() > 1
            its.step()
            wanted = torch_gradients.flat(plain.parameters()).numpy()
            for kept in found:
                self.assert_bits(kept["weft"][step][1].numpy(), wanted, "after step %d" % step)
        self.assertGreaterEqual(clipped, 3)


if __name__ == "__main__":
    if torch is None:
        print("SKIPPED: PyTorch is not there: apt-get install python3-torch")
        sys.exit(77)
    support.main()

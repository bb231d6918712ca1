# SPDX-License-Identifier: Apache-2.0
"""weft.torch: its rules, and its arithmetic beside the optimizers' own, in jobs of one trainer."""

import os
import sys
import tempfile
from unittest import mock

import support

try:
    import torch
except ImportError:
    torch = None
else:
    import torch_member
    import weft
    import weft.torch


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

    def against_the_optimizer_alone(self, on, make, tolerance):
        plain, model = network(), network()
        wanted = train(plain, make(plain.parameters()))
        optimizer = weft.torch.DistributedOptimizer(
            make(model.parameters()), model.named_parameters(), on=on
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

    def test_parameter_groups_keep_their_rates_on_the_pservers(self):
        def make(parameters):
            first, *others = parameters
            return torch.optim.SGD([{"params": [first], "lr": 0.02}, {"params": others}], lr=0.1)

        self.against_the_optimizer_alone("pservers", make, 1e-6)

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

    def test_a_second_backward_pass_is_refused_with_the_tensors_name(self):
        model = network()
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters()
        )
        with self.assertRaisesRegex(weft.InvalidError, "broadcast_parameters"):
            optimizer.step()
        weft.torch.broadcast_parameters(model.state_dict())
        x, y = some_data(0)
        torch.nn.functional.mse_loss(model(x), y).backward()
        with self.assertRaisesRegex(weft.InvalidError, r"tensor \d\.\w+ is pushed already"):
            torch.nn.functional.mse_loss(model(x), y).backward()
        with self.assertRaisesRegex(weft.InvalidError, "zero_grad between"):
            optimizer.zero_grad()
        weft.abort("the test is over")

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
            weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), model.named_parameters())
        weft.close()
        weft.init()
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

    def test_settings_that_make_no_means_at_the_workers_are_refused(self):
        model = network()
        makes = (
            lambda: weft.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1), model.named_parameters()),
            lambda: weft.torch.HookState(model),
        )
        settings = [("schedule", "poly"), ("l1", "0.001"), ("skip_nonfinite", "1")]
        settings += [("dense_mode", mode) for mode in ("async", "bounded", "local", "elastic")]
        for name, value in settings:
            local = {"local_steps": 2} if value in ("local", "elastic") else {}
            for given in ({name: value}, {}):
                said = {} if given else {"WEFT_" + name.upper(): value}
                weft.close()
                with mock.patch.dict(os.environ, said):
                    weft.init(**given, **local)
                    for make in makes:
                        with self.assertRaisesRegex(weft.InvalidError, "means at the workers .* another " + name):
                            make()
        weft.close()
        weft.init(schedule="constant", dense_mode="sync", l1=0)
        makes[0]()

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

    def test_a_rate_that_changes_on_the_pservers_is_refused(self):
        model = network()
        optimizer = weft.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), 0.1), model.named_parameters(), on="pservers"
        )
        weft.torch.broadcast_parameters(model.state_dict())
        train(model, optimizer, 1)
        optimizer.param_groups[0]["lr"] = 0.01
        with self.assertRaisesRegex(weft.UnsupportedError, "learning rate was .*0.1.* and is .*0.01"):
            train(model, optimizer, 1)

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
        with mock.patch.object(weft.torch, "_PIECE", 16), self.small_buckets():
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


class Two(support.Case):
    """Two trainers that begin with other parameters, buffers and chance, and compute with other data:
    tests/python/torch_member.py."""

    def members(self, mode):
        """What each trainer's state_dict is before its one step, and after it."""
        where = self.pserver(trainers=2, count=2)
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, "trainer_%d" % number) for number in range(2)]
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_member.py")
            started = [
                self.run_program(*support.python(script, mode, where, str(number), folder, file))
                for number, file in enumerate(files)
            ]
            for member in started:
                self.ends_well(member)
            self.jobs_end_well()
            return [torch.load(file) for file in files]

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

    def test_trainers_begin_and_go_on_alike_under_the_hook(self):
        self.one_step("ddp")


if __name__ == "__main__":
    if torch is None:
        print("SKIPPED: PyTorch is not there: apt-get install python3-torch")
        sys.exit(77)
    support.main()

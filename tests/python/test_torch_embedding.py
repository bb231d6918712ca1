# SPDX-License-Identifier: Apache-2.0
"""weft.torch.Embedding and EmbeddingBag: beside torch's own, and beside a list of rows in NumPy."""

import copy
import os
import pickle
import re
import sys
import tempfile
import threading
from unittest import mock

import support

try:
    import torch
except ImportError:
    torch = None
else:
    import numpy as np
    import torch_contract_member
    import torch_embedding_member as member
    import weft
    import weft.torch

    torch.set_num_threads(1)  # of support.Child

    functional = torch.nn.functional

DIM, KEYS = 5, 40


class Here(support.Case):
    """A job of one trainer, with two sparse lanes."""

    def setUp(self):
        self.open()
        self.addCleanup(weft.close)

    def open(self, **settings):
        weft.init(pservers=self.pserver(sparse=2), ports_num_for_sparse=2, **settings)
        self.table = self.declare("words")

    def declare(self, name, **settings):
        return weft.table(name, DIM, init="uniform", init_a=-1, init_b=1, learning_rate=0.5, **settings)

    def start(self, *modules, on="ddp", **settings):
        """A model of these and a parameter, and its optimizer."""
        self.model = torch.nn.ModuleList(modules)
        self.model.register_parameter("scale", torch.nn.Parameter(torch.ones(DIM)))
        optimizer = torch.optim.SGD(self.model.parameters(), 0.5)
        optimizer = weft.torch.DistributedOptimizer(optimizer, self.model.named_parameters(), on=on, **settings)
        weft.torch.broadcast_parameters(self.model.state_dict())
        return optimizer

    def weight(self, module=None):
        """All rows."""
        module = module or self.model[0]
        keys = torch.arange(KEYS)
        with torch.no_grad():
            return module(keys) if isinstance(module, weft.torch.Embedding) else module(keys[:, None])

    def refused(self, kind, text):
        return self.assertRaisesRegex(kind, text)

    def test_embedding_has_the_bits_of_torch_for_any_shape(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        for indices in (torch.tensor(7), torch.tensor([[3, 9, 3], [0, 39, 3]]), torch.zeros(2, 0, 3, dtype=torch.int64)):
            weight = self.weight().requires_grad_()
            wanted, got = functional.embedding(indices, weight), module(indices)
            self.assertTrue(torch.equal(wanted, got))
            given = torch.randn(got.shape, generator=torch.Generator().manual_seed(1))
            for out in (wanted, got):
                out.backward(given)
            optimizer.step()
            self.assertTrue(torch.equal(self.weight(), weight.detach() - 0.5 * weight.grad))
        self.assertTrue(torch.equal(module(torch.tensor([3], dtype=torch.int32)), self.weight()[3:4]))
        weft.close()
        self.jobs_end_well()

    def bag(self, mode, indices, offsets=None, weights=None, last=False, padding=None):
        """One forward and backward pass and a step, beside torch's own."""
        module = weft.torch.EmbeddingBag(self.table, mode, include_last_offset=last, padding_idx=padding)
        if not hasattr(self, "optimizer"):
            self.optimizer = self.start(module)
        before = self.weight()
        if padding is not None:
            before[padding] = 0
        weight = before.clone().requires_grad_()
        own = [None if weights is None else weights.clone().requires_grad_() for _ in range(2)]
        wanted = functional.embedding_bag(
            indices, weight, offsets, mode=mode, per_sample_weights=own[0], include_last_offset=last, padding_idx=padding
        )
        got = module(indices, offsets, own[1])
        self.assertTrue(torch.equal(wanted, got), (mode, wanted, got))
        given = torch.randn(got.shape, generator=torch.Generator().manual_seed(2))
        for out in (wanted, got):
            out.backward(given)
        if weights is not None:
            self.assertTrue(torch.equal(own[0].grad, own[1].grad))
        self.optimizer.step()
        keys = torch.arange(KEYS) != padding
        moved = torch.zeros(KEYS, DIM) if weight.grad is None else 0.5 * weight.grad
        self.assertTrue(torch.allclose(self.weight()[keys], (before - moved)[keys], rtol=0, atol=1e-6))
        self.assertGreaterEqual(indices.numel(), moved.any(1).sum().item())

    def test_bags_have_the_bits_of_torch(self):
        two = torch.tensor([[3, 9, 3, 1], [0, 39, 3, 3]])
        flat, offsets = torch.tensor([3, 3, 8, 1, 3, 9]), torch.tensor([0, 2, 2, 5])
        for mode in ("sum", "mean", "max"):
            self.bag(mode, two)
            self.bag(mode, flat, offsets)  # the second is empty
            self.bag(mode, flat, torch.tensor([0, 2, 2, 6]), last=True)
            self.bag(mode, flat, offsets.to(torch.int32).to(torch.int64), padding=3)
            self.bag(mode, torch.zeros(0, dtype=torch.int64), torch.tensor([0, 0, 0]))
        self.bag("sum", two, weights=torch.randn(two.shape))
        self.bag("sum", flat, offsets, weights=torch.randn(6))
        self.bag("sum", flat, offsets, weights=torch.randn(6), padding=3)
        weft.close()
        self.jobs_end_well()

    def test_padding_is_zeros_and_has_no_row(self):
        module = weft.torch.Embedding(self.table, padding_idx=0)
        optimizer = self.start(module, weft.torch.Embedding(self.table))
        before = self.weight(self.model[1])
        indices = torch.tensor([[0, 4], [4, 0]])
        out = module(indices)
        self.assertTrue(torch.equal(out[:, 0][0], torch.zeros(DIM)))
        self.assertTrue(torch.equal(out[0, 1], before[4]))
        out.sum().backward()
        optimizer.step()
        self.assertEqual(self.table.stats()["keys_pushed"], 2)
        before[4] -= 1
        self.assertTrue(torch.equal(self.weight(self.model[1]), before))
        self.assertFalse(module(torch.tensor([0, 0])).any())

    def test_forward_passes_of_a_step_are_pushed_as_one_batch(self):
        """Two modules of a table, one of another, and a pass whose result is not used."""
        others = self.declare("others")
        first, second = weft.torch.Embedding(self.table), weft.torch.EmbeddingBag(self.table)
        third = weft.torch.Embedding(others)
        optimizer = self.start(first, second, third)
        rows, its = self.weight().numpy(), self.weight(third).numpy()
        passes = [(first, [3, 9, 3]), (second, [[9, 5], [3, 3]]), (first, [3, 9, 3]), (third, [1]), (first, [9])]
        chance = np.random.RandomState(3)
        unused = first(torch.tensor([7, 8]))
        for _ in range(3):
            total, other = np.zeros((KEYS, DIM), np.float32), np.zeros((KEYS, DIM), np.float32)
            loss = 0
            for module, keys in passes:
                out = module(torch.tensor(keys))
                given = chance.standard_normal(out.shape).astype(np.float32)
                loss = loss + (out * torch.from_numpy(given)).sum()
                flat, each = np.ravel(keys), given if module is not second else given.repeat(2, 0)
                for key, grad in zip(flat, each):
                    (other if module is third else total)[key] += grad
            loss.backward()
            optimizer.step()
            rows, its = rows - np.float32(0.5) * total, its - np.float32(0.5) * other
            self.assertTrue(np.array_equal(self.weight().numpy(), rows))
            self.assertTrue(np.array_equal(self.weight(third).numpy(), its))
        self.assertEqual([table.stats()["batches_pushed"] for table in (self.table, others)], [3, 3])
        del unused
        weft.close()
        self.jobs_end_well()

    def test_a_pass_may_be_a_part_of_what_the_step_has(self):
        """Its result may be written to, its graph used twice; keys of lookahead may come in another order."""
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        wanted = self.weight()
        unused = module(torch.tensor([7, 8]))
        out = module(torch.tensor([8, 9, 8])).mul_(2)
        self.assertTrue(torch.equal(out.detach(), 2 * wanted[[8, 9, 8]]))
        for _ in range(2):
            out.sum().backward(retain_graph=True)
        optimizer.step()
        wanted[8:10] -= torch.tensor([[4.0], [2]])
        self.assertTrue(torch.equal(self.weight(), wanted))
        del unused, out
        for batch in weft.torch.lookahead([torch.tensor([4, 1, 3])], {module: lambda batch: batch}):
            out = module(batch[[2, 0, 2]])
            self.assertTrue(torch.equal(out.detach(), wanted[[3, 4, 3]]))
            (out * torch.tensor([[1.0], [2], [4]])).sum().backward()
            optimizer.step()
        wanted[3:5] -= 0.5 * torch.tensor([[5.0], [2]])
        self.assertTrue(torch.equal(self.weight(), wanted))

    def test_gradients_are_added_up_until_the_step_and_zero_grad_drops_them(self):
        for on in ("workers", "pservers", "ddp"):
            more = {"backward_passes_per_step": 2} if on == "workers" else {}
            module = weft.torch.Embedding(self.table)
            optimizer = self.start(module, on=on, **more)
            wanted = self.weight()
            if on != "workers":
                (module(torch.tensor([1])).sum() * 100 * self.model.scale.sum()).backward()
            optimizer.zero_grad()
            for keys in ([1, 2], [2, 3]):
                ((module(torch.tensor(keys)) * self.model.scale.detach()).sum() + self.model.scale.sum()).backward()
            optimizer.step()
            wanted[1:4] -= 0.5 * torch.tensor([[1.0], [2], [1]])
            self.assertTrue(torch.equal(self.weight(), wanted), on)
            self.assertTrue(torch.equal(self.model.scale.detach(), torch.zeros(DIM)), on)  # 1 - 0.5 * 2
            weft.close()
            self.jobs_end_well()
            self.open()

    def test_rows_travel_while_the_optimizer_works(self):
        """Those of the step are pushed before, and waited for after it, also if it fails."""
        module = weft.torch.Embedding(self.table)
        pushed, fails = [], [False, True, False]

        class Noted(torch.optim.SGD):
            def step(self):
                pushed.append((module.table.stats()["batches_pushed"], self._weft.begun))
                if fails[len(pushed) - 1]:
                    raise ValueError("this one")
                return super().step()

        with mock.patch.object(torch.optim, "SGD", Noted):
            optimizer = self.start(module)
        for number in range(3):
            optimizer.zero_grad()
            weight = self.weight()
            (module(torch.tensor([3, 9])).sum() + self.model.scale.sum()).backward()
            if fails[number]:
                with self.refused(ValueError, "this one"):
                    optimizer.step()
            else:
                optimizer.step()
            self.assertTrue(torch.equal(self.weight()[[3, 9]], weight[[3, 9]] - 0.5))
            self.assertFalse(optimizer._weft.begun)
            self.assertTrue(weft.session()._ends_later)
        self.assertEqual(pushed, [(1, True), (2, True), (3, True)])
        self.assertEqual(module.table.session.steps, 3)

    def test_a_scheduler_that_was_made_before_the_optimizer_is_wrapped_keeps_no_row_from_its_step(self):
        module, scale = weft.torch.Embedding(self.table), torch.nn.Parameter(torch.ones(DIM))
        optimizer = torch.optim.SGD([scale], 0.5)
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
        weft.torch.DistributedOptimizer(optimizer, (), on="ddp")
        weft.torch.broadcast_parameters({})
        before = self.weight(module)
        self.one_step(optimizer, module)
        self.assertTrue(torch.equal(self.weight(module)[[3, 9]], before[[3, 9]] - 0.5))

    def one_step(self, optimizer, *modules):
        sum(module(torch.tensor([3, 9])).sum() for module in modules).backward()
        optimizer.step()
        return weft.session()._ends_later

    def test_what_needs_the_step_to_have_ended_waits_for_it(self):
        weft.close()
        self.open(keep_state=1)
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        session = weft.session()
        for call in (
            session.barrier,
            lambda: session.reduce([1.0]),
            session.pass_end,
            session.pull_state,
            session.wait,
            session.pull,
            lambda: session.trainer_stats(0),
            lambda: (session.step(1), session.wait()),
            session.exchange,
            session.finish,
        ):
            self.assertTrue(self.one_step(optimizer, module))
            session.stats(), self.table.stats(), session.steps  # do not
            self.assertTrue(session._ends_later)
            call()
            self.assertFalse(session._ends_later)
        weft.close()
        self.jobs_end_well()

    def test_a_step_ends_before_the_session_is_closed(self):
        for end in (weft.close, lambda: weft.session().__exit__(None, None, None)):
            module = weft.torch.Embedding(self.table)
            self.assertTrue(self.one_step(self.start(module), module))
            end()
            self.jobs_end_well()
            self.open()

    def test_batches_of_the_callers_own_leave_room_for_those_of_the_module(self):
        """A table has two, and that of a step that has not ended is one."""
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        own, wanted = self.table.lookup([1]), self.weight()
        for _ in range(3):
            wanted[[3, 9]] -= 0.5
            self.one_step(optimizer, module)
            self.assertTrue(torch.equal(self.weight(), wanted))
        self.assertEqual(own.gather().shape, (1, DIM))
        own.free()
        for _ in range(2):  # a second pass of the step has other keys
            out = module(torch.tensor([3])).sum() + module(torch.tensor([9])).sum()
            out.backward()
            optimizer.step()
            wanted[[3, 9]] -= 0.5
        self.assertTrue(torch.equal(self.weight(), wanted))

    def test_a_step_that_left_a_table_out_ends_at_once(self):
        first, second = weft.torch.Embedding(self.table), weft.torch.Embedding(self.declare("others"))
        optimizer = self.start(first, second)
        self.assertFalse(self.one_step(optimizer, first))
        self.assertTrue(self.one_step(optimizer, first, second))

    def test_a_step_ends_at_once_where_rows_are_those_of_the_moment(self):
        weft.close()
        for more in ({"sparse_mode": "async"}, {"progress": "caller"}):
            self.open(**more)
            module = weft.torch.Embedding(self.table)
            optimizer = self.start(module)
            wanted = self.weight()
            for _ in range(3):
                self.assertFalse(self.one_step(optimizer, module))
                wanted[[3, 9]] -= 0.5
                self.assertTrue(torch.equal(self.weight(), wanted))
            weft.close()

    def test_a_step_that_is_given_up_leaves_rows_and_parameters(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module, on="workers")
        before = self.weight()
        for _ in range(2):
            loss = (module(torch.tensor([1, 2])) * self.model.scale).sum()
            loss.backward()  # the means are here: the step has begun
            for context in (torch.enable_grad(), torch.no_grad()):
                with context, self.refused(weft.InvalidError, "table words: the step has begun.*zero_grad"):
                    module(torch.tensor([5]))
            optimizer.zero_grad()
        self.assertTrue(torch.equal(self.weight(), before))
        self.assertTrue(torch.equal(self.model.scale.detach(), torch.ones(DIM)))
        (module(torch.tensor([1])) * self.model.scale).sum().backward()
        optimizer.step()
        before[1] -= 0.5
        self.assertTrue(torch.equal(self.weight(), before))
        weft.close()
        self.jobs_end_well()

    def test_evaluation_creates_no_rows(self):
        module = weft.torch.Embedding(self.table)
        self.start(module)
        created = []
        pull = type(self.table).prefetch

        def noted(table, keys, create=True, in_order=False):
            created.append(create)
            return pull(table, keys, create, in_order)

        with mock.patch.object(type(self.table), "prefetch", noted):
            self.assertTrue(module(torch.tensor([1])).requires_grad)
            with torch.no_grad():
                module(torch.tensor([2]))
            self.assertFalse(module.eval()(torch.tensor([3])).requires_grad)
        self.assertEqual(created, [True, False, False])

    def test_a_forward_pass_beside_another_one_is_refused_and_loses_no_batch(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        found, as_keys = [], type(self.table)._as_keys

        def beside():
            for trains in (True, False):
                try:
                    with torch.set_grad_enabled(trains):
                        module(torch.tensor([5]))
                except weft.InvalidError as error:
                    found.append(str(error))

        def noted(table, keys):
            with mock.patch.object(type(table), "_as_keys", as_keys):
                thread = threading.Thread(target=beside)
                thread.start()
                thread.join()
            return as_keys(table, keys)

        with mock.patch.object(type(self.table), "_as_keys", noted):
            out = module(torch.tensor([1, 2]))
        self.assertEqual(len(found), 2)
        self.assertRegex(found[0], "table words: another forward pass of this session has not returned: one thread")
        out.sum().backward()
        optimizer.step()
        self.assertEqual(self.table.stats()["keys_pulled"], 2)
        self.weight()
        for rows in (self.table.lookup([1]), self.table.lookup([2])):  # there is room for both
            rows.free()

    def test_passes_without_a_step_keep_nothing(self):
        module = weft.torch.Embedding(self.table)
        self.start(module)
        for number in range(0, KEYS, 2):
            module(torch.tensor([number, number + 1])).sum().item()
            rows = weft.session()._embeddings.of(self.table)
            self.assertEqual((rows.batch.flat.size, len(rows.uses)), (2, 0))

    def test_the_result_is_the_callers_own(self):
        """It may be written to, and does not change when another batch lands in weft's memory."""
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        keys, wanted = torch.tensor([1, 2]), self.weight()
        for out in (module(keys), module(keys)):
            kept = out.detach().clone()
            self.assertTrue(torch.equal(kept, wanted[1:3]))
            out.mul_(2)
        out.sum().backward()  # of the second alone
        optimizer.step()
        self.assertTrue(torch.equal(out.detach(), kept * 2))
        self.assertTrue(torch.equal(self.weight()[1:3], wanted[1:3] - 1))

    def test_keys_and_gradients_may_lie_in_memory_in_any_way(self):
        """Of each kind beside torch's own: transposed, in reverse, every second, all of them one, of a type
        of its own, a list."""
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        flat = torch.tensor([3, 9, 1, 0, 39, 3, 5, 9])

        class Own(torch.Tensor):
            pass

        kinds = [flat.view(2, 4).t(), flat.flip(0), flat[::2], flat[1:2].expand(5), flat.as_subclass(Own)]
        kinds += [flat[0:0], flat[2], flat.to(torch.int32)[::2], flat.numpy()[::-2].copy(), [[1, 2], [1, 1]]]
        for indices in kinds:
            weight = self.weight().requires_grad_()
            plain = torch.as_tensor(indices).as_subclass(torch.Tensor)
            wanted, got = functional.embedding(plain, weight), module(indices)
            self.assertTrue(torch.equal(wanted, got))
            given = torch.randn((*got.shape[::-1], 2), generator=torch.Generator().manual_seed(1))
            for out in (wanted, got):
                out.backward(given[..., 1].permute(*reversed(range(out.dim()))))
            optimizer.step()
            self.assertTrue(torch.equal(self.weight(), weight.detach() - 0.5 * weight.grad))

    def test_gradients_of_any_kind_are_pushed_as_what_they_are(self):
        """One value for all, negated by a flag, sparse, recorded by autograd, at an odd address; under
        another default type."""
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        keys = torch.tensor([3, 9, 3])
        plain = torch.randn(3, DIM, generator=torch.Generator().manual_seed(1))
        memory = np.frombuffer(bytearray(1 + 4 * 3 * DIM), np.float32, offset=1)
        odd = torch.from_numpy(memory.reshape(3, DIM)).copy_(plain)
        negated = torch.complex(plain, plain).conj().imag
        self.assertTrue(negated.is_neg() and odd.data_ptr() % 4 != 0)
        self.addCleanup(torch.set_default_dtype, torch.get_default_dtype())
        for given in (torch.ones(()).expand(3, DIM), negated, plain.to_sparse(), plain.clone().requires_grad_(), odd):
            for passes in (1, 2):
                before = self.weight()
                torch.set_default_dtype(torch.float64)
                for _ in range(passes):
                    out = module(keys)
                    self.assertEqual(out.dtype, torch.float32)
                    out.backward(given)
                optimizer.step()
                torch.set_default_dtype(torch.float32)
                total = torch.zeros(KEYS, DIM)
                for _ in range(passes):
                    values = given.to_dense() if given.is_sparse else given.detach().resolve_neg()
                    total += torch.zeros(KEYS, DIM).index_add_(0, keys, values)
                self.assertTrue(torch.allclose(self.weight(), before - 0.5 * total, rtol=0, atol=1e-6))
        padded = weft.torch.Embedding(self.table, padding_idx=0)
        torch.set_default_dtype(torch.float64)
        for count in (0, 1, 2):
            self.assertEqual(padded.eval()(torch.arange(count)).dtype, torch.float32)

    def test_a_gradient_that_is_written_to_before_its_step_is_refused(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        keys, given, before = torch.tensor([1, 2]), torch.ones(2, DIM), self.weight()
        module(keys).backward(given)
        given.zero_()
        with self.refused(weft.InvalidError, "table words: the gradient .* was written to before the step .* clone"):
            optimizer.step()
        optimizer.zero_grad()
        module(keys).backward(given.fill_(1))
        optimizer.step()
        given.zero_()
        before[1:3] -= 0.5
        self.assertTrue(torch.equal(self.weight(), before))
        weft.close()
        self.jobs_end_well()

    def test_a_scaler_is_refused_for_it_does_not_see_the_gradients_of_rows(self):
        for on in ("workers", "pservers", "ddp"):
            for attributes in (False, True):
                module = weft.torch.Embedding(self.table)
                optimizer = self.start(module, on=on)
                before, scaler = self.weight(), torch_contract_member.Scaler(attributes)
                scaler.scale((module(torch.tensor([1])) * self.model.scale).sum()).backward()
                with self.refused(weft.UnsupportedError, "GradScaler: it does not see the gradients of rows"):
                    scaler.step(optimizer)
                optimizer.zero_grad()
                self.assertTrue(torch.equal(self.weight(), before))
                self.assertTrue(torch.equal(self.model.scale.detach(), torch.ones(DIM)))
                weft.close()
                self.jobs_end_well()
                self.open()

    def test_state_is_refused_when_it_is_loaded_beside_rows_that_would_count_its_steps(self):
        """Before the start, too. That of SGD without a momentum takes none."""
        for kind in (torch.optim.Adam, torch.optim.SGD):
            plain, scale = (torch.nn.Parameter(torch.ones(DIM)) for _ in range(2))
            its = kind([plain], 0.5)
            plain.sum().backward()
            its.step()
            module = weft.torch.Embedding(self.table)
            optimizer = weft.torch.DistributedOptimizer(kind([scale], 0.5), [("scale", scale)], on="pservers")
            for start in (False, True):
                if start:
                    weft.torch.broadcast_parameters({})
                if kind is torch.optim.Adam:
                    with self.refused(weft.UnsupportedError, "load_state_dict: .* in steps .* which embeddings"):
                        optimizer.load_state_dict(its.state_dict())
                else:
                    optimizer.load_state_dict(its.state_dict())
            self.one_step(optimizer, module)
            self.assertEqual(weft.session().steps, 1)
            weft.close()
            self.jobs_end_well()
            self.open()

    def test_what_is_wrong_is_refused_by_name(self):
        module, bags = weft.torch.Embedding(self.table), weft.torch.EmbeddingBag(self.table)
        weft.start()
        with self.refused(weft.InvalidError, "table words: no optimizer would push.*on='ddp'.*eval"):
            module(torch.tensor([1]))
        self.assertEqual(module.eval()(torch.tensor([1])).shape, (1, DIM))
        weft.close()
        self.open(grad_reduce="mean")
        for text, call in (
            ("on='ddp': weft has only the rows", lambda: self.start(on="ddp")),
            ("Embedding: a weft.Table is needed, not str", lambda: weft.torch.Embedding("words")),
            ("padding_idx=-1: a key is at least 0", lambda: weft.torch.Embedding(self.table, padding_idx=-1)),
            ("mode='min': 'sum', 'mean' or 'max'", lambda: weft.torch.EmbeddingBag(self.table, "min")),
            ("lookahead: a weft.torch.Embedding or EmbeddingBag", lambda: weft.torch.lookahead([], {torch.nn.ReLU(): len})),
        ):
            with self.refused(weft.InvalidError, text):
                call()
        weft.close()
        self.open()
        module, bags = weft.torch.Embedding(self.table), weft.torch.EmbeddingBag(self.table)
        optimizer = self.start(module, bags)
        for text, call in (
            ("table words: key -1 is below 0", lambda: module(torch.tensor([3, -1]))),
            ("table words: indices are torch.float32 on cpu; int64", lambda: module(torch.ones(2))),
            ("table words: indices are torch.bool on cpu; int64", lambda: module(torch.tensor([True]))),
            ("table words: indices are torch.int64 on meta; int64", lambda: module(torch.tensor([1]).to("meta"))),
            ("table words: indices are torch.sparse_coo", lambda: module(torch.tensor([[3]]).to_sparse())),
            ("table words: indices: .*NoneType", lambda: module(None)),
            ("table words: indices: ", lambda: bags([[1, 2], [3]])),
            ("table words: offsets are torch.float32; int64", lambda: bags(torch.tensor([1]), torch.tensor([0.0]))),
            ("table words: indices: ", lambda: bags(np.array([1], np.uint64))),
        ):
            with self.refused(weft.InvalidError, text):
                call()
        with self.refused(ValueError, "offsets has to be a 1D Tensor"):
            bags(torch.tensor([1, 2]))
        out = module(torch.tensor([1]))
        out.sum().backward(retain_graph=True)
        optimizer.step()
        with self.refused(weft.InvalidError, "table words: backward after the step of its forward pass"):
            out.sum().backward()
        weft.close()
        self.jobs_end_well()

    def test_a_key_outside_the_vocabulary_is_named(self):
        table = self.declare("few", vocabulary=10)
        module = weft.torch.Embedding(table)
        self.start(module)
        with self.refused(weft.InvalidError, "few.*10"):
            module(torch.tensor([3, 10]))

    def test_the_hook_cannot_push_rows_and_says_so(self):
        module = weft.torch.Embedding(self.table)
        model = torch.nn.Linear(2, 2)
        weft.torch.HookState(model)
        with self.refused(weft.InvalidError, "under DistributedDataParallel one with on='ddp', and no HookState"):
            module(torch.tensor([1]))

    def test_a_model_under_distributed_data_parallel_pushes_its_rows(self):
        module, plain = weft.torch.Embedding(self.table), torch.nn.Linear(DIM, 2)
        optimizer = self.start(module, plain)
        sequence = torch.nn.Sequential(module, plain)
        wanted, alone = self.weight().requires_grad_(), copy.deepcopy(plain)
        with tempfile.NamedTemporaryFile() as file:
            torch.distributed.init_process_group("gloo", init_method="file://" + file.name, rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            whole = torch.nn.parallel.DistributedDataParallel(sequence)
            optimizer.zero_grad()
            keys = torch.tensor([[1, 2], [2, 3]])
            for out in (whole(keys), alone(functional.embedding(keys, wanted))):
                out.square().sum().backward()
            optimizer.step()
        self.assertTrue(torch.allclose(self.weight(), wanted.detach() - 0.5 * wanted.grad, atol=1e-6))
        moved = alone.weight.detach() - 0.5 * alone.weight.grad
        self.assertTrue(torch.allclose(plain.weight.detach(), moved, atol=1e-6))

    def test_a_state_dict_refers_to_the_rows_of_a_step(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        at_first = self.model.state_dict()
        self.assertEqual(at_first["0._extra_state"], {"table": "words", "dim": DIM, "steps": 0})
        self.model.load_state_dict(at_first)
        module(torch.tensor([1])).sum().backward()
        optimizer.step()
        with self.refused(weft.UnsupportedError, r"holds no rows.*table words \(rows of 5\) after step 0.*after step 1"):
            self.model.load_state_dict(at_first)
        self.model.load_state_dict(self.model.state_dict())
        for call in (copy.deepcopy, pickle.dumps):
            with self.refused(weft.UnsupportedError, "weft.torch.Embedding of table words cannot be copied or pickled"):
                call(module)
        weft.close()
        self.assertEqual(self.model.state_dict()["0._extra_state"]["steps"], 1)

    def test_lookahead_asks_for_rows_of_the_next_batch_while_a_step_computes(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        batches = [torch.tensor(keys) for keys in ([1, 2], [2, 3], [3, 4])]
        ahead = weft.torch.lookahead(batches, {module: lambda batch: batch})
        self.assertEqual(len(ahead), 3)
        for _ in range(2):
            pulled = self.table.stats()["batches_pulled"]
            for number, batch in enumerate(ahead):
                self.assertEqual(self.table.stats()["batches_pulled"] - pulled, number + 1)
                out = module(batch)
                self.assertEqual(self.table.stats()["batches_pulled"] - pulled, min(number + 2, 3))
                out.sum().backward()
                optimizer.step()
                with torch.no_grad():  # nothing is in its way
                    module(torch.tensor([9]))
                pulled += 1
        for batch in ahead:  # a loop may be left anywhere
            break
        for batch in ahead:
            module(batch).sum().backward()
            optimizer.step()
            break
        wanted = self.weight()
        module(torch.tensor([5])).sum().backward()
        optimizer.step()
        wanted[5] -= 0.5
        self.assertTrue(torch.equal(self.weight(), wanted))
        weft.close()
        self.jobs_end_well()

    def test_keys_that_are_wrong_are_refused_when_their_batch_is_asked_for(self):
        """And not in the step before, which would then have begun and could not end."""
        few = self.declare("few", vocabulary=KEYS, batch_keys_max=KEYS)
        module = weft.torch.Embedding(few)
        optimizer = self.start(module)
        for bad, text in (([-1], "key -1 is below 0"), ([3, KEYS], "few.*%d" % KEYS), ([1] * (KEYS + 1), "few.*%d" % KEYS)):
            steps = []
            with self.refused(weft.InvalidError, text):
                for batch in weft.torch.lookahead(map(torch.tensor, ([1, 2], [2], bad)), {module: lambda batch: batch}):
                    module(batch).sum().backward()
                    optimizer.step()
                    steps.append(batch)
            self.assertEqual(len(steps), 2)
            self.one_step(optimizer, module)
        own = few.lookup([1])  # leaves no room to look ahead
        for batch in weft.torch.lookahead([torch.tensor([1]), torch.tensor([2])], {module: lambda batch: batch}):
            module(batch).sum().backward()
            optimizer.step()
        own.free()
        weft.close()
        self.jobs_end_well()

    def test_a_step_of_a_loop_that_was_left_can_be_given_up(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        wanted = self.weight()
        for batch in weft.torch.lookahead([torch.tensor([1]), torch.tensor([2])], {module: lambda batch: batch}):
            out = module(batch)
            optimizer.zero_grad()  # in the loop it gives up nothing
            out.sum().backward()
            break
        optimizer.step()
        wanted[1] -= 0.5
        self.assertTrue(torch.equal(self.weight(), wanted))
        for batch in weft.torch.lookahead([torch.tensor([1]), torch.tensor([2])], {module: lambda batch: batch}):
            module(batch).sum().backward()
            break
        with torch.no_grad(), self.refused(weft.InvalidError, "the step has begun.*or zero_grad to give the step up"):
            module(torch.tensor([1]))
        optimizer.zero_grad()
        self.assertTrue(torch.equal(self.weight(), wanted))
        self.one_step(optimizer, module)
        wanted[[3, 9]] -= 0.5
        self.assertTrue(torch.equal(self.weight(), wanted))
        weft.close()
        self.jobs_end_well()

    def test_a_second_step_with_a_batch_of_lookahead_is_exact(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module)
        wanted = self.weight()
        batches = [torch.tensor(keys) for keys in ([1, 2], [1, 3])]
        for batch in weft.torch.lookahead(batches, {module: lambda batch: batch}):
            for _ in range(2):
                out = module(batch)
                self.assertTrue(torch.equal(out.detach(), wanted[batch]))
                out.sum().backward()
                optimizer.step()
                wanted[batch] -= 0.5
        self.assertTrue(torch.equal(self.weight(), wanted))

    def test_no_gradient_of_before_the_loop_goes_to_rows_of_a_batch_of_lookahead(self):
        """They may be pushed, or dropped, before it; a backward that comes later is refused."""
        module = weft.torch.Embedding(self.table)
        for on in ("ddp", "pservers"):
            optimizer = self.start(module, on=on)
            wanted = self.weight()
            ahead = weft.torch.lookahead([torch.tensor([4])], {module: lambda batch: batch})
            for end in (optimizer.step, optimizer.zero_grad):
                (module(torch.tensor([1])).sum() + self.model.scale.sum()).backward()
                with self.refused(weft.InvalidError, "lookahead: table words has gradients that no step has pushed"):
                    next(iter(ahead))
                end()
            wanted[1] -= 0.5
            early = module(torch.tensor([2]))
            for batch in ahead:
                with self.refused(weft.InvalidError, "table words: backward .* lookahead has given another batch"):
                    early.sum().backward()
                (module(batch).sum() + self.model.scale.sum()).backward()
                optimizer.step()
            wanted[4] -= 0.5
            self.assertTrue(torch.equal(self.weight(), wanted), on)
            weft.close()
            self.jobs_end_well()
            self.open()
            module = weft.torch.Embedding(self.table)

    def test_numbers_of_groups_may_change_between_two_batches_of_lookahead(self):
        """With the optimizer on the pservers, which gives them to these before the forward pass."""
        module = weft.torch.Embedding(self.table)
        own, its = ([torch.nn.Parameter(torch.ones(DIM)) for _ in range(2)] for _ in range(2))
        optimizers = []
        for first, second in (own, its):
            groups = [{"params": [first], "lr": 1.0}, {"params": [second], "momentum": 0.5, "nesterov": True}]
            optimizers.append(torch.optim.SGD(groups, lr=0.25))
        optimizer = weft.torch.DistributedOptimizer(optimizers[0], zip("ab", own), on="pservers")
        weft.torch.broadcast_parameters({})
        wanted = self.weight(module)
        for batch in weft.torch.lookahead([torch.tensor([k]) for k in range(4)], {module: lambda batch: batch}):
            for each in optimizers:
                for group in each.param_groups:
                    group["lr"] *= 0.5
                each.zero_grad()
            loss = module(batch).sum() + own[0].square().sum() + own[1].square().sum()
            (loss + its[0].square().sum() + its[1].square().sum()).backward()
            rate, optimizer.param_groups[1]["lr"] = optimizer.param_groups[1]["lr"], 7.0
            with self.refused(weft.InvalidError, "a parameter group was changed after the forward pass"):
                optimizer.step()
            optimizer.param_groups[1]["lr"] = rate
            for each in optimizers:
                each.step()
            for one, other in zip(own, its):
                self.assertTrue(torch.allclose(one, other, rtol=0, atol=1e-6))
        wanted[:4] -= 0.5
        self.assertTrue(torch.equal(self.weight(module), wanted))
        weft.close()
        self.jobs_end_well()

    def test_a_parameter_that_was_written_to_is_found_before_a_step_of_lookahead_begins(self):
        module = weft.torch.Embedding(self.table)
        optimizer = self.start(module, on="pservers")
        for batch in weft.torch.lookahead([torch.tensor([1])], {module: lambda batch: batch}):
            with torch.no_grad():
                self.model.scale.mul_(2)
            with self.refused(weft.UnsupportedError, "parameter scale was written to"):
                module(batch)
            self.assertFalse(optimizer._weft.begun)
            weft.torch.broadcast_parameters(self.model.state_dict())
            module(batch).sum().backward()
            optimizer.step()
        self.assertTrue(torch.equal(self.model.scale.detach(), torch.full((DIM,), 2.0)))

    def test_what_cannot_look_ahead_is_refused_by_name(self):
        module = weft.torch.Embedding(self.table)
        self.start(module)
        batches = iter(weft.torch.lookahead([torch.tensor([1, 2])] * 3, {module: lambda batch: batch}))
        next(batches)
        with self.refused(weft.InvalidError, "table words: key 7 is not one of those that lookahead was given"):
            module(torch.tensor([1, 7]))
        module(torch.tensor([2, 1, 1])).sum().backward()
        with self.refused(weft.InvalidError, "lookahead: the step of the batch before has begun and not ended"):
            next(batches)
        weft.abort("the test is over")


class Several(support.Case):
    """Trainers of tests/python/torch_embedding_member.py, against a list of rows."""

    def members(self, on, ahead, trainers):
        where = self.pserver(trainers=trainers, sparse=2)
        folder = self.own_folder()
        files = [os.path.join(folder, "trainer_%d" % number) for number in range(trainers)]
        started = [
            self.run_child(member.main, on, ahead == 1, where, number, trainers, file)
            for number, file in enumerate(files)
        ]
        for each in started:
            self.ends_well(each)
        self.jobs_end_well()
        return [torch.load(file) for file in files]

    @staticmethod
    def mean_of(trainers, grads_of):
        """Of rows: each trainer's in its order, then trainers in theirs, divided once."""
        total = np.zeros((member.KEYS, member.DIM), np.float32)
        for number in range(trainers):
            own = np.zeros_like(total)
            for key, grad in grads_of(number):
                own[key] += grad
            total = total + own
        return total / np.float32(trainers)

    def oracle(self, found, trainers, on):
        words, places = (rows.numpy() for rows in found["first"])
        squares, scale = np.zeros_like(places), [np.zeros(member.DIM, np.float32)] * trainers
        rate = np.float32(member.RATE)
        for step in range(member.STEPS):
            given = [member.batch(step, number) for number in range(trainers)]

            def of_bags(number):
                _, _, keys, offsets, grads, _ = given[number]
                return zip(keys, grads[np.searchsorted(offsets, np.arange(keys.size), "right") - 1])

            words = words - rate * self.mean_of(trainers, lambda number: zip(*given[number][:2]))
            grad = self.mean_of(trainers, of_bags)
            squares = squares + grad * grad
            places = places - (rate * grad) / np.sqrt(squares + np.float32(1e-6))
            own = [each[5] for each in given]
            mean = [sum(own[1:], own[0]) / np.float32(trainers)] * trainers if on != "ddp" else own
            scale = [value - rate * grad for value, grad in zip(scale, mean)]
        return words, places, scale

    def check(self, on, ahead, trainers):
        members = self.members(on, ahead, trainers)
        words, places, scale = self.oracle(members[0], trainers, on)
        for number, found in enumerate(members):
            for name, got, wanted in zip(("words", "places"), found["last"], (words, places)):
                self.assertTrue(np.array_equal(got.numpy(), wanted), (on, ahead, name, got.numpy() - wanted))
            self.assertTrue(np.array_equal(found["scale"].numpy(), scale[number]), (on, ahead))

    def test_one_trainer_has_the_bits_of_numpy(self):
        self.check("workers", 0, 1)
        self.check("ddp", 1, 1)

    def test_two_trainers_have_the_bits_of_numpy_with_the_optimizer_at_the_workers(self):
        self.check("workers", 0, 2)
        self.check("workers", 1, 2)

    def test_two_trainers_have_the_bits_of_numpy_with_the_optimizer_on_the_pservers(self):
        self.check("pservers", 0, 2)
        self.check("pservers", 1, 2)

    def test_two_trainers_have_the_bits_of_numpy_beside_other_exchanges(self):
        self.check("ddp", 0, 2)
        self.check("ddp", 1, 2)


class Example(support.Case):
    """examples/python/ctr.py: two passes of data/birdstrikes.csv."""

    def passes(self, trainers, *options):
        where = self.pserver(trainers=trainers, sparse=1)
        script = os.path.join(support.TOP, "examples/python/ctr.py")
        options = ("--pservers=" + where, "--num_gradient_servers=%d" % trainers, *options)
        members = [
            self.run_child(support.run_script, script, *options, "--trainer_id=%d" % number)
            for number in range(trainers)
        ]
        said = [self.ends_well(member) for member in members]
        self.jobs_end_well()
        found = re.findall(r"^pass \d+ cost (\S+) ordered (\S+)$", said[0], re.MULTILINE)
        self.assertEqual(len(found), 2, said[0])
        return [tuple(map(float, each)) for each in found]

    def test_it_learns_alike_with_one_trainer_and_two_and_looking_ahead_or_not(self):
        wanted = self.passes(1)
        self.assertGreater(wanted[0][0] - wanted[1][0], 0.01)
        self.assertGreater(wanted[1][1], 75)
        two = self.passes(2)
        self.assertEqual(two, self.passes(2, "--no_lookahead"))
        for got in (two, self.passes(2, "--on=pservers")):
            for (cost, _), (other, _) in zip(got, wanted):
                print("cost %.6f of %.6f" % (cost, other))
                self.assertLess(abs(cost - other) / other, 1e-3)


if __name__ == "__main__":
    if torch is None:
        print("SKIPPED: PyTorch is not there: apt-get install python3-torch")
        sys.exit(77)
    support.main()

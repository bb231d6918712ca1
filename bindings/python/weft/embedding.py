# SPDX-License-Identifier: Apache-2.0
"""torch.nn.Embedding and EmbeddingBag whose rows are those of a table, on the pservers.

    words = weft.table("words", 64, optimizer="adagrad", learning_rate=0.05, init="normal", init_b=0.1)
    model = Model(weft.torch.EmbeddingBag(words))
    optimizer = weft.torch.DistributedOptimizer(torch.optim.Adam(model.parameters()), model.named_parameters())

A forward pass in training pulls each distinct row once, and autograd adds up the gradients of the
rows. optimizer.step() pushes them: one batch of a table in a step, however many modules and forward
passes use the table. The names here are those of weft.torch."""

from __future__ import annotations

import ctypes
import itertools
import weakref
from threading import Lock
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Tuple, Union

import numpy as np
import torch

from weft import _tensors
from weft.errors import AgainError, ClosedError, InvalidError, UnsupportedError
from weft.session import Array, Rows, Session, Table

__all__ = ["Embedding", "EmbeddingBag", "lookahead"]

_END = object()
_numbers = itertools.count()


class _Batch:
    """The rows of a step's keys, as the session has them: pulled once each, and pushed once."""

    def __init__(self, table: Table, parts: List[Array], create: bool) -> None:
        self.parts = parts  # keys of forward passes, one after the other
        self.flat = parts[0] if len(parts) == 1 else np.concatenate(parts)
        self.rows: Rows = table.prefetch(self.flat, create)

    def values(self, where: "_Where", shape: Tuple[int, ...]) -> torch.Tensor:
        """A copy of the rows of these keys, in this shape: autograd, or the caller, may write to it."""
        rows = self.rows.gather()
        if not _is_all(where, self.flat.size):
            rows = rows[where].copy() if isinstance(where, slice) else rows[where]
        return _tensors.of_array(rows.reshape(shape))

    def find(self, flat: Array) -> Optional["_Where"]:
        """Where these keys are, most often as a part, or None if one is not here."""
        begin = 0
        for part in self.parts:
            if part.size == flat.size and (part == flat).all():
                return slice(begin, begin + part.size)
            begin += part.size
        order = np.argsort(self.flat, kind="stable")
        place = np.searchsorted(self.flat, flat, sorter=order)
        if place.max(initial=0) == self.flat.size or (self.flat[order[place]] != flat).any():
            return None
        return order[place]

    def sum(self, uses: List["_Use"]) -> torch.Tensor:
        """[keys, dim] values, as a push has them: of several forward passes the sum of each row, in their
        order, where its key is first, and zeros elsewhere."""
        if len(uses) == 1 and _is_all(uses[0].where, self.flat.size):
            return uses[0].total()
        dim, place = self.rows.table.dim, self.rows.place.astype(np.int64)
        total = torch.zeros(self.rows.row_count, dim, dtype=torch.float32)
        for use in uses:
            total.index_add_(0, torch.from_numpy(place[use.where]), use.total().view(-1, dim))
        first = np.empty(self.rows.row_count, np.int64)
        first[place[::-1]] = np.arange(place.size)[::-1]
        out = np.zeros((place.size, dim), np.float32)
        out[first] = total.numpy()
        return torch.from_numpy(out)


_Where = Union[slice, Array]  # of the keys of a batch


def _is_all(where: _Where, count: int) -> bool:
    return isinstance(where, slice) and where.stop - where.start == count


class _Use:
    """One forward pass: the gradients of its rows. It lives as long as the graph that has it, and from
    the first gradient on until the step."""

    def __init__(self, rows: "_TableRows", where: _Where) -> None:
        self.rows = rows
        self.where = where
        self.number = next(_numbers)  # forward passes are added up in their order
        self.ended = rows.ended  # before the batch that its gradients go with
        self.grad: Optional[torch.Tensor] = None
        self.version = 0  # of the gradient, when it came

    def add(self, grad: torch.Tensor) -> None:
        if self.ended != self.rows.ended:
            raise InvalidError(
                "table %s: backward after the step of its forward pass, which has pushed the gradients of the "
                "rows, or after lookahead has given another batch: call forward again" % self.rows.table.name
            )
        grad = _tensors.dense(grad)
        if self.grad is not None:
            grad = self.as_it_came() + grad
        self.grad, self.version = grad, grad._version
        self.rows.kept[self.number] = self

    def as_it_came(self) -> torch.Tensor:
        """It is no copy: `out.backward(gradient)` may have brought the caller's own."""
        assert self.grad is not None
        if self.grad._version != self.version:
            raise InvalidError(
                "table %s: the gradient that was given to backward was written to before the step that pushes it: "
                "call optimizer.step() first, or give backward a clone" % self.rows.table.name
            )
        return self.grad

    def total(self) -> torch.Tensor:
        """Its values lie one behind the other."""
        return _tensors.packed(self.as_it_came())


class _Values(torch.autograd.Function):
    """The values of a forward pass, whose gradient is kept for the step."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, anchor: torch.Tensor, batch: _Batch, use: _Use, shape: Tuple[int, ...]
    ) -> torch.Tensor:
        ctx.use = use
        return batch.values(use.where, shape)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[None, None, None, None]:  # type: ignore[override]
        ctx.use.add(grad)
        return None, None, None, None


class _TableRows:
    """What a step needs of a table: one batch that has all keys of its forward passes, and their uses."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.batch: Optional[_Batch] = None
        self.ended = 0  # batches whose forward passes can bring no gradient any more
        self.uses: "weakref.WeakSet[_Use]" = weakref.WeakSet()  # whose gradients may come
        self.kept: Dict[int, _Use] = {}  # whose gradients have come
        self.anchor = torch.zeros(0, requires_grad=True)  # so that autograd comes
        self.following: Optional[_Batch] = None  # under way for the step after this one
        self.steps = 0  # that were begun when it was asked for
        self.then: Optional[List[Array]] = None  # its keys, when it is not under way yet
        self.is_ahead = False  # a loader of lookahead names the keys

    def look_up(self, flat: Array, is_begun: bool, shape: Tuple[int, ...]) -> torch.Tensor:
        """Rows as they are, in this shape; keys without one get none."""
        self.refuse_in_step(is_begun)
        rows = self.table.lookup(flat, create=False)
        try:
            return _tensors.of_array(rows.gather().reshape(shape))
        finally:
            rows.free()

    def use(self, flat: Array, is_begun: bool, shape: Tuple[int, ...]) -> torch.Tensor:
        """Rows with a gradient, in this shape."""
        self.forget_unused()
        where = None if self.batch is None else self.batch.find(flat)
        if where is None:
            self.refuse_other_keys(flat, is_begun)
            where = self.pull(flat)
        use = _Use(self, where)
        values: torch.Tensor = _Values.apply(self.anchor, self.batch, use, shape)
        self.uses.add(use)
        return values

    def pull(self, flat: Array) -> slice:
        """A batch with these keys and those that the step has already."""
        before = self.batch
        self.batch = _Batch(self.table, [*(before.parts if before else ()), flat], create=True)
        if before is not None:
            before.rows.free()
        return slice(self.batch.flat.size - flat.size, self.batch.flat.size)

    def refuse_other_keys(self, flat: Array, is_begun: bool) -> None:
        if self.is_ahead and self.batch is not None:
            others = np.setdiff1d(flat, self.batch.flat)
            raise InvalidError(
                "table %s: key %d is not one of those that lookahead was given for this batch: its function has "
                "to name all keys of the forward pass" % (self.table.name, others[0])
            )
        self.refuse_in_step(is_begun)

    def refuse_in_step(self, is_begun: bool) -> None:
        if is_begun and self.table.session.setting("sparse_mode") == "sync":
            raise InvalidError(
                "table %s: the step has begun, and rows arrive when it has ended: call optimizer.step() before "
                "another forward pass, or zero_grad to give the step up" % self.table.name
            )

    def forget_unused(self) -> None:
        """Forward passes whose results are gone can bring no gradient."""
        if not self.uses and self.batch is not None and not self.is_ahead:
            self.free()

    def free(self) -> None:
        if self.batch is not None:
            self.batch.rows.free()
            self.batch = None

    def push(self) -> None:
        """Once in a step; again, there is nothing."""
        uses = [use for _, use in sorted(self.kept.items())]
        if uses and self.batch is not None:
            total = self.batch.sum(uses)
            self.table._push(self.batch.rows, total.data_ptr())
            self.batch = None
        self.kept.clear()
        self.end_batch()

    def end_batch(self) -> None:
        """Its forward passes can bring no gradient any more: their places in it are other rows' in the next one."""
        self.free()
        self.ended += 1
        self.uses.clear()

    def zero(self) -> None:
        for use in self.kept.values():
            use.grad = None
        self.kept.clear()

    # With lookahead.

    def on_batch(self, now: List[Array], then: Optional[List[Array]]) -> None:
        """The loader gives a batch with the keys `now`, and will give one with `then`: of each module."""
        if self.kept:
            raise InvalidError(
                "lookahead: table %s has gradients that no step has pushed: call optimizer.step() before the loop, "
                "or zero_grad to drop them" % self.table.name
            )
        self.end_batch()
        self.is_ahead = True
        found, self.following = self.following, None
        if found is not None and (found.parts is not now or self.steps != self.table.session.steps):
            found.rows.free()  # there was another step since
            found = None
        self.batch = found or _Batch(self.table, now, create=True)
        self.then = then

    def pull_following(self) -> None:
        """The step has begun: what is asked for now arrives when it has been applied."""
        then, self.then = self.then, None
        if then is not None:
            try:
                self.following = _Batch(self.table, then, create=True)
            except (AgainError, InvalidError):
                return  # on_batch asks again: what is wrong with keys is no matter of the step before theirs
            self.steps = self.table.session.steps

    def end_ahead(self) -> None:
        """The loader has ended, or was left; a step that has begun can still end."""
        self.is_ahead, self.then = False, None
        if self.following is not None:
            self.following.rows.free()
            self.following = None
        self.forget_unused()


class Embeddings:
    """Tables of a session that have modules, and the step that they share with its tensors."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.tables: Dict[Table, _TableRows] = {}
        self.steps = 0  # when rows were pushed last
        self.one_at_a_time = Lock()

    def of(self, table: Table) -> _TableRows:
        if table not in self.tables:
            self.tables[table] = _TableRows(table)
        return self.tables[table]

    def trainer(self, table: Table) -> Any:
        """What begins and ends the step: that of weft.torch.DistributedOptimizer."""
        found = _exchange_of(self.session)
        if found is None or not found.pushes_rows:
            raise InvalidError(
                "table %s: no optimizer would push the gradients of its rows: make a "
                "weft.torch.DistributedOptimizer; under DistributedDataParallel one with on='ddp', and no "
                "HookState. Call eval(), or use torch.no_grad(), to look rows up" % table.name
            )
        if not found.started:
            raise InvalidError("call weft.torch.broadcast_parameters(model.state_dict()) before the first step")
        return found

    def rows(self, rows: _TableRows, flat: Array, trains: bool, shape: Tuple[int, ...]) -> torch.Tensor:
        """The row of each key, in a shape of as many."""
        self.session._enter()
        if not self.one_at_a_time.acquire(blocking=False):
            raise InvalidError(
                "table %s: another forward pass of this session has not returned: one thread at a time, so put a lock "
                "around them" % rows.table.name
            )
        try:
            return self.rows_alone(rows, flat, trains, shape)
        finally:
            self.one_at_a_time.release()

    def rows_alone(self, rows: _TableRows, flat: Array, trains: bool, shape: Tuple[int, ...]) -> torch.Tensor:
        """The same, with nobody beside it: a batch that another thread replaced would never be given back."""
        if not trains:
            return rows.look_up(flat, _is_begun(self.session), shape)
        exchange = self.trainer(rows.table)
        found = rows.use(flat, exchange.begun, shape)
        if rows.is_ahead:
            exchange.begin()
            for other in self.tables.values():
                other.pull_following()
        return found

    def push(self) -> None:
        """In a step that has begun."""
        self.steps = self.session.steps
        for rows in self.tables.values():
            rows.push()

    def zero(self) -> None:
        for rows in self.tables.values():
            rows.zero()

    def is_ahead(self) -> bool:
        """Whether a loop of lookahead is going on."""
        return any(rows.is_ahead for rows in self.tables.values())


def _exchange_of(session: Session) -> Any:
    return getattr(session, "_torch", None)


def _is_begun(session: Session) -> bool:
    found = _exchange_of(session)
    return found is not None and bool(found.begun)


def embeddings_of(session: Session) -> Optional[Embeddings]:
    """None for a session without modules."""
    return getattr(session, "_embeddings", None)


class _Module(torch.nn.Module):
    """What Embedding and EmbeddingBag share."""

    def __init__(self, table: Table, padding_idx: Optional[int]) -> None:
        super().__init__()
        if not isinstance(table, Table):
            raise InvalidError("%s: a weft.Table is needed, not %s" % (self._name(), type(table).__name__))
        if padding_idx is not None and padding_idx < 0:
            raise InvalidError("table %s: padding_idx=%d: a key is at least 0" % (table.name, padding_idx))
        self.table = table
        self.embedding_dim = table.dim
        self.padding_idx = padding_idx
        if embeddings_of(table.session) is None:
            table.session._embeddings = Embeddings(table.session)  # type: ignore[attr-defined]
            table.session._stays = "weft.torch"
        self._embeddings: Embeddings = table.session._embeddings  # type: ignore[attr-defined]
        self._table_rows = self._embeddings.of(table)

    def _name(self) -> str:
        return "weft.torch." + type(self).__name__

    def _given(self, indices: Any) -> torch.Tensor:
        """Indices that can be keys, or InvalidError."""
        try:
            given = indices if isinstance(indices, torch.Tensor) else torch.as_tensor(indices)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidError("table %s: indices: %s" % (self.table.name, error)) from None
        if given.dtype not in (torch.int64, torch.int32) or given.device.type != "cpu":
            raise InvalidError(
                "table %s: indices are %s on %s; int64 on the CPU is needed"
                % (self.table.name, given.dtype, given.device)
            )
        if given.layout is not torch.strided:
            raise InvalidError("table %s: indices are %s; strided is needed" % (self.table.name, given.layout))
        return given

    def _keys(self, given: torch.Tensor) -> Tuple[Array, Optional[Array]]:
        """int64, one after the other, those of padding left out; and which these are, if there may be."""
        flat = _copy_of(given)
        if self.padding_idx is None:
            return flat, None
        is_padding = flat == self.padding_idx
        return flat[~is_padding], is_padding

    def _rows(self, given: torch.Tensor, shape: Tuple[int, ...]) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        """The row of each index, in this shape. With padding, and where there are none: of each that is
        not padding, a row of zeros behind them, and the row of each index."""
        flat, is_padding = self._keys(given)
        is_plain = is_padding is None and flat.size > 0
        trains = self.training and torch.is_grad_enabled()
        shape = shape if is_plain else (flat.size, self.embedding_dim)
        values = self._embeddings.rows(self._table_rows, flat, trains, shape)
        if is_plain:
            return values, None
        place = np.full(given.numel(), flat.size, np.int64)
        place[~is_padding if is_padding is not None else slice(0)] = np.arange(flat.size)
        zeros = torch.zeros(1, self.embedding_dim, dtype=values.dtype)
        return torch.cat((values, zeros)), _tensors.of_array(place)

    def get_extra_state(self) -> Dict[str, Any]:
        """For state_dict: the table's name, dim and step. The rows themselves stay on the pservers."""
        try:
            steps = self.table.session.steps
        except ClosedError:
            steps = self._embeddings.steps
        return {"table": self.table.name, "dim": self.table.dim, "steps": steps}

    def set_extra_state(self, state: Any) -> None:
        """For load_state_dict. UnsupportedError unless `state` is what get_extra_state returns now: the rows
        would be those of another step or table."""
        now = self.get_extra_state()
        if state != now:
            raise UnsupportedError(
                "load_state_dict: this holds no rows, it refers to those of table %s (rows of %s) after step %s, "
                "and the pservers have those of table %s (rows of %d) after step %d: restore the job at that step "
                "first, or load the other modules alone"
                % (state.get("table"), state.get("dim"), state.get("steps"), now["table"], now["dim"], now["steps"])
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise UnsupportedError(
            "%s of table %s cannot be copied or pickled: its rows are on the pservers; make another module of "
            "the same table, and save state_dict() of the others" % (self._name(), self.table.name)
        )

    def extra_repr(self) -> str:
        """For repr: the table and its dim."""
        padding = "" if self.padding_idx is None else ", padding_idx=%d" % self.padding_idx
        return "%s, %d%s" % (self.table.name, self.table.dim, padding)


class Embedding(_Module):
    """torch.nn.Embedding with the rows of a table.

    table        of weft.table; modules may share one. Rows have embedding_dim = table.dim values
    padding_idx  the key, at least 0, that gives zeros and has no row; None: no key does

    In training with gradients keys without a row get one, and the gradients of the step are pushed by
    optimizer.step() of weft.torch.DistributedOptimizer. After eval(), and under torch.no_grad(), rows
    are looked up, none is created, and the result requires no gradient. The rows are no parameters of
    the module: the table's optimizer applies their gradients, and clip_grad_norm_ and others do not see
    them. The module cannot be copied or pickled: UnsupportedError."""

    def __init__(self, table: Table, padding_idx: Optional[int] = None) -> None:
        super().__init__(table, padding_idx)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """The row of each key, float32 [..., dim], of `indices`, int64 or int32 [...] on the CPU, at least 0.
        Waits for the rows.

        InvalidError: other indices; in training, no optimizer that would push the gradients, before
        broadcast_parameters, or keys that lookahead was not given; a step has begun that optimizer.step()
        has not ended. And what Table.lookup raises."""
        given = self._given(indices)
        shape = (*given.shape, self.embedding_dim)
        values, place = self._rows(given, shape)
        if place is None:
            return values
        return torch.nn.functional.embedding(place, values, len(values) - 1).view(shape)


class EmbeddingBag(_Module):
    """torch.nn.EmbeddingBag with the rows of a table: the sum, mean or maximum of the rows of each bag.

    table                as of Embedding, whose other rules hold too
    mode                 "sum", "mean" or "max"
    include_last_offset  True: `offsets` of forward end with the number of indices
    padding_idx          the key that counts in no bag and has no row; None: no key does"""

    def __init__(
        self,
        table: Table,
        mode: str = "sum",
        include_last_offset: bool = False,
        padding_idx: Optional[int] = None,
    ) -> None:
        super().__init__(table, padding_idx)
        if mode not in ("sum", "mean", "max"):
            raise InvalidError("table %s: mode=%r: 'sum', 'mean' or 'max' is needed" % (table.name, mode))
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(
        self,
        indices: torch.Tensor,
        offsets: Optional[torch.Tensor] = None,
        per_sample_weights: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """The sum, mean or maximum of each bag, float32 [bags, dim]; an empty bag gives zeros. Waits.

        indices             int64 or int32 keys: [bags, keys of each], or all keys [keys] with offsets
        offsets             where each bag begins in indices: int64 or int32 [bags], with
                            include_last_offset [bags + 1]; None: the bags are the rows of indices
        per_sample_weights  float32 in the shape of indices, which may require a gradient; only with
                            mode="sum"; None: 1 each

        Raises as Embedding.forward; ValueError and others of torch.nn.functional.embedding_bag for
        shapes that do not fit."""
        given = self._given(indices)
        if offsets is not None and offsets.dtype not in (torch.int64, torch.int32):
            raise InvalidError("table %s: offsets are %s; int64 is needed" % (self.table.name, offsets.dtype))
        values, place = self._rows(given, (given.numel(), self.embedding_dim))
        padding = None if place is None else len(values) - 1
        place = torch.arange(len(values)) if place is None else place
        return torch.nn.functional.embedding_bag(
            place.view(given.shape),
            values,
            None if offsets is None else offsets.to(torch.int64),
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=padding,
        )

    def extra_repr(self) -> str:
        """For repr: the table, its dim and the mode."""
        return "%s, mode=%s" % (super().extra_repr(), self.mode)


class _LookAhead:
    """What lookahead gives: the loader's batches, each pass anew."""

    def __init__(self, loader: Iterable[Any], keys_of: Mapping[_Module, Callable[[Any], Any]]) -> None:
        self.loader = loader
        self.keys_of = dict(keys_of)
        for module in self.keys_of:
            if not isinstance(module, _Module):
                raise InvalidError("lookahead: a weft.torch.Embedding or EmbeddingBag is needed, not %r" % (module,))

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def keys(self, batch: Any) -> Dict[_TableRows, List[Array]]:
        found: Dict[_TableRows, List[Array]] = {}
        for module, function in self.keys_of.items():
            keys, _ = module._keys(module._given(function(batch)))
            found.setdefault(module._table_rows, []).append(keys)
        return found

    def __iter__(self) -> Iterator[Any]:
        source = iter(self.loader)
        batch = next(source, _END)
        keys = {} if batch is _END else self.keys(batch)
        tables = list(keys)
        try:
            while batch is not _END:
                following = next(source, _END)
                then = {} if following is _END else self.keys(following)
                for rows in tables:
                    _check_step(rows.table)
                    rows.on_batch(keys[rows], then.get(rows))
                yield batch
                batch, keys = following, then
        finally:
            for rows in tables:
                rows.end_ahead()


def _copy_of(given: torch.Tensor) -> Array:
    """int64 [indices]: the caller may write to its own before the step."""
    if type(given) is not torch.Tensor or given.dtype is not torch.int64 or not given.is_contiguous():
        return np.array(given.detach().numpy(), np.int64).reshape(-1)
    flat = np.empty(given.numel(), np.int64)
    ctypes.memmove(flat.ctypes.data, given.data_ptr(), flat.nbytes)
    return flat


def _check_step(table: Table) -> None:
    if _is_begun(table.session):
        raise InvalidError(
            "lookahead: the step of the batch before has begun and not ended: call optimizer.step() for each batch; "
            "what adds up gradients of several batches cannot look ahead"
        )


def lookahead(loader: Iterable[Any], keys_of: Mapping[Any, Callable[[Any], Any]]) -> _LookAhead:
    """The batches of a loader, whose rows are fetched while the step before computes.

    loader   iterable of batches; before a batch is returned, the one after it is asked for
    keys_of  for each weft.torch.Embedding or EmbeddingBag a function of a batch that returns all indices
             that the module will be given with it, int64 or int32 of any shape

    Returns an iterable, each pass over which is one over the loader; len() is the loader's. Each batch has
    to have its step. With sparse_mode "sync" the results have the same bits as without lookahead; with
    others the rows are those at the beginning of the step before. InvalidError: another module; in the
    loop, a batch before the step of the last one has ended, gradients that no step has pushed, or a key
    that the function did not name."""
    return _LookAhead(loader, keys_of)

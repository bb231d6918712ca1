# SPDX-License-Identifier: Apache-2.0
"""Sessions, tensors and tables: what weft/weft.h and weft/sparse.h offer, for NumPy.

The rules that hold for every call, of threads, waiting and exceptions, are those of Session."""

from __future__ import annotations

import atexit
import ctypes
import math
import operator
import os
import re
import signal
import sys
from threading import RLock, get_ident
from types import FrameType, TracebackType
from typing import Any, Callable, Dict, Generator, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple, Type, Union

import numpy as np
import numpy.typing as npt

from weft import _abi, _reduction, _settings
from weft.errors import (
    OF_STATUS,
    AbortedError,
    ClosedError,
    Error,
    ForkedError,
    InternalError,
    InvalidError,
    LostError,
    RolledBack,
)

Array = npt.NDArray[Any]
Shape = Union[int, Sequence[int]]

_OK, _AGAIN = 0, 1
_LEVELS = ("debug", "info", "warn", "error")
_PAGE = os.sysconf("SC_PAGESIZE")
_ndarray = np.ndarray
_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)
_byref = ctypes.byref
_first_byte: Any = ctypes.c_char.from_buffer
_as_pointer: Any = ctypes.c_void_p.from_param
_as_count: Any = ctypes.c_uint64.from_param
_LIBC = ctypes.CDLL(None)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_PLACES = 2  # where batches of a table land
_NONE_IS_NEGATIVE = frozenset(("decay", "clip", "l1"))
_sessions: "Set[Session]" = set()  # kept until they are closed: the library calls back


def _listen(caught: List[BaseException]) -> Generator[int, Any, None]:
    """Answers the library's question whether to stop waiting. Handlers of signals run where a
    generator goes on, which is inside its try; a function's would run before it gets there. The
    outer try is for the handler of a second signal, which may raise while the first is noted."""
    while True:
        try:
            while True:
                try:
                    while True:
                        yield 1 if caught else 0
                except GeneratorExit:
                    return
                except BaseException as error:  # noqa: B902, whatever a handler raises
                    caught.append(error)
        except BaseException as error:  # noqa: B902
            caught.append(error)


class _Memory:
    """A mapping that the library left to us: unmapped with the last array in it."""

    def __init__(self) -> None:
        self.first = 0
        self.end = 0
        self.ours = False

    def cover(self, address: int, count: int) -> None:
        end = address + 4 * count
        self.first = min(self.first or address, address) // _PAGE * _PAGE
        self.end = max(self.end, -(-end // _PAGE) * _PAGE)

    def __del__(self) -> None:
        if self.ours and self.end > self.first:
            _LIBC.munmap(self.first, self.end - self.first)


class _Window:
    """What NumPy makes an array of without copying; keeps the memory."""

    def __init__(self, memory: object, address: int, shape: Tuple[int, ...], kind: str, writable: bool) -> None:
        self.memory = memory
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writable),
            "shape": shape,
            "typestr": kind,
        }


def _window(
    memory: object, address: int, shape: Tuple[int, ...], kind: str = "<f4", writable: bool = True
) -> Array:
    return np.asarray(_Window(memory, address, shape, kind, writable))


def _whole(what: str, value: Any) -> int:
    """A whole number of any type that has them, or InvalidError; 64 bits at most."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise InvalidError("%s: %r is no whole number of at least 0" % (what, value))
    return number


def _number(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidError("%s: %r is no number" % (what, value)) from None


def _number_name(name: str) -> bytes:
    """As the library can read it, to its end: one with a byte of 0 is none that it knows."""
    return name.replace("\0", "\\0").encode("utf-8", "backslashreplace")


def _refuse_vast(what: str, array: Array) -> None:
    """The library counts elements in 32 bits, to which ctypes would cut the number."""
    if array.size >= 1 << 32:
        raise InvalidError("%s, which is 2^32 or more" % what)


def _as_array(what: str, values: Any) -> Array:
    """What NumPy makes of an array or nested lists, or InvalidError."""
    _refuse_masked(values, what)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidError("%s: %s" % (what, error)) from None


def _path(call: str, folder: Any) -> bytes:
    """As the library has it, or InvalidError: it would read a path up to a byte of 0."""
    try:
        path = os.fsencode(folder)
    except TypeError:
        raise InvalidError("%s: a path is needed, not %s" % (call, type(folder).__name__)) from None
    if b"\0" in path:
        raise InvalidError("%s: the path %r has a byte of 0" % (call, folder))
    return path


def _is_float32(dtype: Any) -> bool:
    try:
        return bool(np.dtype(dtype) == np.float32)
    except TypeError:
        return False


def _shape_of(what: str, shape: Shape) -> Tuple[int, ...]:
    numbers = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_whole(what, number) for number in numbers)


def _library_name(name: str) -> bytes:
    """As the library can have it: what is not printable ASCII, and blanks, as %20. In files, and what
    is exported from them, the name is as it was: saved/names.h."""

    def escaped(found: "re.Match[bytes]") -> bytes:
        return b"%%%02X" % found.group()[0]

    return re.sub(rb"[^!-~]|%(?=[0-9A-F]{2})", escaped, name.encode("utf-8", "surrogateescape"))


def _refuse_masked(array: Any, what: str) -> None:
    """Its mask would be left out without a word."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidError("%s: the array is masked; give array.filled(0), whose elements all count" % what)


def _check(array: Any, what: str, shape: Tuple[int, ...], written: bool) -> Array:
    """An array of f32 that can be read (or written) as it stands, or InvalidError with its name."""
    if not isinstance(array, np.ndarray):
        raise InvalidError("%s: a NumPy array is needed, not %s" % (what, type(array).__name__))
    if type(array) is not np.ndarray:
        _refuse_masked(array, what)
    if array.dtype != np.float32:
        raise InvalidError("%s: its dtype is %s, float32 is needed" % (what, array.dtype))
    if array.shape != shape:
        raise InvalidError("%s: its shape is %s, declared is %s" % (what, array.shape, shape))
    if not array.flags.c_contiguous:
        raise InvalidError(
            "%s: it is not contiguous (strides %s): give numpy.ascontiguousarray of it"
            % (what, array.strides)
        )
    if written and not array.flags.writeable:
        raise InvalidError("%s: it is read-only, and values are to be written to it" % what)
    return array


def _address(array: Array, what: str) -> int:
    """Of one that the library itself reads."""
    if not array.flags.aligned:
        raise InvalidError("%s: it does not begin at a multiple of 4 bytes: give a copy of it" % what)
    return int(array.ctypes.data)


class Tensor:
    """A tensor of a session, from weft.empty, with two arrays in the memory that weft sends from.

    `session`, `name` and `shape` are as declared. `param` holds the values, `grad` (none of a static
    tensor) what is pushed: float32 arrays of that shape, zeroed at first. Both are lent to weft from a
    push or pull until it is waited for: do not write to them, nor rely on `param`, until then. The first
    look at an array of a session seals it: no tensor or table can be added after that. The arrays stay
    valid, with the last values, when the session is closed."""

    def __init__(self, session: "Session", name: str, shape: Tuple[int, ...], handle: int) -> None:
        self.session = session
        self.name = name
        self.shape = shape
        self._handle = handle
        self._param: Optional[Array] = None
        self._grad: Optional[Array] = None
        self._state: List[Array] = []

    @property
    def param(self) -> Array:
        """The values, float32 of the declared shape."""
        if self._param is None:
            self.session._seal()
        assert self._param is not None
        return self._param

    @property
    def grad(self) -> Array:
        """What push sends, float32 of the declared shape. InvalidError: a static tensor has none."""
        if self._param is None:
            self.session._seal()
        if self._grad is None:
            raise InvalidError("tensor %s is static: it has no gradient" % self.name)
        return self._grad

    @property
    def state(self) -> List[Array]:
        """The optimizer's arrays, each float32 of the declared shape: those of the last Session.pull_state
        or, before the start, those with which Session.restore continues. Empty without keep_state=1, for a
        static or reduced tensor, and for an optimizer that keeps nothing ("sgd")."""
        if self._param is None:
            self.session._seal()
        return list(self._state)

    def average(self) -> Array:
        """A copy of the mean of the values over the last steps, float32 of the declared shape, as of the
        last Session.pull_state. InvalidError before that, and without average_window."""
        self.session._enter(self)
        out = np.empty(self.shape, np.float32)
        self.session._done(self.session._call.weft_tensor_average(self._handle, out.ctypes.data), self)
        return out

    def exact(self) -> Array:
        """A copy of the values in the pservers' own precision, float32 of the declared shape. With a
        dense_wire of 16 bits, where `param` is rounded, they are those of the last Session.pull_state, zeros
        before it, and InvalidError is raised without keep_state=1; otherwise they are those of `param`."""
        session = self.session._enter(self)
        session._seal()
        address = session._call.weft_tensor_exact(self._handle)
        if address is None:
            raise InvalidError("tensor %s: its exact values need keep_state=1 and Session.pull_state" % self.name)
        return _window(self, address, self.shape, writable=False).copy()

    def change(self, **numbers: float) -> None:
        """Change numbers of this tensor's optimizer from the next step on. Never blocks. All trainers make
        the same changes; a difference ends the job in that step: MismatchError, with both values.

        numbers  learning_rate, momentum, dampening, nesterov (0 or 1), beta1, beta2, rho, epsilon, decay,
                 clip, l1; updates=N: the steps that the optimizer has applied before the next one

        InvalidError, and none of them is changed: the optimizer has no such number, or not this value; a
        tensor is unanswered, this one is static or reduced, or the job is not synchronous."""
        session = self.session._enter(self)
        session._seal()
        count = len(numbers)
        names = (ctypes.c_char_p * count)(*[_number_name(name) for name in numbers])
        found = [_number("tensor %s, %s" % (self.name, name), value) for name, value in numbers.items()]
        values = (ctypes.c_double * count)(*found)
        session._done(session._call.weft_tensor_change_numbers(self._handle, names, values, count))

    def assign(self, array: int = 0) -> None:
        """Replace an array of the tensor on the pservers in the next step by what trainer 0 pushes of it
        then; the optimizer applies nothing to this tensor in that step. Never blocks. All trainers call
        it, and push the tensor as in any step.

        array  0: the values; 1 + i: state[i]

        InvalidError: as `change`; the optimizer has no such array; with a dense_wire of 16 bits, or
        average_window."""
        session = self.session._enter(self)
        session._seal()
        number = _whole("tensor %s, array" % self.name, array)
        if number >= 1 << 32:
            raise InvalidError("tensor %s: there is no array %d" % (self.name, number))
        session._done(session._call.weft_tensor_assign(self._handle, number))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        if copy:
            return np.array(self.param, dtype)
        if copy is False and dtype is not None and np.dtype(dtype) != np.float32:
            raise ValueError("tensor %s: it is float32, and %s needs a copy" % (self.name, np.dtype(dtype)))
        return np.asarray(self.param, dtype)

    def __repr__(self) -> str:
        return "<weft.Tensor %s %s>" % (self.name, "x".join(map(str, self.shape)))

    def _take_arrays(self, param: _Memory, grad: _Memory) -> None:
        api = self.session._call
        count = math.prod(self.shape)
        address = api.weft_tensor_param(self._handle)
        param.cover(address, count)
        self._param = _window(param, address, self.shape)
        other = api.weft_tensor_grad(self._handle)
        if other == address:  # in_place: one array, whose memory has one owner
            self._grad = self._param
        elif other is not None:
            grad.cover(other, count)
            self._grad = _window(grad, other, self.shape)

    def _take_state(self, number: int, memory: _Memory) -> None:
        address = self.session._call.weft_tensor_state(self._handle, number)
        if address is not None:
            memory.cover(address, math.prod(self.shape))
            self._state.append(_window(memory, address, self.shape))


class Rows:
    """The rows of a batch of keys, from Table.lookup or Table.prefetch: `count` keys of `table` were asked
    for, and `row_count` of them are different. The row of the i-th key is values[place[i]].

    `values` is the memory where the pservers' answers landed: nothing was copied. `keys` and `place` are
    copies, made at the first look. A batch ends with Rows.free, with RolledBack or, once Table.update has
    pushed it, when its step is waited for or the next one is tried; then all but `free` raises
    InvalidError, and another batch may land in `values`. An array that is held can still be read, also when the session is closed.
    Copy what has to last."""

    def __init__(self, table: "Table", handle: int, count: int) -> None:
        self.table = table
        self.count = count
        self._handle: Optional[int] = handle
        self._life = table.session._life
        api = table.session._call
        self.row_count: int = api.weft_rows_count(handle)
        if len(table._seen) < _PLACES:
            table._memory_of(api.weft_rows_values(handle))  # ours to unmap, whoever looks
        self._ready = False
        self._keys: Optional[Array] = None
        self._place: Optional[Array] = None

    def _copy(self, address: Optional[int], count: int, kind: str) -> Array:
        """Of what goes with the session."""
        copy = np.empty(count, kind)
        if count > 0:
            ctypes.memmove(copy.ctypes.data, address or 0, copy.nbytes)
        copy.flags.writeable = False
        return copy

    def _own(self) -> int:
        session = self.table.session._enter()
        if self._handle is None:
            raise InvalidError("table %s: this batch of rows was given back" % self.table.name)
        if self._life != session._life:  # the handle is that of another batch
            raise InvalidError("table %s: this batch of rows was void when the job went back" % self.table.name)
        return self._handle

    @property
    def keys(self) -> Array:
        """uint64 [row_count], read-only: the key of each row."""
        handle = self._own()
        if self._keys is None:
            self._keys = self._copy(self.table.session._call.weft_rows_keys(handle), self.row_count, "<u8")
        return self._keys

    @property
    def place(self) -> Array:
        """uint32 [count], read-only: the row of each key that was asked for, in their order."""
        handle = self._own()
        if self._place is None:
            self._place = self._copy(self.table.session._call.weft_rows_place(handle), self.count, "<u4")
        return self._place

    @property
    def values(self) -> Array:
        """float32 [row_count, dim], read-only. Waits and raises as `wait`."""
        self.wait()
        shape = (self.row_count, self.table.dim)
        address = self.table.session._call.weft_rows_values(self._own())
        if math.prod(shape) == 0 or address is None:
            return np.empty(shape, np.float32)
        return _window(self.table._memory_of(address), address, shape, "<f4", writable=False)

    @property
    def in_order(self) -> bool:
        """Whether row i is that of the i-th key that was asked for: `values` is then what gather returns."""
        return bool(self.table.session._call.weft_rows_in_order(self._own()))

    def gather(self) -> Array:
        """A copy, float32 [count, dim]: the row of each key that was asked for, in their order. Its bytes are
        counted in copied_bytes of Table.stats. Waits and raises as `wait`."""
        out = np.empty((self.count, self.table.dim), np.float32)
        self._gather_to(out.ctypes.data)
        return out

    def _gather_to(self, address: int) -> None:
        """The same into memory of that shape. Waits and raises as `wait`."""
        self.wait()
        session = self.table.session
        session._done(session._waiting(session._call.weft_rows_gather, self._handle, address))

    def wait(self) -> None:
        """Wait until the rows are here; returns at once if they are. InvalidError: with sparse_mode "sync"
        the rows of a step that this trainer has begun, and not pushed, cannot arrive. After an exception of
        a signal's handler it may be called again."""
        handle = self._own()
        if not self._ready:
            session = self.table.session
            session._wait(session._call.weft_rows_wait, handle)
            self._ready = True

    def free(self) -> None:
        """End a batch that will not be pushed, so that another can be fetched. A push is not undone, and a
        batch that has ended stays as it is."""
        if self._handle is not None:
            session = self.table.session._enter()
            if self._life == session._life:  # the library would ignore a call beside another one
                session._waiting(session._call.weft_rows_free, self._handle)
            self._handle = None


class Table:
    """Rows of `dim` float32 values found by keys of 64 bits, on the pservers' sparse lanes; from weft.table.
    `session`, `name` and `dim` are as declared."""

    def __init__(self, session: "Session", name: str, dim: int, named: _settings.Named) -> None:
        self.session = session
        self.name = name
        self.dim = dim
        self._named = named
        self._batch_keys = int(named.get("batch_keys_max"))
        self._handle: Optional[int] = None  # once it is declared
        self._seen: Set[int] = set()  # addresses where batches land, as far as there were any

    def __repr__(self) -> str:
        return "<weft.Table %s, rows of %d>" % (self.name, self.dim)

    def _memory_of(self, address: int) -> "_Memory":
        """What the values of batches lie in, as far as there were any."""
        memory = self.session._memory[2]
        if address not in self._seen:
            self._seen.add(address)
            memory.cover(address, self._batch_keys * self.dim)
        return memory

    def prefetch(self, keys: Any, create: bool = True, in_order: bool = False) -> Rows:
        """Begin to fetch the rows of a batch of keys. Never blocks. They are as of the end of the step begun
        last; with a sparse_mode other than "sync" they are those of the moment.

        keys      whole numbers of any integer dtype, or a list, in one dimension; from 0 and below the
                  table's vocabulary, if it has one; in any order, with any repetitions; copied
        create    True, for training: keys without a row get one, if the table admits them. False: no row
                  is created, and such keys return initial values
        in_order  True: rows lie in the order in which keys first occur where they can (Rows.in_order), so
                  that no gather is needed: with one sparse lane, or keys grouped by key_lane

        AgainError: two batches of the table exist already. InvalidError: other keys, more of them than
        the table's batch_keys_max, or before weft.start."""
        bits = self.session._enter()._api.enums["weft_rows_flag"]
        flags = (bits["WEFT_ROWS_CREATE"] if create else 0) | (bits["WEFT_ROWS_IN_ORDER"] if in_order else 0)
        return self._pull(self._as_keys(keys), flags)

    def _as_keys(self, keys: Any) -> Array:
        """Keys as the library reads them, or InvalidError."""
        if type(keys) is _ndarray and keys.ndim == 1 and keys.dtype is _INT64 and keys.flags.carray:
            array = keys
        else:
            array = self._converted(keys)
        _refuse_vast("table %s: %d keys" % (self.name, array.size), array)
        if array.dtype.kind == "i" and array.size:
            least = array[array.argmin()]  # in a fraction of the time of array.min()
            if least < 0:
                raise InvalidError("table %s: key %d is below 0" % (self.name, least))
        return array.view(_UINT64) if array.dtype is _INT64 else array.astype(_UINT64, copy=False)

    def _converted(self, keys: Any) -> Array:
        """Whole numbers in one dimension of anything that has them, one behind the other."""
        array = _as_array("table %s, keys" % self.name, keys)
        _refuse_vast("table %s: %d keys" % (self.name, array.size), array)
        array = np.ascontiguousarray(array)
        if array.ndim == 1 and (array.dtype.kind == "O" or (array.dtype.kind == "f" and array is not keys)):
            # NumPy has no type for lists with numbers on both sides of 2^63.
            numbers = keys if hasattr(keys, "__iter__") else array
            array = np.array([_whole("table %s, key" % self.name, key) for key in numbers], np.uint64)
        if array.size == 0:
            array = array.astype(np.uint64)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidError(
                "table %s: keys are %s of %d dimensions; whole numbers in one are needed"
                % (self.name, array.dtype, array.ndim)
            )
        return array

    def _pull(self, keys: Array, flags: int) -> Rows:
        """Of keys as _as_keys returns them; `flags` of enum weft_rows_flag."""
        session = self.session
        handle = ctypes.c_void_p()
        count = keys.size
        address = keys.ctypes.data
        status = session._waiting(session._call.weft_rows_pull, self._handle, address, count, flags, _byref(handle))
        if status == _AGAIN and session._ends_later:
            session.wait()
            return self._pull(keys, flags)
        if status == _AGAIN:
            raise OF_STATUS[_AGAIN](
                "table %s: two batches of rows exist already: update and weft.wait(), or Rows.free" % self.name
            )
        if status != _OK:
            session._fail(status)
        assert handle.value is not None
        return Rows(self, handle.value, count)

    def key_lane(self, key: int) -> int:
        """The number of the sparse lane that has a key (0 to 2^64 - 1), counted from 0 over all pservers."""
        session = self.session._enter()
        return int(session._call.weft_table_key_lane(self._handle, _whole("table %s, key" % self.name, key)))

    def lookup(self, keys: Any, create: bool = True, in_order: bool = False) -> Rows:
        """prefetch, and wait for the rows. keys, create and in_order are those of prefetch. It raises what
        prefetch and Rows.wait raise, and ends the batch then."""
        rows = self.prefetch(keys, create, in_order)
        try:
            rows.wait()
        except BaseException:  # nobody else could give it back
            rows.free()
            raise
        return rows

    def update(self, rows: Rows, grad: Array, show: Any = None, click: Any = None) -> None:
        """Push the gradients of a batch for the step begun last. Never blocks. Once in a step, after
        Rows.wait; a table that is not pushed when the step is waited for counts as pushed without rows.

        rows   of this table; they end when the step is waited for
        grad   float32 [rows.count, dim], C-contiguous, in the order of the keys that were asked for; those
               of repeated keys are summed; it is the caller's again at the return
        show   float32 [rows.count], for tables with evict_score_least; None: 1 each
        click  likewise; None: 0 each

        InvalidError, and nothing has changed: dtype, shape or layout; no step has begun, the table is
        pushed already, the rows were not waited for or are another table's."""
        what = "table %s, gradient" % self.name
        if not isinstance(rows, Rows):
            raise InvalidError("%s: rows of lookup or prefetch are needed, not %s" % (what, type(rows).__name__))
        rows._own()
        if rows.table is not self:
            raise InvalidError("%s: the rows are those of table %s" % (what, rows.table.name))
        _check(grad, what, (rows.count, self.dim), written=False)
        kept = [self._score(name, score, rows.count) for name, score in (("show", show), ("click", click))]
        addresses = [None if score is None else score.ctypes.data for score in kept]
        self._push(rows, _address(grad, what), *addresses)

    def _score(self, name: str, score: Any, count: int) -> Optional[Array]:
        """As the library reads it, or InvalidError."""
        if score is None:
            return None
        what = "table %s, %s" % (self.name, name)
        array = _check(_as_array(what, score), what, (count,), written=False)
        _address(array, what)
        return array

    def _push(self, rows: Rows, grad: int, show: Optional[int] = None, click: Optional[int] = None) -> None:
        """What `update` does with the addresses of arrays that it has checked."""
        session = self.session
        status = session._waiting(session._call.weft_rows_push, rows._own(), grad, show, click)
        if status != _OK:
            session._fail(status)
        session._pushed_rows.append(rows)

    def stats(self) -> Dict[str, Any]:
        """What this trainer has sent and received of the table since the start: the fields of struct
        weft_table_stats by name. Never blocks."""
        session = self.session._enter()
        return session._read_struct("weft_table_stats", session._call.weft_table_stats, self._handle)


class Session:
    """A trainer's part in a job. `log` and settings: see weft.init. In a with statement it is closed at the
    end, or aborted by an exception. `trainer_count` is that of weft.init.

    One thread at a time may call a session, its tensors, tables and rows, whichever thread that is. Where
    a docstring says that a call waits, other threads run meanwhile; it ends with the exception of a
    signal's handler (KeyboardInterrupt). After wait, pull, exchange and those of Rows the session can wait
    again; after others it can only be closed. In the handler itself all calls of the session are refused.

    Any call may raise, and the job goes on:
    InvalidError  an argument or the order of calls is wrong, or another thread is in a call
    ClosedError   after close or abort
    ForkedError   in a child of fork, which can have no session of its own either
    If pservers have --on_trainer_death=wait, a member that is lost does not end the job: calls that push or
    wait raise RolledBack once all have gone back to a snapshot; with weft.torch or torch.distributed on the
    session they raise LostError, and this process has to be started again. When the job is over, they raise the first
    cause, each of them again: LostError, DeadlineError, MismatchError, DataError, AbortedError and others of
    weft.errors."""

    def __init__(self, log: Optional[Callable[[str, str], None]] = None, **settings: Any) -> None:
        self._api = _abi.api()
        self._call = self._api.functions
        self._weft_push = self._call.weft_push
        self._weft_wait = self._call.weft_wait
        # Without types of its own: `_reduce` converts, which takes half the time of a call.
        self._weft_all_reduce = self._call["weft_all_reduce"]
        self._argument: Any = None  # the handle, converted
        self._element_types = _reduction.element_types()
        self._operations = _reduction.operations()
        self._handle: Optional[int] = None
        self._dead: Optional[Tuple[type, str]] = None
        self._life = 0  # of the job, counted by RolledBack
        self._stays: Optional[str] = None  # what keeps state of its own, which does not go back with the job
        self._waiter: Optional[Tuple[int]] = None  # the thread that is in a call that waits
        self._ending = RLock()  # `stopped` finds the handle whole or not at all, also in a handler
        self._tensors: List[Tensor] = []
        self._tables: List[Table] = []
        self._by_address: Dict[int, Tensor] = {}
        self._pushed_rows: List[Rows] = []
        self._ends_later = False  # the step is complete, and is waited for before what needs that
        self._lent: Set[Tensor] = set()  # pushed and not known to be answered
        self._memory = [_Memory(), _Memory(), _Memory()]  # parameters, gradients, rows; state
        self._sealed = False
        self._copied = 0
        self._caught: List[BaseException] = []
        self._listener = _listen(self._caught)
        next(self._listener)
        self._open(dict(settings), log)
        _sessions.add(self)

    def _open(self, settings: Dict[str, Any], log: Optional[Callable[[str, str], None]]) -> None:
        _refuse_forked()
        if log is not None and not callable(log):
            raise InvalidError("log=%r: a function of level and line is needed" % (log,))
        opts = self._api.structs["weft_session_opts"]()
        self._call.weft_session_opts_init_sized(ctypes.byref(opts), ctypes.sizeof(opts))
        named = _settings.Named("SESSION", {"keep_arrays": True})
        others = named.fill_with_environment(dict(settings))
        opts.settings = named.handle
        kinds = dict(opts._fields_)
        opts.interrupted = kinds["interrupted"](self._listener.send)
        if log is not None:
            opts.log = kinds["log"](_log_to(log))
        self._opts = opts  # the library keeps pointers to what is called
        self._named = named
        self._settings = settings
        self._log = log
        self.trainer_count = others["trainer_count"]
        handle = ctypes.c_void_p()
        self._done(self._call.weft_session_open(ctypes.byref(opts), ctypes.byref(handle)))
        opts.settings = None  # lent for the call
        self._handle = handle.value
        self._argument = _as_pointer(handle.value)
        self._trainer_id = int(named.get("trainer_id"))
        self._trainers = int(named.get("num_gradient_servers"))
        # In other modes rows are those of the moment, and the caller alone may move the data.
        self._can_end_later = named.get("sparse_mode") == "sync" and named.get("progress") == "thread"
        for table in self._tables:  # of a session that is opened again
            self._declare(table)

    def _open_again(self, settings: Mapping[str, Any]) -> None:
        """With more settings, while no tensor is declared; the caller's own may not say otherwise.
        Tables are declared again."""
        self._enter()
        if self._tensors or self._sealed:
            raise InvalidError("the session has tensors already, or its arrays were looked at")
        for name, value in settings.items():
            own = self._settings.get(name)
            if own is not None and own != value:
                raise InvalidError("weft.init was given %s=%r, %r is needed here" % (name, own, value))
        if self._call.weft_session_close(self._handle) == _AGAIN:
            _refuse_beside(None)
        self._handle = None
        before = self._settings
        try:
            self._open(dict(before, **settings), self._log)
        except BaseException:  # the session is as it was, and may be opened with others
            self._open(dict(before), self._log)
            raise

    # Calls and what they come to.

    def _enter(self, tensor: Optional[Tensor] = None) -> "Session":
        if self._dead is not None:
            kind, text = self._dead
            raise kind(text if tensor is None else "tensor %s: %s" % (tensor.name, text))
        if self._waiter is not None:
            _refuse_beside(self._waiter)
        return self

    def _settled(self) -> "Session":
        """_enter, for calls that need the last step to have ended."""
        self._enter()
        if self._ends_later:
            self.wait()
        return self

    def _end_later(self) -> None:
        """`wait`, which may be put off where all that was pushed is on its way and nothing but rows is
        unanswered: they come in any case when the step has ended. Meanwhile the caller computes."""
        if not self._can_end_later or len(self._pushed_rows) < len(self._tables):
            self.wait()
        else:
            self._ends_later = True

    def _done(self, status: int, tensor: Optional[Tensor] = None) -> None:
        if status != _OK:
            self._fail(status, tensor)

    def _fail(self, status: int, tensor: Optional[Tensor] = None) -> NoReturn:
        """With the library's text; a first cause says nothing of the tensor that was asked about."""
        if status == _AGAIN:
            raise OF_STATUS[_AGAIN]("a push or pull is unanswered: weft.wait() first")
        text = self._call.weft_last_error().decode("utf-8", "replace")
        if status == RolledBack.status and self._handle is not None:
            raise self._go_back(text)
        if tensor is not None and status != InvalidError.status:
            text = "tensor %s: %s" % (tensor.name, text)
        raise OF_STATUS.get(LostError.status if status == RolledBack.status else status, InternalError)(text)

    def _go_back(self, text: str) -> RolledBack:
        """Waits for the other members, and has the arrays of the snapshot; raises why that failed."""
        if self._stays is not None:
            lost = "%s; the job goes back to a snapshot, and %s cannot: end this process and start it again"
            self._dead = (LostError, lost % (text, self._stays))
            raise LostError(self._dead[1])
        self._lent.clear()
        self._forget_rows()
        self._life += 1
        self._wait_once("rejoin", self._call.weft_session_rejoin, self._handle)
        at = self.resumed
        return RolledBack(text, 0, b"") if at is None else RolledBack(text, at["step"], at["position"])

    def _wait(self, function: Any, *arguments: Any, tensor: Optional[Tensor] = None) -> None:
        """A call that can be made again after it was interrupted."""
        status = self._waiting(function, *arguments)
        if status != _OK:
            self._stopped(status, tensor)

    def _waiting(self, function: Any, *arguments: Any) -> int:
        """The call, and no other of this session in the handlers of signals and in other threads
        meanwhile. Of two threads that come here at once the library refuses one."""
        mine = self._waiter = (get_ident(),)
        try:
            status: int = function(*arguments)
            return status
        finally:
            if self._waiter is mine:
                self._waiter = None

    def _stopped(self, status: int, tensor: Optional[Tensor] = None) -> None:
        if status == _AGAIN and self._caught:
            raise self._take_caught()
        self._fail(status, tensor)

    def _take_caught(self) -> BaseException:
        """The handler's exception, without the listener's frame: who clears the frames of a
        traceback, as unittest does, would end the listener."""
        error = self._caught.pop(0)
        return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)

    def _wait_once(self, what: str, function: Any, *arguments: Any) -> None:
        """One that cannot: what is left of the session then is its end."""
        status = self._waiting(function, *arguments)
        if status != _OK:
            self._stopped_once(what, status)

    def _stopped_once(self, what: str, status: int) -> NoReturn:
        if status == _AGAIN and self._caught:
            self._dead = (AbortedError, "the session was interrupted in %s: close it" % what)
            raise self._take_caught()
        self._fail(status)

    def _seal(self) -> None:
        self._enter()
        if not self._sealed:
            self._done(self._call.weft_session_seal(self._handle))
            self._sealed = True
            for tensor in self._tensors:
                tensor._take_arrays(*self._memory[:2])
                for array in (tensor._param, tensor._grad):
                    if array is not None:
                        self._by_address[array.ctypes.data] = tensor
            for number in range(self._call.weft_state_count(self._handle)):
                self._memory.append(_Memory())
                for tensor in self._tensors:
                    tensor._take_state(number, self._memory[-1])

    def _tensor(self, which: Union[Tensor, Array]) -> Tensor:
        """The tensor that is meant by itself or by one of its arrays."""
        if isinstance(which, Tensor):
            if which.session is not self:
                raise InvalidError("tensor %s belongs to another session" % which.name)
            return which
        if not isinstance(which, np.ndarray):
            raise InvalidError("a tensor or its array is needed, not %s" % type(which).__name__)
        found = self._by_address.get(which.ctypes.data)
        if found is None:
            raise InvalidError(
                "an array of %s, shape %s, is none of this session's: make it with weft.empty, or "
                "name the tensor too, as in push(tensor, array)" % (which.dtype, which.shape)
            )
        _check(which, "tensor %s, array" % found.name, found.shape, written=False)
        return found

    # Before the start.

    def empty(
        self,
        shape: Shape,
        dtype: Any = np.float32,
        name: Optional[str] = None,
        *,
        static: bool = False,
        reduce: bool = False,
        **settings: Any,
    ) -> Tensor:
        """Declare a tensor: see weft.empty."""
        self._enter()
        name = name if name is not None else "tensor_%d" % len(self._tensors)
        if not isinstance(name, str) or "\0" in name:
            raise InvalidError("tensor %r: its name has to be text without a byte of 0" % (name,))
        if not _is_float32(dtype):
            raise InvalidError("tensor %s: its dtype is %s, float32 is needed" % (name, dtype))
        dims = _shape_of("tensor %s, shape" % name, shape)
        if any(dim < 1 for dim in dims):
            raise InvalidError("tensor %s: shape %s has a dimension below 1" % (name, dims))
        if settings.get("rate_multiplier") == 0:
            raise InvalidError("tensor %s: rate_multiplier=0: static=True is what is never changed" % name)
        try:
            own = {"is_static": bool(static), "is_reduced": bool(reduce), "shape": dims or "()"}
            named = _settings.Named("TENSOR", own)
            named.fill(_own_or_job(settings))
        except InvalidError as error:
            raise InvalidError("tensor %s: %s" % (name, error)) from None
        opts = self._api.structs["weft_tensor_opts"](
            name=_library_name(name),
            rows=dims[0] if dims else 1,
            cols=math.prod(dims[1:]),
            settings=named.handle,
        )
        handle = ctypes.c_void_p()
        self._done(self._call.weft_tensor_add(self._handle, ctypes.byref(opts), ctypes.byref(handle)))
        assert handle.value is not None
        tensor = Tensor(self, name, dims, handle.value)
        self._tensors.append(tensor)
        return tensor

    def table(self, name: str, dim: int, **settings: Any) -> Table:
        """Declare a table: see weft.table."""
        self._enter()
        if not isinstance(name, str) or "\0" in name:
            raise InvalidError("table %r: its name has to be text without a byte of 0" % (name,))
        number = _whole("table %s, dim" % name, dim)
        if number >= 1 << 32:
            raise InvalidError("table %s: dim %d is too large" % (name, number))
        named = _settings.Named("TABLE")
        try:
            named.fill(settings)
        except InvalidError as error:
            raise InvalidError("table %s: %s" % (name, error)) from None
        table = Table(self, name, number, named)
        self._declare(table)
        self._tables.append(table)
        return table

    def _declare(self, table: Table) -> None:
        opts = self._api.structs["weft_table_opts"]()
        self._call.weft_table_opts_init_sized(ctypes.byref(opts), ctypes.sizeof(opts))
        opts.name = _library_name(table.name)
        opts.dim = table.dim
        opts.settings = table._named.handle
        handle = ctypes.c_void_p()
        self._done(self._call.weft_table_add(self._handle, ctypes.byref(opts), ctypes.byref(handle)))
        table._handle = handle.value

    def restore(self, step: int, samples: int) -> None:
        """Continue a job whose values the caller has put into `param` and `state` of all tensors. Called by
        trainer 0 alone, before start.

        step     steps that the job had applied
        samples  samples of all trainers in them

        InvalidError: on another trainer, after start, or without keep_state=1 if the optimizer has state
        and step is above 0."""
        self._seal()
        number, seen = _whole("step", step), _whole("samples", samples)
        self._done(self._call.weft_session_restore(self._handle, number, seen))

    def load(self, folder: Any) -> None:
        """Continue the job of a saved pass: values, state, rows, steps and samples. All trainers call it
        before start, which distributes them; trainer 0 reads, and needs keep_state=1.

        folder  path of a saved pass, or of a folder of passes, of which the last one counts, or of a
                snapshot of the pservers, of which positions in the data are not used

        DataError: what is missing, damaged or different; MismatchError: another optimizer;
        SystemCallError: file and reason. Arrays may have been written to then."""
        self._seal()
        self._done(self._call.weft_session_load(self._handle, _path("load", folder)))

    def start(self) -> None:
        """Connect, agree on the job, and get trainer 0's values: see weft.start."""
        self._seal()
        self._wait_once("start", self._call.weft_session_start, self._handle)

    # Steps.

    def step(self, samples: int, cost: float = 0.0) -> None:
        """Begin the next step: see weft.step."""
        self._settled()
        number, paid = _whole("samples", samples), _number("cost", cost)
        status = self._call.weft_step(self._handle, number, paid)
        if status in (_OK, _AGAIN):  # tables may be answered when tensors are not
            self._forget_rows()
        self._done(status)
        self._lent.clear()

    def push(self, tensor: Union[Tensor, Array], grad: Optional[Array] = None) -> None:
        """Push a tensor's gradient for the step begun last: see weft.push."""
        if not isinstance(tensor, Tensor) or tensor.session is not self:
            tensor = self._tensor(tensor)
        if self._dead is not None or self._waiter is not None:
            self._enter(tensor)
        if grad is not None:
            self._copy_in(tensor, grad)
        status = self._weft_push(tensor._handle)
        if status != _OK:
            self._fail(status, tensor)
        self._lent.add(tensor)

    def _copy_in(self, tensor: Tensor, grad: Array) -> None:
        _check(grad, "tensor %s, gradient" % tensor.name, tensor.shape, written=False)
        own = tensor.grad
        if own.ctypes.data != grad.ctypes.data:
            if tensor in self._lent:  # the library, or a pserver of this host, may be reading it
                raise InvalidError(
                    "tensor %s: its arrays are lent to a push that is not answered; it is pushed once in a "
                    "step: weft.wait(), and begin the next" % tensor.name
                )
            np.copyto(own, grad)
            self._copied += own.nbytes

    def pull(self, tensor: Union[Tensor, Array, None] = None, out: Optional[Array] = None) -> None:
        """Fetch the current values of a tensor, or of all: see weft.pull. Waits."""
        if tensor is None:
            if out is not None:
                raise InvalidError("pull: out needs the tensor that it is a copy of, as in pull(tensor, out)")
            self._settled()
            self._wait(self._call.weft_pull_all, self._handle)
            return
        tensor = self._tensor(tensor)
        self._enter(tensor)
        if out is not None:
            _check(out, "tensor %s, out" % tensor.name, tensor.shape, written=True)
        self._wait(self._call.weft_pull, tensor._handle, tensor=tensor)
        if out is not None:
            np.copyto(out, tensor.param)
            self._copied += out.nbytes

    def wait(self, tensor: Union[Tensor, Array, None] = None) -> None:
        """Wait until the push or pull of a tensor, or all that is under way, is answered: see weft.wait."""
        if tensor is not None and (not isinstance(tensor, Tensor) or tensor.session is not self):
            tensor = self._tensor(tensor)
        if self._dead is not None or self._waiter is not None:
            self._enter(tensor)
        if tensor is not None:
            status = self._waiting(self._weft_wait, tensor._handle)
            if status != _OK:
                self._stopped(status, tensor)
            self._lent.discard(tensor)
            return
        try:
            self._wait(self._call.weft_wait_all, self._handle)
        finally:
            self._forget_rows()
        self._lent.clear()
        self._ends_later = False

    def _forget_rows(self) -> None:
        """Those of a step that has ended, or may have: another batch can land in them."""
        for rows in self._pushed_rows:
            rows._handle = None
        self._pushed_rows.clear()

    def exchange(self, samples: int = 1, cost: float = 0.0) -> None:
        """step, push of every tensor that is not static, and wait: see weft.exchange."""
        self._settled()
        number, paid = _whole("samples", samples), _number("cost", cost)
        status = self._waiting(self._call.weft_exchange, self._handle, number, paid)
        if status == InvalidError.status:
            self._fail(status)
        self._forget_rows()
        if status != _OK:
            self._lent.update(self._tensors)  # in this step or in the one before it
            self._stopped(status)
        self._lent.clear()

    def pass_end(self) -> None:
        """End this trainer's pass, and wait until every trainer has ended it: see weft.pass_end."""
        self._settled()
        self._wait_once("pass_end", self._call.weft_pass_end, self._handle)
        self._forget_rows()
        self._lent.clear()

    def barrier(self) -> None:
        """Wait until every trainer has called barrier."""
        self._settled()
        self._wait_once("barrier", self._call.weft_barrier, self._handle)

    def reduce(self, values: Any) -> Array:
        """The sum of up to 256 numbers over all trainers: see weft.reduce. Waits."""
        self._settled()
        given = _as_array("reduce", values)
        if given.dtype.kind not in "biuf":
            raise InvalidError("reduce: values are %s, real numbers are needed" % given.dtype)
        _refuse_vast("reduce: %d values" % given.size, given)
        total = np.array(given, dtype=np.float64, order="C")
        self._wait_once("reduce", self._call.weft_reduce, self._handle, total.ctypes.data, total.size)
        return total

    def all_reduce(self, array: Array, op: str = "sum") -> None:
        """Sum an array over all trainers, in place: see weft.all_reduce. Waits."""
        kind = None
        if (type(array) is _ndarray or _reduction.is_plain(array)) and array.flags.carray:
            kind = self._element_types.get(array.dtype)
        if kind is None:
            self._enter()
            _reduction.refuse(array)
        if op != "sum":
            _reduction.check_operation(op, array.dtype.kind == "i", array.dtype)
        # A pointer to array.ctypes.data, in a fifth of the time.
        count = array.size
        self._reduce(_byref(_first_byte(array)) if count > 0 else None, count, kind, self._operations[op])

    def _all_reduce(self, address: int, count: int, kind: int, how: int) -> None:
        """Elements of enum weft_type at an address, by enum weft_grad_reduce."""
        self._reduce(_as_pointer(address), count, kind, how)

    def _reduce(self, pointer: Any, count: int, kind: int, how: int) -> None:
        """The same at a pointer of ctypes; None: to nothing."""
        if self._dead is not None or self._waiter is not None:
            self._enter()
        status = self._waiting(self._weft_all_reduce, self._argument, pointer, _as_count(count), kind, how)
        if status != _OK:
            self._stopped_once("all_reduce", status)

    def pull_state(self) -> None:
        """Fetch `param` and `state` of every tensor, to save them. Waits. Called between pass_end and the
        next step; in a synchronous job between any two steps. InvalidError: without keep_state=1, or while
        a push is unanswered."""
        self._settled()
        self._wait_once("pull_state", self._call.weft_pull_state, self._handle)

    def save(self, folder: Any) -> None:
        """Save all tensors and tables with the optimizer's state as a pass: a folder pass-00000, numbered by
        the passes that have ended, of the kind that `weft train --save_dir` writes. All trainers call it
        together, between pass_end and the next step, and wait; trainer 0 writes, and needs keep_state=1.

        folder  path of the folder of passes, which is created if its parent exists

        InvalidError: in a step, or without keep_state=1. SystemCallError and others: trainer 0 could not
        save; its text has path and reason, and the job can go on."""
        self._settled()
        self._wait_once("save", self._call.weft_session_save, self._handle, _path("save", folder))

    def position(self, where: bytes) -> None:
        """Give the position of this trainer's data after its share of the next step, with which it travels.
        A session that goes on from a snapshot of the pservers has it back: `resumed`.

        where  up to 256 bytes, of which only the program knows the meaning

        InvalidError: before start, or they are too many; UnsupportedError: no tensor that is pushed has a
        part on the first lane of the first pserver."""
        self._enter()
        if not isinstance(where, (bytes, bytearray)):
            raise InvalidError("position: %.60r is not bytes" % (where,))
        data = bytes(where)
        self._done(self._call.weft_session_position(self._handle, data, len(data)))

    # What there is to know.

    @property
    def resumed(self) -> Optional[Dict[str, Any]]:
        """None, or where the pservers had a snapshot with which the session has begun: "step" and "samples",
        of all trainers, that are in it, "pass_count", the passes that had ended before it, and
        "position", the bytes that this trainer had given, b"" if it had not. A trainer whose position is
        of an earlier pass begins with the first batch of this one."""
        self._enter()
        out = self._api.structs["weft_resumed"]()
        if not self._call.weft_session_resumed(self._handle, ctypes.byref(out)):
            return None
        values = {name: int(getattr(out, name)) for name in ("step", "samples", "pass_count")}
        return dict(values, position=bytes(out.position[: out.position_bytes]))

    @property
    def steps(self) -> int:
        """Steps begun so far, those of the job that it continues included."""
        self._enter()
        return int(self._call.weft_steps(self._handle))

    def samples(self) -> int:
        """Samples of all trainers in the steps so far, those of the job that it continues included: what
        `restore` has to be given. Waits. InvalidError: in the middle of a step, while other trainers go on
        without this one, or the job is not synchronous or pushes no tensor."""
        self._settled()
        out = ctypes.c_uint64()
        self._wait_once("samples", self._call.weft_samples, self._handle, ctypes.byref(out))
        return out.value

    @property
    def trainer_id(self) -> int:
        """This trainer's number, from 0. Also after close."""
        return self._trainer_id

    @property
    def num_gradient_servers(self) -> int:
        """The number of trainers of the job. Also after close."""
        return self._trainers

    def setting(self, name: str) -> str:
        """The value of a setting, by its `name` in weft_settings_set, as a text: setting("connect_timeout")
        is "5s". Also after close. InvalidError: there is no such setting; the text names the nearest."""
        return self._named.get(name)

    def digest(self) -> int:
        """64 bits over every byte of every `param`: see weft.digest. Seals the session."""
        self._enter()
        out = ctypes.c_uint64()
        self._seal()
        self._done(self._call.weft_digest(self._handle, ctypes.byref(out)))
        return out.value

    def stats(self) -> Dict[str, Any]:
        """Counters since the start: the fields of struct weft_session_stats by name, and `copied_bytes`: what
        was copied between weft's arrays and others because a call was given an array that is not weft's.
        Never waits for a pserver. Also after the job has failed, until close."""
        self._enter()
        found = self._read_struct("weft_session_stats", self._call.weft_session_stats, self._handle)
        found["copied_bytes"] = self._copied
        return found

    def trainer_stats(self, trainer_id: int) -> Dict[str, Any]:
        """What the pservers have counted about a trainer of the job: the fields of struct weft_trainer_stats
        by name, times in nanoseconds, which are 0 unless the pservers have a stats_period. Waits; best after
        pass_end. InvalidError: trainer_id is not below num_gradient_servers."""
        self._settled()
        number = _whole("trainer_id", trainer_id)
        if number >= self.num_gradient_servers:
            raise InvalidError("trainer_id %d: the job has %d" % (number, self.num_gradient_servers))
        return self._read_struct("weft_trainer_stats", self._call.weft_trainer_stats, self._handle, number)

    def _read_struct(self, name: str, function: Any, handle: Optional[int], *arguments: Any) -> Dict[str, Any]:
        out = self._api.structs[name]()
        out.struct_bytes = ctypes.sizeof(out)
        self._wait_once(function.__name__, function, handle, *arguments, ctypes.byref(out))
        values = {field: getattr(out, field) for field, _ in out._fields_ if field != "struct_bytes"}
        return {k: list(v) if isinstance(v, ctypes.Array) else v for k, v in values.items()}

    # The end.

    def finish(self) -> None:
        """End the job, and wait for all trainers to do so: see weft.finish."""
        self._settled()
        self._wait_once("finish", self._call.weft_session_finish, self._handle)

    def leave(self) -> None:
        """Leave the job, which goes on with the other trainers from the next step on; between two steps. Everything
        that this trainer has pushed counts. Then only close is allowed. weft.UnsupportedError if the pservers do not
        have --on_trainer_death=drop; weft.InvalidError in the middle of a step. Another process takes the place with
        Session(join=True, trainer_id=...): see joined."""
        self._settled()
        self._wait_once("leave", self._call.weft_session_leave, self._handle)

    @property
    def joined(self) -> bool:
        """Whether this session has joined a job that was running, where resumed says. The other trainers are in the
        midst of it: calls that all make together when a job begins, such as a barrier, are not made."""
        self._enter()
        return bool(self._call.weft_session_joined(self._handle))

    def close(self) -> None:
        """Leave the job in good order, and wait for the pservers' answers, at most reconnect_timeout. In the
        middle of a step it ends the job for all members. Arrays stay readable. Closing again does nothing.
        Raises why the job did not end in good order: its first cause, or LostError if only the answer to a
        finished job is missing. The session is closed all the same, unless another thread is in a call of
        it: InvalidError."""
        stopped = self._settle_to_close()
        status = self._end("the session was closed", self._call.weft_session_close)
        if stopped is not None:
            raise stopped
        self._raise_caught()
        self._done(status)

    def _settle_to_close(self) -> Optional[BaseException]:
        """What a handler of a signal raised while the last step was waited for. What else fails fails in
        closing, too."""
        try:
            if self._ends_later and self._dead is None:
                self.wait()
        except Error:
            pass
        except BaseException as error:  # noqa: B902, whatever a handler raises
            return error
        return None

    def abort(self, reason: str) -> None:
        """End the job for all members, which show the text `reason` as the first cause, and close the
        session. After close it does nothing. InvalidError: another thread is in a call."""
        if not isinstance(reason, str):
            raise InvalidError("abort: %.60r is not text" % (reason,))
        text = reason.encode("utf-8", "replace")
        abort = self._call.weft_session_abort
        self._end("the session was aborted: " + reason, abort, AbortedError.status, text)
        self._raise_caught()

    def _end(self, text: str, function: Any, *arguments: Any) -> int:
        """The status of closing or aborting. The session goes on, and InvalidError is raised, if
        another thread is in a call of it."""
        before, handle = self._dead, None
        ended: List[int] = []
        if before is not None and before[0] is ForkedError:
            return _OK
        if self._handle is not None and self._waiter is not None:
            _refuse_beside(self._waiter)
        try:
            with self._ending:
                handle, self._handle = self._handle, None
            if handle is None:
                return _OK
            self._caught.clear()
            self._dead = (ClosedError, text)
            # One call for the interpreter: a handler that raises finds its status noted.
            ended.extend(map(function, (handle,), *((argument,) for argument in arguments)))
        finally:
            if handle is not None:
                self._note_end(handle, before, ended)
        return ended[0]

    def _note_end(self, handle: int, before: Optional[Tuple[type, str]], ended: List[int]) -> None:
        if not ended or ended[0] == _AGAIN:
            self._handle, self._dead = handle, before
            if ended:
                _refuse_beside(None)
            return
        self._forget_rows()
        _sessions.discard(self)
        for memory in self._memory:  # keep_arrays: it is ours from here on
            memory.ours = True

    def _raise_caught(self) -> None:
        """What a handler raised in a call that did not end with it."""
        if self._caught:
            raise self._take_caught()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self.close()
        else:
            self._abort_after(kind, "%s: %s" % (kind.__name__, error))

    def _abort_after(self, kind: Type[BaseException], text: str) -> None:
        """Ctrl-C is told as what it is: who was stopped by it."""
        if issubclass(kind, KeyboardInterrupt):
            self._stop(signal.SIGINT)
        self.abort(text)

    def _stop(self, number: int) -> None:
        """From any thread, and from a handler in any call."""
        with self._ending:
            if self._handle is not None:
                self._call.weft_session_stop(self._handle, number)


def _refuse_beside(caller: Optional[Tuple[int]]) -> NoReturn:
    """A call beside this one of the same session."""
    if caller is not None and caller[0] == get_ident():
        raise InvalidError(
            "a call of this session is waiting: a signal's handler cannot make another one; raise an "
            "exception in it, which ends the call"
        )
    raise InvalidError(
        "another thread is in a call of this session: one thread at a time, so put a lock around "
        "the calls, or a session into each thread"
    )


def _own_or_job(settings: Dict[str, Any]) -> Dict[str, Any]:
    """None: the job's, which is 0 there, as what is not given; 0: none, which is negative there."""
    return {k: -1.0 if k in _NONE_IS_NEGATIVE and v == 0 else v for k, v in settings.items()}


def _log_to(log: Callable[[str, str], None]) -> Callable[[Any, int, bytes], None]:
    def line(_: Any, level: int, text: bytes) -> None:
        log(_LEVELS[level] if level < len(_LEVELS) else "error", text.decode("utf-8", "replace"))

    return line


_forked_from = 0


def _forked_text() -> str:
    return (
        "this process was forked from process %d, which had a session of weft: neither that session "
        "nor a new one works here; start processes with the method 'spawn', or before weft.init"
        % _forked_from
    )


def _refuse_forked() -> None:
    if _forked_from:
        raise ForkedError(_forked_text())


def _after_fork() -> None:
    global _forked_from
    if not _sessions:
        return
    _forked_from = _forked_from or os.getppid()
    for session in _sessions:
        session._dead = (ForkedError, _forked_text())
        session._ending = RLock()  # another thread may have had it


os.register_at_fork(after_in_child=_after_fork)


_uncaught: List[Tuple[Type[BaseException], str]] = []


def _note_uncaught() -> None:
    """What ends the interpreter is what the other members of its jobs are told."""
    before = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
        _uncaught.append((kind, "%s: %s" % (kind.__name__, error)))
        before(kind, error, trace)

    sys.excepthook = hook


def _at_exit() -> None:
    for session in list(_sessions):
        if session._waiter:  # a daemon thread's
            continue
        try:
            if _uncaught:
                session._abort_after(*_uncaught[0])
            else:
                session.close()
        except Error as error:
            print("weft: %s" % error, file=sys.stderr)


def stopped(number: int, frame: Optional[FrameType] = None) -> NoReturn:
    """A handler for signals that end the program: the other members' first cause is then "trainer 1 (host
    nodea, pid 12) was stopped by SIGTERM". `number` and `frame` are those of a handler.

    signal.signal(signal.SIGTERM, weft.stopped)

    Raises SystemExit with the status 128 + number."""
    for session in list(_sessions):
        session._stop(number)
    raise SystemExit(128 + number)


_note_uncaught()

atexit.register(_at_exit)

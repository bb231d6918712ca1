# SPDX-License-Identifier: Apache-2.0
"""weft: a trainer's side of the parameter exchange fabric, for Python.

    import weft
    weft.init(pservers="127.0.0.1", num_gradient_servers=2, trainer_id=0,
              grad_reduce="mean", optimizer="sgd", learning_rate=0.1)
    w = weft.empty((13, 1), name="w")
    w.param[:] = first_values          # trainer 0's are everybody's
    weft.start()
    for x, y in batches:
        compute w.grad from w.param    # sums over the batch
        weft.exchange(samples=len(x))  # push all, wait for fresh values
    weft.close()

The functions here are those of one session, the one that `init` made; `weft.Session` is for who
needs several. What a call may raise is in weft.errors: a class for each status, with the library's
text. Semantics: include/weft/weft.h and include/weft/sparse.h."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Union

import numpy as np

from weft import _abi
from weft.errors import (
    AbortedError,
    AgainError,
    ClosedError,
    DataError,
    DeadlineError,
    DeniedError,
    Error,
    ForkedError,
    InternalError,
    InvalidError,
    LostError,
    MismatchError,
    OutOfMemoryError,
    ProtocolError,
    RefusedError,
    SystemCallError,
    UnavailableError,
    UnsupportedError,
)
from weft.session import Array, Rows, Session, Table, Tensor, _refuse_forked, stopped

__version__ = "0.1.0"
__all__ = [
    "AbortedError",
    "AgainError",
    "ClosedError",
    "DataError",
    "DeadlineError",
    "DeniedError",
    "Error",
    "ForkedError",
    "InternalError",
    "InvalidError",
    "LostError",
    "MismatchError",
    "OutOfMemoryError",
    "ProtocolError",
    "RefusedError",
    "Rows",
    "Session",
    "SystemCallError",
    "Table",
    "Tensor",
    "UnavailableError",
    "UnsupportedError",
    "abort",
    "all_reduce",
    "barrier",
    "close",
    "digest",
    "empty",
    "exchange",
    "init",
    "library_version",
    "num_gradient_servers",
    "pass_end",
    "pull",
    "push",
    "reduce",
    "session",
    "start",
    "stats",
    "step",
    "stopped",
    "table",
    "trainer_id",
    "wait",
]

_session: Optional[Session] = None


def init(
    *,
    pservers: Union[str, Sequence[str], None] = None,
    port: Optional[int] = None,
    ports_num: Optional[int] = None,
    ports_num_for_sparse: Optional[int] = None,
    num_gradient_servers: Optional[int] = None,
    trainer_id: Optional[int] = None,
    trainer_count: Optional[int] = None,
    use_gpu: Optional[bool] = None,
    log: Optional[Callable[[str, str], None]] = None,
    **settings: Any,
) -> Session:
    """Describe the job and this trainer's place in it. No network yet.

    pservers              host, host:port or [v6]:port, a list or with commas; the order counts
    port                  of entries that name none: 7164
    ports_num             dense lanes of each pserver: 1
    ports_num_for_sparse  sparse lanes after them, for tables: 0
    num_gradient_servers  number of trainers: 1
    trainer_id            0 .. num_gradient_servers - 1: 0
    trainer_count         compute threads of this trainer, for the caller's use: 1
    use_gpu               has to be False
    log                   called with level ("warn") and line, from any thread; None: warnings to stderr
    settings              any setting of struct weft_session_opts by its name in weft_settings_set:
                          grad_reduce="mean", optimizer="momentum", learning_rate=0.1, transport="tcp",
                          connect_timeout=5 (seconds, or a text: "20ms"), slice_bytes="64KiB" and so on;
                          compared="seed=1 batch_size=32": what else all trainers must have alike, in words

    What is not given comes from WEFT_<NAME>, else PADDLE_INIT_<NAME> (empty: not set), else from the
    launcher (mpirun, srun, torchrun, Volcano: `weft env` shows it), else the library's default.
    Settings of paddle.init that mean nothing here (nics, comment, ...) are accepted.
    Raises InvalidError, which names setting, value and where it came from."""
    global _session
    _refuse_forked()
    if _session is not None and _session._handle is not None:
        raise InvalidError("weft.init a second time: call weft.close() first, or make a weft.Session")
    given = dict(
        settings,
        pservers=pservers,
        port=port,
        ports_num=ports_num,
        ports_num_for_sparse=ports_num_for_sparse,
        num_gradient_servers=num_gradient_servers,
        trainer_id=trainer_id,
        trainer_count=trainer_count,
        use_gpu=use_gpu,
    )
    _session = Session(log=log, **given)
    return _session


def session() -> Session:
    """The session that init made; InvalidError where there is none."""
    if _session is None:
        raise InvalidError("call weft.init first")
    return _session


def empty(
    shape: Union[int, Sequence[int]], dtype: Any = np.float32, name: Optional[str] = None, **settings: Any
) -> Tensor:
    """Declare a tensor: two arrays, `param` and `grad`, in the memory that weft sends from, zeroed.

    All trainers declare the same ones in the same order, before weft.start. `name` is unique in the
    job. Settings: static (never pushed: True), reduce (True: a push is answered with the sum of all
    trainers' pushes, or the mean as grad_reduce says, in `param`, and nothing is applied), and those of
    struct weft_tensor_opts by their names: rate_multiplier; decay, clip, l1 (0: none; not given: the
    job's); mode="async"; priority=1; and so on. Raises InvalidError, with the tensor's name: dtype
    other than float32, bad or repeated name or size, or the session's arrays were looked at already."""
    return session().empty(shape, dtype, name, **settings)


def table(name: str, dim: int, **settings: Any) -> Table:
    """Declare a table of rows of `dim` values, before weft.start. Needs ports_num_for_sparse of at
    least 1. Settings: those of struct weft_table_opts and of its optimizer, by their names, as in
    table("words", 32, optimizer="adagrad", learning_rate=0.05, init="uniform", init_a=-.1, init_b=.1)."""
    return session().table(name, dim, **settings)


def start() -> None:
    """Connect to every pserver, wait for all members to agree, and take trainer 0's values.

    Raises DeadlineError (who was not there), MismatchError or RefusedError (what differs), ..."""
    session().start()


def step(samples: int, cost: float = 0.0) -> None:
    """Begin the next step, in which this trainer has so many samples. AgainError: wait first."""
    session().step(samples, cost)


def push(tensor: Union[Tensor, Array], grad: Optional[Array] = None) -> None:
    """Hand in a tensor's gradient for the step begun last. Never blocks.

    `tensor` is what weft.empty gave, or its array. With `grad` another array's values are copied to
    the tensor's own first, and counted (stats()["copied_bytes"]). Both of the tensor's arrays are
    lent until weft.wait. InvalidError, with the tensor's name: pushed already in this step, static,
    no step begun; of `grad`: dtype, shape, or not contiguous."""
    session().push(tensor, grad)


def pull(tensor: Union[Tensor, Array, None] = None, out: Optional[Array] = None) -> None:
    """Fetch current values of a tensor, or of all, and wait for them; `out` gets a copy."""
    session().pull(tensor, out)


def wait(tensor: Union[Tensor, Array, None] = None) -> None:
    """Wait until the push or pull of a tensor, or everything, is answered.

    After KeyboardInterrupt or another exception of a signal's handler it may be called again."""
    session().wait(tensor)


def exchange(samples: int = 1, cost: float = 0.0) -> None:
    """step, push of every tensor, and wait: a synchronous step in one call."""
    session().exchange(samples, cost)


def pass_end() -> None:
    """End this trainer's pass and wait for the others; all hold the same, newest values then."""
    session().pass_end()


def barrier() -> None:
    """Wait until every trainer has come to its barrier."""
    session().barrier()


def reduce(values: Any) -> Array:
    """Sum up to 256 numbers over all trainers, in trainer order: the same bits everywhere."""
    return session().reduce(values)


def all_reduce(array: Array, op: str = "sum") -> None:
    """Sum an array over all trainers, in place, whether or not weft has it. Waits.

    array  C-contiguous, aligned and writable, of any shape, () and empty ones too; float32, float64,
           float16, int32 or int64. In: this trainer's; out: the result, the same bits on all trainers
    op     "sum": ((a0 + a1) + a2) + ... in the order of the trainers' numbers, each addition rounded to
           the dtype as NumPy does it; integers wrap, NaN and Inf pass. "mean": that divided by the
           number of trainers (in float32, of float64 in float64), then rounded; not for integers

    Needs weft.init(all_reduce_ring="4MiB"), on all trainers the same: the bytes that are under way at a
    time. No tensor has to be declared. All trainers make the same calls in the same order, after
    weft.start; pushes may be under way, but not of this array.
    Raises InvalidError, and nothing has happened: dtype, layout, op, no ring. MismatchError and others
    as weft.wait, and the array may be summed in part: trainers whose calls differ in bytes or dtype get
    a text with both. After a handler of a signal has raised, the session can only be closed."""
    session().all_reduce(array, op)


def digest() -> int:
    """64 bits over every parameter byte, tensors in order of their names."""
    return session().digest()


def stats() -> Dict[str, Any]:
    """Counters: struct weft_session_stats, and copied_bytes."""
    return session().stats()


def trainer_id() -> int:
    """This trainer's number."""
    return session().trainer_id


def num_gradient_servers() -> int:
    """The number of trainers of the job."""
    return session().num_gradient_servers


def close() -> None:
    """Leave the job in good order. Arrays stay readable. Without a session nothing happens."""
    if _session is not None:
        _session.close()


def abort(reason: str) -> None:
    """End the job for everybody, with a reason that all members show."""
    session().abort(reason)


def library_version() -> str:
    """The version of libweft that was found."""
    return str(_abi.api().functions.weft_version().decode())

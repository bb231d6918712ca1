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

The functions here are those of one session, the one that `init` made; a program that needs several
makes each as a `weft.Session`, which documents threads, waiting and what any call may raise. Before
`init` they raise InvalidError. The exceptions are in weft.errors: a class for each status, with the
library's text. Semantics: include/weft/weft.h and include/weft/sparse.h."""

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
    RolledBack,
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
    "RolledBack",
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
    "finish",
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
    """Describe the job and this trainer's place in it. Does not use the network yet.

    pservers              host, host:port or [v6]:port; a list, or a text with commas; the order counts
    port                  of pservers that name none; default: 7164
    ports_num             dense lanes of each pserver, on consecutive ports; default: 1
    ports_num_for_sparse  sparse lanes on the ports after those, for tables; default: 0
    num_gradient_servers  number of trainers; default: 1
    trainer_id            0 .. num_gradient_servers - 1; default: 0
    trainer_count         compute threads of this trainer, for the caller's own use; default: 1
    use_gpu               has to be False
    log                   function of level ("debug", "info", "warn", "error") and line, called from any
                          thread; None: warnings go to stderr
    settings              any setting of struct weft_session_opts by its name in weft_settings_set:
                          grad_reduce="mean", optimizer="momentum", learning_rate=0.1, transport="tcp",
                          connect_timeout=5 (seconds, or a text: "20ms"), slice_bytes="64KiB" and so on;
                          compared="seed=1 batch_size=32": what else must be the same on all trainers

    None stands for WEFT_<NAME>, else PADDLE_INIT_<NAME> (an empty one counts as not set), else for what
    the launcher gives (mpirun, srun, torchrun, Volcano: `weft env` shows it), else for the default.
    Settings of paddle.init that have no meaning here (nics, comment, ...) are accepted.
    Returns the session. Raises InvalidError, which names setting, value and where it came from, and if
    the last session is not closed; UnsupportedError for use_gpu=True; ForkedError, see Session."""
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
    """The session that init made last, which may be closed; InvalidError if there was none."""
    if _session is None:
        raise InvalidError("call weft.init first")
    return _session


def empty(
    shape: Union[int, Sequence[int]], dtype: Any = np.float32, name: Optional[str] = None, **settings: Any
) -> Tensor:
    """Declare a tensor: two arrays, `param` and `grad`, in the memory that weft sends from, zeroed.
    All trainers declare the same ones in the same order, before weft.start.

    shape     a number, or a sequence of at most 32; each at least 1; () for a single value
    dtype     has to be float32
    name      unique in the job; any text whose form in the library (a blank is "%20") has at most 127
              characters; None: "tensor_N", where N is the number of tensors before it
    settings  static=True: never pushed nor updated; reduce=True: a push is answered with the sum of all
              trainers' pushes, or the mean as grad_reduce says, in `param`, and nothing is applied;
              in_place=True, with reduce=True: `param` and `grad` are one array, so that the sum replaces
              what was pushed; and those of struct weft_tensor_opts by their names: rate_multiplier; decay, clip, l1 (0:
              none; None: the job's); mode="async"; priority=1; and so on

    Raises InvalidError, with the tensor's name: another dtype, a bad or repeated name, a bad shape or
    setting, or an array of the session was looked at already."""
    return session().empty(shape, dtype, name, **settings)


def table(name: str, dim: int, **settings: Any) -> Table:
    """Declare a table of rows found by keys of 64 bits. All trainers declare the same ones in the same
    order, before weft.start and the first look at an array. Needs ports_num_for_sparse of at least 1.

    name      unique in the job; as of weft.empty
    dim       float32 values in each row, 1 to 4,096
    settings  those of struct weft_table_opts and of its optimizer, by their names, as in
              table("words", 32, optimizer="adagrad", learning_rate=0.05, init="uniform", init_a=-.1,
              init_b=.1); batch_keys_max=100000: the most keys of one batch, 65,536 if not given

    Raises InvalidError, with the table's name."""
    return session().table(name, dim, **settings)


def start() -> None:
    """Connect to every pserver, agree on the job with it, and get trainer 0's values into every `param`.
    Waits for pservers and trainer 0; the first step or barrier waits for the other trainers.

    DeadlineError names what did not answer within connect_timeout; MismatchError or RefusedError what
    differs, with both values. After these, or an exception of a signal's handler, the session can only
    be closed."""
    session().start()


def step(samples: int, cost: float = 0.0) -> None:
    """Begin the next step. Never blocks.

    samples  of this trainer's share of the step, at least 1
    cost     summed over these samples; it is sent to the pservers, and nothing depends on it

    AgainError: a push of the last step is unanswered; call weft.wait. InvalidError, and no step has
    begun: no samples, a tensor of the last step was not pushed (it is named), before weft.start."""
    session().step(samples, cost)


def push(tensor: Union[Tensor, Array], grad: Optional[Array] = None) -> None:
    """Push a tensor's gradient for the step begun last. Never blocks. Each tensor that is not static is
    pushed once in a step, in any order.

    tensor  what weft.empty returned, or its `param` or `grad`
    grad    None: the tensor's own `grad`. An array, float32 of its shape and C-contiguous: it is copied
            to the tensor's own first, and counted in stats()["copied_bytes"]

    Both arrays of the tensor are lent until weft.wait: do not write to them, nor rely on `param`.
    InvalidError, with the tensor's name: pushed already in this step, static, no step begun; of `grad`
    its dtype, shape or layout."""
    session().push(tensor, grad)


def pull(tensor: Union[Tensor, Array, None] = None, out: Optional[Array] = None) -> None:
    """Fetch the current values into `param`. Waits.

    tensor  what weft.empty returned, or its array; None: all tensors
    out     another array that gets a copy: float32 of the tensor's shape, C-contiguous and writable,
            counted in stats()["copied_bytes"]; None: no copy

    InvalidError: a push of the tensor is unanswered; `out` without a tensor, its dtype, shape or
    layout."""
    session().pull(tensor, out)


def wait(tensor: Union[Tensor, Array, None] = None) -> None:
    """Wait until the push or pull of a tensor is answered; None: all that is under way. `param` then has
    the fresh values, and both arrays are the caller's again. Returns at once if nothing is under way.

    tensor  what weft.empty returned, or its array

    DeadlineError: step_timeout has passed. After KeyboardInterrupt, or another exception of a signal's
    handler, it may be called again."""
    session().wait(tensor)


def exchange(samples: int = 1, cost: float = 0.0) -> None:
    """step, push of every tensor that is not static, and wait, in one call. samples and cost as of
    weft.step. Raises what these three raise. After an exception of a signal's handler call weft.wait."""
    session().exchange(samples, cost)


def pass_end() -> None:
    """End this trainer's pass, and wait until every trainer has ended it. All of them then have the same,
    newest values. Trainers may end a pass after different numbers of steps. InvalidError: a tensor of
    the last step was not pushed (it is named)."""
    session().pass_end()


def finish() -> None:
    """End the job, and wait until all trainers have come here: until then it may go back to a snapshot, and
    this trainer with it (RolledBack). Only close may follow. Programs that go on after RolledBack call this
    before close; others need not."""
    session().finish()


def barrier() -> None:
    """Wait until every trainer has called barrier."""
    session().barrier()


def reduce(values: Any) -> Array:
    """Sum up to 256 numbers over all trainers, in the order of the trainers: the same bits everywhere.
    Waits. All trainers make the same calls in the same order.

    values  real numbers, an array or nested lists of any shape, computed with in float64

    Returns the sum, a float64 array of that shape. InvalidError: more than 256, or no real numbers.
    MismatchError: the calls of trainers differ, and the job is over."""
    return session().reduce(values)


def all_reduce(array: Array, op: str = "sum") -> None:
    """Sum an array over all trainers, in place, whether or not weft has it. Waits.

    array  C-contiguous, aligned and writable, of any shape, () and empty ones too; float32, float64,
           float16, int32 or int64. In: this trainer's; out: the result, the same bits on all trainers.
           Lent until the call returns
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
    """64 bits over every byte of every `param`, tensors in the order of their names: the same number on
    all trainers after pass_end."""
    return session().digest()


def stats() -> Dict[str, Any]:
    """Counters since weft.start: the fields of struct weft_session_stats by name (the end of a name is its
    unit: `_bytes`, `_ns`), and `copied_bytes`, see Session.stats."""
    return session().stats()


def trainer_id() -> int:
    """This trainer's number, from 0."""
    return session().trainer_id


def num_gradient_servers() -> int:
    """The number of trainers of the job."""
    return session().num_gradient_servers


def close() -> None:
    """Leave the job in good order; see Session.close. Without a session nothing happens."""
    if _session is not None:
        _session.close()


def abort(reason: str) -> None:
    """End the job for all members and close the session. All members show the text `reason`."""
    session().abort(reason)


def library_version() -> str:
    """The version of the library that is loaded, such as "0.1.0"."""
    return str(_abi.api().functions.weft_version().decode())

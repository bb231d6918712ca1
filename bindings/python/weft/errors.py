# SPDX-License-Identifier: Apache-2.0
"""One exception for each status of the library, with the library's text.

Where Python has an exception of the same meaning, ours is one of that too, so that
`except TimeoutError` works."""

from __future__ import annotations

from typing import Dict, Tuple, Type


class Error(Exception):
    """The base of all errors of weft. `status` is the number of their status in enum weft_status."""

    status = 16


class AgainError(Error):
    """The call has to be made again, once what is unanswered was waited for. Nothing has happened."""

    status = 1


class InvalidError(Error, ValueError):
    """The caller broke the rules of the call: an argument, an array, or the order of calls."""

    status = 2


class OutOfMemoryError(Error, MemoryError):
    """There is not enough memory, or a limit on memory is reached."""

    status = 3


class DeadlineError(Error, TimeoutError):
    """A deadline passed, such as connect_timeout or step_timeout; the text names what did not arrive."""

    status = 4


class UnavailableError(Error, ConnectionError):
    """The peer cannot be reached, or an address is in use."""

    status = 5


class RefusedError(Error, ConnectionError):
    """A pserver refused this trainer, and gave its reason."""

    status = 6


class MismatchError(Error):
    """Members of the job disagree; the text has what differs, and mostly both values."""

    status = 7


class ProtocolError(Error):
    """The peer sent what the protocol does not allow."""

    status = 8


class LostError(Error, ConnectionError):
    """A member of the job, a pserver or a trainer, has gone."""

    status = 9


class AbortedError(Error):
    """The job was aborted; the text is the first cause."""

    status = 10


class ClosedError(Error):
    """The call was made after this program had closed or aborted the session."""

    status = 11


class SystemCallError(Error, OSError):
    """The operating system refused input or output. The text has the reason; `errno` is None."""

    status = 12


class DataError(Error, ValueError):
    """Bad data: a gradient that is not finite, a damaged file."""

    status = 13


class DeniedError(Error, PermissionError):
    """It is not permitted. The text has the reason; `errno` is None."""

    status = 14


class UnsupportedError(Error, NotImplementedError):
    """It is not built in, or not offered by this machine or by the binding."""

    status = 15


class InternalError(Error):
    """A defect in weft."""

    status = 16


class RolledBack(Error):
    """The job has lost a member and has gone back, and this session with it: its arrays have the values of
    the snapshot after step `step`, and `position` has the bytes that this trainer gave for it, b"" if it
    had not. `step` is 0 if the job begins anew. Rows that were pulled are void. The program goes on
    there. `text` says who was lost."""

    status = 17

    def __init__(self, text: str, step: int = 0, position: bytes = b"") -> None:
        super().__init__(text)
        self.step = step
        self.position = position

    def __reduce__(self) -> Tuple[Type[RolledBack], Tuple[str, int, bytes]]:
        return type(self), (str(self), self.step, self.position)


class ForkedError(InvalidError):
    """A session was used, or made, in a child of fork whose parent had one."""


_KINDS: Tuple[Type[Error], ...] = (
    AgainError,
    InvalidError,
    OutOfMemoryError,
    DeadlineError,
    UnavailableError,
    RefusedError,
    MismatchError,
    ProtocolError,
    LostError,
    AbortedError,
    ClosedError,
    SystemCallError,
    DataError,
    DeniedError,
    UnsupportedError,
    InternalError,
    RolledBack,
)
OF_STATUS: Dict[int, Type[Error]] = {kind.status: kind for kind in _KINDS}

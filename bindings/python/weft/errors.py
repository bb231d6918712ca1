# SPDX-License-Identifier: Apache-2.0
"""One exception for each status of the library, with the library's text.

Where Python has an exception of the same meaning, ours is one of that too, so that
`except TimeoutError` works."""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """What all errors of weft are. `status` is the number of the header's enum weft_status."""

    status = 16


class AgainError(Error):
    """Not now: what has to be waited for first is unanswered."""

    status = 1


class InvalidError(Error, ValueError):
    """The caller broke the rules of the call: an argument, an array, or the order of calls."""

    status = 2


class OutOfMemoryError(Error, MemoryError):
    """Memory, or a limit on memory."""

    status = 3


class DeadlineError(Error, TimeoutError):
    """A deadline passed."""

    status = 4


class UnavailableError(Error, ConnectionError):
    """The peer cannot be reached, or an address is in use."""

    status = 5


class RefusedError(Error, ConnectionError):
    """The peer said no and said why."""

    status = 6


class MismatchError(Error):
    """Members of the job disagree."""

    status = 7


class ProtocolError(Error):
    """The peer sent what the protocol does not allow."""

    status = 8


class LostError(Error, ConnectionError):
    """A member of the job has gone."""

    status = 9


class AbortedError(Error):
    """The job was aborted; the text is the first cause."""

    status = 10


class ClosedError(Error):
    """The session was closed."""

    status = 11


class SystemCallError(Error, OSError):
    """The operating system refused input or output."""

    status = 12


class DataError(Error, ValueError):
    """Bad data: a gradient that is not finite, a damaged file."""

    status = 13


class DeniedError(Error, PermissionError):
    """Not permitted."""

    status = 14


class UnsupportedError(Error, NotImplementedError):
    """Not built in, or not offered by this machine."""

    status = 15


class InternalError(Error):
    """A defect in weft."""

    status = 16


class ForkedError(InvalidError):
    """A session was used in a child that its process forked."""


OF_STATUS: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (
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
    )
}

# SPDX-License-Identifier: Apache-2.0
"""Settings by name: from arguments, WEFT_*, the original's PADDLE_INIT_*, and the launcher's variables.

The library has the one table of settings: their names, what they may be, and the texts that refuse
what they may not be. Here values become texts, as a command line has them: a number of seconds is a
duration (`connect_timeout=5`), a list has commas, and "20ms" and "64KiB" stay as they are."""

from __future__ import annotations

import ctypes
import decimal
import itertools
import operator
import os
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from weft import _abi
from weft.errors import InvalidError, OutOfMemoryError, UnsupportedError

# Of paddle.init and the original's command lines: accepted, and without effect here.
WITHOUT_EFFECT = frozenset(
    "comment nics rdma_tcp small_messages use_old_updater parallel_thread_num sock_send_buf_size "
    "sock_recv_buf_size log_period dot_period num_passes local use_mkldnn seed".split()
)
_ENVIRONMENT = ("WEFT_", "PADDLE_INIT_")
_TEXT_BYTES = 1 << 16  # of a value that is read; a longer one is cut
_NO = ("", "0", "no", "off", "false", "none")
_YES = ("1", "yes", "on", "true")


class Named:
    """The library's settings of a session, a tensor or a table (enum weft_settings_kind), which are
    lent to the call that they are for. `own`: those that the binding sets itself."""

    def __init__(self, kind: str, own: Optional[Mapping[str, Any]] = None) -> None:
        api = _abi.api()
        self._call = api.functions
        self._kind = api.enums["weft_settings_kind"]["WEFT_SETTINGS_" + kind]
        self._own = dict(own or {})
        self.handle = ctypes.c_void_p()
        if self._call.weft_settings_create(self._kind, ctypes.byref(self.handle)):
            raise OutOfMemoryError(self._error())
        for name, value in self._own.items():
            self._set(name, value)

    def __del__(self) -> None:
        self._call.weft_settings_destroy(self.handle)

    def _error(self) -> str:
        return str(self._call.weft_last_error().decode("utf-8", "replace"))

    def _set(self, name: str, value: Any) -> None:
        if self._call.weft_settings_set(self.handle, _text(name, name), _text(name, value)):
            raise InvalidError(self._error())

    def set(self, name: str, value: Any, source: str = "argument") -> None:
        if name in self._own:
            raise InvalidError("%s=%r (%s): it is not set by this name in Python" % (name, value, source))
        try:
            self._set(name, value)
        except InvalidError as error:
            raise InvalidError("%s (%s)" % (error, source)) from None

    def get(self, name: str) -> str:
        """The value, as a command line would have it."""
        out = ctypes.create_string_buffer(_TEXT_BYTES)
        if self._call.weft_settings_get(self.handle, _text(name, name), out, _TEXT_BYTES):
            raise InvalidError(self._error())
        return out.value.decode("utf-8", "replace")

    def names(self) -> Iterator[str]:
        """All that can be given."""
        for number in itertools.count():
            name = self._call.weft_settings_name(self._kind, number)
            if name is None:
                return
            if name.decode() not in self._own:
                yield name.decode()

    def fill(self, given: Mapping[str, Any]) -> None:
        """Arguments; one that is None counts as not given."""
        for name, value in given.items():
            if value is not None:
                self.set(name, value)

    def fill_with_environment(self, given: Dict[str, Any]) -> Dict[str, int]:
        """Arguments, and the environment for what they leave open. What concerns no setting is taken
        out and checked: use_gpu has to be false; trainer_count is returned."""
        for name in self.names():
            said = _from_environment(name) if given.get(name) is None else None
            if said is not None:
                self.set(name, *said)
        others = {name: _other(name, given.pop(name, None)) for name in ("use_gpu", "trainer_count")}
        self.fill({name: value for name, value in given.items() if name not in WITHOUT_EFFECT})
        if self._call.weft_settings_set_by_launcher(self.handle):
            raise InvalidError(self._error())
        return others


def _text(name: str, value: Any) -> bytes:
    """As a command line has it."""
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
    elif isinstance(value, (list, tuple)):
        text = ",".join(str(part) for part in value).encode("utf-8", "replace")
    else:
        text = _number_text(value).encode("utf-8", "replace")
    if b"\0" in text:
        raise InvalidError("%s=%r: a byte of 0 cannot be part of it" % (name, value))
    return text


def _number_text(value: Any) -> str:
    """Of anything that is a number, of NumPy or PyTorch say: all its digits, and no exponent, which
    durations and sizes do not have."""
    try:
        value = value.item() if hasattr(value, "item") else value
        return "%d" % operator.index(value)
    except (TypeError, ValueError):
        pass
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return "%d" % number if number.is_integer() else format(decimal.Decimal(repr(number)), "f")


def truth(value: Any) -> bool:
    """What is meant by True, 1, "yes" or "False"; ValueError if that is not clear."""
    word = str(value).strip().lower()
    if word in _NO or word in _YES:
        return word in _YES
    raise ValueError("True or False is needed")


def _from_environment(name: str) -> Optional[Tuple[str, str]]:
    for prefix in _ENVIRONMENT:
        variable = prefix + name.upper()
        if os.environ.get(variable):  # an empty one counts as not set
            return os.environ[variable], variable
    return None


def _count(value: Any) -> int:
    number = float(value)
    if not number.is_integer() or not 1 <= number < 1 << 32:
        raise ValueError("the number of compute threads, at least 1")
    return int(number)


def _other(name: str, value: Any) -> int:
    """use_gpu and trainer_count."""
    said = _from_environment(name) if value is None else (value, "argument")
    value, source = said if said is not None else (0 if name == "use_gpu" else 1, "default")
    try:
        number = int(truth(value)) if name == "use_gpu" else _count(value)
    except (TypeError, ValueError) as error:
        raise InvalidError("%s=%r (%s): %s" % (name, value, source, error)) from None
    if name == "use_gpu" and number:
        raise UnsupportedError(
            "use_gpu=%r (%s): weft moves arrays of the host's memory; set it to False, and copy what "
            "a GPU computes" % (value, source)
        )
    return number

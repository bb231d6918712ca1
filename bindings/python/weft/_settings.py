# SPDX-License-Identifier: Apache-2.0
"""Settings by name: from arguments, from WEFT_* and from the original's PADDLE_INIT_*.

Any field of the library's options is a setting; of the structs inside them too (`learning_rate`),
and a field that ends with `_ns` is given in seconds without that ending (`connect_timeout=5`). Texts
may have a unit, as on the command line: "20ms", and "64KiB" of one that ends with `_bytes`."""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import itertools
import os
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

from weft import _abi
from weft.errors import InvalidError, UnsupportedError

# Of paddle.init and the original's command lines: accepted, and without effect here.
WITHOUT_EFFECT = frozenset(
    "comment nics rdma_tcp small_messages use_old_updater parallel_thread_num sock_send_buf_size "
    "sock_recv_buf_size log_period dot_period num_passes local use_mkldnn seed".split()
)
_OWN = frozenset("struct_bytes log log_arg interrupted interrupted_arg keep_arrays settings".split())
_ENVIRONMENT = ("WEFT_", "PADDLE_INIT_")
_KINDS = (ctypes._SimpleCData,)  # no pointers to what has to outlive the call, no functions
# As base/options_value.c has them; sizes in any case of letters.
_SECONDS = {"m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_BYTES = {"k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}
_NO = ("", "0", "no", "off", "false", "none")
_YES = ("1", "yes", "on", "true")


class Field:
    """One setting: where it is in the struct, and how a value becomes its C type."""

    def __init__(self, path: Tuple[str, ...], kind: Any, enum: Optional[Dict[str, int]]) -> None:
        self.path = path
        self.kind = kind
        self.enum = enum
        self.in_seconds = path[-1].endswith("_ns")

    def set(self, struct: Any, name: str, value: Any, source: str) -> None:
        for step in self.path[:-1]:
            struct = getattr(struct, step)
        setattr(struct, self.path[-1], self._convert(name, value, source))

    def _convert(self, name: str, value: Any, source: str) -> Any:
        try:
            if self.kind is ctypes.c_char_p:
                return _text(value)
            if self.kind is ctypes.c_double:
                return float(value)
            if self.enum is not None and isinstance(value, str):
                return self._of_enum(value)
            if self.in_seconds:
                return _whole(round(_in_units(value, _SECONDS) * 1e9), self.kind)
            if isinstance(value, bool) or str(value).strip().lower() in ("true", "false"):
                return int(truth(value))
            if isinstance(value, str):
                units = _BYTES if self.path[-1].endswith("_bytes") else {}
                value = int(value) if value.strip().isdigit() else _in_units(value.lower(), units)
            return _whole(value, self.kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidError("%s=%r (%s): %s" % (name, value, source, error)) from None

    def _of_enum(self, value: str) -> int:
        assert self.enum is not None
        for name, number in self.enum.items():
            if name.endswith("_" + value.upper()):
                return number
        words = ", ".join(name.rsplit("_", 1)[1].lower() for name in self.enum)
        raise ValueError("one of %s is needed" % words)


def _in_units(value: Any, units: Mapping[str, float]) -> float:
    """A number, or the text of one with a unit behind it."""
    number = value.strip() if isinstance(value, str) else value
    for unit in sorted(units, key=len, reverse=True):
        if isinstance(number, str) and number.endswith(unit):
            return float(number[: -len(unit)]) * units[unit]
    return float(number)


def _text(value: Any) -> bytes:
    if isinstance(value, (list, tuple)):
        value = ",".join(str(part) for part in value)
    text = value if isinstance(value, bytes) else str(value).encode()
    if b"\0" in text:
        raise ValueError("a byte of 0 cannot be part of it")
    return text


def _whole(value: Any, kind: Any) -> int:
    number = int(value)
    if number != value:
        raise ValueError("a whole number is needed")
    bits = 8 * ctypes.sizeof(kind)
    signed = kind in (ctypes.c_int, ctypes.c_int64)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise ValueError("%d to %d are possible" % (low, high))
    return number


def truth(value: Any) -> bool:
    """What is meant by True, 1, "yes" or "False"; ValueError if that is not clear."""
    word = str(value).strip().lower()
    if word in _NO or word in _YES:
        return word in _YES
    raise ValueError("True or False is needed")


def fields_of(struct: str, renamed: Mapping[str, str], without: FrozenSet[str] = _OWN) -> Dict[str, Field]:
    """The settings of a struct by name; `renamed` gives some of them better ones."""
    api = _abi.api()
    found: Dict[str, Field] = {}
    for path, kind in _abi.leaf_fields(api.structs[struct]):
        if path[0] in without or kind is ctypes.c_void_p or not issubclass(kind, _KINDS):
            continue
        name = renamed.get(".".join(path), path[-1])
        found.setdefault(name[:-3] if name.endswith("_ns") else name, Field(path, kind, api.enum_of.get(path[-1])))
    return found


def _from_environment(name: str) -> Optional[Tuple[str, str]]:
    for prefix in _ENVIRONMENT:
        variable = prefix + name.upper()
        if os.environ.get(variable):  # an empty one counts as not set
            return os.environ[variable], variable
    return None


def _names_alone(fields: Mapping[str, Field]) -> Iterator[str]:
    """Settings of a session (WEFT_SETTINGS_SESSION, 0) that have no field in the struct."""
    name_of = _abi.api().functions.weft_settings_name
    for number in itertools.count():
        name = name_of(0, number)
        if name is None:
            return
        if name.decode() not in fields and name.decode() not in _OWN:
            yield name.decode()


def _as_text(value: Any) -> bytes:
    """As a command line has it: times in seconds."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return b"%.9f" % value if isinstance(value, float) else _text(value)


@contextlib.contextmanager
def by_name(fields: Mapping[str, Field], given: Dict[str, Any]) -> Iterator[ctypes.c_void_p]:
    """The library's weft_settings, for the call that they are lent to, with those of the arguments and
    of the environment that have no field in the struct; they are taken out of `given`."""
    functions = _abi.api().functions
    settings = ctypes.c_void_p()
    if functions.weft_settings_create(0, ctypes.byref(settings)):
        raise MemoryError(functions.weft_last_error().decode())
    try:
        for name in _names_alone(fields):
            value, source = given.pop(name, None), "argument"
            if value is None:
                value, source = _from_environment(name) or (None, "")
            if value is not None and functions.weft_settings_set(settings, name.encode(), _as_text(value)):
                raise InvalidError("%s (%s)" % (functions.weft_last_error().decode(), source))
        yield settings
    finally:
        functions.weft_settings_destroy(settings)


def unknown(name: str, known: List[str]) -> InvalidError:
    near = difflib.get_close_matches(name, known, 3)
    return InvalidError(
        "%s is not a setting%s" % (name, "; near it are " + ", ".join(near) if near else "")
    )


def fill(struct: Any, fields: Mapping[str, Field], given: Mapping[str, Any]) -> None:
    """Arguments alone; one that is None counts as not given."""
    for name, value in given.items():
        if value is None:
            continue
        if name not in fields:
            raise unknown(name, list(fields))
        fields[name].set(struct, name, value, "argument")


def fill_with_environment(struct: Any, fields: Mapping[str, Field], given: Dict[str, Any]) -> Dict[str, int]:
    """Arguments, and the environment for what they leave open. What concerns no field is taken out
    and checked: use_gpu has to be false; trainer_count is returned."""
    for name in fields:
        said = _from_environment(name) if given.get(name) is None else None
        if said is not None:
            fields[name].set(struct, name, *said)
    others = {name: _other(name, given.pop(name, None)) for name in ("use_gpu", "trainer_count")}
    fill(struct, fields, {k: v for k, v in given.items() if k in fields or k not in WITHOUT_EFFECT})
    return others


def _other(name: str, value: Any) -> int:
    """use_gpu and trainer_count."""
    said = _from_environment(name) if value is None else (value, "argument")
    value, source = said if said is not None else (0 if name == "use_gpu" else 1, "default")
    try:
        number = int(truth(value)) if name == "use_gpu" else _whole(float(value), ctypes.c_uint32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError("%s=%r (%s): %s" % (name, value, source, error)) from None
    if name == "use_gpu" and number:
        raise UnsupportedError(
            "use_gpu=%r (%s): weft moves arrays of the host's memory; set it to False, and copy what "
            "a GPU computes" % (value, source)
        )
    if name == "trainer_count" and number == 0:
        raise InvalidError("trainer_count=0 (%s): the number of compute threads, at least 1" % source)
    return number

# SPDX-License-Identifier: Apache-2.0
"""What Session.all_reduce accepts: types of elements, operations, and the texts that refuse others."""

from __future__ import annotations

from typing import Any, Dict, NoReturn

import numpy as np

from weft import _abi
from weft.errors import InvalidError

_NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "int32": "I32", "int64": "I64"}


def element_types() -> Dict[Any, int]:
    """Types of NumPy, in the machine's order of bytes, and what they are in enum weft_type."""
    numbers = _abi.api().enums["weft_type"]
    return {np.dtype(name): numbers["WEFT_TYPE_" + own] for name, own in _NAMES.items()}


def operations() -> Dict[str, int]:
    """Names of operations, and what they are in enum weft_grad_reduce."""
    numbers = _abi.api().enums["weft_grad_reduce"]
    return {"sum": numbers["WEFT_REDUCE_SUM"], "mean": numbers["WEFT_REDUCE_MEAN"]}


def check_operation(op: Any, is_integer: bool, dtype: Any) -> None:
    """InvalidError unless `op` is an operation for such elements."""
    if not isinstance(op, str) or op not in operations():
        raise InvalidError("all_reduce: op=%r: 'sum' or 'mean' is needed" % (op,))
    if op == "mean" and is_integer:
        raise InvalidError("all_reduce: op='mean' of %s: integers have a sum only; give op='sum', and divide" % dtype)


def is_plain(array: Any) -> bool:
    """Whether all of its elements count, as they lie in memory."""
    return isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)


def refuse(array: Any) -> NoReturn:
    """Raises InvalidError: why the library cannot sum this array in place, and what to do."""
    if not isinstance(array, np.ndarray):
        raise InvalidError("all_reduce: a NumPy array is needed, not %s" % type(array).__name__)
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidError("all_reduce: the array is masked; give array.filled(0), whose elements all count")
    if array.dtype not in element_types():
        raise InvalidError(
            "all_reduce: the array's dtype is %s; %s in the machine's order of bytes are summed"
            % (array.dtype.str if array.dtype.kind in "fi" else array.dtype, ", ".join(_NAMES))
        )
    if not array.flags.writeable:
        raise InvalidError("all_reduce: the array is read-only, and the result is written to it: give array.copy()")
    if not array.flags.c_contiguous:
        raise InvalidError(
            "all_reduce: the array is not C-contiguous (shape %s, strides %s): give numpy.ascontiguousarray of it"
            % (array.shape, array.strides)
        )
    raise InvalidError(
        "all_reduce: the array does not begin at a multiple of %d bytes: give array.copy()" % array.dtype.alignment
    )

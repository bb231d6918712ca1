# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch as the library reads them: on the CPU, their elements one behind the other."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np
import torch

from weft import _abi
from weft.errors import InvalidError
from weft.session import Array, Session

_NAMES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int32: "I32",
    torch.int64: "I64",
}
_types: Dict[torch.dtype, int] = {}
# Versions before freed an array of DLPack without the interpreter's lock.
_HAS_DLPACK = bool(np.lib.NumpyVersion(np.__version__) >= "1.23.5")


def element_types() -> Dict[torch.dtype, int]:
    """Types of PyTorch, and what they are in enum weft_type."""
    if not _types:
        numbers = _abi.api().enums["weft_type"]
        _types.update((dtype, numbers["WEFT_TYPE_" + name]) for dtype, name in _NAMES.items())
    return _types


def check(what: str, tensor: Any) -> None:
    """InvalidError unless it is a dense tensor on the CPU."""
    if not isinstance(tensor, torch.Tensor):
        raise InvalidError("%s: a tensor is needed, not %s" % (what, type(tensor).__name__))
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        raise InvalidError(
            "%s: the tensor is %s of %s on %s; one that is strided, not quantized, and on the CPU is needed"
            % (what, tensor.layout, tensor.dtype, tensor.device)
        )


def in_order(what: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its memory is its elements in the order of its indices. Of a tensor in
    channels_last a copy that is so: other members may have another layout."""
    is_negated = tensor.is_neg() or tensor.is_conj()
    if tensor.is_contiguous() and not is_negated and tensor.data_ptr() % tensor.element_size() == 0:
        return tensor
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if not tensor.is_contiguous():
        layout = formats.get(tensor.dim())
        if layout is None or not tensor.is_contiguous(memory_format=layout):
            raise InvalidError(
                "%s: the tensor is not contiguous (shape %s, strides %s): give tensor.contiguous()"
                % (what, tuple(tensor.shape), tensor.stride())
            )
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach())


def of_array(array: Array) -> torch.Tensor:
    """A tensor in the memory of an array, for the graphs of autograd.

    After an exception in backward PyTorch keeps the nodes that were still to come in a queue of the thread.
    The main thread's is freed when the interpreter has ended. A tensor of torch.from_numpy waits for the
    interpreter's lock to be freed, and the process would hang; NumPy's own for DLPack is left as it is then."""
    return torch.from_dlpack(array) if _HAS_DLPACK else torch.from_numpy(array)


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, and none of autograd's records."""
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor.detach() if tensor.requires_grad else tensor


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a copy, whose memory is its elements in the order of its indices."""
    if tensor.is_contiguous() and not tensor.is_neg() and tensor.data_ptr() % tensor.element_size() == 0:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu").copy_(tensor)


def all_reduce(session: Session, tensor: torch.Tensor, kind: int, how: int) -> None:
    """In place; `kind` and `how` are of enum weft_type and enum weft_grad_reduce."""
    memory = in_order("all_reduce", tensor)
    session._all_reduce(memory.data_ptr(), memory.numel(), kind, how)
    if memory is not tensor:
        tensor.detach().copy_(memory)

# SPDX-License-Identifier: Apache-2.0
"""The state dict of a PyTorch model through weft import and weft export: load_state_dict accepts it,
with the same shapes, types and bits. safetensors is written and read here, by its description."""

import json
import struct
import subprocess
import sys
import tempfile

import support

try:
    import numpy as np
    import torch
except ImportError:  # support.main says so
    torch = None

KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


def write(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        kind = next(k for k, v in KINDS.items() if np.dtype(v) == array.dtype)
        header[name] = {"dtype": kind, "shape": list(array.shape)}
        header[name]["data_offsets"] = [len(data), len(data) + array.nbytes]
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8 : 8 + size]), data[8 + size :]
    header.pop("__metadata__")
    return {
        name: np.frombuffer(data[slice(*about["data_offsets"])], KINDS[about["dtype"]]).reshape(about["shape"])
        for name, about in header.items()
    }


class StateDict(support.Case):
    def model(self, seed):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.PReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(4, 2).double(),
        )
        model.register_parameter("scale", torch.nn.Parameter(torch.tensor(1.5 + seed)))  # a scalar
        model.register_buffer("mask", torch.rand(2, 3) < 0.5)
        model.register_buffer("none", torch.zeros(0, 3))
        model.add_module("head 1/ä", torch.nn.Linear(2, 2).half())
        for buffer in model.buffers():
            if buffer.dtype == torch.int64:
                buffer += 2**40 + seed
        return model

    def weft(self, *arguments):
        subprocess.run([support.WEFT, *arguments], check=True, capture_output=True, timeout=support.LIMIT)

    def test_a_state_dict_comes_back_with_its_shapes_types_and_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            first = self.model(1).state_dict()
            write(folder + "/in", {name: tensor.numpy() for name, tensor in first.items()})
            self.weft("import", folder + "/in", "-o", folder)
            for form in ("safetensors", "npz"):
                self.weft("export", folder + "/pass-00000", "--format=" + form, "-o", folder + "/out." + form)
            with np.load(folder + "/out.npz") as file:
                found = {name: file[name] for name in file.files}
            for arrays in (read(folder + "/out.safetensors"), found):
                state = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
                other = self.model(2)
                other.load_state_dict(state, strict=True)
                for name, tensor in other.state_dict().items():
                    wanted = first[name]
                    self.assertEqual((tensor.dtype, tensor.shape), (wanted.dtype, wanted.shape), name)
                    self.assertEqual((state[name].dtype, state[name].shape), (wanted.dtype, wanted.shape), name)
                    self.assertEqual(tensor.numpy().tobytes(), wanted.numpy().tobytes(), name)


if __name__ == "__main__":
    if torch is None:
        print("SKIPPED: PyTorch is not there: apt-get install python3-torch")
        sys.exit(77)
    support.main()

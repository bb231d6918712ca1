#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models in the formats of other programs, written and read with Python's own library alone.

    formats.py make              model.tar, model_pax.tar, model.safetensors and the folder params
    formats.py check FORMAT PATH [PASS]   that PATH has the values, or those of another saved pass
"""

import ast
import io
import json
import os
import struct
import sys
import tarfile
import zipfile
import zlib

LONG = "a_name_of_more_than_a_hundred_characters_" + "x" * 80
# name: rows, columns, values
MODEL = {
    "fc1_w": (64, 40, [i * 0.25 - 3 for i in range(64 * 40)]),
    "fc1_b": (40, 1, [i - 7.5 for i in range(40)]),
    "fc2_w": (40, 10, [1.0 / (i + 1) for i in range(400)]),
    "fc2_b": (10, 1, [float(-i) for i in range(10)]),
    LONG: (2, 3, [1, 2, 3, 4, 5, 6e-30]),
}
ROWS_TO_THE_ORIGINAL = ("fc1_b", "fc2_b")


def floats(values):
    return struct.pack("<%df" % len(values), *values)


def parameter(values):
    return struct.pack("<IIQ", 0, 4, len(values)) + floats(values)


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def config(name, dims):
    """A ParameterConfig with more in it than we look at."""
    size = 1
    for dim in dims:
        size *= dim
    out = b"\x0a" + varint(len(name)) + name.encode() + b"\x10" + varint(size)
    out += b"\x19" + struct.pack("<d", 1.0) + b"\x58\x01"  # learning_rate, initial_strategy
    for dim in dims:
        out += b"\x48" + varint(dim)
    return out + b"\xa2\x01\x09\x0a\x07pruning"  # update_hooks


def fields(message):
    """(number, value) of each field of a message."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        elif key & 7 == 2:
            size = number()
            yield key >> 3, message[at : at + size]
            at += size
        else:
            raise ValueError("wire type %d" % (key & 7))


def make_tar(path, form):
    with tarfile.open(path, "w", format=form) as tar:
        for name, (rows, cols, values) in MODEL.items():
            dims = (1, rows) if name in ROWS_TO_THE_ORIGINAL else (rows, cols)
            for member, data in ((name, parameter(values)), (name + ".protobuf", config(name, dims))):
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def make():
    make_tar("model.tar", tarfile.GNU_FORMAT)
    make_tar("model_pax.tar", tarfile.PAX_FORMAT)
    header, data = {"__metadata__": {"made \"by\"": "a \\ test"}}, b""
    for name, (rows, cols, values) in MODEL.items():
        shape = [rows] if cols == 1 else [rows, cols]
        place = [len(data), len(data) + 4 * len(values)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": place}
        data += floats(values)
    text = json.dumps(header).encode()
    with open("model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
    os.mkdir("params")
    for name, (_, _, values) in MODEL.items():
        with open("params/" + name, "wb") as out:
            out.write(parameter(values))
    for name in ("done", "path.txt", "trainer_config.py"):
        with open("params/" + name, "w") as out:
            out.write("PaddlePaddle 0.10.0\n")


def parameter_values(data):
    version, size, count = struct.unpack("<IIQ", data[:16])
    assert (version, size, 16 + 4 * count) == (0, 4, len(data))
    return data[16:]


def read_pass(path):
    """name: (shape, bytes)"""
    out = {}
    for line in open(path + "/manifest"):
        word = line.split()
        if word[0] == "tensor":
            data = open(path + "/" + word[1], "rb").read()
            out[word[1]] = ((int(word[2]), int(word[3])), parameter_values(data))
    return out


def read_paddle(path):
    names = sorted(os.listdir(path))
    assert open(path + "/done").read().startswith("weft ")
    names.remove("done")
    return {n: (None, parameter_values(open(path + "/" + n, "rb").read())) for n in names}


def read_tar(path):
    """As the original's Parameters.from_tar goes about it."""
    with open(path, "rb") as file:
        assert len(file.read()) % 10240 == 0
    out = {}
    with tarfile.TarFile(path) as tar:
        configs = {}
        for info in tar:
            if info.name.endswith(".protobuf"):
                message = list(fields(tar.extractfile(info).read()))
                configs[dict(message)[1].decode()] = message
        for name, message in configs.items():
            dims = tuple(value for number, value in message if number == 9)
            data = parameter_values(tar.extractfile(name).read())
            assert dict(message)[2] * 4 == len(data) and len(dims) == 2
            assert (dims[0] == 1) == (name in ROWS_TO_THE_ORIGINAL), (name, dims)
            out[name] = (dims[::-1] if name in ROWS_TO_THE_ORIGINAL else dims, data)
        assert len(tar.getnames()) == 2 * len(out)
    return out


def read_safetensors(path):
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    assert all(type(v) is str for v in header.pop("__metadata__").values())
    out, at = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        assert begin == at and entry["dtype"] == "F32"
        out[name] = (tuple(entry["shape"]), data[8 + size :][begin:end])
        at = end
    assert at == len(data) - 8 - size
    return out


def read_npz(path):
    out = {}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            data = archive.read(info)
            assert data[:8] == b"\x93NUMPY\x01\x00" and info.CRC == zlib.crc32(data)
            (size,) = struct.unpack("<H", data[8:10])
            header = ast.literal_eval(data[10 : 10 + size].decode())
            assert (10 + size) % 64 == 0 and header["descr"] == "<f4"
            assert not header["fortran_order"] and info.filename.endswith(".npy")
            out[info.filename[:-4]] = (header["shape"], data[10 + size :])
    return out


def check(form, path, *saved):
    reader = globals()["read_" + form]
    read = reader(path)
    wanted = {n: ((r, c), floats(v)) for n, (r, c, v) in MODEL.items()}
    if saved:
        wanted = read_pass(saved[0])
    assert sorted(read) == sorted(wanted), sorted(read)
    for name, (shape, data) in read.items():
        assert data == wanted[name][1], name
        rows, cols = wanted[name][0]
        if form in ("npz", "safetensors"):  # these know one dimension, as the file it came from
            assert shape == ((rows,) if cols == 1 else (rows, cols)), (name, shape)
        else:
            assert shape is None or shape == (rows, cols), (name, shape)


def main():
    if sys.argv[1] == "make":
        make()
    else:
        check(*sys.argv[2:])


if __name__ == "__main__":
    main()

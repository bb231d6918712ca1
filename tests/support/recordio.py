# SPDX-License-Identifier: Apache-2.0
"""RecordIO written and read by a program that shares nothing with ours: plain Python, zlib, and a
snappy of its own, slow and small. For the tests of `weft data` and of weft.data."""

import struct
import zlib

MAGIC = 0x01020304
NONE, SNAPPY, GZIP = 0, 1, 2
COMPRESSORS = {"none": NONE, "snappy": SNAPPY, "gzip": GZIP}
IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"


def _crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def snappy_block(data):
    """Literals, and copies of 4 to 64 bytes where the last 4 bytes seen alike lie near."""
    out = bytearray(_varint(len(data)))
    seen = {}
    at = start = 0

    def literal(upto):
        nonlocal start
        while start < upto:
            piece = data[start : min(upto, start + 60)]
            out.append(len(piece) - 1 << 2)
            out.extend(piece)
            start += len(piece)

    while at + 4 <= len(data):
        key = data[at : at + 4]
        before = seen.get(key)
        seen[key] = at
        if before is None or at - before > 0xFFFF:
            at += 1
            continue
        count = 4
        while count < 64 and at + count < len(data) and data[before + count] == data[at + count]:
            count += 1
        literal(at)
        out.append(count - 1 << 2 | 2)
        out.extend(struct.pack("<H", at - before))
        at += count
        start = at
    literal(len(data))
    return bytes(out)


def snappy_text(block):
    size = shift = at = 0
    while True:
        byte = block[at]
        at += 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    out = bytearray()
    while at < len(block):
        tag = block[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            count = (tag >> 2) + 1
            if count > 60:
                extra = count - 60
                count = int.from_bytes(block[at : at + extra], "little") + 1
                at += extra
            out += block[at : at + count]
            at += count
            continue
        if kind == 1:
            count = (tag >> 2 & 7) + 4
            back = (tag >> 5) << 8 | block[at]
            at += 1
        else:
            count = (tag >> 2) + 1
            bytes_of = 2 if kind == 2 else 4
            back = int.from_bytes(block[at : at + bytes_of], "little")
            at += bytes_of
        for _ in range(count):
            out.append(out[-back])
    assert len(out) == size
    return bytes(out)


def frames(data, size=65536):
    out = bytearray(IDENTIFIER)
    for at in range(0, len(data), size):
        text = data[at : at + size]
        block = snappy_block(text)
        kind, body = (0, block) if len(block) < len(text) else (1, text)
        out += struct.pack("<I", kind | len(body) + 4 << 8)
        out += struct.pack("<I", masked_crc32c(text)) + body
    return bytes(out)


def unframe(data):
    assert data.startswith(IDENTIFIER)
    out = bytearray()
    at = 0
    while at < len(data):
        head = struct.unpack_from("<I", data, at)[0]
        kind, body = head & 255, data[at + 4 : at + 4 + (head >> 8)]
        assert len(body) == head >> 8
        at += 4 + len(body)
        if kind in (0, 1):
            text = snappy_text(body[4:]) if kind == 0 else body[4:]
            assert len(text) <= 65536
            assert struct.unpack_from("<I", body)[0] == masked_crc32c(text)
            out += text
        else:
            assert kind >= 0x80
    return bytes(out)


def pack(data, compressor):
    if compressor == GZIP:
        stream = zlib.compressobj(6, zlib.DEFLATED, 31)
        return stream.compress(data) + stream.flush()
    return frames(data) if compressor == SNAPPY else data


def unpack(data, compressor):
    if compressor == GZIP:
        return zlib.decompress(data, 31)
    return unframe(data) if compressor == SNAPPY else data


def chunk(records, compressor=SNAPPY, cpp_order=False, stored=None):
    """Bytes of one chunk. stored: the payload as it is to stand there."""
    if stored is None:
        payload = b"".join(struct.pack("<I", len(one)) + one for one in records)
        stored = pack(payload, compressor)
    crc = zlib.crc32(stored)
    if cpp_order:
        head = (MAGIC, len(records), crc, compressor, len(stored))
    else:
        head = (MAGIC, crc, compressor, len(stored), len(records))
    return struct.pack("<5I", *head) + stored


def write(path, records, compressor=SNAPPY, per_chunk=3, cpp_order=False):
    with open(path, "wb") as out:
        for at in range(0, len(records), per_chunk):
            out.write(chunk(records[at : at + per_chunk], compressor, cpp_order))


def read_chunks(path):
    """(compressor, records) of each chunk; asserts what the format says."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        magic, crc, compressor, size, count = struct.unpack_from("<5I", data, at)
        stored = data[at + 20 : at + 20 + size]
        assert magic == MAGIC and len(stored) == size and zlib.crc32(stored) == crc
        payload = unpack(stored, compressor)
        records = []
        pos = 0
        for _ in range(count):
            length = struct.unpack_from("<I", payload, pos)[0]
            records.append(payload[pos + 4 : pos + 4 + length])
            assert len(records[-1]) == length
            pos += 4 + length
        assert pos == len(payload)
        yield compressor, records
        at += 20 + size


def read(path):
    return [record for _, records in read_chunks(path) for record in records]

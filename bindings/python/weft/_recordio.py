# SPDX-License-Identifier: Apache-2.0
"""RecordIO of the original, as trainer/readers/recordio.h describes it: chunks of records, checked
whole before a record of them is used. zlib does the checksums and gzip; snappy needs libsnappy,
which is looked for when the first chunk needs it. The checksums of snappy's frames are written, and
not read: that of the chunk is over the same bytes, and these take Python ten times as long."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import struct
import zlib
from typing import IO, Iterator, List

from weft.errors import DataError, InvalidError, UnsupportedError

MAGIC = 0x01020304
NONE, SNAPPY, GZIP = 0, 1, 2
COMPRESSORS = {"none": NONE, "snappy": SNAPPY, "gzip": GZIP}
CHUNK_BYTES_MAX = 256 << 20  # of a payload, stored or unpacked
RECORD_BYTES_MAX = 255 << 20
CHUNK_BYTES = 512 << 10  # of the records in a chunk that is written

_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_FRAME_BYTES = 65536


def _make_table() -> List[int]:
    table = []
    for entry in range(256):
        for _ in range(8):
            entry = entry >> 1 ^ (0x82F63B78 if entry & 1 else 0)
        table.append(entry)
    return table


_TABLE = _make_table()


def masked_crc32c(data: bytes) -> int:
    """The checksum of a frame, some 20 MB a second."""
    table = _TABLE
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@functools.lru_cache(maxsize=1)
def _snappy() -> ctypes.CDLL:
    for name in (ctypes.util.find_library("snappy"), "libsnappy.so.1"):
        try:
            if name is not None:
                return ctypes.CDLL(name)
        except OSError:
            continue
    raise UnsupportedError(
        "libsnappy is not there, which RecordIO with snappy needs: install it (Debian: libsnappy1v5), or "
        "write with compressor='gzip'"
    )


def _snappy_block(text: bytes) -> bytes:
    library = _snappy()
    most = library.snappy_max_compressed_length
    most.restype = ctypes.c_size_t
    size = ctypes.c_size_t(most(ctypes.c_size_t(len(text))))
    out = ctypes.create_string_buffer(size.value)
    library.snappy_compress(text, ctypes.c_size_t(len(text)), out, ctypes.byref(size))
    return out.raw[: size.value]


def _snappy_text(block: bytes) -> bytes:
    library = _snappy()
    size = ctypes.c_size_t()
    count = ctypes.c_size_t(len(block))
    if library.snappy_uncompressed_length(block, count, ctypes.byref(size)) != 0:
        raise DataError("a snappy frame does not begin with its length")
    if size.value > _FRAME_BYTES:
        raise DataError("a snappy frame has %d bytes of text; at most %d are valid" % (size.value, _FRAME_BYTES))
    out = ctypes.create_string_buffer(max(size.value, 1))
    if library.snappy_uncompress(block, count, out, ctypes.byref(size)) != 0:
        raise DataError("a snappy frame is damaged")
    return out.raw[: size.value]


def _frame(data: bytes) -> bytes:
    out = [_IDENTIFIER]
    for at in range(0, len(data), _FRAME_BYTES):
        text = data[at : at + _FRAME_BYTES]
        block = _snappy_block(text)
        kind, body = (0, block) if len(block) < len(text) - len(text) // 8 else (1, text)
        out.append(struct.pack("<II", kind | len(body) + 4 << 8, masked_crc32c(text)))
        out.append(body)
    return b"".join(out)


def _text_of_frame(kind: int, body: bytes) -> bytes:
    if len(body) < 4:
        raise DataError("a snappy frame has no room for its checksum")
    text = body[4:] if kind == 1 else _snappy_text(body[4:])
    if len(text) > _FRAME_BYTES:
        raise DataError("a snappy frame has %d bytes of text; at most %d are valid" % (len(text), _FRAME_BYTES))
    return text


def _unframe(data: bytes) -> bytes:
    if not data.startswith(_IDENTIFIER):
        raise DataError("its snappy stream does not begin with the identifier")
    out: List[bytes] = []
    total = at = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 4], "little")
        kind, body = head & 255, data[at + 4 : at + 4 + (head >> 8)]
        if at + 4 > len(data) or len(body) < head >> 8:
            raise DataError("its snappy stream ends within a frame")
        at += 4 + len(body)
        if kind <= 1:
            out.append(_text_of_frame(kind, body))
            total += len(out[-1])
        elif kind < 0x80:
            raise DataError("a snappy frame has the type 0x%02x, which is not defined" % kind)
        elif kind == 255 and body != _IDENTIFIER[4:]:
            raise DataError("its snappy stream has a wrong identifier")
        if total > CHUNK_BYTES_MAX:
            raise DataError("it has more than %d bytes unpacked" % CHUNK_BYTES_MAX)
    return b"".join(out)


def _gunzip(data: bytes) -> bytes:
    out: List[bytes] = []
    room = CHUNK_BYTES_MAX + 1
    while data:
        stream = zlib.decompressobj(31)
        try:
            out.append(stream.decompress(data, room))
        except zlib.error as error:
            raise DataError("its gzip stream is damaged (%s)" % error) from None
        room -= len(out[-1])
        if room <= 0:
            raise DataError("it has more than %d bytes unpacked" % CHUNK_BYTES_MAX)
        if not stream.eof:
            raise DataError("its gzip stream is truncated")
        data = stream.unused_data
    return b"".join(out)


def _pack(payload: bytes, compressor: int) -> bytes:
    if compressor == GZIP:
        stream = zlib.compressobj(6, zlib.DEFLATED, 31)
        return stream.compress(payload) + stream.flush()
    return _frame(payload) if compressor == SNAPPY else payload


def _unpack(stored: bytes, compressor: int) -> bytes:
    if compressor == GZIP:
        return _gunzip(stored)
    return _unframe(stored) if compressor == SNAPPY else stored


def _records(payload: bytes, count: int) -> List[bytes]:
    records: List[bytes] = []
    at = 0
    while at < len(payload) and len(records) < count:
        end = at + 4 + int.from_bytes(payload[at : at + 4], "little")
        if at + 4 > len(payload) or end > len(payload):
            raise DataError("its record %d reaches beyond the end of the chunk" % (len(records) + 1))
        records.append(payload[at + 4 : end])
        at = end
    if len(records) < count:
        raise DataError("has %d of the %d records that its header gives" % (len(records), count))
    if at < len(payload):
        raise DataError("has %d bytes behind the last of its %d records" % (len(payload) - at, count))
    return records


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    """In steps that double: a header may lie about its length."""
    out = bytearray()
    while len(out) < count:
        piece = file.read(min(count - len(out), max(len(out), 1 << 20)))
        if not piece:
            break
        out += piece
    return bytes(out)


def _read_chunk(file: IO[bytes], header: bytes) -> List[bytes]:
    if len(header) < 20:
        raise DataError("the file ends within its header: it is truncated")
    magic, *word = struct.unpack("<5I", header)
    # The two orders of the words: recordio.h.
    count, crc, compressor, size = word if word[2] <= GZIP else (word[3], word[0], word[1], word[2])
    if magic != MAGIC:
        raise DataError("begins with 0x%08x; a chunk begins with 0x%08x" % (magic, MAGIC))
    if compressor > GZIP:
        raise DataError("has the compressor %d; 0 (none), 1 (snappy) and 2 (gzip) are known" % compressor)
    if size > CHUNK_BYTES_MAX:
        raise DataError("has %d bytes, if its header is right; at most %d are read" % (size, CHUNK_BYTES_MAX))
    stored = _read_exactly(file, size)
    if len(stored) < size:
        raise DataError("the file ends after %d of its %d bytes: it is truncated" % (len(stored), size))
    if zlib.crc32(stored) != crc:
        raise DataError("its checksum is wrong: the file is damaged")
    return _records(_unpack(stored, compressor), count)


def read(path: str) -> Iterator[bytes]:
    """The records of a file. DataError names the file and the byte at which a chunk is damaged."""
    with open(path, "rb") as file:
        at = 0
        while True:
            header = file.read(20)
            if not header:
                return
            try:
                records = _read_chunk(file, header)
            except DataError as error:
                raise DataError("%s: the chunk at byte %d: %s" % (path, at, error)) from None
            at = file.tell()
            yield from records


class Writer:
    """Writes records to an open file. `finish` writes the last chunk."""

    def __init__(self, file: IO[bytes], compressor: str = "snappy", chunk_bytes: int = CHUNK_BYTES) -> None:
        if compressor not in COMPRESSORS:
            raise InvalidError("compressor=%r: is one of %s" % (compressor, ", ".join(COMPRESSORS)))
        self._file = file
        self._compressor = COMPRESSORS[compressor]
        self._chunk_bytes = chunk_bytes
        self._records: List[bytes] = []
        self._bytes = 0
        if self._compressor == SNAPPY:
            _snappy()

    def write(self, record: bytes) -> None:
        if len(record) > RECORD_BYTES_MAX:
            raise InvalidError("a record has %d bytes; at most %d can be written" % (len(record), RECORD_BYTES_MAX))
        if self._records and self._bytes + len(record) > self._chunk_bytes:
            self.finish()
        self._records.append(record)
        self._bytes += len(record)

    def finish(self) -> None:
        if not self._records:
            return
        payload = b"".join(struct.pack("<I", len(record)) + record for record in self._records)
        stored = _pack(payload, self._compressor)
        head = (MAGIC, zlib.crc32(stored), self._compressor, len(stored), len(self._records))
        self._file.write(struct.pack("<5I", *head) + stored)
        self._records = []
        self._bytes = 0

# SPDX-License-Identifier: Apache-2.0
"""The file that weft trace writes: the times of slices out of it, and spans that are added to it. It is one
of Perfetto, a sequence of packets in the form of protocol buffers; tools/trace/pftrace.c has the numbers."""

import struct

TRACE_PACKET = 1
PACKET_TIMESTAMP, PACKET_SEQUENCE, PACKET_TRACK_EVENT, PACKET_TRACK, PACKET_WEFT = 8, 10, 11, 60, 15000
TRACK_UUID, TRACK_NAME, TRACK_PROCESS = 1, 2, 3
PROCESS_PID, PROCESS_NAME = 1, 6
EVENT_TYPE, EVENT_TRACK, EVENT_CATEGORY, EVENT_NAME = 9, 11, 22, 23
SLICE_BEGIN, SLICE_END = 1, 2
WEFT_IS_TRAINER, WEFT_IDX, WEFT_EVENT = 1, 3, 6
EVENT = struct.Struct("<QQIIII")  # at_ns, value, step, slice, peer, what
POSTED, ANSWERED = 4, 6  # of base/trace.h: the push was given to the transport; fresh values have arrived
_VARINT, _BYTES = 0, 2
_SEQUENCE = 2  # weft's own is 1


def _varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _fields(data):
    """(number, value) of a message; bytes are views of it."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == _BYTES:
            value, at = data[at : at + value], at + value
        elif key & 7 != _VARINT:
            raise ValueError("a field of wire type %d" % (key & 7))
        yield key >> 3, value


def pushes(path):
    """{trainer: {step: [(posted_ns, answered_ns)]}}, of slices of which both were recorded."""
    with open(path, "rb") as file:
        whole = memoryview(file.read())
    found = {}
    for _, packet in _fields(whole):
        for number, own in _fields(packet):
            if number == PACKET_WEFT:
                _add_member(found, list(_fields(own)))
    return found


def _add_member(found, fields):
    of = {number: value for number, value in fields if number != WEFT_EVENT}
    if not of.get(WEFT_IS_TRAINER):
        return
    posted, steps = {}, found.setdefault(of.get(WEFT_IDX, 0), {})
    for number, value in fields:
        if number != WEFT_EVENT:
            continue
        at_ns, _, step, piece, peer, what = EVENT.unpack(value)
        if what == POSTED:
            posted[step, peer, piece] = at_ns
        elif what == ANSWERED and (step, peer, piece) in posted:
            steps.setdefault(step, []).append((posted[step, peer, piece], at_ns))


def _encode_varint(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _encode(*fields):
    """A message of (number, value): whole numbers, texts and messages."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += _encode_varint(number << 3 | _VARINT) + _encode_varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += _encode_varint(number << 3 | _BYTES) + _encode_varint(len(data)) + data
    return found


def add_spans(path, track, name, spans):
    """Add a track with so many spans [(begin_ns, end_ns)], which do not overlap, to the file."""
    uuid = 1 << 32 | track
    process = _encode((PROCESS_PID, uuid), (PROCESS_NAME, name))
    head = (PACKET_SEQUENCE, _SEQUENCE)
    packets = [_encode(head, (PACKET_TRACK, _encode((TRACK_UUID, uuid), (TRACK_PROCESS, process))))]
    for span in spans:
        for kind, at_ns in zip((SLICE_BEGIN, SLICE_END), span):
            event = _encode((EVENT_TYPE, kind), (EVENT_TRACK, uuid), (EVENT_CATEGORY, "compute"), (EVENT_NAME, name))
            packets.append(_encode((PACKET_TIMESTAMP, at_ns), head, (PACKET_TRACK_EVENT, event)))
    with open(path, "ab") as file:
        for packet in packets:
            file.write(_encode((TRACE_PACKET, packet)))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speaks to a pserver with a secret as transport/paths/secret.md says, with Python's own hmac:
secret_peer.py PORT SECRET_FILE. Its proof is accepted once; whatever else it says is refused, always
with the same bytes."""

import hashlib
import hmac
import os
import socket
import struct
import sys

HELLO, ACCEPT, REFUSE = 1, 2, 3  # frames of transport/tcp
PATH_HELLO, PATH_HERE, PATH_NO, KNOCK, CHALLENGE = 1, 3, 5, 6, 7
SEALED = 2
SECRET = 6  # the reason of a refusal

port, secret = int(sys.argv[1]), open(sys.argv[2], "rb").read()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frame(body):
    head = struct.pack("<4sBBBBQQQIIQQI", b"WEFT", 3, 0, HELLO, 0, len(body), 0, 0, 0, 0, 0, 0, 0)
    return head + struct.pack("<I", crc32c(head)) + body


def read(sock, count):
    got = b""
    while len(got) < count:
        more = sock.recv(count - len(got))
        if not more:
            raise EOFError("%d of %d bytes" % (len(got), count))
        got += more
    return got


def say(body):
    """One connection: what is answered to a hello, as (type of the frame, body)."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(frame(body))
        head = read(sock, 64)
        assert head[:4] == b"WEFT" and head[5] == 0
        return head[6], read(sock, struct.unpack_from("<Q", head, 8)[0])


def head(kind, flags=0, auth=bytes(32), text=b"", nonce=b""):
    fixed = struct.pack("<4sHBBBBBBI16s32s", b"WTPH", 1, kind, flags, 0, 0, 0, 0, 0, bytes(16), auth)
    return fixed + struct.pack("<H", len(text)) + text + nonce


def code(key, word, blob):
    return hmac.digest(key, word + b"\0" + blob[:32] + bytes(32) + blob[64:], hashlib.sha256)


def knock(nonce):
    """The nonce with which it is challenged."""
    kind, body = say(head(KNOCK, auth=nonce))
    assert kind == REFUSE and len(body) == 66 and body[6] == CHALLENGE, body
    return body[32:64]


def key_of(secret, mine, theirs):
    root = hmac.digest(secret, b"weft: the key of a job, 1", hashlib.sha256)
    return hmac.digest(root, b"connection" + mine + theirs, hashlib.sha256)


def sealed_hello(key, nonce, user):
    blob = head(PATH_HELLO, SEALED, text=b"a peer in Python", nonce=nonce) + user
    return blob[:32] + code(key, b"hello", blob) + blob[64:]


NO = struct.pack("<4sHBBBBBBI16s32sH", b"WTPH", 1, PATH_NO, 0, 0, SECRET, 0, 0, 0, bytes(16), bytes(32), 0)
refused = 0


def is_refused(blob, what):
    global refused
    assert say(blob) == (REFUSE, NO), what
    refused += 1


# Without a secret, or with another one.
is_refused(b"", "nothing")
is_refused(os.urandom(300), "noise")
is_refused(head(PATH_HELLO) + b"user", "a hello in clear")
nonce = os.urandom(32)
other = key_of(os.urandom(32), nonce, knock(nonce))
is_refused(sealed_hello(other, nonce, b"user"), "another secret")
is_refused(sealed_hello(key_of(secret + b"\n", nonce, knock(nonce)), nonce, b"user"), "a newline more")

# With it: the lane itself answers, and proves that it has the secret, too.
key = key_of(secret, nonce, knock(nonce))
good = sealed_hello(key, nonce, b"this is no hello of a trainer")
for at in range(0, len(good)):
    is_refused(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :], "byte %d" % at)
for count in (0, 31, 63, 65, len(good) - 1):
    is_refused(good[:count], "%d bytes" % count)
is_refused(good + b"\0", "a byte more")
short = good[:32] + good[32:48] + bytes(16) + good[64:]
is_refused(short, "half a code")
kind, welcome = say(good)
assert kind == REFUSE and welcome[6] == PATH_HERE and welcome[7] == SEALED, welcome
assert hmac.compare_digest(welcome[32:64], code(key, b"verdict", welcome)), "its code"
assert b"the trainer speaks wire versions" in welcome, welcome
for _ in range(3):
    is_refused(good, "again")
print("refused %d times with the same %d bytes" % (refused, len(NO)))

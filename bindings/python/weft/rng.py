# SPDX-License-Identifier: Apache-2.0
"""The random numbers of `weft train`: with them a Python trainer begins with the same values and goes
through the same rows in the same order, so that it can take the place of one. For everything else there
is numpy.random.

xoshiro256** seeded by splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number
generators", 2021), as in base/rng.c."""

from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np
import numpy.typing as npt

_MASK = (1 << 64) - 1


def _splitmix64(state: int) -> Tuple[int, int]:
    """(next state, value)"""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return state, z ^ (z >> 31)


def _rotate_left(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


class Rng:
    """A sequence of random numbers: that of the stream `stream` of a seed, both whole numbers from 0 to
    2^64 - 1. It belongs to one thread."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        state = _splitmix64(seed)[1] ^ stream
        words: List[int] = []
        for _ in range(4):
            state, word = _splitmix64(state)
            words.append(word)
        self._s = words

    def u64(self) -> int:
        """The next 64 random bits, as a number from 0 to 2^64 - 1."""
        s = self._s
        result = (_rotate_left((s[1] * 5) & _MASK, 7) * 9) & _MASK
        t = (s[1] << 17) & _MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotate_left(s[3], 45)
        return result

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, all equally likely; bound is from 1 to 2^64."""
        if not 1 <= bound <= 1 << 64:
            raise ValueError("bound=%r: is from 1 to 2^64" % (bound,))
        surplus = (1 << 64) % bound
        value = self.u64()
        while value < surplus:
            value = self.u64()
        return value % bound

    def uniform(self, limit: float, shape: Tuple[int, ...]) -> npt.NDArray[Any]:
        """A float32 array of the shape, a tuple of whole numbers, with values between -limit and limit."""
        count = int(np.prod(shape))
        values = [(2.0 * ((self.u64() >> 11) * 2.0**-53) - 1.0) * limit for _ in range(count)]
        return np.array(values, dtype=np.float32).reshape(shape)


def order_of_rows(seed: int, pass_number: int, trainer: int, trainers: int, rows: int) -> npt.NDArray[Any]:
    """The rows of one trainer (trainer, trainer + trainers, ... of 0 .. rows - 1) in the order of a pass, as
    int64 [rows of the trainer]. seed is that of the job; pass_number counts from 0, trainer from 0 to
    trainers - 1."""
    count = rows // trainers + (trainer < rows % trainers)
    rng = Rng(seed, ((pass_number + 1) << 32) | trainer)
    index = list(range(count))
    for left in range(count, 1, -1):
        other = rng.below(left)
        index[left - 1], index[other] = index[other], index[left - 1]
    return trainer + trainers * np.array(index, dtype=np.int64)

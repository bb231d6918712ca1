# SPDX-License-Identifier: Apache-2.0
"""Medians of what was measured in rounds, and how sure they are."""

import math
import statistics

CONFIDENCE = 0.95
ROUNDS_MIN = 6  # fewer have no interval of that confidence


def interval(values):
    """Where the median of what the values are drawn from is, with a confidence of 95 %: the interval of the
    sign test, so nothing is assumed of how they are distributed. None: there are too few."""
    ordered, count = sorted(values), len(values)
    outside, below = 1 - CONFIDENCE, 0.0
    found = None
    for rank in range(count // 2):
        below += math.comb(count, rank) / 2**count
        if 2 * below > outside:
            break
        found = ordered[rank], ordered[count - 1 - rank]
    return found


def with_interval(values):
    """As text: 0.97 (0.95 to 1.02), or 0.97 (?) where there are too few values, or - where there is none."""
    if not values:
        return "-"
    found = interval(values)
    between = "?" if found is None else "%.2f to %.2f" % found
    return "%.2f (%s)" % (statistics.median(values), between)

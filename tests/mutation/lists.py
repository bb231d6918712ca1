#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each entry of seen.txt and unseen.txt is a fault that can be put into the tree as it is, each part
of the tree has tests that are near to it, and those are there."""

import os
import sys

import mutation


def look_at_lists(wrong):
    choices = mutation.every_mutant(mutation.TOP)
    count = 0
    for path in (mutation.UNSEEN, mutation.SEEN):
        entries = mutation.listed(path)
        wrong += mutation.stale(path, entries, choices)
        count += len(entries)
    return count


def look_at_parts(wrong):
    for part in {os.path.dirname(path) for path in mutation.sources(mutation.TOP)}:
        if not mutation.near_to(part):
            wrong.append("mutation.py: NEAR has no tests for %s" % part)
    for part, tests in mutation.NEAR.items():
        for folder in [part] + ["tests/" + test for test in tests.split()]:
            if not os.path.isdir(os.path.join(mutation.TOP, folder)):
                wrong.append("mutation.py: NEAR has %s, which is no folder" % folder)


def main():
    wrong = []
    count = look_at_lists(wrong)
    look_at_parts(wrong)
    print("\n".join(wrong))
    print("%d entries, %d wrong" % (count, len(wrong)))
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

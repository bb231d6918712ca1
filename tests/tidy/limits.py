#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The limits that rdma_bench holds figures against owe the product nothing: what is in their folder
includes, directly or through what it includes, files of the benchmark and the record of failures.
A limit that shared a part with the product could not show what that part costs."""

import os
import re
import sys

import tree

LIMITS = "tools/rdma_bench/limits/"
HARNESS = "tools/rdma_bench/"
ALLOWED = ("base/status.h", "include/weft/status.h")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', re.MULTILINE)


def in_tree(name):
    """Where an included file is, from the top; None: not in this tree."""
    for path in (name, "include/" + name):
        if os.path.exists(os.path.join(tree.TOP, path)):
            return path
    return None


def included(path):
    """Pairs of line and path of what a file includes of this tree."""
    text = tree.read(path)
    for match in INCLUDE.finditer(text):
        target = in_tree(match.group(1))
        if target is not None:
            yield tree.line_of(text, match.start()), target


def look(findings, path, way, seen):
    """`way`: the files from a limit's to this one."""
    for line, target in included(path):
        if target in seen:
            continue
        seen.add(target)
        if not target.startswith(HARNESS) and target not in ALLOWED:
            through = " through %s" % " and ".join(way[1:]) if len(way) > 1 else ""
            findings.add(way[0], line, "a limit knows %s%s" % (target, through))
        elif target not in ALLOWED:
            look(findings, target, way + [target], seen)


def main():
    findings = tree.Findings()
    for path in tree.files(".c", ".cc", ".h"):
        if path.startswith(LIMITS):
            findings.looked_at += 1
            look(findings, path, [path], {path})
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions have at most 70 lines and files at most 800.

The exceptions stand in long_functions.txt, one per line: `path:function lines`, or `path lines` for
a file. The list may only shrink: an entry that is longer than it says, is short enough now, or is
gone fails the test.
"""

import re
import sys

import tree

FUNCTION_LINES = 70
FILE_LINES = 800
RATCHET = "tests/tidy/long_functions.txt"
NAME = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(")
NOT_FUNCTIONS = re.compile(r"^(#|\}|(struct|enum|union)\b[^(]*\{|typedef\b|extern \")")


def without_macros(text):
    """Blank preprocessor lines with their continuations."""
    directive = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
    return directive.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def functions(path):
    """(name, first line of the signature, lines to the closing brace) of every definition."""
    lines = without_macros(tree.code(path)).split("\n")
    found = []
    start = None  # where the present top-level declaration began
    idx = 0
    while idx < len(lines):
        line = lines[idx]
        if not line.strip() or line.startswith("}"):
            start = None
        elif line == "{" and start is not None:
            end = idx
            while end < len(lines) and not lines[end].startswith("}"):
                end += 1
            signature = " ".join(lines[start:idx])
            names = [n for n in NAME.findall(signature) if not n.startswith("__attribute")]
            if names:
                found.append((names[0], start + 1, end - start + 1))
            idx = end
            start = None
        elif start is None and not line[0].isspace() and not NOT_FUNCTIONS.match(line):
            start = idx
        elif line.rstrip().endswith(";") and not line[0].isspace():
            start = None
        idx += 1
    return found


def ratchet():
    """{"path:function" or "path": (allowed lines, line in the list)}"""
    allowed = {}
    for number, line in enumerate(tree.read(RATCHET).splitlines(), 1):
        line = line.split("#")[0].split()
        if line:
            allowed[line[0]] = (int(line[1]), number)
    return allowed


def judge(findings, allowed, key, line, lines, limit):
    path = key.split(":")[0]
    if key in allowed:
        most, number = allowed.pop(key)
        if lines <= limit:
            findings.add(RATCHET, number, "%s has %d lines now: delete the entry" % (key, lines))
        elif lines > most:
            findings.add(path, line, "%s grew from %d to %d lines" % (key, most, lines))
        elif lines < most:
            findings.add(RATCHET, number, "%s shrank: write %d" % (key, lines))
    elif lines > limit:
        findings.add(path, line, "%s has %d lines, the limit is %d" % (key, lines, limit))


def main():
    findings = tree.Findings()
    allowed = ratchet()
    for path in tree.c_files():
        judge(findings, allowed, path, 1, tree.read(path).count("\n"), FILE_LINES)
        for name, line, lines in functions(path):
            findings.looked_at += 1
            judge(findings, allowed, path + ":" + name, line, lines, FUNCTION_LINES)
    for key, (_, number) in allowed.items():
        findings.add(RATCHET, number, "%s does not exist: delete the entry" % key)
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

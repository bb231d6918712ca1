#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds for the text of every file: licence line, white space, width of C lines, no paths of one
machine, and a README.md in each folder."""

import os
import re
import sys

import tree

SPDX = "SPDX-License-Identifier: Apache-2.0"
TEXT_ENDINGS = (
    ".c .h .py .sh .md .txt .map .build .wrap .S meson_options.txt Makefile .clang-format".split()
)
# Input for programs: kept byte by byte.
DATA = ("data/", "tests/fixtures/")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])(/(?:home|root|work|Users)/\w|/tmp/(?!weft))")
COLUMNS = 100
TAB = 8
# Folders that speak for themselves need no page of their own.
NO_README = re.compile(r"^(include/weft|tests/.+|tools/.+|data/.+|docs/.+|subprojects/.+|\.ci)$")


def is_text(path):
    return path.endswith(tuple(TEXT_ENDINGS)) or path.startswith(".ci/")


def look_at_text(findings, path):
    text = tree.read(path)
    if text and not text.endswith("\n"):
        findings.add(path, text.count("\n") + 1, "does not end with a newline")
    if text.endswith("\n\n"):
        findings.add(path, text.count("\n"), "ends with an empty line")
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            findings.add(path, number, "trailing white space")
        if MACHINE_PATH.search(line) and path != "tests/tidy/text.py":
            findings.add(path, number, "path of one machine: " + line.strip())


def look_at_columns(findings, path):
    """clang-format leaves comments alone, so their width is checked here."""
    text = tree.read(path)
    if "clang-format off" in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        columns = len(line.expandtabs(TAB))
        if columns > COLUMNS:
            findings.add(path, number, "has %d columns, the limit is %d" % (columns, COLUMNS))


def look_at_licence(findings, path):
    head = "\n".join(tree.read(path).split("\n")[:2])
    if path.endswith((".c", ".h")):
        if not head.startswith("/* " + SPDX + " */"):
            findings.add(path, 1, "first line is not /* %s */" % SPDX)
    elif path.endswith((".py", ".sh")) or path.startswith(".ci/"):
        if SPDX not in head:
            findings.add(path, 1, "no licence line: # " + SPDX)


def look_for_readme(findings, paths):
    folders = {os.path.dirname(path) for path in paths}
    folders |= {os.path.dirname(folder) for folder in set(folders)}
    for folder in sorted(folders):
        if not NO_README.match(folder) and os.path.join(folder, "README.md") not in paths:
            findings.add(folder or ".", 1, "has no README.md")


def main():
    findings = tree.Findings()
    paths = tree.files()
    for path in paths:
        if is_text(path) and not path.startswith(DATA):
            findings.looked_at += 1
            look_at_text(findings, path)
            look_at_licence(findings, path)
            if path.endswith((".c", ".h")):
                look_at_columns(findings, path)
    look_for_readme(findings, set(paths))
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What the tidy tests share: the files of the tree, and how a finding is told."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED_FOLDERS = re.compile(r"^(\.git|build.*|__pycache__|subprojects/(cmocka-.*|packagecache))$")

COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)


def files(*endings):
    """Paths from the top, sorted, of all files with one of the endings (none: all)."""
    found = []
    for folder, subfolders, names in os.walk(TOP):
        rel = os.path.relpath(folder, TOP)
        subfolders[:] = [
            sub
            for sub in sorted(subfolders)
            if not SKIPPED_FOLDERS.match(os.path.normpath(os.path.join(rel, sub)))
            and sub != "__pycache__"
            and not os.path.isdir(os.path.join(folder, sub, "meson-private"))
        ]
        for name in names:
            if not endings or name.endswith(endings):
                found.append(os.path.normpath(os.path.join(rel, name)))
    return sorted(found)


def c_files():
    return [path for path in files(".c", ".h") if not path.startswith("subprojects/")]


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def blank(match):
    text = match.group(0)
    if text[0] in "\"'":
        return text[0] + " " * (len(text) - 2) + text[0]
    return re.sub(r"[^\n]", " ", text)


def code(path):
    """The file with comments and the insides of strings blanked; lines and columns stay."""
    return COMMENT_OR_STRING.sub(blank, read(path))


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Findings:
    """Collects lines and ends the test with them."""

    def __init__(self):
        self.lines = []
        self.looked_at = 0

    def add(self, path, line, text):
        self.lines.append("%s:%d: %s" % (path, line, text))

    def finish(self):
        for line in self.lines:
            print(line)
        if self.looked_at == 0:
            print("nothing was looked at: the test is broken")
            sys.exit(1)
        print("%d looked at, %d findings" % (self.looked_at, len(self.lines)))
        sys.exit(1 if self.lines else 0)

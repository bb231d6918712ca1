#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages read well: prose is at most 100 columns wide, a folder's README at most 150 lines long and
the project's 200. Tables, code and addresses may be wider. A page that is not there yet stands in
wide_pages.txt or long_pages.txt, which may only shrink. What a page links to, and the files that it
names by their path, exist."""

import os
import re
import sys

import tree

COLUMNS = 100
LINES = 150
LINES_OF_FIRST = 200
WIDE = "tests/tidy/wide_pages.txt"
LONG = "tests/tidy/long_pages.txt"
# Their width and length are their authors'.
OTHERS = ("subprojects/", "data/", "tests/fixtures/")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
FILE = re.compile(r"`([a-z_]+/[\w/.-]+\.(?:c|h|py|md|sh|svg))`")


def listed(path):
    """A list of exceptions: {page: line of the list}."""
    found = {}
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        page = line.split("#")[0].strip()
        if page:
            found[page] = number
    return found


def wide_lines(text):
    """Numbers of the lines of prose that are too wide."""
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and len(line) > COLUMNS:
            is_table = line.lstrip().startswith("|")
            is_one_word = len(re.sub(r"^\s*([-*]|\d+\.)?\s*", "", line).split()) == 1
            if not is_table and not is_one_word:
                yield number


def look_at_width(findings, path, text, wide):
    numbers = list(wide_lines(text))
    if path in wide:
        entry = wide.pop(path)
        if not numbers:
            findings.add(WIDE, entry, "%s is not wide any more: delete the entry" % path)
        return
    for number in numbers:
        findings.add(path, number, "prose of more than %d columns" % COLUMNS)


def look_at_length(findings, path, text, long):
    limit = LINES_OF_FIRST if path == "README.md" else LINES
    lines = text.count("\n")
    if path in long:
        entry = long.pop(path)
        if lines <= limit:
            findings.add(LONG, entry, "%s has %d lines now: delete the entry" % (path, lines))
    elif lines > limit:
        findings.add(path, limit, "has %d lines, the limit is %d" % (lines, limit))


def is_there(path, *names):
    return any(os.path.exists(os.path.join(tree.TOP, os.path.dirname(path), n)) for n in names)


def look_at_names(findings, path, text):
    for match in LINK.finditer(text):
        name = match.group(1)
        if "://" not in name and not is_there(path, name):
            findings.add(path, tree.line_of(text, match.start()), "links to nothing: " + name)
    for match in FILE.finditer(text):
        name = match.group(1)
        from_top = os.path.relpath(name, os.path.dirname(path) or ".")
        if os.path.isdir(os.path.join(tree.TOP, name.split("/")[0])):
            if not is_there(path, name, from_top):
                findings.add(path, tree.line_of(text, match.start()), "there is no file " + name)


def main():
    findings = tree.Findings()
    wide, long = listed(WIDE), listed(LONG)
    for path in tree.files(".md"):
        if path.startswith(OTHERS):
            continue
        findings.looked_at += 1
        text = tree.read(path)
        look_at_width(findings, path, text, wide)
        look_at_names(findings, path, text)
        if path.endswith("README.md"):
            look_at_length(findings, path, text, long)
    for name, left in ((WIDE, wide), (LONG, long)):
        for path, entry in left.items():
            findings.add(name, entry, "%s does not exist: delete the entry" % path)
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

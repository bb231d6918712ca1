#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests of the interface find what they should: each change below is made to a small library.

usage: selftest.py COMPILER...   (the C compiler, as words)
"""

import os
import shutil
import subprocess
import sys
import tempfile

import abi
import promise
import symbols

HEADER = """\
#define WEFT_API __attribute__((visibility("default")))
enum weft_way { WEFT_UP, WEFT_DOWN };
struct weft_hidden;
struct weft_opts {
	unsigned long bytes;
	int count;
};
/* WEFT_API in a comment promises nothing. */
WEFT_API void weft_open(struct weft_opts *opts, enum weft_way way);
WEFT_API struct weft_hidden *
weft_two(int a,
	 int b);
"""
SOURCE = """\
#include "weft/weft.h"
struct weft_hidden { int private; };
struct weft_hidden *weft_two(int a, int b) { (void)(a + b); return 0; }
void weft_open(struct weft_opts *opts, enum weft_way way) { opts->count = (int)way; }
WEFT_API int weft_stray;
"""
MAP = """\
/* A comment; with words */
WEFT_1 {
global:
	weft_open;
	weft_two;
local:
	*;
};
"""
STRAY = ("map", "\tweft_two;", "\tweft_stray;\n\tweft_two;")
NEWER = "WEFT_2 {\nglobal:\n\tweft_two;\n} WEFT_1;\n"

# name, [(file, old, new)], whether it passes
ABI_CASES = [
    ("nothing changed", [], True),
    (
        "a function is added",
        [
            ("h", "WEFT_API struct", "WEFT_API int weft_three(void);\nWEFT_API struct"),
            ("c", "WEFT_API int weft_stray;", "int weft_three(void) { return 3; }"),
            ("map", "\tweft_two;", "\tweft_three;\n\tweft_two;"),
        ],
        True,
    ),
    ("an enumerator is added last", [("h", "WEFT_DOWN }", "WEFT_DOWN, WEFT_OUT }")], True),
    ("a private struct grows", [("c", "int private;", "int private, more;")], True),
    ("a function is removed", [("map", "\tweft_two;\n", "")], False),
    ("an argument's type changes", [("h", "int b", "long b"), ("c", "int b", "long b")], False),
    ("a field is added", [("h", "\tint count;", "\tint count;\n\tlong more;")], False),
    ("a field's type changes", [("h", "int count", "short count")], False),
    ("enumerators change places", [("h", "WEFT_UP, WEFT_DOWN", "WEFT_DOWN, WEFT_UP")], False),
    (
        "a function changes its node",
        [("map", "\tweft_two;\n", ""), ("map", "};\n", "};\n" + NEWER)],
        False,
    ),
]

# name, [(file, old, new)], a piece of the finding; "": none
SYMBOL_CASES = [
    ("all is well", [], ""),
    ("a second node", [("map", "\tweft_two;\n", ""), ("map", "};\n", "};\n" + NEWER)], ""),
    ("a pattern", [("map", "\tweft_two;", "\tweft_*;")], "write each name out"),
    ("a stray symbol", [STRAY], "no header promises"),
    ("an object", [STRAY], "only functions"),
    ("a forgotten name", [("map", "\tweft_two;\n", "")], "in no version node"),
    ("no definition", [("c", "weft_two(", "weft_other(")], "weft_two is not exported"),
    ("no promise", [("h", "WEFT_API void", "void")], "no header promises"),
    ("nothing hidden", [("map", "\t*;", "\tnone;")], "`local: *;`"),
]


class Library:
    """A library made of the three files with some words replaced."""

    def __init__(self, folder, name, changes):
        text = {"h": HEADER, "c": SOURCE, "map": MAP}
        for which, old, new in changes:
            assert old in text[which], "%s: '%s' is not there" % (name, old)
            text[which] = text[which].replace(old, new)
        top = os.path.join(folder, name.replace(" ", "_"))
        self.headers = os.path.join(top, "weft")
        self.map = os.path.join(top, "lib.map")
        self.path = os.path.join(top, "lib.so")
        os.makedirs(self.headers)
        for path, which in (("weft/weft.h", "h"), ("lib.c", "c"), ("lib.map", "map")):
            with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                file.write(text[which])

    def build(self, compiler):
        words = "-g -fPIC -shared -fvisibility=hidden -I. lib.c -Wl,--version-script,lib.map"
        words += " -Wl,-soname,lib.so.0 -o lib.so"
        subprocess.run(compiler + words.split(), cwd=os.path.dirname(self.path), check=True)
        return self


def symbol_findings(library):
    names = promise.promised(library.headers)
    found = promise.check_map(library.map, names)
    return found + symbols.check_exports(symbols.exported(library.path), promise.nodes(library.map))


def test_symbols(compiler, folder):
    wrong = []
    for name, changes, expected in SYMBOL_CASES:
        library = Library(folder, "symbols " + name, changes).build(compiler)
        found = "\n".join(symbol_findings(library))
        if (expected == "") != (found == "") or expected not in found:
            wrong.append("symbols: %s: %s" % (name, found or "no finding"))
    return wrong


def test_completion(folder):
    changes = [("map", "\tweft_two;\n", ""), ("map", "};\n", "};\nWEFT_2 {\nglobal:\n} WEFT_1;\n")]
    library = Library(folder, "completion", changes)
    added = promise.complete_map(library.map, promise.promised(library.headers))
    newest = promise.nodes(library.map)[-1]
    good = added == ["weft_two"] and newest == ("WEFT_2", ["weft_two"], [])
    good = good and promise.complete_map(library.map, promise.promised(library.headers)) == []
    return [] if good else ["completion: added %s, newest %s" % (added, newest)]


def test_abi(compiler, folder):
    wrong = []
    base = Library(folder, "base", []).build(compiler)
    dump = os.path.join(folder, "base.xml")
    status, said = abi.write_dump(base.path, base.headers, dump)
    if status != 0 or folder in promise.read(dump):
        return ["dump: status %d, or it names the folder: %s" % (status, said)]
    for name, changes, passes in ABI_CASES:
        library = Library(folder, "abi " + name, changes).build(compiler)
        good, said = abi.compare(dump, library.path, library.headers)
        if good != passes or "abidiff failed" in said:
            wrong.append("abi: %s: %s:\n%s" % (name, "passed" if good else "failed", said))
    return wrong


def without_abi(compiler):
    """Why the binary comparison cannot be tested; None: it can."""
    said = subprocess.run(compiler + ["--version"], stdout=subprocess.PIPE, text=True, check=True)
    if "clang" in said.stdout:
        return "abidw needs gcc to tell private types"
    if not (shutil.which("abidiff") and shutil.which("abidw")):
        return "abidiff is not there: apt-get install abigail-tools"
    return None


def main():
    compiler = sys.argv[1:] or ["cc"]
    reason = without_abi(compiler)
    with tempfile.TemporaryDirectory() as folder:
        wrong = test_symbols(compiler, folder) + test_completion(folder)
        if reason is None:
            wrong += test_abi(compiler, folder)
    for line in wrong:
        print(line)
    print("%d mistakes" % len(wrong))
    if not wrong and reason is not None:
        promise.skip("the comparison, for %s; all else passed" % reason)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

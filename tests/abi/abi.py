#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library's interface, in binary: compared with the stored dump, or dumped anew.

usage: abi.py check LIBRARY    additions pass; what was changed or removed fails
       abi.py dump BUILD       complete trainer/libweft.map, build it, write tests/abi/libweft.xml
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import promise

DUMP = os.path.join(promise.TOP, "tests", "abi", "libweft.xml")
LIBRARY = os.path.join("trainer", "libweft.so")
# What is no part of the promise is left out: types that no installed header holds, and places.
PUBLIC = ["--drop-private-types", "--exported-interfaces-only"]
SMALL = (
    "--no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --no-parameter-names "
    "--no-write-default-sizes --type-id-style hash"
).split()
BROKEN = 1 | 2  # bits of abidiff's exit status: it failed by itself; 4 and 8 are changes
REMEDY = """\
Programs built against the headers as they were may not work with this library (< stored, > now).
  not meant: put the function, type or field back as it was; what is new goes beside it.
  meant, and the version that has it was never released: make abi-dump
  meant, after a release: raise `weft_soversion` in trainer/meson.build, then make abi-dump, and a
  line in CHANGELOG.md. Whoever reviews it looks at the change of tests/abi/libweft.xml."""


def needs(*tools):
    for tool in tools:
        if not shutil.which(tool):
            promise.skip("%s is not there: apt-get install abigail-tools" % tool)


def has_types(library):
    """Whether the compiler left a description of types; a release build has none."""
    with open(library, "rb") as file:
        return b"\0.debug_info\0" in file.read()


def call(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def write_dump(library, headers, out):
    """Status and output of abidw; `out` says nothing of the machine where it was written."""
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "raw.xml")
        status, said = call(
            ["abidw", "--headers-dir", headers] + PUBLIC + SMALL + ["--out-file", raw, library]
        )
        if status != 0:
            return status, said
        text = promise.read(raw)
    text = re.sub(r" path='[^']*?([^/']*/[^/']*)'", r" path='\1'", text)
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    return 0, said


def compare(dump, library, headers):
    """True if programs that the dump fits are fit by the library too; and what abidiff said. Two
    dumps are compared: given the library itself, abidiff takes a type of the stored dump, which
    says nothing of places, for a private one, and passes over its changes."""
    with tempfile.TemporaryDirectory() as folder:
        now = os.path.join(folder, "now.xml")
        status, said = write_dump(library, headers, now)
        if status != 0:
            return False, "abidw failed, status %d:\n%s" % (status, said)
        status, said = call(["abidiff", "--no-added-syms", dump, now])
    if status & BROKEN:
        said = "abidiff failed, status %d:\n%s" % (status, said)
    return status == 0, said


def check(library):
    needs("abidiff", "abidw")
    if not has_types(library):
        promise.skip("a build without debugging information: it describes no types")
    good, said = compare(DUMP, library, promise.HEADERS)
    print(said.rstrip())
    if not good:
        print(REMEDY)
    return 0 if good else 1


def build_library(build):
    """The library alone, so that half-done work elsewhere is not in the way."""
    steps = [["meson", "compile", "-C", build, "weft:shared_library"]]
    if not os.path.exists(os.path.join(build, "build.ninja")):
        steps.insert(0, ["meson", "setup", build, promise.TOP])
    for words in steps:
        status, said = call(words)
        if status != 0:
            sys.exit("%s\n%s failed, status %d" % (said[-4000:], " ".join(words), status))


def renew(build):
    needs("abidw")
    added = promise.complete_map(promise.MAP, promise.promised(promise.HEADERS))
    if added:
        print("trainer/libweft.map: added " + " ".join(added))
    build_library(build)
    library = os.path.join(build, LIBRARY)
    if not has_types(library):
        sys.exit("%s: built without debugging information (-Dbuildtype=debugoptimized)" % library)
    status, said = write_dump(library, promise.HEADERS, DUMP)
    if status != 0:
        sys.exit("abidw failed, status %d:\n%s" % (status, said))
    print("%s: renewed" % os.path.relpath(DUMP, promise.TOP))
    return 0


def main():
    commands = {"check": check, "dump": renew}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    return commands[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    sys.exit(main())

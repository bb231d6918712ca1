#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone: as C17 without warnings; the installed ones without any macro, as
C11, C17 and C++17, with gcc and clang, as far as these are here. The build compiles a header that a
C file includes before anything else: that is not repeated.

usage: headers.py COMPILER...   (the C compiler, as words)
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import tree

# A user's build gives no macro and one folder.
PUBLIC_FLAGS = "-Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only".split()
FLAGS = PUBLIC_FLAGS + "-D_GNU_SOURCE -DWF_SLOW_ASSERTS=1 -I.".split()


def compile_alone(job):
    """None, or what the compiler said."""
    compiler, language, header = job
    public = header.startswith("include/")
    name = header[len("include/") :] if public else header
    source = '#include "%s"\n#include "%s"\n' % (name, name)  # twice: it guards itself
    if language.startswith("c1"):
        source += "extern int not_empty;\n"
    words = compiler + (PUBLIC_FLAGS if public else FLAGS) + ["-std=" + language, "-x"]
    words += ["c++" if "++" in language else "c", "-"]
    done = subprocess.run(
        words,
        input=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tree.TOP,
    )
    return None if done.returncode == 0 else done.stdout


def included_first(paths):
    """The headers that the build compiles with nothing in front of them."""
    found = set()
    for path in paths:
        if path.endswith(".c"):
            first = re.search(r"^#include (.*)$", tree.read(path), re.MULTILINE)
            if first:
                found.add(first.group(1).strip('"'))
    return found


def others(compiler):
    """The compilers that are here besides the one that this build is made with."""
    return [[name] for name in ("gcc", "clang") if shutil.which(name) and [name] != compiler]


def cxx_works(compiler):
    done = subprocess.run(
        [compiler, "-x", "c++", "-fsyntax-only", "-"],
        input="#include <cstddef>\n",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return done.returncode == 0


def main():
    compiler = sys.argv[1:] or ["cc"]
    paths = tree.c_files()
    headers = [path for path in paths if path.endswith(".h")]
    public = [path for path in headers if path.startswith("include/")]
    built = included_first(paths)
    jobs = [(compiler, "c17", header) for header in headers if header not in built]
    for words in [compiler] + others(compiler):
        jobs += [(words, language, header) for header in public for language in ("c11", "c17")]
    for cxx in ("g++", "clang++"):
        if shutil.which(cxx) and cxx_works(cxx):
            jobs += [([cxx], "c++17", header) for header in public]
    findings = tree.Findings()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for (words, language, header), said in zip(jobs, pool.map(compile_alone, jobs)):
            findings.looked_at += 1
            if said is not None:
                findings.add(header, 1, "%s -std=%s:\n%s" % (words[-1], language, said))
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

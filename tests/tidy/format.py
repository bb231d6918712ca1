#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format has nothing to change. Its version decides, so others than 14 skip."""

import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"


def main():
    tool = shutil.which("clang-format-" + VERSION) or shutil.which("clang-format")
    if tool is None:
        print("clang-format is not installed")
        return 77
    version = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    major = re.search(r"version (\d+)", version.stdout)
    if major is None or major.group(1) != VERSION:
        print("clang-format here is not version %s: %s" % (VERSION, version.stdout.strip()))
        return 77
    paths = tree.c_files()
    done = subprocess.run(
        [tool, "--dry-run", "--Werror", "--style=file", "--ferror-limit=3"] + paths,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tree.TOP,
    )
    print(done.stderr)
    print("%d files" % len(paths))
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())

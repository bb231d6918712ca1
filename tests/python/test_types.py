#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: test_types.py CACHE
mypy over the package as its users see it, with the types of NumPy; with WEFT_LONG set strict, and with
the types of PyTorch, which take mypy a minute. CACHE is the folder in which mypy keeps what it knows."""

import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BRIEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "types_brief.ini")
if os.environ.get("WEFT_LONG"):
    how, cache = ["--strict"], "long"
else:
    how, cache = ["--config-file", BRIEF], "brief"

sys.exit(
    subprocess.run(
        [sys.executable, "-m", "mypy", *how, "--cache-dir", os.path.join(sys.argv[1], cache), "-p", "weft"],
        cwd=os.path.join(TOP, "bindings/python"),
    ).returncode
)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: test_types.py CACHE
mypy, strict, over the package as its users see it: with the types of NumPy and PyTorch. CACHE is the
folder in which mypy keeps what it knows of them."""

import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

sys.exit(
    subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", sys.argv[1], "-p", "weft"],
        cwd=os.path.join(TOP, "bindings/python"),
    ).returncode
)

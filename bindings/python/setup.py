# SPDX-License-Identifier: Apache-2.0
"""Packs the library's headers, which weft/_abi.py reads, into the package. Nothing is compiled."""

import os
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(HERE, "..", "..", "include", "weft")


class BuildWithHeaders(build_py):
    """The usual, and the headers beside it."""

    def run(self):
        super().run()
        into = os.path.join(self.build_lib, "weft", "_headers")
        os.makedirs(into, exist_ok=True)
        for name in ("status.h", "weft.h", "sparse.h"):
            shutil.copy(os.path.join(HEADERS, name), into)


setup(cmdclass={"build_py": BuildWithHeaders})

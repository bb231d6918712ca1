# SPDX-License-Identifier: Apache-2.0
"""Packs the library that was built, and its headers, which weft/_abi.py reads, into the package.
Nothing is compiled here: `make build` comes first, or WEFT_LIBRARY names another libweft.so.0."""

import os
import shutil
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
HEADERS = os.path.join(TOP, "include", "weft")
SONAME = "libweft.so.0"


def library():
    """The file, or the end of the build with the remedy."""
    path = os.environ.get("WEFT_LIBRARY") or os.path.join(TOP, "build", "trainer", SONAME)
    if not os.path.isfile(path):
        sys.exit("weft: %s is not there: `make build` first, or name a %s in WEFT_LIBRARY" % (path, SONAME))
    return path


class BuildWithLibrary(build_py):
    """The usual, and the library and the headers beside it."""

    def run(self):
        super().run()
        package = os.path.join(self.build_lib, "weft")
        os.makedirs(os.path.join(package, "_headers"), exist_ok=True)
        os.makedirs(os.path.join(package, "_library"), exist_ok=True)
        for name in ("status.h", "weft.h", "members.h", "restart.h", "sparse.h"):
            shutil.copy(os.path.join(HEADERS, name), os.path.join(package, "_headers"))
        shutil.copyfile(library(), os.path.join(package, "_library", SONAME))


class WithLibrary(Distribution):
    """It is for one kind of machine."""

    def has_ext_modules(self):
        return True


class WheelOfAnyPython(bdist_wheel):
    """The library is of one kind of machine, and knows nothing of Python's version."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfAnyPython})

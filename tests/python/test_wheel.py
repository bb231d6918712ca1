#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel: built from a checkout, installed into a fresh virtual environment, used without the
checkout. Nothing comes from a network."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

import support

OFFLINE = ("--no-index", "--no-deps", "--disable-pip-version-check", "--quiet")
TRAIN = """
import sys
import weft
from weft import _abi
assert weft.__file__.startswith(sys.argv[1]), weft.__file__
assert _abi.api().path.startswith(sys.argv[1]), _abi.api().path
session = weft.Session(pservers=sys.argv[2], learning_rate=1)
w = session.empty(3, name="w")
w.param[:] = 5
session.start()
w.grad[:] = 2
session.exchange()
assert w.param.tolist() == [3, 3, 3]
session.close()
"""


class Wheel(support.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.checkout = os.path.join(self.folder, "checkout")
        for part in ("bindings/python", "include"):
            left = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
            shutil.copytree(os.path.join(support.TOP, part), os.path.join(self.checkout, part), ignore=left)
        self.package = os.path.join(self.checkout, "bindings/python")
        self.library = os.environ.get("WEFT_LIBRARY") or os.path.join(support.TOP, "build/trainer/libweft.so.0")

    def run_python(self, python, *arguments, library=None):
        keep = {name: value for name, value in os.environ.items() if name not in ("WEFT_LIBRARY", "PYTHONPATH")}
        more = {} if library is None else {"WEFT_LIBRARY": library}
        return subprocess.run([python, *arguments], cwd=self.folder, env=dict(keep, **more), timeout=support.LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def works(self, done):
        self.assertEqual(done.returncode, 0, done.stdout)

    def environment(self):
        """Its Python sees the system's NumPy and pip, and is where pip installs."""
        place = os.path.join(self.folder, "venv")
        self.works(self.run_python(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", place))
        return os.path.join(place, "bin", "python")

    def trains(self, python):
        shutil.rmtree(self.checkout)
        where = self.pserver()
        self.works(self.run_python(python, "-c", TRAIN, self.folder, where))
        self.jobs_end_well()

    def test_a_wheel_has_the_library_and_works_without_the_checkout(self):
        made = os.path.join(self.folder, "wheels")
        self.works(self.run_python(sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation",
                                   "--wheel-dir", made, self.package, library=self.library))
        wheels = glob.glob(os.path.join(made, "*"))
        self.assertEqual(len(wheels), 1)
        self.assertRegex(wheels[0], r"/weft-[0-9.]+-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = wheel.namelist()
            with open(self.library, "rb") as file:
                self.assertEqual(wheel.read("weft/_library/libweft.so.0"), file.read())
        for name in os.listdir(os.path.join(self.package, "weft")):
            if name.endswith(".py") or name == "py.typed":
                self.assertIn("weft/" + name, names)
        self.assertIn("weft/_headers/weft.h", names)
        python = self.environment()
        self.works(self.run_python(python, "-m", "pip", "install", *OFFLINE, wheels[0]))
        self.trains(python)

    def test_pip_installs_a_checkout(self):
        built = os.path.join(self.checkout, "build/trainer")
        os.makedirs(built)
        shutil.copy(self.library, os.path.join(built, "libweft.so.0"))
        python = self.environment()
        self.works(self.run_python(python, "-m", "pip", "install", *OFFLINE, "--no-build-isolation", self.package))
        self.trains(python)

    def test_without_a_library_there_is_no_wheel(self):
        done = self.run_python(sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", self.package)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("`make build` first", done.stdout)


if __name__ == "__main__":
    support.main()

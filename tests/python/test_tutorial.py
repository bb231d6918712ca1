# SPDX-License-Identifier: Apache-2.0
"""usage: test_tutorial.py numpy|torch
The cells of bindings/python/tutorial.md as they are on the page, in two processes, beside the output
that the page shows. numpy: those before the heading PyTorch."""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import traceback

import support

PAGE = os.path.join(support.PACKAGE, "tutorial.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(part):
    """[(language, text, line)] of the page, or of its part before PyTorch."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    end = len(page) if part == "torch" else page.index("\n## PyTorch\n")
    return [(*found.groups(), page.count("\n", 0, found.start()) + 2) for found in BLOCK.finditer(page, 0, end)]


def run_cells(part):
    """One trainer: a cell's output that is not the page's ends it."""
    found = blocks(part)
    names = {"__name__": "__main__"}
    cells = 0
    for (kind, text, line), following in zip(found, found[1:] + [("", "", 0)]):
        if kind != "python":
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (line - 1) + text, PAGE, "exec"), names)
        except BaseException:
            traceback.print_exc()
            sys.exit("the cell at line %d of the page" % line)
        wanted = following[1] if following[0] == "text" else ""
        if printed.getvalue() != wanted:
            sys.exit("the cell at line %d printed\n%sand the page has\n%s" % (line, printed.getvalue(), wanted))
        cells += 1
    print("%d cells" % cells)


class Tutorial(support.Case):
    def test_cells_print_what_the_page_shows(self):
        found = blocks(PART)
        program, *options = shlex.split(found[0][1])
        self.assertEqual((program, found[0][0], found[1][0]), ("weft", "sh", "sh"))
        place = dict(word.split("=") for word in shlex.split(found[1][1])[1:])
        self.assertEqual(place["RANK"], "0")
        port = support.free_port(3)
        self.run_program(support.WEFT, *options, "--port=%d" % port)
        place.update(WEFT_PORT=port, MASTER_PORT=port + 2)
        with tempfile.TemporaryDirectory() as folder:
            trainers = []
            for rank in range(2):
                names = ["%s=%s" % item for item in dict(place, RANK=rank).items()]
                command = support.python(os.path.abspath(__file__), PART, folder, *names)
                trainers.append(self.run_program(*command, OMP_NUM_THREADS="1"))
            said = [self.ends_well(trainer) for trainer in trainers]
        cells = sum(kind == "python" for kind, _, _ in found)
        self.assertGreater(cells, 4)
        self.assertEqual(said, ["%d cells\n" % cells] * 2)


if __name__ == "__main__":
    PART = sys.argv.pop(1)
    if sys.argv[1:]:  # a trainer: its folder, and what the page has it export
        os.chdir(sys.argv[1])
        os.environ.update(name.split("=") for name in sys.argv[2:])
        run_cells(PART)
    else:
        support.main()

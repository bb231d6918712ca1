#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tidy tests find what is planted in a made-up tree, and nothing in a clean one."""

import contextlib
import io
import os
import sys
import tempfile

import arrows
import calls
import headers
import lengths
import limits
import names
import pages
import text
import tree

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
GNU_ONLY = "#include <stdio.h>\nextern cookie_io_functions_t a;\n"


def function(name, lines):
    return "static int\n%s(int a)\n{\n%s}\n" % (name, "\ta++;\n" * (lines - 4))


LIMIT = "tools/rdma_bench/limits/a.c"
# test, planted file, its content, what must be said (None: nothing)
CASES = [
    (arrows, "base/a.c", '#include "wire/head.h"\n', "base may not know wire"),
    (arrows, "base/a.c", '#include "base/b.h"\n#include "weft/status.h"\n', None),
    (arrows, "pserver/a.c", '#include "trainer/session/core.h"\n', "pserver may not know trainer"),
    (arrows, "trainer/session/a.c", '#include "pserver/store.h"\n', "session may not know pserver"),
    (arrows, "trainer/program/a.c", '#include "trainer/session/core.h"\n', "may not know trainer"),
    (arrows, "trainer/program/a.c", '#include "trainer/models/m.h"\n', None),
    (arrows, "trainer/session/a.c", '#include "trainer/models/m.h"\n', "not know trainer/models"),
    (arrows, "sparse/server/a.c", '#include "trainer/session/core.h"\n', "may not know trainer"),
    (arrows, "sparse/table/a.c", '#include "pserver/service.h"\n', "may not know pserver"),
    (arrows, "sparse/client/a.c", '#include "sparse/server/b.h"\n', "not know sparse/server"),
    (arrows, "base/a.c", '#include "b.h"\n', "names no folder"),
    (arrows, "tests/unit/a.c", '#include "a.c"\n#include "trainer/session/core.h"\n', None),
    (arrows, "tests/unit/a.c", '#include "b.h"\n', "names no folder"),
    (arrows, "utils/a.c", "int a;\n", "does not know"),
    (arrows, "base/a.c", '/* #include "wire/head.h" */\n', None),
    (calls, "base/a.c", "strcpy(a, b);\n", "strcpy is banned"),
    (calls, "base/a.c", '/* strcpy(a, b); */ f("rand()");\n', None),
    (calls, "base/a.c", "ops->free(a);\n", None),
    (calls, "base/a.c", "free (a);\n", "free is banned"),
    (calls, "base/env_system.c", "free(a);\n", None),
    (calls, "base/a.c", "assert(a);\n", "assert is banned"),
    (calls, "base/a.c", "static_assert(a, b);\n", None),
    (calls, "tools/a.c", 'printf("a");\n', None),
    (calls, "wire/a.c", 'printf("a");\n', "printf is banned"),
    (calls, "base/a.c", "a = atomic_load(&b);\n", "has no order"),
    (calls, "base/a.c", "a = atomic_fetch_add(&b, 1);\n", "has no order"),
    (calls, "base/a.c", "a = atomic_fetch_add_explicit(&b, 1, memory_order_relaxed);\n", None),
    (calls, "base/a.c", "atomic_thread_fence(memory_order_acquire);\n", "is banned"),
    (calls, "base/a.c", "volatile int a;\n", "volatile is banned"),
    (lengths, "base/a.c", function("long_one", 71), "base/a.c:long_one has 71 lines"),
    (lengths, "base/a.c", function("wall", 70) + function("next", 30), None),
    (lengths, "base/a.c", "\n" * 790 + function("f", 20), "base/a.c has 810 lines"),
    (
        lengths,
        "base/a.c",
        "#define F(x)\\\n\tdo {\\\n\t} while (0)\nstatic const int t[] = {\n\t1,\n};\n"
        + function("long_one", 80),
        "base/a.c:long_one has 80 lines",
    ),
    (limits, LIMIT, '#include "base/status.h"\n#include "tools/rdma_bench/meter.h"\n', None),
    (limits, LIMIT, '#include "base/other.h"\n', "a limit knows base/other.h"),
    (limits, LIMIT, "#include <base/other.h>\n", "a limit knows base/other.h"),
    (limits, LIMIT, '#include "tools/rdma_bench/product.h"\n', "through tools/rdma_bench/product.h"),
    (limits, LIMIT + "c", '#include "weft/other.h"\n', "a limit knows include/weft/other.h"),
    (limits, "tools/rdma_bench/a.c", '#include "base/other.h"\n', None),
    (names, "base/a.c", function("take_slab", 10), "take_slab: what does it do?"),
    (names, "base/a.c", function("wf_lane_hear", 10), "wf_lane_hear: what does it do?"),
    (names, "base/a.c", function("mistake_of", 10) + function("f_taken", 10), None),
    (names, "tests/unit/a.c", function("take_slab", 10), None),
    (pages, "base/README.md", "a %s\n" % ("b" * 98), None),
    (pages, "base/README.md", "a %s\n" % ("b" * 99), "base/README.md:1: prose of more than 100"),
    (pages, "docs/a.md", "- a %s\n" % ("b" * 99), "docs/a.md:1: prose of more than 100"),
    (pages, "docs/a.md", "- %s\n" % ("b" * 99), None),
    (pages, "docs/a.md", "| a %s |\n" % ("b" * 99), None),
    (pages, "docs/a.md", "```\na %s\n```\n" % ("b" * 99), None),
    (pages, "docs/a.md", "```\n```\na %s\n" % ("b" * 99), "docs/a.md:3: prose of more"),
    (pages, "base/README.md", "a\n" * 150, None),
    (pages, "base/README.md", "a\n" * 151, "has 151 lines, the limit is 150"),
    (pages, "README.md", "a\n" * 200, None),
    (pages, "README.md", "a\n" * 201, "has 201 lines, the limit is 200"),
    (pages, "docs/a.md", "a\n" * 300, None),
    (pages, pages.WIDE, "tests/wide.md\n", None),
    (pages, pages.WIDE, "", "tests/wide.md:1: prose"),
    (pages, pages.WIDE, "tests/wide.md\ntools/README.md\n", "tools/README.md is not wide any more"),
    (pages, pages.WIDE, "tests/wide.md\ndocs/b.md\n", "docs/b.md does not exist"),
    (pages, "docs/a.md", "[a](../base/other.c#here) [b](https://b) `base/other.c`\n", None),
    (pages, "docs/a.md", "[a](other.md)\n", "docs/a.md:1: links to nothing: other.md"),
    (pages, "docs/a.md", "\n`base/gone.c`\n", "docs/a.md:2: there is no file base/gone.c"),
    (pages, "tools/README.md", "`rdma_bench/product.h` `base/other.c` `job/a.c`\n", None),
    (pages, pages.LONG, "tools/README.md\n", "tools/README.md has 1 lines now"),
    (text, "base/a.c", "int a;\n", "first line is not"),
    (text, "base/a.c", LICENCE + "int a; \n", "trailing white space"),
    (text, "base/a.c", LICENCE + "int a;", "does not end with a newline"),
    (text, "base/a.c", LICENCE + "/* see /home/" + "somebody */\n", "path of one machine"),
    (text, "base/a.c", LICENCE + "int a;\n", None),
    (text, "base/a.c", LICENCE + "\t/* %s */\n" % ("a" * 86), None),
    (text, "base/a.c", LICENCE + "\t/* %s */\n" % ("a" * 87), "has 101 columns"),
    (text, "wire/a.c", LICENCE + "int a;\n", "wire:1: has no README.md"),
    (headers, "base/a.h", "#pragma once\nsize_t a;\n", "size_t"),
    (headers, "base/a.h", "#pragma once\n#include <stddef.h>\nextern size_t a;\n", None),
    (headers, "base/a.h", "enum a { A };\n", "redeclar"),
    (headers, "base/a.h", "#pragma once\n" + GNU_ONLY, None),
    (headers, "include/weft/a.h", GNU_ONLY, "cookie_io"),
    (headers, "include/weft/a.h", "int f(int class);\n", "c++17"),
]
# ratchet, lines of base/a.c:f, what must be said
RATCHET_CASES = [
    ("base/a.c:f 80\n", 80, None),
    ("base/a.c:f 80\n", 81, "grew from 80 to 81"),
    ("base/a.c:f 80\n", 79, "shrank: write 79"),
    ("base/a.c:f 80\n", 60, "delete the entry"),
    ("base/a.c:g 80\n", 60, "does not exist"),
]


def plant(top, path, content):
    full = os.path.join(top, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(content)


def said_by(module, planted):
    """What the test says, and its status, on a tree with the planted files."""
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as top:
        for path, content in planted.items():
            plant(top, path, content)
        tree.TOP = top
        with contextlib.redirect_stdout(out):
            try:
                module.main()
            except SystemExit as end:
                return out.getvalue(), end.code
    return out.getvalue(), 0


def judge(module, planted, wanted):
    said, status = said_by(module, planted)
    right = status == 0 if wanted is None else status == 1 and wanted in said
    if not right:
        print("%s on %s:" % (module.__name__, planted))
        print("  wanted %s, got status %s and:\n%s" % (wanted, status, said))
    return right


def main():
    sys.argv = sys.argv[:1]
    around = {
        "README.md": "a\n",
        "base/README.md": "a\n",
        "base/other.c": LICENCE + function("other", 20),
        "base/other.h": LICENCE + "#pragma once\n",
        "base/status.h": LICENCE + '#pragma once\n#include "base/other.h"\n',
        "include/README.md": "a\n",
        "include/weft/other.h": LICENCE,
        "tests/wide.md": "a %s\n" % ("b" * 99),
        "tools/README.md": "a\n",
        pages.WIDE: "tests/wide.md\n",
        pages.LONG: "",
        "tools/rdma_bench/limits/b.h": LICENCE + "#pragma once\n",
        "tools/rdma_bench/meter.h": LICENCE + "#pragma once\n",
        "tools/rdma_bench/product.h": LICENCE + '#pragma once\n#include "base/other.h"\n',
        "tests/README.md": "a\n",
        lengths.RATCHET: "",
    }
    results = [judge(m, dict(around, **{path: c}), wanted) for m, path, c, wanted in CASES]
    for entries, lines, wanted in RATCHET_CASES:
        planted = dict(around, **{lengths.RATCHET: entries, "base/a.c": function("f", lines)})
        results.append(judge(lengths, planted, wanted))
    print("%d cases, %d wrong" % (len(results), results.count(False)))
    return 1 if False in results else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders include only what docs/architecture.md lets them know. Includes name their folder."""

import os
import re
import sys

import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)

# Folder (longest match wins) -> folders that it may include besides itself. "*": anything.
ARROWS = {
    "include": [],
    "base": ["include"],
    "wire": ["include", "base"],
    # Arrays, rows and files; nothing of sessions, so that `weft export` needs none.
    "saved": ["include", "base", "wire"],
    "kernels": ["include", "base"],
    "transport": ["include", "base", "wire"],
    # What both ends of a lane's links do; neither tensors nor rows.
    "exchange": ["include", "base", "wire", "transport"],
    "pserver": ["include", "base", "wire", "saved", "kernels", "transport", "exchange"],
    # What is shown of a running pserver: its records, wherever they come from.
    "status": ["include", "base", "wire", "transport"],
    # libweft: a session and its tensors; it knows nothing of the training programs beside it.
    "trainer/session": ["include", "base", "wire", "kernels", "transport", "exchange"],
    # Passes of a session as files: the public calls, the declarations behind them, and saved.
    "trainer/passes": [
        "include",
        "base",
        "wire",
        "kernels",
        "transport",
        "exchange",
        "trainer/session",
        "saved",
        "sparse/client",
        "sparse/table",
    ],
    # The training programs use nothing that the library does not offer; their sequential run keeps
    # tables itself.
    "trainer/program": [
        "include",
        "base",
        "kernels",
        "sparse/table",
        "trainer/models",
        "trainer/readers",
        "saved",
    ],
    "trainer/models": ["include", "base", "kernels", "trainer/readers"],
    "trainer/readers": ["include", "base", "kernels"],
    # The engine of a lane's tables: rows by key, nothing of lanes, peers or messages.
    "sparse/table": ["include", "base", "wire", "kernels"],
    # The service that puts tables on a port of a pserver.
    "sparse/server": [
        "include",
        "base",
        "wire",
        "saved",
        "kernels",
        "transport",
        "exchange",
        "pserver",
        "sparse/table",
    ],
    # What a trainer sends. Of the engine: sketches of hot keys, first values, limits.
    "sparse/client": [
        "include",
        "base",
        "wire",
        "kernels",
        "transport",
        "exchange",
        "trainer/session",
        "sparse/table",
    ],
    # Front of everything but the training programs; `weft version` lists what is compiled in.
    "tools": [
        "include",
        "base",
        "kernels",
        "transport",
        "wire",
        "exchange",
        "pserver",
        "status",
        "sparse/server",
        "tools/data",
        "tools/doctor",
        "tools/launch",
        "tools/progress",
        "tools/trace",
        "tools/watch",
        "saved",
    ],
    # Asks a pserver over its port, and shows the answer.
    "tools/watch": ["include", "base", "wire", "transport", "exchange", "status"],
    # What the members of a job have recorded, collected over the ports of its pservers.
    "tools/trace": ["include", "base", "wire", "status", "tools/watch"],
    # The verbs of `weft data`.
    "tools/data": ["include", "base", "trainer/readers", "saved", "tools/progress"],
    # Looks at the machine, and at what the transports find there.
    "tools/doctor": ["include", "base", "transport", "tools", "tools/launch"],
    # Hands options on to the training program, so it knows that one's table of them.
    "tools/launch": ["include", "base", "tools", "trainer/program"],
    # Measures whole pservers and trainers, these through the public library alone.
    "tools/progress": ["include", "base"],
    "tools/rdma_bench": [
        "include",
        "base",
        "wire",
        "kernels",
        "transport",
        "pserver",
        "sparse/client",
        "sparse/server",
        "sparse/table",
        "tools",
        "tools/rdma_bench/limits",
    ],
    # What figures are held against; limits.py says more.
    "tools/rdma_bench/limits": ["include", "base", "tools/rdma_bench"],
    "examples": ["include"],
    "tests": ["*"],
}


def owner(path):
    matches = [folder for folder in ARROWS if path.startswith(folder + "/")]
    return max(matches, key=len) if matches else None


def place(included):
    """The path from the top of an included name."""
    return "include/" + included if included.startswith("weft/") else included


def is_sibling(path, included):
    """Tests may include what lies beside them by its bare name."""
    beside = os.path.join(tree.TOP, os.path.dirname(path), included)
    return path.startswith("tests/") and "/" not in included and os.path.exists(beside)


def main():
    findings = tree.Findings()
    for path in tree.c_files():
        findings.looked_at += 1
        folder = owner(path)
        if folder is None:
            findings.add(path, 1, "is in a folder that tests/tidy/arrows.py does not know")
            continue
        text = tree.read(path)
        for match in INCLUDE.finditer(text):
            line = tree.line_of(text, match.start())
            if is_sibling(path, match.group(1)):
                continue
            target = place(match.group(1))
            to = owner(target)
            if to is None:
                findings.add(path, line, "include names no folder of the tree: " + match.group(1))
            elif to != folder and to not in ARROWS[folder] and "*" not in ARROWS[folder]:
                findings.add(path, line, "%s may not know %s (%s)" % (folder, to, match.group(1)))
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of the original's flags in a page is what the programs say with --help=original.

    porting_flags.py PAGE            whether it is
    porting_flags.py --write PAGE    make it so
"""

import os
import re
import subprocess
import sys

BEGIN, END = "<!-- flags -->\n", "<!-- end of flags -->\n"


def answers(command):
    """{flag: what the command does with it}"""
    words = [os.environ["WEFT"], command, "--help=original"]
    env = dict(os.environ, COLUMNS="80")
    text = subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout
    found, flag = {}, None
    for line in text.split("\n"):
        head = re.fullmatch(r"  --(\w+): (.*)", line)
        if head:
            flag = head.group(1)
            found[flag] = [head.group(2)]
        elif line.startswith("      ") and flag:
            found[flag].append(line.strip())
    if len(found) < 10:
        raise SystemExit(f"{words} lists {len(found)} flags")
    return found


def cell(lines):
    if lines is None:
        return ""
    answer, why = lines[0], " ".join(lines[1:])
    return f"**{answer}**: {why}" if why else f"**{answer}**"


def table():
    train, pserver = answers("train"), answers("pserver")
    rows = ["| flag | `weft train` | `weft pserver` |", "| --- | --- | --- |"]
    for flag in [*train, *[name for name in pserver if name not in train]]:
        cells = [cell(train.get(flag)), cell(pserver.get(flag))]
        rows.append(f"| `--{flag}` | {cells[0]} | {cells[1]} |".replace("|  |", "| |"))
    return "\n".join(rows) + "\n"


page = sys.argv[-1]
text = open(page, encoding="utf-8").read()
before, rest = text.split(BEGIN)
shown, after = rest.split(END)
wanted = "\n" + table() + "\n"
if shown != wanted and sys.argv[1] != "--write":
    print(wanted)
    raise SystemExit(f"{page}: the table is an older one; {sys.argv[0]} --write {page} makes it anew")
if sys.argv[1] == "--write":
    with open(page, "w", encoding="utf-8") as out:
        out.write(before + BEGIN + wanted + END + after)

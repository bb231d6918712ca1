#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what pages show: each block of ```console, from top to bottom, in one shell for each page.

    porting.py PORT PAGE...    PORT: the first of some free ones, which stand in for 7164 and so on

In a block, "$ COMMAND" is a command, "> MORE" its next line, and the rest what it prints, on stdout
and stderr together; "..." stands for any text in a line, and alone for any lines. A command ends with
status 0, or "(exit status N)" is its last line. A line <!-- needs NAME... --> before a block names what
has to be there for it: a program, or python:MODULE; without it the block is left out. A line
<!-- run COMMAND --> is for the test alone: it makes what a reader has anyway, and prints nothing.
"""

import os
import re
import shutil
import signal
import subprocess
import sys

LIMIT_S = 60


def has(name):
    if not name.startswith("python:"):
        return shutil.which(name) is not None
    if os.environ.get("SANITIZER", "none") != "none":
        return False  # Python cannot load a libweft.so that was built with one
    done = subprocess.run(["python3", "-c", "import " + name.removeprefix("python:")], capture_output=True)
    return done.returncode == 0


def blocks(path):
    """(line, commands with what they print, what they need) of each block."""
    needs, found, inside = [], None, False
    for number, line in enumerate(open(path, encoding="utf-8").read().split("\n"), 1):
        if inside and line == "```":
            inside = False
            yield found
        elif inside and line.startswith("$ "):
            found[1].append([line[2:], [], number])
        elif inside and (line + " ").startswith("> ") and not found[1][-1][1]:
            found[1][-1][0] += "\n" + line[2:]
        elif inside:
            found[1][-1][1].append(line)
        elif line == "```console":
            inside, found, needs = True, (number, [], needs), []
        elif line.startswith("<!-- needs "):
            needs = line.split()[2:-1]
        elif line.startswith("<!-- run "):  # what a reader has, and the test has not
            yield number, [[line[9:-4], [], number]], []
        elif line:
            needs = []


def matches(wanted, got):
    """Whether lines are as a page shows them."""
    if not wanted:
        return not got
    if wanted[0] == "...":
        return any(matches(wanted[1:], got[i:]) for i in range(len(got) + 1))
    parts = [re.escape(part) for part in wanted[0].split("...")]
    return bool(got) and re.fullmatch(".*".join(parts), got[0]) is not None and matches(wanted[1:], got[1:])


class Shell:
    """A bash that runs one command after the other."""

    def __init__(self):
        self.bash = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     start_new_session=True)

    def run(self, command):
        end = "=== end of the command, status "
        self.bash.stdin.write(f"{command}\nstatus=$?; echo; echo \"{end}$status\"\n".encode())
        self.bash.stdin.flush()
        text = b""
        signal.signal(signal.SIGALRM, lambda *_: self.stuck(command, text))
        signal.alarm(LIMIT_S)
        while True:
            line = self.bash.stdout.readline()
            if not line or line.startswith(end.encode()):
                break
            text += line
        signal.alarm(0)
        lines = text.decode().split("\n")[:-1]
        status = line.decode().strip().removeprefix(end)
        if lines and not lines[-1]:
            lines.pop()  # the newline of the echo
        return lines + ([] if status == "0" else [f"(exit status {status})"])

    def stuck(self, command, text):
        self.end()
        raise SystemExit(f"{command}: runs for more than {LIMIT_S} s\n--- printed\n{text.decode()}")

    def end(self):
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.bash.wait()


def logs_of(command):
    """The files that a command writes what it does not show to."""
    return re.findall(r"2> *([\w.-]+)", command)


def check(path, port):
    """How many commands ran, and were left out."""

    def moved(text):
        return re.sub(r"\b71(6[4-9]|7\d)\b", lambda m: str(port + int(m.group()) - 7164), text)

    def squeezed(lines):
        return [re.sub(" +", " ", moved(text)).strip() for text in lines]

    shell, ran, left_out = Shell(), 0, 0
    try:
        for number, commands, needs in blocks(path):
            missing = [name for name in needs if not has(name)]
            if missing:
                left_out += len(commands)
                continue
            for command, wanted, line in commands:
                got = shell.run(moved(command))
                if not matches(squeezed(wanted), squeezed(got)):
                    got += shell.run(f"cat {' '.join(logs_of(command))}") if logs_of(command) else []
                    raise SystemExit(f"{path}:{line}: {command}\n--- printed\n" + "\n".join(got))
                ran += 1
    finally:
        shell.end()
    return ran, left_out


for page in sys.argv[2:]:
    count = check(page, int(sys.argv[1]))
    print(f"{page}: {count[0]} commands, {count[1]} left out")
    if count[0] == 0:
        raise SystemExit(f"{page}: no command")

# SPDX-License-Identifier: Apache-2.0
"""The commands of weft as they describe themselves: --help=json."""

import json
import subprocess


class Command:
    """A command, or a program with commands: its words, what its parent says of it, its page."""

    def __init__(self, words, summary, page):
        self.words = words
        self.summary = summary
        self.page = page
        self.children = []

    @property
    def name(self):
        """Of the page: "weft-ckpt-verify"."""
        return "-".join(self.words)

    def options(self):
        """Every option and flag, group by group."""
        return [option for group in self.page.get("groups", []) for option in group["options"]]

    def rows(self):
        """The names in the list of the page, such as models, with what they are."""
        found = []
        for row in (self.page.get("list") or "").split("\n"):
            name, _, text = row.strip().partition(" ")
            if row.startswith("  ") and not row.startswith("   ") and name:
                found.append((name, text.strip()))
            elif row.strip() and found:
                found[-1] = (found[-1][0], found[-1][1] + " " + row.strip())
        return found


def ask(program, words):
    """What a command says of itself; None: it is not built in."""
    done = subprocess.run(
        [program] + words + ["--help=json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        return None
    return json.loads(done.stdout)


def read(program, words, summary="", path=()):
    """The command with all that are below it."""
    page = ask(program, list(path))
    if page is None:
        return None
    command = Command(words, summary, page)
    for name, text in page.get("commands", []):
        if name != "help":
            child = read(program, words + [name], text, tuple(path) + (name,))
            command.children += [child] if child is not None else []
    return command


def walk(command):
    """The command and all below it."""
    yield command
    for child in command.children:
        yield from walk(child)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a page for each command, and completions for bash and zsh, from what the commands say of
themselves.

usage: section1.py FOLDER DATE VERSION NAME=PROGRAM...
"""

import os
import re
import sys

import commands
import completion
import mdoc

ROW = re.compile(r"^\s+(\d+)\s+(.*)$")


def synopsis(command):
    lines = [".Sh SYNOPSIS"]
    name = " ".join(command.words)
    for row in (command.page.get("usage") or name + " COMMAND").split("\n"):
        rest = row.strip()[len(name) :].strip()
        lines += [".Nm " + name] + ([mdoc.line(mdoc.escape(rest))] if rest else [])
    return lines


def head(option):
    """The item of an option."""
    if "flag" in option:
        return "Fl " + " , Fl ".join(mdoc.escape(flag)[2:] for flag in option["flag"].split(", "))
    name = "\\-" + mdoc.escape(option["name"])
    if option["is_switch"]:
        return "Fl %s , Fl \\-no\\-%s" % (name, mdoc.escape(option["name"]))
    return "Fl %s Ns = Ns Ar %s" % (name, mdoc.argument(option["value"]))


def options(command):
    lines = [".Sh OPTIONS"]
    for group in command.page["groups"]:
        items = [(head(option), mdoc.body(option["text"].replace("\n", " ")))
                 for option in group["options"]]
        lines += [".Ss " + mdoc.escape(group["title"])] + mdoc.tags(items)
    if command.page["notation"]:
        lines += [".Ss Values"] + mdoc.sentences(command.page["notation"])
    return lines


def exit_status(text):
    found = []
    for row in text.split("\n"):
        code = ROW.match(row)
        if code:
            found.append([code.group(1), code.group(2)])
        else:
            found[-1][1] += " " + row.strip()
    items = [(code, mdoc.sentences(words[:1].upper() + words[1:] + ".")) for code, words in found]
    return [".Sh EXIT STATUS"] + mdoc.tags(items)


def leaf(command):
    page = command.page
    lines = synopsis(command) + [".Sh DESCRIPTION"] + mdoc.body(page["about"])
    rows = command.rows()
    if rows:
        lines += [".Ss " + page["list_title"]]
        lines += mdoc.tags([("Cm " + mdoc.escape(name), mdoc.sentences(text)) for name, text in rows])
    lines += options(command)
    if page["exit_codes"]:
        lines += exit_status(page["exit_codes"])
    return lines


def overview(command):
    page = command.page
    lines = synopsis(command) + [".Sh DESCRIPTION"]
    lines += mdoc.sentences(plain_about(command) + ".")
    lines += [".Ss " + page["list_title"]]
    lines += mdoc.tags([("Xr %s 1" % child.name, mdoc.sentences(child.summary + "."))
                        for child in command.children])
    return lines + [".Pp"] + mdoc.sentences(page["closing"].rstrip(".") + ".")


def plain_about(command):
    """The text without the program's name in front of it."""
    text = command.page["about"]
    prefix = " ".join(command.words) + ": "
    text = text[len(prefix) :] if text.startswith(prefix) else text
    return (text[:1].upper() + text[1:]).rstrip(".")


def page_of(command, parent, release):
    about = command.summary or plain_about(command)
    about = about[:1].lower() + about[1:]
    head_lines = [".Nm " + command.name] + [".Nd " + mdoc.escape(about)]
    lines = overview(command) if "commands" in command.page else leaf(command)
    examples = command.page.get("examples")
    if examples:
        lines += [".Sh EXAMPLES"] + mdoc.literal(examples.split("\n"))
    near = [(parent.name, 1)] if parent else [("rdma_bench" if command.name == "weft" else "weft", 1)]
    near += [(child.name, 1) for child in (parent.children if parent else []) if child is not command]
    lines += mdoc.see_also(near if len(command.children) == 0 else near[:1])
    return mdoc.page(command.name, 1, head_lines, release, lines)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(text)


def write_pages(folder, command, parent, release):
    write(folder, command.name + ".1", page_of(command, parent, release))
    for child in command.children:
        write_pages(folder, child, command, release)


def main():
    folder, date, version, *programs = sys.argv[1:]
    for each in programs:
        name, _, program = each.partition("=")
        command = commands.read(program, [name])
        if command is None:
            sys.exit("%s --help=json fails" % program)
        write_pages(folder, command, None, (date, version))
        write(folder, name + ".bash", completion.bash(command))
        write(folder, "_" + name, completion.zsh(command))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a page for each group of library calls, from the comments of the public headers, and a
link to it for each call. What is a declaration is read as the Python binding reads it.

usage: section3.py FOLDER DATE VERSION INCLUDE-FOLDER BINDING
With - for the folder it prints the names of the pages.
"""

import importlib.util
import os
import re
import sys

import mdoc
from groups import GROUPS

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CODE_INDENT = "    "
CALL = re.compile(r"\b(weft_\w+)\(\)")  # mdoc has no parentheses without markup
AS_TEXT = re.compile(r"as |WEFT_|[a-z]+:")  # "Returns WEFT_OK; ..."
PARAMETER = re.compile(r"@param (\w+)\s+(.*)", re.DOTALL)


def load_reader(path):
    """The binding's module that knows how the headers are written; it needs no library."""
    spec = importlib.util.spec_from_file_location("weft_abi", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def comment_lines(text):
    """The lines of a comment, without its marks; what is code keeps an indent."""
    text = re.sub(r"^/\*+\s?|\s*\*/$", "", text)
    lines = [re.sub(r"^\s*\*( |$)", "", row).rstrip() for row in text.split("\n")]
    return [re.sub(r"^\t+\s*", "", row) for row in lines]


class Item:
    """A function, struct, enum or constant, with the comment that it stands under."""

    def __init__(self, kind, name, match, comment, header):
        self.kind, self.name, self.match = kind, name, match
        self.comment, self.header = comment, header
        self.note = None  # the comment behind it
        self.raw = ""  # of a struct or enum: what stands between its braces


def read_header(reader, path, header):
    """(comment of the file, items in their order)."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    bare = COMMENT.sub(blank, text)
    plain = reader._DIRECTIVE.sub(blank, bare)
    items = []
    for kind, pattern, source, group in (
        ("enum", reader._ENUM, plain, 1),
        ("struct", reader._STRUCT, plain, 1),
        ("function", reader._FUNCTION, plain, 2),
        ("constant", reader._DEFINE, bare, 1),
    ):
        items += [(match.start(), kind, match.group(group), match) for match in pattern.finditer(source)]
    items.sort(key=lambda item: item[0])
    comments = list(COMMENT.finditer(text))
    found = []
    shared = None  # of functions that follow each other under one comment
    for start, kind, name, match in items:
        own = above(text, comments, start)
        shared = own if own is not None or kind != "function" else shared
        found.append(Item(kind, name, match, shared, header))
        found[-1].note = behind(text, comments, match.end())
        if kind in ("enum", "struct"):
            found[-1].raw = text[match.start(2) : match.end(2)]
        if kind == "function" and shared is None:
            sys.exit("%s of weft/%s has no comment" % (name, header))
    return comments[1].group(0), found


def is_first(text, at):
    """Whether nothing stands in front of it on its line."""
    return text[text.rfind("\n", 0, at) + 1 : at].strip() == ""


def above(text, comments, start):
    """The comment on lines of its own that a declaration follows; None: there is none."""
    before = [each for each in comments if each.end() <= start]
    if before and text[before[-1].end() : start].strip() == "" and is_first(text, before[-1].start()):
        return before[-1].group(0)
    return None


def behind(text, comments, end):
    """The comment behind a declaration on its line; None: there is none."""
    after = [each for each in comments if end <= each.start()]
    return after[0].group(0) if after and "\n" not in text[end : after[0].start()] else None


def prose(lines):
    """Lines of a comment as paragraphs and code."""
    rows = [" " + row if row.startswith(CODE_INDENT) else row.strip() for row in lines]
    return mdoc.body(CALL.sub(r"\1", "\n".join(rows).strip("\n")))


def split_tags(lines):
    """(lines of text, [(parameter, text)], text of @return)."""
    text, parameters, result, current = [], [], None, None
    for row in lines:
        parameter = PARAMETER.match(row)
        if parameter:
            parameters.append([parameter.group(1), parameter.group(2)])
            current = parameters[-1]
        elif row.startswith("@return"):
            result = ["", row[len("@return") :].strip()]
            current = result
        elif current is not None:
            current[1] += " " + row.strip()
        else:
            text.append(row)
    return text, parameters, result[1] if result else None


def described(comment):
    text, parameters, result = split_tags(comment_lines(comment))
    lines = prose(text)
    if parameters:
        lines += mdoc.tags([("Fa " + name, mdoc.sentences(words)) for name, words in parameters])
    if result:
        lines += [".Pp"] + mdoc.sentences(("Returns " if AS_TEXT.match(result) else "Returns: ") + result)
    return lines


def synopsis(functions):
    lines = [".Sh SYNOPSIS"]
    header = None
    for item in functions:
        if item.header != header:
            header = item.header
            lines += [".In weft/" + header]
        result = " ".join(item.match.group(1).split())
        parameters = [" ".join(each.split()) for each in item.match.group(3).split(",")]
        lines += [".Ft " + mdoc.argument(result), ".Fo " + item.name]
        lines += [".Fa " + mdoc.argument(each) for each in parameters] + [".Fc"]
    return lines


def functions_text(functions):
    """Functions that share a comment are described together."""
    lines = []
    while functions:
        together = [item for item in functions if item.comment == functions[0].comment]
        functions = [item for item in functions if item not in together]
        lines += [".Ss " + ", ".join(item.name for item in together)] + described(together[0].comment)
        notes = [("Fn " + item.name, prose(comment_lines(item.note))) for item in together if item.note]
        lines += mdoc.tags(notes) if notes else []
    return lines


MEMBER = {
    "enum": re.compile(r"/\*.*?\*/|\w+\s*=\s*[^,\s/]+", re.DOTALL),
    "struct": re.compile(r"/\*.*?\*/|[^\s/;][^;/]*", re.DOTALL),
}


def members(item):
    """The members of a struct or enum: [(declaration or None, [comment])]."""
    raw, found, waiting = item.raw, [], []
    for match in MEMBER[item.kind].finditer(raw):
        text = match.group(0)
        if not text.startswith("/*"):
            found.append((" ".join(text.split()), waiting))
            waiting = []
        elif not is_first(raw, match.start()) and found:
            found[-1][1].append(text)
        elif re.match(r"[ \t]*\n[ \t]*\n", raw[match.end() :]):
            found.append((None, [text]))  # it opens a part of the struct
        else:
            waiting.append(text)
    return found


def type_text(item):
    lines = [".Ss %s %s" % (item.kind, item.name)]
    if item.comment:
        lines += described(item.comment)
    open_list = False
    for declaration, comments in members(item):
        text = [row for comment in comments for row in prose(comment_lines(comment))]
        if declaration is None:
            lines += ([".El"] if open_list else []) + [".Pp"] + text
            open_list = False
            continue
        if not open_list:
            lines += [".Bl -tag -width Ds"]
            open_list = True
        macro = "Dv" if item.kind == "enum" else "Vt"
        lines += [".It %s %s" % (macro, mdoc.argument(declaration))] + text
    return lines + ([".El"] if open_list else [])


def page_of(group, items, intro, release):
    functions = [item for item in items if item.kind == "function"]
    about = [".Nm %s%s" % (item.name, " ," if i + 1 < len(functions) else "")
             for i, item in enumerate(functions)]
    if group.page not in [item.name for item in functions]:
        about = [".Nm " + group.page + (" ," if functions else "")] + about
    lines = [".Sh LIBRARY", "libweft"]
    lines += synopsis(functions) if functions else [".Sh SYNOPSIS", ".In weft/" + items[0].header]
    lines += [".Sh DESCRIPTION"]
    lines += prose(comment_lines(intro)) if intro else mdoc.sentences(group.about[:1].upper() + group.about[1:] + ".")
    lines += functions_text(functions)
    for item in items:
        if item.kind in ("struct", "enum"):
            lines += type_text(item)
    constants = [item for item in items if item.kind == "constant"]
    if constants:
        lines += [".Ss Constants"] + mdoc.tags(
            [("Dv %s No = %s" % (item.name, item.match.group(2)),
              prose(comment_lines(item.comment)) if item.comment else []) for item in constants])
    lines += mdoc.see_also([("weft", 1)] + [(each.page, 3) for each in GROUPS if each.page != group.page])
    return mdoc.page(group.page, 3, about + [".Nd " + mdoc.escape(group.about)], release, lines)


def group_of(item):
    found = [group for group in GROUPS if group.pattern.fullmatch(item.name)]
    if len(found) != 1:
        sys.exit("%s of weft/%s is in %d groups of tools/manual/groups.py: each name is in one"
                 % (item.name, item.header, len(found)))
    return found[0]


def pages(include, binding, release):
    """The text of each page by its name."""
    reader = load_reader(binding)
    intros, by_page = {}, {group.page: [] for group in GROUPS}
    for header in reader._HEADERS:
        intro, items = read_header(reader, os.path.join(include, header), header)
        intros[header] = intro
        for item in items:
            if not item.name.startswith("WEFT_VERSION_"):
                by_page[group_of(item).page].append(item)
    written = {}
    for group in GROUPS:
        items = by_page[group.page]
        written[group.page] = page_of(group, items, intros.get(group.introduces), release)
        for item in items:
            if item.kind == "function" and item.name != group.page:
                written[item.name] = ".so man3/%s.3\n" % group.page
    return written


def main():
    folder, date, version, include, binding = sys.argv[1:]
    written = pages(include, binding, (date, version))
    for name, text in written.items():
        if folder == "-":
            print(name + ".3")  # the names alone, for the build
            continue
        with open(os.path.join(folder, name + ".3"), "w", encoding="ascii") as file:
            file.write(text)


if __name__ == "__main__":
    main()

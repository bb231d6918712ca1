# SPDX-License-Identifier: Apache-2.0
"""Pages in mdoc(7): texts as weft's tables and headers have them, in the form that man reads."""

import re
import textwrap

# A line of input has at most 80 bytes; words that are longer stand alone.
COLUMNS = 78
SENTENCE = re.compile(r"([.!?][)\"]?) +(?=[A-Z(\"])")
# What mandoc takes for the end of a sentence and is none.
QUOTED = re.compile(r"`([^`\n]+)`")


def escape(text):
    """The text as it is, for the inside of a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return QUOTED.sub(r"\\(aq\1\\(aq", text)


def line(text):
    """A line of text that no macro or request begins."""
    return "\\&" + text if text[:1] in (".", "'") else text


def argument(text):
    """One argument of a macro."""
    return '"%s"' % escape(text).replace('"', "\\(dq")


def sentences(text):
    """One paragraph, each sentence on lines of its own."""
    lines = []
    for sentence in SENTENCE.sub(r"\1\n", " ".join(text.split())).split("\n"):
        lines += textwrap.wrap(
            escape(sentence), COLUMNS, break_long_words=False, break_on_hyphens=False
        )
    return [line(each) for each in lines]


def literal(rows):
    """Rows that stand as they are."""
    rows = textwrap.dedent("\n".join(row.rstrip() for row in rows)).split("\n")
    return [".Bd -literal -offset indent"] + [line(escape(row)) for row in rows] + [".Ed"]


def blocks(text):
    """(is literal, lines) of a text of base/help.h: an empty line ends a paragraph, and a line that
    begins with a blank stands as it is."""
    found = []
    paragraph_open = False
    for row in text.split("\n"):
        is_literal = row.startswith(" ") and row.strip() != ""
        if row.strip() == "":
            paragraph_open = False
        elif found and found[-1][0] == is_literal and (is_literal or paragraph_open):
            found[-1][1].append(row)
            paragraph_open = True
        else:
            found.append((is_literal, [row]))
            paragraph_open = True
    return found


def body(text):
    """Paragraphs and literal rows."""
    lines = []
    for is_literal, rows in blocks(text):
        if is_literal:
            lines += literal(rows)
        else:
            lines += ([".Pp"] if lines else []) + sentences(" ".join(rows))
    return lines


def tags(items, width="Ds"):
    """A list of (head, lines); a head is a macro with its arguments."""
    lines = [".Bl -tag -width %s" % width]
    for head, text in items:
        lines += [".It " + head] + (text or [])
    return lines + [".El"]


def see_also(names):
    """The section of other pages, as (name, section)."""
    ordered = sorted(set(names), key=lambda name: (name[1], name[0]))
    rows = [".Xr %s %d" % name + (" ," if i + 1 < len(ordered) else "") for i, name in enumerate(ordered)]
    return [".Sh SEE ALSO"] + rows if rows else []


def page(name, section, about, release, lines):
    """A whole page; `release` is (date, version)."""
    head = [
        '.\\" SPDX-License-Identifier: Apache-2.0',
        '.\\" Made from the tables and headers of weft; changes here are lost.',
        ".Dd " + release[0],
        ".Dt %s %d" % (name.upper(), section),
        ".Os weft " + release[1],
        ".Sh NAME",
    ]
    return "\n".join(head + about + lines) + "\n"

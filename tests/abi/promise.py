# SPDX-License-Identifier: Apache-2.0
"""What the tests of the library's interface share: the headers' promise and the version script."""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADERS = os.path.join(TOP, "include", "weft")
MAP = os.path.join(TOP, "trainer", "libweft.map")

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# A declaration's name is the first one that a parenthesis follows.
PROMISE = re.compile(r"^WEFT_API\b[^;{]*?\b(\w+)[ \t\n]*\(", re.MULTILINE)
NODE = re.compile(r"([A-Za-z_][\w.]*)\s*\{([^}]*)\}\s*([\w.]*)\s*;", re.DOTALL)


def skip(reason):
    """What is missing, in the words that the sum of the check repeats."""
    print("SKIPPED: " + reason)
    sys.exit(77)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def promised(folder):
    """The names of all functions that the headers of a folder mark with WEFT_API."""
    names = []
    for header in sorted(os.listdir(folder)):
        if header.endswith(".h"):
            names += PROMISE.findall(COMMENT.sub("", read(os.path.join(folder, header))))
    return sorted(set(names))


def nodes(path):
    """[(version, global patterns, local patterns)] of a version script, oldest first."""
    found = []
    for version, body, _ in NODE.findall(COMMENT.sub("", read(path))):
        patterns = {"global": [], "local": []}
        scope = "global"
        for word in re.findall(r"\w+\s*:|[^;\s]+", body):
            if word.rstrip(" \t\n:") in patterns and word.endswith(":"):
                scope = word.rstrip(" \t\n:")
            else:
                patterns[scope].append(word)
        found.append((version, patterns["global"], patterns["local"]))
    return found


def check_map(path, names):
    """Findings about a version script that should export exactly these names."""
    findings = []
    seen = {}
    for idx, (version, exported, hidden) in enumerate(nodes(path)):
        for name in exported:
            if not re.fullmatch(r"\w+", name):
                findings.append("%s: %s is a pattern: write each name out" % (version, name))
            elif name in seen:
                findings.append("%s is in %s and in %s" % (name, seen[name], version))
            seen[name] = version
        if hidden != (["*"] if idx == 0 else []):
            findings.append("%s: only the oldest node says `local: *;`" % version)
    if not seen:
        findings.append("no version node exports anything")
    for name in names:
        if name not in seen:
            findings.append("%s is promised by the headers and in no version node" % name)
    for name in sorted(set(seen) - set(names)):
        findings.append("%s is in %s, and no header promises it" % (name, seen[name]))
    return findings


def complete_map(path, names):
    """Write names that are in no node into the newest one; returns them."""
    listed = [name for _, exported, _ in nodes(path) for name in exported]
    added = sorted(set(names) - set(listed))
    if added:
        newest = nodes(path)[-1]
        lines = "".join("\t%s;\n" % name for name in sorted(set(newest[1]) | set(added)))
        text = read(path)
        body = re.compile(r"(\b%s\s*\{\s*\n?global:\n)(?:\t\w+;\n)*" % re.escape(newest[0]))
        changed, count = body.subn(lambda match: match.group(1) + lines, text)
        if count != 1:
            sys.exit("%s: the node %s does not begin with `global:`" % (path, newest[0]))
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
    return added

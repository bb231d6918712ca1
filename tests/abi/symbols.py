#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports what the installed headers promise, each name under the version node
that the version script gives it, and nothing else.

usage: symbols.py LIBRARY
"""

import re
import shutil
import subprocess
import sys

import promise

REMEDY = "new functions go into the newest node of trainer/libweft.map: `make abi-dump` does that"
LINE = re.compile(r"^[0-9a-f]+ (\w) ([^@\s]+)(@{1,2})?(\S*)$")


def exported(library):
    """[(kind, name, version or "")], version nodes themselves left out."""
    done = subprocess.run(
        ["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True
    )
    found = []
    for line in done.stdout.splitlines():
        kind, name, _, version = LINE.match(line).groups()
        if kind != "A":
            found.append((kind, name, version))
    return found


def check_exports(symbols, nodes):
    """Findings about symbols that should be just those of the version nodes."""
    findings = []
    expected = {name: version for version, names, _ in nodes for name in names}
    for kind, name, version in symbols:
        if kind != "T":
            findings.append("%s is exported as '%s': only functions are promised" % (name, kind))
        elif name not in expected:
            findings.append("%s is exported, and no version node names it" % name)
        elif version != expected[name]:
            findings.append(
                "%s is exported under '%s', not %s" % (name, version, expected[name])
            )
    missing = set(expected) - {name for _, name, _ in symbols}
    findings += ["%s is not exported" % name for name in sorted(missing)]
    return findings


def main():
    if not shutil.which("nm"):
        promise.skip("nm (binutils) is not there")
    symbols = exported(sys.argv[1])
    names = promise.promised(promise.HEADERS)
    findings = promise.check_map(promise.MAP, names)
    findings += check_exports(symbols, promise.nodes(promise.MAP))
    for finding in findings:
        print(finding)
    if findings:
        print(REMEDY)
    print("%d symbols, %d findings" % (len(symbols), len(findings)))
    return 1 if findings or not symbols else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No function of the product is called take, tell, say or hear: STYLE.md, "Verbs", has the words that
say what happens to memory, ownership and the wire."""

import re
import sys

import lengths
import tree

VAGUE = re.compile(r"(^|_)(take|tell|say|hear)(_|$)")
NOT_PRODUCT = ("tests/", "examples/", "data/")


def main():
    findings = tree.Findings()
    for path in tree.c_files():
        if path.startswith(NOT_PRODUCT):
            continue
        for name, line, _ in lengths.functions(path):
            findings.looked_at += 1
            if VAGUE.search(name):
                findings.add(path, line, "%s: what does it do? See STYLE.md, Verbs" % name)
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: embed.py page.html page.css page.js OUT.c

Makes one HTML file of three, as a C array, and the policy that lets a browser run nothing but its
own script and styles. It is an error if the page is longer than its limit."""

import base64
import hashlib
import pathlib
import sys

BYTES_MAX = 60 * 1024


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main() -> int:
    html, css, js = (pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[1:4])
    page = html.replace("/*STYLE*/", css).replace("/*SCRIPT*/", js).encode()
    if len(page) > BYTES_MAX:
        print(f"embed: the page has {len(page)} bytes, allowed are {BYTES_MAX}", file=sys.stderr)
        return 1
    policy = (
        "default-src 'none'; "
        f"script-src 'sha256-{digest(js)}'; style-src 'sha256-{digest(css)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    out = ['/* Made by embed.py. */\n#include "status/page.h"\n\nconst char wf_status_page[] = {\n']
    for at in range(0, len(page), 16):
        out.append("\t" + "".join(f"{byte if byte < 128 else byte - 256}," for byte in page[at : at + 16]) + "\n")
    out.append("};\nconst size_t wf_status_page_bytes = sizeof(wf_status_page);\n")
    out.append(f'const char wf_status_page_policy[] =\n\t"{policy}";\n')
    pathlib.Path(sys.argv[4]).write_text("".join(out), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

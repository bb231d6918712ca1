#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that are banned, and the places where one is allowed after all."""

import re
import sys

import tree

PROGRAMS = ["tools/", "trainer/program/", "examples/", "tests/"]
OWN_MEMORY = PROGRAMS + ["base/env_system.c", "status/http.c"]  # what open_memstream allocates

# (calls, where they are allowed, what to use)
BANNED = [
    ("strcpy strcat stpcpy sprintf vsprintf gets", [], "snprintf, with the size of the buffer"),
    ("strtok", [], "strtok_r or a cursor"),
    ("rand srand random srandom rand_r drand48", [], "base/rng.h or wf_random(env)"),
    ("atoi atol atoll atof", [], "base/options.h, or strtoull with every error looked at"),
    ("system popen", [], "posix_spawn or fork and exec, with the arguments as an array"),
    ("tmpnam tempnam mktemp", [], "mkstemp or memfd_create"),
    ("alloca", [], "memory taken at setup"),
    ("usleep sleep nanosleep", [], "wf_wait(env, fd, deadline)"),
    ("assert", [], "WF_ASSERT, which stays on"),
    ("signal", PROGRAMS, "sigaction"),
    ("printf vprintf puts putchar", PROGRAMS, "wf_log; libraries do not print"),
    (
        "malloc calloc realloc reallocarray free aligned_alloc posix_memalign strdup strndup",
        OWN_MEMORY,
        "wf_zalloc(env, ...) and wf_free",
    ),
    ("atomic_thread_fence", [], "an order on the variable itself, which names its partner"),
]
# Whole words where they are no calls.
BANNED_WORDS = [
    # In syscalls.h it belongs to an instruction: a call whose result is not used is made, too.
    ("volatile", ["tests/", "base/syscalls.h"], "_Atomic with explicit orders (sig_atomic_t flags: an eventfd)"),
]
IMPLICIT_ATOMIC = re.compile(
    r"\b(atomic_(?:load|store|exchange|fetch_(?:add|sub|or|xor|and)"
    r"|compare_exchange_(?:strong|weak)))[ \t]*\("
)


def allowed_in(path, places):
    return any(path.startswith(place) for place in places)


def look(findings, path):
    text = tree.code(path)
    for calls, places, instead in BANNED:
        if allowed_in(path, places):
            continue
        pattern = r"(?<![\w>.])(%s)[ \t]*(?=\()" % "|".join(calls.split())
        for match in re.finditer(pattern, text):
            line = tree.line_of(text, match.start())
            findings.add(path, line, "%s is banned: use %s" % (match.group(1), instead))
    for word, places, instead in BANNED_WORDS:
        if not allowed_in(path, places):
            for match in re.finditer(r"\b%s\b" % word, text):
                line = tree.line_of(text, match.start())
                findings.add(path, line, "%s is banned: use %s" % (word, instead))
    for match in IMPLICIT_ATOMIC.finditer(text):
        line = tree.line_of(text, match.start())
        findings.add(path, line, "%s has no order: use %s_explicit" % ((match.group(1),) * 2))


def main():
    findings = tree.Findings()
    for path in tree.c_files():
        findings.looked_at += 1
        look(findings, path)
    findings.finish()


if __name__ == "__main__":
    sys.exit(main())

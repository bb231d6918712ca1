#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operators find the faults of a made-up function, each once, and pass over what is no code;
the draw is the seed's; a list of faults is read as it is printed."""

import os
import random
import sys
import tempfile

import mutation
import operators

# the body of a function, a kind, and every line that it may become
CASES = [
    ("if (a < b) {\nc();\n}", "relation", ["if (a <= b) {"]),
    ("return a->x >= b << 2;", "relation", ["return a->x > b << 2;"]),
    ("while (a != b) {\n}", "relation", ["while (a == b) {"]),
    ("return a && !b;", "logic", ["return a || !b;", "return a && b;"]),
    ("return a || b && c;", "clause", ["return a && c;", "return a || b ;"]),
    ("return f(a && b, c);", "clause", ["return f(a , c);"]),
    ("if (a(b)) {\nc();\n}", "condition", ["if (1 || (a(b))) {", "if (0 && (a(b))) {"]),
    ("f(a);\n\nreturn b;", "statement", [";"]),
    ("a->b = c;", "statement", [";"]),
    ("switch (a) {\ncase A:\nf();\nbreak;\n}", "statement", [";", ";"]),
    ("struct a x = {.b = c};\nx.b = (struct a){d};", "statement", [";"]),
    ("struct a *x;\nuint64_t *y = z;\nuint64_t w;\nbool v = f(x);", "statement", []),
    ("if (a) {\ngoto fail;\n}\nfail:\nf();", "statement", [";", ";"]),
    ("for (i = 0; i < n; i++) {\nf(i);\n}", "statement", [";"]),
    ("return a + b - *c;", "sum", ["return a - b - *c;", "return a + b + *c;"]),
    ("f(&a, -b, *c);", "sum", []),
    ("a += b;\nc--;", "sum", ["a -= b;", "c++;"]),
    ("return (a & b) | c;", "sum", ["return (a | b) | c;", "return (a & b) & c;"]),
    ("return 0;", "constant", ["return 1;"]),
    ("return 8u;", "constant", ["return 9u;", "return 7u;"]),
    ("return 0x10;", "constant", []),
    ("a = 0.5f;", "constant", ["a = 1.5f;"]),
    ("return true;", "constant", ["return false;"]),
    ("char s[A + 1];\nchar t[] = {2};", "constant", ["char t[] = {3};", "char t[] = {1};"]),
    ("f();\nuint64_t a[8];\na[0] = b;", "constant", ["a[1] = b;"]),
    (
        "f(a, b(c, d), e);",
        "swap",
        ["f(b(c, d), a, e);", "f(a, e, b(c, d));", "f(a, b(d, c), e);"],
    ),
    ("f(a, a);\nwhile (a, b) {\n}", "swap", []),
    ("a(&b, memory_order_release);", "order", ["a(&b, memory_order_relaxed);"]),
    ("a(&b, memory_order_relaxed);", "order", []),
]
# Nothing in these can be put wrong.
PASSED_OVER = [
    "/* if (a < b) { f(1); } */",
    "// a = 1;",
    'char *s = "a < b && 1";',
    "WF_ASSERT(a < 1 && b);",
    'wf_log(env, A, "%u", a + 1);',
    'wf_fail(A, "%u", a < 1);',
    "char c = '1';",
    "#define A (1 < 2)\\\n  + 3",
    "char s[A + 80];",
    "uint64_t *a[2], b[B - 1];",
]
ENTRY = "%sin f, relation\n- return a < b;\n+ return a <= b;\nThe same: a is never b.\n"


def found(body, kind):
    text = "#include <a.h>\nenum e { A = 1 };\nstatic int\nf(int a, int b)\n{\n%s\n}\n" % body
    return [m for m in operators.mutants("a.c", text) if kind in (None, m.kind)], text


def look_at_operators(wrong):
    for body, kind, expected in CASES:
        got = [mutant.after for mutant in found(body, kind)[0]]
        if sorted(got) != sorted(expected):
            wrong.append("%s of %r: %s, not %s" % (kind, body, got, expected))
    for body in PASSED_OVER:
        got = [mutant.after for mutant in found(body, None)[0]]
        if got:
            wrong.append("%r is no code, and became %s" % (body, got))


def look_at_places(wrong):
    mutants, text = found("f(a);\n\n\nreturn a < b;", "relation")
    one = mutants[0]
    changed = one.apply(text).split("\n")
    if one.line != 9 or one.function != "f" or changed[8] != "return a <= b;":
        wrong.append("the place of %s" % one)
    if text.split("\n")[:8] != changed[:8]:
        wrong.append("another line changed, too")


def look_at_the_draw(wrong):
    mutants = found("if (a < b && c) {\nf(1, 2);\n}", None)[0]
    runs = [[str(operators.draw(random.Random(seed), mutants)) for seed in range(9)] for _ in "ab"]
    if runs[0] != runs[1] or len(set(runs[0])) < 4:
        wrong.append("the draw of nine seeds: %s" % runs)


def look_at_lists(wrong):
    one = found("return a < b;", "relation")[0][0]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.txt")
        for place in ("", "a.c:7: ", "moved/b.c: "):
            mutation.write(path, "# a list\n\n" + (ENTRY % place).replace(";", "; /* why */"))
            if one.key() not in mutation.listed(path) or not str(one).startswith("a.c:6: in f"):
                wrong.append("%s is not in its list" % one)
        mutation.write(path, "in f\n- return a < b;\n+ return a <= b;\n")
        try:
            mutation.listed(path)
            wrong.append("an entry without a reason is accepted")
        except mutation.Broken:
            pass


def look_at_stale_entries(wrong):
    known = {("f", "return a < b;", "return a <= b;"): "", ("f", "a->b = c;", ";"): ""}
    for body, expected in (
        ("return a < b;\na->b = c;", []),
        ("return a < b;", ["\nin f\n- a->b = c;\n+ ;"]),
        ("return a < c;\na->b = c;", ["\nin f\n- return a < b;", "\n+ return a <= c;"]),
    ):
        got = "\n".join(mutation.stale("list.txt", known, found(body, None)[0]))
        if bool(got) != bool(expected) or any(part not in got for part in expected):
            wrong.append("stale entries for %r: %r, not %s" % (body, got, expected))


LOOKS = (
    look_at_operators,
    look_at_places,
    look_at_the_draw,
    look_at_lists,
    look_at_stale_entries,
)


def main():
    wrong = []
    for look in LOOKS:
        look(wrong)
    print("\n".join(wrong))
    print("%d cases, %d wrong" % (len(CASES) + len(PASSED_OVER), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

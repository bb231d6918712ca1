# SPDX-License-Identifier: Apache-2.0
"""One-line faults of C: where they can be put, and what they change.

`mutants(path, text)` reads a file as tokens and gives every fault that the operators below know,
in the bodies of its functions. Comments, preprocessor lines, declarations without a value,
assertions, and calls that only log or word a failure are passed over. Nothing is parsed beyond
brackets and statements: a fault that does not compile is drawn again by who asked for it.
"""

import bisect
import re

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
    |(?P<text>L?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
# Their arguments are not looked at.
PASSED_OVER = re.compile(
    r"^(WF_ASSERT\w*|WF_SLOW_ASSERT|WF_STATIC_ASSERT|__builtin_expect|wf_log\w*|wf_core_log"
    r"|wf_fail\w*|\w*snprintf|sizeof|offsetof|alignas|_Alignas|__attribute__)$"
)
KEYWORDS = set(
    "if else for while do switch case default return goto break continue sizeof struct union enum"
    " static const register extern typedef".split()
)
TYPE_WORDS = set(
    "static const struct union enum register unsigned signed int char long short float double void"
    " bool _Atomic _Alignas alignas typedef extern".split()
)
RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
SUMS = {"+": "-", "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++", "&": "|", "|": "&"}
WORDS = {"true": "false", "false": "true"}
ORDER = re.compile(r"^memory_order_(acquire|release|acq_rel|seq_cst)$")
INTEGER = re.compile(r"^(\d+)([uUlL]*)$")
DECIMAL = re.compile(r"^(\d+\.\d*)([fF]?)$")
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
# How often each kind is drawn, whatever number of places it has.
KINDS = {
    "relation": 4,
    "logic": 3,
    "condition": 4,
    "clause": 3,
    "statement": 5,
    "sum": 2,
    "constant": 3,
    "swap": 1,
    "order": 1,
}


class Token:
    __slots__ = ("kind", "text", "begin", "end", "mate")

    def __init__(self, kind, text, begin):
        self.kind, self.text, self.begin, self.end = kind, text, begin, begin + len(text)
        self.mate = None  # index of the bracket that belongs to this one


class Mutant:
    """A fault: `text[begin:end]` of the file becomes `new`."""

    def __init__(self, source, kind, begin, end, new):
        self.path, self.function = source.path, source.function
        self.kind, self.begin, self.end, self.new = kind, begin, end, new
        self.line = source.line_of(begin)
        first, last = source.line_begin(begin), source.line_end(max(begin, end - 1))
        self.before = squeeze(source.text[first:last])
        self.after = squeeze(source.text[first:begin] + new + source.text[end:last])

    def key(self):
        """What it is called in a list: it stays when lines move, functions go to other files, and
        comments change."""
        return (self.function, code_of(self.before), code_of(self.after))

    def apply(self, text):
        return text[: self.begin] + self.new + text[self.end :]

    def __str__(self):
        return "%s:%d: in %s, %s\n- %s\n+ %s" % (
            (self.path, self.line, self.function, self.kind, self.before, self.after)
        )


def squeeze(text):
    return " ".join(text.split())


def code_of(line):
    """Without comments."""
    return squeeze(re.sub(r"/\*.*?(\*/|$)|//.*", "", line))


def tokens_of(text):
    found = []
    for match in TOKEN.finditer(text):
        if match.lastgroup not in ("space", "directive"):
            found.append(Token(match.lastgroup, match.group(), match.start()))
    pending = []
    for idx, token in enumerate(found):
        if token.kind != "sign":
            continue
        if token.text in OPENING:
            pending.append(idx)
        elif token.text in CLOSING and pending:
            token.mate = pending.pop()
            found[token.mate].mate = idx
    return found


class Source:
    """A file as tokens. `function`: the name of the one that is being looked at."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.token = tokens_of(text)
        self.newlines = [match.start() for match in re.finditer("\n", text)]
        self.function = ""

    def line_of(self, offset):
        return bisect.bisect_left(self.newlines, offset) + 1

    def line_begin(self, offset):
        idx = bisect.bisect_left(self.newlines, offset)
        return self.newlines[idx - 1] + 1 if idx > 0 else 0

    def line_end(self, offset):
        idx = bisect.bisect_left(self.newlines, offset)
        return self.newlines[idx] if idx < len(self.newlines) else len(self.text)

    def is_at(self, idx, *texts):
        return 0 <= idx < len(self.token) and self.token[idx].text in texts

    def bodies(self):
        """(name, index of `{`, index of `}`) of each function."""
        idx = 0
        while idx < len(self.token):
            token = self.token[idx]
            if token.text in OPENING and token.kind == "sign" and token.mate is not None:
                opens = token.text == "{" and self.is_at(idx - 1, ")")
                name = self.token[idx - 1].mate - 1 if opens and self.token[idx - 1].mate else -1
                if name >= 0 and self.token[name].kind == "word":
                    yield self.token[name].text, idx, token.mate
                idx = token.mate
            idx += 1

    def looked_at(self, first, last):
        """Indices within a body, without what is passed over."""
        idx = first
        while idx < last:
            token = self.token[idx]
            if PASSED_OVER.match(token.text) and self.is_at(idx + 1, "("):
                idx = self.token[idx + 1].mate
            elif self.is_at(idx - 1, ";", "{", "}") and self.is_plain_declaration(idx):
                while not self.is_at(idx + 1, ";", "{"):
                    idx += 1
            else:
                yield idx
            idx += 1

    def is_plain_declaration(self, first):
        """Whether a declaration without a value begins there. That of an array has a number in it,
        but no test can see that there is room for one element more."""
        last = first
        while not self.is_at(last, ";", "{", "}", "="):
            last += 1
        is_type = self.token[first].text in TYPE_WORDS or self.token[first].text not in KEYWORDS
        return is_type and self.is_at(last, ";") and is_declaration(self, first, last)

    def is_binary(self, idx):
        before = self.token[idx - 1]
        if before.kind == "word":
            return before.text not in KEYWORDS and before.text not in TYPE_WORDS
        return before.kind == "number" or before.text in (")", "]")

    def mutant(self, kind, first, last, new):
        """Tokens first to last, both included, become `new`."""
        return Mutant(self, kind, self.token[first].begin, self.token[last].end, new)

    def span(self, first, last):
        return self.text[self.token[first].begin : self.token[last].end]


def signs(source, idx):
    """Relations, && and ||, sums, and a `!` that goes."""
    token = source.token[idx]
    if token.text in RELATIONS:
        yield source.mutant("relation", idx, idx, RELATIONS[token.text])
    if token.text in LOGIC:
        yield source.mutant("logic", idx, idx, LOGIC[token.text])
    if token.text == "!":
        yield source.mutant("logic", idx, idx, "")
    if token.text in ("++", "--") or (token.text in SUMS and source.is_binary(idx)):
        # What stands before a `*` or `&` in a declaration is a type: no `&` is binary there.
        yield source.mutant("sum", idx, idx, SUMS[token.text])


def constants(source, idx):
    token = source.token[idx]
    if token.text in WORDS:
        yield source.mutant("constant", idx, idx, WORDS[token.text])
    integer, decimal = INTEGER.match(token.text), DECIMAL.match(token.text)
    if integer:
        value, suffix = int(integer.group(1)), integer.group(2)
        yield source.mutant("constant", idx, idx, "%d%s" % (value + 1, suffix))
        if value > 0:
            yield source.mutant("constant", idx, idx, "%d%s" % (value - 1, suffix))
    elif decimal:
        value, suffix = float(decimal.group(1)), decimal.group(2)
        yield source.mutant("constant", idx, idx, "%r%s" % (value + 1, suffix))


def orders(source, idx):
    if ORDER.match(source.token[idx].text):
        yield source.mutant("order", idx, idx, "memory_order_relaxed")


def conditions(source, idx):
    """The condition of an if always holds, or never does."""
    if source.token[idx].text == "if" and source.is_at(idx + 1, "("):
        first, last = idx + 1, source.token[idx + 1].mate
        yield source.mutant("condition", first, last, "(1 || %s)" % source.span(first, last))
        yield source.mutant("condition", first, last, "(0 && %s)" % source.span(first, last))


def clauses(source, idx):
    """`a && b` becomes `a`, so does `a || b`."""
    if source.token[idx].text not in LOGIC:
        return
    end = idx + 1
    while end < len(source.token):
        token = source.token[end]
        if token.text in CLOSING or token.text in ("&&", "||", ";", "?", ":", ","):
            break
        end = token.mate + 1 if token.text in OPENING and token.mate else end + 1
    yield source.mutant("clause", idx, end - 1, "")


def arguments(source, idx):
    """Two neighbours of a call change places."""
    token = source.token[idx]
    if token.kind != "word" or token.text in KEYWORDS or not source.is_at(idx + 1, "("):
        return
    parts, begin = [], idx + 2
    at, last = begin, source.token[idx + 1].mate
    while at <= last:
        if source.token[at].text == "," or at == last:
            parts.append((begin, at - 1))
            begin = at + 1
        at = source.token[at].mate + 1 if source.token[at].text in OPENING else at + 1
    for one, other in zip(parts, parts[1:]):
        if one[0] > one[1] or other[0] > other[1]:
            continue
        left, right = source.span(*one), source.span(*other)
        if left != right:
            yield source.mutant("swap", one[0], other[1], right + ", " + left)


def is_declaration(source, first, last):
    token = source.token
    if token[first].text in TYPE_WORDS:
        return True
    at = first + 1
    while source.is_at(at, "*", "const"):
        at += 1
    return token[first].kind == "word" and at <= last and token[at].kind == "word"


def statements(source, first, last):
    """Expressions, break, continue and goto that are not there. Between two braces."""
    token, idx, begin = source.token, first + 1, first + 1
    while idx < last:
        text = token[idx].text
        if text == ";":
            is_jump = token[begin].text in ("break", "continue", "goto")
            if begin < idx and (
                is_jump
                or token[begin].text not in KEYWORDS
                and not PASSED_OVER.match(token[begin].text)
                and not is_declaration(source, begin, idx - 1)
            ):
                yield source.mutant("statement", begin, idx, ";")
            begin = idx + 1
        elif text == "{" and is_block(source, idx):
            yield from statements(source, idx, token[idx].mate)
            idx = token[idx].mate
            begin = idx + 1
        elif text in OPENING and token[idx].mate:
            idx = token[idx].mate
        elif text == ":" and (token[begin].text in ("case", "default") or begin == idx - 1):
            begin = idx + 1
        idx += 1


def is_block(source, idx):
    """Of an else, an if, a loop, and not the values of an array or a struct."""
    if not source.is_at(idx - 1, ")"):
        return source.is_at(idx - 1, ";", "{", "}", ":", "else", "do")
    before = source.token[source.token[idx - 1].mate - 1]
    return before.kind == "word" and before.text not in ("return", "sizeof")


def mutants(path, text):
    """Every fault of a file."""
    source = Source(path, text)
    found = []
    for name, first, last in source.bodies():
        source.function = name
        for idx in source.looked_at(first, last):
            for operator in (signs, constants, orders, conditions, clauses, arguments):
                found += operator(source, idx)
        found += statements(source, first, last)
    return [mutant for mutant in found if mutant.before != mutant.after]


def draw(rng, choices):
    """One of all: the kind first, so that the many constants do not crowd out the rest."""
    by_kind = {}
    for mutant in choices:
        by_kind.setdefault(mutant.kind, []).append(mutant)
    kinds = sorted(by_kind)
    kind = rng.choices(kinds, [KINDS[kind] for kind in kinds])[0]
    return rng.choice(by_kind[kind])

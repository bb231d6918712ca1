#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages and completions as the build made them.

usage: manual.py pages|lint|bash|zsh   with WEFT, RDMA_BENCH, MANUAL (their folder) and TOP

pages: each command and each call has a page, which shows all that --help shows
lint: mandoc finds nothing in them
bash, zsh: a shell that has loaded the completion offers what it should
"""

import glob
import os
import re
import shutil
import subprocess
import sys

TOP = os.environ["TOP"]
MANUAL = os.environ["MANUAL"]
sys.path[:0] = [os.path.join(TOP, "tools", "manual"), os.path.join(TOP, "tests", "abi")]
import commands  # noqa: E402
import promise  # noqa: E402

# Findings of style that stay: the footer names weft and its version, which is what a reader looks
# for; pages refer to each other, and where they are checked nobody has installed them.
ACCEPTED = ("operating system explicitly specified: Os weft", "referenced manual not found: Xr ")


def need(program, package):
    path = shutil.which(program)
    if path is None:
        promise.skip("%s is not there: apt-get install %s" % (program, package))
    return path


def read(name):
    with open(os.path.join(MANUAL, name), encoding="ascii") as file:
        return file.read()


def plain(text):
    """The words of a page, without macros, marks and line breaks."""
    text = re.sub(r"^\.(It|Sh|Ss|Nm|Nd|Xr) ?", "", text, flags=re.MULTILINE)
    text = text.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "`").replace("\\e", "\\")
    return " ".join(text.split())


def check_page(command, findings):
    name = command.name + ".1"
    if not os.path.exists(os.path.join(MANUAL, name)):
        findings.append("%s has no page: add it to tools/manual/meson.build" % " ".join(command.words))
        return
    text = plain(read(name))
    for sentence in (command.page["about"].split("\n")[0].split(": ")[-1], command.page["examples"] or ""):
        if " ".join(sentence.split()).lower() not in text.lower():
            findings.append("%s: lacks the text: %.60s" % (name, sentence))
    for option in command.options():
        shown = "Fl -" + option["name"] if "name" in option else option["flag"].split(", ")[-1][2:]
        if shown not in text or " ".join(option["text"].split()) not in text:
            findings.append("%s: lacks %s or its text" % (name, shown))
    for row in command.rows():
        if row[0] not in text or row[1] not in text:
            findings.append("%s: lacks the row %s" % (name, row[0]))


def pages():
    findings = []
    count = 0
    for name, program in (("weft", os.environ["WEFT"]), ("rdma_bench", os.environ["RDMA_BENCH"])):
        root = commands.read(program, [name])
        names = {name + "-" + row[0] for row in root.page["commands"]} - {name + "-help"}
        lost = names - {child.name for child in root.children} - {"weft-train"}
        findings += ["%s: --help=json fails" % each for each in sorted(lost)]
        for command in commands.walk(root):
            check_page(command, findings)
            count += 1
    for name in promise.promised(os.path.join(TOP, "include", "weft")):
        text = read(name + ".3")
        link = re.match(r"\.so man3/(\w+\.3)\n$", text)
        page = read(link.group(1)) if link else text
        for mark in (".Nm %s" % name, ".Fo %s\n" % name):
            if mark not in page:
                findings.append("%s.3: its page lacks '%s'" % (name, mark.strip()))
        count += 1
    return count, findings


def lint():
    mandoc = need("mandoc", "mandoc")
    names = sorted(glob.glob(os.path.join(MANUAL, "*.[13]")))
    names = [name for name in names if not read(os.path.basename(name)).startswith(".so ")]
    # Where it looks for the pages that others refer to: nowhere, which is quick.
    env = dict(os.environ, MANPATH=os.path.join(MANUAL, "none"))
    done = subprocess.run([mandoc, "-T", "lint"] + names, stdout=subprocess.PIPE, text=True, env=env)
    rows = done.stdout.splitlines()
    # That it looks at all: each page has the first of the accepted findings.
    if sum(ACCEPTED[0] in row for row in rows) < len(names):
        rows.append("mandoc did not look at every page")
    return len(names), [row for row in rows if not any(each in row for each in ACCEPTED)]


# What is typed, the word of the cursor last, and what is offered: all of it, or "...": among others.
TYPED = [
    (["weft", "pser"], {"pserver"}),
    (["weft", "ckpt", ""], {"list", "show", "verify"}),
    (["weft", "ckpt", "v"], {"verify"}),
    (["weft", "train", "m"], {"mlp"}),
    (["weft", "train", "mlp", "--dense_mo"], {"--dense_mode="}),
    (["weft", "train", "--format=cri"], {"criteo"}),
    (["weft", "demo", "--transport="], {"auto", "tcp", "shm", "verbs"}),
    (["weft", "pserver", "--no-on"], {"--no-once"}),
    (["weft", "launch", "--restar"], {"--restarts="}),
    (["weft", "launch", "--snapshot_peri"], {"--snapshot_period="}),
    (["weft", "launch", "--local", "--", "train", "ml"], {"mlp"}),
    (["weft", "launch", "--local", "--", "train", "mlp", "--batch_si"], {"--batch_size="}),
    (["weft", "ckpt", "list", "alp"], {"alpha.txt", "alpine"}),
    (["weft", "topo", "--xml=alp"], {"alpha.txt", "alpine"}),
    (["weft", "import", "x", "--output=alp"], {"alpine"}),
    (["weft", "pserver", "--zzz"], set()),
    (["rdma_bench", "ra"], {"rate"}),
    (["rdma_bench", "lat", "--op="], {"both", "put", "send"}),
]


def make_folder():
    folder = os.path.join(os.getcwd(), "manual_completion_%d" % os.getpid())
    os.makedirs(os.path.join(folder, "alpine"))
    with open(os.path.join(folder, "alpha.txt"), "w", encoding="ascii"):
        pass
    return folder


def compared(offer, shown=lambda word: word):
    """Findings about what `offer` gives for each row of TYPED."""
    folder = make_folder()
    try:
        findings = []
        for words, wanted in TYPED:
            found = offer(words, folder)
            wanted = {shown(word) for word in wanted}
            if found != wanted:
                findings.append("%s: offers %s, not %s" % (" ".join(words), sorted(found), sorted(wanted)))
        return len(TYPED), findings
    finally:
        shutil.rmtree(folder)


def bash():
    need("bash", "bash")

    def offer(words, folder):
        split = [each for word in words for each in re.split(r"(=)", word) if each or word == ""]
        script = (
            "source %s/%s.bash; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); "
            "$(complete -p %s | sed 's/.*-F \\([^ ]*\\).*/\\1/'); printf '%%s\\n' \"${COMPREPLY[@]}\""
            % (MANUAL, words[0], words[0])
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", script, "bash"] + split,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        )
        noise = [row for row in done.stderr.splitlines() if "compopt" not in row]
        return set(done.stdout.split()) | set(noise)

    return compared(offer)


def zsh():
    shell = need("zsh", "zsh")

    offered = {}

    def offer(words, folder):
        if not offered:  # one shell for all lines
            lines = [" ".join(row[0]) for row in TYPED]
            script = os.path.join(TOP, "tests", "manual", "offered.zsh")
            done = subprocess.run(
                [shell, "-f", script, MANUAL] + lines,
                stdout=subprocess.PIPE, text=True, cwd=folder, timeout=100,
            )
            parts = done.stdout.split("--\n")
            offered.update((line, set(part.split())) for line, part in zip(lines, parts))
        return offered[" ".join(words)]

    # zsh adds the "=" when it inserts the name.
    return compared(offer, lambda word: word.rstrip("="))


def main():
    count, findings = {"pages": pages, "lint": lint, "bash": bash, "zsh": zsh}[sys.argv[1]]()
    for row in findings:
        print(row)
    print("%d looked at, %d findings" % (count, len(findings)))
    sys.exit(1 if findings or count == 0 else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: status.py WEFT PORT PAGE MONITORING

Looks at a running job as a browser, Prometheus, a terminal and an attacker do. PORT is the
pserver's, PAGE that of its --status, MONITORING the folder of the dashboard and the alerts."""

import http.client
import json
import os
import pathlib
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import time

SECONDS_MAX = 120  # only bounds a failure
WEFT, PORT, PAGE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
MONITORING = pathlib.Path(sys.argv[4])
SERIES = re.compile(r"^([a-z_]+)(\{[^}]*\})? (-?[0-9.e+]+|NaN)$")


def check(holds, what):
    if not holds:
        print(f"FAILED: {what}", file=sys.stderr)
        sys.exit(1)


def request(method, path, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", PAGE, timeout=SECONDS_MAX)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def document():
    answer, body = request("GET", "/api/v1/status")
    check(answer.status == 200, f"/api/v1/status: {answer.status}")
    check(answer.getheader("Content-Type") == "application/json", "its type")
    return json.loads(body)


def until(holds, what):
    """The first document of which it is true."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        found = document()
        if holds(found):
            return found
        time.sleep(0.2)
    check(False, f"{what}: not within {SECONDS_MAX} s; last: {json.dumps(found)[:2000]}")


def look_at_page():
    answer, body = request("GET", "/")
    check(answer.status == 200 and len(body) <= 60 * 1024, f"/: {answer.status}, {len(body)}")
    policy = answer.getheader("Content-Security-Policy")
    check("default-src 'none'" in policy and "unsafe" not in policy, f"policy {policy}")
    check(answer.getheader("X-Content-Type-Options") == "nosniff", "nosniff")
    check(answer.getheader("Cache-Control") == "no-store", "no-store")
    elsewhere = re.findall(rb'(?:src|href)="(?!/|#|data:)[^"]*"|url\(|@import', body)
    check(not elsewhere, f"the page loads {elsewhere}")
    head, nothing = request("HEAD", "/")
    check(head.status == 200 and nothing == b"", "HEAD /")
    check(int(head.getheader("Content-Length")) == len(body), "the length of HEAD")
    check(request("GET", "/healthz")[1] == b"ok\n", "/healthz")
    check(request("GET", "/readyz")[1] == b"ready\n", "/readyz")


def look_at_document():
    def is_complete(d):
        members = d["members"]
        return (
            d["job"]["state"] == "running"
            and len(members) == 2
            and all(m["split"]["compute_ms"] is not None for m in members)
            and d["snapshots"]["written"] > 0
            and d["tables"]
            and d["tables"][0]["hot"]
        )

    first = until(is_complete, "a document with everything")
    check(first["schema"] == "weft.status.1", first["schema"])
    check(first["pserver"]["port"] == PORT, "the port")
    check([lane["kind"] for lane in first["lanes"]] == ["dense", "dense", "sparse"], "lanes")
    check(first["job"]["trainers"] == 2 and first["job"]["trainers_up"] == 2, "trainers")
    for member in first["members"]:
        split = member["split"]
        own = split["compute_ms"] + split["network_ms"]
        check(member["state"] == "up" and member["path"] in ("shm", "tcp"), f"{member}")
        check(split["compute_ms"] > 0 and split["network_ms"] >= 0, f"{split}")
        check(abs(own - split["own_ms"]) <= 0.5 * split["own_ms"] + 1, f"{split}")
        check(member["pid"] > 0 and member["host"] != "", f"{member}")
    check(first["tables"][0]["rows"] > 0 and first["step"]["p50_ms"] > 0, "tables, p50")
    check([n["what"] for n in first["news"]].count("joined") == 2, f"{first['news']}")
    check(first["news"][0]["what"] == "job began", f"{first['news']}")
    later = until(lambda d: d["job"]["step"] > first["job"]["step"], "more steps")
    check(later["memory"]["parameters_bytes"] > 0, "memory")
    lengths = {len(v) for v in later["history"].values() if isinstance(v, list)}
    check(len(lengths) == 1 and 1 <= lengths.pop() <= 300, "history")


def scrape():
    answer, body = request("GET", "/metrics")
    check(answer.getheader("Content-Type").startswith("text/plain; version=0.0.4"), "its type")
    series = {}
    for line in body.decode().splitlines():
        if not line.startswith("#"):
            match = SERIES.match(line)
            check(match is not None, f"not a series: {line}")
            name = match[1] + (match[2] or "")
            check(name not in series, f"twice: {name}")
            series[name] = float(match[3])
    return body, series


def look_at_metrics():
    body, before = scrape()
    until(lambda d: d["rates"] and d["rates"]["steps_per_s"] > 0, "steps")
    time.sleep(2)
    _, after = scrape()
    check(set(before) == set(after), f"series came or went: {set(before) ^ set(after)}")
    for name, value in before.items():
        if "_total" in name or "_bucket" in name or "_count" in name:
            check(after[name] >= value, f"{name} fell from {value} to {after[name]}")
    check(any(after[n] > before[n] for n in before if n.startswith("weft_steps_total")), "steps")
    if shutil.which("promtool"):
        lint = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True)
        check(lint.returncode == 0, f"promtool: {lint.stdout} {lint.stderr}")
    known = {re.sub(r"\{.*", "", name) for name in after}
    texts = [(MONITORING / "alerts.yml").read_text()]
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        texts += [target["expr"] for target in panel["targets"]]
    texts += [entry["query"] for entry in dashboard["templating"]["list"]]
    named = set(re.findall(r"\bweft_[a-z_]+", " ".join(texts)))
    check(len(named) > 15 and named <= known, f"no such metrics: {sorted(named - known)}")
    documented = (MONITORING / "../../docs/observe.md").read_text()
    for name in {re.sub(r"_(bucket|sum|count)$", "", name) for name in known}:
        short = "_" + "_".join(name.split("_")[2:])
        check(name in documented or short in documented or f"_{name.split('_')[2]}_" in documented,
              f"docs/observe.md does not have {name}")


def raw(data, keep=0):
    with socket.create_connection(("127.0.0.1", PAGE), timeout=SECONDS_MAX) as connection:
        try:
            connection.sendall(data)
            time.sleep(keep)
            answer = b""
            while len(answer) < 65536:
                more = connection.recv(65536)
                if not more:
                    break
                answer += more
            return answer
        except ConnectionError:
            return b""


def attack():
    own = f"127.0.0.1:{PAGE}"
    for host in (own, f"localhost:{PAGE}", f"LOCALHOST:{PAGE}", f"[::1]:{PAGE}"):
        check(request("GET", "/healthz", {"Host": host})[0].status == 200, f"Host {host}")
    for host in ("evil.example", f"evil.example:{PAGE}", "127.0.0.1", "127.0.0.1:1", "", "[::1",
                 f"127.0.0.1.evil.example:{PAGE}", f"192.0.2.1:{PAGE}", "a" * 300):
        answer, body = request("GET", "/api/v1/status", {"Host": host})
        check(answer.status in (400, 403) and b"trainer" not in body, f"Host {host!r}: {answer.status}")
    check(b" 40" in raw(b"GET /api/v1/status HTTP/1.0\r\n\r\n")[:20], "no Host")
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"):
        answer, _ = request(method, "/api/v1/status", {"Content-Length": "0"})
        check(answer.status in (400, 405), f"{method}: {answer.status}")
    check(request("POST", "/")[0].getheader("Allow") == "GET, HEAD", "Allow")
    for path in ("/nothing", "/../etc/passwd", "/api/v1/status/", "//", "/%2e%2e/", "/metrics/x"):
        check(request("GET", path)[0].status == 404, path)
    check(request("GET", "/healthz?x=1&y[]=2")[0].status == 200, "a query")
    huge = b"GET / HTTP/1.1\r\nHost: %s\r\n" % own.encode()
    check(b"200 OK" not in raw(huge + b"X: " + b"a" * 40000 + b"\r\n\r\n"), "a header of 40,000")
    check(b"200 OK" not in raw(huge + b"X: y\r\n" * 10000 + b"\r\n"), "10,000 headers")
    check(b"200 OK" not in raw(b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n"), "a long path")
    raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)))
    raw(b"\0" * 5000)
    # A slow reader, and a slow writer.
    check(b"200 OK" in raw(huge + b"Connection: close\r\n\r\n", keep=2), "a slow reader")
    idle = [socket.create_connection(("127.0.0.1", PAGE), timeout=SECONDS_MAX) for _ in range(100)]
    for connection in idle[:50]:
        connection.sendall(b"GET / HTT")
    began = document()["job"]["step"]  # the server drops those that are silent
    until(lambda d: d["job"]["step"] > began, "steps under 100 idle connections")
    for connection in idle:
        connection.close()
    check(request("GET", "/healthz")[0].status == 200, "/healthz after all that")


def run(*arguments, **more):
    return subprocess.run([WEFT, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX,
                          check=False, **more)


def ask():
    where = f"127.0.0.1:{PORT}"
    done = run("status", where, "--json", "--timeout=30s")
    check(done.returncode == 0, f"weft status: {done.stderr}")
    asked = json.loads(done.stdout)
    served = document()
    check(set(served) - set(asked) == {"history"} and set(asked) <= set(served), "the same keys")
    check(asked["members"][0].keys() == served["members"][0].keys(), "the same keys of members")
    check(asked["pserver"]["pid"] == served["pserver"]["pid"], "the same pserver")
    check(asked["rates"]["steps_per_s"] >= 0 and asked["job"]["trainers_up"] == 2, "its values")
    done = run("status", where, "--timeout=30s")
    check("job: running" in done.stdout and "2 of 2 trainers" in done.stdout, done.stdout)
    check("\033" not in done.stdout, "escapes in a file")
    done = run("top", where, "--count=3", "--interval=0.2", "--timeout=30s")
    rows = done.stdout.splitlines()
    check(done.returncode == 0 and len(rows) == 4 and rows[0].split()[0] == "step", done.stdout)
    check("\033" not in done.stdout, "escapes in rows")
    check(run("status", f"127.0.0.1:{PORT + 1}").returncode == 64, "lane 1")
    check(run("status", f"127.0.0.1:{PAGE}", "--timeout=2s").returncode == 69, "no pserver")


def show(environment):
    """What `weft top` writes to a terminal until q."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(environment)
        os.execv(WEFT, [WEFT, "top", f"127.0.0.1:{PORT}", "--interval=0.2", "--timeout=30s"])
    seen = b""
    deadline = time.monotonic() + SECONDS_MAX
    while seen.count(b"\033[H") < 3 and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)
    os.write(terminal, b"q")
    while time.monotonic() < deadline:
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            break
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    check(os.waitstatus_to_exitcode(status) == 0, f"weft top: {status}")
    return seen


def look_at_terminal():
    seen = show({"TERM": "xterm", "NO_COLOR": ""})
    check(seen.startswith(b"\033[?1049h") and b"\033[?1049l" in seen, "the other screen")
    check(b"job: running" in seen and b"\033[1m" in seen, "the job, in colours")
    seen = show({"TERM": "xterm", "NO_COLOR": "1"})
    check(b"\033[1m" not in seen and b"job: running" in seen, "NO_COLOR")


def main():
    look_at_document()
    look_at_page()
    look_at_metrics()
    attack()
    ask()
    look_at_terminal()
    last = document()
    check(last["job"]["state"] == "running", "the job has gone on")
    check(last["members"][0]["reconnects"] == 0 == last["members"][1]["reconnects"], "reconnects")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: timeline.py

Record a job of two pservers with tensors and a table, and decode its timeline with protoc and the
field numbers that Perfetto has published (timeline.proto). Nothing in it may be unknown, each event
has its type, track, time and sequence, and each push has its apply and its answer. Skipped (77)
without protoc: Debian's package protobuf-compiler."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import why

HERE = os.path.dirname(os.path.abspath(__file__))
PSERVERS = 2
STEPS = 10
EVENT = ("type", "track_uuid")


def decode(path):
    """The packets that protoc prints: each a list of (depth, name, value)."""
    with open(path, "rb") as file:
        done = subprocess.run(
            ["protoc", "--decode=weft.timeline.Trace", f"--proto_path={HERE}", "timeline.proto"],
            stdin=file, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"protoc: {done.stderr.decode()}")
    packets = []
    for line in done.stdout.decode().splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name, _, value = line.strip().partition(": ")
        if name == "}":
            continue
        name = name.removesuffix(" {")
        if re.fullmatch(r"[0-9]+", name):
            sys.exit(f"field {name}, which timeline.proto does not have: {line}")
        if depth == 0:
            packets.append([])
        else:
            packets[-1].append((depth, name, value))
    return packets


def check(packets):
    """Returns how many events there are, and the events that each push has."""
    tracks, events, flows = set(), 0, {}
    for packet in packets:
        fields = {name: value for depth, name, value in packet}
        top = {name for depth, name, _ in packet if depth == 1}
        if "track_descriptor" in top:
            tracks.add(fields["uuid"])
        if "track_event" not in top:
            continue
        events += 1
        inner = {name: value for depth, name, value in packet if depth == 2}
        if not {"timestamp", "trusted_packet_sequence_id"} <= top or not set(EVENT) <= set(inner):
            sys.exit(f"an event without time, sequence, type or track: {packet}")
        if inner["track_uuid"] not in tracks:
            sys.exit(f"an event of a track that is not described: {packet}")
        for _, name, value in packet:
            if name in ("flow_ids", "terminating_flow_ids"):
                flows.setdefault(value, []).append((inner["name"].strip('"'), packet))
    return events, flows


def step_of(packet):
    """The value of the annotation with the name step."""
    values = [value for _, name, value in packet if name in ("uint_value", "name")]
    return int(values[values.index('"step"') - 1]) if '"step"' in values else -1


def main():
    if shutil.which("protoc") is None:
        print("SKIPPED: protoc is missing: apt-get install protobuf-compiler")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        job = why.Job(folder, why.SMALL, {"sparse_lanes": 1, "rows": 16}, pservers=PSERVERS)
        try:
            job.ask("why", job.at, "--json")  # it makes steps
            path = os.path.join(folder, "t.pftrace")
            said = job.ask("trace", job.at, f"--steps={STEPS}", "-o", path)
            print(said.strip())
            events, flows = check(decode(path))
        finally:
            job.close()
    posted, applied = map(int, re.search(r"(\d+) of (\d+) pushes have", said).groups())
    steps = [{step_of(packet) for _, packet in flow} for flow in flows.values()]
    first, last = (pick(max(step) for step in steps) for pick in (min, max))
    inner = [{name for name, _ in flow} for flow, step in zip(flows.values(), steps)
             if first + 1 < max(step) < last]
    lacking = sum(not why.WANTED <= names for names in inner)
    lanes = PSERVERS * (why.LANES + 1)
    print(f"protoc: {events} events, {len(inner)} whole pushes, {lacking} lack their apply or answer")
    least = (STEPS - 4) * lanes * why.TRAINERS
    return 0 if posted == applied and lacking == 0 and len(inner) >= least else 1


if __name__ == "__main__":
    sys.exit(main())

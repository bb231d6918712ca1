#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loss curves of two models of PyTorch, each trained in three ways: in one process, under
DistributedDataParallel over Gloo, and over weft, by two trainers with half of each batch. Prints how far
the curves are apart, and draws them into one picture. Not part of the check: from a checkout that is built,

    PYTHONPATH=bindings/python tools/python_curves.py [--images=6000 --passes=2] OUT.svg

resnet  ResNet-18 on the first images of Fashion-MNIST (dataset-fashion-mnist), SGD with momentum; over
        weft as process group. Gloo's and weft's curves have the same bits. BatchNorm has the statistics of
        half a batch where there are two trainers, so that one process has a curve of its own
towers  the two towers of examples/python/ctr.py on data/birdstrikes.csv, SGD; over weft the rows are on
        pservers (weft.torch.Embedding), otherwise in torch.nn.Embedding. One process differs by rounding"""

import argparse
import csv
import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import zlib

import torch
import torch.distributed as dist
import weft
import weft.distributed
import weft.torch
from torch import nn

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WEFT = os.environ.get("WEFT", os.path.join(TOP, "build/tools/weft"))
FASHION = "/usr/share/datasets/fashion-mnist"
MODELS, WAYS = ("resnet", "towers"), ("one", "gloo", "weft")
BATCH = 64
RATES = {"resnet": 0.02, "towers": 0.5}
AIRCRAFT, WILDLIFE, DIM = (0, 1, 4, 5, 6), (7, 8, 9), 8


class Block(nn.Module):
    """Two convolutions, and what leads past them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.past = nn.Identity()
        if stride > 1:
            self.past = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + self.past(x)).relu()


def resnet18():
    stem = [nn.Conv2d(1, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    widths = [64, 64, 128, 256, 512]
    blocks = [
        Block(widths[i] if first else widths[i + 1], widths[i + 1], 2 if first and i > 0 else 1)
        for i in range(4)
        for first in (True, False)
    ]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Towers(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.aircraft, self.wildlife = nn.Linear(DIM, 16), nn.Linear(DIM, 16)
        self.all = nn.Linear(DIM * len(AIRCRAFT + WILDLIFE), 1)

    def forward(self, keys):
        rows = self.rows(keys)
        aircraft = self.aircraft(rows[:, : len(AIRCRAFT)].mean(1)).tanh()
        wildlife = self.wildlife(rows[:, len(AIRCRAFT) :].mean(1)).tanh()
        return (aircraft * wildlife).sum(1) + self.all(rows.flatten(1))[:, 0]


def images(count):
    def read(name, header):
        with gzip.open(os.path.join(FASHION, name)) as file:
            return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)

    pixels = read("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28)[:count].float() / 255
    return pixels, read("train-labels-idx1-ubyte.gz", 8)[:count].long()


def strikes():
    with open(os.path.join(TOP, "data/birdstrikes.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    words = [[zlib.crc32(b"%d=%s" % (i, row[i].encode())) for i in AIRCRAFT + WILDLIFE] for row in rows]
    number = {word: i for i, word in enumerate(sorted({word for row in words for word in row}))}
    keys = torch.tensor([[number[word] for word in row] for row in words])
    return keys, torch.tensor([float(row[2] != "None") for row in rows]), len(number)


def member(options):
    """One process: its loss of each step, as JSON."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank, ranks, way = options.rank, 1 if options.way == "one" else 2, options.way
    on_pservers = options.model == "towers" and way == "weft"
    if options.model == "resnet":
        inputs, wanted = images(options.images)
        model, measure = resnet18(), nn.functional.cross_entropy
    else:
        inputs, wanted, count = strikes()
        if on_pservers:
            weft.init(
                pservers=options.where, ports_num_for_sparse=1, num_gradient_servers=ranks, trainer_id=rank
            )
            rows = weft.torch.Embedding(
                weft.table("values", DIM, optimizer="sgd", learning_rate=RATES["towers"], init="zero")
            )
        else:
            rows = nn.Embedding(count, DIM)
            nn.init.zeros_(rows.weight)
        torch.manual_seed(1)
        model, measure = Towers(rows), nn.functional.binary_cross_entropy_with_logits
    momentum = 0.9 if options.model == "resnet" else 0
    optimizer = torch.optim.SGD(model.parameters(), lr=RATES[options.model], momentum=momentum)
    whole = model
    if on_pservers:
        optimizer = weft.torch.DistributedOptimizer(optimizer, model.named_parameters(), on="workers")
        weft.torch.broadcast_parameters(model.state_dict())
    elif ranks > 1:
        dist.init_process_group(way, init_method="file://" + options.meet, rank=rank, world_size=ranks)
        whole = nn.parallel.DistributedDataParallel(model)
    losses = []
    for number in range(options.passes):
        order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(number))
        for first in range(0, len(inputs) - BATCH + 1, BATCH):
            which = order[first : first + BATCH][rank::ranks]
            optimizer.zero_grad()
            loss = measure(whole(inputs[which]), wanted[which])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    if on_pservers:
        weft.close()
    elif ranks > 1:
        dist.destroy_process_group()
    with open(options.out, "w", encoding="ascii") as file:
        json.dump(losses, file)


def run(options, model, way, folder):
    """The loss of each step, the mean of all trainers'."""
    ranks = 1 if way == "one" else 2
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = None
    if model == "towers" and way == "weft":
        command = [WEFT, "pserver", "--once", "--port=%d" % port, "--ports_num_for_sparse=1"]
        server = subprocess.Popen(command + ["--num_gradient_servers=2"], stderr=subprocess.DEVNULL)
    files = [os.path.join(folder, "%s-%s-%d" % (model, way, rank)) for rank in range(ranks)]
    members = []
    for rank, file in enumerate(files):
        command = [sys.executable, os.path.abspath(__file__), "--model=" + model, "--way=" + way, file]
        command += ["--rank=%d" % rank, "--meet=" + files[0] + "-meet", "--where=127.0.0.1:%d" % port]
        command += ["--images=%d" % options.images, "--passes=%d" % options.passes]
        members.append(subprocess.Popen(command))
    if any([each.wait() for each in members]) or (server is not None and server.wait()):
        sys.exit("python_curves: %s, %s: has failed" % (model, way))
    found = [json.load(open(file, encoding="ascii")) for file in files]
    return [sum(each) / ranks for each in zip(*found)]


def smooth(losses, width=12):
    return [sum(losses[max(0, i - width) : i + 1]) / len(losses[max(0, i - width) : i + 1]) for i in range(len(losses))]


def draw(curves, out):
    """A panel for each model. Wide lines lie under narrow ones, so that equal curves show."""
    look = {"one": ("#999999", 2, ""), "gloo": ("#1f77b4", 5, ""), "weft": ("#ff7f0e", 1.8, "6 4")}
    width, height, edge = 440, 300, 46
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">'
        % (2 * width, height + 30),
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for panel, (model, ways) in enumerate(curves.items()):
        lines = {way: smooth(losses) for way, losses in ways.items()}
        low, high = min(map(min, lines.values())), max(map(max, lines.values()))
        left, steps = panel * width + edge, len(next(iter(lines.values())))
        parts.append('<text x="%d" y="20">%s: loss by step</text>' % (left, model))
        for value in (low, high):
            y = 34 + (height - 60) * (high - value) / (high - low)
            parts.append('<text x="%d" y="%.0f" text-anchor="end">%.2f</text>' % (left - 6, y + 4, value))
        parts.append(
            '<path d="M%d 34V%dH%d" fill="none" stroke="black"/>' % (left, height - 26, left + width - edge - 14)
        )
        parts.append('<text x="%d" y="%d" text-anchor="end">%d</text>' % (left + width - edge - 14, height - 8, steps))
        for row, (way, losses) in enumerate(lines.items()):
            colour, stroke, dashes = look[way]
            points = " ".join(
                "%.1f,%.1f"
                % (left + (width - edge - 14) * i / (steps - 1), 34 + (height - 60) * (high - loss) / (high - low))
                for i, loss in enumerate(losses)
            )
            style = 'fill="none" stroke="%s" stroke-width="%s" stroke-dasharray="%s"' % (colour, stroke, dashes)
            parts.append('<polyline points="%s" %s/>' % (points, style))
            name = {"one": "one process", "gloo": "DDP, Gloo, 2 trainers", "weft": "weft, 2 trainers"}[way]
            at = left + width - 230, 40 + 18 * row
            parts.append('<path d="M%d %dh28" %s/><text x="%d" y="%d">%s</text>' % (*at, style, at[0] + 36, at[1] + 4, name))
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT.svg")
    parser.add_argument("--images", type=int, default=6000)
    parser.add_argument("--passes", type=int, default=2)
    for name in ("--model", "--way", "--meet", "--where"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        member(options)
        return
    for path, how in ((FASHION, "apt-get install dataset-fashion-mnist"), (WEFT, "make build, or set WEFT")):
        if not os.path.exists(path):
            sys.exit("python_curves: %s is not there: %s" % (path, how))
    curves = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            curves[model] = {way: run(options, model, way, folder) for way in WAYS}
            one, gloo, over_weft = (curves[model][way] for way in WAYS)
            for name, other in (("Gloo", gloo), ("one process", one)):
                apart = max(abs(a - b) for a, b in zip(over_weft, other))
                print("%s: weft and %s: at most %.3g apart in %d steps" % (model, name, apart, len(other)))
            print("%s: last losses (mean of 13 steps): " % model, end="")
            print(", ".join("%s %.4f" % (way, smooth(curves[model][way])[-1]) for way in WAYS), flush=True)
    draw(curves, options.out)


if __name__ == "__main__":
    main()

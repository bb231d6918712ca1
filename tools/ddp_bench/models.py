# SPDX-License-Identifier: Apache-2.0
"""Models whose backward pass brings gradients as fast as memory takes them: lists of parameters of real
models, whose loss is the sum of all values, and a chain of square matrices."""

import math


def _resnet50():
    yield from ((64, 3, 7, 7), (64,), (64,))
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for shape in ((width, inputs, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)):
                yield from (shape, shape[:1], shape[:1])
            if block == 0:
                yield from ((4 * width, inputs, 1, 1), (4 * width,), (4 * width,))
            inputs = 4 * width
    yield from ((1000, 2048), (1000,))


def _vgg16():
    inputs = 3
    for outputs in (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512):
        yield from ((outputs, inputs, 3, 3), (outputs,))
        inputs = outputs
    for outputs, inputs in ((4096, 25088), (4096, 4096), (1000, 4096)):
        yield from ((outputs, inputs), (outputs,))


def _bert():
    norm = ((768,), (768,))
    yield from ((30522, 768), (512, 768), (2, 768), *norm)
    for _ in range(12):
        for outputs, inputs in ((768, 768), (768, 768), (768, 768), (768, 768)):
            yield from ((outputs, inputs), (outputs,))
        yield from (*norm, (3072, 768), (3072,), (768, 3072), (768,), *norm)
    yield from ((768, 768), (768,))


# Parameters as their authors' implementations count them.
_LISTS = {"resnet50": (_resnet50, 25557032), "vgg16": (_vgg16, 138357544), "bert": (_bert, 109482240)}
CHAIN = "chain"
NAMES = (*_LISTS, CHAIN)
_SIDE = 512  # of a matrix of the chain


def _scaled(shapes, factor):
    """Shapes with about that part of the values: each dimension but those of 1 is smaller."""
    found = []
    for shape in shapes:
        root = factor ** (1 / max(1, sum(n > 1 for n in shape)))
        found.append(tuple(max(1, round(n * root)) for n in shape))
    return found


def shapes_of(name, mebibytes):
    """Of the model's parameters, which have about so many MiB, or fewer if the model has fewer."""
    if name == CHAIN:
        return [(_SIDE, _SIDE)] * max(1, round(mebibytes * 2**18 / _SIDE**2))
    of, count = _LISTS[name]
    shapes = list(of())
    if sum(map(math.prod, shapes)) != count:
        raise AssertionError("%s has %d values, not %d" % (name, sum(map(math.prod, shapes)), count))
    return _scaled(shapes, min(1, mebibytes * 2**18 / count))


def bytes_of(shapes):
    return 4 * sum(map(math.prod, shapes))


def make(name, mebibytes):
    """The model, and the loss of one step as a function of it, which DistributedDataParallel may have wrapped."""
    import torch

    torch.manual_seed(1)
    shapes = shapes_of(name, mebibytes)
    if name == CHAIN:
        layers = [torch.nn.Linear(_SIDE, _SIDE, bias=False) for _ in shapes]
        x = torch.randn(4, _SIDE)
        return torch.nn.Sequential(*layers), lambda model: model(x).square().mean()

    class Sums(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.all = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(shape)) for shape in shapes])

        def forward(self):
            return torch.stack([parameter.sum() for parameter in self.all]).sum()

    return Sums(), lambda model: model()

# SPDX-License-Identifier: Apache-2.0
"""kernels/formulas.md in NumPy: what tensors and rows become, with the pservers' bits, and nothing of their code.

All arithmetic is float32 and in the order of that page; rates are computed in f64 and rounded once. A method
that tensors and rows have is written once."""

import math
from types import SimpleNamespace

import numpy as np

F = np.float32
CALM = F(2.0**40)
_ROW_DEFAULTS = {"epsilon": 1e-6}
_DEFAULTS = {
    "learning_rate": 1e-3, "momentum": 0, "beta1": 0.9, "beta2": 0.999, "rho": 0.95, "epsilon": 1e-8, "decay": 0,
    "l1": 0, "l2": 0, "l21": 0, "clip": 0, "ftrl_beta": 1, "schedule": "constant", "schedule_a": 0, "schedule_b": 0,
    "schedule_args": "", "dampening": 0, "nesterov": 0,
}  # fmt: skip


def settings_of(given, rows=False):
    """The library's defaults, and what is given."""
    return SimpleNamespace(**{**_DEFAULTS, **(_ROW_DEFAULTS if rows else {}), **given})


def rate_at(o, before, samples, number_of_pass):
    """The learning rate of a step, in f64."""
    rate, a, b = float(o.learning_rate), o.schedule_a, o.schedule_b
    if o.schedule in ("manual", "pass_manual"):
        segments = [tuple(map(float, part.split(":"))) for part in o.schedule_args.split(",")]
        n = before if o.schedule == "manual" else number_of_pass
        return rate * next((factor for until, factor in segments if n <= until), segments[-1][1])
    if o.schedule == "caffe_poly":
        return rate * (1 - before / a) ** b if before < a else 0.0
    return {
        "constant": lambda: rate,
        "linear": lambda: max(rate - a * before, b),
        "warmup": lambda: rate * min(1.0, (before + samples) / a),
        "poly": lambda: rate * (1 + a * before) ** -b,
        "exp": lambda: rate * a ** (before / b),
        "discexp": lambda: rate * a ** math.floor(before / b),
    }[o.schedule]()


def scalars(o, method, rate, t):
    """Of step t, from 1; `rate` has the tensor's multiplier in it."""
    b1, b2 = float(F(o.beta1)), float(F(o.beta2))
    factor = 1.0
    if method in ("adam", "adamw", "adam_rowwise"):
        factor = math.sqrt(1 - b2**t) / (1 - b1**t)
    elif method == "adamax":
        factor = 1 / (1 - b1**t)
    elif method in ("torch_adam", "torch_adamw"):
        factor = 1 / (1 - o.beta1**t)
    elif method == "torch_momentum" and t > 1:
        factor = 1 - float(F(o.momentum))
    return SimpleNamespace(
        nesterov=o.nesterov, rate=F(rate * factor), plain=F(rate), decay=F(o.decay), mu=F(o.momentum), b1=F(o.beta1), b2=F(o.beta2),
        eps=F(o.epsilon), rho=F(o.rho), share=F(1) if t == 1 else F(1) - F(o.rho), rest1=F(1 - o.beta1),
        rest2=F(1 - o.beta2), root=F(math.sqrt(1 - o.beta2**t)), beta=F(o.ftrl_beta), l1=F(o.l1), l2=F(o.l2),
        l21=F(o.l21), fresh=F(1 if t == 1 else 1 - o.dampening), kept=F(1 - float(F(rate)) * float(F(o.decay))),
    )  # fmt: skip


# Each: (scalars, parameters, state, gradients) to parameters and state.


def sgd(k, w, s, g):
    return w - k.rate * (g + k.decay * w), []


def momentum(k, w, s, g):
    m = k.mu * s[0] - k.rate * (g + k.decay * w)
    return w + m, [m]


def nesterov(k, w, s, g):
    step = k.rate * (g + k.decay * w)
    m = k.mu * s[0] - step
    return w + (k.mu * m - step), [m]


def over_root(k, w, g, square):
    return w - (k.rate * (g + k.decay * w)) / np.sqrt(square + k.eps)


def adagrad(k, w, s, g):
    a = s[0] + g * g
    return over_root(k, w, g, a), [a]


def decayed_adagrad(k, w, s, g):
    a = k.rho * s[0] + k.share * (g * g)
    return over_root(k, w, g, a), [a]


def rmsprop(k, w, s, g):
    a = k.rho * s[0] + k.share * (g * g)
    f = k.rho * s[1] + (F(1) - k.rho) * g
    return over_root(k, w, g, np.maximum(a - f * f, F(0))), [a, f]


def adadelta(k, w, s, g):
    rest = F(1) - k.rho
    a = k.rho * s[0] + rest * (g * g)
    r = np.sqrt((s[1] + k.eps) / (a + k.eps))
    return w - (k.rate * (g + k.decay * w)) * r, [a, k.rho * s[1] + rest * ((g * r) * (g * r))]


def adam_means(k, s, d):
    return k.b1 * s[0] + (F(1) - k.b1) * d, k.b2 * s[1] + (F(1) - k.b2) * (d * d)


def adam(k, w, s, g):
    m, v = adam_means(k, s, g + k.decay * w)
    return w - (k.rate * m) / (np.sqrt(v) + k.eps), [m, v]


def adamw(k, w, s, g):
    m, v = adam_means(k, s, g)
    return w - ((k.rate * m) / (np.sqrt(v) + k.eps) + k.plain * (k.decay * w)), [m, v]


def torch_step(k, s, d):
    m, v = k.b1 * s[0] + k.rest1 * d, k.b2 * s[1] + (k.rest2 * d) * d
    return (k.rate * m) / (np.sqrt(v) / k.root + k.eps), [m, v]


def torch_adam(k, w, s, g):
    step, state = torch_step(k, s, g + k.decay * w)
    return w - step, state


def torch_adamw(k, w, s, g):
    step, state = torch_step(k, s, g)
    return w * k.kept - step, state


def torch_sgd(k, w, s, g):
    d = g + k.decay * w
    if k.mu == 0:
        return w - k.rate * d, s
    m = k.mu * s[0] + k.fresh * d
    return w - k.rate * (d + k.mu * m if k.nesterov else m), [m]


def adamax(k, w, s, g):
    d = g + k.decay * w
    m, u = k.b1 * s[0] + (F(1) - k.b1) * d, np.maximum(k.b2 * s[1], np.abs(d))
    return w - (k.rate * m) / (u + k.eps), [m, u]


# Of rows only.


def squares(x):
    """The sum of squares of a row: 16 partial sums, folded in halves."""
    partial = np.zeros(16, F)
    for first in range(0, x.size, 16):
        part = x[first : first + 16]
        partial[: part.size] += part * part
    while partial.size > 1:
        partial = partial[: partial.size // 2] + partial[partial.size // 2 :]
    return partial[0]


def adagrad_rowwise(k, w, s, g):
    a = s[0] + squares(g) / F(w.size)
    return w - (k.rate / np.sqrt(a + k.eps)) * (g + k.decay * w), [a]


def adam_rowwise(k, w, s, g):
    d = g + k.decay * w
    v = k.b2 * s[1] + (F(1) - k.b2) * (squares(d) / F(w.size))
    m = k.b1 * s[0] + (F(1) - k.b1) * d
    return w - (k.rate / (np.sqrt(v) + k.eps)) * m, [m, v]


def ftrl_state(k, w, s, g):
    n = s[1] + g * g
    return s[0] + (g - ((np.sqrt(n) - np.sqrt(s[1])) / k.rate) * w), n


def ftrl(k, w, s, g):
    z, n = ftrl_state(k, w, s, g)
    return (F(0) - soft(z, k.l1)) / ((k.beta + np.sqrt(n)) / k.rate + k.l2), [z, n]


def ftrl_group(k, w, s, g):
    z, n = ftrl_state(k, w, s, g)
    y = soft(z, k.l1)
    norm, least = np.sqrt(squares(y)), k.l21 * np.sqrt(F(w.size))
    share = F(1) - least / norm if norm > least else F(0)
    return (F(0) - y * share) / ((k.beta + np.sqrt(n)) / k.rate + k.l2), [z, n]


METHODS = {
    "sgd": (sgd, 0), "momentum": (momentum, 1), "torch_momentum": (momentum, 1), "nesterov": (nesterov, 1),
    "adagrad": (adagrad, 1), "decayed_adagrad": (decayed_adagrad, 1), "rmsprop": (rmsprop, 2),
    "adadelta": (adadelta, 2), "adam": (adam, 2), "torch_adam": (torch_adam, 2), "adamw": (adamw, 2),
    "torch_adamw": (torch_adamw, 2), "adamax": (adamax, 2), "torch_sgd": (torch_sgd, 1),
}  # fmt: skip
ROW_METHODS = {
    "sgd": (sgd, 0), "momentum": (momentum, 1), "sparse_momentum": (momentum, 1), "adagrad": (adagrad, 1),
    "adagrad_rowwise": (adagrad_rowwise, 1), "rmsprop": (rmsprop, 2), "adam": (adam, 2),
    "adam_rowwise": (adam_rowwise, 2), "ftrl": (ftrl, 2), "ftrl_group": (ftrl_group, 2),
}  # fmt: skip


def soft(w, drop):
    """Towards 0 by `drop`, and not beyond."""
    return np.where(w > drop, w - drop, np.where(w < -drop, w + drop, w * F(0)))


def reduced(grads, divisor, clip):
    """The sum over trainers in their order, divided; and the same clipped."""
    total = grads[0]
    for grad in grads[1:]:
        total = total + grad
    is_vast = divisor > np.finfo(F).max  # only that of clip_norm
    g = (total.astype(np.float64) / divisor).astype(F) if is_vast else total / F(divisor)
    return g, np.minimum(np.maximum(g, -F(clip)), F(clip)) if clip > 0 else g


class Tensor:
    """`own`: settings of the tensor beside those of the job."""

    def __init__(self, method, values, job, own):
        self.method, self.multiplier = method, own.get("rate_multiplier", 1.0)
        self.o = settings_of(dict(job, **{key: value for key, value in own.items() if key != "rate_multiplier"}))
        self.formula, count = METHODS[method]
        self.w, self.state = values.copy(), [np.zeros_like(values) for _ in range(count)]
        self.skipped = 0  # steps that are none of its optimizer's

    def change(self, step, numbers):
        """From step `step`, counted from 1, on."""
        for name, value in numbers.items():
            if name == "updates":
                self.skipped = step - 1 - value
            else:
                setattr(self.o, name, value)

    def assign(self, array, values):
        self.skipped += 1
        if array == 0:
            self.w = values.copy()
        else:
            self.state[array - 1] = values.copy()

    def step(self, grads, divisor, rate, t):
        t -= self.skipped
        g, clipped = reduced(grads, divisor, self.o.clip)
        k = scalars(self.o, self.method, rate * self.multiplier, t)
        w, state = self.formula(k, self.w, self.state, clipped)
        drop = k.plain * k.l1
        w = soft(w, drop) if drop > 0 else w
        whole = np.isfinite(w)
        for array in state:
            whole &= np.isfinite(array)
        calm = (np.abs(g) <= CALM) & (np.abs(self.w) <= CALM)
        keep = np.isfinite(g) & (calm | whole)
        self.w = np.where(keep, w, self.w)
        self.state = [np.where(keep, new, old) for new, old in zip(state, self.state)]


class Row:
    def __init__(self, method, values, o):
        self.method, self.o, self.seen = method, o, False
        self.formula, count = ROW_METHODS[method]
        self.w, self.state = values.copy(), [np.zeros_like(values) for _ in range(count)]
        if method.endswith("_rowwise"):
            self.state[-1] = F(0)

    def step(self, grads, divisor, rate, t):
        _, g = reduced(grads, divisor, self.o.clip)
        k = scalars(self.o, self.method, rate, t)
        k.share = F(1) - k.rho if self.seen else F(1)
        self.seen = True
        self.w, self.state = self.formula(k, self.w, self.state, g)
        if not self.method.startswith("ftrl"):
            drop, shrink = k.plain * k.l1, F(1 / (1 + rate * self.o.l2))
            self.w = soft(self.w, drop) if drop > 0 else self.w
            self.w = self.w * shrink if shrink < 1 else self.w


def norm_divisor(grads_of, divisor, limit):
    """The divisor with which the norm of all tensors' gradients is at most `limit`. Each is one slice."""
    total = []
    for grads in grads_of:
        s = reduced(grads, 1, 0)[0].astype(np.float64).ravel()
        s[~np.isfinite(s)] = 0
        partial = np.zeros(16)
        for first in range(0, s.size, 16):
            part = s[first : first + 16]
            partial[: part.size] += part * part
        while partial.size > 1:
            partial = partial[: partial.size // 2] + partial[partial.size // 2 :]
        total.append(partial[0])
    length = math.sqrt(math.fsum(total)) / divisor
    longer = divisor * (length / limit)
    if length <= limit:
        return divisor
    return float(F(longer)) if longer <= np.finfo(F).max else longer


class Average:
    """Of one tensor, over fewer than 10,000 steps."""

    def __init__(self, values, window, longest):
        self.window, self.longest = window, longest
        self.now, self.before = np.zeros_like(values), np.zeros_like(values)
        self.count = self.count_before = self.t = 0

    def add(self, w):
        self.t, self.count, self.now = self.t + 1, self.count + 1, self.now + w
        if self.count >= min(10000, self.longest) and self.count >= min(self.longest, self.window * self.t):
            self.before, self.count_before = self.now, self.count
            self.now, self.count = np.zeros_like(w), 0

    def value(self):
        with np.errstate(all="ignore"):
            return (self.now + F(0) + self.before) / F(self.count + self.count_before)

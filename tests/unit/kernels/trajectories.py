#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes trajectories.h: what each optimizer makes of one parameter under the same twelve gradients,
by the formulas of its paper, in double precision and with nothing of the project.

    python3 trajectories.py >trajectories.h
"""

import math

STEPS = 12
RATE, DECAY, L1 = 0.05, 0.02, 0.03
MU, BETA1, BETA2, RHO = 0.75, 0.875, 0.9375, 0.8125
EPSILON = 2.0 ** -9
START = 0.25


def gradients():
    """A walk in steps of 1/64, which is exact in any format."""
    state, out = 12345, []
    for _ in range(STEPS):
        state = (1103515245 * state + 12345) % 2**31
        out.append((state // 65536 % 129 - 64) / 64)
    return out


def polyak(w, g, s, t):
    s["v"] = MU * s.get("v", 0) - RATE * (g + DECAY * w)
    return w + s["v"]


def torch(w, g, s, t):
    # Dampening as torch's optim.sgd has it: none in the first step.
    share = 1 if t == 1 else 1 - MU
    s["v"] = MU * s.get("v", 0) + share * (g + DECAY * w)
    return w - RATE * s["v"]


def sutskever(w, g, s, t):
    # w is theta + mu v, where the gradient was taken.
    v = s.get("v", 0)
    theta = w - MU * v
    s["v"] = MU * v - RATE * (g + DECAY * w)
    return theta + s["v"] + MU * s["v"]


def duchi(w, g, s, t):
    s["sum"] = s.get("sum", 0) + g * g
    return w - RATE * (g + DECAY * w) / math.sqrt(s["sum"] + EPSILON)


def decayed(w, g, s, t):
    s["mean"] = g * g if t == 1 else RHO * s["mean"] + (1 - RHO) * g * g
    return w - RATE * (g + DECAY * w) / math.sqrt(s["mean"] + EPSILON)


def graves(w, g, s, t):
    # Equations 38 to 41, without their momentum; the first square counts in full.
    s["n"] = g * g if t == 1 else RHO * s["n"] + (1 - RHO) * g * g
    s["g"] = RHO * s.get("g", 0) + (1 - RHO) * g
    return w - RATE * (g + DECAY * w) / math.sqrt(s["n"] - s["g"] ** 2 + EPSILON)


def zeiler(w, g, s, t):
    # Algorithm 1; its rate is 1.
    s["g"] = RHO * s.get("g", 0) + (1 - RHO) * g * g
    factor = math.sqrt(s.get("x", 0) + EPSILON) / math.sqrt(s["g"] + EPSILON)
    s["x"] = RHO * s.get("x", 0) + (1 - RHO) * (factor * g) ** 2
    return w - RATE * factor * (g + DECAY * w)


def kingma(w, g, s, t, decoupled=False):
    d = g if decoupled else g + DECAY * w
    s["m"] = BETA1 * s.get("m", 0) + (1 - BETA1) * d
    s["v"] = BETA2 * s.get("v", 0) + (1 - BETA2) * d * d
    rate = RATE * math.sqrt(1 - BETA2**t) / (1 - BETA1**t)
    step = rate * s["m"] / (math.sqrt(s["v"]) + EPSILON)
    return w - step - (RATE * DECAY * w if decoupled else 0)


def loshchilov(w, g, s, t):
    return kingma(w, g, s, t, decoupled=True)


def torch_adam(w, g, s, t, decoupled=False):
    # torch.optim.Adam and AdamW: both means are corrected, and epsilon is added to the corrected root.
    d = g if decoupled else g + DECAY * w
    w = w - RATE * DECAY * w if decoupled else w
    s["m"] = BETA1 * s.get("m", 0) + (1 - BETA1) * d
    s["v"] = BETA2 * s.get("v", 0) + (1 - BETA2) * d * d
    return w - RATE * s["m"] / (1 - BETA1**t) / (math.sqrt(s["v"] / (1 - BETA2**t)) + EPSILON)


def torch_adamw(w, g, s, t):
    return torch_adam(w, g, s, t, decoupled=True)


def torch_sgd(w, g, s, t):
    # torch.optim.SGD without dampening: the rate is outside the buffer.
    d = g + DECAY * w
    s["v"] = d if t == 1 else MU * s["v"] + d
    return w - RATE * s["v"]


def adamax(w, g, s, t):
    # Algorithm 2 of the same paper; epsilon keeps 0 / 0 away.
    d = g + DECAY * w
    s["m"] = BETA1 * s.get("m", 0) + (1 - BETA1) * d
    s["u"] = max(BETA2 * s.get("u", 0), abs(d))
    return w - RATE / (1 - BETA1**t) * s["m"] / (s["u"] + EPSILON)


METHODS = [
    ("WF_SGD", lambda w, g, s, t: w - RATE * (g + DECAY * w)),
    ("WF_MOMENTUM", polyak),
    ("WF_ADAM", kingma),
    ("WF_NESTEROV", sutskever),
    ("WF_ADAGRAD", duchi),
    ("WF_ADAMW", loshchilov),
    ("WF_DECAYED_ADAGRAD", decayed),
    ("WF_RMSPROP", graves),
    ("WF_ADADELTA", zeiler),
    ("WF_ADAMAX", adamax),
    ("WF_TORCH_MOMENTUM", torch),
    ("WF_TORCH_ADAM", torch_adam),
    ("WF_TORCH_ADAMW", torch_adamw),
    ("WF_TORCH_SGD", torch_sgd),
]


def soft(w, drop):
    return math.copysign(max(abs(w) - drop, 0), w)


def run(method, l1):
    w, state, out = START, {}, []
    for t, g in enumerate(gradients(), 1):
        w = soft(method(w, g, state, t), RATE * l1)
        out.append(w)
    return out


def row(values):
    return ", ".join("%.17g" % v for v in values)


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* trajectories: made by trajectories.py; change that, not this. Thread: any. */")
    print("/* clang-format off */")
    print("#pragma once\n")
    print('#include "kernels/optimizer.h"\n')
    print("#define TRAJECTORY_STEPS %d" % STEPS)
    print("#define TRAJECTORY_START %.17g" % START)
    print("#define TRAJECTORY_L1 %.17g\n" % L1)
    print("static const struct wf_optimizer_opts trajectory_opts = {.set = {")
    print("\t.learning_rate = %.17g, .momentum = %.17g," % (RATE, MU))
    print("\t.beta1 = %.17g, .beta2 = %.17g, .rho = %.17g," % (BETA1, BETA2, RHO))
    print("\t.epsilon = %.17g, .decay = %.17g,\n}};\n" % (EPSILON, DECAY))
    print("static const double trajectory_gradient[TRAJECTORY_STEPS] = {")
    print("\t%s,\n};\n" % row(gradients()))
    print("/* The parameter after each step: without L1, and with it. */")
    print("static const double trajectory[WF_OPTIMIZER_COUNT][2][TRAJECTORY_STEPS] = {")
    for name, method in METHODS:
        print("\t[%s] = {" % name)
        for l1 in (0, L1):
            print("\t\t{%s}," % row(run(method, l1)))
        print("\t},")
    print("};")


main()

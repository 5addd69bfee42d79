"""LSTM, GRU and RNN as their texts say, step by step: neither evaluator knows all of them."""
import numpy as np


def _functions():
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    return {
        "Relu": lambda x, a, b: np.maximum(x, 0), "Tanh": lambda x, a, b: np.tanh(x), "Sigmoid": lambda x, a, b: sigmoid(x),
        "Affine": lambda x, a, b: a * x + b, "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
        "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0), "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
        "HardSigmoid": lambda x, a, b: np.minimum(np.maximum(a * x + b, 0), 1), "Elu": lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        "Softsign": lambda x, a, b: x / (1 + np.abs(x)), "Softplus": lambda x, a, b: np.logaddexp(x, 0),
    }


FUNCTIONS = _functions()
TAKES = {"Affine": "ab", "LeakyRelu": "a", "ThresholdedRelu": "a", "ScaledTanh": "ab", "HardSigmoid": "ab", "Elu": "a"}
USUAL = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def answer(case):
    get = lambda name, default=None: default if case.attrs.get(name) is None else case.attrs[name]
    x, w, r, b, lens, h0 = (list(case.inputs) + [None] * 8)[:6]
    c0, p = (list(case.inputs) + [None] * 8)[6:8] if case.op == "LSTM" else (None, None)
    dtype = x.dtype
    wide = lambda v: None if v is None else v.astype(np.float64)
    x, w, r, b, h0, c0, p = (wide(v) for v in (x, w, r, b, h0, c0, p))
    if get("layout", 0):
        x = x.transpose(1, 0, 2)
        h0, c0 = (None if v is None else v.transpose(1, 0, 2) for v in (h0, c0))
    steps, batch, _ = x.shape
    directions, hidden = w.shape[0], r.shape[2]
    lens = np.full(batch, steps) if lens is None else lens
    names = get("activations") or USUAL[case.op] * directions
    alphas, betas = list(get("activation_alpha") or []), list(get("activation_beta") or [])
    acts = []
    for name in names:
        takes = TAKES.get(name, "")
        a = alphas.pop(0) if "a" in takes else 0
        c = betas.pop(0) if "b" in takes else 0
        acts.append(lambda v, f=FUNCTIONS[name], a=a, c=c: f(v, a, c))
    limit = get("clip")
    clip = (lambda v: v) if limit is None else (lambda v: np.clip(v, -limit, limit))
    per = len(acts) // directions
    y = np.zeros((steps, directions, batch, hidden))
    last_h, last_c = np.zeros((directions, batch, hidden)), np.zeros((directions, batch, hidden))
    for k in range(directions):
        backward = get("direction", "forward") == "reverse" or k == 1
        f = [lambda v, g=g: g(clip(v)) for g in acts[k * per:(k + 1) * per]]
        gates = w.shape[1] // hidden
        wb, rb = (np.zeros((gates, hidden)),) * 2 if b is None else b[k].reshape(2, gates, hidden)
        wk, rk = w[k].reshape(gates, hidden, -1), r[k].reshape(gates, hidden, hidden)
        for n in range(batch):
            h = np.zeros(hidden) if h0 is None else h0[k, n]
            c = np.zeros(hidden) if c0 is None else c0[k, n]
            order = range(int(lens[n]))
            for t in reversed(order) if backward else order:
                in_w = [wk[g] @ x[t, n] + wb[g] for g in range(gates)]
                in_r = [rk[g] @ h + rb[g] for g in range(gates)]
                if case.op == "RNN":
                    h = f[0](in_w[0] + in_r[0])
                elif case.op == "GRU":
                    z, reset = f[0](in_w[0] + in_r[0]), f[0](in_w[1] + in_r[1])
                    new = reset * in_r[2] if get("linear_before_reset", 0) else rk[2] @ (reset * h) + rb[2]
                    h = (1 - z) * f[1](in_w[2] + new) + z * h
                else:  # gates i o f c, peepholes i o f
                    pi, po, pf = np.zeros((3, hidden)) if p is None else p[k].reshape(3, hidden)
                    i = f[0](in_w[0] + in_r[0] + pi * c)
                    forget = 1 - i if get("input_forget", 0) else f[0](in_w[2] + in_r[2] + pf * c)
                    c = forget * c + i * f[1](in_w[3] + in_r[3])
                    o = f[0](in_w[1] + in_r[1] + po * c)
                    h = o * acts[k * per + 2](c)  # the clip is of the gates' sums: runtimes do not clip the state
                y[t, k, n] = h
            last_h[k, n], last_c[k, n] = h, c
    if get("layout", 0):
        y, last_h, last_c = y.transpose(2, 0, 1, 3), last_h.transpose(1, 0, 2), last_c.transpose(1, 0, 2)
    return [v.astype(dtype) for v, wanted in zip((y, last_h, last_c), case.outputs) if wanted]

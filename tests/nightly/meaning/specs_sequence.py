"""Recurrent operators, attention, losses, signals, random numbers, control flow."""
import math

import numpy as np
from onnx import TensorProto, helper

from draw import BF16, BOOL, F32, I32, I64, STRING, code_of, is_float
import recurrent as recurrence
from registry import spec

# --- recurrent -----------------------------------------------------------------------------------------------------------------------

PLAIN = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus")
PARAMETERS = {"Affine": 2, "LeakyRelu": 1, "ThresholdedRelu": 1, "ScaledTanh": 2, "HardSigmoid": 2, "Elu": 1}


def recurrent(d, gates, functions, peepholes=False):
    directions = d.pick(("forward", 1), ("forward", 1), ("reverse", 1), ("bidirectional", 2))
    count = directions[1]
    layout = d.pick(None, 0, 1) if d.v >= 14 else None
    steps, batch, size, hidden = d.dim(1, 4, 33, 0.03), d.dim(1, 3, 33, 0.03) if d.chance(0.98) else 0, d.dim(1, 3, 513), d.dim(1, 3, 33)
    x = d.x(0, (batch, steps, size) if layout == 1 else (steps, batch, size), "normal")
    w, r = d.x(0, (count, gates * hidden, size), "unit"), d.x(0, (count, gates * hidden, hidden), "unit")
    w, r = w - w.dtype.type(0.5), r - r.dtype.type(0.5)
    b = d.maybe(d.x(0, (count, 2 * gates * hidden), "unit"))
    lens = d.maybe(np.array([d.int(1, steps) for _ in range(batch)], dtype=np.int32), 0.3)
    state = (batch, count, hidden) if layout == 1 else (count, batch, hidden)
    inputs = [x, w, r, b, lens, d.maybe(d.x(0, state, "unit"))]
    if peepholes:
        inputs += [d.maybe(d.x(0, state, "unit")), d.maybe(d.x(0, (count, 3 * hidden), "unit"), 0.3)]
    attrs = {"hidden_size": hidden if d.chance(0.8) else None, "direction": directions[0] if directions[0] != "forward" or d.chance(0.5) else None,
             "layout": layout, "clip": d.maybe(d.pick(0.5, 1.0, 3.0), 0.2)}
    if d.chance(0.4):
        names, alphas, betas = [], [], []
        plain = PLAIN if steps < 9 else PLAIN[:2]  # what is not bounded grows beyond all bounds
        every = d.chance(0.3)
        for _ in range(functions * count):
            name = d.pick(*PARAMETERS) if every and steps < 9 else d.pick(*plain)
            names.append(name)
            if name in PARAMETERS:
                alphas.append(d.float(0.1, 1.0))
                if PARAMETERS[name] == 2:
                    betas.append(d.float(0.1, 1.0))
        attrs["activations"] = names
        if every and steps < 9:
            attrs["activation_alpha"], attrs["activation_beta"] = alphas, betas or None
    outputs = [d.chance(0.8) for _ in range(3 if peepholes else 2)]
    if not any(outputs):
        outputs[1] = True
    return inputs, attrs, outputs


def stepwise(case):
    case.oracle = recurrence.answer
    return case


@spec("LSTM")
def lstm(d):
    inputs, attrs, outputs = recurrent(d, 4, 3, True)
    attrs["input_forget"] = d.pick(None, None, 0, 1)
    return stepwise(d.node(inputs, attrs, outputs=outputs, scale=0.5, rtol=4))


@spec("GRU")
def gru(d):
    inputs, attrs, outputs = recurrent(d, 3, 2)
    attrs["linear_before_reset"] = d.pick(None, 0, 1)
    return stepwise(d.node(inputs, attrs, outputs=outputs, scale=0.5, rtol=4))


@spec("RNN")
def rnn(d):
    inputs, attrs, outputs = recurrent(d, 1, 1)
    return stepwise(d.node(inputs, attrs, outputs=outputs, scale=0.5, rtol=4))


# --- attention -------------------------------------------------------------------------------------------------------------------------


@spec("Attention")
def attention(d):
    flat = d.chance(0.4)
    batch, heads = d.batch(1, 2), d.int(1, 2)
    groups = d.pick(1, 1, 2)
    q_heads = heads * groups
    q, k, size, v_size = d.dim(1, 4, p=0.03), d.dim(1, 4), 2 * d.dim(1, 2, 100), d.dim(1, 3, 100)
    past = d.dim(1, 3, 100) if d.chance(0.3) else 0
    place = lambda h, n, s: (batch, n, h * s) if flat else (batch, h, n, s)
    d.type("T1")
    if d.chance(0.8):
        d.types["T2"] = d.types["T1"]
    t1, t2 = d.type("T1"), d.type("T2")
    inputs = [d.array(place(q_heads, q, size), t1, "normal"), d.array(place(heads, k, size), t1, "normal"), d.array(place(heads, k, v_size), t2, "normal")]
    total = past + k
    mask = None
    if d.chance(0.5):
        full = (batch, q_heads, q, total)
        shape = d.pick((q, total), (q, total), full, (batch, 1, q, total), (1, 1, q, total))
        if d.chance(0.5):
            mask = d.array(shape, BOOL) | (np.arange(total) == 0)
        else:
            mask = d.array(shape, t1, "normal")
    lens = None
    if d.v >= 24 and not past and d.chance(0.3):
        lens = d.ints([d.int(1, k) for _ in range(batch)])
    inputs += [mask, d.array((batch, heads, past, size), t1, "normal") if past else None,
               d.array((batch, heads, past, v_size), t2, "normal") if past else None]
    if lens is not None:
        inputs.append(lens)
    while inputs[-1] is None:
        inputs.pop()
    attrs = {"is_causal": d.pick(None, 0, 1), "scale": d.maybe(d.pick(0.5, 0.1, 1.0)), "softcap": d.maybe(d.pick(0.0, 1.0, 2.5), 0.3),
             "softmax_precision": d.pick(None, None, 1, 10, 11, 16)}
    if flat:
        attrs["q_num_heads"], attrs["kv_num_heads"] = q_heads, heads
    if d.v >= 25:
        attrs["left_window_size"], attrs["right_window_size"] = d.pick(None, -1, 0, 1, 2), d.pick(None, -1, 0, 1)
    outputs = [True]
    if past:
        outputs = [True, True, True]
    if d.chance(0.3):
        outputs = outputs + [False] * (3 - len(outputs)) + [True]
        attrs["qk_matmul_output_mode"] = d.pick(None, 0, 1, 2, 3)
    case = d.node(inputs, attrs, outputs=outputs, scale=1, rtol=4)
    case.precision = {10: np.dtype(np.float16), 16: BF16}.get(attrs["softmax_precision"])
    return case


@spec("RotaryEmbedding")
def rotary(d):
    batch, heads, n, size = d.batch(1, 2), d.dim(1, 3, 33), d.dim(1, 4), 2 * d.dim(1, 3, 100)
    part = d.pick(None, 0, 2 * d.int(1, size // 2))
    half = (part or size) // 2
    flat = d.chance(0.5)
    x = d.x(0, (batch, n, heads * size) if flat else (batch, heads, n, size))
    most = d.int(n, max(n, 6))
    ids = d.maybe(d.array((batch, n), I64, lo=0, hi=most - 1))
    shape = (batch, n, half) if ids is None else (most, half)
    return d.node([x, d.x(0, shape), d.x(0, shape), ids], {
        "num_heads": heads if flat else None, "rotary_embedding_dim": part, "interleaved": d.pick(None, 0, 1)}, scale=1)


@spec("LinearAttention")
def linear_attention(d):
    batch, heads, groups, n, k, v = d.batch(1, 2), d.int(1, 2), d.pick(1, 1, 2), d.dim(1, 4, 33), d.dim(1, 3, 33), d.dim(1, 3, 100)
    rule = d.pick(None, "linear", "gated", "delta", "gated_delta")
    t = d.type("T")
    s = d.type("S")
    kind = rule or "gated_delta"
    unit = lambda shape: d.array(shape, t, "unit")
    decay = None
    if kind in ("gated", "gated_delta"):
        decay = (-unit((batch, n, d.pick(heads, heads * k)))).astype(t)
    beta = unit((batch, n, d.pick(heads, 1))) if kind in ("delta", "gated_delta") else None
    inputs = [unit((batch, n, heads * groups * k)), unit((batch, n, heads * k)), unit((batch, n, heads * v)),
              d.maybe(d.array((batch, heads, k, v), s, "unit")), decay, beta]
    while inputs[-1] is None:
        inputs.pop()
    return d.node(inputs, {"q_num_heads": heads * groups, "kv_num_heads": heads, "update_rule": rule, "scale": d.maybe(d.pick(0.5, 1.0, 0.0)),
                           "chunk_size": d.maybe(d.int(1, 4))}, outputs=2, scale=1, rtol=4)


@spec("CausalConvWithState")
def causal_conv(d):
    batch, channels, n, k = d.batch(1, 2), d.dim(1, 3), d.dim(1, 5), d.int(1, 4)
    return d.node([d.x(0, (batch, channels, n)), d.x(0, (channels, 1, k)), d.maybe(d.x(0, (channels,))),
                   d.maybe(d.x(0, (batch, channels, k - 1)))], {"activation": d.pick(None, "none", "silu", "swish")},
                  outputs=2, scale=1)


# --- losses --------------------------------------------------------------------------------------------------------------------------------


def labels(d, classes, shape, ignore):
    y = d.array(shape, d.type("Tind"), lo=0, hi=classes - 1)
    if ignore is not None and y.size > 1:
        y = y.copy()
        y.reshape(-1)[d.int(1, y.size - 1)] = ignore
    return y


@spec("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d):
    n, c = d.dim(1, 3), d.dim(1, 4)
    rest = tuple(d.dim(1, 3) for _ in range(d.int(0, 3)))
    ignore = d.pick(None, None, d.int(0, c - 1), -1, 255)
    y = labels(d, c, (n,) + rest, ignore)
    if ignore is not None and np.all(y == ignore):
        y = np.where(y == ignore, (ignore + 1) % c if c > 1 and 0 <= ignore else 0, y).astype(y.dtype)
        ignore = None if np.all(y == ignore) else ignore
    x = d.x(0, (n, c) + rest, "normal")
    w = d.maybe(d.array((c,), x.dtype, lo=0.1, hi=2))
    return d.node([x, y, w], {"ignore_index": ignore, "reduction": d.pick(None, "none", "sum", "mean")},
                  outputs=d.int(1, 2) if d.op == "SoftmaxCrossEntropyLoss" else 1, scale=1)


# --- signals -------------------------------------------------------------------------------------------------------------------------------


@spec("DFT")
def dft(d):
    rank = d.int(2, 4)
    shape = [d.dim(1, 6, 513) for _ in range(rank)]
    shape[-1] = d.int(1, 2)
    if rank > 2 and d.chance(0.05):
        shape[0] = 0
    axis = d.int(-rank, -2) if d.chance(0.5) else d.int(0, rank - 2)
    if shape[axis] == 0:
        axis = -2
    length = d.maybe(d.int(1, 9))
    inverse = d.pick(None, 0, 1)
    one = d.pick(None, 0, 1) if shape[-1] == 1 and not inverse else None
    attrs = {"inverse": inverse, "onesided": one}
    size = None if length is None else np.array(length, dtype=d.type("T2"))
    x = d.x(0, shape)
    if d.v < 20:
        attrs["axis"] = axis if axis != 1 or d.chance(0.5) else None
        return d.node([x, size], attrs, scale=1, constants=(1,), rtol=4)
    where = None if axis == -2 and d.chance(0.5) else np.array(axis, dtype=np.int64)
    return d.node([x, size, where], attrs, scale=1, constants=(1, 2), rtol=4)


@spec("STFT")
def stft(d):
    length, step = d.dim(1, 6, 100), d.int(1, 4)
    n = d.dim(length, length + 10)
    n = max(n, length)
    t = d.type("T1")
    x = d.array((d.batch(1, 2), n, d.pick(1, 1, 2)), t)
    windowed = d.chance(0.6)
    window = d.array((length,), t) if windowed else None
    frame = np.array(length, dtype=d.type("T2")) if not windowed or d.chance(0.5) else None
    return d.node([x, np.array(step, dtype=d.type("T2")), window, frame], {"onesided": d.pick(None, 0, 1) if x.shape[2] == 1 else 0}, scale=1,
                  constants=(1, 3), rtol=4)


@spec("HannWindow", "HammingWindow", "BlackmanWindow")
def signal_window(d):
    target = d.maybe(code_of(d.type("T2", lambda t: is_float(t))))
    n = d.dim(1, 12, p=0.1)
    case = d.node([np.array(n, dtype=d.type("T1"))], {"periodic": d.pick(None, 0, 1), "output_datatype": target}, scale=1, constants=(0,))
    case.sizes = {n}
    return case


@spec("MelWeightMatrix")
def mel(d):
    target = d.maybe(code_of(d.type("T3", lambda t: is_float(t))))
    kind, number = d.type("T1"), d.type("T2")
    rate = d.pick(8000, 16000)
    bands, length = d.int(1, 8), d.pick(16, 32, 64, 64, 1026)
    case = d.node([np.array(bands, dtype=kind), np.array(length, dtype=kind), np.array(rate, dtype=kind),
                   np.array(d.pick(0, 20, 100)).astype(number), np.array(d.pick(rate // 4, rate // 2)).astype(number)], {"output_datatype": target},
                  scale=1, constants=(0, 1))
    case.sizes = {bands, length // 2 + 1}
    return case


# --- random numbers: what can be said of one draw -----------------------------------------------------------------------------------------


def within(low, high, shape, dtype):
    def judge(outputs):
        y = outputs[0]
        if y.dtype != dtype or y.shape != tuple(shape):
            return "%s%s, not %s%s" % (y.dtype, list(y.shape), dtype, list(shape))
        z = y.astype(np.float64)
        return None if np.all(z >= low) and np.all(z <= high) else "a number outside [%g, %g]" % (low, high)
    return judge


@spec("RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike")
def random_numbers(d):
    shape = d.shape(1, 3, 5, long=0.6)
    like = d.op.endswith("Like")
    param = "T2" if like else "T"
    target = d.maybe(d.type(param, is_float))
    uniform = "Uniform" in d.op
    attrs = {"dtype": None if target is None else code_of(target), "seed": d.maybe(d.float(0, 9)), "shape": None if like else list(shape)}
    if uniform:
        attrs["low"], attrs["high"] = d.pick(None, -1.0, 0.25), d.pick(None, 2.0, 1.5)
        low, high = attrs["low"] or 0.0, attrs["high"] or 1.0
    else:
        attrs["mean"], attrs["scale"] = d.pick(None, 1.0, -3.0), d.pick(None, 0.5, 2.0)
        mean, scale = attrs["mean"] or 0.0, attrs["scale"] or 1.0
    source = d.array(shape, d.type("T1", is_float)) if like else None
    case = d.node([source] if like else [], attrs)
    case.sizes = set(shape)
    dtype = target if target is not None else source.dtype if like else F32
    inside = within(low, high, shape, dtype) if uniform else within(mean - 9 * scale, mean + 9 * scale, shape, dtype)
    share = (lambda v: (v - low) / (high - low)) if uniform else lambda v: np.array([0.5 * math.erfc((mean - x) / scale / math.sqrt(2)) for x in v])
    case.judge = lambda y: inside(y) or distributed(y[0].astype(np.float64).ravel(), share, 0.01 if dtype.itemsize == 2 else 1e-6)
    return case


def distributed(v, share, slack):
    """What speaks against numbers of which share(x) are at most x, one independent of the other: less than 1 in 10^9 such do."""
    n = v.size
    if n < 100:
        return None
    f = share(np.sort(v))
    most = max(np.max(np.arange(1, n + 1) / n - f), np.max(f - np.arange(n) / n))
    if most > np.sqrt(22 / (2 * n)) + slack:  # Dvoretzky-Kiefer-Wolfowitz
        return "another distribution: %.3f apart from its own, of %d numbers" % (most, n)
    u = share(v) - 0.5  # each uniform, of variance 1/12
    for lag in (1, 2, 4, 8, 16):
        if abs(np.sum(u[lag:] * u[:-lag])) * 12 > 6.2 * np.sqrt(n - lag) + slack * n:
            return "each number tells of that %d further on" % lag
    return None


@spec("Bernoulli")
def bernoulli(d):
    shape = d.shape(0, 3, 5, long=0.5)
    target = d.maybe(d.type("T2", lambda t: t != STRING))
    x = d.x(0, shape, "unit")
    sure = d.chance(0.3)
    if sure:
        x = np.round(x.astype(np.float32)).astype(x.dtype)
    case = d.node([x], {"dtype": None if target is None else code_of(target), "seed": d.maybe(d.float(0, 9))})
    dtype = target if target is not None else x.dtype
    inside = within(0, 1, shape, dtype)
    case.judge = lambda y: inside(y) or (None if not sure or np.all(y[0].astype(np.float32) == x.astype(np.float32)) else "0 or 1 is certain"
                                         ) or counted(y[0].astype(np.float64), x.astype(np.float64))
    return case


def counted(hits, p):
    """What speaks against as many hits as probabilities say: less than 1 in 10^9 do."""
    spread, got = np.sqrt(np.sum(p * (1 - p))), np.sum(hits) - np.sum(p)
    return None if abs(got) <= 6.2 * spread + 3 else "%g hits where %g are likely, within %g" % (np.sum(hits), np.sum(p), spread)


@spec("Multinomial")
def multinomial(d):
    n, c, m = d.batch(1, 3), d.dim(1, 4, 33), d.dim(1, 5, p=0.5)
    target = d.maybe(d.pick(I32, I64))
    x = d.x(0, (n, c), "normal")
    case = d.node([x], {"dtype": None if target is None else code_of(target), "sample_size": None if m == 1 else m, "seed": d.maybe(d.float(0, 9))})
    case.sizes = {m}
    inside = within(0, c - 1, (n, m), target if target is not None else I32)

    def likely(y):
        p = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=1, keepdims=True))
        p = p / p.sum(axis=1, keepdims=True)
        for row in range(n):
            for k in range(c):
                got = counted(y[0][row] == k, np.full(m, p[row, k]))
                if got:
                    return "class %d of row %d: %s" % (k, row, got)
        return None

    case.judge = lambda y: inside(y) or likely(y)
    return case


# --- regions -------------------------------------------------------------------------------------------------------------------------------


@spec("NonMaxSuppression")
def nms(d):
    batch, classes, n = d.int(1, 2), d.int(1, 2), d.dim(1, 6, 513) if d.chance(0.95) else 0
    center = d.pick(None, 0, 1)
    a, b = d.array((batch, n, 2), F32, "unit"), d.array((batch, n, 2), F32, "unit")
    boxes = np.concatenate([a, b] if center or d.chance(0.3) else [np.minimum(a, b), np.maximum(a, b)], axis=-1)
    number = lambda v, t: None if v is None else np.array(v, dtype=t).reshape(d.pick((), (1,)))
    most = d.pick(None, 0, 1, 2, 10)
    scores = d.array((batch, classes, n), F32, "unit")
    return d.node([boxes, scores, number(most, np.int64), number(d.pick(None, 0.0, 0.3, 0.5, 1.0), np.float32),
                   number(d.pick(None, 0.2, 0.5), np.float32)], {"center_point_box": center})


# --- control flow --------------------------------------------------------------------------------------------------------------------------


def value(name, dtype=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def scalar(name, v, dtype):
    return helper.make_node("Constant", [], [name], value=helper.make_tensor("t", dtype, [], [v]))


@spec("If")
def conditional(d):
    """Branches that read outer values; shapes may differ."""
    rank = d.int(0, 3)
    shape = d.shape(rank, rank, 3)
    x = d.array(shape, F32)
    y = d.array(shape, F32)

    def branch(name):
        kind = d.int(0, 4)
        out = name + "_o"
        nodes = {0: [helper.make_node("Add", ["x1", "x2"], [out])], 1: [helper.make_node("Mul", ["x1", "x2"], [out])],
                 2: [helper.make_node("Identity", ["x1"], [out])], 3: [helper.make_node("Neg", ["x2"], [name + "_n"]),
                                                                      helper.make_node("Sub", [name + "_n", "x1"], [out])],
                 4: [helper.make_node("Concat", ["x1", "x2"], [out], axis=0)] if rank else [helper.make_node("Abs", ["x1"], [out])]}[kind]
        outs = [value(out, TensorProto.FLOAT, [None] * rank)]
        if two:
            nodes.append(helper.make_node("Shape", ["x1"], [name + "_s"]))
            outs.append(value(name + "_s", TensorProto.INT64, [None]))
        return helper.make_graph(nodes, name, [], outs)

    two = d.chance(0.4)
    condition = np.array(d.chance(0.5))
    if d.chance(0.3):
        condition = condition.reshape(1)
    return only(d.node([condition, x, y], {"then_branch": branch("t"), "else_branch": branch("e")}, outputs=2 if two else 1), 1)


def only(case, count):
    """The node takes the first inputs; the others are read by its bodies."""
    case.input_names = case.names()[:count]
    return case


@spec("Loop")
def loop(d):
    """sum = sum + x1 * i; stops after some trips, or when the condition says so; scans i and the sum."""
    trips = d.pick(None, 0, 1, 3, 5)
    stop = d.int(1, 4) if trips is None or d.chance(0.4) else None
    grow = d.chance(0.2)
    shape = d.shape(1, 2, 3)
    two = d.chance(0.2)
    nodes = [helper.make_node("Cast", ["i"], ["fi"], to=1), helper.make_node("Mul", ["x3", "fi"], ["p"])]
    nodes.append(helper.make_node("Concat", ["s", "p"], ["s_out"], axis=0) if grow else helper.make_node("Add", ["s", "p"], ["s_out"]))
    if stop is None:
        nodes.append(helper.make_node("Identity", ["c"], ["c_out"]))
    else:
        # before 9, Less compares floats alone
        nodes += [scalar("limit", stop, TensorProto.FLOAT), helper.make_node("Cast", ["i"], ["at"], to=TensorProto.FLOAT),
                  helper.make_node("Less", ["at", "limit"], ["c_out"])]
    outs = [value("c_out", TensorProto.BOOL, []), value("s_out", TensorProto.FLOAT, [None] * len(shape))]
    if two:  # the second state doubles
        nodes.append(helper.make_node("Add", ["t", "t"], ["t_out"]))
        outs.append(value("t_out", TensorProto.FLOAT, [None] * len(shape)))
    scans = d.int(0, 2) if not grow else d.int(0, 1)
    if scans >= 1:
        nodes.append(helper.make_node("Identity", ["i"], ["i_scan"]))
        outs.append(value("i_scan", TensorProto.INT64, []))
    if scans >= 2:
        nodes.append(helper.make_node("Identity", ["s_out"], ["s_scan"]))
        outs.append(value("s_scan", TensorProto.FLOAT, [None] * len(shape)))
    body = helper.make_graph(nodes, "body", [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []),
                                            value("s", TensorProto.FLOAT, [None] * len(shape))] + (
                                                [value("t", TensorProto.FLOAT, [None] * len(shape))] if two else []), outs)
    start = np.array(d.chance(0.85))
    condition = start if stop is not None or d.chance(0.5) else None
    if trips is None and condition is None:
        condition = start
    case = d.node([None if trips is None else np.array(trips, dtype=np.int64), condition, d.array(shape, F32), d.array(shape, F32)], {"body": body},
                  outputs=1 + two + scans)
    case.trips = 0 if stop is None else None

    def told(case):
        """What the body does, in numpy."""
        count, going, s, x = case.inputs
        most = 10 ** 9 if count is None else int(count.reshape(-1)[0]) if count.size else 0
        going, t, i, sums = True if going is None else bool(going.reshape(-1)[0]), x, 0, []
        while i < most and going:
            s = np.concatenate([s, x * np.float32(i)]) if grow else s + x * np.float32(i)
            t = t + t
            sums.append(s)
            going = going if stop is None else i < stop
            i += 1
        rows = [np.arange(i), None if scans < 2 else np.stack(sums) if sums else None][:scans]

        return None if any(r is None for r in rows) else [s] + [t] * two + rows  # what no trip made has no size

    case.oracle = told
    case = only(case, 3)
    if two:
        case.input_names.append("x3")
    return case


@spec("Scan")
def scan(d):
    """One or two scanned inputs, one state; directions, axes."""
    n, width = d.dim(1, 4, 100), d.dim(1, 3) if d.chance(0.97) else 0
    two = d.chance(0.5)
    count = 2 if two else 1
    old = d.v == 8
    rank = 2
    axes = [0] * count if old else [d.int(0, rank - 1) for _ in range(count)]
    out_axis = 0 if old else d.int(0, 1)
    nodes = [helper.make_node("Mul", ["a", "b"], ["ab"]) if two else helper.make_node("Identity", ["a"], ["ab"]),
             helper.make_node("Add", ["s", "ab"], ["s_out"]), helper.make_node("Tanh" if d.chance(0.5) else "Neg", ["s_out"], ["y"])]
    vec = lambda name: value(name, TensorProto.FLOAT, [width])
    body = helper.make_graph(nodes, "body", [vec("s"), vec("a")] + ([vec("b")] if two else []), [vec("s_out"), vec("y")])
    lead = (d.int(1, 2),) if old else ()
    xs = [d.array(lead + ((n, width) if a == 0 else (width, n)), F32) for a in axes]
    state = d.array(lead + (width,), F32)
    attrs = {"body": body, "num_scan_inputs": count}
    if old:
        attrs["directions"] = d.maybe([d.int(0, 1) for _ in range(count)])
        lens = d.maybe(d.ints([d.int(1, n) for _ in range(lead[0])]), 0.3)
        return d.node([lens, state] + xs, attrs, outputs=2)
    attrs["scan_input_directions"] = d.maybe([d.int(0, 1) for _ in range(count)])
    attrs["scan_output_directions"] = d.maybe([d.int(0, 1)])
    attrs["scan_input_axes"] = [a - rank if d.chance(0.3) and d.v >= 11 else a for a in axes] if any(axes) or d.chance(0.5) else None
    attrs["scan_output_axes"] = [out_axis] if out_axis or d.chance(0.5) else None
    return d.node([state] + xs, attrs, outputs=2)

"""Elementwise operators: arithmetic, comparison, logic, activations, casts."""
import numpy as np

from draw import BF16, BOOL, DTYPES, F32, I64, STRING, code_of, is_float, is_int
from registry import spec
from specs_sequence import counted


@spec("Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan",
      "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf", "Sigmoid", "Not", "BitwiseNot", "Relu", "Softplus", "Softsign",
      "HardSwish", "Mish", "Identity", "IsNaN", "Size")
def unary(d):
    return d.node([d.x(0, d.shape(), "wide")])


@spec("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "Swish")
def with_alpha(d):
    return d.node([d.x(0, d.shape(), "wide")], {"alpha": d.maybe(d.float(-2, 2) if d.op not in ("Celu",) else d.pick(0.5, 1.5, 2.0, -0.75))})


@spec("Selu")
def selu(d):
    return d.node([d.x(0, d.shape(), "wide")], {"alpha": d.maybe(d.float(0, 2)), "gamma": d.maybe(d.float(0, 2))})


@spec("HardSigmoid")
def hard_sigmoid(d):
    return d.node([d.x(0, d.shape(), "wide")], {"alpha": d.maybe(d.float(-1, 2)), "beta": d.maybe(d.float(-1, 2))})


@spec("Shrink")
def shrink(d):
    if is_int(d.of_input(0)):  # less than nothing has no unsigned number
        halves = (0.5,) if d.of_input(0).kind == "i" else ()
        return d.node([d.x(0, d.shape(), "small")], {"bias": d.maybe(d.pick(0.0, 1.0, *halves)), "lambd": d.pick(0.0, 1.0, 2.0)})
    return d.node([d.x(0, d.shape(), "wide")], {"bias": d.maybe(d.pick(0.0, 1.0, 0.5)), "lambd": d.maybe(d.pick(0.0, 1.0, 0.25))})


@spec("Gelu")
def gelu(d):
    return d.node([d.x(0, d.shape(), "wide")], {"approximate": d.pick(None, "none", "tanh")})


@spec("SwiGLU")
def swiglu(d):
    shape = d.shape()
    return d.node([d.x(0, shape), d.x(1, shape)], {"alpha": d.maybe(d.float(-2, 2))})


@spec("IsInf")
def is_inf(d):
    return d.node([d.x(0, d.shape(), "wide")], {"detect_negative": d.pick(None, 0, 1), "detect_positive": d.pick(None, 0, 1)})


@spec("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "BitwiseAnd",
      "BitwiseOr", "BitwiseXor")
def binary(d):
    a, b = d.pair()
    style = "small" if d.op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual") and d.chance(0.5) else "wide"
    x, y = d.x(0, a, style), d.x(1, b, style)
    if d.op == "Div" and is_int(y.dtype):
        y = np.where(y == 0, y.dtype.type(1), y)
        if y.dtype.kind == "i":  # the lowest number divided by -1 has no value
            y = np.where(y == -1, y.dtype.type(3), y)
    return d.node([x, y])


@spec("PRelu")
def prelu(d):
    full = d.shape(1)
    return d.node([d.x(0, full), d.x(1, d.broadcastable(full))])


@spec("Pow")
def power(d):
    a, b = d.pair()
    x = d.x(0, a, "wide") if is_float(d.of_input(0)) else d.x(0, a, lo=-3, hi=5)
    if is_float(d.of_input(1)):
        y = d.x(1, b, d.pick("small", "normal"))
    else:
        y = d.x(1, b, lo=0, hi=4)
    if not is_float(x.dtype):
        y = np.abs(np.round(y.astype(np.float32))).astype(y.dtype)
        x = np.where(x == 0, x.dtype.type(1), x)
    return d.node([x, y])


@spec("Mod")
def mod(d):
    a, b = d.pair()
    x, y = d.x(0, a, "small"), d.x(1, b, "small")
    fmod = 1 if is_float(x.dtype) else d.pick(None, 0, 1)
    if not is_float(x.dtype):
        y = np.where(y == 0, y.dtype.type(1), y)
    elif d.chance(0.5):
        x, y = d.x(0, a, "normal"), d.x(1, b, "wide")
    return d.node([x, y], {"fmod": fmod})


@spec("BitShift")
def bit_shift(d):
    a, b = d.pair()
    bits = d.of_input(0).itemsize * 8
    return d.node([d.x(0, a, "wide"), d.x(1, b, lo=0, hi=bits - 1)], {"direction": d.pick("LEFT", "RIGHT")})


@spec("Max", "Min", "Sum", "Mean")
def variadic(d):
    full = d.shape()
    return d.node([d.x(0, full if i == 0 or d.opset < 8 else d.broadcastable(full), "wide" if d.op in ("Max", "Min") else None)
                   for i in range(d.int(1, 4))])


@spec("Where")
def where(d):
    full = d.shape()
    shapes = [full, d.broadcastable(full), d.broadcastable(full)]
    order = d.rng.permutation(3)
    return d.node([d.x(i, shapes[order[i]]) for i in range(3)])


@spec("Clip")
def clip(d):
    low, high = d.pick(-1, -3, 2, None), d.pick(1, 0, 3, None)
    if d.v < 11:
        return d.node([d.x(0, d.shape(), "wide")],
                      {"min": None if low is None else float(low), "max": None if high is None else float(high)})
    dtype = d.of_input(0)
    number = lambda v: None if v is None else np.array(max(v, 0) if dtype.kind == "u" else v).astype(dtype)
    return d.node([d.x(0, d.shape(), "wide"), number(low), number(high)])


def castable(x, to, d):
    """Brings x to values whose conversion the standard defines."""
    if to.kind in "iu" or to.name in ("int4", "uint4", "int2", "uint2"):
        low, high = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}.get(to.name) or (
            max(np.iinfo(to).min, -120), min(np.iinfo(to).max, 120))
        if x.dtype == STRING:
            return d.array(x.shape, np.dtype(np.int8), lo=low, hi=high).astype(str).astype(object)
        if is_float(x.dtype) or x.dtype.name.startswith("float"):
            return np.clip(np.nan_to_num(x.astype(np.float32)), low, high).astype(x.dtype)
    elif x.dtype == STRING:
        if to == BOOL:
            return d.array(x.shape, np.dtype(np.int8), lo=0, hi=1).astype(str).astype(object)
        return np.vectorize(lambda v: d.pick("%g" % v, "%.2e" % v, "INF", "-INF", "NaN", "+3.5"), otypes=[object])(
            d.array(x.shape, F32, "normal")) if x.size else x
    return x


@spec("Cast", "CastLike")
def cast(d):
    like = d.op == "CastLike"
    source = d.pick(*d.allowed("T1"))
    target = d.pick(*d.allowed("T2"))
    if d.chance(0.3):
        source = F32
    if d.v >= 24 and d.chance(0.1):
        target = DTYPES["float8e8m0"]
    d.types["T1"], d.types["T2"] = source, target
    x = castable(d.x(0, d.shape(), "wide"), target, d)
    if "e8m0" in target.name:  # what becomes of negative numbers is left open
        if x.dtype == STRING:
            x = np.array([s.lstrip("-") for s in x.ravel()], dtype=object).reshape(x.shape)
        elif x.dtype.kind != "u" and x.dtype != BOOL:
            x = np.abs(x.astype(np.float32)).astype(x.dtype)
    if target == STRING and source.kind not in "iub":
        x = d.x(0, d.shape(), "small")
    saturate = d.pick(None, 0, 1) if d.v >= 19 else None
    mode = d.pick(None, "up", "down", "nearest") if d.v >= 24 and target.name == "float8_e8m0fnu" else None
    if like:
        case = d.node([x, d.x(1, d.shape(0, 2))], {"saturate": saturate, "round_mode": mode})
    else:
        case = d.node([x], {"to": code_of(target), "saturate": saturate, "round_mode": mode})
    case.as_numbers = target == STRING and source.kind not in "iub" and source != STRING
    return case


@spec("BitCast")
def bit_cast(d):
    source = d.type("T1")
    same = [t for t in d.allowed("T2") if t != BOOL and t != STRING and t.itemsize == source.itemsize and (
        ("int4" in t.name or "float4" in t.name) == ("int4" in source.name or "float4" in source.name)) and (
        ("int2" == t.name[-4:]) == ("int2" == source.name[-4:]))]
    return d.node([d.x(0, d.shape())], {"to": code_of(d.pick(*same) if same else source)})


@spec("Dropout")
def dropout(d):
    if d.v < 12:
        return d.node([d.x(0, d.shape())], {"ratio": d.maybe(d.float(0, 0.9))}, outputs=d.int(1, 2))
    ratio = d.pick(None, np.array(d.pick(0.0, 0.5, 0.25)).astype(d.of_input(1)))
    training = d.pick(None, np.array(False), np.array(True))
    x = d.x(0, d.shape(long=0.3))
    case = d.node([x, ratio, training], {"seed": d.maybe(d.int(0, 100))}, outputs=d.int(1, 2))
    share = 0.5 if ratio is None else float(ratio)
    if training is not None and training and share:
        case.judge = lambda y: dropped(x, share, y)
    return case


def dropped(x, share, outputs):
    """What speaks against a training run: what stays is x / (1 - ratio), and as much of it as the ratio says."""
    y = outputs[0].astype(np.float64)
    if y.shape != x.shape or outputs[0].dtype != x.dtype:
        return "%s%s of %s%s" % (outputs[0].dtype, list(y.shape), x.dtype, list(x.shape))
    whole = x.astype(np.float64) / (1 - share)
    # half a unit of the type, and the scale's own rounding; the least number of 8 bits, below which units do not shrink
    share_of, least = (0.07, 2.0**-9) if "e4m3" in x.dtype.name else (0.14, 2.0**-16) if "e5m2" in x.dtype.name else (1e-2, 0)
    near = np.abs(y - whole) <= share_of * np.abs(whole) + least
    stays = near if len(outputs) < 2 else outputs[1]
    if not np.all(np.where(stays, near, y == 0)) or (len(outputs) > 1 and outputs[1].dtype != bool):
        return "a number is neither kept and scaled, nor 0"
    stays = stays[x != 0]
    return counted(stays.astype(np.float64), np.full(stays.shape, 1 - share))

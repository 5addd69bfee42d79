"""Versions before operator set 7, which no evaluator runs: nodes of a later version of the same meaning, told in the words of the old one.

restate(op, version, seed, number) answers (the later node, the old one), or None where the draw has nothing of the kind."""
import copy

import numpy as np
from onnx import TensorProto

from draw import BOOL, F32, F64, F16, I32, I64, Draw
from registry import DOMAINS, SPECS

FLOATS = (F32, F64, F16)
# in version 1 alone attributes may list what is computed in place; it says nothing
IN_PLACE = ("Abs Ceil Clip Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log Max Mean Min Neg Reciprocal Relu Selu Sigmoid Sqrt "
            "Sum Tanh").split()
PAIRS = {"Add": FLOATS, "Sub": FLOATS, "Mul": FLOATS, "Div": FLOATS, "Pow": FLOATS, "And": (BOOL,), "Or": (BOOL,), "Xor": (BOOL,),
         "Equal": (BOOL, I32, I64), "Greater": FLOATS, "Less": FLOATS, "PRelu": FLOATS}
INTS_OF_6 = (I32, I64, np.dtype(np.uint32), np.dtype(np.uint64))
CHANGED = {}


def changed(op, *versions):
    def put(function):
        for v in versions:
            CHANGED[op, v] = function
        return function
    return put


def has(op, version):
    return (version == 1 and op in IN_PLACE) or (op in PAIRS and version in (1, 6)) or (op, version) in CHANGED


def restate(op, version, seed, number):
    d = Draw(op, seed, number, DOMAINS[op])
    if (op, version) in CHANGED:
        got = CHANGED[op, version](d, version)
    elif op in PAIRS:
        got = pair(d, version)
    else:
        got = in_place(d)
    if got is None:
        return None
    later, old = got
    old.opset = version
    return later, old


def drawn(d, v):
    """A node of version v with inputs of float types; None: it has others."""
    again = Draw(d.op, int(d.rng.integers(1 << 30)), d.number, d.domain, v)
    case = SPECS[d.op](again)
    floats = all(x is None or x.dtype in FLOATS for x in case.inputs)
    return (case, copy.deepcopy(case)) if floats and not case.before and not case.after else None


def in_place(d):
    got = drawn(d, 6)
    if not got:
        return None
    later, old = got
    if d.op == "Selu":  # their defaults have fewer digits
        for name, value in (("alpha", 1.6732), ("gamma", 1.0507)):
            later.attrs[name] = value if old.attrs.get(name) is None else old.attrs[name]
    if d.chance(0.5):
        old.attrs["consumed_inputs"] = [0] * len(old.inputs)
    return later, old


def pair(d, version):
    """The second lies along some axes of the first, from `axis` on."""
    types = PAIRS[d.op]
    if version == 6 and types == FLOATS and d.op != "PRelu":
        types += INTS_OF_6
    dtype = types[d.int(0, len(types) - 1)]
    rank = d.int(1, 4)
    shape = [d.int(1, 4) for _ in range(rank)]
    axis = d.int(0, rank - 1)
    last = d.int(axis + 1, rank)
    part = shape[axis:last]
    a = d.array(shape, dtype, lo=0 if d.op == "Pow" else None, hi=3 if d.op == "Pow" else None)
    b = d.array(part, dtype, lo=1 if dtype in INTS_OF_6 or d.op == "Pow" else None, hi=3 if d.op == "Pow" else 9 if dtype in INTS_OF_6 else None)
    if d.op == "PRelu":  # one for each channel
        axis, part = 1, shape[1:2]
        if rank < 2:
            return None
        b = d.array(part, dtype)
    later = d.node([a, b.reshape(part + [1] * (rank - axis - len(part)))], scale=1)
    old = copy.deepcopy(later)
    old.inputs[1] = b
    if d.op != "PRelu":
        old.attrs = {"broadcast": 1, "axis": axis if d.chance(0.7) else axis - rank if version == 7 else axis}
        if axis + len(part) == rank and d.chance(0.5):
            del old.attrs["axis"]  # it ends where the first ends
    if version == 1 and d.op in ("Add", "Sub", "Mul", "Div", "PRelu") and d.chance(0.5):
        old.attrs["consumed_inputs"] = [0, 0]
    return later, old


@changed("AveragePool", 1)
def average_pool(d, version):
    got = drawn(d, 7)
    if not got or got[0].attrs.get("count_include_pad"):
        return None
    got[1].attrs.pop("count_include_pad", None)
    return got


@changed("BatchNormalization", 1, 6)
def batch_normalization(d, version):
    got = drawn(d, 7)
    if got:
        got[1].attrs["is_test"] = 1
        if version == 1:
            got[1].attrs["consumed_inputs"] = [0, 0, 0, 1, 1]
    return got


@changed("Dropout", 1, 6)
def dropout(d, version):
    got = drawn(d, 7)
    if got:
        got[1].attrs["is_test"] = 1
    return got


@changed("Cast", 1)
def cast(d, version):
    case = SPECS["Cast"](Draw("Cast", int(d.rng.integers(1 << 30)), d.number, "", 6))
    if any(x.dtype == np.dtype(object) for x in case.inputs) or case.attrs["to"] == 8:
        return None
    old = copy.deepcopy(case)
    old.attrs["to"] = TensorProto.DataType.Name(case.attrs["to"])
    return case, old


@changed("Concat", 1)
def concat(d, version):
    got = drawn(d, 4)
    if not got or got[0].inputs[0].ndim < 2:
        return None
    later, old = got
    axis = later.attrs["axis"] % later.inputs[0].ndim
    later.attrs["axis"] = old.attrs["axis"] = axis
    if axis == 1:
        del old.attrs["axis"]
    return later, old


@changed("GRU", 1, 3)
@changed("LSTM", 1)
@changed("RNN", 1)
def recurrent(d, version):
    got = drawn(d, 7)
    if not got:
        case = SPECS[d.op](Draw(d.op, int(d.rng.integers(1 << 30)), d.number, "", 7))
        got = case, copy.deepcopy(case)  # lengths are whole numbers
    later, old = got
    if version == 1 and later.attrs.get("linear_before_reset"):
        return None
    if version == 1:
        old.attrs.pop("linear_before_reset", None)
    old.attrs["output_sequence"] = 1
    return later, old


@changed("Gemm", 1, 6)
def gemm(d, version):
    got = drawn(d, 7)
    if got:
        got[1].attrs["broadcast"] = 1
    return got


@changed("GlobalLpPool", 1)
@changed("LpPool", 1)
def lp_pool(d, version):
    got = drawn(d, 2)
    if got and got[0].attrs.get("p") is not None:
        got[1].attrs["p"] = float(got[0].attrs["p"])
    return got


@changed("Pad", 1)
def pad(d, version):
    got = drawn(d, 2)
    if got:
        got[1].attrs["paddings"] = got[1].attrs.pop("pads")
    return got


@changed("Reshape", 1)
def reshape(d, version):
    case = SPECS["Reshape"](Draw("Reshape", int(d.rng.integers(1 << 30)), d.number, "", 5))
    if case.inputs[0].dtype not in FLOATS:
        return None
    old = copy.deepcopy(case)
    old.attrs["shape"] = [int(n) for n in old.inputs.pop()]
    old.modes.pop()
    return case, old


@changed("Split", 1)
def split(d, version):
    got = drawn(d, 2)
    return got if got and got[0].attrs.get("split") is not None else None


@changed("Tile", 1)
def tile(d, version):
    dtype = d.pick(F32, F64, F16)
    x = d.array([d.int(1, 3) for _ in range(d.int(1, 4))], dtype)
    axis, times = d.int(0, x.ndim - 1), d.int(1, 3)
    later = d.node([x, np.array([times if i == axis else 1 for i in range(x.ndim)], np.int64)])
    old = copy.deepcopy(later)
    old.inputs = [x, np.array(times, dtype), np.array(axis, dtype)]
    old.modes = ["feed", "constant", "constant"]
    return later, old


@changed("Upsample", 1)
def upsample(d, version):
    x = d.array([1, d.int(1, 2), d.int(2, 3), d.int(2, 3)], F32)
    up, wide = d.pick(1.0, 2.0), d.pick(2.0, 3.0)
    mode = d.pick("nearest", "linear")
    later = d.node([x], {"scales": [1.0, 1.0, up, wide], "mode": mode}, scale=1)
    later.opset = 7
    old = copy.deepcopy(later)
    old.attrs = {"height_scale": up, "width_scale": wide, "mode": "bilinear" if mode == "linear" else None}
    return later, old

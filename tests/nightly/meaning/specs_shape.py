"""Operators that reduce, move, reshape, gather, order and scatter."""
import numpy as np
import onnx

from draw import BOOL, F32, I32, I64, LONG, STRING, code_of, is_float
from registry import spec

# --- reductions -------------------------------------------------------------------------------------------------------------------


def near_one(d, x):
    """Numbers of which many have a product that is far from either end."""
    return (np.exp(d.rng.normal(0, 0.02, x.shape)) * np.where(d.rng.random(x.shape) < 0.5, -1, 1)).astype(np.float32).astype(x.dtype)


@spec("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
      "ReduceSumSquare")
def reduce(d):
    rank = d.int(0, 4)
    shape = d.shape(rank, rank)
    x = d.x(0, shape)
    if d.op == "ReduceLogSum":
        x = np.abs(x)
    if d.op == "ReduceProd" and not is_float(x.dtype):  # ONNX Runtime's products of integers do not wrap
        x = np.clip(x, 0, 1).astype(x.dtype) + x.dtype.type(1)
        if d.long:
            x = np.where(np.arange(x.size).reshape(x.shape) % 40, x.dtype.type(1), x)
    elif d.op == "ReduceProd" and d.long:
        x = near_one(d, x)
    keep = d.pick(None, 0, 1)
    axes = d.axes(rank) if rank and d.chance(0.8) else None
    as_input = d.v >= (13 if d.op == "ReduceSum" else 18)
    if not as_input:
        return d.node([x], {"axes": axes, "keepdims": keep}, scale=1, summed=d.long if d.long and d.op == "ReduceSum" else 1)
    noop = d.pick(None, 0, 1)
    if axes is None and d.chance(0.5):
        axes = []
    return d.node([x, None if axes is None else d.ints(axes)], {"keepdims": keep, "noop_with_empty_axes": noop}, scale=1, constants=(1,),
                  summed=d.long if d.long and d.op == "ReduceSum" else 1)


@spec("ArgMax", "ArgMin")
def arg(d):
    rank = d.int(1, 4)
    axis = d.maybe(d.axis(rank) if d.v >= 11 else d.int(0, rank - 1))
    return d.node([d.x(0, d.filled(d.shape(rank, rank), axis or 0), "small")], {
        "axis": axis, "keepdims": d.pick(None, 0, 1),
        "select_last_index": d.pick(None, 0, 1) if d.v >= 12 else None})


@spec("CumSum", "CumProd")
def cumulative(d):
    rank = d.int(1, 4)
    axis = np.array(d.axis(rank), dtype=d.type("T2"))
    x = d.x(0, d.shape(rank, rank))
    if d.op == "CumProd" and d.long and is_float(x.dtype):
        x = near_one(d, x)
    return d.node([x, axis.reshape(d.pick((), (1,)) if d.op == "CumSum" and d.chance(0.3) else ())],
                  {"exclusive": d.pick(None, 0, 1), "reverse": d.pick(None, 0, 1)}, scale=1, constants=(1,), summed=d.long or 1)


@spec("Softmax", "LogSoftmax", "Hardmax")
def softmax(d):
    rank = d.int(1, 4)
    low = -rank if d.v >= 11 else 0
    if d.op == "Hardmax":
        x = d.x(0, d.shape(rank, rank, zero=0 if d.v < 13 else 0.02)[:-1] + (d.int(1, 4),), "small")
    else:
        x = d.x(0, d.shape(rank, rank))
    return d.node([x], {"axis": d.maybe(d.int(low, rank - 1)) if rank > 1 or d.v >= 13 else d.int(low, rank - 1)}, scale=1)


@spec("TopK")
def top_k(d):
    rank = d.int(1, 3)
    axis = d.axis(rank) if d.v >= 11 else d.int(0, rank - 1)
    shape = d.filled(d.shape(rank, rank, 6), axis)
    k = d.int(0 if d.chance(0.1) and d.v >= 10 else 1, shape[axis])
    x = d.x(0, shape, d.pick("small", "normal"))
    if d.v < 10:
        return d.node([x], {"k": k, "axis": axis if axis != rank - 1 or d.chance(0.5) else None}, outputs=2)
    case = d.node([x, d.ints([k])], {"axis": d.pick(axis) if axis % rank != rank - 1 or d.chance(0.6) else None,
                                     "largest": d.pick(None, 0, 1) if d.v >= 11 else None,
                                     "sorted": d.pick(None, 1, 1, 0) if d.v >= 11 else None}, outputs=2, constants=(1,))
    if case.attrs["sorted"] == 0:
        case.sort = (axis, case.attrs["largest"] == 0)  # in which order they come, the text leaves open
    return case


# --- movement ----------------------------------------------------------------------------------------------------------------------


@spec("Transpose")
def transpose(d):
    rank = d.int(0, 5)
    return d.node([d.x(0, d.shape(rank, rank))], {"perm": d.maybe([int(p) for p in d.rng.permutation(rank)], 0.8) if rank else None})


@spec("Concat")
def concat(d):
    rank = d.int(1, 4)
    axis = d.axis(rank) if d.v >= 11 else d.int(0, rank - 1)
    shape = list(d.shape(rank, rank))
    inputs = []
    for _ in range(d.int(1, 4)):
        shape[axis] = d.int(0 if d.chance(0.1) else 1, 4)
        inputs.append(d.x(0, shape))
    return d.node(inputs, {"axis": axis})


@spec("Split")
def split(d):
    rank = d.int(1, 4)
    axis = d.axis(rank) if d.v >= 11 else d.int(0, rank - 1)
    parts = d.int(1, 4)
    sizes = [d.int(0 if d.chance(0.1) else 1, 3) for _ in range(parts)]
    how = d.pick("sizes", "even", "count" if d.v >= 18 else "even")
    shape = list(d.shape(rank, rank))
    if how == "even":
        sizes = [sizes[0]] * parts
    shape[axis] = sum(sizes)
    if how == "count":
        shape[axis] = d.int(parts, 7)
        if -(-shape[axis] // parts) * (parts - 1) > shape[axis]:
            shape[axis] = parts
    attrs = {"axis": axis if axis != 0 or d.chance(0.5) else None}
    x = d.x(0, shape)
    if how == "count" or (how == "even" and d.v >= 18):
        attrs["num_outputs"] = parts
    if how != "sizes":
        return d.node([x], attrs, outputs=parts)
    if d.v >= 13:
        return d.node([x, d.ints(sizes)], attrs, outputs=parts, constants=(1,))
    attrs["split"] = sizes
    return d.node([x], attrs, outputs=parts)


@spec("Slice")
def slices(d):
    rank = d.int(1, 4)
    shape = d.shape(rank, rank, 6)
    axes = d.axes(rank) if d.v >= 10 else [a % rank for a in d.axes(rank)]
    if d.chance(0.3):
        axes = list(range(len(axes)))
    starts, ends, steps = [], [], []
    for a in axes:
        n = shape[a]
        step = d.pick(1, 1, 2, 3, -1, -2) if d.v >= 10 else 1
        lo, hi = d.int(-n - 2, n + 2), d.int(-n - 2, n + 2)
        if step < 0 and d.chance(0.3):
            hi = -(2 ** 31)
        elif step > 0 and d.chance(0.2):
            hi = 2 ** 31 - 1
        starts.append(lo)
        ends.append(hi)
        steps.append(step)
    implied = axes == list(range(len(axes))) and d.chance(0.6)
    x = d.x(0, shape)
    if d.v < 10:
        return d.node([x], {"starts": starts, "ends": ends, "axes": None if implied else axes})
    kind = d.type("Tind")
    put = lambda v: np.array(v, dtype=kind)
    some = any(s != 1 for s in steps)
    inputs = [x, put(starts), put(ends), None if implied else put(axes), put(steps) if some or d.chance(0.3) else None]
    while inputs[-1] is None:
        inputs.pop()
    return d.node(inputs, constants=(1, 2, 3, 4))


@spec("Pad")
def pad(d):
    rank = d.int(1, 4)
    mode = d.pick(None, "constant", "reflect", "edge", "wrap" if d.v >= 19 else "edge")
    axes = list(range(rank))
    if d.v >= 18 and d.chance(0.4):
        axes = d.axes(rank)
    shape = d.shape(rank, rank, 5, zero=0.02 if mode in (None, "constant") else 0)
    lo = -1 if d.chance(0.3) else 0
    pads = []
    for side in range(2):
        for a in axes:
            n = shape[a]
            most = 3 if mode in (None, "constant", "edge") else n if mode == "wrap" else n - 1
            low = max(lo, -((n - 1) // 2)) if n else 0
            if mode in ("reflect", "wrap"):
                low = 0
            pads.append(d.int(low, max(0, most)))
    x = d.x(0, shape)
    if d.v < 11:
        return d.node([x], {"mode": mode, "pads": pads, "value": d.maybe(d.float(-2, 2)) if mode in (None, "constant") else None})
    value = None
    if mode in (None, "constant") and d.chance(0.6):
        value = np.array(d.array((1,), x.dtype)[0], dtype=x.dtype)
    inputs = [x, d.ints(pads), value]
    if axes != list(range(rank)) or (d.v >= 18 and d.chance(0.2)):
        inputs.append(np.array(axes, dtype=d.pick(I32, I64)))
    return d.node(inputs, {"mode": mode}, constants=(1, 3))


@spec("CenterCropPad")
def center_crop_pad(d):
    rank = d.int(1, 4)
    axes = d.axes(rank) if d.chance(0.5) else None
    count = rank if axes is None else len(axes)
    return d.node([d.x(0, d.shape(rank, rank, 6)), np.array([d.int(1, 7) for _ in range(count)], dtype=d.type("Tind"))],
                  {"axes": axes}, constants=(1,))


@spec("DepthToSpace")
def depth_to_space(d):
    b = d.int(1, 3)
    return d.node([d.x(0, (d.batch(1, 2), b * b * d.int(1, 3), d.dim(1, 3), d.dim(1, 3)))],
                  {"blocksize": b, "mode": d.pick(None, "DCR", "CRD") if d.v >= 11 else None})


@spec("SpaceToDepth")
def space_to_depth(d):
    b = d.int(1, 3)
    return d.node([d.x(0, (d.batch(1, 2), d.dim(1, 3), b * d.dim(1, 3, 513), b * d.dim(1, 3, 513)))],
                  {"blocksize": b, "mode": d.pick(None, "DCR", "CRD") if d.v >= 28 else None})


@spec("Trilu")
def trilu(d):
    rank = d.int(2, 4)
    k = None if d.chance(0.3) else np.array(d.int(-6, 6), dtype=np.int64)
    return d.node([d.x(0, d.shape(rank, rank, 5)), k], {"upper": d.pick(None, 0, 1)}, constants=(1,))


@spec("Reshape")
def reshape(d):
    shape = d.shape(0, 4, 4, zero=0.04)
    zero_allowed = d.pick(None, 0, 1) if d.v >= 14 else None
    count = int(np.prod(shape))
    new, rest = [], max(count, 1)
    for _ in range(d.int(0, 4)):
        f = d.pick(*[k for k in range(1, min(rest, LONG[-1]) + 1) if rest % k == 0], rest)
        new.append(f)
        rest //= f
    new.insert(d.int(0, len(new)), rest)
    if len(new) == 1 and new[0] == 1 and d.chance(0.5):
        new = []
    if count == 0:
        if zero_allowed != 1 or not new:
            new = [0 if s == 0 else s for s in shape]
        else:
            new[d.int(0, len(new) - 1)] = 0
    else:
        if new and d.chance(0.6):
            new[d.int(0, len(new) - 1)] = -1
        if zero_allowed != 1:
            for i in range(min(len(new), len(shape))):
                if new[i] == shape[i] and d.chance(0.4):
                    new[i] = 0
    return d.node([d.x(0, shape), d.ints(new)], {"allowzero": zero_allowed}, constants=(1,))


@spec("Flatten")
def flatten(d):
    rank = d.int(1, 4)
    return d.node([d.x(0, d.shape(rank, rank))], {"axis": d.maybe(d.int(-rank if d.v >= 11 else 0, rank))})


@spec("Squeeze")
def squeeze(d):
    shape = [d.batch(2, 2) if d.chance(0.2) else d.pick(1, 1, d.dim(2, 3)) for _ in range(d.int(1, 5))]
    ones = [i for i, s in enumerate(shape) if s == 1]
    axes = None
    if ones and d.chance(0.7):
        axes = [a - (len(shape) if d.chance(0.4) and d.v >= 11 else 0) for a in d.rng.permutation(ones)[:d.int(1, len(ones))]]
        axes = [int(a) for a in axes]
    if d.v < 13:
        return d.node([d.x(0, shape)], {"axes": axes})
    return d.node([d.x(0, shape), None if axes is None else d.ints(axes)], constants=(1,))


@spec("Unsqueeze")
def unsqueeze(d):
    shape = d.shape(0, 3)
    n = d.int(1, 3)
    rank = len(shape) + n
    axes = [int(a) - (rank if d.chance(0.4) and d.v >= 11 else 0) for a in d.rng.permutation(rank)[:n]]
    if d.v < 13:
        return d.node([d.x(0, shape)], {"axes": axes})
    return d.node([d.x(0, shape), d.ints(axes)], constants=(1,))


@spec("Expand")
def expand(d):
    a, b = d.pair()
    return d.node([d.x(0, a), d.ints(list(b))], constants=(1,))


@spec("Tile")
def tile(d):
    rank = d.int(0, 4)
    return d.node([d.x(0, d.shape(rank, rank, 3)), d.ints([d.int(0 if d.chance(0.1) else 1, 3) for _ in range(rank)])], constants=(1,))


@spec("Shape")
def shape_of(d):
    rank = d.int(0, 4)
    return d.node([d.x(0, d.shape(rank, rank))], {"start": d.maybe(d.int(-6, 6)), "end": d.maybe(d.int(-6, 6))} if d.v >= 15 else {})


@spec("Constant")
def constant(d):
    from draw import tensor
    kind = d.pick("value", *(["sparse_value"] if d.v >= 11 else []),
                  *(["value_float", "value_int", "value_ints", "value_floats", "value_string", "value_strings"] if d.v >= 12 else []))
    if kind == "sparse_value":
        return sparse_constant(d)
    value = {"value": lambda: tensor(d.array(d.shape(0, 3), d.type("T")), "v"), "value_float": lambda: d.float(-2, 2),
             "value_int": lambda: d.int(-9, 9), "value_ints": lambda: [d.int(-9, 9) for _ in range(d.dim(1, 4))],
             "value_floats": lambda: [d.float(-9, 9) for _ in range(d.int(1, 4))], "value_string": lambda: d.pick("ab\0c", "", "zürich"),
             "value_strings": lambda: d.pick(["", "abc", "zürich"], ["a"], ["x"] * 20)}[kind]()
    case = d.node([], {kind: value})
    case.sizes = set(value.dims) if kind == "value" else {len(value)} if isinstance(value, list) else set()
    return case


def sparse_constant(d):
    """Values at places, as positions in the whole or as coordinates; the rest is zero."""
    from draw import tensor
    shape = d.shape(1, 3, zero=0)
    dtype = d.type("T", lambda t: t != STRING and not any(t.name.startswith(n) for n in ("int4", "uint4", "int2", "uint2", "float4")))
    places = np.sort(d.rng.permutation(int(np.prod(shape)))[:d.int(0 if d.chance(0.1) else 1, min(6, int(np.prod(shape))))])
    values = d.array((len(places),), dtype)
    where = places if d.chance(0.5) else np.stack(np.unravel_index(places, shape), axis=-1)
    sparse = onnx.SparseTensorProto(values=tensor(values, "v"), indices=tensor(where.astype(np.int64), "i"), dims=shape)
    full = np.zeros(int(np.prod(shape)), dtype)
    full[places] = values
    case = d.node([], {"sparse_value": sparse})
    case.oracle = lambda case: [full.reshape(shape)]
    return case


@spec("ConstantOfShape")
def constant_of_shape(d):
    from draw import tensor
    value = None if d.chance(0.3) else tensor(d.array((1,), d.type("T2")), "value")
    shape = d.shape(0, 4, long=0.3)
    case = d.node([d.ints(list(shape))], {"value": value}, constants=(0,))
    case.sizes = set(shape)
    return case


@spec("Range")
def number_range(d):
    dtype = d.type("T")
    delta = d.pick(1, 2, 3, -1, -2)
    if is_float(dtype) and d.chance(0.5):
        delta = d.pick(0.5, -0.25, 1.5)
    start = d.int(-5, 5)
    count = d.dim(-1, 6)
    if count > 16 and (dtype == np.int16 or dtype.itemsize == 2):  # that are told apart
        count, delta = 33, 1
    limit = start + count * delta
    if is_float(dtype) and d.chance(0.4):
        limit += 0.125
    case = d.node([np.array(v).astype(dtype) for v in (start, limit, delta)], {"stash_type": d.pick(None, 1, 11) if d.v >= 27 else None}, constants=(0, 1, 2))
    case.sizes = {max(0, count)}
    return case


@spec("EyeLike")
def eye_like(d):
    target = d.maybe(code_of(d.pick(*d.allowed("T2"))))
    return d.node([d.x(0, d.shape(2, 2, 6))], {"dtype": target, "k": d.maybe(d.int(-6, 6))})


# --- gather and scatter --------------------------------------------------------------------------------------------------------------


def indices(d, shape, n, dtype, negative=True):
    return np.asarray(d.rng.integers(-n if negative else 0, n, shape)).astype(dtype)


@spec("Gather")
def gather(d):
    rank = d.int(1, 4)
    shape = d.shape(rank, rank, zero=0)
    axis = d.axis(rank) if d.v >= 11 else d.int(0, rank - 1)
    return d.node([d.x(0, shape), indices(d, d.shape(0, 3, zero=0.03), shape[axis], d.type("Tind"), d.v >= 11)],
                  {"axis": axis if axis or d.chance(0.5) else None}, constants=(1,))


@spec("GatherElements")
def gather_elements(d):
    rank = d.int(1, 4)
    shape = d.shape(rank, rank, zero=0)
    axis = d.axis(rank)
    where = [d.int(1, s) for s in shape]
    where[axis] = d.dim(1, 5) if d.chance(0.95) else 0
    return d.node([d.x(0, shape), indices(d, where, shape[axis], d.type("Tind"))], {"axis": axis if axis or d.chance(0.5) else None})


def nd_indices(d, shape, lead, depth):
    return np.stack([indices(d, lead, shape[k], I64) for k in range(depth)], axis=-1) if depth else np.zeros(tuple(lead) + (0,), I64)


@spec("GatherND")
def gather_nd(d):
    rank = d.int(1, 4)
    shape = d.shape(rank, rank, zero=0)
    batch = d.int(0, rank - 1) if d.v >= 12 and d.chance(0.5) else 0
    depth = d.int(1, rank - batch)
    lead = shape[:batch] + d.shape(0, 2)
    return d.node([d.x(0, shape), nd_indices(d, shape[batch:], lead, depth)], {"batch_dims": batch if batch or (d.chance(0.3) and d.v > 11) else None})


@spec("OneHot")
def one_hot(d):
    depth = d.dim(1, 5, 100)
    shape = d.shape(0, 3)
    axis = d.maybe(d.int(-len(shape) - 1, len(shape)))
    index = d.type("T1")
    values = d.array((2,), d.type("T3"))
    lo = 0 if index.kind == "u" else -depth - 1
    where = np.asarray(d.rng.integers(lo, depth + 2, shape)).astype(index)
    count = np.array(depth).astype(d.type("T2")).reshape(d.pick((), (1,)))
    return d.node([where, count, values], {"axis": axis}, constants=(1,))


@spec("ReverseSequence")
def reverse_sequence(d):
    batch = d.int(0, 1)
    shape = d.filled(d.shape(2, 4, 5), 0, 1)
    return d.node([d.x(0, shape), d.ints([d.int(1, shape[1 - batch]) for _ in range(shape[batch])])],
                  {"batch_axis": batch if batch != 1 or d.chance(0.5) else None, "time_axis": 1 - batch if batch != 1 or d.chance(0.5) else None})


@spec("Compress")
def compress(d):
    rank = d.int(1, 4)
    axis = d.maybe(d.axis(rank) if d.v >= 11 else d.int(0, rank - 1))
    shape = d.filled(d.shape(rank, rank), *(range(rank) if axis is None else [axis]))
    n = int(np.prod(shape)) if axis is None else shape[axis]
    return d.node([d.x(0, shape), d.array((d.int(1, n),), BOOL)], {"axis": axis})


@spec("NonZero")
def non_zero(d):
    return d.node([d.x(0, d.shape(1, 4), "small")])


@spec("Unique")
def unique(d):
    rank = d.int(1, 3)
    shape = d.shape(rank, rank, 4, zero=0)
    x = d.x(0, shape, "small")
    if x.dtype.kind in "iuf" and x.dtype != STRING:
        x = np.clip(x, 0, 2).astype(x.dtype)
    axis = d.maybe(d.axis(rank))
    if axis is None and d.chance(0.05):
        x = x[:0]
    return d.node([x], {"axis": axis, "sorted": d.pick(None, 0, 1)}, outputs=d.int(1, 4))


def updates(d, shape, x, reduction):
    return near_one(d, np.empty(shape, x.dtype)) if reduction == "mul" and d.long and is_float(x.dtype) else d.array(shape, x.dtype)


def distinct(d, where, shape, axis):
    """Indices along axis without repetition within a line."""
    lines = np.stack([d.rng.permutation(shape[axis])[:where[axis]] for _ in range(int(np.prod(where)) // max(1, where[axis]))]) \
        if np.prod(where) else np.zeros((0, where[axis]))
    rest = [w for i, w in enumerate(where) if i != axis]
    got = np.moveaxis(lines.reshape(rest + [where[axis]]), -1, axis)
    return np.where(d.rng.random(got.shape) < 0.3, got - shape[axis], got)


@spec("Scatter", "ScatterElements")
def scatter_elements(d):
    rank = d.int(1, 4)
    shape = d.shape(rank, rank, zero=0)
    axis = d.axis(rank) if d.v >= 11 else d.int(0, rank - 1)
    at = axis % rank
    reduction = d.pick(None, "none", "add", "mul", *(["max", "min"] if d.v >= 18 else [])) if d.v >= 16 else None
    x = d.x(0, shape)
    if x.dtype in (BOOL, STRING):
        reduction = None
    where = [d.int(1, s) for s in shape]
    if d.chance(0.03):
        where[at] = 0
    if reduction in (None, "none"):
        index = distinct(d, where, shape, at)
        if d.v < 11:
            index = index % shape[at]
    else:
        index = indices(d, where, shape[at], I64)
    return d.node([x, index.astype(d.type("Tind")), updates(d, where, x, reduction)],
                  {"axis": axis if axis or d.chance(0.5) else None, "reduction": reduction}, scale=1)


@spec("ScatterND")
def scatter_nd(d):
    rank = d.int(1, 4)
    shape = d.shape(rank, rank, zero=0)
    depth = d.int(1, rank)
    reduction = d.pick(None, "none", "add", "mul", *(["max", "min"] if d.v >= 18 else [])) if d.v >= 16 else None
    x = d.x(0, shape)
    if x.dtype in (BOOL, STRING):
        reduction = None
    if reduction in (None, "none"):
        places = int(np.prod(shape[:depth]))
        n = d.int(1, places) if d.chance(0.95) else 0
        flat = d.rng.permutation(places)[:n]
        index = np.stack(np.unravel_index(flat, shape[:depth]), axis=-1).astype(I64)
        if d.chance(0.3):
            index = index - np.array(shape[:depth])
        if d.chance(0.3):
            index = index[None]
    else:
        index = nd_indices(d, shape, d.shape(1, 2, zero=0), depth)
    return d.node([x, index.astype(np.int64), updates(d, index.shape[:-1] + shape[depth:], x, reduction)], {"reduction": reduction}, scale=1)


@spec("TensorScatter")
def tensor_scatter(d):
    rank = d.int(3, 4)
    shape = list(d.shape(rank, rank, 4))
    axis = d.pick(*range(1, rank))
    shape[axis] = d.dim(2, 6)
    update = list(shape)
    mode = d.pick(None, "linear", "circular")
    update[axis] = d.int(1, shape[axis])
    top = shape[axis] - update[axis] if mode != "circular" else shape[axis] - 1
    where = d.maybe(d.ints([d.int(0, top) for _ in range(shape[0])]), 0.8)
    return d.node([d.x(0, shape), d.x(1, update), where],
                  {"axis": None if axis == rank - 2 and d.chance(0.5) else axis - rank if d.chance(0.5) else axis, "mode": mode})

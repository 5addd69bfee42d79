"""Convolutions, pooling, products, normalisations, resizing, sampling."""
import numpy as np

from draw import BF16, BOOL, F16, F32, I32, I64, STRING, code_of, is_float
from registry import spec

# --- convolutions and pools --------------------------------------------------------------------------------------------------------


def window(d, spatial, dilated=True, ceil=False, most=6, auto=True):
    """Attributes of a window and sizes of the input that it fits."""
    kernel = [d.int(1, 3) for _ in range(spatial)]
    strides = d.maybe([d.int(1, 3) for _ in range(spatial)])
    dilations = d.maybe([d.int(1, 2) for _ in range(spatial)]) if dilated else None
    reach = [(k - 1) * (1 if not dilations else dilations[i]) + 1 for i, k in enumerate(kernel)]
    attrs = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    pads = [0] * (2 * spatial)
    how = d.pick("pads", "pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    if not auto and how in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        how = "pads"
    if how in ("pads", "NOTSET"):
        pads = [d.int(0, max(0, min(2, kernel[i % spatial] - 1))) for i in range(2 * spatial)]
        attrs["pads"] = pads
    if how not in ("pads", "none"):
        attrs["auto_pad"] = how
    sizes = [max(1, d.dim(r, r + most, 513) - (pads[i] + pads[i + spatial])) for i, r in enumerate(reach)]
    if ceil:
        attrs["ceil_mode"] = d.pick(None, 0, 1)
    return attrs, sizes, kernel


@spec("Conv")
def conv(d):
    spatial = d.pick(1, 2, 2, 3)
    attrs, sizes, kernel = window(d, spatial)
    group = d.pick(1, 1, 2, 3)
    c, m = group * d.dim(1, 3), group * d.dim(1, 3)
    attrs["group"] = group if group > 1 or d.chance(0.5) else None
    if d.chance(0.3):
        attrs["kernel_shape"] = None
    return d.node([d.x(0, [d.batch(1, 2), c] + sizes), d.x(1, [m, c // group] + kernel), d.maybe(d.x(0, (m,)))], attrs, scale=1, summed=c * int(np.prod(kernel)))


@spec("ConvTranspose")
def conv_transpose(d):
    spatial = d.pick(1, 2, 2, 3)
    kernel = [d.int(1, 3) for _ in range(spatial)]
    strides = [d.int(1, 3) for _ in range(spatial)]
    dilations = [d.int(1, 2) for _ in range(spatial)] if d.chance(0.5) else None
    sizes = [d.dim(1, 4, 513) for _ in range(spatial)]
    group = d.pick(1, 1, 2, 3)
    c, m = group * d.dim(1, 3), d.dim(1, 3)
    more = [d.int(0, s - 1) for s in strides] if d.chance(0.4) else None
    full = [strides[i] * (sizes[i] - 1) + (more[i] if more else 0) + (kernel[i] - 1) * (dilations[i] if dilations else 1) + 1
            for i in range(spatial)]
    attrs = {"kernel_shape": d.maybe(kernel), "strides": strides if max(strides) > 1 or d.chance(0.5) else None, "dilations": dilations,
             "group": group if group > 1 or d.chance(0.5) else None, "output_padding": more}
    how = d.pick("pads", "none", "auto", "shape")
    if how == "pads":
        attrs["pads"] = [d.int(0, min(2, (full[i % spatial] - 1) // 2)) for i in range(2 * spatial)]
    elif how == "auto":
        attrs["auto_pad"] = d.pick("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    elif how == "shape":
        attrs["output_shape"] = [d.int(max(1, f - 2), f) for f in full]
        attrs["auto_pad"] = d.pick(None, "SAME_UPPER", "SAME_LOWER", "NOTSET")
    return d.node([d.x(0, [d.batch(1, 2), c] + sizes), d.x(1, [c, m] + kernel), d.maybe(d.x(0, (m * group,)))], attrs, scale=1, summed=c * int(np.prod(kernel)))


@spec("MaxPool")
def max_pool(d):
    spatial = d.pick(1, 2, 2, 3)
    attrs, sizes, _ = window(d, spatial, dilated=d.v >= 10, ceil=d.v >= 10)
    attrs["storage_order"] = d.pick(None, 0, 1) if d.v >= 8 and spatial > 1 else None
    x = d.x(0, [d.batch(1, 2), d.dim(1, 3)] + sizes)
    return d.node([x], attrs, outputs=d.int(1, 2) if d.v >= 8 else 1)


@spec("AveragePool")
def average_pool(d):
    attrs, sizes, _ = window(d, d.pick(1, 2, 2, 3), dilated=d.v >= 19, ceil=d.v >= 10)
    attrs["count_include_pad"] = d.pick(None, 0, 1)
    return d.node([d.x(0, [d.batch(1, 2), d.dim(1, 3)] + sizes)], attrs, scale=1)


@spec("LpPool")
def lp_pool(d):
    attrs, sizes, _ = window(d, d.pick(1, 2, 2, 3), dilated=d.v >= 18, ceil=d.v >= 18)
    attrs["p"] = d.pick(None, 1, 2, 3)
    return d.node([d.x(0, [d.batch(1, 2), d.dim(1, 3)] + sizes)], attrs, scale=1)


@spec("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d):
    return d.node([d.x(0, [d.batch(1, 3), d.dim(1, 3)] + [d.dim(1, 4) for _ in range(d.int(1, 3))])],
                  {"p": d.pick(None, 1, 2, 3)} if d.op == "GlobalLpPool" else {}, scale=1)


@spec("MaxUnpool")
def max_unpool(d):
    spatial = d.int(1, 3)
    kernel = [d.int(1, 3) for _ in range(spatial)]
    strides = [max(k, d.int(1, 3)) for k in kernel]
    if d.chance(0.3):
        strides = None
    sizes = [d.dim(1, 3, 513) for _ in range(spatial)]
    pads = None
    given = d.chance(0.3)
    if not given and d.chance(0.4):  # with output_shape they are ignored by the text, and are not by the standard's evaluator
        pads = [d.int(0, (k - 1) // 2) for k in kernel * 2]
    n, c = d.batch(1, 2), d.int(1, 2)
    result = [(s - 1) * st + k for s, st, k in zip(sizes, strides or [1] * spatial, kernel)]
    if pads:
        result = [max(1, r - pads[i] - pads[i + spatial]) for i, r in enumerate(result)]
        pads = pads if [r + pads[i] + pads[i + spatial] for i, r in enumerate(result)] == [
            (s - 1) * st + k for s, st, k in zip(sizes, strides or [1] * spatial, kernel)] else None
    if not pads:
        result = [(s - 1) * st + k for s, st, k in zip(sizes, strides or [1] * spatial, kernel)]
    shape, places = None, result
    if given:  # indices are those of the tensor without output_shape
        shape = d.ints([n, c] + [r + d.int(0, 2) for r in result])
    room = int(np.prod(places))
    want = int(np.prod(sizes))
    index = np.zeros((n * c, want), np.int64)
    for i in range(n * c):  # more values than places: what is written last there is not said, so these are the same
        index[i] = (d.rng.permutation(room)[:want] if want <= room else np.arange(want) % room) + i * room
    x = d.x(0, [n, c] + sizes)
    if want > room:
        x = np.broadcast_to(np.ones((), x.dtype), x.shape).copy()
    case = d.node([x, index.reshape([n, c] + sizes), shape], {"kernel_shape": kernel, "strides": strides, "pads": pads}, constants=(2,))
    case.oracle = unpooled
    return case


def unpooled(case):
    x, index, shape = case.inputs
    spatial = x.ndim - 2
    kernel, strides, pads = case.attrs["kernel_shape"], case.attrs.get("strides") or [1] * spatial, case.attrs.get("pads") or [0] * 2 * spatial
    sizes = [(x.shape[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + spatial] for i in range(spatial)]
    y = np.zeros(list(x.shape[:2]) + sizes, x.dtype)
    y.reshape(-1)[index.reshape(-1)] = x.reshape(-1)
    if shape is None:
        return [y]
    full = np.zeros(shape, x.dtype)
    full[tuple(slice(0, n) for n in y.shape)] = y
    return [full]


@spec("MatMul")
def matmul(d):
    m, k, n = d.dim(1, 4), d.dim(0 if d.chance(0.04) else 1, 5, p=0.1), d.dim(1, 4)
    a, b = d.pair(0, 2, 3)
    a, b = d.pick((a + (m, k), b + (k, n)), (a + (m, k), b + (k, n)), ((k,), b + (k, n)), (a + (m, k), (k,)), ((k,), (k,)))
    return d.node([d.x(0, a), d.x(1, b)], scale=1, summed=k)


@spec("Gemm")
def gemm(d):
    m, k, n = d.dim(1, 5), d.dim(0 if d.chance(0.04) else 1, 5), d.dim(1, 5)
    ta, tb = d.pick(None, 0, 1), d.pick(None, 0, 1)
    c = d.x(0, d.pick((m, n), (n,), (1, n), (m, 1), (1, 1), (1,), ()))
    if d.v >= 11:
        c = d.maybe(c, 0.7)
    fractions = () if not is_float(c.dtype if c is not None else d.of_input(0)) else (0.5,)  # what integers make of them is left open
    return d.node([d.x(0, (k, m) if ta else (m, k)), d.x(1, (n, k) if tb else (k, n)), c], {
        "transA": ta, "transB": tb, "alpha": d.maybe(d.pick(2.0, -1.0, 0.0, *fractions)), "beta": d.maybe(d.pick(2.0, -1.0, 0.0, *fractions))}, scale=1, summed=k)


@spec("Einsum")
def einsum(d):
    """Random terms over few letters; an ellipsis, repeated letters and spaces at times."""
    sizes = {c: d.dim(1, 3) if d.chance(0.97) else 0 for c in "abcdeXY"}
    dots = d.shape(0, 2, 3, zero=0) if d.chance(0.35) else None
    terms, shapes, used = [], [], []
    for _ in range(d.pick(1, 1, 2, 2, 2, 3)):
        letters = [d.pick(*sizes) for _ in range(d.int(0 if dots is not None else 1, 3))]
        if not d.chance(0.25):
            letters = list(dict.fromkeys(letters))
        shape = [sizes[c] for c in letters]
        text = "".join(letters)
        if dots is not None and (d.chance(0.8) or not letters):
            at = d.int(0, len(letters))
            extra = d.broadcastable(dots)
            text = "".join(letters[:at]) + "..." + "".join(letters[at:])
            shape = shape[:at] + list(extra) + shape[at:]
        terms.append(text)
        shapes.append(shape)
        used += letters
    equation = (", " if d.chance(0.2) else ",").join(terms)
    if d.chance(0.8):
        letters = list(dict.fromkeys(used))
        letters = [letters[i] for i in d.rng.permutation(len(letters))][:d.int(0, len(letters))]
        result = "".join(letters)
        if any("..." in t for t in terms):
            at = d.int(0, len(letters))
            result = "".join(letters[:at]) + "..." + "".join(letters[at:])
        equation += d.pick("->", " -> ") + result
    return d.node([d.x(0, s) for s in shapes], {"equation": equation}, scale=1, summed=d.long or 1)


@spec("Det")
def det(d):
    n = d.int(1, 4)
    x = d.x(0, d.shape(0, 2) + (n, n))
    if n > 1 and d.chance(0.1):  # a large one whose determinant is not
        n = d.stretched(100)
        q = np.linalg.qr(d.rng.normal(size=(n, n)))[0]
        x = np.stack([q, -q]).astype(x.dtype)
    return d.node([x], scale=1, atol=10)


# --- normalisations -----------------------------------------------------------------------------------------------------------------


@spec("BatchNormalization")
def batch_normalization(d):
    c = d.dim(1, 4)
    shape = [d.int(1, 3), c] + [d.dim(1, 3) for _ in range(d.int(0, 3))]
    if not d.v >= 14 and d.chance(0.05):
        shape[0] = 0
    per = (c,)
    training = 1 if d.v >= 14 and d.chance(0.3) else None
    attrs = {"epsilon": d.maybe(d.pick(1e-3, 0.1)), "momentum": d.maybe(d.pick(0.5, 0.99))}
    if d.v >= 14:
        attrs["training_mode"] = d.pick(None, 0) if not training else 1
    if d.v < 9:
        attrs["spatial"] = d.pick(None, 1, 0)
        if attrs["spatial"] == 0:  # statistics of each element of an image
            per = tuple(shape[1:])
    outputs = d.int(1, 3) if training else 1
    case = d.node([d.x(0, shape), d.x(1, per), d.x(2, per), d.x(3, per), d.x(4, per, "unit")], attrs, outputs=outputs, scale=1, rtol=2)
    if not training:
        case.oracle = by_statistics
    return case


def by_statistics(case):
    x, scale, bias, mean, var = (v.astype(np.float64) for v in case.inputs)
    if scale.ndim == 1:
        scale, bias, mean, var = (v.reshape([-1] + [1] * (x.ndim - 2)) for v in (scale, bias, mean, var))
    epsilon = 1e-5 if case.attrs.get("epsilon") is None else case.attrs["epsilon"]
    return [((x - mean) / np.sqrt(var + epsilon) * scale + bias).astype(case.inputs[0].dtype)]


@spec("InstanceNormalization")
def instance_normalization(d):
    c = d.dim(1, 4)
    return d.node([d.x(0, [d.batch(1, 3), c] + [d.dim(1, 4) for _ in range(d.int(1, 3))]), d.x(0, (c,)), d.x(0, (c,))],
                  {"epsilon": d.maybe(d.pick(1e-3, 0.1))}, scale=1, rtol=10)


@spec("GroupNormalization")
def group_normalization(d):
    groups = d.int(1, 3)
    c = groups * d.dim(1, 3)
    n = groups if d.v < 21 else c
    case = d.node([d.x(0, [d.batch(1, 3), c] + [d.dim(1, 3) for _ in range(d.int(1, 3))]), d.x(0, (n,)), d.x(0, (n,))],
                  {"epsilon": d.maybe(d.pick(1e-3, 0.1)), "num_groups": groups, "stash_type": stash(d) if d.v >= 21 else None}, scale=1, rtol=10)
    return stashed(case)


def stashed(case):
    case.precision = {None: F32, 1: F32, 10: F16, 11: np.dtype(np.float64), 16: BF16}[case.attrs["stash_type"]]
    return case


def stash(d):
    """The precision of statistics."""
    return d.pick(None, 1, 1, 10, 11, 16)


@spec("LayerNormalization")
def layer_normalization(d):
    rank = d.int(1, 4)
    axis = d.maybe(d.axis(rank))
    shape = d.shape(rank, rank)
    shape = d.filled(shape, *range((-1 if axis is None else axis) % rank, rank))
    tail = shape[(-1 if axis is None else axis) % rank:]
    bias = d.maybe(d.x(0, tail if d.chance(0.8) else d.broadcastable(tail)))
    case = d.node([d.x(0, shape), d.x(0, tail if d.chance(0.8) else d.broadcastable(tail)), bias],
                  {"axis": axis, "epsilon": d.maybe(d.pick(1e-3, 0.1)), "stash_type": stash(d)}, outputs=d.int(1, 3), scale=1, rtol=10)
    return stashed(case)


@spec("RMSNormalization")
def rms_normalization(d):
    rank = d.int(1, 4)
    axis = d.maybe(d.axis(rank))
    shape = d.shape(rank, rank)
    shape = d.filled(shape, *range((-1 if axis is None else axis) % rank, rank))
    tail = shape[(-1 if axis is None else axis) % rank:]
    case = d.node([d.x(0, shape), d.x(1, tail if d.chance(0.8) else d.broadcastable(tail))],
                  {"axis": axis, "epsilon": d.maybe(d.pick(1e-3, 0.1)), "stash_type": stash(d)}, scale=1, rtol=4)
    return stashed(case)


@spec("LpNormalization")
def lp_normalization(d):
    rank = d.int(1, 4)
    axis = d.maybe(d.axis(rank))
    return d.node([d.x(0, d.filled(d.shape(rank, rank), -1 if axis is None else axis))], {"axis": axis, "p": d.pick(None, 1, 2)})


@spec("MeanVarianceNormalization")
def mean_variance(d):
    axes = None if d.chance(0.4) else [a for a in d.axes(4)]
    return d.node([d.x(0, [d.dim(1, 4) for _ in range(4)], "normal")], {"axes": axes}, scale=1, rtol=20)


@spec("LRN")
def lrn(d):
    return d.node([d.x(0, [d.batch(1, 2), d.dim(1, 6)] + [d.dim(1, 3) for _ in range(d.pick(2, 2, 1, 3, 0))])],
                  {"size": d.int(1, 6), "alpha": d.maybe(d.pick(0.1, 1.0)), "beta": d.maybe(d.pick(0.5, 1.0)), "bias": d.maybe(d.pick(2.0, 1.0))})


# --- resizing and sampling -------------------------------------------------------------------------------------------------------------


def interpolable(t):
    """Types between whose values there are others; how integers round, no text says."""
    return is_float(t)


def scaled(d, n):
    """A scale and the size it gives."""
    s = d.pick(1.0, 2.0, 0.5, 1.5, 3.0, 0.75, 0.61, 2.5, 1.37, 0.34, 4.0) if n <= 16 else d.pick(1.0, 2.0, 0.5)  # whose positions are exact
    return s if int(n * s) >= 1 else 1.0


@spec("Resize")
def resize(d):
    if d.v == 10:
        return upsample(d)
    rank = d.pick(1, 2, 3, 4, 4)
    shape = [d.dim(1, 6, 513) for _ in range(rank)]
    mode = d.pick(None, "nearest", "linear", "linear", "cubic")
    free = [i for i in range(rank) if d.chance(0.7)]
    if rank == 4 and mode in ("linear", "cubic"):
        free = [2, 3]
    if mode == "cubic" and rank not in (2, 4) and d.chance(0.8):
        mode = "linear"
    axes = None
    if d.v >= 18 and d.chance(0.4):
        axes = [free[i] for i in d.rng.permutation(len(free))] or None
        if axes:
            axes = [a - rank if d.chance(0.3) else a for a in axes]
    over = axes if axes else list(range(rank))
    transform = d.pick(None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
                       *(["half_pixel_symmetric"] if d.v >= 19 else ["tf_half_pixel_for_nn"] if d.v < 13 else []))
    attrs = {"mode": mode, "coordinate_transformation_mode": transform, "axes": axes}
    if mode in (None, "nearest"):
        attrs["nearest_mode"] = d.pick(None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        attrs["cubic_coeff_a"] = d.pick(None, -0.5, -1.0)
        attrs["exclude_outside"] = d.pick(None, 0, 1)
    if d.v >= 18 and mode in ("linear", "cubic"):
        attrs["antialias"] = d.pick(None, 0, 1)
    if mode == "linear" and attrs.get("antialias"):
        attrs["exclude_outside"] = d.pick(None, 0, 1)
    roi = None
    if transform == "tf_crop_and_resize":
        roi = np.array([d.float(0, 0.4) if a % rank in free else 0 for a in over] +
                       [d.float(0.6, 1.2) if a % rank in free else 1 for a in over], dtype=F32).astype(d.pick(F32, *d.allowed("T2")))
        attrs["extrapolation_value"] = d.maybe(d.float(-2, 2))
    scales = [scaled(d, shape[a]) if a % rank in free else 1.0 for a in over]
    sizes = None
    if d.chance(0.4):
        sizes = [d.int(1, 8) if a % rank in free else shape[a] for a in over]
        if d.v >= 18 and d.chance(0.5) and transform != "tf_crop_and_resize" and (axes or len(free) == rank):
            attrs["keep_aspect_ratio_policy"] = d.pick("stretch", "not_larger", "not_smaller")
    smooth = mode in ("linear", "cubic")
    param = d.schema.inputs[0].type_str
    # text has no number to read outside of a region
    inputs = [d.array(shape, d.type(param, interpolable if smooth or roi is not None else None)), roi, np.array(scales, dtype=np.float32) if sizes is None else None, None if sizes is None else d.ints(sizes)]
    if d.v < 13:  # then roi and scales may not be left out
        inputs[1] = np.zeros(0, F32) if roi is None else roi.astype(F32)
        if inputs[2] is None:
            inputs[2] = np.zeros(0, F32)
    case = d.node(inputs, attrs, scale=0.2, rtol=4, constants=(1, 2, 3))
    case.precision = F32  # scales are f32, and no text says in what coordinates are computed
    return case


@spec("Upsample")
def upsample(d):
    mode = d.pick(None, "nearest", "linear")
    rank = d.pick(2, 4) if mode == "linear" else d.int(1, 4)
    shape = [d.dim(1, 5, 513) for _ in range(rank)]
    scales = [d.pick(1.0, 2.0, 3.0, 1.5, 2.5) if n <= 16 else d.pick(1.0, 2.0) for n in shape]
    if d.op == "Resize":
        scales = [scaled(d, n) for n in shape]
    if mode == "linear" and rank == 4:
        scales[0] = scales[1] = 1.0
    x = d.array(shape, d.type("T", interpolable if mode == "linear" else None))
    if d.v == 7:
        return d.node([x], {"mode": mode, "scales": scales}, scale=0.2, rtol=4)
    return d.node([x, np.array(scales, dtype=np.float32)], {"mode": mode}, scale=0.2, rtol=4, constants=(1,))


@spec("GridSample")
def grid_sample(d):
    spatial = d.pick(2, 2, 3) if d.v >= 20 else 2
    modes = ["linear", "nearest", "cubic"] if d.v >= 20 else ["bilinear", "nearest", "bicubic"]
    if spatial == 3:
        modes = modes[:2]
    n, c = d.int(1, 2), d.dim(1, 3)
    shape = [d.dim(1, 5, 513) for _ in range(spatial)]
    out = [d.dim(1, 4, 513) for _ in range(spatial)]
    grid = d.array([n] + out + [spatial], d.type("T2"), lo=-1.4, hi=1.4)
    if d.chance(0.3):
        grid = d.array([n] + out + [spatial], d.type("T2"), "small")
    mode = d.pick(None, *modes)
    return d.node([d.array([n, c] + shape, d.type("T1", None if mode == "nearest" else interpolable)), grid], {"mode": mode, "padding_mode": d.pick(None, "zeros", "border", "reflection"),
                                                  "align_corners": d.pick(None, 0, 1)}, scale=1, rtol=4)


@spec("AffineGrid")
def affine_grid(d):
    spatial = d.int(2, 3)
    n = d.batch(1, 2)
    sizes = [n, d.int(1, 3)] + [d.dim(1, 4, p=0.1) for _ in range(spatial)]
    case = d.node([d.x(0, (n, spatial, spatial + 1)), d.ints(sizes)], {"align_corners": d.pick(None, 0, 1)}, scale=1, constants=(1,))
    case.sizes = set(sizes)
    return case


@spec("DeformConv")
def deform_conv(d):
    kernel = [d.int(1, 3), d.int(1, 3)]
    strides = [d.int(1, 2), d.int(1, 2)]
    dilations = [d.int(1, 2), d.int(1, 2)]
    pads = [d.int(0, 1) for _ in range(4)]
    reach = [(k - 1) * e + 1 for k, e in zip(kernel, dilations)]
    if d.chance(0.2):
        strides = None
    if d.chance(0.2):
        dilations, reach = None, kernel
    if d.chance(0.2):
        pads = None
    sizes = [max(1, d.dim(r, r + 3, 33, 0.04) - (pads[i] + pads[i + 2] if pads else 0)) for i, r in enumerate(reach)]
    out = [(sizes[i] + (pads[i] + pads[i + 2] if pads else 0) - reach[i]) // (strides[i] if strides else 1) + 1 for i in range(2)]
    group, offset_group = d.pick(1, 1, 2), d.pick(1, 1, 2)
    c = 2 * d.int(1, 2) if max(group, offset_group) > 1 else d.dim(1, 3, 100)
    m = group * d.dim(1, 2, 513)
    n = d.batch(1, 2)
    k = kernel[0] * kernel[1]
    return d.node([d.x(0, [n, c] + sizes), d.x(0, [m, c // group] + kernel), d.x(0, [n, offset_group * k * 2] + out, lo=-1.5, hi=1.5),
                   d.maybe(d.x(0, (m,))), d.maybe(d.x(0, [n, offset_group * k] + out, "unit"))],
                  {"kernel_shape": d.maybe(kernel), "strides": strides, "dilations": dilations, "pads": pads,
                   "group": group if group > 1 or d.chance(0.5) else None,
                   "offset_group": offset_group if offset_group > 1 or d.chance(0.5) else None}, scale=1, rtol=4)


@spec("RoiAlign")
def roi_align(d):
    n, count = d.int(1, 2), d.dim(1, 3) if d.chance(0.95) else 0
    h, w = d.dim(2, 6, 100), d.dim(2, 6, 100)
    rois = []
    for _ in range(count):
        x, y = d.float(-1, w - 1), d.float(-1, h - 1)
        rois.append([x, y, x + d.float(0, w), y + d.float(0, h)])
    mode = d.pick(None, "output_half_pixel", "half_pixel") if d.v >= 16 else None
    return d.node([d.x(0, [n, d.int(1, 2), h, w]), np.array(rois).reshape(count, 4).astype(d.of_input(1)), d.array((count,), I64, lo=0, hi=n - 1)],
                  {"mode": d.pick(None, "avg", "max"), "output_height": d.maybe(d.int(1, 3)), "output_width": d.maybe(d.int(1, 3)),
                   "sampling_ratio": d.pick(None, 0, 1, 2), "spatial_scale": d.maybe(d.pick(0.5, 1.0)),
                   "coordinate_transformation_mode": mode}, scale=1, rtol=4)


@spec("MaxRoiPool")
def max_roi_pool(d):
    n, count = d.int(1, 2), d.dim(1, 3) if d.chance(0.95) else 0
    h, w = d.dim(2, 6, 100), d.dim(2, 6, 100)
    rois = []
    for _ in range(count):
        x, y = d.int(0, w - 1), d.int(0, h - 1)
        rois.append([d.int(0, n - 1), x, y, d.int(x, w - 1), d.int(y, h - 1)])
    return d.node([d.x(0, [n, d.int(1, 2), h, w]), np.array(rois).reshape(count, 5).astype(d.of_input(1))],
                  {"pooled_shape": [d.int(1, 3), d.int(1, 3)], "spatial_scale": d.maybe(d.pick(0.5, 1.0))})


@spec("Col2Im")
def col2im(d):
    spatial = d.pick(1, 2, 2, 3)
    attrs, sizes, kernel = window(d, spatial, auto=False)
    attrs.pop("kernel_shape")
    attrs.pop("auto_pad", None)
    pads = attrs.get("pads") or [0] * 2 * spatial
    dil, st = attrs["dilations"] or [1] * spatial, attrs["strides"] or [1] * spatial
    blocks = 1
    for i in range(spatial):
        blocks *= (sizes[i] + pads[i] + pads[i + spatial] - dil[i] * (kernel[i] - 1) - 1) // st[i] + 1
    d.type("T", lambda t: t not in (BOOL, STRING))
    return d.node([d.x(0, (d.batch(1, 2), d.dim(1, 2, 100) * int(np.prod(kernel)), blocks)), d.ints(sizes), d.ints(kernel)], attrs, scale=1,
                  constants=(1, 2))

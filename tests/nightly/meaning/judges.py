"""What the operators' texts say of valid nodes, in numpy and in f64: one more witness beside the two evaluators, and the only one where
neither answers. `says("Op ...")` puts a function(case) -> results in the table; None: it does not know this case."""
import numpy as np

import texts
from draw import STRING, is_float, is_int
from texts import attr

SAYS = {}


def says(*ops):
    def put(function):
        for op in ops:
            SAYS[op] = function
        return function
    return put


def wide(x):
    return x.astype(np.float64)


def like(x, y):
    with np.errstate(all="ignore"):
        return [np.asarray(y).astype(x.dtype)]


def witness(case):
    """Results by the text, or None."""
    if case.oracle:
        return case.oracle(case)
    if case.op not in SAYS:
        return None
    with np.errstate(all="ignore"):
        return SAYS[case.op](case)


# --- reductions, order -----------------------------------------------------------------------------------------------------------------------


@says("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduced(case):
    x = case.inputs[0]
    kind = case.op[6:]
    if not is_float(x.dtype) and kind not in ("Sum", "Prod", "Max", "Min", "L1", "SumSquare"):
        return None  # how whole numbers round, no text says
    axes = attr(case, "axes") if len(case.inputs) < 2 else None if case.inputs[1] is None else case.inputs[1].tolist()
    if not axes:
        if attr(case, "noop_with_empty_axes"):
            return None
        axes = range(x.ndim)
    axes = tuple(a % x.ndim for a in axes)
    keep = bool(attr(case, "keepdims", 1))
    v = wide(x) if is_float(x.dtype) else x
    if 0 in [x.shape[a] for a in axes] and kind in ("Max", "Min", "Mean"):
        return None
    same = {} if is_float(x.dtype) else {"dtype": x.dtype}
    if kind == "LogSumExp":
        top = np.max(v, axis=axes, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0)
        y = np.log(np.sum(np.exp(v - top), axis=axes, keepdims=True)) + top
        return like(x, y if keep else np.squeeze(y, axes))
    f = {"Sum": lambda: np.sum(v, axis=axes, keepdims=keep, **same), "Mean": lambda: np.mean(v, axis=axes, keepdims=keep),
         "Max": lambda: np.max(v, axis=axes, keepdims=keep), "Min": lambda: np.min(v, axis=axes, keepdims=keep),
         "Prod": lambda: np.prod(v, axis=axes, keepdims=keep, **same), "L1": lambda: np.sum(np.abs(v), axis=axes, keepdims=keep, **same),
         "L2": lambda: np.sqrt(np.sum(v * v, axis=axes, keepdims=keep)), "LogSum": lambda: np.log(np.sum(v, axis=axes, keepdims=keep)),
         "SumSquare": lambda: np.sum(v * v, axis=axes, keepdims=keep, **same)}[kind]
    return like(x, f())


@says("Softmax", "LogSoftmax", "Hardmax")
def softmax(case):
    x = case.inputs[0]
    axis = attr(case, "axis", -1 if case.opset >= 13 else 1)
    if case.opset < 13:  # from the axis on they are one
        axis = axis % x.ndim if x.ndim else 0
        v = wide(x).reshape(int(np.prod(x.shape[:axis])), -1) if x.size else None
        axis = 1
    else:
        v = wide(x) if x.size else None
    if v is None:
        return [x.copy()]
    if case.op == "Hardmax":
        y = np.zeros(v.shape)
        np.put_along_axis(y, np.expand_dims(np.argmax(v, axis), axis), 1, axis)
    else:
        v = v - np.max(v, axis, keepdims=True)
        y = v - np.log(np.sum(np.exp(v), axis, keepdims=True))
        y = y if case.op == "LogSoftmax" else np.exp(y)
    return like(x, y.reshape(x.shape))


@says("CumSum", "CumProd")
def cumulative(case):
    x, axis = case.inputs[0], int(case.inputs[1].reshape(()))
    f = np.cumsum if case.op == "CumSum" else np.cumprod
    v = wide(x) if is_float(x.dtype) else x
    v = np.flip(v, axis) if attr(case, "reverse") else v
    y = f(v, axis, dtype=v.dtype)
    if attr(case, "exclusive"):
        y = np.roll(y, 1, axis)
        y[(slice(None),) * (axis % x.ndim) + (slice(0, 1),)] = 0 if case.op == "CumSum" else 1
    y = np.flip(y, axis) if attr(case, "reverse") else y
    return like(x, y)


@says("Unique")
def unique(case):
    x = case.inputs[0]
    axis = attr(case, "axis")
    rows = [(v,) for v in x.ravel()] if axis is None else [tuple(np.take(x, [i], axis).ravel()) for i in range(x.shape[axis])]
    if any(v != v for r in rows for v in r):
        return None
    first, inverse, counts = {}, [], {}
    for i, r in enumerate(rows):
        first.setdefault(r, i)
        counts[r] = counts.get(r, 0) + 1
    order = sorted(first) if attr(case, "sorted", 1) else list(first)
    place = {r: i for i, r in enumerate(order)}
    inverse = [place[r] for r in rows]
    at = np.array([first[r] for r in order], dtype=np.int64)
    y = x.ravel()[at] if axis is None else np.take(x, at, axis)
    results = [y, at, np.array(inverse, dtype=np.int64), np.array([counts[r] for r in order], dtype=np.int64)]
    return results[:len(case.outputs)]


@says("OneHot")
def one_hot(case):
    x, depth, values = case.inputs
    depth, axis = int(depth.reshape(-1)[0]), attr(case, "axis", -1)
    axis = axis % (x.ndim + 1)
    at = np.expand_dims(np.trunc(wide(x)), axis)
    classes = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(x.ndim + 1)])
    hot = ((at == classes) | (at + depth == classes)) if depth else np.zeros(np.broadcast_shapes(at.shape, classes.shape), bool)
    return [np.where(hot, values[1:2], values[0:1]).astype(values.dtype)]


@says("Softsign")
def softsign(case):
    return like(case.inputs[0], wide(case.inputs[0]) / (1 + np.abs(wide(case.inputs[0]))))


@says("Flatten")
def flatten(case):
    x, axis = case.inputs[0], attr(case, "axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return [x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))]


# --- windows -----------------------------------------------------------------------------------------------------------------------------------


def frame(case, kernel, x):
    """strides, dilations, pads, sizes of the result."""
    n, spatial = x.shape[2:], x.ndim - 2
    strides, dilations = attr(case, "strides", [1] * spatial), attr(case, "dilations", [1] * spatial)
    pads, auto = list(attr(case, "pads", [0] * 2 * spatial)), attr(case, "auto_pad", "NOTSET")
    reach = [(k - 1) * e + 1 for k, e in zip(kernel, dilations)]
    sizes = []
    for i in range(spatial):
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            size = -(-n[i] // strides[i])
            more = max(0, (size - 1) * strides[i] + reach[i] - n[i])
            less = more // 2 if auto == "SAME_UPPER" else more - more // 2
            pads[i], pads[i + spatial] = less, more - less
        elif auto == "VALID":
            pads[i] = pads[i + spatial] = 0
            size = -(-(n[i] - reach[i] + 1) // strides[i])
        else:
            room = n[i] + pads[i] + pads[i + spatial] - reach[i]
            size = (-(-room // strides[i]) if attr(case, "ceil_mode") else room // strides[i]) + 1
            if attr(case, "ceil_mode") and (size - 1) * strides[i] >= n[i] + pads[i]:
                size -= 1  # it would begin in the padding at the end
        sizes.append(size)
    return strides, dilations, pads, sizes


@says("MaxPool", "AveragePool", "LpPool")
def pooled(case):
    x, kernel = case.inputs[0], attr(case, "kernel_shape")
    spatial = x.ndim - 2
    strides, dilations, pads, sizes = frame(case, kernel, x)
    v = wide(x)
    total = np.full(list(x.shape[:2]) + sizes, -np.inf if case.op == "MaxPool" else 0.0)
    counts, where = np.zeros(sizes), np.full(total.shape, -1, np.int64)
    weights = [int(np.prod(x.shape[i + 1:])) for i in range(x.ndim)]
    if attr(case, "storage_order"):
        weights[2:] = [int(np.prod(x.shape[2:i])) for i in range(2, x.ndim)]
    base = np.arange(x.shape[0]).reshape(-1, 1) * weights[0] + np.arange(x.shape[1]) * weights[1]
    p = attr(case, "p", 2)
    for at in np.ndindex(*kernel):
        places = [np.arange(sizes[i]) * strides[i] + at[i] * dilations[i] - pads[i] for i in range(spatial)]
        inside = [(q >= 0) & (q < x.shape[i + 2]) for i, q in enumerate(places)]
        padded = [q < x.shape[i + 2] + pads[i + spatial] for i, q in enumerate(places)]
        ok, counted = np.ones(sizes, bool), np.ones(sizes, bool)
        for i in range(spatial):
            shape = [-1 if j == i else 1 for j in range(spatial)]
            ok &= inside[i].reshape(shape)
            counted &= padded[i].reshape(shape)
        part = v
        number = np.zeros(sizes, np.int64)
        for i, q in enumerate(places):
            q = np.clip(q, 0, x.shape[i + 2] - 1)
            part = np.take(part, q, i + 2)
            number += (q * weights[i + 2]).reshape([-1 if j == i else 1 for j in range(spatial)])
        if case.op == "MaxPool":
            better = ok & (part > total)
            total = np.where(better, part, total)
            where = np.where(better, number + base.reshape(base.shape + (1,) * spatial), where)
        elif case.op == "LpPool":
            total += np.where(ok, np.abs(part) ** p, 0)
        else:
            total += np.where(ok, part, 0)
            counts += counted if attr(case, "count_include_pad") else ok
    if case.op == "MaxPool":
        if np.isinf(total).any() and not is_float(x.dtype) or (where < 0).any() and len(case.outputs) > 1:
            return None
        return like(x, total) + [where][:len(case.outputs) - 1]
    return like(x, total ** (1 / p) if case.op == "LpPool" else total / counts)


@says("Conv")
def conv(case):
    from specs_other import convolution
    x, w, b = (list(case.inputs) + [None])[:3]
    y = convolution(wide(x), wide(w), case.attrs)
    return like(x, y if b is None else y + wide(b).reshape([1, -1] + [1] * (x.ndim - 2)))


@says("ConvInteger")
def conv_integer(case):
    from specs_other import convolution
    x, w, zx, zw = (list(case.inputs) + [None, None])[:4]
    v = wide(x) - (0 if zx is None else float(zx.reshape(())))
    k = wide(w) - (0 if zw is None else wide(zw).reshape([-1] + [1] * (w.ndim - 1)))
    return [convolution(v, k, case.attrs).astype(np.int32)]


def transposed_reach(case):
    """How far an element reaches on each spatial axis, with output_padding."""
    kernel = case.inputs[1].shape[2:]
    dilations, more = attr(case, "dilations", [1] * len(kernel)), attr(case, "output_padding", [0] * len(kernel))
    return [(k - 1) * d + 1 + m for k, d, m in zip(kernel, dilations, more)]


@says("ConvTranspose")
def conv_transpose(case):
    x, w, b = (list(case.inputs) + [None])[:3]
    spatial, kernel, group = x.ndim - 2, w.shape[2:], attr(case, "group", 1)
    strides, dilations = attr(case, "strides", [1] * spatial), attr(case, "dilations", [1] * spatial)
    more, pads, auto = attr(case, "output_padding", [0] * spatial), list(attr(case, "pads", [0] * 2 * spatial)), attr(case, "auto_pad", "NOTSET")
    full = [strides[i] * (x.shape[i + 2] - 1) + more[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(spatial)]
    wanted = attr(case, "output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(x.shape[2:], strides)]
    if wanted is not None:
        wanted = list(wanted)[-spatial:]
        for i in range(spatial):
            total = full[i] - wanted[i]
            pads[i] = total // 2 if auto == "SAME_UPPER" else total - total // 2
            pads[i + spatial] = total - pads[i]
    m = w.shape[1]
    y = np.zeros([x.shape[0], m * group] + full)
    v, k = wide(x), wide(w)
    for at in np.ndindex(*kernel):
        place = tuple(slice(a * e, a * e + (n - 1) * s + 1, s) for a, e, n, s in zip(at, dilations, x.shape[2:], strides))
        for g in range(group):
            own = slice(g * x.shape[1] // group, (g + 1) * x.shape[1] // group)
            y[(slice(None), slice(g * m, (g + 1) * m)) + place] += np.einsum("nc...,cm->nm...", v[:, own], k[(own, slice(None)) + at])
    y = np.pad(y, [(0, 0)] * 2 + [(max(-pads[i], 0), max(-pads[i + spatial], 0)) for i in range(spatial)])
    y = y[(slice(None), slice(None)) + tuple(slice(max(pads[i], 0), n - max(pads[i + spatial], 0)) for i, n in enumerate(y.shape[2:]))]
    return like(x, y if b is None else y + wide(b).reshape([1, -1] + [1] * spatial))


@says("GlobalAveragePool", "GlobalMaxPool")
def global_pool(case):
    x = case.inputs[0]
    if not x.size:
        return None
    f = np.max if case.op == "GlobalMaxPool" else np.mean
    return like(x, f(wide(x), axis=tuple(range(2, x.ndim)), keepdims=True))


SAYS["GlobalLpPool"] = texts.global_lp_pool
SAYS["LRN"] = texts.lrn
SAYS["Mean"] = texts.mean
SAYS["Scan"] = lambda case: None if case.opset == 8 and case.inputs[0] is not None else texts.scan(case)
SAYS["MelWeightMatrix"] = lambda case: texts.mel_weight_matrix(case) if case.inputs[3].dtype.itemsize > 2 else None

# --- products, norms -----------------------------------------------------------------------------------------------------------------------------


@says("MatMul")
def matmul(case):
    a, b = case.inputs
    if is_float(a.dtype):
        return like(a, np.matmul(wide(a), wide(b)))
    return [np.asarray(np.matmul(a, b)).astype(a.dtype)]


@says("Gemm")
def gemm(case):
    a, b, c = case.inputs
    if not is_float(a.dtype):
        return None
    v = attr(case, "alpha", 1.0) * ((wide(a).T if attr(case, "transA") else wide(a)) @ (wide(b).T if attr(case, "transB") else wide(b)))
    return like(a, v if c is None else v + attr(case, "beta", 1.0) * wide(c))


@says("MatMulInteger")
def matmul_integer(case):
    a, b, za, zb = (None if x is None else x.astype(np.int64) for x in (list(case.inputs) + [None, None])[:4])
    if za is not None:
        a = a - (za.reshape(-1, 1) if za.size > 1 else za.reshape(()))
    if zb is not None:
        b = b - (zb if zb.size > 1 else zb.reshape(()))
    return [np.asarray(np.matmul(a, b)).astype(np.int32)]


def stashed(case):
    import onnx
    return onnx.helper.tensor_dtype_to_np_dtype(attr(case, "stash_type", 1))


@says("LayerNormalization")
def layer_norm(case):
    x, scale, bias = (list(case.inputs) + [None])[:3]
    axes = tuple(range(attr(case, "axis", -1) % x.ndim, x.ndim))
    mean = np.mean(wide(x), axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(np.mean((wide(x) - mean) ** 2, axis=axes, keepdims=True) + attr(case, "epsilon", 1e-5))
    y = (wide(x) - mean) * inverse * wide(scale)
    results = like(x, y if bias is None else y + wide(bias)) + [mean.astype(stashed(case)), inverse.astype(stashed(case))]
    return results[:len(case.outputs)]


@says("RMSNormalization")
def rms_norm(case):
    x, scale = case.inputs
    axes = tuple(range(attr(case, "axis", -1) % x.ndim, x.ndim))
    return like(scale, wide(x) / np.sqrt(np.mean(wide(x) ** 2, axis=axes, keepdims=True) + attr(case, "epsilon", 1e-5)) * wide(scale))


@says("GroupNormalization", "InstanceNormalization")
def group_norm(case):
    x, scale, bias = case.inputs
    groups = attr(case, "num_groups", x.shape[1])
    if not x.size:
        return [x.copy()]
    v = wide(x).reshape(x.shape[0], groups, -1)
    v = (v - np.mean(v, axis=2, keepdims=True)) / np.sqrt(np.var(v, axis=2, keepdims=True) + attr(case, "epsilon", 1e-5))
    if scale.size != x.shape[1] or (case.op == "GroupNormalization" and case.opset < 21):  # one for each group
        return like(x, (v * wide(scale).reshape(1, -1, 1) + wide(bias).reshape(1, -1, 1)).reshape(x.shape))
    per = [1, -1] + [1] * (x.ndim - 2)
    return like(x, v.reshape(x.shape) * wide(scale).reshape(per) + wide(bias).reshape(per))


@says("MeanVarianceNormalization")
def mean_variance(case):
    x, axes = wide(case.inputs[0]), tuple(attr(case, "axes", [0, 2, 3]))
    v = x - np.mean(x, axis=axes, keepdims=True)
    deviation = np.sqrt(np.mean(v * v, axis=axes, keepdims=True))
    if (deviation < 1e-5 * np.max(np.abs(x), initial=0)).any() and deviation.any():
        return None  # what little there is, is rounding
    return like(case.inputs[0], v / (deviation + 1e-9))


@says("LpNormalization")
def lp_norm(case):
    x, p, axis = wide(case.inputs[0]), attr(case, "p", 2), attr(case, "axis", -1)
    norm = np.sum(np.abs(x) ** p, axis=axis, keepdims=True) ** (1 / p)
    return like(case.inputs[0], np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)))


# --- resizing ------------------------------------------------------------------------------------------------------------------------------------


def cubic(t, a):
    t = np.abs(t)
    return np.where(t <= 1, ((a + 2) * t - (a + 3)) * t * t + 1, np.where(t < 2, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a, 0))


def unsure(at, mode):
    """Whether the nearest may be another one when coordinates are rounded otherwise."""
    part = at - np.floor(at)
    distance = np.abs(part - 0.5) if mode.startswith("round") else np.minimum(part, 1 - part)
    return bool(((distance < 1e-4 * np.maximum(1, np.abs(at))) & (at * 64 != np.round(at * 64))).any())


@says("Resize", "Upsample")
def resize(case):
    x = case.inputs[0]
    if x.size == 0:
        return None
    inputs = [None if v is None or v.size == 0 else v for v in (list(case.inputs) + [None] * 4)[:4]]
    early = case.op == "Upsample" or case.opset == 10
    roi, scales, sizes = (None, inputs[1] if attr(case, "scales") is None else np.array(attr(case, "scales")), None) if early else inputs[1:]
    axes = [a % x.ndim for a in attr(case, "axes", range(x.ndim))]
    mode, form = attr(case, "mode", "nearest"), attr(case, "coordinate_transformation_mode", "asymmetric" if early else "half_pixel")
    crop = form == "tf_crop_and_resize"
    region = [(0.0, 1.0)] * len(axes) if roi is None or not crop else [(float(roi[i]), float(roi[i + len(axes)])) for i in range(len(axes))]
    policy = attr(case, "keep_aspect_ratio_policy", "stretch")
    if sizes is not None:
        sizes = [int(s) for s in sizes]
        scales = [s / x.shape[a] for s, a in zip(sizes, axes)]
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(scales)
            scales = [one] * len(axes)
            sizes = [int(np.floor(one * x.shape[a] + 0.5)) for a in axes]
    else:
        scales = [float(np.float32(s)) for s in scales]
        long = [x.shape[a] * (end - start) * s for a, s, (start, end) in zip(axes, scales, region)]
        if any(abs(v - round(v)) < 1e-5 * max(1, v) and v != round(v) for v in long):
            return None  # whether it just reaches a whole number
        sizes = [int(np.floor(v)) for v in long]
    v, outside = (x if not is_float(x.dtype) else wide(x)), np.zeros([1] * x.ndim, bool)
    if mode != "nearest" and not is_float(x.dtype):
        return None
    for axis, scale, size, (start, end) in zip(axes, scales, sizes, region):
        n, i = x.shape[axis], np.arange(size)
        exact = n * scale
        if form == "half_pixel":
            at = (i + 0.5) / scale - 0.5
        elif form == "half_pixel_symmetric":
            at = n / 2 * (1 - size / exact) + (i + 0.5) / scale - 0.5
        elif form == "pytorch_half_pixel":
            at = (i + 0.5) / scale - 0.5 if size > 1 else np.zeros(size)
        elif form == "align_corners":
            if exact == 1 or (size == 1 and exact != size):
                return None
            at = i * (n - 1) / (exact - 1)
        elif form == "asymmetric":
            at = i / scale
        elif crop:
            at = start * (n - 1) + i * (end - start) * (n - 1) / (size - 1) if size > 1 else np.full(size, 0.5 * (start + end) * (n - 1))
            near = np.minimum(np.abs(at), np.abs(at - (n - 1)))
            if ((near < 1e-5 * n) & (near > 0)).any():
                return None
            outside = outside | ((at < 0) | (at > n - 1)).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        else:  # tf_half_pixel_for_nn
            at = (i + 0.5) / scale
        if mode == "nearest":
            how = attr(case, "nearest_mode", "floor" if early else "round_prefer_floor")
            if early and scale < 1:
                return None  # how these round, the early texts do not say
            if unsure(at, how):
                return None
            place = {"round_prefer_floor": lambda: np.ceil(at - 0.5), "round_prefer_ceil": lambda: np.floor(at + 0.5),
                     "floor": lambda: np.floor(at), "ceil": lambda: np.ceil(at)}[how]()
            v = np.take(v, np.clip(place, 0, n - 1).astype(int), axis)
            continue
        stretch = min(scale, 1.0) if attr(case, "antialias") else 1.0
        if mode == "linear":
            reach, weigh = 1 / stretch, lambda t: np.maximum(0, 1 - np.abs(t))
        else:
            reach, weigh = 2 / stretch, lambda t: cubic(t, attr(case, "cubic_coeff_a", -0.75))
        low, high = int(np.floor(np.min(at, initial=0) - reach)) - 1, int(np.ceil(np.max(at, initial=0) + reach)) + 1
        taps = np.arange(low, high + 1)
        w = weigh((taps[None] - at[:, None]) * stretch)
        if attr(case, "exclude_outside"):
            w = np.where((taps < 0) | (taps >= n), 0, w)
        total = w.sum(1, keepdims=True)
        if (np.abs(total) < 1e-6).any():
            return None
        if attr(case, "antialias") or attr(case, "exclude_outside"):
            w = w / total
        matrix = np.zeros((size, n))
        for k, t in enumerate(np.clip(taps, 0, n - 1)):
            matrix[:, t] += w[:, k]
        v = np.moveaxis(np.tensordot(matrix, v, (1, axis)), 0, axis)
    if crop:
        v = np.where(outside, np.asarray(attr(case, "extrapolation_value", 0.0)).astype(v.dtype), v)
    return [np.asarray(v).astype(x.dtype)]


# --- strings -------------------------------------------------------------------------------------------------------------------------------------


@says("StringSplit")
def string_split(case):
    x, by, most = case.inputs[0], attr(case, "delimiter"), attr(case, "maxsplit", -1)
    if x.size == 0:
        return None
    parts = [s.split(by or None, most) for s in x.ravel()]
    longest = max(len(p) for p in parts)
    y = np.array([p + [""] * (longest - len(p)) for p in parts], dtype=object).reshape(x.shape + (longest,))
    return [y, np.array([len(p) for p in parts], dtype=np.int64).reshape(x.shape)]

"""What the texts say of nodes that neither evaluator takes: results in numpy, or a node of the same meaning that may be asked instead."""
import copy

import numpy as np

from onnx import helper

import recurrent
from draw import STRING


def attr(case, name, default=None):
    v = case.attrs.get(name)
    return default if v is None else v


def same_as(case, inputs=None, opset=None, **attrs):
    """A copy of the case with other inputs, operator set or attributes."""
    other = copy.copy(case)
    other.attrs = dict(case.attrs, **attrs)
    other.inputs = list(case.inputs if inputs is None else inputs)
    other.opset = case.opset if opset is None else opset
    return other


def lrn(case):
    x = case.inputs[0]
    v = x.astype(np.float64)
    size, channels = attr(case, "size"), x.shape[1]
    squares = np.zeros_like(v)
    for c in range(channels):
        first, last = max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2)  # ceil((size - 1) / 2) is size // 2
        squares[:, c] = np.sum(v[:, first:last + 1] ** 2, axis=1)
    alpha, beta, bias = (float(np.float32(attr(case, n, d))) for n, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    return [(v / (bias + alpha / size * squares) ** beta).astype(x.dtype)]


def global_lp_pool(case):
    x, p = case.inputs[0], float(attr(case, "p", 2))
    v = np.abs(x.astype(np.float64)) ** p
    return [(np.sum(v, axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)).astype(x.dtype)]


def mean(case):
    return [np.mean(np.broadcast_arrays(*[x.astype(np.float64) for x in case.inputs]), axis=0).astype(case.inputs[0].dtype)]


def scalar_axis(case):
    return same_as(case, [case.inputs[0], case.inputs[1].reshape(())])


def lists(case):
    """Axes and steps as the lists that they are."""
    return same_as(case, [case.inputs[0]] + [x.reshape(1) if x is not None and x.ndim == 0 else x for x in case.inputs[1:]])


def scalar_depth(case):
    """Of whole numbers, too, which indices and depth become, and which ONNX Runtime has the operator for."""
    x, depth, values = case.inputs
    return same_as(case, [x.astype(np.int64), depth.reshape(()).astype(np.int64), values])


def scalar_scale(case):
    return same_as(case, [case.inputs[0]] + [None if x is None else x.reshape(()) for x in case.inputs[1:]])


def one_hot_strings(case):
    """Strings, where indices tell a class of [-depth, depth) on, and all others off."""
    x, depth, values = np.asarray(case.inputs[0]), int(case.inputs[1].item()), case.inputs[2]
    axis = attr(case, "axis", -1)
    x = np.expand_dims(np.trunc(x.astype(np.float64)), axis + x.ndim + 1 if axis < 0 else axis)
    classes = np.arange(depth).reshape([-1 if i == (axis + x.ndim if axis < 0 else axis) else 1 for i in range(x.ndim)])
    return [np.where((x == classes) | (x + depth == classes), values[1], values[0]).astype(object)]


def dequantized(case):
    """(x - zero point) * scale, of one scale for all."""
    x, scale, zero = case.inputs
    with np.errstate(all="ignore"):
        return [((x.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)).astype(scale.dtype)]


def as_floats(case):
    x = case.inputs[0].astype(np.float32)
    return same_as(case, [x.reshape(1, -1) if x.ndim == 1 else x])


def near_diagonal(case):
    """Diagonals beyond the matrix have nothing on them, however far they are."""
    x, k = case.inputs
    most = sum(x.shape[-2:]) + 1
    return same_as(case, [x, np.array(min(max(int(k.reshape(())), -most), most), dtype=np.int64)])


def upsample_linear(case):
    x = case.inputs[0]
    scales = attr(case, "scales") or case.inputs[1]
    v = x.astype(np.float64)
    for axis, scale in enumerate(scales):
        n = x.shape[axis]
        at = np.arange(int(np.floor(n * np.float32(scale)))) / np.float64(np.float32(scale))
        low = np.minimum(np.floor(at).astype(int), n - 1)
        part = np.minimum(at - low, 1 if n > 1 else 0).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
        v = np.take(v, low, axis) * (1 - part) + np.take(v, np.minimum(low + 1, n - 1), axis) * part
    return [v.astype(x.dtype)]


def moved(case):
    """The same of numbers, and these as bools or strings again."""
    x = case.inputs[0]
    if x.dtype == bool:
        return same_as(case, [x.astype(np.float32)] + case.inputs[1:]), lambda results: [y != 0 for y in results]
    numbers = np.arange(x.size, dtype=np.float32).reshape(x.shape)
    return same_as(case, [numbers] + case.inputs[1:]), lambda results: [x.ravel()[np.asarray(y).astype(int)] for y in results]


def imputer(case):
    x = case.inputs[0]
    kind = "int64s" if x.dtype.kind in "iu" else "floats"
    to = np.array(attr(case, "imputed_value_" + kind)).astype(x.dtype)
    old = x.dtype.type(attr(case, "replaced_value_" + kind[:-1], 0))
    return [np.where(np.isnan(x) if old != old else x == old, to, x).astype(x.dtype)]


def one_row(case):
    return same_as(case, [case.inputs[0].reshape(1, -1).astype(np.float32)])


def one_hot_encoder(case):
    x = case.inputs[0]
    cats = attr(case, "cats_strings") if x.dtype == STRING else attr(case, "cats_int64s")
    values = x if x.dtype == STRING else x.astype(np.int64)
    return [np.stack([values == c for c in cats], axis=-1).astype(np.float32)]


def mel_weight_matrix(case):
    bands, length, rate = (int(case.inputs[i]) for i in range(3))
    low, high = (2595 * np.log10(1 + float(case.inputs[i]) / 700) for i in (3, 4))
    hertz = 700 * (10 ** ((low + np.arange(bands + 2) * (high - low) / (bands + 2)) / 2595) - 1)
    places = (length + 1) * hertz / rate
    if np.any(np.abs(places - np.round(places)) < 1e-6 * np.maximum(1, np.abs(places))):
        return None  # an edge lies between two bins: on which side is rounding
    edges = np.floor(places)
    y = np.zeros((length // 2 + 1, bands))
    for band in range(bands):
        left, centre, right = edges[band:band + 3]
        for j in range(y.shape[0]):
            if left == centre == j:
                y[j, band] = 1
            elif left <= j <= centre:
                y[j, band] = (j - left) / (centre - left)
            if centre <= j < right:
                y[j, band] = (right - j) / (right - centre)
    return [y.astype(helper.tensor_dtype_to_np_dtype(attr(case, "output_datatype", 1)))]


def mean_variance(case):
    x = case.inputs[0]
    axes = tuple(attr(case, "axes", [0, 2, 3]))
    v = x.astype(np.float64)
    v = v - np.mean(v, axis=axes, keepdims=True)
    return [(v / (np.sqrt(np.mean(v * v, axis=axes, keepdims=True)) + 1e-9)).astype(x.dtype)]


def no_rows(case):
    return [np.zeros((0, attr(case, "n_targets")), case.inputs[0].dtype)]


def of_version_3(case):
    return same_as(case, opset=3)


def without_region(case):
    return same_as(case, [case.inputs[0], np.zeros(0, np.float32)] + list(case.inputs[2:]))


def stacked(rows, like):
    return np.stack(rows) if rows else np.zeros((0,) + like.shape, like.dtype)


def scan(case):
    """The bodies of our draws, whatever they declare. The elements that are stacked must have one shape; a state's may change."""
    states = slice(1, 2) if case.opset == 8 else slice(0, 1)
    xs, count = case.inputs[states.stop:], attr(case, "num_scan_inputs")
    if count > len(xs):
        return stateless(case, states.start)
    last = {"Tanh": np.tanh, "Neg": np.negative}[attr(case, "body").node[-1].op_type]

    def steps(state, xs, ways, axes, lengths=None):
        n, ys = xs[0].shape[axes[0]], []
        for t in range(n if lengths is None else lengths):
            at = [np.take(x, n - 1 - t if w else t, axis=a) for x, w, a in zip(xs, ways, axes)]
            now = state + (at[0] * at[1] if len(at) > 1 else at[0])
            state = now
            ys.append(last(state))
        return state, ys

    zeros = [0] * count
    if case.opset == 8:
        got = [steps(s, x, attr(case, "directions", zeros), zeros) for s, *x in zip(case.inputs[1], *xs)]
        return [np.stack([s for s, _ in got]), np.stack([stacked(y, s) for s, y in got])]
    state, ys = steps(case.inputs[0], xs, attr(case, "scan_input_directions", zeros), attr(case, "scan_input_axes", zeros))
    if attr(case, "scan_output_directions", [0])[0]:
        ys = ys[::-1]
    return [state, np.moveaxis(stacked(ys, state), 0, attr(case, "scan_output_axes", [0])[0])]


def stateless(case, first):
    """All inputs are scanned: what was the state is an element of the first."""
    last = {"Tanh": np.tanh, "Neg": np.negative}[attr(case, "body").node[-1].op_type]
    count = attr(case, "num_scan_inputs")
    ways = attr(case, "directions" if case.opset == 8 else "scan_input_directions", [0] * count)
    axes = [0] * count if case.opset == 8 else attr(case, "scan_input_axes", [0] * count)

    def steps(xs):
        xs = [np.moveaxis(x, a, 0)[::-1] if w else np.moveaxis(x, a, 0) for x, w, a in zip(xs, ways, axes)]
        sums = [s + (a[0] * a[1] if len(a) > 1 else a[0]) for s, *a in zip(*xs)]
        return [np.stack(sums), np.stack([last(s) for s in sums])]

    if case.opset == 8:
        return [np.stack(y) for y in zip(*[steps(xs) for xs in zip(*case.inputs[1:])])]
    return steps(case.inputs[first:])


def without_steps(case):
    return recurrent.answer(case)

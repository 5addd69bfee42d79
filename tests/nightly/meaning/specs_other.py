"""Quantisation, strings, sequences and optionals."""
import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from draw import BOOL, F32, I64, STRING, code_of, is_float, is_int
from registry import spec
from specs_window import window

# --- quantisation --------------------------------------------------------------------------------------------------------------------------


def granularity(d, shape):
    """axis, block size, shape of the scale."""
    rank = len(shape)
    how = d.pick("tensor", "axis", "axis" if d.v >= 13 else "tensor", "block" if d.v >= 21 else "tensor")
    if rank == 0 or d.v < 13 or 0 in shape:
        how = "tensor"
    if how == "tensor":
        return None, None, ()
    axis = d.axis(rank)
    if how == "axis":
        return axis, None, (shape[axis],)
    blocks = d.int(1, shape[axis])
    size = -(-shape[axis] // blocks)
    blocks = -(-shape[axis] // size)
    scale = list(shape)
    scale[axis] = blocks
    return axis, size, tuple(scale)


@spec("QuantizeLinear")
def quantize(d):
    shape = d.shape(0, 4, 4)
    axis, block, place = granularity(d, shape)
    params = [c.type_param_str for c in d.schema.type_constraints]
    target = d.type("T3" if "T3" in params else "T2")
    source = d.of_input(0)
    scale = d.array(place, d.of_input(1) if d.of_input(1).name != "int32" else F32, lo=0.1, hi=1.0)
    if d.v in (19, 21) and source.name == "int32":  # the type of the input is that of the scale
        scale = d.array(place, source, lo=1, hi=3)
    if "e8m0" in scale.dtype.name:
        scale = np.ones(place, F32).astype(scale.dtype)
    x = d.array(shape, source, lo=-9, hi=9)
    zero = d.array(place, target) if d.chance(0.7) or target.name != "uint8" else None
    if zero is not None and target.name.startswith("float"):
        zero = np.zeros(place, F32).astype(target)
    attrs = {"axis": axis, "block_size": block}
    if d.v >= 21 and zero is not None and d.chance(0.3):
        attrs["output_dtype"] = code_of(target)
    if d.v >= 19:
        attrs["saturate"] = d.pick(None, 0, 1)
    if d.v >= 23:
        attrs["precision"] = d.pick(None, None, 0, 1, code_of(source) if is_float(source) else 1)
    case = d.node([x, scale, zero], attrs)
    case.own_width = d.v >= 23 and scale.dtype.itemsize < 4  # of the division, unless `precision` says otherwise
    if is_int(target):  # how exactly x / scale is to be computed is not said before 23
        case.flips = nearly_ties(x.astype(np.float64) / spread(scale.astype(np.float64), shape, axis, block), scale.dtype)
    return case


def spread(scale, shape, axis, block):
    """The scale of each element."""
    if axis is None:
        return scale
    if block is None:
        return scale.reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])
    return np.take(np.repeat(scale, block, axis), range(shape[axis]), axis)


@spec("DequantizeLinear")
def dequantize(d):
    shape = d.shape(0, 4, 4)
    axis, block, place = granularity(d, shape)
    source = d.of_input(0)
    scale = d.array(place, d.of_input(1), lo=0.1, hi=1.0)
    if "e8m0" in scale.dtype.name:
        scale = np.ones(place, F32).astype(scale.dtype)
    zero = d.array(place, source) if d.chance(0.7) else None
    if zero is not None and (source.name.startswith("float") or source.name == "int32"):
        zero = np.zeros(place, F32).astype(source)
    target = d.pick(*d.allowed("T3")) if d.v >= 23 and ("e8m0" in scale.dtype.name or d.chance(0.3)) else None
    return d.node([d.array(shape, source), scale, zero], {"axis": axis, "block_size": block, "output_dtype": None if target is None else code_of(target)},
                  scale=1)


@spec("DynamicQuantizeLinear")
def dynamic_quantize(d):
    return d.node([d.x(0, d.shape(0, 3, 4, zero=0))], outputs=3)


@spec("MatMulInteger")
def matmul_integer(d):
    m, k, n = d.dim(1, 4), d.dim(1, 5), d.dim(1, 4)
    a, b = d.pair(0, 2, 3)
    a, b = a + (m, k), b + (k, n)
    az = d.maybe(d.x(0, d.pick((), (1,), (m,) if len(a) == 2 else ())), 0.6)
    bz = d.maybe(d.x(1, d.pick((), (1,), (n,) if len(b) == 2 else ())), 0.6)
    return d.node([d.x(0, a), d.x(1, b), az, bz])


def nearly_ties(v, dtype):
    """Where a number lies between two whole ones so closely to the middle that the error of a few operations in dtype decides."""
    error = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype.name, 1e-6)
    return np.abs(v - np.floor(v) - 0.5) <= error * np.maximum(1, np.abs(v))


@spec("QLinearMatMul")
def qlinear_matmul(d):
    m, k, n = d.dim(1, 4), d.dim(1, 5), d.dim(1, 4)
    a, b = d.pair(0, 2, 3)
    a, b = a + (m, k), b + (k, n)
    s = d.type("TS") if d.v >= 21 else F32
    scale = lambda shape: d.array(shape, s, lo=0.1, hi=1.0)
    columns = d.pick((), (n,) if len(b) == 2 else ())
    case = d.node([d.array(a, d.type("T1")), scale(()), d.array((), d.type("T1")), d.array(b, d.type("T2")), scale(columns),
                   d.array(columns, d.type("T2")), scale(()), d.array((), d.type("T3"))])
    case.oracle = product_by_text
    return case


def product_by_text(case):
    """round(product * scales / scale) + zero point, saturated; it also says where that is a tie."""
    a, sa, za, b, sb, zb, sy, zy = (x.astype(np.float64) for x in case.inputs)
    v = np.asarray(np.matmul((a - za) * sa, (b - zb) * sb) / sy)
    return [quantised(case, v, case.inputs[7])]


def quantised(case, v, zero):
    target = zero.dtype
    if not is_int(target):
        most = float(ml_dtypes.finfo(target).max)
        return np.clip(v + zero.astype(np.float64), -most, most).astype(np.float32).astype(target)
    case.flips = nearly_ties(v, case.inputs[1].dtype)
    info = np.iinfo(target)
    return np.clip(np.rint(v) + zero.astype(np.float64), info.min, info.max).astype(target)


@spec("ConvInteger")
def conv_integer(d):
    attrs, sizes, kernel = window(d, d.pick(1, 2, 2, 3))
    group = d.pick(1, 1, 2)
    c, m = group * d.dim(1, 2, 100), group * d.dim(1, 2, 100)
    attrs["group"] = group if group > 1 or d.chance(0.5) else None
    if d.chance(0.2):
        attrs["kernel_shape"] = None
    return d.node([d.x(0, [d.batch(1, 2), c] + sizes), d.x(1, [m, c // group] + kernel), d.maybe(d.x(0, ())),
                   d.maybe(d.x(1, d.pick((), (), (m,))))], attrs)


@spec("QLinearConv")
def qlinear_conv(d):
    attrs, sizes, kernel = window(d, d.pick(1, 2, 2, 3))
    group = d.pick(1, 1, 2)
    c, m = group * d.dim(1, 2, 100), group * d.dim(1, 2, 100)
    attrs["group"] = group if group > 1 or d.chance(0.5) else None
    if d.chance(0.2):
        attrs["kernel_shape"] = None
    scale = lambda shape: d.array(shape, F32, lo=0.1, hi=1.0)
    per = d.pick((), (m,))
    case = d.node([d.array([d.batch(1, 2), c] + sizes, d.type("T1")), scale(()), d.array((), d.type("T1")), d.array([m, c // group] + kernel, d.type("T2")),
                   scale(per), np.zeros(per, np.int8).astype(d.type("T2")) if per else d.array((), d.type("T2")), scale(()), d.array((), d.type("T3")),
                   d.maybe(d.array((m,), np.dtype(np.int32)))], attrs)
    case.oracle = convolution_by_text
    return case


def convolution_by_text(case):
    x, sx, zx, w, sw, zw, sy, zy = (v.astype(np.float64) for v in case.inputs[:8])
    per = lambda v: v.reshape([-1] + [1] * (w.ndim - 1))
    sums = convolution(x - zx, w - per(zw), case.attrs)
    if case.inputs[8] is not None:
        sums = sums + case.inputs[8].astype(np.float64).reshape([1, -1] + [1] * (x.ndim - 2))
    return [quantised(case, sums * (sx * sw / sy).reshape([1, -1] + [1] * (x.ndim - 2)), case.inputs[7])]


def convolution(x, w, attrs):
    spatial = x.ndim - 2
    strides, dilations = attrs.get("strides") or [1] * spatial, attrs.get("dilations") or [1] * spatial
    pads, auto = attrs.get("pads") or [0] * 2 * spatial, attrs.get("auto_pad") or "NOTSET"
    reach = [(k - 1) * e + 1 for k, e in zip(w.shape[2:], dilations)]
    if auto == "VALID":
        pads = [0] * 2 * spatial
    elif auto != "NOTSET":
        more = [max(0, (-(-n // s) - 1) * s + r - n) for n, s, r in zip(x.shape[2:], strides, reach)]
        less, rest = [m // 2 for m in more], [m - m // 2 for m in more]
        pads = less + rest if auto == "SAME_UPPER" else rest + less
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(pads[:spatial], pads[spatial:])))
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, strides)]
    group = attrs.get("group") or 1
    y = np.zeros([x.shape[0], w.shape[0]] + sizes)
    for at in np.ndindex(*w.shape[2:]):
        part = x[(slice(None), slice(None)) + tuple(slice(k * e, k * e + (n - 1) * s + 1, s) for k, e, n, s in zip(at, dilations, sizes, strides))]
        for g in range(group):
            own = slice(g * w.shape[0] // group, (g + 1) * w.shape[0] // group)
            y[:, own] += np.einsum("nc...,mc->nm...", part[:, g * w.shape[1]:(g + 1) * w.shape[1]], w[(own, slice(None)) + at])
    return y


# --- strings ---------------------------------------------------------------------------------------------------------------------------------


@spec("StringConcat")
def string_concat(d):
    a, b = d.pair()
    return d.node([d.array(a, STRING), d.array(b, STRING)])


@spec("StringSplit")
def string_split(d):
    words = np.array(["a,b,c", " a  b ", "", "x", "one, two,three", ",,", "a b c d", "zürich,ä"], dtype=object)
    x = np.array(words[d.rng.integers(0, len(words), d.shape(0, 2, 4))], dtype=object)
    return d.node([x], {"delimiter": d.pick(None, "", ",", ", ", " "), "maxsplit": d.pick(None, 0, 1, 2)}, outputs=2)


@spec("StringNormalizer")
def string_normalizer(d):
    words = np.array(["Monday", "tuesday", "WEDNESDAY", "monday", "", "Zürich", "a"], dtype=object)
    n = d.dim(1, 5)
    x = words[d.rng.integers(0, len(words), (n,) if d.chance(0.6) else (1, n))]
    case = d.node([np.array(x, dtype=object)], {"case_change_action": d.pick(None, "NONE", "LOWER", "UPPER"), "is_case_sensitive": d.pick(None, 0, 1),
                                                "stopwords": d.pick(None, ["monday"], ["Monday", "a"]), "locale": d.pick(None, "en_US", "en_GB")})
    case.oracle = normalised
    return case


def normalised(case):
    x, attrs = case.inputs[0], case.attrs
    same = (lambda s: s) if attrs.get("is_case_sensitive") else str.lower
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(attrs.get("case_change_action"), lambda s: s)
    stops = {same(w) for w in attrs.get("stopwords") or []}
    kept = [change(s) for s in x.ravel() if same(s) not in stops] or [""]
    return [np.array(kept, dtype=object).reshape((1,) * (x.ndim - 1) + (-1,))]


@spec("RegexFullMatch")
def regex(d):
    words = np.array(["www.google.com", "a1", "abc", "", "a@b.org", "ABC", "aaa", "12"], dtype=object)
    x = np.array(words[d.rng.integers(0, len(words), d.shape(0, 2, 4))], dtype=object)
    return d.node([x], {"pattern": d.pick(r"www\.[\w.-]+\.\bcom\b", "a+", "[a-z]*", r"\d+", r"(\W|^)[\w.\-]{0,25}@(b)\.org(\W|$)", ".*", "a|abc")})


@spec("TfIdfVectorizer")
def tfidf(d):
    n, most = d.dim(1, 7), d.int(1, 3)
    low = d.int(1, most)
    counts, pool, indexes = [], [], []
    grams = [[(a,) for a in (2, 3, 5)], [(2, 3), (5, 2), (3, 3)], [(2, 3, 5), (3, 3, 2)]][:most]
    for g in grams:
        counts.append(len(pool))
        for t in g:
            pool += t
            indexes.append(len(indexes))
    x = np.asarray(d.rng.choice([2, 3, 5, 7], n if d.chance(0.5) else (d.int(1, 2), n)))
    strings = d.type("T") == STRING
    x = x.astype(str).astype(object) if strings else x.astype(d.type("T"))
    mode = d.pick("TF", "IDF", "TFIDF")
    return d.node([x], {"mode": mode, "min_gram_length": low, "max_gram_length": most, "max_skip_count": d.int(0, 3), "ngram_counts": counts,
                        "ngram_indexes": indexes, "pool_strings" if strings else "pool_int64s": [str(p) for p in pool] if strings else pool, "weights": [d.float(0, 2) for _ in indexes] if mode != "TF" else None})


# --- sequences and optionals ---------------------------------------------------------------------------------------------------------------------


def items(d, count=None, same=True):
    rank = d.int(1, 3)
    shape = d.shape(rank, rank, 3)
    t = d.pick(F32, F32, I64, np.dtype(np.float64), BOOL, STRING)
    return [d.array(shape if same else d.shape(rank, rank, 3), t) for _ in range(count or d.int(1, 3))], rank


def made(d, arrays, more=(), attrs=None, tensor=True, outputs=1):
    """A node whose first input is a sequence of `arrays`; when the result is one, it is taken apart."""
    case = d.node(list(arrays) + list(more), attrs, outputs=outputs)
    n = len(arrays)
    case.before = [helper.make_node("SequenceConstruct", case.names()[:n], ["seq"])]
    case.input_names = ["seq"] + case.names()[n:]
    return case


def position(d, n):
    return d.maybe(np.array(d.int(-n, n - 1), dtype=d.pick(np.int32, np.int64)))


@spec("SequenceConstruct")
def sequence_construct(d):
    arrays, _ = items(d, same=False)
    return d.node(arrays)


@spec("SequenceEmpty")
def sequence_empty(d):
    dtype = d.pick(F32, I64, BOOL, STRING)
    code = None if dtype == F32 and d.chance(0.5) else code_of(dtype)
    if d.chance(0.5):
        case = d.node([], {"dtype": code}, outputs=1)
        case.output_names = ["seq"]
        case.after = [helper.make_node("SequenceLength", ["seq"], ["y0"])]
        return case
    case = d.node([d.array(d.shape(1, 2), dtype)], {"dtype": code}, outputs=1)  # what is put in has its type
    case.input_names, case.output_names = [], ["seq"]
    case.after = [helper.make_node("SequenceInsert", ["seq", "x0"], ["more"]), helper.make_node("ConcatFromSequence", ["more"], ["y0"], axis=0)]
    return case


@spec("SequenceLength")
def sequence_length(d):
    arrays, _ = items(d, same=False)
    return made(d, arrays)


@spec("SequenceAt")
def sequence_at(d):
    arrays, _ = items(d, same=False)
    n = len(arrays)
    return made(d, arrays, [np.array(d.int(-n, n - 1), dtype=d.pick(np.int32, np.int64))])


@spec("SequenceErase")
def sequence_erase(d):
    arrays, _ = items(d, d.int(2, 4), same=False)
    return made(d, arrays, [position(d, len(arrays))])


@spec("SequenceInsert")
def sequence_insert(d):
    arrays, rank = items(d, same=False)
    more = d.array(d.shape(rank, rank, 3, zero=0), arrays[0].dtype)
    n = len(arrays)
    return made(d, arrays, [more, d.maybe(np.array(d.int(-n, n), dtype=np.int64))])


@spec("ConcatFromSequence")
def concat_from_sequence(d):
    arrays, rank = items(d)
    new = d.pick(None, 0, 1)
    return made(d, arrays, [], {"axis": d.int(-rank - (new or 0), rank - 1 + (new or 0)), "new_axis": new})


@spec("SplitToSequence")
def split_to_sequence(d):
    rank = d.int(1, 3)
    shape = list(d.shape(rank, rank, 4))
    axis = d.axis(rank) if d.chance(0.7) else 0
    shape[axis] = max(1, shape[axis])
    how = d.pick("none", "number", "list")
    split = None
    if how == "number":
        split = np.array(d.int(1, shape[axis]), dtype=d.type("I"))
    elif how == "list":
        parts = [d.int(1, 3) for _ in range(d.int(1, 3))]
        shape[axis] = sum(parts)
        split = np.array(parts, dtype=d.type("I"))
    return d.node([d.x(0, shape), split], {"axis": None if axis == 0 and d.chance(0.5) else axis, "keepdims": d.pick(None, 0, 1)}, constants=(1,))


@spec("SequenceMap")
def sequence_map(d):
    arrays = [d.array(d.shape(2, 2, 3), F32) for _ in range(d.int(1, 3))]
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None])
    more = d.int(0, 2)
    nodes = {0: [helper.make_node("Transpose", ["a"], ["o"])], 1: [helper.make_node("Mul", ["a", "b"], ["o"])],
             2: [helper.make_node("Mul", ["a", "b"], ["p"]), helper.make_node("Add", ["p", "c"], ["o"])]}[more]
    body = helper.make_graph(nodes, "body", [info("a")] + [helper.make_tensor_value_info(n, TensorProto.FLOAT, []) for n in "bc"[:more]], [info("o")])
    return made(d, arrays, [d.array((), F32) for _ in range(more)], {"body": body})


@spec("Optional")
def optional(d):
    dtype = d.pick(F32, I64, BOOL)
    kind = helper.make_tensor_type_proto(code_of(dtype), None)
    if d.chance(0.3):  # nothing, of a type
        case = d.node([], {"type": kind})
        case.output_names = ["opt"]
        case.after = [helper.make_node("OptionalHasElement", ["opt"], ["y0"])]
        case.oracle = lambda case: [np.array(False)]
        return case
    case = d.node([d.array(d.shape(0, 3), dtype)], {"type": kind if d.chance(0.2) else None}, shapes="fixed")
    case.output_names = ["opt"]
    case.after = [helper.make_node(d.pick("OptionalGetElement", "OptionalHasElement"), ["opt"], ["y0"])]
    if case.after[0].op_type == "OptionalHasElement":
        case.oracle = lambda case: [np.array(True)]
    else:
        case.oracle = lambda case: [case.inputs[0]]
    return case


@spec("OptionalHasElement", "OptionalGetElement")
def optional_element(d):
    if d.op == "OptionalHasElement" and d.v >= 18 and d.chance(0.2):
        case = d.node([])
        if d.chance(0.5):
            case.before = [helper.make_node("Optional", [], ["opt"], type=helper.make_tensor_type_proto(1, None))]
            case.input_names = ["opt"]
        case.oracle = lambda case: [np.array(False)]
        return case
    case = d.node([d.array(d.shape(0, 3), d.pick(F32, I64, BOOL))], shapes="fixed")
    if d.v < 18 or d.chance(0.5):
        case.before = [helper.make_node("Optional", case.names(), ["opt"])]
        case.input_names = ["opt"]
    return case

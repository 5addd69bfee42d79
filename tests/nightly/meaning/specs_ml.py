"""Operators of ai.onnx.ml (those on tensors), of training, and FlexAttention."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from draw import BF16, BOOL, F16, F32, F64, I64, STRING, code_of, is_float
from registry import spec

ML, TRAINING, PREVIEW = "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.preview"
WORDS = ("a", "b", "ab", "Tenon", "", "zürich")
POST = (None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def matrix(d, columns, i=0):
    return d.x(i, (d.dim(1, 4), columns), "normal")


def floats(d, n, lo=-2.0, hi=2.0):
    return [d.float(lo, hi) for _ in range(n)]


@spec("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(d):
    shape = d.shape(2, 3, 4, zero=0)
    return d.node([d.x(0, shape), d.ints([d.int(0, shape[-1] - 1) for _ in range(d.int(1, 4))])])


@spec("Binarizer", domain=ML)
def binarizer(d):
    return d.node([d.x(0, d.shape(1, 3), "small")], {"threshold": d.maybe(d.pick(0.0, 1.0, -0.5))})


@spec("CategoryMapper", domain=ML)
def category_mapper(d):
    names = [WORDS[i] for i in d.rng.permutation(len(WORDS))[:d.int(1, 4)]]
    numbers = [int(v) for v in d.rng.permutation(9)[:len(names)]]
    t = d.type("T1")
    x = d.array(d.shape(1, 2), STRING) if t == STRING else d.array(d.shape(1, 2), I64, lo=0, hi=9)
    return d.node([x], {"cats_strings": names, "cats_int64s": numbers, "default_int64": d.pick(None, 7, -2), "default_string": d.pick(None, "none", "other")})


@spec("FeatureVectorizer", domain=ML)
def feature_vectorizer(d):
    n, sizes = d.dim(1, 3), [d.dim(1, 3) for _ in range(d.int(1, 3))]
    d.type("T1")
    return d.node([d.x(0, (n, s)) for s in sizes], {"inputdimensions": sizes})


@spec("Imputer", domain=ML)
def imputer(d):
    columns = d.int(1, 4)
    t = d.type("T")
    count = d.pick(1, columns)
    if t.kind in "iu":
        return d.node([d.x(0, (d.int(1, 4), columns), lo=-2, hi=2)], {
            "imputed_value_int64s": [d.int(-9, 9) for _ in range(count)], "replaced_value_int64": d.pick(0, 1, -1)})
    x = matrix(d, columns)
    nan = d.chance(0.6)
    x = np.where(d.rng.random(x.shape) < 0.4, x.dtype.type(np.nan if nan else 1.5), x)
    return d.node([x], {"imputed_value_floats": floats(d, count), "replaced_value_float": float("nan") if nan else 1.5})


@spec("LabelEncoder", domain=ML)
def label_encoder(d):
    kinds = {"strings": STRING, "int64s": I64, "floats": F32}
    n = d.int(1, 4)

    def some(kind, distinct):
        if kind == "strings":
            return [WORDS[i] for i in (d.rng.permutation(len(WORDS))[:n] if distinct else d.rng.integers(0, len(WORDS), n))]
        values = d.rng.permutation(9)[:n] if distinct else d.rng.integers(-5, 5, n)
        return [int(v) for v in values] if kind == "int64s" else [float(v) for v in values]

    if d.v == 1:
        d.types["T1"] = d.pick(STRING, I64)
        x = d.array(d.shape(1, 2), STRING) if d.types["T1"] == STRING else d.array(d.shape(1, 2), I64, lo=0, hi=5)
        return d.node([x], {"classes_strings": some("strings", True), "default_int64": d.pick(None, -2, 9), "default_string": d.pick(None, "none", "other")})
    source, target = d.pick(*kinds), d.pick(*kinds)
    x = d.array(d.shape(1, 2), STRING) if source == "strings" else d.array(d.shape(1, 2), I64, lo=0, hi=8).astype(kinds[source])
    keys, values = some(source, True), some(target, False)
    attrs = {"keys_" + source: keys, "values_" + target: values}
    if d.v >= 4 and d.chance(0.4):
        as_tensor = lambda kind, v: helper.make_tensor("t", {"strings": 8, "int64s": 7, "floats": 1}[kind], [len(v)],
                                                       [s.encode() for s in v] if kind == "strings" else v)
        attrs = {"keys_tensor": as_tensor(source, keys), "values_tensor": as_tensor(target, values)}
        attrs["default_tensor"] = as_tensor(target, some(target, False)[:1])
    elif d.chance(0.5):
        attrs["default_" + {"strings": "string", "int64s": "int64", "floats": "float"}[target]] = {
            "strings": d.pick("none", "other"), "int64s": d.int(-9, 9), "floats": d.float(-3, 3)}[target]
    return d.node([x], attrs)


@spec("LinearRegressor", domain=ML)
def linear_regressor(d):
    columns, targets = d.dim(1, 4), d.int(1, 3)
    return approximate(d.node([matrix(d, columns)], {
        "coefficients": floats(d, columns * targets), "intercepts": d.maybe(floats(d, targets)), "targets": None if targets == 1 and d.chance(0.5) else targets,
        "post_transform": d.pick(None, "NONE", *POST)}, scale=1, summed=columns))


@spec("LinearClassifier", domain=ML)
def linear_classifier(d):
    columns, classes = d.dim(1, 4), d.int(2, 4)
    strings = d.chance(0.4)
    labels = list(WORDS[:classes]) if strings else [int(v) for v in d.rng.permutation(9)[:classes]]
    return approximate(d.node([matrix(d, columns)], {
        "coefficients": floats(d, columns * classes), "intercepts": d.maybe(floats(d, classes)), "multi_class": d.pick(None, 0, 1),
        "post_transform": d.pick(*POST), "classlabels_strings" if strings else "classlabels_ints": labels}, outputs=2, scale=1, summed=columns))


@spec("Normalizer", domain=ML)
def normalizer(d):
    return d.node([matrix(d, d.dim(1, 4))], {"norm": d.pick(None, "MAX", "L1", "L2")}, scale=1)


@spec("OneHotEncoder", domain=ML)
def one_hot_encoder(d):
    t = d.type("T")
    if t == STRING:
        return d.node([d.array(d.shape(1, 2), STRING)], {"cats_strings": d.pick(list(WORDS), list(WORDS[:3])), "zeros": d.pick(None, 1)})
    few = d.pick(5, 5, 3)
    return d.node([d.array(d.shape(1, 2), I64, lo=0, hi=4).astype(t)], {"cats_int64s": [0, 1, 3, 2, 4][:few], "zeros": d.pick(None, 1) if few < 5 else d.pick(None, 0, 1)})


@spec("Scaler", domain=ML)
def scaler(d):
    columns = d.dim(1, 4)
    n = d.pick(1, columns)
    return d.node([matrix(d, columns)], {"offset": d.maybe(floats(d, n), 0.9), "scale": d.maybe(floats(d, n), 0.9)}, scale=1)


def kernel(d):
    return {"kernel_type": d.pick(None, "LINEAR", "POLY", "RBF", "SIGMOID"), "kernel_params": [d.float(0.1, 0.9), d.float(-1, 1), d.pick(2.0, 3.0)]}


@spec("SVMRegressor", domain=ML)
def svm_regressor(d):
    columns, n = d.int(1, 4), d.int(1, 4)
    attrs = {"coefficients": floats(d, n), "support_vectors": floats(d, n * columns), "n_supports": n, "rho": floats(d, 1),
             "one_class": d.pick(None, 0, 1), "post_transform": d.pick(None, "NONE", *POST)}
    if attrs["one_class"]:  # what is made of a sign, no text says
        attrs["post_transform"] = None
    if d.chance(0.2):
        attrs.update(n_supports=0, support_vectors=None, coefficients=floats(d, columns))
        return approximate(d.node([matrix(d, columns)], dict(attrs, kernel_type="LINEAR"), scale=1))
    return approximate(d.node([matrix(d, columns)], dict(attrs, **kernel(d)), scale=1))


@spec("SVMClassifier", domain=ML)
def svm_classifier(d):
    columns, classes = d.int(1, 3), d.int(2, 3)
    per = [d.int(1, 3) for _ in range(classes)]
    n, pairs = sum(per), classes * (classes - 1) // 2
    attrs = {"coefficients": floats(d, n * (classes - 1)), "support_vectors": floats(d, n * columns), "vectors_per_class": per,
             "rho": floats(d, pairs), "post_transform": d.pick(None, "NONE")}
    if d.chance(0.3):
        attrs["classlabels_strings"] = list(WORDS[:classes])
    else:
        attrs["classlabels_ints"] = list(range(classes))
    if d.chance(0.4):
        attrs["prob_a"], attrs["prob_b"] = floats(d, pairs, -2, -0.5), floats(d, pairs)
    case = d.node([matrix(d, columns)], dict(attrs, **kernel(d)), outputs=2, scale=1, rtol=10)
    if "prob_a" in attrs and classes > 2:
        case.slack = 0.005 / classes  # where LIBSVM's iteration for the probabilities of classes ends
    return case


def approximate(case):
    """No text says how exactly an inverse of the normal distribution is to be computed: what all use is good to 0.4 %."""
    if case.attrs.get("post_transform") in ("PROBIT", 4):
        case.slack = 0.02
    return case


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def forest(d, columns):
    """Nodes of a few trees, as the attributes of 1..3; leaves as (tree, node)."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = []
    one_mode = d.pick(*MODES)

    def grow(tree, at, depth, free):
        leaf = depth == 0 or d.chance(0.3)
        yes, no = (0, 0) if leaf else (free[0], free[0] + 1)
        if not leaf:
            free[0] += 2
        row = dict(treeids=tree, nodeids=at, featureids=0 if leaf else d.int(0, columns - 1), values=0.0 if leaf else d.pick(0.0, 1.0, -1.0, 0.5),
                   modes="LEAF" if leaf else one_mode, truenodeids=yes, falsenodeids=no, missing_value_tracks_true=d.int(0, 1))
        for k, v in row.items():
            nodes[k].append(v)
        if leaf:
            leaves.append((tree, at))
        else:
            grow(tree, yes, depth - 1, free)
            grow(tree, no, depth - 1, free)

    for tree in range(d.int(1, 3)):
        grow(tree, 0, d.int(0, 3), [1])
    if d.chance(0.5):
        nodes["missing_value_tracks_true"] = None
    if d.chance(0.2):
        nodes["hitrates"] = floats(d, len(nodes["modes"]), 0, 1)
    return {"nodes_" + k: v for k, v in nodes.items()}, leaves


def as_tensors(d, attrs, weights):
    """From version 3 on numbers may be tensors, of doubles where the input is."""
    if d.v < 3 or not (d.of_input(0) == F64 or d.chance(0.2)):
        return
    kind = 11 if d.of_input(0) == F64 else 1
    for name in (weights, "nodes_values", "base_values", "nodes_hitrates"):
        if attrs.get(name) is not None:
            v = attrs.pop(name)
            attrs[name + "_as_tensor"] = helper.make_tensor("t", kind, [len(v)], v)


@spec("TreeEnsembleRegressor", domain=ML)
def tree_regressor(d):
    columns, targets = d.int(1, 3), d.int(1, 3)
    attrs, leaves = forest(d, columns)
    ids = [d.int(0, targets - 1) for _ in leaves]
    attrs.update(target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves], target_ids=ids, target_weights=floats(d, len(leaves)),
                 n_targets=targets, base_values=d.maybe(floats(d, targets)), aggregate_function=d.pick(None, "SUM", "AVERAGE", "MIN", "MAX"),
                 post_transform=d.pick(None, "NONE", *POST))
    as_tensors(d, attrs, "target_weights")
    return approximate(d.node([d.x(0, (d.dim(1, 4), columns), d.pick("small", "normal"))], attrs, scale=1))


@spec("TreeEnsembleClassifier", domain=ML)
def tree_classifier(d):
    columns, classes = d.int(1, 3), d.int(2, 4)
    attrs, leaves = forest(d, columns)
    attrs.update(class_treeids=[t for t, _ in leaves], class_nodeids=[n for _, n in leaves], class_ids=[d.int(0, classes - 1) for _ in leaves],
                 class_weights=floats(d, len(leaves), 0.05, 1), base_values=d.maybe(floats(d, classes, 0, 1)),
                 post_transform=d.pick(*POST[:4]))
    if d.chance(0.4):
        attrs["classlabels_strings"] = list(WORDS[:classes])
    else:
        attrs["classlabels_int64s"] = [int(v) for v in d.rng.permutation(9)[:classes]]
    as_tensors(d, attrs, "class_weights")
    return d.node([d.x(0, (d.dim(1, 4), columns), d.pick("small", "normal"))], attrs, outputs=2, scale=1)


@spec("TreeEnsemble", domain=ML)
def tree_ensemble(d):
    columns, targets = d.int(1, 3), d.int(1, 3)
    t = d.type("T")
    features, splits, modes, ends, roots, weights, targetids = [], [], [], [], [], [], []

    mode = d.int(0, 6)

    def grow(depth):
        """Index of what was made, and whether it is a leaf."""
        if depth == 0 or (depth < 3 and d.chance(0.3)):
            weights.append(d.float(-2, 2))
            targetids.append(d.int(0, targets - 1))
            return len(weights) - 1, 1
        at = len(features)
        features.append(d.int(0, columns - 1))
        splits.append(d.pick(0.0, 1.0, -1.0, 0.5))
        modes.append(mode)
        ends.append(None)
        ends[at] = grow(depth - 1) + grow(depth - 1)
        return at, 0

    for _ in range(d.int(1, 2)):
        roots.append(grow(3)[0])
    array = lambda v, dtype: numpy_helper.from_array(np.array(v).astype(dtype), "t")
    return approximate(d.node([d.array((d.dim(1, 4), columns), t, d.pick("small", "normal"))], {
        "n_targets": None if targets == 1 and d.chance(0.5) else targets, "tree_roots": roots, "nodes_featureids": features, "nodes_splits": array(splits, t), "nodes_modes": array(modes, np.uint8),
        "nodes_truenodeids": [e[0] for e in ends], "nodes_trueleafs": [e[1] for e in ends], "nodes_falsenodeids": [e[2] for e in ends],
        "nodes_falseleafs": [e[3] for e in ends], "leaf_weights": array(weights, t), "leaf_targetids": targetids,
        "membership_values": array(sum([floats(d, d.int(1, 3)) + [0.0, float("nan")] for _ in features], []), t) if mode == 6 and features else None,
        "nodes_missing_value_tracks_true": d.maybe([d.int(0, 1) for _ in features]),
        "nodes_hitrates": array(floats(d, len(features), 0, 1), t) if d.chance(0.2) else None,
        "aggregate_function": d.pick(None, 0, 1, 2, 3), "post_transform": d.pick(None, 0, 0, 0, 1, 2, 3, 4)}, scale=1))


@spec("ZipMap", domain=ML)
def zip_map(d):
    n = d.int(1, 3)
    labels = {"classlabels_strings": list(WORDS[:n])} if d.chance(0.5) else {"classlabels_int64s": [int(v) for v in d.rng.permutation(9)[:n]]}
    return d.node([d.array((d.dim(1, 3), n), F32)], labels)


@spec("Adagrad", "Adam", "Momentum", domain=TRAINING)
def optimizer(d):
    count = d.int(1, 2)
    shapes = [d.shape(1, 3) for _ in range(count)]
    t2 = d.type("T3" if d.op != "Adagrad" else "T3")
    make = lambda style="normal": [d.array(s, t2, style) for s in shapes]
    inputs = [np.array(d.float(0.01, 0.5)).astype(d.type("T1")), np.array(d.pick(0, 1, 5), dtype=np.int64)] + make() + make()
    attrs = {"norm_coefficient": d.maybe(d.float(0, 0.5))}
    if d.op == "Momentum":
        attrs.update(alpha=d.float(0.1, 0.9), beta=d.float(0.1, 0.9), mode=d.pick("standard", "nesterov"), norm_coefficient=d.float(0, 0.5))
        return d.node(inputs + make(), attrs, outputs=2 * count, scale=0.1, rtol=4)
    attrs["epsilon"] = d.pick(None, 1e-3, 0.1)
    if d.op == "Adagrad":
        attrs["decay_factor"] = d.maybe(d.float(0, 0.5))
        return d.node(inputs + make("unit"), attrs, outputs=2 * count, scale=0.1, rtol=4)
    attrs.update(alpha=d.pick(None, 0.8, 0.5), beta=d.pick(None, 0.95, 0.7), norm_coefficient_post=d.maybe(d.float(0, 0.5)))
    return d.node(inputs + make() + make("unit"), attrs, outputs=3 * count, scale=0.1, rtol=4)


@spec("FlexAttention", domain=PREVIEW)
def flex_attention(d):
    batch, heads, groups = d.batch(1, 2), d.int(1, 2), d.pick(1, 1, 2)
    q, k, size, v_size = d.dim(1, 4, 100), d.dim(1, 4), d.dim(1, 4, 100), d.dim(1, 3, 100)
    t1 = d.type("T1")
    d.types["T2"] = t1
    precision = d.pick(None, None, 1, 10, 11, 16)
    inner = precision or (11 if t1 == F64 else 1)
    case = d.node([d.array((batch, heads * groups, q, size), t1, "normal"), d.array((batch, heads, k, size), t1, "normal"),
                   d.array((batch, heads, k, v_size), t1, "normal")], {
                       "scale": d.maybe(d.pick(0.5, 1.0)), "softmax_precision": precision,
                       "score_mod": modifier("Tanh", inner) if d.chance(0.3) else None, "prob_mod": modifier("Sqrt", inner) if d.chance(0.3) else None},
                  scale=1, rtol=4)
    case.precision = {10: F16, 16: BF16}.get(precision)
    return case


def modifier(op, code):
    """A graph of scores, or of probabilities: each one for itself."""
    return helper.make_graph([helper.make_node(op, ["s"], ["r"])], "mod", [helper.make_tensor_value_info("s", code, [None] * 4)],
                             [helper.make_tensor_value_info("r", code, [None] * 4)])

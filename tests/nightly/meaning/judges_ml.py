"""What the texts of ai.onnx.ml say of valid nodes: the part of judges.py for scores, kernels and trees."""
import numpy as np
import onnx

import texts
from judges import SAYS, like, says, wide
from texts import attr


def after_scores(y, how):
    """The transform of scores."""
    from statistics import NormalDist
    y = wide(y)
    if how in (None, "NONE", 0):
        return y
    if how in ("LOGISTIC", 2):
        return 1 / (1 + np.exp(-y))
    if how in ("PROBIT", 4):
        inverse = lambda p: NormalDist().inv_cdf(p) if 0 < p < 1 else np.inf if p == 1 else -np.inf if p == 0 else np.nan
        return np.vectorize(inverse, otypes=[float])(y) if y.size else y
    e = np.exp(y - np.max(y, axis=-1, keepdims=True))
    if how in ("SOFTMAX_ZERO", 3):  # what is 0 stays so; a row of zeros, of which no text speaks, is 0.5 to ONNX Runtime
        e = np.where(y == 0, 0, e)
        return np.where(np.any(y != 0, axis=-1, keepdims=True), e / np.sum(e, axis=-1, keepdims=True), 0.5)
    return e / np.sum(e, axis=-1, keepdims=True)


@says("LinearRegressor")
def linear_regressor(case):
    x, targets = wide(case.inputs[0]), attr(case, "targets", 1)
    y = x @ np.array(attr(case, "coefficients")).reshape(targets, -1).T + np.array(attr(case, "intercepts", [0.0] * targets))
    return [after_scores(y, attr(case, "post_transform")).astype(np.float32)]


@says("LinearClassifier")
def linear_classifier(case):
    x, names = wide(case.inputs[0]), attr(case, "classlabels_strings") or attr(case, "classlabels_ints")
    if len(attr(case, "coefficients")) != len(names) * x.shape[1]:
        return None
    scores = x @ np.array(attr(case, "coefficients")).reshape(len(names), -1).T + np.array(attr(case, "intercepts", [0.0] * len(names)))
    top = np.sort(scores, axis=1)
    if (top[:, -1] - top[:, -2] < 1e-4 * np.abs(top[:, -1])).any():
        return None  # which is the largest is rounding
    labels = np.array(names, dtype=object if isinstance(names[0], str) else np.int64)[np.argmax(scores, axis=1)]
    return [labels, after_scores(scores, attr(case, "post_transform")).astype(np.float32)]


@says("Scaler")
def scaler(case):
    x = wide(case.inputs[0])
    return [((x - np.array(attr(case, "offset", [0.0]))) * np.array(attr(case, "scale", [1.0]))).astype(np.float32)]


@says("SVMRegressor")
def svm_regressor(case):
    x, coefficients, kind = wide(case.inputs[0]), np.array(attr(case, "coefficients")), attr(case, "kernel_type", "LINEAR")
    if attr(case, "n_supports", 0) == 0:
        y = x @ coefficients
    else:
        support = np.array(attr(case, "support_vectors")).reshape(attr(case, "n_supports"), -1)
        gamma, more, degree = attr(case, "kernel_params", [0.0, 0.0, 0.0])
        dot = x @ support.T
        distance = np.sum((x[:, None] - support[None]) ** 2, axis=2)
        y = {"LINEAR": lambda: dot, "POLY": lambda: (gamma * dot + more) ** degree, "RBF": lambda: np.exp(-gamma * distance),
             "SIGMOID": lambda: np.tanh(gamma * dot + more)}[kind]() @ coefficients
    y = (y + attr(case, "rho")[0]).reshape(-1, 1)
    if attr(case, "one_class"):
        if (np.abs(y) < 1e-4).any():
            return None
        y = np.where(y > 0, 1.0, -1.0)
    return [after_scores(y, attr(case, "post_transform")).astype(np.float32)]


def array_of(case, name):
    v = attr(case, name)
    v = v if v is not None else attr(case, name + "_as_tensor")
    return onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v


TESTS = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater, "BRANCH_EQ": np.equal,
         "BRANCH_NEQ": np.not_equal}


def gathered(case, found, weights, targets, trees):
    """Weights of the leaves that were found, a list of (row, leaf, target), brought together."""
    how = {None: "SUM", 0: "AVERAGE", 1: "SUM", 2: "MIN", 3: "MAX"}.get(attr(case, "aggregate_function"), attr(case, "aggregate_function"))
    sets = {}
    for row, leaf, target in found:
        sets.setdefault((row, target), []).append(float(weights[leaf]))
    y = np.zeros((case.inputs[0].shape[0], targets))
    for at, values in sets.items():
        y[at] = {"SUM": sum, "AVERAGE": lambda v: sum(v) / trees, "MIN": min, "MAX": max}[how](values)
    base = array_of(case, "base_values")
    y = y if base is None else y + np.array(base, dtype=np.float64)
    return after_scores(y, attr(case, "post_transform"))


@says("TreeEnsembleRegressor")
def tree_regressor(case):
    x, ids = wide(case.inputs[0]), attr(case, "nodes_treeids")
    place = {(t, n): i for i, (t, n) in enumerate(zip(ids, attr(case, "nodes_nodeids")))}
    values, modes, tracks = array_of(case, "nodes_values"), attr(case, "nodes_modes"), attr(case, "nodes_missing_value_tracks_true", [0] * len(ids))
    leaves = {}
    for i, leaf in enumerate(zip(attr(case, "target_treeids"), attr(case, "target_nodeids"))):
        leaves.setdefault(leaf, []).append(i)
    found = []
    for row in range(x.shape[0]):
        for tree in sorted(set(ids)):
            i = place[tree, 0]
            while modes[i] != "LEAF":
                v = x[row, attr(case, "nodes_featureids")[i]]
                yes = bool(tracks[i]) if v != v else bool(TESTS[modes[i]](v, float(values[i])))
                i = place[tree, attr(case, "nodes_truenodeids" if yes else "nodes_falsenodeids")[i]]
            found += [(row, k, attr(case, "target_ids")[k]) for k in leaves.get((tree, attr(case, "nodes_nodeids")[i]), [])]
    return [gathered(case, found, array_of(case, "target_weights"), attr(case, "n_targets", 1), len(set(ids))).astype(np.float32)]


@says("TreeEnsemble")
def tree_ensemble(case):
    x, names = wide(case.inputs[0]), ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "MEMBER"]
    modes, splits = [names[m] for m in array_of(case, "nodes_modes")], array_of(case, "nodes_splits")
    tracks = attr(case, "nodes_missing_value_tracks_true", [0] * len(modes))
    members, rest = {}, array_of(case, "membership_values")
    if rest is not None:
        at = [i for i, m in enumerate(modes) if m == "MEMBER"]
        ends = np.flatnonzero(np.isnan(rest))
        members = {i: set(part[~np.isnan(part)].astype(np.float64)) for i, part in zip(at, np.split(rest, ends + 1))}
    found = []
    for row in range(x.shape[0]):
        for i in attr(case, "tree_roots"):
            leaf = False
            while not leaf:
                v = x[row, attr(case, "nodes_featureids")[i]]
                yes = bool(tracks[i]) if v != v else v in members[i] if modes[i] == "MEMBER" else bool(TESTS[modes[i]](v, float(splits[i])))
                way = "true" if yes else "false"
                i, leaf = attr(case, "nodes_%snodeids" % way)[i], attr(case, "nodes_%sleafs" % way)[i]
            found.append((row, i, attr(case, "leaf_targetids")[i]))
    return like(case.inputs[0], gathered(case, found, array_of(case, "leaf_weights"), attr(case, "n_targets", 1), len(attr(case, "tree_roots"))))


def one_row(case):
    return SAYS[case.op](texts.same_as(case, [case.inputs[0].reshape(1, -1)]))

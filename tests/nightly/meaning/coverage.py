#!/usr/bin/env python3
"""Checks that the draws reach what the schemas have: nothing is run, each version of each operator is drawn, and what was never drawn is
an omission unless KEPT_OUT says why.

    coverage.py [--op Resize ...] [--seed 1] [--draws 60]

Of each operator and version: every attribute, given and (where it may be) left out, with more than one value; every enumerated value;
every optional input, given and left out; variadic inputs, one and more; every optional output, asked for and not. Of each operator: a size
beyond a vector, one beyond a strip of 512, one of 1, an empty tensor."""
import argparse
import collections
import sys

from onnx import defs

from draw import Draw, operator_versions, usable_of
from meaning import DOMAINS, SPECS
import onnx

FEW = 60
MANY = 20  # times the draws, at most, for what the first do not reach

Option, Attr = defs.OpSchema.FormalParameterOption, defs.OpSchema.AttrType

# --- what the texts enumerate --------------------------------------------------------------------------------------------------------------

VALUES, TEXTS, KEPT_OUT, NO_SPEC = {}, set(), [], {}


def values(ops, name, of, since=None):
    """The values an attribute may have; `since`: those that came with a later version, {value: version}."""
    for op in ops.split():
        VALUES[op, name] = (of.split() if isinstance(of, str) else of, since or {})


def texts(ops, name):
    """An attribute that is any text."""
    TEXTS.update((op, name) for op in ops.split())


def kept_out(ops, what, reason, until=99):
    """Of `what`, as it is reported, nothing is drawn, up to version `until`."""
    for op in ops.split():
        KEPT_OUT.extend([(op, w, reason, until) for w in what])


POST = "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"
FLOATS = (1, 10, 11, 16)
values("AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool QLinearConv", "auto_pad", "NOTSET SAME_UPPER SAME_LOWER VALID")
values("BitShift", "direction", "LEFT RIGHT")
values("Cast CastLike", "round_mode", "up down nearest")
values("CausalConvWithState", "activation", "silu swish none")
values("DepthToSpace", "mode", "DCR CRD")
values("SpaceToDepth", "mode", "DCR CRD")
values("GRU LSTM RNN", "direction", "forward reverse bidirectional")
values("GRU LSTM RNN", "activations", "Relu Tanh Sigmoid Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu Softsign Softplus")
values("Gelu", "approximate", "none tanh")
VALUES["GridSample", "mode"] = ["linear", "nearest", "cubic"], {"linear": 20, "cubic": 20}
values("GridSample", "padding_mode", "zeros border reflection")
values("LinearAttention", "update_rule", "linear gated delta gated_delta")
values("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "reduction", "none sum mean")
values("Pad", "mode", "constant reflect edge wrap", {"wrap": 19})
values("Resize", "coordinate_transformation_mode", "half_pixel pytorch_half_pixel align_corners asymmetric tf_crop_and_resize half_pixel_symmetric",
       {"half_pixel_symmetric": 19})
values("Resize", "keep_aspect_ratio_policy", "stretch not_larger not_smaller")
values("Resize", "mode", "nearest linear cubic", {"cubic": 11})
values("Resize", "nearest_mode", "round_prefer_floor round_prefer_ceil floor ceil")
values("RoiAlign", "coordinate_transformation_mode", "half_pixel output_half_pixel")
values("RoiAlign", "mode", "avg max")
values("ScatterElements ScatterND", "reduction", "none add mul max min", {"max": 18, "min": 18})
values("StringNormalizer", "case_change_action", "LOWER UPPER NONE")
values("TensorScatter", "mode", "linear circular")
values("TfIdfVectorizer", "mode", "TF IDF TFIDF")
values("Upsample", "mode", "nearest linear")
values("LinearClassifier LinearRegressor SVMClassifier SVMRegressor TreeEnsembleClassifier TreeEnsembleRegressor", "post_transform", POST)
values("Normalizer", "norm", "MAX L1 L2")
values("SVMClassifier SVMRegressor", "kernel_type", "LINEAR POLY RBF SIGMOID")
values("TreeEnsembleClassifier TreeEnsembleRegressor", "nodes_modes", "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF")
values("TreeEnsembleRegressor", "aggregate_function", "AVERAGE SUM MIN MAX")
values("Momentum", "mode", "nesterov standard")
values("TreeEnsemble", "aggregate_function", (0, 1, 2, 3))
values("TreeEnsemble", "post_transform", (0, 1, 2, 3, 4))
values("Attention", "qk_matmul_output_mode", (0, 1, 2, 3))
values("Attention", "softmax_precision", FLOATS)
values("FlexAttention", "softmax_precision", FLOATS)
values("GroupNormalization LayerNormalization RMSNormalization", "stash_type", FLOATS)
values("BlackmanWindow HammingWindow HannWindow MelWeightMatrix", "output_datatype", FLOATS)
texts("Constant", "value_string")
texts("Constant", "value_strings")
texts("Einsum", "equation")
texts("RegexFullMatch", "pattern")
texts("StringNormalizer", "locale")
texts("StringNormalizer", "stopwords")
texts("StringSplit", "delimiter")
texts("TfIdfVectorizer", "pool_strings")
texts("CategoryMapper OneHotEncoder", "cats_strings")
texts("CategoryMapper LabelEncoder", "default_string")
texts("LabelEncoder", "classes_strings")
texts("LabelEncoder", "keys_strings")
texts("LabelEncoder", "values_strings")
texts("LinearClassifier SVMClassifier TreeEnsembleClassifier ZipMap", "classlabels_strings")

# --- what is not drawn, and why --------------------------------------------------------------------------------------------------------------

NO_SPEC.update({"ImageDecoder": "neither evaluator holds images without further libraries: onnx/image tests it by files",
                "CastMap": "takes a map, which no graph can be fed with as tensors", "DictVectorizer": "takes a map, which no graph can be fed with as tensors",
                "Gradient": "not supported"})

NUMBERS = "a model without its numbers has no meaning"
kept_out("TreeEnsembleRegressor TreeEnsembleClassifier", ["attribute %s never left out" % a for a in (
    "nodes_treeids nodes_nodeids nodes_featureids nodes_values nodes_modes nodes_truenodeids nodes_falsenodeids target_treeids target_nodeids "
    "target_ids target_weights n_targets class_treeids class_nodeids class_ids class_weights").split()], NUMBERS)
kept_out("SVMRegressor SVMClassifier LinearRegressor", ["attribute %s never left out" % a for a in (
    "rho coefficients n_supports support_vectors vectors_per_class kernel_params").split()], NUMBERS)
kept_out("CategoryMapper LabelEncoder", ["attribute %s never left out" % a for a in "cats_int64s cats_strings classes_strings".split()], NUMBERS)
kept_out("RegexFullMatch", ["attribute pattern never left out"], "there is no pattern to match by")
kept_out("FeatureVectorizer", ["attribute inputdimensions never left out"], "the evaluator fails without; broken nodes lack it")
kept_out("SVMClassifier", ["attribute post_transform never %s" % p for p in POST.split()[1:]],
         "what becomes of the scores of two classes no text says, and the evaluators make different things of them")
kept_out("TreeEnsembleClassifier", ["attribute post_transform never SOFTMAX_ZERO", "attribute post_transform never PROBIT"],
         "what becomes of the scores of two classes no text says, and the evaluators make different things of them")
kept_out("BatchNormalization", ["output %s never asked for" % o for o in ("mean", "var", "saved_mean", "saved_var")],
         "before 14 having them means training, which neither evaluator does so: tests/onnx has it", until=13)
kept_out("MeanVarianceNormalization NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss DynamicQuantizeLinear", ["no size of 0"],
         "the mean, the range of nothing has no value")
kept_out("HannWindow HammingWindow BlackmanWindow MelWeightMatrix GridSample StringNormalizer TfIdfVectorizer Resize Upsample", ["no size of 0"],
         "neither evaluator takes nothing; broken nodes have it")
kept_out("ArrayFeatureExtractor Imputer LinearRegressor LinearClassifier Normalizer Scaler SVMRegressor SVMClassifier TreeEnsembleRegressor "
         "TreeEnsembleClassifier TreeEnsemble ZipMap FeatureVectorizer", ["no size of 0"], "no rows: neither evaluator; broken nodes have none")
kept_out("LinearAttention", ["no size beyond 512"], "the evaluator runs a loop of Python for each step and head")
# --- the check -------------------------------------------------------------------------------------------------------------------------------


def flat(value):
    """The values of an attribute, each as something that can be kept in a set."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return [value]


class Seen:
    def __init__(self):
        self.given, self.left = set(), set()
        self.values = collections.defaultdict(set)
        self.inputs, self.no_inputs, self.counts = set(), set(), set()
        self.outputs, self.no_outputs = set(), set()

    def take(self, case, schema):
        for name in schema.attributes:
            v = case.attrs.get(name)
            if v is None:
                self.left.add(name)
                continue
            self.given.add(name)
            v = case.attrs[name]
            whole = v.SerializeToString() if isinstance(v, (onnx.GraphProto, onnx.TensorProto, onnx.SparseTensorProto, onnx.TypeProto)) else repr(v)
            self.values[name].add(whole)
            if isinstance(v, (str, int, float, list, tuple)):
                self.values[name, "each"].update(flat(v))
        names = case.names() if case.input_names is None else list(case.input_names)
        self.counts.add(len(names))
        for i in range(len(schema.inputs)):
            (self.inputs if i < len(names) and names[i] else self.no_inputs).add(i)
        for i in range(len(schema.outputs)):
            (self.outputs if i < len(case.outputs) and case.outputs[i] else self.no_outputs).add(i)


def missing(op, version, schema, seen):
    """What was not drawn of one version."""
    out = []
    for name, a in schema.attributes.items():
        enumerated = VALUES.get((op, name))
        if a.type in (Attr.STRING, Attr.STRINGS) and enumerated is None and (op, name) not in TEXTS:
            out.append("attribute %s: coverage.py does not say what texts it has" % name)
        if name not in seen.given:
            out.append("attribute %s never given" % name)
            continue
        if not a.required and name not in seen.left:
            out.append("attribute %s never left out" % name)
        if enumerated is not None:
            for v in enumerated[0]:
                if enumerated[1].get(v, 0) <= version and v not in seen.values[name, "each"]:
                    out.append("attribute %s never %s" % (name, v))
        elif len(seen.values[name]) < 2:
            out.append("attribute %s has one value alone" % name)
    for i, p in enumerate(schema.inputs):
        if i not in seen.inputs:
            out.append("input %s never given" % p.name)
        if p.option == Option.Optional and i not in seen.no_inputs:
            out.append("input %s never left out" % p.name)
        if p.option == Option.Variadic and max(seen.counts, default=0) < i + 2 and schema.max_input > i + 1:
            out.append("input %s never more than one" % p.name)
    for i, p in enumerate(schema.outputs):
        if i not in seen.outputs:
            out.append("output %s never asked for" % p.name)
        if p.option == Option.Optional and i not in seen.no_outputs:
            out.append("output %s never left out" % p.name)
    return out


def sizes_of(case):
    return {n for x in case.inputs if x is not None for n in x.shape} | case.sizes


def missing_sizes(sizes):
    out = []
    if not any(n > 16 for n in sizes):
        out.append("no size beyond 16")
    if not any(n > 512 for n in sizes):
        out.append("no size beyond 512")
    return out + ["no size of %d" % n for n in (0, 1) if n not in sizes]


def reason_for(op, version, what):
    for who, said, reason, until in KEPT_OUT:
        if who == op and said == what and version <= until:
            return reason
    return None


def check(op, options, report):
    domain, sizes = DOMAINS[op], set()
    for version in usable_of(operator_versions(op, domain), domain):
        seen, number = Seen(), 0
        for goal in (options.draws, options.draws * 4, options.draws * MANY):
            while number < goal:
                d = Draw(op, options.seed, 1_000_000 + number, domain, version)
                case = SPECS[op](d)
                seen.take(case, d.schema)
                sizes |= sizes_of(case)
                number += 1
            left = missing(op, version, d.schema, seen)
            if all(reason_for(op, version, what) for what in left):
                break
        for what in left:
            report(op, version, what)
    for number in range(options.draws * MANY):
        left = missing_sizes(sizes)
        if all(reason_for(op, 0, what) for what in left):
            break
        sizes |= sizes_of(SPECS[op](Draw(op, options.seed, 2_000_000 + number, domain)))
    for what in left:
        report(op, 0, what)


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--op", nargs="*")
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--draws", type=int, default=FEW, help="of each version; %d times as many for what they do not reach" % MANY)
    options = parse.parse_args()
    found, used = collections.defaultdict(list), set()

    def report(op, version, what):
        if reason_for(op, version, what):
            used.add((op, what))
        else:
            found[op, what].append(version)

    known = {(s.domain, s.name) for s in defs.get_all_schemas_with_history() if not all(
        v.deprecated for v in defs.get_all_schemas_with_history() if (v.domain, v.name) == (s.domain, s.name))} if not options.op else set()
    for domain, name in sorted(known):
        if name not in SPECS and name not in NO_SPEC:
            found[name, "no spec"].append(0)
    for op in options.op or SPECS:
        check(op, options, report)
    for (op, what), versions in found.items():
        print("%s%s: %s" % (op, "" if versions == [0] else "-" + ",".join(map(str, versions)), what))
    print("seed %d: %d omissions; %d things kept out, with reasons" % (options.seed, len(found), len(used)))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

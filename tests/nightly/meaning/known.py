"""Where an evaluator is known to be wrong, with the reason by the operator's text: operators, who, the reason, a condition on the
case. Tenon must then agree with the other one, or has no witness. `cast_first`: the values are right, the dtype is not.
`left_open`: broken nodes that the text does not forbid, whatever the evaluators ask for; what it says of them is in texts.py."""
import numpy as np
from onnx import defs

import judges
import judges_ml
import texts
from draw import DTYPES, STRING, is_float, is_int

STANDARD, ORT = "standard", "ort"
ROWS, CASTS, OPEN, UNSAID = [], [], [], []
NO_WITNESS = {}  # operators of which no draw is judged, and why
SAME_SINCE = {"MaxRoiPool": 21, "GlobalLpPool": 21}  # ONNX Runtime has the version before, which differs in its types alone


def known(ops, who, reason, when=lambda case: True):
    ROWS.append((set(ops.split()), who, when, reason))


def cast_first(ops, who, reason, when=lambda case: True):
    CASTS.append((set(ops.split()), who, when, reason))


def left_open(ops, reason, when, says=None):
    """says(case): what the text gives, as a list of results or as a case of the same meaning for the evaluators. None: anything."""
    OPEN.append((set(ops.split()), "broken", when, (reason, says)))


def unsaid(ops, reason, when):
    """Broken nodes of which the text leaves open what the result is: it may be another than both evaluators have."""
    UNSAID.append((set(ops.split()), "broken", when, reason))


def _find(rows, case, who):
    for ops, wrong, when, reason in rows:
        if wrong == who and case.op in ops:
            try:
                if when(case):
                    return reason
            except Exception:  # a condition that does not fit this (broken) case
                continue
    return None


def is_known(case, who):
    return _find(ROWS, case, who)


def is_open(case):
    """(why a broken node that both evaluators refuse has a meaning by the operator's text, that meaning), or None."""
    return _find(OPEN, case, "broken")


def is_unsaid(case):
    return _find(UNSAID, case, "broken")


def is_cast(case, who):
    return _find(CASTS, case, who)


def attr(case, name, default=None):
    v = case.attrs.get(name)
    return default if v is None else v


def taken(case):
    """The types of input 0 that the operator's text in this operator set lists."""
    schema = defs.get_schema(case.op, case.opset, case.domain or "")
    names = [t for p in schema.type_constraints if p.type_param_str == schema.inputs[0].type_str for t in p.allowed_type_strs]
    return {DTYPES[n[7:-1]] for n in names if n[7:-1] in DTYPES}


def padded(case):
    pads = attr(case, "pads")
    return bool(pads) and any(pads)


def auto(case):
    return attr(case, "auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER")


def dilated(case):
    return any(d != 1 for d in attr(case, "dilations", []))


def over_the_end(case):
    kernel = attr(case, "kernel_shape", [])
    return any((n - k) % s for n, k, s in zip(case.inputs[0].shape[2:], kernel, attr(case, "strides", [1] * len(kernel))))


def strided_past(case):
    return any(s > k for s, k in zip(attr(case, "strides", []), attr(case, "kernel_shape", [])))


def varies_little(x, axes):
    x = x.astype(np.float64)
    mean, var = np.mean(x, axis=tuple(axes)), np.var(x, axis=tuple(axes))
    return bool(np.any(var < 1e-3 * mean * mean))


# --- elementwise ---------------------------------------------------------------------------------------------------------------------

known("Dropout", ORT, "says of the mask of an unchanged tensor that nothing was kept; the texts of 10 leave it open, those of 12 say all",
      lambda c: c.opset < 12)

cast_first("Dropout", STANDARD, "before 10 the mask has the type of the input", lambda c: c.opset < 10)

# --- reductions, order ----------------------------------------------------------------------------------------------------------------

cast_first("ReduceSumSquare", STANDARD, "numpy adds small integers up in int64; the result has the input's type")
known("ReduceProd", ORT, "whole numbers wrap; it takes the largest for products that are too large for int32",
      lambda c: c.inputs[0].dtype == np.int32)
known("ReduceMean", STANDARD, "the mean of no integers has no value", lambda c: 0 in c.inputs[0].shape and is_int(c.inputs[0].dtype))
known("ReduceMean", ORT, "the mean of no integers has no value", lambda c: 0 in c.inputs[0].shape and is_int(c.inputs[0].dtype))
known("Softmax LogSoftmax Hardmax", STANDARD, "before 13 the axes from `axis` on are one; it takes the axis alone", lambda c: c.opset < 13)
known("Hardmax", STANDARD, "marks one element of the whole tensor when ties lie across other axes", lambda c: c.inputs[0].ndim > 3)
known("Unique", STANDARD, "sorted=0 keeps the order of first occurrence; it does so only for some shapes",
      lambda c: attr(c, "sorted") == 0)

# --- movement ---------------------------------------------------------------------------------------------------------------------------

known("Slice", STANDARD, "clamps a start before the first element to 0 when the step is negative; the text: to [0, n-1], then -1 is the end",
      lambda c: c.opset >= 10 and len(c.inputs) > 4)
known("Unsqueeze", STANDARD, "before 13 it inserts one axis after the other; axes are those of the result", lambda c: c.opset < 13)
known("Shape", STANDARD, "does not clamp a start or end before the first axis",
      lambda c: any(attr(c, k, 0) < -c.inputs[0].ndim for k in ("start", "end")))
known("CenterCropPad Trilu", STANDARD, "a string that is filled in is empty, not the digit 0", lambda c: c.inputs[0].dtype == STRING)

# --- windows ----------------------------------------------------------------------------------------------------------------------------

known("ConvTranspose", STANDARD, "does not know groups, output_padding with auto_pad, or output_shape",
      lambda c: attr(c, "group", 1) > 1 or attr(c, "output_shape") or (
          auto(c) and max(attr(c, "output_padding", [0])) > 0))
known("ConvTranspose", ORT, "auto_pad: the size is n * stride also where the kernel does not reach so far",
      lambda c: auto(c) and any(k < s for k, s in zip(judges.transposed_reach(c), attr(c, "strides", [1] * 9))))
known("MaxPool LpPool", STANDARD, "auto_pad: the size is ceil(n / stride) and padding is never negative; it does otherwise", auto)
known("MaxPool LpPool", STANDARD, "pads that differ at the two ends of an axis", lambda c: padded(c))
known("MaxPool", STANDARD, "positions of the largest are those in the whole tensor, in either storage order; not so unless 2-D",
      lambda c: len(c.outputs) > 1)
known("LpPool", STANDARD, "windows over the end (ceil_mode), VALID with dilation", lambda c: attr(c, "ceil_mode") == 1 or (
    attr(c, "auto_pad") == "VALID" and dilated(c)) or dilated(c))
known("AveragePool", STANDARD, "dilated windows with auto_pad: the padding is of the dilated window", auto)
known("AveragePool LpPool MaxPool", ORT, "dilated windows with auto_pad: the padding is of the dilated window",
      lambda c: auto(c) and dilated(c))
known("AveragePool LpPool MaxPool", ORT, "VALID and ceil_mode: ceil((n - k + 1) / stride)",
      lambda c: attr(c, "auto_pad") == "VALID" and attr(c, "ceil_mode") == 1)
known("AveragePool LpPool MaxPool Conv", ORT, "auto_pad with strides longer than the kernel: there is no padding less than none",
      lambda c: auto(c) and strided_past(c))
known("Pad CenterCropPad", STANDARD, "the default of a string is the empty one", lambda c: c.inputs[0].dtype == STRING)
known("GlobalMaxPool", STANDARD, "reduces one axis too few or too many unless there are two spatial ones", lambda c: c.inputs[0].ndim != 4)
known("BatchNormalization", STANDARD, "takes the forms before 14 for training", lambda c: c.opset < 14)
cast_first("BatchNormalization", STANDARD, "running statistics have their own type", lambda c: c.opset >= 14)
cast_first("Det AffineGrid", STANDARD, "the result has the input's type")
cast_first("RMSNormalization", STANDARD, "the result has the type of the scale")
cast_first("LayerNormalization", ORT, "statistics are f32 with stash_type 1")
cast_first("LayerNormalization", STANDARD, "the result has the input's type")
known("LpNormalization", STANDARD, "p=1: the norm is the sum of magnitudes", lambda c: attr(c, "p", 2) == 1)
known("OneHot", STANDARD, "numbers are cast to int64 before they are counted from the end; it counts, and compares, fractions",
      lambda c: is_float(c.inputs[0].dtype) and bool((c.inputs[0] != np.trunc(c.inputs[0])).any()))
known("LRN", STANDARD, "takes the number of images for the number of channels")
known("LRN", ORT, "x over an infinite power is 0; it has NaN", lambda c: np.isinf(attr(c, "alpha", 0.0)))
known("Col2Im", ORT, "dilation with other than two spatial axes", lambda c: c.inputs[1].size != 2)
known("AffineGrid", ORT, "align_corners with one position on an axis: it is at -1, the first of linspace",
      lambda c: attr(c, "align_corners") == 1 and 1 in c.inputs[1].tolist()[2:])

known("AveragePool", STANDARD, "ceil_mode: it pads for the windows over the end at the wrong place, with pads once more",
      lambda c: (padded(c) or strided_past(c) or over_the_end(c)) and attr(c, "ceil_mode") == 1)
known("MaxPool", ORT, "a window that meets nothing has no largest: it is minus infinity, not the lowest number",
      lambda c: dilated(c) and (padded(c) or auto(c)))
known("MeanVarianceNormalization", STANDARD, "E[x^2] - E[x]^2 loses the variance of what varies little", lambda c: varies_little(
    c.inputs[0], attr(c, "axes", [0, 2, 3])))

known("MaxUnpool", ORT, "indices are of the tensor that the attributes give, as in the standard's example; it takes those of output_shape",
      lambda c: c.inputs[2] is not None)
known("AveragePool", STANDARD, "windows over the end (ceil_mode) with dilation, or counted with what is beyond the end",
      lambda c: attr(c, "ceil_mode") == 1 and (dilated(c) or attr(c, "count_include_pad") == 1))
known("Swish", ORT, "its logistic function is near by 1e-7 of 1, not of its own value: a hundredth is wrong of one of 1e-5",
      lambda c: c.inputs[0].dtype == np.float32 and float(np.nanmin(c.inputs[0] * attr(c, "alpha", 1.0))) < -8)
known("GroupNormalization", STANDARD, "sums in half precision, which stash_type asks for, do not reach the numbers",
      lambda c: attr(c, "stash_type") in (10, 16))
known("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", STANDARD, "adds many numbers up in half precision",
      lambda c: c.inputs[0].dtype.itemsize == 2 and max(c.inputs[0].shape) > 16)
known("FlexAttention", STANDARD, "probabilities of many keys in half precision do not reach 1",
      lambda c: attr(c, "softmax_precision") in (10, 16) and c.inputs[1].shape[2] > 16)
known("LpNormalization", STANDARD, "squares have no place in half precision", lambda c: c.inputs[0].dtype.itemsize == 2)
for _who in (STANDARD, ORT):
    known("GroupNormalization", _who, "E[x^2] - E[x]^2 loses the variance of what varies little", lambda c: varies_little(
        c.inputs[0].reshape(c.inputs[0].shape[0], c.attrs["num_groups"], -1), [2]))
known("ConvInteger", STANDARD, "a zero point for each output channel is one for each filter, not for each of its places", lambda c: c.inputs[3] is not None
      and c.inputs[3].size > 1)
known("TreeEnsemble", STANDARD, "set membership: asks whether the number equals the sets' first member", lambda c: attr(c, "membership_values") is not None)
known("DeformConv", STANDARD, "reads between pixels in f32, and takes half precision for coordinates", lambda c: c.inputs[0].dtype != np.float32)
known("ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare ReduceProd CumSum CumProd Softmax LogSoftmax LpNormalization", STANDARD,
      "adds many numbers up in half precision", lambda c: c.inputs[0].dtype.itemsize == 2 and max(c.inputs[0].shape) > 16)

# --- resizing and sampling ----------------------------------------------------------------------------------------------------------------

known("Resize", STANDARD, "the size of a region is floor(n * (end - start) * scale)",
      lambda c: attr(c, "coordinate_transformation_mode") == "tf_crop_and_resize" and c.inputs[2] is not None and c.inputs[2].size)
known("Resize", ORT, "the size of a region is floor(n * (end - start) * scale)",
      lambda c: attr(c, "coordinate_transformation_mode") == "tf_crop_and_resize" and c.inputs[2] is not None and c.inputs[2].size)
known("Resize", ORT, "align_corners by scales: the standard's examples take scale * n, which may be no whole number, as the length",
      lambda c: attr(c, "coordinate_transformation_mode") == "align_corners" and (
          c.inputs[2] is not None and c.inputs[2].size or attr(c, "keep_aspect_ratio_policy", "stretch") != "stretch"))
known("Resize", ORT, "an axis whose length stays is resampled all the same when its scale is not 1, or a region is cut out",
      lambda c: any(int(s * n) == n and (s != 1 or c.inputs[1] is not None and c.inputs[1].size > 1) for s, n in zip(
          c.inputs[2] if c.inputs[2] is not None and c.inputs[2].size else c.inputs[3] / np.array(_resized(c)), _resized(c))))
known("Resize", ORT, "an axis whose length stays is resampled all the same when its scale is not 1",
      lambda c: c.opset == 10 and any(int(s * n) == n and s != 1 for s, n in zip(c.inputs[1], c.inputs[0].shape)))
known("Resize", ORT, "linear, antialias: what lies outside is taken in, exclude_outside or not",
      lambda c: attr(c, "antialias") == 1 and attr(c, "exclude_outside") == 1)
known("Resize", ORT, "negative axes count from the end", lambda c: any(a < 0 for a in attr(c, "axes", [])))
known("Resize", ORT, "tf_half_pixel_for_nn: (x + 0.5) / scale, also on an axis whose length stays, also when it is not for nn",
      lambda c: attr(c, "coordinate_transformation_mode") == "tf_half_pixel_for_nn")
known("Resize", STANDARD, "pytorch_half_pixel: an axis of length 1 reads at 0; it asks whether scale * n is at most 1",
      lambda c: attr(c, "coordinate_transformation_mode") == "pytorch_half_pixel")
known("Resize", STANDARD, "coordinates in half precision", lambda c: c.inputs[1] is not None and c.inputs[1].dtype.itemsize == 2)
known("GridSample", STANDARD, "positions are in f32 there, of whatever type the grid is, or in half precision", lambda c: c.inputs[1].dtype != np.float32)


def _resized(case):
    axes = attr(case, "axes")
    return [case.inputs[0].shape[a] for a in axes] if axes else case.inputs[0].shape
known("GridSample", ORT, "cubic at a border: what lies outside has the border's value; it goes on interpolating", lambda c: attr(c, "padding_mode") == "border"
      and attr(c, "mode") in ("cubic", "bicubic"))
known("RoiAlign", STANDARD, "before 16 positions are not moved by half an element", lambda c: c.opset < 16)
known("MeanVarianceNormalization", ORT, "divides 0 by 0 where the deviation is 0; the text adds 1e-9",
      lambda c: all(c.inputs[0].shape[a] == 1 for a in attr(c, "axes", [0, 2, 3])))
known("Cast CastLike", ORT, "rounds to 4-bit and 2-bit integers; a cast of a float to an integer truncates",
      lambda c: c.op == "CastLike" and c.inputs[1].dtype.name in ("int4", "uint4", "int2", "uint2") or attr(c, "to") in (21, 22, 25, 26))
known("Cast CastLike", STANDARD, "strings as bools: any text that is not empty is true to it, '0' too",
      lambda c: c.inputs[0].dtype == STRING and (attr(c, "to") == 9 or c.op == "CastLike" and c.inputs[1].dtype == bool))
known("Cast CastLike", STANDARD, "f8e8m0: the table of the text has extremes when saturating, else NaN, for what is out of range",
      lambda c: attr(c, "to") == 24 or c.op == "CastLike" and "e8m0" in c.inputs[1].dtype.name)
known("RMSNormalization", STANDARD, "the normalised values are rounded to the input's type before they are scaled",
      lambda c: c.inputs[0].dtype.itemsize == 2)
known("LayerNormalization", STANDARD, "computes in bf16 what stash_type 1 wants in f32", lambda c: c.inputs[0].dtype.name == "bfloat16")

# --- recurrent, attention, control ----------------------------------------------------------------------------------------------------------

known("LSTM GRU RNN", STANDARD, "does not know sequence_lens, clip, nor (LSTM, GRU) other activations",
      lambda c: c.inputs[4] is not None or attr(c, "clip") is not None or (c.op != "RNN" and attr(c, "activations") is not None))
known("LSTM", STANDARD, "does not know input_forget", lambda c: attr(c, "input_forget") == 1)
known("Attention", ORT, "is_causal with a past: query i attends key j up to i + offset",
      lambda c: attr(c, "is_causal") == 1 and len(c.inputs) > 4 and c.inputs[4] is not None)
known("Attention", STANDARD, "qk_matmul_output_mode 0 is the plain product; it hands over what the soft cap left",
      lambda c: len(c.outputs) > 3 and attr(c, "softcap", 0) != 0)
known("Loop", STANDARD, "scalars are scanned to one number each, not to lists; loops without a condition", lambda c: True)
known("Loop", ORT, "what no trip made has no size that can be told", lambda c: c.inputs[0] is not None and c.inputs[0] == 0)
known("NegativeLogLikelihoodLoss", STANDARD, "an ignored target does not count in the mean, when it is -1 neither", lambda c: attr(c, "ignore_index") == -1)
known("Loop", ORT, "what no trip made has no size that can be told", lambda c: c.inputs[1] is not None and not c.inputs[1].all())
known("Attention", ORT, "what is masked is minus infinity, not the lowest number", lambda c: attr(c, "qk_matmul_output_mode") == 2)
known("Sign", ORT, "the sign of what is not a number is none, in f32 as in f16", lambda c: c.inputs[0].dtype.itemsize == 2)
known("Clip", ORT, "without a bound infinities stay", lambda c: c.inputs[0].dtype == np.float64)
known("Cast CastLike", ORT, "negative zeros of 8-bit floats are true to it", lambda c: c.inputs[0].dtype.name.startswith("float8") and
      (attr(c, "to") == 9 or c.op == "CastLike" and c.inputs[1].dtype == bool))
known("CastLike", ORT, "drops round_mode", lambda c: attr(c, "round_mode", "up") != "up")
known("ReduceMean", ORT, "the mean of nothing is 0 / 0", lambda c: 0 in c.inputs[0].shape)
known("ReduceLogSumExp", ORT, "of integers: takes the logarithm's whole part before it adds the largest", lambda c: is_int(c.inputs[0].dtype))
known("Gather", ORT, "strings: of slices of more than one element only the first is copied",
      lambda c: c.inputs[0].dtype == STRING and np.prod(c.inputs[0].shape[attr(c, "axis", 0):][1:]) > 1)
known("AveragePool", ORT, "a window that meets nothing is 0 / 0", lambda c: dilated(c) and attr(c, "count_include_pad", 0) == 0)
known("BatchNormalization", STANDARD, "statistics in half precision", lambda c: c.opset >= 14 and c.inputs[0].dtype.itemsize == 2)
known("MelWeightMatrix", STANDARD, "computes in bf16 when the edges are", lambda c: c.inputs[3].dtype.itemsize == 2)
known("Scan", STANDARD, "scans along other axes than 0 as if along 0", lambda c: any(attr(c, "scan_input_axes", [])))
known("Clip", ORT, "without a bound infinities stay", lambda c: len(c.inputs) > 1 and any(x is None for x in c.inputs[1:]))
known("CastLike", ORT, "negative numbers have no f8e8m0", lambda c: "e8m0" in c.inputs[1].dtype.name and "int" in c.inputs[0].dtype.name)
known("AveragePool", STANDARD, "VALID with dilation", lambda c: attr(c, "auto_pad") == "VALID" and dilated(c))
known("GridSample", STANDARD, "a string that is filled in is empty, not the digit 0", lambda c: c.inputs[0].dtype == STRING)
known("LSTM GRU RNN", ORT, "Softplus of large numbers is not infinite", lambda c: "Softplus" in attr(c, "activations", []))
known("Sum", ORT, "adds f16 up in f16", lambda c: c.inputs[0].dtype == np.float16)

# --- quantisation, strings, sequences -------------------------------------------------------------------------------------------------------

known("QuantizeLinear", STANDARD, "without `precision` the quotient has the type of the scale",
      lambda c: c.opset >= 23 and c.inputs[0].dtype != c.inputs[1].dtype and attr(c, "precision", 0) == 0)
known("DynamicQuantizeLinear", STANDARD, "the scale of zeros is 0: (0 - 0) / 255", lambda c: not np.any(c.inputs[0]))
known("DynamicQuantizeLinear", ORT, "the scale of zeros is 0: (0 - 0) / 255", lambda c: not np.any(c.inputs[0]))
known("MatMulInteger", STANDARD, "a vector of zero points of A is one for each row, not for each column",
      lambda c: c.inputs[2] is not None and c.inputs[2].size > 1)
known("QLinearMatMul", STANDARD, "cuts 8-bit floats to integers", lambda c: any("float8" in c.inputs[i].dtype.name for i in (0, 3, 7)))
known("QLinearConv", STANDARD, "scales of the channels with other than two spatial axes", lambda c: c.inputs[4].size > 1 and c.inputs[0].ndim != 4)
known("StringSplit", ORT, "the empty text is one substring unless it is whitespace that delimits", lambda c: bool(attr(c, "delimiter"))
      and "" in c.inputs[0])
known("StringSplit", ORT, "what is left over after maxsplit keeps the whitespace at its end", lambda c: attr(c, "maxsplit") is not None
      and not attr(c, "delimiter") and any(s != s.rstrip() for s in c.inputs[0].ravel()))
known("StringNormalizer", STANDARD, "empty texts are no stop words", lambda c: "" in c.inputs[0])
known("StringNormalizer", STANDARD, "accents stay", lambda c: any(not s.isascii() for s in c.inputs[0].ravel()))
known("StringNormalizer", STANDARD, "stop words that are compared without case are so also when the case is not changed",
      lambda c: attr(c, "is_case_sensitive", 0) == 0 and attr(c, "stopwords") and attr(c, "case_change_action", "NONE") == "NONE")
known("SequenceInsert", STANDARD, "the position after the last is the end; it is the beginning to it",
      lambda c: len(c.inputs) > 2 and c.inputs[-1] is not None and c.inputs[-1].ndim == 0 and c.inputs[-1] == len(c.before[0].input))
known("SplitToSequence", ORT, "keepdims is ignored when split is given", lambda c: c.inputs[1] is not None and attr(c, "keepdims") == 0)
known("RNN", STANDARD, "the second direction's activations have parameters of their own; it takes the first's",
      lambda c: attr(c, "direction") == "bidirectional" and attr(c, "activation_alpha") is not None)

# --- ai.onnx.ml, training -------------------------------------------------------------------------------------------------------------------

cast_first("FeatureVectorizer LinearRegressor LinearClassifier Normalizer Scaler SVMRegressor SVMClassifier TreeEnsembleRegressor", STANDARD,
           "the result is f32, whatever the input is")
cast_first("Adam Momentum Adagrad", STANDARD, "results have the type of the tensors, not of the learning rate")
known("LinearRegressor", STANDARD, "without intercepts they are 0, not NaN; coefficients are no integers when the input is",
      lambda c: attr(c, "intercepts") is None or is_int(c.inputs[0].dtype))
known("TreeEnsemble TreeEnsembleRegressor", STANDARD, "a target that no leaf adds to is 0, not the largest or lowest number",
      lambda c: attr(c, "aggregate_function") in ("MIN", "MAX", 2, 3))
known("TreeEnsembleClassifier", STANDARD, "takes leaves of one class alone for those of the second of two", lambda c: len(set(attr(c, "class_ids"))) == 1)
known("TreeEnsembleClassifier", ORT, "answers no label for the second of two classes, and other scores",
      lambda c: len(attr(c, "classlabels_int64s") or attr(c, "classlabels_strings")) == 2)
known("TreeEnsembleRegressor SVMRegressor LinearRegressor TreeEnsemble", ORT, "post_transform is of all scores, of one target and of a kernel, too",
      lambda c: attr(c, "post_transform") not in (None, "NONE", 0))
known("TreeEnsemble", STANDARD, "numbers of post_transform: 1 SOFTMAX, 2 LOGISTIC, 3 SOFTMAX_ZERO, 4 PROBIT; does not know all",
      lambda c: attr(c, "post_transform", 0) != 0)
known("LinearClassifier", STANDARD, "without intercepts they are 0", lambda c: attr(c, "intercepts") is None)
known("LinearClassifier", STANDARD, "the label is that of the largest score, not of the largest that PROBIT makes of it",
      lambda c: attr(c, "post_transform") == "PROBIT")
known("Optional", STANDARD, "what was given no input has no element", lambda c: not c.inputs)
known("Optional", STANDARD, "what was given no input has no element", lambda c: c.invalid and all(x is None for x in c.inputs))
known("OptionalHasElement", STANDARD, "what was given no input has no element", lambda c: not c.inputs)
known("Normalizer Scaler SVMRegressor SVMClassifier TreeEnsembleRegressor", STANDARD, "computes in the integers that come in; the result is f32",
      lambda c: is_int(c.inputs[0].dtype))
known("LinearClassifier", STANDARD, "the label is that of the largest score, also when the logistic function makes several 1",
      lambda c: attr(c, "post_transform") == "LOGISTIC" and (is_int(c.inputs[0].dtype) or c.inputs[0].shape[1] > 9))
known("TreeEnsembleRegressor", ORT, "a target that no leaf adds to has its base value", lambda c: (attr(c, "base_values") or attr(c, "base_values_as_tensor")) is not None
      and attr(c, "n_targets") > 1)
known("Normalizer", STANDARD, "MAX divides by the largest, not by the largest magnitude", lambda c: attr(c, "norm", "MAX") == "MAX")
known("SVMClassifier", STANDARD, "probabilities of three classes: a product of vectors where each has its own",
      lambda c: attr(c, "prob_a") is not None and len(c.attrs["vectors_per_class"]) > 2)
known("Pad", STANDARD, "f8e8m0 has no zero: it is the smallest number, as a cast says", lambda c: "e8m0" in c.inputs[0].dtype.name)
known("Resize", STANDARD, "tf_half_pixel_for_nn: (x + 0.5) / scale, also where the scale is 1",
      lambda c: attr(c, "coordinate_transformation_mode") == "tf_half_pixel_for_nn")
cast_first("RNN", STANDARD, "the result has the type of the input", lambda c: attr(c, "activations") is not None)
known("SVMClassifier", STANDARD, "positive coefficients do not make the label another", lambda c: min(c.attrs["coefficients"]) >= 0)
known("Softplus", ORT, "of large numbers is not infinite in half precision", lambda c: c.inputs[0].dtype == np.float16)
known("Cast CastLike", ORT, "without saturation what is beyond the largest f8e5m2 is infinite", lambda c: attr(c, "saturate") == 0 and (
    attr(c, "to") == 19 or c.op == "CastLike" and c.inputs[1].dtype.name == "float8_e5m2"))
known("Cast CastLike", STANDARD, "bools as text: Python's words; elsewhere 1 and 0, which are read back",
      lambda c: c.inputs[0].dtype == bool and (attr(c, "to") == 8 or c.op == "CastLike" and c.inputs[1].dtype == STRING))

# --- broken nodes that have a meaning -------------------------------------------------------------------------------------------------------


def has(case, *what):
    return any(x is not None and x.dtype.kind == "f" and any(w(x).any() for w in what) for x in case.inputs)


left_open("GridSample", "no images, none of their channels, no positions: nothing", lambda c: 0 in c.inputs[0].shape[:2] or 0 in c.inputs[1].shape)
left_open("STFT", "no frame fits: none", lambda c: c.inputs[0].shape[1] < int(c.inputs[3]) if c.inputs[2] is None else c.inputs[0].shape[1] < c.inputs[2].size)
left_open("ConvTranspose GlobalAveragePool GlobalMaxPool AveragePool MaxPool LpPool GroupNormalization Col2Im", "nothing in, nothing (or the bias) out: the sizes are those of the formula",
          lambda c: 0 in c.inputs[0].shape)
left_open("CumSum CumProd", "a list of one axis, as files have it, is that axis", lambda c: c.inputs[1].shape == (1,), judges.cumulative)
left_open("Slice ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Squeeze Unsqueeze",
          "a number, as files have it, is a list of one", lambda c: any(x is not None and x.ndim == 0 for x in c.inputs[1:]) and not (
              c.op.startswith("ReduceLog") and is_int(c.inputs[0].dtype)), texts.lists)
left_open("ReduceLogSum ReduceLogSumExp", "the same of whole numbers, which neither evaluator rounds by the text: no witness",
          lambda c: c.inputs[1].ndim == 0 and is_int(c.inputs[0].dtype))
left_open("Cast CastLike", "types that came later", lambda c: c.opset < 21)
left_open("Reshape", "of nothing -1 is any size: what the other dimensions leave", lambda c: 0 in c.inputs[0].shape and -1 in c.inputs[1])
left_open("Unique", "of whole numbers of any size", lambda c: is_int(c.inputs[0].dtype), judges.unique)
left_open("Mean", "from 8 on the inputs broadcast; the evaluator adds up in place, in the first shape",
          lambda c: c.opset >= 8 and c.inputs[0].shape != np.broadcast_shapes(*[x.shape for x in c.inputs]), texts.mean)
left_open("OneHot", "depth is a scalar or a list of one; the evaluator makes no size of a list", lambda c: c.inputs[1].shape == (1,), texts.scalar_depth)
left_open("OneHot", "an index alone has a row, too", lambda c: c.inputs[0].ndim == 0)
left_open("Pad", "negative pads cut, in every mode", lambda c: (np.array(attr(c, "pads") or c.inputs[1]) < 0).any())
left_open("OneHotEncoder", "of nothing, nothing", lambda c: c.inputs[0].size == 0, texts.one_hot_encoder)
left_open("TensorScatter", "of no elements none is written outside", lambda c: 0 in c.inputs[0].shape)
left_open("OneHotEncoder", "what is no number becomes some integer", lambda c: has(c, np.isnan, np.isinf))
left_open("Range", "no steps lead away from an infinite limit: max(..., 0)", lambda c: has(c, np.isinf))
left_open("GridSample RoiAlign MaxRoiPool", "positions that are not numbers", lambda c: has(c, np.isnan, np.isinf))
left_open("LRN", "[N, C] and any number of axes more; the evaluators take four", lambda c: c.inputs[0].ndim >= 2 and c.inputs[0].ndim != 4 and
          1 <= attr(c, "size") <= 100, texts.lrn)
left_open("LRN", "as many channels as there are, though the evaluator takes the number of images for theirs",
          lambda c: c.inputs[0].ndim == 4 and 1 <= attr(c, "size") <= 100, texts.lrn)
left_open("CastLike", "saturate and round_mode say something of 8-bit floats alone",
          lambda c: attr(c, "saturate") is not None or attr(c, "round_mode") is not None)
left_open("QLinearConv", "any number of spatial axes, with a number for each output channel", lambda c: c.inputs[3].ndim > 4)
left_open("Cast", "saturate says something of 8-bit floats alone", lambda c: attr(c, "saturate") is not None)
left_open("QuantizeLinear DequantizeLinear", "one block alone may be of any size", lambda c: attr(c, "block_size", 0) > 100)
left_open("FeatureVectorizer", "inputdimensions is optional: the inputs have sizes", lambda c: attr(c, "inputdimensions") is None)
left_open("GlobalLpPool", "[N, C] and any number of axes more; ONNX Runtime takes two or three, the evaluator has none",
          lambda c: c.inputs[0].ndim >= 2 and 1 <= attr(c, "p", 2) <= 100, texts.global_lp_pool)
left_open("LSTM GRU RNN", "no output need be asked for", lambda c: not c.outputs)
left_open("Loop", "less than one trip is none", lambda c: c.inputs[0] is not None and c.inputs[0] <= 0)
left_open("Loop", "a condition of one element, whatever its rank", lambda c: c.inputs[1] is not None and c.inputs[1].size == 1)
left_open("MaxPool", "windows that meet nothing but padding; no window that fits: nothing",
          lambda c: max(attr(c, "pads", [0])) > 100 or 1 in c.inputs[0].shape)
left_open("AveragePool", "windows that meet nothing but padding, which are 0 / 0; strides beyond the image: one window",
          lambda c: max(attr(c, "pads", [0])) >= 100 or max(attr(c, "strides", [0])) > 100)
left_open("AveragePool", "auto_pad with strides longer than the kernel: there is no padding less than none", lambda c: auto(c) and strided_past(c))
left_open("MelWeightMatrix", "triangles beyond the spectrum meet no bin of it", lambda c: all(-700 < float(x) < 1e6 for x in c.inputs[3:]),
          texts.mel_weight_matrix)
left_open("MelWeightMatrix", "edges without a mel (not above -700, infinite, no number) or beyond any spectrum: the text has no result for them",
          lambda c: any(not -700 < float(x) < 1e6 for x in c.inputs[3:]))
left_open("Scan", "the same of operator set 8, with lengths: no witness", lambda c: bool(c.outputs) and c.opset == 8 and c.inputs[0] is not None)
left_open("Scan", "sizes that a body declares falsely are warnings", lambda c: bool(c.outputs) and all(c.outputs) and (c.opset > 8 or c.inputs[0] is None), texts.scan)
left_open("Scan", "the same where an output has no name, which no schema asks for: no witness", lambda c: not all(c.outputs))
left_open("Softmax LogSoftmax Hardmax", "before 11 no range of axis is stated: the rank is one, too, each element for itself", lambda c: c.opset < 11)
left_open("Trilu", "k may be any number", lambda c: abs(int(c.inputs[1])) > sum(c.inputs[0].shape[-2:]), texts.near_diagonal)
left_open("AffineGrid", "an empty grid", lambda c: (c.inputs[1] == 0).any())
left_open("OneHot", "values of any type; of no classes there is nothing", lambda c: c.inputs[2].dtype == bool or not c.inputs[1].any())
left_open("OneHot", "values of any type, strings too", lambda c: c.inputs[2].dtype == STRING, texts.one_hot_strings)
left_open("DequantizeLinear", "a zero point of an 8-bit float: usually none, but the formula is the same",
          lambda c: c.inputs[2].dtype.name.startswith("float8") and c.inputs[1].size == 1, texts.dequantized)
left_open("QuantizeLinear DequantizeLinear", "one number for all, whatever its rank", lambda c: c.inputs[1].ndim > 1 and c.inputs[1].size == 1 and
          not attr(c, "block_size"), texts.scalar_scale)
left_open("SVMRegressor", "whole numbers are among the types; the evaluator has too small ones", lambda c: is_int(c.inputs[0].dtype), texts.as_floats)
left_open("RNN LSTM GRU", "activations have parameters by default", lambda c: attr(c, "activations") is not None and attr(c, "activation_alpha") is None)
left_open("Upsample", "linear along any axes, of any rank; ONNX Runtime takes two, or four of which the outer have scale 1",
          lambda c: attr(c, "mode") == "linear" and min(attr(c, "scales") or c.inputs[1].tolist()) >= 1, texts.upsample_linear)
left_open("Imputer", "[*, F]: any number of axes before the features; one value goes for all features",
          lambda c: c.inputs[0].ndim != 2 and (c.inputs[0].ndim > 0 or len(c.attrs["imputed_value_int64s" if is_int(c.inputs[0].dtype) else "imputed_value_floats"]) == 1),
          texts.imputer)
left_open("SVMRegressor", "the features alone are one row", lambda c: c.inputs[0].ndim == 1, judges_ml.one_row)
left_open("LinearClassifier TreeEnsembleRegressor", "the features alone are one row", lambda c: c.inputs[0].ndim == 1, judges_ml.one_row)
left_open("TreeEnsembleClassifier", "the features alone are one row", lambda c: c.inputs[0].ndim == 1)
left_open("SVMRegressor", "kernel_params are zero if unspecified", lambda c: attr(c, "kernel_params") is None, judges.witness)
left_open("SVMClassifier", "the same of classes: no witness", lambda c: attr(c, "kernel_params") is None)
left_open("Attention RotaryEmbedding", "of no queries, no elements there is nothing to compute", lambda c: 0 in c.inputs[0].shape)
left_open("Cast CastLike", "the text of a number with a fraction, as an integer, is cut as the number is", lambda c: c.inputs[0].dtype == STRING)
left_open("OneHotEncoder", "of a category that is listed twice the last is meant, as of a map's keys", lambda c: len(
    set(attr(c, "cats_int64s") or attr(c, "cats_strings"))) < len(attr(c, "cats_int64s") or attr(c, "cats_strings")))
left_open("Optional", "a type that is given besides an input of that type", lambda c: attr(c, "type") is not None)
left_open("LinearRegressor TreeEnsembleRegressor TreeEnsembleClassifier", "whole numbers are among the types", lambda c: is_int(c.inputs[0].dtype))
left_open("Scaler", "offset and scale are optional", lambda c: attr(c, "offset") is None or attr(c, "scale") is None)
left_open("TreeEnsemble", "no rows: nothing", lambda c: c.inputs[0].shape[0] == 0 and attr(c, "n_targets"), texts.no_rows)
left_open("TreeEnsembleClassifier", "no rows: nothing", lambda c: c.inputs[0].shape[0] == 0)
left_open("TreeEnsembleRegressor TreeEnsemble", "n_targets is optional", lambda c: attr(c, "n_targets") is None)
left_open("TfIdfVectorizer", "no rows: nothing", lambda c: 0 in c.inputs[0].shape)
left_open("Resize Upsample", "the nearest of strings or bools is one of them", lambda c: attr(c, "mode", "nearest") == "nearest" and (
    c.inputs[0].dtype in (bool, STRING)) and attr(c, "coordinate_transformation_mode") != "tf_crop_and_resize", texts.moved)
left_open("Resize", "a region of interest says something with tf_crop_and_resize alone", lambda c: c.opset > 10 and c.inputs[1] is not None and
          attr(c, "coordinate_transformation_mode") != "tf_crop_and_resize", texts.without_region)
left_open("Resize", "the same of a region by scales, where both evaluators are wrong: no witness", lambda c: attr(c, "mode", "nearest") == "nearest" and
          c.inputs[0].dtype in (bool, STRING) and attr(c, "coordinate_transformation_mode") == "tf_crop_and_resize")
left_open("ConvTranspose", "an output_shape beyond what the kernel reaches: the formula's padding is negative", lambda c: any(
    s * (n - 1) + o + (k - 1) * e + 1 < size for size, s, n, o, k, e in zip(
        attr(c, "output_shape"), attr(c, "strides", [1] * 9), c.inputs[0].shape[2:], attr(c, "output_padding", [0] * 9), c.inputs[1].shape[2:],
        attr(c, "dilations", [1] * 9))))
left_open("ConvTranspose", "output_padding is less than the stride or the dilation; the text has both words, ONNX Runtime wants it less than the stride",
          lambda c: any(s <= o < e for o, s, e in zip(attr(c, "output_padding"), attr(c, "strides", [1] * 9), attr(c, "dilations", [1] * 9))),
          lambda c: judges.SAYS["ConvTranspose"](c))
left_open("Bernoulli", "of probabilities in any float to any number; the evaluators have not all types", lambda c: is_float(c.inputs[0].dtype) and bool(
    ((c.inputs[0] >= 0) & (c.inputs[0] <= 1)).all()))
left_open("DequantizeLinear", "a zero point is unusual with float8 and 4-bit types, but the formula remains the same",
          lambda c: c.inputs[2] is not None and "float" in c.inputs[0].dtype.name)
left_open("OneHotEncoder", "elements of a tensor of any rank: one axis more", lambda c: c.inputs[0].ndim not in (1, 2), texts.one_hot_encoder)
left_open("MeanVarianceNormalization", "of all floats; the evaluators' body has constants of f32", lambda c: c.inputs[0].dtype.name in ("float16", "float64"), texts.mean_variance)
left_open("LSTM GRU RNN", "no steps: the state stays", lambda c: c.inputs[0].shape[1 if attr(c, "layout") else 0] == 0, texts.without_steps)
left_open("TreeEnsembleRegressor TreeEnsembleClassifier", "what is no number is missing, and tracks; ONNX Runtime knows version 5 of the domain no more",
          lambda c: c.opset == 5 and has(c, np.isnan) and not attr(c, "base_values"), texts.of_version_3)
left_open("TreeEnsembleRegressor", "the same with bases, which ONNX Runtime gets wrong: no witness", lambda c: c.opset == 5 and has(c, np.isnan) and attr(c, "base_values"))

left_open("ArgMax ArgMin", "of no rows there is no position to find: nothing", lambda c: len(c.inputs[0].shape) > 1 and 0 in (
    c.inputs[0].shape[:attr(c, "axis", 0) % c.inputs[0].ndim] + c.inputs[0].shape[attr(c, "axis", 0) % c.inputs[0].ndim + 1:]))

known("Mean", STANDARD, "a sum of half precision on the way to a mean is rounded at each step", lambda c: c.inputs[0].dtype.itemsize == 2 and len(c.inputs) > 2)

# --- broken nodes of which another result is no fault ----------------------------------------------------------------------------------------

known("Unique", ORT, "a NaN is a value like others: it is not lost among them", lambda c: has(c, np.isnan))
known("Resize", STANDARD, "the nearest element is read; it multiplies all by 0 or 1", lambda c: attr(c, "mode", "nearest") == "nearest" and has(c, np.isinf, np.isnan))
known("MaxRoiPool", ORT, "a region that reaches beyond the image is cut, however far it does; it takes 32-bit integers",
      lambda c: (np.abs(c.inputs[1]) * attr(c, "spatial_scale", 1.0) >= 2 ** 31).any())
left_open("RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial", "a seed is any number",
          lambda c: attr(c, "seed") is not None and not 0 <= attr(c, "seed") < 2 ** 32)
left_open("RandomNormalLike RandomUniformLike", "the shape of a scalar, of which the evaluator makes none", lambda c: c.inputs[0].ndim == 0)
known("Clip", STANDARD, "a list of one that is taken for the scalar it should be adds no axis", lambda c: any(
    x is not None and x.shape == (1,) for x in c.inputs[1:]))
unsaid("Attention FlexAttention", "what takes no part may be no number", lambda c: has(c, np.isnan, np.isinf))
unsaid("Cast CastLike", "f8e8m0 of a negative number: it has no sign", lambda c: (c.inputs[0] < 0).any() and (
    attr(c, "to") == 24 or c.op == "CastLike" and "e8m0" in c.inputs[1].dtype.name))
unsaid("Pow", "a power that is no number, or no integer's size, as an integer", lambda c: is_int(c.inputs[0].dtype))
unsaid("OneHot OneHotEncoder QuantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul Cast CastLike ReduceLogSum ReduceLogSumExp", "what is no number, or infinite, as an integer",
       lambda c: has(c, np.isnan, np.isinf) or is_int(c.inputs[0].dtype) and c.op.startswith("ReduceLog"))
known("LSTM GRU RNN", ORT, "of no steps the state stays as it was given", lambda c: c.invalid and (
    c.inputs[4] is not None and (c.inputs[4] == 0).any() or c.inputs[0].shape[1 if attr(c, "layout") else 0] == 0))
known("OneHot", STANDARD, "values are put there; it adds what one lacks to the other, which rounds", lambda c: is_float(c.inputs[2].dtype) and (np.abs(c.inputs[2]) > 1e6).any())
unsaid("BlackmanWindow HannWindow HammingWindow", "a window cut to integers: of 1 less a rounding 0 is left", lambda c: attr(c, "output_datatype", 1) not in (1, 10, 11, 16))
unsaid("Cast CastLike", "a number as an integer of a type that has it not", lambda c: is_float(c.inputs[0].dtype) and (np.abs(c.inputs[0]) > 1e9).any())
unsaid("ReduceL2 ReduceSumSquare", "squares that are no numbers of the type", lambda c: is_int(c.inputs[0].dtype) and (np.abs(c.inputs[0].astype(np.float64)) > 1e4).any())
unsaid("Hardmax", "whether NaN is the largest", lambda c: has(c, np.isnan))
known("MeanVarianceNormalization", ORT, "1e-9 keeps the deviation from 0; half precision has no such number", lambda c: c.invalid and c.inputs[0].dtype.itemsize == 2)
left_open("Multinomial", "no rows: nothing", lambda c: c.inputs[0].shape[0] == 0)
left_open("Dropout", "of no elements none is dropped", lambda c: c.inputs[0].size == 0)
unsaid("LSTM GRU RNN", "what Affine does without its parameters", lambda c: "Affine" in attr(c, "activations", []) and (
    attr(c, "activation_alpha") is None or attr(c, "activation_beta") is None))
unsaid("DFT STFT", "infinity times a root of unity that is 0 or 1 in a part", lambda c: has(c, np.isnan, np.isinf))
known("TreeEnsembleClassifier", STANDARD, "labels of no rows are labels all the same", lambda c: c.inputs[0].shape[0] == 0)
unsaid("SVMClassifier", "votes by scores that are no numbers", lambda c: has(c, np.isnan, np.isinf))
unsaid("Mod Div", "integers divided by 0", lambda c: is_int(c.inputs[1].dtype) and (c.inputs[1] == 0).any())
unsaid("QuantizeLinear", "a scale of 0", lambda c: (c.inputs[1] == 0).any())
unsaid("Gemm", "integers times what is no number, or no integer's size", lambda c: is_int(c.inputs[0].dtype) and any(
    not abs(attr(c, k, 1.0)) < 1e9 for k in ("alpha", "beta")))
unsaid("Upsample GridSample", "how a number between integers is rounded", lambda c: is_int(c.inputs[0].dtype) and attr(c, "mode", "linear") != "nearest")
unsaid("Upsample Resize", "infinity times a weight of 0", lambda c: attr(c, "mode", "nearest") != "nearest" and has(c, np.isnan, np.isinf))
known("ReduceLogSumExp", ORT, "exponentials that are no numbers have a logarithm all the same", lambda c: is_float(c.inputs[0].dtype) and (
    np.abs(c.inputs[0].astype(np.float64)) > 80).any())
known("QuantizeLinear", STANDARD, "what is too large is the largest", lambda c: c.invalid and (np.abs(c.inputs[0].astype(np.float64)) > 2 ** 30).any())
known("TreeEnsembleClassifier TreeEnsembleRegressor", ORT, "what is no number is missing, and takes the false branch unless the node says otherwise",
      lambda c: has(c, np.isnan) and "BRANCH_NEQ" in attr(c, "nodes_modes", []))
unsaid("Det", "infinity times nothing", lambda c: has(c, np.isnan, np.isinf))
unsaid("SVMClassifier SVMRegressor", "kernels that are no numbers of the type", lambda c: (np.abs(c.inputs[0].astype(np.float64)) > 1e18).any())
left_open("Resize", "negative axes count from the end; the evaluators do not know them", lambda c: any(a < 0 for a in attr(c, "axes", [])))
known("AveragePool LpPool", STANDARD, "what is no number is not padding", lambda c: has(c, np.isnan))
known("LeakyRelu", STANDARD, "what is not negative is not multiplied; it adds alpha times 0", lambda c: not np.isfinite(attr(c, "alpha", 0.01)))
known("Softmax LogSoftmax", ORT, "the largest of numbers among which is NaN or infinity", lambda c: has(c, np.isnan, np.isinf))
known("Slice", ORT, "the largest integer is beyond the last element for every step; with a negative one it is taken for the end of the tensor",
      lambda c: c.invalid and (c.inputs[2] >= 2 ** 31 - 1).any() and len(c.inputs) > 4 and c.inputs[4] is not None and (c.inputs[4] < 0).any())
known("DequantizeLinear", ORT, "the difference of 32-bit integers is no 32-bit integer", lambda c: c.invalid and c.inputs[0].dtype == np.int32 and
      c.inputs[2] is not None and (np.abs(c.inputs[2].astype(np.int64)) > 2 ** 30).any())
known("Resize Upsample", STANDARD, "a complex number has two parts", lambda c: c.inputs[0].dtype.kind == "c")
known("GridSample", ORT, "what is far outside is outside; positions are 32-bit integers to it", lambda c: (np.abs(c.inputs[1].astype(np.float64)) > 1e8).any())
known("MaxPool", ORT, "minus infinity is less than the least finite number", lambda c: c.invalid and has(c, np.isinf))
unsaid("Gemm", "sums and products that are no numbers of the type", lambda c: is_int(c.inputs[0].dtype) and any(
    x is not None and (np.abs(x.astype(np.float64)) > 1e8).any() for x in c.inputs))
unsaid("Loop", "of no trips: of what sizes the rows would be", lambda c: c.inputs[0] is not None and (c.inputs[0] <= 0).all() or
       c.inputs[1] is not None and not c.inputs[1].any())
unsaid("LinearRegressor LinearClassifier SVMRegressor SVMClassifier", "whether a list is one row or a column", lambda c: c.inputs[0].ndim != 2)
unsaid("MelWeightMatrix", "a rate below 1", lambda c: c.inputs[2] is not None and (c.inputs[2] < 1).any())
unsaid("Adam Adagrad Momentum", "infinity times a coefficient of 0", lambda c: has(c, np.isnan, np.isinf))
left_open("TreeEnsembleClassifier TreeEnsembleRegressor TreeEnsemble", "no features: there are trees that read none", lambda c: c.inputs[0].shape[-1] == 0)
left_open("CenterCropPad Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape ReverseSequence Scatter "
          "ScatterElements ScatterND Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter Tile Transpose Trilu Unsqueeze Where Unique",
          "what only moves elements does so with those of any type in every version (element_types.py)",
          lambda c: c.inputs[0].dtype not in taken(c))
unsaid("GridSample RoiAlign MaxRoiPool", "what lies at positions that are no numbers", lambda c: has(c, np.isnan, np.isinf))
unsaid("GlobalMaxPool MaxPool MaxRoiPool", "whether NaN is larger than numbers", lambda c: has(c, np.isnan))
unsaid("Conv ConvTranspose DeformConv RNN GRU LSTM", "infinity times a zero that stands for nothing (padding, a state that is not given)",
       lambda c: has(c, np.isnan, np.isinf))
unsaid("Split", "of no elements, equal parts of a size that does not divide: sizes that only the run tells are checked by the elements they have",
       lambda c: 0 in c.inputs[0].shape)
unsaid("BatchNormalization LRN Normalizer", "what is no number, infinite, or has no square of its type",
       lambda c: has(c, np.isnan, np.isinf) or any(x is not None and is_float(x.dtype) and (np.abs(x.astype(np.float64)) > 1e18).any() for x in c.inputs))
known("GlobalMaxPool", ORT, "minus infinity is less than the least finite number", lambda c: has(c, np.isinf))
known("Slice", ORT, "a step of the least integer goes backwards like others", lambda c: c.invalid and len(c.inputs) > 4 and c.inputs[4] is not None and (
    c.inputs[4] <= -2 ** 31).any())
unsaid("Resize", "integers that floats of 64 bits do not hold", lambda c: is_int(c.inputs[0].dtype) and (np.abs(c.inputs[0].astype(np.float64)) > 2.0 ** 53).any())
known("Imputer", ORT, "a value for each of the last axis", lambda c: c.inputs[0].ndim != 2)
known("Dropout", STANDARD, "8 bits stay 8 bits, and bfloat16 itself", lambda c: c.invalid and ("float8" in c.inputs[0].dtype.name or c.inputs[0].dtype.name == "bfloat16"))
unsaid("Shrink", "infinity added to an integer", lambda c: is_int(c.inputs[0].dtype) and not np.isfinite(attr(c, "bias", 0.0)))
unsaid("ReduceMean", "integers that floats of 64 bits do not hold", lambda c: is_int(c.inputs[0].dtype) and (np.abs(c.inputs[0].astype(np.float64)) > 2.0 ** 53).any())
unsaid("GroupNormalization InstanceNormalization LayerNormalization RMSNormalization", "what has no square of its type",
       lambda c: any(x is not None and is_float(x.dtype) and (np.abs(x.astype(np.float64)) > 1e18).any() for x in c.inputs))
unsaid("AffineGrid", "infinity times a zero", lambda c: has(c, np.isnan, np.isinf))
unsaid("QLinearMatMul QLinearConv", "on which side of a half the product of scales of half precision falls", lambda c: any(
    x is not None and x.dtype.itemsize == 2 and is_float(x.dtype) for x in c.inputs))

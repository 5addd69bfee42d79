#!/usr/bin/env python3
"""Checks which element types each version of each operator takes: those of its schema and no others.

    element_types.py --driver build/meaning-driver [--op Resize ...] [--seed 1]

For every version and type parameter a random valid node is drawn, then the inputs of that parameter, or the attribute that says the type of an
output, are made of each type in turn. Values that are sequences and optionals are made of tensors of each type that the schema lists.
Tenon must answer where the schema lists the type and refuse where it does not; WIDER says where it takes more, and why. What it answers, the
compiled plan gives as the reference does."""
import argparse
import collections
import sys

import numpy as np
from onnx import TensorProto, defs, helper

import compare
import evaluators
from draw import DTYPES, I64, STRING, Case, Draw, code_of, operator_versions, tensor, usable_of
from meaning import DOMAINS, SPECS

ALL = dict(DTYPES)
ALL.update({"complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128)})
TRIES = 4
WIDER, NARROWER = [], []


def wider(ops, params, reason, only=lambda name: True):
    WIDER.append((set(ops.split()), set(params.split()), reason, only))


def narrower(ops, params, reason, only=lambda name: True):
    NARROWER.append((set(ops.split()), set(params.split()), reason, only))


def reason_for(rows, op, param, name):
    for ops, params, reason, only in rows:
        if op in ops and param in params and only(name):
            return reason
    return None


MOVED = ("what only moves elements, or asks for their shape, does so with those of any type in every version: a file that a later exporter wrote "
         "in an earlier operator set has one meaning")
wider("CenterCropPad Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape ReverseSequence Scatter "
      "ScatterElements ScatterND Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter Tile Transpose Trilu Unsqueeze "
      "Where Unique", "T T1 V", MOVED)
wider("OneHot", "T3", MOVED)
wider("Optional", "V", MOVED)
wider("OptionalHasElement OptionalGetElement", "O", MOVED)
wider("RandomNormalLike RandomUniformLike", "T1", MOVED)
wider("Cast CastLike", "T1 T2", "a conversion has one meaning, whatever the version that the types came with")
wider("Constant ConstantOfShape EyeLike", "T T2", "an element that is given, or 0 and 1, is the same in every version and of any type")
wider("RandomNormal RandomNormalLike RandomUniform RandomUniformLike", "T T2", "a number is drawn first and rounded then", lambda name: name == "bfloat16")
NOT_SAID = "what a body, a pool or keys do with a type is theirs, not the operator's"
narrower("Loop Scan", "V", NOT_SAID)
narrower("TfIdfVectorizer", "T", NOT_SAID)
narrower("LabelEncoder", "T1", NOT_SAID)
narrower("Attention", "U", "the text: bool, or the type of query, key and value")
narrower("Unique", "T", "not supported: complex numbers have no order", lambda name: name.startswith("complex"))
narrower("GridSample", "T1", "not supported: interpolation of complex numbers", lambda name: name.startswith("complex"))
narrower("Col2Im", "T", "not supported: sums of complex numbers; strings and bools have none", lambda name: name in ("string", "bool", "complex64", "complex128"))


def as_type(x, to):
    """The same numbers, as far as the type has them."""
    if x.dtype == to:
        return x
    if to == STRING:
        return np.array(["%g" % v if np.isreal(v) else "0" for v in np.asarray(x, dtype=object).ravel()], dtype=object).reshape(x.shape) \
            if x.dtype.kind in "iufb" else np.full(x.shape, "1", dtype=object)
    with np.errstate(all="ignore"):
        if x.dtype == STRING:
            x = np.ones(x.shape, np.float32)
        x = np.real(x) if x.dtype.kind == "c" else x
        if to.kind == "c":
            return np.asarray(x.astype(np.float32).astype(to))
        wide = np.nan_to_num(np.asarray(x.astype(np.float64)), posinf=2, neginf=-2, nan=1)
        if to.kind == "u" or to.name.startswith("uint") or "e8m0" in to.name:
            wide = np.abs(wide)
        limit = {"int2": 1, "uint2": 3, "int4": 7, "uint4": 15}.get(to.name, 100)
        wide = np.clip(wide, -limit, limit)
        return np.asarray(wide.astype(np.int8).astype(to) if to.name in ("int2", "uint2", "int4", "uint4") else wide.astype(np.float32).astype(to))


def inputs_of(case, schema, param):
    """Indices of the case's tensors that are inputs of that type parameter themselves, or make its sequence."""
    last = len(schema.inputs) - 1
    names = case.input_names or case.names()
    params = {"S", "T"} if case.op == "SequenceInsert" and param != "I" else {param}
    mine = {name for i, name in enumerate(names) if name and schema.inputs[min(i, last)].type_str in params}
    if case.before and param != "I":  # what is put into a sequence has its type
        mine.update([n for node in case.before for n in node.input if set(node.output) & mine])
    return sorted(int(name[1:]) for name in mine if name[1:].isdigit())


SAYS_TYPE = ("to", "dtype", "output_dtype", "output_datatype", "value")


def type_attribute(schema, param):
    """The attribute that says the type of the outputs of that parameter, which no input has; or None."""
    if schema.name == "BitCast" or param in {i.type_str for i in schema.inputs} or param not in {o.type_str for o in schema.outputs}:
        return None
    return next((a for a in SAYS_TYPE if a in schema.attributes), None)


def run(options, cases):
    """What the reference answers, and what plans do."""
    models, both = [c.model().SerializeToString() for c in cases], []
    for backend in ("ref", "cpu"):
        answers, errors = evaluators.run_tenon(options.driver, backend, models, cases)
        if "runtime error" in errors or "Sanitizer" in errors:
            raise RuntimeError(errors[:3000])
        both.append(answers)
    return both


def apart(one, two, case):
    """How the answer of a plan differs from the reference's, or None. Random numbers are reproducible: those are compared, too."""
    if isinstance(one, evaluators.Refusal) or isinstance(two, evaluators.Refusal):
        return None if isinstance(one, evaluators.Refusal) and isinstance(two, evaluators.Refusal) else "reference %s, plan %s" % tuple(
            repr(a) if isinstance(a, evaluators.Refusal) else "answers" for a in (one, two))
    return compare.differences(one, two, case)


def variants(op, version, param, seed, number):
    """A valid case, and one for each type; None where the draw has no such input."""
    def fresh():
        d = Draw(op, seed, number, DOMAINS[op], version)
        return SPECS[op](d), d.schema

    case, schema = fresh()
    attribute = type_attribute(schema, param)
    if not (attribute if attribute and not case.inputs[len(schema.inputs):] else inputs_of(case, schema, param)):
        return None
    made = {}
    for name, to in ALL.items():
        other, _ = fresh()
        if attribute == "value":
            other.attrs = {"value": tensor(as_type(np.ones(1 if op == "ConstantOfShape" else (2, 3), np.float32), to), "t")}
        elif attribute:
            other.attrs[attribute] = code_of(to)
        else:
            for i in inputs_of(other, schema, param):
                other.inputs[i] = as_type(other.inputs[i], to)
        if op == "BitCast" and not attribute:
            other.attrs["to"] = code_of(to)
        if op == "SequenceMap":  # a body that takes any type
            body = other.attrs["body"]
            for v in list(body.output) + list(body.input):
                if (v.name in "ao") == (param == "S"):
                    v.type.tensor_type.elem_type = code_of(to)
            del body.node[:]
            body.node.append(helper.make_node("Identity", ["a"], ["o"]))
        made[name] = other
    return case, made


# --- values that are no tensors ------------------------------------------------------------------------------------------------------------


def type_of(form, code):
    """The message of a type of such a form."""
    if form == "tensor":
        return helper.make_tensor_type_proto(code, None)
    inner = type_of(form[form.index("(") + 1:-1], code)
    return (helper.make_sequence_type_proto if form.startswith("seq") else helper.make_optional_type_proto)(inner)


def through(op, opset, form, x):
    """A node that gets a value of that form, made of x, and what a tensor of its result must be; or None where that is nothing to do."""
    case = Case(op, opset, [x], {}, [True], 0, 1, 1, "", form)
    value, gives = "x0", form
    if "seq" in form:
        case.before.append(helper.make_node("SequenceConstruct", ["x0", "x0"], ["seq"]))
        value = "seq"
    if form.startswith("optional"):
        case.before.append(helper.make_node("Optional", [value], ["opt"]))
        value = "opt"
    info = lambda name: helper.make_value_info(name, type_of(form, code_of(x.dtype)))
    case.input_names, case.output_names = [value], ["r"]
    if op == "Optional":
        gives = "optional(%s)" % form
    elif op == "OptionalGetElement":
        gives = form[form.index("(") + 1:-1] if form.startswith("optional") else form
    elif op == "OptionalHasElement":
        case.output_names = ["y0"]
        return case, np.array(True)
    elif op == "If":
        case.before.append(helper.make_node("Constant", [], ["go"], value=tensor(np.array(True), "t")))
        case.attrs = {k: helper.make_graph([helper.make_node("Identity", [value], [k])], k, [], [info(k)]) for k in ("then_branch", "else_branch")}
        case.input_names = ["go"]
    elif op == "Loop":
        case.before.append(helper.make_node("Constant", [], ["trips"], value=tensor(np.array(2, I64), "t")))
        case.input_names = ["trips", "", value]
        case.attrs = {"body": helper.make_graph(
            [helper.make_node("Identity", ["on"], ["on_out"]), helper.make_node("Identity", ["v"], ["v_out"])], "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("on", TensorProto.BOOL, []), info("v")],
            [helper.make_tensor_value_info("on_out", TensorProto.BOOL, []), info("v_out")])}
    elif op != "Identity":
        return None
    result = "r"
    if gives.startswith("optional"):
        case.after.append(helper.make_node("OptionalGetElement", [result], ["got"]))
        result, gives = "got", gives[gives.index("(") + 1:-1]
    if gives.startswith("optional"):
        return None
    last = helper.make_node("ConcatFromSequence", [result], ["y0"], axis=0) if "seq" in gives else helper.make_node("Identity", [result], ["y0"])
    case.after.append(last)
    return case, np.concatenate([x, x]) if "seq" in gives else x


def check_containers(op, version, param, types, options, report, compared):
    """Of each type that a schema lists for such values, what was put in comes out, by the reference and by plans."""
    cases, wanted, names = [], [], []
    opset = max(version, 16 if any("optional" in t for t in types) else 11)
    made_of = next(c.allowed_type_strs for c in defs.get_schema("SequenceConstruct", opset).type_constraints if c.type_param_str == "T")
    for t in sorted(types):
        name = t[t.index("tensor(") + 7:t.index(")")]
        form = t.replace("tensor(%s)" % name, "tensor")
        if form == "tensor" or name not in ALL or "map(" in t or "sparse" in t:
            continue
        if "seq" in form and "tensor(%s)" % name not in made_of:
            continue  # no operator makes such a sequence
        x = as_type(np.arange(6, dtype=np.float32).reshape(2, 3) % 2, ALL[name])
        got = through(op, opset, form, x)
        if got:
            cases.append(got[0])
            wanted.append(got[1])
            names.append(t)
    if not cases:
        return 0
    for backend, answers in zip(("reference", "plan"), run(options, cases)):
        for name, case, answer, want in zip(names, cases, answers, wanted):
            refused = isinstance(answer, evaluators.Refusal)
            text = "is refused" if refused else compare.differences(answer, [want], case)
            if text:
                report(op, version, param, name, "%s: %s%s" % (text, backend, ": %r" % answer if refused else ""), case)
            compared[0] += not refused
    return len(cases)


def check(op, version, param, allowed, options, report, compared, strict):
    """Says what is wrong of the last of a few draws; right is what is right in any. `strict`: what is not allowed must be refused."""
    left = dict.fromkeys(ALL)
    for number in range(TRIES * 3):
        got = variants(op, version, param, options.seed, number)
        if got is None:
            continue
        case, made = got
        names = [n for n in left if n in made]
        answers, plans = run(options, [case] + [made[n] for n in names])
        if isinstance(answers[0], evaluators.Refusal):
            continue
        for name, one, two in zip(names, answers[1:], plans[1:]):
            text = apart(one, two, made[name])
            if text:
                report(op, version, param, name, "differs: " + text, made[name])
            compared[0] += not isinstance(one, evaluators.Refusal)
        for name, answer in zip(names, answers[1:]):
            refused = isinstance(answer, evaluators.Refusal)
            if name in allowed and (not refused or reason_for(NARROWER, op, param, name)):
                del left[name]
            elif name not in allowed and not refused and strict and not reason_for(WIDER, op, param, name):
                report(op, version, param, name, "is taken", made[name])
                del left[name]
            elif name not in allowed:
                if refused and answer.kind not in ("model", "input", "unsupported"):
                    report(op, version, param, name, repr(answer), made[name])
                del left[name]
            else:
                left[name] = (answer, made[name])
        if not left:
            return True
    if all(v is None for v in left.values()):
        return False
    for name, (answer, case) in left.items():
        report(op, version, param, name, "is refused: %r" % answer, case)
    return True


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--driver", required=True)
    parse.add_argument("--op", nargs="*")
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--show", action="store_true", help="the cases, too")
    options = parse.parse_args()
    tally, found, undrawn, compared = collections.Counter(), collections.defaultdict(list), [], [0]

    def report(op, version, param, name, text, case):
        found[op, version, param, text.split(":")[0] if text.startswith(("is refused", "differs")) else text].append((name, text, case))

    for op in options.op or SPECS:
        for version in usable_of(operator_versions(op, DOMAINS[op]), DOMAINS[op]):
            schema = defs.get_schema(op, version, DOMAINS[op])
            constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
            params = {i.type_str for i in schema.inputs}
            params.update(o.type_str for o in schema.outputs if o.type_str in constraints and type_attribute(schema, o.type_str))
            for param in sorted(params | {o.type_str for o in schema.outputs if op == "If"}):
                types = constraints.get(param, [param])
                tally["containers"] += check_containers(op, version, param, types, options, report, compared)
                if op == "If":
                    continue
                of_tensors = {t[7:-1] for t in types if t.startswith("tensor(")}
                allowed = of_tensors or {t[11:-2] for t in types if t.startswith("seq(tensor(")}
                if not allowed:
                    continue
                tally["parameters"] += 1
                if not check(op, version, param, allowed, options, report, compared, bool(of_tensors) and op != "SequenceMap"):
                    undrawn.append("%s-%d %s" % (op, version, param))
    for (op, version, param, _), rows in found.items():
        print("%s-%d %s: %s %s" % (op, version, param, " ".join(r[0] for r in rows), rows[0][1]))
        if options.show:
            print("  " + rows[0][2].text().replace("\n", "\n  "))
    print("seed %d: %d type parameters, %d types of values that are no tensors, %d faults; %d answers of plans compared; not drawn: %s" % (
        options.seed, tally["parameters"], tally["containers"], len(found), compared[0], ", ".join(undrawn) or "none"))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

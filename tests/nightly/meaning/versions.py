#!/usr/bin/env python3
"""Writes tests/onnx/versions.txt: a node of each version of each operator, and of each choice of optional inputs, with what it must give.

    versions.py [--op Add ...] > tests/onnx/versions.txt

What a node gives is what ONNX Runtime and the standard's evaluator say where they are right (known.py), or what the operator's text says
(judges.py); all of them that answer must agree. Tenon is not asked. Versions before operator set 7 are told as a later node of the same
meaning (old_versions.py). The form is read by tests/support/node_text.c."""
import argparse
import copy
import itertools
import sys

import numpy as np
from onnx import AttributeProto, TensorProto, defs, numpy_helper

import compare
import evaluators
import judges
import known
import meaning
import old_versions
from draw import STRING, Draw, usable_of
from registry import DOMAINS, SPECS

NAMES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "string", 9: "bool", 10: "f16", 11: "f64", 12: "u32",
         13: "u64", 14: "c64", 15: "c128", 16: "bf16", 17: "f8e4m3fn", 18: "f8e4m3fnuz", 19: "f8e5m2", 20: "f8e5m2fnuz", 21: "u4", 22: "i4",
         23: "f4e2m1", 24: "f8e8m0", 25: "u2", 26: "i2"}
DRAWS, MORE = 32, 320  # of a version; at most, where the first are not answered
LONGEST = 1500  # characters that a row should have at most
SEED = 1
SAME_SINCE = {**known.SAME_SINCE, "Multinomial": 21}  # what the newest version adds is a type
# Choices of optional inputs (1: there) that the texts do not allow.
NOT_MEANT = {"Attention": tuple(mask + past for mask in "01" for past in ("100", "101", "010", "011", "111")),
             # ^ the past is keys and values; with it, lengths of what is padded are not
             "Loop": ("00",),  # nothing would end it
             "Resize": ("000", "100", "011", "111"),  # scales or sizes
             "STFT": ("00",)}  # one of them says how long a frame is

# --- text ---------------------------------------------------------------------------------------------------------------------------------


def quoted(text):
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
    return "".join(chr(b) if chr(b).isalnum() and b < 128 or chr(b) in "_.-" else "%%%02x" % b for b in data) or "%"


def number(v, dtype):
    if dtype.kind == "b":
        return str(int(v))
    if dtype.kind in "iu" or dtype.name in ("int4", "uint4", "int2", "uint2"):
        return str(int(v))
    if dtype.kind == "c":
        return number(v.real, np.dtype(np.float64)) + "," + number(v.imag, np.dtype(np.float64))
    v = float(v)
    if v != v:
        return "nan"
    if v in (float("inf"), float("-inf")):
        return "inf" if v > 0 else "-inf"
    if dtype.name == "float32":
        text = np.format_float_scientific(np.float32(v), unique=True, trim="-") if v and not 1e-4 <= abs(v) < 1e7 else np.format_float_positional(np.float32(v), unique=True, trim="-")
    else:
        text = repr(v)
    return text[:-2] if text.endswith(".0") else text


def array_text(x, code=None):
    x = np.asarray(x)
    code = code or (TensorProto.STRING if x.dtype == STRING or x.dtype.kind in "US" else evaluators.code_of(x.dtype))
    head = "%s[%s]" % (NAMES[code], ",".join(str(n) for n in x.shape))
    values = [quoted(v) for v in x.ravel()] if code == TensorProto.STRING else [number(v, x.dtype) for v in x.ravel()]
    return head + "".join("," + v for v in values)


def tensor_text(t):
    if t.data_type == TensorProto.STRING:
        return array_text(np.array(list(t.string_data) or [], dtype=object).reshape(list(t.dims)), TensorProto.STRING)
    return array_text(numpy_helper.to_array(t), t.data_type)


def type_text(t):
    which = t.WhichOneof("value")
    if which is None:
        return "-"
    body = getattr(t, which)
    if which == "sequence_type":
        return "seq(%s)" % type_text(body.elem_type)
    if which == "optional_type":
        return "opt(%s)" % type_text(body.elem_type)
    if which != "tensor_type":
        raise NotImplementedError(which)
    if not body.elem_type:
        return "-"
    if not body.HasField("shape"):
        return NAMES[body.elem_type]
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in body.shape.dim]
    return "%s[%s]" % (NAMES[body.elem_type], ",".join(dims))


class Writer:
    """Lines of a model; bodies come before the nodes that have them."""

    def __init__(self):
        self.lines, self.bodies = [], 0

    def attribute(self, a):
        kinds = AttributeProto
        if a.type == kinds.FLOAT:
            return "%s:f=%s" % (a.name, number(a.f, np.dtype(np.float32)))
        if a.type == kinds.INT:
            return "%s:i=%d" % (a.name, a.i)
        if a.type == kinds.STRING:
            return "%s:s=%s" % (a.name, quoted(a.s))
        if a.type == kinds.FLOATS:
            return "%s:F=%s" % (a.name, ",".join(number(v, np.dtype(np.float32)) for v in a.floats))
        if a.type == kinds.INTS:
            return "%s:I=%s" % (a.name, ",".join("%d" % v for v in a.ints))
        if a.type == kinds.STRINGS:
            return "%s:S=%s" % (a.name, ",".join(quoted(v) for v in a.strings))
        if a.type == kinds.TENSOR:
            return "%s:T=%s" % (a.name, tensor_text(a.t))
        if a.type == kinds.SPARSE_TENSOR:
            s = a.sparse_tensor
            return "%s:Z=%s;%s;%s" % (a.name, ",".join(str(n) for n in s.dims), tensor_text(s.values), tensor_text(s.indices))
        if a.type == kinds.TYPE_PROTO:
            return "%s:P=%s" % (a.name, type_text(a.tp))
        if a.type == kinds.GRAPH:
            return "%s:g=%s" % (a.name, self.body(a.g))
        raise NotImplementedError(a.name)

    def node(self, n, indent=""):
        attrs = [self.attribute(a) for a in n.attribute]
        domain = [":" + n.domain] if n.domain else []
        return indent + " ".join(["node", n.op_type + "".join(domain), ",".join(n.input) or "-", ",".join(n.output)] + attrs)

    def body(self, g):
        nodes = [self.node(n, "  ") for n in g.node]
        name = "g%d" % self.bodies
        self.bodies += 1
        self.lines.append("graph %s" % name)
        self.lines += ["  in %s %s" % (v.name, type_text(v.type)) for v in g.input]
        self.lines += ["  const %s %s" % (t.name, tensor_text(t)) for t in g.initializer]
        self.lines += nodes
        self.lines += ["  out %s %s" % (v.name, type_text(v.type)) for v in g.output]
        self.lines.append("end")
        return name


def object_text(y):
    if y is None:
        return "none"
    if isinstance(y, (list, tuple)):
        return "(%s)" % ";".join(object_text(v) for v in y)
    return array_text(y)


def limits(y, case):
    """A limit for each result: absolute, relative; of the type's own nothing is said."""
    if not isinstance(y, np.ndarray) or y.dtype.name not in ("float16", "float32", "float64", "bfloat16"):
        return ""
    rtol, atol = compare.LIMITS[y.dtype.name]
    if case.precision is not None and compare.LIMITS[case.precision.name] > (rtol, atol):
        rtol, atol = compare.LIMITS[case.precision.name]
    v = np.abs(y.astype(np.float64))
    v = v[np.isfinite(v)]
    largest = max(float(v.max()) if v.size else 0.0, case.terms)
    absolute, relative = case.slack + atol * case.atol + rtol * case.rtol * case.scale * largest, rtol * case.rtol
    return " ~%.2g,%.2g" % (absolute, relative) if (relative, absolute) != compare.LIMITS[y.dtype.name] else ""


def row_text(case, wanted, only_forms):
    """The case as lines."""
    w = Writer()
    model = case.model()
    version = defs.get_schema(case.op, case.opset, case.domain).since_version
    nodes = [w.node(n) for n in model.graph.node]
    feeds = case.feeds()
    head = "case %s%s %d %d" % (case.op, ":" + case.domain if case.domain else "", version, case.opset)
    shapes = {v.name: type_text(v.type) for v in model.graph.input}
    lines = [head] + ["in %s %s %s" % (n, shapes[n], array_text(x)) for n, x in feeds.items()]
    lines += ["const %s %s" % (t.name, tensor_text(t)) for t in model.graph.initializer]
    lines += w.lines + nodes
    for i, (name, y) in enumerate(zip([o.name for o in model.graph.output], wanted)):
        form = only_forms or (case.compare_outputs is not None and i not in case.compare_outputs)
        if form and isinstance(y, np.ndarray):
            lines.append("form %s %s" % (name, array_text(y).split("]")[0] + "]"))
        elif not form:
            lines.append("out %s %s%s" % (name, object_text(y), limits(y, case)))
    return "\n".join(lines)


# --- what a node gives ----------------------------------------------------------------------------------------------------------------------


def settled(case, answers):
    """(what the node gives, only the forms count), or None: nobody says, or not all say the same."""
    R = evaluators.Refusal
    good = []
    if case.flips is not None and case.flips.any() or case.as_numbers or case.sort is not None:
        return None
    try:
        text = judges.witness(case)
    except Exception:
        text = None
    if text is not None:
        good.append(list(text))
    for who, answer, other in (("standard", *answers), ("ort", *answers[::-1])):
        if isinstance(answer, R) or known.is_known(case, who):
            continue
        if known.is_cast(case, who):  # right but for the element type
            if not isinstance(other, R) and len(other) == len(answer):
                answer = [a.astype(o.dtype) for a, o in zip(answer, other)]
            else:
                types = {x.dtype for x in case.inputs if x is not None and x.dtype.kind == "f"}
                if len(types) != 1:
                    continue  # which of the types, nobody says
                answer = [a.astype(*types) for a in answer]
        good.append(answer)
    if not good or any(len(g) != len(good[0]) for g in good):
        return None
    same = compare.forms if case.judge else compare.differences
    if any(same(good[0], g, case) for g in good[1:]):
        return None
    return good[0], bool(case.judge)


def interesting(wanted, inputs=()):
    """Whether some output has a few elements of which not all are alike, and is no input."""
    for y in wanted:
        if isinstance(y, (list, tuple)):
            if y and interesting(y):
                return True
        elif isinstance(y, np.ndarray) and y.size >= 3 and len(set(map(str, y.ravel()))) > 1:
            if not any(x is not None and x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y) for x in inputs):
                return True
    return False


def choice_of(case):
    """Which optional inputs the node has."""
    schema = defs.get_schema(case.op, case.opset, case.domain)
    names = case.input_names or case.names()
    return tuple(i < len(names) and bool(names[i]) for i, p in enumerate(schema.inputs) if p.option == defs.OpSchema.FormalParameterOption.Optional)


def draws_of(op, version, numbers):
    """(node to ask about, node to write)."""
    out = []
    for n in numbers:
        try:
            if old_versions.has(op, version):
                got = old_versions.restate(op, version, SEED, n)
            else:
                case = SPECS[op](Draw(op, SEED, n, DOMAINS[op], version))
                got = case, case
            if got is None:
                continue
            if sum(x.size for x in got[1].inputs if x is not None) > 400:
                continue
            if defs.get_schema(op, got[1].opset, DOMAINS[op]).since_version != version:
                continue  # deprecated in that operator set
            asked = got[0]
            if SAME_SINCE.get(op, asked.opset) < asked.opset:
                asked = copy.copy(asked)
                asked.opset = SAME_SINCE[op]
            models = [c.model().SerializeToString() for c in (asked, got[1])]
        except Exception as e:
            print("%s-%d draw %d: %s: %s" % (op, version, n, type(e).__name__, e), file=sys.stderr)
            continue
        out.append((*got, models[0]))
    return out


def rows_of(op, version, choices, missing=()):
    """The rows of a version: one, or one for each choice of optional inputs. `missing`: what is not drawn goes there."""
    best, done = {}, 0
    while done < MORE:
        drawn = draws_of(op, version, range(done, done + DRAWS))
        done += DRAWS
        ask = [d[0] for d in drawn]
        models = [d[2] for d in drawn]
        answers = list(zip(evaluators.ask_apart(evaluators.ask_standard, models, ask), evaluators.ask_apart(evaluators.ask_ort, models, ask)))
        for (later, old, _), answer in zip(drawn, answers):
            with np.errstate(all="ignore"):
                got = settled(later, answer)
            if got is None:
                continue
            try:
                text = row_text(old, *got)
            except NotImplementedError:
                continue
            key = choice_of(old) if choices else ()
            score = (got[1], not interesting(got[0], old.inputs), len(text) > LONGEST, len(text))
            if key not in best or score < best[key][0]:
                best[key] = score, text
        wanted = 2 ** len(next(iter(best))) - len(NOT_MEANT.get(op, ())) if choices and best else 1
        if len(best) >= wanted and all(s[:3] == (False, False, False) for s, _ in best.values()):
            break
        if len(best) >= wanted and done >= 4 * DRAWS:
            break
    if choices and best:
        there = {"".join("01"[x] for x in k) for k in best}
        every = {"".join(k) for k in itertools.product("01", repeat=len(next(iter(there))))}
        missing.extend("%s-%d inputs %s" % (op, version, c) for c in sorted(every - there - set(NOT_MEANT.get(op, ()))))
    return [best[k][1] for k in sorted(best)]


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--op", nargs="*")
    options = parse.parse_args()
    history = {}
    for s in defs.get_all_schemas_with_history():
        history.setdefault((s.name, s.domain), []).append((s.since_version, s.deprecated))
    print("# Nodes of each version of each operator, and what they give. Written by tests/nightly/meaning/versions.py.")
    missing = []
    for op in options.op or sorted(SPECS, key=lambda n: (DOMAINS[n], n)):
        versions = sorted(history[op, DOMAINS[op]])
        alive = [v for v, deprecated in versions if not deprecated or op == "GroupNormalization"]
        usable = usable_of(alive, DOMAINS[op])
        for v in [v for v, deprecated in versions if v not in alive]:  # files that still have it mean what it was
            before = max(a for a in alive if a < v)
            heads = [r.split("\n", 1) for r in rows_of(op, before, False)]
            print("\n".join("%s %d %d\n%s" % (h.rsplit(" ", 2)[0], v, v, rest) for h, rest in heads), flush=True)
        for v in alive:
            if v not in usable and not old_versions.has(op, v):
                missing.append("%s-%d" % (op, v))
                continue
            rows = rows_of(op, v, v == alive[-1], missing)
            if not rows:
                missing.append("%s-%d" % (op, v))
            if rows:
                print("\n".join(rows), flush=True)
    print("missing: %s" % (", ".join(missing) or "none"), file=sys.stderr)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()

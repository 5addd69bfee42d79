"""Every model below some folders: read, written, and judged against what it was.

The written model must pass the onnx checker (where the original does), say the same in every field at -O0, give the same results
in ONNX Runtime (bits at -O0, close at higher levels), and the same bits in Tenon.
"""

import argparse
import collections
import glob
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnx
from onnx import numpy_helper
import onnxruntime as ort

ort.set_default_logger_severity(4)


def command(args, *more, timeout=300):
    done = subprocess.run([args.tenon, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    return done.returncode, (done.stderr + done.stdout).decode(errors="replace")


# --- what a model says, field by field ---------------------------------------------------------------------------------


def tensor_key(tensor, folder):
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        onnx.external_data_helper.load_external_data_for_tensor(tensor, folder)
    if tensor.data_type == onnx.TensorProto.STRING:
        return ("string", tuple(tensor.dims), tuple(tensor.string_data))
    array = numpy_helper.to_array(tensor)
    return (tensor.data_type, tuple(tensor.dims), array.tobytes())


def sparse_key(sparse, folder):
    shape = tuple(sparse.dims)
    dense = np.zeros(int(np.prod(shape)), dtype=onnx.helper.tensor_dtype_to_np_dtype(sparse.values.data_type))
    indices = numpy_helper.to_array(sparse.indices)
    if indices.ndim == 2:
        indices = np.ravel_multi_index(indices.T, shape)
    dense[indices] = numpy_helper.to_array(sparse.values)
    return (sparse.values.name, sparse.values.data_type, shape, dense.tobytes())


def type_key(value):
    def dims(t):
        if not t.HasField("shape"):
            return None
        # names that bind nothing together are not kept
        nothing = ("", "?", "None", "none", "unknown", "-1", "*")
        return tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0
                     else None if d.dim_param in nothing else d.dim_param for d in t.shape.dim)  # fmt: skip

    def key(t):
        which = t.WhichOneof("value")
        if which is None:
            return None
        body = getattr(t, which)
        if which in ("tensor_type", "sparse_tensor_type"):
            return (which, body.elem_type, dims(body))
        if which == "map_type":
            return (which, body.key_type, key(body.value_type))
        return (which, key(body.elem_type)) if key(body.elem_type) is not None else None

    return key(value.type)


def value_key(value):
    return (value.name, type_key(value), value.doc_string, props_key(value.metadata_props))


def props_key(props):
    return tuple((p.key, p.value) for p in props)


def attribute_key(a, folder):
    if a.ref_attr_name:
        return (a.name, "ref", a.ref_attr_name, a.type)
    kind = a.type
    if kind == onnx.AttributeProto.UNDEFINED:  # files of IR version 1
        for field, guess in (("f", 1), ("i", 2), ("s", 3), ("t", 4), ("g", 5)):
            if a.HasField(field):
                kind = guess
        for field, guess in (("floats", 6), ("ints", 7), ("strings", 8)):
            if len(getattr(a, field)):
                kind = guess
    if kind == onnx.AttributeProto.TENSOR:
        return (a.name, kind, tensor_key(a.t, folder))
    if kind == onnx.AttributeProto.SPARSE_TENSOR:
        return (a.name, kind, sparse_key(a.sparse_tensor, folder)[1:])
    if kind == onnx.AttributeProto.GRAPH:
        return (a.name, kind, graph_key(a.g, folder, False))
    if kind == onnx.AttributeProto.TYPE_PROTO:
        holder = onnx.ValueInfoProto()
        holder.type.CopyFrom(a.tp)
        return (a.name, kind, type_key(holder))
    value = {1: a.f, 2: a.i, 3: a.s, 6: tuple(a.floats), 7: tuple(a.ints), 8: tuple(a.strings)}[kind]
    if kind == 1:
        value = np.float32(value).tobytes()
    if kind == 6:
        value = np.array(value, np.float32).tobytes()
    return (a.name, kind, value)


def node_key(node, folder):
    domain = "" if node.domain == "ai.onnx" else node.domain
    return (
        node.op_type, domain, node.overload, node.name, tuple(node.input), tuple(node.output), node.doc_string,
        tuple(sorted((attribute_key(a, folder) for a in node.attribute), key=lambda k: k[0])),
        props_key(node.metadata_props),
    )  # fmt: skip


def graph_key(graph, folder, main):
    names = {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
    produced = {o for n in graph.node for o in n.output}
    ends = {v.name for v in graph.output}
    initializers = sorted([(t.name, *tensor_key(t, folder)) for t in graph.initializer] +
                          [sparse_key(s, folder) for s in graph.sparse_initializer], key=lambda k: k[0])  # fmt: skip
    if not main:  # inputs of a body are always given: their initializers say nothing
        initializers = [k for k in initializers if k[0] not in {v.name for v in graph.input}]
    inner = {value_key(v) for v in graph.value_info if v.name in (produced | names) - ends and type_key(v)}
    return {
        "name": graph.name or ("graph" if main else None),
        "doc": graph.doc_string,
        "inputs": tuple(value_key(v) for v in graph.input),
        "outputs": tuple(value_key(v) for v in graph.output),
        "inner": tuple(sorted(inner, key=lambda k: k[0])) if main else None,
        "initializers": tuple(initializers),
        "nodes": tuple(sorted((node_key(n, folder) for n in graph.node), key=lambda k: (k[5], repr(k)[:2000]))),
        "props": props_key(graph.metadata_props),
        "quantization": tuple(q.SerializeToString() for q in graph.quantization_annotation),
    }


def model_key(model, folder):
    functions = []
    for f in model.functions:
        functions.append({
            "name": (f.domain, f.name, f.overload), "doc": f.doc_string, "inputs": tuple(f.input), "outputs": tuple(f.output),
            "attributes": tuple(f.attribute), "defaults": tuple(attribute_key(a, folder) for a in f.attribute_proto),
            "imports": tuple((i.domain, i.version) for i in f.opset_import), "props": props_key(f.metadata_props),
            "nodes": tuple(sorted((node_key(n, folder) for n in f.node), key=lambda k: (k[5], repr(k)[:2000]))),
        })  # fmt: skip
    return {
        "ir": model.ir_version, "producer": (model.producer_name, model.producer_version), "domain": model.domain,
        "version": model.model_version, "doc": model.doc_string, "props": props_key(model.metadata_props),
        "opsets": tuple(("" if i.domain == "ai.onnx" else i.domain, i.version) for i in model.opset_import),
        "graph": graph_key(model.graph, folder, True), "functions": tuple(functions),
        "training": tuple(t.SerializeToString() for t in model.training_info),
    }  # fmt: skip


def difference(a, b, where=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a:
            d = difference(a[key], b[key], f"{where}.{key}")
            if d:
                return d
        return None
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            d = difference(x, y, f"{where}[{i}]")
            if d:
                return d
        return None
    return None if a == b or (a != a and b != b) else f"{where}: {str(a)[:100]} became {str(b)[:100]}"


# --- results ------------------------------------------------------------------------------------------------------------


def inputs_of(folder):
    sets = sorted(glob.glob(os.path.join(folder, "test_data_set_*")))
    return sets[:2]


def read_value(path, kind):
    data = open(path, "rb").read()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def random_value(value, rng):
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
            "tensor(int32)": np.int32, "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}[value.type]  # fmt: skip
    shape = [d if isinstance(d, int) and d >= 0 else 1 for d in value.shape]
    if np.issubdtype(kind, np.floating):
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(0, 2, shape).astype(kind)


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feeds_of(sess, folder):
    """Inputs for the session: of the folder's data, or random ones."""
    sets = inputs_of(folder)
    model = onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False) if sets else None
    result = []
    for s in sets:
        feeds = {}
        for i, v in enumerate(model.graph.input):
            path = os.path.join(s, f"input_{i}.pb")
            if os.path.exists(path):
                feeds[v.name] = read_value(path, v.type.WhichOneof("value"))
        result.append(feeds)
    if not sets:
        rng = np.random.default_rng(7)
        result.append({v.name: random_value(v, rng) for v in sess.get_inputs()})
    return result


def tensor_of(outputs, i):
    """Tenon's output i where it is a plain tensor."""
    try:
        return numpy_helper.to_array(onnx.TensorProto.FromString(outputs[i]))
    except Exception:
        return None


def same(a, b, exact):
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(same(x, y, exact) for x, y in zip(a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k], exact) for k in a)
    if a is None or b is None:
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if exact or a.dtype.kind in "OUSb":
        return a.tobytes() == b.tobytes() if a.dtype.kind not in "OU" else (a == b).all()
    if a.dtype.kind in "iu":
        return np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0) <= (1 if a.dtype.itemsize == 1 else 0)
    eps = 2e-2 if a.dtype == np.float16 else 1e-3
    with np.errstate(all="ignore"):
        return np.allclose(a, b, rtol=eps, atol=eps * (1 + np.max(np.abs(a[np.isfinite(a)]), initial=0)) * 1e-1, equal_nan=True)


RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Dropout"}


def runtime(original, written, folder, exact, stage, ours):
    stage("original")
    try:
        before = session(original)
        feeds = feeds_of(before, folder)
        wanted = [before.run(None, f) for f in feeds]
    except Exception as e:
        return "unsupported", str(e)
    names = [o.name for o in before.get_outputs()]
    stage("written")
    try:
        after = session(written)
    except Exception as e:
        # a kernel that the runtime lacks is no fault of the model
        text = str(e)
        if "NOT_IMPLEMENTED" in text or "Could not find an implementation" in text:
            return "no kernel", text
        return "refused by the runtime", text
    if [o.name for o in after.get_outputs()] != names:
        return "other outputs", str([o.name for o in after.get_outputs()])
    there = {i.name for i in after.get_inputs()}
    for f, want in zip(feeds, wanted):
        try:
            got = after.run(None, {k: v for k, v in f.items() if k in there})
        except Exception as e:
            if "NOT_IMPLEMENTED" in str(e):
                return "no kernel", str(e)
            return "failed in the runtime", str(e)
        for n, a, b in zip(names, want, got):
            if not same(a, b, exact):
                mine = tensor_of(ours, names.index(n)) if f is feeds[0] and inputs_of(folder) else None
                if not exact and mine is not None and not same(a, mine, False):
                    return "the runtime computes the original otherwise", n
                return "other results in the runtime", n
    return "equal", ""


def tenon_results(args, model, folder, out, level):
    data = inputs_of(folder)
    given = []
    for s in data[:1]:
        for p in sorted(glob.glob(os.path.join(s, "input_*.pb")), key=lambda p: int(re.findall(r"\d+", p)[-1])):
            given += ["--input", p]
    rc, text = command(args, "run", model, "--fill", "random", "--output-dir", out, "--format", "pb", "--quiet", "--threads", "1",
                       "--backend", args.backend, *given, *level)  # fmt: skip
    if rc:
        return None, text
    return [open(p, "rb").read() for p in sorted(glob.glob(os.path.join(out, "*.pb")))], ""


def check(args, path, level, stage):
    """One model: (category, detail). `stage` is told when the runtime begins: it crashes or hangs on some originals."""
    folder = os.path.dirname(path)
    with tempfile.TemporaryDirectory() as tmp:
        written = os.path.join(tmp, "model.onnx")
        opset = ["--opset", str(args.opset)] if args.opset else []
        rc, text = command(args, "optimize", path, "-o", written, f"-O{level}", "--quiet", *opset)
        if rc == 4 and opset and re.search("operator set|in another|wraps begins", text):
            return ("ok: the conversion is refused", text) if not os.listdir(tmp) else ("left files behind", text)
        if rc:
            rc_info, _ = command(args, "info", path, "--quiet")
            if rc_info:
                return "does not load", text
            left = os.listdir(tmp)
            return (f"not written (exit {rc})", text) if not left else ("left files behind", str(left))
        original = onnx.load(path, load_external_data=False)
        model = onnx.load(written, load_external_data=False)
        if level == 0 and not opset:
            d = difference(model_key(original, folder), model_key(model, tmp))
            if d:
                return "says something else", d
            again = os.path.join(tmp, "again.onnx")
            command(args, "optimize", written, "-o", again, "-O0", "--quiet")
            names = (b"again.onnx.data", b"model.onnx.data")
            if open(again, "rb").read().replace(*names) != open(written, "rb").read():
                return "not the same when written again", ""
        stage("original")
        try:
            onnx.checker.check_model(path, full_check=True)
            good = True
        except Exception:
            good = False
        stage("written")
        try:
            onnx.checker.check_model(written, full_check=True)
        except Exception as e:
            if good:
                return "refused by the checker", str(e)
        outs = []
        for m, name in ((path, "a"), (written, "b")):
            out, text = tenon_results(args, m, folder, os.path.join(tmp, name), ["-O1"] if level == 1 else [])
            outs.append((out, text))
        if (outs[0][0] is None) != (outs[1][0] is None):
            return "runs in Tenon or not", outs[0][1] + outs[1][1]
        random = any(n.op_type in RANDOM for n in original.graph.node) or any(
            n.op_type in RANDOM for f in original.functions for n in f.node)
        if outs[0][0] != outs[1][0] and not (random and level):
            return "other bits in Tenon", ""
        result, text = runtime(path, written, folder, level == 0 and not opset, stage, outs[0][0])
        if random and result == "other results in the runtime":
            result = "random"
        ok = result in ("equal", "unsupported", "no kernel", "random", "the runtime computes the original otherwise")
        return ("ok" if ok else "WRONG") + ": " + result, text


# --- many models, a process each ---------------------------------------------------------------------------------------


class Job:
    def __init__(self, args, path):
        self.path, self.start, self.bytes = path, time.monotonic(), b""
        self.pipe, end = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            os.close(end)
            return
        os.close(self.pipe)
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # hostile models: a runtime may take all there is
        tell = lambda kind, *rest: os.write(end, (json.dumps([kind, *rest]) + "\n").encode())
        try:
            category, detail = check(args, path, args.level, lambda name: tell("stage", name))
        except Exception as e:
            category, detail = "WRONG: the script failed", f"{type(e).__name__}: {e}"
        tell("done", category, detail[:2000])
        os._exit(0)

    def finish(self):
        os.close(self.pipe)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        lines = [json.loads(line) for line in self.bytes.decode().splitlines()]
        if lines and lines[-1][0] == "done":
            return lines[-1][1:]
        stage = lines[-1][1] if lines else "before the runtime"
        if stage == "original":
            return ["ok: the checker or the runtime crashes or hangs on the original", ""]
        return ["WRONG: crashed or hung", stage]


def run_all(args, paths):
    waiting, running = list(reversed(paths)), {}
    while waiting or running:
        while waiting and len(running) < args.jobs:
            job = Job(args, waiting.pop())
            running[job.pipe] = job
        ready = select.select(list(running), [], [], 1)[0]
        for pipe in ready:
            data = os.read(pipe, 65536)
            running[pipe].bytes += data
            if not data:
                job = running.pop(pipe)
                yield (job.path, *job.finish())
        for pipe, job in list(running.items()):
            if time.monotonic() - job.start > args.timeout:
                running.pop(pipe)
                yield (job.path, *job.finish())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--level", type=int, default=0)
    parser.add_argument("--opset", type=int, default=0)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=200)
    parser.add_argument("--filter", default="")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--known", help="json: by level, name -> why a model cannot be written yet")
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    paths = sorted(p for f in args.folders for p in glob.glob(os.path.join(f, "**", "*.onnx"), recursive=True) if args.filter in p)
    known = json.load(open(args.known)).get(str(args.level), {}) if args.known else {}
    counts, bad = collections.Counter(), []
    for path, category, detail in run_all(args, paths):
        counts[category] += 1
        short = os.path.basename(os.path.dirname(path))
        if category.startswith("ok") or category == "does not load" or short in known:
            if args.verbose:
                print(f"{category}: {path}: {detail[:300]}", flush=True)
            continue
        bad.append((category, path, detail))
        print(f"{category}: {path}\n    {detail.strip()[:700]}", flush=True)
    for category, n in sorted(counts.items(), key=lambda c: -c[1]):
        print(f"{n:6} {category}")
    what = f"-O{args.level}" + (f", operator set {args.opset}" if args.opset else "")
    print(f"{len(paths)} models at {what}, {len(bad)} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

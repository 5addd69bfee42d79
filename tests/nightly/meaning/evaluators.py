"""The three that answer: Tenon through the driver, the standard's evaluator, ONNX Runtime. Each answer is a list of results, or a
Refusal."""
import math
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference  # noqa: F401  (here, not in each child)
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from draw import DTYPES, STRING, code_of

STATUS = {0: "ok", 1: "failed", 2: "usage", 3: "model", 4: "input", 5: "unsupported", 6: "limit", 7: "memory", 8: "io", 9: "cancelled",
          10: "internal", -1: "died", -2: "too long"}


class Refusal:
    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    def __repr__(self):
        return "%s: %s" % (self.kind, " | ".join(self.text.split("\n"))[:300])


# --- Tenon --------------------------------------------------------------------------------------------------------------------------


def _tensor_bytes(x):
    head = struct.pack("<II", code_of(x.dtype), x.ndim) + struct.pack("<%dq" % x.ndim, *x.shape)
    if x.dtype == STRING:
        data = b""
        for s in x.ravel():
            s = s.encode() if isinstance(s, str) else s
            data += struct.pack("<I", len(s)) + s
    else:
        data = numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape)).raw_data
    return head + struct.pack("<Q", len(data)) + data


class NoElements:
    """A tensor without elements whose other sizes numpy refuses."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape, self.ndim, self.size = dtype, tuple(shape), len(shape), 0

    def __repr__(self):
        return "%s%s" % (self.dtype, list(self.shape))


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        got = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return got

    def bytes(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def tensor(self):
        code, rank = self.take("II")
        dims = self.take("%dq" % rank)
        size, = self.take("Q")
        data = self.bytes(size)
        if code == TensorProto.STRING:
            inner, items = _Reader(data), []
            while inner.at < size:
                items.append(inner.bytes(*inner.take("I")).decode("utf-8", "replace"))
            x = np.empty(len(items), dtype=object)
            x[:] = items
            return x.reshape(dims)
        if 0 in dims and math.prod(d for d in dims if d) > 1 << 58:
            return NoElements(helper.tensor_dtype_to_np_dtype(code), dims)
        return numpy_helper.to_array(TensorProto(data_type=code, dims=dims, raw_data=bytes(data)))

    def object(self):
        kind, = self.take("I")
        if kind == 0:
            return self.tensor()
        if kind == 1:
            return [self.object() for _ in range(self.take("I")[0])]
        if kind == 2:
            return self.object() if self.take("I")[0] else None
        return _map(self.tensor(), self.object())


def _map(keys, values):
    """A map as its keys in order and the numbers they have."""
    keys, values = np.asarray(keys), np.asarray(values)
    order = np.argsort(keys)
    return [keys[order], values[order].astype(np.float32)]


def run_tenon(driver, backend, models, cases, seconds=20):
    parts = [struct.pack("<I", len(cases))]
    for model, case in zip(models, cases):
        parts.append(struct.pack("<I", len(model)) + model)
        feeds = case.feeds()
        parts.append(struct.pack("<I", len(feeds)))
        for name, x in feeds.items():
            parts.append(struct.pack("<I", len(name)) + name.encode() + _tensor_bytes(x))
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "cases"), os.path.join(folder, "results")
        with open(source, "wb") as f:
            f.write(b"".join(parts))
        done = subprocess.run([driver, backend, source, target, str(seconds)], stderr=subprocess.PIPE, check=False)
        errors = done.stderr.decode("utf-8", "replace")
        if done.returncode != 0:
            raise RuntimeError("driver: %s" % errors[-2000:])
        with open(target, "rb") as f:
            reader = _Reader(f.read())
    answers = []
    for _ in cases:
        status, size = reader.take("iI")
        text = reader.bytes(size).decode("utf-8", "replace")
        count, = reader.take("I")
        results = [reader.object() for _ in range(count)]
        answers.append(results if status == 0 else Refusal(STATUS.get(status, str(status)), text))
    return answers, errors


# --- the standard's evaluator ----------------------------------------------------------------------------------------------------------


def ask_standard(model, case):
    from onnx.reference import ReferenceEvaluator
    with np.errstate(all="ignore"):
        results = [_tidy(y) for y in ReferenceEvaluator(model).run(None, case.feeds())]
    if case.op in ("Optional", "OptionalGetElement"):  # an optional is a list of one to it, also when taken out
        results = [y[0] if isinstance(y, list) and len(y) == 1 else y for y in results]
    return results


def _tidy(y):
    if isinstance(y, (list, tuple)):
        return [_tidy(v) for v in y]
    if isinstance(y, dict):
        keys = np.empty(len(y), dtype=object) if any(isinstance(k, str) for k in y) else np.empty(len(y), dtype=np.int64)
        keys[:] = list(y)
        return _map(keys, np.array(list(y.values()), dtype=np.float32))
    if y is None:
        return None
    y = np.asarray(y)
    return y.astype(object) if y.dtype.kind in "US" else y


# --- ONNX Runtime ----------------------------------------------------------------------------------------------------------------------

_PLAIN = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}


def ask_ort(model, case):
    """Inputs of types that its Python interface lacks become constants; such results are cast to float inside."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    feeds = case.feeds()
    proto = onnx.load_from_string(model)
    for name in [n for n, x in feeds.items() if code_of(x.dtype) not in _PLAIN]:
        proto.graph.initializer.append(numpy_helper.from_array(feeds.pop(name), name))
        keep = [i for i in proto.graph.input if i.name != name]
        del proto.graph.input[:]
        proto.graph.input.extend(keep)
    changed = proto.SerializeToString()
    session = onnxruntime.InferenceSession(changed, options, providers=["CPUExecutionProvider"])
    exotic = [o.name for o in session.get_outputs() if _odd(o.type)]
    casts = {}
    if exotic:
        if case.opset < 13:
            raise RuntimeError("NOT_IMPLEMENTED: no Cast for the result")
        for o in session.get_outputs():
            if o.name in exotic:
                casts[o.name] = onnx_dtype(o.type)
                proto.graph.node.append(helper.make_node("Cast", [o.name], [o.name + "_f"], to=1))
        for o in proto.graph.output:
            if o.name in exotic:
                o.name += "_f"
                o.ClearField("type")
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, feeds)
    names = [o.name for o in session.get_outputs()]
    return [np.asarray(r).astype(casts[n[:-2]]) if n[-2:] == "_f" else _tidy(r) for n, r in zip(names, results)]


def _odd(text):
    return text.startswith("tensor(") and (text[7:-1].startswith(("bfloat", "float8", "float4", "int4", "uint4", "int2)", "uint2")))


_ALIASES = {"float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2": "float8e5m2",
            "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0": "float8e8m0", "float4_e2m1": "float4e2m1"}


def onnx_dtype(text):
    return DTYPES[_ALIASES.get(text[7:-1], text[7:-1])]


# --- apart from this process: either may crash -----------------------------------------------------------------------------------------


def ask_apart(ask, models, cases, seconds=10):
    """ask(model, case) for each; in child processes, so that one that dies costs one case."""
    answers = [None] * len(cases)
    at = 0
    while at < len(cases):
        with tempfile.NamedTemporaryFile(delete=False) as f:
            path = f.name
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 0
            try:
                resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 2)
                with open(path, "wb") as f:
                    for i in range(at, len(cases)):
                        signal.alarm(seconds)
                        try:
                            answer = ask(models[i], cases[i])
                        except BaseException as e:  # whatever it throws is its refusal
                            answer = Refusal("refused", "%s: %s" % (type(e).__name__, e))
                        pickle.dump(answer, f)
                        f.flush()
            except BaseException:
                code = 1
            os._exit(code)
        _, status = os.waitpid(child, 0)
        with open(path, "rb") as f:
            while at < len(cases):
                try:
                    answers[at] = pickle.load(f)
                except (EOFError, pickle.UnpicklingError):
                    break
                at += 1
        os.unlink(path)
        if at < len(cases) and answers[at] is None:
            answers[at] = Refusal("died", "status %d" % status)
            at += 1
    return answers

"""Breaks a valid case in one place."""
import numpy as np
import onnx

from draw import BOOL, F32, I64, STRING


def break_case(d, case):
    """Changes the case; what was done is in case.invalid. The result may still be valid."""
    present = [i for i, x in enumerate(case.inputs) if x is not None]
    ways = ["add_attr", "opset", "attr", "attr", "drop_attr", "outputs"]
    if present:
        ways += ["drop", "dtype", "dtype", "rank", "rank", "dim", "dim", "values", "values", "extra"]
    for _ in range(20):
        done = globals()["_" + d.pick(*ways)](d, case, present)
        if done:
            case.invalid = done
            return
    case.invalid = "nothing"


def _drop(d, case, present):
    i = d.pick(*present)
    if i == case.trips:
        return None  # a loop without end is no broken node
    case.inputs[i] = None
    return "input %d left out" % i


def _extra(d, case, present):
    case.inputs.append(d.array((2,), d.pick(F32, I64)))
    case.modes.append("feed")
    return "an input too many"


def _dtype(d, case, present):
    i = d.pick(*present)
    x = case.inputs[i]
    to = d.pick(*[t for t in (F32, np.dtype(np.float16), np.dtype(np.int32), I64, BOOL, STRING, np.dtype(np.uint8), np.dtype(np.complex64))
                  if t != x.dtype])
    case.inputs[i] = d.array(x.shape, to)
    return "input %d made %s" % (i, to)


def _rank(d, case, present):
    i = d.pick(*present)
    x = case.inputs[i]
    if d.chance(0.5) or x.ndim == 0:
        case.inputs[i] = np.expand_dims(x, d.int(0, x.ndim))
        return "input %d got an axis" % i
    case.inputs[i] = np.take(x, 0, axis=d.int(0, x.ndim - 1)) if x.size else x.reshape(-1)
    case.inputs[i] = np.asarray(case.inputs[i], dtype=x.dtype)
    return "input %d lost an axis" % i


def _dim(d, case, present):
    i = d.pick(*present)
    x = case.inputs[i]
    if x.ndim == 0:
        return None
    shape = list(x.shape)
    shape[d.int(0, x.ndim - 1)] = d.pick(0, 1, 2, 3, 5, 7)
    if tuple(shape) == x.shape:
        return None
    case.inputs[i] = d.array(shape, x.dtype)
    return "input %d was %s" % (i, list(x.shape))


EDGES = (0, 1, -1, -2, 3, 100, -100, 2 ** 31 - 1, -2 ** 31, 2 ** 31, 2 ** 40, 2 ** 62, 2 ** 63 - 1, -2 ** 63)


def _values(d, case, present):
    whole = [i for i in present if case.inputs[i].dtype.kind in "iu" and case.inputs[i].dtype.itemsize >= 4 and case.inputs[i].size]
    floats = [i for i in present if case.inputs[i].dtype.kind == "f" and case.inputs[i].size]
    if whole and (d.chance(0.8) or not floats):
        i = d.pick(*whole)
        x = np.array(case.inputs[i])
        info = np.iinfo(x.dtype)
        at = tuple(d.int(0, s - 1) for s in x.shape)
        x[at] = min(max(d.pick(*EDGES), info.min), 100 if i == case.trips else info.max)
    elif floats:
        i = d.pick(*floats)
        x = np.array(case.inputs[i])
        at = tuple(d.int(0, s - 1) for s in x.shape)
        with np.errstate(all="ignore"):
            x[at] = np.float64(d.pick(np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0)).astype(x.dtype)
    else:
        return None
    case.inputs[i] = x
    return "input %d has %s at %s" % (i, x[at], list(at))


def _attr(d, case, present):
    names = [k for k, v in case.attrs.items() if v is not None and not isinstance(v, (onnx.GraphProto, onnx.TensorProto, onnx.SparseTensorProto, onnx.TypeProto))]
    if not names:
        return None
    name = d.pick(*names)
    v = case.attrs[name]
    how = d.int(0, 9)
    if how == 0:
        new = d.pick(7, 2.5, "abc", [1, 2], [0.5], [-1] * 40)
    elif isinstance(v, (list, tuple)) and v and isinstance(v[0], (int, float)):
        new = list(v)
        if how < 4:
            new = new + [new[0]] if d.chance(0.5) else new[:-1]
            if not new:
                return None
        else:
            new[d.int(0, len(new) - 1)] = type(v[0])(d.pick(*EDGES))
    elif isinstance(v, int):
        new = d.pick(*EDGES)
    elif isinstance(v, float):
        new = d.pick(float("nan"), float("inf"), 0.0, -1.0, 1e30)
    elif isinstance(v, str):
        new = d.pick("", "none", "x", v + "x", v.upper(), v.replace("->", ""), v + "->", "..." + v)
    else:
        return None
    case.attrs[name] = new
    return "attribute %s was %r" % (name, v)


def _drop_attr(d, case, present):
    names = [k for k, v in case.attrs.items() if v is not None]
    if not names:
        return None
    name = d.pick(*names)
    del case.attrs[name]
    return "attribute %s left out" % name


def _add_attr(d, case, present):
    known = [k for k in d.schema.attributes if case.attrs.get(k) is None]
    if known and d.chance(0.8):
        name = d.pick(*known)
    else:
        name = "unheard_of"
    case.attrs[name] = d.pick(*EDGES, 0.5, "abc", [1, 2, 3], [-1, -1], [0.5])
    return "attribute %s added" % name


def _opset(d, case, present):
    was = case.opset
    if d.domain:
        return None
    case.opset = d.int(7, 28)
    return "opset was %d" % was


def _outputs(d, case, present):
    was = len(case.outputs)
    if was > 1 and d.chance(0.3):
        i = d.int(0, was - 1)
        case.outputs = case.outputs[:i] + [False] + case.outputs[i + 1:]
        return "output %d has no name" % i
    case.outputs = [True] * d.pick(was - 1 if was > 1 else 1, 0 if was > 1 else 1, was + 1, was + 3)
    return "outputs were %d" % was

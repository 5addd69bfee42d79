"""One random case of an operator: what specs draw with, and the case they make."""
import functools
import zlib

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

NEWEST = 28
LONG = (17, 33, 100, 513, 1025)  # beyond vectors of 8 and 16, and beyond strips of 512; each has a tail
MOST = 8192  # elements of a shape with a long axis
OF_OTHERS = 21  # the standard's operator set in models of another domain's operator
DTYPES = {}  # name in the standard's texts -> numpy dtype
for _code, _name in (
    (1, "float"), (2, "uint8"), (3, "int8"), (4, "uint16"), (5, "int16"), (6, "int32"), (7, "int64"), (8, "string"),
    (9, "bool"), (10, "float16"), (11, "double"), (12, "uint32"), (13, "uint64"), (16, "bfloat16"), (17, "float8e4m3fn"),
    (18, "float8e4m3fnuz"), (19, "float8e5m2"), (20, "float8e5m2fnuz"), (21, "uint4"), (22, "int4"), (23, "float4e2m1"),
    (24, "float8e8m0"), (25, "uint2"), (26, "int2"),
):
    try:
        DTYPES[_name] = helper.tensor_dtype_to_np_dtype(_code)
    except KeyError:
        pass
F32, F64, F16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)
BF16 = DTYPES["bfloat16"]
I64, I32, BOOL, STRING = np.dtype(np.int64), np.dtype(np.int32), np.dtype(bool), np.dtype(object)
COMMON = (F32, F64, F16, I32, I64, np.dtype(np.uint8), np.dtype(np.int8))


def code_of(dtype):
    """The standard's number of a numpy dtype."""
    return TensorProto.STRING if dtype == STRING else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def is_float(dtype):
    return np.dtype(dtype).name in ("float16", "float32", "float64", "bfloat16")


def magnitude(x):
    v = x.astype(np.float64)
    v = v[np.isfinite(v)]
    return float(np.sqrt(np.mean(v * v))) if v.size else 0.0


def is_int(dtype):
    return np.dtype(dtype).kind in "iu" and np.dtype(dtype).name in INTS


INTS = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}


class Case:
    """A model of one node, what is fed, and how the results are compared."""

    def __init__(self, op, opset, inputs, attrs, outputs, scale, rtol, atol, domain, note):
        self.op, self.opset, self.inputs, self.attrs, self.outputs = op, opset, inputs, attrs, outputs
        self.scale, self.rtol, self.atol, self.domain, self.note = scale, rtol, atol, domain, note
        self.modes = ["feed"] * len(inputs)  # feed, constant
        self.shapes = "fixed"  # fixed, free, rank, none: what the model says of the shapes that are fed
        self.invalid = None
        self.compare_outputs = None  # indices of those compared; None: all
        self.before, self.after = [], []  # nodes that make what is no tensor of x0, x1, ..., and tensors of it
        self.input_names = self.output_names = None  # those of the node; None: x0, x1, ... and y0, y1, ...
        self.oracle = None  # function(case) -> outputs: one more witness, written from the operator's text
        self.precision = None  # dtype the text lets a computation in f64 be done in; None: that of the result
        self.terms = 0.0  # a magnitude that a result may have, though these happen to cancel
        self.slack = 0.0  # by which results may differ besides: where an iteration ends
        self.as_numbers = False  # strings are read as numbers: the text leaves their form open
        self.flips = None  # per output, where a quantised result is a tie within float error: it may be the next number
        self.own_width = False  # the text takes the precision from a type of the node: in other floats it means something else
        self.judge = None  # function(outputs) -> None or text, instead of comparing
        self.sort = None  # (axis, rising): the order of results along the axis is left open
        self.sizes = set()  # those that values and attributes stand for
        self.trips = None  # index of the input that alone ends a loop
        self.seen = {}

    def names(self):
        return ["" if x is None else "x%d" % i for i, x in enumerate(self.inputs)]

    def model(self):
        names = self.names() if self.input_names is None else list(self.input_names)
        while names and not names[-1]:
            names.pop()
        attrs = {k: v for k, v in self.attrs.items() if v is not None}
        results = self.output_names or [("y%d" % i if o else "") for i, o in enumerate(self.outputs)]
        node = helper.make_node(self.op, names, results, name="node", domain=self.domain, **attrs)
        inits, infos = [], []
        for i, (x, mode) in enumerate(zip(self.inputs, self.modes)):
            if x is None:
                continue
            if mode == "constant":
                inits.append(tensor(x, "x%d" % i))
                continue
            shape = list(x.shape)
            if self.shapes == "free":
                shape = ["d%d_%d" % (i, k) for k in range(len(shape))]
            elif self.shapes == "rank":
                shape = [None] * len(shape)
            elif self.shapes == "none":
                shape = None
            infos.append(helper.make_tensor_value_info("x%d" % i, code_of(x.dtype), shape))
        outs = [helper.make_empty_tensor_value_info("y%d" % i) for i, o in enumerate(self.outputs) if o]
        graph = helper.make_graph(self.before + [node] + self.after, "g", infos, outs, inits)
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain:
            imports = [helper.make_opsetid("", OF_OTHERS), helper.make_opsetid(self.domain, self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=13 if imports[0].version > 24 else 10)

    def feeds(self):
        return {"x%d" % i: x for i, (x, m) in enumerate(zip(self.inputs, self.modes)) if x is not None and m == "feed"}

    def text(self):
        def short(v):
            if isinstance(v, (onnx.GraphProto, onnx.TensorProto, onnx.SparseTensorProto, onnx.TypeProto)):
                return "<%s>" % type(v).__name__
            return repr(v)

        lines = ["%s-%d (%s shapes%s)" % (self.op, self.opset, self.shapes, ", " + self.invalid if self.invalid else "")]
        lines += ["  %s = %s" % (k, short(v)) for k, v in self.attrs.items() if v is not None]
        for i, (x, m) in enumerate(zip(self.inputs, self.modes)):
            if x is None:
                lines.append("  input %d: none" % i)
            else:
                values = np.array2string(x, threshold=24, edgeitems=3, precision=5).replace("\n", "") if x.size < 60 else ""
                lines.append("  input %d: %s%s %s %s" % (i, x.dtype, list(x.shape), "constant" if m == "constant" else "", values))
        return "\n".join(lines) + (("\n  " + self.note) if self.note else "")


def tensor(x, name):
    t = numpy_helper.from_array(x, name) if x.dtype != STRING else helper.make_tensor(
        name, TensorProto.STRING, x.shape, [s.encode() if isinstance(s, str) else s for s in x.ravel()])
    return t


def versions_of(domain):
    return sorted({v.since_version for v in defs.get_all_schemas_with_history() if v.domain == domain})


@functools.cache
def operator_versions(op, domain):
    return sorted(v.since_version for v in defs.get_all_schemas_with_history() if v.name == op and v.domain == domain and not v.deprecated)


def usable_of(versions, domain):
    """The versions of an operator that are in operator set 7 or a later one."""
    return [v for i, v in enumerate(versions) if domain or i + 1 == len(versions) or versions[i + 1] > 7]


class Draw:
    """Random choices for one case of `op`."""

    def __init__(self, op, seed, number, domain="", version=None):
        self.rng = np.random.default_rng([seed, zlib.crc32(op.encode()), number])
        self.op, self.domain = op, domain
        self.number = number
        versions = operator_versions(op, domain)
        newest = NEWEST if not domain else versions_of(domain)[-1]
        usable = usable_of(versions, domain)
        self.v = usable[self.int(0, len(usable) - 1)] if version is None else version
        after = [v for v in versions if v > self.v]
        top = (after[0] - 1) if after else newest
        if op == "Upsample":
            top = min(top, 9)
        if op == "Scatter":
            top = min(top, 10)
        self.opset = self.int(self.v, top) if domain else self.int(max(7, self.v), max(7, top))
        self.schema = defs.get_schema(op, self.opset, domain)
        self.types = {}
        self.long = None  # the long size of the case: one at most

    # choices
    def int(self, lo, hi):
        return int(self.rng.integers(lo, hi + 1))

    def chance(self, p):
        return bool(self.rng.random() < p)

    def pick(self, *of):
        return of[self.int(0, len(of) - 1)]

    def float(self, lo, hi):
        return float(np.float32(self.rng.uniform(lo, hi)))

    def maybe(self, value, p=0.5):
        """The value, or None."""
        return value if self.chance(p) else None

    # types
    def allowed(self, param):
        """The numpy dtypes a type parameter of the operator admits in this version."""
        for c in self.schema.type_constraints:
            if c.type_param_str == param:
                names = c.allowed_type_strs
                break
        else:
            names = [param]
        got = [DTYPES[n[7:-1]] for n in names if n.startswith("tensor(") and n[7:-1] in DTYPES]
        return sorted(got, key=lambda d: code_of(d))

    def type(self, param="T", only=None, prefer=0.5):
        """The dtype drawn for a type parameter: one for the case."""
        if param not in self.types:
            may = [d for d in self.allowed(param) if only is None or only(d)]
            common = [d for d in may if d in COMMON]
            if self.chance(prefer) and F32 in may:
                self.types[param] = F32
            else:
                self.types[param] = self.pick(*(common if common and self.chance(0.6) else may))
        return self.types[param]

    def of_input(self, i):
        i = min(i, len(self.schema.inputs) - 1)
        return self.type(self.schema.inputs[i].type_str)

    # shapes and values
    def shape(self, lo=0, hi=4, most=4, zero=0.02, long=0.12):
        got = [0 if self.chance(zero) else self.int(1, most) for _ in range(self.int(lo, hi))]
        if got and self.long is None and self.chance(long):
            at = self.int(0, len(got) - 1)
            got[at] = self.stretched()
            for i in range(len(got)):
                if i != at and int(np.prod(got)) > MOST:
                    got[i] = min(got[i], 2)
        return tuple(got)

    def stretched(self, most=LONG[-1]):
        """The long size of this case."""
        self.long = self.pick(*[n for n in LONG if n <= most])
        return self.long

    def dim(self, lo, hi, most=LONG[-1], p=0.06):
        """A size; now and then the long one of the case."""
        small = self.int(lo, hi)
        return self.stretched(most) if self.long is None and self.chance(p) else small

    def filled(self, shape, *axes):
        """The shape, with something along those axes."""
        shape = list(shape)
        for a in axes:
            shape[a] = max(1, shape[a])
        return tuple(shape)

    def batch(self, lo, hi):
        """How many of something that are computed apart: none, at times."""
        return 0 if self.chance(0.03) else self.int(lo, hi)

    def array(self, shape, dtype=F32, style=None, lo=None, hi=None):
        """Values of a dtype. style: small (whole numbers), normal, unit (0..1), wide (all a type has, specials too)."""
        dtype, rng = np.dtype(dtype), self.rng
        shape = tuple(int(s) for s in shape)
        if dtype == STRING:
            words = np.array(["", "a", "b", "ab", "Tenon", "zürich", "10", "-3.5"], dtype=object)
            return np.array(words[rng.integers(0, len(words), shape)], dtype=object).reshape(shape)
        if dtype == BOOL:
            return np.asarray(rng.random(shape) < 0.5)
        if dtype.name in INTS:
            info = np.iinfo(dtype)
            if lo is None and hi is None and style == "wide" and self.chance(0.4):
                return np.asarray(rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True))
            lo = max(info.min, -9 if lo is None else lo)
            hi = min(info.max, 9 if hi is None else hi)
            return np.asarray(rng.integers(lo, hi, shape, endpoint=True)).astype(dtype)
        if dtype.name in ("int4", "uint4", "int2", "uint2"):
            low, high = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}[dtype.name]
            return np.asarray(rng.integers(low, high, shape, endpoint=True)).astype(np.int8).astype(dtype)
        if dtype.kind == "c":
            return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
        if lo is not None:
            return np.asarray(rng.uniform(lo, hi, shape)).astype(np.float32).astype(dtype)
        style = style or self.pick("small", "normal", "normal")
        if style == "small":
            return np.asarray(rng.integers(-4, 5, shape)).astype(np.float32).astype(dtype)
        if style == "unit":
            return np.asarray(rng.random(shape)).astype(np.float32).astype(dtype)
        x = np.asarray(rng.normal(0, 2, shape))
        if style == "wide":
            if self.chance(0.3):
                x = np.asarray(x * 10.0 ** rng.integers(-4, 4, shape))
            if self.chance(0.3):
                specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5])
                x = np.where(rng.random(shape) < 0.4, specials[rng.integers(0, len(specials), shape)], x)
        if dtype.name.startswith("float8") or dtype.name.startswith("float4"):
            x = np.asarray(np.abs(x) if "e8m0" in dtype.name else x).astype(np.float32)
            if not np.isfinite(x).all():
                x = np.nan_to_num(x, posinf=2, neginf=-2, nan=1)
        with np.errstate(all="ignore"):
            return np.asarray(np.asarray(x).astype(np.float32).astype(dtype))

    def x(self, i, shape, style=None, lo=None, hi=None):
        """A tensor for input i, of the dtype drawn for it."""
        return self.array(shape, self.of_input(i), style, lo, hi)

    def ints(self, values, dtype=I64):
        return np.array(values, dtype=dtype).reshape(len(values))

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, lo=1, hi=None):
        """Distinct axes, some negative."""
        n = self.int(lo, rank if hi is None else min(hi, rank))
        return [int(a) - (rank if self.chance(0.4) else 0) for a in self.rng.permutation(rank)[:n]]

    def broadcastable(self, shape):
        """A shape that broadcasts to `shape`."""
        cut = self.int(0, len(shape)) if self.chance(0.4) else 0
        return tuple(1 if self.chance(0.3) else s for s in shape[cut:])

    def pair(self, lo=0, hi=4, most=4):
        """Two shapes that broadcast to one another, and the result's."""
        full = self.shape(lo, hi, most)
        a = full
        b = self.broadcastable(full)
        if self.chance(0.4):
            a = tuple(1 if self.chance(0.2) and (len(full) - i > len(b) or b[i - len(full) + len(b)] == s) else s for i, s in enumerate(full))
        return (a, b) if self.chance(0.5) else (b, a)

    def node(self, inputs, attrs=None, outputs=1, scale=0.0, rtol=1.0, atol=1.0, constant=0.5, constants=(), never=(),
             shapes=None, note="", summed=1):
        """The case. scale: how much of a tolerance is relative to the largest result; constants: inputs that steer shapes, more
        often constants; never: inputs that must be fed; rtol, atol: factors; summed: how many products of an element of each are added."""
        outputs = [True] * outputs if isinstance(outputs, int) else outputs
        case = Case(self.op, self.opset, list(inputs), dict(attrs or {}), outputs, scale, rtol, atol, self.domain, note)
        feed_all = self.chance(0.5)
        for i, x in enumerate(case.inputs):
            p = 0.6 if i in constants else 0.0 if feed_all else 0.25
            if x is not None and i not in never and self.chance(p):
                case.modes[i] = "constant"
        if summed > 1:
            case.terms = float(np.sqrt(summed)) * float(np.prod([magnitude(x) for x in inputs if x is not None and is_float(x.dtype)]))
        case.shapes = shapes or self.pick("fixed", "fixed", "free", "free", "rank", "none")
        return case


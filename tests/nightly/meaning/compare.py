"""Whether two results are the same within what rounding explains."""
import numpy as np

from draw import BF16, STRING, is_float, is_int

# relative, absolute
LIMITS = {"float64": (2e-7, 1e-7), "float32": (1e-4, 2e-6), "float16": (8e-3, 5e-4), "bfloat16": (5e-2, 4e-3)}


def difference(a, b, case):
    """None, or what differs first."""
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        if not isinstance(a, (list, tuple)) or not isinstance(b, (list, tuple)) or len(a) != len(b):
            return "%s against %s" % (describe(a), describe(b))
        for i, (x, y) in enumerate(zip(a, b)):
            got = difference(x, y, case)
            if got:
                return "item %d: %s" % (i, got)
        return None
    if a is None or b is None:
        return None if a is None and b is None else "one is empty"
    if a.dtype != b.dtype:
        return "dtype %s against %s" % (a.dtype, b.dtype)
    if a.shape != b.shape:
        return "shape %s against %s" % (list(a.shape), list(b.shape))
    if a.size == 0:
        return None
    if case.as_numbers and a.dtype == STRING:
        try:
            return difference(a.astype(np.float64), b.astype(np.float64), case)
        except ValueError:
            return None if np.all(a == b) else "no number: " + first(a, b, a != b)
    if not is_float(a.dtype):
        same = a == b
        if case.flips is not None and case.flips.shape == a.shape and is_int(a.dtype):
            same |= case.flips & (np.abs(a.astype(np.int64) - b.astype(np.int64)) <= 1)
        if a.dtype.kind == "V" or a.dtype.name.startswith("float"):
            x, y = a.astype(np.float32), b.astype(np.float32)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
        return None if np.all(same) else first(a, b, ~np.asarray(same))
    x, y = a.astype(np.float64), b.astype(np.float64)
    rtol, atol = LIMITS["bfloat16" if a.dtype == BF16 else a.dtype.name]
    if case.precision is not None and LIMITS[case.precision.name] > (rtol, atol):
        rtol, atol = LIMITS[case.precision.name]
    rtol, atol = rtol * case.rtol, atol * case.atol
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y)
        largest = max(np.max(np.abs(x[finite]), initial=0), np.max(np.abs(y[finite]), initial=0))
        limit = case.slack + atol + rtol * (np.maximum(np.abs(x), np.abs(y)) + case.scale * max(largest, case.terms))
        same = (x == y) | (np.isnan(x) & np.isnan(y)) | (finite & (np.abs(x - y) <= limit))
        if a.dtype == np.float16:  # one may just overflow
            same |= (np.isinf(x) & (np.abs(y) > 6e4)) | (np.isinf(y) & (np.abs(x) > 6e4))
    return None if np.all(same) else first(a, b, ~np.asarray(same))


def forms(results, others, case):
    """None, or the first result of another element type or shape."""
    for i, (a, b) in enumerate(zip(results, others)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return "output %d: %s against %s" % (i, describe(a), describe(b))
    return None


def first(a, b, wrong):
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if a.ndim else ()
    return "%s at %s against %s (%d of %d)" % (a[at], list(at), b[at], int(np.sum(wrong)), a.size)


def in_order(y, axis, rising):
    wide = np.sort(y.astype(np.int64 if is_int(y.dtype) else np.float64), axis=axis)
    return (wide if rising else np.flip(wide, axis)).astype(y.dtype)


def describe(v):
    if isinstance(v, (list, tuple)):
        return "a sequence of %d" % len(v)
    return "nothing" if v is None else "%s%s" % (v.dtype, list(v.shape))


def differences(a, b, case):
    """Of all outputs of two answers."""
    if len(a) != len(b):
        return "%d outputs against %d" % (len(a), len(b))
    if case.sort is not None and not case.invalid:
        a, b = ([in_order(y, *case.sort) for y in answer] for answer in (a, b))
    for i, (x, y) in enumerate(zip(a, b)):
        if case.compare_outputs is not None and i not in case.compare_outputs:
            continue
        got = difference(x, y, case)
        if got:
            return "output %d: %s" % (i, got)
    return None

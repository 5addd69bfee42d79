"""The error of -O2: every model that computes in float, compiled, against the reference on the same graph retyped to double. The root mean
square of the error may be 1e-4 of that of the output. Prints a table; `better` counts those within 4e-5."""
import argparse, os, subprocess, sys
import numpy as np
import onnx
from onnx import TensorProto as T, numpy_helper

LIMIT, GOAL = 1e-4, 4e-5
NARROW = {T.FLOAT16, T.BFLOAT16}
QUANTISED = ('QLinear', 'Quantize', 'DequantizeLinear', 'MatMulInteger', 'ConvInteger', 'DynamicQuantize')


class NotFloat(Exception):
    pass


def retype_tensor(t, folder):
    if t.data_type in NARROW:
        raise NotFloat('half precision')
    if t.data_type == T.FLOAT:
        onnx.external_data_helper.load_external_data_for_tensor(t, folder) if t.external_data else None
        wide = numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name)
        t.CopyFrom(wide)


def retype_type(t):
    kind = t.WhichOneof('value')
    if kind == 'tensor_type' or kind == 'sparse_tensor_type':
        inner = getattr(t, kind)
        if inner.elem_type in NARROW:
            raise NotFloat('half precision')
        if inner.elem_type == T.FLOAT:
            inner.elem_type = T.DOUBLE
    elif kind in ('sequence_type', 'optional_type'):
        retype_type(getattr(t, kind).elem_type)


def narrow_scales(g):
    """Resize and Upsample take their scales in float alone."""
    nodes = []
    for n in g.node:
        at = {'Resize': 2 if len(n.input) > 2 else 1, 'Upsample': 1}.get(n.op_type)
        if at is not None and len(n.input) > at and n.input[at]:
            nodes.append(onnx.helper.make_node('Cast', [n.input[at]], [f'{n.output[0]}/scales'], to=T.FLOAT))
            n.input[at] = nodes[-1].output[0]
        nodes.append(n)
    copies = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    del g.node[:]
    g.node.extend(copies)


def retype_node(n, folder):
    if n.op_type.startswith(('Random', 'Bernoulli', 'Multinomial')):
        raise NotFloat('random numbers')
    if n.domain not in ('', 'ai.onnx'):
        raise NotFloat(f'{n.domain}.{n.op_type}')
    if n.op_type.startswith(QUANTISED):
        raise NotFloat(n.op_type)
    if n.op_type in ('Constant', 'ConstantOfShape') or any(a.name in ('to', 'dtype', 'stash_type') for a in n.attribute):
        for a in n.attribute:
            if a.name in ('to', 'dtype', 'stash_type') and a.i in NARROW:
                raise NotFloat('half precision')
            if a.name in ('to', 'dtype', 'stash_type') and a.i == T.FLOAT:
                a.i = T.DOUBLE
            if a.name in ('value_float', 'value_floats'):
                values = [a.f] if a.name == 'value_float' else list(a.floats)
                wide = numpy_helper.from_array(np.array(values[0] if a.name == 'value_float' else values, np.float64))
                a.Clear()
                a.name, a.type = 'value', onnx.AttributeProto.TENSOR
                a.t.CopyFrom(wide)
    if n.op_type == 'ConstantOfShape' and not n.attribute:
        n.attribute.append(onnx.helper.make_attribute('value', numpy_helper.from_array(np.zeros(1, np.float64))))
    if n.op_type in ('EyeLike', 'RandomNormal', 'RandomUniform') and not any(a.name == 'dtype' for a in n.attribute):
        n.attribute.append(onnx.helper.make_attribute('dtype', T.DOUBLE))
    for a in n.attribute:
        if a.HasField('t'):
            retype_tensor(a.t, folder)
        for g in ([a.g] if a.HasField('g') else []) + list(a.graphs):
            retype_graph(g, folder)


def retype_graph(g, folder):
    for t in g.initializer:
        retype_tensor(t, folder)
    for t in g.sparse_initializer:
        retype_tensor(t.values, folder)
    for v in list(g.input) + list(g.output) + list(g.value_info):
        retype_type(v.type)
    for n in g.node:
        retype_node(n, folder)
    narrow_scales(g)


def retype(path):
    folder = os.path.dirname(path)
    m = onnx.load(path, load_external_data=False)
    floats = [t for t in m.graph.initializer if t.data_type in (T.FLOAT, T.DOUBLE)]
    if not floats and not any(a.HasField('t') for n in m.graph.node for a in n.attribute):
        raise NotFloat('no floats')
    retype_graph(m.graph, folder)
    for f in m.functions:
        for n in f.node:
            retype_node(n, folder)
    return m


def run(tenon, model, feeds, folder, *options):
    os.makedirs(folder)
    r = subprocess.run([tenon, 'run', model, *feeds, '--output-dir', folder, '--quiet', *options], capture_output=True,
                       text=True)
    if r.returncode:
        raise RuntimeError(r.stderr.strip().splitlines()[0] if r.stderr else f'exit {r.returncode}')
    return {f: np.load(os.path.join(folder, f)) for f in sorted(os.listdir(folder)) if f.endswith('.npy')}


def feeds_of(m, data, folder):
    """Inputs of the first data set; as they are, and in double."""
    plain, wide = [], []
    for k, name in enumerate(i.name for i in m.graph.input):
        path = os.path.join(data, f'input_{k}.pb')
        if not os.path.exists(path):
            continue
        try:
            a = numpy_helper.to_array(onnx.TensorProto.FromString(open(path, 'rb').read()))
        except Exception as e:
            raise NotFloat('an input is no tensor') from e
        plain += ['--input', f'{name}={path}']
        file = os.path.join(folder, f'{k}.npy')
        np.save(file, a.astype(np.float64) if a.dtype == np.float32 else a)
        wide += ['--input', f'{name}={file}']
    return plain, wide


def ratio(got, want):
    if got.shape != want.shape:
        return np.inf
    if not want.size or want.dtype.kind != 'f':
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    difference = np.where(same, 0, got - want)
    r = np.sqrt((difference ** 2).mean()) / max(np.sqrt((np.where(np.isfinite(want), want, 0) ** 2).mean()), 1e-30)
    return r if np.isfinite(r) else np.inf


def check(name, path, data, a, scratch):
    """The largest ratio of the outputs."""
    m = retype(path)
    os.makedirs(scratch)
    plain, wide = feeds_of(m, data, scratch)
    double = os.path.join(scratch, 'double.onnx')
    onnx.save(m, double, save_as_external_data=True, location='double.data')
    options = [] if os.path.isdir(data) else ['--fill', 'ones']
    want = run(a.tenon, double, wide, os.path.join(scratch, 'want'), '--backend', 'ref', *options)
    got = run(a.tenon, path, plain, os.path.join(scratch, 'got'), '-O2', *options)
    if set(want) != set(got) or not want:
        raise RuntimeError(f'outputs differ: {sorted(want)} and {sorted(got)}')
    return max(ratio(got[k], want[k]) for k in want)


def main():
    p = argparse.ArgumentParser()
    for o in ('--tenon', '--models', '--scratch'):
        p.add_argument(o, required=True)
    p.add_argument('names', nargs='*')
    a = p.parse_args()
    worst, seen, better, failed = 0.0, 0, 0, []
    for name in sorted(os.listdir(a.models)):
        path = os.path.join(a.models, name, 'model.onnx')
        case = os.path.join(a.models, name, 'case.json')
        if not os.path.isfile(path) or (a.names and name not in a.names):
            continue
        if os.path.isfile(case) and '"error"' in open(case).read():
            continue
        try:
            r = check(name, path, os.path.join(a.models, name, 'test_data_set_0'), a, os.path.join(a.scratch, name))
        except NotFloat as e:
            print(f'{name:28} not float: {e}')
            continue
        except (RuntimeError, OSError) as e:
            print(f'{name:28} FAILED: {e}')
            failed.append(name)
            continue
        seen += 1
        better += r <= GOAL
        worst = max(worst, r)
        print(f'{name:28} {r:.2e}{"" if r <= LIMIT else "  FAILED"}', flush=True)
        if r > LIMIT:
            failed.append(name)
    print(f'{seen} models, {better} within {GOAL:g}, the worst {worst:.2e}; failed: {", ".join(failed) or "none"}')
    return 1 if failed or (not a.names and seen < 30) else 0


if __name__ == '__main__':
    sys.exit(main())

"""Writes an attention as a model, for bench/compare: attention.py OUT.onnx [option]...

The operator Attention, or (--form matmul) what exporters write for it: heads taken out of rows, MatMul, a division, a mask, Softmax, MatMul."""
import argparse

import numpy as np
import onnx
from onnx import helper, numpy_helper


def operator(o, inputs):
    names = ['q', 'k', 'v']
    if o.mask == 'add':
        inputs['m'] = [o.queries, o.keys]
        names.append('m')
    attributes = {'is_causal': int(o.mask == 'causal')} | ({'softcap': o.softcap} if o.softcap else {})
    for name, heads, rows in (('q', o.heads, o.queries), ('k', o.kv_heads, o.keys), ('v', o.kv_heads, o.keys)):
        inputs[name] = [o.batch, heads, rows, o.depth]
    return [helper.make_node('Attention', names, ['y'], **attributes)], {}, [o.batch, o.heads, o.queries, o.depth]


def matmul(o, inputs):
    nodes, constants = [], {}

    def node(op, read, write, **attributes):
        nodes.append(helper.make_node(op, read, [write], **attributes))
        return write

    def constant(name, value, dtype):
        constants[name] = np.array(value, dtype)
        return name

    def heads(name, count, rows):
        inputs[name] = [o.batch, rows, count * o.depth]
        x = node('Reshape', [name, constant(name + '_by', [o.batch, rows, count, o.depth], np.int64)], name + '_rows')
        x = node('Transpose', [x], name + '_heads', perm=[0, 2, 1, 3])
        if count != o.heads:
            group = o.heads // count
            x = node('Unsqueeze', [x, constant(name + '_axis', [2], np.int64)], name + '_one')
            x = node('Expand', [x, constant(name + '_to', [o.batch, count, group, rows, o.depth], np.int64)], name + '_each')
            x = node('Reshape', [x, constant(name + '_all', [o.batch, o.heads, rows, o.depth], np.int64)], name + '_spread')
        return x

    q, k, v = heads('q', o.heads, o.queries), heads('k', o.kv_heads, o.keys), heads('v', o.kv_heads, o.keys)
    x = node('MatMul', [q, node('Transpose', [k], 'k_turned', perm=[0, 1, 3, 2])], 'scores')
    x = node('Div', [x, constant('root', o.depth**0.5, np.float32)], 'scaled')
    if o.softcap:
        cap = constant('cap', o.softcap, np.float32)
        x = node('Mul', [node('Tanh', [node('Div', [x, cap], 'by_cap')], 'bent'), cap], 'capped')
    seen = np.tri(o.queries, o.keys, o.keys - o.queries, dtype=bool)[None, None]
    if o.mask == 'causal':
        x = node('Where', [constant('seen', seen, bool), x, constant('never', -np.inf, np.float32)], 'masked')
    if o.mask == 'add':
        x = node('Add', [x, constant('bias', np.where(seen, 0, -1e4), np.float32)], 'masked')
    x = node('MatMul', [node('Softmax', [x], 'weights', axis=-1), v], 'mixed')
    x = node('Transpose', [x], 'turned', perm=[0, 2, 1, 3])
    node('Reshape', [x, constant('y_by', [o.batch, o.queries, o.heads * o.depth], np.int64)], 'y')
    return nodes, constants, [o.batch, o.queries, o.heads * o.depth]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('out')
parser.add_argument('--form', choices=['operator', 'matmul'], default='operator')
parser.add_argument('--mask', choices=['none', 'causal', 'add'], default='none')
for name, value in (('batch', 1), ('heads', 12), ('kv-heads', 0), ('queries', 512), ('keys', 0), ('depth', 64)):
    parser.add_argument('--' + name, type=int, default=value)
parser.add_argument('--softcap', type=float, default=0.0)
options = parser.parse_args()
options.keys = options.keys or options.queries
options.kv_heads = options.kv_heads or options.heads
inputs = {}
nodes, constants, shape = (operator if options.form == 'operator' else matmul)(options, inputs)
info = helper.make_tensor_value_info
graph = helper.make_graph(nodes, 'attention', [info(name, onnx.TensorProto.FLOAT, dims) for name, dims in inputs.items()],
                          [info('y', onnx.TensorProto.FLOAT, shape)],
                          [numpy_helper.from_array(value, name) for name, value in constants.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 23)], ir_version=10)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, options.out)

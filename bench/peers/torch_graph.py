"""Graphs of a few operators in PyTorch, in eager mode, as its users would spell them. What is not in the table is not supported."""
import numpy as np
import onnx
import torch
import torch.nn.functional as F


def layer_norm(a, x, scale, bias=None):
    axis = a.get('axis', -1)
    return F.layer_norm(x, x.shape[axis:], scale, bias, a.get('epsilon', 1e-5))


def attention(a, q, k, v, mask=None):
    heads, kv = a.get('q_num_heads'), a.get('kv_num_heads')
    if q.dim() == 3:
        q, k, v = (x.unflatten(2, (n, -1)).transpose(1, 2) for x, n in ((q, heads), (k, kv), (v, kv)))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=bool(a.get('is_causal', 0)),
                                       scale=a.get('scale'), enable_gqa=q.shape[1] != k.shape[1])
    return y.transpose(1, 2).flatten(2) if heads else y


def conv(a, x, w, bias=None):
    dims = x.dim() - 2
    pads = a.get('pads', [0] * 2 * dims)
    if a.get('auto_pad', b'NOTSET') != b'NOTSET' or pads[:dims] != pads[dims:] or dims != 2:
        raise SystemExit('not supported: these paddings of Conv')
    return F.conv2d(x, w, bias, a.get('strides', 1), pads[:dims], a.get('dilations', 1), a.get('group', 1))


OPERATORS = {
    'Add': lambda a, x, y: x + y,
    'Attention': attention,
    'Conv': conv,
    'Div': lambda a, x, y: x / y,
    'Expand': lambda a, x, to: x.expand(*to.tolist()),
    'Gelu': lambda a, x: F.gelu(x, approximate=a.get('approximate', b'none').decode()),
    'LayerNormalization': layer_norm,
    'MatMul': lambda a, x, y: x @ y,
    'Mul': lambda a, x, y: x * y,
    'Relu': lambda a, x: F.relu(x),
    'Reshape': lambda a, x, to: x.reshape(to.tolist()),
    'Softmax': lambda a, x: F.softmax(x, a.get('axis', -1)),
    'Tanh': lambda a, x: x.tanh(),
    'Transpose': lambda a, x: x.permute(a['perm']),
    'Unsqueeze': lambda a, x, axes: x.unsqueeze(int(axes)),
    'Where': lambda a, c, x, y: torch.where(c, x, y),
}


class Graph:
    def __init__(self, path):
        model = onnx.load(path)
        if unknown := sorted({n.op_type for n in model.graph.node} - OPERATORS.keys()):
            raise SystemExit(f'not supported: {", ".join(unknown)} in PyTorch')
        self.nodes = [(OPERATORS[n.op_type], {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute},
                       list(n.input), list(n.output)) for n in model.graph.node]
        self.constants = {i.name: torch.from_numpy(np.array(onnx.numpy_helper.to_array(i)))
                          for i in model.graph.initializer}
        self.outputs = [o.name for o in model.graph.output]

    def run(self, feed):
        value = {**self.constants, **{name: torch.from_numpy(x) for name, x in feed.items()}}
        with torch.inference_mode():
            for function, attributes, inputs, outputs in self.nodes:
                value[outputs[0]] = function(attributes, *(value[i] if i else None for i in inputs))
        return [value[o].numpy() for o in self.outputs]

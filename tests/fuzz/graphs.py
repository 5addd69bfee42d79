#!/usr/bin/env python3
"""Random graphs of ONNX operators: random structure, attributes, ranks, element types and operator sets. The reference and every plan of each
answer alike, or refuse it alike.

    graphs.py --driver build/meaning-driver --holds build/graphs-driver [--seed 1] [--count 300] [--graph 17 --keep FOLDER]

The nodes are those that tests/nightly/meaning draws, valid by themselves but for a few that are broken in one place; an input of one takes
what another gives, by a cast and a change of shape where it has to, and some stand in branches and loops. A graph that does not hold is cut
down to the smallest part that does not (tests/support/random_shrink.c)."""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "nightly", "meaning"))
import evaluators
from breakage import break_case
from draw import BF16, BOOL, I64, NEWEST, Draw, code_of, is_float, is_int, operator_versions, versions_of
from meaning import DOMAINS, SPECS

MOST_INPUTS = 40
# what infinity times a padded zero is, back ends may see differently: these take finite values alone
PADDED = {"CausalConvWithState", "Conv", "ConvTranspose", "DeformConv"}
REMOVED = {"Upsample": 9, "Scatter": 10}  # the last operator set that has it


def version_at(op, opset):
    """The version of an operator in an operator set, or None."""
    if opset > REMOVED.get(op, opset):
        return None
    return max((v for v in operator_versions(op, DOMAINS[op]) if v <= opset), default=None)


def rename(nodes, to):
    """Gives every value of nodes, and of the graphs in them, another name."""
    for node in nodes:
        node.input[:] = [n and to(n) for n in node.input]
        node.output[:] = [n and to(n) for n in node.output]
        for a in node.attribute:
            for g in [a.g] if a.type == AttributeProto.GRAPH else a.graphs:
                rename(g.node, to)
                for v in list(g.input) + list(g.output) + list(g.initializer) + list(g.value_info):
                    v.name = to(v.name)
                for s in g.sparse_initializer:
                    s.values.name = to(s.values.name)


class Graph:
    """A graph while it grows."""

    def __init__(self, seed, number):
        self.rng = np.random.default_rng([seed, number])
        self.seed, self.number = seed, number
        self.opset = int(self.rng.integers(7, NEWEST + 1)) if self.chance(0.6) else NEWEST
        self.imports = {"": self.opset}
        self.nodes, self.inits, self.infos, self.feeds = [], [], [], {}
        self.values = []  # name and what it is, of every tensor that later nodes may take
        self.outputs, self.taken, self.count = [], set(), 0
        self.symbols = self.chance(0.5)  # one name for equal sizes
        self.broken = self.chance(0.15)  # some nodes are wrong in one place

    def chance(self, p):
        return bool(self.rng.random() < p)

    def pick(self, of):
        return of[int(self.rng.integers(0, len(of)))]

    def cases(self):
        """The nodes to come."""
        out = []
        for at in range(int(self.rng.integers(2, 11))):
            op = self.pick(sorted(SPECS))
            domain = DOMAINS[op]
            if domain and domain not in self.imports:
                self.imports[domain] = self.pick(versions_of(domain))
            version = version_at(op, self.imports[domain])
            if version is None:
                continue
            d = Draw(op, self.seed, self.number * 64 + at, domain, version)
            d.opset = self.imports[domain]
            case = SPECS[op](d)
            if self.broken and self.chance(0.3):
                break_case(d, case)
            # of a wrong number of outputs only reading the file tells: nightly/meaning has those
            if not case.invalid or not case.invalid.startswith("outputs were"):
                out.append(case)
        return out

    def fresh(self, what):
        self.count += 1
        return "%s%d" % (what, self.count)

    def constant(self, values, dtype=I64):
        name = self.fresh("c")
        self.inits.append(numpy_helper.from_array(np.array(values, dtype=dtype), name))
        return name

    def node(self, op, inputs, **attrs):
        name = self.fresh("t")
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        return name

    def link(self, plain, x):
        """The name of an earlier value that is made to fit where x was to be fed, or None. `plain`: of finite floats that are fed alone."""
        values = self.values
        if plain:
            values = [(n, v) for n, v in values if n in self.feeds and is_float(v.dtype) and np.isfinite(v.astype(np.float64)).all()]
        numbers = is_float(x.dtype) or is_int(x.dtype)
        same = [(n, v) for n, v in values if v.dtype == x.dtype and v.shape == x.shape]
        if same and self.chance(0.8) and (is_float(x.dtype) or x.dtype == BOOL):
            name = self.pick(same)[0]
            self.taken.add(name)
            return name
        others = [(n, v) for n, v in values if v.size and (is_float(v.dtype) or is_int(v.dtype) or v.dtype == BOOL)]
        if not others or not x.size or not numbers or (x.dtype == BF16 and self.opset < 13):
            return None
        if not self.chance(0.7 if is_float(x.dtype) else 0.15 if self.opset >= 12 else 0):
            return None
        name, v = self.pick(others)
        if v.dtype == BF16 and self.opset < 13:
            return None
        self.taken.add(name)
        if v.dtype != x.dtype:
            name = self.node("Cast", [name], to=code_of(x.dtype))
        if not is_float(x.dtype):  # what was drawn may be indices: these are within the same bounds
            name = self.node("Max", [name, self.constant(x.min(), x.dtype)])
            name = self.node("Min", [name, self.constant(x.max(), x.dtype)])
        if v.shape == x.shape:
            return name
        if v.ndim != 1:
            name = self.node("Reshape", [name, self.constant([-1])])
        if v.size > x.size and self.opset >= 10 and self.chance(0.5):
            name = self.node("Slice", [name, self.constant([0]), self.constant([x.size])])
        elif v.size != x.size:
            # in no order: sums of what repeats err to one side, which no draw of roundings explains
            name = self.node("Gather", [name, self.constant(self.rng.integers(0, v.size, x.size))])
        return name if x.ndim == 1 else self.node("Reshape", [name, self.constant(list(x.shape))])

    def add(self, case, answer):
        """A case and what it gives by itself."""
        model = case.model()
        base = self.next()

        def prefix(name):
            return "n%d_%s" % (base, name)

        rename(model.graph.node, prefix)
        feeds, fed = case.feeds(), {}
        # all digits of a rounded number are not told alike
        plain = case.op in PADDED or any(isinstance(y, np.ndarray) and y.dtype == object for y in answer)
        for info in model.graph.input:
            x = feeds[info.name]
            name = self.link(plain, x)
            if name:
                fed[prefix(info.name)] = name
                continue
            info.name, plain = prefix(info.name), info.name
            for k, dim in enumerate(info.type.tensor_type.shape.dim):
                if dim.dim_param:
                    dim.dim_param = "s%d" % x.shape[k] if self.symbols else prefix(dim.dim_param)
            self.infos.append(info)
            self.feeds[info.name] = feeds[plain]
            self.values.append((info.name, x))
        for t in model.graph.initializer:
            t.name = prefix(t.name)
            self.inits.append(t)
        rename(model.graph.node, lambda name: fed.get(name, name))
        names = [prefix(o.name) for o in model.graph.output]
        for node in model.graph.node:
            node.name = self.fresh("node")
        arrays = all(isinstance(y, np.ndarray) and y.ndim < 7 for y in answer) and names
        if arrays and self.opset >= 13 and self.chance(0.2):
            answer = (self.branch if self.chance(0.5) else self.loop)(list(model.graph.node), names, answer)
        else:
            self.nodes.extend(model.graph.node)
        for name, y in zip(names, answer):
            self.outputs.append(name)
            if isinstance(y, np.ndarray):
                self.values.append((name, y))

    def next(self):
        self.count += 1
        return self.count

    def fed(self, value, dtype):
        name = self.fresh("i")
        self.infos.append(helper.make_tensor_value_info(name, code_of(np.dtype(dtype)), []))
        self.feeds[name] = np.array(value, dtype=dtype)
        return name

    def branch(self, nodes, names, answer):
        """The nodes in a branch of an If; the other one has constants."""
        inner = [self.fresh("b") for _ in names]
        rename(nodes, lambda n: inner[names.index(n)] if n in names else n)
        infos = [helper.make_tensor_value_info(n, code_of(y.dtype), None) for n, y in zip(inner, answer)]
        one = helper.make_graph(nodes, self.fresh("g"), [], infos)
        other = [self.fresh("b") for _ in names]
        constants = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(y) if y.dtype != object else helper.make_tensor(
            "", TensorProto.STRING, y.shape, [str(s).encode() for s in y.ravel()])) for n, y in zip(other, answer)]
        two = helper.make_graph(constants, self.fresh("g"), [], [
            helper.make_tensor_value_info(n, code_of(y.dtype), None) for n, y in zip(other, answer)])
        way = self.chance(0.7)
        graphs = {"then_branch": one, "else_branch": two} if way else {"then_branch": two, "else_branch": one}
        taken = way if self.chance(0.8) else not way
        condition = self.fed(taken, bool) if self.chance(0.7) else self.constant(taken, bool)
        self.nodes.append(helper.make_node("If", [condition], names, **graphs))
        return answer

    def loop(self, nodes, names, answer):
        """The nodes as the body of a Loop that keeps what each trip gives."""
        inner = [self.fresh("l") for _ in names]
        rename(nodes, lambda n: inner[names.index(n)] if n in names else n)
        step, go, on = self.fresh("l"), self.fresh("l"), self.fresh("l")
        body = helper.make_graph(
            nodes + [helper.make_node("Identity", [go], [on])], self.fresh("g"),
            [helper.make_tensor_value_info(step, TensorProto.INT64, []), helper.make_tensor_value_info(go, TensorProto.BOOL, [])],
            [helper.make_tensor_value_info(on, TensorProto.BOOL, [])] + [
                helper.make_tensor_value_info(n, code_of(y.dtype), None) for n, y in zip(inner, answer)])
        trips = int(self.rng.integers(1, 4))
        count = self.fed(trips, np.int64) if self.chance(0.7) else self.constant(trips)
        self.nodes.append(helper.make_node("Loop", [count, ""], names, body=body))
        return [np.stack([y] * trips) for y in answer]

    def model(self):
        outs = [n for n in self.outputs if n not in self.taken or self.chance(0.3)][:MOST_INPUTS]
        graph = helper.make_graph(self.nodes, "g", self.infos, [helper.make_empty_tensor_value_info(n) for n in outs], self.inits)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in self.imports.items()],
                                 ir_version=13 if self.opset > 24 else 10)

    def save(self, folder):
        data = os.path.join(folder, "test_data_set_0")
        os.makedirs(data, exist_ok=True)
        onnx.save(self.model(), os.path.join(folder, "model.onnx"))
        for i, info in enumerate(self.infos):
            x = self.feeds[info.name]
            t = numpy_helper.from_array(x, info.name) if x.dtype != object else helper.make_tensor(
                info.name, TensorProto.STRING, x.shape, [s.encode() if isinstance(s, str) else s for s in x.ravel()])
            with open(os.path.join(data, "input_%d.pb" % i), "wb") as f:
                f.write(t.SerializeToString())


def make(options, numbers):
    """The graphs of those numbers, of nodes that answer by themselves and broken ones."""
    graphs = [Graph(options.seed, n) for n in numbers]
    drawn = []
    for g in graphs:
        for case in g.cases():
            try:
                drawn += [] if case.judge else [(g, case, case.model().SerializeToString())]
            except Exception:  # a broken node that cannot even be written
                if not case.invalid:
                    raise
    answers, _ = evaluators.run_tenon(options.driver, "ref", [m for _, _, m in drawn], [c for _, c, _ in drawn])
    for (g, case, _), answer in zip(drawn, answers):
        refused = isinstance(answer, evaluators.Refusal)
        if (case.invalid or not refused) and len(g.infos) + len(case.inputs) < MOST_INPUTS:
            g.add(case, [None] * len(case.outputs) if refused else answer)
    return [g for g in graphs if g.outputs]


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--driver", required=True)
    parse.add_argument("--holds", required=True)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--count", type=int, default=300)
    parse.add_argument("--graph", type=int, help="this one alone")
    parse.add_argument("--keep", help="a folder where the graphs stay, with their inputs")
    parse.add_argument("--seconds", type=float, help="no new hundred is begun after these")
    options = parse.parse_args()
    print("seed %d" % options.seed)
    numbers = [options.graph] if options.graph is not None else list(range(options.count))
    start, status, kinds, done = time.monotonic(), 0, set(), 0
    with tempfile.TemporaryDirectory() as scratch:
        for begin in range(0, len(numbers), 100):
            if options.seconds and time.monotonic() - start > options.seconds:
                print("only %d of %d were made in %.0f s" % (begin, len(numbers), options.seconds))
                break
            folders = []
            for g in make(options, numbers[begin:begin + 100]):
                folder = os.path.join(options.keep or scratch, "seed-%d-graph-%d" % (options.seed, g.number))
                g.save(folder)
                folders += [str(options.seed * 1000003 + g.number), folder]
                done += 1
                kinds.update((n.domain, n.op_type) for n in g.nodes)
            run = subprocess.run([options.holds] + folders, check=False)
            status |= run.returncode != 0
    print("seed %d: %d graphs of %d operators, %.0f s" % (options.seed, done, len(kinds), time.monotonic() - start))
    sys.exit(status)


if __name__ == "__main__":
    main()

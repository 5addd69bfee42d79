#!/usr/bin/env python3
"""How often a quantised network misses its own recorded output when its constants move by one unit of the last place.

    flips.py --tenon build/tenon FOLDER... [--times 24]

FOLDER: model.onnx, test_data_set_N, case.json. ONNX Runtime without optimisations, the reference and the plan, each on the same moved
constants: floats of up to 4096 elements (scales, biases, norms), each by -1, 0 or 1 unit. Says how often all data sets are within the
tolerance: what is below all of the times is chance, whoever computes."""
import argparse
import glob
import json
import os
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper


def load(path):
    with open(path, "rb") as f:
        return numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))


def moved(model, rng):
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for t in other.graph.initializer:
        x = numpy_helper.to_array(t)
        if t.data_type == onnx.TensorProto.FLOAT and 0 < x.size <= 4096:
            way = rng.integers(-1, 2, x.shape)
            up, down = np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))
            t.CopyFrom(numpy_helper.from_array(np.where(way == 0, x, np.where(way > 0, up, down)).astype(np.float32), t.name))
    return other


def data_sets(folder, model):
    for s in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        files = {int(os.path.basename(p)[6:-3]): p for p in glob.glob(os.path.join(s, "input_*.pb"))}
        yield {model.graph.input[i].name: p for i, p in files.items()}, load(os.path.join(s, "output_0.pb"))


def by_ort(path, files):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {n: load(p) for n, p in files.items()})[0]


def by_tenon(tenon, path, files, *how):
    with tempfile.TemporaryDirectory() as out:
        given = [a for p in files.values() for a in ("--input", p)]
        subprocess.run([tenon, "run", path, "--output-dir", out, "--format", "pb", "--quiet", "--threads", "1", *how, *given], check=True)
        return load(os.path.join(out, "output_0.pb"))


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--tenon", required=True)
    parse.add_argument("--times", type=int, default=24)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("folders", nargs="+")
    options = parse.parse_args()
    ways = {"ONNX Runtime": by_ort, "reference": lambda p, f: by_tenon(options.tenon, p, f, "--backend", "ref"),
            "plan": lambda p, f: by_tenon(options.tenon, p, f)}  # fmt: skip
    for folder in options.folders:
        model = onnx.load(os.path.join(folder, "model.onnx"))
        with open(os.path.join(folder, "case.json")) as f:
            case = json.load(f)
        rng, within = np.random.default_rng(options.seed), dict.fromkeys(ways, 0)
        for _ in range(options.times):
            with tempfile.TemporaryDirectory() as room:
                path = os.path.join(room, "model.onnx")
                onnx.save(moved(model, rng), path)
                for who, run in ways.items():
                    within[who] += all(np.all(np.abs(run(path, files) - want) <= case["atol"] + case["rtol"] * np.abs(want))
                                       for files, want in data_sets(folder, model))  # fmt: skip
        print("%s: within the tolerance, of %d times: %s" % (os.path.basename(os.path.normpath(folder)), options.times,
                                                             ", ".join("%s %d" % p for p in within.items())))  # fmt: skip


if __name__ == "__main__":
    main()

"""One of the systems that bench/compare runs beside Tenon, in a process of its own. The same protocol as bench/worker.c:
worker.py SYSTEM MODEL THREADS OUTPUTS FEED, where FEED is a JSON file [[name, dtype, dims, path], ...]."""
import gc, json, os, subprocess, sys, time
import numpy as np


def rss():
    with open('/proc/self/status') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS')) * 1024


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime as ort
        self.ort, self.path, self.threads = ort, path, threads

    def create(self, names):
        o = self.ort.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads = self.threads, 1
        o.log_severity_level = 3
        self.session = self.ort.InferenceSession(self.path, o, providers=['CPUExecutionProvider'])
        self.outputs = [x.name for x in self.session.get_outputs()]

    def run(self, feed):
        return self.session.run(self.outputs, feed)


class OpenVino:
    def __init__(self, path, threads):
        import openvino
        self.ov, self.path, self.threads = openvino, path, threads

    def create(self, names):
        core = self.ov.Core()
        compiled = core.compile_model(self.path, 'CPU', {'INFERENCE_NUM_THREADS': self.threads, 'PERFORMANCE_HINT':
                                                         'LATENCY', 'INFERENCE_PRECISION_HINT': 'f32'})
        self.request = compiled.create_infer_request()
        self.count = len(compiled.outputs)

    def run(self, feed):
        got = self.request.infer(feed)
        return [got[i] for i in range(self.count)]


class Mnn:
    """Converted to its own format beforehand: its users ship that."""

    def __init__(self, path, threads):
        self.path, self.threads, self.converted = path, threads, f'{sys.argv[4]}/model.mnn'
        done = subprocess.run([os.path.join(os.path.dirname(sys.executable), 'mnnconvert'), '-f', 'ONNX', '--modelFile', path,
                               '--MNNModel', self.converted, '--bizCode', 'bench'], capture_output=True, text=True)
        if done.returncode or not os.path.exists(self.converted):
            raise SystemExit(f'not converted: {(done.stdout + done.stderr).strip().splitlines()[-1]}')
        import MNN
        import onnx
        self.mnn = MNN
        graph = onnx.load(path, load_external_data=False).graph
        self.outputs = [o.name for o in graph.output]
        self.dtypes = {np.dtype('float32'): MNN.numpy.float32, np.dtype('int32'): MNN.numpy.int32,
                       np.dtype('int64'): MNN.numpy.int32, np.dtype('bool'): MNN.numpy.int32}

    def create(self, names):
        mnn = self.mnn
        self.runtime = mnn.nn.create_runtime_manager(({'backend': 'CPU', 'numThread': self.threads,
                                                       'precision': 'high'},))
        self.net = mnn.nn.load_module_from_file(self.converted, names, self.outputs, runtime_manager=self.runtime)
        self.names, self.inputs = names, {}

    def run(self, feed):
        for name in self.names:
            x = feed[name]
            if name not in self.inputs:
                self.inputs[name] = self.mnn.expr.placeholder(list(x.shape), self.mnn.expr.NCHW, self.dtypes[x.dtype])
            self.inputs[name].write(x if x.dtype == np.float32 else x.astype(np.int32))
        return [np.array(y.read()) for y in self.net.forward([self.inputs[name] for name in self.names])]


class PyTorch:
    def __init__(self, path, threads):
        import torch
        import torch_graph
        torch.set_num_threads(threads)
        self.path, self.module = path, torch_graph

    def create(self, names):
        self.graph = self.module.Graph(self.path)

    def run(self, feed):
        return self.graph.run(feed)


SYSTEMS = {'onnxruntime': OnnxRuntime, 'openvino': OpenVino, 'mnn': Mnn, 'pytorch': PyTorch}


def main():
    system, model, threads, outputs, feed = sys.argv[1:6]
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # some libraries talk on standard output
    with open(feed) as f:
        feed = {name: np.fromfile(path, dtype).reshape(dims) for name, dtype, dims, path in json.load(f)}
    runner = SYSTEMS[system](model, int(threads))
    before, start = rss(), time.perf_counter()
    runner.create(list(feed))
    created = time.perf_counter()
    result = runner.run(feed)
    first = time.perf_counter()
    said = []
    for i, a in enumerate(result):
        a = np.ascontiguousarray(a)
        a.tofile(os.path.join(outputs, f'{i}.bin'))
        said.append({'dtype': str(a.dtype), 'dims': list(a.shape)})
    print(json.dumps({'create_ms': (created - start) * 1e3, 'first_ms': (first - created) * 1e3,
                      'rss_bytes': rss() - before, 'outputs': said}), file=answers, flush=True)
    gc.disable()
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            result = runner.run(feed)
            times.append((time.perf_counter() - start) * 1e3)
        times.sort()
        print(json.dumps({'median_ms': times[len(times) // 2], 'min_ms': times[0], 'rss_bytes': rss() - before}),
              file=answers, flush=True)


if __name__ == '__main__':
    main()

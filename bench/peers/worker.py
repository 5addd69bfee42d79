"""One of the systems that bench/compare runs beside Tenon, in a process of its own. The same protocol as bench/worker.c:
worker.py SYSTEM MODEL THREADS OUTPUTS FEED, where FEED is a JSON file [[name, dtype, dims, path], ...]."""
import gc, json, os, sys, time
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


SYSTEMS = {'onnxruntime': OnnxRuntime, 'openvino': OpenVino}


def main():
    system, model, threads, outputs, feed = sys.argv[1:6]
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
                      'rss_bytes': rss() - before, 'outputs': said}), flush=True)
    gc.disable()
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            result = runner.run(feed)
            times.append((time.perf_counter() - start) * 1e3)
        times.sort()
        print(json.dumps({'median_ms': times[len(times) // 2], 'min_ms': times[0], 'rss_bytes': rss() - before}),
              flush=True)


if __name__ == '__main__':
    main()

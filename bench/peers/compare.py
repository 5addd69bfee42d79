"""Tenon and its peers on the same model, inputs and threads, in turns: see bench/compare --help."""
import argparse, importlib.util, json, math, os, random, signal, subprocess, sys, tempfile
import numpy as np
import onnx

PEERS = {'onnxruntime': 'onnxruntime', 'openvino': 'openvino', 'mnn': 'MNN', 'pytorch': 'torch'}  # and their modules
HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {'float32': 'f32', 'float64': 'f64', 'float16': 'f16', 'int64': 'i64', 'int32': 'i32', 'int16': 'i16',
         'int8': 'i8', 'uint8': 'u8', 'uint16': 'u16', 'uint32': 'u32', 'uint64': 'u64', 'bool': 'bool'}


def read_feed(path, dims, seed):
    """Inputs by name: those of test_data_set_0 beside the model, else random ones (integers and bools 0 or 1)."""
    model = onnx.load(path, load_external_data=False)
    constant = {i.name for i in model.graph.initializer} | {i.values.name for i in model.graph.sparse_initializer}
    wanted = [i for i in model.graph.input if i.name not in constant]
    data = os.path.join(os.path.dirname(path), 'test_data_set_0')
    feed, rng = {}, np.random.default_rng(seed)
    for n, i in enumerate(wanted):
        file = os.path.join(data, f'input_{list(model.graph.input).index(i)}.pb')
        if os.path.exists(file) and not dims:
            with open(file, 'rb') as f:
                feed[i.name] = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
            continue
        t = i.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        shape = [d.dim_value if d.HasField('dim_value') else dims.get(d.dim_param, 1) for d in t.shape.dim]
        if np.issubdtype(dtype, np.floating):
            feed[i.name] = rng.standard_normal(shape).astype(dtype)
        else:
            feed[i.name] = rng.integers(0, 2, shape).astype(dtype)
    return feed


class Worker:
    def __init__(self, name, command, threads):
        self.name, self.rounds, self.error = name, [], ''
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        # processors of a shared machine are not equally fast at a time: all systems have the same ones
        os.sched_setaffinity(self.process.pid, sorted(os.sched_getaffinity(0))[-threads:])

    def answer(self):
        line = self.process.stdout.readline()
        if line:
            # outside its turn a system is stopped: some keep their threads spinning for tens of milliseconds after a run
            self.process.send_signal(signal.SIGSTOP)
            return json.loads(line)
        self.process.wait()
        lines = [l for l in self.process.stderr.read().splitlines() if l.strip()] or [f'exit {self.process.returncode}']
        self.error = lines[0] if self.name == 'tenon' else lines[-1]
        return None

    def ask(self, runs):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f'{runs}\n')
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()

    def __del__(self):
        if self.process.poll() is None:
            self.process.kill()


def bounds(ratios):
    """Median and 95 % bounds of the median of some ratios: by order statistics, whatever their distribution."""
    r = sorted(ratios)
    n, k, tail = len(r), 0, 0.0
    while k < n // 2 and tail + math.comb(n, k) / 2**n <= 0.025:
        tail += math.comb(n, k) / 2**n
        k += 1
    k = max(k - 1, 0)
    return float(np.median(r)), r[k], r[n - 1 - k]


def agreement(folder, a, b):
    """rms of the difference over the rms of b, the worst output."""
    worst = 0.0
    for i, (x, y) in enumerate(zip(a['outputs'], b['outputs'])):
        p, q = (np.fromfile(os.path.join(folder, n, f'{i}.bin'),
                            {v: k for k, v in NAMES.items()}.get(o['dtype'], o['dtype'])).astype(np.float64)
                for n, o in ((a['name'], x), (b['name'], y)))
        if p.size != q.size:
            return math.inf
        if p.size:
            worst = max(worst, math.sqrt(((p - q)**2).mean()) / max(math.sqrt((q**2).mean()), 1e-30))
    return worst


def compare(path, threads, a, scratch):
    dims = dict((k, int(v)) for k, v in (d.split('=') for d in a.dim))
    feed = read_feed(path, dims, a.seed)
    words, listing = [], []
    for i, (name, value) in enumerate(feed.items()):
        file = os.path.join(scratch, f'input{i}.bin')
        np.ascontiguousarray(value).tofile(file)
        words += [name, NAMES[str(value.dtype)], str(value.ndim), *map(str, value.shape), file]
        listing.append([name, str(value.dtype), list(value.shape), file])
    with open(os.path.join(scratch, 'feed.json'), 'w') as f:
        json.dump(listing, f)
    workers, started = [], {}
    for name in ['tenon', *a.peer]:
        out = os.path.join(scratch, name)
        os.makedirs(out, exist_ok=True)
        command = ([a.worker, path, str(threads), out, *words] if name == 'tenon' else
                   [sys.executable, os.path.join(HERE, 'worker.py'), name, path, str(threads), out,
                    os.path.join(scratch, 'feed.json')])
        w = Worker(name, command, threads)
        said = w.answer()
        if said:
            started[name] = {**said, 'name': name}
            workers.append(w)
        else:
            print(f'{os.path.basename(os.path.dirname(path)) or path}: {name}: {w.error}')
    if not workers or workers[0].name != 'tenon':
        return None
    # so many runs that a round of each takes a tenth of a second, or one run
    runs = {w.name: max(1, min(1000, int(100 / max(w.ask(1)['min_ms'], 1e-3)))) for w in workers}
    for _ in range(a.rounds):
        for w in random.Random(len(workers[0].rounds)).sample(workers, len(workers)):
            w.rounds.append(w.ask(runs[w.name]))
    for w in workers:
        w.end()
    row = {'model': path, 'threads': threads, 'systems': {}}
    for w in workers:
        s = started[w.name]
        entry = {'median_ms': float(np.median([r['median_ms'] for r in w.rounds])),
                 'min_ms': min(r['min_ms'] for r in w.rounds), 'create_ms': s['create_ms'],
                 'start_ms': s['create_ms'] + s['first_ms'], 'rss_bytes': max(r['rss_bytes'] for r in w.rounds)}
        if w is not workers[0]:
            key = 'min_ms' if entry['median_ms'] < 0.05 else 'median_ms'
            ratio = bounds([p[key] / t[key] for p, t in zip(w.rounds, workers[0].rounds)])
            entry.update(ratio=ratio[0], low=ratio[1], high=ratio[2],
                         difference=agreement(scratch, started['tenon'], s))
        row['systems'][w.name] = entry
    return row


def main():
    p = argparse.ArgumentParser(prog='bench/compare', description='Runs Tenon and its peers on the same models, inputs '
                                'and threads, each in a process of its own, in turns. A ratio above 1: Tenon is faster.',
                                epilog='example: bench/compare ../shared/models/fastestdet --threads 1,2')
    p.add_argument('models', nargs='+', metavar='MODEL', help='a file, or a folder that holds model.onnx')
    p.add_argument('--threads', default='1,2', help='numbers of threads, separated by commas (default: 1,2)')
    p.add_argument('--rounds', type=int, default=15, help='rounds in turns (default: 15)')
    p.add_argument('--peer', action='append', choices=PEERS, help='may be given more than once; default: all that are '
                   'installed (PyTorch, for graphs of a few operators, only where it is: pip install torch)')
    p.add_argument('--dim', action='append', default=[], metavar='NAME=N', help='size of a free dimension (default: 1)')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--json', action='store_true', help='one JSON document instead of the table')
    p.add_argument('--worker', required=True, help=argparse.SUPPRESS)
    a = p.parse_args()
    a.peer = a.peer or [p for p, module in PEERS.items() if importlib.util.find_spec(module)]
    rows = []
    if not a.json:
        print(f'{"model":22} {"thr":>3} {"system":12} {"median ms":>10} {"min ms":>9} {"ratio":>6} {"95 % bounds":>13} '
              f'{"differs":>8} {"create":>8} {"+ first":>8} {"MB":>7}')
    for m in a.models:
        path = os.path.join(m, 'model.onnx') if os.path.isdir(m) else m
        if not os.path.exists(path):
            sys.exit(f'bench/compare: there is no {path}')
        short = os.path.basename(os.path.dirname(path) if os.path.basename(path) == 'model.onnx' else path)[:22]
        for threads in map(int, a.threads.split(',')):
            with tempfile.TemporaryDirectory() as scratch:
                row = compare(path, threads, a, scratch)
            if not row:
                continue
            rows.append(row)
            for name, e in row['systems'].items() if not a.json else ():
                ratio = (f'{e["ratio"]:6.2f} {e["low"]:6.2f}-{e["high"]:6.2f} {e["difference"]:8.1e}' if 'ratio' in e
                         else ' ' * 29)
                print(f'{short:22} {threads:3} {name:12} {e["median_ms"]:10.3f} {e["min_ms"]:9.3f} {ratio} '
                      f'{e["create_ms"]:8.1f} {e["start_ms"]:8.1f} {e["rss_bytes"] / 1e6:7.1f}', flush=True)
    if a.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
    if not rows:
        sys.exit(1)


if __name__ == '__main__':
    main()

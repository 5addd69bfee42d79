"""Large standard networks against ONNX Runtime: gen.py of the shared test data writes each, both back ends of `tenon` and ONNX Runtime run
it on the same inputs. The root mean square of the difference may be 1e-4 of that of the output, for every output and every pair of the
three. Prints a table."""
import argparse, os, shutil, subprocess, sys, time
import numpy as np
import onnxruntime as ort

SIZES = {'N': 1, 'S': 16, 'P': 8, 'H': 64, 'W': 96, 'T': 20}      # free dimensions
LIMIT = 1e-4
BACKENDS = ('cpu', 'ref')


def fill(i, rng):
    """Numbers for an input of the network: tokens below 1000, masks of ones and zeros that begin with ones, else Gaussian."""
    shape = [d if isinstance(d, int) else eval(d, {'__builtins__': {}}, SIZES) for d in i.shape]
    if 'int' not in i.type:
        return rng.standard_normal(shape).astype(np.float32)
    two = 'mask' in i.name or 'type' in i.name
    a = rng.integers(0, 2 if two else 1000, shape).astype(np.int64 if '64' in i.type else np.int32)
    if 'mask' in i.name:
        a[..., :3] = 1
    return a


def ratio(a, b):
    """rms of a - b over the rms of b; infinite where shape or dtype differ or one is not finite."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not a.size:
        return 0.0
    r = np.sqrt(((a - b) ** 2).mean()) / max(np.sqrt((b ** 2).mean()), 1e-30)
    return r if np.isfinite(r) else np.inf


def run_tenon(tenon, model, feeds, outputs, backend, folder):
    out = os.path.join(folder, backend)
    os.makedirs(out)
    start = time.time()
    r = subprocess.run([tenon, 'run', model, *feeds, '--backend', backend, '--output-dir', out], capture_output=True,
                       text=True)
    seconds = time.time() - start
    if r.returncode:
        return None, seconds, r.stderr
    return {name: np.load(os.path.join(out, name + '.npy')) for name in outputs}, seconds, ''


def check(name, a, folder):
    """One row of the table; whether it holds."""
    model = os.path.join(folder, 'model.onnx')
    subprocess.run([sys.executable, a.gen, name, model], check=True, stdout=subprocess.DEVNULL)
    session = ort.InferenceSession(model, providers=['CPUExecutionProvider'])
    rng, feed, feeds = np.random.default_rng(1), {}, []
    for i in session.get_inputs():
        feed[i.name] = fill(i, rng)
        path = os.path.join(folder, f'{len(feeds)}.npy')
        np.save(path, feed[i.name])
        feeds += ['--input', f'{i.name}={path}']
    outputs = [o.name for o in session.get_outputs()]
    start = time.time()
    got = {'ort': dict(zip(outputs, session.run(None, feed)))}
    took = {'ort': time.time() - start}
    del session
    for backend in BACKENDS:
        got[backend], took[backend], message = run_tenon(a.tenon, model, feeds, outputs, backend, folder)
        if got[backend] is None:
            print(f'{name:18} {backend}: FAILED {message[:400]}', flush=True)
            return False
    worst = {p: max(ratio(got[p[0]][o], got[p[1]][o]) for o in outputs)
             for p in (('cpu', 'ort'), ('ref', 'ort'), ('cpu', 'ref'))}
    ok = max(worst.values()) <= LIMIT
    print(f'{name:18} {len(outputs):7} ' + ' '.join(f'{w:13.1e}' for w in worst.values()) +
          ''.join(f' {took[b]:7.1f}' for b in ('cpu', 'ref', 'ort')) + ('' if ok else '   FAILED'), flush=True)
    return ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--tenon', required=True)
    p.add_argument('--gen', required=True)
    p.add_argument('--scratch', required=True)
    p.add_argument('names', nargs='*')
    a = p.parse_args()
    listed = subprocess.run([sys.executable, a.gen, '--list'], check=True, capture_output=True, text=True).stdout
    words = [line.split()[0] for line in listed.splitlines() if line[:1].strip()]
    names = a.names or [w for w in words if not w.endswith('-int8')]
    print(f'{"network":18} outputs       cpu:ort       ref:ort       cpu:ref   cpu s   ref s   ort s   ({LIMIT} allowed)')
    failed = 0
    for name in names:
        folder = os.path.join(a.scratch, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            failed += not check(name, a, folder)
        finally:
            shutil.rmtree(folder)
    print(f'{len(names)} networks, {failed} failed')
    return 1 if failed or len(names) < (1 if a.names else 11) else 0


sys.exit(main())

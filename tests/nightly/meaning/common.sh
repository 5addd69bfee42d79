# Shared by test_meaning*.sh: `python` of a virtual environment in the build folder with the two evaluators, pinned.
set -euo pipefail
python=$TENON_BUILD/nightly/meaning/bin/python
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
if ! "$python" -c 'import onnx, onnxruntime, numpy' 2>/dev/null; then
    mkdir -p "$TENON_BUILD/nightly"
    python3 -m venv "$TENON_BUILD/nightly/meaning" &&
        "$python" -m pip install -q -r "$TENON_SOURCE/tests/nightly/meaning/requirements.txt" ||
        { echo "skipped: the evaluators cannot be installed"; exit 77; }
fi
export PYTHONDONTWRITEBYTECODE=1
meaning() {
    "$python" "$TENON_SOURCE/tests/nightly/meaning/meaning.py" --driver "$TENON_BUILD/meaning-driver" "$@"
}

#!/usr/bin/env bash
# Random graphs of ONNX operators: the reference and plans of every level and instruction set. TENON_SEED: those graphs again.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
"$python" "$TENON_SOURCE/tests/fuzz/graphs.py" --driver "$TENON_BUILD/meaning-driver" --holds "$TENON_BUILD/graphs-driver" \
    --seed "${TENON_SEED:-$RANDOM}" --count "${TENON_GRAPHS:-5000}"

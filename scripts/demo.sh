#!/usr/bin/env bash
# Builds Tenon if needed and runs a small network on a picture: prints the likeliest classes, time and memory.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --target example_classify_digit tenon >build/demo.log 2>&1 || { tail -40 build/demo.log; exit 1; }
exec build/release/example_classify_digit "${1:-examples/data/mnist-cnn.onnx}" "${2:-examples/data/seven.pgm}"

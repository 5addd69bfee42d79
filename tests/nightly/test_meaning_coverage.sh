#!/usr/bin/env bash
# What the schemas of all operators and versions have and no draw of nightly/meaning has: attributes, values, optional inputs, sizes.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
"$python" "$TENON_SOURCE/tests/nightly/meaning/coverage.py" --seed "${TENON_SEED:-1}"
# whether a node of each version, and of each choice of optional inputs, can still be told: those of tests/onnx/versions.txt
"$python" "$TENON_SOURCE/tests/nightly/meaning/versions.py" >/dev/null

#!/usr/bin/env bash
# What the schemas of all operators and versions have and no draw of nightly/meaning has: attributes, values, optional inputs, sizes.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
"$python" "$TENON_SOURCE/tests/nightly/meaning/coverage.py" --seed "${TENON_SEED:-1}"

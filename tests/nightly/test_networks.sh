#!/usr/bin/env bash
# Eleven large float networks with both back ends, against ONNX Runtime. TENON_NETWORKS: names of some of them.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
gen=$TENON_SHARED/models/gen.py
[ -f "$gen" ] || { echo "skipped: there is no $gen"; exit 77; }
[ -x "$TENON" ] || { echo "skipped: the command is not built"; exit 77; }
scratch=$(mktemp -d "$TENON_BUILD/nightly/networks-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
"$python" "$TENON_SOURCE/tests/nightly/networks/networks.py" --tenon "$TENON" --gen "$gen" --scratch "$scratch" \
    ${TENON_NETWORKS:-}

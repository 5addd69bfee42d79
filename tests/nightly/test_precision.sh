#!/usr/bin/env bash
# The error of -O2 on the shared models, against the reference in double. TENON_MODELS: names of some of them.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
[ -d "$TENON_SHARED/models" ] || { echo "skipped: there is no $TENON_SHARED/models"; exit 77; }
[ -x "$TENON" ] || { echo "skipped: the command is not built"; exit 77; }
scratch=$(mktemp -d "$TENON_BUILD/nightly/precision-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
"$python" "$TENON_SOURCE/tests/nightly/precision/precision.py" --tenon "$TENON" --models "$TENON_SHARED/models" \
    --scratch "$scratch" ${TENON_MODELS:-}

#!/usr/bin/env bash
# docs/operators.md is what `tenon ops --markdown` writes.
set -u
page=$TENON_SOURCE/docs/operators.md
now=$(mktemp)
trap 'rm -f "$now"' EXIT
"$TENON" ops --markdown >"$now" || { echo "FAILED: tenon ops --markdown"; exit 1; }
if ! diff "$page" "$now" | head -20 || ! cmp -s "$page" "$now"; then
    echo "FAILED: docs/operators.md is not current; write it anew: $TENON ops --markdown >docs/operators.md"
    exit 1
fi
grep -c '^| ' "$page" | sed 's/$/ rows/'

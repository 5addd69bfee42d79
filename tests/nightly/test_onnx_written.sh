#!/usr/bin/env bash
# Every model there is: read, written as it was (-O0), as primitives (-O1) and in other operator sets; judged by the onnx checker, by
# ONNX Runtime and by Tenon itself.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
[ -d "$TENON_SHARED/onnx-suite" ] || { echo "skipped: no shared models"; exit 77; }
here=$TENON_SOURCE/tests/nightly/written
failed=0
written() {
    "$python" "$here/written.py" --tenon "$TENON" --known "$here/known.json" --timeout 120 "$@" || failed=1
}
for level in 0 1; do
    written --level $level "$TENON_SHARED/cases" "$TENON_SHARED/onnx-suite" "$TENON_SHARED/models"
done
for opset in 9 13 18 21 25; do
    written --opset $opset "$TENON_SHARED/cases" "$TENON_SHARED/onnx-suite"
done
exit $failed

#!/usr/bin/env bash
# Every model there is: read, written, judged by the onnx checker, by ONNX Runtime and by Tenon itself.
. "$TENON_SOURCE/tests/nightly/meaning/common.sh"
[ -d "$TENON_SHARED/onnx-suite" ] || { echo "skipped: no shared models"; exit 77; }
failed=0
for level in ${TENON_LEVELS:-0}; do
    "$python" "$TENON_SOURCE/tests/nightly/written/written.py" --tenon "$TENON" --level "$level" --timeout 120 \
        "$TENON_SHARED/cases" "$TENON_SHARED/onnx-suite" "$TENON_SHARED/models" || failed=1
done
exit $failed

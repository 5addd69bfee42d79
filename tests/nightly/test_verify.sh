#!/usr/bin/env bash
# Every optimisation on every model of the shared test data with fewer than 30 million parameters: holds, within a minute each.
. "${TENON_SOURCE:?}/tests/nightly/common.sh"

models=${TENON_SHARED:-}/models
[ -d "$models" ] || { echo "skipped: no shared models"; exit 77; }
checked=0 failed=0 unsupported=0
for folder in "$models"/*/; do
    model=$folder/model.onnx
    [ -f "$model" ] || continue
    name=$(basename "$folder")
    info=$("$TENON" info "$model" --json 2>/dev/null) || { unsupported=$((unsupported + 1)); continue; }
    parameters=$(sed -n 's/.*"parameters": {[^}]*"elements": \([0-9]*\).*/\1/p' <<<"$info" | head -1)
    [ "${parameters:-0}" -lt 30000000 ] || continue
    before=$SECONDS
    code=0
    text=$(timeout 300 "$TENON" verify "$model" 2>&1) || code=$?
    took=$((SECONDS - before))
    case $code in
    0) checked=$((checked + 1)) ;;
    4) unsupported=$((unsupported + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "$name: exit $code: $text"
        ;;
    esac
    if [ $took -gt 60 ]; then
        failed=$((failed + 1))
        echo "$name: $took s, allowed are 60"
    fi
    echo "$name: $took s"
done
echo "$checked models hold, $failed do not, $unsupported do not load"
[ $failed = 0 ] && [ $checked -gt 0 ]

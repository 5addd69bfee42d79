#!/usr/bin/env bash
# How many of the shared tests pass, with both back ends: as many as ever before, and what does not is not supported, never wrong. The
# networks of the suite only with TENON_FULL=1.
set -u
failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# counts FOLDER PASSED UNSUPPORTED [WRONG]: at least so many pass, at most so many are not supported, no more than WRONG (0) fail
# otherwise.
counts() {
    local folder=$TENON_SHARED/$1 backend passed wrong unsupported
    [ -d "$folder" ] || { echo "skipped: there is no $folder"; return; }
    for backend in cpu ref; do
        "$TENON" test "$folder" --backend $backend >"$out" 2>&1
        read -r passed wrong <<<"$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$out")"
        unsupported=$(sed -n 's/^of which not supported: //p' "$out")
        echo "$1, $backend: ${passed:-no} passed, ${wrong:-?} failed, of which not supported: ${unsupported:-?}"
        if [ "${passed:-0}" -lt "$2" ] || [ "${unsupported:-9999}" -gt "$3" ] || [ "$wrong" -gt $((unsupported + ${4:-0})) ]; then
            echo "FAILED: $2 passed before, $3 were not supported, ${4:-0} were wrong"
            grep '^FAIL' "$out" | cut -c1-300 | head -20
            tail -3 "$out"
            failed=1
        fi
    done
}

# builds that found all image libraries decode nine pictures more
pictures=0
[ "${TENON_PICTURES:-}" != all ] || pictures=9
if [ "${TENON_FULL:-0}" != 0 ]; then
    counts onnx-suite $((1903 + pictures)) $((11 - pictures))
else
    counts onnx-suite/node $((1756 + pictures)) $((9 - pictures))
    counts onnx-suite/simple 21 2
    counts onnx-suite/pytorch-converted 82 0
    counts onnx-suite/pytorch-operator 35 0
fi
counts cases 207 6
counts worked-examples 19 0
# quantised networks at the limit of their tolerance: turn-detect-int8 by the reference, sentence-minilm-int8 by the plan
[ -n "${TENON_SANITIZE:-}" ] || counts models 51 0 1
exit $failed

#!/usr/bin/env bash
# tenon info: what it shows, and that its exit status says whether the model loads.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1
digits=$TENON_SOURCE/examples/data/mnist-cnn.onnx

expect 0 info "$digits"
says "$out" "producer: CNTK" "ai.onnx 8" "Input3  f32[1, 1, 28, 28]" "(has a default)" "parameters: 5998 in 8 tensors" \
    "nodes: 12" "3 Add" "2 Conv" "it will load" "f32[1, 10]"
expect 0 info "$digits" --json
valid_json "$out"
says "$out" '"loads": true' '"nodes": 12' '"shape": [1, 1, 28, 28]'
expect 0 info "$digits" --quiet
[ ! -s "$out" ] || fail "--quiet prints"
expect 0 info "$digits" --ops "$work/ops"
[ "$(sort "$work/ops" | tr '\n' ' ')" = "ai.onnx;8;Add ai.onnx;8;Conv ai.onnx;8;MatMul ai.onnx;8;MaxPool ai.onnx;8;Relu ai.onnx;8;Reshape " ] ||
    fail "--ops: $(cat "$work/ops")"
expect 6 info "$digits" --ops /proc/none
expect 0 info "$work/pair.txt" --json
valid_json "$out"
says "$out" '"shape": ["N", 2]'

# an operator that nobody knows, by an edit of the same length
sed 's/MaxPool/MaxPoll/g' "$digits" >"$work/unknown.onnx"
expect 4 info "$work/unknown.onnx"
says "$out" "it will not load" "not supported:" "MaxPoll" "Pooling160" "error:"
says "$err" "MaxPoll"
expect 4 info "$work/unknown.onnx" --json
valid_json "$out"
says "$out" '"loads": false' '"severity": "error"'
expect 4 run "$work/unknown.onnx" --fill ones

head -c 3000 "$digits" >"$work/cut.onnx"
expect 3 info "$work/cut.onnx" --json
valid_json "$out"
says "$out" '"loads": false'

# on a terminal an error is seen once
if command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    script -qec "'$TENON' info '$work/cut.onnx'" /dev/null </dev/null >"$out" 2>&1
    [ "$(grep -c 'error' "$out")" = 1 ] || fail "on a terminal: $(cat "$out")"
fi

# V5: repeated blocks, once each: 100 of 200 nodes, in a moment
awk 'BEGIN {
    print "tenon 1\ngraph (%1 \"x\": f32[4]) -> (\"y\") {"
    for (v = 1; v <= 20000; v++)
        printf "  %%%d = %s : f32[4]\n", v + 1, v % 200 == 1 ? "exp(%" v ")" : v % 200 == 0 ? "add(%" v ", %" v - 198 ")" : v % 2 ? "sin(%" v ")" : "cos(%" v ")"
    print "  return(%20001)\n}" }' >"$work/blocks.txt"
start=$(date +%s%N)
expect 0 info "$work/blocks.txt" --backend ref
echo "20000 nodes: $((($(date +%s%N) - start) / 1000000)) ms"
says "$out" "repeated blocks:" "  100 x 200 nodes from exp: 99 cos, 99 sin, 1 exp, 1 add"
expect 0 info "$work/blocks.txt" --json --backend ref
valid_json "$out"
says "$out" '"blocks": [' '{"count": 100, "nodes": 200, "places": 1, "first": {"operator": "exp", "name": ""}, "operators": {"cos": 99, "sin": 99, "exp": 1, "add": 1}}'
expect 0 info "$work/pair.txt" --json
says "$out" '"blocks": []'
# two runs of one kind are one line
awk 'BEGIN {
    print "tenon 1\ngraph (%1 \"x\": f32[4]) -> (\"y\") {"
    for (v = 1; v <= 41; v++)
        printf "  %%%d = %s(%%%d) : f32[4]\n", v + 1, v == 21 ? "floor" : (v > 21 ? v - 1 : v) % 4 == 1 ? "exp" : "sin", v
    print "  return(%42)\n}" }' >"$work/places.txt"
expect 0 info "$work/places.txt"
says "$out" "  10 x 4 nodes in 2 places, the first from exp: 3 sin, 1 exp"
[ "$(grep -c ' nodes in ' "$out")" = 1 ] || fail "shown twice: $(cat "$out")"
# what a run costs, by operator
expect 0 info "$TENON_SOURCE/examples/data/mnist-cnn.onnx"
says "$out" "a run computes " " MFLOP and moves " "conv " "dot "
expect 0 info "$TENON_SOURCE/examples/data/mnist-cnn.onnx" --json
says "$out" '"flops": ' '"bytes_moved": ' '"costs": ['
valid_json "$out"

# what is sparse in the file is said to be so
cat >"$work/sparse.txt" <<'END'
tenon 1
metadata "declared:x" = "sparse(f32[2,3])"
metadata "declared:s" = "seq(sparse(f32[2,3]))"
metadata "declared:w" = "f32[\"sparse(f32[2]\"]"
graph (%1 "x": f32[2, 3], %2 "s": seq(f32[2, 3]), %3 "d": f32[2]) -> ("x", "s", "d", "w") {
  return(%1, %2, %3, %3)
}
END
expect 0 info "$work/sparse.txt"
[ "$(grep -c '^  [xs]  .*  (sparse)$' "$out")" = 4 ] || fail "sparse values: $(cat "$out")"
[ "$(grep -c '^  [dw]  .*f32\[2\]$' "$out")" = 3 ] || fail "dense values: $(cat "$out")"
expect 0 info "$work/sparse.txt" --json
valid_json "$out"
[ "$(grep -o '"sparse": true' "$out" | wc -l)" = 4 ] || fail "sparse values in JSON: $(cat "$out")"

# sizes that are bound are so in inputs and outputs
expect 0 info "$work/pair.txt" --dim N=3
says "$out" "[3, 2]"
! grep -q 'N' <(sed -n '/^inputs:/,/^parameters:/p' "$out") || fail "--dim N=3 leaves N: $(cat "$out")"
# what inference does not know of an output is given as the file declares it, and told from what is known
if [ -f "$TENON_SHARED/models/silero-vad-16k/model.onnx" ]; then
    expect 0 info "$TENON_SHARED/models/silero-vad-16k/model.onnx"
    says "$out" "  stateN  f32[*]  (declared f32["
    expect 0 info "$TENON_SHARED/models/silero-vad-16k/model.onnx" --json
    valid_json "$out"
    says "$out" '"shape": null, "declared": "f32['
fi

finish

#!/usr/bin/env bash
# tenon verify: what it says and how it exits.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1

cat > model.txt <<'TEXT'
tenon 1
symbol N [0, 1000]
graph (%1 "x": f32[N, 4]) -> ("y") {
  %2 = constant() {value = f32[4] [1, 2, 3, 4]} : f32[4]
  %3 = broadcast(%2) {shape = dims [N, 4]} : f32[N, 4]
  %4 = mul(%1, %3) : f32[N, 4]
  %5 = tanh(%4) : f32[N, 4]
  %6 = reduce_sum(%5) {axes = [1], keepdims = 0} : f32[N]
  return(%6)
}
TEXT
expect 0 verify model.txt
says "$out" "holds: " " passes " " kernels " "4 samples"
expect 0 verify model.txt --samples 7 --isa generic -O1 --threads 1
says "$out" "7 samples"
expect 0 verify model.txt --dim N=3 --json
says "$out" '"holds": true' '"samples": 2' '"samples_refused": 0'
expect 0 verify model.txt --quiet
[ ! -s "$out" ] || fail "--quiet prints"
# functions, and inputs that are no tensors: checked, not passed over
for name in local-function-variadic nested-optional; do
    shared=$TENON_SHARED/models/$name/model.onnx
    [ -f "$shared" ] || continue
    expect 0 verify "$shared"
    lacks "$out" " 0 values compared"
    lacks "$out" "refuses such inputs"
done
# where every sample is refused, nothing holds
cat >never.txt <<'TEXT'
tenon 1
graph (%1 "x": f32[2]) -> ("y") {
  %2 = constant() {value = i64[] [7]} : i64[]
  %3 = gather(%1, %2) {axis = 0} : f32[]
  %4 = reshape(%3) {shape = dims [1]} : f32[1]
  %5 = reshape(%4) {shape = dims [1, 1]} : f32[1, 1]
  return(%5)
}
TEXT
expect 3 verify never.txt
says "$err" "nothing was checked" "refuses all 2 samples" "hint:"
expect 2 verify model.txt --tolerance much
says "$err" "no number from 0 to 1" "hint:"
expect 2 verify model.txt --isa none
expect 2 verify model.txt --samples 0
expect 2 verify
expect 3 verify model.txt --dim M=3
expect 6 verify missing.onnx
finish

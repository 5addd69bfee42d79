#!/usr/bin/env bash
# tenon bench: every figure that is promised, the counts of a network known by hand, the trace, errors.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1
net=$TENON_SOURCE/examples/data/mnist-cnn.onnx
expect 0 bench "$net" --seconds 0.05 --json --per-op --threads 1
valid_json "$out"
for key in median_ms min_ms p90_ms p99_ms items_per_s runs create_ms first_ms peak_rss_bytes arena_bytes weight_bytes \
    predicted_peak_bytes peak_bytes kernels bytes_moved fusion_rate memory_reuse threads isa gflops percent_of_peak \
    percent_of_bandwidth per_op profile_ns_per_part; do
    says "$out" "\"$key\": "
done
# value KEY: a number of the JSON document
value() { sed -n 's/.*"'"$1"'": \([-0-9.e+]*\).*/\1/p' "$out" | head -1; }
check() { awk "BEGIN { exit !($1) }" || fail "not so: $1"; }
check "$(value min_ms) > 0 && $(value min_ms) <= $(value median_ms) && $(value median_ms) <= $(value p90_ms)"
check "$(value p90_ms) <= $(value p99_ms) && $(value runs) >= 1 && $(value create_ms) > 0 && $(value first_ms) > 0"
check "$(value percent_of_peak) > 0 && $(value percent_of_peak) < 110 && $(value kernels) > 2 && $(value threads) == 1"
# what was said before the first run leaves out what kernels use for themselves, less than a megabyte here; the peak does not depend on
# how many runs there were
check "$(value predicted_peak_bytes) >= $(value arena_bytes) && $(value peak_bytes) < $(value predicted_peak_bytes) + 1000000"
peak=$(value peak_bytes)
expect 0 bench "$net" --seconds 0.5 --json --threads 1
check "$(value peak_bytes) <= 1.1 * $peak && $(value peak_bytes) >= 0.9 * $peak"
expect 2 bench "$net" --backend ref --per-op
says "$err" "the reference has no kernels"

# a product of 8 x 16 by 16 x 32: 2 * 8 * 16 * 32 operations, three matrices of f32
cat >"$work/product.txt" <<'END'
tenon 1
graph (%1 "x": f32[8, 16], %2 "w": f32[16, 32]) -> ("y") {
  %3 "y" = dot(%1, %2) {a_batch = [], b_batch = [], a_contract = [1], b_contract = [0]} : f32[8, 32]
  return(%3)
}
END
expect 0 bench "$work/product.txt" --seconds 0 --warmup 0 --json --per-op
says "$out" '"runs": 1,' '"operations": 8192,' '"bytes": 3584' '"bytes_moved": 3584'
check "$(value items_per_s) > 8000 * 0.9 / ($(value median_ms) + 0.0001) "

expect 0 bench "$net" --seconds 0 --profile "$work/trace.json" --quiet
[ "$(wc -l <"$out")" = 1 ] || fail "--quiet prints more than a line"
valid_json "$work/trace.json"
says "$work/trace.json" '"ph": "X"' '"cat": "kernel"' '"dur": ' '"nodes": "'
expect 0 bench "$net" --seconds 0 --per-op
says "$out" "median " " runs, " "GFLOP/s" "start: create " "memory: arena " "what ran, for which operators" "contraction" " ns more a part"
expect 0 bench "$work/pair.txt" --dim N=4 --seconds 0 --fill ones --backend ref
expect 2 bench "$net" --seconds -1
says "$err" "--seconds: '-1' is no number"
expect 2 bench "$net" --warmup many
expect 6 bench "$work/none.onnx"
expect 6 bench "$net" --seconds 0 --profile "$work/no/such/trace.json"
expect 2 bench "$net" --isa sse9
finish

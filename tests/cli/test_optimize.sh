#!/usr/bin/env bash
# tenon optimize: what it writes and says.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1
digits=$TENON_SOURCE/examples/data/mnist-cnn.onnx

expect 0 run "$digits" --fill random --output-dir "$work/wanted"
for form in onnx tenon txt; do
    for level in 0 1; do
        expect 0 optimize "$digits" -o "$work/m.$form" -O$level
        says "$out" "nodes 12 -> " "written to $work/m.$form" "constants "
        expect 0 run "$work/m.$form" --fill random --output-dir "$work/got-$form-$level" -O1
    done
done
cmp "$work/wanted"/*.npy "$work/got-onnx-0"/*.npy || fail "the written model gives other values"
expect 0 optimize "$digits" -o "$work/m.onnx" -O0 --json
valid_json "$out"
says "$out" '"nodes_before": 12' '"passes"' '"save_ms"'
expect 0 optimize "$digits" -o "$work/m.tenon" --json
valid_json "$out"
says "$out" '"name": "fold"'
expect 0 optimize "$digits" -o "$work/m.onnx" -O0 --external-data
[ -s "$work/m.onnx.data" ] || fail "no file of external data"
expect 0 run "$work/m.onnx" --fill random --output-dir "$work/got"
cmp "$work/wanted"/*.npy "$work/got"/*.npy || fail "external data gives other values"
expect 0 optimize "$digits" -o "$work/m.onnx" -O0 --quiet
[ ! -s "$out" ] || fail "--quiet prints"

expect 2 optimize "$digits"
says "$err" "-o OUT.onnx"
expect 2 optimize "$digits" -o
expect 2 optimize "$digits" -o "$work/m.pb"
says "$err" ".onnx, .tenon"
expect 2 optimize "$digits" -o "$work/m.tenon" --opset 17
expect 2 optimize -o "$work/m.onnx"
expect 4 optimize "$digits" -o "$work/m.onnx" --lock file
expect 6 optimize "$digits" -o "$work/none/m.onnx" -O0
expect 6 optimize "$digits" -o /dev/full -O0
expect 3 optimize "$digits" -o "$work/m.onnx" -O0 --dim N=3
[ -z "$(ls "$work" | grep '^\.tenon-\|tmp')" ] || fail "temporary files are left behind"
finish

#!/usr/bin/env bash
# tenon ops: operators from the tables, as text, JSON and a page.
. "$TENON_SOURCE/tests/cli/common.sh"

expect 0 ops
says "$out" "Primitives:" "  conv(x, w)" "Composites, defined by primitives:" "  softmax(x)" "ONNX operators of ai.onnx ("
# types are asked of the rows: what is known of some
expect 0 ops sqrt gather select not reduce_sum group_norm iota
says "$out" "  sqrt(x)" "float; elementwise, exact; compiled: kernels" "bool; elementwise, exact" "any; exact; compiled: kernels"
expect 0 ops add --json
says "$out" '"dtypes": ["f32", "u8", "i8", "u16", "i16", "i32", "i64", "f16", "f64", "u32", "u64", "bf16"]' '"commutative"'
expect 0 ops not_equal --json
says "$out" '"gradient": false' '"no_gradient": "a comparison is constant'

expect 0 ops Conv Upsample
says "$out" "Conv                         1-" "Upsample                     1-"
lacks "$out" "Relu"
expect 0 ops Resize --json
valid_json "$out"
says "$out" '"name": "Resize", "since": 10, "until": '

# every primitive that works on tensors has its types
expect 0 ops --json
valid_json "$out"
if command -v python3 >/dev/null; then
    python3 - "$out" <<'END' || fail "the JSON is not what it should be"
import json, sys
d = json.load(open(sys.argv[1]))
names = [o["name"] for o in d["operators"]]
assert len(names) == len(set(names)) > 100, names
other = {"if", "while", "scan", "call"}
for o in d["operators"]:
    sequence = (o["inputs"] or "").startswith("sequence")
    assert o["dtypes"] or sequence or o["name"] in other, o["name"]
    assert o["doc"], o["name"]
    assert o["gradient"] or o["no_gradient"], o["name"]
keys = [(o["domain"], o["name"], o["since"]) for o in d["onnx"]]
assert keys == sorted(set(keys)), "not in order, or twice"
assert all(1 <= o["since"] <= o["until"] for o in d["onnx"])
END
fi

expect 0 ops --markdown
says "$out" "# Operators" '| `add(a, b)` | a + b; integers wrap | float, int | elementwise, commutative, associative, exact | yes | kernels |' "| Conv | 1- | yes | by primitives |"
# no cell breaks its row: each row of a table has as many as its head
awk '/^\|/ { gsub(/\\\|/, ""); n = gsub(/\|/, ""); if (!last) head = n; else if (n != head) print NR ": " n " cells, not " head; last = 1; next } { last = 0 }' "$out" >"$work/broken"
[ ! -s "$work/broken" ] || { fail "broken tables"; head -3 "$work/broken"; }

expect 3 ops Nope
says "$err" "there is no operator 'Nope'"
expect 2 ops --json --markdown
expect 2 info model --markdown
if [ -f "$TENON_BUILD/plugin_good.so" ]; then
    expect 0 ops Affine --plugin "$TENON_BUILD/plugin_good.so"
    says "$out" "com.example.Affine  1-  a * x + b"
    expect 0 ops Affine --plugin "$TENON_BUILD/plugin_good.so" --json
    valid_json "$out"
    says "$out" '"domain": "com.example", "name": "Affine"'
fi
finish

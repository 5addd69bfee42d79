#!/usr/bin/env bash
# --plugin: operators of the user's own from a shared library.
. "$TENON_SOURCE/tests/cli/common.sh"
good=$TENON_BUILD/plugin_good.so
[ -f "$good" ] || { echo "skipped: the plugins of the tests are not built"; exit 77; }
cat >"$work/model.txt" <<'END'
tenon 1
symbol N [0, 9223372036854775807]
graph (%1 "x": f32[N, 2]) -> ("y", "z") {
  %2 "y" = com.example.Affine(%1) {a = 2.0, b = 0.5} : f32[N, 2]
  %3 "z" = add(%2, %1) : f32[N, 2]
  return(%2, %3)
}
END
for backend in ref cpu; do
    expect 0 run "$work/model.txt" --plugin "$good" --input x=[[1,2],[3,4]] --backend $backend
    says "$out" "y  f32[2,2]  min 2.5  max 8.5" "  3.5, 6.5, 9.5, 12.5"
done
expect 0 info "$work/model.txt" --plugin "$good"
says "$out" "it will load"

# written as an ONNX model: a node of its domain, whose operator set is imported; and that once more
for level in 0 1 2; do
    expect 0 optimize "$work/model.txt" -o "$work/once.onnx" -O$level --plugin "$good"
    expect 0 optimize "$work/once.onnx" -o "$work/twice.onnx" -O$level --plugin "$good"
    for file in once twice; do
        expect 0 run "$work/$file.onnx" --plugin "$good" --input x=[[1,2],[3,4]]
        says "$out" "y  f32[2,2]  min 2.5  max 8.5" "  3.5, 6.5, 9.5, 12.5"
        expect 0 info "$work/$file.onnx" --plugin "$good"
        says "$out" "com.example 1" "Affine"
        expect 4 run "$work/$file.onnx" --fill ones
        says "$err" "Affine (domain com.example, version 1"
    done
done
expect 4 optimize "$work/model.txt" -o "$work/standard.onnx" --standard-only --plugin "$good"
says "$err" "com.example.Affine, which is not of the standard"

# as a file beside: no folders are searched
cp "$good" "$work/mine.so"
(cd "$work" && "$TENON" run model.txt --plugin mine.so --fill ones >/dev/null) || fail "a plugin in the working folder"

# what the operator refuses
expect 3 run "$work/model.txt" --plugin "$good" --input x=[[1,2],[3,4e35]]
says "$err" "com.example.Affine: element 3 is too large" "at run time input 0 is f32[2,2]"
sed 's/f32/f64/' "$work/model.txt" >"$work/f64.txt"
expect 4 info "$work/f64.txt" --plugin "$good"
says "$err" "not supported: com.example.Affine: element type f64"

# refused
expect 4 run "$work/model.txt" --fill ones
says "$err" "com.example.Affine"
expect 6 run "$work/model.txt" --plugin "$work/none.so"
says "$err" "there is no such file"
expect 6 run "$work/model.txt" --plugin "$work"
says "$err" "it is no file"
expect 3 run "$work/model.txt" --plugin "$work/model.txt"
says "$err" "cannot load"
expect 3 run "$work/model.txt" --plugin "$TENON_BUILD/plugin_none.so"
says "$err" "is no plugin: it does not export tn_plugin_abi" "TN_PLUGIN"
expect 4 run "$work/model.txt" --plugin "$TENON_BUILD/plugin_old.so"
says "$err" "interface version 999, this is version 1"
expect 2 run "$work/model.txt" --plugin "$TENON_BUILD/plugin_fails.so"
says "$err" "'no name' is no name" "plugin $TENON_BUILD/plugin_fails.so"
expect 2 run "$work/model.txt" --plugin "$good" --plugin "$good"
says "$err" "already"
finish

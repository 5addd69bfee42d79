#!/usr/bin/env bash
# A build with the operators of one model alone (-DTENON_OPS): `tenon info --ops` writes the list, the build runs that model with the
# same result, refuses another operator by name as left out, and its command and library are smaller.
. "$TENON_SOURCE/tests/nightly/common.sh"
[ -z "$TENON_SANITIZE" ] || { echo "skipped under sanitizers"; exit 77; }
folder=$TENON_BUILD/nightly
model=$TENON_SOURCE/examples/data/mnist-cnn.onnx
fail() { echo "FAILED: $*"; exit 1; }
build whole -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF
"$folder/whole/tenon" info "$model" --ops "$folder/part.txt" --quiet || fail "no list"
sort "$folder/part.txt" | sed 's/^/    /'
build part -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DTENON_OPS="$folder/part.txt"
for backend in cpu ref; do
    for kind in whole part; do
        rm -rf "$folder/$kind.result"
        "$folder/$kind/tenon" run "$model" --fill random --seed 3 --backend $backend --output-dir "$folder/$kind.result" --quiet ||
            fail "$kind does not run the model ($backend)"
    done
    diff -r "$folder/whole.result" "$folder/part.result" || fail "another result ($backend)"
    ls "$folder/part.result" | grep -q '\.npy$' || fail "no result"
done

# another operator, by an edit of the same length
sed 's/MaxPool/Softmax/g' "$model" >"$folder/other.onnx"
"$folder/part/tenon" info "$folder/other.onnx" >"$folder/other.out" 2>"$folder/other.err" && fail "an operator that was left out loads"
[ "$("$folder/part/tenon" run "$folder/other.onnx" --fill ones >/dev/null 2>&1; echo $?)" = 4 ] || fail "not the exit status of what is not supported"
grep -q "not supported: .*Softmax (.*left out of this build" "$folder/other.err" || { cat "$folder/other.err"; fail "the message"; }
"$folder/part/tenon" ops >"$folder/part.ops"
grep -q '^  Conv ' "$folder/part.ops" || fail "ops lacks a listed operator"
! grep -q '^  Softmax ' "$folder/part.ops" || fail "ops lists what was left out"

for file in tenon libtenon.so; do
    for kind in whole part; do
        cp -L "$folder/$kind/$file" "$folder/$kind.$file"
        strip "$folder/$kind.$file"
    done
    whole=$(wc -c <"$folder/whole.$file") part=$(wc -c <"$folder/part.$file")
    echo "$file, stripped: $whole bytes with all operators, $part with those of the model"
    [ "$part" -lt $((whole - 65536)) ] || fail "$file is not smaller by 64 KiB"
done

#!/usr/bin/env bash
# tenon run: every kind of input and output.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1
pair=$work/pair.txt
same 'f32[2, 3]' >"$work/f32.txt"
same 'f32[N, 2]' >"$work/f32n.txt"

# first_of: the values printed first
first_of() { sed -n 2p "$out" | sed 's/^ *//'; }
gives() { [ "$(first_of)" = "$1" ] || fail "got '$(first_of)', wanted '$1'"; }

expect 0 run "$pair" --input x=[[1,2],[3,4]] --input w=[[10,20],[30,40]]
says "$out" "sum  f32[2,2]  min 11  max 44  mean 27.5" "  11, 22, 33, 44" "product  f32[2,2]" "  10, 40, 90, 160"
expect 0 run "$pair" --input [[1,2]] --input '[[0.5,-1]]' --backend ref
gives "1.5, 1"
expect 0 run "$pair" --input w=[[1,2]] --input [[10,20]]
gives "11, 22"

# any value by name: fed in place of what makes it, or asked for; then only what it needs runs, and is needed
expect 0 run "$pair" --input sum=[[1,2]] --fill ones
gives "1, 2"
# y = F(neg(x)), F(v) = 2 relu(v): a model's functions are there when an inner value is fed
base64 -d >"$work/function.onnx" <<'END'
CAo6RAoLCgF4EgFuIgNOZWcKDgoBbhIBeSIBRjoDbG9jEgFnWhAKAXgSCwoJCAESBQoDEgFOYhAKAXkSCwoJCAESBQoDEgFOQgQKABAVQgcKA2xvYxABygEy
CgFGIgFhKgFiOgwKAWESAXQiBFJlbHU6DgoBdAoBdBIBYiIDQWRkSgQKABAVUgNsb2M=
END
for backend in ref cpu; do
    expect 0 run "$work/function.onnx" --input x=[1,-2] --backend $backend
    gives "0, 4"
    expect 0 run "$work/function.onnx" --input n=[1,-2] --backend $backend
    gives "2, 0"
done
expect 0 verify "$work/function.onnx"
lacks "$out" " 0 values compared"
net=$TENON_SHARED/worked-examples/W01-two-layer-net/model.onnx
if [ -f "$net" ]; then
    for backend in ref cpu; do
        expect 0 run "$net" --input x=[[1,-2,3]] --backend $backend --fetch a
        gives "4.5, -6"
        expect 0 run "$net" --input x=[[1,-2,3]] --backend $backend --fetch y --fetch a --output-dir "$work/net-$backend"
        says "$out" "y  f32[1,1]" "a  f32[1,2]"
        [ -f "$work/net-$backend/a.npy" ] && [ -f "$work/net-$backend/y.npy" ] || fail "fetched values are not written"
        expect 0 run "$net" --input r=[[1,1]] --backend $backend
        gives "6"
        expect 0 run "$net" --input [[1,-2,3]] --input W2=[[1],[1]] --backend $backend --fetch y --json
        valid_json "$out"
        expect 3 run "$net" --input r=[[1,1]] --fetch a --backend $backend
        says "$err" "input 'x' is not given" "f32[n, 3]"
        expect 3 run "$net" --input r=[[1,1]] --fetch nothing --backend $backend
        says "$err" "no output 'nothing', nor an inner value" "output 0: 'y' f32[n, 1]"
        expect 3 run "$net" --input x=[[1,-2,3]] --tap nothing --backend $backend
        says "$err" "no output 'nothing', nor an inner value" "output 0: 'y' f32[n, 1]"
    done
    expect 2 run "$net" --input r=[[1,1]] --input r=[[1,1]]
    says "$err" "twice"
fi

# .npy: byte orders, Fortran order, other dtypes
npy "$work/a.npy" '<f4' False '(2, 3)' '\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40\0\0\xc0\x40'
expect 0 run "$work/f32.txt" --input "$work/a.npy"
gives "1, 2, 3, 4, 5, 6"
npy "$work/b.npy" '>f4' False '(2, 3)' '\x3f\x80\0\0\x40\0\0\0\x40\x40\0\0\x40\x80\0\0\x40\xa0\0\0\x40\xc0\0\0'
expect 0 run "$work/f32.txt" --input "$work/b.npy"
gives "1, 2, 3, 4, 5, 6"
npy "$work/f.npy" '<f4' True '(2, 3)' '\0\0\x80\x3f\0\0\x80\x40\0\0\0\x40\0\0\xa0\x40\0\0\x40\x40\0\0\xc0\x40'
expect 0 run "$work/f32.txt" --input "$work/f.npy"
gives "1, 2, 3, 4, 5, 6"
same 'i64[2]' >"$work/i64.txt"
npy "$work/i.npy" '<i8' False '(2,)' '\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0\0\0\0\x40'
expect 0 run "$work/i64.txt" --input "$work/i.npy"
gives "-1, 4611686018427387905"
expect 0 run "$work/i64.txt" --input x=[9223372036854775807,-9223372036854775808]
gives "9223372036854775807, -9223372036854775808"
expect 3 run "$work/i64.txt" --input x=[9223372036854775808,0]
expect 3 run "$work/i64.txt" --input x=[1.5,0]
expect 0 run "$work/i64.txt" --input x=[1e3,2.0]
gives "1000, 2"
same 'u8[2]' >"$work/u8.txt"
expect 3 run "$work/u8.txt" --input x=[256,0]
says "$err" "256 is no value of u8"
same 'bool[2]' >"$work/bool.txt"
expect 0 run "$work/bool.txt" --input x=[true,false]
gives "true, false"
same 'f32[]' >"$work/scalar.txt"
expect 0 run "$work/scalar.txt" --input x=0.1
gives "0.1"
for value in nan inf -inf -0 1e-45; do
    expect 0 run "$work/scalar.txt" --input x=$value
    gives $value
done
same 'string[2]' >"$work/string.txt"
expect 0 run "$work/string.txt" --input 'x=["a\u00e9","\ud83d\ude00 \""]'
gives '"aé", "😀 \""'
npy "$work/s.npy" '<U2' False '(2,)' 'a\0\0\0\xe9\0\0\0b\0\0\0\0\0\0\0'
expect 0 run "$work/string.txt" --input "$work/s.npy" --output-dir "$work/s"
gives '"aé", "b"'
cmp "$work/s.npy" "$work/s/y.npy" || fail "strings are not written as they were read"

# small types pass through .npy and .pb unchanged
for type in f16 bf16 f64 i8 u8 i16 u16 i32 u32 u64 f8e4m3fn f8e5m2 i4 u4 c64 c128 bool; do
    same "$type[3, 5]" >"$work/t.txt"
    expect 0 run "$work/t.txt" --fill random --seed 3 --output-dir "$work/t1"
    expect 0 run "$work/t.txt" --input "$work/t1/y.npy" --output-dir "$work/t2" --format pb
    expect 0 run "$work/t.txt" --input "$work/t2/output_0.pb" --output-dir "$work/t3"
    cmp "$work/t1/y.npy" "$work/t3/y.npy" || fail "$type does not pass through"
    expect 0 run "$work/t.txt" --fill random --seed 3 --json
    valid_json "$out"
done

# .bin: shape from the model, one free dimension from the size
printf '\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40' >"$work/x.bin"
expect 0 run "$work/f32n.txt" --input "$work/x.bin"
says "$out" "f32[2,2]"
gives "1, 2, 3, 4"
expect 3 run "$work/f32n.txt" --input "$work/x.bin" --dim N=3

# .json, input_M, .npz
echo ' [[1, 2], [3, 4.5]] ' >"$work/x.json"
expect 0 run "$work/f32n.txt" --input "$work/x.json"
gives "1, 2, 3, 4.5"
cp "$work/x.json" "$work/input_1.json"
expect 0 run "$pair" --input "$work/input_1.json" --input [[0,0],[0,0]]
gives "1, 2, 3, 4.5"
if command -v python3 >/dev/null; then
    npy "$work/x.npy" '<f4' False '(1, 2)' '\0\0\x80\x3f\0\0\0\x40'
    (cd "$work" && python3 -c 'import zipfile
for name, kind in ("x.npz", zipfile.ZIP_STORED), ("packed.npz", zipfile.ZIP_DEFLATED):
    z = zipfile.ZipFile(name, "w", kind)
    for array in "w.npy", "x.npy": z.write("x.npy", array)
    z.close()')
    expect 0 run "$pair" --input "$work/x.npz"
    gives "2, 4"
    expect 4 run "$pair" --input "$work/packed.npz"
    says "$err" "savez"
fi

# --fill: deterministic, free dimensions 1 or what --dim or a given input says
expect 0 run "$pair" --fill random --seed 5
cp "$out" "$work/first"
expect 0 run "$pair" --fill random --seed 5 --threads 1
cmp "$out" "$work/first" || fail "the same seed, other values"
expect 0 run "$pair" --fill random --seed 6
! cmp -s "$out" "$work/first" || fail "another seed, the same values"
says "$out" "f32[1,2]"
expect 0 run "$pair" --fill arange --dim N=2
gives "0, 2, 4, 6"
expect 0 run "$pair" --fill ones --input x=[[1,2],[3,4],[5,6]]
gives "2, 3, 4, 5, 6, 7"
expect 0 run "$work/i64.txt" --fill random
case "$(first_of)" in [01]", "[01]) ;; *) fail "random integers: $(first_of)" ;; esac
expect 0 run "$work/f32n.txt" --fill random --dim N=50000
grep -q 'min -[34]\.[0-9]* *max [34]\.[0-9]* *mean -*0\.00\|mean -*[0-9.]*e-0' "$out" || fail "not normal: $(head -1 "$out")"

# outputs
expect 0 run "$pair" --fill ones --output-dir "$work/o/deep"
says "$out" "written to $work/o/deep/sum.npy"
[ "$(ls "$work/o/deep" | tr '\n' ' ')" = "product.npy sum.npy " ] || fail "files: $(ls "$work/o/deep")"
printf 'tenon 1\ngraph (%%1 "x": f32[1]) -> ("a/../b", "..", "ok", "ok2") {\n  return(%%1, %%1, %%1, %%1)\n}\n' >"$work/names.txt"
expect 0 run "$work/names.txt" --fill ones --output-dir "$work/n"
[ "$(ls "$work/n" | tr '\n' ' ')" = "ok.npy ok2.npy output_0.npy output_1.npy " ] || fail "files: $(ls "$work/n")"
expect 0 run "$pair" --fill ones --quiet
[ ! -s "$out" ] || fail "--quiet prints"
expect 0 run "$pair" --fill ones --verbose
says "$out" "time: load" "memory:"
expect 0 run "$pair" --fill ones --json
valid_json "$out"
says "$out" '"name": "sum"' '"shape": [1,2]' '"values": [2, 2]'
same 'f32[2]' >"$work/two.txt"
expect 0 run "$work/two.txt" --input x=[NaN,-Infinity] --json
valid_json "$out"
expect 0 run "$TENON_SOURCE/examples/data/mnist-cnn.onnx" --fill random --backend ref
cp "$out" "$work/ref"
expect 0 run "$TENON_SOURCE/examples/data/mnist-cnn.onnx" --fill random --backend cpu -O0
[ "$(head -1 "$out" | cut -d' ' -f1-3)" = "$(head -1 "$work/ref" | cut -d' ' -f1-3)" ] || fail "another output"

# one value put out twice under one name
printf 'tenon 1\ngraph (%%1 "x": f32[2]) -> ("y", "y") {\n  %%2 "y" = neg(%%1) : f32[2]\n  return(%%2, %%2)\n}\n' >"$work/twice.txt"
for backend in ref cpu; do
    expect 0 run "$work/twice.txt" --input [1,2] --backend $backend --output-dir "$work/twice-$backend" --format pb
    [ "$(grep -c '^  -1, -2$' "$out")" = 2 ] || fail "an output that is there twice"
    cmp "$work/twice-$backend/output_0.pb" "$work/twice-$backend/output_1.pb" || fail "the two are not the same"
    expect 0 run "$work/twice.txt" --input [1,2] --backend $backend --output-dir "$work/twice-$backend"
    cmp "$work/twice-$backend/output_0.npy" "$work/twice-$backend/output_1.npy" || fail "the two .npy are not the same"
done
expect 0 info "$work/twice.txt"
# names like the numbers of outputs are names; but where an output has none, its number is its own
printf 'tenon 1\ngraph (%%1 "x": f32[2]) -> ("output_1", "output_2", "c") {\n  %%2 = neg(%%1) : f32[2]\n  %%3 = exp(%%1) : f32[2]\n  return(%%1, %%2, %%3)\n}\n' >"$work/numbers.txt"
expect 0 run "$work/numbers.txt" --input [1,2] --output-dir "$work/numbers"
[ "$(ls "$work/numbers" | tr '\n' ' ')" = "c.npy output_1.npy output_2.npy " ] || fail "names of outputs: $(ls "$work/numbers")"
sed 's/"c"/"c\/d"/' "$work/numbers.txt" >"$work/unnamed.txt"
expect 0 run "$work/unnamed.txt" --input [1,2] --output-dir "$work/unnamed"
[ "$(ls "$work/unnamed" | tr '\n' ' ')" = "output_1.npy output_2.npy " ] && fail "two outputs in one file"
cmp "$work/unnamed/output_1.npy" "$work/numbers/output_2.npy" || fail "output 1 is not where its number says"
# a tapped value comes on top: the outputs and the kernels are those of a run without it
[ -f "$net" ] && for level in 0 1 2; do
    expect 0 run "$net" --input x=[[1,-2,3]] -O$level --verbose
    grep -v '^time\|^memory' "$out" | sed 's/, arena .*//' >"$work/plain"
    expect 0 run "$net" --input x=[[1,-2,3]] -O$level --verbose --tap a --tap r
    grep -v '^time\|^memory' "$out" | sed 's/, arena .*//' >"$work/tapped"
    says "$out" "a  f32[1,2]" "4.5, -6" "r  f32[1,2]"
    while IFS= read -r line; do says "$work/tapped" "$line"; done <"$work/plain"
    says "$work/plain" "kernels"
done
if [ -f "$net" ]; then
    expect 0 run "$net" --input x=[[1,-2,3]] --tap a --output-dir "$work/tap"
    [ -f "$work/tap/a.npy" ] && [ -f "$work/tap/y.npy" ] || fail "tapped values are not written"
    expect 3 run "$net" --input x=[[1,-2,3]] --tap nothing
fi

# how values lie, what memory they share
for option in --layout=auto --layout=nchw --layout=nhwc --reuse=none --reuse=inplace --reuse=full; do
    expect 0 run "$TENON_SOURCE/examples/data/mnist-cnn.onnx" --fill random
    cp "$out" "$work/plain"
    expect 0 run "$TENON_SOURCE/examples/data/mnist-cnn.onnx" --fill random $option
    cmp -s "$out" "$work/plain" || fail "$option changes a result"
done
expect 4 run "$pair" --fill ones --layout blocked
says "$err" "--layout blocked"
expect 2 run "$pair" --fill ones --layout nchv
expect 2 run "$pair" --fill ones --reuse some

finish

#!/usr/bin/env bash
# An exit code and a message for every class of error.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1
pair=$work/pair.txt
digits=$TENON_SOURCE/examples/data/mnist-cnn.onnx

# 3: model
: >"$work/empty.onnx"
expect 3 run "$work/empty.onnx"
head -c 3000 "$digits" >"$work/cut.onnx"
expect 3 run "$work/cut.onnx" --fill ones
expect 3 info "$work/cut.onnx"
echo "this is no model" >"$work/text.onnx"
expect 3 run "$work/text.onnx"
printf 'tenon 1\ngraph (' >"$work/cut.txt"
expect 3 run "$work/cut.txt"

# 3: input
expect 3 run "$pair"
says "$err" "'x' f32[N, 2]" "'w' f32[N, 2]" "--fill"
expect 3 run "$pair" --input x=[[1,2]]
says "$err" "'w' is not given"
expect 3 run "$pair" --input x=[1,2] --fill ones
says "$err" "'x'"
expect 3 run "$pair" --input x=[[1,2]] --input w=[[1,2],[3,4]]
expect 3 run "$pair" --input y=[[1,2]]
says "$err" "no input 'y'" "input 0: 'x'"
expect 3 run "$pair" --input x=[[1,2],[3]] --fill ones
says "$err" "ragged"
expect 3 run "$pair" --input 'x=[["a","b"]]' --fill ones
says "$err" "a string stands where f32"
expect 3 run "$pair" --input 'x=[1,' --fill ones
says "$err" "bad JSON" "column"
expect 3 run "$pair" --input [[1,2]] --input [[1,2]] --input [[1,2]]
says "$err" "one input too many"
cp "$pair" "$work/input_7.npy"
expect 3 run "$pair" --input "$work/input_7.npy"
says "$err" "feeds input 7"
cp "$pair" "$work/bad.npy"
expect 3 run "$pair" --input x="$work/bad.npy" --fill ones
says "$err" "not an .npy file" "bad.npy"
printf '\x93NUMPY\x01\x00\x76\x00{' >"$work/cut.npy"
expect 3 run "$pair" --input x="$work/cut.npy" --fill ones
npy "$work/few.npy" '<f4' False '(1000000, 2)' '\0\0\0\0'
expect 3 run "$pair" --input x="$work/few.npy" --fill ones
says "$err" "cut short"
npy "$work/many.npy" '<f4' False '(9223372036854775807, 9223372036854775807)' ''
"$TENON" run "$pair" --input x="$work/many.npy" --fill ones >/dev/null 2>"$err"
case $? in 3 | 5) ;; *) fail "a shape that overflows" ;; esac
npy "$work/f8.npy" '<f8' False '(1, 2)' '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
expect 3 run "$pair" --input x="$work/f8.npy" --fill ones
says "$err" "f64"
head -c 12 /dev/zero >"$work/odd.bin"
expect 3 run "$pair" --input x="$work/odd.bin" --fill ones
head -c 50 /dev/urandom >"$work/bad.pb"
printf '\xff\xff\xff' >>"$work/bad.pb"
expect 3 run "$pair" --input x="$work/bad.pb" --fill ones
echo PK >"$work/bad.npz"
expect 3 run "$pair" --input "$work/bad.npz" --fill ones

# 2: usage found late
expect 2 run "$pair" --input x=[[1,2]] --input x=[[1,2]] --fill ones
says "$err" "twice"
cp "$pair" "$work/x.dat"
expect 2 run "$pair" --input x="$work/x.dat" --fill ones
says "$err" ".npy"
expect 2 run "$pair" --fill ones --isa nonsense
mkdir "$work/none"
expect 2 test "$work/none"
says "$err" "no test folder"

# 4: not supported
npy "$work/object.npy" '|O' False '(1, 2)' ''
expect 4 run "$pair" --input x="$work/object.npy" --fill ones
says "$err" "objects"
expect 4 run "$pair" --input sum=[[1,2]] --fill ones
says "$err" "inner value"

# 5: limits
expect 5 run "$digits" --fill ones --max-bytes 1KiB
expect 5 run "$digits" --fill ones --max-ops 3

# 6: files
expect 6 run "$work/nothing.onnx"
says "$err" "no such file"
expect 6 run "$work"
says "$err" "folder"
expect 6 run "$pair" --input x="$work/nothing.npy" --fill ones
says "$err" "nothing.npy"
expect 6 test "$work/nothing"
expect 6 test "$pair"
expect 6 run "$pair" --fill ones --output-dir "$pair/out"
expect 6 run "$pair" --fill ones --output-dir /proc/none
mkfifo "$work/fifo"
expect 6 run "$work/fifo"
if [ "$(id -u)" != 0 ]; then
    mkdir "$work/locked" && chmod 500 "$work/locked"
    expect 6 run "$pair" --fill ones --output-dir "$work/locked"
    chmod 700 "$work/locked"
fi
for arguments in "run $pair --fill ones" "run $pair --fill ones --json" "info $pair" --help --version; do
    "$TENON" $arguments >/dev/full 2>"$err"
    [ $? = 6 ] || fail "tenon $arguments on a full disk"
    says "$err" "no space left"
done
"$TENON" run "$pair" --fill ones >&- 2>"$err"
[ $? = 6 ] || fail "standard output is closed"
# a file in the way of an output: nothing else is written, nothing half-written is left
mkdir -p "$work/out/sum.npy"
expect 6 run "$pair" --fill ones --output-dir "$work/out"
[ -z "$(ls -A "$work/out" | grep -v '^sum.npy$\|^product.npy$')" ] || fail "something is left: $(ls -A "$work/out")"

# a reader that goes away ends it quietly
"$TENON" run "$pair" --fill random --dim N=500 --json 2>"$err" | head -c 1 >/dev/null
[ ! -s "$err" ] || fail "a broken pipe makes noise: $(cat "$err")"

# what a message quotes cannot disturb the terminal
expect 3 run "$pair" --input $'\033[31m=1' --fill ones
! grep -q $'\033' "$err" || fail "an escape sequence reaches the terminal"
finish

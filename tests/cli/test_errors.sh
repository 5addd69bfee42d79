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

# 2: a level apart from its option
expect 2 run -O 1 "$pair"
says "$err" "-O needs a level, without a space" "write -O1"
expect 2 run "$pair" -O
says "$err" "-O needs a level" "write -O0, -O1, -O2 or -O3"

# 3: what a file states of values must hold
cat >"$work/stated.txt" <<'END'
tenon 1
symbol N [0, 9223372036854775807]
symbol u1 [0, 2] fresh
graph (%1 "x": f32[N]) -> ("y") {
  %2 = nonzero(%1) : i64[1, u1]
  return(%2)
}
END
expect 3 run "$work/stated.txt" --input x=[1,2,3]
says "$err" "rule 14" "nonzero"

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
# a level that the CPU lacks, more threads than CPUs: said, and nothing is run
for isa in generic avx2 avx512 neon; do
    "$TENON" run "$pair" --fill ones --isa $isa >"$out" 2>"$err"
    case $? in
    0) ;;
    2) says "$err" "this CPU has no $isa" "its best level is" ;;
    *) fail "--isa $isa" ;;
    esac
done
expect 2 run "$pair" --fill ones --threads 100000
says "$err" "100000 threads were asked for, this process may use"
cpus=$(sed -n 's/.*may use \([0-9]*\) CPU.*/\1/p' "$err")
expect 0 run "$pair" --fill ones --threads "$cpus"
expect 2 run "$pair" --fill ones --threads $((cpus + 1))
for option in --disable --passes; do
    expect 2 run "$pair" --fill ones $option xyzzy
    says "$err" "no pass 'xyzzy'" "fold" "cse" "dce"
    expect 2 run "$pair" --fill ones $option fold,flod
    says "$err" "did you mean 'fold'?"
done
mkdir "$work/none"
expect 2 test "$work/none"
says "$err" "no test folder"

# 4: not supported
npy "$work/object.npy" '|O' False '(1, 2)' ''
expect 4 run "$pair" --input x="$work/object.npy" --fill ones
says "$err" "objects"
expect 3 run "$pair" --input summ=[[1,2]] --fill ones
says "$err" "nor an inner value"

# 3: numbers that the element type does not hold; infinity is written as a word
number() { same "$1[1]" >"$work/number.txt" && expect "$3" run "$work/number.txt" --input "x=[$2]"; }
for case in f64:1e400 f64:-1e400 f32:1e39 f32:-3.5e38 f16:65520 bf16:-1e39 f8e4m3fn:465 f8e5m2:1e6 f4e2m1:7 c64:1e39 c128:1e400; do
    number "${case%%:*}" "${case#*:}" 3
    says "$err" "${case#*:} is no value of ${case%%:*}" "out of range" "written inf"
done
for case in u8:-1 u8:256 u8:1.5 i8:-129 i32:1.5 i32:3000000000 i32:1e10 i64:9223372036854775808 u64:18446744073709551616 u64:-1 \
    i4:8 u4:16 u2:4 i32:1e400 i32:inf i32:nan; do
    number "${case%%:*}" "${case#*:}" 3
    says "$err" "${case#*:} is no value of ${case%%:*}" "holds the integers from"
done
number bool 2 3
says "$err" "true, false, 0 or 1"
for case in f64:inf f64:-Infinity f64:NaN f32:inf f16:-inf f16:65519 f32:3.4028235e38 f32:1e-400 f8e4m3fn:448 f4e2m1:-6 u8:255 \
    i8:-128 i32:1e3 i32:2.0 u64:18446744073709551615 i4:-8; do
    number "${case%%:*}" "${case#*:}" 0
done
echo '[[1e400, 1]]' >"$work/large.json"
expect 3 run "$pair" --input x="$work/large.json" --fill ones
says "$err" "1e400 is no value of f32" "large.json"

# 5: limits, and the option that moves each
expect 5 run "$digits" --fill ones --max-bytes 1KiB
says "$err" "raise --max-bytes"
expect 5 run "$digits" --fill ones --max-ops 3
says "$err" "raise --max-ops"
expect 5 info "$digits" --max-ops 3
says "$err" "raise --max-ops"
same 'f32[1099511627776]' >"$work/huge.txt"
start=$(date +%s)
for fill in zeros random; do
    expect 5 run "$work/huge.txt" --fill $fill
    expect 5 run "$work/huge.txt" --fill $fill --max-bytes 1GiB
    says "$err" "--max-bytes" "--dim" "'x'"
    expect 5 run "$pair" --fill $fill --dim N=1099511627776 --max-bytes 1GiB
    expect 5 run "$pair" --fill $fill --dim N=4611686018427387904
done
expect 5 run "$pair" --fill ones --dim N=1000000 --max-bytes 15000000 # either alone would fit
says "$err" "inputs of 16000000 bytes"
expect 0 run "$pair" --fill ones --dim N=1000000 --max-bytes 40000000 --quiet

# what a command takes from beginning to end, not only to load
cat >"$work/outer.txt" <<'END'
tenon 1
symbol N [1, 65536]
graph (%1 "x": f32[N]) -> ("y") {
  %2 = reshape(%1) {shape = dims [N, 1]} : f32[N, 1]
  %3 = broadcast(%2) {shape = dims [N, N]} : f32[N, N]
  %4 "y" = cumsum(%3) {axis = 0} : f32[N, N]
  return(%4)
}
END
for backend in ref cpu; do
    expect 5 run "$work/outer.txt" --fill ones --dim N=2048 --backend $backend --max-bytes 16000000
    says "$err" "16000000" "raise --max-bytes"
    expect 0 run "$work/outer.txt" --fill ones --dim N=2048 --backend $backend --max-bytes 80000000 --json
    peak=$(sed -n 's/.*"heap_peak_bytes": \([0-9]*\).*/\1/p' "$out")
    [ "$peak" -gt 16000000 ] && [ "$peak" -le 80000000 ] || fail "$backend: the peak is $peak bytes"
done
head -c 3000000 /dev/zero | tr '\0' 7 | sed 's/./&,/g; s/^/[/; s/,$/]/' >"$work/long.json"
expect 5 run "$work/outer.txt" --input x="$work/long.json" --max-bytes 4MiB
says "$err" "raise --max-bytes"
[ $(($(date +%s) - start)) -lt 60 ] || fail "limits are met late"

# what a pass could not do is said before an error only when it is asked for
cat >"$work/beyond.txt" <<'END'
tenon 1
graph (%1 "x": f32[2]) -> ("y") {
  %2 = constant() {value = f32[2] [1, 2]} : f32[2]
  %3 = constant() {value = i64[2] [0, 5]} : i64[2]
  %4 = gather(%2, %3) {axis = 0} : f32[2]
  %5 "y" = add(%1, %4) : f32[2]
  return(%5)
}
END
expect 3 run "$work/beyond.txt" --fill ones
lacks "$err" "not folded"
"$TENON" run "$work/beyond.txt" --fill ones --verbose >"$out" 2>"$err" </dev/null && fail "an index out of range is taken"
says "$err" "fold: gather" "not folded: gather: index 5 at position 1 is out of range" "tenon: error: gather: index 5"

# 6: files
expect 6 run "$work/nothing.onnx"
says "$err" "no such file"
expect 6 run "$work"
says "$err" "folder"
expect 6 run "$pair" --input x="$work/nothing.npy" --fill ones
says "$err" "nothing.npy"
expect 6 test "$work/nothing"
expect 6 test "$pair"
for option in --output-dir --dump; do
    expect 6 run "$pair" --fill ones $option "$pair/out"
    says "$err" "'$pair' is a file" "$pair/out" "folder"
    expect 6 run "$pair" --fill ones $option "$pair"
    says "$err" "'$pair' is a file, and a folder is needed there"
    expect 6 run "$pair" --fill ones $option /dev/full
    says "$err" "'/dev/full' is a device" "folder"
    expect 6 run "$pair" --fill ones $option /proc/none
    says "$err" "cannot make the folder '/proc/none'"
done
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

# no message speaks of C where a command was given
printf 'tenon 1\nsymbol N [0, 99]\nsymbol M [0, 99]\ngraph (%%1 "x": f32[N], %%2 "w": f32[M]) -> ("y") {\n  %%3 "y" = onnx.Add(%%1, %%2) {_version = 14}\n  return(%%3)\n}\n' >"$work/add.txt"
"$TENON" run "$work/add.txt" --fill ones --dim N=2 --dim M=3 >"$out" 2>"$err" && fail "2 and 3 are added"
! grep -qE '\b(tn_[a-z]|TN_[A-Z])' "$err" || fail "names of C: $(cat "$err")"

# what a message quotes cannot disturb the terminal
expect 3 run "$pair" --input $'\033[31m=1' --fill ones
! grep -q $'\033' "$err" || fail "an escape sequence reaches the terminal"
# 5: a limit on the model's memory: what is needed is said at once, to the byte, and what needs most
needed() { # command, threads, arguments: prints the limit that is enough
    "$TENON" "$1" "${@:3}" --memory 100 --threads "$2" >"$out" 2>"$err"
    code=$?
    [ $code = 5 ] || fail "$1 ${*:3} --memory 100: exit status $code"
    says "$err" "the memory limit is 100" "the largest" "--memory"
    sed -n 's/^tenon: error: \([0-9]*\) bytes are needed.*/\1/p' "$err"
}
measured=("$digits")
for name in mnist-cnn bert-tf-graph gpt2-tiny-past scan-lstm bidi-lstm opset-13 sentence-minilm-int8; do
    [ -f "${TENON_SHARED:-}/models/$name/model.onnx" ] && measured+=("$TENON_SHARED/models/$name/model.onnx")
done
for model in "${measured[@]}"; do
    least=$(needed run 1 "$model" --fill random)
    [ "${least:-0}" -gt 100 ] || fail "$model: '$least' bytes are needed: $(cat "$err")"
    "$TENON" run "$model" --fill random --threads 1 --memory "$least" >"$out" 2>"$err" || fail "$model: $least are not enough: $(cat "$err")"
    "$TENON" run "$model" --fill random --threads 1 >"$work/free" 2>"$err" || fail "$model: $(cat "$err")"
    cmp -s "$out" "$work/free" || fail "$model: another result with a limit"
    expect 5 run "$model" --fill random --threads 1 --memory $((least - 1))
done
least=$(needed bench 1 "$digits")
expect 0 bench "$digits" --threads 1 --seconds 0 --warmup 2 --memory "$least"
expect 5 bench "$digits" --threads 1 --seconds 0 --warmup 0 --memory $((least - 1))

finish

#!/usr/bin/env bash
# tenon test: finds folders, judges, survives what fails.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1

# pb FILE TYPE VALUE: a data file
pb() {
    same "$2" >"$work/same.txt"
    expect 0 run "$work/same.txt" --input "x=$3" --output-dir "$work/pb" --format pb
    mv "$work/pb/output_0.pb" "$1"
}
# data FOLDER N X W SUM PRODUCT: a data set of the model with two inputs
data() {
    mkdir -p "$1/test_data_set_$2"
    pb "$1/test_data_set_$2/input_0.pb" 'f32[N, 2]' "$3"
    pb "$1/test_data_set_$2/input_1.pb" 'f32[N, 2]' "$4"
    pb "$1/test_data_set_$2/output_0.pb" 'f32[N, 2]' "$5"
    pb "$1/test_data_set_$2/output_1.pb" 'f32[N, 2]' "$6"
}
# folder NAME: a test with two good data sets
folder() {
    mkdir -p "$work/$1"
    cp "$work/pair.txt" "$work/$1/model.onnx"
    cp -r "$work/sets/." "$work/$1"
}
data "$work/sets" 0 [[1,2]] [[10,20]] [[11,22]] [[10,40]]
data "$work/sets" 1 [[1,2],[3,4]] [[10,20],[30,40]] [[11,22],[33,44]] [[10,40],[90,160]]

# judged NAME PASSED FAILED: a run of one folder
judged() {
    local name=$1 passed=$2 wrong=$3
    shift 3
    expect "$([ "$wrong" = 0 ] && echo 0 || echo 1)" test "$work/$name" "$@"
    says "$out" "$passed passed, $wrong failed, 0 skipped"
}

folder good
judged good 1 0
judged good 1 0 --backend ref --verbose
says "$out" "PASS" "2 data sets"
expect 0 test "$work/good" --json
valid_json "$out"
says "$out" '"passed": 1' '"data_sets": 2'

folder value
pb "$work/value/test_data_set_1/output_1.pb" 'f32[N, 2]' [[10,40],[90,160.5]]
judged value 0 1
says "$out" "FAIL $work/value:" "test_data_set_1 output 1 product at [1,1]: got 160, wanted 160.5, error 0.5" "1 of 4 elements"
folder near
pb "$work/near/test_data_set_1/output_1.pb" 'f32[N, 2]' [[10,40],[90,160.1]]
judged near 1 0
folder exact
cp "$work/near/test_data_set_1/output_1.pb" "$work/exact/test_data_set_1"
echo '{"rtol": 0, "atol": 0, "expect": "outputs"}' >"$work/exact/case.json"
judged exact 0 1
echo '{"rtol": 0, "atol": 0.2}' >"$work/exact/case.json"
judged exact 1 0
echo '{"rtol": 0, "atol": 0, "shape_only": [1]}' >"$work/exact/case.json"
judged exact 1 0
echo '{"rtol": -1}' >"$work/exact/case.json"
judged exact 0 1
folder shape
pb "$work/shape/test_data_set_0/output_0.pb" 'f32[2]' [11,22]
judged shape 0 1
says "$out" "got f32[1,2], wanted f32[2]"
folder dtype
pb "$work/dtype/test_data_set_0/output_0.pb" 'f64[N, 2]' [[11,22]]
judged dtype 0 1
says "$out" "wanted f64"
folder fewer
rm "$work/fewer/test_data_set_0/output_1.pb"
judged fewer 0 1
says "$out" "1 outputs are expected, the model has 2"
folder ten # set 10 comes after set 9
cp -r "$work/ten/test_data_set_0" "$work/ten/test_data_set_10"
cp -r "$work/ten/test_data_set_0" "$work/ten/test_data_set_9"
echo junk >"$work/ten/test_data_set_9/input_0.pb"
echo junk >"$work/ten/test_data_set_10/input_0.pb"
judged ten 0 1
says "$out" "test_data_set_9"

# expect: error
folder wanted
echo '{"expect": "error"}' >"$work/wanted/case.json"
judged wanted 0 1
says "$out" "an error was expected"
mkdir "$work/refused"
echo nonsense >"$work/refused/model.onnx"
judged refused 0 1
echo '{"expect": "error"}' >"$work/refused/case.json"
judged refused 1 0
echo '{"expect": "error", "error_mentions": ["elephants"]}' >"$work/refused/case.json"
judged refused 0 1
says "$out" "does not mention 'elephants'"
mkdir "$work/bare"
cp "$work/pair.txt" "$work/bare/model.onnx"
judged bare 1 0

# support is counted apart
mkdir -p "$work/unknown"
sed 's/MaxPool/MaxPoll/g' "$TENON_SOURCE/examples/data/mnist-cnn.onnx" >"$work/unknown/model.onnx"
judged unknown 0 1
says "$out" "of which not supported: 1"

# many folders, filters, light models, JSON
expect 1 test "$work"
says "$out" "9 failed"
expect 0 test "$work/" --filter 'g*d'
says "$out" "1 passed, 0 failed"
expect 0 test "$work/good" "$work/near" --jobs 1
says "$out" "2 passed"
expect 2 test "$work" --filter nothing
expect 1 test "$work" --json --jobs 3
valid_json "$out"
says "$out" '"failed": 9' '"outcome": "passed"'
expect 1 test "$work" --quiet
lacks "$out" FAIL
mkdir -p "$work/l/light" "$work/l/real/test_one" "$work/l/real/test_two"
same 'f32[4]' >"$work/l/light/light_one.onnx"
pb "$work/l/light/light_one_output_0.pb" 'f32[4]' [0,0.25,0.5,0.75]
echo '{"atol": 1e-7, "rtol": 0.001, "url": "far/away/light_one.onnx"}' >"$work/l/real/test_one/data.json"
echo '{"atol": 1e-7, "rtol": 0.001, "url": "far/away/light_two.onnx"}' >"$work/l/real/test_two/data.json"
expect 0 test "$work/l"
says "$out" "1 passed, 0 failed, 1 skipped"
pb "$work/l/light/light_one_output_0.pb" 'f32[4]' [0,0.25,0.5,0.7]
expect 1 test "$work/l"

# a hang and a crash are failures of one test
mkdir "$work/hang"
cat >"$work/hang/model.onnx" <<'END'
tenon 1
graph (%1 "x": f32[]) -> ("y") {
  %2 = while(%1) : f32[]
    region (%3: f32[]) {
      %4 = equal(%3, %3) : bool[]
      return(%4)
    }
    region (%5: f32[]) {
      return(%5)
    }
  return(%2)
}
END
mkdir "$work/hang/test_data_set_0"
pb "$work/hang/test_data_set_0/input_0.pb" 'f32[]' 1
pb "$work/hang/test_data_set_0/output_0.pb" 'f32[]' 1
expect 1 test "$work/hang" "$work/good" --timeout 1 --backend ref
says "$out" "no answer within 1 s" "1 passed, 1 failed"
children() { cat /proc/"$1"/task/"$1"/children 2>/dev/null; }
if [ -r /proc/self/task/self/children ] || [ -r /proc/$$/task/$$/children ]; then
    "$TENON" test "$work/hang" "$work/good" --backend ref >"$out" 2>"$err" &
    parent=$!
    for _ in $(seq 100); do
        sleep 0.1
        hung=$(children $parent | tr -d ' ')
        case $hung in '' | *[!0-9]*) ;; *) [ -e "/proc/$hung" ] && break ;; esac
    done
    sleep 1
    kill -SEGV "$(children $parent | awk '{ print $1 }')"
    wait $parent
    [ $? = 1 ] || fail "a crash in a test"
    grep -q "killed by signal 11\|without an answer" "$out" || fail "a crash is not named: $(cat "$out")"
    says "$out" "1 passed, 1 failed"

    # ended from outside: no child is left
    "$TENON" test "$work/hang" --backend ref >"$out" 2>"$err" &
    parent=$!
    for _ in $(seq 100); do
        sleep 0.1
        [ -n "$(children $parent)" ] && break
    done
    left=$(children $parent)
    kill -TERM $parent
    wait $parent
    [ $? = 143 ] || fail "SIGTERM does not end it"
    for child in $left; do [ ! -e "/proc/$child" ] || fail "a child is left"; done
fi

# sparse inputs and outputs: data files hold sparse tensors or dense ones
sparse_model() {
    printf 'tenon 1\nmetadata "declared:x" = "sparse(f32[2,3])"\nmetadata "declared:y" = "sparse(f32[2,3])"\n'
    printf 'graph (%%1 "x": f32[2, 3]) -> ("y") {\n  %%2 = add(%%1, %%1) : f32[2, 3]\n  return(%%2)\n}\n'
}
# sparse FILE A B INDEX INDEX: SparseTensorProto of f32[2,3]; the elements' bytes, the indices in octal
sparse() {
    printf '\n\016\010\002\020\001J\010'"$2$3"'\022\026\010\002\020\007J\020\'"$4"'\0\0\0\0\0\0\0\'"$5"'\0\0\0\0\0\0\0\030\002\030\003' >"$1"
}
sparse_model >"$work/sparse.txt"
expect 0 optimize "$work/sparse.txt" -o "$work/sparse.onnx"
mkdir -p "$work/few/test_data_set_0"
cp "$work/sparse.onnx" "$work/few/model.onnx"
few=$work/few/test_data_set_0
sparse "$few/input_0.pb" '\0\0\200\077' '\0\0\0\100' 1 5 # 1, 2
sparse "$few/output_0.pb" '\0\0\0\100' '\0\0\200\100' 1 5 # 2, 4
for backend in ref cpu; do judged few 1 0 --backend $backend; done
pb "$few/output_0.pb" 'f32[2, 3]' [[0,2,0],[0,0,4]]
for backend in ref cpu; do judged few 1 0 --backend $backend; done
sparse "$few/output_0.pb" '\0\0\0\100' '\0\0\200\100' 1 4
for backend in ref cpu; do judged few 0 1 --backend $backend; done
says "$out" "test_data_set_0 output 0 y at [1,1]"
expect 0 run "$work/sparse.onnx" --input "x=$few/input_0.pb"
says "$out" "4"
pb "$few/input_0.pb" 'f32[2, 3]' [[0,1,0],[0,2,0]]
for backend in ref cpu; do judged few 1 0 --backend $backend; done
sparse "$few/input_0.pb" '\0\0\200\077' '\0\0\0\100' 1 6
for backend in ref cpu; do judged few 0 1 --backend $backend; done
says "$out" "index 6 of a sparse tensor lies outside its 6 elements" "input_0.pb"
expect 3 run "$work/sparse.onnx" --input "x=$few/input_0.pb"

# the standard's suite, a part of it
if [ -d "$TENON_SHARED/onnx-suite/node" ]; then
    expect 0 test "$TENON_SHARED/onnx-suite/node" --filter 'test_add*'
    "$TENON" test "$TENON_SHARED/onnx-suite/node" --filter 'test_bernoulli*' >"$out"
    if grep -q "not supported: 0" "$out"; then # random outputs are judged by shape and type, and counted
        says "$out" "6 passed, 0 failed" "because they are random: 6"
    else
        echo "skipped 1 check: random operators are not supported"
    fi
else
    echo "skipped 2 checks: no $TENON_SHARED"
fi
finish

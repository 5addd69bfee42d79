#!/usr/bin/env bash
# Z1: how large a program is that runs a model: at most 2 MB with all operators (release builds), less with those of its model alone,
# which then say of all others that they were left out.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
limit=2000000
type=$(sed -n 's/^CMAKE_BUILD_TYPE:[^=]*=//p' "$TENON_BUILD/CMakeCache.txt")
[ -z "$TENON_SANITIZE" ] || { echo "skipped: sizes of sanitizer builds say nothing"; exit 77; }
strip=$("$TENON_CC" -print-prog-name=strip)
command -v "$strip" >/dev/null || { echo "skipped: there is no strip"; exit 77; }
[ "$(uname)" = Linux ] || { echo "skipped: written for the GNU linker"; exit 77; }
model=$TENON_SOURCE/examples/data/mnist-cnn.onnx
failed=0
fail() { echo "FAILED: $*"; failed=1; }

cat >"$work/app.c" <<'END'
#include <stdio.h>
#include <tenon/tenon.h>
int main(int argc, char **argv) {
    tn_tensor *x = tn_tensor_create(TN_F32, 4, (const int64_t[]){1, 1, 28, 28}), *y = NULL;
    tn_model *model = argc > 1 ? tn_model_load(argv[1], NULL) : NULL;
    tn_session *session = model ? tn_session_create(model, TN_OPTIONS(tn_session_options, .threads = 1)) : NULL;
    for (int i = 0; x && i < 784; i++)
        tn_tensor_set_f64(x, i, i % 7);
    if (!session || tn_session_run(session, 1, (const tn_binding[]){{.name = tn_model_input_name(model, 0), .tensor = x}}, 1,
                                   (const tn_output[]){{.name = tn_model_output_name(model, 0), .tensor = &y}}) != TN_OK) {
        fprintf(stderr, "%s\n", tn_error_message());
        return 1;
    }
    for (int i = 0; i < tn_tensor_count(y); i++)
        printf("%.9g\n", tn_tensor_get_f64(y, i));
    tn_tensor_destroy(x);
    tn_tensor_destroy(y);
    tn_session_destroy(session);
    tn_model_destroy(model);
    return 0;
}
END
# program NAME OBJECT...: linked and stripped; its size
program() {
    local name=$1
    shift
    "$TENON_CC" -std=gnu17 -O2 -I"$TENON_SOURCE/include" "$work/app.c" "$@" "$TENON_BUILD/libtenon.a" -Wl,--gc-sections -lm -lpthread \
        -ldl -o "$work/$name" && "$strip" "$work/$name" || { fail "$name does not link"; return; }
    wc -c <"$work/$name"
}

# part LIST: the table of a build with the operators of a list, as CMakeLists.txt makes it
part() {
    cmake -DTENON_OPS="$1" -DTENON_SOURCE="$TENON_SOURCE" -DTENON_OPS_HEADER="$work/ops.h" -P "$TENON_SOURCE/cmake/TenonOps.cmake" >"$work/log" 2>&1 &&
        "$TENON_CC" -std=gnu17 -O2 -ffunction-sections -fdata-sections -DTENON_OPS_HEADER="\"$work/ops.h\"" -I"$TENON_SOURCE/include" \
            -I"$TENON_SOURCE/src" -c "$TENON_SOURCE/src/onnx/table.c" -o "$work/table.o"
}

"$TENON" info "$model" --ops "$work/list" --quiet || fail "no list of operators"
part "$work/list" || { fail "no table of the listed operators"; cat "$work/log"; }
full=$(program full)
small=$(program small "$work/table.o")
echo "$type build: $full bytes with all operators, $small with those of the model"
if [ "$type" = Release ]; then
    [ "$full" -le $limit ] || fail "more than $limit bytes"
fi
[ "$small" -lt $((full - 65536)) ] || fail "leaving operators out saves less than 64 KiB"
${TENON_EMULATED:-} "$work/full" "$model" >"$work/wanted" || fail "the program with all operators"
${TENON_EMULATED:-} "$work/small" "$model" >"$work/got" || fail "the program with the operators of the model"
cmp "$work/wanted" "$work/got" || fail "another result"

# one operator fewer: refused by name, also in a family that is linked
grep -v ';Relu$' "$work/list" >"$work/fewer"
part "$work/fewer" || fail "no table without Relu"
fewer=$(program fewer "$work/table.o")
${TENON_EMULATED:-} "$work/fewer" "$model" >/dev/null 2>"$work/error" && fail "an operator that was left out runs"
grep -q '^not supported: .*Relu (domain ai.onnx, version 8, left out of this build; nodes ' "$work/error" ||
    { fail "the message"; cat "$work/error"; }

# names alone, comments, what is not there; and what is no list
printf '# all of it\n\nAdd\nConv\nMaxPool\nMatMul\nRelu\nReshape\ncom.example;1;Mine\n' >"$work/names"
part "$work/names" && grep -q "Mine is no operator of this library" "$work/log" || fail "a list of names"
named=$(program named "$work/table.o")
[ "$named" = "$small" ] || echo "by names: $named bytes"
${TENON_EMULATED:-} "$work/named" "$model" | cmp - "$work/wanted" || fail "another result by names"
for text in '' 'ai.onnx;Conv' 'a b'; do
    printf '%s\n' "$text" >"$work/bad"
    part "$work/bad" && fail "'$text' is taken for a list"
done
exit $failed

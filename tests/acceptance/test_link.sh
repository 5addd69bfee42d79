#!/usr/bin/env bash
# The static archive beside a program with a protobuf reader and helpers of its own, under the names that such things have: it links,
# each side calls its own, and a model runs.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/other.c" <<'CODE'
/* Every function answers its own number. */
#define OWN(name, number) int name(void); int name(void) { return number; }
OWN(read_varint, 1) OWN(wire_read, 2) OWN(varint_decode, 3) OWN(protobuf_parse, 4) OWN(pb_decode, 5) OWN(arena_alloc, 6)
OWN(arena_create, 7) OWN(graph_create, 8) OWN(graph_destroy, 9) OWN(tensor_create, 10) OWN(heap_create, 11) OWN(pool_create, 12)
OWN(session_run, 13) OWN(model_load, 14) OWN(map_get, 15) OWN(map_put, 16) OWN(vec_push, 17) OWN(text_add, 18) OWN(strings_add, 19)
OWN(hash_bytes, 20) OWN(file_read, 21) OWN(parse_f64, 22) OWN(fail, 23) OWN(error, 24) OWN(verify, 25) OWN(print_graph, 26)
OWN(onnx__model_proto__unpack, 27) OWN(google_protobuf_version, 28) OWN(kernel_run, 29) OWN(run, 30) OWN(allocate, 31)
CODE
sed -n 's/OWN(\([a-z_0-9]*\), \([0-9]*\))/\n\1 \2\n/gp' "$work/other.c" | grep -E '^[a-z_0-9]+ [0-9]+$' >"$work/names"
{
    echo '#include <stdio.h>'
    echo '#include <tenon/tenon.h>'
    sed 's/\(.*\) .*/int \1(void);/' "$work/names"
    echo 'int main(int argc, char **argv) {'
    echo '    tn_model *model = argc > 1 ? tn_model_load(argv[1], NULL) : NULL;'
    echo '    tn_session *session = model ? tn_session_create(model, NULL) : NULL;'
    echo '    float pixels[784] = {0};'
    echo '    tn_tensor *x = tn_tensor_wrap(TN_F32, 4, (const int64_t[]){1, 1, 28, 28}, pixels), *y = NULL;'
    echo '    if (!session || tn_session_run(session, 1, (const tn_binding[]){{tn_model_input_name(model, 0), x, NULL}}, 1,'
    echo '                                   (const tn_output[]){{tn_model_output_name(model, 0), &y, NULL}}) != TN_OK)'
    echo '        return puts(tn_error_message()), 1;'
    sed 's/\(.*\) \(.*\)/    if (\1() != \2) return puts("\1"), 1;/' "$work/names"
    echo '    tn_tensor_destroy(x), tn_tensor_destroy(y), tn_session_destroy(session), tn_model_destroy(model);'
    echo '    return 0;'
    echo '}'
} >"$work/main.c"
sanitize=${TENON_SANITIZE:+-fsanitize=$TENON_SANITIZE}
"$TENON_CC" -std=c11 $sanitize -I"$TENON_SOURCE/include" "$work/main.c" "$work/other.c" "$TENON_BUILD/libtenon.a" -lm -lpthread -ldl -o "$work/program"
[ "$(wc -l <"$work/names")" = 31 ]
${TENON_EMULATED:-} "$work/program" "$TENON_SOURCE/examples/data/mnist-cnn.onnx"

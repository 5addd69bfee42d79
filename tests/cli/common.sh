# Shared by the tests of the command: a scratch folder, models, and checks. Source it; end with `finish`.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
out=$work/stdout
err=$work/stderr

fail() { echo "FAILED: $*"; failed=1; }

# expect CODE ARG...: runs the command; its output is in $out and $err.
expect() {
    local wanted=$1 got
    shift
    "$TENON" "$@" >"$out" 2>"$err" </dev/null
    got=$?
    [ $got = "$wanted" ] || { fail "tenon $*: exit status $got, not $wanted"; sed 's/^/    /' "$err"; }
    case $got in
    0) ;;
    1) ;;
    *)
        grep -q '^tenon: error: .' "$err" || fail "tenon $*: no error message"
        [ "$(grep -vc '^tenon: error: \|^  where: \|^  hint: ' "$err")" = 0 ] || { fail "tenon $*: not one block"; cat "$err"; }
        [ "$(grep -c '^tenon: error: ' "$err")" = 1 ] || fail "tenon $*: more than one error"
        ;;
    esac
}

# says FILE TEXT...: the file holds each text.
says() {
    local file=$1 text
    shift
    for text; do
        grep -qF -- "$text" "$file" || { fail "$(basename "$file") does not say: $text"; sed 's/^/    /' "$file" | head -20; }
    done
}

lacks() { ! grep -qF -- "$2" "$1" || fail "$(basename "$1") says: $2"; }

# npy FILE DESCR FORTRAN SHAPE BYTES: an array file; BYTES as printf escapes.
npy() {
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$2', 'fortran_order': $3, 'shape': $4, }" >"$1"
    printf "$5" >>"$1"
}

valid_json() {
    command -v python3 >/dev/null || return 0
    python3 -m json.tool "$1" >/dev/null 2>&1 || { fail "no valid JSON"; head -c 2000 "$1"; }
}

# Two inputs, two outputs, a free dimension; and models for single values.
cat >"$work/pair.txt" <<'END'
tenon 1
symbol N [0, 9223372036854775807]
graph (%1 "x": f32[N, 2], %2 "w": f32[N, 2]) -> ("sum", "product") {
  %3 "sum" = add(%1, %2) : f32[N, 2]
  %4 "product" = mul(%1, %2) : f32[N, 2]
  return(%3, %4)
}
END
# same TYPE: a model whose output is its input.
same() {
    printf 'tenon 1\nsymbol N [0, 9223372036854775807]\ngraph (%%1 "x": %s) -> ("y") {\n  return(%%1)\n}\n' "$1"
}

finish() { [ $failed = 0 ] && echo "all as expected"; exit $failed; }

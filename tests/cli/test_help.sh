#!/usr/bin/env bash
# Help, version, suggestions, the syntax of options.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1

expect 0 --help
says "$out" "Examples:" "Subcommands:" "Exit status:" "  run " "  info " "  test " "  ops "
for word in bisect train serve --memory; do lacks "$out" "  $word"; done
for command in run info test ops optimize verify; do
    expect 0 $command --help
    [ "$(sed -n '/^Examples:/,/^Usage:/p' "$out" | grep -c '^  tenon ')" = 3 ] || fail "$command: not three examples"
    awk '/^Examples:/ { e = NR } /^Options:/ { exit !(e && e < NR) }' "$out" || fail "$command: examples come first"
    lacks "$out" "--lock"
    says "$out" "--layout HOW" "--reuse HOW"
    says "$out" "--threads N" "-O0" "--backend ref|cpu" "--json"
done
expect 0 --version
says "$out" "tenon 0." "build:" "CPU features:"
expect 0 run --version
[ ! -s "$err" ] || fail "--version writes to stderr"

expect 2
says "$err" "tenon --help"
expect 2 rnu model
says "$err" "did you mean 'tenon run'?"
expect 2 zzzzzz
lacks "$err" "did you mean"
expect 2 run model --inptu x
says "$err" "did you mean --input?"
expect 2 run model --output=x
says "$err" "did you mean --output-dir?"
expect 2 run model -x
expect 2 run model --filter a
says "$err" "'tenon test'"
expect 2 --json run model
expect 2 run
says "$err" "needs a model"
expect 2 run a b
says "$err" "one argument too many"
expect 2 test
expect 2 run model --threads
says "$err" "needs a value"
expect 2 run model --threads --json
says "$err" "--threads needs a value"
expect 2 run model --threads 0
expect 2 run model --threads 2x
expect 2 run model --threads=-1
expect 2 run model --json=1
expect 2 run model -O4
says "$err" "-O3"
expect 2 run model -O
expect 2 run model --backend gpu
says "$err" "ref|cpu"
expect 2 run model --dim N
says "$err" "NAME=N"
expect 2 run model --dim =3
expect 2 run model --max-bytes 5Q
expect 2 run model --fill ten
expect 2 run model --seed -1
expect 2 run model --format npy
expect 2 run model --isa=

# what is not built yet
for command in bisect diff view grad train compile quantize tune serve; do
    expect 4 $command model
    says "$err" "not supported yet"
done
expect 4 optimize model -o "$work/out.onnx" --lock=a
says "$err" "not supported yet"

# options anywhere, both forms, and -- ends them
expect 0 run --fill=ones "$work/pair.txt" -O0 --threads 1
expect 0 run --fill ones --json -- "$work/pair.txt"
expect 6 run --fill ones -- --json
says "$err" "'--json'"
printf 'tenon' >"$work/-dash"
(cd "$work" && "$TENON" run -- -dash >/dev/null 2>"$err")
lacks "$err" "unknown option"

# no colour, no progress unless on a terminal
expect 2 rnu
! grep -q $'\033' "$err" || fail "colours in a file"
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
    TERM=xterm script -qec "$TENON rnu" /dev/null </dev/null | grep -q $'\033\[1;31m' || fail "no colour on a terminal"
    ! NO_COLOR=1 TERM=xterm script -qec "$TENON rnu" /dev/null </dev/null | grep -q $'\033\[1;31m' || fail "NO_COLOR is not honoured"
fi
finish

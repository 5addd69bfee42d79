#!/usr/bin/env bash
# clang-tidy finds nothing in src/, with every set of flags that a file is compiled with.
. "$TENON_SOURCE/tests/nightly/common.sh"
need clang-tidy
cd "$TENON_SOURCE"
[ -e "$TENON_BUILD/compile_commands.json" ] || { echo "skipped: no compile_commands.json"; exit 77; }
folder=$TENON_BUILD/nightly/tidy
mkdir -p "$folder"
tidy=(clang-tidy --config-file="$TENON_SOURCE/.clang-tidy" --extra-arg=-Wno-unknown-warning-option --quiet)

# It would find something: a configuration it cannot read makes it find nothing, quietly.
printf 'int wrong(void) {\n    int zero = 0;\n    return 1 / zero;\n}\n' >"$folder/wrong.c"
if "${tidy[@]}" "$folder/wrong.c" -- >"$folder/wrong.log" 2>&1 || ! grep -q DivideZero "$folder/wrong.log"; then
    cat "$folder/wrong.log"
    echo "clang-tidy does not find a division by zero"
    exit 1
fi

# flags that only gcc knows
sed 's/ -fno-thread-jumps//g; s/ --param=[^ ]*//g' "$TENON_BUILD/compile_commands.json" >"$folder/compile_commands.json"
find src -name '*.c' | LC_ALL=C sort |
    xargs -P "$jobs" -n 4 "${tidy[@]}" -p "$folder" 2>"$folder/errors.log" || {
    grep -v 'warnings\? generated\.$' "$folder/errors.log" || true
    exit 1
}

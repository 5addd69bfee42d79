#!/usr/bin/env bash
# clang-tidy finds nothing in src/.
. "$TENON_SOURCE/tests/nightly/common.sh"
need clang-tidy
cd "$TENON_SOURCE"
[ -e "$TENON_BUILD/compile_commands.json" ] || { echo "skipped: no compile_commands.json"; exit 77; }
find src -name '*.c' -not -path 'src/kernels/isa/*' | LC_ALL=C sort |
    xargs -P "$jobs" -n 4 clang-tidy --extra-arg=-Wno-unknown-warning-option --quiet -p "$TENON_BUILD" 2>/dev/null

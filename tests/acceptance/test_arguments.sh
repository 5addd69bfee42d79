#!/usr/bin/env bash
# Every function of the public headers is called with NULL, null and dead handles, and numbers out of range, alone and together: the
# process lives, what failed left an error, graphs stay sound. The calls are made from the headers: nothing is left out.
set -eu
here=$TENON_SOURCE/tests/acceptance
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '#include <tenon/tenon.h>' | "$TENON_CC" -std=c11 -I"$TENON_SOURCE/include" -E -P - | tr '\n' ' ' | tr ';' '\n' |
    grep 'visibility("default")' | sed 's/__attribute__((visibility("default")))//g; s/__attribute__((format([^)]*)))//g' >"$work/list"
{
    echo '#include "arguments.h"'
    awk -f "$here/arguments.awk" "$work/list"
    echo "int main(void) { return run_all(sizeof functions / sizeof *functions, functions, ${TENON_FULL:+10}50); }"
} >"$work/calls.c"
sanitize=${TENON_SANITIZE:+-fsanitize=$TENON_SANITIZE -fno-sanitize-recover=all}
"$TENON_CC" -std=gnu17 -O0 -g -Werror=implicit $sanitize -I"$TENON_SOURCE/include" -I"$here" "$work/calls.c" "$TENON_BUILD/libtenon.a" -lm -lpthread -ldl -o "$work/calls"
declared=$(grep -o 'tn_[a-z0-9_]* *(' "$work/list" | wc -l)
[ "$(wc -l <"$work/list")" = "$(grep -c '^    {"tn_' "$work/calls.c")" ] || { echo "some of $declared declarations were not understood"; exit 1; }
ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 ${TENON_EMULATED:-} "$work/calls"

#!/usr/bin/env bash
# Public headers: tenon.h includes each of them; each compiles alone as C11 and, where there is a C++ compiler, C++11,
# without warnings.
set -u
cd "$TENON_SOURCE" || exit 1
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-Iinclude -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only"
cxx=${CXX:-}
for candidate in g++ clang++ c++; do
    [ -n "$cxx" ] || ! command -v "$candidate" >/dev/null || cxx=$candidate
done
[ -n "$cxx" ] || echo "no C++ compiler: the C++11 check is skipped"
for header in include/tenon/*.h; do
    name=tenon/$(basename "$header")
    if [ "$name" != tenon/tenon.h ] && ! grep -qx "#include <$name>" include/tenon/tenon.h; then
        echo "include/tenon/tenon.h does not include <$name>"
        failed=1
    fi
    printf '#include <%s>\n#include <%s>\nextern int unused_here;\n' "$name" "$name" >"$work/use.c"
    cp "$work/use.c" "$work/use.cc"
    "$TENON_CC" -std=c11 $flags "$work/use.c" || { echo "$name is not clean C11"; failed=1; }
    [ -z "$cxx" ] || "$cxx" -std=c++11 $flags "$work/use.cc" || { echo "$name is not clean C++11"; failed=1; }
done
exit $failed

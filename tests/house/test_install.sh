#!/usr/bin/env bash
# Installs to a temporary prefix; builds and runs a program against it through pkg-config and through find_package.
set -eu
[ -z "$TENON_SANITIZE" ] || { echo "skipped under sanitizers"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$TENON_BUILD" --prefix "$work/built" >/dev/null
mv "$work/built" "$work/prefix" # an installed tree may be moved

cat >"$work/app.c" <<'CODE'
#include <tenon/tenon.h>
#include <stdio.h>

int main(void) {
    printf("tenon %s\n", tn_version());
    return 0;
}
CODE
cp "$work/app.c" "$work/app.cc"
strict="-Wall -Wextra -Wpedantic -Werror"
expected="tenon $(sed -n 's/^project(Tenon VERSION \([0-9.]*\).*/\1/p' "$TENON_SOURCE/CMakeLists.txt")"
libdir=$(dirname "$(find "$work/prefix" -name libtenon.a)")

# say PROGRAM...: its output must be the expected line.
say() {
    local got
    got=$(LD_LIBRARY_PATH=$libdir DYLD_LIBRARY_PATH=$libdir "$@")
    [ "$got" = "$expected" ] || { echo "$*: '$got' instead of '$expected'"; exit 1; }
}

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    "$TENON_CC" -std=c11 $strict "$work/app.c" $(pkg-config --cflags --libs tenon) -o "$work/app-shared"
    say "$work/app-shared"
    "$TENON_CC" -std=c11 $strict "$work/app.c" $(pkg-config --cflags tenon) "$libdir/libtenon.a" \
        $(pkg-config --static --libs-only-l tenon | sed 's/-ltenon//g') -o "$work/app-static"
    say "$work/app-static"
    if command -v g++ >/dev/null; then
        g++ -std=c++11 $strict "$work/app.cc" $(pkg-config --cflags --libs tenon) -o "$work/app-c++"
        say "$work/app-c++"
    else
        echo "no g++: the C++ program is skipped"
    fi
else
    echo "no pkg-config: its programs are skipped"
fi

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'LISTS'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(Tenon 0.1 REQUIRED)
add_executable(app ../app.c)
target_link_libraries(app PRIVATE Tenon::tenon)
add_executable(app-static ../app.c)
target_link_libraries(app-static PRIVATE Tenon::tenon_static)
LISTS
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_C_COMPILER="$TENON_CC" -DCMAKE_PREFIX_PATH="$work/prefix" \
    >"$work/log" 2>&1 && cmake --build "$work/project/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
say "$work/project/build/app"
say "$work/project/build/app-static"

if [ -x "$TENON" ]; then
    "$work/prefix/bin/tenon" --version >/dev/null
fi
echo "installed, found by pkg-config and find_package"

#!/usr/bin/env bash
# Builds with clang, optimised, warnings as errors, and runs the quick tests.
. "$TENON_SOURCE/tests/nightly/common.sh"
need clang
build clang -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Release
quick clang

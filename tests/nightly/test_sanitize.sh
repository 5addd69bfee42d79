#!/usr/bin/env bash
# The quick tests under the address and undefined-behaviour sanitizers, with clang, whose set is not gcc's.
. "$TENON_SOURCE/tests/nightly/common.sh"
need clang
build sanitize -DCMAKE_C_COMPILER=clang -DTENON_SANITIZE=address,undefined "-DCMAKE_C_FLAGS_DEBUG=-g1 -O1"
quick sanitize

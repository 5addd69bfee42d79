#!/usr/bin/env bash
# The quick tests under the thread sanitizer.
. "$TENON_SOURCE/tests/nightly/common.sh"
build thread -DTENON_SANITIZE=thread "-DCMAKE_C_FLAGS_DEBUG=-g1 -O1"
TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1 quick thread

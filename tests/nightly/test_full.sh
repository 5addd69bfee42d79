#!/usr/bin/env bash
# The acceptance tests in their longer form, and vector math over all floats; optimised.
. "$TENON_SOURCE/tests/nightly/common.sh"
build full -DCMAKE_BUILD_TYPE=RelWithDebInfo
export TENON_FULL=1
(cd "$TENON_BUILD/nightly/full" && ctest -j "$jobs" -R '^(acceptance/|kernels/vector_math)' --timeout 7000 --output-on-failure | grep -v ' Passed ')

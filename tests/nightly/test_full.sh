#!/usr/bin/env bash
# The acceptance tests in their longer form, optimised.
. "$TENON_SOURCE/tests/nightly/common.sh"
build full -DCMAKE_BUILD_TYPE=RelWithDebInfo
export TENON_FULL=1
(cd "$TENON_BUILD/nightly/full" && ctest -j "$jobs" -R '^acceptance/' --timeout 3600 --output-on-failure | grep -v ' Passed ')

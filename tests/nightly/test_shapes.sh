#!/usr/bin/env bash
# No inferred shape is false, in any model and any graph of the standard's suite and the cases.
. "$TENON_SOURCE/tests/nightly/common.sh"
[ -x "$TENON_BUILD/test_interp_shapes" ] || { echo "skipped: the C tests are not built"; exit 77; }
TENON_ALL=1 "$TENON_BUILD/test_interp_shapes"

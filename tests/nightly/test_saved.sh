#!/usr/bin/env bash
# Every model, every case of the standard's suite and of the cases survives being saved and read, as loaded and expanded.
. "$TENON_SOURCE/tests/nightly/common.sh"
[ -x "$TENON_BUILD/test_runtime_saved" ] || { echo "skipped: the C tests are not built"; exit 77; }
TENON_ALL=1 "$TENON_BUILD/test_runtime_saved"

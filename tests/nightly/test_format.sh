#!/usr/bin/env bash
# Every C file is as .clang-format has it.
set -u
command -v clang-format >/dev/null || { echo "skipped: no clang-format"; exit 77; }
cd "$TENON_SOURCE" || exit 1
find include src tests examples bench -name '*.[ch]' 2>/dev/null | xargs clang-format --dry-run -Werror

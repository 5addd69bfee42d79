#!/usr/bin/env bash
# Builds Tenon with warnings as errors and runs its quick tests. Arguments: presets (default: release); see
# CMakePresets.json for sanitize, thread, clang, ...
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
jobs=$(getconf _NPROCESSORS_ONLN)
for preset in "${@:-release}"; do
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset" -j "$jobs" -- --quiet
    ctest --preset "$preset" -j "$jobs"
done

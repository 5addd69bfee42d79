# Shared by the nightly scripts: `need TOOL...` skips without the tool; `build NAME OPTION...` configures and builds in
# a folder of its own; `quick NAME CTEST-OPTION...` runs the quick tests of that build.
set -euo pipefail
jobs=$(getconf _NPROCESSORS_ONLN)

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
    done
}

build() {
    local folder=$TENON_BUILD/nightly/$1
    shift
    mkdir -p "$folder"
    cmake -S "$TENON_SOURCE" -B "$folder" -G Ninja -DTENON_WERROR=ON -DTENON_SHARED="$TENON_SHARED" \
        -DCMAKE_BUILD_TYPE=Debug "$@" >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log"; exit 1; }
    cmake --build "$folder" -j "$jobs" >"$folder/build.log" 2>&1 || { tail -100 "$folder/build.log"; exit 1; }
}

quick() {
    local folder=$TENON_BUILD/nightly/$1
    shift
    (cd "$folder" && ctest -j "$jobs" -LE 'nightly|timing' --output-on-failure "$@" | grep -v ' Passed ')
}

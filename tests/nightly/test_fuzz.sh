#!/usr/bin/env bash
# Each fuzz target for TENON_FUZZ_SECONDS (60) from its corpus; a finding is kept in the build folder.
. "$TENON_SOURCE/tests/nightly/common.sh"
need clang
build fuzz -DCMAKE_C_COMPILER=clang -DTENON_FUZZ=ON -DTENON_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo
folder=$TENON_BUILD/nightly/fuzz
count=0
for program in "$folder"/fuzz_*; do
    [ -x "$program" ] || continue
    name=$(basename "$program")
    name=${name#fuzz_}
    mkdir -p "$folder/work/$name"
    seeds=$TENON_SOURCE/tests/fuzz/corpus/$name
    [ -d "$seeds" ] || seeds=
    "$program" -max_total_time="${TENON_FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
        -artifact_prefix="$folder/work/$name-" -print_final_stats=1 "$folder/work/$name" $seeds >"$folder/$name.log" 2>&1 ||
        { echo "$name:"; tail -60 "$folder/$name.log"; exit 1; }
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$name.log") runs"
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "skipped: no fuzz targets"; exit 77; }

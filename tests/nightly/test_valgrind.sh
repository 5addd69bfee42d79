#!/usr/bin/env bash
# Z8: the examples and every C test of the base layer under valgrind: no bad access, nothing uninitialised, no leak.
. "$TENON_SOURCE/tests/nightly/common.sh"
need valgrind
[ -z "$TENON_SANITIZE" ] || { echo "skipped under sanitizers"; exit 77; }
cd "$TENON_SOURCE"
count=0
for program in "$TENON_BUILD"/example_* "$TENON_BUILD"/test_base_*; do
    [ -x "$program" ] || continue
    valgrind -q --fair-sched=try --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect,possible --suppressions=tests/nightly/valgrind.supp \
        --child-silent-after-fork=yes "$program" >"$TENON_BUILD/valgrind.log" 2>&1 ||
        { echo "$(basename "$program"):"; tail -60 "$TENON_BUILD/valgrind.log"; exit 1; }
    count=$((count + 1))
done
echo "$count programs clean"

#!/usr/bin/env bash
# Every shared test passes with both back ends, but for those that counts.txt names, which fail as it says: one that newly fails and one
# that newly passes do not make up for each other, and one that did not run is missed. The networks of the suite only with TENON_FULL=1.
set -u
export LC_ALL=C
list=$TENON_SOURCE/tests/acceptance/counts.txt
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# What ran: "NAME OUTCOME REASON", a line each, from the report of `tenon test`, which has a test in each line.
outcomes() {
    sed -n 's/^  {"name": "\([^"]*\)", "outcome": "\([a-z]*\)",\( "reason": "\(.*\)",\)\{0,1\} "not_supported": \([a-z]*\), "by_shape": \([a-z]*\).*/\1|\2|\5|\6|\4/p' \
        "$1" | sed "s|^$TENON_SHARED/||" |
        awk -F'|' '{ kind = $2 == "failed" ? ($3 == "true" ? "unsupported" : "wrong") : $2 == "passed" && $4 == "true" ? "by_shape" : $2
                     reason = $0; for (i = 0; i < 4; i++) sub(/^[^|]*\|/, "", reason)
                     print $1, kind, reason }' | sort
}

# judge FOLDER: its tests against the list.
judge() {
    local folder=$TENON_SHARED/$1 backend
    [ -d "$folder" ] || { echo "skipped: there is no $folder"; return; }
    for backend in cpu ref; do
        "$TENON" test "$folder" --backend $backend --json >"$dir/report" 2>"$dir/errors"
        outcomes "$dir/report" >"$dir/ran"
        # names that all runs of this folder must have, by their number and checksum
        local names
        names=$(cut -d' ' -f1 "$dir/ran" | cksum | cut -d' ' -f1)/$(wc -l <"$dir/ran")
        awk -v folder="$1/" -v backend=$backend -v pictures="${TENON_PICTURES:-}" '
            /^ *(#|$)/ || $1 == "all" { next }
            index($1, folder) != 1 || ($2 != "both" && $2 != backend) { next }
            $3 == "pictures" && pictures == "all" { next }
            { name = $1; kind = $3; sub(/^[^ ]+ +[^ ]+ +[^ ]+ */, ""); print name, kind, $0 }' "$list" | sort >"$dir/listed"
        awk -v backend=$backend '
            FILENAME == ARGV[1] { name = $1; kind[name] = $2; sub(/^[^ ]+ +[^ ]+ */, ""); said[name] = $0; next }
            { name = $1; got = $2; sub(/^[^ ]+ +[^ ]+ */, "") }
            name in kind { seen[name] = 1
                           if (kind[name] == "pictures" && got == "passed") next
                           if (kind[name] == "pictures") kind[name] = "unsupported"
                           if (got != kind[name] || index($0, said[name]) == 0)
                               print "FAILED: " name ", " backend ": " got " (" substr($0, 1, 300) "), but counts.txt has: " kind[name] " (" said[name] ")"
                           next }
            got != "passed" { print "FAILED: " name ", " backend ": " got ", and counts.txt does not name it: " substr($0, 1, 300) }
            END { for (name in kind) if (!(name in seen)) print "FAILED: " name ", " backend ": did not run" }' \
            "$dir/listed" "$dir/ran" >"$dir/found"
        if ! grep -qx "all $1 $names" "$list"; then
            echo "FAILED: $1, $backend: counts.txt has other tests; now: all $1 $names" >>"$dir/found"
            cat "$dir/errors" >>"$dir/found"
        fi
        [ ! -s "$dir/found" ] || { failed=1; head -30 "$dir/found"; }
        echo "$1, $backend: $(cut -d' ' -f2 "$dir/ran" | sort | uniq -c | sed 's/^ *//' | tr '\n' ' ')"
    done
}

if [ "${TENON_FULL:-0}" != 0 ]; then
    judge onnx-suite
else
    for part in node simple pytorch-converted pytorch-operator; do
        judge onnx-suite/$part
    done
fi
judge cases
judge worked-examples
# quantised networks at the limit of their tolerance move with the sums' order: not under sanitizers, which are slow
[ -n "${TENON_SANITIZE:-}" ] || judge models
exit $failed

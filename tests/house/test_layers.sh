#!/usr/bin/env bash
# The layering of src/: a folder includes only from itself and from folders earlier in the list. Public headers include
# only public headers. Files stay short. Findings are printed; the test checks itself on a tree with one of each fault.
set -u
layers="base image ir ops interp onnx passes autodiff lower kernels codegen runtime eager train quant dist serve cli"
max_lines=700

# check ROOT: prints each finding.
check() {
    cd "$1" || exit 1
    find src include -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs -r awk -v layers="$layers" -v max_lines="$max_lines" '
        BEGIN { count = split(layers, list, " "); for (i = 1; i <= count; i++) rank[list[i]] = i }
        function finish() { if (lines > max_lines) print file ": " lines " lines, more than " max_lines }
        FNR == 1 {
            finish(); file = FILENAME; split(file, part, "/")
            public = part[1] == "include"; folder = part[2]
            if (!public && !(folder in rank)) print file ": src/" folder " is not in the list of layers"
        }
        { lines = FNR }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split($0, quoted, "\""); target = quoted[2]
            if (public) { print file ":" FNR ": a public header includes \"" target "\""; next }
            if (target !~ /\//) { print file ":" FNR ": write \"" folder "/" target "\""; next }
            split(target, to, "/")
            if (to[1] == "..") print file ":" FNR ": relative include \"" target "\""
            else if (!(to[1] in rank)) print file ":" FNR ": unknown folder in \"" target "\""
            else if (rank[to[1]] > rank[folder]) print file ":" FNR ": " folder " includes \"" target "\", a later layer"
        }
        END { finish() }'
}

trap 'rm -rf "$tree"' EXIT
tree=$(mktemp -d)
mkdir -p "$tree"/src/{base,ir,attic} "$tree"/include/tenon
echo '#include "ir/graph.h"' >"$tree/src/base/a.c"
printf '#include "base/a.h"\n#include <stdio.h>\n#include "ir/b.h"\n' >"$tree/src/ir/good.c"
echo '#include "b.h"' >"$tree/src/ir/b.c"
echo '#include "../base/a.h"' >"$tree/src/ir/c.c"
echo '#include "base/a.h"' >"$tree/include/tenon/d.h"
yes '' | head -701 >"$tree/src/ir/long.c"
echo '' >"$tree/src/attic/e.c"
found=$(check "$tree" | cut -d: -f1 | LC_ALL=C sort | tr '\n' ' ')
wanted="include/tenon/d.h src/attic/e.c src/base/a.c src/ir/b.c src/ir/c.c src/ir/long.c "
if [ "$found" != "$wanted" ]; then
    echo "the check itself is broken: found '$found', wanted '$wanted'"
    exit 1
fi

findings=$(check "$TENON_SOURCE")
[ -z "$findings" ] || { echo "$findings"; exit 1; }
echo "layers hold"

#!/usr/bin/env bash
# Every global symbol that the archive defines, and every one that the shared library exports, begins with tn_; the
# shared library exports nothing but what the public headers mark TN_API.
set -u
[ -z "$TENON_SANITIZE" ] || { echo "skipped: sanitizers add symbols of their own"; exit 77; }
cd "$TENON_BUILD" || exit 1
failed=0

foreign=$(nm -g --defined-only libtenon.a 2>/dev/null | awk 'NF == 3 && $3 !~ /^_?tn_/ { print $3 }' | sort -u)
[ -z "$foreign" ] || { printf 'libtenon.a defines:\n%s\n' "$foreign"; failed=1; }

shared=libtenon.so
[ -e $shared ] || shared=libtenon.dylib
nm -g --defined-only $([ $shared = libtenon.so ] && echo -D) $shared | awk 'NF == 3 { sub(/^_tn/, "tn", $3); print $3 }' | sort -u >exported.txt
foreign=$(grep -v '^tn_' exported.txt)
[ -z "$foreign" ] || { printf '%s exports:\n%s\n' $shared "$foreign"; failed=1; }

# Declared with TN_API, as the preprocessor sees it.
echo '#include <tenon/tenon.h>' |
    "$TENON_CC" -std=c11 -I"$TENON_SOURCE/include" -E -P - | tr '\n' ' ' | tr ';' '\n' |
    grep 'visibility("default")' | grep -o 'tn_[a-z0-9_]* *(' | tr -d ' (' | sort -u >declared.txt
hidden=$(comm -23 exported.txt declared.txt)
[ -z "$hidden" ] || { printf 'exported, but in no public header:\n%s\n' "$hidden"; failed=1; }

if command -v readelf >/dev/null && [ $shared = libtenon.so ]; then
    readelf -d libtenon.so | grep -q 'SONAME.*libtenon\.so\.0\.1\]' || { echo "soname is not libtenon.so.0.1"; failed=1; }
fi
[ -s exported.txt ] || { echo "nothing is exported"; failed=1; }
echo "$(wc -l <exported.txt) symbols exported"
exit $failed

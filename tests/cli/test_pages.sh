#!/usr/bin/env bash
# The manual page and the bash completion that the build writes know every subcommand and option that --help does.
. "${TENON_SOURCE:?}/tests/cli/common.sh" || exit 1
pages=${TENON_BUILD:?}/share
[ -s "$pages/man" ] && [ -s "$pages/completion" ] || { echo "FAILED: the build wrote no pages"; exit 1; }

# complete WORD...: what is offered for the last word of "tenon WORD..."
. "$pages/completion"
complete_words() {
    COMP_WORDS=(tenon "$@")
    COMP_CWORD=$#
    _tenon
    printf '%s\n' "${COMPREPLY[@]}"
}

sed 's/\\-/-/g' "$pages/man" >"$work/man"
complete_words "" >"$work/offered"
for command in $("$TENON" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    grep -qx "$command" "$work/offered" || fail "completion does not offer $command"
    grep -q "^\.SS tenon $command$" "$work/man" || fail "the manual page lacks $command"
    complete_words "$command" - >"$work/options"
    for option in $("$TENON" "$command" --help | sed -n '/^Options:/,$s/^  \(-[-a-zA-Z0-9]*\).*/\1/p'); do
        grep -qx -e "$option" "$work/options" || fail "completion of $command does not offer $option"
        grep -q -e "^\\\\fB${option%0}\\\\fR" "$work/man" || fail "the manual page lacks $option"
    done
done
[ "$(complete_words run m --backend c)" = cpu ] || fail "values are not completed"
[ "$(complete_words run --fi)" = --fill ] || fail "beginnings of options are not completed"
touch "$work/one.onnx"
[ "$(cd "$work" && complete_words info on)" = one.onnx ] || fail "files are not completed"
if command -v groff >/dev/null; then
    groff -man -Tascii -P-cbou -ww "$pages/man" >"$work/page" 2>"$work/warnings" || fail "groff does not read the manual page"
    [ ! -s "$work/warnings" ] || fail "groff warns: $(head -3 "$work/warnings")"
    says "$work/page" "SUBCOMMANDS" "EXIT STATUS"
fi
finish

# From declarations (one a line, attributes removed) to C: one function `call_K` for each, and the table of them.
function key_of(type, name,    key) {
    key = type
    gsub(/const /, "", key); gsub(/ *\* */, "_p", key); gsub(/^ +| +$/, "", key); gsub(/ +/, "_", key)
    if (key == "_Bool") key = "bool"
    if (key == "void_p" && name == "ctx") key = "context"
    if ((key == "uint32_t" || key == "int64_t" || key == "size_t") && name ~ /^(count|inputs|outputs|scanned|stacked|batch|contract|length|size)$/ && function_name != "tn_slice_axis")
        key = "count"
    if (function_name == "tn_graph_free_text" && name == "text" || function_name == "tn_graph_free_map" && name == "map")
        key = "nothing" # only what the library made
    if (name == "format") key = "format"
    if (function_name == "tn_graph_destroy" && name != "") key = "graph_to_destroy"
    return key
}
{
    line = $0
    gsub(/[ \t]+/, " ", line)
    sub(/^[ }]+/, "", line)
    if (!match(line, /tn_[a-z0-9_]+ ?\(/)) next
    result = substr(line, 1, RSTART - 1)
    function_name = substr(line, RSTART, RLENGTH); gsub(/[ (]/, "", function_name)
    list = substr(line, RSTART + RLENGTH); sub(/\) ?$/, "", list)
    count = list == "void" ? 0 : split(list, parameter, /, ?/)
    args = ""; sizes = "1"
    for (i = 1; i <= count; i++) {
        type = parameter[i]
        if (type ~ /^ ?\.\.\.$/) { count--; break }
        match(type, /[a-z_0-9]+$/)
        name = substr(type, RSTART); type = substr(type, 1, RSTART - 1)
        key = key_of(type, name)
        args = args (i > 1 ? ", " : "") "pick_" key "(f, p[" i - 1 "])"
        sizes = sizes ", N_" key
    }
    result_key = key_of(result, "")
    const_graph = list ~ /^const tn_graph/ ? "true" : "false"
    n++
    printf "static bool call_%d(fixture *f, const int *p) {\n    (void)p;\n", n
    if (result_key == "void") printf "    (%s)(%s);\n    return judge_void(f);\n}\n", function_name, args
    else printf "    return judge_%s(f, \"%s\", %s, (%s)(%s));\n}\n", result_key, function_name, const_graph, function_name, args
    table = table sprintf("    {\"%s\", call_%d, %d, {%s}},\n", function_name, n, count, sizes)
}
END { printf "static const function functions[] = {\n%s};\n", table }

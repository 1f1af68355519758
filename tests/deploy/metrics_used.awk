# Which metrics and labels do expressions use, and does the program have them?
#
# Files, told apart by the variable `of` before each: of=seen, what /metrics shows; of=literal, names that
# are in the program, for those that show only when something happens; of=used, a line "WHERE<TAB>EXPR".
# Labels are checked where every metric of an expression was seen. Prints what is wrong.
function family(name) {
    if (name in exists) return name
    sub(/_(bucket|sum|count)$/, "", name)
    return name in exists ? name : ""
}
of == "seen" && /^# TYPE / { exists[$3] = 1; next }
of == "seen" && /^#/ { next }
of == "seen" {
    name = $0
    sub(/[{ ].*/, "", name)
    name = family(name)
    shown[name] = 1
    if (match($0, /\{.*\} /)) {
        text = substr($0, RSTART + 1, RLENGTH - 3)
        gsub(/\\"/, "", text)
        gsub(/"[^"]*"/, "", text)
        count = split(text, part, ",")
        for (i = 1; i <= count; i++) {
            sub(/=.*/, "", part[i])
            has[name, part[i]] = 1
        }
    }
    next
}
of == "literal" { exists[$0] = 1; next }
of == "used" {
    where = $0
    sub(/\t.*/, "", where)
    expr = $0
    sub(/^[^\t]*\t/, "", expr)
    expressions++
    rest = expr
    all_shown = 1
    names = 0
    while (match(rest, /(karpenter|karve|operator|kubelet|leader_election|rest_client|prober|nf)_[a-z0-9_]+/)) {
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        base = family(name)
        if (base == "") print where ": the program has no metric " name
        metric[++names] = base
        if (!(base in shown)) all_shown = 0
        total[base] = 1
    }
    if (!names) print where ": no metric of ours in " expr
    if (!all_shown) next
    # Labels of selectors, by (...) and on (...).
    labels = ""
    rest = expr
    while (match(rest, /(by|on) \([a-z_, ]*\)/)) {
        list = substr(rest, RSTART + 4, RLENGTH - 5)
        labels = labels "," list
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = expr
    while (match(rest, /\{[^}]*\}/)) {
        list = substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
        gsub(/(!=|!~|=~|=)"[^"]*"/, "", list)
        labels = labels "," list
    }
    count = split(labels, label, ",")
    for (i = 1; i <= count; i++) {
        gsub(/ /, "", label[i])
        if (label[i] ~ /^(|le|job|instance|cluster)$/) continue
        found = 0
        for (j = 1; j <= names; j++) found += (metric[j], label[i]) in has
        if (!found) print where ": no metric in it has the label " label[i]
    }
}
END {
    for (name in total) kinds++
    print "# " expressions " expressions use " kinds " metrics" >"/dev/stderr"
}

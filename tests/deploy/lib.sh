# shellcheck shell=sh
# Sourced by the tests of deploy/: TAP, tools that may be missing, and a folder to write to. The working
# directory is the root of the sources.
set -u
number=0 failed=0
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT INT TERM

result() { # GOOD NAME: 0 is good; what went wrong is in $dir/said, if anything
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        [ ! -s "$dir/said" ] || sed 's/^/# /' "$dir/said" | head -n 40
        failed=1
    fi
    : >"$dir/said"
}

skip() { # NAME WHY
    number=$((number + 1))
    echo "# SKIP $2"
    echo "ok $number - $1"
}

# Where a tool is: $HELM, on the path, or fetched before. Nothing is fetched here.
tool() { # NAME
    wanted=$(eval "echo \${$(echo "$1" | tr 'a-z-' 'A-Z_'):-}")
    cache=${KARVE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/karve}
    for path in "$wanted" "$(command -v "$1")" "$cache/tools/$1" "$cache/promtool/usr/bin/$1"; do
        [ -n "$path" ] && [ -x "$path" ] && echo "$path" && return
    done
    return 1
}

# Complains if they differ.
same() { # WHAT WANT GOT
    [ "$2" = "$3" ] || printf '%s: expected %s, found %s\n' "$1" "$2" "$3" >>"$dir/said"
}

quiet() { [ ! -s "$dir/said" ]; } # nothing was found wrong

finish() {
    echo "1..$number"
    exit $failed
}

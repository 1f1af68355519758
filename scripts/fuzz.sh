#!/bin/sh
# Fuzz every target of a build folder, one per processor at a time: scripts/fuzz.sh BUILD SECONDS [TARGET...]
#
# Each target starts from its saved corpus in fuzz/NAME. What it finds of interest goes to a scratch
# folder, and an input that breaks something to the build folder, so that the tree stays as it is.
set -eu
build=$1
seconds=$2
shift 2

if [ "${1:-}" = --one ]; then # PROGRAM, as called below
    program=$2
    name=${program##*/fuzz_}
    found=$(mktemp -d)
    trap 'rm -rf "$found"' EXIT
    log=$build/fuzz_$name.log
    if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$build/crash-$name-" "$found" "fuzz/$name" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "fuzz $name seconds=$seconds runs=$runs ok"
    else
        echo "fuzz $name FAILED: $log"
        tail -n 30 "$log"
    fi
    exit 0
fi

programs=$(mktemp)
said=$(mktemp)
trap 'rm -f "$programs" "$said"' EXIT
for program in "$build"/fuzz_*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    name=${program##*/fuzz_}
    if [ $# -gt 0 ]; then
        case " $* " in *" $name "*) ;; *) continue ;; esac
    fi
    printf '%s\0' "$program" >>"$programs"
done
xargs -0 -r -n 1 -P "$(nproc)" "$0" "$build" "$seconds" --one <"$programs" | tee "$said"

passed=$(grep -c '^fuzz .* ok$' "$said" || true)
failed=$(grep -c '^fuzz .* FAILED: ' "$said" || true)
echo "$passed fuzz targets passed, $failed failed"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]

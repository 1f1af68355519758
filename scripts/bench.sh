#!/bin/sh
# Run every benchmark of a build folder: scripts/bench.sh BUILD [--small]
set -eu
build=$1
shift

# What making a plan takes in instructions, which other machines count too. Needs valgrind.
count_instructions() { # PODS...
    command -v valgrind >/dev/null 2>&1 || return 0
    for pods; do
        valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=plan_build \
            "$build/bench/solve" --only diverse --size "$pods" 2>&1 >/dev/null |
            awk -v pods="$pods" '/Collected *:/ {
                printf "solve instructions pods=%d count=%s per_pod=%.0f\n", pods, $NF, $NF / pods
            }'
    done
}

for program in "$build"/bench/*; do
    [ "${program##*/} ${1:-}" != 'kube --small' ] || continue # a part of `make e2e`, like kube-scale
    if [ -f "$program" ] && [ -x "$program" ]; then
        "$program" "$@"
        [ "${program##*/}" != solve ] || [ "${1:-}" = --small ] || count_instructions 1000 5000 20000
    fi
done
[ "${1:-}" = --small ] || "$build/tests/kube-scale" "$@"

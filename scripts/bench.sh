#!/bin/sh
# Run every benchmark of a build folder: scripts/bench.sh BUILD [--small]
set -eu
build=$1
shift
for program in "$build"/bench/*; do
    if [ -f "$program" ] && [ -x "$program" ]; then
        "$program" "$@"
    fi
done

#!/bin/sh
# Exports CRDs and samples with the build in $1 and asks an API server's code about them.
set -eu

build=$(cd "${1:?usage: run.sh BUILD_FOLDER}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT INT TERM

ninja -C "$build" tests/crdcheck_export >/dev/null
"$build/tests/crdcheck_export" "$out"
cd "$here"
go run . "$out"

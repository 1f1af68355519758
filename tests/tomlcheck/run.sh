#!/bin/sh
# Runs the public TOML test suite against the TOML tools of the build in $1.
set -eu

build=$(cd "${1:?usage: run.sh BUILD_FOLDER}" && pwd)
cd "$(dirname "$0")"

ninja -C "$build" tests/toml-decode tests/toml-encode >/dev/null
go tool toml-test test -toml 1.0 -decoder "$build/tests/toml-decode" -encoder "$build/tests/toml-encode"

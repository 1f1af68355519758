#!/bin/sh
# What only other people's code can tell: scripts/e2e.sh BUILD
#
# Today: the CRDs and sample objects against the API server's own validation (tests/crdcheck), and
# TOML against its public test suite (tests/tomlcheck). Needs Go and a module proxy; without them it
# says so and does not pass.
set -eu
build=$1
if ! command -v go >/dev/null 2>&1; then
    echo 'e2e: not run: it needs Go, to build the code that it compares with' >&2
    exit 3
fi
tests/crdcheck/run.sh "$build"
tests/tomlcheck/run.sh "$build"

#!/bin/sh
# What only other people's code can tell: scripts/e2e.sh BUILD
#
# The CRDs and sample objects against the API server's own validation (tests/crdcheck), TOML against its
# public test suite (tests/tomlcheck), and everything that talks to Kubernetes against a real control
# plane (tests/kube), which is built once and kept. Needs Go and a module proxy; without them it says so
# and does not pass.
set -eu
build=$1
if ! command -v go >/dev/null 2>&1; then
    echo 'e2e: not run: it needs Go, to build the code that it compares with' >&2
    exit 3
fi
tests/crdcheck/run.sh "$build"
tests/tomlcheck/run.sh "$build"
tests/kube/kube.sh fetch >/dev/null
scripts/test.sh "$build" --suite kube

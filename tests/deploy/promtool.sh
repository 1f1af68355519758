#!/bin/sh
# Fetch promtool, which checks Prometheus rules, into the cache; prints where it is. From Debian's package,
# unpacked and not installed. Exit status 77: it cannot be had, and why.
set -eu
cache=${KARVE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/karve}/promtool
tool=$cache/usr/bin/promtool
if ! "$tool" --version >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || { echo 'promtool.sh: no apt-get to fetch it with' >&2; exit 77; }
    mkdir -p "$(dirname "$cache")"
    new=$(mktemp -d "$cache.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    (cd "$new" && apt-get -qq -o APT::Sandbox::User=root download prometheus) >&2 || { echo 'promtool.sh: cannot download prometheus' >&2; exit 77; }
    dpkg -x "$new"/prometheus_*.deb "$new/root"
    rm -rf "$cache"
    mv "$new/root" "$cache"
fi
echo "$tool"

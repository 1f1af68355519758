#!/bin/sh
# Install the packages that a task needs, by name: scripts/deps.sh build|check|fuzz|lint|coverage
#
# Says nothing when all are there. Installs when it may (root, or sudo without a password); otherwise
# prints the one command to run and stops. Other systems than Debian's family: says what is missing.
set -eu

task=${1:-build}
build='gcc libc6-dev meson ninja-build pkg-config libyyjson-dev libyaml-dev libpcre2-dev libmicrohttpd-dev libnghttp2-dev libcurl4-openssl-dev libprotobuf-c-dev protobuf-c-compiler libcmocka-dev libgnutls28-dev'
case $task in
build) packages=$build ;;
check)
    packages="$build jq chromium curl openssl" # scripts for nodes are run, pages opened, probes asked
    # Containers are run as well, by root: tests/node/containerd.sh fetches the runtime itself.
    [ "$(id -u)" != 0 ] || packages="$packages iproute2"
    ;;
fuzz) packages="$build clang llvm" ;;
lint) packages="$build git clang-format clang-tidy" ;;
coverage) packages="$build gcovr jq chromium curl" ;;
*)
    echo "deps.sh: unknown task '$task'; expected build, check, fuzz, lint or coverage" >&2
    exit 2
    ;;
esac

installed() {
    case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) in
    'install ok installed') return 0 ;;
    esac
    # Provided by another package (pkg-config by pkgconf).
    [ "$1" = pkg-config ] && command -v pkg-config >/dev/null 2>&1
}

# The libFuzzer and sanitizer runtimes are in a package named after clang's version.
clang_runtime() {
    version=$(apt-cache depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-\([0-9][0-9]*\)$/\1/p' | head -n 1)
    [ -z "$version" ] || echo "libclang-rt-$version-dev"
}

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    missing=
    for tool in cc meson ninja pkg-config protoc-c; do
        command -v $tool >/dev/null 2>&1 || missing="$missing $tool"
    done
    for library in yyjson yaml-0.1 libpcre2-8 libmicrohttpd libnghttp2 libcurl libprotobuf-c cmocka gnutls; do
        pkg-config --exists $library 2>/dev/null || missing="$missing $library"
    done
    [ -z "$missing" ] && exit 0
    echo "karve needs these, and this is not a Debian system to install them on:$missing" >&2
    exit 3
fi

missing=
for package in $packages; do
    installed "$package" || missing="$missing $package"
done
if [ "$task" = fuzz ]; then
    runtime=$(clang_runtime)
    if [ -z "$runtime" ] || ! installed "$runtime"; then
        missing="$missing libclang-rt"
    fi
fi
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    root='sudo -n'
else
    echo "karve needs packages that are not installed:$missing" >&2
    echo "Run this once, then try again:" >&2
    echo "    sudo $0 $task" >&2
    exit 3
fi

log=$(mktemp)
scratch=
trap 'rm -rf "$log" "$scratch"' EXIT

# Quiet, unless it fails.
apt() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1 && return
    cat "$log" >&2
    echo "karve: apt-get $1 failed" >&2
    return 3
}

candidate() {
    version=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
    [ -n "$version" ] && [ "$version" != '(none)' ]
}

# Debian 12 has no yyjson. Debian 13's two packages need only libc 2.14 and install as they are.
yyjson_from_next_release() {
    scratch=$(mktemp -d)
    chmod 755 "$scratch"
    "$(dirname "$0")/next-release.sh" "$scratch" libyyjson0 libyyjson-dev || exit 3
    apt install --no-install-recommends "$scratch"/*.deb
}

echo "karve: installing$missing (this takes a minute)" >&2
apt update || echo 'karve: going on with the package lists there are' >&2 # some unrelated source may be down
ordinary=
for package in $missing; do
    case $package in
    libclang-rt) package=$(clang_runtime) ;;
    libyyjson-dev) candidate $package || { yyjson_wanted=yes; continue; } ;;
    esac
    ordinary="$ordinary $package"
done
# shellcheck disable=SC2086
[ -z "$ordinary" ] || apt install --no-install-recommends $ordinary
[ -z "${yyjson_wanted:-}" ] || yyjson_from_next_release

#!/bin/sh
# A real OCI registry for tests: Debian's docker-registry on loopback, without TLS.
#
#   registry.sh fetch                 get the program (once); prints its path
#   registry.sh start DIR [USER:HASH] start it with its data in DIR, a folder of its own, and wait until it answers;
#                                     prints the port. With a bcrypt hash (`htpasswd -B`) it asks for that user
#   registry.sh halt DIR              end it, and keep what it has
#   registry.sh resume DIR            start it again, on the same port
#   registry.sh stop DIR              end it and remove DIR
#
# It lives no longer than its owner: the process named by KARVE_OWNER, else the one that ran `start`.
#
# By hand: KARVE_OWNER=1 tests/registry/registry.sh start /tmp/r1, and `stop` when done.
#
# The program is the one on PATH, else it comes from Debian's package, unpacked into a cache and not installed: its
# installation would start a service. Exit status 3: it cannot be had on this machine, and why.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${KARVE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/karve}
cached=$cache/docker-registry

say() { echo "registry.sh: $*" >&2; }
fail() {
    say "$*"
    exit 1
}
unable() {
    say "$*"
    exit 3
}

fetch() { # prints the path
    if command -v docker-registry >/dev/null 2>&1; then
        command -v docker-registry
        return
    fi
    if ! "$cached/usr/bin/docker-registry" --version >/dev/null 2>&1; then
        mkdir -p "$cache"
        (
            flock 9
            "$cached/usr/bin/docker-registry" --version >/dev/null 2>&1 || fetch_into_cache >&2
        ) 9>"$cached.lock" || exit $?
    fi
    echo "$cached/usr/bin/docker-registry"
}

download() (cd "$1" && apt-get -qq -o APT::Sandbox::User=root download docker-registry)

fetch_into_cache() { # a new folder is filled and then renamed, so that a half-filled one is never used
    for tool in apt-get dpkg; do
        command -v $tool >/dev/null 2>&1 || unable "no $tool to fetch docker-registry with"
    done
    new=$(mktemp -d "$cached.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    say 'fetching docker-registry'
    download "$new" || { apt-get -qq update && download "$new"; } || unable 'cannot download docker-registry'
    dpkg -x "$new"/docker-registry_*.deb "$new/root"
    "$new/root/usr/bin/docker-registry" --version >/dev/null 2>&1 || unable 'what was downloaded does not run here'
    rm -rf "$cached"
    mv "$new/root" "$cached"
}

process_age() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; } # tells a pid's second use

lives() { # FILE with pid and age
    [ -f "$1" ] && read -r pid age <"$1" && [ -n "$age" ] && [ "$(process_age "$pid")" = "$age" ] &&
        [ "$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f1)" != Z ]
}

end() {
    lives "$dir/pid" || return 0
    read -r pid age <"$dir/pid"
    kill "$pid" 2>/dev/null || return 0
    tries=0
    while lives "$dir/pid"; do
        tries=$((tries + 1))
        [ $tries -ne 250 ] || kill -KILL "$pid" 2>/dev/null || true
        [ $tries -lt 1500 ] || fail "$dir: the registry does not end"
        sleep 0.02
    done
}

configure() { # PORT
    cat <<Y
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $dir/data}, delete: {enabled: true}}
http: {addr: "127.0.0.1:$1"}
Y
    [ ! -f "$dir/htpasswd" ] || echo "auth: {htpasswd: {realm: test, path: $dir/htpasswd}}"
}

answers() { # PORT: and it is ours, whose process lives
    lives "$dir/pid" && curl -s -m 5 --noproxy '*' -o "$dir/answer" "http://127.0.0.1:$1/v2/" && lives "$dir/pid"
}

launch() { # PORT: false if it ended
    configure "$1" >"$dir/config.yml"
    setsid "$program" serve "$dir/config.yml" </dev/null >>"$dir/log" 2>&1 &
    echo "$! $(process_age $!)" >"$dir/pid"
    tries=0
    until answers "$1"; do
        lives "$dir/pid" || return 1
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || fail "the registry does not answer: $(tail -n 3 "$dir/log")"
        sleep 0.02
    done
}

guard() { # stops it when its owner is gone
    owner=${KARVE_OWNER:-$PPID}
    owner_age=$(process_age "$owner")
    # shellcheck disable=SC2016
    setsid sh -c '
        while [ "$(sed "s/.*) //" "/proc/$1/stat" 2>/dev/null | cut -d" " -f20)" = "$2" ]; do
            [ -f "$3/pid" ] || exit 0
            sleep 1
        done
        exec "$4" stop "$3"' guard "$owner" "$owner_age" "$dir" "$here/registry.sh" \
        </dev/null >/dev/null 2>&1 &
}

start() { # DIR [USER:HASH]
    dir=$1
    program=$(fetch) || exit $?
    command -v curl >/dev/null 2>&1 || unable 'no curl to see with whether it answers'
    [ ! -e "$dir/pid" ] || fail "$dir: there is one already"
    mkdir -p "$dir/data"
    [ -z "${2:-}" ] || echo "$2" >"$dir/htpasswd"
    tries=0
    while :; do
        port=$("$here/../kube/kube.sh" free-port)
        launch "$port" && break
        tries=$((tries + 1)) # somebody took the port in between
        [ $tries -lt 5 ] || fail "the registry does not start: $(tail -n 3 "$dir/log")"
    done
    guard
    echo "$port"
}

open_registry() { # DIR
    dir=$1
    [ -f "$dir/config.yml" ] || fail "$dir: no registry here"
}

resume() { # DIR
    open_registry "$1"
    program=$(fetch) || exit $?
    port=$(sed -n 's/.*addr: "127.0.0.1:\([0-9]*\)".*/\1/p' "$dir/config.yml")
    launch "$port" || fail "the registry does not come back: $(tail -n 3 "$dir/log")"
}

stop() { # DIR
    dir=$1
    [ -d "$dir" ] || return 0
    open_registry "$1"
    end
    rm -rf "$dir"
}

case ${1:-} in
fetch) fetch ;;
start) [ $# -ge 2 ] && shift && start "$@" ;;
halt) [ $# -eq 2 ] && open_registry "$2" && end ;;
resume) [ $# -eq 2 ] && resume "$2" ;;
stop) [ $# -eq 2 ] && stop "$2" ;;
*) fail "unknown task '${1:-}': fetch, start DIR [USER:HASH], halt DIR, resume DIR or stop DIR" ;;
esac

#!/bin/sh
# A real containerd for tests, from Debian packages that are unpacked, not installed.
#
#   containerd.sh fetch [CACHE]  get the packages (once); prints the folder they are in
#   containerd.sh start DIR      set up an instance in DIR, a folder with a short path, and wait until it answers
#   containerd.sh env DIR        SOCKET=... and the like, one a line
#   containerd.sh kill9 DIR      kill containerd alone, as a crash would; containers go on running
#   containerd.sh restart DIR    start it again, after a stop in good order if it runs; containers go on running
#   containerd.sh stop DIR       end everything that runs in the instance, and remove all that it made, and DIR
#   containerd.sh sweep          stop the instances whose owners have died; `start` does this first
#   containerd.sh members DIR    the pids of containerd, its shims, and what runs in its containers
#   containerd.sh ctr DIR ...    its command line client, in the namespace of the CRI
#
# By hand: KARVE_OWNER=1 tests/node/containerd.sh start /tmp/c1, and `stop` when done. An instance lives
# no longer than its owner: the process named by KARVE_OWNER, else the one that ran `start`.
#
# Images: karve.test/busybox:1, karve.test/pause:1 and karve.test/tools:1, which is busybox and tools.c.
# They are made here; no registry is ever contacted. Pods get addresses on a bridge of the instance's own,
# so that instances can run side by side. Exit status 77: this machine cannot run it, and why.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
slots=/run/karve-test # one link per instance: its number makes bridge and addresses unique
cache_default=${KARVE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/karve}/containerd-1.7

say() { echo "containerd.sh: $*" >&2; }
fail() {
    say "$*"
    exit 1
}
unable() {
    say "$*"
    exit 77
}

# --- packages ---

# Every program runs here: a home folder may be shared with another release, or half a copy.
whole() {
    "$1/root/usr/bin/containerd" --version 2>/dev/null | grep -q ' 1\.[7-9]\| v\{0,1\}2\.' &&
        "$1/root/usr/bin/ctr" --version >/dev/null 2>&1 &&
        "$1/root/usr/sbin/runc" --version >/dev/null 2>&1 &&
        [ -x "$1/root/usr/bin/containerd-shim-runc-v2" ] && [ -x "$1/root/usr/lib/cni/bridge" ] &&
        [ -x "$1/root/usr/lib/cni/host-local" ] && busybox_of "$1" >/dev/null
}

busybox_of() {
    for path in "$1/root/bin/busybox" "$1/root/usr/bin/busybox"; do
        [ -x "$path" ] && "$path" true && echo "$path" && return
    done
    return 1
}

download() {
    (cd "$1" && shift && apt-get -qq -o APT::Sandbox::User=root download "$@") >&2
}

fetch() { # CACHE: a new folder is filled and then renamed, so that a half-filled one is never used
    cache=$1
    if ! whole "$cache"; then
        mkdir -p "$(dirname "$cache")"
        command -v apt-get >/dev/null 2>&1 || unable 'no apt-get to fetch containerd with'
        (
            flock 9
            whole "$cache" || fetch_into "$cache" >&2
        ) 9>"$cache.lock" || exit 77
    fi
    echo "$cache"
}

fetch_into() {
    new=$(mktemp -d "$1.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    chmod 755 "$new"
    mkdir "$new/debs"
    download "$new/debs" runc busybox-static containernetworking-plugins || {
        [ "$(id -u)" = 0 ] && apt-get -qq update >&2 # a fresh system has no package lists
        download "$new/debs" runc busybox-static containernetworking-plugins ||
            unable 'cannot download runc, busybox-static and containernetworking-plugins'
    }
    # The event stream came with 1.7. Debian 12 has 1.6; the programs of Debian 13 need only libc 2.34.
    case $(apt-cache policy containerd | sed -n 's/^ *Candidate: //p') in
    1.6*) "$here/../../scripts/next-release.sh" "$new/debs" containerd || unable 'cannot download containerd 1.7' ;;
    *) download "$new/debs" containerd || unable 'cannot download containerd' ;;
    esac
    for deb in "$new"/debs/*.deb; do
        dpkg -x "$deb" "$new/root"
    done
    rm -rf "$new/debs"
    whole "$new" || fail 'the packages do not have what is needed, or it does not run here'
    rm -rf "$1"
    mv "$new" "$1"
}

# --- what an instance is made of ---

open_instance() { # DIR, of an instance that was started
    dir=$1
    [ -f "$dir/slot" ] || fail "$dir: no instance here"
    slot=$(cat "$dir/slot") packages=$(cat "$dir/packages")
    names
}

names() {
    bridge=karve-t$slot
    subnet=10.211.$slot.0/24
    socket=$dir/ctd/containerd.sock
    bundles=$dir/ctd/state/io.containerd.runtime.v2.task/k8s.io
}

client() { "$packages/root/usr/bin/ctr" -a "$socket" -n k8s.io "$@"; }

process_age() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; } # tells a pid's second use

owner_lives() { # DIR
    [ -f "$1/owner" ] && read -r pid age <"$1/owner" && [ -n "$age" ] && [ "$(process_age "$pid")" = "$age" ]
}

containerd_pid() {
    pid=$(cat "$dir/containerd.pid" 2>/dev/null) || return 1
    # One that is dead and not waited for has no command line; another process has another.
    grep -qsF "$dir/config.toml" "/proc/$pid/cmdline" || return 1
    echo "$pid"
}

cgroups() { # of its containers, in every hierarchy
    paths=$(sed -n 's|.*"cgroupsPath":"\(/[^"/]*/[^"]*\)".*|\1|p' "$bundles"/*/config.json 2>/dev/null || true)
    for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
        for path in $paths "/$bridge"; do
            [ ! -d "$hierarchy$path" ] || echo "$hierarchy$path"
        done
    done
}

# The pids of an instance, which `stop` kills, so each must be proven ours: a program of the packages
# that names the folder; a process whose root is in the folder; or one in a cgroup of its containers. The
# last two count only in a mount namespace other than ours: nothing outside of containers is touched.
members() {
    ours=$(readlink /proc/self/ns/mnt)
    {
        grep -lsF "$dir/" /proc/[0-9]*/cmdline | while read -r file; do
            pid=${file#/proc/} pid=${pid%/cmdline}
            case $(readlink "/proc/$pid/exe") in
            "$packages"/root/*) echo "$pid" ;;
            esac
        done
        {
            fields='^[0-9]+ [0-9]+ [0-9]+:[0-9]+' inside="/$(basename "$dir")/ctd/" # then: root, mount point
            grep -lsE "$fields [^ ]+ / .*$inside|$fields [^ ]*${inside}[^ ]* / " /proc/[0-9]*/mountinfo |
                sed 's|/proc/\([0-9]*\)/.*|\1|'
            for group in $(cgroups); do
                find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null
            done
        } 2>/dev/null | sort -un | while read -r pid; do
            theirs=$(readlink "/proc/$pid/ns/mnt") || continue
            [ "$pid" -le 1 ] || [ "$theirs" = "$ours" ] || echo "$pid"
        done
    } | sort -un
}

mounts() { awk -v dir="$dir/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | sort -r; }

# --- start ---

able() {
    [ "$(id -u)" = 0 ] || unable 'running containers needs root'
    command -v ip >/dev/null 2>&1 || unable 'ip is missing (package iproute2)'
    command -v "${CC:-cc}" >/dev/null 2>&1 || unable 'a C compiler is missing'
    unshare -m -n -p -f true 2>/dev/null || unable 'namespaces cannot be made here'
    unshare -m mount -t tmpfs none /mnt 2>/dev/null || unable 'nothing can be mounted here'
    made=
    for hierarchy in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        mkdir "$hierarchy/karve-able-$$" 2>/dev/null && rmdir "$hierarchy/karve-able-$$" && made=yes && break
    done
    [ -n "$made" ] || unable 'cgroups cannot be made here'
    mkdir -p $slots
}

# Where containers without a cgroup_parent, and those of the node agent, have their cgroups.
shared_cgroups() {
    for path in /sys/fs/cgroup/k8s.io /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/k8s.io /sys/fs/cgroup/*/kubepods; do
        [ ! -d "$path" ] || echo "$path"
    done
}

take_slot() { # under the lock
    slot=0
    if ! ls $slots/[0-9]* >/dev/null 2>&1; then # the first: what to put back when the last one goes
        cat /proc/sys/net/ipv4/ip_forward >$slots/ip_forward
        for path in /run/containerd /var/lib/cni $(shared_cgroups); do
            [ ! -e "$path" ] || echo "$path"
        done >$slots/existed
    fi
    until ln -sT "$dir" $slots/$slot 2>/dev/null; do
        slot=$((slot + 1))
        [ $slot -lt 256 ] || fail "$slots: 256 instances run already"
    done
}

start() {
    case $1 in
    *[!A-Za-z0-9/_-]* | */) fail "$1: a path of letters, digits, / _ and - is needed" ;;
    /*) dir=$1 ;;
    *) fail "$1: not an absolute path" ;;
    esac
    [ ${#dir} -le 70 ] || fail "$dir: too long a path; sockets in it could not be opened"
    if [ -f "$dir/slot" ]; then
        open_instance "$dir"
        containerd_pid >/dev/null || boot
        return
    fi
    able
    packages=$(fetch "$cache_default") || exit $?
    sweep
    mkdir -p "$dir"
    owner=${KARVE_OWNER:-$PPID}
    echo "$owner $(process_age "$owner")" >"$dir/owner"
    echo "$packages" >"$dir/packages"
    exec 9>$slots/lock
    flock 9
    take_slot
    exec 9>&-
    echo $slot >"$dir/slot"
    names
    configure
    images
    boot
    client images import --snapshotter "$snapshotter" "$dir/images.tar" >>"$dir/log" 2>&1 ||
        fail "images cannot be imported: $(tail -n 3 "$dir/log")"
    rm "$dir/images.tar"
}

configure() {
    snapshotter=overlayfs
    case $(stat -f -c %T "$dir") in
    overlay*) snapshotter=native ;; # an overlay cannot be made on an overlay
    esac
    mkdir -p "$dir/cni" "$dir/logs"
    cat >"$dir/config.toml" <<E
version = 2
root = "$dir/ctd/root"
state = "$dir/ctd/state"
oom_score = 0
[grpc]
  address = "$socket"
[ttrpc]
  address = "$socket.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "$dir/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "karve.test/pause:1"
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_unprivileged_ports = false
  enable_unprivileged_icmp = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$packages/root/usr/lib/cni"
    conf_dir = "$dir/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$packages/root/usr/sbin/runc"
        Root = "$dir/runc"
        SystemdCgroup = false
E
    # Without ipMasq no iptables is needed: pods reach the host and one another, nothing else.
    cat >"$dir/cni/karve.conflist" <<E
{ "cniVersion": "0.4.0", "name": "$bridge", "plugins": [
  { "type": "bridge", "bridge": "$bridge", "isGateway": true, "ipMasq": false,
    "ipam": { "type": "host-local", "dataDir": "$dir/cni-ipam",
              "ranges": [[{ "subnet": "$subnet" }]], "routes": [{ "dst": "0.0.0.0/0" }] } } ] }
E
}

layer() { # FOLDER: into the archive being made; prints the digest
    tar -C "$1" --numeric-owner --owner=0 --group=0 --mtime=@0 --sort=name -cf "$w/layer.tar" .
    digest=$(sha256sum "$w/layer.tar" | cut -d' ' -f1)
    mkdir "$w/a/$digest"
    mv "$w/layer.tar" "$w/a/$digest/layer.tar"
    echo "$digest"
}

image() { # NAME COMMAND DIGEST...: prints its entry of the manifest
    name=$1 command=$2
    shift 2
    diffs=$(printf ',"sha256:%s"' "$@") files=$(printf ',"%s/layer.tar"' "$@")
    printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":%s},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
        "$(dpkg --print-architecture)" "$command" "${diffs#,}" >"$w/config.json"
    digest=$(sha256sum "$w/config.json" | cut -d' ' -f1)
    mv "$w/config.json" "$w/a/$digest.json"
    printf '{"Config":"%s.json","RepoTags":["%s"],"Layers":[%s]}' "$digest" "$name" "${files#,}"
}

images() { # one archive with all three
    w=$dir/image
    mkdir -p "$w/a" "$w/busybox/bin" "$w/busybox/tmp" "$w/busybox/etc" "$w/busybox/proc" "$w/busybox/sys" \
        "$w/busybox/dev" "$w/tools/bin"
    chmod 1777 "$w/busybox/tmp"
    cp "$(busybox_of "$packages")" "$w/busybox/bin/busybox"
    for applet in $("$w/busybox/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -s busybox "$w/busybox/bin/$applet"
    done
    echo 'root:x:0:0:root:/:/bin/sh' >"$w/busybox/etc/passwd"
    "${CC:-cc}" -std=gnu11 -O1 -static -o "$w/tools/bin/tools" "$here/tools.c" || fail 'tools.c does not compile'
    busybox=$(layer "$w/busybox") tools=$(layer "$w/tools")
    printf '[%s,%s,%s]' "$(image karve.test/busybox:1 '["/bin/sh"]' "$busybox")" \
        "$(image karve.test/pause:1 '["/bin/sleep","2147483647"]' "$busybox")" \
        "$(image karve.test/tools:1 '["/bin/tools"]' "$busybox" "$tools")" >"$w/a/manifest.json"
    tar -C "$w/a" --mtime=@0 -cf "$dir/images.tar" .
    rm -rf "$w"
}

boot() { # and wait until it answers
    PATH=$packages/root/usr/bin:$packages/root/usr/sbin:$PATH setsid "$packages/root/usr/bin/containerd" \
        -c "$dir/config.toml" </dev/null >>"$dir/log" 2>&1 9>&- &
    echo $! >"$dir/containerd.pid"
    tries=0
    until client --connect-timeout 1s version >/dev/null 2>&1; do
        kill -0 "$(cat "$dir/containerd.pid")" 2>/dev/null || fail "containerd ended: $(tail -n 3 "$dir/log")"
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "containerd does not answer: $(tail -n 3 "$dir/log")"
        sleep 0.05
    done
}

# --- end ---

end_containerd() { # SIGNAL
    if pid=$(containerd_pid); then
        kill -"$1" "$pid" 2>/dev/null || true
        while containerd_pid >/dev/null; do
            sleep 0.02
        done
    fi
}

# By force and from outside, not through CRI: it must work as well when containerd is dead, or hangs on
# a shim that a test froze, and what it is about to lose is thrown away in any case.
stop() {
    dir=$1
    if [ ! -f "$dir/slot" ]; then # nothing was started, or the slot's number was not even written
        for link in "$slots"/[0-9]*; do
            [ "$(readlink "$link")" != "$dir" ] || rm -f "$link"
        done
        rm -rf "$dir"
        return
    fi
    open_instance "$dir"
    groups=$(cgroups)
    sockets=$(sed -n 's|^unix://||p' "$bundles"/*/address 2>/dev/null || true)
    tries=0
    while pids=$(members) && [ -n "$pids" ]; do
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null || true # one that is stopped dies of it too
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "$dir: these processes do not end: $pids"
        sleep 0.05
    done
    mounts | while read -r mount; do
        umount "$mount" 2>/dev/null || umount -l "$mount" || true
    done
    ip link del "$bridge" 2>/dev/null || true
    # shellcheck disable=SC2086
    rm -f $sockets /var/lib/cni/results/"$bridge"-*
    for group in $groups; do
        remove_cgroup "$group"
    done
    left=$(mounts; cgroups; ip -o link show "$bridge" 2>/dev/null || true)
    [ -z "$left" ] || fail "$dir: left behind: $left"
    rm -rf "$dir"
    exec 9>$slots/lock
    flock 9
    rm -f $slots/"$slot"
    ls $slots/[0-9]* >/dev/null 2>&1 || last_goes
    exec 9>&-
}

remove_cgroup() { # PATH: processes that died leave it a moment later
    tries=0
    while [ -d "$1" ] && ! find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || return 0
        sleep 0.02
    done
}

last_goes() { # what all instances share is as it was before the first
    cat $slots/ip_forward >/proc/sys/net/ipv4/ip_forward 2>/dev/null || true
    for path in /run/containerd /var/lib/cni $(shared_cgroups); do
        grep -qxF "$path" $slots/existed || find "$path" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    rm -f $slots/ip_forward $slots/existed
}

sweep() {
    for link in "$slots"/[0-9]*; do
        old=$(readlink "$link") || continue
        owner_lives "$old" || ("$0" stop "$old" >&2) || true
    done
}

# --- the door ---

[ $# -ge 1 ] || fail 'what to do? See the top of this file'
task=$1
shift
case $task in
fetch | sweep) ;;
*) [ $# -ge 1 ] || fail "$task: which folder?" ;;
esac
case $task in
fetch) fetch "${1:-$cache_default}" ;;
start) start "$1" ;;
env)
    open_instance "$1"
    echo "SOCKET=$socket"
    echo "SUBNET=$subnet"
    echo "BRIDGE=$bridge"
    echo "CGROUP=/$bridge" # a cgroup_parent below it is removed by stop
    echo "LOGS=$dir/logs"
    echo "PID=$(containerd_pid || true)"
    ;;
kill9)
    open_instance "$1"
    end_containerd KILL
    ;;
restart)
    open_instance "$1"
    end_containerd TERM
    boot
    ;;
stop) stop "$1" ;;
sweep) sweep ;;
members)
    open_instance "$1"
    members
    ;;
ctr)
    open_instance "$1"
    shift
    client "$@"
    ;;
*) fail "unknown task '$task'; see the top of this file" ;;
esac

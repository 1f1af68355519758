#!/bin/sh
# A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback.
#
#   kube.sh fetch                get the programs (once); prints the folder they are in
#   kube.sh fetch-helm           and helm, which is built when first asked for; prints its path
#   kube.sh free-port            a port that nobody listens on and no connection is given by itself
#   kube.sh start DIR [OPTION]   set up an instance in DIR, a folder of its own, and wait until it is ready
#   kube.sh env DIR              SERVER=https://... and the like, one a line
#   kube.sh kubectl DIR ...      as the administrator
#   kube.sh user DIR USER [GROUP...]  a client certificate for USER; prints the path of a kubeconfig with it
#   kube.sh kill-apiserver DIR [SIGNAL]  KILL unless told otherwise
#   kube.sh restart-apiserver DIR  start it again, on the same port, after a SIGKILL if it runs
#   kube.sh compact DIR          forget every old revision and restart the API server, whose cache remembers some: who
#                                then watches from an old version is told 410
#   kube.sh empty DIR            remove the objects that tests make: nodes, pods and what owns them, budgets, volumes, leases,
#                                our kinds and those of NFD, namespaces; roles, users and CRDs stay
#   kube.sh freeze DIR NAME      SIGSTOP to etcd, kube-apiserver, kube-controller-manager or kube-scheduler
#   kube.sh thaw DIR NAME
#   kube.sh stop DIR             end everything that runs in the instance, and remove DIR
#   kube.sh sweep                stop the instances whose owners have died; `start` does this first
#
# Options of start:
#   --etcd-only, --no-controller-manager, --no-scheduler
#   --apiserver=FLAG, --controller-manager=FLAG, --scheduler=FLAG  one further flag for it; may be repeated
#                                @DIR@ in one for the API server is replaced
#   --scheduler-config=FILE      a KubeSchedulerConfiguration; @KUBECONFIG@ and @DIR@ in it are replaced
#
# In DIR: admin.kubeconfig (a client certificate of group system:masters), token.kubeconfig (the same power by a bearer
# token), nobody.kubeconfig (a user with no rights), controller.kubeconfig (user karve-controller, for a role to be bound
# to), ca.crt, NAME.log of each server.
#
# By hand: KARVE_OWNER=1 tests/kube/kube.sh start /tmp/k1, and `stop` when done. An instance lives no longer than its
# owner: the process named by KARVE_OWNER, else the one that ran `start`.
#
# Without the controller manager nobody makes default ServiceAccounts, computes the status of PodDisruptionBudgets,
# collects garbage, finishes namespaces or takes the not-ready taint off new nodes; pods need no ServiceAccount then.
#
# The programs come from $KUBEBUILDER_ASSETS if all of them are there, else from a cache, which is filled by building
# them from Go modules; etcd is a Debian package, unpacked and not installed. Exit status 3: they cannot be had on this
# machine, and why.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=1.34.3
cache=${KARVE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/karve}
programs=$cache/kube-$version
instances=$cache/kube-instances # one link per instance, for `sweep`

say() { echo "kube.sh: $*" >&2; }
fail() {
    say "$*"
    exit 1
}
unable() {
    say "$*"
    exit 3
}

# --- the programs ---

whole() { # FOLDER: every program is there and runs here; a home folder may be shared with another machine
    "$1/etcd" --version >/dev/null 2>&1 && "$1/kube-apiserver" --version >/dev/null 2>&1 &&
        "$1/kube-controller-manager" --version >/dev/null 2>&1 && "$1/kube-scheduler" --version >/dev/null 2>&1 &&
        "$1/kubectl" version --client >/dev/null 2>&1
}

fetch() { # prints the folder
    if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
        if whole "$KUBEBUILDER_ASSETS"; then
            echo "$KUBEBUILDER_ASSETS"
            return
        fi
        say "$KUBEBUILDER_ASSETS: not all of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl are there"
    fi
    if ! whole "$programs"; then
        mkdir -p "$cache"
        (
            flock 9
            whole "$programs" || fetch_into "$programs" >&2
        ) 9>"$programs.lock" || exit $?
    fi
    echo "$programs"
}

fetch_into() { # FOLDER: a new one is filled and then renamed, so that a half-filled one is never used
    new=$(mktemp -d "$1.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    chmod 755 "$new"
    has_go
    say 'fetching etcd'
    fetch_etcd "$new"
    go_build "$new/kube" . "Kubernetes $version"
    for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
        ln -s kube "$new/$name"
    done
    whole "$new" || unable 'what was built does not run here'
    rm -rf "$1"
    mv "$new" "$1"
}

# Debian 12 has etcd 3.4, too old for this API server. That of Debian 13 is static and runs anywhere.
fetch_etcd() { # FOLDER
    command -v dpkg >/dev/null 2>&1 || unable 'no dpkg to unpack etcd with'
    case $(apt-cache policy etcd-server 2>/dev/null | sed -n 's/^ *Candidate: //p') in
    '' | '(none)' | 3.[0-4].*) "$here/../../scripts/next-release.sh" "$1/debs" etcd-server || unable 'cannot download etcd' ;;
    *)
        mkdir -p "$1/debs"
        (cd "$1/debs" && apt-get -qq -o APT::Sandbox::User=root download etcd-server) || unable 'cannot download etcd'
        ;;
    esac
    dpkg -x "$1"/debs/*.deb "$1/unpacked"
    mv "$1/unpacked/usr/bin/etcd" "$1/etcd"
    rm -rf "$1/debs" "$1/unpacked"
}

has_go() {
    command -v go >/dev/null 2>&1 || unable 'what is needed of Kubernetes is not cached, and there is no Go to build it with'
}

# From nothing this takes 480 s of CPU. By measurements of parts of it, no inlining and no debug information saves a
# quarter, and a compiler that collects its garbage less often an eighth of the rest. For tests the servers are as good.
go_build() { # OUTPUT PACKAGE WHAT
    has_go
    say "building $3: takes some minutes, once"
    (
        cd "$here"
        GOGC=400 CGO_ENABLED=0 GOFLAGS='-buildvcs=false -mod=readonly' go build -trimpath -gcflags=all='-l -dwarf=false' \
            -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version -X k8s.io/component-base/version.gitMajor=1 \
            -X k8s.io/component-base/version.gitMinor=34" -o "$1" "$2"
    ) >&2 || unable "$3 cannot be built: it needs Go 1.24 and a module proxy, or what it downloaded before"
}

fetch_helm() { # prints its path
    if ! "$programs-helm" version >/dev/null 2>&1; then
        mkdir -p "$cache"
        (
            flock 9
            "$programs-helm" version >/dev/null 2>&1 || {
                go_build "$programs-helm.new" helm.sh/helm/v3/cmd/helm helm
                mv "$programs-helm.new" "$programs-helm"
            }
        ) 9>"$programs-helm.lock" || exit $?
    fi
    echo "$programs-helm"
}

# --- what an instance is made of ---

open_instance() { # DIR, of an instance that was started
    dir=$1
    [ -f "$dir/settings" ] || fail "$dir: no instance here"
    # shellcheck disable=SC1091
    . "$dir/settings" # bin, etcd_port, api_port
}

process_age() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; } # tells a pid's second use

process_lives() { # FILE with pid and age. Whose other threads have not ended holds its port still
    [ -f "$1" ] && read -r pid age <"$1" && [ -n "$age" ] && [ "$(process_age "$pid")" = "$age" ] &&
        { [ "$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f1)" != Z ] ||
            [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -gt 1 ]; }
}

signal() { # NAME SIGNAL: false if it does not run
    process_lives "$dir/$1.pid" && read -r pid age <"$dir/$1.pid" && kill -"$2" "$pid" 2>/dev/null
}

end() { # NAME SIGNAL, and wait
    signal "$1" "$2" || return 0
    tries=0
    while process_lives "$dir/$1.pid"; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "$dir: $1 does not end"
        sleep 0.02
    done
}

launch() { # NAME FLAG...: in a session of its own, with the lock and the caller's output closed
    name=$1
    shift
    setsid "$bin/$name" "$@" </dev/null >>"$dir/$name.log" 2>&1 9>&- &
    echo "$! $(process_age $!)" >"$dir/$name.pid"
}

ended() { # NAME: it did, and why goes to stderr
    process_lives "$dir/$1.pid" && return 1
    say "$1 ended: $(grep -v '^[IW][0-9]' "$dir/$1.log" | tail -n 3)"
}

ask() { # PATH of the API server, as the administrator
    curl -sS -m 10 --noproxy '*' --cacert "$dir/ca.crt" --cert "$dir/pki/admin.crt" --key "$dir/pki/admin.key" \
        "https://127.0.0.1:$api_port$1" 2>/dev/null
}

# --- certificates and kubeconfigs ---

certificate() { # NAME SUBJECT USAGE [ALTERNATIVE NAMES]
    openssl ecparam -name prime256v1 -genkey -noout -out "$dir/pki/$1.key"
    openssl req -new -key "$dir/pki/$1.key" -subj "$2" -out "$dir/pki/$1.csr"
    printf 'keyUsage=critical,digitalSignature\nextendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}" >"$dir/pki/$1.ext"
    openssl x509 -req -in "$dir/pki/$1.csr" -CA "$dir/ca.crt" -CAkey "$dir/pki/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
        -days 3650 -extfile "$dir/pki/$1.ext" -out "$dir/pki/$1.crt" 2>/dev/null
    rm "$dir/pki/$1.csr" "$dir/pki/$1.ext"
}

kubeconfig() { # FILE, the user's lines on stdin
    {
        cat <<Y
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {server: "https://127.0.0.1:$api_port", certificate-authority-data: $(base64 -w0 "$dir/ca.crt")}
contexts:
- name: test
  context: {cluster: test, user: user}
current-context: test
users:
- name: user
  user:
Y
        cat
    } >"$1"
    chmod 600 "$1"
}

certificate_kubeconfig() { # FILE NAME of the certificate
    kubeconfig "$1" <<Y
    client-certificate-data: $(base64 -w0 "$dir/pki/$2.crt")
    client-key-data: $(base64 -w0 "$dir/pki/$2.key")
Y
}

token_kubeconfig() { # FILE USER [GROUP]
    token=$(openssl rand -hex 16)
    echo "$token,$2,$2${3:+,$3}" >>"$dir/pki/tokens.csv"
    echo "    token: $token" | kubeconfig "$1"
}

authorities() { # once: certificates do not name the port
    mkdir -p "$dir/pki"
    chmod 700 "$dir/pki"
    openssl ecparam -name prime256v1 -genkey -noout -out "$dir/pki/ca.key"
    openssl req -x509 -new -key "$dir/pki/ca.key" -days 3650 -subj /CN=karve-test -addext keyUsage=critical,keyCertSign,cRLSign \
        -out "$dir/ca.crt" # a CA by the default configuration
    certificate apiserver /CN=kube-apiserver serverAuth \
        'IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes.default.svc'
    certificate admin /O=system:masters/CN=admin clientAuth
    certificate kube-controller-manager /CN=system:kube-controller-manager clientAuth
    certificate kube-scheduler /CN=system:kube-scheduler clientAuth
    openssl ecparam -name prime256v1 -genkey -noout -out "$dir/pki/sa.key"
    openssl ec -in "$dir/pki/sa.key" -pubout -out "$dir/pki/sa.pub" 2>/dev/null
}

kubeconfigs() { # for the port of this start
    : >"$dir/pki/tokens.csv"
    certificate_kubeconfig "$dir/admin.kubeconfig" admin
    certificate_kubeconfig "$dir/pki/kube-controller-manager.kubeconfig" kube-controller-manager
    certificate_kubeconfig "$dir/pki/kube-scheduler.kubeconfig" kube-scheduler
    token_kubeconfig "$dir/token.kubeconfig" token-admin system:masters
    token_kubeconfig "$dir/nobody.kubeconfig" nobody
    token_kubeconfig "$dir/controller.kubeconfig" karve-controller
}

user() { # USER [GROUP...]
    subject='' name=$(echo "$1" | tr -c 'A-Za-z0-9\n.-' _)
    who=$1
    shift
    for group; do
        subject=$subject/O=$group
    done
    certificate "user-$name" "$subject/CN=$who" clientAuth
    certificate_kubeconfig "$dir/$name.kubeconfig" "user-$name"
    echo "$dir/$name.kubeconfig"
}

# --- start ---

# Below the range the kernel gives out, so that a connection of somebody else's takes it in no moment but this.
free_port() {
    while :; do
        port=$((20000 + 0x$(openssl rand -hex 2) % 12000))
        hex=$(printf ':%04X ' $port)
        grep -qsF "$hex" /proc/net/tcp /proc/net/tcp6 || break
    done
    echo "$port"
}

start() {
    case $1 in
    *[!A-Za-z0-9/._-]* | */) fail "$1: a path of letters, digits, / . _ and - is needed" ;;
    /*) dir=$1 ;;
    *) fail "$1: not an absolute path" ;;
    esac
    shift
    [ ! -f "$dir/settings" ] || fail "$dir: an instance is there already"
    for tool in openssl curl flock setsid; do
        command -v $tool >/dev/null 2>&1 || unable "$tool is missing"
    done
    bin=$(fetch) || exit $?
    sweep
    options "$@"
    mkdir -p "$dir" "$instances"
    owner=${KARVE_OWNER:-$PPID}
    echo "$owner $(process_age "$owner")" >"$dir/owner"
    ln -sfT "$dir" "$instances/$(echo "$dir" | sha256sum | cut -c1-16)"
    authorities
    tries=0
    until boot; do # somebody else took the port
        tries=$((tries + 1))
        [ $tries -lt 5 ] || fail "$dir: no control plane after $tries attempts"
    done
    setsid "$0" guard "$dir" </dev/null >/dev/null 2>&1 9>&- &
    echo "$! $(process_age $!)" >"$dir/guard.pid"
}

options() { # they are kept one a line, for restarts
    etcd_only='' controllers=yes scheduler=yes scheduler_config=''
    : "${api_flags:=}" "${controller_flags:=}" "${scheduler_flags:=}"
    for option; do
        case $option in
        --etcd-only) etcd_only=yes ;;
        --no-controller-manager) controllers= ;;
        --no-scheduler) scheduler= ;;
        --apiserver=*) api_flags="$api_flags $(echo "${option#*=}" | sed "s|@DIR@|$dir|")" ;;
        --controller-manager=*) controller_flags="$controller_flags ${option#*=}" ;;
        --scheduler=*) scheduler_flags="$scheduler_flags ${option#*=}" ;;
        --scheduler-config=*) scheduler_config=${option#*=} ;;
        *) fail "start: unknown option '$option'" ;;
        esac
    done
    [ -z "$scheduler_config" ] || [ -f "$scheduler_config" ] || fail "$scheduler_config: no such file"
}

boot() {
    etcd_port=$(free_port) api_port=$(free_port)
    {
        echo "bin='$bin' etcd_port=$etcd_port api_port=$api_port controllers=$controllers"
        echo "api_flags='$api_flags'"
    } >"$dir/settings"
    boot_etcd || return 1
    [ -z "$etcd_only" ] || return 0
    kubeconfigs
    boot_apiserver || {
        end etcd KILL
        return 1
    }
    [ -z "$controllers" ] || boot_controllers
    [ -z "$scheduler" ] || boot_scheduler
    [ -z "$controllers" ] || wait_for_service_account
}

boot_etcd() { # what it holds is worth no longer than it runs: nothing waits for a disk
    rm -rf "$dir/etcd"
    launch etcd --name=test --data-dir="$dir/etcd" --listen-client-urls="http://127.0.0.1:$etcd_port" \
        --advertise-client-urls="http://127.0.0.1:$etcd_port" --listen-peer-urls=http://127.0.0.1:0 --unsafe-no-fsync \
        --quota-backend-bytes=8589934592 --log-level=warn
    tries=0
    until curl -sf -m 5 --noproxy '*' "http://127.0.0.1:$etcd_port/health" >/dev/null 2>&1; do
        ! ended etcd || return 1
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail "etcd does not answer: $(tail -n 3 "$dir/etcd.log")"
        sleep 0.05
    done
}

boot_apiserver() { # with the flags of an ordinary cluster, where they cost nothing
    without=''
    [ -n "$controllers" ] || without=--disable-admission-plugins=ServiceAccount
    # shellcheck disable=SC2086
    launch kube-apiserver --etcd-servers="http://127.0.0.1:$etcd_port" --bind-address=127.0.0.1 --secure-port="$api_port" \
        --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/16 \
        --tls-cert-file="$dir/pki/apiserver.crt" --tls-private-key-file="$dir/pki/apiserver.key" \
        --client-ca-file="$dir/ca.crt" --token-auth-file="$dir/pki/tokens.csv" --enable-bootstrap-token-auth \
        --service-account-key-file="$dir/pki/sa.pub" --service-account-signing-key-file="$dir/pki/sa.key" \
        --service-account-issuer=https://kubernetes.default.svc --authorization-mode=Node,RBAC \
        --enable-admission-plugins=NodeRestriction $without --allow-privileged=true $api_flags
    tries=0
    until [ "$(ask /readyz)" = ok ]; do
        ! ended kube-apiserver || return 1
        tries=$((tries + 1))
        [ $tries -lt 2400 ] || fail "kube-apiserver is not ready: $(ask '/readyz?verbose' | grep -v '^\[+' | tail -n 3)"
        sleep 0.05
    done
}

# The limits of its clients are for real clusters; a test that makes a thousand pods would wait for them.
boot_controllers() {
    config=$dir/pki/kube-controller-manager.kubeconfig
    # shellcheck disable=SC2086
    launch kube-controller-manager --kubeconfig="$config" --authentication-kubeconfig="$config" \
        --authorization-kubeconfig="$config" --secure-port=0 --leader-elect=false --use-service-account-credentials=true \
        --service-account-private-key-file="$dir/pki/sa.key" --root-ca-file="$dir/ca.crt" --allocate-node-cidrs=false \
        --cluster-signing-cert-file="$dir/ca.crt" --cluster-signing-key-file="$dir/pki/ca.key" \
        --kube-api-qps=2000 --kube-api-burst=4000 $controller_flags
}

boot_scheduler() {
    config=$dir/pki/kube-scheduler.kubeconfig
    if [ -n "$scheduler_config" ]; then
        sed "s|@KUBECONFIG@|$config|; s|@DIR@|$dir|" "$scheduler_config" >"$dir/scheduler.yaml"
    else
        cat >"$dir/scheduler.yaml" <<Y
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $config, qps: 2000, burst: 4000}
leaderElection: {leaderElect: false}
Y
    fi
    # shellcheck disable=SC2086
    launch kube-scheduler --config="$dir/scheduler.yaml" --authentication-kubeconfig="$config" \
        --authorization-kubeconfig="$config" --secure-port=0 $scheduler_flags
}

wait_for_service_account() { # then a pod can be made
    tries=0
    until ask /api/v1/namespaces/default/serviceaccounts/default | grep -q '"uid"'; do
        ! ended kube-controller-manager || exit 1
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail 'kube-controller-manager makes no ServiceAccount'
        sleep 0.05
    done
    [ -z "$scheduler" ] || ! ended kube-scheduler || exit 1
}

# --- behind the API server's back ---

etcd_call() { # METHOD JSON
    curl -sf -m 60 --noproxy '*' "http://127.0.0.1:$etcd_port/v3/kv/$1" -d "$2" || fail "etcd does not answer $1"
}

compact() {
    revision=$(etcd_call range '{"key":"AA==","limit":1}' | sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p')
    [ -n "$revision" ] || fail 'etcd does not tell its revision'
    etcd_call compaction "{\"revision\":\"$revision\",\"physical\":true}" >/dev/null
    end kube-apiserver KILL
    boot_apiserver || fail 'kube-apiserver does not come back'
}

# Everything goes at once, whatever its finalizers and grace, and every watch is told. Through the API it would take a
# request per object, and for a namespace the seconds that the controller manager takes.
empty() {
    removals=
    remove_kinds deployments replicasets statefulsets daemonsets jobs cronjobs controllers
    while removed; do
        sleep 0.2 # their controllers must see it, lest they replace the pods
    done
    removals=
    remove_kinds pods minions poddisruptionbudgets persistentvolumes persistentvolumeclaims storageclasses csinodes \
        volumeattachments events leases/default leases/kube-node-lease certificatesigningrequests
    remove /registry/karpenter. /registry/karpenter/ # the groups karpenter.sh and so on
    remove /registry/nfd. /registry/nfd/
    remove /registry/leases/kube-system/kar /registry/leases/kube-system/kas
    remove_but kubernetes /registry/services/specs/default
    remove_but kube-root-ca.crt /registry/configmaps/default
    for namespace in $(keys /registry/namespaces/ /registry/namespaces0 | sed 's|.*/||'); do
        case $namespace in
        default | kube-system | kube-public | kube-node-lease) ;;
        *)
            remove "/registry/namespaces/$namespace" "/registry/namespaces/$namespace "
            for kind in configmaps serviceaccounts secrets leases services/specs resourcequotas limitranges roles rolebindings; do
                remove_kinds "$kind/$namespace"
            done
            ;;
        esac
    done
    removed || true
}

removed() { # carries out the removals; true: there was something
    etcd_call txn "{\"success\":[${removals#,}]}" | grep -q '"deleted"'
}

remove_kinds() { # NAME...: as etcd knows them
    for kind; do
        remove "/registry/$kind/" "/registry/${kind}0" # "0" comes after "/"
    done
}

keys() { # FROM TO: of etcd, one a line
    etcd_call range "{\"key\":\"$(coded "$1")\",\"range_end\":\"$(coded "$2")\",\"keys_only\":true}" |
        grep -o '"key":"[^"]*"' | cut -d'"' -f4 | while read -r key; do
        echo "$key" | base64 -d
        echo
    done
}

coded() { printf %s "$1" | base64 -w0; }

remove() { # FROM TO: adds to the removals
    removals="$removals,{\"requestDeleteRange\":{\"key\":\"$(coded "$1")\",\"range_end\":\"$(coded "$2")\"}}"
}

remove_but() { # NAME FOLDER
    remove "$2/" "$2/$1"
    remove "$2/$1 " "${2}0" # " " comes before any character of a name
}

# --- end ---

guard() { # ends the instance when its owner has died
    while [ -f "$1/settings" ]; do
        if ! process_lives "$1/owner"; then
            rm -f "$1/guard.pid"
            exec "$0" stop "$1"
        fi
        sleep 1
    done
}

stop() {
    dir=$1
    for name in guard kube-scheduler kube-controller-manager kube-apiserver etcd; do
        end $name KILL
    done
    rm -rf "$dir"
    rm -f "$instances/$(echo "$dir" | sha256sum | cut -c1-16)"
}

sweep() {
    for link in "$instances"/*; do
        old=$(readlink "$link") || continue
        process_lives "$old/owner" || ("$0" stop "$old" >&2) || true
    done
}

# --- the door ---

[ $# -ge 1 ] || fail 'what to do? See the top of this file'
task=$1
shift
case $task in
fetch | fetch-helm | free-port | sweep) ;;
*) [ $# -ge 1 ] || fail "$task: which folder?" ;;
esac
case $task in
start | stop | guard | fetch | fetch-helm | free-port | sweep) ;;
*)
    open_instance "$1"
    shift
    ;;
esac
case $task in
fetch) fetch ;;
fetch-helm) fetch_helm ;;
free-port) free_port ;;
start) start "$@" ;;
env)
    echo "SERVER=https://127.0.0.1:$api_port"
    echo "PORT=$api_port"
    echo "ETCD=http://127.0.0.1:$etcd_port"
    echo "BIN=$bin"
    for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
        ! process_lives "$dir/$name.pid" || echo "PID_$(echo $name | tr a-z- A-Z_)=$(cut -d' ' -f1 "$dir/$name.pid")"
    done
    ;;
kubectl) KUBECONFIG=$dir/admin.kubeconfig exec "$bin/kubectl" "$@" ;;
user)
    [ $# -ge 1 ] || fail 'user: which?'
    user "$@"
    ;;
kill-apiserver) end kube-apiserver "${1:-KILL}" ;;
restart-apiserver)
    end kube-apiserver KILL
    boot_apiserver || fail 'kube-apiserver does not come back'
    ;;
compact) compact ;;
empty) empty ;;
freeze) signal "$1" STOP || fail "$1 does not run" ;;
thaw) signal "$1" CONT || fail "$1 does not run" ;;
stop) stop "$1" ;;
guard) guard "$1" ;;
sweep) sweep ;;
*) fail "unknown task '$task'; see the top of this file" ;;
esac

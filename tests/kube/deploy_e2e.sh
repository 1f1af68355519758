#!/bin/sh
# What deploy/ holds, on a real API server: deploy_e2e.sh KARVE. TAP.
#
# kustomize and the chart are rendered, tried (--dry-run=server), applied, upgraded and deleted. The controller runs as
# its Deployment says, with the files of its image alone on a read-only root, as a user who owns none of them, with its
# ServiceAccount's token and so with exactly the rights it was given. Exit status 3: there is no control plane to be had.
karve=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
. tests/deploy/lib.sh
kube=$PWD/tests/kube/kube.sh
trap '"$kube" stop "$dir/kube" >/dev/null 2>&1; rm -rf "$dir"' EXIT INT TERM

# shellcheck disable=SC2086
KARVE_OWNER=$$ "$kube" start "$dir/kube" ${KUBE_START_OPTIONS:-} || exit $?
KUBECONFIG=$dir/kube/admin.kubeconfig
export KUBECONFIG
bin=$("$kube" env "$dir/kube" | sed -n 's/^BIN=//p')
port=$("$kube" env "$dir/kube" | sed -n 's/^PORT=//p')
k() { "$bin/kubectl" "$@"; }
apply() { k apply --server-side --field-manager=e2e "$@" >>"$dir/said" 2>&1; }

# Until a command says so: for a minute, which a loaded machine may need.
until_true() {
    for _ in $(seq 600); do
        eval "$1" && return
        sleep 0.1
    done
    echo "not true after a minute: $1" >>"$dir/said"
    return 1
}

# A port that nobody has, and that was not found before: whose it is may not listen yet.
found=
find_port() { # NAME of the variable to set
    while :; do
        new=$("$kube" free-port)
        case "$found " in *" $new "*) ;; *) break ;; esac
    done
    found="$found $new"
    eval "$1=$new"
}

# --- kustomize ---

for overlay in base overlays/kwok overlays/extender overlays/agent; do
    k kustomize deploy/kustomize/$overlay >"$dir/$(basename $overlay).yaml" || exit 1
done
# What is tried must be there: namespaces first.
for overlay in kwok agent; do
    apply -f "deploy/kustomize/$([ $overlay = kwok ] && echo base || echo overlays/agent)/namespace.yaml" &&
        apply --dry-run=server -f "$dir/$overlay.yaml"
    result $? "$overlay: the_server_would_accept_it"
    apply -f "$dir/$overlay.yaml"
    result $? "$overlay: the_server_accepts_it"
    apply -f "$dir/$overlay.yaml"
    result $? "$overlay: and_again"
done
k wait --for=condition=Established crd --all --timeout=60s >"$dir/said" 2>&1
result $? "kwok: the_definitions_are_established"

# The namespace enforces the restricted standard: pods that did not keep to it would not be made.
until_true '[ "$(k get pods -n karve -o name | wc -l)" = 2 ]'
result $? "kwok: both_replicas_keep_to_the_restricted_standard"
apply -f deploy/kustomize/overlays/kwok/nodepool.yaml && apply -f deploy/kustomize/overlays/kwok/workload.yaml
result $? "kwok: the_pool_and_the_workload_are_accepted"

# --- the controller, as the Deployment would run it ---

if [ "$(id -u)" != 0 ]; then
    skip "kwok: the_controller_runs_with_its_image_and_its_rights" 'only root can change the root folder'
else
    deploy/image-root.sh "$karve" "$dir/root" || exit 1
    account=$dir/root/var/run/secrets/kubernetes.io/serviceaccount
    mkdir -p "$account"
    cp "$dir/kube/ca.crt" "$account/ca.crt"
    echo karve >"$account/namespace"
    k create token karve -n karve --duration=1h >"$account/token"
    args=$(k get deployment karve-controller -n karve -o jsonpath='{.spec.template.spec.containers[0].args[*]}' |
        sed 's/--bind-address=[^ ]*/--bind-address=127.0.0.1/')

    # Ports of its own, since both share this machine.
    run_replica() { # NAME METRICS PROBES
        # shellcheck disable=SC2016
        env -i PATH="$PATH" KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT="$port" KARVE_METRICS_PORT="$2" \
            KARVE_HEALTH_PROBE_PORT="$3" unshare -m sh -c '
            root=$1
            shift
            mount --bind "$root" "$root" && mount -o remount,ro,bind "$root" && exec chroot --userspec=65532:65532 "$root" /karve "$@"
        ' sh "$dir/root" $args 2>"$dir/$1.log" &
        echo $! >"$dir/$1.pid"
    }
    leads() { curl -s "http://127.0.0.1:$1/metrics" | grep -q '^leader_election_master_status{.*} 1'; }
    ready() { [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$1/readyz")" = 200 ]; }
    one='' two='' one_probes='' two_probes=''
    for name in one two one_probes two_probes; do find_port $name; done
    run_replica first "$one" "$one_probes"
    until_true "leads $one && ready $one_probes"
    good=$?
    [ $good = 0 ] || tail -n 5 "$dir/first.log" >>"$dir/said"
    result $good "kwok: the_controller_runs_with_its_image_and_its_rights"
    run_replica second "$two" "$two_probes"
    until_true "ready $two_probes" && ! leads "$two"
    good=$?
    [ $good = 0 ] || tail -n 5 "$dir/second.log" >>"$dir/said"
    result $good "kwok: another_replica_waits_and_is_ready"

    if "$kube" env "$dir/kube" | grep -q ^PID_KUBE_SCHEDULER; then
        until_true '[ "$(k get pods -l app=inflate -o jsonpath="{.items[*].spec.nodeName}" | wc -w)" = 5 ]'
        good=$?
        [ $good = 0 ] || tail -n 5 "$dir/first.log" >>"$dir/said"
        result $good "kwok: pods_of_the_try_out_are_bound_to_nodes_that_it_made"
    else
        skip "kwok: pods_of_the_try_out_are_bound_to_nodes_that_it_made" 'no scheduler runs'
    fi
    kill "$(cat "$dir/first.pid")"
    wait "$(cat "$dir/first.pid")"
    good=$?
    [ $good = 0 ] && until_true "leads $two"
    result $? "kwok: the_other_takes_over_when_the_first_is_told_to_end"

    grep -hE '"level":"error"|forbidden' "$dir/first.log" "$dir/second.log" >"$dir/said"
    quiet
    result $? "kwok: no_right_was_missing"
    until_true "[ \$(curl -s http://127.0.0.1:$two/metrics |
        grep -oE '^(leader_election_master_status|rest_client_requests_total|karpenter_cluster_state_synced)' | sort -u | wc -l) = 3 ]"
    result $? "kwok: metrics_of_the_client_and_the_election_are_there"
    k delete deployment/inflate nodepool/default >"$dir/said" 2>&1
    until_true '[ -z "$(k get nodeclaims,nodes -l karpenter.sh/nodepool -o name)" ]'
    result $? "kwok: nothing_is_left_of_a_pool_that_is_deleted"
    kill "$(cat "$dir/second.pid")"
    wait "$(cat "$dir/second.pid")"
    result $? "kwok: it_ends_cleanly"
fi

# --- the extender, as its Deployment would run it, asked as kube-scheduler would ---

apply -f tests/kube/nfd-crds.yaml # which the controller did without
apply --dry-run=server -f "$dir/extender.yaml"
result $? "extender: the_server_would_accept_it"
apply -f "$dir/extender.yaml"
result $? "extender: the_server_accepts_it"
until_true '[ "$(k get pods -n karve -l app.kubernetes.io/component=extender -o name | wc -l)" = 2 ]'
result $? "extender: both_replicas_keep_to_the_restricted_standard"
for never in 'get secrets' 'list secrets' 'patch nodes' 'delete pods' 'list nodefeaturegroups.nfd.k8s-sigs.io' 'create leases'; do
    # shellcheck disable=SC2086
    ! k auth can-i -q $never -n karve --as system:serviceaccount:karve:karve-extender 2>/dev/null || echo "may $never"
done >"$dir/said"
quiet
result $? "extender: the_account_only_reads_what_it_follows"

# An authority, a certificate for the Service and one for who asks: the Secret's files, where the pod would have them.
certificate() { # NAME SUBJECT [EXTENSION]
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/$1.key" -out "$dir/$1.csr" -subj "$2" 2>/dev/null &&
        echo "${3:-}" | openssl x509 -req -in "$dir/$1.csr" -CA "$dir/authority.crt" -CAkey "$dir/authority.key" -CAcreateserial -days 2 \
            -extfile /dev/stdin -out "$dir/$1.crt" 2>/dev/null
}
if [ "$(id -u)" != 0 ] || ! command -v openssl >/dev/null; then
    skip "extender: it_answers_those_with_a_certificate" 'root and openssl are needed'
else
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/authority.key" -out "$dir/authority.crt" \
        -subj /CN=authority -days 2 2>/dev/null
    certificate extender /CN=karve-extender 'subjectAltName=DNS:karve-extender.karve.svc'
    certificate scheduler /CN=system:kube-scheduler
    mkdir -p "$dir/root/etc/karve/tls"
    install -m 440 -g 65532 "$dir/extender.key" "$dir/root/etc/karve/tls/tls.key"
    cp "$dir/extender.crt" "$dir/root/etc/karve/tls/tls.crt"
    cp "$dir/authority.crt" "$dir/root/etc/karve/tls/ca.crt"
    k create token karve-extender -n karve --duration=1h >"$account/token"
    args=$(k get deployment karve-extender -n karve -o jsonpath='{.spec.template.spec.containers[0].args[*]}' |
        sed 's/--bind-address=[^ ]*/--bind-address=127.0.0.1/')
    asked='' metrics='' probes=''
    for name in asked metrics probes; do find_port $name; done
    args="$args --port=$asked"
    run_replica extender "$metrics" "$probes"
    until_true "ready $probes"
    good=$?
    [ $good = 0 ] || tail -n 5 "$dir/extender.log" >>"$dir/said"
    result $good "extender: it_runs_with_its_image_and_its_rights"
    ask() { # BODY MORE: as kube-scheduler, by the name of the Service
        body=$1
        shift
        curl -s --max-time 30 --cacert "$dir/authority.crt" --resolve "karve-extender.karve.svc:$asked:127.0.0.1" "$@" \
            -H 'Content-Type: application/json' -d "$body" "https://karve-extender.karve.svc:$asked/scheduler/filter"
    }
    question='{"pod":{"metadata":{"name":"p","namespace":"default","uid":"u"},"spec":{"containers":[]}},"nodenames":["n1"]}'
    ask "$question" --cert "$dir/scheduler.crt" --key "$dir/scheduler.key" >"$dir/said" && grep -q '"n1"' "$dir/said"
    result $? "extender: it_answers_those_with_a_certificate"
    ! ask "$question" --fail >"$dir/said" 2>&1
    result $? "extender: and_nobody_else"
    kill "$(cat "$dir/extender.pid")"
    wait "$(cat "$dir/extender.pid")"
    result $? "extender: it_ends_cleanly"
    grep -hE '"level":"error"|forbidden' "$dir/extender.log" >"$dir/said"
    quiet
    result $? "extender: no_right_was_missing"
fi

for overlay in agent extender kwok; do
    k delete --ignore-not-found -f "$dir/$overlay.yaml" --wait=true --timeout=120s >"$dir/said" 2>&1
    result $? "$overlay: it_can_be_deleted"
done

# --- the chart ---

if ! helm=$("$kube" fetch-helm) && ! helm=$(tool helm); then
    if [ "${CI:-}" = true ]; then
        result 1 "chart: it_installs"
    else
        skip "chart: it_installs" 'helm is not installed'
    fi
    finish
fi
# Stand-ins for the Prometheus operator's kinds.
for kind in ServiceMonitor PrometheusRule; do
    plural=$(echo $kind | tr A-Z a-z)s
    cat <<END
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $plural.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: $kind, plural: $plural}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
END
done >"$dir/operator.yaml"
apply -f "$dir/operator.yaml" && k wait --for=condition=Established crd --all --timeout=60s >"$dir/said" 2>&1
result $? "chart: the_operator_stands_in"

everything='--set metrics.serviceMonitor.enabled=true --set metrics.prometheusRule.enabled=true --set metrics.dashboard.enabled=true --set replicas=3
    --set extender.enabled=true --set images.groups=publish --set images.pullSecretNamespaces={chart} --set images.registryConfigSecret=keys
    --set leaderElection.name=mine --set podLabels.team=a --set serviceAccount.annotations.a=b --set image.repository=registry.test/karve'
k create namespace chart >/dev/null && k label namespace chart pod-security.kubernetes.io/enforce=restricted >/dev/null
for values in '' "$everything"; do
    # shellcheck disable=SC2086
    "$helm" template karve deploy/helm/karve -n chart --kube-version 1.34.0 --include-crds $values >"$dir/chart.yaml" 2>"$dir/said" &&
        apply --dry-run=server -n chart -f "$dir/chart.yaml"
    result $? "chart: the_server_would_accept_it${values:+_with_everything_turned_on}"
done
"$helm" install karve deploy/helm/karve -n chart >"$dir/said" 2>&1
result $? "chart: it_installs"
k wait --for=condition=Established crd/nodepools.karpenter.sh --timeout=60s >"$dir/said" 2>&1
result $? "chart: with_the_definitions"
until_true '[ "$(k get pods -n chart -o name | wc -l)" = 2 ]'
result $? "chart: both_replicas_keep_to_the_restricted_standard"
# shellcheck disable=SC2086
"$helm" upgrade karve deploy/helm/karve -n chart $everything >"$dir/said" 2>&1 && until_true '[ "$(k get pods -n chart -l team=a -o name | wc -l)" -ge 1 ]'
result $? "chart: it_upgrades"
for verb in get patch; do
    k auth can-i -q $verb leases/mine -n chart --as system:serviceaccount:chart:karve || echo "cannot $verb its Lease"
done >"$dir/said" 2>&1
for never in 'list secrets' 'create pods' 'patch pods' 'delete namespaces' 'update leases/other' 'create clusterroles'; do
    # shellcheck disable=SC2086
    ! k auth can-i -q $never -n chart --as system:serviceaccount:chart:karve 2>/dev/null || echo "may $never"
done >>"$dir/said"
quiet
result $? "chart: the_account_may_do_its_work_and_nothing_else"
for account in karve karve-extender; do
    k auth can-i -q get secrets -n chart --as system:serviceaccount:chart:$account || echo "$account cannot read pull secrets where it was let"
    ! k auth can-i -q get secrets -n default --as system:serviceaccount:chart:$account 2>/dev/null || echo "$account may read secrets elsewhere"
    k auth can-i -q create nodefeaturegroups.nfd.k8s-sigs.io --as system:serviceaccount:chart:$account 2>/dev/null || echo "$account cannot write groups"
done >"$dir/said" 2>&1
quiet
result $? "chart: who_looks_images_up_has_the_rights_for_it_and_no_more"
"$helm" rollback karve 1 -n chart >"$dir/said" 2>&1
result $? "chart: it_rolls_back"
"$helm" uninstall karve -n chart --wait >"$dir/said" 2>&1 &&
    [ -z "$(k get deployment,service,serviceaccount,role,rolebinding,pdb -n chart -l app.kubernetes.io/name=karve -o name)" ] &&
    [ -z "$(k get clusterrole,clusterrolebinding -l app.kubernetes.io/name=karve -o name)" ]
result $? "chart: it_uninstalls"
k get crd nodepools.karpenter.sh >/dev/null 2>"$dir/said"
result $? "chart: the_definitions_stay_and_with_them_the_pools"

# --- what make check does without the tools ---

for name in manifests monitoring; do
    HELM=$helm KUBECTL=$bin/kubectl PROMTOOL=$(tests/deploy/promtool.sh) tests/deploy/$name.sh "$karve" >"$dir/said" 2>&1 &&
        ! grep '^# SKIP' "$dir/said"
    result $? "$name: all_of_the_tests_with_all_of_the_tools"
done
finish

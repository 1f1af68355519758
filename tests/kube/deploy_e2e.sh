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

# --- kustomize ---

for overlay in base overlays/kwok overlays/agent; do
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
    one=$((20000 + $$ % 10000)) two=$((32000 + $$ % 10000))
    run_replica first $one $((one + 1))
    until_true "leads $one && ready $((one + 1))"
    good=$?
    [ $good = 0 ] || tail -n 5 "$dir/first.log" >>"$dir/said"
    result $good "kwok: the_controller_runs_with_its_image_and_its_rights"
    run_replica second $two $((two + 1))
    until_true "ready $((two + 1))" && ! leads $two
    result $? "kwok: another_replica_waits_and_is_ready"

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

for overlay in agent kwok; do
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
for never in 'get secrets' 'create pods' 'patch pods' 'delete namespaces' 'update leases/other' 'create clusterroles'; do
    # shellcheck disable=SC2086
    ! k auth can-i -q $never -n chart --as system:serviceaccount:chart:karve 2>/dev/null || echo "may $never"
done >>"$dir/said"
quiet
result $? "chart: the_account_may_do_its_work_and_nothing_else"
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

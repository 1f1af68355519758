#!/bin/sh
# The manifests and the chart are what the program needs, and nothing in them has drifted from it:
# manifests.sh KARVE. TAP. Needs no cluster; what needs kubectl or helm is skipped without them.
karve=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
. tests/deploy/lib.sh
chart=deploy/helm/karve

deploy/generate.sh "$karve" --check 2>"$dir/said"
result $? generated_files_are_what_the_program_prints

"$karve" validate -f deploy/kustomize -f deploy/prometheus/alerts.yaml >"$dir/said" 2>&1
result $? the_manifests_are_valid

# --- what they say of the program ---

version=$("$karve" version | awk '{ print $2 }')
same Chart.version "$version" "$(awk '/^version:/ { print $2 }' $chart/Chart.yaml)"
same Chart.appVersion "$version" "$(awk '/^appVersion:/ { print $2 }' $chart/Chart.yaml)"
for file in base/deployment components/extender/deployment overlays/agent/daemonset; do
    same "image of $file" "karve:$version" "$(awk '/^ *image:/ { print $2 }' deploy/kustomize/$file.yaml)"
done
same Dockerfile "karve:$version" "$(grep -oE 'karve:[0-9.]+' deploy/Dockerfile)"
quiet
result $? versions_are_those_of_the_program

# Flags that are given, by the command that they are given to; in the environment as KARVE_FLAG.
flags_of() { "$karve" "$1" --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'; }
known() { # COMMAND FILE...: complain about flags in the files that the command does not have
    flags_of "$1" >"$dir/flags"
    command=$1
    shift
    for file in "$@"; do
        {
            grep -vE '^ *(# -- |# syntax|# With --config)' "$file" | grep -oE -- '(^|[ "=])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+'
            grep -oE 'KARVE_[A-Z_]+=' "$file" | sed 's/KARVE_//; s/=//; s/^/--/' | tr A-Z_ a-z-
        } | sort -u | grep -vxFf "$dir/flags" | sed "s|^|$file: karve $command has no |" >>"$dir/said"
    done
}
known controller deploy/kustomize/base/deployment.yaml $chart/templates/deployment.yaml \
    deploy/kustomize/overlays/kwok/kustomization.yaml deploy/systemd/karve-controller.service deploy/systemd/controller.env
known extender deploy/kustomize/components/extender/deployment.yaml $chart/templates/extender.yaml
known agent deploy/systemd/karve-agent.service deploy/systemd/karve-agent-observer.service deploy/systemd/agent.env \
    deploy/systemd/agent-observer.env
quiet
result $? every_flag_that_is_given_exists

# The guide: flags of its karve commands, and files that it names.
grep -oE '(^|/|[(|] *|`)karve [a-z][a-z-]*[^|`]*' docs/deploy.md | sed 's|^[^k]*||' | while read -r _ command words; do
    "$karve" "$command" --help >"$dir/help" 2>&1 || { echo "docs/deploy.md: karve has no command $command"; continue; }
    for word in $words; do
        case $word in --*) grep -q -- "$word\b" "$dir/help" || echo "docs/deploy.md: karve $command has no $word" ;; esac
    done
done >"$dir/said"
for path in $(grep -oE 'deploy/[a-zA-Z0-9_./-]+|examples/[a-z]+' docs/deploy.md | sed 's/[.]$//' | sort -u); do
    [ -e "$path" ] || echo "docs/deploy.md: no $path"
done >>"$dir/said"
quiet
result $? the_guide_names_what_there_is

# --- values: the table in the README is made from values.yaml, so its names are the chart's ---

awk -F '`' '/^\| `/ { print $2 }' $chart/README.md | sort >"$dir/values"
# A leaf of the schema; maps with keys of the user's choice end at their own name.
jq -r '
    . as $root
    | def leaves($at): .properties as $p
        | if $p then ($p | to_entries[] | .key as $k | .value | leaves($at + [$k]))
          else ($at | join(".")) end;
    leaves([])' $chart/values.schema.json | grep -v '^global$' | sort >"$dir/schema"
# resources.* are quantities by any name.
sed -i 's/^\(resources\.[a-z]*\)\..*/\1/' "$dir/values"
sort -u "$dir/values" -o "$dir/values"
grep -v '^resources\.claims$' "$dir/schema" | diff "$dir/values" - >"$dir/said"
result $? every_value_is_documented_and_in_the_schema

# --- rendered ---

if kubectl=$(tool kubectl) && "$kubectl" kustomize --help >/dev/null 2>&1; then
    for overlay in base overlays/kwok overlays/extender overlays/agent; do
        "$kubectl" kustomize deploy/kustomize/$overlay >"$dir/$(basename $overlay).yaml" 2>>"$dir/said" &&
            "$karve" validate -f "$dir/$(basename $overlay).yaml" >/dev/null 2>>"$dir/said"
    done
    quiet
    result $? kustomize_builds_every_overlay
    grep -q -- '--provider=kwok' "$dir/kwok.yaml"
    result $? the_try_out_has_the_kwok_provider
else
    skip kustomize_builds_every_overlay 'kubectl is not installed'
fi

if ! helm=$(tool helm); then
    skip the_chart_renders 'helm is not installed'
    finish
fi
render() { "$helm" template karve $chart --namespace karve --kube-version 1.34.0 "$@"; }

"$helm" lint --strict $chart >"$dir/said" 2>&1
result $? helm_lint_finds_nothing
render >"$dir/default.yaml" 2>"$dir/said" && "$karve" validate -f "$dir/default.yaml" >"$dir/said" 2>&1
result $? the_chart_renders

# What the chart gives by default is what the program would do anyway, where it runs in a pod.
"$karve" controller --help | tr '\n' ' ' | sed 's/  */ /g; s/ --/\n--/g' >"$dir/help"
grep -oE -- '- --[a-z-]+=[^ ]*' "$dir/default.yaml" | sed 's/^- //' | while IFS='=' read -r flag value; do
    case $flag in --bind-address | --leader-election-namespace) continue ;; esac
    grep -qF "(default $value)" <<END || echo "the chart has $flag=$value, which is not the default"
$(grep -- "^$flag " "$dir/help")
END
done >"$dir/said"
quiet
result $? values_have_the_defaults_of_the_program

# The least-privilege rules are the same by all three ways.
rules() { awk '/^kind:/ { role = /^kind: (Cluster)?Role$/ } /^---|^[a-z]/ { inside = 0 } role && /^rules:/ { inside = 1 } inside && !/^ *#|^$/ { gsub(/^ +/, ""); print }' | sort; }
rules <"$dir/default.yaml" >"$dir/by-helm"
"$karve" crds --rbac --namespace karve | rules | diff - "$dir/by-helm" >"$dir/said" && [ -s "$dir/by-helm" ]
result $? the_chart_grants_what_the_program_needs_and_no_more

# With the extender, groups and pull secrets: its side and the scheduler's are those of the program.
render --set extender.enabled=true --set images.groups=publish --set 'images.pullSecretNamespaces={shop,web}' \
    --set images.registryConfigSecret=keys --set 'images.launchRepositories={registry.test/team/*,registry.test/app}' >"$dir/images.yaml" 2>"$dir/said" &&
    "$karve" validate -f "$dir/images.yaml" >"$dir/said" 2>&1
result $? the_chart_renders_with_the_extender
rules <"$dir/images.yaml" >"$dir/by-helm"
"$karve" crds --rbac --extender --optional-roles --namespace karve | rules | diff - "$dir/by-helm" >"$dir/said"
result $? and_grants_what_that_needs
for words in '--nfg-mode=publish' '--pull-secrets=true' '--registry-config=/etc/karve/registry/.dockerconfigjson' \
    '--launch-repositories=registry.test/team/*,registry.test/app' '--client-ca=/etc/karve/tls/ca.crt' 'secretName: karve-extender-tls'; do
    grep -qF -- "$words" "$dir/images.yaml" || echo "missing: $words"
done >"$dir/said"
same 'bindings of pull secrets' 'shop web' "$(awk '/^kind:/ { kind = $2; name = "" } /^  name:/ { name = $2 } /^  namespace:/ && kind == "RoleBinding" && name ~ /pull-secrets/ { print $2 }' "$dir/images.yaml" | xargs)"
quiet
result $? and_is_told_what_it_needs
for values in '' '--set extender.tlsSecret=' '--set extender.clientCertificates=false' '--set images.onResolveError=fail' '--set extender.port=9443'; do
    flags=
    case $values in *tlsSecret=*) ;; *) flags='--tls-cert=x' ;; esac
    case $values in *tlsSecret=* | *Certificates=*) ;; *) flags="$flags --client-ca=x" ;; esac
    case $values in *Error=*) flags="$flags --on-resolve-error=fail" ;; *) flags="$flags --on-resolve-error=ignore" ;; esac
    case $values in *port=*) flags="$flags --port=9443" ;; esac
    # shellcheck disable=SC2086
    render --set extender.enabled=true $values | awk '/^---/ { inside = 0 } inside { sub(/^    /, ""); print } /^  config.yaml:/ { inside = 1 }' >"$dir/chart-config"
    # shellcheck disable=SC2086
    "$karve" extender --print-config $flags | diff - "$dir/chart-config" || echo "with $values"
done >"$dir/said" 2>&1
quiet
result $? the_scheduler_is_told_what_the_extender_prints

render --set metrics.serviceMonitor.enabled=true --set metrics.prometheusRule.enabled=true --set metrics.dashboard.enabled=true \
    --set replicas=3 --set leaderElection.name=mine --set provider=kwok --set dryRun=true --set 'extraArgs={--region=eu-west-1}' \
    --set nodeSelector.role=infra --set podLabels.team=a --set image.digest=sha256:"$(printf %064d 0)" >"$dir/other.yaml" 2>"$dir/said" &&
    "$karve" validate -f "$dir/other.yaml" >"$dir/said" 2>&1
result $? the_chart_renders_with_everything_turned_on
for words in 'kind: ServiceMonitor' 'kind: PrometheusRule' 'kind: ConfigMap' 'replicas: 3' '- mine' '--dry-run' '--region=eu-west-1' \
    'role: infra' 'team: a' 'karve@sha256:0'; do
    grep -qF -- "$words" "$dir/other.yaml" || echo "missing: $words"
done >"$dir/said"
quiet
result $? values_reach_the_manifests
"$helm" template prod $chart --namespace ops --kube-version 1.34.0 --set serviceAccount.create=false --set serviceAccount.name=own \
    --set rbac.create=false --set podDisruptionBudget.enabled=false >"$dir/less.yaml" 2>"$dir/said"
same kinds 'Deployment Service' "$(awk '/^kind:/ { print $2 }' "$dir/less.yaml" | sort | xargs)"
same names 'prod-karve prod-karve' "$(awk '/^  name:/ { print $2 }' "$dir/less.yaml" | xargs)"
same account own "$(awk '/serviceAccountName:/ { print $2 }' "$dir/less.yaml")"
quiet
result $? parts_can_be_left_out

for bad in replicas=-1 replicas=two provider=gcp logLevel=loud repllicas=2 metrics.port=0 metrics.port=65536 kubeClient.qps=0 \
    batch.idleDuration=soon image.digest=sha256:1 image.pullPolicy=Sometimes hostSpread=No leaderElection.enabled=false \
    registrationHealth.policy=best images.compatibility=maybe images.groups=all extender.port=0 'images.pullSecretNamespaces={A}' featureGates.Unheard=true threads=0 'extraArgs={region}' 'planEffort=much'; do
    render --set "$bad" >/dev/null 2>&1 && echo "accepted: $bad"
done >"$dir/said"
quiet
result $? values_that_make_no_sense_are_refused
finish

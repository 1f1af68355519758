#!/bin/sh
# Alerts and the dashboard ask for what the program really exports: monitoring.sh KARVE. TAP.
#
# A control plane on the example and an agent without a runtime are run for their metrics. Rules are
# checked and tried by promtool, where there is one.
karve=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
. tests/deploy/lib.sh
dashboard=deploy/grafana/karve.json
rules=deploy/prometheus/karve.rules.yaml

jq -e . $dashboard >/dev/null 2>"$dir/said"
result $? the_dashboard_is_json
{
    jq -r '[.panels[].id] | group_by(.)[] | select(length > 1) | "panel id \(.[0]) twice"' $dashboard
    jq -r '.panels[] | select(.type != "row") | select(.datasource.uid != "${datasource}" or ([.targets[].datasource.uid] | any(. != "${datasource}")))
        | "\(.title): a data source of its own"' $dashboard
    jq -r '.panels[] | select(.type != "row" and (.targets | length) == 0) | "\(.title): shows nothing"' $dashboard
    jq -r '[.templating.list[].name] as $names | [.. | .expr? // empty | scan("\\$([a-z_]+)")[0]] | unique[]
        | select(startswith("__") | not) | select(IN($names[]) | not) | "no variable $\(.)"' $dashboard
    # No two panels on one place.
    jq -r '[.panels[] | .gridPos as $g | {title, cells: [range($g.x; $g.x + $g.w) as $x | range($g.y; $g.y + $g.h) as $y | "\($x),\($y)"]}]
        | [.[] | .title as $t | .cells[] | {t: $t, c: .}] | group_by(.c)[] | select(length > 1) | "\(.[0].t) and \(.[1].t) overlap"' $dashboard | sort -u
} >"$dir/said" 2>&1
quiet
result $? its_panels_have_their_places_and_the_chosen_data_source

# --- what there is ---

scrape_controller() { # tries a few ports: one may be taken
    for port in $(awk -v seed=$$ 'BEGIN { srand(seed); for (i = 0; i < 5; i++) print 20000 + int(rand() * 12000) }'); do
        "$karve" controller --embedded examples/shop --boot-delay 100ms --quiet --metrics-port "$port" --health-probe-port 0 \
            2>"$dir/controller.log" &
        pid=$!
        for _ in $(seq 300); do
            kill -0 $pid 2>/dev/null || break
            curl -s "http://127.0.0.1:$port/metrics" >"$dir/seen"
            if grep -q '^karve_nodepools_registrations_total' "$dir/seen" && grep -q '^karpenter_pods_bound_duration' "$dir/seen"; then
                kill $pid
                wait $pid
                return 0
            fi
            sleep 0.1
        done
        kill $pid 2>/dev/null
        wait $pid
    done
    return 1
}
scrape_agent() {
    "$karve" agent --runtime-endpoint "unix://$dir/none.sock" --listen "unix://$dir/agent.sock" 2>"$dir/agent.log" &
    pid=$!
    found=1
    for _ in $(seq 300); do
        if curl -s --unix-socket "$dir/agent.sock" http://localhost/metrics >"$dir/agent" && grep -q ^kubelet_pleg "$dir/agent"; then
            found=0
            break
        fi
        sleep 0.1
    done
    cat "$dir/agent" >>"$dir/seen"
    kill $pid
    wait $pid
    return $found
}
scrape_controller
good=$?
tail -n 3 "$dir/controller.log" >"$dir/said"
result $good a_controller_shows_its_metrics
scrape_agent
good=$?
cat "$dir/agent.log" >"$dir/said"
result $good an_agent_shows_its_metrics
tr '\0' '\n' <"$karve" | grep -axE '(karpenter|karve|operator|kubelet|leader_election|rest_client|prober|nf)_[a-z0-9_]+' | sort -u >"$dir/literal"

# --- what is asked for ---

{
    jq -r '.panels[] | .title as $t | .targets[]? | "dashboard, \($t)\t\(.expr)"' $dashboard
    jq -r '.templating.list[] | select(.type == "query") | "dashboard, $\(.name)\t\(.definition)"' $dashboard | sed 's/label_values(\([^,]*\),.*/\1/'
    # `expr: ...` on a line, or `expr: |` and the lines that are indented further.
    awk '
        /alert:/ { name = $NF }
        /^ *expr: \|/ { match($0, /^ */); depth = RLENGTH; text = ""; inside = 1; next }
        inside { match($0, /^ */); if (RLENGTH > depth) { text = text " " $0; next } print "alert, " name "\t" text; inside = 0 }
        /^ *expr: / { line = $0; sub(/^ *expr: /, "", line); print "alert, " name "\t" line }
    ' $rules
} >"$dir/used"
awk -f tests/deploy/metrics_used.awk of=seen "$dir/seen" of=literal "$dir/literal" of=used "$dir/used" >"$dir/said" 2>"$dir/count"
cat "$dir/count"
quiet
result $? every_metric_and_label_that_is_asked_for_exists
same 'alerts with an expression' "$(grep -c -- '- alert:' $rules)" "$(grep -c ^alert, "$dir/used")"
quiet
result $? every_alert_was_looked_at
grep -oE 'alert: [A-Za-z]+' $rules | cut -d' ' -f2 | while read -r alert; do
    grep -A3 "alertname: $alert\$" tests/deploy/alerts_test.yaml | grep -q exp_alerts || echo "$alert: nothing shows that it fires"
    grep -q "alertname: $alert }" tests/deploy/alerts_test.yaml || echo "$alert: nothing shows that it can be silent"
done >"$dir/said"
quiet
result $? every_alert_has_a_test

if ! promtool=$(tool promtool); then
    skip prometheus_accepts_the_rules 'promtool is not installed (tests/deploy/promtool.sh fetches it)'
    skip alerts_fire_when_they_should_and_not_otherwise 'promtool is not installed'
    finish
fi
"$promtool" check rules --lint-fatal $rules >"$dir/said" 2>&1
result $? prometheus_accepts_the_rules
cp $rules tests/deploy/alerts_test.yaml "$dir"
(cd "$dir" && "$promtool" test rules alerts_test.yaml) >"$dir/said" 2>&1
result $? alerts_fire_when_they_should_and_not_otherwise
finish

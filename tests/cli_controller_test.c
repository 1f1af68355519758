/* karve controller --embedded, as users meet it: in real time, so these tests take seconds. */
#include "cli_testing.h"

#include "control/settings.h"

/* A folder with a pool of kwok's types and two pods; `run` starts the controller on it in the background
 * with the probes on a port of their own, and waits until it is ready. */
#define FOLDER                                                                                      \
    "dir=$(mktemp -d); mkdir $dir/m; port=$((20000 + $$ % 12000));\n"                               \
    "while grep -qs \":$(printf %04X $port) \" /proc/net/tcp /proc/net/tcp6; do"                    \
    " port=$((20000 + (port + 1) % 12000)); done\n"                                                 \
    "cat >$dir/m/pool.yaml <<'END'\n"                                                               \
    "apiVersion: karpenter.kwok.sh/v1alpha1\n"                                                      \
    "kind: KWOKNodeClass\n"                                                                         \
    "metadata: {name: default}\n"                                                                   \
    "---\n"                                                                                         \
    "apiVersion: karpenter.sh/v1\n"                                                                 \
    "kind: NodePool\n"                                                                              \
    "metadata: {name: default}\n"                                                                   \
    "spec:\n"                                                                                       \
    "  template:\n"                                                                                 \
    "    spec:\n"                                                                                   \
    "      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"          \
    "      requirements:\n"                                                                         \
    "      - {key: kubernetes.io/os, operator: In, values: [linux]}\n"                              \
    "END\n"                                                                                         \
    "web() { cat >$dir/m/web.yaml <<END\n"                                                          \
    "apiVersion: apps/v1\n"                                                                         \
    "kind: Deployment\n"                                                                            \
    "metadata: {name: web}\n"                                                                       \
    "spec:\n"                                                                                       \
    "  replicas: $1\n"                                                                              \
    "  selector: {matchLabels: {app: web}}\n"                                                       \
    "  template:\n"                                                                                 \
    "    metadata: {labels: {app: web}}\n"                                                          \
    "    spec:\n"                                                                                   \
    "      containers:\n"                                                                           \
    "      - {name: c, image: i, resources: {requests: {cpu: 500m, memory: 512Mi}}}\n"              \
    "END\n"                                                                                         \
    "}\n"                                                                                           \
    "run() { \"$KARVE\" controller --embedded $dir/m --boot-delay 100ms --metrics-port $port"       \
    " --health-probe-port $port --batch-idle-duration 200ms \"$@\" >$dir/out 2>$dir/log & pid=$!\n" \
    "  wait_for \"curl -sf localhost:$port/readyz\"; }\n"                                           \
    "wait_for() { for i in $(seq 300); do if eval \"$1\" >/dev/null; then return 0; fi; sleep 0.1;" \
    " done; echo \"timeout: $1\"; cat $dir/log; return 1; }\n"                                      \
    "running() { curl -s localhost:$port/metrics | grep -c"                                         \
    " '^karpenter_pods_state{.*phase=\"Running\"'; }\n"                                             \
    "stop() { kill -TERM $pid; wait $pid; echo exit $?; }\n"

static struct result run(const char *script)
{
    AUTO_BUF whole = { 0 };
    buf_addz(&whole, FOLDER);
    buf_addz(&whole, script);
    buf_addz(&whole, "rm -rf $dir\n");
    return sh(whole.p, STR(""));
}

static void need_curl(void)
{
    if (system("command -v curl >/dev/null") != 0)
        SKIP("curl is not installed");
}

/* On a machine that has a kubeconfig, too. */
#define NO_CLUSTER "unset KUBECONFIG KUBERNETES_SERVICE_HOST; HOME=/nonexistent; export HOME; "

TEST(without_a_cluster_or_embedded_it_says_what_to_do)
{
    AUTO_RESULT r = sh(NO_CLUSTER "karve controller", STR(""));
    EXPECT_EQ(r.code, 3);
    EXPECT_HAS(buf_str(&r.err), "no kubeconfig");
    EXPECT_HAS(buf_str(&r.err), "--embedded DIR");
}

TEST(variables_of_karpenter_are_read_for_flags_that_it_has_and_ours_win)
{
    AUTO_RESULT theirs = sh("BATCH_IDLE_DURATION=soon karve controller", STR(""));
    EXPECT_EQ(theirs.code, 2);
    EXPECT_HAS(buf_str(&theirs.err), "batch-idle-duration");
    AUTO_RESULT ours =
        sh("BATCH_IDLE_DURATION=2s KARVE_BATCH_IDLE_DURATION=later karve controller", STR(""));
    EXPECT_EQ(ours.code, 2);
    EXPECT_HAS(buf_str(&ours.err), "later");
    AUTO_RESULT unknown_there = sh(NO_CLUSTER "THREADS=none karve controller", STR(""));
    EXPECT_EQ(unknown_there.code, 3); /* that one Karpenter does not have */
}

TEST(what_kubernetes_sets_beside_a_service_is_not_taken_for_a_flag)
{
    AUTO_RESULT r =
        sh(NO_CLUSTER "KARVE_METRICS_PORT=tcp://10.0.0.7:8080 karve controller", STR(""));
    EXPECT_EQ(r.code, 3);
    EXPECT_HAS(buf_str(&r.err), "no kubeconfig");
}

TEST(a_server_that_does_not_answer_is_waited_for_and_a_signal_ends_that)
{
    AUTO_RESULT r = sh(
        "d=$(mktemp -d); cat >$d/config; "
        "KUBECONFIG=$d/config \"$KARVE\" controller --metrics-port 0 --health-probe-port 0 2>$d/log & pid=$!\n"
        "for i in $(seq 300); do grep -q 'cannot be used yet' $d/log && break; sleep 0.1; done\n"
        "kill -TERM $pid; wait $pid; echo exit $?; cat $d/log; rm -r $d",
        STR("apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
            "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
            "users: [{name: u, user: {token: t}}]\n"
            "contexts: [{name: dev, context: {cluster: c, user: u}}]\n"));
    EXPECT_HAS(buf_str(&r.out), "exit 0");
    EXPECT_HAS(buf_str(&r.out), "connection refused");
}

TEST(a_folder_that_is_not_there_is_an_environment_that_failed)
{
    AUTO_RESULT r = karve("controller --embedded /nonexistent");
    EXPECT_EQ(r.code, 3);
    EXPECT_HAS(buf_str(&r.err), "/nonexistent");
}

TEST(a_folder_without_manifests_is_told_so)
{
    AUTO_RESULT r = karve("controller --embedded docs/img");
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "no manifests in docs/img");
}

TEST(invalid_manifests_are_told_with_file_and_line_and_nothing_starts)
{
    AUTO_RESULT r = karve("controller --embedded tests/bad/nodepool-weight-too-large.yaml");
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "nodepool-weight-too-large.yaml:");
    EXPECT_HAS(buf_str(&r.err), "weight");
}

TEST(mistakes_on_the_command_line_are_usage_errors)
{
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        { "controller --embedded examples x", "unexpected argument" },
        { "controller --embedded examples --boot-delay soon", "a duration such as 30s" },
        { "controller --embedded examples --boot-delay 5s..1s", "a duration such as 30s" },
        { "controller --embedded examples --batch-idle-duration x", "--batch-idle-duration" },
        { "controller --embedded examples --region nowhere", "nowhere" },
        { "controller --embedded examples --feature-gates X=true", "unknown feature gate" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_RESULT r = karve(cases[i].arguments);
        EXPECT_EQ(r.code, 2);
        EXPECT_HAS(buf_str(&r.err), cases[i].says);
    }
}

TEST(every_setting_of_the_control_plane_has_a_flag_with_its_default)
{
    AUTO_RESULT r = karve("controller --help");
    for (uint32_t i = 0; i < control_setting_count; i++) {
        AUTO_BUF flag = { 0 }, dflt = { 0 };
        buf_addf(&flag, "--%s ", control_setting_table[i].name);
        control_setting_format(&control_settings_default, i, &dflt);
        EXPECT_HAS(buf_str(&r.out), flag.p);
        EXPECT_HAS(buf_str(&r.out), dflt.p);
    }
}

TEST(pods_of_the_folder_get_nodes_and_it_ends_cleanly)
{
    need_curl();
    AUTO_RESULT r =
        run("web 2; run || exit 1\n"
            "curl -s localhost:$port/healthz\n"
            "wait_for '[ $(running) -ge 2 ]' && echo two run\n"
            "curl -s localhost:$port/metrics | grep -c '^karpenter_nodeclaims_created_total'\n"
            "curl -s localhost:$port/metrics | grep -c '^karpenter_build_info{version=\"'\n"
            "stop\n");
    EXPECT_STR(buf_str(&r.out), "ok\ntwo run\n1\n1\nexit 0\n");
}

TEST(on_a_terminal_a_table_is_drawn_over_itself_and_the_terminal_is_left_as_it_was)
{
    if (system("command -v script >/dev/null") != 0)
        SKIP("script is not installed");
    AUTO_RESULT r = run(
        "web 2\n"
        "script -qec \"echo \\$\\$ >$dir/pid; exec $KARVE controller --embedded $dir/m --boot-delay "
        "100ms --metrics-port 0 --health-probe-port 0\" /dev/null </dev/null >$dir/screen & pid=$!\n"
        "wait_for '[ $(grep -c \"REGISTRATION HEALTHY\" $dir/screen) -ge 2 ]'\n"
        "kill -INT $(cat $dir/pid); wait $pid; cat $dir/screen\n");
    struct str out = buf_str(&r.out);
    EXPECT_HAS(out, "karve controller");
    EXPECT_HAS(out, "NODEPOOL  NODES  CLAIMS  REGISTRATION HEALTHY");
    EXPECT_HAS(out, "\033[?25h"); /* the cursor is back */
    EXPECT_TRUE(memmem(out.p, out.len, "\033[2J", 4) == NULL);
}

TEST(a_changed_file_is_applied_and_a_removed_one_deleted)
{
    need_curl();
    AUTO_RESULT r = run(
        "web 1; run || exit 1\n"
        "wait_for '[ $(running) -eq 1 ]' && echo one\n"
        "web 3; wait_for '[ $(running) -eq 3 ]' && echo three\n"
        "echo 'kind: nonsense' >$dir/m/bad.yaml; wait_for 'grep -q bad.yaml $dir/log' && echo told\n"
        "rm $dir/m/bad.yaml $dir/m/web.yaml; wait_for '[ $(running) -eq 0 ]' && echo none\n"
        "stop\n");
    EXPECT_STR(buf_str(&r.out), "one\nthree\ntold\nnone\nexit 0\n");
}

TEST(with_a_state_file_a_restart_goes_on)
{
    need_curl();
    AUTO_RESULT r = run(
        "web 2; run --state $dir/state || exit 1\n"
        "wait_for '[ $(running) -eq 2 ]' && echo two\n"
        "stop\n"
        "grep -c 'kind: \"*Node\"*$' $dir/state\n"
        "run --state $dir/state || exit 1\n"
        "wait_for '[ $(running) -eq 2 ]' && echo two\n"
        "sleep 2; curl -s localhost:$port/metrics | grep -c '^karpenter_nodeclaims_created_total'\n"
        "stop\n");
    EXPECT_STR(buf_str(&r.out), "two\nexit 0\n1\ntwo\n0\nexit 0\n");
}

TEST(a_port_that_is_taken_is_an_environment_that_failed)
{
    need_curl();
    AUTO_RESULT r = run("web 0; run || exit 1\n"
                        "\"$KARVE\" controller --embedded $dir/m --metrics-port $port "
                        "--health-probe-port 0 2>/dev/null; echo second $?\n"
                        "stop\n");
    EXPECT_STR(buf_str(&r.out), "second 3\nexit 0\n");
}

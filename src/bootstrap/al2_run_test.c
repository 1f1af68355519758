/* What AL2 is given, run: the archive is taken apart by a reader of its own, its scripts are run
 * in the order of cloud-init by bash, in a folder that stands for the node. systemctl, containerd
 * and bootstrap.sh are fakes that behave as the real ones do where it matters, and write down what
 * they saw. /etc/ and /run/ in the scripts are those of the folder. */
#include "bootstrap/boot.h"

#include "base/file.h"
#include "codec/json.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the fakes --- */

/* Starting the kubelet does nothing while a condition of its unit fails, as systemd has it. When
 * it starts, what it was configured with is kept. */
static const char fake_systemctl[] =
    "#!/bin/bash\n"
    "echo \"systemctl $*\" >> ROOT/log\n"
    "[ \"$1 $2\" = 'enable kubelet' ] && touch ROOT/enabled\n"
    "case \"$1 $2\" in 'start kubelet' | 'restart kubelet') ;; *) exit 0 ;; esac\n"
    "for c in $(sed -n 's/^ConditionPathExists=//p' "
    "ROOT/etc/systemd/system/kubelet.service.d/*.conf); do\n"
    "  case $c in\n"
    "  !*) [ ! -e \"${c#!}\" ] || { echo held >> ROOT/log; exit 0; } ;;\n"
    "  *) [ -e \"$c\" ] || { echo held >> ROOT/log; exit 0; } ;;\n"
    "  esac\n"
    "done\n"
    "echo started >> ROOT/log\n"
    "cp ROOT/etc/kubernetes/kubelet/kubelet-config.json ROOT/started.json\n"
    "cp ROOT/etc/systemd/system/kubelet.service.d/30-kubelet-extra-args.conf ROOT/started.conf\n";

/* The stock script: options with a value, other words are positional and the first is the
 * cluster. */
static const char fake_bootstrap[] =
    "#!/bin/bash\n"
    "set -o errexit\n"
    "for word in \"$@\"; do printf '%s\\n' \"$word\" >> ROOT/words; done\n"
    "words=() disabled=\n"
    "while [ $# -gt 0 ]; do\n"
    "  case $1 in\n"
    "  --kubelet-extra-args) extra=$2; shift 2 ;;\n"
    "  --kubelet-disabled) [ ! -e ROOT/knows-disabled ] || disabled=yes; "
    "words+=(\"$1\"); shift ;;\n"
    "  --use-max-pods | --b64-cluster-ca | --apiserver-endpoint) shift 2 ;;\n"
    "  --dns-cluster-ip | --ip-family | --local-disks) shift 2 ;;\n"
    "  *) words+=(\"$1\"); shift ;;\n"
    "  esac\n"
    "done\n"
    "echo \"bootstrap ${words[0]}\" >> ROOT/log\n"
    "[ ! -e ROOT/bootstrap-fails ]\n"
    "mkdir -p ROOT/etc/systemd/system/kubelet.service.d\n"
    "echo '{\"maxPods\":1,\"featureGates\":{\"A\":true},\"clusterDNS\":[\"10.0.0.10\"]}' "
    "> ROOT/etc/kubernetes/kubelet/kubelet-config.json\n"
    "printf \"[Service]\\nEnvironment='KUBELET_EXTRA_ARGS=%s'\\n\" \"$extra\" "
    "> ROOT/etc/systemd/system/kubelet.service.d/30-kubelet-extra-args.conf\n"
    "[ -z \"$disabled\" ] || exit 0\n"
    "systemctl daemon-reload\n"
    "systemctl enable kubelet\n"
    "systemctl start kubelet\n";

static const char fake_containerd[] = "#!/bin/bash\n! grep -q BROKEN \"$2\"\n";

/* --- the node --- */

struct node {
    char root[64];
    struct arena arena;
    struct boot_cluster cluster;
    struct boot boot;
    struct boot_text text;
};

static void replace_all(struct str text, const char *what, const char *by, struct buf *out)
{
    size_t len = strlen(what);
    for (size_t i = 0; i < text.len;) {
        if (str_starts(str_sub(text, i, len), str_of(what)) && len <= text.len - i) {
            buf_addz(out, by);
            i += len;
        } else {
            buf_addc(out, text.p[i++]);
        }
    }
}

static void put(const struct node *n, const char *path, struct str text, mode_t mode)
{
    AUTO_BUF full = { 0 };
    buf_addf(&full, "%s/%s", n->root, path);
    FILE *f = fopen(full.p, "w");
    if (!f)
        fail_msg("%s", full.p);
    fwrite(text.p, 1, text.len, f);
    fclose(f);
    chmod(full.p, mode);
}

static void put_fake(const struct node *n, const char *path, const char *text)
{
    AUTO_BUF own = { 0 };
    replace_all(str_of(text), "ROOT", n->root, &own);
    put(n, path, buf_str(&own), 0755);
}

/* A file of the node; "" if it is not there. */
static struct str get(struct node *n, const char *path)
{
    AUTO_BUF full = { 0 }, text = { 0 };
    struct err err = { 0 };
    buf_addf(&full, "%s/%s", n->root, path);
    file_read(full.p, 1 << 20, &text, &err);
    return arena_str(&n->arena, buf_str(&text));
}

/* A command of this machine, or one on the node: that has nothing but what is in its bin folder. */
static int shell(const struct node *maybe_node, const char *command)
{
    pid_t child = fork();
    if (child == 0) {
        AUTO_BUF path = { 0 }, log = { 0 };
        if (maybe_node) {
            buf_addf(&path, "%s/bin", maybe_node->root);
            buf_addf(&log, "%s/output", maybe_node->root);
            setenv("PATH", path.p, 1);
            setenv("LC_ALL", "C.UTF-8", 1);
            if (!freopen(log.p, "a", stdout) || dup2(fileno(stdout), 2) < 0)
                _exit(127);
        }
        execl("/bin/bash", "bash", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int sh(const struct node *n, const char *fmt, ...) KV_PRINTF(2, 3);

static int sh(const struct node *n, const char *fmt, ...)
{
    AUTO_BUF command = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&command, fmt, args);
    va_end(args);
    return shell(n, command.p);
}

static const struct str_pair node_labels[] = {
    { STR("karpenter.sh/nodepool"), STR("fruit") },
    { STR("team"), STR("pear") },
};
static const struct taint node_taints[] = {
    { .key = STR("dedicated"), .value = STR("fruit"), .effect = EFFECT_NO_SCHEDULE },
};

static bool have(const char *tool)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "command -v %s > /dev/null", tool);
    return shell(NULL, command.p) == 0;
}

static void node_start(struct node *n)
{
    static const char *const tools[] = { "awk", "bash",  "cat", "chmod", "cp",  "grep", "jq",
                                         "ln",  "mkdir", "mv",  "rm",    "sed", "touch" };
    *n = (struct node){ 0 };
    snprintf(n->root, sizeof n->root, "/tmp/karve-al2-XXXXXX");
    if (!mkdtemp(n->root))
        fail_msg("no temporary folder");
    AUTO_BUF set_up = { 0 };
    buf_addf(&set_up,
             "cd %s && mkdir -p bin run etc/eks etc/kubernetes/kubelet etc/systemd/system "
             "etc/containerd",
             n->root);
    for (size_t i = 0; i < KV_COUNT_OF(tools); i++)
        buf_addf(&set_up, " && ln -s $(command -v %s) bin/%s", tools[i], tools[i]);
    if (shell(NULL, set_up.p) != 0)
        fail_msg("set-up failed: %s", set_up.p);
    put_fake(n, "bin/systemctl", fake_systemctl);
    put_fake(n, "bin/containerd", fake_containerd);
    put_fake(n, "etc/eks/bootstrap.sh", fake_bootstrap);

    n->cluster = (struct boot_cluster){ .name = STR("orchard"),
                                        .endpoint = STR("https://a.example"),
                                        .ca = STR("Q0E="),
                                        .dns = STR("172.20.0.10") };
    n->boot = (struct boot){ .cluster = &n->cluster,
                             .family = AMI_FAMILY_AL2,
                             .labels = { node_labels, 2 },
                             .taints = { node_taints, 1 },
                             .max_pods = { 29, true } };
}

static void node_done(struct node *n)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "rm -rf %s", n->root);
    if (shell(NULL, command.p) != 0)
        fprintf(stderr, "# %s is left\n", n->root);
    arena_done(&n->arena);
}

#define NODE(name)                                                                                 \
    if (!have("jq"))                                                                               \
        SKIP("jq is not installed");                                                               \
    __attribute__((cleanup(node_done))) struct node name;                                          \
    node_start(&name)

/* --- cloud-init --- */

struct script {
    char name[64];
    struct str body;
};

/* Takes one part off the front, by nothing but the text of the archive. */
static bool next_script(struct str *rest, struct str delimiter, uint32_t number, struct script *out)
{
    if (!str_starts(*rest, delimiter) || rest->p[delimiter.len] != '\n')
        return false;
    *rest = str_sub(*rest, delimiter.len + 1, rest->len);
    snprintf(out->name, sizeof out->name, "part-%03u", number);
    struct str line;
    while (str_cut(*rest, '\n', &line, rest) && line.len) {
        const char *name = memmem(line.p, line.len, "filename=\"", 10);
        if (name)
            snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(name + 10, "\""), name + 10);
    }
    AUTO_BUF end = { 0 };
    buf_addf(&end, "\n%.*s", STR_ARG(delimiter));
    const char *stop = memmem(rest->p, rest->len, end.p, end.len);
    if (!stop)
        fail_msg("a part without an end");
    size_t len = (size_t)(stop - rest->p);
    out->body = str_sub(*rest, 0, len);
    *rest = str_sub(*rest, len + 1, rest->len);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct script *)a)->name, ((const struct script *)b)->name);
}

static uint32_t read_scripts(struct node *n, struct script scripts[8])
{
    struct err err = { 0 };
    EXPECT_OK(boot_render(&n->arena, &n->boot, &n->text, &err), err);
    struct str head = STR("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n");
    EXPECT_TRUE(str_starts(n->text.text, head));
    struct str rest = str_sub(n->text.text, head.len, n->text.text.len);
    uint32_t count = 0;
    while (count < 8 && next_script(&rest, STR("--//"), count, &scripts[count]))
        count++;
    EXPECT_STR(rest, "--//--\n");
    qsort(scripts, count, sizeof scripts[0], by_name);
    return count;
}

/* A script that fails does not stop those after it. */
static void run_script(struct node *n, const struct script *script)
{
    AUTO_BUF etc = { 0 }, run = { 0 }, own_etc = { 0 }, own_run = { 0 };
    buf_addf(&own_etc, "%s/etc/", n->root);
    buf_addf(&own_run, "%s/run/", n->root);
    replace_all(script->body, "/etc/", own_etc.p, &etc);
    replace_all(buf_str(&etc), "/run/", own_run.p, &run);
    put(n, "script", buf_str(&run), 0755);
    sh(n, "echo 'run %s' >> %s/log; %s/script", script->name, n->root, n->root);
}

static void boot_node(struct node *n, const char *user_data)
{
    struct script scripts[8];
    n->boot.user_data = user_data ? str_of(user_data) : STR_NONE;
    uint32_t count = read_scripts(n, scripts);
    for (uint32_t i = 0; i < count; i++)
        run_script(n, &scripts[i]);
}

/* What became of the kubelet's configuration when it started. */
static void expect_config(struct node *n, const char *want)
{
    struct doc got, expected;
    struct err err = { 0 };
    EXPECT_OK(json_read(get(n, "started.json"), &got, &err), err);
    EXPECT_OK(json_read(str_of(want), &expected, &err), err);
    AUTO_BUF text = { 0 };
    json_write_canonical(got.root, &text);
    AUTO_BUF want_text = { 0 };
    json_write_canonical(expected.root, &want_text);
    doc_done(&got);
    doc_done(&expected);
    EXPECT_STR(buf_str(&text), want_text.p);
}

static void expect_joined(struct node *n)
{
    EXPECT_HAS(get(n, "log"), "\nsystemctl restart kubelet\nstarted\n");
    EXPECT_TRUE(str_ends(get(n, "log"), STR("\nstarted\n")));
    EXPECT_STR(get(n, "etc/systemd/system/kubelet.service.d/99-karve-hold.conf"), "");
    EXPECT_EQ(sh(n, "test -e %s/enabled", n->root), 0);
    EXPECT_EQ(sh(n, "[ $(grep -c '^started$' %s/log) = 1 ]", n->root), 0);
}

#define STOCK "\"maxPods\":1,\"featureGates\":{\"A\":true},\"clusterDNS\":[\"10.0.0.10\"]"

/* --- managed, user, managed --- */

TEST(the_users_part_runs_between_bootstrap_and_the_start_of_the_kubelet)
{
    NODE(n);
    boot_node(&n, "#!/bin/bash\n"
                  "cp /etc/kubernetes/kubelet/kubelet-config.json /etc/../seen.json\n"
                  "systemctl restart kubelet\n"); /* people do, and nothing comes of it */
    EXPECT_STR(get(&n, "log"), "run part-000\n"
                               "systemctl daemon-reload\n"
                               "bootstrap orchard\n"
                               "systemctl daemon-reload\n"
                               "systemctl enable kubelet\n"
                               "systemctl start kubelet\n"
                               "held\n"
                               "run part-001\n"
                               "systemctl restart kubelet\n"
                               "held\n"
                               "run part-002\n"
                               "systemctl daemon-reload\n"
                               "systemctl enable kubelet\n"
                               "systemctl restart kubelet\n"
                               "started\n");
    EXPECT_HAS(get(&n, "seen.json"), "\"maxPods\":1");
    expect_joined(&n);
    expect_config(&n, "{" STOCK "}");
    EXPECT_HAS(get(&n, "started.conf"),
               "--node-labels=\"karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=fruit,"
               "team=pear\" --register-with-taints=\"dedicated=fruit:NoSchedule,"
               "karpenter.sh/unregistered:NoExecute\" --max-pods=29'");
}

TEST(an_image_that_knows_the_flag_leaves_the_kubelet_to_the_last_part)
{
    NODE(n);
    put(&n, "knows-disabled", STR(""), 0644);
    boot_node(&n, "#!/bin/sh\ntrue\n");
    EXPECT_EQ(sh(&n, "! grep -q held %s/log", n.root), 0);
    expect_joined(&n);
}

TEST(a_reboot_starts_the_kubelet_whether_or_not_the_last_part_ran)
{
    NODE(n);
    struct script scripts[8];
    n.boot.user_data = STR("#!/bin/sh\nreboot\n");
    EXPECT_EQ(read_scripts(&n, scripts), 3);
    run_script(&n, &scripts[0]);
    EXPECT_EQ(sh(&n, "rm -rf %s/run; mkdir %s/run; systemctl start kubelet", n.root, n.root), 0);
    EXPECT_TRUE(str_ends(get(&n, "log"), STR("systemctl start kubelet\nstarted\n")));

    NODE(whole);
    boot_node(&whole, "#!/bin/sh\ntrue\n");
    sh(&whole, "rm -rf %s/run; mkdir %s/run; systemctl start kubelet", whole.root, whole.root);
    EXPECT_TRUE(str_ends(get(&whole, "log"), STR("systemctl start kubelet\nstarted\n")));
}

TEST(helpers_merge_json_and_add_arguments)
{
    NODE(n);
    boot_node(&n,
              "#!/bin/bash\n"
              "set -eu\n"
              ". /etc/karve/helpers.sh\n"
              "karve_kubelet_config_merge '{\"featureGates\":{\"B\":false},\"registryPullQPS\":50,"
              "\"clusterDNS\":[\"1.1.1.1\"]}'\n"
              "karve_kubelet_config_merge '{\"featureGates\":{\"A\":false}}'\n"
              "karve_kubelet_args '--v=4 --node-ip=10.0.0.1'\n"
              "karve_kubelet_args --seccomp-default\n");
    expect_joined(&n);
    expect_config(&n, "{\"maxPods\":1,\"featureGates\":{\"A\":false,\"B\":false},"
                      "\"registryPullQPS\":50,\"clusterDNS\":[\"1.1.1.1\"]}");
    EXPECT_HAS(get(&n, "started.conf"), "--node-labels=\"karpenter.sh/do-not-sync-taints");
    EXPECT_HAS(get(&n, "started.conf"),
               " --max-pods=29 --v=4 --node-ip=10.0.0.1 --seccomp-default'\n");
    EXPECT_EQ(sh(&n, "[ $(grep -c Environment %s/started.conf) = 1 ]", n.root), 0);
}

TEST(helpers_refuse_what_would_break_the_node)
{
    NODE(n);
    boot_node(&n, "#!/bin/bash\n"
                  ". /etc/karve/helpers.sh\n"
                  "for json in '' '{' '[1]' 'null' '{} {}' '{\"a\":}'; do\n"
                  "  karve_kubelet_config_merge \"$json\" && echo wrong\n"
                  "done\n"
                  "karve_kubelet_args \"--a='b'\" && echo wrong\n"
                  "karve_kubelet_args $'--a\\n[Service]' && echo wrong\n"
                  "karve_containerd_config BROKEN=1 && echo wrong\n");
    expect_joined(&n);
    expect_config(&n, "{" STOCK "}");
    EXPECT_EQ(sh(&n, "! grep -x wrong %s/output", n.root), 0);
    EXPECT_EQ(sh(&n,
                 "[ \"$(echo %s/etc/kubernetes/kubelet/*)\" = "
                 "%s/etc/kubernetes/kubelet/kubelet-config.json ]",
                 n.root, n.root),
              0);
    EXPECT_HAS(get(&n, "output"), "karve: not merged into");
}

TEST(settings_of_containerd_are_merged_into_its_file)
{
    NODE(n);
    put(&n, "etc/containerd/config.toml",
        STR("version = 2\n"
            "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
            "discard_unpacked_layers = true\n"
            "[plugins.\"io.containerd.grpc.v1.cri\"]\n"
            "sandbox_image = \"pause\"\n"),
        0644);
    boot_node(&n, "#!/bin/bash\n"
                  ". /etc/karve/helpers.sh\n"
                  "karve_containerd_config '\n"
                  "oom_score = -999\n"
                  "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
                  "discard_unpacked_layers = false\n"
                  "snapshotter = \"soci\"\n"
                  "[debug]\n"
                  "level = \"info\"'\n"
                  "karve_containerd_config 'BROKEN = true'\n");
    EXPECT_STR(get(&n, "etc/containerd/config.toml"),
               "version = 2\n"
               "oom_score = -999\n"
               "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
               "discard_unpacked_layers = false\n"
               "snapshotter = \"soci\"\n"
               "[plugins.\"io.containerd.grpc.v1.cri\"]\n"
               "sandbox_image = \"pause\"\n"
               "[debug]\n"
               "level = \"info\"\n");
    EXPECT_EQ(sh(&n, "[ $(grep -c 'restart containerd' %s/log) = 1 ]", n.root), 0);
    expect_joined(&n);
}

TEST(drop_ins_are_merged_in_the_order_of_their_names_and_broken_ones_skipped)
{
    NODE(n);
    boot_node(&n, "#!/bin/bash\n"
                  "cd /etc/karve/kubelet.d\n"
                  "echo '{\"maxPods\":20,\"b\":{\"x\":1,\"y\":1}}' > 20.json\n"
                  "echo '{\"maxPods\":10,\"a\":1}' > 10.json\n"
                  "echo '{\"b\":{\"y\":2},\"Z\":1}' > 'a file.json'\n"
                  "echo '{\"Z\":2}' > B.json\n"
                  "echo '{\"broken\":' > 15.json\n"
                  "echo '[]' > 16.json\n"
                  "echo '{\"other\":1}' > 30.yaml\n"
                  "mkdir 40.json\n"
                  "echo 'maxPods: 3' > 50.json\n");
    expect_joined(&n);
    /* In byte order B.json comes before "a file.json", whatever the locale. */
    expect_config(&n,
                  "{\"maxPods\":20,\"featureGates\":{\"A\":true},\"clusterDNS\":[\"10.0.0.10\"],"
                  "\"a\":1,\"b\":{\"x\":1,\"y\":2},\"Z\":1}");
    EXPECT_HAS(get(&n, "output"), "kubelet.d/15.json");
}

TEST(the_node_joins_whatever_the_users_part_does)
{
    static const char *const scripts[] = {
        "#!/bin/bash\nexit 7\n",
        "#!/bin/bash\nset -e\nfalse\n",
        "#!/no/such/interpreter\n",
        "#!/bin/bash\nexec false\n",
        "#!/bin/bash\nkill -9 $$\n",
        "#!/bin/bash\ncd /etc/karve && umask 777 && trap '' TERM && exec 2> /dev/null\n",
        "#!/bin/bash\n(read -t 1 < /dev/zero; exit 3) &\ndisown -a\n",
        "#!/usr/bin/env no-such-python\nimport os\n",
        "#!/bin/bash\nsystemctl restart kubelet\n", /* it is held */
        "no such command\n",
        "#!/bin/bash\nrm -rf /etc/karve /run/karve\n",
        "#!/bin/bash\necho 'exit 1' > /etc/karve/helpers.sh\n",
        "#!/bin/bash\necho 'if (' > /etc/karve/helpers.sh\n"
        "echo '{}' > /etc/karve/kubelet.d/a.json\n",
        "#!/bin/bash\necho '{\"a\":1}' > /etc/karve/kubelet.d/a.json\n"
        "printf '#!/bin/sh\\nexit 127\\n' > /etc/../bin/new; chmod +x /etc/../bin/new\n"
        "mv -f /etc/../bin/new /etc/../bin/jq\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(scripts); i++) {
        NODE(n);
        boot_node(&n, scripts[i]);
        expect_joined(&n);
        expect_config(&n, "{" STOCK "}");
    }
}

TEST(a_bootstrap_that_fails_leaves_no_hold_behind)
{
    NODE(n);
    put(&n, "bootstrap-fails", STR(""), 0644);
    boot_node(&n, "#!/bin/bash\ntrue\n");
    EXPECT_TRUE(str_ends(get(&n, "log"), STR("systemctl restart kubelet\nstarted\n")));
    EXPECT_STR(get(&n, "etc/systemd/system/kubelet.service.d/99-karve-hold.conf"), "");
}

TEST(parts_with_file_names_still_run_between)
{
    NODE(n);
    boot_node(&n, "MIME-Version: 1.0\n"
                  "Content-Type: multipart/mixed; boundary=B\n\n"
                  "--B\n"
                  "Content-Type: text/x-shellscript\n"
                  "Content-Disposition: attachment; filename=\"setup.sh\"\n\n"
                  "#!/bin/bash\ntrue\n"
                  "--B\n"
                  "Content-Type: text/x-shellscript\n"
                  "Content-Disposition: attachment; filename=\"early.sh\"\n\n"
                  "#!/bin/bash\ntrue\n"
                  "--B\n"
                  "Content-Type: text/x-shellscript\n\n"
                  "#!/bin/bash\ntrue\n"
                  "--B--\n");
    EXPECT_EQ(
        sh(&n,
           "[ \"$(sed -n 's/^run //p' %s/log | cat)\" = "
           "$'0-0-karve-bootstrap.sh\\nearly.sh\\npart-003\\nsetup.sh\\nzzz-karve-kubelet.sh' ]",
           n.root),
        0);
    expect_joined(&n);
    EXPECT_EQ(n.text.warnings.count, 0);
}

/* --- the other orders --- */

TEST(in_the_order_user_managed_bootstrap_starts_the_kubelet_after_the_users_part)
{
    NODE(n);
    struct kubelet_config kubelet;
    struct err err = { 0 };
    EXPECT_OK(kubelet_config_read(&n.arena, STR("{\"kubeReserved\":{\"cpu\":\"100m\"}}"),
                                  AMI_FAMILY_AL2, &kubelet, &err),
              err);
    n.boot.order = ORDER_USER_MANAGED;
    n.boot.kubelet = &kubelet;
    boot_node(&n, "#!/bin/bash\ntrue\n");
    EXPECT_STR(get(&n, "log"), "run part-000\n"
                               "run part-001\n"
                               "bootstrap orchard\n"
                               "systemctl daemon-reload\n"
                               "systemctl enable kubelet\n"
                               "systemctl start kubelet\n"
                               "started\n");
    EXPECT_HAS(get(&n, "started.conf"), "--max-pods=29 --kube-reserved=\"cpu=100m\"'");
    EXPECT_EQ(sh(&n, "test ! -e %s/etc/karve", n.root), 0);
}

TEST(without_user_data_bootstrap_does_it_all)
{
    NODE(n);
    boot_node(&n, NULL);
    EXPECT_STR(get(&n, "log"), "run part-000\n"
                               "bootstrap orchard\n"
                               "systemctl daemon-reload\n"
                               "systemctl enable kubelet\n"
                               "systemctl start kubelet\n"
                               "started\n");
}

/* --- quoting --- */

TEST(bootstrap_gets_every_value_as_it_is)
{
    NODE(n);
    n.cluster.name = STR("o'r$(touch /etc/pwned)\"`x`\\ \xc3\xa9");
    n.cluster.endpoint = STR("https://a'; touch /etc/pwned; '");
    n.cluster.dns = STR("fd00::a");
    n.boot.raid0 = true;
    boot_node(&n, "#!/bin/bash\ntrue\n");
    EXPECT_EQ(sh(&n, "test ! -e %s/etc/pwned", n.root), 0);
    AUTO_BUF words = { 0 };
    /* The folder's name is in what the shell saw of /etc/. */
    buf_addf(&words,
             "o'r$(touch %s/etc/pwned)\"`x`\\ \xc3\xa9\n"
             "--apiserver-endpoint\nhttps://a'; touch %s/etc/pwned; '\n"
             "--b64-cluster-ca\nQ0E=\n"
             "--ip-family\nipv6\n"
             "--dns-cluster-ip\nfd00::a\n"
             "--use-max-pods\nfalse\n"
             "--kubelet-extra-args\n"
             "--node-labels=\"karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=fruit,"
             "team=pear\" --register-with-taints=\"dedicated=fruit:NoSchedule,"
             "karpenter.sh/unregistered:NoExecute\" --max-pods=29\n"
             "--local-disks\nraid0\n"
             "--kubelet-disabled\n",
             n.root, n.root);
    EXPECT_STR(get(&n, "words"), words.p);
}

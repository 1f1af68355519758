/* karve plan: what would be launched for these manifests, what it costs, and why. */
#include "cmd/image_setup.h"
#include "cmd/plan_inner.h"

#include <unistd.h>

#define PROGRESS_PODS_MIN 10000 /* fewer are planned for before anybody starts to wonder */

/* --- which pods to explain --- */

struct named_pod {
    uint32_t pod;
    struct str name; /* "default/web-0" */
};

static int by_name(const void *va, const void *vb)
{
    return str_cmp(((const struct named_pod *)va)->name, ((const struct named_pod *)vb)->name);
}

static struct named_pod *pending_pods(struct planning *p, uint32_t *count)
{
    const struct plan *plan = p->plan;
    *count = plan->order.count + plan->miss_count;
    struct named_pod *pods = arena_array(&p->arena, struct named_pod, *count);
    for (uint32_t i = 0; i < *count; i++) {
        uint32_t pod =
            i < plan->order.count ? plan->order.items[i] : plan->misses[i - plan->order.count].pod;
        pods[i] = (struct named_pod){ pod, p->pod_names[pod] };
    }
    qsort(pods, *count, sizeof *pods, by_name);
    return pods;
}

/* A pod or a workload, with or without its namespace. */
static bool is_named(const struct planning *p, uint32_t pod, struct str word)
{
    const struct meta *meta = &p->snapshot.pods[pod]->object.meta;
    const struct plan_workload *w = &p->workloads[p->pod_workloads[pod]];
    struct str namespace_, name;
    if (!str_cut(word, '/', &namespace_, &name))
        return str_eq(word, meta->name) || str_eq(word, w->name);
    return str_eq(namespace_, meta->namespace_) &&
           (str_eq(name, meta->name) || str_eq(name, w->name));
}

/* Pods that are not planned for have a short explanation. False: there is no such pod. */
static bool explain_others(struct planning *p, struct str word)
{
    bool found = false;
    for (uint32_t i = 0; i < p->plan->skip_count; i++) {
        const struct plan_skip *skip = &p->plan->skips[i];
        if (!is_named(p, skip->pod, word))
            continue;
        planning_note(p, "%.*s is skipped: %.*s", STR_ARG(p->pod_names[skip->pod]),
                      STR_ARG(skip->reason));
        found = true;
    }
    for (uint32_t i = 0; i < p->snapshot.pod_count; i++) {
        const struct pod *pod = p->snapshot.pods[i];
        if (!pod_is_scheduled(pod) || !is_named(p, i, word))
            continue;
        AUTO_BUF node = { 0 };
        name_format(pod->node_name, &node);
        planning_note(p, "%.*s is bound to node %s", STR_ARG(p->pod_names[i]), node.p);
        found = true;
    }
    return found;
}

static int no_such_pod(const struct planning *p, struct str word, const struct named_pod *pods,
                       uint32_t count)
{
    struct str near = STR_NONE;
    size_t near_distance = 4;
    for (uint32_t i = 0; i < count; i++) {
        const struct meta *meta = &p->snapshot.pods[pods[i].pod]->object.meta;
        struct str name = str_find(word, '/') >= 0 ? pods[i].name : meta->name;
        size_t distance = str_distance(word, name, 3);
        if (distance < near_distance) {
            near = pods[i].name;
            near_distance = distance;
        }
    }
    if (near.p)
        return print_complaint("plan", EXIT_USAGE,
                               "--explain: there is no pod %s; did you mean %.*s?", STR_SHOWN(word),
                               STR_ARG(near));
    return print_complaint("plan", EXIT_USAGE, "--explain: there is no pod %s", STR_SHOWN(word));
}

static int choose_explained(struct planning *p, const struct invocation *inv, bool html)
{
    size_t words_max = inv->settings.count;
    const char **words = arena_array(&p->arena, const char *, words_max);
    size_t word_count = flag_values(inv, "explain", words, words_max);
    uint32_t count, chosen_count = 0;
    if (!word_count && !html)
        return EXIT_DONE;
    struct named_pod *pods = pending_pods(p, &count);
    bool *chosen = arena_array(&p->arena, bool, count);
    for (size_t w = 0; w < word_count + html; w++) {
        struct str word = w < word_count ? str_of(words[w]) : STR("all");
        bool all = str_eqz(word, "all"), found = all;
        for (uint32_t i = 0; i < count; i++) {
            bool named = all || is_named(p, pods[i].pod, word);
            chosen[i] |= named;
            found |= named;
        }
        if (!found && !explain_others(p, word))
            return no_such_pod(p, word, pods, count);
    }
    uint32_t *explained = arena_array(&p->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        if (chosen[i])
            explained[chosen_count++] = pods[i].pod;
    }
    struct explanation *explanations = arena_array(&p->arena, struct explanation, chosen_count);
    if (chosen_count)
        plan_explain(&p->arena, &p->snapshot, p->options, p->plan, explained, chosen_count,
                     explanations);
    p->explained = explained;
    p->explained_count = chosen_count;
    p->explanations = explanations;
    return EXIT_DONE;
}

/* --- the plan --- */

static void build(struct planning *p)
{
    bool progress = p->snapshot.pod_count >= PROGRESS_PODS_MIN && isatty(STDERR_FILENO);
    if (progress)
        fprintf(stderr, "planning for %u pods ...", p->snapshot.pod_count);
    p->plan = plan_build(&p->arena, &p->snapshot, p->options);
    if (progress)
        fputs("\r\033[K", stderr);
    if (!p->plan->order.count && !p->plan->miss_count)
        planning_note(p, "no pod is waiting for a node");
}

static void check(struct planning *p)
{
    p->checked = true;
    p->check = plan_check(&p->arena, &p->snapshot, p->options, p->plan);
}

/* Without a NodePool nothing can be launched, and a newcomer does not have one yet. */
static void show_node_pool(const struct planning *p)
{
    if (p->snapshot.pool_count)
        return;
    fputs("there is no NodePool among the manifests, so nothing can be launched. The smallest "
          "one:\n\n"
          "  apiVersion: karpenter.sh/v1\n"
          "  kind: NodePool\n"
          "  metadata:\n"
          "    name: default\n"
          "  spec:\n"
          "    template:\n"
          "      spec:\n"
          "        nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
          "        requirements:\n"
          "        - {key: kubernetes.io/arch, operator: In, values: [amd64]}\n"
          "        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}\n\n",
          stderr);
}

/* --- printing --- */

static bool is_utf8_locale(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static struct plan_look look_of(const struct invocation *inv)
{
    bool colour = colour_wanted(inv, stdout);
    return (struct plan_look){
        .wide = strcmp(flag_value(inv, "output"), "wide") == 0,
        .colour = colour,
        .unicode = (colour || isatty(STDOUT_FILENO)) && is_utf8_locale(),
    };
}

static void print(const struct planning *p, const struct invocation *inv, struct buf *out)
{
    const char *format = flag_value(inv, "output");
    if (strcmp(format, "json") == 0) {
        plan_json(p, out);
    } else if (strcmp(format, "yaml") == 0) {
        plan_yaml(p, out);
    } else if (strcmp(format, "html") == 0) {
        plan_html(p, out);
    } else {
        plan_table(p, look_of(inv), out);
        plan_explain_text(p, look_of(inv), out);
    }
}

static int make_and_print(struct planning *p, const struct invocation *inv)
{
    AUTO_BUF out = { 0 };
    build(p);
    int code = choose_explained(p, inv, strcmp(flag_value(inv, "output"), "html") == 0);
    if (code != EXIT_DONE)
        return code;
    if (flag_given(inv, "check"))
        check(p);
    show_node_pool(p);
    print(p, inv, &out);
    bool yes = !p->plan->miss_count && !p->check.count && !p->manifests.error_count &&
               !p->running.error_count;
    return print_out(&out, "karve plan", yes ? EXIT_DONE : EXIT_NO);
}

static int run_plan(const struct invocation *inv)
{
    struct planning p = { 0 };
    int code = planning_load(&p, inv);
    if (code == EXIT_DONE)
        code = make_and_print(&p, inv);
    planning_done(&p);
    return code;
}

/* --- the table --- */

static const char *const output_choices[] = { "table", "wide", "json", "yaml", "html", NULL };
static const char *const preference_choices[] = { "Respect", "Ignore", NULL };
static const char *const min_values_choices[] = { "Strict", "BestEffort", NULL };

static const struct flag flags[] = {
    { .name = "filename",
      .letter = 'f',
      .value = "PATH",
      .help = "what is wanted: workloads, pods, NodePools, ...; a file, a folder, or - for "
              "standard input",
      .many = true,
      .files = true },
    { .name = "nodes",
      .value = "PATH",
      .help = "what is there: nodes, the pods on them, volumes, ...",
      .many = true,
      .files = true },
    { .name = "context",
      .value = "NAME|PATH",
      .help = "what is there: a context of the kubeconfig, read live, or a dump of a whole cluster",
      .files = true },
    { .name = "kubeconfig",
      .value = "PATH",
      .help = "read the live cluster that this file names; else $KUBECONFIG, ~/.kube/config",
      .files = true },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "table",
      .choices = output_choices },
    { .name = "explain",
      .letter = 'e',
      .value = "POD",
      .help = "say why this pod (or workload, or all) goes where it goes",
      .many = true },
    { .name = "check", .help = "judge the plan by the rules of Kubernetes, apart from the solver" },
    { .name = "seed",
      .value = "N",
      .help = "breaks ties in the search for a cheaper plan",
      .dflt = "1" },
    { .name = "effort",
      .value = "N",
      .help = "steps to spend on making the plan cheaper, 0 for the first plan that is found "
              "(without it: as many as suit its size)" },
    { .name = "preference-policy",
      .value = "POLICY",
      .help = "whether preferred terms count for as long as they can be met, or not at all",
      .dflt = "Respect",
      .choices = preference_choices },
    { .name = "min-values-policy",
      .value = "POLICY",
      .help = "whether minValues that cannot be met stand in the way",
      .dflt = "Strict",
      .choices = min_values_choices },
    { .name = "keep-going", .help = "plan without the objects that are invalid" },
    TYPES_LOAD_FLAGS,
    IMAGE_POLICY_FLAGS(NULL, "ignore"),
    IMAGE_LAUNCH_FLAGS,
    REGISTRY_FLAGS,
    IMAGE_RULE_FLAGS,
};

const struct command plan_command = {
    .name = "plan",
    .summary = "show what would be launched for these manifests, what it costs, and why",
    .args = "[PATH...]",
    .about =
        "Plans nodes for the pods of ordinary manifests, as the controller would: which are\n"
        "launched from which NodePool, what goes to nodes that are there, what it costs against\n"
        "a lower bound, and which pods fit nowhere for what reason. It asks no cloud, and a\n"
        "cluster only when --context names one: then it reads, and writes nothing.\n\n"
        "Workloads in -f become pods, less those that are there already. What --nodes and --context\n"
        "name is taken as it is: nodes, bound and pending pods, NodeClaims on their way, volumes.\n"
        "Instance types and prices come from the built-in catalogue, or from --catalogue.\n\n"
        "What images ask of a node counts for a live cluster, and elsewhere with\n"
        "--image-compatibility: images are looked up in their registries, for 40 seconds at most.\n\n"
        "Equal input gives equal plans, to the byte. Exit code 1: some pod fits nowhere, a manifest\n"
        "is invalid (then nothing is planned unless --keep-going), or --check found a mistake.",
    .examples = "  karve plan -f examples/shop\n"
                "      what the shop needs, and what it costs\n"
                "  karve plan -f examples/shop --explain search\n"
                "      why the pods of search go where they go\n"
                "  karve plan --context staging\n"
                "      what would be launched in that cluster now\n"
                "  karve plan -f new.yaml --context dump.yaml -o json\n"
                "      what a change would add to a cluster, for a script\n"
                "  karve plan -f examples/shop -o html >plan.html\n"
                "      a page with every node drawn\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_plan,
};

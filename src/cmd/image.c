/* karve image: what an image needs of a node, where it could run, and attaching such a spec to it. */
#include "cmd/image_inner.h"

#include "cmd/kube_access.h"

#include <string.h>
#include <unistd.h>

struct verb {
    const char *name, *full;
    int (*run)(struct image_work *w);
};

static const struct verb verbs[] = {
    { "inspect", "image inspect", image_inspect },
    { "check", "image check", image_check },
    { "push", "image push", image_push },
};

/* --- for all verbs --- */

int image_complain(const struct image_work *w, const struct err *err)
{
    return print_complaint(w->name, err->kind == ERR_NOT_FOUND ? EXIT_NO : EXIT_ENVIRONMENT, "%s",
                           err->text);
}

int image_look_up(struct image_work *w, bool platform_only, const struct image_facts **out)
{
    const struct image_ask ask = { .registry = w->setup.maybe_registry,
                                   .ref = &w->ref,
                                   .maybe_keys = w->setup.maybe_keys,
                                   .platform_only = platform_only };
    struct err err;
    return image_ask(&ask, out, &err) == 0 ? EXIT_DONE : image_complain(w, &err);
}

void image_platform_format(const struct platform *p, struct buf *out)
{
    name_format(p->os.len ? p->os : STR("any"), out);
    buf_addc(out, '/');
    name_format(p->architecture.len ? p->architecture : STR("any"), out);
    if (p->variant.len) {
        buf_addc(out, '/');
        name_format(p->variant, out);
    }
}

/* --- which verb --- */

static int complain_verb(struct str word)
{
    const struct verb *near = NULL;
    size_t near_distance = 3;
    for (size_t i = 0; i < KV_COUNT_OF(verbs); i++) {
        size_t distance = str_distance(word, str_of(verbs[i].name), 2);
        if (distance < near_distance) {
            near = &verbs[i];
            near_distance = distance;
        }
    }
    if (near)
        return print_complaint("image", EXIT_USAGE, "unknown verb %s; did you mean '%s'?",
                               STR_SHOWN(word), near->name);
    return print_complaint("image", EXIT_USAGE,
                           "unknown verb %s; there are 'inspect', 'check' and 'push'",
                           STR_SHOWN(word));
}

/* Flags that one verb alone has. To pass one over in silence would be to do something else than was asked. */
static const struct {
    const char *flag;
    int (*run)(struct image_work *w);
} partial_flags[] = {
    { "node", image_check }, { "instance-type", image_check }, { "nodepool", image_check },
    { "all", image_check },  { "platform", image_push },       { "dry-run", image_push },
    { "force", image_push },
};

static int check_flags(const struct invocation *inv, const struct verb *verb)
{
    for (size_t i = 0; i < KV_COUNT_OF(partial_flags); i++) {
        if (partial_flags[i].run != verb->run && flag_given(inv, partial_flags[i].flag))
            return print_complaint(verb->full, EXIT_USAGE, "--%s is not for this verb",
                                   partial_flags[i].flag);
    }
    return EXIT_DONE;
}

static int read_arguments(const struct invocation *inv, const struct verb **out)
{
    if (inv->args.count == 0)
        return print_complaint("image", EXIT_USAGE,
                               "expected a verb and an image: inspect, check or push, and REF");
    struct str word = str_of(inv->args.items[0]);
    const struct verb *verb = NULL;
    for (size_t i = 0; i < KV_COUNT_OF(verbs); i++) {
        if (str_eqz(word, verbs[i].name))
            verb = &verbs[i];
    }
    if (!verb)
        return complain_verb(word);
    if (inv->args.count == 1)
        return print_complaint(verb->full, EXIT_USAGE, "expected an image, as pods name it");
    if (inv->args.count > 2)
        return print_complaint(verb->full, EXIT_USAGE, "unexpected argument %s",
                               STR_SHOWN(str_of(inv->args.items[2])));
    *out = verb;
    return check_flags(inv, verb);
}

/* --- running it --- */

static int open_work(struct image_work *w)
{
    const struct invocation *inv = w->inv;
    AUTO_BUF full = { 0 };
    struct err err;
    int code;
    if (reference_parse(&w->arena, str_of(inv->args.items[1]), &w->ref, &err) < 0)
        return print_complaint(w->name, EXIT_USAGE, "%s", err.text);
    reference_format(&w->ref, &full);
    w->full = arena_str(&w->arena, buf_str(&full));
    w->json = strcmp(flag_value(inv, "output"), "json") == 0;
    w->colour = colour_wanted(inv, stdout);
    w->log = log_new((struct log_options){ .clock = clock_real(),
                                           .fd = STDERR_FILENO,
                                           .format = isatty(STDERR_FILENO) ? LOG_AUTO : LOG_TEXT,
                                           .level = LOG_LEVEL_WARN });
    if ((code = image_setup_read(&w->setup, inv)) != EXIT_DONE)
        return code;
    return image_setup_registry(&w->setup, inv, clock_real(), NULL, w->log);
}

static int run_image(const struct invocation *inv)
{
    const struct verb *verb = NULL;
    int code = read_arguments(inv, &verb);
    if (code != EXIT_DONE)
        return code;
    struct image_work w = { .inv = inv, .name = verb->full };
    code = open_work(&w);
    if (code == EXIT_DONE)
        code = verb->run(&w);
    image_setup_done(&w.setup);
    log_free(w.log);
    arena_done(&w.arena);
    return code;
}

static const char *const output_choices[] = { "table", "json", NULL };

static const struct flag flags[] = {
    { .name = "filename",
      .letter = 'f',
      .value = "PATH",
      .help = "push: the spec; check: manifests of nodes and pools, instead of a cluster; - is "
              "standard input",
      .many = true,
      .files = true },
    { .name = "node", .value = "NAME", .help = "check: can this node run it?", .many = true },
    { .name = "instance-type",
      .value = "TYPE",
      .help = "check: could a node of this type?",
      .many = true },
    { .name = "nodepool",
      .letter = 'p',
      .value = "NAME",
      .help = "check: could a node that this NodePool launches?" },
    { .name = "all", .letter = 'a', .help = "check: each node or type on a line of its own" },
    { .name = "platform",
      .value = "OS/ARCH",
      .help = "push: for this platform of the image alone: it overrides what is for all" },
    { .name = "dry-run", .help = "push: check everything, and push nothing" },
    { .name = "force", .help = "push: also if that spec is attached already" },
    REGISTRY_FLAGS,
    IMAGE_RULE_FLAGS,
    KUBE_ACCESS_FLAGS,
    TYPES_LOAD_FLAGS,
    { .name = "nfd-namespace",
      .value = "NAME",
      .help = "check: where nfd-master is; NodeFeatures of other namespaces come after its own",
      .dflt = "node-feature-discovery" },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "table",
      .choices = output_choices },
};

const struct command image_command = {
    .name = "image",
    .summary = "show what an image needs of a node, where it can run, and attach such a spec",
    .args = "inspect|check|push REF",
    .about =
        "An image says for which platforms it is built, and may have a compatibility spec attached\n"
        "to it in the registry: rules over what Node Feature Discovery says of nodes.\n\n"
        "inspect shows both, with digests and where they came from. check tells which nodes, or\n"
        "instance types, can run the image, and for each other one the rule that says no, with what\n"
        "was found instead: by --node, --instance-type or --nodepool; without these all nodes of\n"
        "the cluster if --context or --kubeconfig is given (or of the manifests of -f), else all\n"
        "instance types of the catalogue, whose features are predicted. push attaches a spec, after\n"
        "checking all of it.\n\n"
        "The exit code of check is 0 if it can run on one of those asked for, and else 1, also if\n"
        "that is only not known. For all verbs it is 1 if there is no such image, or the spec is\n"
        "wrong, 2 for wrong usage, 3 if a registry or cluster cannot be asked.",
    .examples = "  karve image inspect registry.example/team/app:1\n"
                "      platforms, digests, and the rules in words\n"
                "  karve image check registry.example/team/app:1 --instance-type m7i.large\n"
                "      could it run there?\n"
                "  karve image check registry.example/team/app:1 -f manifests/ --nodepool general\n"
                "      which types of a pool could run it\n"
                "  karve image check registry.example/team/app:1 --context prod\n"
                "      which nodes of a cluster can\n"
                "  karve image push registry.example/team/app:1 -f spec.yaml --dry-run\n"
                "      is this spec fine?\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_image,
};

/* karve instance-types: what a NodePool can launch, what it costs, and why the rest is out. */
#include "cmd/instance_types_inner.h"

#include <string.h>

static int print(struct listing *l, const struct invocation *inv, struct buf *out)
{
    bool json = strcmp(flag_value(inv, "output"), "json") == 0;
    struct table_options options = {
        .sort = sort_by_of(flag_value(inv, "sort")),
        .wide = strcmp(flag_value(inv, "output"), "wide") == 0,
        .all = flag_given(inv, "all"),
        .colour = colour_wanted(inv, stdout),
    };
    if (l->candidates.count) {
        bool clean = json ? preview_json(l, out) : preview_table(l, options, out);
        return clean ? EXIT_DONE : EXIT_NO;
    }
    if (json)
        listing_json(l, options.sort, out);
    else
        listing_table(l, options, out);
    return listing_rejected(l) ? EXIT_NO : EXIT_DONE;
}

static int run_instance_types(const struct invocation *inv)
{
    struct listing l = { 0 };
    AUTO_BUF out = { 0 };

    if (inv->args.count) {
        fprintf(stderr, "karve instance-types: %s: files are named with -f\n", inv->args.items[0]);
        return EXIT_USAGE;
    }
    int code = listing_load(&l, inv);
    if (code == EXIT_DONE) {
        code = print(&l, inv, &out);
        code = print_out(&out, "karve instance-types", code);
    }
    listing_done(&l);
    return code;
}

static const char *const output_choices[] = { "table", "wide", "json", NULL };
static const char *const sort_choices[] = { "price", "name", "cpu", "memory", NULL };

static const struct flag flags[] = {
    { .name = "filename",
      .letter = 'f',
      .value = "PATH",
      .help = "NodePools, node classes and NodeOverlays: a file, a folder, or - for standard input",
      .many = true,
      .files = true },
    { .name = "nodepool", .letter = 'p', .value = "NAME", .help = "show this NodePool only" },
    { .name = "requirement",
      .letter = 'r',
      .value = "REQ",
      .help = "ask for more, as a pod would: 'KEY In a,b', 'KEY>4', 'KEY=a', 'KEY', '!KEY', ...",
      .many = true },
    { .name = "all",
      .letter = 'a',
      .help = "also list the types that are out, each with the reason" },
    { .name = "sort",
      .value = "BY",
      .help = "order of the types",
      .dflt = "price",
      .choices = sort_choices },
    { .name = "preview",
      .value = "PATH",
      .help = "show what the NodeOverlays in this file would change instead",
      .files = true },
    TYPES_LOAD_FLAGS,
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "table",
      .choices = output_choices },
};

const struct command instance_types_command = {
    .name = "instance-types",
    .summary = "list what NodePools can launch, with prices, and why the rest is out",
    .args = "",
    .about =
        "Lists the instance types that each NodePool of the manifests can launch, after its\n"
        "requirements and after NodeOverlays, with the cheapest spot and on-demand price per hour\n"
        "of the zones it allows. Without -f, the whole catalogue. No cluster and no cloud is asked:\n"
        "types and list prices come from the built-in catalogue, or from --catalogue.\n\n"
        "A price with a star is a NodeOverlay's. --all also lists every type that is out, and what\n"
        "excludes it: the first of the requirements, in the order of their keys, that it does not\n"
        "meet; or that nothing of it is offered; or that the pool's minValues are not met.\n\n"
        "--preview shows what a NodeOverlay would change before it is applied: prices and capacity\n"
        "before and after, and whether it would be rejected.\n\n"
        "The exit code is 1 when a manifest or the catalogue is invalid, and when an overlay is (or,\n"
        "with --preview, would be) rejected. A pool that can launch nothing is no failure.",
    .examples =
        "  karve instance-types -r 'karpenter.k8s.aws/instance-gpu-count>=1' --sort memory\n"
        "      everything with a GPU\n"
        "  karve instance-types -f manifests/ --nodepool general\n"
        "      what one pool can launch, the cheapest first\n"
        "  karve instance-types -f manifests/ -p general -r topology.kubernetes.io/zone=us-east-1a "
        "--all\n"
        "      ... for a pod that is bound to a zone, and why everything else is out\n"
        "  karve instance-types -f manifests/ --preview discount.yaml\n"
        "      what a NodeOverlay would change\n"
        "  karve instance-types -f manifests/ -o json | jq -r "
        "'.nodePools[]|.name+\" \"+.instanceTypes[0].name'\n"
        "      the cheapest type of every pool\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_instance_types,
};

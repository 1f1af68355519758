/* karve crds: print what a cluster needs to know of karve's kinds. */
#include "cmd/command.h"

#include "api/crd.h"
#include "api/rbac.h"
#include "codec/yaml.h"

#include <string.h>

enum format { FORMAT_YAML, FORMAT_JSON, FORMAT_MARKDOWN };

/* The YAML writer takes an immutable tree: through the text, which is how it will travel anyway. */
static void add_document(const json_mut *tree, enum format format, bool first, struct buf *out)
{
    if (format == FORMAT_JSON) {
        buf_addz(out, first ? "" : ",\n");
        json_write_pretty(tree, out);
        return;
    }
    AUTO_BUF text = { 0 };
    struct doc doc;
    struct err err;
    json_write_mut(tree, &text);
    int rc = json_read(buf_str(&text), &doc, &err);
    KV_ASSERT(rc == 0);
    buf_addz(out, first ? "" : "---\n");
    yaml_write(doc.root, out);
    doc_done(&doc);
}

static bool is_wanted(const struct invocation *inv, const struct kind *kind)
{
    vec_each(&inv->args, const char *, name) {
        if (kind_find_plural(str_of(*name)) == kind)
            return true;
    }
    return inv->args.count == 0;
}

static int check_names(const struct invocation *inv, struct err *err)
{
    vec_each(&inv->args, const char *, name) {
        const struct kind *kind = kind_find_plural(str_of(*name));
        if (!kind || !kind->crd)
            return err_set(err, ERR_INVALID,
                           "'%s' is not one of karve's kinds; expected NodePool, NodeClaim, "
                           "NodeOverlay, EC2NodeClass or KWOKNodeClass",
                           *name);
    }
    return 0;
}

/* Somebody who asks for a role and gets none should not find out from the cluster. */
static int check_flags(const struct invocation *inv, struct err *err)
{
    static const char *const with_rbac[] = { "extender", "optional-roles" };
    for (size_t i = 0; i < KV_COUNT_OF(with_rbac); i++) {
        if (flag_given(inv, with_rbac[i]) && !flag_given(inv, "rbac"))
            return err_set(err, ERR_INVALID, "--%s says something of --rbac, which is missing",
                           with_rbac[i]);
    }
    return 0;
}

static enum format format_of(const char *name)
{
    if (strcmp(name, "json") == 0)
        return FORMAT_JSON;
    return strcmp(name, "markdown") == 0 ? FORMAT_MARKDOWN : FORMAT_YAML;
}

static int run_crds(const struct invocation *inv)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF out = { 0 };
    struct err err;
    enum format format = format_of(flag_value(inv, "output"));
    bool first = true;

    if (check_names(inv, &err) < 0 || check_flags(inv, &err) < 0) {
        fprintf(stderr, "karve crds: %s\n", err.text);
        return EXIT_USAGE;
    }
    json_build_init(&b);
    if (format == FORMAT_JSON)
        buf_addz(&out, "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n");
    for (uint32_t i = 0; i < kind_count; i++) {
        if (!kinds[i]->crd || !is_wanted(inv, kinds[i]))
            continue;
        if (format == FORMAT_MARKDOWN)
            crd_reference(kinds[i], &out);
        else
            add_document(crd_build(&b, kinds[i]), format, first, &out);
        first = false;
    }
    if (flag_given(inv, "rbac") && format != FORMAT_MARKDOWN) {
        struct rbac_options options = { .namespace_ = str_of(flag_value(inv, "namespace")),
                                        .extender = flag_given(inv, "extender"),
                                        .optional_roles = flag_given(inv, "optional-roles") };
        json_each_mut_item(rbac_build(&b, options), item)
        {
            add_document(item, format, first, &out);
            first = false;
        }
    }
    if (format == FORMAT_JSON)
        buf_addz(&out, "]}\n");
    return print_out(&out, "karve crds", EXIT_DONE);
}

static const char *const output_choices[] = { "yaml", "json", "markdown", NULL };

static const struct flag flags[] = {
    { .name = "rbac",
      .help = "also print the service account, the least-privilege roles and their bindings" },
    { .name = "extender", .help = "with --rbac: also those of `karve extender`" },
    { .name = "optional-roles",
      .help = "with --rbac: also roles for --nfg-mode and --pull-secrets, which nobody is given" },
    { .name = "namespace",
      .letter = 'n',
      .value = "NAME",
      .help = "where the controller runs, for --rbac",
      .dflt = "kube-system" },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it (markdown is the field reference)",
      .dflt = "yaml",
      .choices = output_choices },
};

const struct command crds_command = {
    .name = "crds",
    .summary = "print the custom resource definitions, and RBAC, to apply",
    .args = "[KIND...]",
    .about =
        "Prints the CustomResourceDefinitions of NodePool, NodeClaim, NodeOverlay, EC2NodeClass and\n"
        "KWOKNodeClass, or of the kinds named. They come from the tables that validate and decode\n"
        "the objects, so what the cluster accepts and what karve understands cannot differ.",
    .examples = "  karve crds | kubectl apply --server-side -f -\n      install or update them\n"
                "  karve crds --rbac --namespace karve | kubectl apply --server-side -f -\n"
                "      with the rights that the controller needs\n"
                "  karve crds nodepool -o markdown\n      every field of a NodePool, explained\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_crds,
};

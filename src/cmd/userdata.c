/* karve userdata: what a node of a class boots with, without a cluster and without a cloud. */
#include "cmd/userdata.h"

#include "codec/base64.h"

#include <unistd.h>

/* --- for scripts --- */

static json_mut *json_parts(struct json_build *b, const struct boot_text *text)
{
    json_mut *parts = json_new_array(b);
    for (uint32_t i = 0; i < text->parts.count; i++) {
        const struct boot_part *part = &text->parts.items[i];
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "contentType", part->content_type);
        json_set_str(b, o, "owner", str_of(boot_owner_name(part->owner)));
        json_set_i64(b, o, "bytes", (int64_t)part->bytes);
        json_push(b, parts, o);
    }
    return parts;
}

static json_mut *json_pieces(struct json_build *b, const struct boot_text *text)
{
    json_mut *pieces = json_new_array(b);
    for (uint32_t i = 0; i < text->pieces.count; i++) {
        const struct boot_piece *piece = &text->pieces.items[i];
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "text", piece->text);
        json_set_str(b, o, "owner", str_of(boot_owner_name(piece->owner)));
        if (piece->note.len)
            json_set_str(b, o, "note", piece->note);
        json_push(b, pieces, o);
    }
    return pieces;
}

static void print_json(const struct userdata *u, bool explain, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF encoded = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *warnings = json_new_array(&b);

    base64_encode(u->text.text, &encoded);
    json_set_str(&b, root, "nodeClass", u->class_item->name);
    if (u->maybe_pool)
        json_set_str(&b, root, "nodePool", u->maybe_pool_item->name);
    json_set_str(&b, root, "family", str_of(family_of(u->boot.family)->name));
    json_set_str(&b, root, "userData", u->text.text);
    json_set_str(&b, root, "base64", buf_str(&encoded));
    json_set_i64(&b, root, "bytes", (int64_t)u->text.text.len);
    json_set(&b, root, STR("parts"), json_parts(&b, &u->text));
    if (explain)
        json_set(&b, root, STR("pieces"), json_pieces(&b, &u->text));
    if (u->max_pods.set)
        json_set_i64(&b, root, "maxPods", u->max_pods.value);
    if (u->has_resources) {
        const struct node_resources *r = &u->resources;
        json_set(&b, root, STR("capacity"), resources_json(&b, &r->capacity));
        json_set(&b, root, STR("overhead"), resources_json(&b, &r->overhead));
        json_set(&b, root, STR("allocatable"), resources_json(&b, &r->allocatable));
        json_set(&b, root, STR("kubeReserved"), resources_json(&b, &r->kube_reserved));
        json_set(&b, root, STR("systemReserved"), resources_json(&b, &r->system_reserved));
        json_set(&b, root, STR("evictionThreshold"), resources_json(&b, &r->eviction));
    }
    if (u->parameters.count) {
        json_mut *paths = json_new_array(&b);
        for (uint32_t i = 0; i < u->parameters.count; i++)
            json_push(&b, paths, json_new_str(&b, u->parameters.items[i].path));
        json_set(&b, root, STR("ssmParameters"), paths);
    }
    vec_each(&u->warnings, struct str, warning)
        json_push(&b, warnings, json_new_str(&b, *warning));
    json_set(&b, root, STR("warnings"), warnings);
    json_write_pretty(root, out);
    buf_addc(out, '\n');
}

/* --- the command --- */

static int complain(const struct err *err, int code)
{
    fprintf(stderr, "karve userdata: %s\n", err->text);
    if (code == EXIT_USAGE)
        fprintf(stderr, "`karve userdata --help` shows how it is used.\n");
    return code;
}

static void warn(const struct userdata *u)
{
    vec_each(&u->warnings, struct str, warning)
        fprintf(stderr, "karve userdata: warning: %.*s\n", STR_ARG(*warning));
}

static int run_render(const struct invocation *inv, const struct userdata_settings *settings,
                      const char *const *paths, size_t path_count)
{
    AUTO_USERDATA u = { 0 };
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    bool json = strcmp(flag_value(inv, "output"), "json") == 0;
    int code = userdata_render(&u, settings, paths, path_count, &err);

    if (code != EXIT_DONE)
        return complain(&err, code);
    warn(&u);
    if (json) {
        print_json(&u, flag_given(inv, "explain"), &out);
        return print_out(&out, "karve userdata", EXIT_DONE);
    }
    if (flag_given(inv, "explain")) {
        userdata_explain(&u, &out, colour_wanted(inv, stdout));
    } else if (flag_given(inv, "base64")) {
        base64_encode(u.text.text, &out);
        if (isatty(STDOUT_FILENO))
            buf_addc(&out, '\n');
    } else {
        buf_add(&out, u.text.text);
    }
    return print_out(&out, "karve userdata", EXIT_DONE);
}

/* The two files are each read together with what -f names: a pool, say, that did not change. */
static int run_diff(const struct invocation *inv, struct userdata_settings *settings,
                    const char **paths, size_t path_count)
{
    AUTO_USERDATA old = { 0 }, new = { 0 };
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    bool changed = false, json = strcmp(flag_value(inv, "output"), "json") == 0;

    if (inv->args.count != 2) {
        userdata_fail(&err, EXIT_USAGE, "--diff takes two files: the old one and the new one");
        return complain(&err, EXIT_USAGE);
    }
    if (flag_given(inv, "explain") || flag_given(inv, "base64")) {
        userdata_fail(&err, EXIT_USAGE, "--diff compares; --explain and --base64 print one text");
        return complain(&err, EXIT_USAGE);
    }
    settings->stand_ins = true;
    paths[path_count] = inv->args.items[0];
    int code = userdata_render(&old, settings, paths, path_count + 1, &err);
    if (code != EXIT_DONE)
        return complain(&err, code);
    paths[path_count] = inv->args.items[1];
    code = userdata_render(&new, settings, paths, path_count + 1, &err);
    if (code != EXIT_DONE)
        return complain(&err, code);
    warn(&new);
    userdata_diff(&old, &new, settings->cluster.ca, json, colour_wanted(inv, stdout), &out,
                  &changed);
    return print_out(&out, "karve userdata", changed ? EXIT_NO : EXIT_DONE);
}

static int run_userdata(const struct invocation *inv)
{
    AUTO_ARENA arena = { 0 };
    const char *paths[PATHS_MAX + 1];
    bool diff = flag_given(inv, "diff"); /* then the arguments are the two sides */
    size_t count = diff ? flag_values(inv, "filename", paths, PATHS_MAX) : input_paths(inv, paths);
    struct userdata_settings settings;
    struct err err = { 0 };

    int code = userdata_settings_read(inv, &arena, &settings, &err);
    if (code != EXIT_DONE)
        return complain(&err, code);
    if (diff)
        return run_diff(inv, &settings, paths, count);
    if (!count) {
        userdata_fail(&err, EXIT_USAGE,
                      "nothing to read; name the manifest of a node class with -f (- is standard "
                      "input)");
        return complain(&err, EXIT_USAGE);
    }
    return run_render(inv, &settings, paths, count);
}

static const char *const output_choices[] = { "text", "json", NULL };
static const char *const capacity_types[] = { CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_RESERVED,
                                              NULL };

static const struct flag flags[] = {
    { .name = "filename",
      .letter = 'f',
      .value = "PATH",
      .help =
          "a file or folder with the EC2NodeClass, and perhaps its NodePool; - is standard input",
      .many = true,
      .files = true },
    { .name = "nodeclass", .value = "NAME", .help = "which EC2NodeClass, if there are several" },
    { .name = "nodepool", .value = "NAME", .help = "which NodePool, if there are several" },
    { .name = "cluster-name", .value = "NAME", .help = "the cluster's name" },
    { .name = "cluster-endpoint", .value = "URL", .help = "the address of its API server" },
    { .name = "cluster-ca",
      .value = "BASE64",
      .help = "its certificate authority; @FILE reads a PEM file" },
    { .name = "cluster-dns", .value = "IP", .help = "the address of its DNS service" },
    { .name = "service-cidr", .value = "CIDR", .help = "the addresses of its services (AL2023)" },
    { .name = "kubernetes-version",
      .value = "VERSION",
      .help = "its version, such as 1.33: checks that the image alias exists for it" },
    { .name = "label", .value = "K=V", .help = "a further label of the node", .many = true },
    { .name = "taint", .value = "K=V:EFFECT", .help = "a further taint of the node", .many = true },
    { .name = "capacity-type",
      .value = "TYPE",
      .help = "how the node is bought (else as the NodePool says, or on-demand)",
      .choices = capacity_types },
    { .name = "instance-type",
      .value = "TYPE",
      .help = "computes how many pods the node takes, and what it offers them" },
    { .name = "catalogue",
      .value = "FILE",
      .help = "looks the instance type up in this file instead of the built-in catalogue",
      .files = true },
    { .name = "max-pods", .value = "N", .help = "in place of the computed number of pods" },
    { .name = "base64", .help = "print it as EC2 takes it" },
    { .name = "explain", .help = "print who set each line or key, and what that overrode" },
    { .name = "diff", .help = "compare OLD and NEW: what changes on the node, do nodes drift" },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "text",
      .choices = output_choices },
};

const struct command userdata_command = {
    .name = "userdata",
    .summary = "print what a node boots with: your user data and what karve adds",
    .args = "[PATH... | --diff OLD NEW]",
    .about =
        "Reads an EC2NodeClass and prints the user data that its nodes get, byte for byte. With the\n"
        "NodePool among the manifests the node has that pool's labels and taints. No cluster and no\n"
        "cloud is needed; what they would say is given by flags.\n\n"
        "--explain lists the text with the owner of each line: the user, karve, or the kubelet\n"
        "configuration (spec.kubelet). A row that starts with + goes on with the line above it; a\n"
        "row that starts with ^ says what was overridden.\n\n"
        "--diff exits with 0 if the edit changes nothing, and with 1 if it does.",
    .examples =
        "  karve userdata -f nodeclass.yaml --cluster-name orchard \\\n"
        "      --cluster-endpoint https://A1B2.eks.amazonaws.com --cluster-ca @ca.pem\n"
        "      what nodes of the class boot with\n"
        "  karve userdata -f nodeclass.yaml -f nodepool.yaml --instance-type m5.large --explain ...\n"
        "      who set what, and what the node will offer to pods\n"
        "  karve userdata --diff old.yaml new.yaml\n"
        "      is that edit safe? does it replace nodes?\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_userdata,
};

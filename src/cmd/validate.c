/* karve validate: read manifests, say everything that is wrong with them. */
#include "cmd/inputs.h"
#include "cmd/table.h"

#include "api/describe.h"
#include "base/map.h"

#include <string.h>

/* --- for people --- */

static void print_list(const struct manifests *m, struct buf *out, bool colour)
{
    static const char *const headings[] = { "KIND", "NAME", "WHAT", "FILE" };
    struct table table;
    table_init(&table, headings, KV_COUNT_OF(headings));
    vec_each(&m->items, struct manifest, item) {
        table_add(&table, item->kind_name);
        if (item->namespace_.len)
            table_addf(&table, "%.*s/%.*s", STR_ARG(item->namespace_), STR_ARG(item->name));
        else
            table_add(&table, item->name);
        AUTO_BUF what = { 0 };
        if (item->object)
            object_describe(item->object, &what);
        else
            buf_addz(&what, item->kind ? "invalid" : "not read by karve");
        table_add(&table, buf_str(&what));
        table_addf(&table, "%s:%u", item->file->path, item->pos.line);
    }
    table_print(&table, out, colour);
    table_done(&table);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* "27 objects in 9 files are valid: 5 NodePools, ..." */
static void print_summary(const struct manifests *m, struct buf *out)
{
    struct str_table ours = { 0 }, others = { 0 };
    size_t our_count = 0;
    vec_each(&m->items, struct manifest, item) {
        struct str_table *t = item->kind ? &ours : &others;
        uintptr_t n = (uintptr_t)str_table_get(t, item->kind_name);
        str_table_put(t, item->kind_name, (void *)(n + 1));
        our_count += item->kind != NULL;
    }
    buf_addf(out, "%zu object%s in %zu file%s", our_count, plural(our_count), m->files.count,
             plural(m->files.count));
    const char *separator = ": ";
    str_table_each(&ours, it) {
        buf_addf(out, "%s%zu %s", separator, (size_t)(uintptr_t)it->value, it->key.p);
        separator = ", ";
    }
    buf_addc(out, '\n');
    separator = "not read by karve, so not checked: ";
    str_table_each(&others, it) {
        buf_addf(out, "%s%zu %s", separator, (size_t)(uintptr_t)it->value, it->key.p);
        separator = ", ";
    }
    if (others.live_count)
        buf_addc(out, '\n');
    if (m->error_count || m->warning_count)
        buf_addf(out, "%zu error%s, %zu warning%s\n", m->error_count, plural(m->error_count),
                 m->warning_count, plural(m->warning_count));
    else
        buf_addz(out, "valid\n");
    str_table_done(&ours);
    str_table_done(&others);
}

/* --- for scripts --- */

static json_mut *json_problem(struct json_build *b, const struct manifest_problem *p)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "file", str_of(p->file->path));
    json_set_i64(b, o, "line", p->pos.line);
    json_set_i64(b, o, "column", p->pos.col);
    json_set_str(b, o, "severity", p->severity == PROBLEM_ERROR ? STR("error") : STR("warning"));
    json_set_str(b, o, "kind", p->kind_name.p ? p->kind_name : STR(""));
    json_set_str(b, o, "namespace", p->namespace_.p ? p->namespace_ : STR(""));
    json_set_str(b, o, "name", p->name.p ? p->name : STR(""));
    json_set_str(b, o, "path", p->path);
    json_set_str(b, o, "message", p->what);
    return o;
}

static void print_json(const struct manifests *m, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_mut *objects = json_new_array(&b), *problems = json_new_array(&b);
    json_set_bool(&b, root, "valid", m->error_count == 0);
    json_set_i64(&b, root, "errors", (int64_t)m->error_count);
    json_set_i64(&b, root, "warnings", (int64_t)m->warning_count);
    vec_each(&m->items, struct manifest, item) {
        json_mut *o = json_new_object(&b);
        json_set_str(&b, o, "apiVersion", item->api_version);
        json_set_str(&b, o, "kind", item->kind_name);
        json_set_str(&b, o, "namespace", item->namespace_.p ? item->namespace_ : STR(""));
        json_set_str(&b, o, "name", item->name.p ? item->name : STR(""));
        json_set_str(&b, o, "file", str_of(item->file->path));
        json_set_i64(&b, o, "line", item->pos.line);
        json_set_bool(&b, o, "checked", item->kind != NULL);
        json_push(&b, objects, o);
    }
    vec_each(&m->problems, struct manifest_problem, p)
        json_push(&b, problems, json_problem(&b, p));
    json_set(&b, root, STR("objects"), objects);
    json_set(&b, root, STR("problems"), problems);
    json_write_pretty(root, out);
    buf_addc(out, '\n');
}

static int run_validate(const struct invocation *inv)
{
    const char *paths[PATHS_MAX];
    size_t path_count = input_paths(inv, paths);
    struct manifests m;
    struct err err;
    AUTO_BUF out = { 0 };

    if (!path_count)
        return complain_unnamed("validate");
    manifests_init(&m);
    int code = EXIT_ENVIRONMENT;
    if (manifests_load(&m, paths, path_count, &err) < 0) {
        fprintf(stderr, "karve validate: %s\n", err.text);
    } else if (m.items.count == 0 && m.error_count == 0) {
        code = complain_empty("validate", paths[0]);
    } else {
        bool strict = flag_given(inv, "strict");
        code = m.error_count || (strict && m.warning_count) ? EXIT_NO : EXIT_DONE;
        if (strcmp(flag_value(inv, "output"), "json") == 0) {
            print_json(&m, &out);
        } else {
            print_problems(&m, true, colour_wanted(inv, stderr));
            if (flag_given(inv, "list")) {
                print_list(&m, &out, colour_wanted(inv, stdout));
                buf_addc(&out, '\n');
            }
            if (!flag_given(inv, "quiet"))
                print_summary(&m, &out);
        }
        code = print_out(&out, "karve validate", code);
    }
    manifests_done(&m);
    return code;
}

static const char *const output_choices[] = { "text", "json", NULL };

static const struct flag flags[] = {
    { .name = "filename",
      .letter = 'f',
      .value = "PATH",
      .help = "a file, a folder (with what is below it), or - for standard input",
      .many = true,
      .files = true },
    { .name = "list", .letter = 'l', .help = "also list every object with what it asks for" },
    { .name = "quiet", .letter = 'q', .help = "print problems only" },
    { .name = "strict", .help = "warnings count as errors for the exit code" },
    { .name = "output",
      .letter = 'o',
      .value = "FORMAT",
      .help = "how to print it",
      .dflt = "text",
      .choices = output_choices },
};

const struct command validate_command = {
    .name = "validate",
    .summary = "check manifests offline, as the API server and the controllers would",
    .args = "[PATH...]",
    .about =
        "Reads manifests (YAML or JSON, several documents, and the Lists that kubectl prints), and\n"
        "reports every problem as\n\n"
        "  file:line:col: Kind/name: field.path: what is wrong, what was expected\n\n"
        "It checks what the CRDs check (types, patterns, ranges, defaults, CEL rules) and what is\n"
        "otherwise found out too late: unknown fields, requirements that no node can meet, budgets\n"
        "whose schedule leaves a gap, names used twice. Kinds that karve does not read are counted\n"
        "and passed over. No cluster is needed.",
    .examples = "  karve validate -f manifests/\n      check a folder\n"
                "  kubectl get nodepools,nodeclaims -o yaml | karve validate -f -\n"
                "      check what a cluster has\n"
                "  karve validate -f manifests/ -o json | jq '.problems[]'\n"
                "      for scripts\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_validate,
};

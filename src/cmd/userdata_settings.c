/* The flags of `karve userdata`, read and checked. */
#include "cmd/userdata.h"

#include "base/file.h"
#include "cloud/catalogue.h"
#include "codec/base64.h"
#include "codec/selector.h"

#define CA_BYTES_MAX ((size_t)64 << 10)
#define REPEATED_MAX 1000 /* --label and --taint, each */

int userdata_fail(struct err *err, enum exit_code code, const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    err_set(err, ERR_INVALID, "%s", text.p);
    return (int)code;
}

static struct str flag_str(const struct invocation *inv, const char *name)
{
    return str_of(flag_value(inv, name));
}

/* --- the cluster's certificate authority --- */

static int read_ca_file(struct arena *arena, const char *path, struct str *out, struct err *err)
{
    AUTO_BUF pem = { 0 }, encoded = { 0 };
    struct err trouble = { 0 };
    if (file_read(path, CA_BYTES_MAX, &pem, &trouble) < 0) {
        enum exit_code code = trouble.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT;
        return userdata_fail(err, code, "--cluster-ca: %s", trouble.text);
    }
    if (!strstr(pem.p, "-----BEGIN CERTIFICATE-----"))
        return userdata_fail(err, EXIT_USAGE,
                             "--cluster-ca: %s has no certificate in PEM form in it", path);
    base64_encode(buf_str(&pem), &encoded);
    *out = arena_str(arena, buf_str(&encoded));
    return EXIT_DONE;
}

static int read_ca(const struct invocation *inv, struct arena *arena, struct str *out,
                   struct err *err)
{
    struct str text = flag_str(inv, "cluster-ca");
    AUTO_BUF decoded = { 0 };
    if (str_starts(text, STR("@")))
        return read_ca_file(arena, text.p + 1, out, err);
    if (str_starts(text, STR("-----BEGIN")))
        return userdata_fail(err, EXIT_USAGE,
                             "--cluster-ca takes base64; for a PEM file write --cluster-ca @FILE");
    if (text.p && base64_decode(text, &decoded, NULL) < 0)
        return userdata_fail(err, EXIT_USAGE,
                             "--cluster-ca: %s is not base64, nor @FILE for a PEM file",
                             STR_SHOWN(text));
    *out = text;
    return EXIT_DONE;
}

/* --- the cluster's other settings --- */

#define CLUSTER_NAME_MAX 100 /* EKS's */

static bool has_only(struct str text, const char *punctuation)
{
    for (size_t i = 0; i < text.len; i++)
        if (!char_is_alnum(text.p[i]) && (!text.p[i] || !strchr(punctuation, text.p[i])))
            return false;
    return true;
}

static bool is_cidr(struct str text)
{
    struct str address, bits;
    int64_t n;
    return str_cut(text, '/', &address, &bits) && boot_is_address(address) &&
           str_to_i64(bits, &n) && n >= 0 && n <= (str_find(address, ':') < 0 ? 32 : 128);
}

/* What is no name or address is not only a mistake: bootstrap.sh puts both into sed scripts. */
static int check_cluster(const struct boot_cluster *c, struct err *err)
{
    int64_t minor;
    if (c->name.len && (!char_is_alnum(c->name.p[0]) || !has_only(c->name, "-_.") ||
                        c->name.len > CLUSTER_NAME_MAX))
        return userdata_fail(err, EXIT_USAGE,
                             "--cluster-name: %s is not the name of a cluster, expected letters, "
                             "digits and - _ . after a letter or digit, at most %d",
                             STR_SHOWN(c->name), CLUSTER_NAME_MAX);
    if (!has_only(c->endpoint, "-._~:/?#[]@!*+%="))
        return userdata_fail(err, EXIT_USAGE, "--cluster-endpoint: %s is not a URL",
                             STR_SHOWN(c->endpoint));
    if (c->dns.len && !boot_is_address(c->dns))
        return userdata_fail(err, EXIT_USAGE, "--cluster-dns: %s is not an IP address",
                             STR_SHOWN(c->dns));
    if (c->service_cidr.len && !is_cidr(c->service_cidr))
        return userdata_fail(err, EXIT_USAGE,
                             "--service-cidr: %s is not a range of addresses such as 10.100.0.0/16",
                             STR_SHOWN(c->service_cidr));
    if (c->version.p && !ami_cluster_minor(c->version, &minor))
        return userdata_fail(err, EXIT_USAGE,
                             "--kubernetes-version: %s is not a version such as 1.33",
                             STR_SHOWN(c->version));
    return EXIT_DONE;
}

/* --- labels and taints --- */

/* NULL: a node can have it. */
static const char *pair_problem(struct str key, struct str value)
{
    const char *problem = label_key_problem(key);
    return problem ? problem : label_value_problem(value);
}

static int read_labels(const struct invocation *inv, struct arena *arena, struct str_map *out,
                       struct err *err)
{
    const char *texts[REPEATED_MAX];
    size_t count = flag_values(inv, "label", texts, REPEATED_MAX);
    struct str_pair *items = arena_array(arena, struct str_pair, count);

    for (size_t i = 0; i < count; i++) {
        struct str_pair *label = &items[i];
        bool cut = str_cut(str_of(texts[i]), '=', &label->key, &label->value);
        const char *wrong =
            !cut || !label->key.len ? "expected key=value" : pair_problem(label->key, label->value);
        if (wrong)
            return userdata_fail(err, EXIT_USAGE, "--label %s: %s", STR_SHOWN(str_of(texts[i])),
                                 wrong);
    }
    qsort(items, count, sizeof *items, str_pair_order);
    for (size_t i = 1; i < count; i++) {
        if (str_eq(items[i].key, items[i - 1].key))
            return userdata_fail(err, EXIT_USAGE, "--label %s: given twice",
                                 STR_SHOWN(items[i].key));
    }
    *out = (struct str_map){ items, (uint32_t)count };
    return EXIT_DONE;
}

static bool read_effect(struct str text, struct taint *out)
{
    for (int effect = EFFECT_NO_SCHEDULE; effect <= EFFECT_NO_EXECUTE; effect++) {
        out->effect = (uint8_t)effect;
        if (str_eqz(text, boot_taint_effect(out)))
            return true;
    }
    return false;
}

static int read_taints(const struct invocation *inv, struct arena *arena, taint_list *out,
                       struct err *err)
{
    const char *texts[REPEATED_MAX];
    size_t count = flag_values(inv, "taint", texts, REPEATED_MAX);
    struct taint *items = arena_array(arena, struct taint, count);

    for (size_t i = 0; i < count; i++) {
        struct str label, effect;
        struct taint *taint = &items[i];
        const char *wrong = NULL;
        if (!str_cut(str_of(texts[i]), ':', &label, &effect))
            wrong = "expected key=value:Effect or key:Effect";
        else if (!read_effect(effect, taint))
            wrong = "the effect is one of NoSchedule, PreferNoSchedule, NoExecute";
        else if (!str_cut(label, '=', &taint->key, &taint->value))
            taint->value = STR("");
        if (!wrong)
            wrong = taint->key.len ? pair_problem(taint->key, taint->value) : "the key is missing";
        if (wrong)
            return userdata_fail(err, EXIT_USAGE, "--taint %s: %s", STR_SHOWN(str_of(texts[i])),
                                 wrong);
    }
    *out = (taint_list){ items, (uint32_t)count };
    return EXIT_DONE;
}

/* --- the rest --- */

static int read_max_pods(const struct invocation *inv, struct maybe_int *out, struct err *err)
{
    struct str text = flag_str(inv, "max-pods");
    if (!text.p)
        return EXIT_DONE;
    if (!str_to_i64(text, &out->value) || out->value < 0 || out->value > INT32_MAX)
        return userdata_fail(err, EXIT_USAGE, "--max-pods: %s is not a number of pods",
                             STR_SHOWN(text));
    out->set = true;
    return EXIT_DONE;
}

/* --- the instance type --- */

struct search { /* for a name in a list; the nearest is remembered */
    struct str name, near;
    size_t near_distance;
};

static bool is_it(struct search *s, struct str name)
{
    size_t distance = str_distance(s->name, name, 2);
    if (distance < s->near_distance) {
        s->near = name;
        s->near_distance = distance;
    }
    return distance == 0;
}

static int not_found(const struct search *s, struct err *err)
{
    if (s->near.p)
        return userdata_fail(err, EXIT_USAGE,
                             "--instance-type: %s is not in the catalogue; did you mean %.*s?",
                             STR_SHOWN(s->name), STR_ARG(s->near));
    return userdata_fail(err, EXIT_USAGE, "--instance-type: %s is not in the catalogue",
                         STR_SHOWN(s->name));
}

static int find_machine(struct search *search, const struct machine **out, struct err *err)
{
    const struct catalogue_machine *all = catalogue_machines();
    for (uint32_t i = 0; i < catalogue_machine_count(); i++) {
        if (is_it(search, all[i].machine.name)) {
            *out = &all[i].machine;
            return EXIT_DONE;
        }
    }
    return not_found(search, err);
}

static int find_draft(struct search *search, const char *path, struct arena *arena,
                      const struct instance_type_draft **out, struct err *err)
{
    AUTO_BUF text = { 0 };
    const struct instance_type_draft *drafts;
    uint32_t count;
    if (file_read(path, CATALOGUE_FILE_BYTES_MAX, &text, err) < 0)
        return err->kind == ERR_INVALID ? EXIT_NO : EXIT_ENVIRONMENT;
    if (catalogue_file_read(arena, path, buf_str(&text), &drafts, &count, err) < 0)
        return EXIT_NO;
    for (uint32_t i = 0; i < count; i++) {
        if (is_it(search, drafts[i].name)) {
            *out = &drafts[i];
            return EXIT_DONE;
        }
    }
    return not_found(search, err);
}

static int find_type(const struct invocation *inv, struct arena *arena, struct userdata_settings *s,
                     struct err *err)
{
    struct search search = { .name = flag_str(inv, "instance-type"), .near_distance = 3 };
    const char *path = flag_value(inv, "catalogue");
    if (!search.name.p && path)
        return userdata_fail(err, EXIT_USAGE,
                             "--catalogue says what an --instance-type is like; "
                             "name one");
    if (!search.name.p)
        return EXIT_DONE;
    return path ? find_draft(&search, path, arena, &s->maybe_draft, err)
                : find_machine(&search, &s->maybe_machine, err);
}

int userdata_settings_read(const struct invocation *inv, struct arena *arena,
                           struct userdata_settings *out, struct err *err)
{
    struct userdata_settings s = {
        .cluster = { .name = flag_str(inv, "cluster-name"),
                     .endpoint = flag_str(inv, "cluster-endpoint"),
                     .dns = flag_str(inv, "cluster-dns"),
                     .service_cidr = flag_str(inv, "service-cidr"),
                     .version = flag_str(inv, "kubernetes-version") },
        .capacity_type = flag_str(inv, "capacity-type"),
        .nodeclass = flag_value(inv, "nodeclass"),
        .nodepool = flag_value(inv, "nodepool"),
    };
    int code = check_cluster(&s.cluster, err);
    if (code == EXIT_DONE)
        code = read_ca(inv, arena, &s.cluster.ca, err);
    if (code == EXIT_DONE)
        code = read_labels(inv, arena, &s.labels, err);
    if (code == EXIT_DONE)
        code = read_taints(inv, arena, &s.taints, err);
    if (code == EXIT_DONE)
        code = read_max_pods(inv, &s.max_pods, err);
    if (code == EXIT_DONE)
        code = find_type(inv, arena, &s, err);
    if (code == EXIT_DONE)
        *out = s;
    return code;
}

/* What to ask for: aliases and their SSM parameters, and the queries of other terms. */
#include "bootstrap/ami.h"

#include "bootstrap/boot.h"

/* --- aliases --- */

static const enum ami_family alias_families[] = {
    AMI_FAMILY_AL2,         AMI_FAMILY_AL2023,      AMI_FAMILY_BOTTLEROCKET,
    AMI_FAMILY_WINDOWS2019, AMI_FAMILY_WINDOWS2022, AMI_FAMILY_WINDOWS2025,
};

static enum ami_family alias_family(struct str name)
{
    for (size_t i = 0; i < KV_COUNT_OF(alias_families); i++) {
        if (str_eqz(name, family_of(alias_families[i])->alias))
            return alias_families[i];
    }
    return AMI_FAMILY_UNSET;
}

/* The version becomes a part of a parameter's name: no slash gets into it. */
static bool is_version(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (!char_is_alnum(c) && c != '.' && c != '-' && c != '_')
            return false;
    }
    return text.len > 0;
}

int ami_alias_parse(struct str text, struct ami_alias *out, struct err *err)
{
    struct str name, version;
    bool cut = str_cut(text, '@', &name, &version);

    if (!cut || !is_version(version) || text.len > AMI_ALIAS_MAX)
        return err_set(err, ERR_INVALID,
                       "%s is not an alias, expected family@version such as al2023@latest, of at "
                       "most %d characters",
                       STR_SHOWN(text), AMI_ALIAS_MAX);
    struct ami_alias alias = { alias_family(name), version, str_eqz(version, "latest") };
    if (alias.family == AMI_FAMILY_UNSET)
        return err_set(err, ERR_INVALID,
                       "%s: no such family, expected one of al2, al2023, bottlerocket, "
                       "windows2019, windows2022, windows2025",
                       STR_SHOWN(text));
    if (family_of(alias.family)->windows && !alias.latest)
        return err_set(err, ERR_INVALID, "%s: Windows families have only the version latest",
                       STR_SHOWN(text));
    *out = alias;
    return 0;
}

/* --- parameters --- */

/* A path template: %V the cluster's version, %R the alias's. What differs between a version and
 * latest is in the two columns. */
struct path_template {
    const char *latest, *pinned;
    uint8_t variants;
};

#define EKS "/aws/service/eks/optimized-ami/%V/"
#define AL2023_PATH(arch, kind)                                                                    \
    EKS "amazon-linux-2023/" arch "/" kind "/recommended/image_id",                                \
        EKS "amazon-linux-2023/" arch "/" kind "/amazon-eks-node-al2023-" arch "-" kind            \
            "-%V-%R/image_id"
#define BOTTLEROCKET_PATH(flavour, arch)                                                           \
    "/aws/service/bottlerocket/aws-k8s-%V" flavour "/" arch "/latest/image_id",                    \
        "/aws/service/bottlerocket/aws-k8s-%V" flavour "/" arch "/%R/image_id"
#define WINDOWS_PATH(year)                                                                         \
    "/aws/service/ami-windows-latest/Windows_Server-" year "-English-Core-EKS_Optimized-%V/"       \
    "image_id",                                                                                    \
        NULL

static const struct path_template al2_paths[] = {
    { EKS "amazon-linux-2/recommended/image_id",
      EKS "amazon-linux-2/amazon-eks-node-%V-%R/image_id", AMI_STANDARD },
    { EKS "amazon-linux-2-arm64/recommended/image_id",
      EKS "amazon-linux-2-arm64/amazon-eks-arm64-node-%V-%R/image_id", AMI_STANDARD },
    { EKS "amazon-linux-2-gpu/recommended/image_id",
      EKS "amazon-linux-2-gpu/amazon-eks-gpu-node-%V-%R/image_id", AMI_NEURON | AMI_NVIDIA },
};
static const struct path_template al2023_paths[] = {
    { AL2023_PATH("x86_64", "standard"), AMI_STANDARD },
    { AL2023_PATH("x86_64", "nvidia"), AMI_NVIDIA },
    { AL2023_PATH("x86_64", "neuron"), AMI_NEURON },
    { AL2023_PATH("arm64", "standard"), AMI_STANDARD },
    { AL2023_PATH("arm64", "nvidia"), AMI_NVIDIA },
};
static const struct path_template bottlerocket_paths[] = {
    { BOTTLEROCKET_PATH("", "x86_64"), AMI_STANDARD | AMI_NEURON },
    { BOTTLEROCKET_PATH("", "arm64"), AMI_STANDARD },
    { BOTTLEROCKET_PATH("-nvidia", "x86_64"), AMI_NVIDIA },
    { BOTTLEROCKET_PATH("-nvidia", "arm64"), AMI_NVIDIA },
};
static const struct path_template windows2019_paths[] = { { WINDOWS_PATH("2019"), AMI_WINDOWS } };
static const struct path_template windows2022_paths[] = { { WINDOWS_PATH("2022"), AMI_WINDOWS } };
static const struct path_template windows2025_paths[] = { { WINDOWS_PATH("2025"), AMI_WINDOWS } };

static const struct {
    const struct path_template *paths;
    uint32_t count;
    enum ami_family family;
    int64_t minor_from, minor_until; /* of Kubernetes 1.x; 0: any */
} families[] = {
#define PATHS(list) list, KV_COUNT_OF(list)
    { PATHS(al2_paths), AMI_FAMILY_AL2, 0, 32 },
    { PATHS(al2023_paths), AMI_FAMILY_AL2023, 0, 0 },
    { PATHS(bottlerocket_paths), AMI_FAMILY_BOTTLEROCKET, 0, 0 },
    { PATHS(windows2019_paths), AMI_FAMILY_WINDOWS2019, 0, 0 },
    { PATHS(windows2022_paths), AMI_FAMILY_WINDOWS2022, 0, 0 },
    { PATHS(windows2025_paths), AMI_FAMILY_WINDOWS2025, 35, 0 },
};

static struct str fill_in(struct arena *arena, const char *template, struct str cluster_version,
                          struct str image_version)
{
    AUTO_BUF b = { 0 };
    for (const char *p = template; *p; p++) {
        if (*p != '%')
            buf_addc(&b, *p);
        else
            buf_add(&b, *++p == 'V' ? cluster_version : image_version);
    }
    return arena_str(arena, buf_str(&b));
}

bool ami_cluster_minor(struct str version, int64_t *minor)
{
    struct str digits, rest = version;
    if (!str_starts(version, STR("1.")))
        return false;
    rest = str_sub(version, 2, version.len);
    digits = str_take_digits(&rest);
    return !rest.len && digits.len && digits.len < 4 && str_to_i64(digits, minor);
}

int ami_alias_parameters(struct arena *arena, const struct ami_alias *alias,
                         struct str cluster_version, ami_parameters *out, struct err *err)
{
    const char *name = family_of(alias->family)->name;
    struct str version = alias->version;
    uint32_t f = 0;
    int64_t minor;

    while (families[f].family != alias->family) {
        f++;
        KV_ASSERT(f < KV_COUNT_OF(families));
    }
    if (!ami_cluster_minor(cluster_version, &minor))
        return err_set(err, ERR_INVALID, "%s is not a version of Kubernetes such as 1.33",
                       STR_SHOWN(cluster_version));
    if (families[f].minor_until && minor > families[f].minor_until)
        return err_set(err, ERR_INVALID,
                       "there are no %s images for Kubernetes 1.%lld, the last are for 1.%lld",
                       name, (long long)minor, (long long)families[f].minor_until);
    if (minor < families[f].minor_from)
        return err_set(err, ERR_INVALID,
                       "there are no %s images for Kubernetes 1.%lld, the first are for 1.%lld",
                       name, (long long)minor, (long long)families[f].minor_from);
    /* Bottlerocket's parameters have the bare number. */
    if (alias->family == AMI_FAMILY_BOTTLEROCKET && str_starts(version, STR("v")))
        version = str_sub(version, 1, version.len);

    struct ami_parameter *items = arena_array(arena, struct ami_parameter, families[f].count);
    for (uint32_t i = 0; i < families[f].count; i++) {
        const struct path_template *t = &families[f].paths[i];
        items[i].path =
            fill_in(arena, alias->latest ? t->latest : t->pinned, cluster_version, version);
        items[i].variants = t->variants;
    }
    *out = (ami_parameters){ items, families[f].count };
    return 0;
}

/* --- queries --- */

static struct str_list list_of(struct arena *arena, struct str a, struct str b)
{
    struct str *items = arena_array(arena, struct str, 2);
    items[0] = a;
    items[1] = b;
    return (struct str_list){ items, b.p ? 2 : 1 };
}

/* Filters of a term by name or tags. A tag's value * stands for any. */
static struct ami_query term_query(struct arena *arena, const struct ami_term *term)
{
    struct ami_query query = { 0 };
    struct ami_filter *filters =
        arena_array(arena, struct ami_filter, (size_t)term->tags.count + 2);
    uint32_t count = 0;

    if (term->name.len)
        filters[count++] = (struct ami_filter){ STR("name"), list_of(arena, term->name, STR_NONE) };
    for (uint32_t i = 0; i < term->tags.count; i++) {
        const struct str_pair *tag = &term->tags.items[i];
        if (str_eqz(tag->value, "*"))
            filters[count++] =
                (struct ami_filter){ STR("tag-key"), list_of(arena, tag->key, STR_NONE) };
        else
            filters[count++] =
                (struct ami_filter){ arena_strf(arena, "tag:%.*s", STR_ARG(tag->key)),
                                     list_of(arena, tag->value, STR_NONE) };
    }
    filters[count++] =
        (struct ami_filter){ STR("state"), list_of(arena, STR("available"), STR_NONE) };
    query.filters.items = filters;
    query.filters.count = count;
    if (term->owner.len)
        query.owners = list_of(arena, term->owner, STR_NONE);
    else if (term->name.len) /* anybody can publish an image of any name */
        query.owners = list_of(arena, STR("self"), STR("amazon"));
    return query;
}

ami_queries ami_queries_of(struct arena *arena, const struct ec2nodeclass_spec *spec,
                           struct str_list ids)
{
    struct ami_query *queries =
        arena_array(arena, struct ami_query, (size_t)spec->ami_terms.count + 1);
    struct str *all = arena_array(arena, struct str, (size_t)spec->ami_terms.count + ids.count);
    uint32_t count = 0, id_count = 0;

    for (uint32_t i = 0; i < ids.count; i++) {
        if (str_starts(ids.items[i], STR("ami-")))
            all[id_count++] = ids.items[i];
    }
    for (uint32_t i = 0; i < spec->ami_terms.count; i++) {
        const struct ami_term *term = &spec->ami_terms.items[i];
        if (term->id.len)
            all[id_count++] = term->id;
        else if (!term->alias.len && !term->ssm_parameter.len)
            queries[1 + count++] = term_query(arena, term);
    }
    id_count = (uint32_t)str_sort_unique(all, id_count);
    if (!id_count)
        return (ami_queries){ queries + 1, count };

    struct ami_filter *filters = arena_array(arena, struct ami_filter, 2);
    filters[0] = (struct ami_filter){ STR("image-id"), { all, id_count } };
    filters[1] = (struct ami_filter){ STR("state"), list_of(arena, STR("available"), STR_NONE) };
    queries[0].filters.items = filters;
    queries[0].filters.count = 2;
    return (ami_queries){ queries, count + 1 };
}

/* --- Bottlerocket's version --- */

/* The number in "...-v1.46.0-2a8b": the last that looks like one. A pattern (v1.4*) is none. */
static struct str version_in(struct str name)
{
    struct str found = STR_NONE;
    for (size_t i = 0; i + 2 < name.len; i++) {
        struct str rest = str_sub(name, i + 2, name.len), start = rest;
        if (name.p[i] != '-' || name.p[i + 1] != 'v')
            continue;
        int numbers = 0;
        while (str_take_digits(&rest).len) {
            numbers++;
            if (numbers == 3 || !str_starts(rest, STR(".")))
                break;
            rest = str_sub(rest, 1, rest.len);
        }
        if (numbers == 3 && (!rest.len || rest.p[0] == '-'))
            found = str_sub(start, 0, start.len - rest.len);
    }
    return found;
}

struct str ami_bottlerocket_version(const struct ec2nodeclass_spec *spec, struct str image_name)
{
    for (uint32_t i = 0; i < spec->ami_terms.count; i++) {
        const struct ami_term *term = &spec->ami_terms.items[i];
        struct ami_alias alias;
        if (term->alias.p && ami_alias_parse(term->alias, &alias, NULL) == 0 &&
            alias.family == AMI_FAMILY_BOTTLEROCKET)
            return str_starts(alias.version, STR("v"))
                       ? str_sub(alias.version, 1, alias.version.len)
                       : alias.version;
    }
    /* Terms select several images; only a version that all names agree on is the node's. */
    struct str agreed = STR_NONE;
    for (uint32_t i = 0; i < spec->ami_terms.count; i++) {
        struct str version = version_in(spec->ami_terms.items[i].name);
        if (!version.p || (agreed.p && !str_eq(agreed, version)))
            return version_in(image_name);
        agreed = version;
    }
    return agreed.p ? agreed : version_in(image_name);
}

/* spec.kubelet, read twice: api/ec2nodeclass_kubelet.c judges it as `karve validate` does, so that
 * a class which passed there is never refused here; then the table below picks what karve itself
 * acts on. The rest travels as JSON, for families that take any field. */
#include "bootstrap/kubelet.h"

#include "codec/duration.h"

#define T struct kubelet_config
static const struct field kubelet_config_fields[] = {
    FIELD(STRS, cluster_dns, "clusterDNS", NULL),
    FIELD(TRI, cpu_cfs_quota, "cpuCFSQuota", NULL),
    FIELD(STR_MAP, eviction_hard, "evictionHard", NULL),
    FIELD(MAYBE_INT, eviction_max_pod_grace_s, "evictionMaxPodGracePeriod", NULL),
    FIELD(STR_MAP, eviction_soft, "evictionSoft", NULL),
    FIELD(STR_MAP, eviction_soft_grace, "evictionSoftGracePeriod", NULL),
    FIELD(MAYBE_INT, image_gc_high, "imageGCHighThresholdPercent", NULL),
    FIELD(MAYBE_INT, image_gc_low, "imageGCLowThresholdPercent", NULL),
    FIELD(STR_MAP, kube_reserved, "kubeReserved", NULL),
    FIELD(MAYBE_INT, max_pods, "maxPods", NULL),
    FIELD(MAYBE_INT, pods_per_core, "podsPerCore", NULL),
    FIELD(STR_MAP, system_reserved, "systemReserved", NULL),
};
#undef T
static const struct schema kubelet_config_schema =
    SCHEMA("KubeletConfiguration", struct kubelet_config, kubelet_config_fields);

/* --- out of the document, into the arena --- */

static struct str_list copy_list(struct arena *arena, struct str_list list)
{
    struct str *items = arena_array(arena, struct str, list.count);
    for (uint32_t i = 0; i < list.count; i++)
        items[i] = arena_str(arena, list.items[i]);
    return (struct str_list){ items, list.count };
}

/* "90s" and "1m30s" are one duration and give one text, whatever the user wrote. */
static struct str_map copy_durations(struct arena *arena, struct str_map map)
{
    struct str_pair *items = arena_array(arena, struct str_pair, map.count);
    for (uint32_t i = 0; i < map.count; i++) {
        char text[DURATION_TEXT_MAX];
        int64_t ns = 0;
        int rc = duration_parse(map.items[i].value, &ns, NULL);
        KV_ASSERT(rc == 0); /* it was checked */
        items[i].key = arena_str(arena, map.items[i].key);
        items[i].value = arena_str(arena, (struct str){ text, duration_format(ns, text) });
    }
    return (struct str_map){ items, map.count };
}

static int read_object(struct arena *arena, const json_val *root, struct kubelet_config *out,
                       struct err *err)
{
    struct kubelet_config view = { 0 };

    if (schema_decode(&kubelet_config_schema, root, arena, &view, err) < 0)
        return err_wrap(err, "spec.kubelet");
    view.has_system_reserved = json_member(root, "systemReserved") != NULL;
    view.has_kube_reserved = json_member(root, "kubeReserved") != NULL;
    view.has_eviction_hard = json_member(root, "evictionHard") != NULL;
    view.has_eviction_soft = json_member(root, "evictionSoft") != NULL;
    view.has_eviction_soft_grace = json_member(root, "evictionSoftGracePeriod") != NULL;

    view.cluster_dns = copy_list(arena, view.cluster_dns);
    view.system_reserved = str_map_copy(arena, &view.system_reserved);
    view.kube_reserved = str_map_copy(arena, &view.kube_reserved);
    view.eviction_hard = str_map_copy(arena, &view.eviction_hard);
    view.eviction_soft = str_map_copy(arena, &view.eviction_soft);
    view.eviction_soft_grace = copy_durations(arena, view.eviction_soft_grace);
    *out = view;
    return 0;
}

/* The first error of many: the others are found when it is mended, or by `karve validate`. */
static int check(const json_val *root, enum ami_family family, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct report report = { .arena = &arena };
    struct path spec = { .name = STR("spec") };
    struct place place = { .path = { &spec, STR("kubelet") }, .at = root, .found = true };
    int rc = 0;

    if (!json_is_object(root))
        return err_set(err, ERR_INVALID, "spec.kubelet: is of type %s, expected an object",
                       json_type_name(root));
    kubelet_check(root, family, &place, &report);
    vec_each(&report.problems, struct problem, p) {
        if (rc == 0 && p->severity == PROBLEM_ERROR)
            rc = err_set(err, ERR_INVALID, "%.*s: %.*s", STR_ARG(p->path), STR_ARG(p->what));
    }
    report_done(&report);
    return rc;
}

int kubelet_config_read(struct arena *arena, struct str json, enum ami_family family,
                        struct kubelet_config *out, struct err *err)
{
    struct doc doc;
    struct kubelet_config config = { 0 };

    if (json.p) {
        if (json_read(json, &doc, err) < 0)
            return err_wrap(err, "spec.kubelet");
        int rc = check(doc.root, family, err);
        if (rc == 0)
            rc = read_object(arena, doc.root, &config, err);
        doc_done(&doc);
        if (rc < 0)
            return -1;
        config.json = arena_str(arena, json);
    }
    *out = config;
    return 0;
}

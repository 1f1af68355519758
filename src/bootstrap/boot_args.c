/* What a kubelet is told about its node, whichever way its family tells it. Values were checked
 * before (label syntax by boot_render, quantities and signals by kubelet_config_read): none has a
 * quote or a blank in it, so the arguments stand in double quotes and the whole may stand in single
 * ones. */
#include "bootstrap/boot.h"

/* --- labels --- */

static bool in_domain(struct str domain, struct str parent)
{
    if (domain.len <= parent.len)
        return str_eq(domain, parent);
    return str_ends(domain, parent) && domain.p[domain.len - parent.len - 1] == '.';
}

/* The API server refuses a kubelet that labels its own node with these; they are set when the node
 * registers. node-restriction.kubernetes.io is one of kubernetes.io's subdomains. */
static bool kubelet_may_set(struct str key)
{
    struct str domain, name;
    if (!str_cut(key, '/', &domain, &name))
        return true;
    return !in_domain(domain, STR("kubernetes.io")) && !in_domain(domain, STR("k8s.io"));
}

struct str_map boot_node_labels(struct arena *arena, const struct boot *boot)
{
    bool add = family_of(boot->family)->do_not_sync_taints &&
               !str_map_get(&boot->labels, STR(LABEL_DO_NOT_SYNC_TAINTS)).p;
    struct str_pair mark = { STR(LABEL_DO_NOT_SYNC_TAINTS), STR("true") };
    struct str_pair *items = arena_array(arena, struct str_pair, (size_t)boot->labels.count + 1);
    uint32_t count = 0;

    for (uint32_t i = 0; i < boot->labels.count; i++) {
        const struct str_pair *label = &boot->labels.items[i];
        if (!kubelet_may_set(label->key))
            continue;
        if (add && str_cmp(mark.key, label->key) < 0) {
            items[count++] = mark;
            add = false;
        }
        items[count++] = *label;
    }
    if (add)
        items[count++] = mark;
    return (struct str_map){ items, count };
}

/* --- taints --- */

taint_list boot_node_taints(struct arena *arena, const struct boot *boot)
{
    static const struct taint unregistered = {
        .key = { TAINT_UNREGISTERED, sizeof TAINT_UNREGISTERED - 1 }, .effect = EFFECT_NO_EXECUTE
    };
    struct taint *items = arena_array(arena, struct taint, (size_t)boot->taints.count + 1);
    uint32_t count = 0;
    bool marked = false;

    for (uint32_t i = 0; i < boot->taints.count; i++) {
        const struct taint *taint = &boot->taints.items[i];
        marked |= str_eq(taint->key, unregistered.key) && taint->effect == unregistered.effect;
        items[count++] = *taint;
    }
    if (!marked)
        items[count++] = unregistered;
    return (taint_list){ items, count };
}

const char *boot_taint_effect(const struct taint *taint)
{
    static const char *const names[] = { "", "NoSchedule", "PreferNoSchedule", "NoExecute" };
    KV_ASSERT(taint->effect < KV_COUNT_OF(names));
    return names[taint->effect];
}

struct maybe_int boot_max_pods(const struct boot *boot)
{
    return boot->kubelet && boot->kubelet->max_pods.set ? boot->kubelet->max_pods : boot->max_pods;
}

struct str boot_cluster_dns(const struct boot *boot)
{
    if (boot->kubelet && boot->kubelet->cluster_dns.count)
        return boot->kubelet->cluster_dns.items[0];
    return boot->cluster && boot->cluster->dns.len ? boot->cluster->dns : STR_NONE;
}

/* --- arguments --- */

/* The arguments as they are written, and who said each. */
struct args {
    struct buf text;
    struct {
        size_t end;
        enum boot_owner owner;
    } runs[16];
    uint32_t count;
};

static void begin(struct args *a, const char *flag)
{
    buf_addf(&a->text, "%s--%s=", a->text.len ? " " : "", flag);
}

static void end(struct args *a, enum boot_owner owner)
{
    KV_ASSERT(a->count < KV_COUNT_OF(a->runs));
    a->runs[a->count].end = a->text.len;
    a->runs[a->count++].owner = owner;
}

static void add_map(struct args *a, const char *flag, const struct str_map *map, char between,
                    enum boot_owner owner)
{
    if (!map->count)
        return;
    begin(a, flag);
    buf_addc(&a->text, '"');
    for (uint32_t i = 0; i < map->count; i++) {
        if (i)
            buf_addc(&a->text, ',');
        buf_add(&a->text, map->items[i].key);
        buf_addc(&a->text, between);
        buf_add(&a->text, map->items[i].value);
    }
    buf_addc(&a->text, '"');
    end(a, owner);
}

static void add_taints(struct args *a, taint_list taints)
{
    begin(a, "register-with-taints");
    buf_addc(&a->text, '"');
    for (uint32_t i = 0; i < taints.count; i++) {
        const struct taint *t = &taints.items[i];
        buf_addf(&a->text, "%s%.*s", i ? "," : "", STR_ARG(t->key));
        if (t->value.len)
            buf_addf(&a->text, "=%.*s", STR_ARG(t->value));
        buf_addf(&a->text, ":%s", boot_taint_effect(t));
    }
    buf_addc(&a->text, '"');
    end(a, OWNER_KARVE);
}

static void add_int(struct args *a, const char *flag, struct maybe_int n, enum boot_owner owner)
{
    if (!n.set)
        return;
    begin(a, flag);
    buf_addf(&a->text, "%lld", (long long)n.value);
    end(a, owner);
}

static void write_args(struct arena *arena, const struct boot *boot, struct args *a)
{
    static const struct kubelet_config none;
    const struct kubelet_config *k = boot->kubelet ? boot->kubelet : &none;
    struct str_map labels = boot_node_labels(arena, boot);

    add_map(a, "node-labels", &labels, '=', OWNER_KARVE);
    add_taints(a, boot_node_taints(arena, boot));
    add_int(a, "max-pods", boot_max_pods(boot), k->max_pods.set ? OWNER_KUBELET : OWNER_KARVE);
    add_int(a, "pods-per-core", k->pods_per_core, OWNER_KUBELET);
    add_map(a, "system-reserved", &k->system_reserved, '=', OWNER_KUBELET);
    add_map(a, "kube-reserved", &k->kube_reserved, '=', OWNER_KUBELET);
    add_map(a, "eviction-hard", &k->eviction_hard, '<', OWNER_KUBELET);
    add_map(a, "eviction-soft", &k->eviction_soft, '<', OWNER_KUBELET);
    add_map(a, "eviction-soft-grace-period", &k->eviction_soft_grace, '=', OWNER_KUBELET);
    add_int(a, "eviction-max-pod-grace-period", k->eviction_max_pod_grace_s, OWNER_KUBELET);
    add_int(a, "image-gc-high-threshold", k->image_gc_high, OWNER_KUBELET);
    add_int(a, "image-gc-low-threshold", k->image_gc_low, OWNER_KUBELET);
    if (k->cpu_cfs_quota != TRI_UNSET) {
        begin(a, "cpu-cfs-quota");
        buf_addz(&a->text, k->cpu_cfs_quota == TRI_TRUE ? "true" : "false");
        end(a, OWNER_KUBELET);
    }
    KV_ASSERT(str_find(buf_str(&a->text), '\'') < 0);
}

void boot_add_kubelet_args(struct arena *arena, const struct boot *boot, struct boot_text *out)
{
    struct args a = { 0 };
    write_args(arena, boot, &a);
    struct str text = arena_str(arena, buf_str(&a.text));
    size_t start = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        boot_add_piece(arena, out, str_sub(text, start, a.runs[i].end - start), a.runs[i].owner,
                       STR(""));
        start = a.runs[i].end;
    }
    buf_done(&a.text);
}

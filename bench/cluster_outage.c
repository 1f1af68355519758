/* A site is a pool that has nodes, with what a pod must say to be there. Nodes of a site lie one
 * after the other, and their zones alternate. Running pods are dealt out like cards: each workload in
 * turn puts one pod on the next node of its site that has room, and may not lap as often as would
 * break its own rules. So no rule is broken at the start, zones are even, and nodes are about equally
 * full.
 */
#include "bench/cluster_outage.h"

#include "api/resources.h"
#include "base/rng.h"

#define DRIVER "ebs.csi.aws.com"
#define ATTACHMENTS_MAX 26 /* of a node */
#define KEY_CATEGORY "karpenter.k8s.aws/instance-category"

static const char *const zones[] = { "us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", NULL };
#define ZONES (KV_COUNT_OF(zones) - 1)

/* --- pools and sites --- */

#define VALUES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define KEY_DEDICATED "bench/dedicated" /* of the taint, and of the label that goes with it */

static const struct pool_row {
    const char *name;
    int64_t weight;
    const char *arch;
    const char *categories;    /* a letter each */
    const char *capacity_type; /* NULL: both */
    const char *dedicated;     /* value of label and taint; NULL: neither */
    bool tainted;              /* else only labelled */
    const char *node_type;
    uint32_t node_permille;    /* of all nodes; the first takes what is left */
    uint32_t workload_percent; /* likewise */
} rows[] = {
    { "general", 50, "amd64", "cmr", NULL, NULL, false, "m7i.4xlarge", 0, 0 },
    { "arm", 50, "arm64", "cmr", NULL, NULL, false, "m7g.4xlarge", 168, 15 },
    { "stable", 50, "amd64", "cmr", "on-demand", "stable", false, "m6i.4xlarge", 99, 10 },
    { "compute", 50, "amd64", "c", NULL, "compute", true, "c6i.4xlarge", 40, 4 },
    { "memory", 50, "amd64", "rx", NULL, "memory", true, "r6i.4xlarge", 40, 4 },
    { "storage", 50, "amd64", "i", "on-demand", "storage", true, "i4i.4xlarge", 27, 3 },
    { "gpu", 50, "amd64", "gp", NULL, "gpu", true, "g5.12xlarge", 40, 4 },
    { "batch", 50, "amd64", "cm", "spot", "batch", true, "m5.4xlarge", 40, 4 },
    { "team-blue", 50, "amd64", "m", "on-demand", "blue", true, "m6i.4xlarge", 40, 3 },
    { "team-red", 50, "amd64", "mr", "on-demand", "red", true, "m5.4xlarge", 40, 3 },
    { "ci", 10, "amd64", "cm", "spot", "ci", true, NULL, 0, 0 },
    { "fallback", 1, "amd64", "m", "on-demand", NULL, false, NULL, 0, 0 },
};
#define SITES 10 /* the rows with nodes */
#define SITE_GPU 6

struct site {
    uint32_t first, count; /* of nodes */
    struct pod_spec says;  /* node selector and tolerations */
};

struct node_state { /* free, in thousandths */
    int64_t cpu, memory, gpus, pods, attachments;
};

/* What workloads ask for, and how often a running workload may be on one node. */
enum feature {
    FEATURE_NONE,
    FEATURE_ZONES,
    FEATURE_HOSTS,
    FEATURE_TOGETHER,
    FEATURE_APART,
    FEATURE_VOLUMES, /* bound, in a zone */
    FEATURE_WAITING, /* volumes that are made where the pod goes */
    FEATURE_PREFERS,
};
static const enum feature features[] = {
    FEATURE_NONE,  FEATURE_ZONES, FEATURE_NONE,    FEATURE_HOSTS,   FEATURE_TOGETHER,
    FEATURE_APART, FEATURE_ZONES, FEATURE_VOLUMES, FEATURE_WAITING, FEATURE_PREFERS,
};
#define HOSTS_SKEW 3

struct workload_row {
    struct pod_mould mould;
    struct amounts amounts;
    enum feature feature;
    uint32_t site;
    uint32_t pending, running;
    uint32_t zone;           /* of FEATURE_TOGETHER */
    uint32_t cursor, offset; /* of dealing: nodes of the site that were tried; where it began */
    bool dealt;              /* there is no more room for it */
};

struct outage {
    struct cluster *c;
    struct arena *a;
    struct rng rng;
    const struct instance_types *types;
    struct site sites[SITES];
    struct workload_row *workloads;
    uint32_t workload_count;
    struct node_state *nodes;
    uint32_t node_count;
    uint32_t volume_count;
};

static void require_letters(struct arena *a, struct nodepool *pool, const char *key,
                            const char *letters)
{
    const char *values[8] = { 0 };
    for (size_t i = 0; letters[i]; i++) {
        KV_ASSERT(i < KV_COUNT_OF(values) - 1);
        values[i] = arena_strf(a, "%c", letters[i]).p;
    }
    nodepool_require(a, pool, key, values);
}

static void add_pools(struct outage *o)
{
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        const struct pool_row *row = &rows[i];
        struct nodepool *pool = cluster_add_pool(o->c, row->name, AWS_GROUP, o->types);
        struct claim_node_spec *spec = &pool->spec.template.spec;
        pool->spec.weight = (struct maybe_int){ row->weight, true };
        require_letters(o->a, pool, KEY_CATEGORY, row->categories);
        if (row->capacity_type)
            nodepool_require(o->a, pool, LABEL_CAPACITY_TYPE, VALUES(row->capacity_type));
        else
            nodepool_require(o->a, pool, LABEL_CAPACITY_TYPE,
                             VALUES(CAPACITY_ON_DEMAND, CAPACITY_SPOT));
        nodepool_require(o->a, pool, LABEL_ARCH, VALUES(row->arch));
        nodepool_require(o->a, pool, LABEL_OS, VALUES("linux"));
        nodepool_require(o->a, pool, LABEL_ZONE, zones);
        if (!row->dedicated)
            continue;
        pool->spec.template.meta.labels = map_one(o->a, STR(KEY_DEDICATED), str_of(row->dedicated));
        if (row->tainted) {
            struct taint *taint = arena_new(o->a, struct taint);
            *taint = (struct taint){ .key = STR(KEY_DEDICATED),
                                     .value = str_of(row->dedicated),
                                     .effect = EFFECT_NO_SCHEDULE };
            spec->taints.items = taint;
            spec->taints.count = 1;
        }
    }
}

static void make_sites(struct outage *o, uint32_t node_count)
{
    uint32_t given = 0;
    for (uint32_t i = SITES; i-- > 0;) {
        const struct pool_row *row = &rows[i];
        struct site *site = &o->sites[i];
        uint32_t count = node_count * row->node_permille / 1000;
        site->count = i == 0 ? node_count - given : count < ZONES ? (uint32_t)ZONES : count;
        given += site->count;
        site->first = node_count - given;
        site->says.node_selector = row->dedicated
                                       ? map_one(o->a, STR(KEY_DEDICATED), str_of(row->dedicated))
                                       : map_one(o->a, STR(LABEL_ARCH), str_of(row->arch));
        if (row->tainted) {
            struct toleration *t = arena_new(o->a, struct toleration);
            *t = (struct toleration){ .key = STR(KEY_DEDICATED),
                                      .value = str_of(row->dedicated),
                                      .op = TOLERATION_EQUAL,
                                      .effect = EFFECT_NO_SCHEDULE };
            site->says.tolerations.items = t;
            site->says.tolerations.count = 1;
        }
    }
}

/* --- nodes --- */

/* Those of the type with one value, and what the node adds. */
static struct str_map node_labels(struct outage *o, const struct pool_row *row, uint32_t type,
                                  const char *zone, struct str name)
{
    struct requirements says = instance_type_requirements(o->types, type, o->a);
    struct str_pair *pairs = arena_array(o->a, struct str_pair, says.count + 8);
    uint32_t count = 0;
    for (uint32_t i = 0; i < says.count; i++) {
        const struct requirement *r = &says.items[i];
        if (!r->complement && r->values.count == 1)
            pairs[count++] = (struct str_pair){ r->key, r->values.items[0] };
    }
    pairs[count++] = (struct str_pair){ STR(LABEL_NODEPOOL), str_of(row->name) };
    pairs[count++] =
        (struct str_pair){ STR(LABEL_CAPACITY_TYPE),
                           str_of(row->capacity_type ? row->capacity_type : CAPACITY_ON_DEMAND) };
    pairs[count++] = (struct str_pair){ STR(LABEL_ZONE), str_of(zone) };
    pairs[count++] = (struct str_pair){ STR(LABEL_HOSTNAME), name };
    pairs[count++] = (struct str_pair){ STR(LABEL_REGISTERED), STR("true") };
    pairs[count++] = (struct str_pair){ STR(LABEL_INITIALIZED), STR("true") };
    if (row->dedicated)
        pairs[count++] = (struct str_pair){ STR(KEY_DEDICATED), str_of(row->dedicated) };
    qsort(pairs, count, sizeof *pairs, str_pair_order);
    return (struct str_map){ pairs, count };
}

static void add_csi_node(struct outage *o, struct str name)
{
    struct csi_node *csi = arena_new(o->a, struct csi_node);
    struct csi_driver *driver = arena_new(o->a, struct csi_driver);
    driver->name = STR(DRIVER);
    driver->allocatable.count = (struct maybe_int){ ATTACHMENTS_MAX, true };
    csi->object.kind = &csi_node_kind;
    csi->object.meta.name = name;
    csi->spec.drivers.items = driver;
    csi->spec.drivers.count = 1;
    vec_push(&o->c->csi_nodes, csi);
}

static void add_node(struct outage *o, const struct pool_row *row, const struct site *site,
                     uint32_t nth)
{
    static const struct condition ready = { .type = { "Ready", 5 }, .status = CONDITION_TRUE };
    uint32_t type = instance_types_find(o->types, str_of(row->node_type));
    KV_ASSERT(type != INSTANCE_TYPE_NONE);
    struct node *node = arena_new(o->a, struct node);
    struct str name = arena_strf(o->a, "node-%s-%04u", row->name, nth);
    const struct nodepool *pool = o->c->pools.items[row - rows].pool;

    node->object.kind = &node_kind;
    node->object.meta.name = name;
    node->object.meta.labels = node_labels(o, row, type, zones[nth % ZONES], name);
    node->spec.provider_id =
        arena_strf(o->a, "aws:///%s/i-%08u", zones[nth % ZONES], site->first + nth);
    node->spec.taints.items = pool->spec.template.spec.taints.items;
    node->spec.taints.count = pool->spec.template.spec.taints.count;
    node->status.capacity = instance_type_capacity(o->types, type, o->a);
    node->status.allocatable = instance_type_allocatable(o->types, type, o->a);
    node->status.conditions.items = &ready;
    node->status.conditions.count = 1;
    vec_push(&o->c->nodes, node);
    add_csi_node(o, name);
    const struct resources *has = &node->status.allocatable;
    o->nodes[site->first + nth] =
        (struct node_state){ .cpu = milli_floor(resources_get(has, STR("cpu"))),
                             .memory = milli_floor(resources_get(has, STR("memory"))),
                             .gpus = milli_floor(resources_get(has, STR("nvidia.com/gpu"))),
                             .pods = milli_floor(resources_get(has, STR("pods"))),
                             .attachments = ATTACHMENTS_MAX };
}

static void add_nodes(struct outage *o)
{
    o->nodes = arena_array(o->a, struct node_state, o->node_count);
    for (uint32_t p = 0; p < SITES; p++) {
        for (uint32_t i = 0; i < o->sites[p].count; i++)
            add_node(o, &rows[p], &o->sites[p], i);
    }
}

static bool node_takes(struct outage *o, uint32_t node, struct amounts a, int64_t attachments)
{
    struct node_state *n = &o->nodes[node];
    int64_t cpu = a.cpu_milli, memory = (a.memory_mib << 20) * 1000, gpus = a.gpus * 1000;
    if (n->cpu < cpu || n->memory < memory || n->gpus < gpus || n->pods < 1000 ||
        n->attachments < attachments)
        return false;
    n->cpu -= cpu;
    n->memory -= memory;
    n->gpus -= gpus;
    n->pods -= 1000;
    n->attachments -= attachments;
    return true;
}

/* --- daemons --- */

static void add_daemon(struct outage *o, const char *name, struct amounts amounts)
{
    static const struct toleration everything = { .op = TOLERATION_EXISTS };
    struct arena *a = o->a;
    struct daemon_set *set = arena_new(a, struct daemon_set);
    struct pod_template *template = arena_new(a, struct pod_template);
    struct owner_ref *owner = arena_new(a, struct owner_ref);
    struct pod_spec *spec = spec_new(a, amounts);
    spec->tolerations.items = &everything;
    spec->tolerations.count = 1;
    template->meta.labels = map_one(a, STR("app"), str_of(name));
    template->spec = *spec;
    set->object.kind = &daemon_set_kind;
    set->object.meta.name = str_of(name);
    set->object.meta.namespace_ = STR("kube-system");
    set->spec.maybe_selector = select_one(a, STR("app"), str_of(name));
    set->spec.maybe_template = template;
    vec_push(&o->c->daemon_sets, set);

    struct pod_mould mould = { .spec = spec, .labels = template->meta.labels };
    *owner = (struct owner_ref){ .api_version = STR("apps/v1"),
                                 .kind = STR("DaemonSet"),
                                 .name = str_of(name),
                                 .uid = str_of(name),
                                 .controller = true };
    set->object.meta.uid = str_of(name);
    for (uint32_t i = 0; i < o->node_count; i++) {
        bool fits = node_takes(o, i, amounts, 0);
        KV_ASSERT(fits);
        struct pod *pod = cluster_add_pod(o->c, &mould, arena_strf(a, "%s-%04u", name, i),
                                          o->c->nodes.items[i]->object.meta.name);
        pod->object.meta.namespace_ = STR("kube-system");
        pod->object.meta.owners.items = owner;
        pod->object.meta.owners.count = 1;
    }
}

/* --- workloads --- */

static uint32_t draw_site(struct rng *rng)
{
    uint32_t at = (uint32_t)rng_below(rng, 100);
    for (uint32_t p = 1; p < SITES; p++) {
        if (at < rows[p].workload_percent)
            return p;
        at -= rows[p].workload_percent;
    }
    return 0;
}

static struct amounts draw_amounts(struct rng *rng, bool gpu)
{
    static const int64_t cpu[] = { 50, 100, 250, 250, 500, 1000 };
    static const int64_t memory[] = { 64, 128, 256, 512, 1024, 2048 };
    return (struct amounts){ .cpu_milli = cpu[rng_below(rng, KV_COUNT_OF(cpu))],
                             .memory_mib = memory[rng_below(rng, KV_COUNT_OF(memory))],
                             .gpus = gpu ? 1 : 0 };
}

static const struct affinity *prefer_spot(struct arena *a)
{
    struct affinity *affinity = arena_new(a, struct affinity);
    struct preferred_node_term *term = arena_new(a, struct preferred_node_term);
    struct expression *in = arena_new(a, struct expression);
    *in = expression_in(LABEL_CAPACITY_TYPE, list_one(a, STR(CAPACITY_SPOT)));
    term->weight = 10;
    term->term.expressions.items = in;
    term->term.expressions.count = 1;
    affinity->node.preferred.items = term;
    affinity->node.preferred.count = 1;
    return affinity;
}

static void apply_feature(struct outage *o, struct workload_row *w, struct pod_spec *spec,
                          const struct label_selector *kin)
{
    switch (w->feature) {
    case FEATURE_NONE:
    case FEATURE_VOLUMES: /* each pod has its own */
    case FEATURE_WAITING:
        break;
    case FEATURE_ZONES:
        spec_spread(o->a, spec, LABEL_ZONE, 1, kin);
        break;
    case FEATURE_HOSTS:
        spec_spread(o->a, spec, LABEL_HOSTNAME, HOSTS_SKEW, kin);
        spec_spread(o->a, spec, LABEL_ZONE, 2, kin);
        break;
    case FEATURE_TOGETHER:
        w->mould.maybe_affinity = affinity_to(o->a, LABEL_ZONE, kin);
        w->zone = (uint32_t)rng_below(&o->rng, ZONES);
        break;
    case FEATURE_APART:
        w->mould.maybe_affinity = affinity_against(o->a, LABEL_HOSTNAME, kin);
        break;
    case FEATURE_PREFERS:
        w->mould.maybe_affinity = prefer_spot(o->a);
        spec_spread(o->a, spec, LABEL_ZONE, 1, kin)->when_unsatisfiable = UNSATISFIABLE_ANYWAY;
        break;
    }
}

static void make_workload(struct outage *o, uint32_t i)
{
    struct workload_row *w = &o->workloads[i];
    struct str app = arena_strf(o->a, "app-%03u", i);
    w->site = draw_site(&o->rng);
    bool gpu = w->site == SITE_GPU;
    w->feature = gpu ? FEATURE_NONE : features[i % KV_COUNT_OF(features)];
    w->amounts = draw_amounts(&o->rng, gpu);
    w->offset = (uint32_t)rng_below(&o->rng, o->sites[w->site].count);
    struct pod_spec *spec = spec_new(o->a, w->amounts);
    spec->node_selector = o->sites[w->site].says.node_selector;
    spec->tolerations = o->sites[w->site].says.tolerations;
    w->mould.labels = map_one(o->a, STR("app"), app);
    w->mould.spec = spec;
    apply_feature(o, w, spec, select_one(o->a, STR("app"), app));
}

/* Those that need a node or a GPU each have few pods; the others share what is left. */
static void share_pending(struct outage *o, uint32_t pending)
{
    uint32_t left = pending, sharers = 0;
    for (uint32_t i = 0; i < o->workload_count; i++) {
        struct workload_row *w = &o->workloads[i];
        if (w->site == SITE_GPU || w->feature == FEATURE_APART) {
            uint32_t few = pending / o->workload_count / 2;
            w->pending = 1 + (uint32_t)rng_below(&o->rng, few + 1);
            left -= w->pending;
        } else {
            sharers++;
        }
    }
    for (uint32_t i = 0; i < o->workload_count; i++) {
        struct workload_row *w = &o->workloads[i];
        if (w->pending)
            continue;
        uint32_t fair = left / sharers;
        w->pending =
            sharers == 1 ? left : fair / 4 + (uint32_t)rng_below(&o->rng, fair * 3 / 2 + 1);
        left -= w->pending;
        sharers--;
    }
}

/* --- volumes --- */

static const struct pv *add_pv(struct outage *o, struct str name, uint32_t zone)
{
    struct pv *pv = arena_new(o->a, struct pv);
    struct pv_csi *csi = arena_new(o->a, struct pv_csi);
    struct pv_affinity *affinity = arena_new(o->a, struct pv_affinity);
    struct node_selector_term *term = arena_new(o->a, struct node_selector_term);
    struct expression *in = arena_new(o->a, struct expression);
    *in = expression_in(LABEL_ZONE, list_one(o->a, str_of(zones[zone])));
    term->expressions.items = in;
    term->expressions.count = 1;
    affinity->required.terms.items = term;
    affinity->required.terms.count = 1;
    *csi = (struct pv_csi){ STR(DRIVER), name };
    pv->object.kind = &pv_kind;
    pv->object.meta.name = name;
    pv->spec.maybe_csi = csi;
    pv->spec.driver = STR(DRIVER);
    pv->spec.maybe_affinity = affinity;
    pv->spec.storage_class_name = STR("ebs");
    pv->status.phase = PV_BOUND;
    vec_push(&o->c->pvs, pv);
    return pv;
}

/* One claim for the pod: bound to a volume in the zone, or (zone ZONES) waiting. */
static void add_volume(struct outage *o, struct pod *pod, uint32_t zone)
{
    static const struct str_pair completed = { { "pv.kubernetes.io/bind-completed", 31 },
                                               { "yes", 3 } };
    struct pvc *pvc = arena_new(o->a, struct pvc);
    struct volume *volume = arena_new(o->a, struct volume);
    pvc->object.kind = &pvc_kind;
    pvc->object.meta.name = arena_strf(o->a, "data-%05u", o->volume_count);
    pvc->object.meta.namespace_ = pod->object.meta.namespace_;
    pvc->spec.storage_class_name = STR("ebs");
    pvc->status.phase = PVC_PENDING;
    if (zone < ZONES) {
        struct str name = arena_strf(o->a, "pv-%05u", o->volume_count);
        pvc->spec.volume_name = add_pv(o, name, zone)->object.meta.name;
        pvc->object.meta.annotations = (struct str_map){ &completed, 1 };
        pvc->status.phase = PVC_BOUND;
    }
    o->volume_count++;
    vec_push(&o->c->pvcs, pvc);
    volume->name = STR("data");
    volume->claim.name = pvc->object.meta.name;
    pod->volumes.items = volume;
    pod->volumes.count = 1;
}

static void add_storage_class(struct outage *o)
{
    struct storage_class *class_ = arena_new(o->a, struct storage_class);
    struct topology_term *term = arena_new(o->a, struct topology_term);
    struct expression *in = arena_new(o->a, struct expression);
    *in = expression_in(LABEL_ZONE, list_of(o->a, zones));
    term->expressions.items = in;
    term->expressions.count = 1;
    class_->object.kind = &storage_class_kind;
    class_->object.meta.name = STR("ebs");
    class_->provisioner = STR(DRIVER);
    class_->binding_mode = BINDING_WAIT;
    class_->allowed_topologies.items = term;
    class_->allowed_topologies.count = 1;
    vec_push(&o->c->storage_classes, class_);
}

static bool has_volumes(const struct workload_row *w)
{
    return w->feature == FEATURE_VOLUMES || w->feature == FEATURE_WAITING;
}

/* --- pods --- */

static uint32_t laps_max(const struct workload_row *w)
{
    return w->feature == FEATURE_APART ? 1 : w->feature == FEATURE_HOSTS ? HOSTS_SKEW : UINT32_MAX;
}

/* One running pod of the workload on the next node of its site that has room. */
static bool deal(struct outage *o, uint32_t i)
{
    struct workload_row *w = &o->workloads[i];
    const struct site *site = &o->sites[w->site];
    for (uint32_t tries = 0; tries < site->count; tries++) {
        uint32_t at = w->cursor++;
        uint32_t nth = (w->offset + at) % site->count;
        if (at / site->count >= laps_max(w))
            break;
        if (w->feature == FEATURE_TOGETHER && nth % ZONES != w->zone)
            continue;
        uint32_t node = site->first + nth;
        if (!node_takes(o, node, w->amounts, has_volumes(w) ? 1 : 0))
            continue;
        struct pod *pod =
            cluster_add_pod(o->c, &w->mould, arena_strf(o->a, "app-%03u-r%04u", i, w->running++),
                            o->c->nodes.items[node]->object.meta.name);
        if (has_volumes(w))
            add_volume(o, pod, nth % ZONES);
        return true;
    }
    w->dealt = true;
    return false;
}

static void add_running(struct outage *o, uint32_t running)
{
    for (uint32_t left = running; left > 0;) {
        uint32_t before = left;
        for (uint32_t i = 0; i < o->workload_count && left > 0; i++) {
            if (!o->workloads[i].dealt && deal(o, i))
                left--;
        }
        KV_ASSERT(left < before); /* there is room for all of them */
    }
}

static void add_pending(struct outage *o)
{
    for (uint32_t i = 0; i < o->workload_count; i++) {
        const struct workload_row *w = &o->workloads[i];
        for (uint32_t k = 0; k < w->pending; k++) {
            struct pod *pod =
                cluster_add_pod(o->c, &w->mould, arena_strf(o->a, "app-%03u-p%04u", i, k), STR(""));
            if (has_volumes(w))
                add_volume(o, pod, w->feature == FEATURE_VOLUMES ? k % ZONES : (uint32_t)ZONES);
        }
    }
}

void outage_fill(struct cluster *c, struct outage_size size, uint64_t seed)
{
    struct outage o = { .c = c,
                        .a = &c->arena,
                        .types = built_in_types("backlog"),
                        .workload_count = size.workloads,
                        .node_count = size.nodes };
    rng_init(&o.rng, seed);
    add_pools(&o);
    make_sites(&o, size.nodes);
    add_nodes(&o);
    add_storage_class(&o);
    add_daemon(&o, "log-agent", (struct amounts){ .cpu_milli = 100, .memory_mib = 200 });
    add_daemon(&o, "node-proxy", (struct amounts){ .cpu_milli = 50, .memory_mib = 64 });
    o.workloads = arena_array(o.a, struct workload_row, size.workloads);
    for (uint32_t i = 0; i < size.workloads; i++)
        make_workload(&o, i);
    share_pending(&o, size.pending);
    add_running(&o, size.running - 2 * size.nodes);
    add_pending(&o);
    instance_types_unref(o.types);
}

/* Gauges that describe nodes, pods and pools. A scrape drops what the last one said and says it anew:
 * so nothing is left of what is gone, and nothing costs anything between scrapes. Families are bounded
 * (METRIC_SERIES_MAX); beyond that objects are left out, the last by name first.
 */
#include "control/metrics_collect.h"

#include "api/requests.h"
#include "api/resources.h"
#include "base/vec.h"

#define LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })

enum {
    NODES_ALLOCATABLE,
    NODES_POD_REQUESTS,
    NODES_POD_LIMITS,
    NODES_DAEMON_REQUESTS,
    NODES_DAEMON_LIMITS,
    NODES_OVERHEAD,
    NODES_LIFETIME,
    UTILIZATION,
    POOLS_LIMIT,
    POOLS_USAGE,
    STATE_NODES,
    STATE_SYNCED,
    STATE_UNSYNCED,
    PODS_STATE,
    GAUGES,
};

/* The labels of a node, in the order of node_label_keys, and what else a series of it says. */
#define NODE_LABELS                                                                                \
    "nodepool", "zone", "region", "instance_type", "arch", "os", "capacity_type", "windows_build", \
        "node_name", "phase", "managed"
#define RESOURCE_LABELS LABELS(NODE_LABELS, "resource_type")
enum { NODE_KEYS = 8, NODE_VALUES = NODE_KEYS + 3 };
static const char *const node_label_keys[NODE_KEYS] = {
    LABEL_NODEPOOL, LABEL_ZONE, LABEL_REGION,        LABEL_INSTANCE_TYPE,
    LABEL_ARCH,     LABEL_OS,   LABEL_CAPACITY_TYPE, LABEL_WINDOWS_BUILD,
};

static const struct {
    const char *name, *help;
    const char *const *labels;
} rows[GAUGES] = {
    [NODES_ALLOCATABLE] = { "karpenter_nodes_allocatable", "What pods may use of a node.",
                            RESOURCE_LABELS },
    [NODES_POD_REQUESTS] = { "karpenter_nodes_total_pod_requests",
                             "What the pods of a node request, daemons included.",
                             RESOURCE_LABELS },
    [NODES_POD_LIMITS] = { "karpenter_nodes_total_pod_limits",
                           "What the pods of a node are limited to, daemons included.",
                           RESOURCE_LABELS },
    [NODES_DAEMON_REQUESTS] = { "karpenter_nodes_total_daemon_requests",
                                "What the daemons of a node request.", RESOURCE_LABELS },
    [NODES_DAEMON_LIMITS] = { "karpenter_nodes_total_daemon_limits",
                              "What the daemons of a node are limited to.", RESOURCE_LABELS },
    [NODES_OVERHEAD] = { "karpenter_nodes_system_overhead",
                         "What of a node is not for pods: capacity less allocatable.",
                         RESOURCE_LABELS },
    [NODES_LIFETIME] = { "karpenter_nodes_current_lifetime_seconds", "The age of a node.",
                         LABELS(NODE_LABELS) },
    [UTILIZATION] = { "karpenter_cluster_utilization_percent",
                      "What all pods request of what all nodes have.", LABELS("resource_type") },
    [POOLS_LIMIT] = { "karpenter_nodepools_limit", "What a NodePool may have.",
                      LABELS("resource_type", "nodepool") },
    [POOLS_USAGE] = { "karpenter_nodepools_usage", "What a NodePool has.",
                      LABELS("resource_type", "nodepool") },
    [STATE_NODES] = { "karpenter_cluster_state_node_count", "Nodes, with those on their way.",
                      NULL },
    [STATE_SYNCED] = { "karpenter_cluster_state_synced", "1 once the whole cluster was seen.",
                       NULL },
    [STATE_UNSYNCED] = { "karpenter_cluster_state_unsynced_time_seconds",
                         "For how long the cluster has not been seen whole.", NULL },
    [PODS_STATE] = { "karpenter_pods_state", "1 for each pod, with where and how it is.",
                     LABELS("name", "namespace", "owner", "node", "scheduled", "nodepool", "zone",
                            "arch", "capacity_type", "instance_type", "phase", "ready",
                            "managed") },
};

struct object_gauges {
    struct control *c;
    int64_t start_ns;
    struct metric_family *families[GAUGES];
};

struct total {       /* over all nodes */
    struct str name; /* borrowed from a node of the list */
    double requested, allocatable;
};

struct scrape { /* what is at hand while one is answered */
    struct object_gauges *g;
    struct arena arena; /* of one node, or one pod */
    struct object_list nodes;
    struct str_table node_of; /* const struct node *, by name */
    VEC(struct total) totals;
    uint32_t series_left; /* of the families with one per node and resource */
};

/* --- values --- */

static struct str text(struct str s)
{
    return s.p ? s : STR("");
}

static struct str yes_no(bool yes)
{
    return yes ? STR("true") : STR("false");
}

static double amount(struct quantity q)
{
    return (double)q.units + (double)q.nano / 1e9;
}

/* Sums beyond what a quantity holds are cut off there: it is only shown. */
static void add(struct arena *arena, struct resources *sum, const struct resources *more)
{
    struct resources total;
    if (resources_merge(arena, sum, more, &total, NULL) == 0)
        *sum = total;
}

static struct resources pod_limits(struct arena *arena, const struct pod *pod)
{
    struct resources sum = { 0 };
    for (uint32_t i = 0; i < pod->spec->containers.count; i++)
        add(arena, &sum, &pod->spec->containers.items[i].resources.limits);
    for (uint32_t i = 0; i < pod->spec->init_containers.count; i++) {
        const struct container *init = &pod->spec->init_containers.items[i];
        if (container_is_sidecar(init))
            add(arena, &sum, &init->resources.limits);
    }
    return sum;
}

/* --- nodes --- */

struct node_use { /* of the pods on one node */
    struct resources requests, limits, daemon_requests, daemon_limits;
};

static bool is_daemon(const struct pod *pod)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    return owner && str_eqz(owner->kind, "DaemonSet");
}

/* Its names are borrowed from the pods. */
static struct node_use use_of(struct scrape *s, const struct object_list *pods)
{
    struct node_use use = { 0 };
    for (size_t i = 0; i < pods->count; i++) {
        const struct pod *pod = pod_of(pods->items[i]);
        struct resources requests = { 0 };
        if (pod_is_terminal(pod) || pod_requests_on_node(pod, &s->arena, &requests, NULL) < 0)
            continue;
        struct resources limits = pod_limits(&s->arena, pod);
        add(&s->arena, &use.requests, &requests);
        add(&s->arena, &use.limits, &limits);
        if (is_daemon(pod)) {
            add(&s->arena, &use.daemon_requests, &requests);
            add(&s->arena, &use.daemon_limits, &limits);
        }
    }
    return use;
}

static void add_total(struct scrape *s, struct str name, double requested, double allocatable)
{
    struct total *total = NULL;
    vec_each(&s->totals, struct total, it)
        total = str_eq(it->name, name) ? it : total;
    if (!total) {
        vec_push(&s->totals, (struct total){ .name = name });
        total = &vec_last(&s->totals);
    }
    total->requested += requested;
    total->allocatable += allocatable;
}

static void set_resources(struct scrape *s, int gauge, struct str *values,
                          const struct resources *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        values[NODE_VALUES] = r->items[i].name;
        gauge_set(s->g->families[gauge], amount(r->items[i].amount), values);
    }
}

static void set_node(struct scrape *s, const struct node *node, const struct node_use *use)
{
    const struct meta *meta = &node->object.meta;
    const struct resources *allocatable = &node->status.allocatable;
    struct str values[NODE_VALUES + 1] = { 0 };
    struct resources overhead = { 0 };

    for (int i = 0; i < NODE_KEYS; i++)
        values[i] = text(str_map_get(&meta->labels, str_of(node_label_keys[i])));
    values[NODE_KEYS] = meta->name;
    values[NODE_KEYS + 1] = STR(""); /* a field that kubelets no longer set */
    values[NODE_KEYS + 2] = yes_no(values[0].len > 0);
    resources_subtract(&s->arena, &node->status.capacity, allocatable, &overhead, NULL);
    const struct resources *const per_gauge[] = {
        [NODES_ALLOCATABLE] = allocatable,
        [NODES_POD_REQUESTS] = &use->requests,
        [NODES_POD_LIMITS] = &use->limits,
        [NODES_DAEMON_REQUESTS] = &use->daemon_requests,
        [NODES_DAEMON_LIMITS] = &use->daemon_limits,
        [NODES_OVERHEAD] = &overhead,
    };
    for (int i = 0; i < (int)KV_COUNT_OF(per_gauge); i++)
        set_resources(s, i, values, per_gauge[i]);
    gauge_set(s->g->families[NODES_LIFETIME],
              (double)(control_now_us(s->g->c) - meta->created_us) / 1e6, values);
}

static void collect_node(struct scrape *s, const struct node *node)
{
    const struct resources *allocatable = &node->status.allocatable;
    struct object_list pods = { 0 };
    cluster_list_by(s->g->c->cluster, PODS_BY_NODE, node->object.meta.name, &pods);
    struct node_use use = use_of(s, &pods);
    for (uint32_t i = 0; i < allocatable->count; i++) {
        struct str name = allocatable->items[i].name;
        add_total(s, name, amount(resources_get(&use.requests, name)),
                  amount(allocatable->items[i].amount));
    }
    if (s->series_left >= allocatable->count) {
        s->series_left -= allocatable->count;
        set_node(s, node, &use);
    }
    object_list_done(&pods);
    arena_reset(&s->arena);
}

static void collect_nodes(struct scrape *s)
{
    for (size_t i = 0; i < s->nodes.count; i++)
        collect_node(s, node_of(s->nodes.items[i]));
    vec_each(&s->totals, struct total, it) {
        if (it->allocatable > 0)
            gauge_set(s->g->families[UTILIZATION], 100 * it->requested / it->allocatable,
                      &it->name);
    }
}

/* --- pools and the cluster --- */

static void collect_pools(struct scrape *s)
{
    struct object_list pools = { 0 };
    cluster_list(s->g->c->cluster, &nodepool_kind, &pools);
    for (size_t i = 0; i < pools.count; i++) {
        const struct nodepool *pool = nodepool_of(pools.items[i]);
        const struct resources *const lists[] = { &pool->spec.limits, &pool->status.resources };
        for (int l = 0; l < 2; l++) {
            for (uint32_t r = 0; r < lists[l]->count; r++) {
                const struct str values[] = { lists[l]->items[r].name, pool->object.meta.name };
                gauge_set(s->g->families[POOLS_LIMIT + l], amount(lists[l]->items[r].amount),
                          values);
            }
        }
    }
    object_list_done(&pools);
}

static void collect_state(struct scrape *s)
{
    struct control *c = s->g->c;
    struct object_list claims = { 0 };
    size_t count = s->nodes.count;
    bool synced = cluster_synced(c->cluster);

    cluster_list(c->cluster, &nodeclaim_kind, &claims);
    for (size_t i = 0; i < claims.count; i++)
        count += !claim_condition_true(nodeclaim_of(claims.items[i]), CONDITION_REGISTERED);
    object_list_done(&claims);
    gauge_set(s->g->families[STATE_NODES], (double)count, NULL);
    gauge_set(s->g->families[STATE_SYNCED], synced, NULL);
    gauge_set(s->g->families[STATE_UNSYNCED],
              synced ? 0 : (double)(control_now_ns(c) - s->g->start_ns) / 1e9, NULL);
}

/* --- pods --- */

/* "/apis/apps/v1/namespaces/default/replicasets/web-7": what dashboards split by. */
static struct str owner_path(struct scrape *s, const struct pod *pod)
{
    const struct meta *meta = &pod->object.meta;
    if (!meta->owners.count)
        return STR("");
    const struct owner_ref *owner = &meta->owners.items[0];
    struct str kind = owner->kind;
    char *lower = arena_alloc(&s->arena, kind.len + 1);
    for (size_t i = 0; i < kind.len; i++)
        lower[i] = char_lower(kind.p[i]);
    return arena_strf(&s->arena, "/apis/%.*s/namespaces/%.*s/%ss/%.*s", STR_ARG(owner->api_version),
                      STR_ARG(meta->namespace_), lower, STR_ARG(owner->name));
}

static void collect_pod(struct scrape *s, const struct pod *pod)
{
    static const char *const phases[] = {
        "", "Pending", "Running", "Succeeded", "Failed", "Unknown"
    };
    const struct node *node = str_table_get(&s->node_of, text(pod->node_name));
    const struct str_map *labels = node ? &node->object.meta.labels : &(struct str_map){ 0 };
    struct str pool = text(str_map_get(labels, STR(LABEL_NODEPOOL)));
    const struct str values[] = {
        pod->object.meta.name,
        pod->object.meta.namespace_,
        owner_path(s, pod),
        text(pod->node_name),
        yes_no(pod_is_scheduled(pod)),
        pool,
        text(str_map_get(labels, STR(LABEL_ZONE))),
        text(str_map_get(labels, STR(LABEL_ARCH))),
        text(str_map_get(labels, STR(LABEL_CAPACITY_TYPE))),
        text(str_map_get(labels, STR(LABEL_INSTANCE_TYPE))),
        str_of(phases[pod->status->phase]),
        yes_no(pod_is_ready(pod)),
        yes_no(pool.len > 0),
    };
    gauge_set(s->g->families[PODS_STATE], 1, values);
}

static void collect_pods(struct scrape *s)
{
    struct object_list pods = { 0 };
    cluster_list(s->g->c->cluster, &pod_kind, &pods);
    for (size_t i = 0; i < pods.count && i < METRIC_SERIES_MAX; i++) {
        collect_pod(s, pod_of(pods.items[i]));
        arena_reset(&s->arena);
    }
    object_list_done(&pods);
}

/* --- all of it --- */

static void collect(void *ctx)
{
    struct object_gauges *g = ctx;
    struct scrape s = { .g = g, .series_left = METRIC_SERIES_MAX };

    for (int i = 0; i < GAUGES; i++)
        metric_family_remove(g->families[i], NULL, STR(""));
    cluster_list(g->c->cluster, &node_kind, &s.nodes);
    for (size_t i = 0; i < s.nodes.count; i++)
        str_table_put(&s.node_of, s.nodes.items[i]->meta.name, (void *)s.nodes.items[i]);
    collect_nodes(&s);
    collect_pools(&s);
    collect_state(&s);
    collect_pods(&s);
    vec_done(&s.totals);
    str_table_done(&s.node_of);
    object_list_done(&s.nodes);
    arena_done(&s.arena);
}

struct object_gauges *object_gauges_new(struct control *c)
{
    struct object_gauges *g = kv_calloc(1, sizeof *g);
    g->c = c;
    g->start_ns = control_now_ns(c);
    for (int i = 0; i < GAUGES; i++)
        g->families[i] =
            metrics_family(c->metrics_registry, &(struct metric_desc){ .name = rows[i].name,
                                                                       .help = rows[i].help,
                                                                       .type = METRIC_GAUGE,
                                                                       .labels = rows[i].labels });
    metrics_on_collect(c->metrics_registry, collect, g);
    return g;
}

void object_gauges_free(struct object_gauges *g)
{
    if (!g)
        return;
    metrics_on_collect_remove(g->c->metrics_registry, collect, g);
    for (int i = 0; i < GAUGES; i++)
        metric_family_remove(g->families[i], NULL, STR(""));
    free(g);
}

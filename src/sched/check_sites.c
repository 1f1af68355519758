/* The cluster as the plan would leave it: which sites there are, what keeps pods away from them, who
 * is on them already, and which daemons will be.
 *
 * Before a node has registered its claim speaks for it; until it is initialised, taints that go
 * away by themselves do not count, and resources that the kubelet has not reported are the claim's.
 */
#include "sched/check_inner.h"

#include "api/resources.h"

#include <inttypes.h>

/* --- nodes and their claims --- */

static bool node_says(const struct node *node, const char *label)
{
    return str_eqz(str_map_get(&node->object.meta.labels, str_of(label)), "true");
}

static bool claim_is_of(const struct nodeclaim *claim, const struct node *node)
{
    const struct nodeclaim_status *status = &claim->status;
    return (status->node_name.len && str_eq(status->node_name, node->object.meta.name)) ||
           (status->provider_id.len && str_eq(status->provider_id, node->spec.provider_id));
}

static bool claim_is_terminating(const struct nodeclaim *claim)
{
    const struct condition *ending = condition_find(
        claim->status.conditions.items, claim->status.conditions.count, STR("InstanceTerminating"));
    return claim->object.meta.deleted_us || (ending && ending->status == CONDITION_TRUE);
}

/* What the claim says of the labels: its own, and what it requires. */
static struct requirements promised_by(struct checker *c, const struct nodeclaim *claim)
{
    struct requirements asked = { 0 }, labels;
    struct err err = { 0 };
    labels = requirements_from_labels(&c->scratch, &claim->object.meta.labels);
    if (requirements_from_expressions(&c->scratch, claim->spec.node.requirements.items,
                                      claim->spec.node.requirements.count, &asked, &err) < 0)
        return labels;
    return requirements_merge(&c->scratch, &asked, &labels);
}

static const struct sched_pool *pool_named(const struct checker *c, struct str name)
{
    for (uint32_t i = 0; i < c->snap->pool_count; i++) {
        if (str_eq(c->snap->pools[i].pool->object.meta.name, name))
            return &c->snap->pools[i];
    }
    return NULL;
}

/* Until the node speaks for itself it may be any type that its claim allows. */
static void promise(struct checker *c, struct site *p)
{
    const struct str_map *labels = &p->maybe_claim->object.meta.labels;
    const struct sched_pool *pool = pool_named(c, str_map_get(labels, STR(LABEL_NODEPOOL)));
    p->promised = promised_by(c, p->maybe_claim);
    if (!pool || !pool->types)
        return;
    uint32_t *types = arena_array(&c->scratch, uint32_t, pool->types->type_count), count = 0;
    for (uint32_t i = 0; i < pool->types->type_count; i++) {
        if (type_is_allowed(pool->types, i, &p->promised))
            types[count++] = i;
    }
    struct plan_launch *launch = arena_new(&c->scratch, struct plan_launch);
    launch->pool = (uint32_t)(pool - c->snap->pools);
    launch->types = types;
    launch->type_count = count;
    launch->requirements = p->promised;
    launch->labels = *labels;
    struct blueprint *b = blueprint_add(c, launch, true);
    combination_each(b, of)
    { /* one at least, or nothing is known of it */
        p->maybe_blueprint = b;
        break;
    }
}

static const struct taint cordoned = { .key = STR("node.kubernetes.io/unschedulable"),
                                       .effect = EFFECT_NO_SCHEDULE };

/* A taint that is on a node only while it starts. */
static bool taint_is_passing(const struct taint *t, const struct claim_node_spec *claim)
{
    static const struct {
        const char *key;
        uint8_t effect;
    } passing[] = {
        { "node.kubernetes.io/not-ready", EFFECT_NO_SCHEDULE },
        { "node.kubernetes.io/not-ready", EFFECT_NO_EXECUTE },
        { "node.kubernetes.io/unreachable", EFFECT_NO_SCHEDULE },
        { "node.cloudprovider.kubernetes.io/uninitialized", EFFECT_NO_SCHEDULE },
        { TAINT_UNREGISTERED, EFFECT_NO_EXECUTE },
    };
    for (size_t i = 0; i < KV_COUNT_OF(passing); i++) {
        if (str_eqz(t->key, passing[i].key) && t->effect == passing[i].effect)
            return true;
    }
    for (uint32_t i = 0; i < claim->startup_taints.count; i++) {
        const struct taint *s = &claim->startup_taints.items[i];
        if (str_eq(t->key, s->key) && t->effect == s->effect)
            return true;
    }
    return str_starts(t->key, STR("readiness.k8s.io/"));
}

static void node_taints(struct checker *c, struct site *p, bool registered, bool initialized)
{
    const struct node *node = p->maybe_node;
    const struct taint *items =
        registered ? node->spec.taints.items : p->maybe_claim->spec.node.taints.items;
    uint32_t count = registered ? node->spec.taints.count : p->maybe_claim->spec.node.taints.count;
    struct taint *taints = arena_array(&c->scratch, struct taint, (size_t)count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (initialized || !taint_is_passing(&items[i], &p->maybe_claim->spec.node))
            taints[p->taint_count++] = items[i];
    }
    if (node->spec.unschedulable)
        taints[p->taint_count++] = cordoned;
    p->taints = taints;
}

static void site_node(struct checker *c, struct site *p, uint32_t i)
{
    const struct node *node = c->snap->nodes[i];
    p->kind = SITE_NODE;
    p->index = i;
    p->maybe_node = node;
    p->name = arena_strf(&c->scratch, "node %s", NAME_SHOWN(node->object.meta.name)).p;
    for (uint32_t k = 0; k < c->snap->claim_count && !p->maybe_claim; k++) {
        if (claim_is_of(c->snap->claims[k], node))
            p->maybe_claim = c->snap->claims[k];
    }
    bool initialized = !p->maybe_claim || node_says(node, LABEL_INITIALIZED);
    bool registered = initialized || node_says(node, LABEL_REGISTERED);
    if (!registered)
        promise(c, p);
    node_taints(c, p, registered, initialized);
    p->deleting =
        node->object.meta.deleted_us || (p->maybe_claim && claim_is_terminating(p->maybe_claim));
}

static void site_claim(struct checker *c, struct site *p, uint32_t i)
{
    const struct nodeclaim *claim = c->snap->claims[i];
    p->kind = SITE_CLAIM;
    p->index = i;
    p->maybe_claim = claim;
    p->name = arena_strf(&c->scratch, "claim %s", NAME_SHOWN(claim->object.meta.name)).p;
    promise(c, p);
    p->taints = claim->spec.node.taints.items;
    p->taint_count = claim->spec.node.taints.count;
    p->deleting = claim_is_terminating(claim);
}

static void site_new(struct checker *c, struct site *p, uint32_t i)
{
    const struct plan_launch *launch = &c->plan->launches[i];
    const struct nodepool *pool = c->snap->pools[launch->pool].pool;
    p->kind = SITE_LAUNCH;
    p->index = i;
    p->name = arena_strf(&c->scratch, "launch %" PRIu32 " of pool %s", i,
                         NAME_SHOWN(pool->object.meta.name))
                  .p;
    p->maybe_blueprint = blueprint_add(c, launch, false);
    p->taints = pool->spec.template.spec.taints.items;
    p->taint_count = pool->spec.template.spec.taints.count;
    p->placed = launch->pods;
}

uint32_t site_launch(const struct site *p)
{
    return p->kind == SITE_LAUNCH ? p->index : PLAN_NONE;
}

static bool claim_has_node(const struct checker *c, const struct nodeclaim *claim)
{
    for (uint32_t i = 0; i < c->snap->node_count; i++) {
        if (claim_is_of(claim, c->snap->nodes[i]))
            return true;
    }
    return false;
}

/* --- who is where --- */

static void site_existing(struct checker *c, const struct plan_existing *e)
{
    struct site *found = NULL;
    for (uint32_t i = 0; i < c->site_count && !found; i++) {
        struct site *p = &c->sites[i];
        if (e->node != PLAN_NONE ? p->kind == SITE_NODE && p->index == e->node
                                 : p->kind == SITE_CLAIM && p->index == e->claim)
            found = p;
    }
    if (found)
        found->placed = e->pods;
    else
        finding(c, PLAN_NONE, PLAN_NONE,
                "existing: claim %.*s has a node, and pods go to the claim",
                STR_ARG(c->snap->claims[e->claim]->object.meta.name));
}

/* The node that a pod takes up room of. kube-scheduler keeps room for one that it has nominated, unless
 * nothing will come of it; that of a daemon is kept whether its pod is there or not. */
static struct str node_taken_by(const struct pod *pod)
{
    if (pod_is_terminal(pod))
        return STR_NONE;
    if (pod_is_scheduled(pod))
        return pod->node_name;
    bool comes = !pod_is_terminating(pod) && !pod_is_gated(pod) && !pod_is_mirror(pod) &&
                 !pod_is_owned_by(pod, "DaemonSet") && !pod_is_owned_by(pod, "Node");
    return comes ? pod->status->nominated_node : STR_NONE;
}

static void pods_on_nodes(struct checker *c)
{
    const struct snapshot *snap = c->snap;
    uint32_t *node_of = arena_array(&c->scratch, uint32_t, snap->pod_count);
    uint32_t **next = arena_array(&c->scratch, uint32_t *, snap->node_count);
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        struct str node = snapshot_pod_displaced(snap, i) ? STR_NONE : node_taken_by(snap->pods[i]);
        node_of[i] = node.len ? (uint32_t)(uintptr_t)str_table_get(&c->node_ids, node) : 0;
        if (node_of[i])
            c->sites[node_of[i] - 1].bound_count++;
    }
    for (uint32_t i = 0; i < snap->node_count; i++) {
        next[i] = arena_array(&c->scratch, uint32_t, c->sites[i].bound_count);
        c->sites[i].bound = next[i];
    }
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        if (node_of[i])
            *next[node_of[i] - 1]++ = i;
    }
}

static void sites_list(struct checker *c)
{
    const struct snapshot *snap = c->snap;
    size_t most = (size_t)snap->node_count + snap->claim_count + c->plan->launch_count;
    c->sites = arena_array(&c->scratch, struct site, most);
    for (uint32_t i = 0; i < snap->node_count; i++) {
        site_node(c, &c->sites[c->site_count++], i);
        str_table_put(&c->node_ids, snap->nodes[i]->object.meta.name, (void *)(uintptr_t)(i + 1));
    }
    for (uint32_t i = 0; i < snap->claim_count; i++) {
        if (!claim_has_node(c, snap->claims[i]))
            site_claim(c, &c->sites[c->site_count++], i);
    }
    for (uint32_t i = 0; i < c->plan->existing_count; i++)
        site_existing(c, &c->plan->existing[i]);
    for (uint32_t i = 0; i < c->plan->launch_count; i++)
        site_new(c, &c->sites[c->site_count++], i);
    pods_on_nodes(c);

    c->site_of = arena_array(&c->scratch, uint32_t, snap->pod_count);
    for (uint32_t i = 0; i < snap->pod_count; i++)
        c->site_of[i] = PLAN_NONE;
    for (uint32_t i = 0; i < c->site_count; i++) {
        for (uint32_t k = 0; k < c->sites[i].placed.count; k++)
            c->site_of[c->sites[i].placed.items[k]] = i;
    }
}

/* --- what pods and daemons ask for --- */

static void ports_of_containers(const struct pod_spec *spec, const struct container *containers,
                                uint32_t count, bool sidecars_only, struct port *out, uint32_t *n)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sidecars_only && !container_is_sidecar(&containers[i]))
            continue; /* gone before the others start */
        for (uint32_t k = 0; k < containers[i].ports.count; k++) {
            const struct container_port *p = &containers[i].ports.items[k];
            int64_t number = pod_host_port(spec, p);
            if (number > 0)
                out[(*n)++] = (struct port){
                    .ip = p->host_ip.len ? p->host_ip : STR("0.0.0.0"),
                    .port = number,
                    .protocol = p->protocol == PROTOCOL_UNSET ? PROTOCOL_TCP : p->protocol,
                };
        }
    }
}

static port_list ports_of(struct checker *c, const struct pod_spec *spec)
{
    size_t most = 0;
    for (uint32_t i = 0; i < spec->containers.count; i++)
        most += spec->containers.items[i].ports.count;
    for (uint32_t i = 0; i < spec->init_containers.count; i++)
        most += spec->init_containers.items[i].ports.count;
    struct port *items = arena_array(&c->scratch, struct port, most);
    uint32_t count = 0;
    ports_of_containers(spec, spec->init_containers.items, spec->init_containers.count, true, items,
                        &count);
    ports_of_containers(spec, spec->containers.items, spec->containers.count, false, items, &count);
    return (port_list){ items, count };
}

bool ports_conflict(const struct port *a, const struct port *b)
{
    return a->port == b->port && a->protocol == b->protocol &&
           (str_eq(a->ip, b->ip) || str_eqz(a->ip, "0.0.0.0") || str_eqz(b->ip, "0.0.0.0"));
}

/* Pods of one stamp share all that decides where they may go, volumes apart. */
static void stamp_pod(struct checker *c, struct str_table *ids, uint32_t i)
{
    const struct pod *pod = c->snap->pods[i];
    const void *parts[] = { pod->spec, pod->maybe_affinity, pod->object.meta.labels.items,
                            pod_is_scheduled(pod) ? pod->status : NULL };
    AUTO_BUF id = { 0 };
    buf_add(&id, (struct str){ (const char *)parts, sizeof parts });
    buf_add(&id, pod->object.meta.namespace_);
    uintptr_t known = (uintptr_t)str_table_get(ids, buf_str(&id));
    if (!known) {
        struct ask ask = ask_of_spec(pod->spec, pod->maybe_affinity);
        vec_push(
            &c->stamps,
            (struct stamp){ .pod = pod, .ask = ask_add(c, &ask), .ports = ports_of(c, pod->spec) });
        known = c->stamps.count;
        str_table_put(ids, buf_str(&id), (void *)known);
    }
    c->stamp_of[i] = (uint32_t)(known - 1);
}

static void stamps_collect(struct checker *c)
{
    struct str_table ids = { 0 };
    c->stamp_of = arena_array(&c->scratch, uint32_t, c->snap->pod_count);
    for (uint32_t i = 0; i < c->snap->pod_count; i++)
        c->stamp_of[i] = PLAN_NONE;
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct site *p = &c->sites[i];
        for (uint32_t k = 0; k < p->bound_count; k++)
            stamp_pod(c, &ids, p->bound[k]);
        for (uint32_t k = 0; k < p->placed.count; k++)
            stamp_pod(c, &ids, p->placed.items[k]);
    }
    str_table_done(&ids);
}

/* What the DaemonSet controller adds to its pods. */
static const struct toleration daemon_tolerations[] = {
    { .key = STR("node.kubernetes.io/not-ready"),
      .op = TOLERATION_EXISTS,
      .effect = EFFECT_NO_EXECUTE },
    { .key = STR("node.kubernetes.io/unreachable"),
      .op = TOLERATION_EXISTS,
      .effect = EFFECT_NO_EXECUTE },
    { .key = STR("node.kubernetes.io/disk-pressure"),
      .op = TOLERATION_EXISTS,
      .effect = EFFECT_NO_SCHEDULE },
    { .key = STR("node.kubernetes.io/memory-pressure"),
      .op = TOLERATION_EXISTS,
      .effect = EFFECT_NO_SCHEDULE },
    { .key = STR("node.kubernetes.io/pid-pressure"),
      .op = TOLERATION_EXISTS,
      .effect = EFFECT_NO_SCHEDULE },
    { .key = STR("node.kubernetes.io/unschedulable"),
      .op = TOLERATION_EXISTS,
      .effect = EFFECT_NO_SCHEDULE },
    /* Only with the host's network; it stands last. */
    { .key = STR("node.kubernetes.io/network-unavailable"),
      .op = TOLERATION_EXISTS,
      .effect = EFFECT_NO_SCHEDULE },
};

static void daemon_collect(struct checker *c, const struct daemon_set *set)
{
    if (!set->spec.maybe_template || set->object.meta.deleted_us)
        return;
    const struct pod_spec *spec = &set->spec.maybe_template->spec;
    struct ask ask = ask_of_spec(spec, spec->affinity);
    struct daemon d = {
        .set = set, .spec = spec, .ask = ask_add(c, &ask), .ports = ports_of(c, spec)
    };
    uint32_t own = spec->tolerations.count;
    uint32_t added = (uint32_t)KV_COUNT_OF(daemon_tolerations) - !spec->host_network;
    struct toleration *all = arena_array(&c->scratch, struct toleration, (size_t)own + added);
    for (uint32_t i = 0; i < own; i++)
        all[i] = spec->tolerations.items[i];
    memcpy(all + own, daemon_tolerations, added * sizeof *all);
    d.tolerations = all;
    d.toleration_count = own + added;
    vec_push(&c->daemons, d);
}

/* Names of the resources that are asked for, and each request as a vector over them. */
static void requests_collect(struct checker *c)
{
    struct resources *lists =
        arena_array(&c->scratch, struct resources, c->stamps.count + c->daemons.count);
    bool *countable = arena_array(&c->scratch, bool, c->stamps.count + c->daemons.count);
    VEC(struct str) names = { 0 };
    struct err err = { 0 };
    vec_push(&names, STR("pods"));
    for (size_t i = 0; i < c->stamps.count + c->daemons.count; i++) {
        countable[i] = i < c->stamps.count
                           ? pod_requests(c->stamps.items[i].pod, &c->scratch, &lists[i], &err) == 0
                           : pod_spec_requests(c->daemons.items[i - c->stamps.count].spec,
                                               &c->scratch, &lists[i], &err) == 0;
        for (uint32_t k = 0; countable[i] && k < lists[i].count; k++)
            vec_push(&names, lists[i].items[k].name);
        if (names.count > 4096) /* the same few over and over */
            names.count = str_sort_unique(names.items, names.count);
    }
    uint32_t count = (uint32_t)str_sort_unique(names.items, names.count);
    struct str *kept = arena_array(&c->scratch, struct str, count);
    memcpy(kept, names.items, count * sizeof *kept);
    vec_done(&names);
    c->resources = (struct str_list){ kept, count };

    for (size_t i = 0; i < c->stamps.count + c->daemons.count; i++) {
        int64_t *request = arena_array(&c->scratch, int64_t, count);
        for (uint32_t r = 0; r < count; r++)
            request[r] =
                str_eqz(kept[r], "pods") ? 1000 : milli_ceil(resources_get(&lists[i], kept[r]));
        if (i < c->stamps.count)
            c->stamps.items[i].request = countable[i] ? request : NULL;
        else
            c->daemons.items[i - c->stamps.count].request = request;
    }
}

/* --- daemons --- */

const struct taint *taint_in_the_way(const struct taint *taints, uint32_t taint_count,
                                     const struct toleration *tolerations,
                                     uint32_t toleration_count)
{
    for (uint32_t i = 0; i < taint_count; i++) {
        bool tolerated = taints[i].effect == EFFECT_PREFER_NO_SCHEDULE;
        for (uint32_t k = 0; k < toleration_count && !tolerated; k++)
            tolerated = toleration_tolerates(&tolerations[k], &taints[i]);
        if (!tolerated)
            return &taints[i];
    }
    return NULL;
}

bool daemon_owns(const struct daemon_set *set, const struct pod *pod)
{
    const struct owner_ref *owner = meta_controller(&pod->object.meta);
    return owner && str_eqz(owner->kind, "DaemonSet") &&
           str_eq(owner->name, set->object.meta.name) &&
           str_eq(pod->object.meta.namespace_, set->object.meta.namespace_);
}

enum verdict daemon_verdict(struct checker *c, const struct daemon *d, const struct site *p,
                            const struct combination *maybe_combination)
{
    if (taint_in_the_way(p->taints, p->taint_count, d->tolerations, d->toleration_count))
        return NEVER;
    return maybe_combination ? ask_verdict_of(c, d->ask, p, maybe_combination)
                             : ask_verdict(c, d->ask, p);
}

static void blueprint_daemons(struct checker *c, const struct site *p)
{
    struct blueprint *b = p->maybe_blueprint;
    if (b->daemons)
        return;
    wide *sum = arena_array(&c->scratch, wide, c->resources.count);
    uint32_t *sure = arena_array(&c->scratch, uint32_t, c->daemons.count);
    uint32_t *unsure = arena_array(&c->scratch, uint32_t, c->daemons.count);
    for (uint32_t i = 0; i < c->daemons.count; i++) {
        enum verdict v = daemon_verdict(c, &c->daemons.items[i], p, NULL);
        if (v == SOMETIMES)
            unsure[b->unsure_count++] = i;
        if (v != ALWAYS)
            continue;
        sure[b->sure_count++] = i;
        for (uint32_t r = 0; r < c->resources.count; r++)
            sum[r] += c->daemons.items[i].request[r];
    }
    b->daemons = sum;
    b->sure = sure;
    b->unsure = unsure;
}

void sites_collect(struct checker *c)
{
    sites_list(c);
    stamps_collect(c);
    for (uint32_t i = 0; i < c->snap->daemon_set_count; i++)
        daemon_collect(c, c->snap->daemon_sets[i]);
    requests_collect(c);
    for (uint32_t i = 0; i < c->site_count; i++) {
        if (c->sites[i].kind == SITE_LAUNCH)
            blueprint_daemons(c, &c->sites[i]);
    }
}

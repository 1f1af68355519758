/* sched/world_random_testing.h - random worlds.
 *
 * A world is a list of things (a type, a pool, a node, a pod in so many copies, ...), each a text of
 * YAML with parts that may be left out (property_testing.h does). In the texts `$` stands before a
 * quantity, so that a world can be had with all of them doubled, and `#` for the number of a copy.
 * Every seed is a world.
 */
#pragma once

#include "sched/world_random_cluster_testing.h"

/* --- pods --- */

static inline const char *random_selector(struct random_world *r, uint32_t app)
{
    uint32_t other = chance(r, 75) ? app : below(r, r->app_count);
    return arena_strf(&r->arena, "{matchLabels: {app: app-%u}}", other).p;
}

static inline const char *random_expression(struct random_world *r)
{
    switch (below(r, r->tiny ? 5 : 8)) {
    case 0:
        return arena_strf(&r->arena,
                          "{key: topology.kubernetes.io/zone, operator: %s, values: [%s]}",
                          ANY_OF(r, "In", "NotIn"), any_zone(r))
            .p;
    case 1:
        return arena_strf(&r->arena,
                          "{key: karpenter.sh/capacity-type, operator: %s, values: [%s]}",
                          ANY_OF(r, "In", "NotIn"), ANY_OF(r, "spot", "on-demand"))
            .p;
    case 2:
        return "{key: kubernetes.io/arch, operator: In, values: [amd64]}";
    case 3:
        return arena_strf(&r->arena, "{key: team, operator: %s, values: [%s]}",
                          ANY_OF(r, "In", "NotIn"), ANY_OF(r, "a", "b"))
            .p;
    case 4:
        return arena_strf(&r->arena,
                          "{key: node.kubernetes.io/instance-type, operator: %s, values: "
                          "[t%u, t%u]}",
                          ANY_OF(r, "In", "NotIn"), below(r, r->type_count),
                          below(r, r->type_count))
            .p;
    case 5:
        return arena_strf(&r->arena, "{key: example.com/cpus, operator: %s, values: ['%u']}",
                          ANY_OF(r, "Gt", "Lt"), 1u << below(r, 3))
            .p;
    case 6:
        return arena_strf(&r->arena, "{key: team, operator: %s}",
                          ANY_OF(r, "Exists", "DoesNotExist"))
            .p;
    default:
        return arena_strf(&r->arena,
                          "{key: karpenter.sh/nodepool, operator: %s, values: [pool-%u]}",
                          ANY_OF(r, "In", "NotIn"), below(r, r->pool_count))
            .p;
    }
}

static inline const char *random_topology_key(struct random_world *r)
{
    if (chance(r, r->tiny ? 50 : 45))
        return "topology.kubernetes.io/zone";
    if (r->tiny || chance(r, 80))
        return "kubernetes.io/hostname";
    return ANY_OF(r, "karpenter.sh/capacity-type", "team");
}

static inline void random_node_affinity(struct random_world *r, struct buf *out)
{
    buf_addz(out, "    nodeAffinity:\n");
    if (chance(r, 80)) {
        buf_addz(out, "      requiredDuringSchedulingIgnoredDuringExecution:\n"
                      "        nodeSelectorTerms:\n");
        for (uint32_t i = 0, n = chance(r, 30) ? 2 : 1; i < n; i++) {
            buf_addf(out, "        - {matchExpressions: [%s", random_expression(r));
            if (chance(r, 30))
                buf_addf(out, ", %s", random_expression(r));
            buf_addz(out, "]}\n");
        }
    } else {
        buf_addf(out,
                 "      preferredDuringSchedulingIgnoredDuringExecution: [{weight: %u, "
                 "preference: {matchExpressions: [%s]}}]\n",
                 1 + below(r, 100), random_expression(r));
    }
}

static inline void random_pod_affinity(struct random_world *r, uint32_t app, struct buf *out)
{
    bool anti = chance(r, 55);
    buf_addf(out, "    %s:\n", anti ? "podAntiAffinity" : "podAffinity");
    if (chance(r, 80))
        buf_addf(out,
                 "      requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: %s, "
                 "topologyKey: %s}]\n",
                 random_selector(r, app), random_topology_key(r));
    else
        buf_addf(out,
                 "      preferredDuringSchedulingIgnoredDuringExecution: [{weight: %u, "
                 "podAffinityTerm: {labelSelector: %s, topologyKey: %s}}]\n",
                 1 + below(r, 100), random_selector(r, app), random_topology_key(r));
}

static inline void random_affinity(struct random_world *r, uint32_t app)
{
    AUTO_BUF text = { 0 };
    if (chance(r, 25))
        random_node_affinity(r, &text);
    if (chance(r, 22))
        random_pod_affinity(r, app, &text);
    if (text.len)
        part_add(r, "  affinity:\n%s", text.p);
}

static inline void random_spread(struct random_world *r, uint32_t app)
{
    AUTO_BUF text = { 0 };
    const char *first = random_topology_key(r), *second = random_topology_key(r);
    for (uint32_t i = 0, n = first != second && chance(r, 25) ? 2 : 1; i < n; i++) {
        bool hard = chance(r, 75);
        buf_addf(&text,
                 "  - {maxSkew: %u, topologyKey: %s, whenUnsatisfiable: %s, labelSelector: %s",
                 1 + below(r, 2), i ? second : first, hard ? "DoNotSchedule" : "ScheduleAnyway",
                 random_selector(r, app));
        if (hard && chance(r, 15))
            buf_addf(&text, ", minDomains: %u", 1 + below(r, 3));
        if (chance(r, 10))
            buf_addz(&text, ", nodeTaintsPolicy: Honor");
        if (chance(r, 10))
            buf_addz(&text, ", nodeAffinityPolicy: Ignore");
        if (!r->tiny && chance(r, 10))
            buf_addz(&text, ", matchLabelKeys: [version]");
        buf_addz(&text, "}\n");
    }
    part_add(r, "  topologySpreadConstraints:\n%s", text.p);
}

/* What pods have beyond labels and requests. */
static inline void random_pod_parts(struct random_world *r, uint32_t number, uint32_t copies,
                                    uint32_t app)
{
    if (chance(r, 20))
        part_add(r, "  nodeSelector: {%s}\n",
                 ANY_OF(r, "topology.kubernetes.io/zone: zone-a",
                        "topology.kubernetes.io/zone: zone-b", "karpenter.sh/capacity-type: spot",
                        "karpenter.sh/capacity-type: on-demand", "team: a",
                        "kubernetes.io/arch: amd64"));
    random_affinity(r, app);
    if (chance(r, 30))
        random_spread(r, app);
    if (chance(r, 35))
        part_add(r, "  tolerations: [%s]\n",
                 ANY_OF(r, "{key: dedicated, operator: Equal, value: a}",
                        "{key: dedicated, operator: Exists}",
                        "{operator: Exists, effect: NoExecute}",
                        "{key: dedicated, operator: Equal, value: b, effect: NoSchedule}"));
    if (chance(r, 20))
        part_add(r, "  priority: %d\n", (int)below(r, 3) * 100 - 100);
    if (r->has_volumes && chance(r, 15) && (!r->tiny || (copies == 1 && number < VOLUMES)))
        part_add(r, "  volumes: [{name: v, persistentVolumeClaim: {claimName: data-%u}}]\n",
                 r->tiny ? number : below(r, VOLUMES));
    if (!r->tiny && chance(r, 3))
        part_add(r, "  schedulingGates: [{name: wait}]\n");
}

static inline void random_pods(struct random_world *r, uint32_t number, uint32_t copies, bool bound)
{
    static const uint32_t cpus[] = { 100, 250, 500, 900, 1000, 1500, 2000, 3500 };
    static const uint32_t mebibytes[] = { 64, 128, 512, 900, 1024, 2048, 4096 };
    uint32_t app = below(r, r->app_count);
    thing_add(r, THING_POD, copies,
              "---\n"
              "apiVersion: v1\n"
              "kind: Pod\n"
              "metadata: {name: %s%u-#, namespace: default, labels: {app: app-%u, version: v%u}}\n"
              "%s"
              "spec:\n"
              "  containers: [{name: c, image: i, resources: {requests: {cpu: $%um, memory: "
              "$%uMi}%s}%s}]\n",
              bound ? "b" : "p", number, app, below(r, 2),
              bound ? "status: {phase: Running}\n" : "",
              bound ? 100 : cpus[below(r, r->tiny ? 7 : KV_COUNT_OF(cpus))],
              bound ? 64 : mebibytes[below(r, r->tiny ? 6 : KV_COUNT_OF(mebibytes))],
              r->has_gpu && !bound && chance(r, 20) ? ", limits: {nvidia.com/gpu: $1}" : "",
              chance(r, 8) ? ", ports: [{containerPort: 80, hostPort: 8080}]" : "");
    if (bound) {
        part_add(r, "  nodeName: n%u\n", below(r, r->node_count));
        if (chance(r, 30))
            random_affinity(r, app);
    } else {
        random_pod_parts(r, number, copies, app);
    }
}

/* --- a whole world --- */

static inline void random_world_init(struct random_world *r, uint64_t seed, bool tiny)
{
    *r = (struct random_world){ .seed = seed, .tiny = tiny };
    rng_init(&r->rng, seed);
    r->zone_count = tiny ? 2 : 1 + below(r, 3);
    r->type_count = tiny ? 1 + below(r, 3) : 2 + below(r, 6);
    r->pool_count = tiny ? 1 + below(r, 2) : 1 + below(r, 4);
    r->node_count = tiny ? below(r, 3) : below(r, 6);
    r->app_count = 1 + below(r, 3);
    r->has_gpu = !tiny && chance(r, 20);
    r->has_volumes = chance(r, 30);

    for (uint32_t i = 0; i < r->type_count; i++)
        random_type(r, i);
    for (uint32_t i = 0; i < r->pool_count; i++)
        random_pool(r, i);
    for (uint32_t i = 0; i < r->node_count; i++)
        random_node(r, i);
    for (uint32_t i = 0, n = tiny ? 0 : below(r, 3); i < n; i++)
        random_claim(r, i);
    for (uint32_t i = 0, n = chance(r, 40) ? 1 + below(r, 2) : 0; i < n; i++)
        random_daemons(r, i);
    if (r->has_volumes) {
        random_storage_classes(r);
        for (uint32_t i = 0; i < VOLUMES; i++)
            random_volume(r, i);
    }
    for (uint32_t i = 0, n = r->node_count ? below(r, 4) : 0; i < n; i++)
        random_pods(r, i, 1 + below(r, 2), true);
    if (tiny) {
        for (uint32_t i = 0, left = 2 + below(r, 5); left > 0; i++) {
            uint32_t copies = 1 + below(r, left);
            random_pods(r, i, copies, false);
            left -= copies;
        }
    } else {
        for (uint32_t i = 0, n = 1 + below(r, 6); i < n; i++)
            random_pods(r, i, 1 + below(r, 8), false);
    }
}

/* --- as text --- */

static inline void random_text_add(struct str text, uint32_t scale, uint32_t copy, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '#') {
            buf_addf(out, "%u", copy);
        } else if (text.p[i] == '$') {
            struct str rest = str_sub(text, i + 1, text.len), digits = str_take_digits(&rest);
            int64_t amount = 0;
            EXPECT_TRUE(str_to_i64(digits, &amount));
            buf_addf(out, "%" PRId64, amount * scale);
            i += digits.len;
        } else {
            buf_addc(out, text.p[i]);
        }
    }
}

static inline void random_thing_add(const struct thing *t, uint32_t scale, uint32_t copies,
                                    struct buf *out)
{
    for (uint32_t c = 0; c < copies; c++) {
        random_text_add(t->head, scale, c, out);
        for (uint32_t i = 0; i < t->part_count; i++) {
            if (!t->parts[i].off)
                random_text_add(t->parts[i].text, scale, c, out);
        }
    }
}

struct random_text {
    struct buf objects, catalogue;
};

static inline void random_text_done(struct random_text *t)
{
    buf_done(&t->objects);
    buf_done(&t->catalogue);
}

/* The world as YAML, quantities times `scale`; `more` objects come on top. */
static inline struct random_text random_world_text(const struct random_world *r, uint32_t scale,
                                                   bool all_copies, const char *more)
{
    struct random_text text = { 0 };
    buf_addz(&text.catalogue, "instanceTypes:\n");
    vec_each(&r->things, struct thing, t) {
        if (!t->off)
            random_thing_add(t, scale, all_copies ? t->copies : 1,
                             t->kind == THING_TYPE ? &text.catalogue : &text.objects);
    }
    buf_addz(&text.objects, more);
    return text;
}

/* Copies of pods are made here and not by reading them all: that takes the most time. */
static inline void random_world_load(struct world *w, const struct random_world *r, uint32_t scale,
                                     const char *more)
{
    struct random_text text = random_world_text(r, scale, false, more);
    world_load(w, buf_str(&text.objects).p, text.catalogue.p);
    random_text_done(&text);
    size_t next = 0;
    vec_each(&r->things, struct thing, t) {
        if (t->off || t->kind != THING_POD)
            continue;
        const struct pod *first = w->pods.items[next++];
        struct str prefix = str_sub(first->object.meta.name, 0, first->object.meta.name.len - 1);
        for (uint32_t c = 1; c < t->copies; c++) {
            struct pod *copy = arena_new(&w->arena, struct pod);
            *copy = *first;
            copy->object.meta.name = arena_strf(&w->arena, "%.*s%u", STR_ARG(prefix), c);
            vec_push(&w->pods, copy);
        }
    }
    world_refresh(w);
}

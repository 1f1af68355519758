/* sched/model_classes_testing.h - asking a model about pods and groups by name, for tests. */
#pragma once

#include "sched/model_testing.h"

#define ZONE "topology.kubernetes.io/zone"
#define HOST "kubernetes.io/hostname"

/* NULL: the pod is in no class. A name alone is in `default`. */
static inline const struct pod_class *class_with(const struct modelled *t, const char *name)
{
    uint32_t pod = world_pod_ix(&t->w, name);
    for (uint32_t i = 0; i < t->m.class_count; i++) {
        for (uint32_t p = 0; p < t->m.classes[i].count; p++) {
            if (t->m.classes[i].pods[p] == pod)
                return &t->m.classes[i];
        }
    }
    return NULL;
}

static inline const struct pod_class *class_of_pod(const struct modelled *t, const char *name)
{
    const struct pod_class *k = class_with(t, name);
    if (!k)
        fail_msg("pod %s is in no class", name);
    return k;
}

/* "": it is not skipped. */
static inline struct str skip_of(const struct modelled *t, const char *name)
{
    uint32_t pod = world_pod_ix(&t->w, name);
    for (uint32_t i = 0; i < t->m.skip_count; i++) {
        if (t->m.skips[i].pod == pod)
            return t->m.skips[i].reason;
    }
    return STR("");
}

/* "volume: claim default/data does not exist"; "" if the pod is not refused. */
static inline struct str refusal(struct modelled *t, const char *name)
{
    const struct plan_blame *why = class_of_pod(t, name)->maybe_refused;
    if (!why)
        return STR("");
    return arena_strf(&t->arena, "%s: %.*s", plan_reason_names[why->reason], STR_ARG(why->detail));
}

/* What variant `v` of the pod asks of labels. */
static inline struct str wants_text(struct modelled *t, const char *name, uint32_t v)
{
    AUTO_BUF out = { 0 };
    const struct pod_class *k = class_of_pod(t, name);
    EXPECT_TRUE(v < k->variant_count);
    const struct requirements *set = &wants_at(&t->m, k->variants[v].wants)->set;
    for (uint32_t i = 0; i < set->count; i++) {
        buf_addz(&out, i ? ", " : "");
        requirement_format(&set->items[i], &out);
    }
    return arena_str(&t->arena, buf_str(&out));
}

/* "spread topology.kubernetes.io/zone": kinds and keys of the groups, in their order. */
static inline struct str groups_text(struct modelled *t, const uint32_t *groups, uint32_t count)
{
    static const char *const kinds_of[] = { "spread", "affinity", "anti" };
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < count; i++) {
        const struct group *g = &t->m.groups[groups[i]];
        buf_addf(&out, "%s%s %.*s", i ? ", " : "", kinds_of[g->kind],
                 STR_ARG(t->m.keys[g->key].name));
    }
    return arena_str(&t->arena, buf_str(&out));
}

static inline struct str owned_text(struct modelled *t, const char *name, uint32_t v)
{
    const struct pod_class *k = class_of_pod(t, name);
    EXPECT_TRUE(v < k->variant_count);
    return groups_text(t, k->variants[v].owned, k->variants[v].owned_count);
}

static inline struct str matched_text(struct modelled *t, const char *name)
{
    const struct pod_class *k = class_of_pod(t, name);
    return groups_text(t, k->matched, k->matched_count);
}

/* The only group of that kind and key. */
static inline const struct group *the_group(const struct modelled *t, enum group_kind kind,
                                            const char *key)
{
    const struct group *found = NULL;
    for (uint32_t i = 0; i < t->m.group_count; i++) {
        const struct group *g = &t->m.groups[i];
        if (g->kind != kind || !str_eqz(t->m.keys[g->key].name, key))
            continue;
        EXPECT_TRUE(!found);
        found = g;
    }
    EXPECT_TRUE(found != NULL);
    return found;
}

static inline const struct topology_key *the_key(const struct modelled *t, const char *name)
{
    for (uint32_t i = 0; i < t->m.key_count; i++) {
        if (str_eqz(t->m.keys[i].name, name))
            return &t->m.keys[i];
    }
    fail_msg("%s is not a key of the model", name);
    return NULL;
}

/* "zone-a zone-b": the domains of a set over the group's key. */
static inline struct str domains_text(struct modelled *t, const struct group *g)
{
    AUTO_BUF out = { 0 };
    bitset_each(&g->eligible, d)
        buf_addf(&out, "%s%.*s", out.len ? " " : "", STR_ARG(t->m.keys[g->key].domains[d]));
    return arena_str(&t->arena, buf_str(&out));
}

static inline int64_t matched_in(const struct modelled *t, const struct group *g,
                                 const char *domain)
{
    uint32_t d = domain_find(&t->m.keys[g->key], str_of(domain));
    EXPECT_TRUE(d != NONE);
    return g->matched[d];
}

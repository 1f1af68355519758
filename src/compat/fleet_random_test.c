/* Random fleets, rules and changes: the verdicts are those of a naive evaluation of every node from scratch, whose
 * set is made of all its features, without classes, masks or memory. */
#include "compat/fleet_testing.h"

#include "base/rng.h"

#include <stdio.h>

enum { NODES = 12, OBJECTS = 16, IMAGES = 10, STEPS = 400, SEEDS = 12 };

static const char *const architectures[] = { "amd64", "arm64", "" };
static const char *const types[] = { "m7i.large", "m6a.large", "m7g.large", "x99.large", "" };
static const char *const flags[] = { "AVX2", "AVX512F", "SVE", "SSE42", "F16C" };
static const char *const majors[] = { "4", "5", "6" };

/* What the test knows by itself. */
struct plain_object {
    const struct object *object; /* NULL: not there */
    int node;
};

struct model {
    struct yard y;
    struct rng rng;
    struct compat_options rules;
    enum unobserved_policy unobserved;
    const struct object *nodes[NODES]; /* NULL: not there */
    struct plain_object objects[OBJECTS];
    const struct image_facts *images[IMAGES];
    const struct demand *demands[IMAGES];
    int demand_images[IMAGES][2];
};

static const char *pick(struct model *m, const char *const *words, size_t count)
{
    return words[rng_below(&m->rng, count)];
}
#define PICK(m, words) pick((m), (words), KV_COUNT_OF(words))

static const char *node_name(int ix)
{
    static const char names[NODES][4] = { "n0", "n1", "n2", "n3", "n4",  "n5",
                                          "n6", "n7", "n8", "n9", "n10", "n11" };
    return names[ix];
}

/* --- random things --- */

static void random_features(struct model *m, struct buf *out)
{
    buf_addz(out, "flags: {cpu.cpuid: {elements: {");
    for (size_t i = 0, n = 0; i < KV_COUNT_OF(flags); i++) {
        if (rng_below(&m->rng, 2))
            buf_addf(out, "%s%s: {}", n++ ? ", " : "", flags[i]);
    }
    buf_addz(out, "}}}");
    if (rng_below(&m->rng, 3))
        buf_addf(out,
                 ", attributes: {kernel.version: {elements: {major: \"%s\", full: \"%s.%u\"}}}",
                 PICK(m, majors), PICK(m, majors), (unsigned)rng_below(&m->rng, 20));
    if (rng_below(&m->rng, 2)) {
        buf_addz(out, ", instances: {pci.device: {elements: [");
        for (uint64_t i = 0, n = rng_below(&m->rng, 3); i < n; i++)
            buf_addf(out, "%s{attributes: {vendor: \"%s\", serial: \"%u\"}}", i ? ", " : "",
                     rng_below(&m->rng, 2) ? "10de" : "1d0f", (unsigned)rng_below(&m->rng, 100));
        buf_addz(out, "]}}");
    }
}

static void random_term(struct model *m, struct buf *out)
{
    switch (rng_below(&m->rng, 6)) {
    case 0:
        buf_addf(out,
                 "{feature: kernel.version, matchExpressions: {major: {op: In, value: [\"%s\"]}}}",
                 PICK(m, majors));
        return;
    case 1:
        buf_addf(out,
                 "{feature: kernel.version, matchExpressions: {full: {op: Ge, type: version, "
                 "value: [\"%s.%u\"]}}}",
                 PICK(m, majors), (unsigned)rng_below(&m->rng, 20));
        return;
    case 2:
        buf_addf(out,
                 "{feature: pci.device, matchExpressions: {vendor: {op: In, value: [\"%s\"]}}}",
                 rng_below(&m->rng, 2) ? "10de" : "1d0f");
        return;
    case 3:
        buf_addz(out, "{feature: cpu.cpuid, matchName: {op: InRegexp, value: [\"^AVX\"]}}");
        return;
    default:
        buf_addf(out, "{feature: cpu.cpuid, matchExpressions: {%s: {op: %s}}}", PICK(m, flags),
                 rng_below(&m->rng, 3) ? "Exists" : "DoesNotExist");
    }
}

static void random_spec(struct model *m, struct buf *out)
{
    buf_addz(out, "{version: v1alpha1, compatibilities: [");
    for (uint64_t s = 0, sets = rng_below(&m->rng, 3); s < sets; s++) {
        buf_addf(out, "%s{tag: t%u, weight: %u, rules: [", s ? ", " : "",
                 (unsigned)rng_below(&m->rng, 2), (unsigned)rng_below(&m->rng, 100));
        for (uint64_t r = 0, rules = rng_below(&m->rng, 3); r < rules; r++) {
            buf_addf(out, "%s{name: r%u, matchFeatures: [", r ? ", " : "", (unsigned)r);
            random_term(m, out);
            if (rng_below(&m->rng, 3) == 0) {
                buf_addz(out, ", ");
                random_term(m, out);
            }
            buf_addz(out, "]}");
        }
        buf_addz(out, "]}");
    }
    buf_addz(out, "]}");
}

static void random_image(struct model *m, int ix)
{
    AUTO_BUF spec = { 0 };
    if (rng_below(&m->rng, 5))
        random_spec(m, &spec);
    m->images[ix] = yard_facts(&m->y, rng_below(&m->rng, 3) ? "" : PICK(m, architectures),
                               spec.len ? spec.p : "");
}

/* --- changes --- */

static void change_node(struct model *m, int ix)
{
    const struct object *old = m->nodes[ix];
    m->nodes[ix] = NULL;
    if (!old || rng_below(&m->rng, 3))
        m->nodes[ix] =
            yard_node_object(&m->y, node_name(ix), PICK(m, architectures), PICK(m, types));
    /* What was there before is not always told. */
    const struct object *told = rng_below(&m->rng, 2) || !m->nodes[ix] ? old : NULL;
    fleet_observe_node(m->y.fleet, told, m->nodes[ix]);
}

static void change_object(struct model *m, int ix)
{
    struct plain_object *slot = &m->objects[ix];
    const struct object *old = slot->object;
    slot->object = NULL;
    if (!old || rng_below(&m->rng, 3)) {
        AUTO_BUF features = { 0 };
        char name[16];
        random_features(m, &features);
        snprintf(name, sizeof name, "o%d", ix / 2);
        slot->node = (int)rng_below(&m->rng, NODES);
        slot->object = yard_feature_object(&m->y, ix % 2 ? "nfd" : "vendor", name,
                                           node_name(slot->node), features.p);
    }
    fleet_observe_feature(m->y.fleet, old, slot->object);
}

static void change_demand(struct model *m, int ix)
{
    demand_unref(m->demands[ix]);
    m->demands[ix] = NULL;
    if (rng_below(&m->rng, 3) == 0)
        random_image(m, ix);
    int *chosen = m->demand_images[ix];
    struct fleet_image images[2];
    for (int i = 0; i < 2; i++) {
        chosen[i] = (int)rng_below(&m->rng, IMAGES);
        images[i] = (struct fleet_image){ STR("image"), m->images[chosen[i]], STR("") };
    }
    m->demands[ix] = fleet_demand(m->y.fleet, images, 2);
}

/* --- the naive evaluation --- */

static const struct feature_set *naive_set(struct model *m, int node,
                                           const struct machine_kind *machine, bool *observed)
{
    const struct node_feature *objects[OBJECTS];
    uint32_t count = 0;
    for (int i = 0; i < OBJECTS; i++) {
        if (m->objects[i].object && m->objects[i].node == node)
            objects[count++] = node_feature_of(m->objects[i].object);
    }
    AUTO_ARENA arena = { 0 };
    FEATURE_DRAFT draft = { 0 };
    const struct feature_set *set = NULL;
    struct err err = { 0 };
    *observed = count > 0;
    if (count)
        feature_draft_node(&draft, objects, count, STR("nfd"));
    else if (m->unobserved == UNOBSERVED_REJECT)
        return NULL;
    else
        predictor_draft(m->y.predictor, machine, &arena, &draft);
    EXPECT_OK(feature_set_make(m->y.w.pool, &draft, &set, &err), err);
    return set;
}

static struct fleet_verdict naive_verdict(struct model *m, const struct image_facts *const *facts,
                                          uint32_t count, const struct image_node *node)
{
    struct fleet_verdict out = { .match = MATCH_YES };
    for (uint32_t i = 0; i < count; i++) {
        struct image_verdict v = image_judge(facts[i], node, &m->rules);
        uint32_t weight = (uint32_t)v.outcome.weight_best;
        if (v.match < out.match) {
            out.match = v.match;
            out.image_ix = i;
        }
        if (weight && (!out.weight || weight < out.weight))
            out.weight = weight;
    }
    return out;
}

static void check_node(struct model *m, const struct demand *demand, int ix,
                       const struct fleet_verdict *got)
{
    if (!m->nodes[ix]) {
        EXPECT_EQ(got->match, MATCH_UNKNOWN);
        return;
    }
    struct machine_kind machine;
    bool observed;
    machine_of_node(node_of(m->nodes[ix]), &machine);
    AUTO_FEATURE_SET set = naive_set(m, ix, &machine, &observed);
    struct image_node node = { machine.os, machine.architecture, set };
    const struct image_facts *facts[2];
    for (uint32_t i = 0; i < 2; i++)
        facts[i] = demand_image(demand, i)->maybe_facts;
    struct fleet_verdict want = naive_verdict(m, facts, 2, &node);
    EXPECT_EQ(got->match, want.match);
    EXPECT_EQ(got->image_ix, want.image_ix);
    EXPECT_EQ(got->weight, want.weight);
    EXPECT_EQ(got->predicted, !observed);
    AUTO_BUF text = { 0 };
    fleet_explain(m->y.fleet, demand, str_of(node_name(ix)), &text);
    EXPECT_EQ(text.len > 0, want.match != MATCH_YES);
}

static void check(struct model *m)
{
    struct str names[NODES];
    struct fleet_verdict got[NODES];
    for (int i = 0; i < NODES; i++)
        names[i] = str_of(node_name(i));
    for (int d = 0; d < IMAGES; d++) {
        if (!m->demands[d])
            continue;
        fleet_judge(m->y.fleet, m->demands[d], names, NODES, got);
        for (int i = 0; i < NODES; i++)
            check_node(m, m->demands[d], i, &got[i]);
    }
}

static void check_machines(struct model *m)
{
    for (size_t t = 0; t < KV_COUNT_OF(types); t++) {
        AUTO_ARENA arena = { 0 };
        FEATURE_DRAFT draft = { 0 };
        AUTO_FEATURE_SET set = NULL;
        struct err err = { 0 };
        struct machine_kind machine = { .instance_type = str_of(types[t]),
                                        .architecture = STR("amd64"),
                                        .os = STR("linux") };
        predictor_draft(m->y.predictor, &machine, &arena, &draft);
        EXPECT_OK(feature_set_make(m->y.w.pool, &draft, &set, &err), err);
        struct image_node node = { machine.os, machine.architecture, set };
        for (int d = 0; d < IMAGES; d++) {
            if (!m->demands[d])
                continue;
            const struct image_facts *facts[2];
            for (uint32_t i = 0; i < 2; i++)
                facts[i] = demand_image(m->demands[d], i)->maybe_facts;
            struct fleet_verdict want = naive_verdict(m, facts, 2, &node);
            struct fleet_verdict got = fleet_judge_machine(m->y.fleet, m->demands[d], &machine);
            EXPECT_EQ(got.match, want.match);
            EXPECT_EQ(got.weight, want.weight);
        }
    }
}

static void run(uint64_t seed)
{
    struct model m = { 0 };
    const struct str tag = STR("t1");
    printf("# seed %llu\n", (unsigned long long)seed);
    rng_init(&m.rng, seed);
    m.unobserved = rng_below(&m.rng, 3) ? UNOBSERVED_PREDICT : UNOBSERVED_REJECT;
    m.rules.sets = rng_below(&m.rng, 2) ? SETS_ALL : SETS_ANY;
    m.rules.rules.combine = rng_below(&m.rng, 2) ? RULES_ANY : RULES_ALL;
    if (rng_below(&m.rng, 4) == 0)
        m.rules.tags = (struct str_list){ &tag, 1 };
    yard_init(&m.y, (struct fleet_options){ .unobserved = m.unobserved, .rules = m.rules });
    for (int i = 0; i < IMAGES; i++)
        random_image(&m, i);
    for (int step = 0; step < STEPS; step++) {
        switch (rng_below(&m.rng, 4)) {
        case 0:
            change_node(&m, (int)rng_below(&m.rng, NODES));
            break;
        case 1:
        case 2:
            change_object(&m, (int)rng_below(&m.rng, OBJECTS));
            break;
        default:
            change_demand(&m, (int)rng_below(&m.rng, IMAGES));
        }
        if (step % 4 == 0)
            check(&m);
        if (step % 16 == 0)
            check_machines(&m);
    }
    for (int i = 0; i < IMAGES; i++)
        demand_unref(m.demands[i]);
    yard_done(&m.y);
}

TEST(verdicts_are_those_of_a_naive_evaluation_whatever_changes)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(seed);
}

/* Many ask while others change: nodes that do not change keep their verdicts all the time. */
#include "compat/fleet_testing.h"

#include "base/rng.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdio.h>

enum { STABLE = 40, PASSING = 20, FACTS = 30, ROUNDS = 300, ASKERS = 3, CHANGERS = 2 };

struct stage {
    struct yard y;
    char names[STABLE + PASSING][16];
    struct str list[STABLE + PASSING];
    const struct object *nodes[STABLE + PASSING];
    const struct object *features[STABLE + PASSING][2];
    const struct image_facts *facts[FACTS]; /* facts i needs flag Fi */
    const struct demand *demand;            /* needs F0 */
    atomic_uint asking, wrong;
};

struct actor {
    struct stage *stage;
    unsigned ix;
};

/* Flag Fk of node i is there if i is odd or k is even. */
static bool has_flag(int node, int flag)
{
    return node % 2 == 1 || flag % 2 == 0;
}

static enum match wanted(int node, int flag)
{
    return has_flag(node, flag) ? MATCH_YES : MATCH_NO;
}

static void stage_prepare(struct stage *s)
{
    yard_init(&s->y, (struct fleet_options){ .unobserved = UNOBSERVED_PREDICT });
    for (int i = 0; i < STABLE + PASSING; i++) {
        snprintf(s->names[i], sizeof s->names[i], "node-%d", i);
        s->list[i] = str_of(s->names[i]);
        s->nodes[i] =
            yard_node_object(&s->y, s->names[i], "amd64", i % 3 ? "m7i.large" : "x99.large");
        for (int version = 0; version < 2; version++) {
            AUTO_BUF text = { 0 };
            buf_addf(&text, "flags: {cpu.cpuid: {elements: {V%d: {}", version);
            for (int k = 0; k < FACTS; k++) {
                if (has_flag(i, k))
                    buf_addf(&text, ", F%d: {}", k);
            }
            buf_addz(&text, "}}}");
            s->features[i][version] =
                yard_feature_object(&s->y, "nfd", s->names[i], s->names[i], text.p);
        }
    }
    for (int k = 0; k < FACTS; k++) {
        char flag[16];
        snprintf(flag, sizeof flag, "F%d", k);
        s->facts[k] = yard_needs(&s->y, flag, 10);
    }
    for (int i = 0; i < STABLE; i++) {
        fleet_observe_node(s->y.fleet, NULL, s->nodes[i]);
        fleet_observe_feature(s->y.fleet, NULL, s->features[i][0]);
    }
    s->demand = yard_demand(&s->y, s->facts[0], NULL);
}

static void check_all(struct stage *s, const struct demand *demand, int flag)
{
    struct fleet_verdict verdicts[STABLE + PASSING];
    fleet_judge(s->y.fleet, demand, s->list, STABLE + PASSING, verdicts);
    for (int i = 0; i < STABLE; i++) {
        if (verdicts[i].match != wanted(i, flag) || verdicts[i].predicted)
            atomic_fetch_add(&s->wrong, 1);
    }
}

/* Demands come and go, each mentioning something of its own. */
static void *ask(void *arg)
{
    struct actor *actor = arg;
    struct stage *s = actor->stage;
    struct rng rng;
    rng_init(&rng, actor->ix);
    for (int round = 0; round < ROUNDS; round++) {
        int flag = (int)rng_below(&rng, FACTS);
        const struct fleet_image image = { STR("image"), s->facts[flag], STR("") };
        const struct demand *demand = fleet_demand(s->y.fleet, &image, 1);
        check_all(s, demand, flag);
        check_all(s, s->demand, 0);
        struct machine_kind machine = { .instance_type = STR("m7i.large"),
                                        .architecture = STR("amd64"),
                                        .os = STR("linux") };
        fleet_judge_machine(s->y.fleet, demand, &machine);
        AUTO_BUF text = { 0 };
        fleet_explain(s->y.fleet, demand, s->list[rng_below(&rng, STABLE + PASSING)], &text);
        fleet_generation(s->y.fleet);
        if (round % 16 == 0)
            fleet_stats(s->y.fleet);
        demand_unref(demand);
    }
    atomic_fetch_sub(&s->asking, 1);
    return NULL;
}

/* Each changer has nodes of its own, as an informer has. */
static void *change(void *arg)
{
    struct actor *actor = arg;
    struct stage *s = actor->stage;
    struct rng rng;
    rng_init(&rng, 100 + actor->ix);
    while (atomic_load(&s->asking) > 0) {
        int i = STABLE + (int)(rng_below(&rng, PASSING / CHANGERS) * CHANGERS + actor->ix);
        switch (rng_below(&rng, 4)) {
        case 0:
            fleet_observe_node(s->y.fleet, NULL, s->nodes[i]);
            break;
        case 1:
            fleet_observe_node(s->y.fleet, s->nodes[i], NULL);
            break;
        case 2:
            fleet_observe_feature(s->y.fleet, NULL, s->features[i][rng_below(&rng, 2)]);
            break;
        default:
            fleet_observe_feature(s->y.fleet, s->features[i][0], NULL);
        }
    }
    return NULL;
}

TEST(nodes_that_do_not_change_keep_their_verdicts_while_others_and_the_rules_change)
{
    static struct stage s;
    struct err err = { 0 };
    pthread_t threads[ASKERS + CHANGERS];
    struct actor actors[ASKERS + CHANGERS];
    stage_prepare(&s);
    atomic_init(&s.asking, ASKERS);
    for (unsigned i = 0; i < ASKERS + CHANGERS; i++) {
        actors[i] = (struct actor){ &s, i < ASKERS ? i : i - ASKERS };
        EXPECT_OK(thread_start(&threads[i], "fleet", i < ASKERS ? ask : change, &actors[i], &err),
                  err);
    }
    for (unsigned i = 0; i < ASKERS + CHANGERS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(atomic_load(&s.wrong), 0);
    EXPECT_EQ(fleet_stats(s.y.fleet).demands, 1);
    yard_done(&s.y);
}

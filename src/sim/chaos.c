/* Each action is chosen by weight among the kinds that the scenario allows. A small model of what is
 * going on (replicas, pools that were deleted, what is dry or broken) keeps them sensible: what was
 * deleted comes back, what broke is mended about as often as something breaks.
 *
 * An action that turns out to be about nothing (no pod to delete) is no harm.
 */
#include "sim/chaos.h"

#include "api/kinds.h"
#include "base/vec.h"
#include "codec/duration.h"
#include "codec/json.h"

#define LASTING_MAX 6 /* at a time: more, and nothing can be launched anywhere */

struct chaos_workload {
    const struct kind *kind;
    struct str namespace_, name;
    int64_t replicas; /* as the scenario has it */
};

struct chaos_pool {
    struct str name, text; /* text: as it was applied last */
    bool deleted;
};

struct model {
    struct arena *arena;
    const struct scenario *s;
    struct rng rng;
    VEC(struct chaos_workload) workloads;
    VEC(struct chaos_pool) pools;
    VEC(struct str) classes;
    VEC(struct action) lasting; /* begun and not ended */
    uint32_t label;             /* the last value of the label that edits change */
};

static uint64_t below(struct model *m, uint64_t n)
{
    return rng_below(&m->rng, n);
}

static bool one_in(struct model *m, uint64_t n)
{
    return below(m, n) == 0;
}

/* --- what there is --- */

static void learn_object(struct model *m, struct str text)
{
    struct doc doc;
    if (json_read_trusted(text, &doc, NULL) < 0)
        return;
    const struct kind *kind = kind_find(json_str(json_get(doc.root, STR("apiVersion"))),
                                        json_str(json_get(doc.root, STR("kind"))));
    struct str name = arena_str(m->arena, json_str(json_path(doc.root, "metadata.name")));
    struct str namespace_ =
        arena_str(m->arena, json_str(json_path(doc.root, "metadata.namespace")));
    if (kind == &deployment_kind || kind == &stateful_set_kind) {
        struct chaos_workload w = { .kind = kind, .name = name, .replicas = 1 };
        w.namespace_ = namespace_.len ? namespace_ : STR("default");
        json_i64(json_path(doc.root, "spec.replicas"), &w.replicas);
        vec_push(&m->workloads, w);
    } else if (kind == &nodepool_kind && !json_path(doc.root, "spec.replicas")) {
        vec_push(&m->pools, (struct chaos_pool){ .name = name, .text = text });
    } else if (kind == &ec2nodeclass_kind || kind == &kwoknodeclass_kind) {
        vec_push(&m->classes, name);
    }
    doc_done(&doc);
}

/* --- editing a pool --- */

static void put_requirement(struct json_build *b, json_mut *spec, const char *key, struct str value)
{
    json_mut *kept = json_new_array(b);
    json_each_mut_item(json_mut_get(spec, STR("requirements")), item)
    {
        if (!str_eqz(json_mut_str(json_mut_get(item, STR("key"))), key))
            json_push(b, kept, json_mut_copy(b, item));
    }
    if (value.len) {
        json_mut *one = json_new_object(b), *values = json_new_array(b);
        json_push(b, values, json_new_str(b, value));
        json_set_str(b, one, "key", str_of(key));
        json_set_str(b, one, "operator", STR("In"));
        json_set(b, one, STR("values"), values);
        json_push(b, kept, one);
    }
    json_set(b, spec, STR("requirements"), kept);
}

static void edit_pool(struct model *m, struct json_build *b, json_mut *root)
{
    static const char *const expiries[] = { "Never", "10m", "1h", "720h" };
    static const char *const bought[] = { "", CAPACITY_SPOT, CAPACITY_ON_DEMAND };
    json_mut *spec = json_mut_object(b, root, STR("spec"));
    json_mut *template = json_mut_object(b, spec, STR("template"));
    json_mut *inner = json_mut_object(b, template, STR("spec"));
    switch (below(m, 6)) {
    case 0:
        if (one_in(m, 3))
            json_mut_remove(spec, STR("limits"));
        else
            json_set_i64(b, json_mut_object(b, spec, STR("limits")), "cpu",
                         (int64_t)(4 << below(m, 5)));
        break;
    case 1:
        json_set_i64(b, spec, "weight", 1 + (int64_t)below(m, 100));
        break;
    case 2: {
        json_mut *meta = json_mut_object(b, template, STR("metadata"));
        json_mut *labels = json_mut_object(b, meta, STR("labels"));
        struct str value = arena_strf(m->arena, "v%u", ++m->label);
        json_set_str(b, labels, "example.com/chaos", value);
        break;
    }
    case 3:
        put_requirement(b, inner, LABEL_CAPACITY_TYPE, str_of(bought[below(m, 3)]));
        break;
    case 4: {
        uint64_t zone = below(m, m->s->zones.count + 1);
        put_requirement(b, inner, LABEL_ZONE,
                        zone < m->s->zones.count ? m->s->zones.items[zone] : STR(""));
        break;
    }
    default:
        json_set_str(b, inner, "expireAfter", str_of(expiries[below(m, KV_COUNT_OF(expiries))]));
        break;
    }
}

static bool make_apply(struct model *m, struct action *a)
{
    if (!m->pools.count)
        return false;
    struct chaos_pool *pool = &m->pools.items[below(m, m->pools.count)];
    struct doc doc;
    if (!pool->deleted && json_read_trusted(pool->text, &doc, NULL) == 0) {
        AUTO_JSON_BUILD b = { 0 };
        AUTO_BUF text = { 0 };
        json_build_init(&b);
        json_mut *root = json_copy(&b, doc.root);
        edit_pool(m, &b, root);
        json_write_mut(root, &text);
        pool->text = arena_str(m->arena, buf_str(&text));
        doc_done(&doc);
    }
    pool->deleted = false;
    struct str *object = arena_new(m->arena, struct str);
    *object = pool->text;
    a->apply.objects = object;
    a->apply.object_count = 1;
    return true;
}

/* --- the other kinds --- */

static bool make_scale(struct model *m, struct action *a)
{
    if (!m->workloads.count)
        return false;
    const struct chaos_workload *w = &m->workloads.items[below(m, m->workloads.count)];
    int64_t most = 2 * w->replicas < 4 ? 4 : 2 * w->replicas;
    a->target.kind = w->kind;
    a->target.namespace_ = w->namespace_;
    a->target.name = w->name;
    a->target.replicas = one_in(m, 5) ? 0 : (int64_t)below(m, (uint64_t)most + 1);
    return true;
}

static bool make_delete(struct model *m, struct action *a)
{
    static const struct kind *const made[] = { &pod_kind, &node_kind, &nodeclaim_kind };
    if (m->pools.count > 1 && one_in(m, 6)) {
        struct chaos_pool *pool = &m->pools.items[below(m, m->pools.count)];
        a->target.kind = &nodepool_kind;
        a->target.namespace_ = STR("");
        a->target.name = pool->name;
        bool there = !pool->deleted;
        pool->deleted = true;
        return there;
    }
    a->target.kind = made[below(m, KV_COUNT_OF(made))];
    a->target.namespace_ = a->target.name = STR("");
    a->target.any = 1 + (uint32_t)below(m, a->target.kind == &pod_kind ? 4 : 2);
    return true;
}

static struct offering_match some_match(struct model *m)
{
    struct offering_match match = { STR(""), STR(""), STR("") };
    if (m->s->zones.count && !one_in(m, 4))
        match.zone = m->s->zones.items[below(m, m->s->zones.count)];
    if (one_in(m, 2))
        match.capacity_type = one_in(m, 2) ? STR(CAPACITY_SPOT) : STR(CAPACITY_ON_DEMAND);
    return match;
}

static bool make_begin(struct model *m, struct action *a)
{
    static const double factors[] = { 0.25, 0.5, 2, 3, 10 };
    a->ends = false;
    switch (a->kind) {
    case ACTION_PRICE:
        a->offering.match = some_match(m);
        a->offering.factor = factors[below(m, KV_COUNT_OF(factors))];
        return true;
    case ACTION_DROUGHT:
        a->offering.match = some_match(m);
        return true;
    case ACTION_OUTAGE:
        if (!m->s->zones.count)
            return false;
        a->zone = m->s->zones.items[below(m, m->s->zones.count)];
        return true;
    case ACTION_BREAK:
        a->broken.node_class =
            m->classes.count ? m->classes.items[below(m, m->classes.count)] : STR("");
        a->broken.what = (enum sim_break)below(m, 3);
        return true;
    case ACTION_FAULTS:
        /* One after the other: the order of initializers is the compiler's to choose. */
        a->rates.store_error = one_in(m, 2) ? 0.3 : 0.05;
        a->rates.store_lost_reply = one_in(m, 2) ? 0.2 : 0.02;
        a->rates.watch_cut = one_in(m, 2) ? 0.1 : 0.01;
        a->rates.launch_error = one_in(m, 2) ? 0.5 : 0.1;
        a->rates.launch_lost_reply = one_in(m, 2) ? 0.3 : 0.05;
        a->rates.cloud_error = one_in(m, 2) ? 0.3 : 0.05;
        return true;
    case ACTION_SAY:
    case ACTION_APPLY:
    case ACTION_DELETE:
    case ACTION_SCALE:
    case ACTION_KILL:
    case ACTION_CRASH:
        break;
    }
    KV_UNREACHABLE();
}

/* Something that lasts begins, or one of its kind that has begun ends. */
static bool make_lasting(struct model *m, struct action *a)
{
    VEC(uint32_t) open = { 0 };
    for (uint32_t i = 0; i < m->lasting.count; i++) {
        if (m->lasting.items[i].kind == a->kind)
            vec_push(&open, i);
    }
    bool made = false;
    if (open.count && (m->lasting.count >= LASTING_MAX || one_in(m, 2))) {
        uint32_t ix = open.items[below(m, open.count)];
        int64_t at_ns = a->at_ns;
        *a = m->lasting.items[ix];
        a->at_ns = at_ns;
        a->ends = true;
        m->lasting.items[ix] = vec_pop(&m->lasting);
        made = true;
    } else if (m->lasting.count < LASTING_MAX && make_begin(m, a)) {
        vec_push(&m->lasting, *a);
        made = true;
    }
    vec_done(&open);
    return made;
}

static bool make_kill(struct model *m, struct action *a)
{
    a->kill.match = some_match(m);
    a->kill.count = 1 + (uint32_t)below(m, 3);
    return true;
}

static bool make_crash(struct model *m, struct action *a)
{
    a->crash.calls = one_in(m, 6) ? 0 : 1 + (uint32_t)below(m, 40);
    a->crash.after_effect = a->crash.calls && one_in(m, 2);
    return true;
}

/* By how often each happens. */
static const struct {
    enum action_kind kind;
    uint32_t weight;
    bool (*make)(struct model *m, struct action *a);
} makers[] = {
    { ACTION_SCALE, 8, make_scale },     { ACTION_APPLY, 4, make_apply },
    { ACTION_DELETE, 4, make_delete },   { ACTION_PRICE, 1, make_lasting },
    { ACTION_DROUGHT, 3, make_lasting }, { ACTION_OUTAGE, 1, make_lasting },
    { ACTION_BREAK, 3, make_lasting },   { ACTION_KILL, 2, make_kill },
    { ACTION_CRASH, 4, make_crash },     { ACTION_FAULTS, 2, make_lasting },
};

static bool make_one(struct model *m, struct action *a)
{
    uint64_t all = 0;
    for (size_t i = 0; i < KV_COUNT_OF(makers); i++)
        all += m->s->chaos.actions >> makers[i].kind & 1 ? makers[i].weight : 0;
    if (!all)
        return false;
    uint64_t at = below(m, all);
    for (size_t i = 0; i < KV_COUNT_OF(makers); i++) {
        if (!(m->s->chaos.actions >> makers[i].kind & 1))
            continue;
        if (at < makers[i].weight) {
            a->kind = makers[i].kind;
            return makers[i].make(m, a);
        }
        at -= makers[i].weight;
    }
    KV_UNREACHABLE();
}

const struct action *chaos_generate(struct arena *arena, const struct scenario *s, uint64_t seed,
                                    uint32_t *count)
{
    struct model m = { .arena = arena, .s = s };
    struct action *actions = arena_array(arena, struct action, s->chaos.steps);
    uint64_t pause_ns = (uint64_t)(s->chaos.pause.max_ns - s->chaos.pause.min_ns) + 1;
    int64_t at_ns = 0;
    uint32_t n = 0;
    rng_init(&m.rng, seed);
    for (uint32_t i = 0; i < s->object_count; i++)
        learn_object(&m, s->objects[i]);
    for (uint32_t i = 0; i < s->chaos.steps; i++) {
        at_ns += s->chaos.pause.min_ns + (int64_t)below(&m, pause_ns);
        if (at_ns > s->duration_ns)
            break;
        struct action a = { .at_ns = at_ns, .say = STR("") };
        for (int tries = 0; tries < 8; tries++) {
            if (make_one(&m, &a)) {
                actions[n++] = a;
                break;
            }
            a = (struct action){ .at_ns = at_ns, .say = STR("") };
        }
    }
    vec_done(&m.workloads);
    vec_done(&m.pools);
    vec_done(&m.classes);
    vec_done(&m.lasting);
    *count = n;
    return actions;
}

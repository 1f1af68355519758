/* Requirement sets and quantities are those of api/, as every comparison in such a scheduler is one of
 * labels with labels and of amounts with amounts. What would only slow it down is left out: no set is
 * copied that does not change, and requests are worked out once.
 */
#include "bench/cluster_plain.h"

#include "api/requests.h"
#include "api/resources.h"

enum term_kind { TERM_SPREAD, TERM_AFFINITY, TERM_ANTI };

/* A topology term that pods share, and how many pods it finds where. */
struct term {
    enum term_kind kind;
    struct str key;
    const struct label_selector *selector;
    int64_t max_skew;
    int64_t *zones;      /* per zone; of a term on zones */
    VEC(uint32_t) hosts; /* per claim; of a term on host names */
};

struct claim {
    uint32_t number; /* its host name */
    struct requirements requirements;
    int64_t cpu, memory, pods; /* asked for, in thousandths */
    uint32_t *types;           /* still possible */
    uint32_t type_count;
};

struct wish {
    const struct pod *pod;
    int64_t cpu, memory;
    uint32_t term; /* into terms, or UINT32_MAX */
};

struct plain {
    struct arena arena, scratch;
    const struct instance_type_draft *types;
    int64_t (*room)[3]; /* per type: cpu, memory, pods */
    uint32_t type_count;
    struct str_list zones; /* of the types */
    VEC(struct term) terms;
    VEC(struct claim *) claims; /* fewest pods first */
    uint32_t *kept;             /* room for a filtered list */
};

/* --- reading the input --- */

static bool same_selector(const struct label_selector *a, const struct label_selector *b)
{
    return str_eq(a->match_labels.items[0].key, b->match_labels.items[0].key) &&
           str_eq(a->match_labels.items[0].value, b->match_labels.items[0].value);
}

static uint32_t find_term(struct plain *p, struct term wanted)
{
    for (uint32_t i = 0; i < p->terms.count; i++) {
        const struct term *t = &p->terms.items[i];
        if (t->kind == wanted.kind && str_eq(t->key, wanted.key) &&
            same_selector(t->selector, wanted.selector))
            return i;
    }
    wanted.zones = arena_array(&p->arena, int64_t, p->zones.count);
    vec_push(&p->terms, wanted);
    return (uint32_t)p->terms.count - 1;
}

static uint32_t term_of(struct plain *p, const struct pod *pod)
{
    if (pod->spec->spread.count) {
        const struct spread_constraint *s = &pod->spec->spread.items[0];
        return find_term(p, (struct term){ .kind = TERM_SPREAD,
                                           .key = s->topology_key,
                                           .selector = s->maybe_selector,
                                           .max_skew = s->max_skew });
    }
    if (!pod->maybe_affinity)
        return UINT32_MAX;
    bool anti = pod->maybe_affinity->anti.required.count > 0;
    const struct pod_affinity_term *term = anti ? &pod->maybe_affinity->anti.required.items[0]
                                                : &pod->maybe_affinity->pod.required.items[0];
    return find_term(p, (struct term){ .kind = anti ? TERM_ANTI : TERM_AFFINITY,
                                       .key = term->topology_key,
                                       .selector = term->maybe_selector });
}

static int largest_first(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;
    if (x->cpu != y->cpu)
        return x->cpu > y->cpu ? -1 : 1;
    if (x->memory != y->memory)
        return x->memory > y->memory ? -1 : 1;
    return str_cmp(x->pod->object.meta.name, y->pod->object.meta.name);
}

static struct wish *read_pods(struct plain *p, const struct cluster *c)
{
    struct wish *wishes = arena_array(&p->arena, struct wish, c->pods.count);
    for (size_t i = 0; i < c->pods.count; i++) {
        struct resources requests;
        int rc = pod_requests(c->pods.items[i], &p->scratch, &requests, NULL);
        KV_ASSERT(rc == 0);
        wishes[i] = (struct wish){ .pod = c->pods.items[i],
                                   .cpu = milli_ceil(resources_get(&requests, STR("cpu"))),
                                   .memory = milli_ceil(resources_get(&requests, STR("memory"))),
                                   .term = term_of(p, c->pods.items[i]) };
        arena_reset(&p->scratch);
    }
    qsort(wishes, c->pods.count, sizeof *wishes, largest_first);
    return wishes;
}

static void read_types(struct plain *p)
{
    static const char *const names[] = { "cpu", "memory", "pods" };
    p->room = arena_alloc_array(&p->arena, p->type_count, sizeof *p->room);
    for (uint32_t t = 0; t < p->type_count; t++) {
        for (size_t r = 0; r < KV_COUNT_OF(names); r++)
            p->room[t][r] = milli_floor(resources_get(&p->types[t].capacity, str_of(names[r]))) -
                            milli_ceil(resources_get(&p->types[t].overhead, str_of(names[r])));
    }
    p->zones = requirements_find(&p->types[0].requirements, STR(LABEL_ZONE))->values;
    p->kept = arena_array(&p->arena, uint32_t, p->type_count);
}

/* --- topology --- */

static bool on_hosts(const struct term *t)
{
    return str_eqz(t->key, LABEL_HOSTNAME);
}

static int64_t on_host(const struct term *t, uint32_t claim)
{
    return claim < t->hosts.count ? t->hosts.items[claim] : 0;
}

static bool host_suits(const struct term *t, const struct wish *wish, uint32_t claim)
{
    int64_t self = label_selector_matches(t->selector, &wish->pod->object.meta.labels) ? 1 : 0;
    return t->kind == TERM_ANTI ? on_host(t, claim) == 0 : on_host(t, claim) + self <= t->max_skew;
}

/* The zone for one more pod, among those that the node may be in; none: UINT32_MAX. */
static uint32_t choose_zone(const struct plain *p, const struct term *t, const struct wish *wish,
                            const struct requirement *allowed)
{
    int64_t self = label_selector_matches(t->selector, &wish->pod->object.meta.labels) ? 1 : 0;
    int64_t least = INT64_MAX, total = 0;
    uint32_t best = UINT32_MAX;
    for (uint32_t z = 0; z < p->zones.count; z++) {
        least = t->zones[z] < least ? t->zones[z] : least;
        total += t->zones[z];
    }
    for (uint32_t z = 0; z < p->zones.count; z++) {
        bool suits = t->kind == TERM_SPREAD ? t->zones[z] + self - least <= t->max_skew
                                            : t->zones[z] > 0 || (total == 0 && self);
        if (suits && requirement_has(allowed, p->zones.items[z]) &&
            (best == UINT32_MAX || t->zones[z] < t->zones[best]))
            best = z;
    }
    return best;
}

/* Narrows `set` to what the pod's term leaves of it. */
static bool topology_suits(struct plain *p, const struct wish *wish, uint32_t claim,
                           struct requirements *set)
{
    if (wish->term == UINT32_MAX)
        return true;
    const struct term *t = &p->terms.items[wish->term];
    if (on_hosts(t))
        return host_suits(t, wish, claim);
    struct requirement allowed = requirements_get(set, STR(LABEL_ZONE));
    uint32_t zone = choose_zone(p, t, wish, &allowed);
    if (zone == UINT32_MAX)
        return false;
    struct requirement in = { .key = STR(LABEL_ZONE), .values = { &p->zones.items[zone], 1 } };
    *set = requirements_add(&p->scratch, set, &in);
    return true;
}

static void record(struct plain *p, const struct wish *wish, const struct claim *claim)
{
    const struct requirement *zone = requirements_find(&claim->requirements, STR(LABEL_ZONE));
    vec_each(&p->terms, struct term, t) {
        if (!label_selector_matches(t->selector, &wish->pod->object.meta.labels))
            continue;
        if (on_hosts(t)) {
            while (t->hosts.count <= claim->number)
                vec_push(&t->hosts, 0);
            t->hosts.items[claim->number]++;
        } else if (zone && zone->values.count == 1) {
            for (uint32_t z = 0; z < p->zones.count; z++)
                t->zones[z] += str_eq(p->zones.items[z], zone->values.items[0]);
        }
    }
}

/* --- instance types --- */

static bool offered(const struct instance_type_draft *type, const struct requirements *set)
{
    for (uint32_t i = 0; i < type->offering_count; i++) {
        const struct offering_draft *o = &type->offerings[i];
        if (o->available && requirements_intersects(&o->requirements, set, NULL))
            return true;
    }
    return false;
}

/* Those that do, in p->kept. */
static uint32_t filter(struct plain *p, const struct claim *claim, const struct requirements *set,
                       const struct wish *wish)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < claim->type_count; i++) {
        uint32_t t = claim->types[i];
        if (claim->cpu + wish->cpu <= p->room[t][0] &&
            claim->memory + wish->memory <= p->room[t][1] && claim->pods + 1000 <= p->room[t][2] &&
            requirements_intersects(&p->types[t].requirements, set, NULL) &&
            offered(&p->types[t], set))
            p->kept[count++] = t;
    }
    return count;
}

/* --- scheduling --- */

/* Requirements outlive the scratch memory; their values are the types' own. */
static struct requirements keep(struct arena *a, struct requirements set)
{
    struct requirement *items = arena_array(a, struct requirement, set.count);
    if (set.count)
        memcpy(items, set.items, set.count * sizeof *items);
    for (uint32_t i = 0; i < set.count; i++) {
        struct str *values = arena_array(a, struct str, items[i].values.count);
        memcpy(values, items[i].values.items, items[i].values.count * sizeof *values);
        items[i].values.items = values;
    }
    return (struct requirements){ items, set.count };
}

static bool join(struct plain *p, struct claim *claim, const struct wish *wish)
{
    struct requirements set = claim->requirements;
    arena_reset(&p->scratch);
    if (!topology_suits(p, wish, claim->number, &set))
        return false;
    uint32_t count = filter(p, claim, &set, wish);
    if (count == 0)
        return false;
    memcpy(claim->types, p->kept, count * sizeof *claim->types);
    claim->type_count = count;
    if (set.items != claim->requirements.items)
        claim->requirements = keep(&p->arena, set);
    claim->cpu += wish->cpu;
    claim->memory += wish->memory;
    claim->pods += 1000;
    record(p, wish, claim);
    return true;
}

/* The claim at `i` has one pod more: behind those that have as few as it had. */
static void resort(struct plain *p, size_t i)
{
    struct claim *moved = p->claims.items[i];
    for (; i + 1 < p->claims.count && p->claims.items[i + 1]->pods < moved->pods; i++)
        p->claims.items[i] = p->claims.items[i + 1];
    p->claims.items[i] = moved;
}

static bool schedule(struct plain *p, const struct wish *wish)
{
    for (size_t i = 0; i < p->claims.count; i++) {
        if (join(p, p->claims.items[i], wish)) {
            resort(p, i);
            return true;
        }
    }
    struct claim *claim = arena_new(&p->arena, struct claim);
    claim->number = (uint32_t)p->claims.count;
    claim->types = arena_array(&p->arena, uint32_t, p->type_count);
    claim->type_count = p->type_count;
    for (uint32_t t = 0; t < p->type_count; t++)
        claim->types[t] = t;
    if (!join(p, claim, wish))
        return false;
    vec_push(&p->claims, claim);
    for (size_t i = p->claims.count - 1; i > 0 && p->claims.items[i - 1]->pods > claim->pods; i--) {
        p->claims.items[i] = p->claims.items[i - 1];
        p->claims.items[i - 1] = claim;
    }
    return true;
}

struct plain_result plain_schedule(const struct cluster *c, const struct instance_type_draft *types,
                                   uint32_t type_count)
{
    struct plain p = { .types = types, .type_count = type_count };
    struct plain_result result = { 0 };
    read_types(&p);
    struct wish *wishes = read_pods(&p, c);
    for (size_t i = 0; i < c->pods.count; i++)
        result.placed += schedule(&p, &wishes[i]);
    result.nodes = (uint32_t)p.claims.count;
    vec_each(&p.terms, struct term, t)
        vec_done(&t->hosts);
    vec_done(&p.terms);
    vec_done(&p.claims);
    arena_done(&p.scratch);
    arena_done(&p.arena);
    return result;
}

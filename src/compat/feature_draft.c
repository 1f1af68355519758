/* From what is said of a node to a feature set.
 *
 * A draft is a list of facts in the order in which they were said. They are sorted by feature, kind
 * and element, the last of equals wins, and the result is laid out in one walk. Instances are sorted
 * too and equal ones dropped: no rule can tell, and machines list the same devices in any order.
 */
#include "compat/feature_set_inner.h"

#include "base/map.h"

enum fact_kind {
    FACT_COMPLETENESS,
    FACT_FLAGS,
    FACT_ATTRIBUTES,
    FACT_UNSURE,
    FACT_ABSENT,
    FACT_INSTANCES,
};

struct feature_fact {
    struct str feature;
    struct str name;  /* absent: the feature has flags (or attributes, instances), perhaps none */
    struct str value; /* of an attribute */
    const struct str_map *maybe_instance;
    uint32_t order;
    uint8_t kind;         /* enum fact_kind */
    uint8_t completeness; /* of FACT_COMPLETENESS */
};

/* --- the mask --- */

static int mention_order(const void *a, const void *b)
{
    const struct feature_mention *x = a, *y = b;
    int order = str_cmp(x->feature, y->feature);
    if (order == 0)
        order = (int)x->kind - (int)y->kind;
    return order ? order : str_cmp(x->element, y->element);
}

void feature_mask_add(struct feature_mask *mask, struct feature_mention mention)
{
    vec_push(&mask->mentions, mention);
    mask->sorted = false;
}

void feature_mask_settle(struct feature_mask *mask)
{
    size_t kept = 0;
    struct feature_mention *items = mask->mentions.items;
    if (mask->mentions.count > 1)
        qsort(items, mask->mentions.count, sizeof *items, mention_order);
    for (size_t i = 0; i < mask->mentions.count; i++) {
        if (kept == 0 || mention_order(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    }
    mask->mentions.count = kept;
    mask->sorted = true;
}

void feature_mask_done(struct feature_mask *mask)
{
    vec_done(&mask->mentions);
}

/* The first mention that is not before `wanted`, or one past the last. */
static const struct feature_mention *mention_from(const struct feature_mask *mask,
                                                  struct feature_mention wanted)
{
    size_t low = 0, high = mask->mentions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mention_order(&mask->mentions.items[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return mask->mentions.items + low;
}

bool feature_mask_has(const struct feature_mask *mask, struct feature_mention wanted)
{
    const struct feature_mention *found = mention_from(mask, wanted);
    return found != mask->mentions.items + mask->mentions.count &&
           mention_order(found, &wanted) == 0;
}

static bool keeps_feature(const struct feature_mask *maybe_mask, struct str feature)
{
    if (!maybe_mask)
        return true;
    const struct feature_mention *found =
        mention_from(maybe_mask, (struct feature_mention){ .feature = feature });
    return found != maybe_mask->mentions.items + maybe_mask->mentions.count &&
           str_eq(found->feature, feature);
}

static bool keeps_value(const struct feature_mask *maybe_mask, struct str feature,
                        struct str element)
{
    return !maybe_mask || feature_mask_has(maybe_mask, (struct feature_mention){
                                                           feature, element, MENTIONED_ELEMENT });
}

static bool keeps_name(const struct feature_mask *maybe_mask, struct str feature,
                       struct str element)
{
    return keeps_value(maybe_mask, feature, element) ||
           feature_mask_has(maybe_mask,
                            (struct feature_mention){ feature, STR_NONE, MENTIONED_NAMES });
}

/* --- the draft --- */

static void add_fact(struct feature_draft *draft, struct feature_fact fact)
{
    KV_ASSERT(!draft->maybe_mask || draft->maybe_mask->sorted);
    if (!keeps_feature(draft->maybe_mask, fact.feature))
        return;
    if (fact.name.p && !keeps_name(draft->maybe_mask, fact.feature, fact.name))
        return;
    /* A rule about names does not see one that is not there. */
    if (fact.kind == FACT_ABSENT && !keeps_value(draft->maybe_mask, fact.feature, fact.name))
        return;
    if (fact.value.p && !keeps_value(draft->maybe_mask, fact.feature, fact.name))
        fact.value = STR("");
    fact.order = (uint32_t)draft->facts.count;
    vec_push(&draft->facts, fact);
}

void feature_draft_done(struct feature_draft *draft)
{
    vec_done(&draft->facts);
}

/* An empty name is a name: it must not look absent. */
static struct str named(struct str name)
{
    return name.p ? name : STR("");
}

static void add_kind(struct feature_draft *draft, struct str feature, enum fact_kind kind)
{
    add_fact(draft, (struct feature_fact){ .feature = feature, .kind = (uint8_t)kind });
}

static void add_flag(struct feature_draft *draft, struct str feature, struct str element)
{
    add_fact(draft, (struct feature_fact){
                        .feature = feature, .kind = FACT_FLAGS, .name = named(element) });
}

static void add_attribute(struct feature_draft *draft, struct str feature, struct str element,
                          struct str value)
{
    add_fact(draft, (struct feature_fact){ .feature = feature,
                                           .kind = FACT_ATTRIBUTES,
                                           .name = named(element),
                                           .value = named(value) });
}

void feature_draft_flag(struct feature_draft *draft, struct str feature, struct str element)
{
    add_kind(draft, feature, FACT_FLAGS);
    add_flag(draft, feature, element);
}

void feature_draft_attribute(struct feature_draft *draft, struct str feature, struct str element,
                             struct str value)
{
    add_kind(draft, feature, FACT_ATTRIBUTES);
    add_attribute(draft, feature, element, value);
}

void feature_draft_instance(struct feature_draft *draft, struct str feature,
                            const struct str_map *attributes)
{
    add_fact(draft, (struct feature_fact){
                        .feature = feature, .kind = FACT_INSTANCES, .maybe_instance = attributes });
}

void feature_draft_unsure(struct feature_draft *draft, struct str feature, struct str element)
{
    add_fact(draft, (struct feature_fact){
                        .feature = feature, .kind = FACT_UNSURE, .name = named(element) });
}

void feature_draft_absent(struct feature_draft *draft, struct str feature, struct str element)
{
    add_fact(draft, (struct feature_fact){
                        .feature = feature, .kind = FACT_ABSENT, .name = named(element) });
}

void feature_draft_kinds(struct feature_draft *draft, struct str feature, uint32_t has)
{
    if (has & FEATURE_HAS_FLAGS)
        add_kind(draft, feature, FACT_FLAGS);
    if (has & FEATURE_HAS_ATTRIBUTES)
        add_kind(draft, feature, FACT_ATTRIBUTES);
    if (has & FEATURE_HAS_INSTANCES)
        add_kind(draft, feature, FACT_INSTANCES);
}

bool feature_draft_keeps(const struct feature_draft *draft, struct str feature)
{
    return keeps_feature(draft->maybe_mask, feature);
}

bool feature_draft_keeps_element(const struct feature_draft *draft, struct str feature,
                                 struct str element)
{
    return keeps_name(draft->maybe_mask, feature, element);
}

void feature_draft_completeness(struct feature_draft *draft, struct str feature,
                                enum completeness completeness)
{
    add_fact(draft, (struct feature_fact){ .feature = feature,
                                           .kind = FACT_COMPLETENESS,
                                           .completeness = (uint8_t)completeness });
}

/* A mask mentions a few elements, a kernel's configuration has thousands: those are looked up. */
static void add_mentioned(struct feature_draft *draft, struct str feature,
                          const struct str_map *elements)
{
    const struct feature_mask *mask = draft->maybe_mask;
    const struct feature_mention *end = mask->mentions.items + mask->mentions.count;
    struct feature_mention first = { .feature = feature, .kind = MENTIONED_ELEMENT };
    for (const struct feature_mention *m = mention_from(mask, first);
         m != end && str_eq(m->feature, feature); m++) {
        struct str value = str_map_get(elements, m->element);
        if (value.p)
            add_attribute(draft, feature, m->element, value);
    }
}

static void add_attributes(struct feature_draft *draft, struct str feature,
                           const struct str_map *elements)
{
    const struct feature_mask *mask = draft->maybe_mask;
    if (!keeps_feature(mask, feature))
        return;
    add_kind(draft, feature, FACT_ATTRIBUTES);
    if (mask && !feature_mask_has(mask, (struct feature_mention){ .feature = feature,
                                                                  .kind = MENTIONED_NAMES })) {
        add_mentioned(draft, feature, elements);
        return;
    }
    for (uint32_t i = 0; i < elements->count; i++)
        add_attribute(draft, feature, elements->items[i].key, elements->items[i].value);
}

void feature_draft_features(struct feature_draft *draft, const struct features *features)
{
    for (uint32_t i = 0; i < features->flags.count; i++) {
        const struct feature_flags *f = &features->flags.items[i];
        if (!keeps_feature(draft->maybe_mask, f->key))
            continue;
        add_kind(draft, f->key, FACT_FLAGS);
        for (uint32_t k = 0; k < f->elements.count; k++)
            add_flag(draft, f->key, f->elements.items[k].key);
    }
    for (uint32_t i = 0; i < features->attributes.count; i++)
        add_attributes(draft, features->attributes.items[i].key,
                       &features->attributes.items[i].elements);
    if (features->has_kernel_config)
        add_attributes(draft, STR("kernel.config"), &features->kernel_config);
    for (uint32_t i = 0; i < features->instances.count; i++) {
        const struct feature_instances *f = &features->instances.items[i];
        add_kind(draft, f->key, FACT_INSTANCES);
        for (uint32_t k = 0; k < f->elements.count; k++)
            feature_draft_instance(draft, f->key, &f->elements.items[k].attributes);
    }
}

struct ranked_object {
    const struct node_feature *object;
    bool foreign; /* not in nfd-master's namespace */
};

static int object_rank(const void *a, const void *b)
{
    const struct ranked_object *x = a, *y = b;
    const struct meta *mx = &x->object->object.meta, *my = &y->object->object.meta;
    if (x->foreign != y->foreign)
        return x->foreign ? 1 : -1;
    int order = str_cmp(mx->name, my->name);
    return order ? order : str_cmp(mx->namespace_, my->namespace_);
}

const struct features *const *node_features_ranked(struct arena *arena,
                                                   const struct node_feature *const *objects,
                                                   uint32_t count, struct str nfd_namespace)
{
    const struct features **features = arena_array(arena, const struct features *, count);
    struct ranked_object *ranked = arena_array(arena, struct ranked_object, count);
    for (uint32_t i = 0; i < count; i++) {
        bool foreign = !str_eq(objects[i]->object.meta.namespace_, nfd_namespace);
        ranked[i] = (struct ranked_object){ objects[i], foreign };
    }
    if (count > 1)
        qsort(ranked, count, sizeof *ranked, object_rank);
    for (uint32_t i = 0; i < count; i++)
        features[i] = &ranked[i].object->spec.features;
    return features;
}

void feature_draft_node(struct feature_draft *draft, const struct node_feature *const *objects,
                        uint32_t count, struct str nfd_namespace)
{
    AUTO_ARENA arena = { 0 };
    const struct features *const *ranked =
        node_features_ranked(&arena, objects, count, nfd_namespace);
    for (uint32_t i = 0; i < count; i++)
        feature_draft_features(draft, ranked[i]);
}

/* --- laying out --- */

struct layout {
    const struct feature_mask *maybe_mask;
    struct arena arena;
    VEC(uint32_t) words;
    struct buf texts;
    struct str_table seen; /* text -> 1 + its place: each is kept once */
};

static void layout_done(struct layout *l)
{
    vec_done(&l->words);
    buf_done(&l->texts);
    str_table_done(&l->seen);
    arena_done(&l->arena);
}

static uint32_t put_words(struct layout *l, const void *words, size_t bytes)
{
    uint32_t at = (uint32_t)l->words.count;
    size_t count = bytes / sizeof(uint32_t);
    vec_reserve(&l->words, l->words.count + count);
    if (count)
        memcpy(l->words.items + at, words, bytes);
    l->words.count += count;
    return at;
}

static struct feature_text put_text(struct layout *l, struct str s)
{
    if (s.len == 0)
        return (struct feature_text){ 0, 0 };
    uintptr_t place = (uintptr_t)str_table_get(&l->seen, s);
    if (!place) {
        place = l->texts.len + 1;
        buf_add(&l->texts, s);
        str_table_put(&l->seen, s, (void *)place);
    }
    return (struct feature_text){ (uint32_t)(place - 1), (uint32_t)s.len };
}

static struct feature_attribute_range put_pairs(struct layout *l, const struct str_pair *pairs,
                                                uint32_t count)
{
    struct feature_value *values = arena_array(&l->arena, struct feature_value, count);
    for (uint32_t i = 0; i < count; i++)
        values[i] =
            (struct feature_value){ put_text(l, pairs[i].key), put_text(l, pairs[i].value) };
    return (struct feature_attribute_range){ put_words(l, values, count * sizeof *values), count };
}

static uint32_t put_names(struct layout *l, const struct str_pair *pairs, uint32_t count)
{
    struct feature_text *names = arena_array(&l->arena, struct feature_text, count);
    for (uint32_t i = 0; i < count; i++)
        names[i] = put_text(l, pairs[i].key);
    return put_words(l, names, count * sizeof *names);
}

static int fact_order(const void *a, const void *b)
{
    const struct feature_fact *x = a, *y = b;
    int order = str_cmp(x->feature, y->feature);
    if (order == 0)
        order = (int)x->kind - (int)y->kind;
    if (order == 0)
        order = (x->name.p != NULL) - (y->name.p != NULL);
    if (order == 0)
        order = str_cmp(x->name, y->name);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* The facts of one kind about one feature. */
struct fact_run {
    const struct feature_fact *items;
    size_t count;
};

static struct fact_run run_of(struct fact_run *facts, enum fact_kind kind)
{
    struct fact_run run = { facts->items, 0 };
    while (run.count < facts->count && run.items[run.count].kind == kind)
        run.count++;
    facts->items += run.count;
    facts->count -= run.count;
    return run;
}

/* Elements by name, the last of equals, without those that `unsure` or `absent` has. */
static struct str_map run_elements(struct layout *l, struct fact_run run,
                                   const struct str_map *unsure, const struct str_map *absent)
{
    struct str_pair *pairs = arena_array(&l->arena, struct str_pair, run.count);
    uint32_t count = 0;
    for (size_t i = 0; i < run.count; i++) {
        const struct feature_fact *fact = &run.items[i];
        bool replaced = i + 1 < run.count && run.items[i + 1].name.p &&
                        str_eq(fact->name, run.items[i + 1].name);
        if (!fact->name.p || replaced || str_map_get(unsure, fact->name).p ||
            str_map_get(absent, fact->name).p)
            continue;
        /* What has no value gets an empty one, so that str_map_get finds it. */
        pairs[count++] = (struct str_pair){ fact->name, named(fact->value) };
    }
    return (struct str_map){ pairs, count };
}

static int instance_order(const void *a, const void *b)
{
    const struct str_map *x = a, *y = b;
    for (uint32_t i = 0; i < x->count && i < y->count; i++) {
        int order = str_cmp(x->items[i].key, y->items[i].key);
        if (order == 0)
            order = str_cmp(x->items[i].value, y->items[i].value);
        if (order)
            return order;
    }
    return (x->count > y->count) - (x->count < y->count);
}

/* What the mask leaves of an instance, sorted by name. */
static struct str_map seen_instance(struct layout *l, const struct feature_fact *fact)
{
    const struct str_map *all = fact->maybe_instance;
    struct str_pair *pairs = arena_array(&l->arena, struct str_pair, all->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        struct str_pair pair = all->items[i];
        if (!keeps_name(l->maybe_mask, fact->feature, pair.key))
            continue;
        if (!keeps_value(l->maybe_mask, fact->feature, pair.key))
            pair.value = STR("");
        pairs[count++] = pair;
    }
    if (count > 1)
        qsort(pairs, count, sizeof *pairs, str_pair_order);
    return (struct str_map){ pairs, count };
}

static void put_instances(struct layout *l, struct fact_run run, struct set_feature *out)
{
    struct str_map *instances = arena_array(&l->arena, struct str_map, run.count);
    uint32_t count = 0, kept = 0;
    for (size_t i = 0; i < run.count; i++) {
        if (run.items[i].maybe_instance)
            instances[count++] = seen_instance(l, &run.items[i]);
    }
    if (count > 1)
        qsort(instances, count, sizeof *instances, instance_order);
    struct feature_attribute_range *ranges =
        arena_array(&l->arena, struct feature_attribute_range, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || instance_order(&instances[i - 1], &instances[i]) != 0)
            ranges[kept++] = put_pairs(l, instances[i].items, instances[i].count);
    }
    out->instances = put_words(l, ranges, kept * sizeof *ranges);
    out->instance_count = kept;
}

static struct set_feature put_feature(struct layout *l, struct fact_run facts)
{
    struct set_feature out = { .name = put_text(l, facts.items[0].feature) };
    struct fact_run marks = run_of(&facts, FACT_COMPLETENESS);
    struct fact_run flags = run_of(&facts, FACT_FLAGS);
    struct fact_run attributes = run_of(&facts, FACT_ATTRIBUTES);
    struct fact_run unsure = run_of(&facts, FACT_UNSURE);
    struct fact_run absent = run_of(&facts, FACT_ABSENT);
    struct fact_run instances = run_of(&facts, FACT_INSTANCES);

    out.completeness = marks.count ? marks.items[marks.count - 1].completeness : FEATURE_COMPLETE;
    out.kinds = (flags.count ? FEATURE_HAS_FLAGS : 0u) |
                (attributes.count ? FEATURE_HAS_ATTRIBUTES : 0u) |
                (instances.count ? FEATURE_HAS_INSTANCES : 0u);
    struct str_map none = { 0 };
    struct str_map doubts = run_elements(l, unsure, &none, &none);
    struct str_map gone = run_elements(l, absent, &doubts, &none);
    struct str_map names = run_elements(l, flags, &doubts, &gone);
    struct str_map values = run_elements(l, attributes, &doubts, &gone);

    out.unsure = put_names(l, doubts.items, doubts.count);
    out.unsure_count = doubts.count;
    if (out.completeness != FEATURE_PARTIAL) /* goes without saying, or says nothing */
        gone.count = 0;
    out.absent = put_names(l, gone.items, gone.count);
    out.absent_count = gone.count;
    out.flags = put_names(l, names.items, names.count);
    out.flag_count = names.count;
    out.attributes = put_pairs(l, values.items, values.count);
    put_instances(l, instances, &out);
    return out;
}

/* The facts are sorted; each feature is a run of them. */
static uint32_t put_features(struct layout *l, const struct feature_fact *facts, size_t count)
{
    uint32_t features = 0;
    for (size_t i = 0; i < count; i++)
        features += i == 0 || !str_eq(facts[i - 1].feature, facts[i].feature);
    struct set_feature *out = arena_array(&l->arena, struct set_feature, features);
    put_words(l, out, features * sizeof *out); /* their place; filled in below */

    struct set_feature *next = out;
    for (size_t i = 0; i < count;) {
        struct fact_run run = { facts + i, 1 };
        while (i + run.count < count && str_eq(facts[i].feature, facts[i + run.count].feature))
            run.count++;
        *next++ = put_feature(l, run);
        i += run.count;
    }
    if (features)
        memcpy(l->words.items, out, features * sizeof *out);
    return features;
}

int feature_set_make(struct feature_sets *pool, struct feature_draft *draft,
                     const struct feature_set **out, struct err *err)
{
    struct layout l = { .maybe_mask = draft->maybe_mask };
    struct feature_shape shape = { .others_unknown = draft->others_unknown };
    int rc = 0;

    if (draft->facts.count > 1)
        qsort(draft->facts.items, draft->facts.count, sizeof *draft->facts.items, fact_order);
    shape.feature_count = put_features(&l, draft->facts.items, draft->facts.count);
    shape.list_words = (uint32_t)l.words.count;
    shape.text_words = (uint32_t)((l.texts.len + 3) / 4);
    if (l.words.count * sizeof(uint32_t) + l.texts.len > FEATURE_SET_BYTES_MAX) {
        rc = err_set(err, ERR_INVALID, "the features of a node take more than %zu bytes",
                     FEATURE_SET_BYTES_MAX);
    } else {
        vec_push(&l.words, 0u); /* never empty */
        size_t lists = shape.list_words;
        vec_reserve(&l.words, lists + shape.text_words + 1);
        memset(l.words.items + lists, 0, (shape.text_words + 1) * sizeof(uint32_t));
        memcpy(l.words.items + lists, buf_str(&l.texts).p, l.texts.len);
        *out = feature_sets_intern(pool, &shape, l.words.items);
    }
    layout_done(&l);
    return rc;
}

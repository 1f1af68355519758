/* What is learned from nodes.
 *
 * Merging is the meet of what two sides know: what both have is known, what one has is unsure, and a doubt of
 * either stays. So the order in which nodes are seen does not matter, nor how often each is, and what was once
 * found to vary is never claimed again. A feature that only some nodes have, or have in another form, is
 * unknown. Nodes that say the same share their sets (predict_observe.c), so merging is mostly comparing
 * pointers.
 */
#include "compat/predict_inner.h"

/* --- what is learned of --- */

bool profile_keeps(enum profile_kind kind, struct str feature)
{
    switch (kind) {
    case PROFILE_PAIR:
        return true;
    case PROFILE_TYPE:
        return str_starts(feature, STR("cpu.")) || str_eqz(feature, "pci.device") ||
               str_eqz(feature, "memory.numa");
    case PROFILE_IMAGE:
        /* Modules are loaded for the hardware that is there, and KVM needs a whole machine. */
        return (str_starts(feature, STR("kernel.")) && !str_eqz(feature, "kernel.loadedmodule") &&
                !str_eqz(feature, "kernel.kvm")) ||
               str_eqz(feature, "system.osrelease");
    case PROFILE_KIND_COUNT:
        break;
    }
    KV_UNREACHABLE();
}

/* --- lists of features --- */

void profile_features_done(struct profile_features *features)
{
    for (uint32_t i = 0; i < features->count; i++)
        feature_set_unref(features->items[i]);
    free(features->items);
    *features = (struct profile_features){ 0 };
}

const struct feature_set *profile_features_find(const struct profile_features *features,
                                                struct str name)
{
    uint32_t low = 0, high = features->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = str_cmp(name, profile_feature_name(features->items[middle]));
        if (order == 0)
            return features->items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* --- from sets to drafts --- */

static struct str copied(struct arena *arena, const struct feature_set *set,
                         struct feature_text text)
{
    return arena_str(arena, feature_set_str(set, text));
}

struct str_map *profile_instance(const struct feature_set *set,
                                 struct feature_attribute_range range, struct str without,
                                 struct arena *arena)
{
    const struct feature_value *values = feature_set_values(set, range);
    struct str_pair *pairs = arena_array(arena, struct str_pair, range.count);
    struct str_map *map = arena_new(arena, struct str_map);
    for (uint32_t i = 0; i < range.count; i++) {
        if (!without.p || !str_eq(feature_set_str(set, values[i].name), without))
            pairs[map->count++] = (struct str_pair){ copied(arena, set, values[i].name),
                                                     copied(arena, set, values[i].value) };
    }
    map->items = pairs;
    return map;
}

/* The elements of a draft's feature that a list of names is about. */
typedef void add_element_fn(struct feature_draft *draft, struct str feature, struct str element);

static void draft_names(const struct feature_set *set, const struct feature_text *names,
                        uint32_t count, struct str feature, struct arena *arena,
                        add_element_fn *add, struct feature_draft *draft)
{
    for (uint32_t i = 0; i < count; i++) {
        if (feature_draft_keeps_element(draft, feature, feature_set_str(set, names[i])))
            add(draft, feature, copied(arena, set, names[i]));
    }
}

void profile_draft(const struct feature_set *set, const struct set_feature *f, struct arena *arena,
                   struct feature_draft *draft)
{
    if (!feature_draft_keeps(draft, feature_set_str(set, f->name)))
        return;
    struct str name = copied(arena, set, f->name);
    const struct feature_value *values = feature_set_values(set, f->attributes);
    const struct feature_attribute_range *instances = feature_set_instances(set, f);
    feature_draft_completeness(draft, name, f->completeness);
    feature_draft_kinds(draft, name, f->kinds);
    draft_names(set, feature_set_flags(set, f), f->flag_count, name, arena, feature_draft_flag,
                draft);
    draft_names(set, feature_set_unsure(set, f), f->unsure_count, name, arena, feature_draft_unsure,
                draft);
    for (uint32_t i = 0; i < f->attributes.count; i++) {
        if (feature_draft_keeps_element(draft, name, feature_set_str(set, values[i].name)))
            feature_draft_attribute(draft, name, copied(arena, set, values[i].name),
                                    copied(arena, set, values[i].value));
    }
    for (uint32_t i = 0; i < f->instance_count; i++)
        feature_draft_instance(draft, name, profile_instance(set, instances[i], STR_NONE, arena));
}

const struct feature_set *profile_unknown(struct feature_sets *pool, struct str name)
{
    FEATURE_DRAFT draft = { 0 };
    struct err err = { 0 };
    const struct feature_set *set = NULL;
    feature_draft_completeness(&draft, name, FEATURE_UNKNOWN);
    int rc = feature_set_make(pool, &draft, &set, &err);
    KV_ASSERT(rc == 0); /* a name that was in a set fits one */
    return set;
}

const struct feature_set *profile_make(struct feature_sets *pool, struct str name,
                                       struct feature_draft *draft)
{
    struct err err = { 0 };
    const struct feature_set *set = NULL;
    if (feature_set_make(pool, draft, &set, &err) < 0)
        return profile_unknown(pool, name);
    KV_ASSERT(feature_set_count(set) == 1);
    return set;
}

/* --- merging --- */

/* One side's flags and attributes: those that the other has too are known. */
static void meet_elements(const struct feature_set *a, const struct feature_set *b, struct str name,
                          struct feature_draft *draft)
{
    const struct set_feature *f = profile_feature(a), *g = profile_feature(b);
    const struct feature_text *flags = feature_set_flags(a, f), *unsure = feature_set_unsure(a, f);
    const struct feature_value *values = feature_set_values(a, f->attributes);
    for (uint32_t i = 0; i < f->flag_count; i++) {
        struct str flag = feature_set_str(a, flags[i]);
        if (feature_set_has_flag(b, g, flag))
            feature_draft_flag(draft, name, flag);
        else
            feature_draft_unsure(draft, name, flag);
    }
    for (uint32_t i = 0; i < f->attributes.count; i++) {
        struct str element = feature_set_str(a, values[i].name);
        struct str value = feature_set_str(a, values[i].value);
        struct str other = feature_set_value(b, g->attributes, element);
        if (other.p && str_eq(value, other))
            feature_draft_attribute(draft, name, element, value);
        else
            feature_draft_unsure(draft, name, element);
    }
    for (uint32_t i = 0; i < f->unsure_count; i++)
        feature_draft_unsure(draft, name, feature_set_str(a, unsure[i]));
}

/* Has `set` an instance with these attributes of the set `of`, and, if so asked, no others? */
static bool has_instance(const struct feature_set *set, const struct set_feature *f,
                         const struct feature_set *of, struct feature_attribute_range wanted,
                         bool exactly)
{
    const struct feature_attribute_range *instances = feature_set_instances(set, f);
    const struct feature_value *values = feature_set_values(of, wanted);
    for (uint32_t i = 0; i < f->instance_count; i++) {
        bool fits = !exactly || instances[i].count == wanted.count;
        for (uint32_t k = 0; k < wanted.count && fits; k++) {
            struct str value =
                feature_set_value(set, instances[i], feature_set_str(of, values[k].name));
            fits = value.p && str_eq(value, feature_set_str(of, values[k].value));
        }
        if (fits)
            return true;
    }
    return false;
}

/* Instances of both. False: one side has others, too. */
static bool meet_instances(const struct feature_set *a, const struct feature_set *b,
                           struct str name, struct arena *arena, struct feature_draft *draft)
{
    const struct set_feature *f = profile_feature(a);
    const struct feature_attribute_range *instances = feature_set_instances(a, f);
    uint32_t common = 0;
    for (uint32_t i = 0; i < f->instance_count; i++) {
        if (!has_instance(b, profile_feature(b), a, instances[i], true))
            continue;
        feature_draft_instance(draft, name, profile_instance(a, instances[i], STR_NONE, arena));
        common++;
    }
    return common == f->instance_count && common == profile_feature(b)->instance_count;
}

/* Flags and attributes are one form, as rules see them, and instances another. */
static uint32_t form_of(const struct set_feature *f)
{
    uint32_t plain = FEATURE_HAS_FLAGS | FEATURE_HAS_ATTRIBUTES;
    return (f->kinds & plain ? plain : 0u) | (f->kinds & FEATURE_HAS_INSTANCES);
}

static const struct feature_set *meet(struct feature_sets *pool, const struct feature_set *a,
                                      const struct feature_set *b)
{
    const struct set_feature *f = profile_feature(a), *g = profile_feature(b);
    struct str name = profile_feature_name(a);
    if (a == b)
        return feature_set_ref(a);
    if (f->completeness == FEATURE_UNKNOWN || g->completeness == FEATURE_UNKNOWN ||
        form_of(f) != form_of(g))
        return profile_unknown(pool, name);

    AUTO_ARENA arena = { 0 };
    FEATURE_DRAFT draft = { 0 };
    bool partial = f->completeness == FEATURE_PARTIAL || g->completeness == FEATURE_PARTIAL;
    feature_draft_kinds(&draft, name, f->kinds | g->kinds);
    meet_elements(a, b, name, &draft);
    meet_elements(b, a, name, &draft);
    if (!meet_instances(a, b, name, &arena, &draft) || partial)
        feature_draft_completeness(&draft, name, FEATURE_PARTIAL);
    return profile_make(pool, name, &draft);
}

bool profile_merge(struct feature_sets *pool, struct profile_features *known,
                   const struct profile_features *seen, enum profile_kind kind)
{
    const struct feature_set **items =
        kv_calloc((size_t)known->count + seen->count + 1, sizeof *items);
    struct profile_features met = { .items = items };
    uint32_t i = 0, k = 0;
    bool changed = false;
    while (i < known->count || k < seen->count) {
        const struct feature_set *a = i < known->count ? known->items[i] : NULL;
        const struct feature_set *b = k < seen->count ? seen->items[k] : NULL;
        int order = !a ? 1 : !b ? -1 : str_cmp(profile_feature_name(a), profile_feature_name(b));
        i += order <= 0;
        k += order >= 0;
        if (!profile_keeps(kind, profile_feature_name(order <= 0 ? a : b)))
            continue;
        const struct feature_set *both =
            order == 0 ? meet(pool, a, b)
                       : profile_unknown(pool, profile_feature_name(order < 0 ? a : b));
        changed = changed || both != a;
        items[met.count++] = both;
    }
    changed = changed && met.count <= PROFILE_FEATURES_MAX;
    profile_features_done(changed ? known : &met);
    if (changed)
        *known = met;
    return changed;
}

/* --- contradictions --- */

/* The feature that a prediction is compared with: what the node says of it is complete, but for doubts. */
static bool lacks_predicted(const struct feature_set *predicted, const struct set_feature *f,
                            const struct feature_set *seen, const struct set_feature *g)
{
    const struct feature_text *flags = feature_set_flags(predicted, f);
    const struct feature_value *values = feature_set_values(predicted, f->attributes);
    const struct feature_attribute_range *instances = feature_set_instances(predicted, f);
    for (uint32_t i = 0; i < f->flag_count; i++) {
        struct str flag = feature_set_str(predicted, flags[i]);
        if (!feature_set_has_flag(seen, g, flag) && !feature_set_is_unsure(seen, g, flag))
            return true;
    }
    for (uint32_t i = 0; i < f->attributes.count; i++) {
        struct str element = feature_set_str(predicted, values[i].name);
        struct str value = feature_set_value(seen, g->attributes, element);
        bool same = value.p && str_eq(value, feature_set_str(predicted, values[i].value));
        if (!same && !feature_set_is_unsure(seen, g, element))
            return true;
    }
    for (uint32_t i = 0; i < f->instance_count; i++) {
        if (!has_instance(seen, g, predicted, instances[i], false))
            return true;
    }
    return false;
}

static bool excludes(const struct feature_set *predicted, const struct set_feature *f,
                     struct str element)
{
    if (f->completeness == FEATURE_PARTIAL)
        return feature_set_is_absent(predicted, f, element);
    return !feature_set_has_flag(predicted, f, element) &&
           !feature_set_value(predicted, f->attributes, element).p &&
           !feature_set_is_unsure(predicted, f, element);
}

static bool has_excluded(const struct feature_set *predicted, const struct set_feature *f,
                         const struct feature_set *seen, const struct set_feature *g)
{
    const struct feature_text *flags = feature_set_flags(seen, g);
    const struct feature_value *values = feature_set_values(seen, g->attributes);
    const struct feature_attribute_range *instances = feature_set_instances(seen, g);
    for (uint32_t i = 0; i < g->flag_count; i++) {
        if (excludes(predicted, f, feature_set_str(seen, flags[i])))
            return true;
    }
    for (uint32_t i = 0; i < g->attributes.count; i++) {
        if (excludes(predicted, f, feature_set_str(seen, values[i].name)))
            return true;
    }
    for (uint32_t i = 0; i < g->instance_count && f->completeness == FEATURE_COMPLETE; i++) {
        if (!has_instance(predicted, f, seen, instances[i], true))
            return true;
    }
    return false;
}

bool profile_contradicts(const struct feature_set *predicted, const struct set_feature *f,
                         const struct feature_set *maybe_seen)
{
    if (f->completeness == FEATURE_UNKNOWN || f->kinds == 0)
        return false;
    if (!maybe_seen)
        return true;
    const struct set_feature *g = profile_feature(maybe_seen);
    return g->completeness != FEATURE_UNKNOWN && (lacks_predicted(predicted, f, maybe_seen, g) ||
                                                  has_excluded(predicted, f, maybe_seen, g));
}

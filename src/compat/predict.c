/* The predictor: profiles on three shelves, and the order in which its sources are asked.
 *
 * A node teaches three profiles: that of its type and image, which has everything; that of its type, which has
 * what comes with the hardware; that of its image, which has what comes with the system. A machine whose pair
 * has been seen is predicted from that profile alone, and completely. Otherwise each feature comes from the
 * first that knows it: the type's profile, the image's, the tables with what the user declares. The tables know
 * features in part, so there the user may add elements, but not deny what a table says.
 *
 * A profile that found something to vary says so and is believed: no later source fills that in. That is also
 * how a wrong prediction is corrected: what was seen comes first from then on.
 */
#include "compat/predict_inner.h"

#include "compat/predict_table.h"

#define MISMATCH_SERIES_MAX 2000

/* --- shelves --- */

static struct str profile_key(struct buf *key, struct str type, struct str image)
{
    buf_add(key, type);
    buf_addc(key, '\n'); /* in no name */
    buf_add(key, image);
    return buf_str(key);
}

static void unlink_profile(struct shelf *shelf, struct profile *profile)
{
    *(profile->newer ? &profile->newer->older : &shelf->newest) = profile->older;
    *(profile->older ? &profile->older->newer : &shelf->oldest) = profile->newer;
}

static void link_newest(struct shelf *shelf, struct profile *profile)
{
    profile->newer = NULL;
    profile->older = shelf->newest;
    *(shelf->newest ? &shelf->newest->newer : &shelf->oldest) = profile;
    shelf->newest = profile;
}

static void drop_profile(struct shelf *shelf, struct profile *profile)
{
    AUTO_BUF key = { 0 };
    unlink_profile(shelf, profile);
    str_table_remove(&shelf->by_key, profile_key(&key, profile->type, profile->image));
    profile_features_done(&profile->features);
    free((char *)profile->type.p);
    free((char *)profile->image.p);
    free(profile);
}

static struct profile *find_profile(struct shelf *shelf, struct str type, struct str image)
{
    AUTO_BUF key = { 0 };
    struct profile *profile = str_table_get(&shelf->by_key, profile_key(&key, type, image));
    if (profile && profile != shelf->newest) {
        unlink_profile(shelf, profile);
        link_newest(shelf, profile);
    }
    return profile;
}

static struct profile *add_profile(struct shelf *shelf, struct str type, struct str image)
{
    AUTO_BUF key = { 0 };
    struct profile *profile = kv_calloc(1, sizeof *profile);
    profile->type = (struct str){ str_dup(type), type.len };
    profile->image = (struct str){ str_dup(image), image.len };
    str_table_put(&shelf->by_key, profile_key(&key, type, image), profile);
    link_newest(shelf, profile);
    return profile;
}

/* Drop what was not used for the longest time. Pairs go first when memory is short: they are the most, and the
 * others know the most of it. The lock is held. */
static void keep_within_limits(struct predictor *p)
{
    if (feature_sets_stats(p->pool).bytes > PREDICTOR_BYTES_MAX)
        observed_forget(&p->observed);
    for (int kind = 0; kind < PROFILE_KIND_COUNT; kind++) {
        struct shelf *shelf = &p->shelves[kind];
        while (shelf->oldest && (shelf->by_key.live_count > p->profiles_max ||
                                 feature_sets_stats(p->pool).bytes > PREDICTOR_BYTES_MAX)) {
            drop_profile(shelf, shelf->oldest);
            p->generation++;
        }
    }
}

/* The features of that kind, shared. */
static struct profile_features features_of_kind(const struct profile_features *seen,
                                                enum profile_kind kind)
{
    struct profile_features out = { .items =
                                        kv_calloc((size_t)seen->count + 1, sizeof *out.items) };
    for (uint32_t i = 0; i < seen->count; i++) {
        if (profile_keeps(kind, profile_feature_name(seen->items[i])))
            out.items[out.count++] = feature_set_ref(seen->items[i]);
    }
    return out;
}

/* Into the profile of that kind, made if there is none. The lock is held. */
static void merge(struct predictor *p, enum profile_kind kind, struct str type, struct str image,
                  const struct profile_features *seen)
{
    struct shelf *shelf = &p->shelves[kind];
    struct profile *profile = find_profile(shelf, type, image);
    if (!profile) {
        profile = add_profile(shelf, type, image);
        profile->features = features_of_kind(seen, kind);
        p->generation++;
    } else if (profile_merge(p->pool, &profile->features, seen, kind)) {
        p->generation++;
    }
}

/* --- life --- */

struct predictor *predictor_new(struct predictor_options options)
{
    static const char *const labels[] = { "instance_type", "feature", NULL };
    struct predictor *p = kv_calloc(1, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->pool = feature_sets_new();
    observed_init(&p->observed);
    p->profiles_max = options.profiles_max ? options.profiles_max : PREDICTOR_PROFILES_MAX;
    if (options.maybe_metrics)
        p->maybe_mismatch = metrics_family(
            options.maybe_metrics,
            &(struct metric_desc){ .name = "karve_feature_prediction_mismatch_total",
                                   .help = "Features that were predicted with certainty and that a "
                                           "node turned out not to have so.",
                                   .type = METRIC_COUNTER,
                                   .labels = labels,
                                   .series_max = MISMATCH_SERIES_MAX });
    return p;
}

void predictor_free(struct predictor *p)
{
    if (!p)
        return;
    for (int kind = 0; kind < PROFILE_KIND_COUNT; kind++) {
        while (p->shelves[kind].oldest)
            drop_profile(&p->shelves[kind], p->shelves[kind].oldest);
        str_table_done(&p->shelves[kind].by_key);
    }
    observed_done(&p->observed);
    feature_sets_free(p->pool);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

uint64_t predictor_generation(struct predictor *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t generation = p->generation;
    pthread_mutex_unlock(&p->lock);
    return generation;
}

struct predictor_stats predictor_stats(struct predictor *p)
{
    pthread_mutex_lock(&p->lock);
    struct predictor_stats stats = { .pairs = p->shelves[PROFILE_PAIR].by_key.live_count,
                                     .types = p->shelves[PROFILE_TYPE].by_key.live_count,
                                     .images = p->shelves[PROFILE_IMAGE].by_key.live_count,
                                     .bytes = (size_t)feature_sets_stats(p->pool).bytes,
                                     .mismatches = p->mismatches };
    pthread_mutex_unlock(&p->lock);
    return stats;
}

/* --- predicting --- */

static void draft_profile(const struct profile *profile, struct arena *arena,
                          struct feature_draft *draft)
{
    for (uint32_t i = 0; i < profile->features.count; i++) {
        const struct feature_set *set = profile->features.items[i];
        profile_draft(set, profile_feature(set), arena, draft);
    }
}

/* What earlier sources have said of a machine. */
struct sources {
    const struct profile *maybe_type, *maybe_image;
};

/* A profile speaks of all features of its kind: that the nodes did not have one was learned too. */
static bool is_learned(const struct sources *s, struct str feature)
{
    return (s->maybe_type && profile_keeps(PROFILE_TYPE, feature)) ||
           (s->maybe_image && profile_keeps(PROFILE_IMAGE, feature));
}

/* The user's list is not all there is. */
static void draft_declared(const struct features *declared, const struct sources *s,
                           struct feature_draft *draft)
{
    static const struct str config = { "kernel.config", 13 };
    for (uint32_t i = 0; i < declared->flags.count; i++) {
        const struct feature_flags *f = &declared->flags.items[i];
        if (is_learned(s, f->key))
            continue;
        feature_draft_features(draft, &(struct features){ .flags = { f, 1 } });
        feature_draft_completeness(draft, f->key, FEATURE_PARTIAL);
    }
    for (uint32_t i = 0; i < declared->attributes.count; i++) {
        const struct feature_attributes *f = &declared->attributes.items[i];
        if (is_learned(s, f->key))
            continue;
        feature_draft_features(draft, &(struct features){ .attributes = { f, 1 } });
        feature_draft_completeness(draft, f->key, FEATURE_PARTIAL);
    }
    for (uint32_t i = 0; i < declared->instances.count; i++) {
        const struct feature_instances *f = &declared->instances.items[i];
        if (is_learned(s, f->key))
            continue;
        feature_draft_features(draft, &(struct features){ .instances = { f, 1 } });
        feature_draft_completeness(draft, f->key, FEATURE_PARTIAL);
    }
    if (declared->has_kernel_config && !is_learned(s, config)) {
        feature_draft_features(draft, &(struct features){ .kernel_config = declared->kernel_config,
                                                          .has_kernel_config = true });
        feature_draft_completeness(draft, config, FEATURE_PARTIAL);
    }
}

static struct profile *find_pair(struct predictor *p, const struct machine_kind *m)
{
    struct str type = m->instance_type, image = m->image;
    return type.len && image.len ? find_profile(&p->shelves[PROFILE_PAIR], type, image) : NULL;
}

static void draft_locked(struct predictor *p, const struct machine_kind *m, struct arena *arena,
                         struct feature_draft *draft)
{
    struct str type = m->instance_type, image = m->image;
    const struct profile *pair = find_pair(p, m);
    draft->others_unknown = !pair;
    if (pair) {
        draft_profile(pair, arena, draft);
        return;
    }
    struct sources sources = { 0 };
    if (type.len)
        sources.maybe_type = find_profile(&p->shelves[PROFILE_TYPE], type, STR(""));
    if (image.len)
        sources.maybe_image = find_profile(&p->shelves[PROFILE_IMAGE], STR(""), image);
    if (sources.maybe_type)
        draft_profile(sources.maybe_type, arena, draft);
    if (sources.maybe_image)
        draft_profile(sources.maybe_image, arena, draft);
    /* Declared before the tables: of two that speak of one attribute the last is believed. */
    if (m->maybe_declared)
        draft_declared(m->maybe_declared, &sources, draft);
    for (int i = 0; i < TABLE_FEATURE_COUNT; i++) {
        if (!is_learned(&sources, table_feature_names[i]))
            predict_table_draft(m, (enum table_feature)i, draft);
    }
}

void predictor_draft(struct predictor *p, const struct machine_kind *machine, struct arena *arena,
                     struct feature_draft *draft)
{
    pthread_mutex_lock(&p->lock);
    draft_locked(p, machine, arena, draft);
    pthread_mutex_unlock(&p->lock);
}

/* --- learning --- */

static void count_mismatch(struct predictor *p, struct str type, struct str feature)
{
    p->mismatches++;
    if (!p->maybe_mismatch)
        return;
    AUTO(metric) metric = metric_get(p->maybe_mismatch, (struct str[]){ type, feature });
    metric_inc(metric);
}

/* A prediction for a machine whose pair has been seen is the pair's profile: what the node says in the same
 * words, the same set, needs no look. */
static void count_mismatches_of_pair(struct predictor *p, const struct profile *pair,
                                     const struct profile_features *seen)
{
    for (uint32_t i = 0; i < pair->features.count; i++) {
        const struct feature_set *predicted = pair->features.items[i];
        struct str name = profile_feature_name(predicted);
        const struct feature_set *said = profile_features_find(seen, name);
        if (said != predicted && profile_contradicts(predicted, profile_feature(predicted), said))
            count_mismatch(p, pair->type, name);
    }
    for (uint32_t i = 0; i < seen->count; i++) {
        struct str name = profile_feature_name(seen->items[i]);
        if (profile_feature(seen->items[i])->completeness != FEATURE_UNKNOWN &&
            !profile_features_find(&pair->features, name))
            count_mismatch(p, pair->type, name);
    }
}

static void count_mismatches(struct predictor *p, const struct machine_kind *m,
                             const struct profile_features *seen)
{
    const struct profile *pair = find_pair(p, m);
    if (pair) {
        count_mismatches_of_pair(p, pair, seen);
        return;
    }
    AUTO_ARENA arena = { 0 };
    FEATURE_DRAFT draft = { 0 };
    AUTO_FEATURE_SET predicted = NULL;
    struct err err = { 0 };
    draft_locked(p, m, &arena, &draft);
    if (feature_set_make(p->pool, &draft, &predicted, &err) < 0)
        return; /* so much was never predicted to anybody */
    for (uint32_t i = 0; i < feature_set_count(predicted); i++) {
        const struct set_feature *f = feature_set_at(predicted, i);
        struct str name = feature_set_str(predicted, f->name);
        if (profile_contradicts(predicted, f, profile_features_find(seen, name)))
            count_mismatch(p, m->instance_type, name);
    }
}

/* The node says what its pair's profile says, to the letter: most do. */
static bool nothing_new(struct predictor *p, const struct machine_kind *m,
                        const struct profile_features *seen)
{
    const struct profile *pair = find_pair(p, m);
    return pair && pair->features.count == seen->count &&
           memcmp(pair->features.items, seen->items, seen->count * sizeof *seen->items) == 0 &&
           find_profile(&p->shelves[PROFILE_TYPE], m->instance_type, STR("")) &&
           find_profile(&p->shelves[PROFILE_IMAGE], STR(""), m->image);
}

static void learn(struct predictor *p, const struct machine_kind *m,
                  const struct features *const *said, uint32_t count)
{
    struct profile_features seen = { 0 };
    struct str type = m->instance_type, image = m->image;
    if ((type.len == 0 && image.len == 0) ||
        !profile_observe(&p->observed, p->pool, said, count, &seen))
        return;
    pthread_mutex_lock(&p->lock);
    if (!nothing_new(p, m, &seen)) {
        count_mismatches(p, m, &seen);
        if (type.len && image.len)
            merge(p, PROFILE_PAIR, type, image, &seen);
        if (type.len)
            merge(p, PROFILE_TYPE, type, STR(""), &seen);
        if (image.len)
            merge(p, PROFILE_IMAGE, STR(""), image, &seen);
    }
    profile_features_done(&seen);
    keep_within_limits(p);
    pthread_mutex_unlock(&p->lock);
}

void predictor_learn(struct predictor *p, const struct machine_kind *machine,
                     const struct features *features)
{
    learn(p, machine, &features, 1);
}

void predictor_learn_node(struct predictor *p, const struct machine_kind *machine,
                          const struct node_feature *const *objects, uint32_t count,
                          struct str nfd_namespace)
{
    AUTO_ARENA arena = { 0 };
    learn(p, machine, node_features_ranked(&arena, objects, count, nfd_namespace), count);
}

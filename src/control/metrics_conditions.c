/* operator_*: how the conditions of objects are, for how long, and how often they change. One set of
 * families per kind. What is, is worked out by a scrape, like everything about objects; changes are
 * counted as they are seen, from the old object and the new one. Objects that are new to this process
 * have not changed.
 */
#include "control/metrics_collect.h"

#include "api/ec2nodeclass.h"
#include "api/kinds.h"
#include "api/nodeoverlay.h"

enum {
    COUNT,
    SECONDS,
    TERMINATING,
    FIRST_EVENT, /* those above are set by a scrape, those below by changes */
    TRANSITIONS = FIRST_EVENT,
    TRANSITION_SECONDS,
    TERMINATION_SECONDS,
    FAMILIES,
};

typedef LIST(struct condition) condition_list;

static const struct observed { /* a kind with conditions */
    const struct kind *kind;
    size_t offset; /* of the list of conditions in its struct */
    bool of_pool;  /* it says the node class and pool that it belongs to */
    const char *names[FAMILIES];
} observed[] = {
/* clang-format off */
#define OBSERVED(kind_, type, word, of_pool_)                                                      \
    { &(kind_), offsetof(type, status.conditions), of_pool_,                                       \
      { [COUNT] = "operator_" word "_status_condition_count",                                      \
        [SECONDS] = "operator_" word "_status_condition_current_status_seconds",                   \
        [TERMINATING] = "operator_" word "_termination_current_time_seconds",                      \
        [TRANSITIONS] = "operator_" word "_status_condition_transitions_total",                    \
        [TRANSITION_SECONDS] = "operator_" word "_status_condition_transition_seconds",            \
        [TERMINATION_SECONDS] = "operator_" word "_termination_duration_seconds" } }
    OBSERVED(nodeclaim_kind, struct nodeclaim, "nodeclaim", true),
    OBSERVED(nodepool_kind, struct nodepool, "nodepool", false),
    OBSERVED(node_kind, struct node, "node", true),
    OBSERVED(nodeoverlay_kind, struct nodeoverlay, "nodeoverlay", false),
    OBSERVED(ec2nodeclass_kind, struct ec2nodeclass, "ec2nodeclass", false),
    /* clang-format on */
};
enum { KINDS = KV_COUNT_OF(observed) };

/* The last two only of kinds that belong to a pool. */
static const char *const status_labels[] = { "namespace", "name",      "type",     "status",
                                             "reason",    "nodeclass", "nodepool", NULL };
static const char *const plain_labels[] = { "namespace", "name", "type", "status", "reason", NULL };
static const char *const name_labels[] = { "namespace", "name", NULL };
static const char *const transition_labels[] = { "type", "status", "reason", NULL };
static const char *const duration_labels[] = { "type", "status", NULL };
/* 0.5 * 2^n, 15 of them */
static const double buckets[] = {
    0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192
};

static const struct {
    const char *help;
    enum metric_type type;
    const char *const *labels;
} rows[FAMILIES] = {
    [COUNT] = { "1 for each condition of each object.", METRIC_GAUGE, status_labels },
    [SECONDS] = { "For how long a condition has been what it is.", METRIC_GAUGE, status_labels },
    [TERMINATING] = { "For how long an object has been on its way out.", METRIC_GAUGE,
                      name_labels },
    [TRANSITIONS] = { "Changes of a condition's status.", METRIC_COUNTER, transition_labels },
    [TRANSITION_SECONDS] = { "How long a condition had a status before it changed.",
                             METRIC_HISTOGRAM, duration_labels },
    [TERMINATION_SECONDS] = { "From an object's deletion until it is gone.", METRIC_HISTOGRAM,
                              NULL },
};

struct condition_metrics {
    struct control *c;
    struct kind_metrics {
        struct condition_metrics *all;
        const struct observed *of;
        struct metric_family *families[FAMILIES];
    } kinds[KINDS];
};

static struct str status_word(const struct condition *condition)
{
    return str_of(condition_status_name((enum condition_status)condition->status));
}

static struct str text(struct str s)
{
    return s.p ? s : STR("");
}

static condition_list conditions_of(const struct kind_metrics *k, const struct object *object)
{
    condition_list list;
    memcpy(&list, (const char *)object + k->of->offset, sizeof list);
    return list;
}

/* --- what is --- */

/* Of whichever kind of those that the provider has. */
static struct str class_name(const struct control *c, const struct object *object)
{
    AUTO_ARENA arena = { 0 };
    for (uint32_t i = 0; i < c->provider->node_class_count; i++) {
        const struct node_class_kind *class_ = &c->provider->node_classes[i];
        struct str key = class_label(&arena, str_of(class_->group), str_of(class_->kind));
        struct str name = str_map_get(&object->meta.labels, key);
        if (name.p)
            return name;
    }
    return STR("");
}

static void collect_object(struct kind_metrics *k, const struct object *object, int64_t now_us,
                           uint32_t *left)
{
    condition_list list = conditions_of(k, object);
    for (uint32_t i = 0; i < list.count && *left; i++, (*left)--) {
        const struct condition *condition = &list.items[i];
        const struct str values[] = {
            text(object->meta.namespace_),
            object->meta.name,
            text(condition->type),
            status_word(condition),
            text(condition->reason),
            k->of->of_pool ? class_name(k->all->c, object) : STR(""),
            text(str_map_get(&object->meta.labels, STR(LABEL_NODEPOOL))),
        };
        gauge_set(k->families[COUNT], 1, values);
        gauge_set(k->families[SECONDS], (double)(now_us - condition->transition_us) / 1e6, values);
    }
    if (object->meta.deleted_us) {
        const struct str values[] = { text(object->meta.namespace_), object->meta.name };
        gauge_set(k->families[TERMINATING], (double)(now_us - object->meta.deleted_us) / 1e6,
                  values);
    }
}

static void collect(void *ctx)
{
    struct condition_metrics *m = ctx;
    int64_t now_us = control_now_us(m->c);
    for (int i = 0; i < (int)KINDS; i++) {
        struct object_list objects = { 0 };
        uint32_t left = METRIC_SERIES_MAX;
        for (int f = 0; f < FIRST_EVENT; f++)
            metric_family_remove(m->kinds[i].families[f], NULL, STR(""));
        cluster_list(m->c->cluster, m->kinds[i].of->kind, &objects);
        for (size_t o = 0; o < objects.count; o++)
            collect_object(&m->kinds[i], objects.items[o], now_us, &left);
        object_list_done(&objects);
    }
}

/* --- what happens --- */

static void count_transition(struct kind_metrics *k, const struct condition *old,
                             const struct condition *new)
{
    double seconds = (double)(new->transition_us - old->transition_us) / 1e6;
    metric_count(k->families[TRANSITIONS], text(new->type), status_word(new), text(new->reason));
    metric_observe_in(k->families[TRANSITION_SECONDS], seconds > 0 ? seconds : 0, text(old->type),
                      status_word(old));
}

static void on_change(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct kind_metrics *k = ctx;
    if (!maybe_old)
        return;
    if (!maybe_new) {
        int64_t since_us = maybe_old->meta.deleted_us;
        double seconds = (double)(control_now_us(k->all->c) - since_us) / 1e6;
        if (since_us)
            metric_observe_values(k->families[TERMINATION_SECONDS], seconds, NULL);
        return;
    }
    condition_list old = conditions_of(k, maybe_old), new = conditions_of(k, maybe_new);
    for (uint32_t i = 0; i < new.count; i++) {
        const struct condition *before = condition_find(old.items, old.count, new.items[i].type);
        if (before && before->status != new.items[i].status)
            count_transition(k, before, &new.items[i]);
    }
}

/* --- life --- */

static struct metric_family *family_new(struct metrics *registry, int kind, int family)
{
    struct metric_desc desc = { .name = observed[kind].names[family],
                                .help = rows[family].help,
                                .type = rows[family].type,
                                .labels = rows[family].labels };
    if (desc.labels == status_labels && !observed[kind].of_pool)
        desc.labels = plain_labels;
    if (desc.type == METRIC_HISTOGRAM) {
        desc.buckets = buckets;
        desc.bucket_count = KV_COUNT_OF(buckets);
    }
    return metrics_family(registry, &desc);
}

struct condition_metrics *condition_metrics_new(struct control *c)
{
    struct condition_metrics *m = kv_calloc(1, sizeof *m);
    m->c = c;
    for (int i = 0; i < (int)KINDS; i++) {
        m->kinds[i].all = m;
        m->kinds[i].of = &observed[i];
        for (int f = 0; f < FAMILIES; f++)
            m->kinds[i].families[f] = family_new(c->metrics_registry, i, f);
        cluster_on_change(c->cluster, observed[i].kind, on_change, &m->kinds[i]);
    }
    metrics_on_collect(c->metrics_registry, collect, m);
    return m;
}

void condition_metrics_free(struct condition_metrics *m)
{
    if (!m)
        return;
    metrics_on_collect_remove(m->c->metrics_registry, collect, m);
    for (int i = 0; i < (int)KINDS; i++)
        for (int f = 0; f < FIRST_EVENT; f++)
            metric_family_remove(m->kinds[i].families[f], NULL, STR(""));
    free(m);
}

/* Deployments: a ReplicaSet for each template that it has had, and the pods move to the newest.
 *
 * The new set grows while all sets together stay within replicas + maxSurge; the old ones shrink while
 * at least replicas - maxUnavailable pods are available, those first that never became so. A set's own
 * counts are its status, which is written when its pods change, so each step waits for the one before.
 */
#include "sim/workloads_impl.h"

#include "api/builtin.h"

#define ANNOTATION_REVISION STR("deployment.kubernetes.io/revision")

void deployment_read(struct workloads *w KV_UNUSED, struct maker *m, struct str text KV_UNUSED,
                     const json_val *root)
{
    template_hash(json_path(root, "spec.template"), LABEL_TEMPLATE_HASH, m->hash);
    m->history = 10;
    json_i64(json_path(root, "spec.revisionHistoryLimit"), &m->history);
}

/* --- its sets --- */

struct sets {
    const struct replica_set **items; /* the oldest first */
    size_t count;
    const struct replica_set *maybe_new;
    int64_t spec_total, available, pods;
};

static int64_t set_wants(const struct replica_set *set)
{
    return set->spec.replicas.set ? set->spec.replicas.value : 1;
}

static int64_t revision_of(const struct replica_set *set)
{
    int64_t revision = 0;
    str_to_i64(str_map_get(&set->object.meta.annotations, ANNOTATION_REVISION), &revision);
    return revision;
}

static int set_order(const void *x, const void *y)
{
    const struct replica_set *a = *(const struct replica_set *const *)x,
                             *b = *(const struct replica_set *const *)y;
    int64_t ra = revision_of(a), rb = revision_of(b);
    if (ra != rb)
        return ra < rb ? -1 : 1;
    if (a->object.meta.created_us != b->object.meta.created_us)
        return a->object.meta.created_us < b->object.meta.created_us ? -1 : 1;
    return str_cmp(a->object.meta.name, b->object.meta.name);
}

/* The set's template is the Deployment's, but for the label that tells the sets apart. */
static bool set_is_of_template(struct workloads *w, const struct replica_set *set, const char *hash)
{
    struct maker *of = str_table_get(&w->makers, set->object.meta.uid);
    return of && of->maybe_object && maker_read(w, of) && strcmp(of->hash, hash) == 0;
}

static struct sets sets_of(struct workloads *w, const struct maker *m,
                           const struct object_list *made)
{
    struct sets s = { .items = arena_array(&w->scratch, const struct replica_set *, made->count) };
    for (size_t i = 0; i < made->count; i++) {
        const struct replica_set *set = replica_set_of(made->items[i]);
        if (set->object.meta.deleted_us)
            continue;
        s.items[s.count++] = set;
        s.spec_total += set_wants(set);
        s.available += set->status.available_replicas;
        s.pods += set->status.replicas;
    }
    if (s.count)
        qsort(s.items, s.count, sizeof(const struct replica_set *), set_order);
    for (size_t i = 0; i < s.count && !s.maybe_new; i++) {
        if (set_is_of_template(w, s.items[i], m->hash))
            s.maybe_new = s.items[i];
    }
    return s;
}

static void set_scale(struct workloads *w, struct maker *m, const struct replica_set *set,
                      int64_t replicas)
{
    AUTO_BUF patch = { 0 };
    if (set_wants(set) == replicas)
        return;
    buf_addf(&patch, "{\"spec\":{\"replicas\":%lld}}", (long long)replicas);
    maker_patch(w, m, &set->object, false, buf_str(&patch));
}

/* The newest set has the highest revision, also when an old template comes back. */
static void set_make_newest(struct workloads *w, struct maker *m, const struct sets *s)
{
    const struct replica_set *last = s->count ? s->items[s->count - 1] : NULL;
    AUTO_BUF patch = { 0 };
    if (!s->maybe_new || s->maybe_new == last)
        return;
    buf_addf(&patch,
             "{\"metadata\":{\"annotations\":{\"deployment.kubernetes.io/revision\":\"%lld\"}}}",
             (long long)revision_of(last) + 1);
    maker_patch(w, m, &s->maybe_new->object, false, buf_str(&patch));
}

static void set_create(struct workloads *w, struct maker *m, const struct sets *s, int64_t replicas)
{
    AUTO_BUF text = { 0 }, name = { 0 }, revision = { 0 }, json = { 0 };
    const struct object *object = m->maybe_object;
    struct doc doc = { 0 };
    struct draft d;
    if (store_get_json(
            w->store,
            (struct object_ref){ object->kind, object->meta.namespace_, object->meta.name }, &text,
            NULL) < 0 ||
        json_read_trusted(buf_str(&text), &doc, NULL) < 0)
        return;
    struct str hash = str_of(m->hash);
    buf_addf(&name, "%.*s-%s", STR_ARG(object->meta.name), m->hash);
    buf_addf(&revision, "%lld",
             (long long)(s->count ? revision_of(s->items[s->count - 1]) : 0) + 1);

    const json_val *spec = json_get(doc.root, STR("spec"));
    draft_init(&d, buf_str(&text), object, NULL);
    json_mut *template = json_copy(&d.b, json_get(spec, STR("template")));
    json_mut *selector = json_copy(&d.b, json_get(spec, STR("selector")));
    json_mut *template_meta = json_mut_object(&d.b, template, STR("metadata"));
    const json_val *labels = json_path(spec, "template.metadata.labels");
    if (labels)
        json_set(&d.b, d.meta, STR("labels"), json_copy(&d.b, labels));
    json_set(&d.b, json_mut_object(&d.b, d.meta, STR("labels")), LABEL_TEMPLATE_HASH,
             json_new_str(&d.b, hash));
    json_set(&d.b, json_mut_object(&d.b, template_meta, STR("labels")), LABEL_TEMPLATE_HASH,
             json_new_str(&d.b, hash));
    json_set(&d.b, json_mut_object(&d.b, selector, STR("matchLabels")), LABEL_TEMPLATE_HASH,
             json_new_str(&d.b, hash));
    json_set(&d.b, json_mut_object(&d.b, d.meta, STR("annotations")), ANNOTATION_REVISION,
             json_new_str(&d.b, buf_str(&revision)));
    json_set_str(&d.b, d.meta, "name", buf_str(&name));
    json_set_i64(&d.b, d.spec, "replicas", replicas);
    json_set_i64(&d.b, d.spec, "minReadySeconds", deployment_of(object)->spec.min_ready_s);
    json_set(&d.b, d.spec, STR("selector"), selector);
    json_set(&d.b, d.spec, STR("template"), template);
    json_write_mut(d.root, &json);
    draft_done(&d);
    doc_done(&doc);
    maker_create(w, m, WATCH_REPLICA_SETS, buf_str(&json), NULL);
}

/* --- roll-outs --- */

struct roll {
    int64_t replicas, surge, unavailable;
    bool recreate;
};

static struct roll roll_of(const struct deployment *d)
{
    static const struct int_or_str quarter = { .str = STR("25%"), .set = true };
    const struct rolling_update *rolling = d->spec.strategy.maybe_rolling;
    struct roll r = { .replicas = d->spec.replicas.set ? d->spec.replicas.value : 1,
                      .recreate = d->spec.strategy.type == STRATEGY_RECREATE };
    if (r.recreate) {
        r.unavailable = r.replicas;
        return r;
    }
    r.surge = int_or_percent_of(rolling && rolling->max_surge.set ? &rolling->max_surge : &quarter,
                                r.replicas, true);
    r.unavailable = int_or_percent_of(
        rolling && rolling->max_unavailable.set ? &rolling->max_unavailable : &quarter, r.replicas,
        false);
    if (!r.surge && !r.unavailable)
        r.unavailable = 1; /* or it could not take a step */
    return r;
}

/* How many pods the new set may have now. */
static int64_t new_size(const struct sets *s, const struct roll *r)
{
    int64_t have = s->maybe_new ? set_wants(s->maybe_new) : 0;
    int64_t room = r->replicas + r->surge - s->spec_total;
    if (have >= r->replicas)
        return r->replicas;
    room = room < r->replicas - have ? room : r->replicas - have;
    return room > 0 ? have + room : have;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void shrink_old(struct workloads *w, struct maker *m, const struct sets *s,
                       const struct roll *r)
{
    const struct replica_set *new = s->maybe_new;
    int64_t new_unavailable = new ? set_wants(new) - new->status.available_replicas : 0;
    int64_t may_go = s->spec_total - (r->replicas - r->unavailable) - new_unavailable;
    int64_t spare = s->available - (r->replicas - r->unavailable);
    for (size_t i = 0; i < s->count && may_go > 0; i++) {
        const struct replica_set *set = s->items[i];
        if (set == new)
            continue;
        int64_t wants = set_wants(set);
        int64_t sick = least(wants - set->status.available_replicas, may_go);
        sick = sick > 0 ? sick : 0;
        int64_t well = least(least(wants - sick, may_go - sick), spare);
        well = well > 0 ? well : 0;
        set_scale(w, m, set, wants - sick - well);
        may_go -= sick + well;
        spare -= well;
    }
}

static void recreate(struct workloads *w, struct maker *m, const struct sets *s,
                     const struct roll *r)
{
    int64_t old_pods = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->items[i] == s->maybe_new)
            continue;
        set_scale(w, m, s->items[i], 0);
        struct maker *of = str_table_get(&w->makers, s->items[i]->object.meta.uid);
        struct object_list pods = { 0 };
        if (of)
            made_list(w, of, WATCH_PODS, &pods); /* those that are about to end are still there */
        old_pods += (int64_t)pods.count;
        object_list_done(&pods);
    }
    if (old_pods)
        return;
    if (s->maybe_new)
        set_scale(w, m, s->maybe_new, r->replicas);
    else
        set_create(w, m, s, r->replicas);
}

static void roll(struct workloads *w, struct maker *m, const struct sets *s, const struct roll *r)
{
    int64_t size = new_size(s, r);
    if (!s->maybe_new) {
        set_create(w, m, s, size);
        return; /* goes on when it is there */
    }
    set_scale(w, m, s->maybe_new, size);
    shrink_old(w, m, s, r);
}

/* A paused Deployment keeps its template and still follows its replicas. */
static void scale_only(struct workloads *w, struct maker *m, const struct sets *s,
                       const struct roll *r)
{
    size_t active = 0;
    const struct replica_set *set = s->count ? s->items[s->count - 1] : NULL;
    for (size_t i = 0; i < s->count; i++) {
        active += set_wants(s->items[i]) > 0;
        if (set_wants(s->items[i]) > 0)
            set = s->items[i];
    }
    if (set && active <= 1)
        set_scale(w, m, set, r->replicas);
}

static void forget_old(struct workloads *w, struct maker *m, const struct sets *s)
{
    int64_t old = 0;
    for (size_t i = 0; i < s->count; i++)
        old += s->items[i] != s->maybe_new;
    for (size_t i = 0; i < s->count && old > m->history; i++) {
        const struct replica_set *set = s->items[i];
        if (set == s->maybe_new)
            continue;
        old--;
        if (set_wants(set) == 0 && set->status.replicas == 0)
            maker_remove(w, m, &set->object);
    }
}

static void write_status(struct workloads *w, struct maker *m, const struct sets *s)
{
    const struct deployment_status *was = &deployment_of(m->maybe_object)->status;
    struct deployment_status is = { .observed_generation = m->maybe_object->meta.generation,
                                    .replicas = s->pods,
                                    .available_replicas = s->available };
    for (size_t i = 0; i < s->count; i++)
        is.ready_replicas += s->items[i]->status.ready_replicas;
    is.updated_replicas = s->maybe_new ? s->maybe_new->status.replicas : 0;
    is.unavailable_replicas = s->spec_total - s->available > 0 ? s->spec_total - s->available : 0;
    if (was->observed_generation == is.observed_generation && was->replicas == is.replicas &&
        was->updated_replicas == is.updated_replicas && was->ready_replicas == is.ready_replicas &&
        was->available_replicas == is.available_replicas &&
        was->unavailable_replicas == is.unavailable_replicas)
        return;
    AUTO_BUF patch = { 0 };
    buf_addf(&patch,
             "{\"status\":{\"observedGeneration\":%lld,\"replicas\":%lld,\"updatedReplicas\":%lld,"
             "\"readyReplicas\":%lld,\"availableReplicas\":%lld,\"unavailableReplicas\":%lld}}",
             (long long)is.observed_generation, (long long)is.replicas,
             (long long)is.updated_replicas, (long long)is.ready_replicas,
             (long long)is.available_replicas, (long long)is.unavailable_replicas);
    maker_status(w, m, buf_str(&patch));
}

void deployment_sync(struct workloads *w, struct maker *m)
{
    const struct deployment *d = deployment_of(m->maybe_object);
    struct object_list made = { 0 };
    made_list(w, m, WATCH_REPLICA_SETS, &made);
    struct sets s = sets_of(w, m, &made);
    struct roll r = roll_of(d);
    if (d->spec.paused) {
        scale_only(w, m, &s, &r);
    } else {
        set_make_newest(w, m, &s);
        if (r.recreate)
            recreate(w, m, &s, &r);
        else
            roll(w, m, &s, &r);
        forget_old(w, m, &s);
    }
    write_status(w, m, &s);
    object_list_done(&made);
}

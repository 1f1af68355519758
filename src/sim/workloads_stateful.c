/* StatefulSets: NAME-0, NAME-1, ..., each with its own claims, which stay when it goes.
 *
 * OrderedReady takes one step at a time: the first ordinal that is missing is made, and the first that
 * is not ready is waited for; what is too many goes from the highest down. Parallel does not wait. A new
 * template is taken from the highest ordinal down to the partition, one pod after the other.
 */
#include "sim/workloads_impl.h"

static void add_claim_volume(struct draft *d, json_mut *volumes, struct str template)
{
    AUTO_BUF claim = { 0 };
    json_mut *volume = json_new_object(&d->b);
    buf_addf(&claim, "%.*s-%.*s", STR_ARG(template), STR_ARG(d->name));
    json_set_str(&d->b, volume, "name", template);
    json_set_str(&d->b, json_mut_object(&d->b, volume, STR("persistentVolumeClaim")), "claimName",
                 buf_str(&claim));
    json_push(&d->b, volumes, volume);
}

/* Claims of the set take the place of the template's volumes of the same name. */
static void set_volumes(struct draft *d, const json_val *root)
{
    const json_val *claims = json_path(root, "spec.volumeClaimTemplates");
    if (!json_count(claims))
        return;
    json_mut *volumes = json_new_array(&d->b);
    json_each_item(json_path(root, "spec.template.spec.volumes"), volume) {
        bool replaced = false;
        json_each_item(claims, claim)
            replaced |= str_eq(json_str(json_path(claim, "metadata.name")),
                               json_str(json_get(volume, STR("name"))));
        if (!replaced)
            json_push(&d->b, volumes, json_copy(&d->b, volume));
    }
    json_each_item(claims, claim)
        add_claim_volume(d, volumes, json_str(json_path(claim, "metadata.name")));
    json_set(&d->b, d->spec, STR("volumes"), volumes);
}

static void cast_claim(struct maker *m, struct str text, const json_val *root,
                       const json_val *template)
{
    struct draft d;
    struct mould mould = { 0 };
    AUTO_BUF name = { 0 };
    const json_val *labels = json_path(root, "spec.selector.matchLabels");
    draft_init(&d, text, m->maybe_object, template);
    json_mut_remove(d.meta, STR("ownerReferences")); /* a claim outlives its set */
    buf_addf(&name, "%.*s-%.*s", STR_ARG(json_str(json_path(template, "metadata.name"))),
             STR_ARG(d.name));
    json_set_str(&d.b, d.meta, "name", buf_str(&name));
    json_each_member(labels, key, value)
        json_set(&d.b, d.labels, json_key(key), json_copy(&d.b, value));
    draft_cast(&d, &mould);
    draft_done(&d);
    vec_push(&m->claims, mould);
}

void stateful_set_read(struct workloads *w KV_UNUSED, struct maker *m, struct str text,
                       const json_val *root)
{
    const json_val *template = json_path(root, "spec.template");
    const json_val *strategy = json_path(root, "spec.updateStrategy");
    struct draft d;
    template_hash(template, STR(""), m->hash);
    m->partition = 0;
    json_i64(json_path(strategy, "rollingUpdate.partition"), &m->partition);
    m->on_delete = str_eqz(json_str(json_get(strategy, STR("type"))), "OnDelete");

    draft_init(&d, text, m->maybe_object, template);
    json_set(&d.b, d.labels, STR("statefulset.kubernetes.io/pod-name"), json_new_str(&d.b, d.name));
    json_set(&d.b, d.labels, STR("apps.kubernetes.io/pod-index"), json_new_str(&d.b, d.detail));
    json_set(&d.b, d.labels, LABEL_REVISION_HASH, json_new_str(&d.b, str_of(m->hash)));
    json_set_str(&d.b, d.spec, "hostname", d.name);
    struct str service = stateful_set_of(m->maybe_object)->spec.service_name;
    if (service.len)
        json_set_str(&d.b, d.spec, "subdomain", service);
    set_volumes(&d, root);
    draft_cast(&d, &m->mould);
    draft_done(&d);

    vec_each(&m->claims, struct mould, claim)
        mould_done(claim);
    vec_clear(&m->claims);
    json_each_item(json_path(root, "spec.volumeClaimTemplates"), claim)
        cast_claim(m, text, root, claim);
}

/* --- its pods --- */

struct replicas {
    int64_t first, count;
    const struct pod **items; /* per ordinal from `first`: NULL, it is not there */
    const struct pod **rest;  /* beyond them, the highest ordinal first */
    size_t rest_count;
};

static int64_t ordinal_of(const struct maker *m, const struct pod *pod)
{
    struct str name = pod->object.meta.name, base = m->maybe_object->meta.name;
    int64_t ordinal;
    if (!str_starts(name, base) || name.len < base.len + 2 || name.p[base.len] != '-' ||
        !str_to_i64(str_sub(name, base.len + 1, name.len), &ordinal) || ordinal < 0)
        return -1;
    return ordinal;
}

static struct replicas replicas_of(struct workloads *w, const struct maker *m,
                                   const struct object_list *made)
{
    const struct stateful_set_spec *spec = &stateful_set_of(m->maybe_object)->spec;
    struct replicas r = { .first = spec->ordinals.start,
                          .count = spec->replicas.set ? spec->replicas.value : 1 };
    r.items = arena_array(&w->scratch, const struct pod *, (size_t)r.count);
    r.rest = arena_array(&w->scratch, const struct pod *, made->count);
    for (size_t i = 0; i < made->count; i++) {
        const struct pod *pod = pod_of(made->items[i]);
        int64_t ordinal = ordinal_of(m, pod);
        if (ordinal < 0)
            continue;
        if (ordinal >= r.first && ordinal < r.first + r.count) {
            r.items[ordinal - r.first] = pod;
            continue;
        }
        size_t at = r.rest_count++;
        for (; at && ordinal_of(m, r.rest[at - 1]) < ordinal; at--)
            r.rest[at] = r.rest[at - 1];
        r.rest[at] = pod;
    }
    return r;
}

static bool is_current(const struct maker *m, const struct pod *pod)
{
    return str_eqz(str_map_get(&pod->object.meta.labels, LABEL_REVISION_HASH), m->hash);
}

static bool is_healthy(struct workloads *w, struct maker *m, const struct pod *pod)
{
    return pod_is_active(w, pod) &&
           pod_is_available(w, m, pod, stateful_set_of(m->maybe_object)->spec.min_ready_s);
}

static bool create(struct workloads *w, struct maker *m, int64_t ordinal)
{
    AUTO_BUF name = { 0 }, detail = { 0 }, json = { 0 };
    const struct meta *meta = &m->maybe_object->meta;
    buf_addf(&detail, "%lld", (long long)ordinal);
    buf_addf(&name, "%.*s-%lld", STR_ARG(meta->name), (long long)ordinal);
    vec_each(&m->claims, struct mould, claim) {
        struct err err = { 0 };
        buf_clear(&json);
        mould_fill(claim, buf_str(&name), buf_str(&detail), &json);
        if (store_create(w->store, &pvc_kind, meta->namespace_, buf_str(&json), NULL, &err) < 0 &&
            err.kind != ERR_EXISTS) {
            maker_due(m, clock_mono_ns(w->clock) + MAKER_RETRY_NS);
            return false;
        }
    }
    buf_clear(&json);
    mould_fill(&m->mould, buf_str(&name), buf_str(&detail), &json);
    return maker_create(w, m, WATCH_PODS, buf_str(&json), NULL);
}

/* Every ordinal is there and healthy. `ordered`: false as soon as one has to be waited for. */
static bool fill(struct workloads *w, struct maker *m, const struct replicas *r, bool ordered)
{
    bool complete = true;
    for (int64_t i = 0; i < r->count; i++) {
        const struct pod *pod = r->items[i];
        if (!pod)
            create(w, m, r->first + i);
        else if (pod_is_terminal(pod) && pod_is_terminating(pod) == false &&
                 !str_table_has(&w->going, pod->object.meta.uid))
            pod_remove(w, m, pod); /* and is made again when it is gone */
        else if (is_healthy(w, m, pod))
            continue;
        complete = false;
        if (ordered)
            return false;
    }
    return complete;
}

/* True: nothing is left beyond the replicas. */
static bool shrink(struct workloads *w, struct maker *m, const struct replicas *r, bool ordered)
{
    for (size_t i = 0; i < r->rest_count; i++) {
        const struct pod *pod = r->rest[i];
        if (!pod_is_terminating(pod) && !str_table_has(&w->going, pod->object.meta.uid))
            pod_remove(w, m, pod);
        if (ordered)
            return false;
    }
    return r->rest_count == 0;
}

static void update(struct workloads *w, struct maker *m, const struct replicas *r)
{
    for (int64_t i = r->count - 1; i >= 0 && r->first + i >= m->partition; i--) {
        const struct pod *pod = r->items[i];
        if (pod && pod_is_active(w, pod) && !is_current(m, pod)) {
            pod_remove(w, m, pod);
            return;
        }
        if (!pod || !is_healthy(w, m, pod))
            return;
    }
}

static void write_status(struct workloads *w, struct maker *m, const struct object_list *made)
{
    const struct stateful_set *set = stateful_set_of(m->maybe_object);
    const struct stateful_set_status *was = &set->status;
    struct stateful_set_status is = { .observed_generation = set->object.meta.generation };
    for (size_t i = 0; i < made->count; i++) {
        const struct pod *pod = pod_of(made->items[i]);
        if (pod_is_terminal(pod))
            continue;
        is.replicas++;
        is.ready_replicas += pod_is_ready(pod);
        is.available_replicas += pod_is_available(w, m, pod, set->spec.min_ready_s);
        is.updated_replicas += is_current(m, pod);
    }
    is.current_replicas =
        is.updated_replicas == is.replicas ? is.replicas : is.replicas - is.updated_replicas;
    if (was->observed_generation == is.observed_generation && was->replicas == is.replicas &&
        was->ready_replicas == is.ready_replicas &&
        was->available_replicas == is.available_replicas &&
        was->updated_replicas == is.updated_replicas &&
        was->current_replicas == is.current_replicas)
        return;
    AUTO_BUF patch = { 0 };
    buf_addf(&patch,
             "{\"status\":{\"observedGeneration\":%lld,\"replicas\":%lld,\"readyReplicas\":%lld,"
             "\"availableReplicas\":%lld,\"updatedReplicas\":%lld,\"currentReplicas\":%lld}}",
             (long long)is.observed_generation, (long long)is.replicas,
             (long long)is.ready_replicas, (long long)is.available_replicas,
             (long long)is.updated_replicas, (long long)is.current_replicas);
    maker_status(w, m, buf_str(&patch));
}

void stateful_set_sync(struct workloads *w, struct maker *m)
{
    const struct stateful_set *set = stateful_set_of(m->maybe_object);
    bool ordered = set->spec.pod_management != POD_MANAGEMENT_PARALLEL;
    struct object_list made = { 0 };
    made_list(w, m, WATCH_PODS, &made);
    struct replicas r = replicas_of(w, m, &made);
    write_status(w, m, &made);
    if ((fill(w, m, &r, ordered) || !ordered) && (shrink(w, m, &r, ordered) || !ordered) &&
        !m->on_delete)
        update(w, m, &r);
    object_list_done(&made);
}

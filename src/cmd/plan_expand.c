/* Workloads become pods, as their controllers would make them.
 *
 * Pods that are there are counted first, each for whoever controls it and, behind a ReplicaSet, for
 * its Deployment. Then every workload gets the pods that it lacks:
 *
 *   Deployment, ReplicaSet   replicas less those that are active; numbered from 0
 *   StatefulSet              every ordinal that is not there, and its claims
 *   Job                      parallelism, at most what is left of completions, less the active ones
 *
 * Made pods share everything with their template but the name; labels that controllers add are added
 * where selectors and matchLabelKeys may ask for them.
 */
#include "cmd/plan_inner.h"

#include "api/kinds.h"

#include <inttypes.h>

#define LABEL_TEMPLATE_HASH STR("pod-template-hash")
#define LABEL_COMPLETION_INDEX STR("batch.kubernetes.io/job-completion-index")

struct expansion {
    struct planning *p;
    /* By "Kind/namespace/name": how many of its pods there are; for a Job also "active" and
     * "succeeded" ones by their index behind that. */
    struct str_table active, succeeded;
    struct str_table workloads;     /* the same key: index + 1 */
    struct str_table makers;        /* the same key: to be expanded */
    struct str_table replica_sets;  /* "ReplicaSet/namespace/name" */
    struct str_table current;       /* "Deployment/namespace/name": its newest ReplicaSet */
    struct str_table names, claims; /* "namespace/name" that are taken */
    struct buf key;
};

static const struct pod_status pending = { .phase = PHASE_PENDING };

/* --- keys and counts --- */

/* Good until the next one. */
static struct str key_of(struct expansion *x, struct str kind, struct str namespace_,
                         struct str name)
{
    buf_clear(&x->key);
    buf_addf(&x->key, "%.*s/%.*s/%.*s", STR_ARG(kind), STR_ARG(namespace_), STR_ARG(name));
    return buf_str(&x->key);
}

static struct str key_of_object(struct expansion *x, const struct object *object)
{
    return key_of(x, str_of(object->kind->name), object->meta.namespace_, object->meta.name);
}

static struct str place_of(struct expansion *x, struct str namespace_, struct str name)
{
    buf_clear(&x->key);
    buf_addf(&x->key, "%.*s/%.*s", STR_ARG(namespace_), STR_ARG(name));
    return buf_str(&x->key);
}

static int64_t count_of(const struct str_table *t, struct str key)
{
    return (int64_t)(uintptr_t)str_table_get(t, key);
}

static void count_one(struct str_table *t, struct str key)
{
    str_table_put(t, key, (void *)((uintptr_t)str_table_get(t, key) + 1));
}

static uint32_t intern_workload(struct expansion *x, struct plan_workload w)
{
    struct plan_objects *o = &x->p->objects;
    struct str key = key_of(x, w.kind, w.namespace_, w.name);
    uintptr_t found = (uintptr_t)str_table_get(&x->workloads, key);
    if (found)
        return (uint32_t)(found - 1);
    vec_push(&o->workloads, w);
    str_table_put(&x->workloads, key, (void *)(uintptr_t)o->workloads.count);
    return (uint32_t)(o->workloads.count - 1);
}

/* --- pods that are there --- */

static bool is_kind(const struct owner_ref *owner, const char *kind)
{
    return owner && str_eqz(owner->kind, kind);
}

/* The Deployment behind a ReplicaSet: as the set says, or by its name if it is not there. Empty: none. */
static struct str deployment_behind(struct expansion *x, const struct pod *pod,
                                    const struct owner_ref *owner)
{
    if (!is_kind(owner, "ReplicaSet"))
        return STR("");
    const struct replica_set *set = str_table_get(
        &x->replica_sets, key_of(x, owner->kind, pod->object.meta.namespace_, owner->name));
    const struct owner_ref *above = set ? meta_controller(&set->object.meta) : NULL;
    if (set)
        return is_kind(above, "Deployment") ? above->name : STR("");
    struct str hash = str_map_get(&pod->object.meta.labels, LABEL_TEMPLATE_HASH);
    if (!hash.len || !str_ends(owner->name, hash) || owner->name.len < hash.len + 2)
        return STR("");
    return str_sub(owner->name, 0, owner->name.len - hash.len - 1);
}

static struct plan_workload workload_of_pod(const struct pod *pod, const struct owner_ref *owner,
                                            struct str deployment)
{
    const struct meta *meta = &pod->object.meta;
    if (deployment.len)
        return (struct plan_workload){ STR("Deployment"), meta->namespace_, deployment, false };
    if (owner)
        return (struct plan_workload){ owner->kind, meta->namespace_, owner->name, false };
    return (struct plan_workload){ STR("Pod"), meta->namespace_, meta->name, false };
}

/* As controllers count: what has ended or is about to end is no longer one of theirs. */
static void count_pod(struct expansion *x, const struct pod *pod, const struct owner_ref *owner,
                      struct str deployment)
{
    struct str namespace_ = pod->object.meta.namespace_;
    bool has_succeeded = pod->status->phase == PHASE_SUCCEEDED;
    bool is_active = !pod_is_terminal(pod) && !pod_is_terminating(pod);
    struct str_table *counts = is_active ? &x->active : &x->succeeded;
    if (!owner || (!is_active && !has_succeeded))
        return;
    count_one(counts, key_of(x, owner->kind, namespace_, owner->name));
    if (deployment.len)
        count_one(counts, key_of(x, STR("Deployment"), namespace_, deployment));
    struct str index = str_map_get(&pod->object.meta.labels, LABEL_COMPLETION_INDEX);
    if (index.len) {
        key_of(x, owner->kind, namespace_, owner->name);
        buf_addf(&x->key, "/%.*s", STR_ARG(index));
        count_one(counts, buf_str(&x->key));
    }
}

/* A stateful set's pod that has ended is replaced by one of the same name. */
static bool is_replaced(struct expansion *x, const struct pod *pod, const struct owner_ref *owner)
{
    return is_kind(owner, "StatefulSet") && pod_is_terminal(pod) &&
           str_table_has(&x->makers,
                         key_of(x, owner->kind, pod->object.meta.namespace_, owner->name));
}

static void own_pods(struct expansion *x)
{
    struct plan_objects *o = &x->p->objects;
    size_t kept = 0;
    for (size_t i = 0; i < o->pods.count; i++) {
        const struct pod *pod = o->pods.items[i];
        const struct meta *meta = &pod->object.meta;
        const struct owner_ref *owner = meta_controller(meta);
        if (is_replaced(x, pod, owner))
            continue;
        struct str deployment = deployment_behind(x, pod, owner);
        count_pod(x, pod, owner, deployment);
        o->pods.items[kept++] = pod;
        vec_push(&o->pod_workloads, intern_workload(x, workload_of_pod(pod, owner, deployment)));
        str_table_put(&x->names, place_of(x, meta->namespace_, meta->name), x);
    }
    o->pods.count = kept;
}

/* --- pods that are made --- */

static struct str_map labels_with(struct arena *arena, const struct str_map *base,
                                  const struct str_pair *more, uint32_t count)
{
    struct str_pair *items = arena_array(arena, struct str_pair, (size_t)base->count + count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < base->count; i++) {
        bool replaced = false;
        for (uint32_t k = 0; k < count; k++)
            replaced |= str_eq(base->items[i].key, more[k].key);
        if (!replaced)
            items[n++] = base->items[i];
    }
    for (uint32_t k = 0; k < count; k++)
        items[n++] = more[k];
    qsort(items, n, sizeof *items, str_pair_order);
    return (struct str_map){ items, n };
}

static void set_owner(struct arena *arena, struct pod *pod, const char *api_version,
                      const char *kind, struct str name, struct str uid)
{
    struct owner_ref *owner = arena_new(arena, struct owner_ref);
    *owner = (struct owner_ref){ .api_version = str_of(api_version),
                                 .kind = str_of(kind),
                                 .name = name,
                                 .uid = uid,
                                 .controller = true };
    pod->object.meta.owners.items = owner;
    pod->object.meta.owners.count = 1;
}

/* What all pods of a template have in common. */
static struct pod pod_of_template(const struct object *maker, const struct pod_template *template)
{
    struct pod pod = {
        .object = { .kind = &pod_kind,
                    .meta = { .namespace_ = maker->meta.namespace_,
                              .uid = STR(""),
                              .labels = template->meta.labels,
                              .annotations = template->meta.annotations } },
        .spec = &template->spec,
        .status = &pending,
        .maybe_affinity = template->spec.affinity,
        .node_name = template->spec.node_name,
    };
    pod.volumes.items = template->spec.volumes.items;
    pod.volumes.count = template->spec.volumes.count;
    return pod;
}

static void add_pod(struct expansion *x, const struct pod *pod, uint32_t workload)
{
    struct plan_objects *o = &x->p->objects;
    struct pod *made = arena_new(&x->p->arena, struct pod);
    *made = *pod;
    rc_init(&made->object.rc); /* the arena holds it */
    vec_push(&o->pods, made);
    vec_push(&o->pod_workloads, workload);
    str_table_put(&x->names, place_of(x, pod->object.meta.namespace_, pod->object.meta.name), x);
}

/* The first NAME-n from `number` on that nobody has. */
static struct str free_name(struct expansion *x, const struct object *maker, int64_t *number)
{
    for (;; ++*number) {
        AUTO_BUF name = { 0 };
        buf_addf(&name, "%.*s-%" PRId64, STR_ARG(maker->meta.name), *number);
        if (!str_table_has(&x->names, place_of(x, maker->meta.namespace_, buf_str(&name))))
            return arena_str(&x->p->arena, buf_str(&name));
    }
}

static uint32_t workload_of_maker(struct expansion *x, const struct object *maker)
{
    const struct owner_ref *owner = meta_controller(&maker->meta);
    struct plan_workload w = { .kind = str_of(maker->kind->name),
                               .namespace_ = maker->meta.namespace_,
                               .name = maker->meta.name };
    if (maker->kind == &replica_set_kind && is_kind(owner, "Deployment")) {
        w.kind = owner->kind;
        w.name = owner->name;
    }
    return intern_workload(x, w);
}

/* --- Deployments and ReplicaSets --- */

/* The label that tells the pods of one revision from those of others: that of the newest ReplicaSet,
 * or one of our own. */
static struct str template_hash(struct expansion *x, const struct object *deployment)
{
    struct str key = key_of_object(x, deployment);
    const struct replica_set *current = str_table_get(&x->current, key);
    struct str hash = STR_NONE;
    if (current)
        hash = str_map_get(&current->object.meta.labels, LABEL_TEMPLATE_HASH);
    if (hash.len)
        return hash;
    return arena_strf(&x->p->arena, "%010" PRIx64, kv_hash(key.p, key.len) & 0xffffffffff);
}

static void expand_replicas(struct expansion *x, const struct object *maker,
                            const struct workload *w)
{
    struct arena *arena = &x->p->arena;
    struct pod pod = pod_of_template(maker, w->maybe_template);
    if (maker->kind == &deployment_kind) {
        struct str hash = template_hash(x, maker);
        struct str_pair label = { LABEL_TEMPLATE_HASH, hash };
        pod.object.meta.labels = labels_with(arena, &pod.object.meta.labels, &label, 1);
        struct str set = arena_strf(arena, "%.*s-%.*s", STR_ARG(maker->meta.name), STR_ARG(hash));
        set_owner(arena, &pod, "apps/v1", "ReplicaSet", set, STR(""));
    } else {
        set_owner(arena, &pod, "apps/v1", "ReplicaSet", maker->meta.name, maker->meta.uid);
    }
    int64_t missing = w->replicas - count_of(&x->active, key_of_object(x, maker));
    uint32_t workload = workload_of_maker(x, maker);
    int64_t number = 0;
    for (int64_t i = 0; i < missing; i++) {
        pod.object.meta.name = free_name(x, maker, &number);
        add_pod(x, &pod, workload);
    }
}

/* --- StatefulSets --- */

static void add_claim(struct expansion *x, const struct object *maker, struct str name,
                      const struct pvc_template *template)
{
    if (str_table_has(&x->claims, place_of(x, maker->meta.namespace_, name)))
        return;
    struct pvc *pvc = arena_new(&x->p->arena, struct pvc);
    *pvc = (struct pvc){ .object = { .kind = &pvc_kind,
                                     .meta = { .name = name,
                                               .namespace_ = maker->meta.namespace_,
                                               .uid = STR(""),
                                               .labels = template->meta.labels,
                                               .annotations = template->meta.annotations } },
                         .spec = template->spec,
                         .status = { .phase = PVC_PENDING } };
    vec_push(&x->p->objects.pvcs, pvc);
    str_table_put(&x->claims, place_of(x, maker->meta.namespace_, name), x);
}

/* The template's volumes and one for each claim; of equal names the claim wins. */
static void add_claims(struct expansion *x, const struct stateful_set *set, int64_t ordinal,
                       struct pod *pod)
{
    struct arena *arena = &x->p->arena;
    const struct pod_spec *spec = pod->spec;
    uint32_t claims = set->spec.claim_templates.count, count = 0;
    struct volume *volumes = arena_array(arena, struct volume, spec->volumes.count + claims);
    for (uint32_t c = 0; c < claims; c++) {
        const struct pvc_template *template = &set->spec.claim_templates.items[c];
        struct str name = arena_strf(arena, "%.*s-%.*s-%" PRId64, STR_ARG(template->meta.name),
                                     STR_ARG(set->object.meta.name), ordinal);
        volumes[count++] =
            (struct volume){ .name = template->meta.name, .claim = { .name = name } };
        add_claim(x, &set->object, name, template);
    }
    for (uint32_t v = 0; v < spec->volumes.count; v++) {
        bool replaced = false;
        for (uint32_t c = 0; c < claims; c++)
            replaced |= str_eq(volumes[c].name, spec->volumes.items[v].name);
        if (!replaced)
            volumes[count++] = spec->volumes.items[v];
    }
    pod->volumes.items = volumes;
    pod->volumes.count = count;
}

static void expand_stateful_set(struct expansion *x, const struct object *maker,
                                const struct workload *w)
{
    struct arena *arena = &x->p->arena;
    const struct pod common = pod_of_template(maker, w->maybe_template);
    uint32_t workload = workload_of_maker(x, maker);
    for (int64_t i = 0; i < w->replicas; i++) {
        struct pod pod = common;
        int64_t ordinal = w->first + i;
        struct str name = arena_strf(arena, "%.*s-%" PRId64, STR_ARG(maker->meta.name), ordinal);
        if (str_table_has(&x->names, place_of(x, maker->meta.namespace_, name)))
            continue;
        struct str_pair labels[] = {
            { STR("apps.kubernetes.io/pod-index"), arena_strf(arena, "%" PRId64, ordinal) },
            { STR("statefulset.kubernetes.io/pod-name"), name },
        };
        pod.object.meta.name = name;
        pod.object.meta.labels =
            labels_with(arena, &common.object.meta.labels, labels, KV_COUNT_OF(labels));
        set_owner(arena, &pod, "apps/v1", "StatefulSet", maker->meta.name, maker->meta.uid);
        add_claims(x, stateful_set_of(maker), ordinal, &pod);
        add_pod(x, &pod, workload);
    }
}

/* --- Jobs --- */

/* Of what the Job wants by its status, less what its pods show. */
static int64_t job_lacks(struct expansion *x, const struct job *job, const struct workload *w)
{
    struct str key = key_of_object(x, &job->object);
    int64_t succeeded = count_of(&x->succeeded, key), wanted = w->replicas;
    struct maybe_int total = job->spec.completions;
    if (total.set && total.value - succeeded < wanted)
        wanted = total.value - succeeded;
    return wanted - count_of(&x->active, key);
}

static bool index_is_done(struct expansion *x, const struct object *maker, int64_t index)
{
    key_of_object(x, maker);
    buf_addf(&x->key, "/%" PRId64, index);
    return str_table_has(&x->active, buf_str(&x->key)) ||
           str_table_has(&x->succeeded, buf_str(&x->key));
}

static void expand_job(struct expansion *x, const struct object *maker, const struct workload *w)
{
    struct arena *arena = &x->p->arena;
    const struct job *job = job_of(maker);
    bool indexed = job->spec.completion_mode == COMPLETION_INDEXED;
    struct pod pod = pod_of_template(maker, w->maybe_template);
    struct str_pair labels[] = {
        { STR("batch.kubernetes.io/job-name"), maker->meta.name },
        { STR("job-name"), maker->meta.name },
    };
    pod.object.meta.labels =
        labels_with(arena, &pod.object.meta.labels, labels, KV_COUNT_OF(labels));
    set_owner(arena, &pod, "batch/v1", "Job", maker->meta.name, maker->meta.uid);
    const struct str_map common = pod.object.meta.labels;
    uint32_t workload = workload_of_maker(x, maker);
    int64_t number = 0;
    for (int64_t missing = job_lacks(x, job, w); missing > 0; missing--) {
        while (indexed && index_is_done(x, maker, number))
            number++;
        pod.object.meta.name = free_name(x, maker, &number);
        if (indexed) {
            struct str_pair label = { LABEL_COMPLETION_INDEX,
                                      arena_strf(arena, "%" PRId64, number) };
            pod.object.meta.labels = labels_with(arena, &common, &label, 1);
        }
        add_pod(x, &pod, workload);
        number++;
    }
}

/* --- all of them --- */

/* Stateful sets first: their pods' names are given, others take what is free. */
static int by_maker(const void *va, const void *vb)
{
    const struct object *a = *(const struct object *const *)va;
    const struct object *b = *(const struct object *const *)vb;
    bool a_first = a->kind == &stateful_set_kind, b_first = b->kind == &stateful_set_kind;
    if (a_first != b_first)
        return a_first ? -1 : 1;
    int c = str_cmp(a->meta.namespace_, b->meta.namespace_);
    c = c ? c : str_cmp(a->meta.name, b->meta.name);
    return c ? c : str_cmp(str_of(a->kind->name), str_of(b->kind->name));
}

/* A ReplicaSet whose Deployment is there does what that says. */
static bool is_led(struct expansion *x, const struct object *maker)
{
    const struct owner_ref *owner = meta_controller(&maker->meta);
    return maker->kind == &replica_set_kind && is_kind(owner, "Deployment") &&
           str_table_has(&x->makers, key_of(x, owner->kind, maker->meta.namespace_, owner->name));
}

static int expand(struct expansion *x, const struct object *maker)
{
    struct workload w;
    if (!workload_of(maker, &w) || !w.maybe_template || w.replicas <= 0 || maker->meta.deleted_us ||
        is_led(x, maker))
        return EXIT_DONE;
    if (w.replicas > PLAN_PODS_MAX - (int64_t)x->p->objects.pods.count)
        return print_complaint(
            "plan", EXIT_NO, "%s/%.*s asks for %" PRId64 " pods; at most %d can be planned for",
            maker->kind->name, STR_ARG(maker->meta.name), w.replicas, PLAN_PODS_MAX);
    if (maker->kind == &stateful_set_kind)
        expand_stateful_set(x, maker, &w);
    else if (maker->kind == &job_kind)
        expand_job(x, maker, &w);
    else
        expand_replicas(x, maker, &w);
    return EXIT_DONE;
}

static int64_t revision_of(const struct replica_set *set)
{
    int64_t revision = 0;
    str_to_i64(str_map_get(&set->object.meta.annotations, STR("deployment.kubernetes.io/revision")),
               &revision);
    return revision;
}

static void know(struct expansion *x)
{
    struct plan_objects *o = &x->p->objects;
    vec_each(&o->makers, const struct object *, maker)
        str_table_put(&x->makers, key_of_object(x, *maker), (void *)*maker);
    vec_each(&o->pvcs, const struct pvc *, pvc)
        str_table_put(&x->claims,
                      place_of(x, (*pvc)->object.meta.namespace_, (*pvc)->object.meta.name), x);
    vec_each(&o->replica_sets, const struct replica_set *, set) {
        const struct meta *meta = &(*set)->object.meta;
        const struct owner_ref *owner = meta_controller(meta);
        str_table_put(&x->replica_sets, key_of_object(x, &(*set)->object), (void *)*set);
        if (!is_kind(owner, "Deployment"))
            continue;
        struct str key = key_of(x, owner->kind, meta->namespace_, owner->name);
        const struct replica_set *other = str_table_get(&x->current, key);
        if (!other || revision_of(other) < revision_of(*set))
            str_table_put(&x->current, key, (void *)*set);
    }
}

static void expansion_done(struct expansion *x)
{
    str_table_done(&x->active);
    str_table_done(&x->succeeded);
    str_table_done(&x->workloads);
    str_table_done(&x->makers);
    str_table_done(&x->replica_sets);
    str_table_done(&x->current);
    str_table_done(&x->names);
    str_table_done(&x->claims);
    buf_done(&x->key);
}

int plan_expand(struct planning *p)
{
    struct expansion x = { .p = p };
    struct plan_objects *o = &p->objects;
    int code = EXIT_DONE;

    know(&x);
    own_pods(&x);
    if (o->makers.count)
        qsort(o->makers.items, o->makers.count, sizeof *o->makers.items, by_maker);
    for (size_t i = 0; code == EXIT_DONE && i < o->makers.count; i++)
        code = expand(&x, o->makers.items[i]);
    expansion_done(&x);
    return code;
}

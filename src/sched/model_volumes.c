/* Where a pod's volumes let it run.
 *
 * A claim that is bound is where its volume is. One that is not waits for its first consumer, and
 * then is where its class allows. Each is a list of alternatives; a pod with several volumes needs
 * one of each, so they are multiplied, and what cannot be together is left out.
 *
 * Whatever kube-scheduler would wait for (a claim that is bound at once, a volume that is lost) keeps
 * the pod from being placed: a node would not help it.
 */
#include "sched/model_inner.h"
#include "sched/words.h"

#define ALTERNATIVES_MAX 64

struct claim_use {
    uint32_t number;          /* among shared claims; NONE: of one pod alone */
    uint32_t pods;            /* that use it, pending and bound */
    const struct pod *holder; /* who has it if only one can: a bound pod, else the first in line */
    bool holder_bound;
};

struct storage {
    struct str_table pvcs, pvs, classes; /* by name, claims by "namespace/name" */
    struct str_table uses;               /* claims as above, inline disks by "^driver^id" */
    struct str_table hosts;              /* names that nodes are known by, to the node */
    const struct storage_class *maybe_default;
};

/* --- names --- */

static struct str claim_key(struct compile *c, const struct pod *pod, struct str claim)
{
    buf_clear(&c->text);
    buf_add(&c->text, pod->object.meta.namespace_);
    buf_addc(&c->text, '/');
    buf_add(&c->text, claim);
    return buf_str(&c->text);
}

static bool inline_disk(const struct volume *v, struct str *driver, struct str *id)
{
    const struct {
        const struct volume_id_source *source;
        struct str provisioner;
    } sources[] = { { &v->aws_disk, STR("kubernetes.io/aws-ebs") },
                    { &v->gce_disk, STR("kubernetes.io/gce-pd") },
                    { &v->azure_disk, STR("kubernetes.io/azure-disk") },
                    { &v->cinder_disk, STR("kubernetes.io/cinder") } };
    for (size_t i = 0; i < KV_COUNT_OF(sources); i++) {
        if (sources[i].source->id.p) {
            *driver = storage_driver(sources[i].provisioner);
            *id = sources[i].source->id;
            return true;
        }
    }
    return false;
}

/* What the volume is counted as; STR_NONE for one that kube-scheduler does not count, such as what
 * a CSI driver makes up on the node itself. Good until the next call. */
static struct str use_key(struct compile *c, const struct pod *pod, const struct volume *v)
{
    struct str driver, id, claim = pod_volume_claim(pod, v, &c->scratch);
    if (claim.p)
        return claim_key(c, pod, claim);
    if (!inline_disk(v, &driver, &id))
        return STR_NONE;
    buf_clear(&c->text);
    buf_addf(&c->text, "^%.*s^%.*s", STR_ARG(driver), STR_ARG(id));
    return buf_str(&c->text);
}

uint32_t driver_intern(struct compile *c, struct str name)
{
    uintptr_t found = (uintptr_t)str_table_get(&c->driver_ids, name);
    if (!found) {
        vec_push(&c->drivers, name);
        found = c->drivers.count;
        str_table_put(&c->driver_ids, name, (void *)found);
    }
    return (uint32_t)(found - 1);
}

/* --- the index --- */

/* The newest, then the first by name: as the API server's admission has it. */
static bool beats_default(const struct storage_class *a, const struct storage_class *maybe_b)
{
    if (!maybe_b || a->object.meta.created_us != maybe_b->object.meta.created_us)
        return !maybe_b || a->object.meta.created_us > maybe_b->object.meta.created_us;
    return str_cmp(a->object.meta.name, maybe_b->object.meta.name) < 0;
}

static void objects_index(struct compile *c)
{
    const struct snapshot *snap = c->m->snap;
    struct storage *st = c->storage;
    for (uint32_t i = 0; i < snap->pvc_count; i++) {
        const struct meta *meta = &snap->pvcs[i]->object.meta;
        buf_clear(&c->text);
        buf_addf(&c->text, "%.*s/%.*s", STR_ARG(meta->namespace_), STR_ARG(meta->name));
        str_table_put(&st->pvcs, buf_str(&c->text), (void *)snap->pvcs[i]);
    }
    for (uint32_t i = 0; i < snap->pv_count; i++)
        str_table_put(&st->pvs, snap->pvs[i]->object.meta.name, (void *)snap->pvs[i]);
    for (uint32_t i = 0; i < snap->storage_class_count; i++) {
        const struct storage_class *sc = snap->storage_classes[i];
        str_table_put(&st->classes, sc->object.meta.name, (void *)sc);
        if (storage_class_is_default(sc) && beats_default(sc, st->maybe_default))
            st->maybe_default = sc;
    }
    for (uint32_t i = 0; i < snap->node_count; i++) {
        str_table_put(&st->hosts, snap->nodes[i]->object.meta.name, (void *)snap->nodes[i]);
        str_table_put(&st->hosts, node_hostname(snap->nodes[i]), (void *)snap->nodes[i]);
    }
}

static bool before_in_line(const struct compile *c, const struct pod *a, const struct pod *b)
{
    int64_t x = pod_priority(c, a->spec), y = pod_priority(c, b->spec);
    return x != y ? x > y : pod_order(a, b) < 0;
}

static void use_note(struct compile *c, const struct pod *pod, bool bound, struct str key)
{
    struct claim_use *use = str_table_get(&c->storage->uses, key);
    if (!use) {
        use = arena_new(c->arena, struct claim_use);
        *use = (struct claim_use){ NONE, 0, pod, bound };
        str_table_put(&c->storage->uses, key, use);
    }
    if (use->holder == pod && use->pods)
        return; /* twice in one pod */
    bool first = bound == use->holder_bound && before_in_line(c, pod, use->holder);
    if (first || (bound && !use->holder_bound)) {
        use->holder = pod;
        use->holder_bound = bound;
    }
    use->pods++;
}

/* Is that volume named by an earlier one of the same pod too? */
static bool repeated(const struct pod *pod, uint32_t at)
{
    struct str name = pod->volumes.items[at].claim.name;
    for (uint32_t i = 0; i < at && name.p; i++) {
        if (str_eq(pod->volumes.items[i].claim.name, name))
            return true;
    }
    return false;
}

void storage_index(struct compile *c)
{
    const struct snapshot *snap = c->m->snap;
    c->storage = arena_new(c->arena, struct storage);
    objects_index(c);
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        const struct pod *pod = snap->pods[i];
        bool bound = c->state[i] == POD_BOUND;
        for (uint32_t v = 0; v < pod->volumes.count && (bound || c->state[i] == POD_PENDING); v++) {
            struct str key = use_key(c, pod, &pod->volumes.items[v]);
            if (key.p && !repeated(pod, v))
                use_note(c, pod, bound, key);
        }
    }
    struct str_table *uses = &c->storage->uses;
    uint32_t *order = arena_array(&c->scratch, uint32_t, uses->live_count), next = 0;
    str_table_sorted(uses, order);
    for (uint32_t i = 0; i < uses->live_count; i++) {
        struct claim_use *use = uses->slots[order[i]].value;
        if (use->pods > 1)
            use->number = next++;
    }
}

void storage_done(struct compile *c)
{
    if (!c->storage)
        return;
    str_table_done(&c->storage->pvcs);
    str_table_done(&c->storage->pvs);
    str_table_done(&c->storage->classes);
    str_table_done(&c->storage->uses);
    str_table_done(&c->storage->hosts);
}

/* --- one claim --- */

struct claim_view { /* of a claim that is there, or of a template that it will be made from */
    const struct pvc *maybe_pvc;
    struct str name;       /* "namespace/name" */
    struct str class_name; /* absent: the default; "": none */
    struct str volume_name;
    struct str_list modes;
};

struct resolver {
    struct compile *c;
    const struct pod *pod;
    bool bound;
    struct class_volume *items;
    uint32_t count;
    const struct requirements *alternatives;
    uint32_t alternative_count;
    const struct plan_blame *maybe_refused;
};

#define refuse(r, reason, ...)                                                                     \
    ((void)((r)->maybe_refused =                                                                   \
                blame_new((r)->c, (reason), arena_strf((r)->c->arena, __VA_ARGS__))))

static bool has_mode(const struct str_list *modes, const char *mode)
{
    for (uint32_t i = 0; i < modes->count; i++) {
        if (str_eqz(modes->items[i], mode))
            return true;
    }
    return false;
}

static bool one_pod_only(const struct str_list *modes)
{
    return has_mode(modes, "ReadWriteOncePod");
}

static bool one_node_only(const struct str_list *modes)
{
    return !has_mode(modes, "ReadWriteMany") && !has_mode(modes, "ReadOnlyMany");
}

static bool find_claim(struct resolver *r, const struct volume *v, struct claim_view *out)
{
    struct compile *c = r->c;
    struct str name = arena_str(&c->scratch, use_key(c, r->pod, v));
    const struct pvc *pvc = str_table_get(&c->storage->pvcs, name);
    *out = (struct claim_view){ .maybe_pvc = pvc, .name = name };
    if (pvc) {
        struct str old = str_map_get(&pvc->object.meta.annotations,
                                     STR("volume.beta.kubernetes.io/storage-class"));
        out->class_name = old.p ? old : pvc->spec.storage_class_name;
        out->volume_name = pvc->spec.volume_name;
        out->modes = pvc->spec.access_modes;
    } else if (v->ephemeral.maybe_template) {
        const struct volume_template_spec *spec = &v->ephemeral.maybe_template->spec;
        out->class_name = spec->storage_class_name;
        out->volume_name = spec->volume_name;
        out->modes = spec->access_modes;
    } else {
        refuse(r, REASON_VOLUME, "claim %s does not exist", NAME_SHOWN(name));
        return false;
    }
    return true;
}

/* --- alternatives --- */

/* Each of what there is with each of the new, as far as they can be together. */
static void alternatives_multiply(struct resolver *r, const struct requirements *more,
                                  uint32_t count)
{
    if (!r->alternative_count) {
        r->alternatives = more;
        r->alternative_count = count < ALTERNATIVES_MAX ? count : ALTERNATIVES_MAX;
        return;
    }
    struct requirements *both = arena_array(r->c->arena, struct requirements, ALTERNATIVES_MAX);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->alternative_count; i++) {
        for (uint32_t j = 0; j < count && kept < ALTERNATIVES_MAX; j++) {
            if (requirements_intersects(&r->alternatives[i], &more[j], NULL))
                both[kept++] = requirements_merge(r->c->arena, &r->alternatives[i], &more[j]);
        }
    }
    if (!kept)
        refuse(r, REASON_VOLUME,
               "its volumes are in different places: no node can have all of them");
    r->alternatives = both;
    r->alternative_count = kept;
}

static void alternative_add(struct resolver *r, struct requirement one)
{
    struct requirement *item = arena_new(r->c->arena, struct requirement);
    struct requirements *set = arena_new(r->c->arena, struct requirements);
    *item = one;
    *set = (struct requirements){ item, 1 };
    alternatives_multiply(r, set, 1);
}

/* A volume of a node's own disk. While that node is there the pod has to go to it; once it is gone, so
 * is the volume, and its name must not keep the pod waiting. */
static bool of_gone_host(const struct resolver *r, const struct pv *pv, const struct expression *e)
{
    bool own_disk = pv->spec.maybe_local || pv->spec.maybe_host_path;
    if (!own_disk || !str_eq(e->key, STR(LABEL_HOSTNAME)))
        return false;
    for (uint32_t i = 0; i < e->values.count; i++) {
        if (str_table_has(&r->c->storage->hosts, e->values.items[i]))
            return false;
    }
    return true;
}

static void volume_terms(struct resolver *r, const struct pv *pv)
{
    struct compile *c = r->c;
    const struct pv_affinity *affinity = pv->spec.maybe_affinity;
    uint32_t term_count = affinity ? affinity->required.terms.count : 0;
    struct requirements *sets = arena_array(c->arena, struct requirements, term_count);
    struct err err = { 0 };
    for (uint32_t t = 0; t < term_count; t++) {
        const struct node_selector_term *term = &affinity->required.terms.items[t];
        struct expression *kept =
            arena_array(&c->scratch, struct expression, term->expressions.count);
        uint32_t count = 0;
        for (uint32_t i = 0; i < term->expressions.count; i++) {
            if (!of_gone_host(r, pv, &term->expressions.items[i]))
                kept[count++] = term->expressions.items[i];
        }
        if (term->fields.count) {
            refuse(r, REASON_UNSUPPORTED, "volume %s chooses its node by matchFields",
                   NAME_SHOWN(pv->object.meta.name));
            return;
        }
        if (requirements_from_expressions(c->arena, kept, count, &sets[t], &err) < 0) {
            refuse(r, REASON_VOLUME, "volume %s: %s", NAME_SHOWN(pv->object.meta.name), err.text);
            return;
        }
    }
    if (term_count)
        alternatives_multiply(r, sets, term_count);
}

/* Old volumes say it by labels; several zones have "__" between them. */
static void volume_labels(struct resolver *r, const struct pv *pv)
{
    static const char *const keys[] = { LABEL_ZONE, LABEL_REGION,
                                        "failure-domain.beta.kubernetes.io/zone",
                                        "failure-domain.beta.kubernetes.io/region" };
    struct compile *c = r->c;
    for (size_t k = 0; k < KV_COUNT_OF(keys) && !r->maybe_refused; k++) {
        struct str rest = str_map_get(&pv->object.meta.labels, str_of(keys[k]));
        struct str *values = arena_array(&c->scratch, struct str, rest.len + 1);
        uint32_t count = 0;
        if (!rest.len)
            continue;
        for (size_t i = 0, from = 0; i <= rest.len; i++) {
            bool mark = i + 1 < rest.len && rest.p[i] == '_' && rest.p[i + 1] == '_';
            if (i < rest.len && !mark)
                continue;
            if (i > from)
                values[count++] = str_sub(rest, from, i - from);
            from = i + 2;
            i += mark;
        }
        alternative_add(
            r, requirement_in(c->arena, str_of(keys[k]), (struct str_list){ values, count }));
    }
}

/* --- judging --- */

static struct str judge_bound(struct resolver *r, const struct claim_view *claim)
{
    const struct pv *pv = str_table_get(&r->c->storage->pvs, claim->volume_name);
    if (!pv) {
        refuse(r, REASON_VOLUME, "volume %s of claim %s does not exist",
               NAME_SHOWN(claim->volume_name), NAME_SHOWN(claim->name));
        return STR_NONE;
    }
    if (pv->object.meta.deleted_us) {
        refuse(r, REASON_VOLUME, "volume %s of claim %s is being deleted",
               NAME_SHOWN(claim->volume_name), NAME_SHOWN(claim->name));
        return STR_NONE;
    }
    if (!r->bound) {
        volume_terms(r, pv);
        if (!r->maybe_refused)
            volume_labels(r, pv);
    }
    return pv->spec.driver;
}

static const struct storage_class *class_of(struct resolver *r, const struct claim_view *claim)
{
    struct storage *st = r->c->storage;
    const struct storage_class *sc =
        claim->class_name.p ? str_table_get(&st->classes, claim->class_name) : st->maybe_default;
    if (!claim->class_name.p && !sc)
        refuse(r, REASON_VOLUME, "claim %s names no storage class, and there is no default one",
               NAME_SHOWN(claim->name));
    else if (!claim->class_name.len && !sc)
        refuse(r, REASON_VOLUME, "claim %s waits for a volume that somebody binds by hand",
               NAME_SHOWN(claim->name));
    else if (!sc)
        refuse(r, REASON_VOLUME, "storage class %s of claim %s does not exist",
               NAME_SHOWN(claim->class_name), NAME_SHOWN(claim->name));
    return sc;
}

static void class_topologies(struct resolver *r, const struct storage_class *sc)
{
    struct compile *c = r->c;
    uint32_t term_count = sc->allowed_topologies.count;
    struct requirements *sets = arena_array(c->arena, struct requirements, term_count);
    for (uint32_t t = 0; t < term_count; t++) {
        const struct topology_term *term = &sc->allowed_topologies.items[t];
        for (uint32_t i = 0; i < term->expressions.count; i++) {
            const struct expression *e = &term->expressions.items[i];
            struct requirement one = requirement_in(c->arena, e->key, e->values);
            sets[t] = requirements_add(c->arena, &sets[t], &one);
        }
    }
    if (term_count)
        alternatives_multiply(r, sets, term_count);
}

/* The volume is about to be made for a node that was chosen before: no other will do. */
static void chosen_node(struct resolver *r, const struct pvc *pvc)
{
    struct str name =
        str_map_get(&pvc->object.meta.annotations, STR("volume.kubernetes.io/selected-node"));
    const struct node *node = name.len ? str_table_get(&r->c->storage->hosts, name) : NULL;
    if (!node)
        return;
    struct str host = node_hostname(node);
    alternative_add(
        r, requirement_in(r->c->arena, STR(LABEL_HOSTNAME), (struct str_list){ &host, 1 }));
}

static struct str judge_unbound(struct resolver *r, const struct claim_view *claim,
                                const struct claim_use *use)
{
    const struct storage_class *sc = class_of(r, claim);
    if (!sc)
        return STR_NONE;
    if (r->bound)
        return storage_driver(sc->provisioner);
    struct str class_name = sc->object.meta.name;
    if (!storage_class_waits(sc) || claim->volume_name.len) {
        refuse(r, REASON_VOLUME,
               "claim %s is not bound yet, and will be without waiting for a node (%s %s)",
               NAME_SHOWN(claim->name), claim->volume_name.len ? "volume" : "storage class",
               NAME_SHOWN(claim->volume_name.len ? claim->volume_name : class_name));
        return STR_NONE;
    }
    if (str_eq(sc->provisioner, STR("kubernetes.io/no-provisioner"))) {
        refuse(r, REASON_UNSUPPORTED,
               "claim %s: which of the volumes of class %s it would get is not worked out",
               NAME_SHOWN(claim->name), NAME_SHOWN(class_name));
        return STR_NONE;
    }
    /* The first of them settles the zone of the others. */
    if (use->pods > 1 && one_node_only(&claim->modes)) {
        refuse(r, REASON_UNSUPPORTED, "claim %s is not bound yet, and several pods share it",
               NAME_SHOWN(claim->name));
        return STR_NONE;
    }
    class_topologies(r, sc);
    if (claim->maybe_pvc && !r->maybe_refused)
        chosen_node(r, claim->maybe_pvc);
    return storage_driver(sc->provisioner);
}

/* The driver that attaches it, or STR_NONE. */
static struct str judge_claim(struct resolver *r, const struct claim_view *claim,
                              const struct claim_use *use)
{
    const struct pvc *pvc = claim->maybe_pvc;
    if (!r->bound && one_pod_only(&claim->modes) && use->holder != r->pod) {
        const struct meta *holder = &use->holder->object.meta;
        refuse(r, REASON_VOLUME, "claim %s is for one pod only, and pod %s/%s %s",
               NAME_SHOWN(claim->name), NAME_SHOWN(holder->namespace_), NAME_SHOWN(holder->name),
               use->holder_bound ? "has it" : "comes first");
    } else if (pvc && pvc->object.meta.deleted_us) {
        refuse(r, REASON_VOLUME, "claim %s is being deleted", NAME_SHOWN(claim->name));
    } else if (pvc && pvc->status.phase == PVC_LOST) {
        refuse(r, REASON_VOLUME, "claim %s has lost its volume", NAME_SHOWN(claim->name));
    }
    if (r->maybe_refused && !r->bound)
        return STR_NONE;
    return pvc && pvc_is_bound(pvc) ? judge_bound(r, claim) : judge_unbound(r, claim, use);
}

/* --- the whole pod --- */

static void resolve(struct resolver *r, const struct volume *v)
{
    struct compile *c = r->c;
    struct str key = use_key(c, r->pod, v), driver = STR_NONE, id;
    const struct claim_use *use = key.p ? str_table_get(&c->storage->uses, key) : NULL;
    struct claim_view claim;
    if (!use)
        return;
    if (inline_disk(v, &driver, &id)) {
        if (use->pods > 1)
            refuse(r, REASON_UNSUPPORTED, "shares the disk %s with another pod", NAME_SHOWN(id));
    } else if (find_claim(r, v, &claim)) {
        driver = judge_claim(r, &claim, use);
    }
    if (driver.len)
        r->items[r->count++] = (struct class_volume){ driver_intern(c, driver), use->number };
}

static int volume_order(const void *a, const void *b)
{
    const struct class_volume *x = a, *y = b;
    if (x->driver != y->driver)
        return x->driver < y->driver ? -1 : 1;
    return x->claim < y->claim ? -1 : x->claim > y->claim;
}

struct pod_volumes pod_volumes_of(struct compile *c, const struct pod *pod)
{
    struct resolver r = { .c = c, .pod = pod, .bound = pod_node(pod).len > 0 };
    if (!pod->volumes.count)
        return (struct pod_volumes){ 0 };
    r.items = arena_array(c->arena, struct class_volume, pod->volumes.count);
    for (uint32_t i = 0; i < pod->volumes.count && (r.bound || !r.maybe_refused); i++) {
        if (!repeated(pod, i))
            resolve(&r, &pod->volumes.items[i]);
    }
    qsort(r.items, r.count, sizeof *r.items, volume_order);
    return (struct pod_volumes){ .items = r.items,
                                 .count = r.count,
                                 .alternatives = r.alternatives,
                                 .alternative_count = r.alternative_count,
                                 .maybe_refused = r.bound ? NULL : r.maybe_refused };
}

bool volumes_are_own(struct compile *c, const struct pod *pod)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        const struct volume *v = &pod->volumes.items[i];
        struct str key = use_key(c, pod, v);
        const struct pvc *pvc = key.p ? str_table_get(&c->storage->pvcs, key) : NULL;
        const struct claim_use *use = key.p ? str_table_get(&c->storage->uses, key) : NULL;
        if (!pvc || !use)
            continue;
        if (v->ephemeral.maybe_template || (use->pods > 1 && one_pod_only(&pvc->spec.access_modes)))
            return true;
    }
    return false;
}

/* Volumes: where a claim's volume is or may be made, how many volumes a node can attach, and claims
 * that only one pod may use.
 *
 * A claim that is bound follows its volume: the volume's node affinity, and its zone labels. One that
 * is not is made when its first pod is placed: by its class's provisioner within the allowed
 * topologies, or from a volume that lies ready. As in kube-scheduler, a claim that cannot be had
 * keeps its pod from being placed at all.
 */
#include "sched/check_inner.h"

#include "api/resources.h"

struct volumes {
    struct checker *c;
    struct str_table pvcs; /* "namespace/name" */
    struct str_table pvs, classes;
    const struct storage_class *maybe_default;
    struct str_table singles; /* claims of ReadWriteOncePod: 1 + the pod that has it */
};

static struct str namespaced(struct checker *c, struct str namespace_, struct str name)
{
    return arena_strf(&c->scratch, "%.*s/%.*s", STR_ARG(namespace_), STR_ARG(name));
}

/* Of several default classes the newest; of equal age the first by name. */
static bool is_better_default(const struct storage_class *sc, const struct storage_class *than)
{
    const struct meta *a = &sc->object.meta, *b = than ? &than->object.meta : NULL;
    if (!b || a->created_us != b->created_us)
        return !b || a->created_us > b->created_us;
    return str_cmp(a->name, b->name) < 0;
}

static void volumes_init(struct volumes *v, struct checker *c)
{
    const struct snapshot *snap = c->snap;
    *v = (struct volumes){ .c = c };
    for (uint32_t i = 0; i < snap->pvc_count; i++) {
        const struct meta *meta = &snap->pvcs[i]->object.meta;
        str_table_put(&v->pvcs, namespaced(c, meta->namespace_, meta->name), (void *)snap->pvcs[i]);
    }
    for (uint32_t i = 0; i < snap->pv_count; i++)
        str_table_put(&v->pvs, snap->pvs[i]->object.meta.name, (void *)snap->pvs[i]);
    for (uint32_t i = 0; i < snap->storage_class_count; i++) {
        const struct storage_class *sc = snap->storage_classes[i];
        str_table_put(&v->classes, sc->object.meta.name, (void *)sc);
        if (storage_class_is_default(sc) && is_better_default(sc, v->maybe_default))
            v->maybe_default = sc;
    }
}

static void volumes_done(struct volumes *v)
{
    str_table_done(&v->pvcs);
    str_table_done(&v->pvs);
    str_table_done(&v->classes);
    str_table_done(&v->singles);
}

/* --- what a volume of a pod is --- */

struct claim {
    struct str name;             /* absent: the volume is not a claim */
    const struct pvc *maybe_pvc; /* NULL: to be made from the pod's template */
    const struct pv *maybe_pv;   /* bound to */
    const struct storage_class *maybe_class;
    const struct pvc_resources *maybe_resources;
    struct str_list access_modes;
    bool is_template;
};

static const struct storage_class *class_named(const struct volumes *v, struct str name)
{
    return name.p ? str_table_get(&v->classes, name) : v->maybe_default;
}

static struct claim claim_of(struct volumes *v, const struct pod *pod, const struct volume *volume)
{
    struct claim claim = { .name = pod_volume_claim(pod, volume, &v->c->scratch) };
    if (!claim.name.p)
        return claim;
    struct str id = namespaced(v->c, pod->object.meta.namespace_, claim.name);
    const struct volume_template *template = volume->ephemeral.maybe_template;
    claim.maybe_pvc = str_table_get(&v->pvcs, id);
    if (claim.maybe_pvc) {
        const struct pvc_spec *spec = &claim.maybe_pvc->spec;
        claim.access_modes = spec->access_modes;
        claim.maybe_resources = &spec->resources;
        claim.maybe_class = class_named(v, spec->storage_class_name);
        if (spec->volume_name.len)
            claim.maybe_pv = str_table_get(&v->pvs, spec->volume_name);
    } else if (template) {
        claim.is_template = true;
        claim.access_modes = template->spec.access_modes;
        claim.maybe_class = class_named(v, template->spec.storage_class_name);
    }
    return claim;
}

/* --- where --- */

static uint32_t ask_of_terms(struct checker *c, const struct node_selector_term *terms,
                             uint32_t count)
{
    return ask_add(c, &(struct ask){ .terms = terms, .term_count = count, .has_terms = true });
}

static bool everywhere(struct checker *c, uint32_t ask, const struct site *p)
{
    return ask_verdict(c, ask, p) == ALWAYS;
}

/* Zone and region labels of a volume: several values are joined by "__". A node without any such
 * label takes all volumes. */
static bool zone_labels_suit(struct checker *c, const struct pv *pv, const struct site *p)
{
    static const char *const keys[] = { LABEL_ZONE, LABEL_REGION,
                                        "failure-domain.beta.kubernetes.io/zone",
                                        "failure-domain.beta.kubernetes.io/region" };
    bool labelled = p->kind != SITE_NODE;
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++)
        labelled = labelled || site_label(c, p, str_of(keys[i])).count;
    for (size_t i = 0; labelled && i < KV_COUNT_OF(keys); i++) {
        struct str rest = str_map_get(&pv->object.meta.labels, str_of(keys[i]));
        if (!rest.p)
            continue;
        struct str *values = arena_array(&c->scratch, struct str, rest.len + 1);
        uint32_t count = 0;
        while (rest.p) {
            const char *at = memmem(rest.p, rest.len, "__", 2);
            size_t len = at ? (size_t)(at - rest.p) : rest.len;
            values[count++] = str_sub(rest, 0, len);
            rest = at ? str_sub(rest, len + 2, rest.len) : STR_NONE;
        }
        struct expression *e = arena_new(&c->scratch, struct expression);
        struct node_selector_term *term = arena_new(&c->scratch, struct node_selector_term);
        *e =
            (struct expression){ .key = str_of(keys[i]), .op = OP_IN, .values = { values, count } };
        term->expressions.items = e;
        term->expressions.count = 1;
        if (!everywhere(c, ask_of_terms(c, term, 1), p))
            return false;
    }
    return true;
}

static bool volume_suits(struct checker *c, const struct pv *pv, const struct site *p)
{
    const struct pv_affinity *affinity = pv->spec.maybe_affinity;
    if (affinity &&
        !everywhere(
            c, ask_of_terms(c, affinity->required.terms.items, affinity->required.terms.count), p))
        return false;
    return zone_labels_suit(c, pv, p);
}

/* Could the claim be bound to this volume, which lies ready? */
static bool volume_is_free_for(const struct pv *pv, const struct claim *claim)
{
    struct str storage = STR("storage");
    const struct object_reference *taken = pv->spec.maybe_claim;
    const struct meta *mine = claim->maybe_pvc ? &claim->maybe_pvc->object.meta : NULL;
    if (taken &&
        !(mine && str_eq(taken->name, mine->name) && str_eq(taken->namespace_, mine->namespace_)))
        return false;
    if (!claim->maybe_class ||
        !str_eq(pv->spec.storage_class_name, claim->maybe_class->object.meta.name))
        return false;
    if (claim->maybe_resources &&
        quantity_cmp(resources_get(&pv->spec.capacity, storage),
                     resources_get(&claim->maybe_resources->requests, storage)) < 0)
        return false;
    for (uint32_t i = 0; i < claim->access_modes.count; i++) {
        bool has = false;
        for (uint32_t k = 0; k < pv->spec.access_modes.count; k++)
            has |= str_eq(pv->spec.access_modes.items[k], claim->access_modes.items[i]);
        if (!has)
            return false;
    }
    return !pv->object.meta.deleted_us;
}

static bool ready_volume_suits(struct volumes *v, const struct claim *claim, const struct site *p)
{
    const struct snapshot *snap = v->c->snap;
    for (uint32_t i = 0; i < snap->pv_count; i++) {
        if (volume_is_free_for(snap->pvs[i], claim) && volume_suits(v->c, snap->pvs[i], p))
            return true;
    }
    return false;
}

static bool provisioner_suits(struct checker *c, const struct storage_class *sc,
                              const struct site *p)
{
    if (!sc->provisioner.len || str_eqz(sc->provisioner, "kubernetes.io/no-provisioner"))
        return false;
    uint32_t count = sc->allowed_topologies.count;
    if (!count)
        return true;
    struct node_selector_term *terms = arena_array(&c->scratch, struct node_selector_term, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct topology_term *from = &sc->allowed_topologies.items[i];
        struct expression *items =
            arena_array(&c->scratch, struct expression, from->expressions.count);
        for (uint32_t k = 0; k < from->expressions.count; k++) {
            items[k] = from->expressions.items[k];
            items[k].op = OP_IN;
        }
        terms[i].expressions.items = items;
        terms[i].expressions.count = from->expressions.count;
    }
    return everywhere(c, ask_of_terms(c, terms, count), p);
}

/* NULL, or why the pod cannot be there. */
static const char *claim_problem(struct volumes *v, const struct claim *claim, const struct site *p)
{
    const struct pvc *pvc = claim->maybe_pvc;
    if (!pvc && !claim->is_template)
        return "does not exist";
    if (pvc && pvc->object.meta.deleted_us)
        return "is being deleted";
    if (pvc && pvc->status.phase == PVC_LOST)
        return "has lost its volume";
    if (pvc && pvc->spec.volume_name.len) {
        if (!claim->maybe_pv)
            return "is bound to a volume that does not exist";
        return volume_suits(v->c, claim->maybe_pv, p) ? NULL : "is bound to a volume elsewhere";
    }
    if (!claim->maybe_class)
        return "has no storage class, and is not bound";
    if (!storage_class_waits(claim->maybe_class))
        return "is not bound, and its class does not wait for a pod";
    if (provisioner_suits(v->c, claim->maybe_class, p) || ready_volume_suits(v, claim, p))
        return NULL;
    return "cannot be had there";
}

/* --- claims that one pod has to itself --- */

static bool is_single(const struct claim *claim)
{
    for (uint32_t i = 0; i < claim->access_modes.count; i++) {
        if (str_eqz(claim->access_modes.items[i], "ReadWriteOncePod"))
            return true;
    }
    return false;
}

static void check_single(struct volumes *v, const struct claim *claim, uint32_t pod, bool placed)
{
    struct checker *c = v->c;
    if (!is_single(claim))
        return;
    struct str id = namespaced(c, c->snap->pods[pod]->object.meta.namespace_, claim->name);
    uintptr_t other = (uintptr_t)str_table_get(&v->singles, id);
    if (other && placed)
        finding(c, pod, PLAN_NONE, "%s: claim %.*s is for one pod, and %s has it",
                pod_shown(c, pod), STR_ARG(claim->name), pod_shown(c, (uint32_t)(other - 1)));
    str_table_put(&v->singles, id, (void *)(uintptr_t)(pod + 1));
}

/* --- attachments --- */

/* The driver that attaches it, and its name there. False: nothing is attached. */
static bool attached_as(struct volumes *v, const struct pod *pod, const struct volume *volume,
                        const struct claim *claim, struct str *driver, struct str *name)
{
    const struct {
        struct str id;
        const char *plugin;
    } disks[] = {
        { volume->aws_disk.id, "kubernetes.io/aws-ebs" },
        { volume->gce_disk.id, "kubernetes.io/gce-pd" },
        { volume->azure_disk.id, "kubernetes.io/azure-disk" },
        { volume->cinder_disk.id, "kubernetes.io/cinder" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(disks); i++) {
        if (disks[i].id.p) {
            *driver = storage_driver(str_of(disks[i].plugin));
            *name = disks[i].id;
            return true;
        }
    }
    if (!claim->name.p)
        return false;
    if (claim->maybe_pv) {
        const struct pv_csi *csi = claim->maybe_pv->spec.maybe_csi;
        *driver = claim->maybe_pv->spec.driver;
        *name = csi && csi->handle.len ? csi->handle : claim->maybe_pv->object.meta.name;
    } else if (claim->maybe_class) {
        *driver = storage_driver(claim->maybe_class->provisioner);
        *name = namespaced(v->c, pod->object.meta.namespace_, claim->name);
    }
    return driver->len > 0;
}

static void attach(struct volumes *v, const struct pod *pod, struct str_table *attached)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        const struct volume *volume = &pod->volumes.items[i];
        struct claim claim = claim_of(v, pod, volume);
        struct str driver = STR_NONE, name = STR_NONE;
        if (attached_as(v, pod, volume, &claim, &driver, &name))
            str_table_put(attached,
                          arena_strf(&v->c->scratch, "%.*s %.*s", STR_ARG(driver), STR_ARG(name)),
                          NULL);
    }
}

static int64_t attached_count(const struct str_table *attached, struct str driver)
{
    int64_t count = 0;
    str_table_each(attached, slot) {
        struct str of, name;
        str_cut(slot->key, ' ', &of, &name);
        count += str_eq(of, driver);
    }
    return count;
}

/* A CSINode says how many volumes of each driver its node takes; one that several pods use counts
 * once. Nodes yet to come say nothing. */
static void check_attachments(struct volumes *v, const struct site *p)
{
    struct checker *c = v->c;
    const struct csi_node *csi = NULL;
    for (uint32_t i = 0; i < c->snap->csi_node_count; i++) {
        if (p->maybe_node &&
            str_eq(c->snap->csi_nodes[i]->object.meta.name, p->maybe_node->object.meta.name))
            csi = c->snap->csi_nodes[i];
    }
    if (!csi)
        return;
    struct str_table before = { 0 }, after = { 0 };
    for (uint32_t i = 0; i < p->bound_count; i++) {
        attach(v, c->snap->pods[p->bound[i]], &before);
        attach(v, c->snap->pods[p->bound[i]], &after);
    }
    for (uint32_t i = 0; i < p->placed.count; i++)
        attach(v, c->snap->pods[p->placed.items[i]], &after);
    for (uint32_t i = 0; i < csi->spec.drivers.count; i++) {
        const struct csi_driver *d = &csi->spec.drivers.items[i];
        int64_t had = attached_count(&before, d->name), has = attached_count(&after, d->name);
        if (d->allocatable.count.set && has > had && has > d->allocatable.count.value)
            finding(c, p->placed.items[0], PLAN_NONE,
                    "%s attaches %ld volumes of %.*s, and takes %ld", p->name, (long)has,
                    STR_ARG(d->name), (long)d->allocatable.count.value);
    }
    str_table_done(&before);
    str_table_done(&after);
}

/* --- all of it --- */

static void check_pod_volumes(struct volumes *v, const struct site *p, uint32_t pod, bool placed)
{
    struct checker *c = v->c;
    const struct pod *of = c->snap->pods[pod];
    for (uint32_t i = 0; i < of->volumes.count; i++) {
        struct claim claim = claim_of(v, of, &of->volumes.items[i]);
        if (!claim.name.p)
            continue;
        const char *problem = placed ? claim_problem(v, &claim, p) : NULL;
        if (problem)
            finding(c, pod, site_launch(p), "%s on %s: claim %.*s %s", pod_shown(c, pod), p->name,
                    STR_ARG(claim.name), problem);
        check_single(v, &claim, pod, placed);
    }
}

void check_volumes(struct checker *c)
{
    struct volumes v;
    volumes_init(&v, c);
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct site *p = &c->sites[i];
        for (uint32_t k = 0; k < p->bound_count; k++)
            check_pod_volumes(&v, p, p->bound[k], false);
    }
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct site *p = &c->sites[i];
        for (uint32_t k = 0; k < p->placed.count; k++)
            check_pod_volumes(&v, p, p->placed.items[k], true);
        if (p->placed.count)
            check_attachments(&v, p);
    }
    volumes_done(&v);
}

/* Volumes: can they be had on that node, does it take so many, and does another pod have one that is for
 * a single pod? A claim that is bound decides by its volume; one that waits for its first pod by what
 * its class could provision, or by a volume that lies ready. */
#include "sim/binder_impl.h"

#include "api/labels.h"
#include "api/resources.h"

struct volume_seen {
    struct str claim;               /* absent: an in-tree disk */
    const struct object *maybe_pvc; /* references */
    const struct object *maybe_pv;  /* bound to */
    const struct object *maybe_class;
    const struct volume_template *maybe_template;
    struct str driver, handle; /* what is attached; driver "": nothing */
};

bool pod_has_claims(const struct pod *pod)
{
    return pod->volumes.count > 0; /* other volumes are not kept */
}

/* --- what they are --- */

/* Of several default classes the newest; of equal age the first by name. */
static const struct object *default_class(struct binder *b)
{
    struct object_list list = { 0 };
    const struct object *best = NULL;
    informer_list(b->informers[BINDER_CLASSES], STR(""), &list);
    for (size_t i = 0; i < list.count; i++) {
        if (storage_class_is_default(storage_class_of(list.items[i])) &&
            (!best || list.items[i]->meta.created_us > best->meta.created_us))
            best = list.items[i];
    }
    if (best)
        object_ref(best);
    object_list_done(&list);
    return best;
}

static const struct object *class_named(struct binder *b, struct str name)
{
    return name.p ? informer_get(b->informers[BINDER_CLASSES], STR(""), name) : default_class(b);
}

static void see_disk(struct volume_seen *seen, const struct volume *volume)
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
            seen->driver = storage_driver(str_of(disks[i].plugin));
            seen->handle = disks[i].id;
        }
    }
}

static void see_claim(struct binder *b, const struct pod *pod, struct volume_seen *seen)
{
    struct str namespace_ = pod->object.meta.namespace_;
    seen->maybe_pvc = informer_get(b->informers[BINDER_CLAIMS], namespace_, seen->claim);
    if (seen->maybe_pvc) {
        const struct pvc_spec *spec = &pvc_of(seen->maybe_pvc)->spec;
        seen->maybe_class = class_named(b, spec->storage_class_name);
        if (spec->volume_name.len)
            seen->maybe_pv = informer_get(b->informers[BINDER_VOLUMES], STR(""), spec->volume_name);
    } else if (seen->maybe_template) {
        seen->maybe_class = class_named(b, seen->maybe_template->spec.storage_class_name);
    }
    if (seen->maybe_pv) {
        const struct pv *pv = pv_of(seen->maybe_pv);
        bool named = pv->spec.maybe_csi && pv->spec.maybe_csi->handle.len;
        seen->driver = pv->spec.driver;
        seen->handle = named ? pv->spec.maybe_csi->handle : pv->object.meta.name;
    } else if (seen->maybe_class) {
        seen->driver = storage_driver(storage_class_of(seen->maybe_class)->provisioner);
        seen->handle =
            arena_strf(&b->scratch, "%.*s/%.*s", STR_ARG(namespace_), STR_ARG(seen->claim));
    }
}

static struct str_list access_modes(const struct volume_seen *seen)
{
    if (seen->maybe_pvc)
        return pvc_of(seen->maybe_pvc)->spec.access_modes;
    return seen->maybe_template ? seen->maybe_template->spec.access_modes : (struct str_list){ 0 };
}

static bool is_single(const struct volume_seen *seen)
{
    struct str_list modes = access_modes(seen);
    for (uint32_t i = 0; i < modes.count; i++) {
        if (str_eqz(modes.items[i], "ReadWriteOncePod"))
            return true;
    }
    return false;
}

static bool pod_uses(struct binder *b, const struct pod *pod, struct str claim)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        struct str name = pod_volume_claim(pod, &pod->volumes.items[i], &b->scratch);
        if (name.p && str_eq(name, claim))
            return true;
    }
    return false;
}

static bool is_in_use(struct binder *b, struct str namespace_, struct str claim)
{
    vec_each(&b->sites, struct site *, it) {
        if (!*it || !(*it)->maybe_node)
            continue;
        vec_each(&(*it)->residents, struct resident, r) {
            const struct pod *pod = r->class->pod;
            if (r->class->has_claims && str_eq(pod->object.meta.namespace_, namespace_) &&
                pod_uses(b, pod, claim))
                return true;
        }
    }
    return false;
}

/* NULL, or why the pod can be nowhere. */
static const char *never(struct binder *b, const struct pod *pod, const struct volume_seen *seen)
{
    const struct pvc *pvc = seen->maybe_pvc ? pvc_of(seen->maybe_pvc) : NULL;
    if (!seen->claim.p)
        return NULL;
    if (!pvc && !seen->maybe_template)
        return "persistentvolumeclaim not found";
    if (pvc && pvc->object.meta.deleted_us)
        return "persistentvolumeclaim is being deleted";
    if (pvc && pvc->status.phase == PVC_LOST)
        return "persistentvolumeclaim bound to non-existent persistentvolume";
    if (is_single(seen) && is_in_use(b, pod->object.meta.namespace_, seen->claim))
        return "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
               "access mode";
    if (pvc && pvc->spec.volume_name.len)
        return seen->maybe_pv ? NULL
                              : "persistentvolumeclaim bound to non-existent persistentvolume";
    if (!seen->maybe_class || !storage_class_waits(storage_class_of(seen->maybe_class)))
        return "pod has unbound immediate PersistentVolumeClaims";
    return NULL;
}

struct volumes volumes_of(struct binder *b, const struct pod *pod)
{
    struct volumes v = { .items = arena_array(&b->scratch, struct volume_seen, pod->volumes.count),
                         .count = pod->volumes.count };
    for (uint32_t i = 0; i < v.count; i++) {
        struct volume_seen *seen = &v.items[i];
        see_disk(seen, &pod->volumes.items[i]);
        seen->claim = pod_volume_claim(pod, &pod->volumes.items[i], &b->scratch);
        seen->maybe_template = pod->volumes.items[i].ephemeral.maybe_template;
        if (seen->claim.p)
            see_claim(b, pod, seen);
        const char *why = never(b, pod, seen);
        v.maybe_never = v.maybe_never ? v.maybe_never : why;
    }
    return v;
}

void volumes_done(struct volumes *v)
{
    for (uint32_t i = 0; i < v->count; i++) {
        object_unref(v->items[i].maybe_pvc);
        object_unref(v->items[i].maybe_pv);
        object_unref(v->items[i].maybe_class);
    }
}

/* --- where --- */

/* Zone and region labels of a volume: several values are joined by "__". A node without any such label
 * takes all volumes. */
static bool zone_labels_suit(const struct pv *pv, const struct node *node)
{
    static const char *const keys[] = { LABEL_ZONE, LABEL_REGION,
                                        "failure-domain.beta.kubernetes.io/zone",
                                        "failure-domain.beta.kubernetes.io/region" };
    bool labelled = false;
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++)
        labelled |= node_label(node, str_of(keys[i])).p != NULL;
    for (size_t i = 0; labelled && i < KV_COUNT_OF(keys); i++) {
        struct str rest = str_map_get(&pv->object.meta.labels, str_of(keys[i]));
        struct str have = node_label(node, str_of(keys[i]));
        bool suits = !rest.p;
        while (rest.p) {
            const char *at = memmem(rest.p, rest.len, "__", 2);
            size_t len = at ? (size_t)(at - rest.p) : rest.len;
            suits |= have.p && str_eq(have, str_sub(rest, 0, len));
            rest = at ? str_sub(rest, len + 2, rest.len) : STR_NONE;
        }
        if (!suits)
            return false;
    }
    return true;
}

static bool volume_suits(const struct pv *pv, const struct node *node)
{
    const struct pv_affinity *affinity = pv->spec.maybe_affinity;
    return (!affinity || node_matches_terms(node, affinity->required.terms.items,
                                            affinity->required.terms.count)) &&
           zone_labels_suit(pv, node);
}

static bool list_has(struct str_list list, struct str s)
{
    for (uint32_t i = 0; i < list.count; i++) {
        if (str_eq(list.items[i], s))
            return true;
    }
    return false;
}

/* Could the claim be bound to this volume, which lies ready? */
static bool volume_is_free_for(const struct pv *pv, const struct volume_seen *seen)
{
    const struct object_reference *taken = pv->spec.maybe_claim;
    const struct meta *mine = seen->maybe_pvc ? &seen->maybe_pvc->meta : NULL;
    struct str_list modes = access_modes(seen);
    if (taken &&
        !(mine && str_eq(taken->name, mine->name) && str_eq(taken->namespace_, mine->namespace_)))
        return false;
    if (!str_eq(pv->spec.storage_class_name, seen->maybe_class->meta.name))
        return false;
    if (seen->maybe_pvc &&
        quantity_cmp(
            resources_get(&pv->spec.capacity, STR("storage")),
            resources_get(&pvc_of(seen->maybe_pvc)->spec.resources.requests, STR("storage"))) < 0)
        return false;
    for (uint32_t i = 0; i < modes.count; i++) {
        if (!list_has(pv->spec.access_modes, modes.items[i]))
            return false;
    }
    return !pv->object.meta.deleted_us;
}

static bool ready_volume_suits(struct binder *b, const struct volume_seen *seen,
                               const struct node *node)
{
    struct object_list list = { 0 };
    bool found = false;
    informer_list(b->informers[BINDER_VOLUMES], STR(""), &list);
    for (size_t i = 0; i < list.count && !found; i++)
        found = volume_is_free_for(pv_of(list.items[i]), seen) &&
                volume_suits(pv_of(list.items[i]), node);
    object_list_done(&list);
    return found;
}

static bool topology_suits(const struct topology_term *term, const struct node *node)
{
    for (uint32_t i = 0; i < term->expressions.count; i++) {
        const struct expression *e = &term->expressions.items[i];
        struct str have = node_label(node, e->key);
        if (!have.p || !list_has(e->values, have))
            return false;
    }
    return term->expressions.count > 0;
}

static bool provisioner_suits(const struct storage_class *sc, const struct node *node)
{
    if (!sc->provisioner.len || str_eqz(sc->provisioner, "kubernetes.io/no-provisioner"))
        return false;
    bool suits = !sc->allowed_topologies.count;
    for (uint32_t i = 0; i < sc->allowed_topologies.count && !suits; i++)
        suits = topology_suits(&sc->allowed_topologies.items[i], node);
    return suits;
}

/* --- how many --- */

static void attach(struct binder *b, const struct volumes *v, struct str driver,
                   struct str_table *attached)
{
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->items[i].driver.len && str_eq(v->items[i].driver, driver))
            str_table_put(attached, v->items[i].handle, b);
    }
}

/* One that several pods use counts once. */
static bool too_many(struct binder *b, const struct volumes *v, const struct site *site,
                     const struct csi_driver *driver)
{
    struct str_table attached = { 0 };
    vec_each(&site->residents, struct resident, r) {
        if (!r->class->has_claims)
            continue;
        struct volumes its = volumes_of(b, r->class->pod);
        attach(b, &its, driver->name, &attached);
        volumes_done(&its);
    }
    uint32_t had = attached.live_count;
    attach(b, v, driver->name, &attached);
    uint32_t has = attached.live_count;
    str_table_done(&attached);
    return has > had && has > driver->allocatable.count.value;
}

const char *volumes_refuse(struct binder *b, const struct volumes *v, uint32_t at)
{
    const struct site *site = b->sites.items[at];
    const struct node *node = site->maybe_node;
    for (uint32_t i = 0; i < v->count; i++) {
        const struct volume_seen *seen = &v->items[i];
        if (seen->maybe_pv && !volume_suits(pv_of(seen->maybe_pv), node))
            return "node(s) had volume node affinity conflict";
        if (!seen->claim.p || seen->maybe_pv)
            continue;
        if (!provisioner_suits(storage_class_of(seen->maybe_class), node) &&
            !ready_volume_suits(b, seen, node))
            return "node(s) didn't find available persistent volumes to bind";
    }
    AUTO_OBJECT csi = informer_get(b->informers[BINDER_CSI_NODES], STR(""), site->name);
    for (uint32_t i = 0; csi && i < csi_node_of(csi)->spec.drivers.count; i++) {
        const struct csi_driver *driver = &csi_node_of(csi)->spec.drivers.items[i];
        if (driver->allocatable.count.set && too_many(b, v, site, driver))
            return "node(s) exceed max volume count";
    }
    return NULL;
}

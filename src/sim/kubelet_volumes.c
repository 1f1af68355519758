/* Claims and volumes, as the volume binder, a CSI driver's provisioner and the attach-detach
 * controller treat them.
 *
 *     claim, class says Immediate --------------------------> volume in one of the zones there are
 *     claim, class says WaitForFirstConsumer, pod is bound --> volume in the zone of its node
 *     pod is bound, its claims have volumes -----------------> VolumeAttachment of volume and node
 *     the last such pod of the node has ended ---------------> no VolumeAttachment
 *     claim is gone ----------------------------------------> volume goes, or is released
 *
 * A volume that is attached to another node, and may be to one only, is waited for. Volumes are read
 * from the store, not from copies: what one step of the chain writes the next one needs.
 */
#include "sim/kubelet_impl.h"

#include "api/labels.h"
#include "api/resources.h"

#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define BOUND_BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"
#define PROVISIONED_BY "pv.kubernetes.io/provisioned-by"
#define NO_PROVISIONER "kubernetes.io/no-provisioner"

static const struct object *read(struct kubelet *k, const struct kind *kind, struct str namespace_,
                                 struct str name)
{
    const struct object *out = NULL;
    struct err err;
    if (store_get(k->options.store, (struct object_ref){ kind, namespace_, name }, &out, &err) < 0)
        return NULL;
    return out;
}

static bool write_patch(struct kubelet *k, struct object_ref ref, const json_mut *root)
{
    AUTO_BUF text = { 0 };
    struct err err;
    json_write_mut(root, &text);
    return store_patch(k->options.store, ref, (struct patch_options){ .type = PATCH_MERGE },
                       buf_str(&text), NULL, &err) == 0;
}

static bool write_new(struct kubelet *k, const struct kind *kind, struct str namespace_,
                      const json_mut *root)
{
    AUTO_BUF text = { 0 };
    struct err err;
    json_write_mut(root, &text);
    return store_create(k->options.store, kind, namespace_, buf_str(&text), NULL, &err) == 0 ||
           err.kind == ERR_EXISTS;
}

static json_mut *json_strs(struct json_build *b, const struct str_list *strs)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < strs->count; i++)
        json_push(b, list, json_new_str(b, strs->items[i]));
    return list;
}

/* --- classes --- */

/* The claim's class, or the default one; NULL: it has none, or none that makes volumes. */
static const struct object *class_of(struct kubelet *k, const struct pvc *claim)
{
    AUTO_OBJECT found = NULL;

    if (claim->spec.storage_class_name.p) {
        found = informer_get(k->classes, STR(""), claim->spec.storage_class_name);
    } else {
        struct object_list all = { 0 };
        informer_list(k->classes, STR(""), &all);
        for (size_t i = 0; i < all.count && !found; i++)
            if (storage_class_is_default(storage_class_of(all.items[i])))
                found = object_ref(all.items[i]);
        object_list_done(&all);
    }
    if (!found || str_eqz(storage_class_of(found)->provisioner, NO_PROVISIONER))
        return NULL;
    return take(&found);
}

void kubelet_on_class(void *ctx, const struct object *maybe_old KV_UNUSED,
                      const struct object *maybe_new)
{
    struct kubelet *k = ctx;
    k->classes_changed |= maybe_new != NULL;
}

/* --- zones --- */

/* Where a volume of the class may be, of those that its topology names. */
static struct str allowed_zone(const struct storage_class *class_, uint64_t fate)
{
    for (uint32_t t = 0; t < class_->allowed_topologies.count; t++) {
        const struct topology_term *term = &class_->allowed_topologies.items[t];
        for (uint32_t e = 0; e < term->expressions.count; e++) {
            const struct expression *x = &term->expressions.items[e];
            if (str_ends(x->key, STR("/zone")) && x->values.count > 0)
                return x->values.items[fate % x->values.count];
        }
    }
    return STR("");
}

/* One of the zones that there are nodes in; "" if there are none. */
static struct str node_zone(struct kubelet *k, struct arena *arena, uint64_t fate)
{
    struct object_list nodes = { 0 };
    VEC(struct str) zones = { 0 };

    informer_list(k->nodes, STR(""), &nodes);
    for (size_t i = 0; i < nodes.count; i++) {
        struct str zone = str_map_get(&nodes.items[i]->meta.labels, STR(LABEL_ZONE));
        if (zone.len)
            vec_push(&zones, zone);
    }
    struct str zone = STR("");
    if (zones.items)
        zone = arena_str(arena, zones.items[fate % str_sort_unique(zones.items, zones.count)]);
    vec_done(&zones);
    object_list_done(&nodes);
    return zone;
}

/* --- binding --- */

static json_mut *claim_ref_json(struct json_build *b, const struct pvc *claim)
{
    const struct meta *meta = &claim->object.meta;
    json_mut *ref = json_new_object(b);
    json_set_str(b, ref, "apiVersion", STR("v1"));
    json_set_str(b, ref, "kind", STR("PersistentVolumeClaim"));
    json_set_str(b, ref, "namespace", meta->namespace_);
    json_set_str(b, ref, "name", meta->name);
    json_set_str(b, ref, "uid", meta->uid);
    return ref;
}

static json_mut *zone_affinity_json(struct json_build *b, struct str zone)
{
    json_mut *expression = json_new_object(b), *expressions = json_new_array(b);
    json_mut *values = json_new_array(b), *term = json_new_object(b), *terms = json_new_array(b);
    json_mut *affinity = json_new_object(b);

    json_push(b, values, json_new_str(b, zone));
    json_set_str(b, expression, "key", STR(LABEL_ZONE));
    json_set_str(b, expression, "operator", STR("In"));
    json_set(b, expression, STR("values"), values);
    json_push(b, expressions, expression);
    json_set(b, term, STR("matchExpressions"), expressions);
    json_push(b, terms, term);
    json_set(b, json_mut_object(b, affinity, STR("required")), STR("nodeSelectorTerms"), terms);
    return affinity;
}

/* Named after the claim's UID, as provisioners do: made again, it is the same volume. */
static bool make_volume(struct kubelet *k, const struct pvc *claim,
                        const struct storage_class *class_, struct str name, struct str zone)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, meta, "name", name);
    json_set_str(&b, json_mut_object(&b, meta, STR("annotations")), PROVISIONED_BY,
                 class_->provisioner);

    json_mut *spec = json_mut_object(&b, root, STR("spec"));
    json_set(&b, spec, STR("capacity"), resources_json(&b, &claim->spec.resources.requests));
    json_set(&b, spec, STR("accessModes"), json_strs(&b, &claim->spec.access_modes));
    json_set(&b, spec, STR("claimRef"), claim_ref_json(&b, claim));
    json_set_str(&b, spec, "storageClassName", class_->object.meta.name);
    json_set_str(&b, spec, "persistentVolumeReclaimPolicy",
                 class_->reclaim_policy == RECLAIM_RETAIN ? STR("Retain") : STR("Delete"));
    json_mut *csi = json_mut_object(&b, spec, STR("csi"));
    json_set_str(&b, csi, "driver", storage_driver(class_->provisioner));
    json_set_str(&b, csi, "volumeHandle", name);
    if (zone.len)
        json_set(&b, spec, STR("nodeAffinity"), zone_affinity_json(&b, zone));
    return write_new(k, &pv_kind, STR(""), root) &&
           kubelet_patch_status(k, (struct object_ref){ &pv_kind, STR(""), name },
                                STR("{\"status\":{\"phase\":\"Bound\"}}"));
}

static bool bind_claim(struct kubelet *k, const struct pvc *claim, struct str volume)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_mut *annotations =
        json_mut_object(&b, json_mut_object(&b, root, STR("metadata")), STR("annotations"));
    json_set_str(&b, annotations, BIND_COMPLETED, STR("yes"));
    json_set_str(&b, annotations, BOUND_BY_CONTROLLER, STR("yes"));
    json_set_str(&b, json_mut_object(&b, root, STR("spec")), "volumeName", volume);
    struct object_ref ref = object_ref_of(&claim->object);
    return write_patch(k, ref, root) &&
           kubelet_patch_status(k, ref, STR("{\"status\":{\"phase\":\"Bound\"}}"));
}

static bool provision(struct kubelet *k, const struct pvc *claim,
                      const struct storage_class *class_, struct str zone)
{
    AUTO_ARENA arena = { 0 };
    struct str uid = claim->object.meta.uid;
    struct str name = arena_strf(&arena, "pvc-%.*s", STR_ARG(uid));
    return make_volume(k, claim, class_, name, zone) && bind_claim(k, claim, name);
}

/* A claim that names its volume is bound to it once that is there. Of the others only those are
 * looked at here that wait for nobody. */
static void look_at_claim(struct kubelet *k, const struct pvc *claim)
{
    AUTO_ARENA arena = { 0 };

    if (pvc_is_bound(claim) || claim->object.meta.deleted_us)
        return;
    if (claim->spec.volume_name.len) {
        AUTO_OBJECT volume = read(k, &pv_kind, STR(""), claim->spec.volume_name);
        if (volume)
            bind_claim(k, claim, claim->spec.volume_name);
        return;
    }
    AUTO_OBJECT object = class_of(k, claim);
    const struct storage_class *class_ = object ? storage_class_of(object) : NULL;
    if (!class_ || storage_class_waits(class_))
        return;
    uint64_t fate = fate_of(k->options.seed, claim->object.meta.uid, "zone");
    struct str zone = allowed_zone(class_, fate);
    provision(k, claim, class_, zone.len ? zone : node_zone(k, &arena, fate));
}

/* The volume of a claim whose pod is on the node; NULL: there is none (yet). */
static const struct object *claim_volume(struct kubelet *k, struct str namespace_, struct str name,
                                         const struct node *node)
{
    AUTO_OBJECT object = read(k, &pvc_kind, namespace_, name);
    if (!object)
        return NULL;
    if (!pvc_is_bound(pvc_of(object)) && !pvc_of(object)->spec.volume_name.len) {
        AUTO_OBJECT class_ = class_of(k, pvc_of(object));
        if (!class_ || !storage_class_waits(storage_class_of(class_)) ||
            !provision(k, pvc_of(object), storage_class_of(class_),
                       str_map_get(&node->object.meta.labels, STR(LABEL_ZONE))))
            return NULL;
        object_unref(object);
        object = read(k, &pvc_kind, namespace_, name);
    }
    return object && pvc_is_bound(pvc_of(object))
               ? read(k, &pv_kind, STR(""), pvc_of(object)->spec.volume_name)
               : NULL;
}

/* --- attaching --- */

static struct str attachment_name(struct arena *arena, struct str volume, struct str node)
{
    uint64_t hash = kv_hash_salted(volume.p, volume.len, kv_hash(node.p, node.len));
    return arena_strf(arena, "csi-%016llx", (unsigned long long)hash);
}

static bool is_for_one_node(const struct pv *volume)
{
    for (uint32_t i = 0; i < volume->spec.access_modes.count; i++)
        if (!str_starts(volume->spec.access_modes.items[i], STR("ReadWriteOnce")))
            return false;
    return true;
}

/* Of a volume for one node: which that is. Noted when the attachment is made, not when it comes back: the
 * next pod may ask before. */
static void note_attached(struct kubelet *k, struct str volume, struct str node)
{
    free(str_table_get(&k->attached, volume));
    str_table_put(&k->attached, volume, str_dup(node));
}

static bool is_attached_elsewhere(const struct kubelet *k, struct str volume, struct str node)
{
    const char *where = str_table_get(&k->attached, volume);
    return where && !str_eqz(node, where);
}

void kubelet_on_attachment(void *ctx, const struct object *maybe_old,
                           const struct object *maybe_new)
{
    struct kubelet *k = ctx;
    struct str volume =
        volume_attachment_of(maybe_new ? maybe_new : maybe_old)->spec.source.volume_name;
    if (maybe_new)
        note_attached(k, volume, volume_attachment_of(maybe_new)->spec.node_name);
    else
        free(str_table_remove(&k->attached, volume));
    k->detached |= !maybe_new;
}

static bool attach(struct kubelet *k, const struct pv *volume, const struct node *node)
{
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    struct str volume_name = volume->object.meta.name, node_name = node->object.meta.name;
    struct str name = attachment_name(&arena, volume_name, node_name);

    if (!volume->spec.driver.len) /* nothing is attached of NFS, or of a local disk */
        return true;
    AUTO_OBJECT there = read(k, &volume_attachment_kind, STR(""), name);
    if (there)
        return true;
    if (is_for_one_node(volume) && is_attached_elsewhere(k, volume_name, node_name))
        return false;
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_set_str(&b, json_mut_object(&b, root, STR("metadata")), "name", name);
    json_mut *spec = json_mut_object(&b, root, STR("spec"));
    json_set_str(&b, spec, "attacher", volume->spec.driver);
    json_set_str(&b, spec, "nodeName", node_name);
    json_set_str(&b, json_mut_object(&b, spec, STR("source")), "persistentVolumeName", volume_name);
    note_attached(k, volume_name, node_name);
    return write_new(k, &volume_attachment_kind, STR(""), root) &&
           kubelet_patch_status(k, (struct object_ref){ &volume_attachment_kind, STR(""), name },
                                STR("{\"status\":{\"attached\":true}}"));
}

bool kubelet_volumes_ready(struct kubelet *k, const struct pod *pod, const struct node *node)
{
    AUTO_ARENA arena = { 0 };
    bool ready = true;

    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        struct str claim = pod_volume_claim(pod, &pod->volumes.items[i], &arena);
        if (!claim.p)
            continue;
        AUTO_OBJECT volume = claim_volume(k, pod->object.meta.namespace_, claim, node);
        ready &= volume && attach(k, pv_of(volume), node);
    }
    return ready;
}

/* Does another pod of the node use the claim? */
static bool is_used(struct kubelet *k, struct str node, struct str namespace_, struct str claim)
{
    AUTO_ARENA arena = { 0 };
    struct object_list pods = { 0 };
    bool used = false;

    kubelet_pods_of(k, node, &pods);
    for (size_t i = 0; i < pods.count && !used; i++) {
        const struct pod *pod = pod_of(pods.items[i]);
        if (pod_is_terminal(pod) || !str_eq(pod->object.meta.namespace_, namespace_))
            continue;
        for (uint32_t v = 0; v < pod->volumes.count && !used; v++)
            used = str_eq(pod_volume_claim(pod, &pod->volumes.items[v], &arena), claim);
    }
    object_list_done(&pods);
    return used;
}

static void detach(struct kubelet *k, const struct pod *pod)
{
    AUTO_ARENA arena = { 0 };
    struct str namespace_ = pod->object.meta.namespace_;
    struct err err;

    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        struct str name = pod_volume_claim(pod, &pod->volumes.items[i], &arena);
        if (!name.p || is_used(k, pod->node_name, namespace_, name))
            continue;
        /* One that has gone with its pod is among gone_claims. */
        AUTO_OBJECT claim = informer_get(k->claims, namespace_, name);
        if (!claim || !pvc_of(claim)->spec.volume_name.len)
            continue;
        struct str attachment =
            attachment_name(&arena, pvc_of(claim)->spec.volume_name, pod->node_name);
        store_remove(k->options.store,
                     (struct object_ref){ &volume_attachment_kind, STR(""), attachment }, NULL,
                     &err);
    }
}

/* --- claims that come and go --- */

void kubelet_on_claim(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct kubelet *k = ctx;
    AUTO_BUF key = { 0 };

    if (!maybe_new) {
        vec_push(&k->gone_claims, object_ref(maybe_old));
        return;
    }
    buf_addf(&key, "%.*s/%.*s", STR_ARG(maybe_new->meta.namespace_), STR_ARG(maybe_new->meta.name));
    str_table_put(&k->dirty_claims, buf_str(&key), k);
}

/* Its volume goes with it, wherever it is attached, or stays for somebody to look after. */
static void release_volume(struct kubelet *k, const struct pvc *claim)
{
    struct object_list attachments = { 0 };
    struct str name = claim->spec.volume_name;
    AUTO_OBJECT volume = name.len ? read(k, &pv_kind, STR(""), name) : NULL;
    struct err err;

    if (!volume || !pv_of(volume)->spec.maybe_claim ||
        !str_eq(pv_of(volume)->spec.maybe_claim->uid, claim->object.meta.uid))
        return;
    informer_list_index(k->attachments, 0, name, &attachments);
    for (size_t i = 0; i < attachments.count; i++)
        store_remove(k->options.store, object_ref_of(attachments.items[i]), NULL, &err);
    object_list_done(&attachments);
    if (pv_of(volume)->spec.reclaim_policy == RECLAIM_DELETE)
        store_remove(k->options.store, object_ref_of(volume), NULL, &err);
    else
        kubelet_patch_status(k, object_ref_of(volume),
                             STR("{\"status\":{\"phase\":\"Released\"}}"));
}

/* The claims of a pod's own volume templates: called POD-VOLUME, and gone with the pod. */
static void make_claims(struct kubelet *k, const struct pod *pod)
{
    AUTO_ARENA arena = { 0 };
    const struct meta *owner = &pod->object.meta;

    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        const struct volume_template *t = pod->volumes.items[i].ephemeral.maybe_template;
        if (!t)
            continue;
        AUTO_JSON_BUILD b = { 0 };
        json_build_init(&b);
        json_mut *root = json_new_object(&b), *owners = json_new_array(&b);
        json_mut *ref = json_new_object(&b), *meta = json_mut_object(&b, root, STR("metadata"));
        json_set_str(&b, meta, "name", pod_volume_claim(pod, &pod->volumes.items[i], &arena));
        json_set_str(&b, ref, "apiVersion", STR("v1"));
        json_set_str(&b, ref, "kind", STR("Pod"));
        json_set_str(&b, ref, "name", owner->name);
        json_set_str(&b, ref, "uid", owner->uid);
        json_set_bool(&b, ref, "controller", true);
        json_push(&b, owners, ref);
        json_set(&b, meta, STR("ownerReferences"), owners);
        json_mut *spec = json_mut_object(&b, root, STR("spec"));
        json_set(&b, spec, STR("accessModes"), json_strs(&b, &t->spec.access_modes));
        json_set(&b, json_mut_object(&b, spec, STR("resources")), STR("requests"),
                 resources_json(&b, &t->spec.resources.requests));
        if (t->spec.storage_class_name.p)
            json_set_str(&b, spec, "storageClassName", t->spec.storage_class_name);
        write_new(k, &pvc_kind, owner->namespace_, root);
    }
}

/* --- what was noted --- */

static void look_at_claim_named(struct kubelet *k, struct str key)
{
    struct str namespace_, name;
    str_cut(key, '/', &namespace_, &name);
    AUTO_OBJECT claim = read(k, &pvc_kind, namespace_, name);
    if (claim)
        look_at_claim(k, pvc_of(claim));
}

static void look_at_waiters(struct kubelet *k)
{
    str_table_each(&k->volume_waiters, it) {
        struct kept_pod *p = it->value;
        timers_set(&k->timers, &p->timer, kubelet_now_ns(k));
    }
}

static void note_all_claims(struct kubelet *k)
{
    struct object_list all = { 0 };
    informer_list(k->claims, STR(""), &all);
    for (size_t i = 0; i < all.count; i++)
        kubelet_on_claim(k, NULL, all.items[i]);
    object_list_done(&all);
}

bool kubelet_look_at_volumes(struct kubelet *k)
{
    if (k->classes_changed)
        note_all_claims(k);
    k->classes_changed = false;
    if (!k->template_pods.count && !k->dirty_claims.live_count && !k->ended_pods.count &&
        !k->gone_claims.count && !k->detached)
        return false;

    vec_each(&k->template_pods, const struct object *, pod) {
        make_claims(k, pod_of(*pod));
        object_unref(*pod);
    }
    str_table_each(&k->dirty_claims, it)
        look_at_claim_named(k, it->key);
    vec_each(&k->ended_pods, const struct object *, pod) {
        detach(k, pod_of(*pod));
        object_unref(*pod);
    }
    vec_each(&k->gone_claims, const struct object *, claim) {
        release_volume(k, pvc_of(*claim));
        object_unref(*claim);
    }
    vec_clear(&k->template_pods);
    str_table_clear(&k->dirty_claims);
    vec_clear(&k->ended_pods);
    vec_clear(&k->gone_claims);
    k->detached = false;
    look_at_waiters(k);
    return true;
}

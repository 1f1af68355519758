/* Which pods are alike. See binder_impl.h for what classes, asks and tags are. */
#include "sim/binder_impl.h"

#include "api/requests.h"
#include "cloud/instance_types.h"

/* --- resources --- */

uint32_t resource_id(struct binder *b, struct str name)
{
    uintptr_t known = (uintptr_t)str_table_get(&b->resources, name);
    if (!known) {
        known = b->resource_names.count + 1;
        str_table_put(&b->resources, name, (void *)known);
        vec_push(&b->resource_names, str_table_slot(&b->resources, name)->key);
    }
    return (uint32_t)known - 1;
}

/* --- asks --- */

const void *pod_resized(const struct pod *pod)
{
    for (uint32_t i = 0; i < pod->status->containers.count; i++) {
        const struct container_status *c = &pod->status->containers.items[i];
        if (c->maybe_resources || c->allocated.count)
            return pod->status;
    }
    return NULL;
}

static void ports_add(const struct pod_spec *spec, const struct container *containers,
                      uint32_t count, bool sidecars_only, struct host_port *out, uint32_t *n)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sidecars_only && !container_is_sidecar(&containers[i]))
            continue; /* gone before the others start */
        for (uint32_t k = 0; k < containers[i].ports.count; k++) {
            const struct container_port *p = &containers[i].ports.items[k];
            int64_t number = pod_host_port(spec, p);
            if (number > 0 && out)
                out[*n] = (struct host_port){
                    .ip = p->host_ip.len ? p->host_ip : STR("0.0.0.0"),
                    .port = number,
                    .protocol = p->protocol == PROTOCOL_UNSET ? PROTOCOL_TCP : p->protocol,
                };
            *n += number > 0;
        }
    }
}

static uint32_t ports_list(const struct pod_spec *spec, struct host_port *maybe_out)
{
    uint32_t n = 0;
    ports_add(spec, spec->init_containers.items, spec->init_containers.count, true, maybe_out, &n);
    ports_add(spec, spec->containers.items, spec->containers.count, false, maybe_out, &n);
    return n;
}

static void ask_fill(struct binder *b, struct ask *ask)
{
    const struct pod *pod = ask->pod;
    struct resources requests = { 0 };
    struct err err = { 0 };
    if (pod_requests_on_node(pod, &ask->arena, &requests, &err) < 0)
        ask->maybe_never = "pod asks for more than can be counted";
    if (pod->spec->resource_claims.count)
        ask->maybe_never = "cannot allocate all claims";
    struct amount *amounts = arena_array(&ask->arena, struct amount, requests.count);
    for (uint32_t i = 0; i < requests.count; i++) {
        struct amount a = { resource_id(b, requests.items[i].name),
                            milli_ceil(requests.items[i].amount) };
        if (a.milli > 0)
            amounts[ask->amount_count++] = a;
        if (a.resource == b->cpu)
            ask->cpu_milli = a.milli;
        if (a.resource == b->memory)
            ask->memory_milli = a.milli;
    }
    ask->amounts = amounts;
    ask->port_count = ports_list(pod->spec, NULL);
    struct host_port *ports = arena_array(&ask->arena, struct host_port, ask->port_count);
    ports_list(pod->spec, ports);
    ask->ports = ports;
    ask->only_node = pod_only_node(pod->maybe_affinity);
}

static struct str key_of(const void *const *parts, size_t bytes)
{
    return (struct str){ (const char *)parts, bytes };
}

#define ASK_KEY(pod)                                                                               \
    {                                                                                              \
        (pod)->spec, (pod)->maybe_affinity, pod_resized(pod)                                       \
    }

static struct ask *ask_of(struct binder *b, const struct pod *pod)
{
    const void *parts[] = ASK_KEY(pod);
    struct ask *ask = str_table_get(&b->asks, key_of(parts, sizeof parts));
    if (!ask) {
        ask = kv_calloc(1, sizeof *ask);
        ask->pod = pod_of(object_ref(&pod->object));
        ask_fill(b, ask);
        str_table_put(&b->asks, key_of(parts, sizeof parts), ask);
    }
    ask->users++;
    return ask;
}

static void ask_drop(struct binder *b, struct ask *ask)
{
    const void *parts[] = ASK_KEY(ask->pod);
    if (--ask->users)
        return;
    str_table_remove(&b->asks, key_of(parts, sizeof parts));
    object_unref(&ask->pod->object);
    arena_done(&ask->arena);
    vec_done(&ask->fits);
    free(ask);
}

enum ask_fit ask_fit(struct ask *ask, const struct binder *b, uint32_t node)
{
    const struct site *site = b->sites.items[node];
    const struct pod_spec *spec = ask->pod->spec;
    bool kept = !ask->only_node.p;
    if (kept) {
        if (ask->fits.count <= node) {
            size_t count = ask->fits.count;
            vec_reserve(&ask->fits, b->sites.count);
            memset(ask->fits.items + count, 0, b->sites.count - count);
            ask->fits.count = b->sites.count;
        }
        if (ask->fits.items[node] != ASK_FIT_UNKNOWN)
            return (enum ask_fit)ask->fits.items[node];
    }
    /* As kube-scheduler: taints first, so that its words are the same. */
    enum ask_fit fit = node_taint_in_the_way(site->maybe_node, EFFECTS_THAT_REPEL,
                                             spec->tolerations.items, spec->tolerations.count)
                           ? ASK_FIT_TAINT
                       : node_matches_pod(site->maybe_node, spec, ask->pod->maybe_affinity)
                           ? ASK_FIT_YES
                           : ASK_FIT_LABELS;
    if (kept)
        ask->fits.items[node] = (uint8_t)fit;
    return fit;
}

bool ask_fits_room(const struct ask *ask, const struct site *site)
{
    for (uint32_t i = 0; i < ask->amount_count; i++) {
        const struct amount *a = &ask->amounts[i];
        if (a->resource >= site->free.count || site->free.items[a->resource] < a->milli)
            return false;
    }
    return true;
}

bool ports_clash(const struct ask *a, const struct ask *b)
{
    for (uint32_t i = 0; i < a->port_count; i++) {
        for (uint32_t k = 0; k < b->port_count; k++) {
            const struct host_port *p = &a->ports[i], *q = &b->ports[k];
            if (p->port == q->port && p->protocol == q->protocol &&
                (str_eq(p->ip, q->ip) || str_eqz(p->ip, "0.0.0.0") || str_eqz(q->ip, "0.0.0.0")))
                return true;
        }
    }
    return false;
}

/* --- tags --- */

static void tag_key(const struct pod *pod, struct buf *out)
{
    const void *labels = pod->object.meta.labels.items;
    buf_add(out, (struct str){ (const char *)&labels, sizeof labels });
    buf_add(out, pod->object.meta.namespace_);
}

static struct tag *tag_of(struct binder *b, const struct pod *pod)
{
    AUTO_BUF key = { 0 };
    tag_key(pod, &key);
    struct tag *tag = str_table_get(&b->tags, buf_str(&key));
    if (!tag) {
        tag = kv_calloc(1, sizeof *tag);
        tag->pod = pod_of(object_ref(&pod->object));
        str_table_put(&b->tags, buf_str(&key), tag);
        tag_match(b, tag);
    }
    tag->users++;
    return tag;
}

static void tag_drop(struct binder *b, struct tag *tag)
{
    AUTO_BUF key = { 0 };
    if (--tag->users)
        return;
    tag_key(tag->pod, &key);
    str_table_remove(&b->tags, buf_str(&key));
    object_unref(&tag->pod->object);
    vec_done(&tag->matched);
    free(tag);
}

/* --- classes --- */

static bool has_own_claims(const struct pod *pod) /* whose names are made from the pod's */
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        if (pod->volumes.items[i].ephemeral.maybe_template)
            return true;
    }
    return false;
}

static void class_key(const struct pod *pod, struct buf *out)
{
    const void *parts[] = { pod->spec, pod->maybe_affinity, pod_resized(pod),
                            pod->object.meta.labels.items, pod->volumes.items };
    buf_add(out, key_of(parts, sizeof parts));
    buf_add(out, pod->object.meta.namespace_);
    if (has_own_claims(pod))
        buf_addf(out, "/%.*s", STR_ARG(pod->object.meta.name));
}

struct class *class_find(struct binder *b, const struct pod *pod)
{
    AUTO_BUF key = { 0 };
    class_key(pod, &key);
    struct class *class = str_table_get(&b->classes, buf_str(&key));
    KV_ASSERT(class != NULL);
    return class;
}

struct class *class_of(struct binder *b, const struct pod *pod)
{
    AUTO_BUF key = { 0 };
    class_key(pod, &key);
    struct class *class = str_table_get(&b->classes, buf_str(&key));
    if (!class) {
        class = kv_calloc(1, sizeof *class);
        class->pod = pod_of(object_ref(&pod->object));
        class->ask = ask_of(b, pod);
        class->tag = tag_of(b, pod);
        class->has_claims = pod_has_claims(pod);
        str_table_put(&b->classes, buf_str(&key), class);
        terms_own(b, class);
    }
    class->users++;
    return class;
}

static void class_leave(struct class *class, struct class **items, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (items[i] != class)
            items[kept++] = items[i];
    }
    *count = kept;
}

void class_drop(struct binder *b, struct class *class)
{
    AUTO_BUF key = { 0 };
    if (--class->users)
        return;
    class_key(class->pod, &key);
    str_table_remove(&b->classes, buf_str(&key));
    if (class->ready)
        class_leave(class, b->ready.items, &b->ready.count);
    if (class->telling)
        class_leave(class, b->telling.items, &b->telling.count);
    if (class->listed)
        class_leave(class, b->blocked.items, &b->blocked.count);
    terms_disown(b, class);
    ask_drop(b, class->ask);
    tag_drop(b, class->tag);
    object_unref(&class->pod->object);
    vec_done(&class->terms);
    vec_done(&class->waiting);
    vec_done(&class->heap);
    free(class->message);
    free(class);
}

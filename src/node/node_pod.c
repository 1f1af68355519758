/* Life of a node's pods, and the questions asked of them. */
#include "node/node_pod.h"

#include "node/node_pod_inner.h"

/* --- life --- */

static void node_pod_free(struct node_pod *pod)
{
    doc_done(&pod->doc);
    arena_done(&pod->arena);
    free(pod);
}

const struct node_pod *node_pod_ref(const struct node_pod *pod)
{
    rc_ref(&pod->rc);
    return pod;
}

void node_pod_unref(const struct node_pod *pod)
{
    if (pod && rc_unref(&pod->rc))
        node_pod_free((struct node_pod *)pod);
}

int node_pod_decode(struct doc *doc, enum pod_source source, const struct node_pod **out,
                    struct err *err)
{
    struct node_pod *pod = kv_calloc(1, sizeof *pod);
    rc_init(&pod->rc);
    pod->source = (uint8_t)source;
    pod->doc = *doc;
    pod->doc.text = STR_NONE; /* borrowed, for positions: nobody asks for them any more */
    *doc = (struct doc){ 0 };
    if (node_pod_fill(pod, err) < 0) {
        node_pod_free(pod);
        return -1;
    }
    *out = pod;
    return 0;
}

/* --- questions --- */

bool node_pod_is_static(const struct node_pod *pod)
{
    return pod->source == POD_FROM_FILE;
}

static const struct node_container *find(const struct node_container *items, uint32_t count,
                                         struct str name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (str_eq(items[i].name, name))
            return &items[i];
    }
    return NULL;
}

const struct node_container *node_pod_container(const struct node_pod *pod, struct str name)
{
    const struct node_container *c = find(pod->containers.items, pod->containers.count, name);
    if (!c)
        c = find(pod->inits.items, pod->inits.count, name);
    return c ? c : find(pod->ephemerals.items, pod->ephemerals.count, name);
}

/* All but the moment at which a file was first seen. */
static bool annotations_same(const struct str_map *a, const struct str_map *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) { /* both sorted by key */
        if (!str_eq(a->items[i].key, b->items[i].key))
            return false;
        if (!str_eq(a->items[i].key, STR(ANNOTATION_CONFIG_SEEN)) &&
            !str_eq(a->items[i].value, b->items[i].value))
            return false;
    }
    return true;
}

bool node_pod_same(const struct node_pod *a, const struct node_pod *b)
{
    const json_val *meta_a = json_get(a->doc.root, STR("metadata"));
    const json_val *meta_b = json_get(b->doc.root, STR("metadata"));
    const json_val *labels_a = json_get(meta_a, STR("labels"));
    const json_val *labels_b = json_get(meta_b, STR("labels"));
    if (a == b)
        return true;
    return a->source == b->source && str_eq(a->uid, b->uid) && str_eq(a->name, b->name) &&
           str_eq(a->namespace_, b->namespace_) && a->deleted_us == b->deleted_us &&
           a->deletion_grace_s.set == b->deletion_grace_s.set &&
           a->deletion_grace_s.value == b->deletion_grace_s.value &&
           annotations_same(&a->annotations, &b->annotations) &&
           a->labels.count == b->labels.count &&
           (a->labels.count == 0 || json_equal(labels_a, labels_b)) &&
           json_equal(json_get(a->doc.root, STR("spec")), json_get(b->doc.root, STR("spec")));
}

int64_t handler_port(const struct handler *handler, const struct node_container *container)
{
    int64_t number;
    if (!handler->port_name.len)
        return handler->port;
    for (uint32_t i = 0; i < container->ports.count; i++) {
        if (str_eq(container->ports.items[i].name, handler->port_name))
            return container->ports.items[i].container_port;
    }
    /* "8080" in quotes is a number all the same. */
    if (str_to_i64(handler->port_name, &number) && number > 0 && number <= 65535)
        return number;
    return 0;
}

uint8_t node_pod_restart_policy(const struct node_pod *pod, const struct node_container *container)
{
    switch ((enum container_restart)container->restart_policy) {
    case CONTAINER_RESTART_ALWAYS:
        return RESTART_ALWAYS;
    case CONTAINER_RESTART_NEVER:
        return RESTART_NEVER;
    case CONTAINER_RESTART_ON_FAILURE:
        return RESTART_ON_FAILURE;
    case CONTAINER_RESTART_UNSET:
        break;
    }
    return pod->restart_policy;
}

/* The relist's hot path: every second two listings, of which a dozenth is of interest. The generated
 * decoder makes a message of every label and annotation (some 5,000 for 200 containers), so the
 * listings are read straight from the wire instead: a field that is not needed is stepped over,
 * and strings are copied once, when it is known which pod they are of:
 *
 *     listing  ::= items of field 1
 *     sandbox  ::= 1 id, 2 metadata { 1 name, 2 uid, 3 namespace, 4 attempt }, 3 state, 4 created
 *     container::= 1 id, 2 sandbox, 3 metadata { 1 name, 2 attempt }, 6 state, 7 created, 8 labels
 *     label    ::= 1 key, 2 value
 *
 * Then one sort puts the items of a pod next to each other, newest first. */
#include "node/cri_inner.h"

#define LABEL_NAME "io.kubernetes.pod.name"
#define LABEL_NAMESPACE "io.kubernetes.pod.namespace"

/* --- the wire --- */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
    const uint8_t *p, *end;
};

struct wire_field {
    uint32_t tag;     /* number and type, so that a field of another type is an unknown one */
    uint64_t value;   /* of a varint */
    struct str bytes; /* of WIRE_BYTES */
};
#define BYTES_FIELD(number_) ((number_) << 3 | WIRE_BYTES)
#define VARINT_FIELD(number_) ((number_) << 3 | WIRE_VARINT)

static struct wire wire_of(struct str bytes)
{
    const uint8_t *p = (const uint8_t *)(bytes.p ? bytes.p : "");
    return (struct wire){ p, p + bytes.len };
}

static inline bool read_varint(struct wire *w, uint64_t *out)
{
    if (KV_LIKELY(w->p < w->end && *w->p < 0x80)) { /* nearly every tag and length */
        *out = *w->p++;
        return true;
    }
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64 && w->p < w->end; shift += 7) {
        uint8_t byte = *w->p++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* 1: a field; 0: the end; -1: this is no message. */
static inline int next_field(struct wire *w, struct wire_field *f)
{
    uint64_t tag, length;
    if (w->p == w->end)
        return 0;
    if (!read_varint(w, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
        return -1;
    *f = (struct wire_field){ .tag = (uint32_t)tag };
    switch (tag & 7) {
    case WIRE_VARINT:
        return read_varint(w, &f->value) ? 1 : -1;
    case WIRE_BYTES:
        if (!read_varint(w, &length))
            return -1;
        f->bytes = (struct str){ (const char *)w->p, (size_t)length };
        break;
    case WIRE_FIXED64:
        length = 8;
        break;
    case WIRE_FIXED32:
        length = 4;
        break;
    default: /* groups: nobody has sent them for a long time */
        return -1;
    }
    if (length > (uint64_t)(w->end - w->p))
        return -1;
    w->p += length;
    return 1;
}

/* --- items --- */

struct item { /* strings are of the reply */
    struct str uid, pod_name, namespace_;
    uint64_t uid_start; /* see start_of */
    struct listed listed;
    bool container;
};

static int read_sandbox_metadata(struct str bytes, struct item *item)
{
    struct wire w = wire_of(bytes);
    struct wire_field f;
    int rc;
    while ((rc = next_field(&w, &f)) > 0) {
        switch (f.tag) {
        case BYTES_FIELD(1):
            item->pod_name = f.bytes;
            break;
        case BYTES_FIELD(2):
            item->uid = f.bytes;
            break;
        case BYTES_FIELD(3):
            item->namespace_ = f.bytes;
            break;
        case VARINT_FIELD(4):
            item->listed.attempt = (uint32_t)f.value;
            break;
        default:
            break;
        }
    }
    return rc;
}

static int read_sandbox(struct str bytes, struct item *item)
{
    struct wire w = wire_of(bytes);
    struct wire_field f;
    int rc;
    item->listed.state = RUNTIME_RUNNING; /* READY is 0, and not sent */
    while ((rc = next_field(&w, &f)) > 0) {
        switch (f.tag) {
        case BYTES_FIELD(1):
            item->listed.id = f.bytes;
            break;
        case BYTES_FIELD(2):
            if (read_sandbox_metadata(f.bytes, item) < 0)
                return -1;
            break;
        case VARINT_FIELD(3):
            item->listed.state =
                f.value == CRI__POD_SANDBOX_STATE__READY ? RUNTIME_RUNNING : RUNTIME_EXITED;
            break;
        case VARINT_FIELD(4):
            item->listed.created_ns = (int64_t)f.value;
            break;
        default:
            break;
        }
    }
    return rc;
}

static int read_container_metadata(struct str bytes, struct item *item)
{
    struct wire w = wire_of(bytes);
    struct wire_field f;
    int rc;
    while ((rc = next_field(&w, &f)) > 0) {
        if (f.tag == BYTES_FIELD(1))
            item->listed.name = f.bytes;
        else if (f.tag == VARINT_FIELD(2))
            item->listed.attempt = (uint32_t)f.value;
    }
    return rc;
}

static int read_label(struct str bytes, struct item *item)
{
    struct wire w = wire_of(bytes);
    struct wire_field f;
    struct str key = STR(""), value = STR("");
    int rc;
    while ((rc = next_field(&w, &f)) > 0) {
        if (f.tag == BYTES_FIELD(1))
            key = f.bytes;
        else if (f.tag == BYTES_FIELD(2))
            value = f.bytes;
    }
    if (str_eq(key, STR(CRI_LABEL_UID)))
        item->uid = value;
    else if (str_eq(key, STR(LABEL_NAME)))
        item->pod_name = value;
    else if (str_eq(key, STR(LABEL_NAMESPACE)))
        item->namespace_ = value;
    return rc;
}

uint8_t cri_container_state(uint64_t state)
{
    switch (state) {
    case CRI__CONTAINER_STATE__CREATED:
        return RUNTIME_CREATED;
    case CRI__CONTAINER_STATE__RUNNING:
        return RUNTIME_RUNNING;
    case CRI__CONTAINER_STATE__EXITED:
        return RUNTIME_EXITED;
    default:
        return RUNTIME_UNKNOWN;
    }
}

static int read_container(struct str bytes, struct item *item)
{
    struct wire w = wire_of(bytes);
    struct wire_field f;
    int rc;
    item->container = true;
    item->listed.sandbox_id = STR("");
    item->listed.state = RUNTIME_CREATED; /* is 0, and not sent */
    while ((rc = next_field(&w, &f)) > 0) {
        switch (f.tag) {
        case BYTES_FIELD(1):
            item->listed.id = f.bytes;
            break;
        case BYTES_FIELD(2):
            item->listed.sandbox_id = f.bytes;
            break;
        case BYTES_FIELD(3):
            if (read_container_metadata(f.bytes, item) < 0)
                return -1;
            break;
        case VARINT_FIELD(6):
            item->listed.state = cri_container_state(f.value);
            break;
        case VARINT_FIELD(7):
            item->listed.created_ns = (int64_t)f.value;
            break;
        case BYTES_FIELD(8):
            if (read_label(f.bytes, item) < 0)
                return -1;
            break;
        default:
            break;
        }
    }
    return rc;
}

/* --- a listing --- */

struct items {
    struct item *all;
    uint32_t count;
    struct str maybe_uid; /* only of this pod */
};

/* How many items are in there? -1: this is no listing. */
static int64_t count_items(struct str bytes)
{
    struct wire w = wire_of(bytes);
    struct wire_field f;
    int64_t count = 0;
    int rc;
    while ((rc = next_field(&w, &f)) > 0)
        count += f.tag == BYTES_FIELD(1);
    return rc < 0 ? -1 : count;
}

/* The first bytes as a number: where two differ, so do the strings, in the same order. Of uids they
 * nearly always do. */
static uint64_t start_of(struct str s)
{
    uint64_t start = 0;
    for (size_t i = 0; i < sizeof start; i++)
        start = start << 8 | (i < s.len ? (uint8_t)s.p[i] : 0);
    return start;
}

/* What is of no pod (made without metadata or labels, so by no agent) is left out, and what has no id:
 * nobody could ask for it. */
static int read_items(struct str bytes, int (*read)(struct str bytes, struct item *item),
                      struct items *items)
{
    struct wire w = wire_of(bytes);
    struct wire_field f;
    int rc;
    while ((rc = next_field(&w, &f)) > 0) {
        if (f.tag != BYTES_FIELD(1))
            continue;
        struct item item = { .listed = { .id = STR(""), .name = STR("") },
                             .uid = STR(""),
                             .pod_name = STR(""),
                             .namespace_ = STR("") };
        if (read(f.bytes, &item) < 0)
            return -1;
        if (item.uid.len == 0 || item.listed.id.len == 0)
            continue;
        if (items->maybe_uid.p && !str_eq(items->maybe_uid, item.uid))
            continue;
        item.uid_start = start_of(item.uid);
        items->all[items->count++] = item;
    }
    return rc;
}

/* By pod; then sandboxes before containers, each newest first. */
static int item_order(const void *a, const void *b)
{
    const struct item *x = *(const struct item *const *)a, *y = *(const struct item *const *)b;
    if (x->uid_start != y->uid_start)
        return x->uid_start < y->uid_start ? -1 : 1;
    int by_uid = str_cmp(x->uid, y->uid);
    if (by_uid)
        return by_uid;
    if (x->container != y->container)
        return x->container ? 1 : -1;
    if (x->listed.created_ns != y->listed.created_ns)
        return x->listed.created_ns > y->listed.created_ns ? -1 : 1;
    return str_cmp(x->listed.id, y->listed.id);
}

static struct item **sorted_items(struct arena *scratch, const struct items *items)
{
    struct item **sorted = arena_array(scratch, struct item *, items->count);
    for (uint32_t i = 0; i < items->count; i++)
        sorted[i] = &items->all[i];
    qsort(sorted, items->count, sizeof *sorted, item_order);
    return sorted;
}

/* A container is nearly always in one of its pod's sandboxes, whose id is already kept. */
static struct str keep_sandbox_id(struct arena *arena, struct str id,
                                  const struct listed *sandboxes, uint32_t sandbox_count)
{
    for (uint32_t i = 0; i < sandbox_count; i++) {
        if (str_eq(sandboxes[i].id, id))
            return sandboxes[i].id;
    }
    return arena_str(arena, id);
}

/* `sorted` are the items of one pod. Its name is that of the newest sandbox, else container. */
static struct runtime_pod build_pod(struct arena *arena, struct item *const *sorted, uint32_t count,
                                    struct listed *listed)
{
    struct runtime_pod pod = { .uid = arena_str(arena, sorted[0]->uid),
                               .name = arena_str(arena, sorted[0]->pod_name),
                               .namespace_ = arena_str(arena, sorted[0]->namespace_) };
    uint32_t sandbox_count = 0;
    while (sandbox_count < count && !sorted[sandbox_count]->container)
        sandbox_count++;
    for (uint32_t i = 0; i < count; i++) {
        listed[i] = sorted[i]->listed;
        listed[i].id = arena_str(arena, listed[i].id);
        if (sorted[i]->container) {
            listed[i].name = arena_str(arena, listed[i].name);
            listed[i].sandbox_id =
                keep_sandbox_id(arena, listed[i].sandbox_id, listed, sandbox_count);
        }
    }
    pod.sandboxes.items = listed;
    pod.sandboxes.count = sandbox_count;
    pod.containers.items = listed + sandbox_count;
    pod.containers.count = count - sandbox_count;
    return pod;
}

static void build_pods(struct arena *arena, struct item *const *sorted, uint32_t count,
                       struct runtime_listing *out)
{
    uint32_t pod_count = 0;
    for (uint32_t i = 0; i < count; i++)
        pod_count += i == 0 || !str_eq(sorted[i]->uid, sorted[i - 1]->uid);
    struct runtime_pod *pods = arena_array(arena, struct runtime_pod, pod_count);
    struct listed *listed = arena_array(arena, struct listed, count);
    uint32_t pod = 0;
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && str_eq(sorted[to]->uid, sorted[from]->uid);)
            to++;
        pods[pod++] = build_pod(arena, sorted + from, to - from, listed + from);
    }
    out->pods = pods;
    out->pod_count = pod_count;
}

int cri_listing_build(struct str sandboxes, struct str containers, struct str maybe_uid,
                      struct arena *arena, struct runtime_listing *out, struct err *err)
{
    int64_t sandbox_count = count_items(sandboxes), container_count = count_items(containers);
    if (sandbox_count > CRI_LISTED_MAX || container_count > CRI_LISTED_MAX)
        return err_set(err, ERR_CAPACITY, "the runtime lists more than %d sandboxes or containers",
                       CRI_LISTED_MAX);
    AUTO_ARENA scratch = { 0 };
    struct items items = { .maybe_uid = maybe_uid };
    size_t room = (size_t)(sandbox_count > 0 ? sandbox_count : 0) +
                  (size_t)(container_count > 0 ? container_count : 0);
    items.all = arena_array(&scratch, struct item, room);
    if (sandbox_count < 0 || read_items(sandboxes, read_sandbox, &items) < 0)
        return err_set(err, ERR_INTERNAL, "%s: the reply of %zu bytes is malformed",
                       cri_method_name(CRI_LIST_POD_SANDBOX), sandboxes.len);
    if (container_count < 0 || read_items(containers, read_container, &items) < 0)
        return err_set(err, ERR_INTERNAL, "%s: the reply of %zu bytes is malformed",
                       cri_method_name(CRI_LIST_CONTAINERS), containers.len);
    build_pods(arena, sorted_items(&scratch, &items), items.count, out);
    return 0;
}

/* --- has anything changed? --- */

/* A runtime lists in another order each time, so the digest is a sum. Ids are random, and nobody chooses
 * what they add up to. */
static int add_digest(struct str bytes, uint32_t state_tag, uint64_t *sum)
{
    struct wire list = wire_of(bytes);
    struct wire_field item, f;
    int list_rc, rc;
    while ((list_rc = next_field(&list, &item)) > 0) {
        if (item.tag != BYTES_FIELD(1))
            continue;
        struct wire w = wire_of(item.bytes);
        struct str id = STR("");
        uint64_t state = 0;
        while ((rc = next_field(&w, &f)) > 0) {
            if (f.tag == BYTES_FIELD(1))
                id = f.bytes;
            else if (f.tag == state_tag)
                state = f.value;
        }
        if (rc < 0)
            return -1;
        *sum += kv_mix64(kv_hash(id.p, id.len) ^ kv_mix64(state << 8 | state_tag));
    }
    return list_rc;
}

uint64_t cri_listing_digest(struct str sandboxes, struct str containers)
{
    uint64_t sum = 0;
    if (add_digest(sandboxes, VARINT_FIELD(3), &sum) < 0 ||
        add_digest(containers, VARINT_FIELD(6), &sum) < 0)
        return 0;
    return sum ? sum : 1;
}

/* --- asking for it --- */

static void pending_cleanup(struct cri_pending **p)
{
    cri_pending_free(*p);
}
#define AUTO_PENDING __attribute__((cleanup(pending_cleanup))) struct cri_pending *

static struct cri_pending *start_list(struct cri *cri, enum cri_method method, const void *request,
                                      struct cri_cancel *maybe_cancel)
{
    struct cri_pending *pending = cri_start(cri, method, request, CRI_TIMEOUT_NS, NULL, NULL);
    if (maybe_cancel)
        cri_cancel_enter(maybe_cancel, pending);
    return pending;
}

static struct cri_pending *start_sandboxes(struct cri *cri, Cri__Entry *maybe_label,
                                           struct cri_cancel *maybe_cancel)
{
    Cri__PodSandboxFilter filter = CRI__POD_SANDBOX_FILTER__INIT;
    Cri__ListPodSandboxRequest request = CRI__LIST_POD_SANDBOX_REQUEST__INIT;
    if (maybe_label) {
        filter.label_selector = &maybe_label;
        filter.n_label_selector = 1;
        request.filter = &filter;
    }
    return start_list(cri, CRI_LIST_POD_SANDBOX, &request, maybe_cancel);
}

static struct cri_pending *start_containers(struct cri *cri, Cri__Entry *maybe_label,
                                            struct cri_cancel *maybe_cancel)
{
    Cri__ContainerFilter filter = CRI__CONTAINER_FILTER__INIT;
    Cri__ListContainersRequest request = CRI__LIST_CONTAINERS_REQUEST__INIT;
    if (maybe_label) {
        filter.label_selector = &maybe_label;
        filter.n_label_selector = 1;
        request.filter = &filter;
    }
    return start_list(cri, CRI_LIST_CONTAINERS, &request, maybe_cancel);
}

int cri_list(struct cri *cri, struct str maybe_uid, struct arena *arena,
             struct runtime_listing *out, struct err *err)
{
    return cri_list_until(cri, maybe_uid, NULL, NULL, arena, out, err);
}

int cri_list_until(struct cri *cri, struct str maybe_uid, struct cri_cancel *maybe_cancel,
                   uint64_t *maybe_digest, struct arena *arena, struct runtime_listing *out,
                   struct err *err)
{
    AUTO_FREE char *uid = maybe_uid.p ? str_dup(maybe_uid) : NULL;
    char key[] = CRI_LABEL_UID;
    Cri__Entry label = CRI__ENTRY__INIT;
    label.key = key;
    label.value = uid;
    Cri__Entry *maybe_label = uid ? &label : NULL;

    struct runtime_listing listing = { .timestamp_ns = cri_now_ns(cri) };
    cri_cork(cri);
    AUTO_PENDING sandboxes = start_sandboxes(cri, maybe_label, maybe_cancel);
    AUTO_PENDING containers = start_containers(cri, maybe_label, maybe_cancel);
    struct str sandbox_bytes, container_bytes;
    /* The longer one first: when that is here, so is the other, and nobody is woken for it. */
    if (cri_uncork_take_bytes(containers, &container_bytes, err) < 0 ||
        cri_take_bytes(sandboxes, &sandbox_bytes, err) < 0)
        return -1;
    if (uid && sandbox_bytes.len == 0) {
        /* It has no sandbox, or one that was made by hand, with metadata and without labels. The listing of
         * all pods shows that one, so this must too: or it would come and go for ever. */
        cri_pending_free(sandboxes);
        sandboxes = start_sandboxes(cri, NULL, maybe_cancel);
        if (cri_take_bytes(sandboxes, &sandbox_bytes, err) < 0)
            return -1;
    }
    uint64_t digest = maybe_digest ? cri_listing_digest(sandbox_bytes, container_bytes) : 0;
    bool known = digest && digest == *maybe_digest;
    if (!known &&
        cri_listing_build(sandbox_bytes, container_bytes, maybe_uid, arena, &listing, err) < 0)
        return -1;
    if (maybe_digest)
        *maybe_digest = digest;
    *out = listing;
    return known;
}

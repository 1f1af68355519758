/* node/pleg_records.c - two listings of a pod side by side.
 *
 * Sandboxes and containers are treated alike: things with an id that are absent, unknown (created,
 * or their state is lost), running or exited. For each id of either listing the old state and the
 * new one give events:
 *
 *     new         old             events
 *     same        -               none
 *     running     any other       started
 *     exited      any other       died
 *     unknown     any other       none, but the pod has changed and is inspected
 *     absent      exited          removed
 *     absent      other           died, removed
 *
 * Nearly always nothing has changed, and the lists, which are sorted newest first, are equal item
 * by item; only when they are not are the ids of both sorted and merged.
 */
#include "node/pleg_records.h"

/* --- what was seen --- */

static size_t listed_bytes(const struct listed *items, uint32_t count)
{
    size_t bytes = count * sizeof *items;
    for (uint32_t i = 0; i < count; i++)
        bytes += items[i].id.len + items[i].name.len + items[i].sandbox_id.len;
    return bytes;
}

static struct str copy_str(char **at, struct str s)
{
    if (!s.p)
        return s;
    struct str copy = { *at, s.len };
    if (s.len)
        memcpy(*at, s.p, s.len);
    *at += s.len;
    return copy;
}

static void copy_listed(struct listed *to, const struct listed *from, uint32_t count, char **at)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].id = copy_str(at, from[i].id);
        to[i].name = copy_str(at, from[i].name);
        to[i].sandbox_id = copy_str(at, from[i].sandbox_id);
    }
}

struct runtime_pod *seen_pod_new(const struct runtime_pod *listed)
{
    uint32_t sandbox_count = listed->sandboxes.count, container_count = listed->containers.count;
    size_t bytes = sizeof *listed + listed_bytes(listed->sandboxes.items, sandbox_count) +
                   listed_bytes(listed->containers.items, container_count) + listed->uid.len +
                   listed->name.len + listed->namespace_.len;
    struct runtime_pod *pod = kv_malloc(bytes);
    struct listed *sandboxes = (struct listed *)(pod + 1);
    struct listed *containers = sandboxes + sandbox_count;
    char *text = (char *)(containers + container_count);

    copy_listed(sandboxes, listed->sandboxes.items, sandbox_count, &text);
    copy_listed(containers, listed->containers.items, container_count, &text);
    *pod = (struct runtime_pod){
        .uid = copy_str(&text, listed->uid),
        .name = copy_str(&text, listed->name),
        .namespace_ = copy_str(&text, listed->namespace_),
        .sandboxes = { sandboxes, sandbox_count },
        .containers = { containers, container_count },
    };
    return pod;
}

enum seen_state { SEEN_ABSENT, SEEN_UNKNOWN, SEEN_RUNNING, SEEN_EXITED };

static enum seen_state seen_state(const struct listed *maybe_listed)
{
    if (!maybe_listed)
        return SEEN_ABSENT;
    switch ((enum runtime_state)maybe_listed->state) {
    case RUNTIME_RUNNING:
        return SEEN_RUNNING;
    case RUNTIME_EXITED:
        return SEEN_EXITED;
    case RUNTIME_CREATED:
    case RUNTIME_UNKNOWN:
        return SEEN_UNKNOWN;
    }
    KV_UNREACHABLE();
}

static bool lists_equal(const struct listed *a, uint32_t a_count, const struct listed *b,
                        uint32_t b_count)
{
    if (a_count != b_count)
        return false;
    for (uint32_t i = 0; i < a_count; i++) {
        if (seen_state(&a[i]) != seen_state(&b[i]) || !str_eq(a[i].id, b[i].id))
            return false;
    }
    return true;
}

static bool pods_equal(const struct runtime_pod *maybe_a, const struct runtime_pod *maybe_b)
{
    if (!maybe_a || !maybe_b)
        return maybe_a == maybe_b;
    return lists_equal(maybe_a->sandboxes.items, maybe_a->sandboxes.count, maybe_b->sandboxes.items,
                       maybe_b->sandboxes.count) &&
           lists_equal(maybe_a->containers.items, maybe_a->containers.count,
                       maybe_b->containers.items, maybe_b->containers.count);
}

bool seen_same(const struct runtime_pod *maybe_old, const struct runtime_pod *maybe_new)
{
    if (pods_equal(maybe_old, maybe_new))
        return true;
    AUTO_ARENA scratch = { 0 }; /* perhaps only the order is another */
    return !changes_between(&scratch, maybe_old, maybe_new).any;
}

/* --- what changed --- */

struct item {
    const struct listed *listed;
    bool sandbox;
};

static int by_id(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = str_cmp(x->listed->id, y->listed->id);
    if (order)
        return order;
    if (x->sandbox != y->sandbox)
        return x->sandbox ? -1 : 1;
    return (int)x->listed->state - (int)y->listed->state;
}

/* Everything of the pod by id. A runtime that lists an id twice has one of them. */
static uint32_t items_sorted(struct arena *arena, const struct runtime_pod *maybe_pod,
                             struct item **out)
{
    uint32_t count = maybe_pod ? maybe_pod->sandboxes.count + maybe_pod->containers.count : 0;
    if (!count) {
        *out = NULL;
        return 0;
    }
    struct item *items = arena_array(arena, struct item, count), *end = items;
    for (uint32_t i = 0; i < maybe_pod->sandboxes.count; i++)
        *end++ = (struct item){ &maybe_pod->sandboxes.items[i], true };
    for (uint32_t i = 0; i < maybe_pod->containers.count; i++)
        *end++ = (struct item){ &maybe_pod->containers.items[i], false };
    qsort(items, count, sizeof *items, by_id);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (!str_eq(items[i].listed->id, items[kept - 1].listed->id))
            items[kept++] = items[i];
    }
    *out = items;
    return kept;
}

static void add_change(struct changes *changes, enum pod_event_type type, struct item item)
{
    changes->items[changes->count++] = (struct change){
        .type = type,
        .sandbox = item.sandbox,
        .id = item.listed->id,
        .name = item.listed->name,
        .created_ns = item.listed->created_ns,
    };
}

/* One id; either side may be NULL, not both. */
static void compare(struct changes *changes, const struct item *maybe_old,
                    const struct item *maybe_new)
{
    enum seen_state old = seen_state(maybe_old ? maybe_old->listed : NULL);
    enum seen_state new = seen_state(maybe_new ? maybe_new->listed : NULL);
    if (old == new)
        return;
    changes->any = true;
    switch (new) {
    case SEEN_RUNNING:
        add_change(changes, POD_EVENT_STARTED, *maybe_new);
        return;
    case SEEN_EXITED:
        add_change(changes, POD_EVENT_DIED, *maybe_new);
        return;
    case SEEN_ABSENT:
        if (old != SEEN_EXITED)
            add_change(changes, POD_EVENT_DIED, *maybe_old);
        add_change(changes, POD_EVENT_REMOVED, *maybe_old);
        return;
    case SEEN_UNKNOWN:
        return;
    }
    KV_UNREACHABLE();
}

static int in_telling_order(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    bool x_starts = x->type == POD_EVENT_STARTED, y_starts = y->type == POD_EVENT_STARTED;
    if (x_starts != y_starts)
        return x_starts ? 1 : -1;
    if (x->sandbox != y->sandbox)
        return x->sandbox == x_starts ? -1 : 1;
    if (x->created_ns != y->created_ns)
        return x->created_ns < y->created_ns ? -1 : 1;
    int order = str_cmp(x->id, y->id);
    return order ? order : (int)x->type - (int)y->type;
}

struct changes changes_between(struct arena *arena, const struct runtime_pod *maybe_old,
                               const struct runtime_pod *maybe_new)
{
    struct changes changes = { 0 };
    if (pods_equal(maybe_old, maybe_new))
        return changes;
    struct item *old, *new;
    uint32_t old_count = items_sorted(arena, maybe_old, &old);
    uint32_t new_count = items_sorted(arena, maybe_new, &new);
    changes.items = arena_array(arena, struct change, 2 * (size_t)old_count + new_count);

    for (uint32_t i = 0, k = 0; i < old_count || k < new_count;) {
        int order = i == old_count   ? 1
                    : k == new_count ? -1
                                     : str_cmp(old[i].listed->id, new[k].listed->id);
        compare(&changes, order <= 0 ? &old[i] : NULL, order >= 0 ? &new[k] : NULL);
        i += order <= 0;
        k += order >= 0;
    }
    if (changes.count)
        qsort(changes.items, changes.count, sizeof *changes.items, in_telling_order);
    return changes;
}

/* --- events --- */

static void copy_text(char *to, size_t size, struct str s)
{
    size_t len = str_utf8_cut(s, size - 1);
    if (len)
        memcpy(to, s.p, len);
    to[len] = '\0';
}

struct pod_event sync_event(const struct runtime_pod *pod)
{
    struct pod_event event = { .type = POD_EVENT_SYNC };
    copy_text(event.uid, sizeof event.uid, pod->uid);
    copy_text(event.namespace_, sizeof event.namespace_, pod->namespace_);
    copy_text(event.pod, sizeof event.pod, pod->name);
    return event;
}

struct pod_event change_event(const struct runtime_pod *pod, const struct change *change,
                              const struct runtime_status *maybe_status)
{
    struct pod_event event = sync_event(pod);
    event.type = change->type;
    event.sandbox = change->sandbox;
    copy_text(event.id, sizeof event.id, change->id);
    copy_text(event.container, sizeof event.container, change->name);
    if (change->type != POD_EVENT_DIED || change->sandbox || !maybe_status)
        return event;
    const struct runtime_container *ended = runtime_container_by_id(maybe_status, change->id);
    if (ended && ended->state == RUNTIME_EXITED) {
        event.has_exit_code = true;
        event.exit_code = ended->exit_code;
        copy_text(event.reason, sizeof event.reason, ended->reason);
    }
    return event;
}

/* --- records --- */

static void record_free(struct record *record)
{
    KV_ASSERT(!record->maybe_inspection);
    runtime_status_unref(record->maybe_good);
    free(record->maybe_seen);
    free((char *)record->uid.p);
    free(record);
}

void records_done(struct records *records)
{
    vec_each(&records->all, struct record *, it)
        record_free(*it);
    vec_done(&records->all);
}

bool records_find(const struct records *records, struct str uid, size_t *at)
{
    size_t from = 0, to = records->all.count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = str_cmp(records->all.items[middle]->uid, uid);
        if (order == 0) {
            *at = middle;
            return true;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *at = from;
    return false;
}

struct record *records_get(const struct records *records, struct str uid)
{
    size_t at;
    return records_find(records, uid, &at) ? records->all.items[at] : NULL;
}

struct record *records_insert(struct records *records, size_t at, struct str uid)
{
    struct record *record = kv_calloc(1, sizeof *record);
    record->uid = (struct str){ str_dup(uid), uid.len };
    vec_push(&records->all, record);
    struct record **items = records->all.items;
    memmove(&items[at + 1], &items[at], (records->all.count - 1 - at) * sizeof *items);
    items[at] = record;
    return record;
}

void records_remove(struct records *records, size_t at)
{
    struct record **items = records->all.items;
    record_free(items[at]);
    records->all.count--;
    memmove(&items[at], &items[at + 1], (records->all.count - at) * sizeof *items);
}

static bool list_has(const struct listed *items, uint32_t count, struct str id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (str_eq(items[i].id, id))
            return true;
    }
    return false;
}

struct record *records_by_id(const struct records *records, struct str id)
{
    vec_each(&records->all, struct record *, it) {
        const struct runtime_pod *seen = (*it)->maybe_seen;
        if (seen && (list_has(seen->sandboxes.items, seen->sandboxes.count, id) ||
                     list_has(seen->containers.items, seen->containers.count, id)))
            return *it;
    }
    return NULL;
}

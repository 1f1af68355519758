/* store/embedded_read.c - lists, selected and in pages.
 *
 * A page after the first shows the store as it was at the first one's version. The log makes that
 * cheap: walking it back to that version gives, for each object that changed since, what it was
 * then. The page is the merge of the two sorted sequences: the entries of now and, in their place,
 * those states. When the log no longer reaches back that far, the answer is ERR_GONE.
 */
#include "store/embedded_impl.h"

#include "api/kinds.h"
#include "codec/base64.h"

#include <inttypes.h>

#define CONTINUE_BYTES_MAX 2048

/* --- selections --- */

/* The fields that an API server selects by, besides the name. A kind's `field` knows more: what
 * informers index is not what a server serves, and of custom resources it serves nothing else. */
static const struct {
    const struct kind *kind;
    const char *fields;
} served[] = {
    { &event_kind, "involvedObject.apiVersion involvedObject.fieldPath involvedObject.kind "
                   "involvedObject.name involvedObject.namespace involvedObject.resourceVersion "
                   "involvedObject.uid reason reportingComponent source type" },
    { &job_kind, "status.successful" },
    { &namespace_kind, "status.phase" },
    { &node_kind, "spec.unschedulable" },
    { &pod_kind, "spec.hostNetwork spec.nodeName spec.restartPolicy spec.schedulerName "
                 "spec.serviceAccountName status.nominatedNodeName status.phase status.podIP" },
};

static bool has_word(struct str words, struct str word)
{
    struct str next;
    bool more = true;

    while (more) {
        more = str_cut(words, ' ', &next, &words);
        if (str_eq(next, word))
            return true;
    }
    return false;
}

static bool field_is_served(const struct kind *kind, struct str key)
{
    if (str_eqz(key, "metadata.name"))
        return true;
    if (str_eqz(key, "metadata.namespace"))
        return kind->namespaced;
    for (size_t i = 0; i < KV_COUNT_OF(served); i++) {
        if (served[i].kind == kind)
            return has_word(str_of(served[i].fields), key);
    }
    return false;
}

static int check_fields(const struct selection *sel, const struct kind *kind, struct err *err)
{
    for (uint32_t i = 0; i < sel->fields.term_count; i++) {
        struct str key = sel->fields.terms[i].key;
        if (!field_is_served(kind, key))
            return err_set(err, ERR_INVALID, "%s: field label not supported: %.*s", kind->plural,
                           STR_ARG(key));
    }
    return 0;
}

int selection_init(struct selection *sel, struct kind_state *ks, struct str namespace_,
                   struct str label_selector, struct str field_selector, struct err *err)
{
    *sel = (struct selection){ 0 };
    if (ks->kind->namespaced)
        sel->namespace_ = arena_str(&sel->arena, namespace_);
    if ((label_selector.len > 0 &&
         selector_parse(&sel->arena, label_selector, &sel->labels, err) < 0) ||
        (field_selector.len > 0 &&
         selector_parse_fields(&sel->arena, field_selector, &sel->fields, err) < 0) ||
        check_fields(sel, ks->kind, err) < 0) {
        selection_done(sel);
        return -1;
    }
    return 0;
}

void selection_done(struct selection *sel)
{
    arena_done(&sel->arena);
    *sel = (struct selection){ 0 };
}

static struct str label_of(const void *object, struct str key)
{
    return str_map_get(&((const struct object *)object)->meta.labels, key);
}

static struct str field_of(const void *object, struct str key)
{
    return object_field(object, key);
}

bool selection_has(const struct selection *sel, const struct object *object)
{
    if (sel->namespace_.len > 0 && !str_eq(sel->namespace_, object->meta.namespace_))
        return false;
    return selector_matches(&sel->labels, label_of, object) &&
           selector_matches(&sel->fields, field_of, object);
}

/* The node whose pods are asked for ("spec.nodeName=a"), or STR_NONE. */
static struct str selected_node(const struct kind_state *ks, const struct selection *sel)
{
    if (ks->kind != &pod_kind)
        return STR_NONE;
    for (uint32_t i = 0; i < sel->fields.term_count; i++) {
        const struct selector_term *term = &sel->fields.terms[i];
        if (term->op == SELECTOR_IN && term->value_count == 1 && term->values[0].len > 0 &&
            str_eqz(term->key, "spec.nodeName"))
            return term->values[0];
    }
    return STR_NONE;
}

/* --- everything at once --- */

struct found {
    VEC(const struct object *) items;
};

static void select_range(const struct sorted *map, struct str prefix, const struct selection *sel,
                         struct found *out)
{
    for (sorted_each(map, prefix, it)) {
        const struct entry *entry = it.item->value;
        if (selection_has(sel, entry->object))
            vec_push(&out->items, object_ref(entry->object));
    }
}

static void select_all(struct embedded *e, struct kind_state *ks, const struct selection *sel,
                       struct found *out)
{
    struct str node = selected_node(ks, sel);
    AUTO_BUF prefix = { 0 };

    if (node.p) {
        SORTED_PREFIX(&prefix, node);
        select_range(&e->pods_by_node, buf_str(&prefix), sel, out);
        return;
    }
    if (sel->namespace_.len > 0)
        SORTED_PREFIX(&prefix, sel->namespace_);
    select_range(&ks->entries, buf_str(&prefix), sel, out);
}

void embedded_select(struct embedded *e, struct kind_state *ks, const struct selection *sel,
                     struct object_list *out)
{
    struct found found = { 0 };
    select_all(e, ks, sel, &found);
    *out = (struct object_list){
        .items = found.items.items,
        .count = found.items.count,
        .resource_version = e->version,
    };
}

/* --- pages --- */

/* "version\0namespace\0name" of the last object given, in base64: opaque to callers. */
static char *continue_encode(uint64_t version, const struct object *last)
{
    AUTO_BUF plain = { 0 };
    struct buf text = { 0 };

    buf_addf(&plain, "%" PRIu64, version);
    buf_addc(&plain, '\0');
    buf_add(&plain, last->meta.namespace_);
    buf_addc(&plain, '\0');
    buf_add(&plain, last->meta.name);
    base64_encode(buf_str(&plain), &text);
    return buf_take(&text);
}

static int continue_decode(struct str text, uint64_t *version, struct buf *after, struct err *err)
{
    AUTO_BUF plain = { 0 };
    struct str head, key;
    int64_t number;

    if (text.len > CONTINUE_BYTES_MAX || base64_decode(text, &plain, NULL) < 0 ||
        !str_cut(buf_str(&plain), '\0', &head, &key) || !str_to_i64(head, &number) || number < 0 ||
        str_find(key, '\0') < 0)
        return err_set(err, ERR_INVALID, "continue key is not valid");
    *version = (uint64_t)number;
    buf_add(after, key);
    return 0;
}

/* What changed since `version`: key -> the event that holds the state at that version. */
static void past_states(const struct embedded *e, const struct kind_state *ks, uint64_t version,
                        struct sorted *past)
{
    AUTO_BUF key = { 0 };

    for (uint64_t v = e->version; v > version; v--) {
        struct log_event *event = &e->log[v % e->log_cap];
        if (event->ks != ks)
            continue;
        SORTED_KEY(&key, event->object->meta.namespace_, event->object->meta.name);
        sorted_put(past, buf_str(&key), event); /* an older event replaces a newer one */
    }
}

/* The next object at the page's version, or NULL: the smaller key of both sequences, the past
 * state where both have it. Objects that did not exist yet are passed over. */
static const struct object *merge_next(struct sorted_iter *now, struct sorted_iter *past)
{
    while (now->item || past->item) {
        int order = !past->item ? -1 : !now->item ? 1 : str_cmp(now->item->key, past->item->key);
        const struct object *object;
        if (order < 0) {
            object = ((const struct entry *)now->item->value)->object;
        } else {
            object = ((const struct log_event *)past->item->value)->maybe_old;
            sorted_next(past);
        }
        if (order <= 0)
            sorted_next(now);
        if (object)
            return object;
    }
    return NULL;
}

static void skip_key(struct sorted_iter *it, struct str key)
{
    if (it->item && str_eq(it->item->key, key))
        sorted_next(it);
}

struct page {
    uint64_t version; /* of the first page */
    struct str after; /* the last object that was given; empty: this is the first page */
    uint32_t limit;
};

/* Returns whether there is more to give. */
static bool select_page(struct embedded *e, struct kind_state *ks, const struct selection *sel,
                        struct page page, struct found *out)
{
    struct sorted past = { 0 };
    AUTO_BUF start = { 0 };
    bool more = false;

    past_states(e, ks, page.version, &past);
    if (page.after.len > 0)
        buf_add(&start, page.after);
    else if (sel->namespace_.len > 0)
        SORTED_PREFIX(&start, sel->namespace_);
    struct sorted_iter now_it = sorted_seek(&ks->entries, buf_str(&start));
    struct sorted_iter past_it = sorted_seek(&past, buf_str(&start));
    skip_key(&now_it, page.after);
    skip_key(&past_it, page.after);

    const struct object *object;
    while (!more && (object = merge_next(&now_it, &past_it)) != NULL) {
        if (sel->namespace_.len > 0 && str_cmp(object->meta.namespace_, sel->namespace_) > 0)
            break;
        if (!selection_has(sel, object))
            continue;
        if (page.limit > 0 && out->items.count == page.limit)
            more = true;
        else
            vec_push(&out->items, object_ref(object));
    }
    sorted_done(&past);
    return more;
}

int embedded_list(struct embedded *e, struct kind_state *ks, const struct list_options *opts,
                  struct object_list *out, struct err *err)
{
    struct selection sel;
    AUTO_BUF after = { 0 };
    struct page page = { .version = e->version, .limit = opts->limit };

    if (opts->continue_.len > 0 && continue_decode(opts->continue_, &page.version, &after, err) < 0)
        return -1;
    if (page.version > e->version || page.version + 1 < log_first(e))
        return err_set(err, ERR_GONE, "%s: the continue key is too old: list again",
                       ks->kind->plural);
    if (selection_init(&sel, ks, opts->namespace_, opts->label_selector, opts->field_selector,
                       err) < 0)
        return -1;

    struct found found = { 0 };
    bool more = false;
    page.after = buf_str(&after);
    if (page.limit == 0 && page.after.len == 0)
        select_all(e, ks, &sel, &found);
    else
        more = select_page(e, ks, &sel, page, &found);
    selection_done(&sel);
    *out = (struct object_list){
        .items = found.items.items,
        .count = found.items.count,
        .resource_version = page.version,
        .continue_ = more ? continue_encode(page.version, vec_last(&found.items)) : NULL,
    };
    return 0;
}

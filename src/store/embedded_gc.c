/* store/embedded_gc.c - the garbage collector, and the end of namespaces.
 *
 * A queue of objects to look at, worked off before the call that filled it returns, in order, so
 * that equal histories collect equally. An object is looked at when one of its owners went or waits
 * for it, when one of its dependents went, or when it began to be deleted. Looking at it:
 *
 *   being deleted, "orphan"               its dependents lose the reference, it loses the finalizer
 *   being deleted, "foregroundDeletion"   once no dependent is left that blocks it, it loses the
 *                                         finalizer
 *   being deleted otherwise               nothing: it is on its way
 *   some owner stays                      references to owners that are gone or going are dropped
 *   no owner stays                        it is deleted
 */
#include "store/embedded_impl.h"

#include "api/pod.h"
#include "api/policy.h"

static bool object_has_finalizer(const struct object *object, const char *finalizer)
{
    for (uint32_t i = 0; i < object->meta.finalizers.count; i++) {
        if (str_eqz(object->meta.finalizers.items[i], finalizer))
            return true;
    }
    return false;
}

static bool is_waiting(const struct object *owner) /* for its dependents to go */
{
    return owner->meta.deleted_us != 0 && object_has_finalizer(owner, FINALIZER_FOREGROUND);
}

/* The owner waits for this dependent. */
static bool blocks(const struct entry *dependent, const struct entry *owner)
{
    const struct meta *meta = &dependent->object->meta;
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        if (meta->owners.items[i].block_owner_deletion &&
            str_eq(meta->owners.items[i].uid, owner->object->meta.uid))
            return true;
    }
    return false;
}

/* --- who is to be looked at --- */

void gc_look_at(struct embedded *e, struct str uid)
{
    vec_push(&e->collect, str_dup(uid));
}

static void look_at_dependents(struct embedded *e, struct str owner_uid)
{
    AUTO_BUF prefix = { 0 };

    SORTED_PREFIX(&prefix, owner_uid);
    for (sorted_each(&e->dependents, buf_str(&prefix), it))
        gc_look_at(e, ((const struct entry *)it.item->value)->object->meta.uid);
}

void gc_removed(struct embedded *e, const struct entry *entry)
{
    const struct meta *meta = &entry->object->meta;

    look_at_dependents(e, meta->uid);
    for (uint32_t i = 0; i < meta->owners.count; i++)
        gc_look_at(e, meta->owners.items[i].uid);
    if (entry->ks->kind->namespaced) {
        struct entry *home =
            entry_find(e, (struct object_ref){ &namespace_kind, STR(""), entry->namespace_ });
        if (home && home->object->meta.deleted_us != 0)
            gc_look_at(e, home->object->meta.uid);
    }
}

void gc_changed(struct embedded *e, const struct object *maybe_old, const struct entry *entry)
{
    const struct object *object = entry->object;

    if (object->meta.deleted_us != 0 &&
        (object->kind == &namespace_kind || object_has_finalizer(object, FINALIZER_ORPHAN) ||
         object_has_finalizer(object, FINALIZER_FOREGROUND)))
        gc_look_at(e, object->meta.uid);
    if (is_waiting(object) && !(maybe_old && is_waiting(maybe_old)))
        look_at_dependents(e, object->meta.uid);
    /* What comes to an owner that is going, goes with it. */
    for (uint32_t i = 0; object->meta.deleted_us == 0 && i < object->meta.owners.count; i++) {
        const struct entry *owner = str_table_get(&e->uids, object->meta.owners.items[i].uid);
        if (owner && is_waiting(owner->object))
            gc_look_at(e, object->meta.uid);
    }
    /* A reference that went may have been what an owner waits for. */
    for (uint32_t i = 0; maybe_old && i < maybe_old->meta.owners.count; i++) {
        const struct entry *owner = str_table_get(&e->uids, maybe_old->meta.owners.items[i].uid);
        if (owner && is_waiting(owner->object) && !blocks(entry, owner))
            gc_look_at(e, owner->object->meta.uid);
    }
}

void embedded_gc(struct embedded *e)
{
    embedded_lock(e);
    for (sorted_each(&e->dependents, STR(""), it))
        gc_look_at(e, ((const struct entry *)it.item->value)->object->meta.uid);
    embedded_unlock(e);
}

/* --- owners --- */

enum owner_state { OWNER_STAYS, OWNER_WAITS, OWNER_GONE };

/* An owner is who the whole reference says, in the dependent's namespace or in none. One of a kind
 * that karve does not read cannot be looked up; it is taken to stay. */
static enum owner_state owner_state(struct embedded *e, const struct entry *entry,
                                    const struct owner_ref *ref)
{
    const struct kind *kind = kind_find(ref->api_version, ref->kind);
    if (!kind)
        return OWNER_STAYS;
    const struct entry *owner = str_table_get(&e->uids, ref->uid);
    if (!owner || owner->ks->kind != kind || !str_eq(owner->name, ref->name) ||
        (kind->namespaced && !str_eq(owner->namespace_, entry->namespace_)))
        return OWNER_GONE;
    return is_waiting(owner->object) ? OWNER_WAITS : OWNER_STAYS;
}

typedef bool (*keep_owner_fn)(struct embedded *e, const struct entry *entry,
                              const struct owner_ref *ref, struct str uid);

static bool keep_staying(struct embedded *e, const struct entry *entry, const struct owner_ref *ref,
                         struct str uid KV_UNUSED)
{
    return owner_state(e, entry, ref) == OWNER_STAYS;
}

static bool keep_others(struct embedded *e KV_UNUSED, const struct entry *entry KV_UNUSED,
                        const struct owner_ref *ref, struct str uid)
{
    return !str_eq(ref->uid, uid);
}

/* Drop the references that `keep` does not want. */
static void drop_owners(struct embedded *e, struct entry *entry, keep_owner_fn keep, struct str uid)
{
    const struct meta *meta = &entry->object->meta;
    struct edit edit;
    uint32_t kept = 0, ix = 0;

    edit_begin(&edit, entry);
    json_mut *list = json_new_array(&edit.b);
    json_each_item(json_path(edit.doc.root, "metadata.ownerReferences"), item) {
        if (keep(e, entry, &meta->owners.items[ix++], uid)) {
            json_push(&edit.b, list, json_copy(&edit.b, item));
            kept++;
        }
    }
    if (kept > 0)
        json_set(&edit.b, edit.meta, STR("ownerReferences"), list);
    else
        json_mut_remove(edit.meta, STR("ownerReferences"));
    edit_write_or_finish(e, entry, &edit);
}

/* No reference of this object holds its owner back any more. */
static void unblock_owners(struct embedded *e, struct entry *entry)
{
    struct edit edit;

    edit_begin(&edit, entry);
    json_mut *list = json_new_array(&edit.b);
    json_each_item(json_path(edit.doc.root, "metadata.ownerReferences"), item) {
        json_mut *ref = json_copy(&edit.b, item);
        json_set_bool(&edit.b, ref, "blockOwnerDeletion", false);
        json_push(&edit.b, list, ref);
    }
    json_set(&edit.b, edit.meta, STR("ownerReferences"), list);
    edit_write_or_finish(e, entry, &edit);
}

/* --- owners on their way out --- */

static void drop_finalizer(struct embedded *e, struct entry *entry, const char *finalizer)
{
    const struct meta *meta = &entry->object->meta;
    VEC(struct str) kept = { 0 };
    struct edit edit;

    for (uint32_t i = 0; i < meta->finalizers.count; i++) {
        if (!str_eqz(meta->finalizers.items[i], finalizer))
            vec_push(&kept, meta->finalizers.items[i]);
    }
    edit_begin(&edit, entry);
    edit_set_strs(&edit, edit.meta, "finalizers", kept.items, kept.count);
    edit_write_or_finish(e, entry, &edit);
    vec_done(&kept);
}

struct entries {
    VEC(struct entry *) items;
};

static struct entries dependents_of(struct embedded *e, const struct entry *owner)
{
    struct entries out = { 0 };
    AUTO_BUF prefix = { 0 };

    SORTED_PREFIX(&prefix, owner->object->meta.uid);
    for (sorted_each(&e->dependents, buf_str(&prefix), it)) {
        struct entry *entry = it.item->value;
        vec_push(&out.items, entry);
    }
    return out;
}

/* Editing one dependent can end it (it was being deleted, and held by nothing else), but not
 * another one. */
static void orphan_dependents(struct embedded *e, struct entry *owner)
{
    struct entries dependents = dependents_of(e, owner);
    vec_each(&dependents.items, struct entry *, it)
        drop_owners(e, *it, keep_others, owner->object->meta.uid);
    vec_done(&dependents.items);
    drop_finalizer(e, owner, FINALIZER_ORPHAN);
}

/* They were put into the queue when the owner began to wait; each looks at it again when it goes. */
static void wait_for_dependents(struct embedded *e, struct entry *owner)
{
    AUTO_BUF prefix = { 0 };

    SORTED_PREFIX(&prefix, owner->object->meta.uid);
    for (sorted_each(&e->dependents, buf_str(&prefix), it)) {
        if (blocks(it.item->value, owner))
            return;
    }
    drop_finalizer(e, owner, FINALIZER_FOREGROUND);
}

/* --- dependents --- */

static void collect(struct embedded *e, struct entry *entry, bool owner_waits)
{
    struct delete_options opts = { 0 };
    struct entries dependents = dependents_of(e, entry);

    if (owner_waits && dependents.items.count > 0) {
        opts.propagation = PROPAGATE_FOREGROUND;
        bool circle = false;
        vec_each(&dependents.items, struct entry *, it)
            circle |= is_waiting((*it)->object);
        if (circle) /* everybody would wait for everybody */
            unblock_owners(e, entry);
    } else if (object_has_finalizer(entry->object, FINALIZER_ORPHAN)) {
        opts.propagation = PROPAGATE_ORPHAN;
    } else if (object_has_finalizer(entry->object, FINALIZER_FOREGROUND)) {
        opts.propagation = PROPAGATE_FOREGROUND;
    }
    vec_done(&dependents.items);
    entry_remove(e, entry, &opts, NULL);
}

static void look_at_dependent(struct embedded *e, struct entry *entry)
{
    const struct meta *meta = &entry->object->meta;
    uint32_t count[OWNER_GONE + 1] = { 0 };

    for (uint32_t i = 0; i < meta->owners.count; i++)
        count[owner_state(e, entry, &meta->owners.items[i])]++;
    if (meta->owners.count == 0 || count[OWNER_STAYS] == meta->owners.count)
        return;
    if (count[OWNER_STAYS] > 0)
        drop_owners(e, entry, keep_staying, STR_NONE);
    else
        collect(e, entry, count[OWNER_WAITS] > 0);
}

/* --- namespaces --- */

static void add_contents(const struct kind_state *ks, const struct entry *home, struct entries *out)
{
    AUTO_BUF prefix = { 0 };

    SORTED_PREFIX(&prefix, home->name);
    for (sorted_each(&ks->entries, buf_str(&prefix), it)) {
        struct entry *entry = it.item->value;
        vec_push(&out->items, entry);
    }
}

static bool has_pods_going(struct embedded *e, const struct entry *home)
{
    AUTO_BUF prefix = { 0 };

    SORTED_PREFIX(&prefix, home->name);
    struct sorted_iter first = sorted_seek(&kind_state(e, &pod_kind)->entries, buf_str(&prefix));
    if (!first.item || !str_starts(first.item->key, buf_str(&prefix)))
        return false;
    return ((const struct entry *)first.item->value)->object->meta.deleted_us != 0;
}

/* Pods go before what they may still use. Each removal puts the namespace into the queue again, so
 * the last pod lets the rest go, and the last of that ends the namespace. */
static void clear_namespace(struct embedded *e, struct entry *home)
{
    struct entries contents = { 0 };

    if (has_pods_going(e, home))
        return; /* all were asked at once: there is nothing new to do until they are gone */
    add_contents(kind_state(e, &pod_kind), home, &contents);
    if (contents.items.count == 0) {
        vec_each(&e->kinds, struct kind_state *, ks)
            add_contents(*ks, home, &contents);
    }
    vec_each(&contents.items, struct entry *, it) {
        if ((*it)->object->meta.deleted_us == 0)
            entry_remove(e, *it, &(struct delete_options){ 0 }, NULL);
    }
    if (contents.items.count == 0 && home->object->meta.finalizers.count == 0)
        commit_remove(e, home);
    vec_done(&contents.items);
}

/* --- the queue --- */

static void look_at(struct embedded *e, struct entry *entry)
{
    const struct object *object = entry->object;

    if (object->meta.deleted_us == 0)
        look_at_dependent(e, entry);
    else if (object->kind == &namespace_kind)
        clear_namespace(e, entry);
    else if (object_has_finalizer(object, FINALIZER_ORPHAN))
        orphan_dependents(e, entry);
    else if (object_has_finalizer(object, FINALIZER_FOREGROUND))
        wait_for_dependents(e, entry);
}

bool gc_run(struct embedded *e)
{
    size_t done = 0;

    for (; done < e->collect.count; done++) { /* looking at one may add more */
        char *uid = e->collect.items[done];
        struct entry *entry = str_table_get(&e->uids, str_of(uid));
        if (entry)
            look_at(e, entry);
        free(uid);
    }
    vec_clear(&e->collect);
    return done > 0;
}

/* store/embedded_edit.c - the store's own changes to objects: marks of deletion, dropped
 * references, bindings, conditions. They need no admission, because they change what the store
 * knows the shape of; a change that comes to nothing writes nothing. */
#include "store/embedded_impl.h"

#include "api/policy.h"
#include "codec/duration.h"

void json_set_time(struct json_build *b, json_mut *object, const char *key, int64_t us)
{
    char text[TIME_TEXT_MAX];
    size_t len = time_format(us, text);
    json_set_str(b, object, key, (struct str){ text, len });
}

struct str buf_take_str(struct buf *b)
{
    size_t len = b->len;
    return (struct str){ buf_take(b), len };
}

bool entry_is_finished(const struct entry *entry, const struct object *now)
{
    const struct meta *was = &entry->object->meta;
    if (entry->ks->kind == &namespace_kind)
        return false;
    return was->deleted_us != 0 && now->meta.finalizers.count == 0 &&
           (!was->deletion_grace_s.set || was->deletion_grace_s.value == 0);
}

void edit_begin(struct edit *edit, const struct entry *entry)
{
    struct err err = { 0 };

    *edit = (struct edit){ 0 };
    int rc = json_read_trusted(entry->text, &edit->doc, &err);
    KV_ASSERT(rc == 0); /* we wrote it */
    json_build_init(&edit->b);
    edit->root = json_copy(&edit->b, edit->doc.root);
    edit->meta = json_mut_object(&edit->b, edit->root, STR("metadata"));
}

static void edit_done(struct edit *edit)
{
    json_build_done(&edit->b);
    doc_done(&edit->doc);
}

static void edit_end(struct embedded *e, struct entry *entry, struct edit *edit, bool may_finish)
{
    AUTO_BUF text = { 0 };
    AUTO_DOC doc = { 0 };
    AUTO_OBJECT object = NULL;
    struct err err = { 0 };

    json_write_mut(edit->root, &text);
    edit_done(edit);
    if (str_eq(buf_str(&text), entry->text))
        return;
    int rc = json_read_trusted(buf_str(&text), &doc, &err);
    KV_ASSERT(rc == 0);
    rc = object_decode(e->pool, entry->ks->kind, doc.root, &object, &err);
    KV_ASSERT(rc == 0); /* the store changes objects only in ways that their kinds allow */
    if (may_finish && entry_is_finished(entry, object))
        commit_remove(e, entry);
    else
        commit_replace(e, entry, buf_take_str(&text), take(&object));
}

void edit_write(struct embedded *e, struct entry *entry, struct edit *edit)
{
    edit_end(e, entry, edit, false);
}

void edit_write_or_finish(struct embedded *e, struct entry *entry, struct edit *edit)
{
    edit_end(e, entry, edit, true);
}

void edit_set_strs(struct edit *edit, json_mut *object, const char *key, const struct str *items,
                   size_t count)
{
    if (count == 0) {
        json_mut_remove(object, str_of(key));
        return;
    }
    json_mut *list = json_new_array(&edit->b);
    for (size_t i = 0; i < count; i++)
        json_push(&edit->b, list, json_new_str(&edit->b, items[i]));
    json_set(&edit->b, object, str_of(key), list);
}

static json_mut *condition_build(struct edit *edit, struct condition_change change,
                                 const json_val *maybe_old, int64_t now_us)
{
    struct json_build *b = &edit->b;
    json_mut *condition = maybe_old ? json_copy(b, maybe_old) : json_new_object(b);
    bool moved = !str_eqz(json_str(json_get(maybe_old, STR("status"))), change.status);

    json_set_str(b, condition, "type", str_of(change.type));
    json_set_str(b, condition, "status", str_of(change.status));
    if (change.observed_generation > 0)
        json_set_i64(b, condition, "observedGeneration", change.observed_generation);
    if (moved)
        json_set_time(b, condition, "lastTransitionTime", now_us);
    if (change.reason)
        json_set_str(b, condition, "reason", str_of(change.reason));
    if (change.message)
        json_set_str(b, condition, "message", str_of(change.message));
    return condition;
}

void edit_set_condition(struct edit *edit, struct condition_change change, int64_t now_us)
{
    const json_val *old = json_path(edit->doc.root, "status.conditions");
    json_mut *list = json_new_array(&edit->b);
    bool found = false;

    json_each_item(old, item) {
        bool same = str_eqz(json_str(json_get(item, STR("type"))), change.type);
        found |= same;
        json_push(&edit->b, list,
                  same ? condition_build(edit, change, item, now_us) : json_copy(&edit->b, item));
    }
    if (!found)
        json_push(&edit->b, list, condition_build(edit, change, NULL, now_us));
    json_set(&edit->b, json_mut_object(&edit->b, edit->root, STR("status")), STR("conditions"),
             list);
}

/* store/kube_decode.c - from the server's texts to objects.
 *
 * One object that cannot be read (of a CRD whose version on the server has other fields, say) must
 * not hide all others from those who can do with less than all (see list_options): for them it is left
 * out of a list, named, and logged once.
 */
#include "store/kube_inner.h"

bool kube_version_parse(const json_val *v, uint64_t *out)
{
    struct str text = json_str(v), rest = text;
    struct str digits = str_take_digits(&rest);
    uint64_t version = 0;

    if (digits.len == 0 || rest.len > 0)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (__builtin_mul_overflow(version, (uint64_t)10, &version) ||
            __builtin_add_overflow(version, (uint64_t)(digits.p[i] - '0'), &version))
            return false;
    }
    *out = version;
    return true;
}

/* An item of a list need not say what it is; one that does must be right. */
static int check_kind(const struct kind *kind, const char *suffix, const json_val *v,
                      struct err *err)
{
    struct str said = json_str(json_get(v, STR("kind")));

    if (!json_is_object(v))
        return err_set(err, ERR_INVALID, "expected a %s%s, found %s", kind->name, suffix,
                       v ? json_type_name(v) : "nothing");
    size_t len = strlen(kind->name);
    bool right = said.len == len + strlen(suffix) && str_starts(said, str_of(kind->name)) &&
                 str_ends(said, str_of(suffix));
    if (said.len > 0 && !right)
        return err_set(err, ERR_INVALID, "expected a %s%s, found a %s", kind->name, suffix,
                       STR_SHOWN(said));
    return 0;
}

int kube_decode(struct kube_decoder *d, const struct kind *kind, const json_val *v,
                const struct object **out, struct err *err)
{
    AUTO_OBJECT object = NULL;

    if (check_kind(kind, "", v, err) < 0 || object_decode(d->pool, kind, v, &object, err) < 0)
        return -1;
    if (object->meta.name.len == 0)
        return err_set(err, ERR_INVALID, "a %s without a name", kind->name);
    *out = take(&object);
    return 0;
}

static int read_text(struct str text, struct doc *out, struct err *err)
{
    if (json_read_trusted(text, out, err) == 0)
        return 0;
    err_wrap(err, "the server's answer is no JSON (%s)", STR_SHOWN(text));
    err->kind = ERR_UNAVAILABLE;
    return -1;
}

int kube_decode_text(struct kube_decoder *d, const struct kind *kind, struct str text,
                     const struct object **out, struct err *err)
{
    AUTO_DOC doc = { 0 };

    if (read_text(text, &doc, err) < 0)
        return -1;
    return kube_decode(d, kind, doc.root, out, err);
}

void kube_skip(struct kube_decoder *d, const struct kind *kind, const json_val *v,
               const struct err *why)
{
    struct str home = json_str(json_path(v, "metadata.namespace"));
    struct str name = json_str(json_path(v, "metadata.name"));
    AUTO_BUF key = { 0 };

    buf_addf(&key, "%s %.*s/%.*s", kind->plural, STR_ARG(home), STR_ARG(name));
    if (told_first(&d->skipped, buf_str(&key)))
        log_error(d->maybe_log, "an object that cannot be read is left out",
                  LOG_Z("kind", kind->name), LOG_STR("namespace", home), LOG_STR("name", name),
                  LOG_ERR(why));
}

static void add_unreadable(struct object_list *list, const json_val *v)
{
    list->unreadable =
        kv_realloc(list->unreadable, list->unreadable_count + 1, sizeof *list->unreadable);
    list->unreadable[list->unreadable_count++] = (struct object_name){
        .namespace_ = str_dup(json_str(json_path(v, "metadata.namespace"))),
        .name = str_dup(json_str(json_path(v, "metadata.name"))),
    };
}

int kube_decode_page(struct kube_decoder *d, const struct kind *kind, struct str text,
                     bool skip_unreadable, struct object_list *out, struct err *err)
{
    AUTO_DOC doc = { 0 };
    uint64_t version;

    if (read_text(text, &doc, err) < 0 || check_kind(kind, "List", doc.root, err) < 0)
        return -1;
    const json_val *items = json_get(doc.root, STR("items"));
    if (items && !json_is_array(items) && !json_is_null(items))
        return err_set(err, ERR_INVALID, "%sList: items: expected an array, found %s", kind->name,
                       json_type_name(items));
    const json_val *meta = json_get(doc.root, STR("metadata"));
    if (!kube_version_parse(json_get(meta, STR("resourceVersion")), &version))
        return err_set(err, ERR_INVALID, "%sList: no resourceVersion that is a number", kind->name);

    out->items = kv_realloc(out->items, out->count + json_count(items) + 1, sizeof *out->items);
    json_each_item(items, item) {
        struct err why = { 0 };
        if (kube_decode(d, kind, item, &out->items[out->count], &why) == 0) {
            out->count++;
            continue;
        }
        if (!skip_unreadable)
            return err_set(err, ERR_INVALID, "%s: %s",
                           STR_SHOWN(json_str(json_path(item, "metadata.name"))), why.text);
        kube_skip(d, kind, item, &why);
        add_unreadable(out, item);
    }
    struct str token = json_str(json_get(meta, STR("continue")));
    free(out->continue_);
    out->continue_ = token.len > 0 ? str_dup(token) : NULL;
    out->resource_version = version;
    return 0;
}

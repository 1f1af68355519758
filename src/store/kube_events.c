/* store/kube_events.c - from the bytes of a watch to events.
 *
 * The server sends one JSON object a line, cut into pieces wherever the network likes. The bytes
 * collect in one buffer: whole lines are read in place, what is left of a line moves to the front
 * when more come. Each byte is looked at once for a line's end and moved at most once per piece that
 * ends a line, so the work is linear in what comes.
 *
 * What an event says of an object that cannot be read is left out, as in a list. Its deletion is
 * not: nobody would ever hear of it. The reader is told to list again instead.
 */
#include "store/kube_inner.h"

#define KEPT_BYTES_MAX ((size_t)256 << 10) /* a burst's memory is not kept */

void kube_events_done(struct kube_events *e)
{
    buf_done(&e->bytes);
    json_reader_done(&e->reader);
}

struct buf *kube_events_room(struct kube_events *e)
{
    size_t left = e->bytes.len - e->at;

    if (e->at > 0 && left > 0)
        memmove(e->bytes.p, e->bytes.p + e->at, left);
    buf_cut(&e->bytes, left);
    if (left == 0 && e->bytes.cap > KEPT_BYTES_MAX)
        buf_done(&e->bytes);
    e->searched -= e->at;
    e->at = 0;
    return &e->bytes;
}

bool kube_events_has_line(struct kube_events *e)
{
    if (e->searched == e->bytes.len)
        return false;
    const char *end = memchr(e->bytes.p + e->searched, '\n', e->bytes.len - e->searched);
    e->searched = end ? (size_t)(end - e->bytes.p) : e->bytes.len;
    return end != NULL;
}

static bool type_of(struct str name, enum event_type *out)
{
    static const char *const names[] = {
        [EVENT_ADDED] = "ADDED",
        [EVENT_MODIFIED] = "MODIFIED",
        [EVENT_DELETED] = "DELETED",
        [EVENT_BOOKMARK] = "BOOKMARK",
    };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        if (str_eqz(name, names[i])) {
            *out = (enum event_type)i;
            return true;
        }
    }
    return false;
}

/* A bookmark's version is all that it has. 0: the reader wants none. */
static int bookmark(struct kube_events *e, const json_val *object, struct watch_event *out,
                    struct err *err)
{
    out->object = NULL;
    if (!kube_version_parse(json_path(object, "metadata.resourceVersion"), &out->resource_version))
        return err_set(err, ERR_UNAVAILABLE, "a bookmark without a version");
    return e->bookmarks ? 1 : 0;
}

static int event_of(struct kube_events *e, const json_val *root, struct watch_event *out,
                    struct err *err)
{
    struct str type = json_str(json_get(root, STR("type")));
    const json_val *object = json_get(root, STR("object"));
    struct err why = { 0 };

    if (str_eqz(type, "ERROR"))
        return kube_refusal_status(object, 200, NULL, err);
    if (!type_of(type, &out->type))
        return err_set(err, ERR_UNAVAILABLE, "an event of type %s", STR_SHOWN(type));
    e->seen_count++;
    if (out->type == EVENT_BOOKMARK)
        return bookmark(e, object, out, err);
    if (kube_decode(e->decoder, e->kind, object, &out->object, &why) == 0) {
        out->resource_version = out->object->meta.resource_version;
        return 1;
    }
    kube_skip(e->decoder, e->kind, object, &why);
    if (out->type == EVENT_DELETED)
        return err_set(err, ERR_GONE, "a deletion that cannot be read: %s", why.text);
    return 0;
}

/* One line. 0: nothing for the reader. */
static int read_line(struct kube_events *e, struct str line, struct watch_event *out,
                     struct err *err)
{
    AUTO_DOC doc = { 0 };

    if (str_trim(line).len == 0)
        return 0;
    if (json_reader_read(&e->reader, line, &doc, err) < 0) {
        err_wrap(err, "a line that is no JSON (%s)", STR_SHOWN(line));
        err->kind = ERR_UNAVAILABLE;
        return -1;
    }
    return event_of(e, doc.root, out, err);
}

int kube_events_next(struct kube_events *e, struct watch_event *out, struct err *err)
{
    int rc = 0;

    while (rc == 0 && kube_events_has_line(e)) {
        struct str line = { e->bytes.p + e->at, e->searched - e->at };
        e->at = ++e->searched;
        rc = read_line(e, line, out, err);
    }
    if (rc == 0 && e->bytes.len - e->at > KUBE_LINE_BYTES_MAX)
        return err_set(err, ERR_UNAVAILABLE, "an event of more than %zu bytes",
                       KUBE_LINE_BYTES_MAX);
    return rc;
}

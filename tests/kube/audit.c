/* See audit.h. A line of the log is one event: the request, when it has been answered. */
#include "kube/audit.h"

#include "support/test.h"

#include "base/file.h"
#include "codec/json.h"

#define AUDIT_BYTES_MAX ((size_t)512 << 20)

static struct audit_use *find(const struct audit *audit, struct str group, struct str resource,
                              struct str verb)
{
    vec_each(&audit->uses, struct audit_use, use) {
        if (str_eq(use->group, group) && str_eq(use->resource, resource) && str_eq(use->verb, verb))
            return use;
    }
    return NULL;
}

const struct audit_use *audit_find(const struct audit *audit, struct str group, struct str resource,
                                   struct str verb)
{
    return find(audit, group, resource, verb);
}

bool audit_is_read(const struct audit_use *use)
{
    return str_eqz(use->verb, "get") || str_eqz(use->verb, "list") || str_eqz(use->verb, "watch");
}

static void take_event(const json_val *event, const char *user, struct arena *arena,
                       struct audit *out)
{
    const json_val *object = json_get(event, STR("objectRef"));
    struct str resource = json_str(json_path(object, "resource"));
    struct str subresource = json_str(json_path(object, "subresource"));
    struct str group = json_str(json_path(object, "apiGroup"));
    struct str verb = json_str(json_get(event, STR("verb")));
    int64_t code = 0;
    if (!resource.p || !str_eqz(json_str(json_path(event, "user.username")), user))
        return;
    if (subresource.len)
        resource = arena_strf(arena, "%.*s/%.*s", STR_ARG(resource), STR_ARG(subresource));
    if (!group.p)
        group = STR("");
    struct audit_use *use = find(out, group, resource, verb);
    if (!use) {
        vec_push(&out->uses,
                 (struct audit_use){
                     .group = arena_str(arena, group),
                     .resource = arena_str(arena, resource),
                     .verb = arena_str(arena, verb),
                     .example = arena_str(arena, json_str(json_get(event, STR("requestURI")))) });
        use = &out->uses.items[out->uses.count - 1];
    }
    use->count++;
    json_i64(json_path(event, "responseStatus.code"), &code);
    if (code == 403) {
        use->denied++;
        use->example = arena_str(arena, json_str(json_get(event, STR("requestURI"))));
    }
}

void audit_read(const char *path, const char *user, struct arena *arena, struct audit *audit)
{
    AUTO_BUF text = { 0 };
    struct err err;
    EXPECT_OK(file_read(path, AUDIT_BYTES_MAX, &text, &err), err);
    for (struct str line, rest = buf_str(&text); str_cut(rest, '\n', &line, &rest);) {
        struct doc doc;
        EXPECT_OK(json_read(line, &doc, &err), err);
        take_event(doc.root, user, arena, audit);
        doc_done(&doc);
    }
}

void audit_done(struct audit *audit)
{
    vec_done(&audit->uses);
}

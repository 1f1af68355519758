/* Plain user data is classified as cloud-init does it, by how the text starts, so that wrapping it
 * into an archive does not change what it means. Two things differ from cloud-init on purpose:
 * blank lines before a "#!" go (the kernel would refuse to run the script), and a text that
 * cloud-init would ignore is run by bash, because it is what users of user data mean by "just
 * commands". */
#include "bootstrap/boot_mime.h"

#include "bootstrap/nodeconfig.h"

/* --- plain user data --- */

/* Longer ones first: some are the start of others. */
static const struct start {
    const char *text, *content_type;
} starts[] = {
    { "#cloud-config-archive", "text/cloud-config-archive" },
    { "#cloud-config-jsonp", "text/cloud-config-jsonp" },
    { "## template: jinja", "text/jinja2" },
    { "#cloud-boothook", "text/cloud-boothook" },
    { "#include-once", "text/x-include-once-url" },
    { "#part-handler", "text/part-handler" },
    { "#cloud-config", "text/cloud-config" },
    { "#include", "text/x-include-url" },
    { "#!", SHELL_CONTENT_TYPE },
};

static const char *type_by_start(struct str text)
{
    for (size_t i = 0; i < KV_COUNT_OF(starts); i++) {
        size_t len = strlen(starts[i].text), same = 0;
        while (same < len && same < text.len && char_lower(text.p[same]) == starts[i].text[same])
            same++;
        if (same == len)
            return starts[i].content_type;
    }
    return NULL;
}

/* Without a byte order mark and blank lines in front, and without blanks before a '#'. */
static struct str skip_front(struct str text, uint32_t *line)
{
    struct str first, rest;
    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_sub(text, 3, text.len);
    *line = 1;
    while (str_cut(text, '\n', &first, &rest) && !str_trim(first).len) {
        text = rest;
        ++*line;
    }
    size_t blanks = 0;
    while (blanks < text.len && char_is_space(text.p[blanks]))
        blanks++;
    bool comment = blanks < text.len && text.p[blanks] == '#';
    return str_sub(text, comment ? blanks : 0, text.len);
}

static const struct mime_header *content_type_header(struct arena *arena, struct str content_type)
{
    struct mime_header *header = arena_new(arena, struct mime_header);
    *header = (struct mime_header){ STR("Content-Type"), content_type };
    return header;
}

/* A script that does not say by what: bash, and say so. */
static void run_by_bash(struct arena *arena, const struct boot *boot, struct boot_mime_part *part,
                        struct boot_text *text)
{
    const struct boot_piece first = { STR("#!/bin/bash\n"), OWNER_KARVE,
                                      STR("the user data does not say what it is") };
    struct boot_piece *pieces = arena_array(arena, struct boot_piece, 2);
    pieces[0] = first;
    pieces[1] = (struct boot_piece){ part->mime.body, OWNER_USER, STR("") };
    part->pieces.items = pieces;
    part->pieces.count = 2;
    AUTO_BUF body = { 0 }; /* it may have any bytes */
    buf_add(&body, first.text);
    buf_add(&body, part->mime.body);
    part->mime.body = arena_str(arena, buf_str(&body));
    struct str place = boot_user_place(arena, boot, (struct text_pos){ part->mime.line, 0 });
    boot_warn(arena, text,
              "%.*s: it does not start as a script (#!), a cloud-config (#cloud-config) or a MIME "
              "archive, and is run by /bin/bash",
              STR_ARG(place));
}

static int refuse_nodeconfig(struct arena *arena, const struct boot *boot, uint32_t line,
                             struct err *err)
{
    struct str place = boot_user_place(arena, boot, (struct text_pos){ line, 0 });
    return err_set(
        err, ERR_INVALID,
        "spec.userData: %.*s: a NodeConfig, which nodes of the family %s do not read; it is for AL2023",
        STR_ARG(place), family_of(boot->family)->name);
}

static int plain_part(struct arena *arena, const struct boot *boot, bool takes_nodeconfig,
                      struct boot_mime *out, struct boot_text *text, struct err *err)
{
    struct boot_mime_part *part = arena_new(arena, struct boot_mime_part);
    part->owner = OWNER_USER;
    part->mime.header_count = 1;
    part->mime.body = skip_front(boot->user_data, &part->mime.line);

    const char *type = type_by_start(part->mime.body);
    if (!type && nodeconfig_is(part->mime.body, takes_nodeconfig)) {
        if (!takes_nodeconfig)
            return refuse_nodeconfig(arena, boot, part->mime.line, err);
        type = NODECONFIG_MEDIA_TYPE;
    }
    if (!type) {
        type = SHELL_CONTENT_TYPE;
        run_by_bash(arena, boot, part, text);
    }
    part->mime.headers = content_type_header(arena, str_of(type));
    *out = (struct boot_mime){ part, 1 };
    return 0;
}

/* --- archives --- */

static int archive_parts(struct arena *arena, const struct boot *boot, bool takes_nodeconfig,
                         struct boot_mime *out, struct err *err)
{
    struct mime mime;
    struct text_pos at;
    if (mime_read(arena, boot->user_data, &mime, &at, err) < 0) {
        struct str place = boot_user_place(arena, boot, at);
        return err_wrap(err, "spec.userData: %.*s: a MIME archive", STR_ARG(place));
    }
    struct boot_mime_part *parts = arena_array(arena, struct boot_mime_part, mime.count);
    for (uint32_t i = 0; i < mime.count; i++) {
        parts[i] = (struct boot_mime_part){ .mime = mime.parts[i], .owner = OWNER_USER };
        struct str type = mime_content_type(arena, &mime.parts[i]);
        if (!takes_nodeconfig && str_eqz(type, NODECONFIG_MEDIA_TYPE))
            return refuse_nodeconfig(arena, boot, mime.parts[i].line, err);
    }
    *out = (struct boot_mime){ parts, mime.count };
    return 0;
}

int boot_user_parts(struct arena *arena, const struct boot *boot, bool takes_nodeconfig,
                    struct boot_mime *out, struct boot_text *text, struct err *err)
{
    *out = (struct boot_mime){ NULL, 0 };
    if (!str_trim(boot->user_data).len)
        return 0;
    if (boot->user_data.len > MIME_BYTES_MAX)
        return err_set(err, ERR_INVALID, "spec.userData: has %zu bytes, EC2 takes at most %d",
                       boot->user_data.len, USERDATA_BYTES_MAX);
    if (mime_is_multipart(boot->user_data))
        return archive_parts(arena, boot, takes_nodeconfig, out, err);
    return plain_part(arena, boot, takes_nodeconfig, out, text, err);
}

/* --- writing --- */

struct boot_mime_part boot_managed_part(struct arena *arena, struct str content_type,
                                        const struct boot_text *body)
{
    AUTO_BUF joined = { 0 };
    for (uint32_t i = 0; i < body->pieces.count; i++)
        buf_add(&joined, body->pieces.items[i].text);
    struct boot_mime_part part = {
        .mime = { .headers = content_type_header(arena, content_type),
                  .header_count = 1,
                  .body = arena_str(arena, buf_str(&joined)) },
        .owner = OWNER_KARVE,
    };
    part.pieces.items = body->pieces.items;
    part.pieces.count = body->pieces.count;
    return part;
}

struct span {
    size_t headers, body, end;
};

static void note_place(void *ctx, uint32_t i, size_t headers, size_t body, size_t end)
{
    struct span *places = ctx;
    places[i] = (struct span){ headers, body, end };
}

/* The pieces of a body as it was written. Only the last may have lost bytes (the CRs of the
 * user's): it takes what is left. */
static void add_body(struct arena *arena, const struct boot_mime_part *part, struct str written,
                     struct boot_text *out)
{
    for (uint32_t i = 0; i < part->pieces.count; i++) {
        const struct boot_piece *piece = &part->pieces.items[i];
        size_t len = i + 1 < part->pieces.count ? piece->text.len : written.len;
        boot_add_piece(arena, out, str_sub(written, 0, len), piece->owner, piece->note);
        written = str_sub(written, len, written.len);
    }
    if (written.len)
        boot_add_piece(arena, out, written, part->owner, STR(""));
}

void boot_mime_write(struct arena *arena, const struct boot_mime *mime, struct boot_text *out)
{
    AUTO_BUF buf = { 0 };
    struct mime_part *parts = arena_array(arena, struct mime_part, mime->count);
    struct span *places = arena_array(arena, struct span, mime->count);
    for (uint32_t i = 0; i < mime->count; i++)
        parts[i] = mime->parts[i].mime;
    mime_write(parts, mime->count, &buf, note_place, places);
    struct str written = arena_str(arena, buf_str(&buf));

    size_t at = 0;
    for (uint32_t i = 0; i < mime->count; i++) {
        const struct boot_mime_part *part = &mime->parts[i];
        const struct span *p = &places[i];
        boot_add_piece(arena, out, str_sub(written, at, p->headers - at), OWNER_KARVE, STR(""));
        boot_add_piece(arena, out, str_sub(written, p->headers, p->body - p->headers), part->owner,
                       STR(""));
        add_body(arena, part, str_sub(written, p->body, p->end - p->body), out);
        boot_add_part(arena, out, mime_content_type(arena, &part->mime), part->owner,
                      p->end - p->body);
        at = p->end;
    }
    boot_add_piece(arena, out, str_sub(written, at, written.len), OWNER_KARVE, STR(""));
}

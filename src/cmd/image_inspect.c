/* karve image inspect: platforms, digests, and what the image asks of a node. */
#include "cmd/image_inner.h"

#include "cmd/table.h"
#include "codec/duration.h"

#include <inttypes.h>

/* A spec, and what its artifact says of itself. */
struct shown_spec {
    const struct image_spec *spec;
    struct str created; /* "" if not told */
    struct str blob;    /* digest of the spec's bytes; "" if it was not to be found out */
    int64_t size;
};

/* --- more of an artifact --- */

/* The facts do not keep when an artifact was made: its manifest tells. What it does not tell is left out. */
static int look_at_artifact(struct image_work *w, const struct image_spec *spec,
                            struct shown_spec *out)
{
    struct reference ref = w->ref;
    struct oci_manifest manifest;
    struct err err;
    *out = (struct shown_spec){ .spec = spec, .created = STR(""), .blob = STR("") };
    if (!spec->artifact.len)
        return EXIT_DONE;
    ref.digest = spec->artifact;
    if (registry_manifest(w->setup.maybe_registry, &ref, w->setup.maybe_keys, &w->arena, &manifest,
                          NULL, NULL, &err) < 0)
        return spec->trouble.len ? EXIT_DONE : image_complain(w, &err); /* that is its trouble */
    if (manifest.created_us) {
        char text[TIME_TEXT_MAX];
        size_t len = time_format(manifest.created_us, text);
        out->created = arena_str(&w->arena, (struct str){ text, len });
    }
    if (manifest.form == MANIFEST_IMAGE && manifest.count) {
        out->blob = manifest.items[0].digest;
        out->size = manifest.items[0].size;
    }
    return EXIT_DONE;
}

static const char *form_word(const struct image_facts *facts)
{
    if (str_eqz(facts->media_type, MEDIA_OCI_INDEX))
        return "an OCI index";
    if (str_eqz(facts->media_type, MEDIA_DOCKER_LIST))
        return "a docker manifest list";
    return str_eqz(facts->media_type, MEDIA_OCI_MANIFEST) ? "an OCI image" : "a docker image";
}

/* "NAME:3:5: ..." of a warning, where the name is the digest of the spec: who reads it knows that. */
static struct str warning_text(const struct shown_spec *shown, struct str warning)
{
    bool named = shown->blob.len && str_starts(warning, shown->blob);
    return named ? str_sub(warning, shown->blob.len + 1, warning.len) : warning;
}

/* --- for people --- */

static int add_set(struct image_work *w, const struct compat_set *set, uint32_t ix, struct buf *out)
{
    char group[NFG_NAME_MAX];
    struct doc rules;
    struct err err;
    uint32_t count = rules_count(set->rules);
    const struct compat_options *options = &w->setup.settings.rules;
    if (set->tag.len)
        buf_addf(out, "\nset %u %s", ix + 1, STR_SHOWN(set->tag));
    else
        buf_addf(out, "\nset %u", ix + 1);
    if (set->weight)
        buf_addf(out, ", weight %" PRId64, set->weight);
    if (!compat_set_is_asked(set, options))
        buf_addz(out, ", not asked for by --image-tags");
    if (set->description.len) {
        buf_addz(out, ": ");
        message_format(set->description, out);
    }
    buf_addc(out, '\n');
    if (count == 0) {
        buf_addz(out, "  no rules: every node will do\n");
        return EXIT_DONE;
    }
    if (nfg_name(set->rules_json, 12, group, &err) < 0 ||
        json_read(set->rules_json, &rules, &err) < 0)
        return image_complain(w, &err);
    buf_addf(out, "  NodeFeatureGroup %s\n", group);
    if (count > 1)
        buf_addf(out,
                 options->rules.combine == RULES_ANY ? "  one of %u rules must match\n"
                                                     : "  all %u rules must match\n",
                 count);
    image_rules_format(rules.root, 2, out);
    doc_done(&rules);
    return EXIT_DONE;
}

static int add_spec(struct image_work *w, const struct image_spec *spec,
                    const struct platform *maybe_platform, struct buf *out)
{
    struct shown_spec shown;
    int code = look_at_artifact(w, spec, &shown);
    if (code != EXIT_DONE)
        return code;
    buf_addz(out, "\ncompatibility spec");
    if (maybe_platform) {
        buf_addz(out, " of ");
        image_platform_format(maybe_platform, out);
    }
    buf_addf(out, "\n  artifact  %.*s\n", STR_ARG(spec->artifact));
    if (shown.blob.len)
        buf_addf(out, "  spec      %.*s\n", STR_ARG(shown.blob));
    if (shown.created.len)
        buf_addf(out, "  created   %.*s\n", STR_ARG(shown.created));
    if (spec->trouble.len) {
        buf_addz(out, "  cannot be used: ");
        message_format(spec->trouble, out);
        buf_addc(out, '\n');
        return EXIT_DONE;
    }
    const struct compat_spec *sets = spec->maybe_spec;
    for (uint32_t i = 0; i < sets->warning_count; i++) {
        buf_addz(out, "  warning: ");
        message_format(warning_text(&shown, sets->warnings[i]), out);
        buf_addc(out, '\n');
    }
    if (sets->set_count == 0)
        buf_addz(out, "  no sets: every node will do\n");
    else if (sets->set_count > 1)
        buf_addf(out,
                 w->setup.settings.rules.sets == SETS_ALL ? "  all %u sets must match\n"
                                                          : "  one of %u sets must match\n",
                 sets->set_count);
    for (uint32_t i = 0; code == EXIT_DONE && i < sets->set_count; i++)
        code = add_set(w, &sets->sets[i], i, out);
    return code;
}

static void add_platforms(const struct image_work *w, const struct image_facts *facts,
                          struct buf *out)
{
    static const char *const headings[] = { "PLATFORM", "DIGEST" };
    struct table t;
    if (facts->platform_count == 0) {
        buf_addz(out, "\nit does not tell for which platforms it is built\n");
        return;
    }
    buf_addc(out, '\n');
    table_init(&t, headings, KV_COUNT_OF(headings));
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        AUTO_BUF name = { 0 };
        image_platform_format(&facts->platforms[i].platform, &name);
        table_add(&t, buf_str(&name));
        table_add(&t, facts->platforms[i].digest);
    }
    table_print(&t, out, w->colour);
    table_done(&t);
}

static bool has_artifact(const struct image_facts *facts)
{
    bool has = facts->spec.artifact.len > 0;
    for (uint32_t i = 0; i < facts->platform_count; i++)
        has |= facts->platforms[i].spec.artifact.len > 0;
    return has;
}

static int print_text(struct image_work *w, const struct image_facts *facts, struct buf *out)
{
    int code = EXIT_DONE;
    name_format(w->full, out);
    buf_addf(out, "\n  %s: %.*s\n  artifacts are listed by %s\n", form_word(facts),
             STR_ARG(facts->digest),
             facts->way == REFERRERS_API ? "the registry's referrers API"
                                         : "tags: the registry has no referrers API");
    add_platforms(w, facts, out);
    if (!has_artifact(facts))
        buf_addz(out,
                 "\nno compatibility spec is attached: it runs on every node of its platforms\n");
    if (facts->spec.artifact.len)
        code = add_spec(w, &facts->spec, NULL, out);
    for (uint32_t i = 0; code == EXIT_DONE && i < facts->platform_count; i++) {
        const struct image_platform *p = &facts->platforms[i];
        if (p->spec.artifact.len)
            code = add_spec(w, &p->spec, &p->platform, out);
    }
    return code;
}

/* --- for programs --- */

static int json_set_of(struct image_work *w, struct json_build *b, const struct compat_set *set,
                       json_mut *sets)
{
    struct doc rules;
    struct err err;
    char group[NFG_NAME_MAX];
    json_mut *o = json_new_object(b);
    if (nfg_name(set->rules_json, 12, group, &err) < 0 ||
        json_read(set->rules_json, &rules, &err) < 0)
        return image_complain(w, &err);
    json_set_str(b, o, "tag", set->tag);
    json_set_i64(b, o, "weight", set->weight);
    json_set_str(b, o, "description", set->description);
    json_set(b, o, STR("nodeFeatureGroup"),
             rules_count(set->rules) ? json_new_str(b, str_of(group)) : json_new_null(b));
    json_set(b, o, STR("rules"), json_copy(b, rules.root));
    json_push(b, sets, o);
    doc_done(&rules);
    return EXIT_DONE;
}

/* NULL for an image without: that is null, not left out. */
static int json_spec(struct image_work *w, struct json_build *b, const struct image_spec *spec,
                     json_mut *parent)
{
    struct shown_spec shown;
    json_mut *o = json_new_object(b), *sets = json_new_array(b), *warnings = json_new_array(b);
    int code = look_at_artifact(w, spec, &shown);
    if (code != EXIT_DONE)
        return code;
    if (!spec->artifact.len) {
        json_set(b, parent, STR("compatibility"), json_new_null(b));
        return EXIT_DONE;
    }
    json_set_str(b, o, "artifact", spec->artifact);
    json_set(b, o, STR("spec"), shown.blob.len ? json_new_str(b, shown.blob) : json_new_null(b));
    json_set(b, o, STR("created"),
             shown.created.len ? json_new_str(b, shown.created) : json_new_null(b));
    json_set(b, o, STR("trouble"),
             spec->trouble.len ? json_new_str(b, spec->trouble) : json_new_null(b));
    const struct compat_spec *of = spec->maybe_spec;
    for (uint32_t i = 0; of && code == EXIT_DONE && i < of->set_count; i++)
        code = json_set_of(w, b, &of->sets[i], sets);
    for (uint32_t i = 0; of && i < of->warning_count; i++)
        json_push(b, warnings, json_new_str(b, warning_text(&shown, of->warnings[i])));
    json_set(b, o, STR("sets"), sets);
    json_set(b, o, STR("warnings"), warnings);
    json_set(b, parent, STR("compatibility"), o);
    return code;
}

static int print_json(struct image_work *w, const struct image_facts *facts, struct buf *out)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *platforms = json_new_array(&b);
    json_set_str(&b, root, "reference", w->full);
    json_set_str(&b, root, "digest", facts->digest);
    json_set_str(&b, root, "mediaType", facts->media_type);
    json_set_str(&b, root, "referrers", facts->way == REFERRERS_API ? STR("api") : STR("tag"));
    int code = json_spec(w, &b, &facts->spec, root);
    for (uint32_t i = 0; code == EXIT_DONE && i < facts->platform_count; i++) {
        const struct image_platform *p = &facts->platforms[i];
        json_mut *o = json_new_object(&b);
        json_set_str(&b, o, "os", p->platform.os);
        json_set_str(&b, o, "architecture", p->platform.architecture);
        json_set_str(&b, o, "variant", p->platform.variant);
        json_set_str(&b, o, "digest", p->digest);
        code = json_spec(w, &b, &p->spec, o);
        json_push(&b, platforms, o);
    }
    json_set(&b, root, STR("platforms"), platforms);
    json_write_pretty(root, out);
    buf_addc(out, '\n');
    return code;
}

int image_inspect(struct image_work *w)
{
    AUTO_IMAGE_FACTS facts = NULL;
    AUTO_BUF out = { 0 };
    if (flag_given(w->inv, "filename"))
        return print_complaint(w->name, EXIT_USAGE, "--filename is not for this verb");
    int code = image_look_up(w, false, &facts);
    if (code == EXIT_DONE)
        code = w->json ? print_json(w, facts, &out) : print_text(w, facts, &out);
    return code == EXIT_DONE ? print_out(&out, "karve image inspect", EXIT_DONE) : code;
}

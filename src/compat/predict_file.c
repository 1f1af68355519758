/* Profiles as JSON.
 *
 *     {"version": 1,
 *      "features": [{"name": "cpu.cpuid", "flags": ["AVX2"], "unsure": ["AVX512F"]}, ...],
 *      "pairs": [{"type": "m5.large", "image": "ami-1", "features": [0, 1]}, ...],
 *      "types": [{"type": "m5.large", "features": [0]}, ...],
 *      "images": [{"image": "ami-1", "features": [1]}, ...]}
 *
 * A feature that several profiles have is written once; they are numbered as profiles, in the order of their
 * names, first need them. A list of flags (attributes, instances) that is there and empty is not one that is
 * not there.
 */
#include "compat/predict_inner.h"

#include "base/vec.h"
#include "codec/json.h"

#define FILE_VERSION 1
#define PROFILE_NAME_BYTES_MAX 253 /* of a type or an image; a label's value has 63 */

static const char *const shelf_words[PROFILE_KIND_COUNT] = {
    [PROFILE_PAIR] = "pairs",
    [PROFILE_TYPE] = "types",
    [PROFILE_IMAGE] = "images",
};
static const char *const completeness_words[] = {
    [FEATURE_COMPLETE] = "complete",
    [FEATURE_PARTIAL] = "partial",
    [FEATURE_UNKNOWN] = "unknown",
};

static bool kind_has_type(enum profile_kind kind)
{
    return kind != PROFILE_IMAGE;
}
static bool kind_has_image(enum profile_kind kind)
{
    return kind != PROFILE_TYPE;
}

/* --- writing --- */

static void write_names(const char *key, const struct feature_set *set,
                        const struct feature_text *names, uint32_t count, struct buf *out)
{
    buf_addf(out, ",\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        buf_addz(out, i ? "," : "");
        json_write_string(feature_set_str(set, names[i]), out);
    }
    buf_addc(out, ']');
}

static void write_values(const struct feature_set *set, struct feature_attribute_range range,
                         struct buf *out)
{
    const struct feature_value *values = feature_set_values(set, range);
    buf_addc(out, '{');
    for (uint32_t i = 0; i < range.count; i++) {
        buf_addz(out, i ? "," : "");
        json_write_string(feature_set_str(set, values[i].name), out);
        buf_addc(out, ':');
        json_write_string(feature_set_str(set, values[i].value), out);
    }
    buf_addc(out, '}');
}

static void write_feature(const struct feature_set *set, struct buf *out)
{
    const struct set_feature *f = profile_feature(set);
    buf_addz(out, "{\"name\":");
    json_write_string(profile_feature_name(set), out);
    if (f->completeness != FEATURE_COMPLETE)
        buf_addf(out, ",\"completeness\":\"%s\"", completeness_words[f->completeness]);
    if (f->kinds & FEATURE_HAS_FLAGS)
        write_names("flags", set, feature_set_flags(set, f), f->flag_count, out);
    if (f->kinds & FEATURE_HAS_ATTRIBUTES) {
        buf_addz(out, ",\"attributes\":");
        write_values(set, f->attributes, out);
    }
    if (f->unsure_count)
        write_names("unsure", set, feature_set_unsure(set, f), f->unsure_count, out);
    if (f->kinds & FEATURE_HAS_INSTANCES) {
        buf_addz(out, ",\"instances\":[");
        for (uint32_t i = 0; i < f->instance_count; i++) {
            buf_addz(out, i ? "," : "");
            write_values(set, feature_set_instances(set, f)[i], out);
        }
        buf_addc(out, ']');
    }
    buf_addc(out, '}');
}

struct writing {
    struct map numbers; /* set -> its number */
    struct buf features, profiles;
};

static void write_number(struct writing *w, const struct feature_set *set)
{
    uintptr_t number = w->numbers.live_count;
    if (!map_get(&w->numbers, (uintptr_t)set, &number)) {
        map_put(&w->numbers, (uintptr_t)set, number);
        buf_addz(&w->features, number ? ",\n" : "\n");
        write_feature(set, &w->features);
    }
    buf_addf(&w->profiles, "%zu", (size_t)number);
}

static void write_profile(struct writing *w, enum profile_kind kind, const struct profile *profile)
{
    buf_addc(&w->profiles, '{');
    if (kind_has_type(kind)) {
        buf_addz(&w->profiles, "\"type\":");
        json_write_string(profile->type, &w->profiles);
    }
    if (kind_has_image(kind)) {
        buf_addz(&w->profiles, kind_has_type(kind) ? ",\"image\":" : "\"image\":");
        json_write_string(profile->image, &w->profiles);
    }
    buf_addz(&w->profiles, ",\"features\":[");
    for (uint32_t i = 0; i < profile->features.count; i++) {
        buf_addz(&w->profiles, i ? "," : "");
        write_number(w, profile->features.items[i]);
    }
    buf_addz(&w->profiles, "]}");
}

static void write_shelf(struct writing *w, enum profile_kind kind, const struct shelf *shelf)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count = shelf->by_key.live_count;
    uint32_t *order = arena_array(&arena, uint32_t, count);
    str_table_sorted(&shelf->by_key, order);
    buf_addf(&w->profiles, ",\n\"%s\":[", shelf_words[kind]);
    for (uint32_t i = 0; i < count; i++) {
        buf_addz(&w->profiles, i ? ",\n" : "\n");
        write_profile(w, kind, shelf->by_key.slots[order[i]].value);
    }
    buf_addc(&w->profiles, ']');
}

void predictor_save(struct predictor *p, struct buf *out)
{
    struct writing w = { 0 };
    pthread_mutex_lock(&p->lock);
    for (int kind = 0; kind < PROFILE_KIND_COUNT; kind++)
        write_shelf(&w, (enum profile_kind)kind, &p->shelves[kind]);
    pthread_mutex_unlock(&p->lock);

    buf_addf(out, "{\"version\":%d,\n\"features\":[", FILE_VERSION);
    buf_add(out, buf_str(&w.features));
    buf_addc(out, ']');
    buf_add(out, buf_str(&w.profiles));
    buf_addz(out, "}\n");
    map_done(&w.numbers);
    buf_done(&w.features);
    buf_done(&w.profiles);
}

/* --- reading --- */

struct read_profile {
    enum profile_kind kind;
    struct str type, image;
    struct profile_features features;
};

struct reading {
    struct feature_sets *pool;
    struct arena arena;
    VEC(const struct feature_set *) features;
    VEC(struct read_profile) profiles;
    struct buf path; /* of what is being read: "pairs[3].features" */
    struct err *err;
};

static void reading_done(struct reading *r)
{
    vec_each(&r->features, const struct feature_set *, set)
        feature_set_unref(*set);
    vec_each(&r->profiles, struct read_profile, profile)
        profile_features_done(&profile->features);
    vec_done(&r->features);
    vec_done(&r->profiles);
    buf_done(&r->path);
    arena_done(&r->arena);
}

static int refuse(struct reading *r, const char *why)
{
    return err_set(r->err, ERR_INVALID, "%s: %s", r->path.len ? r->path.p : "profiles", why);
}

/* Go into a member or an item, and out again with buf_cut to what is returned. */
static size_t enter(struct reading *r, struct str key)
{
    size_t before = r->path.len;
    buf_addz(&r->path, before ? "." : "");
    buf_add_utf8(&r->path, str_sub(key, 0, STR_SHOWN_BYTES));
    return before;
}
static size_t enter_item(struct reading *r, size_t ix)
{
    size_t before = r->path.len;
    buf_addf(&r->path, "[%zu]", ix);
    return before;
}

/* Call `fn` for each item of a list, or with its key for each member of an object. */
typedef int read_item_fn(struct reading *r, const json_val *v, void *ctx);
typedef int read_member_fn(struct reading *r, struct str key, const json_val *v, void *ctx);

static int read_list(struct reading *r, const json_val *list, read_item_fn *fn, void *ctx)
{
    size_t ix = 0;
    if (!json_is_array(list))
        return refuse(r, "expected a list");
    json_each_item(list, item) {
        size_t before = enter_item(r, ix++);
        if (fn(r, item, ctx) < 0)
            return -1;
        buf_cut(&r->path, before);
    }
    return 0;
}

static int read_object(struct reading *r, const json_val *object, read_member_fn *fn, void *ctx)
{
    if (!json_is_object(object))
        return refuse(r, "expected an object");
    json_each_member(object, key, value) {
        size_t before = enter(r, json_key(key));
        if (fn(r, json_key(key), value, ctx) < 0)
            return -1;
        buf_cut(&r->path, before);
    }
    return 0;
}

struct feature_reading {
    struct feature_draft *draft;
    struct str name;
};

static int read_flag(struct reading *r, const json_val *v, void *ctx)
{
    struct feature_reading *f = ctx;
    if (!json_is_string(v))
        return refuse(r, "expected a string");
    feature_draft_flag(f->draft, f->name, json_str(v));
    return 0;
}

static int read_unsure(struct reading *r, const json_val *v, void *ctx)
{
    struct feature_reading *f = ctx;
    if (!json_is_string(v))
        return refuse(r, "expected a string");
    feature_draft_unsure(f->draft, f->name, json_str(v));
    return 0;
}

static int read_attribute(struct reading *r, struct str key, const json_val *v, void *ctx)
{
    struct feature_reading *f = ctx;
    if (!json_is_string(v))
        return refuse(r, "expected a string");
    feature_draft_attribute(f->draft, f->name, key, json_str(v));
    return 0;
}

struct instance_reading {
    struct str_pair *pairs;
    uint32_t count;
};

static int read_pair(struct reading *r, struct str key, const json_val *v, void *ctx)
{
    struct instance_reading *instance = ctx;
    if (!json_is_string(v))
        return refuse(r, "expected a string");
    instance->pairs[instance->count++] = (struct str_pair){ key, json_str(v) };
    return 0;
}

static int read_instance(struct reading *r, const json_val *v, void *ctx)
{
    struct feature_reading *f = ctx;
    struct instance_reading instance = { .pairs = arena_array(&r->arena, struct str_pair,
                                                              json_count(v)) };
    if (read_object(r, v, read_pair, &instance) < 0)
        return -1;
    if (instance.count > 1)
        qsort(instance.pairs, instance.count, sizeof *instance.pairs, str_pair_order);
    struct str_map *map = arena_new(&r->arena, struct str_map);
    *map = (struct str_map){ instance.pairs, instance.count };
    feature_draft_instance(f->draft, f->name, map);
    return 0;
}

static int read_completeness(struct reading *r, const json_val *v, struct feature_reading *f)
{
    for (size_t i = 0; i < KV_COUNT_OF(completeness_words); i++) {
        if (str_eqz(json_str(v), completeness_words[i])) {
            feature_draft_completeness(f->draft, f->name, (enum completeness)i);
            return 0;
        }
    }
    return refuse(r, "expected complete, partial or unknown");
}

static int read_feature_member(struct reading *r, struct str key, const json_val *v, void *ctx)
{
    struct feature_reading *f = ctx;
    if (str_eqz(key, "name"))
        return 0; /* read before the others */
    if (str_eqz(key, "completeness"))
        return read_completeness(r, v, f);
    if (str_eqz(key, "unsure"))
        return read_list(r, v, read_unsure, f);
    if (str_eqz(key, "flags")) {
        feature_draft_kinds(f->draft, f->name, FEATURE_HAS_FLAGS);
        return read_list(r, v, read_flag, f);
    }
    if (str_eqz(key, "attributes")) {
        feature_draft_kinds(f->draft, f->name, FEATURE_HAS_ATTRIBUTES);
        return read_object(r, v, read_attribute, f);
    }
    if (str_eqz(key, "instances")) {
        feature_draft_kinds(f->draft, f->name, FEATURE_HAS_INSTANCES);
        return read_list(r, v, read_instance, f);
    }
    return refuse(r, "no such field");
}

static int read_feature(struct reading *r, const json_val *v, void *ctx)
{
    (void)ctx;
    FEATURE_DRAFT draft = { 0 };
    const struct feature_set *set = NULL;
    struct feature_reading f = { &draft, json_str(json_get(v, STR("name"))) };
    if (f.name.len == 0)
        return refuse(r, "expected an object with a name");
    feature_draft_completeness(&draft, f.name, FEATURE_COMPLETE);
    if (read_object(r, v, read_feature_member, &f) < 0)
        return -1;
    if (feature_set_make(r->pool, &draft, &set, r->err) < 0)
        return err_wrap(r->err, "%s", r->path.p);
    vec_push(&r->features, set);
    return 0;
}

static int by_feature_name(const void *a, const void *b)
{
    return str_cmp(profile_feature_name(*(const struct feature_set *const *)a),
                   profile_feature_name(*(const struct feature_set *const *)b));
}

static int read_reference(struct reading *r, const json_val *v, void *ctx)
{
    struct read_profile *profile = ctx;
    int64_t number = -1;
    if (!json_i64(v, &number) || number < 0 || (uint64_t)number >= r->features.count)
        return refuse(r, "expected the number of a feature");
    const struct feature_set *set = r->features.items[number];
    if (!profile_keeps(profile->kind, profile_feature_name(set)))
        return refuse(r, "is not a feature that comes with it");
    profile->features.items[profile->features.count++] = feature_set_ref(set);
    return 0;
}

static int read_references(struct reading *r, const json_val *v, struct read_profile *profile)
{
    struct profile_features *f = &profile->features;
    if (json_count(v) > PROFILE_FEATURES_MAX)
        return refuse(r, "too many features");
    f->items = kv_calloc(json_count(v) + 1, sizeof *f->items);
    if (read_list(r, v, read_reference, profile) < 0)
        return -1;
    if (f->count > 1)
        qsort(f->items, f->count, sizeof *f->items, by_feature_name);
    for (uint32_t i = 1; i < f->count; i++) {
        if (by_feature_name(&f->items[i - 1], &f->items[i]) == 0)
            return refuse(r, "the same feature twice");
    }
    return 0;
}

static int read_name(struct reading *r, const json_val *v, struct str *out)
{
    struct str name = json_str(v);
    if (name.len == 0 || name.len > PROFILE_NAME_BYTES_MAX || str_find(name, '\n') >= 0)
        return refuse(r, "expected a name");
    *out = name;
    return 0;
}

static int read_profile_member(struct reading *r, struct str key, const json_val *v, void *ctx)
{
    struct read_profile *profile = ctx;
    if (str_eqz(key, "type") && kind_has_type(profile->kind))
        return read_name(r, v, &profile->type);
    if (str_eqz(key, "image") && kind_has_image(profile->kind))
        return read_name(r, v, &profile->image);
    if (str_eqz(key, "features"))
        return read_references(r, v, profile);
    return refuse(r, "no such field");
}

static int read_profile(struct reading *r, const json_val *v, void *ctx)
{
    vec_push(&r->profiles, (struct read_profile){ .kind = *(const enum profile_kind *)ctx,
                                                  .type = STR(""),
                                                  .image = STR("") });
    struct read_profile *profile = &vec_last(&r->profiles);
    if (read_object(r, v, read_profile_member, profile) < 0)
        return -1;
    if (kind_has_type(profile->kind) && profile->type.len == 0)
        return refuse(r, "has no type");
    if (kind_has_image(profile->kind) && profile->image.len == 0)
        return refuse(r, "has no image");
    if (!profile->features.items)
        return refuse(r, "has no features");
    return 0;
}

static int read_shelf(struct reading *r, struct str key, const json_val *v, void *ctx)
{
    int64_t version = 0;
    (void)ctx;
    if (str_eqz(key, "version"))
        return json_i64(v, &version) && version == FILE_VERSION ? 0 : refuse(r, "expected 1");
    if (str_eqz(key, "features"))
        return 0; /* read before the others */
    for (int kind = 0; kind < PROFILE_KIND_COUNT; kind++) {
        enum profile_kind wanted = (enum profile_kind)kind;
        if (str_eqz(key, shelf_words[kind]))
            return read_list(r, v, read_profile, &wanted);
    }
    return refuse(r, "no such field");
}

static int read_all(struct reading *r, const json_val *root)
{
    const json_val *features = json_get(root, STR("features"));
    if (!json_get(root, STR("version")))
        return refuse(r, "expected an object with a version");
    if (features) {
        size_t before = enter(r, STR("features"));
        if (read_list(r, features, read_feature, NULL) < 0)
            return -1;
        buf_cut(&r->path, before);
    }
    return read_object(r, root, read_shelf, NULL);
}

int predictor_load(struct predictor *p, const char *name, struct str text, struct err *err)
{
    struct doc doc;
    struct reading r = { .pool = p->pool, .err = err };
    if (json_read(text, &doc, err) < 0)
        return err_wrap(err, "%s", name);
    int rc = read_all(&r, doc.root);
    pthread_mutex_lock(&p->lock);
    vec_each(&r.profiles, struct read_profile, profile) {
        if (rc == 0)
            predictor_merge(p, profile->kind, profile->type, profile->image, &profile->features);
    }
    pthread_mutex_unlock(&p->lock);
    reading_done(&r);
    doc_done(&doc);
    if (rc < 0)
        return err_wrap(err, "%s", name);
    pthread_mutex_lock(&p->lock);
    predictor_keep_within_limits(p);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

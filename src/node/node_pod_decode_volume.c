/* Decoding of volumes. A configMap, secret or downwardAPI volume is a projected one with a single
 * source: the same tables read the source, wherever it stands. */
#include "node/node_pod_inner.h"

#define FILE_MODE_DEFAULT 0644
#define TOKEN_EXPIRATION_DEFAULT_S 3600

/* --- sources --- */

#define T struct key_path
static const struct field key_path_fields[] = {
    FIELD(STR, key, "key", NULL),
    FIELD(STR, path, "path", NULL),
    FIELD(MAYBE_INT, mode, "mode", NULL),
};
#undef T
static const struct schema key_path_schema = SCHEMA("KeyToPath", struct key_path, key_path_fields);

/* Divisors are settled. */
#define T struct downward_item
static const struct field field_ref_fields[] = { FIELD(STR, field_path, "fieldPath", NULL) };
static const struct schema field_ref_schema = SCHEMA("ObjectFieldSelector", T, field_ref_fields);

static const struct field resource_ref_fields[] = {
    FIELD(STR, container, "containerName", NULL),
    FIELD(STR, resource, "resource", NULL),
};
static const struct schema resource_ref_schema =
    SCHEMA("ResourceFieldSelector", T, resource_ref_fields);

static const struct field downward_item_fields[] = {
    FIELD(STR, path, "path", NULL),
    FLAT("fieldRef", field_ref_schema),
    FLAT("resourceFieldRef", resource_ref_schema),
    FIELD(MAYBE_INT, mode, "mode", NULL),
};
#undef T
static const struct schema downward_item_schema =
    SCHEMA("DownwardAPIVolumeFile", struct downward_item, downward_item_fields);

#define T struct volume_source
static const struct field object_fields[] = {
    FIELD(STR, object, "name", NULL),
    FIELD(STR, object, "secretName", NULL), /* so it is called in a volume of its own */
    FIELD(LIST, items, "items", NULL, .sub = &key_path_schema),
    FIELD(BOOL, optional, "optional", NULL),
};
static const struct schema object_schema = SCHEMA("ConfigMapProjection", T, object_fields);

static const struct field downward_fields[] = {
    FIELD(LIST, downward, "items", NULL, .sub = &downward_item_schema),
};
static const struct schema downward_schema = SCHEMA("DownwardAPIProjection", T, downward_fields);

static const struct field token_fields[] = {
    FIELD(STR, token_audience, "audience", NULL),
    FIELD(INT, token_expiration_s, "expirationSeconds", NULL),
    FIELD(STR, token_path, "path", NULL),
};
static const struct schema token_schema = SCHEMA("ServiceAccountTokenProjection", T, token_fields);

static const struct field source_fields[] = {
    FLAT("configMap", object_schema),
    FLAT("secret", object_schema),
    FLAT("downwardAPI", downward_schema),
    FLAT("serviceAccountToken", token_schema),
};
#undef T
static const struct schema source_schema =
    SCHEMA("VolumeProjection", struct volume_source, source_fields);

/* --- volumes --- */

#define T struct node_volume
static const struct field host_path_fields[] = {
    FIELD(STR, host_path, "path", NULL),
    FIELD(STR, host_path_type, "type", NULL),
};
static const struct schema host_folder_schema = SCHEMA("HostPathVolumeSource", T, host_path_fields);

static const struct field empty_dir_fields[] = {
    FIELD(ENUM, memory, "medium", NULL, RULE(ENUMS("Memory"))),
};
static const struct schema empty_folder_schema =
    SCHEMA("EmptyDirVolumeSource", T, empty_dir_fields);

static const struct field files_fields[] = { FIELD(INT, default_mode, "defaultMode", NULL) };
static const struct schema files_schema = SCHEMA("FilesVolumeSource", T, files_fields);

static const struct field projected_fields[] = {
    FIELD(INT, default_mode, "defaultMode", NULL),
    FIELD(LIST, sources, "sources", NULL, .sub = &source_schema),
};
static const struct schema projected_schema = SCHEMA("ProjectedVolumeSource", T, projected_fields);

static const struct field volume_fields[] = {
    FIELD(STR, name, "name", NULL),        FLAT("hostPath", host_folder_schema),
    FLAT("emptyDir", empty_folder_schema), FLAT("configMap", files_schema),
    FLAT("secret", files_schema),          FLAT("downwardAPI", files_schema),
    FLAT("projected", projected_schema),
};
#undef T
const struct schema node_volume_schema = SCHEMA("Volume", struct node_volume, volume_fields);

/* --- settling --- */

/* In the order of enum node_volume_kind, from NODE_VOLUME_EMPTY_DIR. */
static const char *const volume_names[] = { "emptyDir",    "hostPath",  "configMap", "secret",
                                            "downwardAPI", "projected", NULL };

static struct str first_source(const json_val *volume)
{
    json_each_member(volume, key, value) {
        if (!str_eq(json_key(key), STR("name")) && !json_is_null(value))
            return json_key(key);
    }
    return STR_NONE;
}

/* A kind that this agent does not mount: the pod is known all the same, and waits for its volume. */
static void mark_other(const struct settling *at, struct node_volume *volume, const char *kind,
                       struct str detail)
{
    volume->kind = NODE_VOLUME_OTHER;
    volume->other = arena_strf(at->arena, "%s %.*s", kind, STR_ARG(detail));
}

static int settle_source(const struct settling *at, struct volume_source *source)
{
    static const char *const names[] = { "configMap", "secret", "downwardAPI", NULL };
    static const uint8_t kind_of[] = { 0, NODE_VOLUME_CONFIG_MAP, NODE_VOLUME_SECRET,
                                       NODE_VOLUME_DOWNWARD };
    source->kind = kind_of[json_which(at->json, names)];
    if (source->token_path.len && source->token_expiration_s <= 0)
        source->token_expiration_s = TOKEN_EXPIRATION_DEFAULT_S;
    if (source->kind != NODE_VOLUME_DOWNWARD)
        return 0;

    struct settling downward = settling_in(at, "downwardAPI");
    struct settling items = settling_in(&downward, "items");
    uint32_t ix = 0;
    json_each_item(items.json, json) {
        struct downward_item *item = (struct downward_item *)&source->downward.items[ix];
        struct settling item_at = settling_at(&items, ix++, json);
        struct settling resource = settling_in(&item_at, "resourceFieldRef");
        struct settling divisor = settling_in(&resource, "divisor");
        if (settle_quantity(&divisor, &item->divisor, NULL) < 0)
            return -1;
    }
    return 0;
}

/* The volume itself is the one member of a source that has it. */
static int settle_single(const struct settling *at, struct node_volume *volume)
{
    struct volume_source *source = arena_new(at->arena, struct volume_source);
    if (settling_decode(at, &source_schema, source) < 0 || settle_source(at, source) < 0)
        return -1;
    volume->sources.items = source;
    volume->sources.count = 1;
    return 0;
}

static int settle_projected(const struct settling *at, struct node_volume *volume)
{
    struct settling projected = settling_in(at, "projected");
    struct settling sources = settling_in(&projected, "sources");
    uint32_t ix = 0;
    json_each_item(sources.json, json) {
        struct settling at_source = settling_at(&sources, ix, json);
        struct volume_source *source = (struct volume_source *)&volume->sources.items[ix++];
        if (settle_source(&at_source, source) < 0)
            return -1;
        if (source->kind == 0 && !source->token_path.len)
            mark_other(at, volume, "projected", first_source(json));
    }
    return 0;
}

static int settle_empty_dir(const struct settling *at, struct node_volume *volume)
{
    struct settling dir = settling_in(at, "emptyDir");
    struct settling limit = settling_in(&dir, "sizeLimit");
    struct str medium = json_str(json_get(dir.json, STR("medium")));
    struct quantity size = { 0 };
    struct str text;
    if (medium.len && !volume->memory)
        mark_other(at, volume, "emptyDir of medium", medium);
    if (settle_quantity(&limit, &text, &size) < 0)
        return -1;
    volume->size_limit_bytes = quantity_units(size);
    return 0;
}

int settle_volume(const struct settling *at, struct node_volume *volume)
{
    volume->kind = json_which(at->json, volume_names);
    if (volume->kind == NODE_VOLUME_OTHER) {
        volume->other = first_source(at->json);
        if (!volume->other.p) /* none at all */
            volume->kind = NODE_VOLUME_EMPTY_DIR;
    } else {
        const json_val *source = json_get(at->json, str_of(volume_names[volume->kind - 1]));
        const json_val *mode = json_get(source, STR("defaultMode"));
        if (!mode || json_is_null(mode))
            volume->default_mode = FILE_MODE_DEFAULT;
    }

    switch ((enum node_volume_kind)volume->kind) {
    case NODE_VOLUME_OTHER:
    case NODE_VOLUME_HOST_PATH:
        return 0;
    case NODE_VOLUME_EMPTY_DIR:
        return settle_empty_dir(at, volume);
    case NODE_VOLUME_CONFIG_MAP:
    case NODE_VOLUME_SECRET:
    case NODE_VOLUME_DOWNWARD:
        return settle_single(at, volume);
    case NODE_VOLUME_PROJECTED:
        return settle_projected(at, volume);
    }
    KV_UNREACHABLE();
}

/* What a pod may ask about itself: fields by their path, and resources of its containers. */
#include "node/volumes.h"

#include "api/resources.h"

/* --- fields --- */

/* As Go's %q writes it, which readers of such files expect: not quite JSON. */
static void add_go_quoted(struct buf *out, struct str text)
{
    static const char plain[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    buf_addc(out, '"');
    while (text.len > 0) {
        size_t len = str_utf8_first(text);
        unsigned char c = (unsigned char)text.p[0];
        const char *short_form = c ? strchr(plain, c) : NULL;
        if (short_form)
            buf_addf(out, "\\%c", letters[short_form - plain]);
        else if (len == 0 || c < ' ' || c == 0x7f)
            buf_addf(out, "\\x%02x", c);
        else if (len == 2 && c == 0xc2 && (unsigned char)text.p[1] < 0xa0) /* U+0080 to U+009F */
            buf_addf(out, "\\u%04x", (unsigned char)text.p[1]);
        else
            buf_add(out, str_sub(text, 0, len));
        text = str_sub(text, len ? len : 1, text.len);
    }
    buf_addc(out, '"');
}

/* key="value", a line each, by key. */
static struct str map_text(const struct str_map *map, struct arena *arena)
{
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < map->count; i++) {
        if (i > 0)
            buf_addc(&out, '\n');
        buf_add(&out, map->items[i].key);
        buf_addc(&out, '=');
        add_go_quoted(&out, map->items[i].value);
    }
    return arena_str(arena, buf_str(&out));
}

/* metadata.labels, or with ['key'] one of them; one that is not there is empty. */
static bool map_field(struct str path, struct str name, const struct str_map *map,
                      struct arena *arena, struct str *out)
{
    if (!str_starts(path, name))
        return false;
    struct str rest = str_sub(path, name.len, path.len);
    if (rest.len == 0) {
        *out = map_text(map, arena);
        return true;
    }
    if (rest.len < 4 || !str_starts(rest, STR("['")) || !str_ends(rest, STR("']")))
        return false;
    struct str value = str_map_get(map, str_sub(rest, 2, rest.len - 4));
    *out = value.p ? value : STR("");
    return true;
}

static struct str first_of(const struct str_list *list)
{
    return list->count ? list->items[0] : STR("");
}

static struct str joined(const struct str_list *list, struct arena *arena)
{
    AUTO_BUF out = { 0 };
    for (uint32_t i = 0; i < list->count; i++) {
        if (i > 0)
            buf_addc(&out, ',');
        buf_add(&out, list->items[i]);
    }
    return arena_str(arena, buf_str(&out));
}

bool downward_field(const struct node_pod *pod, const struct node_facts *facts, struct str path,
                    struct arena *arena, struct str *out)
{
    const struct str_list *ips = pod->host_network ? &facts->node_ips : &facts->pod_ips;
    const struct {
        const char *path;
        struct str value;
    } plain[] = {
        { "metadata.name", pod->name },
        { "metadata.namespace", pod->namespace_ },
        { "metadata.uid", pod->uid },
        { "spec.nodeName", facts->node_name },
        { "spec.serviceAccountName", pod->service_account },
        { "status.hostIP", first_of(&facts->node_ips) },
        { "status.podIP", first_of(ips) },
    };
    for (size_t i = 0; i < KV_COUNT_OF(plain); i++) {
        if (str_eqz(path, plain[i].path)) {
            *out = plain[i].value.p ? plain[i].value : STR("");
            return true;
        }
    }
    if (str_eqz(path, "status.hostIPs") || str_eqz(path, "status.podIPs")) {
        *out = joined(str_eqz(path, "status.podIPs") ? ips : &facts->node_ips, arena);
        return true;
    }
    return map_field(path, STR("metadata.labels"), &pod->labels, arena, out) ||
           map_field(path, STR("metadata.annotations"), &pod->annotations, arena, out);
}

/* --- resources --- */

static int64_t divided_up(int64_t value, int64_t divisor)
{
    return value <= 0 ? 0 : (value - 1) / divisor + 1;
}

bool downward_resource(const struct node_container *container, const struct node_facts *facts,
                       struct str resource, struct str divisor, struct arena *arena,
                       struct str *out)
{
    struct str list, name;
    if (!str_cut(resource, '.', &list, &name))
        return false;
    bool limit = str_eq(list, STR("limits")), cpu = str_eq(name, STR("cpu"));
    bool huge = str_starts(name, STR("hugepages-"));
    if ((!limit && !str_eq(list, STR("requests"))) ||
        (!cpu && !huge && !str_eq(name, STR("memory")) && !str_eq(name, STR("ephemeral-storage"))))
        return false;

    struct quantity unit = quantity_of(1);
    if (divisor.len > 0 && quantity_parse(divisor, &unit, NULL) < 0)
        return false;
    if (quantity_is_zero(unit)) /* what an API server writes where none was given */
        unit = quantity_of(1);
    if (quantity_cmp(unit, quantity_of(0)) < 0)
        return false;

    const struct resource_needs *needs = &container->resources;
    struct quantity amount = resources_get(limit ? &needs->limits : &needs->requests, name);
    if (limit && !huge && quantity_is_zero(amount))
        amount = resources_get(&facts->allocatable, name);
    int64_t value = cpu ? divided_up(quantity_milli(amount), quantity_milli(unit))
                        : divided_up(quantity_units(amount), quantity_units(unit));
    *out = arena_strf(arena, "%lld", (long long)value);
    return true;
}

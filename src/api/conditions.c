/* The set is the object's list, copied and changed. One function, `put`, does what rules 1 to 3 and
 * 6 say about a single condition; the root is put like any other, from what the dependents say.
 * Lists have at most some fifteen items, so they are searched and sorted in the plainest way; the
 * sorts are stable, which keeps the order of conditions that changed in the same second.
 */
#include "api/conditions.h"

#include "codec/duration.h"

#define US_PER_SECOND 1000000

static const struct str node_pool_dependents[] = {
    CONDITION_VALIDATION_SUCCEEDED,
    CONDITION_NODE_CLASS_READY,
};
static const struct str node_claim_dependents[] = {
    CONDITION_LAUNCHED,
    CONDITION_REGISTERED,
    CONDITION_INITIALIZED,
};
static const struct str node_overlay_dependents[] = {
    CONDITION_VALIDATION_SUCCEEDED,
};
static const struct str ec2_node_class_dependents[] = {
    CONDITION_AMIS_READY,
    CONDITION_SUBNETS_READY,
    CONDITION_SECURITY_GROUPS_READY,
    CONDITION_INSTANCE_PROFILE_READY,
    CONDITION_PLACEMENT_GROUP_READY,
    CONDITION_VALIDATION_SUCCEEDED,
    CONDITION_CAPACITY_RESERVATIONS_READY, /* last: one table leaves it out */
};

#define KIND(dependents_, left_out)                                                                \
    {                                                                                              \
        .root = CONDITION_READY, .dependents = dependents_,                                        \
        .dependent_count = KV_COUNT_OF(dependents_) - (left_out)                                   \
    }
const struct condition_kind node_pool_conditions = KIND(node_pool_dependents, 0);
const struct condition_kind node_claim_conditions = KIND(node_claim_dependents, 0);
const struct condition_kind node_overlay_conditions = KIND(node_overlay_dependents, 0);
const struct condition_kind ec2_node_class_conditions = KIND(ec2_node_class_dependents, 0);
const struct condition_kind ec2_node_class_conditions_unreserved =
    KIND(ec2_node_class_dependents, 1);

const char *condition_status_name(enum condition_status status)
{
    switch (status) {
    case CONDITION_TRUE:
        return "True";
    case CONDITION_FALSE:
        return "False";
    case CONDITION_UNSET:
    case CONDITION_UNKNOWN:
        return "Unknown";
    }
    KV_UNREACHABLE();
}

enum condition_status condition_status_of(const struct condition *maybe_condition)
{
    if (!maybe_condition || maybe_condition->status == CONDITION_UNSET)
        return CONDITION_UNKNOWN;
    return (enum condition_status)maybe_condition->status;
}

const struct condition *conditions_get(const struct condition_set *set, struct str type)
{
    return condition_find(set->items, set->count, type);
}

const struct condition *conditions_root(const struct condition_set *set)
{
    return conditions_get(set, set->kind->root);
}

bool conditions_is_true(const struct condition_set *set, struct str type)
{
    return condition_status_of(conditions_get(set, type)) == CONDITION_TRUE;
}

static bool is_root(const struct condition_set *set, struct str type)
{
    return str_eq(type, set->kind->root);
}

static bool is_dependent(const struct condition_set *set, struct str type)
{
    for (uint32_t i = 0; i < set->kind->dependent_count; i++) {
        if (str_eq(type, set->kind->dependents[i]))
            return true;
    }
    return false;
}

static bool same(const struct condition *a, const struct condition *b)
{
    return str_eq(a->type, b->type) && a->status == b->status && str_eq(a->reason, b->reason) &&
           str_eq(a->message, b->message) && a->transition_us == b->transition_us &&
           a->observed_generation == b->observed_generation;
}

/* --- one condition --- */

static void sort_items(struct condition_set *set,
                       bool (*before)(const struct condition_set *, const struct condition *,
                                      const struct condition *))
{
    for (uint32_t i = 1; i < set->count; i++) {
        struct condition moved = set->items[i];
        uint32_t at = i;
        for (; at > 0 && before(set, &moved, &set->items[at - 1]); at--)
            set->items[at] = set->items[at - 1];
        set->items[at] = moved;
    }
}

static bool before_by_time(const struct condition_set *set, const struct condition *a,
                           const struct condition *b)
{
    if (is_root(set, a->type) || is_root(set, b->type))
        return !is_root(set, a->type);
    return a->transition_us < b->transition_us;
}

static bool before_by_type(const struct condition_set *set KV_UNUSED, const struct condition *a,
                           const struct condition *b)
{
    return str_cmp(a->type, b->type) < 0;
}

static void remove_type(struct condition_set *set, struct str type)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (!str_eq(set->items[i].type, type))
            set->items[kept++] = set->items[i];
    }
    set->count = kept;
}

static void append(struct condition_set *set, struct condition c)
{
    if (set->count == set->cap) {
        set->cap = 2 * set->cap + 8;
        struct condition *items = arena_array(set->arena, struct condition, set->cap);
        if (set->count)
            memcpy(items, set->items, set->count * sizeof *items);
        set->items = items;
    }
    set->items[set->count++] = c;
}

static struct str cut_message(struct str s)
{
    if (s.len <= CONDITION_MESSAGE_BYTES_MAX)
        return s;
    s.len = CONDITION_MESSAGE_BYTES_MAX;
    while (s.len > 0 && ((unsigned char)s.p[s.len] & 0xc0) == 0x80)
        s.len--; /* not through a character */
    return s;
}

/* Rules 1 (times), 2, 3 and 6. */
static bool put(struct condition_set *set, struct str type, enum condition_status status,
                struct str reason, struct str message)
{
    struct condition new = {
        .type = type,
        .status = (uint8_t)status,
        .reason = reason,
        .message = cut_message(message),
        .observed_generation = set->generation,
        .transition_us = set->now_us,
    };
    const struct condition *old = conditions_get(set, type);
    if (old && old->status == new.status)
        new.transition_us = old->transition_us;
    else if (!old && (is_root(set, type) || is_dependent(set, type)))
        new.transition_us = set->created_us;
    if (old && same(old, &new))
        return false;

    new.type = arena_str(set->arena, new.type);
    new.reason = arena_str(set->arena, new.reason);
    new.message = arena_str(set->arena, new.message);
    remove_type(set, new.type);
    for (uint32_t i = 0; i < set->count && set->deleting; i++)
        set->items[i].observed_generation = set->generation;
    append(set, new);
    sort_items(set, before_by_time);
    return true;
}

/* --- the root --- */

static bool is_unhealthy(const struct condition_set *set, const struct condition *c)
{
    return is_dependent(set, c->type) &&
           (condition_status_of(c) != CONDITION_TRUE || c->observed_generation != set->generation);
}

/* "Type=Status" of the unhealthy dependents, latest transition first. */
static struct str unhealthy_message(const struct condition_set *set)
{
    const struct condition **list = arena_array(set->arena, const struct condition *, set->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct condition *c = &set->items[i];
        if (!is_unhealthy(set, c))
            continue;
        uint32_t at = count++;
        for (; at > 0 && c->transition_us > list[at - 1]->transition_us; at--)
            list[at] = list[at - 1];
        list[at] = c;
    }
    struct str text = STR("");
    for (uint32_t i = 0; i < count; i++)
        text =
            arena_strf(set->arena, "%.*s%s%.*s=%s", STR_ARG(text), i ? ", " : "",
                       STR_ARG(list[i]->type), condition_status_name(condition_status_of(list[i])));
    return text;
}

/* Rule 5. */
static void put_root(struct condition_set *set)
{
    bool healthy = true, failed = false;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct condition *c = &set->items[i];
        if (!is_unhealthy(set, c))
            continue;
        healthy = false;
        failed |= c->status == CONDITION_FALSE && c->observed_generation == set->generation;
    }
    struct str root = set->kind->root;
    if (healthy)
        put(set, root, CONDITION_TRUE, root, STR(""));
    else if (failed)
        put(set, root, CONDITION_FALSE, REASON_UNHEALTHY_DEPENDENTS, unhealthy_message(set));
    else
        put(set, root, CONDITION_UNKNOWN, REASON_RECONCILING_DEPENDENTS, unhealthy_message(set));
}

/* --- what callers use --- */

bool conditions_set(struct condition_set *set, struct str type, enum condition_status status,
                    struct str reason, struct str message)
{
    KV_ASSERT(status != CONDITION_UNSET);
    if (!put(set, type, status, reason, message))
        return false;
    if (!is_root(set, type))
        put_root(set);
    return true;
}

bool conditions_set_true(struct condition_set *set, struct str type)
{
    return conditions_set(set, type, CONDITION_TRUE, type, STR(""));
}

bool conditions_set_false(struct condition_set *set, struct str type, struct str reason,
                          struct str message)
{
    return conditions_set(set, type, CONDITION_FALSE, reason, message);
}

bool conditions_set_unknown(struct condition_set *set, struct str type, struct str reason,
                            struct str message)
{
    return conditions_set(set, type, CONDITION_UNKNOWN, reason, message);
}

bool conditions_clear(struct condition_set *set, struct str type)
{
    KV_ASSERT(!is_root(set, type));
    KV_ASSERT(!is_dependent(set, type));
    if (!conditions_get(set, type))
        return false;
    remove_type(set, type);
    sort_items(set, before_by_type);
    return true;
}

static void add_missing(struct condition_set *set, struct str type)
{
    if (!conditions_get(set, type))
        conditions_set_unknown(set, type, REASON_AWAITING_RECONCILIATION,
                               STR("object is awaiting reconciliation"));
}

struct condition_set *conditions_new(struct arena *arena, const struct condition_kind *kind,
                                     const struct meta *meta, const struct condition *items,
                                     uint32_t count, int64_t now_us)
{
    struct condition_set *set = arena_new(arena, struct condition_set);
    /* Times in metadata and conditions are whole seconds; cutting ours here means that what is held
     * equals what will be read back. */
    int64_t now_s = now_us / US_PER_SECOND - (now_us % US_PER_SECOND < 0);
    *set = (struct condition_set){
        .arena = arena,
        .kind = kind,
        .generation = meta->generation,
        .now_us = now_s * US_PER_SECOND,
        .created_us = meta->created_us ? meta->created_us : now_s * US_PER_SECOND,
        .deleting = meta->deleted_us != 0,
        .stored = items,
        .stored_count = count,
    };
    for (uint32_t i = 0; i < count; i++)
        append(set, items[i]);
    add_missing(set, kind->root);
    for (uint32_t i = 0; i < kind->dependent_count; i++)
        add_missing(set, kind->dependents[i]);
    return set;
}

bool conditions_changed(const struct condition_set *set)
{
    if (set->count != set->stored_count)
        return true;
    for (uint32_t i = 0; i < set->count; i++) {
        if (!same(&set->items[i], &set->stored[i]))
            return true;
    }
    return false;
}

json_mut *conditions_json(const struct condition_set *set, struct json_build *b)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct condition *c = &set->items[i];
        char when[TIME_TEXT_MAX];
        size_t when_len = time_format(c->transition_us, when);
        json_mut *item = json_new_object(b);
        json_set_str(b, item, "type", c->type);
        json_set_str(b, item, "status", str_of(condition_status_name(condition_status_of(c))));
        if (c->observed_generation)
            json_set_i64(b, item, "observedGeneration", c->observed_generation);
        json_set_str(b, item, "lastTransitionTime", (struct str){ when, when_len });
        json_set_str(b, item, "reason", c->reason.p ? c->reason : STR(""));
        json_set_str(b, item, "message", c->message.p ? c->message : STR(""));
        json_push(b, list, item);
    }
    return list;
}

/* Merge patch (RFC 7386) builds its result in one walk over both trees, so its cost is the size of
 * the two and its depth that of the deeper one.
 *
 * JSON patch (RFC 6902) edits a copy of the target, operation by operation, and hands it over only
 * if all succeed. A patch can be small and yet dear: `copy` doubles a document each time, `test`
 * compares large trees, an index walks a long array. Every value and byte touched is therefore paid
 * for out of one budget. */
#include "codec/json_inner.h"

/* --- merge patch --- */

static json_mut *merge_objects(struct json_build *b, const json_val *target, const json_val *patch)
{
    AUTO_JSON_KEYS ours, theirs;
    json_keys_init(&ours, target);
    json_keys_init(&theirs, patch);
    json_mut *merged = json_new_object(b);

    json_each_member(target, key, val) {
        const json_val *change = json_keys_find(&theirs, json_str(key));
        if (json_is_null(change))
            continue;
        yyjson_mut_obj_add(merged, json_new_str(b, json_str(key)),
                           change ? json_merge_patch(b, val, change) : json_copy(b, val));
    }
    json_each_member(patch, key, val) {
        if (json_is_null(val) || json_keys_find(&ours, json_str(key)))
            continue;
        yyjson_mut_obj_add(merged, json_new_str(b, json_str(key)), json_merge_patch(b, NULL, val));
    }
    return merged;
}

json_mut *json_merge_patch(struct json_build *b, const json_val *target, const json_val *patch)
{
    if (!json_is_object(patch))
        return json_copy(b, patch);
    return merge_objects(b, json_is_object(target) ? target : NULL, patch);
}

/* --- JSON patch: the tree being edited --- */

struct patcher {
    struct json_build *b;
    json_mut *root;
    size_t budget; /* values and bytes that may still be touched */
    struct buf token;
};

static int spend(struct patcher *p, size_t cost, struct err *err)
{
    if (cost > p->budget)
        return err_set(err, ERR_INVALID, "the patch does more work than is allowed");
    p->budget -= cost;
    return 0;
}

/* Finding a child walks a list. */
static size_t step_cost(json_mut *parent)
{
    return 1 + (yyjson_mut_is_ctn(parent) ? yyjson_mut_get_len(parent) : 0);
}

/* What a tree costs to copy or compare, and how deep it is. */
struct measure {
    size_t cost, depth;
};

static struct measure measure_of(json_mut *v);

static void measure_child(struct measure *m, json_mut *child)
{
    struct measure inner = measure_of(child);
    m->cost += inner.cost;
    if (inner.depth >= m->depth)
        m->depth = inner.depth + 1;
}

static struct measure measure_of(json_mut *v)
{
    struct measure m = { .cost = 1, .depth = yyjson_mut_is_ctn(v) };
    size_t ix, count;
    json_mut *key, *child;
    if (yyjson_mut_is_obj(v)) {
        yyjson_mut_obj_foreach(v, ix, count, key, child)
        {
            m.cost += 1 + yyjson_mut_get_len(key);
            measure_child(&m, child);
        }
    } else if (yyjson_mut_is_arr(v)) {
        yyjson_mut_arr_foreach(v, ix, count, child)
        {
            measure_child(&m, child);
        }
    } else if (yyjson_mut_is_str(v)) {
        m.cost += yyjson_mut_get_len(v);
    }
    return m;
}

/* --- pointers (RFC 6901) --- */

/* Cut the first token off a pointer that starts with '/'. The token is unescaped into p->token and
 * valid until the next call. */
static int next_token(struct patcher *p, struct str *pointer, struct str *token, struct err *err)
{
    struct str rest = str_sub(*pointer, 1, pointer->len);
    ptrdiff_t slash = str_find(rest, '/');
    struct str raw = slash < 0 ? rest : str_sub(rest, 0, (size_t)slash);
    *pointer = str_sub(rest, raw.len, rest.len);

    buf_clear(&p->token);
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.p[i];
        if (c == '~') {
            char escape = ++i < raw.len ? raw.p[i] : 0;
            if (escape != '0' && escape != '1')
                return err_set(err, ERR_INVALID, "a '~' in a path is followed by 0 or 1");
            c = escape == '0' ? '~' : '/';
        }
        buf_addc(&p->token, c);
    }
    *token = buf_str(&p->token);
    return 0;
}

/* An index is digits without leading zeros. `last` is the largest that the caller can use. */
static int parse_index(struct str token, size_t last, size_t *out, struct err *err)
{
    size_t ix = 0;
    bool ok = token.len > 0 && token.len <= 10 && (token.p[0] != '0' || token.len == 1);
    for (size_t i = 0; ok && i < token.len; i++) {
        ok = token.p[i] >= '0' && token.p[i] <= '9';
        ix = ix * 10 + (size_t)(token.p[i] - '0');
    }
    if (!ok)
        return err_set(err, ERR_INVALID, "%s is not an array index", STR_SHOWN(token));
    if (last == SIZE_MAX || ix > last)
        return err_set(err, ERR_INVALID, "index %zu is past the end of the array", ix);
    *out = ix;
    return 0;
}

/* The child of `parent` that a token names. */
static int child_of(struct patcher *p, json_mut *parent, struct str token, json_mut **out,
                    struct err *err)
{
    if (spend(p, step_cost(parent), err) < 0)
        return -1;
    if (yyjson_mut_is_obj(parent)) {
        *out = json_mut_get(parent, token);
        if (!*out)
            return err_set(err, ERR_INVALID, "there is no member %s", STR_SHOWN(token));
        return 0;
    }
    if (!yyjson_mut_is_arr(parent))
        return err_set(err, ERR_INVALID, "%s is looked for in a value that is no object or array",
                       STR_SHOWN(token));
    size_t ix;
    if (str_eqz(token, "-"))
        return err_set(err, ERR_INVALID, "'-' is behind the last item: only add can use it");
    if (parse_index(token, yyjson_mut_arr_size(parent) - 1, &ix, err) < 0)
        return -1;
    *out = yyjson_mut_arr_get(parent, ix);
    return 0;
}

static int check_pointer(struct str pointer, struct err *err)
{
    if (pointer.len > 0 && pointer.p[0] != '/')
        return err_set(err, ERR_INVALID, "a path is empty or starts with '/'");
    return 0;
}

static int find(struct patcher *p, struct str pointer, json_mut **out, struct err *err)
{
    json_mut *at = p->root;
    struct str token;
    if (check_pointer(pointer, err) < 0)
        return -1;
    while (pointer.len > 0) {
        if (next_token(p, &pointer, &token, err) < 0 || child_of(p, at, token, &at, err) < 0)
            return -1;
    }
    *out = at;
    return 0;
}

/* The container that holds (or will hold) the value of a non-empty pointer, and its last token. */
struct place {
    json_mut *parent;
    struct str token; /* in p->token */
    size_t depth;     /* containers above the value */
};

static int find_place(struct patcher *p, struct str pointer, struct place *out, struct err *err)
{
    *out = (struct place){ .parent = p->root, .depth = 1 };
    if (check_pointer(pointer, err) < 0 || next_token(p, &pointer, &out->token, err) < 0)
        return -1;
    for (; pointer.len > 0; out->depth++) {
        if (child_of(p, out->parent, out->token, &out->parent, err) < 0 ||
            next_token(p, &pointer, &out->token, err) < 0)
            return -1;
    }
    return 0;
}

/* --- the edits --- */

/* A value is about to be put at a place: is the result within bounds? */
static int check_fits(struct patcher *p, const struct place *place, json_mut *v, struct err *err)
{
    struct measure m = measure_of(v);
    if (place->depth + m.depth > JSON_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "the result is nested more than %d levels deep",
                       JSON_DEPTH_MAX);
    return spend(p, m.cost + step_cost(place->parent), err);
}

static int add_at(struct patcher *p, struct str pointer, json_mut *v, struct err *err)
{
    if (pointer.len == 0) {
        p->root = v;
        return 0;
    }
    struct place place;
    if (find_place(p, pointer, &place, err) < 0 || check_fits(p, &place, v, err) < 0)
        return -1;
    if (yyjson_mut_is_obj(place.parent)) {
        json_set(p->b, place.parent, place.token, v);
        return 0;
    }
    if (!yyjson_mut_is_arr(place.parent))
        return err_set(err, ERR_INVALID, "the place to add to is no object or array");
    size_t ix = yyjson_mut_arr_size(place.parent);
    if (!str_eqz(place.token, "-") && parse_index(place.token, ix, &ix, err) < 0)
        return -1;
    yyjson_mut_arr_insert(place.parent, v, ix);
    return 0;
}

/* Takes the value out of the tree. */
static int remove_at(struct patcher *p, struct str pointer, json_mut **out, struct err *err)
{
    struct place place;
    if (pointer.len == 0)
        return err_set(err, ERR_INVALID, "the whole document cannot be removed");
    if (find_place(p, pointer, &place, err) < 0 ||
        child_of(p, place.parent, place.token, out, err) < 0)
        return -1;
    if (yyjson_mut_is_obj(place.parent)) {
        json_mut_remove(place.parent, place.token);
        return 0;
    }
    size_t ix = 0;
    parse_index(place.token, yyjson_mut_arr_size(place.parent) - 1, &ix, NULL);
    yyjson_mut_arr_remove(place.parent, ix);
    return 0;
}

/* Not remove and add: a member keeps its place among the others. */
static int replace_at(struct patcher *p, struct str pointer, json_mut *v, struct err *err)
{
    struct place place;
    json_mut *old;
    if (pointer.len == 0)
        return add_at(p, pointer, v, err);
    if (find_place(p, pointer, &place, err) < 0 ||
        child_of(p, place.parent, place.token, &old, err) < 0 || check_fits(p, &place, v, err) < 0)
        return -1;
    if (yyjson_mut_is_obj(place.parent)) {
        json_set(p->b, place.parent, place.token, v);
        return 0;
    }
    size_t ix = 0;
    parse_index(place.token, yyjson_mut_arr_size(place.parent) - 1, &ix, NULL);
    yyjson_mut_arr_replace(place.parent, ix, v);
    return 0;
}

static int copy_to(struct patcher *p, struct str from, struct str path, struct err *err)
{
    json_mut *v;
    if (find(p, from, &v, err) < 0 || spend(p, measure_of(v).cost, err) < 0)
        return -1;
    return add_at(p, path, yyjson_mut_val_mut_copy(p->b->yy, v), err);
}

static int move_to(struct patcher *p, struct str from, struct str path, struct err *err)
{
    json_mut *v;
    if (str_starts(path, from) && path.len > from.len && path.p[from.len] == '/')
        return err_set(err, ERR_INVALID, "a value cannot be moved into itself");
    if (str_eq(from, path))
        return find(p, from, &v, err);
    if (remove_at(p, from, &v, err) < 0)
        return -1;
    return add_at(p, path, v, err);
}

static int test_at(struct patcher *p, struct str pointer, const json_val *want, struct err *err)
{
    json_mut *v;
    if (find(p, pointer, &v, err) < 0 || spend(p, measure_of(v).cost, err) < 0)
        return -1;
    yyjson_doc *frozen = yyjson_mut_val_imut_copy(v, &json_alloc);
    bool same = json_equal(yyjson_doc_get_root(frozen), want);
    yyjson_doc_free(frozen);
    return same ? 0 : err_set(err, ERR_INVALID, "the value is not the expected one");
}

/* --- operations --- */

static int string_of(const json_val *op, const char *name, struct str *out, struct err *err)
{
    *out = json_str(json_get(op, str_of(name)));
    return out->p ? 0 : err_set(err, ERR_INVALID, "the operation needs a string \"%s\"", name);
}

static int apply(struct patcher *p, const json_val *op, struct err *err)
{
    struct str name, path, from;
    if (!json_is_object(op))
        return err_set(err, ERR_INVALID, "an operation is an object, this is %s",
                       json_type_name(op));
    if (string_of(op, "op", &name, err) < 0 || string_of(op, "path", &path, err) < 0)
        return -1;
    if (str_eqz(name, "remove")) {
        json_mut *removed;
        return remove_at(p, path, &removed, err);
    }
    if (str_eqz(name, "move") || str_eqz(name, "copy")) {
        if (string_of(op, "from", &from, err) < 0)
            return -1;
        return str_eqz(name, "move") ? move_to(p, from, path, err) : copy_to(p, from, path, err);
    }

    const json_val *value = json_get(op, STR("value"));
    bool add = str_eqz(name, "add"), replace = str_eqz(name, "replace");
    if (!add && !replace && !str_eqz(name, "test"))
        return err_set(err, ERR_INVALID,
                       "%s is not an operation: add, remove, replace, move, copy or test",
                       STR_SHOWN(name));
    if (!value)
        return err_set(err, ERR_INVALID, "the operation needs a \"value\"");
    if (add)
        return add_at(p, path, json_copy(p->b, value), err);
    if (replace)
        return replace_at(p, path, json_copy(p->b, value), err);
    return test_at(p, path, value, err);
}

static int name_operation(size_t number, const json_val *op, struct err *err)
{
    struct str path = json_str(json_get(op, STR("path")));
    if (!path.p)
        return err_wrap(err, "patch operation %zu", number);
    return err_wrap(err, "patch operation %zu, path %s", number, STR_SHOWN(path));
}

int json_patch(struct json_build *b, const json_val *target, const json_val *patch, json_mut **out,
               struct err *err)
{
    if (!json_is_array(patch))
        return err_set(err, ERR_INVALID, "a JSON patch is an array of operations, this is %s",
                       json_type_name(patch));
    if (json_count(patch) > JSON_PATCH_OPERATIONS_MAX)
        return err_set(err, ERR_INVALID, "the patch has %zu operations, at most %d are allowed",
                       json_count(patch), JSON_PATCH_OPERATIONS_MAX);

    struct patcher p = { .b = b, .root = json_copy(b, target), .budget = JSON_PATCH_BUDGET };
    size_t number = 0;
    int rc = 0;
    json_each_item(patch, op) {
        number++;
        rc = apply(&p, op, err);
        if (rc < 0) {
            name_operation(number, op, err);
            break;
        }
    }
    buf_done(&p.token);
    if (rc == 0)
        *out = p.root;
    return rc;
}

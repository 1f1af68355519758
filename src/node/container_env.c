/* The environment of a container, as Kubernetes computes it: where the API server is, then envFrom,
 * then env, each in its order; a later value takes the place of an earlier one. $(NAME) in a value
 * means what is known by then.
 */
#include "node/configs_inner.h"

/* --- $(NAME) --- */

static const Cri__Entry *entries_find(const struct entries *entries, struct str key)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (str_eqz(key, entries->items[i]->key))
            return entries->items[i];
    }
    return NULL;
}

/* One reference, at the $ that `*text` starts with; `*text` goes on behind it. */
static int expand_one(const struct entries *env, struct str *text, bool strict, struct buf *out,
                      struct err *err)
{
    struct str rest = str_sub(*text, 1, text->len);
    ptrdiff_t close = -1;
    if (rest.len > 0 && rest.p[0] == '(')
        close = str_find(rest, ')');
    if (rest.len > 0 && rest.p[0] == '$') { /* $$ is $ */
        buf_addc(out, '$');
        *text = str_sub(rest, 1, rest.len);
        return 0;
    }
    if (close < 0) { /* no reference, or one without an end: it stays */
        size_t taken = rest.len > 0 ? 1 : 0;
        buf_addc(out, '$');
        buf_add(out, str_sub(rest, 0, taken));
        *text = str_sub(rest, taken, rest.len);
        return 0;
    }
    struct str name = str_sub(rest, 1, (size_t)close - 1);
    const Cri__Entry *found = entries_find(env, name);
    if (!found && strict)
        return err_set(err, ERR_INVALID, "variable %s is not in the environment", STR_SHOWN(name));
    if (found)
        buf_addz(out, found->value);
    else
        buf_addf(out, "$(%.*s)", STR_ARG(name));
    *text = str_sub(rest, (size_t)close + 1, rest.len);
    return 0;
}

int env_expand(struct arena *arena, const struct entries *env, struct str text, bool strict,
               struct str *out, struct err *err)
{
    AUTO_BUF expanded = { 0 };
    for (ptrdiff_t at; (at = str_find(text, '$')) >= 0;) {
        buf_add(&expanded, str_sub(text, 0, (size_t)at));
        text = str_sub(text, (size_t)at, text.len);
        if (expand_one(env, &text, strict, &expanded, err) < 0)
            return -1;
        /* Values that quote one another twice each would fill any memory. */
        if (expanded.len > ENV_TEXT_BYTES_MAX)
            return err_set(err, ERR_INVALID, "longer than %zu bytes when $(...) is replaced",
                           ENV_TEXT_BYTES_MAX);
    }
    buf_add(&expanded, text);
    *out = arena_str(arena, buf_str(&expanded));
    return 0;
}

/* --- variables --- */

struct environment {
    struct arena *arena;
    const struct container_config_input *input;
    struct entries *entries;
    size_t bytes; /* of all values that were set, replaced ones too */
    struct err *err;
};

static int set_variable(struct environment *e, struct str name, struct str value)
{
    if (value.len > 0 && memchr(value.p, '\0', value.len))
        return err_set(e->err, ERR_INVALID, "the value has a NUL in it");
    if (name.len + value.len > ENV_TEXT_BYTES_MAX)
        return err_set(e->err, ERR_INVALID, "longer than %zu bytes", ENV_TEXT_BYTES_MAX);
    e->bytes += name.len + value.len;
    if (e->bytes > ENV_ALL_BYTES_MAX || e->entries->count >= ENV_COUNT_MAX)
        return err_set(e->err, ERR_INVALID, "more than %zu MiB or %d variables",
                       ENV_ALL_BYTES_MAX >> 20, ENV_COUNT_MAX);
    Cri__Entry *earlier = (Cri__Entry *)entries_find(e->entries, name);
    if (earlier)
        earlier->value = message_str(e->arena, value);
    else
        entries_add(e->entries, e->arena, name, value);
    return 0;
}

/* 1: found it. 0: not there, and it is optional. */
static int fetch_optional(struct environment *e, bool secret, struct str name, bool optional,
                          struct doc *out)
{
    struct err why = { 0 };
    if (object_fetch(e->input->objects, secret, e->input->pod->namespace_, name, out, &why) == 0)
        return 1;
    if (optional && why.kind == ERR_NOT_FOUND)
        return 0;
    return err_set(e->err, why.kind, "%s", why.text);
}

static int add_from(struct environment *e, const struct env_from *from)
{
    struct doc object = { 0 };
    int rc = fetch_optional(e, from->secret, from->object, from->optional, &object);
    if (rc <= 0)
        return rc;
    rc = 0;
    json_each_member(json_get(object.root, STR("data")), key, unused) {
        (void)unused;
        struct str value;
        AUTO_BUF name = { 0 };
        buf_add(&name, from->prefix);
        buf_add(&name, json_key(key));
        if (name.len == 0 || memchr(name.p, '=', name.len))
            continue; /* this cannot be a name: Kubernetes leaves such keys out too */
        rc = object_value(&object, from->secret, false, json_key(key), e->arena, &value, e->err);
        if (rc > 0)
            rc = set_variable(e, buf_str(&name), value);
        if (rc < 0) {
            err_wrap(e->err, "%s %s, key %s", from->secret ? "secret" : "configmap",
                     STR_SHOWN(from->object), STR_SHOWN(json_key(key)));
            break;
        }
    }
    doc_done(&object);
    return rc < 0 ? -1 : 0;
}

static int add_object_key(struct environment *e, const struct env_var *var)
{
    bool secret = var->kind == ENV_SECRET;
    struct doc object = { 0 };
    int rc = fetch_optional(e, secret, var->object, var->optional, &object);
    if (rc <= 0)
        return rc;
    struct str value;
    rc = object_value(&object, secret, false, var->key, e->arena, &value, e->err);
    if (rc > 0)
        rc = set_variable(e, var->name, value);
    else if (rc == 0 && !var->optional)
        rc = err_set(e->err, ERR_NOT_FOUND, "%s %s has no key %s", secret ? "secret" : "configmap",
                     STR_SHOWN(var->object), STR_SHOWN(var->key));
    doc_done(&object);
    return rc;
}

static int add_resource(struct environment *e, const struct env_var *var)
{
    const struct container_config_input *in = e->input;
    const struct node_container *of =
        var->container.len > 0 ? node_pod_container(in->pod, var->container) : in->container;
    struct str value;
    if (!of)
        return err_set(e->err, ERR_INVALID, "container %s: the pod has none of that name",
                       STR_SHOWN(var->container));
    if (!downward_resource(of, in->facts, var->resource, var->divisor, e->arena, &value))
        return err_set(e->err, ERR_INVALID, "resource %s: unknown, or divided by what is not one",
                       STR_SHOWN(var->resource));
    return set_variable(e, var->name, value);
}

static int add_variable(struct environment *e, const struct env_var *var)
{
    struct str value;
    switch ((enum env_kind)var->kind) {
    case ENV_VALUE:
        if (env_expand(e->arena, e->entries, var->value, false, &value, e->err) < 0)
            return -1;
        return set_variable(e, var->name, value);
    case ENV_FIELD:
        if (!downward_field(e->input->pod, e->input->facts, var->field_path, e->arena, &value))
            return err_set(e->err, ERR_INVALID, "field %s: there is no such field",
                           STR_SHOWN(var->field_path));
        return set_variable(e, var->name, value);
    case ENV_RESOURCE:
        return add_resource(e, var);
    case ENV_CONFIG_MAP:
    case ENV_SECRET:
        return add_object_key(e, var);
    }
    KV_UNREACHABLE();
}

/* --- the API server --- */

/* KUBERNETES_SERVICE_HOST and its kin: what clients inside pods find the API server by. Of other
 * services DNS tells. */
static int add_service(struct environment *e, const json_val *spec)
{
    struct str ip = json_str(json_get(spec, STR("clusterIP")));
    const json_val *ports = json_get(spec, STR("ports"));
    const json_val *first = json_at(ports, 0);
    int64_t port;
    if (!ip.len || str_eqz(ip, "None") || !json_i64(json_get(first, STR("port")), &port))
        return 0;
    struct str number = arena_strf(e->arena, "%lld", (long long)port);
    bool six = str_find(ip, ':') >= 0;
    struct str url = arena_strf(e->arena, six ? "tcp://[%.*s]:%lld" : "tcp://%.*s:%lld",
                                STR_ARG(ip), (long long)port);
    struct str linked = arena_strf(e->arena, "KUBERNETES_PORT_%lld_TCP", (long long)port);
    struct str name = json_str(json_get(first, STR("name")));
    if (str_eqz(name, "https") && set_variable(e, STR("KUBERNETES_SERVICE_PORT_HTTPS"), number) < 0)
        return -1;
    if (set_variable(e, STR("KUBERNETES_SERVICE_HOST"), ip) < 0 ||
        set_variable(e, STR("KUBERNETES_SERVICE_PORT"), number) < 0 ||
        set_variable(e, STR("KUBERNETES_PORT"), url) < 0 || set_variable(e, linked, url) < 0 ||
        set_variable(e, arena_strf(e->arena, "%s_PROTO", linked.p), STR("tcp")) < 0 ||
        set_variable(e, arena_strf(e->arena, "%s_PORT", linked.p), number) < 0)
        return -1;
    return set_variable(e, arena_strf(e->arena, "%s_ADDR", linked.p), ip);
}

static int add_api_server(struct environment *e)
{
    const struct object_source *objects = e->input->objects;
    struct doc service = { 0 };
    if (!objects->service || node_pod_is_static(e->input->pod))
        return 0; /* a static pod needs no API server to start */
    if (objects->service(objects->ctx, STR("default"), STR("kubernetes"), &service, e->err) < 0)
        return e->err->kind == ERR_NOT_FOUND ? 0 : err_wrap(e->err, "service kubernetes");
    int rc = add_service(e, json_get(service.root, STR("spec")));
    doc_done(&service);
    return rc;
}

int container_env(struct arena *arena, const struct container_config_input *input,
                  struct entries *out, struct err *err)
{
    struct environment e = { arena, input, out, 0, err };
    const struct node_container *container = input->container;
    if (add_api_server(&e) < 0)
        return -1;
    for (uint32_t i = 0; i < container->env_from.count; i++) {
        if (add_from(&e, &container->env_from.items[i]) < 0)
            return err_wrap(err, "envFrom");
    }
    for (uint32_t i = 0; i < container->env.count; i++) {
        if (add_variable(&e, &container->env.items[i]) < 0)
            return err_wrap(err, "env %s", STR_SHOWN(container->env.items[i].name));
    }
    return 0;
}

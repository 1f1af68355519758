/* What the tables cannot say about a pod's spec: names that must differ across lists, things that
 * refer to one another, requests and limits. */
#include "api/pod.h"

#include "base/map.h"

/* --- places --- */

static struct path field_at(const struct path *up, const char *name)
{
    return (struct path){ .up = up, .name = str_of(name) };
}

static struct path item_at(const struct path *up, uint32_t ix)
{
    return (struct path){ .up = up, .index = ix };
}

static struct str text_of(const json_val *object, const char *key)
{
    return json_str(json_get(object, str_of(key)));
}

static bool is_set(const json_val *object, const char *key)
{
    const json_val *v = json_get(object, str_of(key));
    return v && !json_is_null(v);
}

/* --- resources --- */

static bool is_overcommitted(struct str name) /* may a limit be above its request? */
{
    return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")) ||
           str_eq(name, STR("ephemeral-storage"));
}

static bool is_native(struct str name)
{
    return is_overcommitted(name) || str_starts(name, STR("hugepages-"));
}

/* Extended resources are DOMAIN/NAME, counted in whole ones. */
static void check_resource(const struct resource *r, const struct path *path, const json_val *at,
                           struct report *report)
{
    struct path here = { .up = path, .name = r->name, .quoted = true };
    if (is_native(r->name))
        return;
    if (str_find(r->name, '/') < 0)
        report_add(report, PROBLEM_ERROR, &here, at,
                   "is not a container's resource, expected cpu, memory, ephemeral-storage, "
                   "hugepages-SIZE or a name with a domain such as example.com/gpu");
    else if (quantity_cmp(r->amount, quantity_of(quantity_units(r->amount))) != 0)
        report_add(report, PROBLEM_ERROR, &here, at,
                   "is a fraction, expected a whole number of %.*s", STR_ARG(r->name));
}

static const struct resource *find_resource(const struct resources *list, struct str name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].name, name))
            return &list->items[i];
    }
    return NULL;
}

static void check_request(const struct resource *request, const struct resource *limit,
                          const struct path *path, const json_val *at, struct report *report)
{
    struct path here = { .up = path, .name = request->name, .quoted = true };
    char asked[QUANTITY_TEXT_MAX], allowed[QUANTITY_TEXT_MAX];
    quantity_format(request->amount, asked);
    quantity_format(limit->amount, allowed);
    int c = quantity_cmp(request->amount, limit->amount);
    if (c > 0)
        report_add(report, PROBLEM_ERROR, &here, at, "is %s, expected at most the limit of %s",
                   asked, allowed);
    else if (c < 0 && !is_overcommitted(request->name))
        report_add(report, PROBLEM_ERROR, &here, at,
                   "is %s, expected the limit of %s: %.*s cannot be overcommitted", asked, allowed,
                   STR_ARG(request->name));
}

/* `owner` is a container, or the spec for the pod as a whole. */
static void check_resources(const struct resource_needs *needs, const json_val *owner,
                            const struct path *path, struct report *report)
{
    const json_val *at = json_get(owner, STR("resources"));
    struct path resources = field_at(path, "resources");
    struct path limits = field_at(&resources, "limits");
    struct path requests = field_at(&resources, "requests");

    for (uint32_t i = 0; i < needs->limits.count; i++)
        check_resource(&needs->limits.items[i], &limits, json_get(at, STR("limits")), report);
    for (uint32_t i = 0; i < needs->requests.count; i++) {
        const struct resource *r = &needs->requests.items[i];
        const struct resource *limit = find_resource(&needs->limits, r->name);
        const json_val *request_at = json_get(json_get(at, STR("requests")), r->name);
        check_resource(r, &requests, request_at, report);
        if (limit)
            check_request(r, limit, &requests, request_at, report);
        else if (!is_overcommitted(r->name))
            report_add(report, PROBLEM_ERROR, &limits, at,
                       "has no %.*s, expected a limit equal to the request", STR_ARG(r->name));
    }
}

/* --- containers --- */

struct spec_check {
    const json_val *spec;
    const struct path *path;
    struct report *report;
    bool host_network;
    struct str_table names;      /* of containers, all three lists */
    struct str_table host_ports; /* "protocol/ip/port" */
    struct str_table claims;     /* of resourceClaims */
};

static void check_host_port(struct spec_check *c, const json_val *port, int64_t number,
                            const struct path *path)
{
    AUTO_BUF key = { 0 };
    struct str protocol = text_of(port, "protocol"), ip = text_of(port, "hostIP");
    buf_addf(&key, "%.*s/%.*s/%lld", STR_ARG(protocol.len ? protocol : STR("TCP")),
             STR_ARG(ip.len ? ip : STR("0.0.0.0")), (long long)number);
    if (str_table_has(&c->host_ports, buf_str(&key)))
        report_add(c->report, PROBLEM_ERROR, path, port,
                   "host port %lld is taken by another port of this pod", (long long)number);
    str_table_put(&c->host_ports, buf_str(&key), c);
}

static void check_ports(struct spec_check *c, const json_val *container, const struct path *path,
                        bool runs_alone)
{
    struct path ports = field_at(path, "ports");
    struct str_table names = { 0 };
    uint32_t ix = 0;
    json_each_item(json_get(container, STR("ports")), port) {
        struct path here = item_at(&ports, ix++);
        struct str name = text_of(port, "name");
        int64_t inside = 0, outside = 0;
        if (name.len && str_table_has(&names, name))
            report_add(c->report, PROBLEM_ERROR, &here, port,
                       "duplicate: another port of this container is called \"%.*s\"",
                       STR_ARG(name));
        if (name.len)
            str_table_put(&names, name, c);
        json_i64(json_get(port, STR("containerPort")), &inside);
        json_i64(json_get(port, STR("hostPort")), &outside);
        if (c->host_network && outside != 0 && outside != inside)
            report_add(c->report, PROBLEM_ERROR, &here, port,
                       "hostPort %lld differs from containerPort %lld, expected the same with "
                       "hostNetwork",
                       (long long)outside, (long long)inside);
        if (outside != 0 && !runs_alone)
            check_host_port(c, port, outside, &here);
    }
    str_table_done(&names);
}

static void check_name(struct spec_check *c, const json_val *container, const struct path *path,
                       const char *list)
{
    struct path here = field_at(path, "name");
    struct str name = text_of(container, "name");
    const char *other = name.len ? str_table_get(&c->names, name) : NULL;
    if (other && strcmp(other, list) != 0) /* within one list the table has said so */
        report_add(c->report, PROBLEM_ERROR, &here, json_get(container, STR("name")),
                   "duplicate: a container of that name is in %s", other);
    if (name.len && !other)
        str_table_put(&c->names, name, (void *)(uintptr_t)list);
}

static void check_claims(struct spec_check *c, const json_val *container, const struct path *path)
{
    struct path resources = field_at(path, "resources");
    struct path claims = field_at(&resources, "claims");
    const json_val *list = json_get(json_get(container, STR("resources")), STR("claims"));
    uint32_t ix = 0;
    json_each_item(list, claim) {
        struct path here = item_at(&claims, ix++);
        struct str name = text_of(claim, "name");
        if (name.len && !str_table_has(&c->claims, name))
            report_add(c->report, PROBLEM_ERROR, &here, claim,
                       "\"%.*s\" is not one of the pod's resourceClaims", STR_ARG(name));
    }
}

static void check_init_container(struct spec_check *c, const json_val *container,
                                 const struct path *path)
{
    static const char *const for_sidecars[] = { "lifecycle", "livenessProbe", "readinessProbe",
                                                "startupProbe" };
    if (str_eq(text_of(container, "restartPolicy"), STR("Always")))
        return;
    for (size_t i = 0; i < KV_COUNT_OF(for_sidecars); i++) {
        struct path here = field_at(path, for_sidecars[i]);
        if (is_set(container, for_sidecars[i]))
            report_add(c->report, PROBLEM_ERROR, &here,
                       json_get(container, str_of(for_sidecars[i])),
                       "is not for init containers that run to their end, expected restartPolicy: "
                       "Always");
    }
}

static void check_containers(struct spec_check *c, const char *list,
                             const struct container *maybe_typed, uint32_t typed_count)
{
    bool init = strcmp(list, "initContainers") == 0;
    struct path at_list = field_at(c->path, list);
    uint32_t ix = 0;
    json_each_item(json_get(c->spec, str_of(list)), container) {
        struct path here = item_at(&at_list, ix);
        bool sidecar = init && str_eq(text_of(container, "restartPolicy"), STR("Always"));
        check_name(c, container, &here, list);
        check_ports(c, container, &here, init && !sidecar);
        check_claims(c, container, &here);
        if (init)
            check_init_container(c, container, &here);
        if (ix < typed_count)
            check_resources(&maybe_typed[ix].resources, container, &here, c->report);
        ix++;
    }
}

/* --- the rest of the spec --- */

static void check_volumes(struct spec_check *c)
{
    struct path volumes = field_at(c->path, "volumes");
    uint32_t ix = 0;
    json_each_item(json_get(c->spec, STR("volumes")), volume) {
        struct path here = item_at(&volumes, ix++);
        uint32_t sources = 0;
        json_each_member(volume, key, value)
            sources += !str_eq(json_str(key), STR("name")) && !json_is_null(value);
        if (sources > 1)
            report_add(c->report, PROBLEM_ERROR, &here, volume,
                       "has %u sources, expected exactly one", sources);
        /* None at all is an empty directory, as the API server fills in. */
    }
}

static void check_resource_claims(struct spec_check *c)
{
    struct path claims = field_at(c->path, "resourceClaims");
    uint32_t ix = 0;
    json_each_item(json_get(c->spec, STR("resourceClaims")), claim) {
        struct path here = item_at(&claims, ix++);
        if (is_set(claim, "resourceClaimName") == is_set(claim, "resourceClaimTemplateName"))
            report_add(c->report, PROBLEM_ERROR, &here, claim,
                       "expected one of resourceClaimName and resourceClaimTemplateName");
        if (text_of(claim, "name").len)
            str_table_put(&c->claims, text_of(claim, "name"), c);
    }
}

static bool selects_by(const json_val *term, struct str key)
{
    const json_val *selector = json_get(term, STR("labelSelector"));
    if (json_get(json_get(selector, STR("matchLabels")), key))
        return true;
    json_each_item(json_get(selector, STR("matchExpressions")), e) {
        if (str_eq(text_of(e, "key"), key))
            return true;
    }
    return false;
}

/* Labels that are filled in from the pod must not be selected by as well. */
static void check_label_keys(struct spec_check *c, const json_val *term, const char *list,
                             const struct path *path)
{
    struct path keys = field_at(path, list);
    uint32_t ix = 0;
    json_each_item(json_get(term, str_of(list)), key) {
        struct path here = item_at(&keys, ix++);
        if (json_is_string(key) && selects_by(term, json_str(key)))
            report_add(c->report, PROBLEM_ERROR, &here, key,
                       "\"%.*s\" is in the labelSelector too, expected it in one of them",
                       STR_ARG(json_str(key)));
    }
}

static void check_spread(struct spec_check *c)
{
    struct path spread = field_at(c->path, "topologySpreadConstraints");
    uint32_t ix = 0;
    json_each_item(json_get(c->spec, STR("topologySpreadConstraints")), constraint) {
        struct path here = item_at(&spread, ix++);
        check_label_keys(c, constraint, "matchLabelKeys", &here);
    }
}

static void check_pod_term(struct spec_check *c, const json_val *term, const struct path *path)
{
    check_label_keys(c, term, "matchLabelKeys", path);
    json_each_item(json_get(term, STR("mismatchLabelKeys")), key) {
        json_each_item(json_get(term, STR("matchLabelKeys")), other) {
            if (json_is_string(key) && str_eq(json_str(key), json_str(other))) {
                struct path here = field_at(path, "mismatchLabelKeys");
                report_add(c->report, PROBLEM_ERROR, &here, key,
                           "\"%.*s\" is in matchLabelKeys too, expected it in one of them",
                           STR_ARG(json_str(key)));
            }
        }
    }
    if (json_count(json_get(term, STR("matchLabelKeys"))) && !is_set(term, "labelSelector"))
        report_add(c->report, PROBLEM_ERROR, path, term, "matchLabelKeys needs a labelSelector");
}

static void check_pod_affinity(struct spec_check *c, const char *kind)
{
    struct path affinity = field_at(c->path, "affinity");
    struct path here = field_at(&affinity, kind);
    struct path required = field_at(&here, "requiredDuringSchedulingIgnoredDuringExecution");
    struct path preferred = field_at(&here, "preferredDuringSchedulingIgnoredDuringExecution");
    const json_val *v = json_get(json_get(c->spec, STR("affinity")), str_of(kind));
    uint32_t ix = 0;
    json_each_item(json_get(v, required.name), term) {
        struct path at = item_at(&required, ix++);
        check_pod_term(c, term, &at);
    }
    ix = 0;
    json_each_item(json_get(v, preferred.name), weighted) {
        struct path at_item = item_at(&preferred, ix++);
        struct path at = field_at(&at_item, "podAffinityTerm");
        check_pod_term(c, json_get(weighted, STR("podAffinityTerm")), &at);
    }
}

void pod_spec_check(const struct pod_spec *typed, const json_val *spec, const struct path *path,
                    struct report *report)
{
    struct spec_check c = {
        .spec = spec, .path = path, .report = report, .host_network = typed->host_network
    };

    check_resource_claims(&c);
    check_containers(&c, "initContainers", typed->init_containers.items,
                     typed->init_containers.count);
    check_containers(&c, "containers", typed->containers.items, typed->containers.count);
    check_containers(&c, "ephemeralContainers", NULL, 0);
    check_resources(&typed->resources, spec, path, report);
    check_volumes(&c);
    check_spread(&c);
    check_pod_affinity(&c, "podAffinity");
    check_pod_affinity(&c, "podAntiAffinity");
    if (text_of(spec, "nodeName").len && json_count(json_get(spec, STR("schedulingGates")))) {
        struct path here = field_at(path, "nodeName");
        report_add(report, PROBLEM_ERROR, &here, json_get(spec, STR("nodeName")),
                   "is set while schedulingGates hold the pod back, expected one of them");
    }
    str_table_done(&c.names);
    str_table_done(&c.host_ports);
    str_table_done(&c.claims);
}

static void check_mounts(const json_val *container, const char *list, const struct path *path,
                         const struct str_table *volumes, struct report *report)
{
    struct path at_list = field_at(path, list);
    uint32_t ix = 0;
    json_each_item(json_get(container, str_of(list)), mount) {
        struct path at = item_at(&at_list, ix++);
        struct path here = field_at(&at, "name");
        struct str name = text_of(mount, "name");
        if (name.len && !str_table_has(volumes, name))
            report_add(report, PROBLEM_ERROR, &here, json_get(mount, STR("name")),
                       "\"%.*s\" is not one of the pod's volumes", STR_ARG(name));
    }
}

void pod_mounts_check(const json_val *spec, const struct path *path, struct report *report)
{
    static const char *const lists[] = { "initContainers", "containers" };
    struct str_table volumes = { 0 };
    json_each_item(json_get(spec, STR("volumes")), volume) {
        struct str name = text_of(volume, "name");
        if (name.len)
            str_table_put(&volumes, name, &volumes);
    }
    for (size_t i = 0; i < KV_COUNT_OF(lists); i++) {
        struct path at_list = field_at(path, lists[i]);
        uint32_t ix = 0;
        json_each_item(json_get(spec, str_of(lists[i])), container) {
            struct path here = item_at(&at_list, ix++);
            check_mounts(container, "volumeMounts", &here, &volumes, report);
            check_mounts(container, "volumeDevices", &here, &volumes, report);
        }
    }
    str_table_done(&volumes);
}

/* --- completion --- */

static void requests_from_limits(struct json_build *b, json_mut *container)
{
    json_mut *resources = json_mut_get(container, STR("resources"));
    json_mut *limits = json_mut_get(resources, STR("limits"));
    if (!json_mut_is_object(limits) || json_mut_count(limits) == 0)
        return;
    json_mut *requests = json_mut_object(b, resources, STR("requests"));
    json_each_mut_member(limits, key, value)
    {
        if (!json_mut_get(requests, json_mut_str(key)))
            json_set(b, requests, json_mut_str(key), json_mut_copy(b, value));
    }
}

void pod_spec_complete(struct json_build *b, json_mut *spec)
{
    static const char *const lists[] = { "initContainers", "containers" };
    for (size_t i = 0; i < KV_COUNT_OF(lists); i++)
        json_each_mut_item(json_mut_get(spec, str_of(lists[i])), container)
            requests_from_limits(b, container);
}

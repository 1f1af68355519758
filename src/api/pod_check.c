/* What the tables cannot say about a pod's spec: names that must differ across lists, things that
 * refer to one another, requests and limits. */
#include "api/pod.h"
#include "api/resources.h"

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
                   "is a fraction, expected a whole number of them");
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
                   "is %s, expected the limit of %s: only cpu, memory and ephemeral-storage can be "
                   "overcommitted",
                   asked, allowed);
}

/* `owner` is a container, or the spec for the pod as a whole. The JSON is followed, because there
 * may be more names than a look-up in it for each can bear. */
static void check_resources(const struct resource_needs *needs, const json_val *owner,
                            const struct path *path, struct report *report)
{
    const json_val *at = json_get(owner, STR("resources"));
    struct path resources = field_at(path, "resources");
    struct path limits = field_at(&resources, "limits");
    struct path requests = field_at(&resources, "requests");

    json_each_member(json_get(at, STR("limits")), name, amount) {
        const struct resource *r = resources_find(&needs->limits, json_key(name));
        if (r)
            check_resource(r, &limits, amount, report);
    }
    json_each_member(json_get(at, STR("requests")), name, amount) {
        const struct resource *r = resources_find(&needs->requests, json_key(name));
        const struct resource *limit = resources_find(&needs->limits, json_key(name));
        if (!r)
            continue; /* null */
        check_resource(r, &requests, amount, report);
        if (limit)
            check_request(r, limit, &requests, amount, report);
        else if (!is_overcommitted(r->name))
            report_add(report, PROBLEM_ERROR, &limits, at,
                       "has no %s, expected a limit equal to the request", STR_SHOWN(r->name));
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
    struct str_table volumes;
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
                       "duplicate: another port of this container is called %s", STR_SHOWN(name));
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
                       "%s is not one of the pod's resourceClaims", STR_SHOWN(name));
    }
}

/* `list` is volumeMounts or volumeDevices. */
static void check_mounts(struct spec_check *c, const json_val *container, const char *list,
                         const struct path *path)
{
    struct path at_list = field_at(path, list);
    uint32_t ix = 0;
    json_each_item(json_get(container, str_of(list)), mount) {
        struct path at = item_at(&at_list, ix++);
        struct path here = field_at(&at, "name");
        struct str name = text_of(mount, "name");
        if (name.len && !str_table_has(&c->volumes, name))
            report_add(c->report, PROBLEM_ERROR, &here, json_get(mount, STR("name")),
                       "%s is not one of the pod's volumes", STR_SHOWN(name));
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
        check_mounts(c, container, "volumeMounts", &here);
        check_mounts(c, container, "volumeDevices", &here);
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
        struct str name = text_of(volume, "name");
        uint32_t sources = 0;
        if (name.len)
            str_table_put(&c->volumes, name, c);
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

/* The label keys of `list` must not be in `taken`, which is what `where` names. */
static void check_keys_apart(struct spec_check *c, const json_val *term, const char *list,
                             const struct str_table *taken, const char *where,
                             const struct path *path)
{
    struct path keys = field_at(path, list);
    uint32_t ix = 0;
    json_each_item(json_get(term, str_of(list)), key) {
        struct path here = item_at(&keys, ix++);
        if (json_is_string(key) && str_table_has(taken, json_str(key)))
            report_add(c->report, PROBLEM_ERROR, &here, key,
                       "%s is in %s too, expected it in one of them", STR_SHOWN(json_str(key)),
                       where);
    }
}

/* Labels that are filled in from the pod must not be selected by as well. */
static void check_label_keys(struct spec_check *c, const json_val *term, const struct path *path)
{
    const json_val *selector = json_get(term, STR("labelSelector"));
    struct str_table selected = { 0 };
    json_each_member(json_get(selector, STR("matchLabels")), key, value)
        str_table_put(&selected, json_key(key), (void *)value);
    json_each_item(json_get(selector, STR("matchExpressions")), e)
        str_table_put(&selected, text_of(e, "key"), (void *)e);
    check_keys_apart(c, term, "matchLabelKeys", &selected, "the labelSelector", path);
    str_table_done(&selected);
}

static void check_spread(struct spec_check *c)
{
    struct path spread = field_at(c->path, "topologySpreadConstraints");
    uint32_t ix = 0;
    json_each_item(json_get(c->spec, STR("topologySpreadConstraints")), constraint) {
        struct path here = item_at(&spread, ix++);
        check_label_keys(c, constraint, &here);
    }
}

static void check_pod_term(struct spec_check *c, const json_val *term, const struct path *path)
{
    struct str_table matched = { 0 };
    json_each_item(json_get(term, STR("matchLabelKeys")), key)
        str_table_put(&matched, json_str(key), (void *)key);
    check_label_keys(c, term, path);
    check_keys_apart(c, term, "mismatchLabelKeys", &matched, "matchLabelKeys", path);
    str_table_done(&matched);
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

void pod_spec_check(const struct pod_spec *typed, const json_val *spec,
                    const json_val *maybe_claim_templates, const struct path *path,
                    struct report *report)
{
    struct spec_check c = {
        .spec = spec, .path = path, .report = report, .host_network = typed->host_network
    };

    check_resource_claims(&c);
    check_volumes(&c);
    json_each_item(maybe_claim_templates, claim) {
        struct str name = json_str(json_path(claim, "metadata.name"));
        if (name.len)
            str_table_put(&c.volumes, name, &c);
    }
    check_containers(&c, "initContainers", typed->init_containers.items,
                     typed->init_containers.count);
    check_containers(&c, "containers", typed->containers.items, typed->containers.count);
    check_containers(&c, "ephemeralContainers", NULL, 0);
    check_resources(&typed->resources, spec, path, report);
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
    str_table_done(&c.volumes);
}

/* --- completion --- */

static void requests_from_limits(struct json_build *b, json_mut *container)
{
    json_mut *resources = json_mut_get(container, STR("resources"));
    json_mut *limits = json_mut_get(resources, STR("limits"));
    if (!json_mut_is_object(limits) || json_mut_count(limits) == 0)
        return;
    json_mut *requests = json_mut_object(b, resources, STR("requests"));
    struct str_table asked = { 0 };
    json_each_mut_member(requests, key, value) str_table_put(&asked, json_mut_str(key), value);
    json_each_mut_member(limits, key, value)
    {
        if (!str_table_has(&asked, json_mut_str(key)))
            json_add(requests, json_mut_copy(b, key), json_mut_copy(b, value));
    }
    str_table_done(&asked);
}

void pod_spec_complete(struct json_build *b, json_mut *spec)
{
    static const char *const lists[] = { "initContainers", "containers" };
    for (size_t i = 0; i < KV_COUNT_OF(lists); i++)
        json_each_mut_item(json_mut_get(spec, str_of(lists[i])), container)
            requests_from_limits(b, container);
}

/* The tables of Event (core/v1, which an API server also serves as events.k8s.io) and Service.
 *
 * Events come in two forms: the older one counts repetitions and has first and last times, the
 * newer one (eventTime is set) has a series and stricter rules. Both are still written. */
#include "api/policy.h"

/* --- Event --- */

#define EVENT_MESSAGE_MAX 1024 /* of the newer form */
#define EVENT_WORD_MAX 128     /* reason, action, reporting names, of the newer form */

#define T struct event_source
static const struct field event_source_fields[] = {
    FIELD(STR, component, "component", NULL),
    FIELD(STR, host, "host", NULL),
};
#undef T
static const struct schema event_source_schema =
    SCHEMA("EventSource", struct event_source, event_source_fields);

#define T struct event_series
static const struct field event_series_fields[] = {
    FIELD(INT, count, "count", NULL, .rule = &count_rule),
    FIELD(TIME, last_us, "lastObservedTime", NULL, .rule = &micro_time_rule),
};
#undef T
static const struct schema event_series_schema =
    SCHEMA("EventSeries", struct event_series, event_series_fields);

#define T struct event
static const struct field event_fields[] = {
    OBJECT_FIELDS(struct event),
    FIELD(STRUCT, involved, "involvedObject", NULL, .flags = FIELD_REQUIRED,
          .sub = &object_reference_schema),
    FIELD(STR, reason, "reason", NULL),
    FIELD(STR, message, "message", NULL),
    FIELD(STRUCT, source, "source", NULL, .sub = &event_source_schema),
    FIELD(TIME, first_us, "firstTimestamp", NULL),
    FIELD(TIME, last_us, "lastTimestamp", NULL),
    FIELD(INT, count, "count", NULL, .rule = &count_rule),
    FIELD(STR, type, "type", NULL),
    FIELD(TIME, event_us, "eventTime", NULL, .rule = &micro_time_rule),
    FIELD(OPTION, maybe_series, "series", NULL, .sub = &event_series_schema),
    FIELD(STR, action, "action", NULL),
    CHECKED(OPTION, "related", .sub = &object_reference_schema),
    FIELD(STR, reporting_component, "reportingComponent", NULL),
    FIELD(STR, reporting_instance, "reportingInstance", NULL),
};
#undef T
static const struct schema event_schema = SCHEMA("Event", struct event, event_fields);

static void check_word(struct str word, const json_val *root, const char *path, size_t max,
                       struct report *report)
{
    if (word.len == 0)
        report_at(report, root, path, "is missing, expected a text: the event has an eventTime");
    else if (word.len > max)
        report_at(report, root, path, "is %zu bytes long, expected at most %zu", word.len, max);
}

static void event_check(const struct object *object, const json_val *root, struct report *report)
{
    const struct event *event = event_of(object);
    struct str home = object->meta.namespace_, about = event->involved.namespace_;

    /* Events about cluster-scoped objects live in "default". */
    if (home.len > 0 &&
        (about.len > 0 ? !str_eq(home, about)
                       : !str_eqz(home, "default") && !str_eqz(home, "kube-system")))
        report_at(report, root, "involvedObject.namespace",
                  "does not match the event's namespace %s", STR_SHOWN(home));
    if (event->event_us == 0)
        return;
    if (!str_eqz(event->type, "Normal") && !str_eqz(event->type, "Warning"))
        report_at(report, root, "type", "is %s, expected Normal or Warning",
                  STR_SHOWN(event->type.p ? event->type : STR("")));
    check_word(event->reason, root, "reason", EVENT_WORD_MAX, report);
    check_word(event->action, root, "action", EVENT_WORD_MAX, report);
    check_word(event->reporting_component, root, "reportingComponent", EVENT_WORD_MAX, report);
    check_word(event->reporting_instance, root, "reportingInstance", EVENT_WORD_MAX, report);
    if (event->message.len > EVENT_MESSAGE_MAX)
        report_at(report, root, "message", "is %zu bytes long, expected at most %d",
                  event->message.len, EVENT_MESSAGE_MAX);
    if (event->maybe_series && event->maybe_series->count < 2)
        report_at(report, root, "series.count", "is %lld, expected at least 2",
                  (long long)event->maybe_series->count);
}

static struct str event_field(const struct object *object, struct str path)
{
    const struct event *event = event_of(object);
    const struct object_reference *about = &event->involved;
    const struct {
        const char *path;
        struct str value;
    } fields[] = {
        { "involvedObject.kind", about->kind },
        { "involvedObject.namespace", about->namespace_ },
        { "involvedObject.name", about->name },
        { "involvedObject.uid", about->uid },
        { "involvedObject.apiVersion", about->api_version },
        { "involvedObject.resourceVersion", about->resource_version },
        { "involvedObject.fieldPath", about->field_path },
        { "reason", event->reason },
        { "reportingComponent", event->reporting_component },
        { "source",
          event->source.component.len > 0 ? event->source.component : event->reporting_component },
        { "type", event->type },
    };

    for (size_t i = 0; i < KV_COUNT_OF(fields); i++)
        if (str_eqz(path, fields[i].path))
            return fields[i].value.p ? fields[i].value : STR("");
    return STR_NONE;
}

const struct kind event_kind = {
    .group = "",
    .version = "v1",
    .name = "Event",
    .plural = "events",
    .singular = "event",
    .namespaced = true,
    .schema = &event_schema,
    .doc = "Something that happened to an object.",
    .check = event_check,
    .field = event_field,
};

int64_t event_last_us(const struct event *event)
{
    if (event->maybe_series && event->maybe_series->last_us > 0)
        return event->maybe_series->last_us;
    if (event->last_us > 0)
        return event->last_us;
    return event->event_us > 0 ? event->event_us : event->object.meta.created_us;
}

/* --- Service --- */

static const struct rule port_rule = { .format = "int32",
                                       .min = { 1, true },
                                       .max = { 65535, true } };
static const struct rule node_port_rule = { .format = "int32",
                                            .min = { 0, true },
                                            .max = { 65535, true } };
static const struct rule protocol_rule = { ENUMS("TCP", "UDP", "SCTP"), .dflt = "\"TCP\"" };

static const struct field service_port_fields[] = {
    CHECKED(STR, "name"),
    CHECKED(ENUM, "protocol", .rule = &protocol_rule),
    CHECKED(STR, "appProtocol"),
    CHECKED(INT, "port", .flags = FIELD_REQUIRED, .rule = &port_rule),
    CHECKED(INT_OR_STR, "targetPort"),
    CHECKED(INT, "nodePort", .rule = &node_port_rule),
};
static const struct schema service_port_schema = SCHEMA_CHECKED("ServicePort", service_port_fields);

static const struct rule service_type_rule = {
    ENUMS("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"), .dflt = "\"ClusterIP\""
};
static const struct rule session_affinity_rule = { ENUMS("ClientIP", "None"), .dflt = "\"None\"" };
static const struct rule traffic_policy_rule = { ENUMS("Cluster", "Local") };

#define T struct service_spec
static const struct field service_spec_fields[] = {
    CHECKED(LIST, "ports", .sub = &service_port_schema),
    FIELD(STR_MAP, selector, "selector", NULL),
    FIELD(STR, cluster_ip, "clusterIP", NULL),
    CHECKED(STRS, "clusterIPs"),
    CHECKED(ENUM, "type", .rule = &service_type_rule),
    CHECKED(STRS, "externalIPs"),
    CHECKED(ENUM, "sessionAffinity", .rule = &session_affinity_rule),
    CHECKED(STR, "loadBalancerIP"),
    CHECKED(STRS, "loadBalancerSourceRanges"),
    CHECKED(STR, "externalName"),
    CHECKED(ENUM, "externalTrafficPolicy", .rule = &traffic_policy_rule),
    CHECKED(INT, "healthCheckNodePort", .rule = &node_port_rule),
    CHECKED(BOOL, "publishNotReadyAddresses"),
    FIELD_KNOWN("sessionAffinityConfig"),
    CHECKED(STRS, "ipFamilies"),
    CHECKED(STR, "ipFamilyPolicy"),
    CHECKED(BOOL, "allocateLoadBalancerNodePorts"),
    CHECKED(STR, "loadBalancerClass"),
    CHECKED(ENUM, "internalTrafficPolicy", .rule = &traffic_policy_rule),
    CHECKED(STR, "trafficDistribution"),
};
#undef T
static const struct schema service_spec_schema =
    SCHEMA("ServiceSpec", struct service_spec, service_spec_fields);

#define T struct service
static const struct field service_fields[] = {
    OBJECT_FIELDS(struct service),
    FIELD(STRUCT, spec, "spec", NULL, .sub = &service_spec_schema),
    FIELD_KNOWN("status"),
};
#undef T
static const struct schema service_schema = SCHEMA("Service", struct service, service_fields);

static void service_check(const struct object *object, const json_val *root, struct report *report)
{
    const json_val *spec = json_get(root, STR("spec"));
    struct str name = object->meta.name, type = json_str(json_get(spec, STR("type")));
    const json_val *ports = json_get(spec, STR("ports"));

    /* Service names become DNS labels that must start with a letter (RFC 1035). */
    check_name_is_label(object, root, report);
    if (name.len > 0 && name.p[0] >= '0' && name.p[0] <= '9')
        report_at(report, root, "metadata.name", "starts with a digit, expected a letter");
    if (str_eqz(type, "ExternalName")) {
        if (json_str(json_get(spec, STR("externalName"))).len == 0)
            report_at(report, root, "spec.externalName", "is missing, expected a host name");
        return;
    }
    if (json_count(ports) == 0 && !str_eqz(service_of(object)->spec.cluster_ip, "None"))
        report_at(report, root, "spec.ports", "is missing, expected at least one port");
}

const struct kind service_kind = {
    .group = "",
    .version = "v1",
    .name = "Service",
    .plural = "services",
    .singular = "service",
    .namespaced = true,
    .has_status = true,
    .schema = &service_schema,
    .doc = "A stable address for a set of pods.",
    .check = service_check,
};

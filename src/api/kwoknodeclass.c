/* The table of KWOKNodeClass. */
#include "api/kwoknodeclass.h"

#define T struct kwoknodeclass_spec
static const struct field spec_fields[] = {
    FIELD(DURATION, node_registration_delay, "nodeRegistrationDelay",
          "How long a launched node takes to register. At once when it is left out.",
          .rule = &duration_rule),
};
#undef T
static const struct schema spec_schema =
    SCHEMA("KWOKNodeClassSpec", struct kwoknodeclass_spec, spec_fields,
           .doc = "How the simulated cloud launches nodes.");

#define T struct kwoknodeclass_status
static const struct field status_fields[] = {
    CONDITIONS_FIELD(status_condition_schema),
};
#undef T
static const struct schema status_schema =
    SCHEMA("KWOKNodeClassStatus", struct kwoknodeclass_status, status_fields,
           .doc = "Whether nodes can be launched with the class.");

#define T struct kwoknodeclass
static const struct field kwoknodeclass_fields[] = {
    OBJECT_FIELDS(struct kwoknodeclass),
    FIELD(STRUCT, spec, "spec", "How the simulated cloud launches nodes.", .sub = &spec_schema),
    FIELD(STRUCT, status, "status", "Whether nodes can be launched with the class.",
          .sub = &status_schema),
};
#undef T
static const struct schema kwoknodeclass_schema =
    SCHEMA("KWOKNodeClass", struct kwoknodeclass, kwoknodeclass_fields,
           .doc = "A KWOKNodeClass describes nodes of the simulated cloud.");

static const struct crd_column columns[] = {
    { "Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status",
      "Whether nodes can be launched with the class.", 0 },
    { "Age", "date", ".metadata.creationTimestamp", "How old the class is.", 0 },
};

static const struct crd kwoknodeclass_crd = {
    .short_names = (const char *const[]){ "kwoknc", "kwokncs", NULL },
    .categories = (const char *const[]){ "karpenter", NULL },
    .columns = columns,
    .column_count = KV_COUNT_OF(columns),
};

const struct kind kwoknodeclass_kind = {
    .group = KWOK_GROUP,
    .version = "v1alpha1",
    .name = "KWOKNodeClass",
    .plural = "kwoknodeclasses",
    .singular = "kwoknodeclass",
    .has_status = true,
    .schema = &kwoknodeclass_schema,
    .doc = "Nodes of the simulated cloud.",
    .crd = &kwoknodeclass_crd,
};

/* The tables of ConfigMap, Secret and ServiceAccount: their members are known, and nothing more. */
#include "api/node_kinds.h"

#include "api/common.h"

#define T struct object_only
struct object_only {
    struct object object;
};
static const struct field config_map_fields[] = {
    OBJECT_FIELDS(struct object_only),
    FIELD_KNOWN("immutable"),
    FIELD_KNOWN("data"),
    FIELD_KNOWN("binaryData"),
};
static const struct field secret_fields[] = {
    OBJECT_FIELDS(struct object_only), FIELD_KNOWN("immutable"), FIELD_KNOWN("data"),
    FIELD_KNOWN("stringData"),         FIELD_KNOWN("type"),
};
static const struct field service_account_fields[] = {
    OBJECT_FIELDS(struct object_only),
    FIELD_KNOWN("secrets"),
    FIELD_KNOWN("imagePullSecrets"),
    FIELD_KNOWN("automountServiceAccountToken"),
};
#undef T

static const struct schema config_map_schema =
    SCHEMA("ConfigMap", struct object_only, config_map_fields);
static const struct schema secret_schema = SCHEMA("Secret", struct object_only, secret_fields);
static const struct schema service_account_schema =
    SCHEMA("ServiceAccount", struct object_only, service_account_fields);

const struct kind config_map_kind = {
    .group = "",
    .version = "v1",
    .name = "ConfigMap",
    .plural = "configmaps",
    .singular = "configmap",
    .namespaced = true,
    .schema = &config_map_schema,
    .doc = "Settings, by key.",
};

const struct kind secret_kind = {
    .group = "",
    .version = "v1",
    .name = "Secret",
    .plural = "secrets",
    .singular = "secret",
    .namespaced = true,
    .schema = &secret_schema,
    .doc = "Settings that not everybody may read.",
};

const struct kind service_account_kind = {
    .group = "",
    .version = "v1",
    .name = "ServiceAccount",
    .plural = "serviceaccounts",
    .singular = "serviceaccount",
    .namespaced = true,
    .schema = &service_account_schema,
    .doc = "Who a pod is to the API server.",
};

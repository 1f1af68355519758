/* Decoding of containers: init, main and ephemeral ones have one table. */
#include "api/pod_tables.h"
#include "codec/selector.h"
#include "node/node_pod_inner.h"

#include <stdio.h>

/* --- environment; divisors are settled --- */

#define T struct env_var
static const struct field field_ref_fields[] = { FIELD(STR, field_path, "fieldPath", NULL) };
static const struct schema field_ref_schema = SCHEMA("ObjectFieldSelector", T, field_ref_fields);

static const struct field resource_ref_fields[] = {
    FIELD(STR, container, "containerName", NULL),
    FIELD(STR, resource, "resource", NULL),
};
static const struct schema resource_ref_schema =
    SCHEMA("ResourceFieldSelector", T, resource_ref_fields);

static const struct field key_ref_fields[] = {
    FIELD(STR, object, "name", NULL),
    FIELD(STR, key, "key", NULL),
    FIELD(BOOL, optional, "optional", NULL),
};
static const struct schema key_ref_schema = SCHEMA("KeySelector", T, key_ref_fields);

static const struct field env_source_fields[] = {
    FLAT("fieldRef", field_ref_schema),
    FLAT("resourceFieldRef", resource_ref_schema),
    FLAT("configMapKeyRef", key_ref_schema),
    FLAT("secretKeyRef", key_ref_schema),
};
static const struct schema env_source_schema = SCHEMA("EnvVarSource", T, env_source_fields);

static const struct field env_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(STR, value, "value", NULL),
    FLAT("valueFrom", env_source_schema),
};
#undef T
static const struct schema env_var_schema = SCHEMA("EnvVar", struct env_var, env_fields);

#define T struct env_from
static const struct field object_ref_fields[] = {
    FIELD(STR, object, "name", NULL),
    FIELD(BOOL, optional, "optional", NULL),
};
static const struct schema object_ref_schema = SCHEMA("EnvSource", T, object_ref_fields);

static const struct field env_from_fields[] = {
    FIELD(STR, prefix, "prefix", NULL),
    FLAT("configMapRef", object_ref_schema),
    FLAT("secretRef", object_ref_schema),
};
#undef T
static const struct schema env_objects_schema =
    SCHEMA("EnvFromSource", struct env_from, env_from_fields);

/* --- ports and mounts --- */

#define T struct container_port
static const struct field port_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(INT, host_port, "hostPort", NULL),
    FIELD(INT, container_port, "containerPort", NULL),
    FIELD(ENUM, protocol, "protocol", NULL, RULE(ENUMS("TCP", "UDP", "SCTP"))),
    FIELD(STR, host_ip, "hostIP", NULL),
};
#undef T
static const struct schema port_schema =
    SCHEMA("ContainerPort", struct container_port, port_fields);

#define T struct volume_mount
static const struct field mount_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(BOOL, read_only, "readOnly", NULL),
    FIELD(ENUM, recursive_read_only, "recursiveReadOnly", NULL, RULE(ENUMS("Enabled"))),
    FIELD(STR, path, "mountPath", NULL),
    FIELD(STR, sub_path, "subPath", NULL),
    FIELD(ENUM, propagation, "mountPropagation", NULL,
          RULE(ENUMS("HostToContainer", "Bidirectional"))),
    FIELD(STR, sub_path_expr, "subPathExpr", NULL),
};
#undef T
static const struct schema mount_schema = SCHEMA("VolumeMount", struct volume_mount, mount_fields);

/* --- containers --- */

#define T struct node_container
static const struct field hook_fields[] = {
    FIELD(STRUCT, post_start, "postStart", NULL, .sub = &node_handler_schema),
    FIELD(STRUCT, pre_stop, "preStop", NULL, .sub = &node_handler_schema),
    FIELD(STR, stop_signal, "stopSignal", NULL),
};
static const struct schema hooks_schema = SCHEMA("Lifecycle", T, hook_fields);

static const struct field container_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(STR, image, "image", NULL),
    FIELD(STRS, command, "command", NULL),
    FIELD(STRS, args, "args", NULL),
    FIELD(STR, working_dir, "workingDir", NULL),
    FIELD(LIST, ports, "ports", NULL, .sub = &port_schema),
    FIELD(LIST, env_from, "envFrom", NULL, .sub = &env_objects_schema),
    FIELD(LIST, env, "env", NULL, .sub = &env_var_schema),
    FIELD(STRUCT, resources, "resources", NULL, .sub = &resource_needs_schema),
    FIELD(ENUM, restart_policy, "restartPolicy", NULL, RULE(ENUMS("Always", "Never", "OnFailure"))),
    FIELD(LIST, mounts, "volumeMounts", NULL, .sub = &mount_schema),
    FIELD(STRUCT, liveness, "livenessProbe", NULL, .sub = &node_probe_schema),
    FIELD(STRUCT, readiness, "readinessProbe", NULL, .sub = &node_probe_schema),
    FIELD(STRUCT, startup, "startupProbe", NULL, .sub = &node_probe_schema),
    FLAT("lifecycle", hooks_schema),
    FIELD(STR, termination_message_path, "terminationMessagePath", NULL),
    FIELD(STR, termination_message_policy, "terminationMessagePolicy", NULL),
    FIELD(ENUM, pull_policy, "imagePullPolicy", NULL,
          RULE(ENUMS("Always", "IfNotPresent", "Never"))),
    FIELD(STRUCT, security, "securityContext", NULL, .sub = &node_security_schema),
    FIELD(BOOL, stdin_open, "stdin", NULL),
    FIELD(BOOL, stdin_once, "stdinOnce", NULL),
    FIELD(BOOL, tty, "tty", NULL),
    FIELD(STR, target, "targetContainerName", NULL),
};
#undef T
const struct schema node_container_schema =
    SCHEMA("Container", struct node_container, container_fields);

/* --- settling --- */

static int settle_env_var(const struct settling *at, struct env_var *var)
{
    /* In the order of enum env_kind, after ENV_VALUE. */
    static const char *const sources[] = { "fieldRef", "resourceFieldRef", "configMapKeyRef",
                                           "secretKeyRef", NULL };
    struct settling from = settling_in(at, "valueFrom");
    struct settling resource = settling_in(&from, "resourceFieldRef");
    struct settling divisor = settling_in(&resource, "divisor");
    if (!var->name.len)
        return settling_refuse(at, "has no name");
    var->kind = json_which(from.json, sources);
    if (var->kind == ENV_VALUE && json_is_object(from.json))
        return settling_refuse(&from, "expected fieldRef, resourceFieldRef, configMapKeyRef or "
                                      "secretKeyRef");
    return settle_quantity(&divisor, &var->divisor, NULL);
}

static int settle_env(const struct settling *at, struct node_container *container)
{
    static const char *const secret[] = { "secretRef", NULL };
    struct settling env = settling_in(at, "env");
    uint32_t ix = 0;
    json_each_item(env.json, json) {
        struct settling var = settling_at(&env, ix, json);
        if (settle_env_var(&var, (struct env_var *)&container->env.items[ix++]) < 0)
            return -1;
    }
    ix = 0;
    json_each_item(json_get(at->json, STR("envFrom")), json) {
        struct env_from *from = (struct env_from *)&container->env_from.items[ix++];
        from->secret = json_which(json, secret) != 0;
    }
    return 0;
}

static int settle_handlers(const struct settling *at, struct node_container *container)
{
    struct settling liveness = settling_in(at, "livenessProbe");
    struct settling readiness = settling_in(at, "readinessProbe");
    struct settling startup = settling_in(at, "startupProbe");
    struct settling lifecycle = settling_in(at, "lifecycle");
    struct settling post_start = settling_in(&lifecycle, "postStart");
    struct settling pre_stop = settling_in(&lifecycle, "preStop");
    if (settle_probe(&liveness, &container->liveness) < 0 ||
        settle_probe(&readiness, &container->readiness) < 0 ||
        settle_probe(&startup, &container->startup) < 0 ||
        settle_handler(&post_start, &container->post_start) < 0 ||
        settle_handler(&pre_stop, &container->pre_stop) < 0)
        return -1;
    return 0;
}

/* As the API server decides it: the tag latest, written or implied, may move; others do not. */
static uint8_t pull_policy_of(struct str image)
{
    struct str name, digest, head, tag;
    bool has_digest = str_cut(image, '@', &name, &digest);
    size_t last = 0; /* where the last part of the path starts: a registry's port is no tag */
    for (size_t i = 0; i < name.len; i++) {
        if (name.p[i] == '/')
            last = i + 1;
    }
    if (!str_cut(str_sub(name, last, name.len - last), ':', &head, &tag))
        return has_digest ? PULL_IF_NOT_PRESENT : PULL_ALWAYS;
    return str_eq(tag, STR("latest")) ? PULL_ALWAYS : PULL_IF_NOT_PRESENT;
}

/* Of name and image alone: with any other field in it, a version of this program that knows one
 * field more would restart every container. The NUL keeps "a", "bc" and "ab", "c" apart. */
static void set_hash(struct node_container *container)
{
    AUTO_BUF text = { 0 };
    buf_add(&text, container->name);
    buf_addc(&text, '\0');
    buf_add(&text, container->image);
    snprintf(container->hash, sizeof container->hash, "%016llx",
             (unsigned long long)kv_hash(text.p, text.len));
}

int settle_container(const struct settling *at, const struct node_pod *pod,
                     struct node_container *container)
{
    struct settling name = settling_in(at, "name");
    const char *problem = dns1123_label_problem(container->name);
    if (problem) /* it becomes the name of a folder */
        return settling_refuse(&name, "%s %s", STR_SHOWN(container->name), problem);
    if (!container->image.len)
        return settling_refuse(at, "has no image");

    container->sidecar = container->init && container->restart_policy == CONTAINER_RESTART_ALWAYS;
    if (container->pull_policy == PULL_UNSET)
        container->pull_policy = pull_policy_of(container->image);
    if (!container->termination_message_path.len)
        container->termination_message_path = STR("/dev/termination-log");
    if (!container->termination_message_policy.len)
        container->termination_message_policy = STR("File");
    security_merge(&container->security, &pod->security);
    set_hash(container);
    return settle_env(at, container) < 0 ? -1 : settle_handlers(at, container);
}

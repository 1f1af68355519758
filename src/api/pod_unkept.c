/* Tables of the parts of a pod that the control plane checks and does not keep: see
 * api/pod_tables.h. */
#include "api/pod_tables.h"

#define REQUIRED .flags = FIELD_REQUIRED

/* A port's name is an IANA service name: up to 15 of a-z, 0-9 and single hyphens, one letter. */
static const char *port_name_problem(struct str s)
{
    bool letter = false;
    if (s.len < 1 || s.len > 15)
        return "is not a port name, expected 1 to 15 characters";
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        bool hyphen = c == '-';
        letter |= c >= 'a' && c <= 'z';
        if (!hyphen && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
            return "is not a port name, expected only a-z, 0-9 and '-'";
        if (hyphen && (i == 0 || i + 1 == s.len || s.p[i - 1] == '-'))
            return "is not a port name, expected single hyphens between other characters";
    }
    return letter ? NULL : "is not a port name, expected at least one letter";
}

#define PORT_RANGE .min = { 1, true }, .max = { 65535, true }
const struct rule port_rule = { PORT_RANGE };
const struct rule port_or_name_rule = { PORT_RANGE, .check = port_name_problem };
const struct rule port_name_rule = { .check = port_name_problem };
const struct rule int32_rule = { .format = "int32" };
const struct rule not_negative_rule = { .min = { 0, true } };
const struct rule positive_rule = { .min = { 1, true } };
const struct rule text_rule = { .len_min = 1 };

static const struct rule count_rule = { .format = "int32", .min = { 0, true } };
static const struct rule mode_rule = { .min = { 0, true }, .max = { 0777, true } };

/* --- probes and handlers --- */

static const struct field header_fields[] = {
    CHECKED(STR, "name", REQUIRED, .rule = &text_rule),
    CHECKED(STR, "value", REQUIRED),
};
static const struct schema header_schema = SCHEMA_CHECKED("HTTPHeader", header_fields);

static const struct field exec_fields[] = { CHECKED(STRS, "command") };
static const struct schema exec_schema = SCHEMA_CHECKED("ExecAction", exec_fields);

static const struct field http_get_fields[] = {
    CHECKED(STR, "path"),
    CHECKED(INT_OR_STR, "port", REQUIRED, .rule = &port_or_name_rule),
    CHECKED(STR, "host"),
    CHECKED(ENUM, "scheme", RULE(ENUMS("HTTP", "HTTPS"))),
    CHECKED(LIST, "httpHeaders", .sub = &header_schema),
};
static const struct schema http_get_schema = SCHEMA_CHECKED("HTTPGetAction", http_get_fields);

static const struct field tcp_socket_fields[] = {
    CHECKED(INT_OR_STR, "port", REQUIRED, .rule = &port_or_name_rule),
    CHECKED(STR, "host"),
};
static const struct schema tcp_socket_schema = SCHEMA_CHECKED("TCPSocketAction", tcp_socket_fields);

static const struct field grpc_fields[] = {
    CHECKED(INT, "port", REQUIRED, .rule = &port_rule),
    CHECKED(STR, "service"),
};
static const struct schema grpc_schema = SCHEMA_CHECKED("GRPCAction", grpc_fields);

static const struct field sleep_fields[] = {
    CHECKED(INT, "seconds", REQUIRED, .rule = &not_negative_rule),
};
static const struct schema sleep_schema = SCHEMA_CHECKED("SleepAction", sleep_fields);

static uint32_t member_count(const json_val *v, const char *const *names)
{
    uint32_t count = 0;
    for (; *names; names++) {
        const json_val *member = json_get(v, str_of(*names));
        count += member && !json_is_null(member);
    }
    return count;
}

static bool has_one_handler(const json_val *self, const json_val *old KV_UNUSED)
{
    static const char *const handlers[] = { "exec", "httpGet", "tcpSocket", "grpc", "sleep", NULL };
    return member_count(self, handlers) == 1;
}
static const struct cel_rule handler_cel[] = {
    { "[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].exists_one(x, x)",
      "expected exactly one handler: exec, httpGet, tcpSocket, grpc (probes) or sleep (hooks)",
      has_one_handler },
    { 0 },
};

static const struct field probe_fields[] = {
    CHECKED(STRUCT, "exec", .sub = &exec_schema),
    CHECKED(STRUCT, "httpGet", .sub = &http_get_schema),
    CHECKED(STRUCT, "tcpSocket", .sub = &tcp_socket_schema),
    CHECKED(STRUCT, "grpc", .sub = &grpc_schema),
    CHECKED(INT, "initialDelaySeconds", .rule = &count_rule),
    CHECKED(INT, "timeoutSeconds", .rule = &count_rule),
    CHECKED(INT, "periodSeconds", .rule = &count_rule),
    CHECKED(INT, "successThreshold", .rule = &count_rule),
    CHECKED(INT, "failureThreshold", .rule = &count_rule),
    CHECKED(INT, "terminationGracePeriodSeconds", .rule = &positive_rule),
};
const struct schema probe_schema = SCHEMA_CHECKED("Probe", probe_fields, .cel = handler_cel);

static const struct field handler_fields[] = {
    CHECKED(STRUCT, "exec", .sub = &exec_schema),
    CHECKED(STRUCT, "httpGet", .sub = &http_get_schema),
    CHECKED(STRUCT, "tcpSocket", .sub = &tcp_socket_schema),
    CHECKED(STRUCT, "sleep", .sub = &sleep_schema),
};
static const struct schema handler_schema =
    SCHEMA_CHECKED("LifecycleHandler", handler_fields, .cel = handler_cel);

static const struct field lifecycle_fields[] = {
    CHECKED(STRUCT, "postStart", .sub = &handler_schema),
    CHECKED(STRUCT, "preStop", .sub = &handler_schema),
    CHECKED(STR, "stopSignal"),
};
const struct schema lifecycle_schema = SCHEMA_CHECKED("Lifecycle", lifecycle_fields);

/* --- environment and mounts --- */

static const struct field field_ref_fields[] = {
    CHECKED(STR, "apiVersion"),
    CHECKED(STR, "fieldPath", REQUIRED, .rule = &text_rule),
};
static const struct schema field_ref_schema =
    SCHEMA_CHECKED("ObjectFieldSelector", field_ref_fields);

static const struct field resource_ref_fields[] = {
    CHECKED(STR, "containerName"),
    CHECKED(STR, "resource", REQUIRED, .rule = &text_rule),
    CHECKED(QUANTITY, "divisor"),
};
static const struct schema resource_ref_schema =
    SCHEMA_CHECKED("ResourceFieldSelector", resource_ref_fields);

static const struct field key_ref_fields[] = {
    CHECKED(STR, "name"),
    CHECKED(STR, "key", REQUIRED, .rule = &text_rule),
    CHECKED(BOOL, "optional"),
};
static const struct schema key_ref_schema = SCHEMA_CHECKED("KeySelector", key_ref_fields);

static const struct field file_ref_fields[] = {
    CHECKED(STR, "volumeName", REQUIRED),
    CHECKED(STR, "path", REQUIRED),
    CHECKED(STR, "key", REQUIRED),
    CHECKED(BOOL, "optional"),
};
static const struct schema file_ref_schema = SCHEMA_CHECKED("FileKeySelector", file_ref_fields);

static const struct field env_source_fields[] = {
    CHECKED(STRUCT, "fieldRef", .sub = &field_ref_schema),
    CHECKED(STRUCT, "resourceFieldRef", .sub = &resource_ref_schema),
    CHECKED(STRUCT, "configMapKeyRef", .sub = &key_ref_schema),
    CHECKED(STRUCT, "secretKeyRef", .sub = &key_ref_schema),
    CHECKED(STRUCT, "fileKeyRef", .sub = &file_ref_schema),
};
static const struct schema env_source_schema = SCHEMA_CHECKED("EnvVarSource", env_source_fields);

static bool has_value_or_source(const json_val *self, const json_val *old KV_UNUSED)
{
    const json_val *from = json_get(self, STR("valueFrom"));
    return !from || json_is_null(from) || json_str(json_get(self, STR("value"))).len == 0;
}
static const struct cel_rule env_cel[] = {
    { "!(has(self.value) && has(self.valueFrom))", "has value and valueFrom, expected one of them",
      has_value_or_source },
    { 0 },
};

static const struct field env_fields[] = {
    CHECKED(STR, "name", REQUIRED, .rule = &text_rule),
    CHECKED(STR, "value"),
    CHECKED(STRUCT, "valueFrom", .sub = &env_source_schema),
};
const struct schema env_schema = SCHEMA_CHECKED("EnvVar", env_fields, .cel = env_cel);

static const struct field optional_ref_fields[] = {
    CHECKED(STR, "name"),
    CHECKED(BOOL, "optional"),
};
static const struct schema optional_ref_schema = SCHEMA_CHECKED("EnvSource", optional_ref_fields);

static const struct field env_from_fields[] = {
    CHECKED(STR, "prefix"),
    CHECKED(STRUCT, "configMapRef", .sub = &optional_ref_schema),
    CHECKED(STRUCT, "secretRef", .sub = &optional_ref_schema),
};
const struct schema env_from_schema = SCHEMA_CHECKED("EnvFromSource", env_from_fields);

static const struct field volume_mount_fields[] = {
    CHECKED(STR, "name", REQUIRED, .rule = &text_rule),
    CHECKED(BOOL, "readOnly"),
    CHECKED(ENUM, "recursiveReadOnly", RULE(ENUMS("Disabled", "IfPossible", "Enabled"))),
    CHECKED(STR, "mountPath", REQUIRED, .rule = &text_rule),
    CHECKED(STR, "subPath"),
    CHECKED(ENUM, "mountPropagation", RULE(ENUMS("None", "HostToContainer", "Bidirectional"))),
    CHECKED(STR, "subPathExpr"),
};
const struct schema volume_mount_schema = SCHEMA_CHECKED("VolumeMount", volume_mount_fields);

static const struct field volume_device_fields[] = {
    CHECKED(STR, "name", REQUIRED, .rule = &text_rule),
    CHECKED(STR, "devicePath", REQUIRED, .rule = &text_rule),
};
const struct schema volume_device_schema = SCHEMA_CHECKED("VolumeDevice", volume_device_fields);

static const struct field resize_policy_fields[] = {
    CHECKED(ENUM, "resourceName", REQUIRED, RULE(ENUMS("cpu", "memory"))),
    CHECKED(ENUM, "restartPolicy", REQUIRED, RULE(ENUMS("NotRequired", "RestartContainer"))),
};
const struct schema resize_policy_schema =
    SCHEMA_CHECKED("ContainerResizePolicy", resize_policy_fields);

static const struct field exit_code_fields[] = {
    CHECKED(ENUM, "operator", REQUIRED, RULE(ENUMS("In", "NotIn"))),
    FIELD_KNOWN("values"),
};
static const struct schema exit_code_schema =
    SCHEMA_CHECKED("ContainerRestartRuleOnExitCodes", exit_code_fields);

static const struct field restart_rule_fields[] = {
    CHECKED(STR, "action", REQUIRED),
    CHECKED(STRUCT, "exitCodes", .sub = &exit_code_schema),
};
const struct schema restart_rule_schema =
    SCHEMA_CHECKED("ContainerRestartRule", restart_rule_fields);

/* --- security --- */

static const struct field capability_fields[] = { CHECKED(STRS, "add"), CHECKED(STRS, "drop") };
static const struct schema capability_schema = SCHEMA_CHECKED("Capabilities", capability_fields);

static const struct field selinux_fields[] = {
    CHECKED(STR, "user"),
    CHECKED(STR, "role"),
    CHECKED(STR, "type"),
    CHECKED(STR, "level"),
};
static const struct schema selinux_schema = SCHEMA_CHECKED("SELinuxOptions", selinux_fields);

static const struct field windows_fields[] = {
    CHECKED(STR, "gmsaCredentialSpecName"),
    CHECKED(STR, "gmsaCredentialSpec"),
    CHECKED(STR, "runAsUserName"),
    CHECKED(BOOL, "hostProcess"),
};
static const struct schema windows_schema =
    SCHEMA_CHECKED("WindowsSecurityContextOptions", windows_fields);

static const struct field profile_fields[] = {
    CHECKED(ENUM, "type", REQUIRED, RULE(ENUMS("Unconfined", "RuntimeDefault", "Localhost"))),
    CHECKED(STR, "localhostProfile"),
};
static const struct schema profile_schema = SCHEMA_CHECKED("SecurityProfile", profile_fields);

static const struct field container_security_fields[] = {
    CHECKED(STRUCT, "capabilities", .sub = &capability_schema),
    CHECKED(BOOL, "privileged"),
    CHECKED(STRUCT, "seLinuxOptions", .sub = &selinux_schema),
    CHECKED(STRUCT, "windowsOptions", .sub = &windows_schema),
    CHECKED(INT, "runAsUser", .rule = &not_negative_rule),
    CHECKED(INT, "runAsGroup", .rule = &not_negative_rule),
    CHECKED(BOOL, "runAsNonRoot"),
    CHECKED(BOOL, "readOnlyRootFilesystem"),
    CHECKED(BOOL, "allowPrivilegeEscalation"),
    CHECKED(ENUM, "procMount", RULE(ENUMS("Default", "Unmasked"))),
    CHECKED(STRUCT, "seccompProfile", .sub = &profile_schema),
    CHECKED(STRUCT, "appArmorProfile", .sub = &profile_schema),
};
const struct schema container_security_schema =
    SCHEMA_CHECKED("SecurityContext", container_security_fields);

static const struct field sysctl_fields[] = {
    CHECKED(STR, "name", REQUIRED, .rule = &text_rule),
    CHECKED(STR, "value", REQUIRED),
};
static const struct schema sysctl_schema = SCHEMA_CHECKED("Sysctl", sysctl_fields);

static const struct field pod_security_fields[] = {
    CHECKED(STRUCT, "seLinuxOptions", .sub = &selinux_schema),
    CHECKED(STRUCT, "windowsOptions", .sub = &windows_schema),
    CHECKED(INT, "runAsUser", .rule = &not_negative_rule),
    CHECKED(INT, "runAsGroup", .rule = &not_negative_rule),
    CHECKED(BOOL, "runAsNonRoot"),
    FIELD_KNOWN("supplementalGroups"),
    CHECKED(ENUM, "supplementalGroupsPolicy", RULE(ENUMS("Merge", "Strict"))),
    CHECKED(INT, "fsGroup", .rule = &not_negative_rule),
    CHECKED(LIST, "sysctls", .sub = &sysctl_schema),
    CHECKED(ENUM, "fsGroupChangePolicy", RULE(ENUMS("OnRootMismatch", "Always"))),
    CHECKED(STRUCT, "seccompProfile", .sub = &profile_schema),
    CHECKED(STRUCT, "appArmorProfile", .sub = &profile_schema),
    CHECKED(ENUM, "seLinuxChangePolicy", RULE(ENUMS("Recursive", "MountOption"))),
};
const struct schema pod_security_schema = SCHEMA_CHECKED("PodSecurityContext", pod_security_fields);

/* --- names and addresses --- */

static const struct field local_ref_fields[] = { CHECKED(STR, "name") };
const struct schema local_ref_schema = SCHEMA_CHECKED("LocalObjectReference", local_ref_fields);

static const struct field host_alias_fields[] = {
    CHECKED(STR, "ip", REQUIRED, .rule = &text_rule),
    CHECKED(STRS, "hostnames"),
};
const struct schema host_alias_schema = SCHEMA_CHECKED("HostAlias", host_alias_fields);

static const struct field dns_option_fields[] = { CHECKED(STR, "name"), CHECKED(STR, "value") };
static const struct schema dns_option_schema =
    SCHEMA_CHECKED("PodDNSConfigOption", dns_option_fields);

static const struct field dns_config_fields[] = {
    CHECKED(STRS, "nameservers"),
    CHECKED(STRS, "searches"),
    CHECKED(LIST, "options", .sub = &dns_option_schema),
};
const struct schema dns_config_schema = SCHEMA_CHECKED("PodDNSConfig", dns_config_fields);

/* --- volumes that bind a pod to no place --- */

static const struct field host_path_fields[] = {
    CHECKED(STR, "path", REQUIRED, .rule = &text_rule),
    CHECKED(ENUM, "type",
            RULE(ENUMS("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket",
                       "CharDevice", "BlockDevice"))),
};
const struct schema host_path_schema = SCHEMA_CHECKED("HostPathVolumeSource", host_path_fields);

static const struct field empty_dir_fields[] = {
    CHECKED(STR, "medium"),
    CHECKED(QUANTITY, "sizeLimit"),
};
const struct schema empty_dir_schema = SCHEMA_CHECKED("EmptyDirVolumeSource", empty_dir_fields);

static const struct field key_to_path_fields[] = {
    CHECKED(STR, "key", REQUIRED, .rule = &text_rule),
    CHECKED(STR, "path", REQUIRED, .rule = &text_rule),
    CHECKED(INT, "mode", .rule = &mode_rule),
};
static const struct schema key_to_path_schema = SCHEMA_CHECKED("KeyToPath", key_to_path_fields);

static const struct field secret_volume_fields[] = {
    CHECKED(STR, "secretName"),
    CHECKED(LIST, "items", .sub = &key_to_path_schema),
    CHECKED(INT, "defaultMode", .rule = &mode_rule),
    CHECKED(BOOL, "optional"),
};
const struct schema secret_volume_schema =
    SCHEMA_CHECKED("SecretVolumeSource", secret_volume_fields);

static const struct field config_map_volume_fields[] = {
    CHECKED(STR, "name"),
    CHECKED(LIST, "items", .sub = &key_to_path_schema),
    CHECKED(INT, "defaultMode", .rule = &mode_rule),
    CHECKED(BOOL, "optional"),
};
const struct schema config_map_volume_schema =
    SCHEMA_CHECKED("ConfigMapVolumeSource", config_map_volume_fields);

static const struct field downward_file_fields[] = {
    CHECKED(STR, "path", REQUIRED, .rule = &text_rule),
    CHECKED(STRUCT, "fieldRef", .sub = &field_ref_schema),
    CHECKED(STRUCT, "resourceFieldRef", .sub = &resource_ref_schema),
    CHECKED(INT, "mode", .rule = &mode_rule),
};
static const struct schema downward_file_schema =
    SCHEMA_CHECKED("DownwardAPIVolumeFile", downward_file_fields);

static const struct field downward_volume_fields[] = {
    CHECKED(LIST, "items", .sub = &downward_file_schema),
    CHECKED(INT, "defaultMode", .rule = &mode_rule),
};
const struct schema downward_volume_schema =
    SCHEMA_CHECKED("DownwardAPIVolumeSource", downward_volume_fields);

static const struct field token_fields[] = {
    CHECKED(STR, "audience"),
    CHECKED(INT, "expirationSeconds", .rule = &positive_rule),
    CHECKED(STR, "path", REQUIRED, .rule = &text_rule),
};
static const struct schema token_schema =
    SCHEMA_CHECKED("ServiceAccountTokenProjection", token_fields);

static const struct field secret_projection_fields[] = {
    CHECKED(STR, "name"),
    CHECKED(LIST, "items", .sub = &key_to_path_schema),
    CHECKED(BOOL, "optional"),
};
static const struct schema secret_projection_schema =
    SCHEMA_CHECKED("SecretProjection", secret_projection_fields);

static const struct field projection_fields[] = {
    CHECKED(STRUCT, "secret", .sub = &secret_projection_schema),
    CHECKED(STRUCT, "downwardAPI", .sub = &downward_volume_schema),
    CHECKED(STRUCT, "configMap", .sub = &secret_projection_schema),
    CHECKED(STRUCT, "serviceAccountToken", .sub = &token_schema),
    FIELD_KNOWN("clusterTrustBundle"),
    FIELD_KNOWN("podCertificate"),
};
static const struct schema projection_schema =
    SCHEMA_CHECKED("VolumeProjection", projection_fields);

static const struct field projected_volume_fields[] = {
    CHECKED(LIST, "sources", .sub = &projection_schema),
    CHECKED(INT, "defaultMode", .rule = &mode_rule),
};
const struct schema projected_volume_schema =
    SCHEMA_CHECKED("ProjectedVolumeSource", projected_volume_fields);

static const struct field nfs_volume_fields[] = {
    CHECKED(STR, "server", REQUIRED, .rule = &text_rule),
    CHECKED(STR, "path", REQUIRED, .rule = &text_rule),
    CHECKED(BOOL, "readOnly"),
};
const struct schema nfs_volume_schema = SCHEMA_CHECKED("NFSVolumeSource", nfs_volume_fields);

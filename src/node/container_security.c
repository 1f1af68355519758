/* What a container's processes may do, and as whom. The pod's security context is already merged
 * into the container's.
 */
#include "node/configs_inner.h"

/* Kernel interfaces that are not for containers, unless one is privileged or has procMount:
 * Unmasked. */
static const struct str masked_paths[] = {
    STR("/proc/asound"),     STR("/proc/acpi"),        STR("/proc/interrupts"),
    STR("/proc/kcore"),      STR("/proc/keys"),        STR("/proc/latency_stats"),
    STR("/proc/timer_list"), STR("/proc/timer_stats"), STR("/proc/sched_debug"),
    STR("/proc/scsi"),       STR("/sys/firmware"),     STR("/sys/devices/virtual/powercap"),
};
static const struct str readonly_paths[] = {
    STR("/proc/bus"),           STR("/proc/fs"), STR("/proc/irq"), STR("/proc/sys"),
    STR("/proc/sysrq-trigger"),
};

static void set_paths(struct arena *arena, Cri__LinuxContainerSecurityContext *out)
{
    out->n_masked_paths = KV_COUNT_OF(masked_paths);
    out->masked_paths =
        message_strs(arena, (struct str_list){ masked_paths, KV_COUNT_OF(masked_paths) });
    out->n_readonly_paths = KV_COUNT_OF(readonly_paths);
    out->readonly_paths =
        message_strs(arena, (struct str_list){ readonly_paths, KV_COUNT_OF(readonly_paths) });
}

/* --- users --- */

static int check_non_root(const struct container_config_input *input, struct err *err)
{
    const struct security_context *security = &input->container->security;
    if (security->run_as_non_root != TRI_TRUE)
        return 0;
    if (security->run_as_user.set)
        return security->run_as_user.value != 0
                   ? 0
                   : err_set(err, ERR_INVALID,
                             "container has runAsNonRoot and its runAsUser is root");
    if (!input->image_uid.set && input->image_username.len > 0)
        return err_set(err, ERR_INVALID,
                       "container has runAsNonRoot and image has non-numeric user (%s), cannot "
                       "verify user is non-root",
                       STR_SHOWN(input->image_username));
    if (!input->image_uid.set || input->image_uid.value == 0)
        return err_set(err, ERR_INVALID, "container has runAsNonRoot and image will run as root");
    return 0;
}

/* The image's own user is left to the runtime, which knows its group too. A group that is asked for
 * needs a user beside it, so then the image's is told. */
static void set_user(struct arena *arena, const struct container_config_input *input,
                     Cri__LinuxContainerSecurityContext *out)
{
    const struct security_context *security = &input->container->security;
    out->run_as_user = message_int(arena, security->run_as_user);
    out->run_as_group = message_int(arena, security->run_as_group);
    if (out->run_as_user || !out->run_as_group)
        return;
    if (!input->image_uid.set && input->image_username.len > 0)
        out->run_as_username = message_str(arena, input->image_username);
    else
        out->run_as_user =
            message_int(arena, (struct maybe_int){ input->image_uid.value, true }); /* root: 0 */
}

/* --- profiles --- */

enum { PROFILE_UNSET, PROFILE_RUNTIME_DEFAULT, PROFILE_UNCONFINED, PROFILE_LOCALHOST };

static Cri__SecurityProfile *profile(struct arena *arena, uint8_t kind)
{
    Cri__SecurityProfile *out = MESSAGE(arena, security_profile, SecurityProfile);
    out->profile_type =
        kind == PROFILE_RUNTIME_DEFAULT ? CRI__SECURITY_PROFILE__PROFILE_TYPE__RUNTIME_DEFAULT
        : kind == PROFILE_LOCALHOST     ? CRI__SECURITY_PROFILE__PROFILE_TYPE__LOCALHOST
                                        : CRI__SECURITY_PROFILE__PROFILE_TYPE__UNCONFINED;
    return out;
}

/* A container that asks for nothing is not confined: Kubernetes' own default, which images are
 * written for. (Kubelets have a switch for the other choice; a manifest can always ask for
 * RuntimeDefault.) */
static int set_seccomp(struct arena *arena, const struct container_config_input *input,
                       Cri__LinuxContainerSecurityContext *out, struct err *err)
{
    const struct security_profile *want = &input->container->security.seccomp;
    out->seccomp = profile(arena, want->kind);
    if (want->kind != PROFILE_LOCALHOST)
        return 0;
    if (!host_path_inside(want->localhost))
        return err_set(err, ERR_INVALID,
                       "seccomp profile %s: expected a path below the folder of profiles",
                       STR_SHOWN(want->localhost));
    out->seccomp->localhost_ref =
        message_str(arena, arena_strf(arena, "%.*s/seccomp/%.*s", STR_ARG(input->facts->root),
                                      STR_ARG(want->localhost)));
    return 0;
}

/* Unset is the runtime's own decision: its profile where the host has AppArmor. */
static void set_apparmor(struct arena *arena, const struct security_profile *want,
                         Cri__LinuxContainerSecurityContext *out)
{
    if (want->kind == PROFILE_UNSET)
        return;
    out->apparmor = profile(arena, want->kind);
    if (want->kind == PROFILE_LOCALHOST) /* here a name, not a path */
        out->apparmor->localhost_ref = message_str(arena, want->localhost);
}

int container_security(struct arena *arena, const struct container_config_input *input,
                       Cri__LinuxContainerSecurityContext **out, struct err *err)
{
    const struct security_context *security = &input->container->security;
    if (check_non_root(input, err) < 0)
        return -1;
    Cri__LinuxContainerSecurityContext *context =
        MESSAGE(arena, linux_container_security_context, LinuxContainerSecurityContext);
    context->privileged = security->privileged == TRI_TRUE;
    context->readonly_rootfs = security->read_only_root == TRI_TRUE;
    context->no_new_privs = security->allow_escalation == TRI_FALSE;
    context->namespace_options = namespace_options(arena, input->pod, input->maybe_target_id);
    context->selinux_options = selinux_options(arena, &security->selinux);
    context->supplemental_groups = pod_groups(arena, input->pod, &context->n_supplemental_groups);
    context->capabilities = MESSAGE(arena, capability, Capability);
    context->capabilities->n_add_capabilities = security->add_capabilities.count;
    context->capabilities->add_capabilities = message_strs(arena, security->add_capabilities);
    context->capabilities->n_drop_capabilities = security->drop_capabilities.count;
    context->capabilities->drop_capabilities = message_strs(arena, security->drop_capabilities);
    if (!context->privileged && !security->unmasked_proc)
        set_paths(arena, context);
    set_user(arena, input, context);
    set_apparmor(arena, &security->apparmor, context);
    if (set_seccomp(arena, input, context, err) < 0)
        return -1;
    *out = context;
    return 0;
}

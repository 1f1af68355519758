/* Messages that both kinds of configuration share. */
#include "node/configs_inner.h"

/* --- messages --- */

char *message_str(struct arena *arena, struct str s)
{
    return (char *)arena_str(arena, s.p ? s : STR("")).p;
}

char **message_strs(struct arena *arena, struct str_list list)
{
    char **out = arena_array(arena, char *, list.count);
    for (uint32_t i = 0; i < list.count; i++)
        out[i] = message_str(arena, list.items[i]);
    return out;
}

Cri__Int64Value *message_int(struct arena *arena, struct maybe_int value)
{
    if (!value.set)
        return NULL;
    Cri__Int64Value *out = MESSAGE(arena, int64_value, Int64Value);
    out->value = value.value;
    return out;
}

void entries_add(struct entries *entries, struct arena *arena, struct str key, struct str value)
{
    if (entries->count == entries->cap) {
        entries->cap = entries->cap ? entries->cap * 2 : 16;
        Cri__Entry **items = arena_array(arena, Cri__Entry *, entries->cap);
        if (entries->count > 0)
            memcpy(items, entries->items, entries->count * sizeof *items);
        entries->items = items;
    }
    Cri__Entry *entry = MESSAGE(arena, entry, Entry);
    entry->key = message_str(arena, key);
    entry->value = message_str(arena, value);
    entries->items[entries->count++] = entry;
}

/* --- what both have --- */

void pod_labels_add(struct entries *labels, struct arena *arena, const struct node_pod *pod)
{
    entries_add(labels, arena, STR("io.kubernetes.pod.name"), pod->name);
    entries_add(labels, arena, STR("io.kubernetes.pod.namespace"), pod->namespace_);
    entries_add(labels, arena, STR("io.kubernetes.pod.uid"), pod->uid);
}

Cri__NamespaceOption *namespace_options(struct arena *arena, const struct node_pod *pod,
                                        struct str maybe_target_id)
{
    Cri__NamespaceOption *out = MESSAGE(arena, namespace_option, NamespaceOption);
    if (pod->host_network)
        out->network = CRI__NAMESPACE_MODE__NODE;
    if (pod->host_ipc)
        out->ipc = CRI__NAMESPACE_MODE__NODE;
    out->pid = CRI__NAMESPACE_MODE__CONTAINER;
    if (pod->host_pid) {
        out->pid = CRI__NAMESPACE_MODE__NODE;
    } else if (pod->share_process_namespace) {
        out->pid = CRI__NAMESPACE_MODE__POD;
    } else if (maybe_target_id.len > 0) {
        out->pid = CRI__NAMESPACE_MODE__TARGET;
        out->target_id = message_str(arena, maybe_target_id);
    }
    return out;
}

Cri__SELinuxOption *selinux_options(struct arena *arena, const struct selinux_options *options)
{
    if (options->user.len + options->role.len + options->type.len + options->level.len == 0)
        return NULL;
    Cri__SELinuxOption *out = MESSAGE(arena, selinux_option, SELinuxOption);
    out->user = message_str(arena, options->user);
    out->role = message_str(arena, options->role);
    out->type = message_str(arena, options->type);
    out->level = message_str(arena, options->level);
    return out;
}

int64_t *pod_groups(struct arena *arena, const struct node_pod *pod, size_t *count)
{
    int64_t *groups = arena_array(arena, int64_t, (size_t)pod->supplemental_group_count + 1);
    size_t n = 0;
    if (pod->fs_group.set)
        groups[n++] = pod->fs_group.value;
    for (uint32_t i = 0; i < pod->supplemental_group_count; i++)
        groups[n++] = pod->supplemental_groups[i];
    *count = n;
    return groups;
}

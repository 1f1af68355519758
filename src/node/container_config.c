/* A container: its image, command, environment, and what the other files here add to it. */
#include "node/configs_inner.h"

/* --- command --- */

static int set_words(struct arena *arena, const struct entries *env, struct str_list words,
                     char ***out, size_t *count, struct err *err)
{
    char **items = arena_array(arena, char *, words.count);
    size_t bytes = 0;
    for (uint32_t i = 0; i < words.count; i++) {
        struct str word;
        if (env_expand(arena, env, words.items[i], false, &word, err) < 0)
            return -1;
        bytes += word.len;
        if (bytes > ENV_ALL_BYTES_MAX)
            return err_set(err, ERR_INVALID, "longer than %zu MiB", ENV_ALL_BYTES_MAX >> 20);
        items[i] = message_str(arena, word);
    }
    *out = items;
    *count = words.count;
    return 0;
}

/* --- annotations --- */

/* The container as its manifest has it, for what is passed on as it stands. */
static const json_val *container_json(const struct node_pod *pod, struct str name)
{
    static const char *const lists[] = { "containers", "initContainers", "ephemeralContainers" };
    const json_val *spec = json_get(pod->doc.root, STR("spec"));
    for (size_t i = 0; i < KV_COUNT_OF(lists); i++) {
        json_each_item(json_get(spec, str_of(lists[i])), item) {
            if (str_eq(json_str(json_get(item, STR("name"))), name))
                return item;
        }
    }
    return NULL;
}

static void add_json(struct entries *to, struct arena *arena, const char *key, const json_val *v)
{
    if (!v || (json_is_array(v) && json_count(v) == 0) || json_is_null(v))
        return;
    AUTO_BUF text = { 0 };
    json_write(v, &text);
    entries_add(to, arena, str_of(key), buf_str(&text));
}

static void add_number(struct entries *to, struct arena *arena, const char *key, int64_t n)
{
    entries_add(to, arena, str_of(key), arena_strf(arena, "%lld", (long long)n));
}

/* They let an agent that has lost the spec still stop the container properly. */
static void set_annotations(struct arena *arena, const struct container_config_input *input,
                            Cri__ContainerConfig *out)
{
    const struct node_container *container = input->container;
    const struct node_pod *pod = input->pod;
    const json_val *json = container_json(pod, container->name);
    struct entries to = { 0 };
    entries_add(&to, arena, STR("io.kubernetes.container.hash"), str_of(container->hash));
    add_number(&to, arena, "io.kubernetes.container.restartCount", input->restart_count);
    entries_add(&to, arena, STR("io.kubernetes.container.terminationMessagePath"),
                container->termination_message_path);
    entries_add(&to, arena, STR("io.kubernetes.container.terminationMessagePolicy"),
                container->termination_message_policy);
    add_number(&to, arena, "io.kubernetes.pod.terminationGracePeriod", pod->termination_grace_s);
    if (pod->deletion_grace_s.set)
        add_number(&to, arena, "io.kubernetes.pod.deletionGracePeriod",
                   pod->deletion_grace_s.value);
    add_json(&to, arena, "io.kubernetes.container.preStopHandler",
             json_path(json, "lifecycle.preStop"));
    add_json(&to, arena, "io.kubernetes.container.ports", json_get(json, STR("ports")));
    entries_add(&to, arena, STR(AGENT_ANNOTATION), STR("true"));
    out->annotations = to.items;
    out->n_annotations = to.count;
}

static void set_labels(struct arena *arena, const struct container_config_input *input,
                       Cri__ContainerConfig *out)
{
    struct entries labels = { 0 };
    pod_labels_add(&labels, arena, input->pod);
    entries_add(&labels, arena, STR("io.kubernetes.container.name"), input->container->name);
    out->labels = labels.items;
    out->n_labels = labels.count;
}

/* --- stop signal --- */

int32_t signal_number(struct str name)
{
    /* Numbered in this order from 1, not as any kernel numbers them. */
    static const char *const names[] = {
        "ABRT", "ALRM",   "BUS",  "CHLD",   "CLD",   "CONT", "FPE",  "HUP",  "ILL",
        "INT",  "IO",     "IOT",  "KILL",   "PIPE",  "POLL", "PROF", "PWR",  "QUIT",
        "SEGV", "STKFLT", "STOP", "SYS",    "TERM",  "TRAP", "TSTP", "TTIN", "TTOU",
        "URG",  "USR1",   "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ",
    };
    enum { FIRST_REAL_TIME = KV_COUNT_OF(names) + 1, RTMIN_LAST = 15, RTMAX_FIRST = 14 };
    if (!str_starts(name, STR("SIG")))
        return 0;
    name = str_sub(name, 3, name.len);
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        if (str_eqz(name, names[i]))
            return (int32_t)i + 1;
    }
    /* RTMIN, RTMIN+1 ... RTMIN+15, RTMAX-14 ... RTMAX-1, RTMAX */
    bool from_max = str_starts(name, STR("RTMAX"));
    if (!from_max && !str_starts(name, STR("RTMIN")))
        return 0;
    name = str_sub(name, 5, name.len);
    int64_t offset = 0;
    if (name.len > 0 &&
        (name.p[0] != (from_max ? '-' : '+') || name.len < 2 || !char_is_digit(name.p[1]) ||
         !str_to_i64(str_sub(name, 1, name.len), &offset) || offset < 1 ||
         offset > (from_max ? RTMAX_FIRST : RTMIN_LAST)))
        return 0;
    if (from_max)
        return (int32_t)(FIRST_REAL_TIME + RTMIN_LAST + 1 + RTMAX_FIRST - offset);
    return (int32_t)(FIRST_REAL_TIME + offset);
}

/* --- all of it --- */

static int fill(struct arena *arena, const struct container_config_input *input,
                Cri__ContainerConfig *config, struct err *err)
{
    const struct node_container *container = input->container;
    struct entries env = { 0 };
    if (container_env(arena, input, &env, err) < 0)
        return -1;
    config->envs = env.items;
    config->n_envs = env.count;
    if (set_words(arena, &env, container->command, &config->command, &config->n_command, err) < 0)
        return err_wrap(err, "command");
    if (set_words(arena, &env, container->args, &config->args, &config->n_args, err) < 0)
        return err_wrap(err, "args");
    if (container_mounts(arena, input, &env, config, err) < 0)
        return -1;
    if (container->stop_signal.len > 0) {
        config->stop_signal = signal_number(container->stop_signal);
        if (config->stop_signal == 0)
            return err_set(err, ERR_INVALID, "stop signal %s: there is no such signal",
                           STR_SHOWN(container->stop_signal));
    }
    config->linux_ = MESSAGE(arena, linux_container_config, LinuxContainerConfig);
    config->linux_->resources = container_resources(arena, input->pod, container, input->facts);
    return container_security(arena, input, &config->linux_->security_context, err);
}

int container_config(struct arena *arena, const struct container_config_input *input,
                     Cri__ContainerConfig **out, struct err *err)
{
    const struct node_container *container = input->container;
    if (log_folder_make(arena, input->pod, input->facts, container->name, err) < 0)
        return err_wrap(err, "log folder");
    Cri__ContainerConfig *config = MESSAGE(arena, container_config, ContainerConfig);
    config->metadata = MESSAGE(arena, container_metadata, ContainerMetadata);
    config->metadata->name = message_str(arena, container->name);
    config->metadata->attempt = input->restart_count;
    config->image = MESSAGE(arena, image_spec, ImageSpec);
    config->image->image = message_str(arena, input->image_ref);
    config->image->user_specified_image = message_str(arena, container->image);
    config->working_dir = message_str(arena, container->working_dir);
    config->log_path = message_str(
        arena, arena_strf(arena, "%.*s/%u.log", STR_ARG(container->name), input->restart_count));
    config->stdin_ = container->stdin_open;
    config->stdin_once = container->stdin_once;
    config->tty = container->tty;
    set_labels(arena, input, config);
    set_annotations(arena, input, config);
    if (fill(arena, input, config, err) < 0)
        return -1;
    *out = config;
    return 0;
}

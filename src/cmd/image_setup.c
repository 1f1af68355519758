#include "cmd/image_setup.h"

#include "base/file.h"
#include "cmd/version.h"
#include "codec/duration.h"

#include <string.h>

const char *const set_combine_choices[] = { "all", "any", NULL };
const char *const rule_combine_choices[] = { "any", "all", NULL };
const char *const version_choices[] = { "lenient", "strict", NULL };
const char *const image_choices[] = { "on", "platform", "off", NULL };
const char *const resolve_choices[] = { "fail", "ignore", NULL };
const char *const unknown_choices[] = { "prefer-known", "allow", "deny", NULL };
const char *const unobserved_choices[] = { "predict", "reject", NULL };
const char *const nfg_choices[] = { "off", "publish", "authoritative", NULL };

#define LIST_FLAG_MAX 256
#define FILE_BYTES_MAX ((size_t)4 << 20)

static bool has_flag(const struct invocation *inv, const char *name)
{
    for (size_t i = 0; i < inv->command->flag_count; i++) {
        if (strcmp(inv->command->flags[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Which of the choices; 0 if the command does not have the flag. */
static uint32_t choice(const struct invocation *inv, const char *name, const char *const *choices)
{
    const char *value = has_flag(inv, name) ? flag_value(inv, name) : NULL;
    for (uint32_t i = 0; value && choices[i]; i++) {
        if (strcmp(choices[i], value) == 0)
            return i;
    }
    return 0;
}

static bool is_set_to(const struct invocation *inv, const char *name, const char *value)
{
    return has_flag(inv, name) && strcmp(flag_value(inv, name), value) == 0;
}

/* Given several times, or several in one with commas between. */
static struct str_list list(struct arena *arena, const struct invocation *inv, const char *name)
{
    const char *values[LIST_FLAG_MAX];
    VEC(struct str) items = { 0 };
    size_t count = has_flag(inv, name) ? flag_values(inv, name, values, LIST_FLAG_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        struct str rest = str_of(values[i]), item;
        for (bool more = true; more;) {
            struct str tail = STR_NONE;
            more = str_cut(rest, ',', &item, &tail);
            item = str_trim(item);
            if (item.len)
                vec_push(&items, arena_str(arena, item));
            rest = tail;
        }
    }
    struct str *out = arena_array(arena, struct str, items.count);
    if (items.count)
        memcpy(out, items.items, items.count * sizeof *out);
    struct str_list result = { out, (uint32_t)items.count };
    vec_done(&items);
    return result;
}

static int number(const struct invocation *inv, const char *name, int64_t least, int64_t *out)
{
    if (!has_flag(inv, name))
        return EXIT_DONE;
    struct str text = str_of(flag_value(inv, name));
    if (str_to_i64(text, out) && *out >= least && *out <= INT32_MAX)
        return EXIT_DONE;
    return print_complaint(inv->command->name, EXIT_USAGE,
                           "--%s %s: expected a number from %lld to %d", name, STR_SHOWN(text),
                           (long long)least, INT32_MAX);
}

bool image_setup_wanted(const struct invocation *inv)
{
    return strcmp(flag_value(inv, "image-compatibility"), "off") != 0;
}

int image_setup_read(struct image_setup *setup, const struct invocation *inv)
{
    struct compat_settings *s = &setup->settings;
    int64_t ttl_s = 0, stale_s = 0, entries = 0, sets = 0, idle_s = 0;
    int code;
    *setup = (struct image_setup){ 0 };
    if ((code = number(inv, "cache-ttl-seconds", 0, &ttl_s)) != EXIT_DONE ||
        (code = number(inv, "stale-max-seconds", 1, &stale_s)) != EXIT_DONE ||
        (code = number(inv, "max-cache-size", 1, &entries)) != EXIT_DONE ||
        (code = number(inv, "max-nfgs-per-image", 1, &sets)) != EXIT_DONE ||
        (code = number(inv, "nfg-idle-seconds", 1, &idle_s)) != EXIT_DONE)
        return code;
    *s = (struct compat_settings){
        .rules = { .sets = choice(inv, "set-combine", set_combine_choices) ? SETS_ANY : SETS_ALL,
                   .rules = { .combine = choice(inv, "rule-combine", rule_combine_choices)
                                             ? RULES_ALL
                                             : RULES_ANY,
                              .strict_versions =
                                  choice(inv, "version-parsing", version_choices) == 1 },
                   .tags = list(&setup->arena, inv, "image-tags") },
        .on_resolve_error =
            (enum resolve_error_policy)choice(inv, "on-resolve-error", resolve_choices),
        .unknown_features = (enum unknown_policy)choice(inv, "unknown-features", unknown_choices),
        .unobserved_node =
            (enum unobserved_policy)choice(inv, "unobserved-node", unobserved_choices),
        .platform_only = choice(inv, "image-compatibility", image_choices) == 1,
        .pull_secrets = is_set_to(inv, "pull-secrets", "true"),
        .launch_repositories = list(&setup->arena, inv, "launch-repositories"),
        .cache_disabled = is_set_to(inv, "cache-enabled", "false"),
        .cache_ttl_ns = ttl_s * DURATION_SECOND,
        .stale_max_ns = stale_s * DURATION_SECOND,
        .cache_entries_max = (uint32_t)entries,
        .nfg_mode = (enum nfg_mode)choice(inv, "nfg-mode", nfg_choices),
        .sets_max = (uint32_t)sets,
        .nfg_idle_ns = idle_s * DURATION_SECOND,
        .nfd_namespace =
            has_flag(inv, "nfd-namespace") ? str_of(flag_value(inv, "nfd-namespace")) : STR(""),
    };
    return EXIT_DONE;
}

/* --- the registry --- */

static int read_keys(struct image_setup *setup, const struct invocation *inv, struct log *log)
{
    const char *path = flag_value(inv, "registry-config");
    AUTO_BUF text = { 0 };
    struct err err;
    uint32_t skipped = 0;
    if (!path)
        return EXIT_DONE;
    if (file_read(path, KEYRING_BYTES_MAX, &text, &err) < 0)
        return print_complaint(inv->command->name, EXIT_ENVIRONMENT, "--registry-config: %s",
                               err.text);
    int rc = keyring_read(path, buf_str(&text), KEYRING_CONFIG, &setup->maybe_keys, &skipped, &err);
    explicit_bzero(text.p, text.len);
    if (rc < 0)
        return print_complaint(inv->command->name, EXIT_NO, "%s", err.text);
    if (skipped)
        log_warn(log, "credential helpers are not run: entries without a secret are passed over",
                 LOG_Z("file", path), LOG_INT("entries", skipped));
    return EXIT_DONE;
}

int image_setup_registry(struct image_setup *setup, const struct invocation *inv,
                         const struct clock *clock, struct metrics *maybe_metrics, struct log *log)
{
    const char *ca = flag_value(inv, "registry-ca");
    AUTO_BUF pem = { 0 };
    struct err err;
    int code = read_keys(setup, inv, log);
    if (code != EXIT_DONE)
        return code;
    if (ca && file_read(ca, FILE_BYTES_MAX, &pem, &err) < 0)
        return print_complaint(inv->command->name, EXIT_ENVIRONMENT, "--registry-ca: %s", err.text);
    struct registry_options options = {
        .clock = clock,
        .maybe_log = log,
        .maybe_metrics = maybe_metrics,
        .user_agent = "karve/" KARVE_VERSION,
        .ca_pem = buf_str(&pem),
        .plain_http = list(&setup->arena, inv, "plain-http"),
        .allowed_hosts = list(&setup->arena, inv, "allowed-registries"),
        .mirrors = list(&setup->arena, inv, "registry-mirror"),
        .seed = (uint64_t)clock_wall_us(clock),
    };
    if (registry_new(options, &setup->maybe_registry, &err) < 0)
        return print_complaint(inv->command->name,
                               err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s",
                               err.text);
    return EXIT_DONE;
}

/* --- the service --- */

int image_setup_service(struct image_setup *setup, struct image_service_options options,
                        struct err *err)
{
    setup->source =
        (struct image_source_registry){ .registry = setup->maybe_registry,
                                        .sets_max = setup->settings.sets_max,
                                        .platform_only = setup->settings.platform_only };
    struct compat_service_options service = {
        .source = image_source_registry(&setup->source),
        .store = options.store,
        .clock = options.clock,
        .maybe_metrics = options.maybe_metrics,
        .maybe_log = options.maybe_log,
        .maybe_keys = setup->maybe_keys,
        .settings = setup->settings,
        .on_change = options.on_change,
        .ctx = options.ctx,
    };
    return compat_service_new(service, &setup->maybe_service, err);
}

void image_setup_feed(struct image_setup *setup, const struct image_service_options *options,
                      const struct image_feed *feeds, uint32_t count)
{
    KV_ASSERT(count <= KV_COUNT_OF(setup->informers));
    setup->maybe_informers = informer_set_new(options->clock);
    for (uint32_t i = 0; i < count; i++) {
        setup->informers[i] = informer_new(
            (struct informer_options){ .store = options->store,
                                       .kind = feeds[i].kind,
                                       .field_selector = str_of(feeds[i].fields),
                                       .label_selector = str_of(feeds[i].labels),
                                       .clock = options->clock,
                                       .seed = (uint64_t)clock_wall_us(options->clock) + i });
        informer_on_change(setup->informers[i], compat_service_observe, setup->maybe_service);
        informer_set_add(setup->maybe_informers, setup->informers[i]);
    }
    informer_set_start(setup->maybe_informers);
}

bool image_setup_synced(struct image_setup *setup)
{
    for (size_t i = 0; i < KV_COUNT_OF(setup->informers); i++) {
        struct err err;
        if (!setup->informers[i] || informer_synced(setup->informers[i]))
            continue;
        if (!informer_trouble(setup->informers[i], &err) || err.kind != ERR_NOT_FOUND)
            return false; /* a kind that the server does not have is not waited for */
    }
    return true;
}

bool image_setup_trouble(struct image_setup *setup, struct err *out)
{
    for (size_t i = 0; i < KV_COUNT_OF(setup->informers); i++) {
        if (setup->informers[i] && informer_trouble(setup->informers[i], out) &&
            out->kind != ERR_NOT_FOUND)
            return true;
    }
    return false;
}

void image_setup_cancel(struct image_setup *setup)
{
    if (setup->maybe_registry)
        registry_cancel(setup->maybe_registry);
    if (setup->maybe_informers)
        informer_set_free(take(&setup->maybe_informers));
}

void image_setup_done(struct image_setup *setup)
{
    image_setup_cancel(setup);
    for (size_t i = 0; i < KV_COUNT_OF(setup->informers); i++) {
        if (setup->informers[i])
            informer_free(setup->informers[i]);
    }
    compat_service_free(setup->maybe_service);
    registry_free(setup->maybe_registry);
    keyring_unref(setup->maybe_keys);
    arena_done(&setup->arena);
    *setup = (struct image_setup){ 0 };
}

/* What the control plane does unless told otherwise, and how it is told: a table of names, each with
 * the two functions that read and write its value. Feature gates that upstream has and karve does not
 * are accepted as long as they ask for what karve does anyway, so that existing flags keep working.
 */
#include "control/settings.h"

#include "codec/duration.h"

#define WAIT_MAX_NS (24 * DURATION_HOUR) /* no wait of ours is usefully longer */
#define THREADS_MAX 256

const struct control_settings control_settings_default = {
    .batch_idle_ns = DURATION_SECOND,
    .batch_max_ns = 10 * DURATION_SECOND,
    .health = { .policy = HEALTH_FIRST_SUCCESS, .window = 10, .threshold = 2 },
    .node_overlays = true,
    .plan_effort = PLAN_EFFORT_AUTO,
    .threads_max = 16,
};

/* --- values --- */

static int wait_parse(struct str value, int64_t min_ns, int64_t *out, struct err *err)
{
    int64_t ns;
    if (duration_parse(value, &ns, err) < 0)
        return -1;
    if (ns < min_ns || ns > WAIT_MAX_NS)
        return err_set(err, ERR_INVALID, "expected a duration from %s to 24h, found %s",
                       min_ns ? "1ms" : "0s", STR_SHOWN(value));
    *out = ns;
    return 0;
}

static void wait_format(int64_t ns, struct buf *out)
{
    char text[DURATION_TEXT_MAX];
    duration_format(ns, text);
    buf_addz(out, text);
}

/* The index of the word, or -1 with an error. `words` ends in NULL. */
static int word_parse(struct str value, const char *const *words, struct err *err)
{
    AUTO_BUF list = { 0 };
    for (int i = 0; words[i]; i++) {
        if (str_eqz(value, words[i]))
            return i;
        buf_addf(&list, "%s\"%s\"", i ? ", " : "", words[i]);
    }
    return err_set(err, ERR_INVALID, "expected one of %s, found %s", buf_str(&list).p,
                   STR_SHOWN(value));
}

static int count_parse(struct str value, uint32_t max, uint32_t *out, struct err *err)
{
    int64_t n;
    if (!str_to_i64(value, &n) || n < 1 || n > max)
        return err_set(err, ERR_INVALID, "expected a number from 1 to %u, found %s", max,
                       STR_SHOWN(value));
    *out = (uint32_t)n;
    return 0;
}

/* --- settings --- */

static int parse_batch_idle(struct control_settings *s, struct str value, struct err *err)
{
    return wait_parse(value, DURATION_SECOND / 1000, &s->batch_idle_ns, err);
}
static void format_batch_idle(const struct control_settings *s, struct buf *out)
{
    wait_format(s->batch_idle_ns, out);
}

static int parse_batch_max(struct control_settings *s, struct str value, struct err *err)
{
    return wait_parse(value, DURATION_SECOND / 1000, &s->batch_max_ns, err);
}
static void format_batch_max(const struct control_settings *s, struct buf *out)
{
    wait_format(s->batch_max_ns, out);
}

static const char *const preference_words[] = { "Respect", "Ignore", NULL };
static int parse_preferences(struct control_settings *s, struct str value, struct err *err)
{
    int word = word_parse(value, preference_words, err);
    if (word >= 0)
        s->preferences = (enum preference_policy)word;
    return word < 0 ? -1 : 0;
}
static void format_preferences(const struct control_settings *s, struct buf *out)
{
    buf_addz(out, preference_words[s->preferences]);
}

static const char *const min_values_words[] = { "Strict", "BestEffort", NULL };
static int parse_min_values(struct control_settings *s, struct str value, struct err *err)
{
    int word = word_parse(value, min_values_words, err);
    if (word >= 0)
        s->min_values = (enum min_values_policy)word;
    return word < 0 ? -1 : 0;
}
static void format_min_values(const struct control_settings *s, struct buf *out)
{
    buf_addz(out, min_values_words[s->min_values]);
}

static const char *const health_words[] = { "first-success", "window", NULL };
static int parse_health(struct control_settings *s, struct str value, struct err *err)
{
    int word = word_parse(value, health_words, err);
    if (word >= 0)
        s->health.policy = (enum health_policy)word;
    return word < 0 ? -1 : 0;
}
static void format_health(const struct control_settings *s, struct buf *out)
{
    buf_addz(out, health_words[s->health.policy]);
}

static int parse_window(struct control_settings *s, struct str value, struct err *err)
{
    return count_parse(value, HEALTH_WINDOW_MAX, &s->health.window, err);
}
static void format_window(const struct control_settings *s, struct buf *out)
{
    buf_addf(out, "%u", s->health.window);
}

static int parse_threshold(struct control_settings *s, struct str value, struct err *err)
{
    return count_parse(value, HEALTH_WINDOW_MAX, &s->health.threshold, err);
}
static void format_threshold(const struct control_settings *s, struct buf *out)
{
    buf_addf(out, "%u", s->health.threshold);
}

static int parse_cooldown(struct control_settings *s, struct str value, struct err *err)
{
    return wait_parse(value, 0, &s->registration_cooldown_ns, err);
}
static void format_cooldown(const struct control_settings *s, struct buf *out)
{
    wait_format(s->registration_cooldown_ns, out);
}

static int parse_effort(struct control_settings *s, struct str value, struct err *err)
{
    int64_t n;
    if (str_eqz(value, "auto")) {
        s->plan_effort = PLAN_EFFORT_AUTO;
        return 0;
    }
    if (!str_to_i64(value, &n) || n < 0)
        return err_set(err, ERR_INVALID, "expected \"auto\" or a number of steps, found %s",
                       STR_SHOWN(value));
    s->plan_effort = (uint64_t)n;
    return 0;
}
static void format_effort(const struct control_settings *s, struct buf *out)
{
    if (s->plan_effort == PLAN_EFFORT_AUTO)
        buf_addz(out, "auto");
    else
        buf_addf(out, "%llu", (unsigned long long)s->plan_effort);
}

static int parse_threads(struct control_settings *s, struct str value, struct err *err)
{
    return count_parse(value, THREADS_MAX, &s->threads_max, err);
}
static void format_threads(const struct control_settings *s, struct buf *out)
{
    buf_addf(out, "%u", s->threads_max);
}

/* --- feature gates: "NodeRepair=true,NodeOverlay=false" --- */

static const struct gate {
    const char *name;
    size_t offset; /* of a bool in struct control_settings; SIZE_MAX: karve always does `fixed` */
    bool fixed;
} gates[] = {
    { "NodeRepair", offsetof(struct control_settings, node_repair), false },
    { "NodeOverlay", offsetof(struct control_settings, node_overlays), false },
    { "ReservedCapacity", SIZE_MAX, true },
    { "SpotToSpotConsolidation", SIZE_MAX, false },
    { "StaticCapacity", SIZE_MAX, false },
    { "CapacityBuffer", SIZE_MAX, false },
};

static int gate_parse(struct control_settings *s, struct str name, struct str value,
                      struct err *err)
{
    static const char *const words[] = { "false", "true", NULL };
    AUTO_BUF known = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(gates); i++) {
        const struct gate *gate = &gates[i];
        buf_addf(&known, "%s%s", i ? ", " : "", gate->name);
        if (!str_eqz(name, gate->name))
            continue;
        int word = word_parse(value, words, err);
        if (word < 0)
            return err_wrap(err, "%s", gate->name);
        if (gate->offset == SIZE_MAX && (word == 1) != gate->fixed)
            return err_set(err, ERR_INVALID, "%s can only be %s in karve", gate->name,
                           words[gate->fixed]);
        if (gate->offset != SIZE_MAX)
            *(bool *)((char *)s + gate->offset) = word == 1;
        return 0;
    }
    return err_set(err, ERR_INVALID, "unknown feature gate %s; there are %s", STR_SHOWN(name),
                   buf_str(&known).p);
}

static int parse_gates(struct control_settings *s, struct str value, struct err *err)
{
    struct control_settings chosen = *s; /* all of them, or none */
    struct str rest = value;
    while (rest.len) {
        struct str one, name, state;
        if (!str_cut(rest, ',', &one, &rest))
            rest = STR("");
        one = str_trim(one);
        if (!one.len)
            continue;
        if (!str_cut(one, '=', &name, &state))
            return err_set(err, ERR_INVALID, "expected NAME=true or NAME=false, found %s",
                           STR_SHOWN(one));
        if (gate_parse(&chosen, str_trim(name), str_trim(state), err) < 0)
            return -1;
    }
    *s = chosen;
    return 0;
}

static void format_gates(const struct control_settings *s, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < KV_COUNT_OF(gates); i++) {
        if (gates[i].offset == SIZE_MAX)
            continue;
        bool on = *(const bool *)((const char *)s + gates[i].offset);
        buf_addf(out, "%s%s=%s", first ? "" : ",", gates[i].name, on ? "true" : "false");
        first = false;
    }
}

/* --- the table --- */

const struct control_setting control_setting_table[] = {
    { "batch-idle-duration", "DURATION", "Plan once no new pod has come for so long.", true },
    { "batch-max-duration", "DURATION", "Plan after so long even if pods keep coming.", true },
    { "preference-policy", "Respect|Ignore", "Whether preferences of pods count.", true },
    { "min-values-policy", "Strict|BestEffort", "Whether minValues may be given up.", true },
    { "registration-health-policy", "first-success|window",
      "How NodeRegistrationHealthy is judged for pools that do not say.", false },
    { "registration-health-window", "COUNT", "With window: how many results are remembered.",
      false },
    { "registration-health-threshold", "COUNT", "With window: so many failures are unhealthy.",
      false },
    { "registration-cooldown", "DURATION",
      "First wait before a pool whose nodes do not join is tried again; 0s: no wait.", false },
    { "feature-gates", "NAME=BOOL,...", "Optional features: NodeRepair, NodeOverlay.", true },
    { "plan-effort", "auto|STEPS", "Work spent on making a plan cheaper.", false },
    { "threads", "COUNT", "Threads of one controller, at most.", false },
};
const uint32_t control_setting_count = KV_COUNT_OF(control_setting_table);

static const struct {
    int (*parse)(struct control_settings *s, struct str value, struct err *err);
    void (*format)(const struct control_settings *s, struct buf *out);
} readers[] = {
    /* in the order of the table */
    { parse_batch_idle, format_batch_idle },
    { parse_batch_max, format_batch_max },
    { parse_preferences, format_preferences },
    { parse_min_values, format_min_values },
    { parse_health, format_health },
    { parse_window, format_window },
    { parse_threshold, format_threshold },
    { parse_cooldown, format_cooldown },
    { parse_gates, format_gates },
    { parse_effort, format_effort },
    { parse_threads, format_threads },
};
_Static_assert(KV_COUNT_OF(readers) == KV_COUNT_OF(control_setting_table), "one reader each");

static int no_such_setting(struct str name, struct err *err)
{
    const char *near = NULL;
    size_t best = 5; /* names are long: a missing word of one is still that name */
    for (uint32_t i = 0; i < control_setting_count; i++) {
        size_t distance = str_distance(name, str_of(control_setting_table[i].name), best - 1);
        if (distance < best) {
            best = distance;
            near = control_setting_table[i].name;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "unknown setting%s%s%s", near ? ", did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

int control_setting_parse(struct control_settings *settings, struct str name, struct str value,
                          struct err *err)
{
    for (uint32_t i = 0; i < control_setting_count; i++) {
        if (str_eqz(name, control_setting_table[i].name))
            return readers[i].parse(settings, value, err);
    }
    return no_such_setting(name, err);
}

void control_setting_format(const struct control_settings *settings, uint32_t ix, struct buf *out)
{
    KV_ASSERT(ix < control_setting_count);
    readers[ix].format(settings, out);
}

/* --- what only upstream has --- */

const struct karpenter_only_setting karpenter_only_table[] = {
    { "karpenter-service", NULL, "no service of its own is needed" },
    { "memory-limit", NULL, "there is no garbage collector to be told of it" },
    { "cpu-requests", NULL, "--threads says how much is done at once" },
    { "enable-profiling", "false|0|f", "there is no profile to be asked for; perf shows one" },
    { "disable-controller-warmup", "true|1|t", "a replica that does not lead reads nothing" },
    { "disable-cluster-state-observability", "false|0|f",
      "metrics of the cluster's state are always there" },
    { "log-output-paths", "stdout|stderr", "the log is written to stderr" },
    { "log-error-output-paths", "stdout|stderr", "the log is written to stderr" },
    { "ignore-dra-requests", "true|1|t",
      "no node is launched for pods with resource claims (dynamic resource allocation)" },
    { "scheduler-config", "", "only what pods say of their topology spread counts" },
};
const uint32_t karpenter_only_count = KV_COUNT_OF(karpenter_only_table);

int karpenter_only_check(uint32_t ix, struct str value, struct err *err)
{
    KV_ASSERT(ix < karpenter_only_count);
    const struct karpenter_only_setting *setting = &karpenter_only_table[ix];
    if (!setting->fits || !value.len)
        return 0;
    struct str rest = str_of(setting->fits), word;
    for (bool more = true; more;) {
        more = str_cut(rest, '|', &word, &rest);
        if (str_eq(word, value))
            return 0;
    }
    return err_set(err, ERR_INVALID, "%s %s is not for karve: %s", setting->name, STR_SHOWN(value),
                   setting->instead);
}

void control_variable(const char *name, struct buf *out)
{
    for (; *name; name++)
        buf_addc(out, *name == '-' ? '_' : (char)(*name & ~0x20));
}

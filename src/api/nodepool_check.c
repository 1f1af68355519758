/* What is wrong with a NodePool although its schema holds: its run-time validation, and what would
 * surprise its owner.
 *
 * The surprise is budgets. A budget with a schedule limits disruption only while one of its windows
 * is open; outside of them it counts as no limit, not as "not allowed". The check follows the
 * windows of all budgets of one reason through a year and reports the first moment that none
 * covers.
 */
#include "api/nodepool.h"

#include "codec/cron.h"
#include "codec/duration.h"

/* --- the template --- */

static void labels_check(const struct nodepool *pool, const struct place *template_place,
                         struct report *report)
{
    const struct label_rules *rules =
        label_rules_for(pool->spec.template.spec.node_class_ref.group);
    struct place meta = place_member(template_place, "metadata"),
                 list = place_member(&meta, "labels");

    json_each_member(list.found ? list.at : NULL, label, value) {
        struct str key = json_key(label), domain, name;
        struct place here = place_key(&list, label, value);
        const char *wrong = label_key_problem(key);
        str_cut(key, '/', &domain, &name);
        if (wrong)
            place_error(report, &here, "the key %s", wrong);
        else if (label_is_restricted(rules, label_normalise(key)) &&
                 !str_ends(domain, STR("karpenter.sh")) && !str_eqz(key, LABEL_HOSTNAME))
            place_error(report, &here, "labels of the domain %.*s are restricted", STR_ARG(domain));
    }
}

/* --- budgets --- */

/* A leap year that starts on a Monday: every date and every weekday occurs in it. */
#define YEAR_START_S ((int64_t)1704067200) /* 2024-01-01T00:00:00Z */
#define YEAR_END_S (YEAR_START_S + (int64_t)366 * 86400)
/* Budgets that are active for a minute every minute need half a million steps to cover the year. A
 * pool with fifty of them may be judged by its first days. */
#define WINDOW_STEPS_MAX 600000

struct window {
    struct cron cron;
    int64_t length_s;
    uint32_t budget_ix;
};

struct windows {
    struct window items[64];
    uint32_t count;
};

static bool budget_applies(const struct budget *budget, const char *reason)
{
    for (uint32_t i = 0; i < budget->reasons.count; i++) {
        if (str_eqz(budget->reasons.items[i], reason))
            return true;
    }
    return budget->reasons.count == 0;
}

/* The budgets of a reason as windows. False: one of them has no schedule (it is always active), or
 * something about them is wrong and has been reported as such. */
static bool windows_of(const struct nodepool_disruption *disruption, const char *reason,
                       struct windows *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < disruption->budgets.count; i++) {
        const struct budget *budget = &disruption->budgets.items[i];
        struct window *w = &out->items[out->count];
        if (!budget_applies(budget, reason))
            continue;
        if (!budget->schedule.p || !budget->duration.set || out->count == KV_COUNT_OF(out->items) ||
            cron_parse(budget->schedule, &w->cron, NULL) < 0)
            return false;
        w->length_s = budget->duration.ns / DURATION_SECOND;
        w->budget_ix = i;
        out->count++;
    }
    return true;
}

/* How far the windows that are open at t reach; t itself if none is. */
static int64_t covered_until(const struct windows *windows, int64_t t)
{
    int64_t until = t, start;
    for (uint32_t i = 0; i < windows->count; i++) {
        const struct window *w = &windows->items[i];
        /* The latest that has begun reaches furthest. */
        if (cron_previous(&w->cron, t + 1, &start) && start + w->length_s > until)
            until = start + w->length_s;
    }
    return until;
}

static int64_t next_opening(const struct windows *windows, int64_t t)
{
    int64_t first = INT64_MAX, start;
    for (uint32_t i = 0; i < windows->count; i++) {
        const struct window *w = &windows->items[i];
        if (w->length_s > 0 && cron_next(&w->cron, t, &start) && start < first)
            first = start;
    }
    return first;
}

/* The first gap of the year that no window covers. */
static bool first_gap(const struct windows *windows, int64_t *from_s, int64_t *to_s)
{
    int64_t t = YEAR_START_S;
    for (uint32_t steps = 0; t < YEAR_END_S && steps < WINDOW_STEPS_MAX;
         steps += windows->count + 1) {
        int64_t until = covered_until(windows, t);
        if (until == t) {
            *from_s = t;
            *to_s = next_opening(windows, t);
            return true;
        }
        t = until;
    }
    return false;
}

static void moment_format(int64_t unix_s, struct buf *out)
{
    static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char *const months[] = { "January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December" };
    struct civil c = civil_of(unix_s);
    buf_addf(out, "%s %d %s %02d:%02d", days[c.weekday], c.day, months[c.month - 1], c.hour,
             c.minute);
}

static void schedules_format(const struct nodepool_disruption *disruption,
                             const struct windows *windows, struct buf *out)
{
    for (uint32_t i = 0; i < windows->count; i++) {
        const struct budget *budget = &disruption->budgets.items[windows->items[i].budget_ix];
        char length[DURATION_TEXT_MAX];
        duration_format_short(budget->duration.ns, length);
        buf_addf(out, "%s%s for %s", i ? ", " : "", STR_SHOWN(budget->schedule), length);
    }
}

static void gap_report(const struct nodepool_disruption *disruption, const char *reasons,
                       const struct windows *windows, int64_t from_s, int64_t to_s,
                       const struct place *place, struct report *report)
{
    AUTO_BUF when = { 0 };
    AUTO_BUF schedules = { 0 };

    if (windows->count == 0) {
        place_warning(report, place, "no budget is about %s: nothing limits that disruption",
                      reasons);
        return;
    }
    schedules_format(disruption, windows, &schedules);
    moment_format(from_s, &when);
    if (to_s < YEAR_END_S) {
        buf_addz(&when, " to ");
        moment_format(to_s, &when);
    }
    place_warning(report, place,
                  "outside the schedule %s nothing limits disruption (%s), for example from %s "
                  "UTC; add a budget without a schedule to keep a limit there",
                  buf_str(&schedules).p, reasons, buf_str(&when).p);
}

static bool same_windows(const struct windows *a, const struct windows *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->items[i].budget_ix != b->items[i].budget_ix)
            return false;
    }
    return true;
}

/* One warning for each set of budgets that leaves a gap, naming all the reasons it is for. */
static void gaps_check(const struct nodepool_disruption *disruption, const struct place *place,
                       struct report *report)
{
    struct windows of_reason[DISRUPTION_REASON_COUNT];
    bool open[DISRUPTION_REASON_COUNT], told[DISRUPTION_REASON_COUNT] = { false };

    for (size_t r = 0; r < DISRUPTION_REASON_COUNT; r++)
        open[r] = windows_of(disruption, disruption_reasons[r], &of_reason[r]);
    for (size_t r = 0; r < DISRUPTION_REASON_COUNT; r++) {
        AUTO_BUF names = { 0 };
        int64_t from_s = 0, to_s = 0;
        if (told[r] || !open[r] || !first_gap(&of_reason[r], &from_s, &to_s))
            continue;
        for (size_t other = r; other < DISRUPTION_REASON_COUNT; other++) {
            if (!open[other] || !same_windows(&of_reason[r], &of_reason[other]))
                continue;
            told[other] = true;
            buf_addf(&names, "%s%s", names.len ? ", " : "", disruption_reasons[other]);
        }
        gap_report(disruption, buf_str(&names).p, &of_reason[r], from_s, to_s, place, report);
    }
}

static void budgets_check(const struct nodepool *pool, const struct place *spec,
                          struct report *report)
{
    const struct nodepool_disruption *disruption = &pool->spec.disruption;
    struct place parent = place_member(spec, "disruption"), list = place_member(&parent, "budgets");
    struct cron cron;
    int64_t at_s;

    if (!list.found)
        return; /* the default: always 10% */
    uint32_t ix = 0;
    json_each_item(list.at, item) {
        const struct budget *budget = &disruption->budgets.items[ix];
        struct place here = place_item(&list, ix++, item),
                     schedule = place_member(&here, "schedule"),
                     duration = place_member(&here, "duration");
        if (budget->schedule.p && cron_parse(budget->schedule, &cron, NULL) == 0 &&
            !cron_next(&cron, YEAR_START_S, &at_s))
            place_warning(report, &schedule,
                          "%s names a day that never comes, so the budget is never active",
                          STR_SHOWN(budget->schedule));
        if (duration.found && budget->duration.set && budget->duration.ns == 0)
            place_warning(report, &duration, "is 0, so the budget is never active");
    }
    gaps_check(disruption, &list, report);
}

/* --- all of it --- */

static const struct annotation_rule annotations[] = {
    { "karve.io/launch-timeout", NULL },
    { "karve.io/registration-timeout", NULL },
    { "karve.io/initialization-timeout", NULL },
    { "karve.io/registration-health-policy",
      (const char *const[]){ "first-success", "window", NULL } },
};

void nodepool_check(const struct object *object, const json_val *root, struct report *report)
{
    const struct nodepool *pool = nodepool_of(object);
    struct place top = place_root(root), spec = place_member(&top, "spec"),
                 template = place_member(&spec, "template"),
                 node_spec = place_member(&template, "spec");

    annotations_check(object, root, annotations, KV_COUNT_OF(annotations), report);
    budgets_check(pool, &spec, report);
    labels_check(pool, &template, report);
    claim_node_spec_check(&pool->spec.template.spec, &pool->spec.template.meta.labels, &node_spec,
                          report);
}

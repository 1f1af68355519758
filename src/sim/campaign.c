#include "sim/campaign.h"

#include "api/kinds.h"
#include "sim/chaos.h"

/* Longer than any timeout that the control plane waits for; then long enough for several of them in a
 * row. */
#define QUIET_NS ((int64_t)20 * 60 * 1000000000)
#define SETTLE_NS ((int64_t)12 * 3600 * 1000000000)

/* --- a run --- */

/* What an action began that somebody has to end: nothing comes to rest while a zone is dry. */
static void mend(struct sim_cloud *cloud, const struct action *a)
{
    switch (a->kind) {
    case ACTION_DROUGHT:
        sim_cloud_drought(cloud, &a->offering.match, false);
        break;
    case ACTION_OUTAGE:
        sim_cloud_outage(cloud, a->zone, false);
        break;
    case ACTION_BREAK:
        sim_cloud_break(cloud, a->broken.node_class, a->broken.what, false);
        break;
    case ACTION_SAY:
    case ACTION_APPLY:
    case ACTION_DELETE:
    case ACTION_SCALE:
    case ACTION_PRICE:
    case ACTION_KILL:
    case ACTION_CRASH:
    case ACTION_FAULTS:
        break;
    }
}

static void mend_all(const struct world_parts *world, uint64_t seed)
{
    const struct scenario *s = world->scenario;
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    const struct action *random = chaos_generate(&arena, s, seed, &count);
    for (uint32_t i = 0; i < count; i++)
        mend(world->cloud, &random[i]);
    for (uint32_t i = 0; i < s->timeline_count; i++)
        mend(world->cloud, &s->timeline[i]);
}

static uint64_t store_hash(struct embedded *e)
{
    AUTO_BUF text = { 0 };
    embedded_dump(e, &text);
    return kv_hash(text.p, text.len);
}

static void judge(const struct finding *maybe_finding, struct arena *arena, struct run_result *out)
{
    if (!maybe_finding)
        return;
    out->broken = true;
    out->finding = *maybe_finding;
    out->finding.what = arena_str(arena, maybe_finding->what);
}

/* Where something comes every other minute, there is no rest to come to. */
static bool may_rest(const struct world_parts *world)
{
    struct object_list crons;
    struct err err;
    if (store_list(world->store, &cron_job_kind, NULL, &crons, &err) < 0)
        return true;
    bool none = crons.count == 0;
    object_list_done(&crons);
    return none;
}

/* Faults are off and what was broken is mended: it comes to rest, and is as it should be. */
static void judge_rest(struct world *w, struct arena *arena, struct run_result *out)
{
    const struct world_parts *parts = world_parts(w);
    bool settled = world_settle(w, QUIET_NS, SETTLE_NS);
    judge(world_broken(w), arena, out);
    if (!out->broken)
        judge(world_check_rest(w), arena, out);
    if (out->broken || settled || !may_rest(parts))
        return;
    struct finding restless = {
        .rule = 7,
        .step = parts->step,
        .at_ns = clock_mono_ns(parts->clock),
        .what = arena_strf(arena, "it does not come to rest; the control plane's last write: %s",
                           faults_last_write(parts->faults)),
    };
    judge(&restless, arena, out);
}

int scenario_run(struct run_options options, struct arena *arena, struct run_result *out,
                 struct err *err)
{
    AUTO(world) w =
        world_new((struct world_options){ .scenario = options.scenario,
                                          .seed = options.seed,
                                          .check = !options.no_check,
                                          .doubt = options.doubt,
                                          .maybe_record = options.maybe_record,
                                          .maybe_log = options.maybe_log,
                                          .die_at = options.die_at,
                                          .die_after_effect = options.die_after_effect },
                  err);
    if (!w)
        return -1;
    const struct world_parts *parts = world_parts(w);
    bool stopped = false;
    *out = (struct run_result){ 0 };
    while (!stopped && world_step(w))
        stopped = options.progress && !options.progress(options.progress_ctx, parts);
    judge(world_broken(w), arena, out);
    if (options.maybe_record) { /* what follows is for the judge, not for the reader */
        record_sample(options.maybe_record, parts);
        record_close(options.maybe_record);
    }
    if (!out->broken && !stopped && !options.no_check) {
        mend_all(parts, options.seed);
        judge_rest(w, arena, out);
    }
    out->steps = parts->step;
    out->crashes = parts->crashes;
    out->calls = faults_calls(parts->faults);
    out->hash = store_hash(parts->embedded);
    return 0;
}

/* --- shrinking --- */

struct shrinking {
    struct scenario now; /* its arena is not used */
    uint64_t seed;
    uint32_t rule, tries, tries_max, left_out;
    bool doubt;
    struct arena *arena;
    struct run_result result; /* of the smallest so far */
};

/* Is it broken, in whichever way? */
static bool try_run(struct shrinking *k, const struct scenario *candidate, struct run_result *out)
{
    struct err err = { 0 };
    struct run_options options = { .scenario = candidate, .seed = k->seed, .doubt = k->doubt };
    if (k->tries >= k->tries_max)
        return false;
    k->tries++;
    return scenario_run(options, k->arena, out, &err) == 0 && out->broken;
}

static bool still_broken(struct shrinking *k, const struct scenario *candidate)
{
    struct run_result result;
    if (!try_run(k, candidate, &result) || result.finding.rule != k->rule)
        return false;
    k->result = result;
    return true;
}

/* Go on without what the candidate has not, if that breaks too. */
static bool leave_out(struct shrinking *k, const struct scenario *candidate)
{
    if (!still_broken(k, candidate))
        return false;
    k->now = *candidate;
    k->left_out++;
    return true;
}

/* Without the actions from..to. */
static const struct action *without(struct arena *arena, const struct action *from, uint32_t count,
                                    uint32_t first, uint32_t last)
{
    struct action *left = arena_array(arena, struct action, count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i < first || i >= last)
            left[kept++] = from[i];
    }
    return left;
}

/* Ever smaller pieces of the timeline are tried without. */
static void shrink_timeline(struct shrinking *k)
{
    for (uint32_t piece = k->now.timeline_count; piece > 0; piece /= 2) {
        for (uint32_t at = 0; at < k->now.timeline_count;) {
            uint32_t end = at + piece < k->now.timeline_count ? at + piece : k->now.timeline_count;
            struct scenario candidate = k->now;
            candidate.timeline = without(k->arena, k->now.timeline, k->now.timeline_count, at, end);
            candidate.timeline_count -= end - at;
            if (!leave_out(k, &candidate))
                at = end;
        }
    }
}

static void shrink_objects(struct shrinking *k)
{
    for (uint32_t at = k->now.object_count; at-- > 0;) {
        struct scenario candidate = k->now;
        struct str *left = arena_array(k->arena, struct str, k->now.object_count);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < k->now.object_count; i++) {
            if (i != at)
                left[kept++] = k->now.objects[i];
        }
        candidate.objects = left;
        candidate.object_count = kept;
        leave_out(k, &candidate);
    }
}

/* One kind of trouble after the other is switched off. */
static void shrink_faults(struct shrinking *k)
{
    const size_t rates[] = {
        offsetof(struct scenario, rates.store_error),
        offsetof(struct scenario, rates.store_lost_reply),
        offsetof(struct scenario, rates.watch_cut),
        offsetof(struct scenario, rates.launch_error),
        offsetof(struct scenario, rates.launch_lost_reply),
        offsetof(struct scenario, rates.cloud_error),
        offsetof(struct scenario, crashes_per_hour),
        offsetof(struct scenario, boot_failure_rate),
        offsetof(struct scenario, ready_failure_rate),
    };
    for (size_t i = 0; i < KV_COUNT_OF(rates); i++) {
        struct scenario candidate = k->now;
        double *rate = (double *)((char *)&candidate + rates[i]);
        if (*rate <= 0)
            continue;
        *rate = 0;
        leave_out(k, &candidate);
    }
    struct scenario candidate = k->now;
    candidate.event_delay_ns = 0;
    if (k->now.event_delay_ns)
        leave_out(k, &candidate);
}

/* The chaos of a seed as a timeline: what can be left out one by one. */
static void spell_out(struct shrinking *k)
{
    uint32_t count;
    const struct action *random = chaos_generate(k->arena, &k->now, k->seed, &count);
    struct action *all = arena_array(k->arena, struct action, count + k->now.timeline_count);
    uint32_t a = 0, b = 0, total = 0;
    while (a < count || b < k->now.timeline_count) {
        bool timeline_first = b < k->now.timeline_count &&
                              (a == count || k->now.timeline[b].at_ns <= random[a].at_ns);
        all[total++] = timeline_first ? k->now.timeline[b++] : random[a++];
    }
    k->now.timeline = all;
    k->now.timeline_count = total;
    k->now.chaos = (struct chaos){ 0 };
}

bool scenario_shrink(const struct scenario *s, uint64_t seed, uint32_t tries_max,
                     struct arena *arena, struct shrunk *out)
{
    struct shrinking k = { .now = *s, .seed = seed, .tries_max = tries_max, .arena = arena };
    struct run_result first = { 0 };
    /* What only the binder's doubts have found breaks only with them. */
    if (!try_run(&k, s, &first)) {
        k.doubt = true;
        if (!try_run(&k, s, &first))
            return false;
    }
    k.rule = first.finding.rule;
    spell_out(&k);
    uint32_t before = k.now.timeline_count;
    if (!still_broken(&k, &k.now))
        return false;
    shrink_timeline(&k);
    shrink_faults(&k);
    shrink_objects(&k);
    shrink_timeline(&k);
    *out = (struct shrunk){ .scenario = arena_new(arena, struct scenario),
                            .result = k.result,
                            .tries = k.tries,
                            .actions_before = before,
                            .actions_after = k.now.timeline_count,
                            .objects_before = s->object_count,
                            .objects_after = k.now.object_count,
                            .smaller = k.left_out > 0 };
    *out->scenario = k.now;
    out->scenario->seed = seed;
    return true;
}

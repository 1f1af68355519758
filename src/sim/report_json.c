/* `karve simulate -o json`. */
#include "sim/report.h"

#include "api/common.h"
#include "codec/json.h"

const char *health_word(uint8_t health)
{
    static const char *const words[] = {
        [CONDITION_UNSET] = "",
        [CONDITION_TRUE] = "True",
        [CONDITION_FALSE] = "False",
        [CONDITION_UNKNOWN] = "Unknown",
    };
    return health < KV_COUNT_OF(words) ? words[health] : "";
}

/* Milliseconds and hundredths of a cent are as much as anybody reads. */
static json_mut *seconds(struct json_build *b, int64_t ns)
{
    return json_new_double(b, (double)(ns / 1000000) / 1000);
}

static json_mut *dollars(struct json_build *b, double amount)
{
    return json_new_double(b, (double)(int64_t)(amount * 10000 + 0.5) / 10000);
}

static void set(struct json_build *b, json_mut *o, const char *key, json_mut *v)
{
    json_set(b, o, str_of(key), v);
}

static void set_count(struct json_build *b, json_mut *o, const char *key, uint64_t count)
{
    json_set_i64(b, o, key, (int64_t)count);
}

/* --- the parts --- */

static json_mut *pods(struct json_build *b, const struct record *r, const struct record_sample *end)
{
    json_mut *o = json_new_object(b), *wait = json_new_object(b);
    set_count(b, o, "pending", end->pods_pending);
    set_count(b, o, "starting", end->pods_starting);
    set_count(b, o, "running", end->pods_running);
    set_count(b, o, "ended", end->pods_ended);
    set_count(b, o, "bound", r->totals.pods_bound);
    set(b, wait, "p50", seconds(b, record_wait_ns(r, 0.5)));
    set(b, wait, "p99", seconds(b, record_wait_ns(r, 0.99)));
    set(b, wait, "max", seconds(b, record_wait_ns(r, 1)));
    set(b, o, "waitSeconds", wait);
    return o;
}

static json_mut *nodes(struct json_build *b, const struct record *r,
                       const struct record_sample *end)
{
    json_mut *o = json_new_object(b);
    uint32_t peak = 0;
    vec_each(&r->samples, struct record_sample, s)
        peak = s->nodes > peak ? s->nodes : peak;
    set_count(b, o, "total", end->nodes);
    set_count(b, o, "ready", end->nodes_ready);
    set_count(b, o, "claims", end->claims);
    set_count(b, o, "peak", peak);
    return o;
}

static json_mut *node_pools(struct json_build *b, const struct record *r,
                            const struct record_sample *end)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < end->pool_count; i++) {
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "name", r->pools.items[i]);
        set_count(b, o, "nodes", end->pools[i].nodes);
        set_count(b, o, "claims", end->pools[i].claims);
        json_set_str(b, o, "nodeRegistrationHealthy", str_of(health_word(end->pools[i].health)));
        json_push(b, list, o);
    }
    return list;
}

static json_mut *instance_types(struct json_build *b, const struct record *r,
                                const struct record_sample *end)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < end->type_count; i++) {
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "name", r->types.items[i]);
        set_count(b, o, "nodes", end->types[i]);
        set_count(b, o, "peak", record_type_peak(r, i));
        json_push(b, list, o);
    }
    return list;
}

static json_mut *cloud(struct json_build *b, const struct record_totals *t)
{
    json_mut *o = json_new_object(b);
    set_count(b, o, "launches", t->launches);
    set_count(b, o, "launchFailures", t->launch_failures);
    set_count(b, o, "refusals", t->refusals);
    set_count(b, o, "joined", t->joined);
    set_count(b, o, "lost", t->lost);
    set_count(b, o, "terminated", t->terminated);
    return o;
}

static json_mut *cost(struct json_build *b, const struct record *r, const struct record_sample *end)
{
    json_mut *o = json_new_object(b);
    double peak = 0;
    vec_each(&r->samples, struct record_sample, s)
        peak = s->dollars_hour > peak ? s->dollars_hour : peak;
    set(b, o, "dollars", dollars(b, end->dollars));
    set(b, o, "dollarsPerHour", dollars(b, end->dollars_hour));
    set(b, o, "dollarsPerHourPeak", dollars(b, peak));
    return o;
}

static json_mut *control(struct json_build *b, const struct record_totals *t,
                         const struct record_sample *end)
{
    json_mut *o = json_new_object(b);
    set_count(b, o, "reconciles", t->reconciles);
    set_count(b, o, "reconcileFailures", t->reconcile_failures);
    set_count(b, o, "passes", t->passes);
    set_count(b, o, "claimsCreated", t->claims_created);
    set_count(b, o, "crashes", t->crashes);
    set_count(b, o, "cacheHits", end->cache_hits);
    set_count(b, o, "cacheMisses", end->cache_misses);
    return o;
}

static json_mut *warnings(struct json_build *b, const struct record *r)
{
    json_mut *list = json_new_array(b);
    vec_each(&r->reasons, struct record_reason, it) {
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "reason", it->reason);
        set_count(b, o, "count", it->count);
        json_push(b, list, o);
    }
    return list;
}

static json_mut *finding(struct json_build *b, const struct finding *maybe_finding)
{
    if (!maybe_finding)
        return json_new_null(b);
    json_mut *o = json_new_object(b);
    set_count(b, o, "rule", maybe_finding->rule);
    set_count(b, o, "step", maybe_finding->step);
    set(b, o, "atSeconds", seconds(b, maybe_finding->at_ns));
    json_set_str(b, o, "what", maybe_finding->what);
    return o;
}

static json_mut *events(struct json_build *b, const struct record *r)
{
    json_mut *list = json_new_array(b);
    vec_each(&r->events, struct record_event, e) {
        json_mut *o = json_new_object(b);
        set(b, o, "atSeconds", seconds(b, e->at_ns));
        json_set_str(b, o, "kind", str_of(record_kind_names[e->kind]));
        json_set_str(b, o, "what", e->what);
        set_count(b, o, "count", e->count);
        json_set_bool(b, o, "warning", e->warning);
        json_push(b, list, o);
    }
    return list;
}

static json_mut *samples(struct json_build *b, const struct record *r)
{
    json_mut *list = json_new_array(b);
    vec_each(&r->samples, struct record_sample, s) {
        json_mut *o = json_new_object(b);
        set(b, o, "atSeconds", seconds(b, s->at_ns));
        set_count(b, o, "pending", s->pods_pending);
        set_count(b, o, "starting", s->pods_starting);
        set_count(b, o, "running", s->pods_running);
        set_count(b, o, "nodes", s->nodes);
        set(b, o, "dollarsPerHour", dollars(b, s->dollars_hour));
        json_push(b, list, o);
    }
    return list;
}

void report_json(const struct run_report *report, struct buf *out)
{
    static const struct record_sample nothing;
    const struct record *r = report->record;
    const struct record_sample *end = record_last(r) ? record_last(r) : &nothing;
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_set_str(&b, root, "scenario", report->name);
    set_count(&b, root, "seed", report->seed);
    set(&b, root, "seconds", seconds(&b, report->duration_ns));
    set_count(&b, root, "steps", r->totals.steps);
    set(&b, root, "finding", finding(&b, report->maybe_finding));
    set(&b, root, "pods", pods(&b, r, end));
    set(&b, root, "nodes", nodes(&b, r, end));
    set(&b, root, "nodePools", node_pools(&b, r, end));
    set(&b, root, "instanceTypes", instance_types(&b, r, end));
    set(&b, root, "cloud", cloud(&b, &r->totals));
    set(&b, root, "warnings", warnings(&b, r));
    set(&b, root, "cost", cost(&b, r, end));
    set(&b, root, "control", control(&b, &r->totals, end));
    set(&b, root, "events", events(&b, r));
    set(&b, root, "samples", samples(&b, r));
    json_write_pretty(root, out);
    buf_addc(out, '\n');
}

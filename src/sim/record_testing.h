/* sim/record_testing.h - records made by hand, for tests of what is made from them.
 *
 *     AUTO_RECORD r = { 0 };
 *     record_fill_morning(&r);
 */
#pragma once

#include "api/common.h"
#include "codec/duration.h"
#include "sim/report.h"

#define AUTO_RECORD __attribute__((cleanup(record_done))) struct record

static inline void record_add_sample(struct record *r, struct record_sample s,
                                     const uint32_t *types, const struct record_pool *pools)
{
    s.type_count = (uint32_t)r->types.count;
    s.pool_count = (uint32_t)r->pools.count;
    uint32_t *own_types = arena_array(&r->arena, uint32_t, s.type_count);
    struct record_pool *own_pools = arena_array(&r->arena, struct record_pool, s.pool_count);
    for (uint32_t i = 0; i < s.type_count; i++) {
        own_types[i] = types[i];
        s.nodes += types[i];
    }
    for (uint32_t i = 0; i < s.pool_count; i++)
        own_pools[i] = pools[i];
    s.types = own_types;
    s.pools = own_pools;
    vec_push(&r->samples, s);
}

static inline void record_add_line(struct record *r, enum record_kind kind, int64_t minute,
                                   const char *what, uint32_t count)
{
    const struct record_event event = { .at_ns = minute * DURATION_MINUTE,
                                        .kind = kind,
                                        .what = str_of(what),
                                        .count = count,
                                        .warning = kind != RECORD_ACTION };
    record_add(r, &event, STR(""));
}

/* Straight from `a` to `b` between two minutes. */
static inline double between(int64_t minute, int64_t from, int64_t to, double a, double b)
{
    if (minute <= from)
        return a;
    if (minute >= to)
        return b;
    return a + (b - a) * (double)(minute - from) / (double)(to - from);
}

#define MORNING_MINUTES 720
#define MORNING_TYPES 10

/* Twelve hours: 2,000 pods arrive at 120, a zone is dry from 180 to 300, a pool's image is broken from
 * 210 to 330, evening comes at 600. */
static inline void record_fill_morning(struct record *r)
{
    static const char *const types[MORNING_TYPES] = { "m7g.2xlarge", "c7g.4xlarge", "m6g.xlarge",
                                                      "r7g.xlarge",  "c6g.2xlarge", "m5.large",
                                                      "c5.xlarge",   "t4g.medium",  "m7i.xlarge",
                                                      "r5.large" };
    for (size_t i = 0; i < MORNING_TYPES; i++)
        vec_push(&r->types, str_of(types[i]));
    vec_push(&r->pools, STR("general"));
    vec_push(&r->pools, STR("batch"));
    vec_push(&r->pools, STR("gpu"));
    struct record_totals *t = &r->totals;
    for (int64_t m = 0; m <= MORNING_MINUTES; m++) {
        bool dry = m >= 180 && m < 300, broken = m >= 210 && m < 330;
        double want = m < 120 ? 120 : between(m, 560, 640, 2120, 180);
        double placed = m < 120 ? 120 : m > 560 ? want : between(m, 121, 132, 120, 2120);
        uint32_t load = (uint32_t)(placed / 14);
        uint32_t nodes[MORNING_TYPES];
        for (uint32_t i = 0; i < MORNING_TYPES; i++)
            nodes[i] = load * (MORNING_TYPES - i) / 55 + (i == 3 && dry ? 6 : 0);
        t->launches = (uint64_t)between(m, 121, 131, 9, 152);
        t->refusals = dry ? (uint64_t)(m - 180) / 3 : m >= 300 ? 40 : 0;
        t->lost = broken ? (uint64_t)(m - 210) / 15 : m >= 330 ? 8 : 0;
        struct record_pool pools[] = {
            { load, load, CONDITION_TRUE },
            { 4, 4, m < 2 ? CONDITION_UNKNOWN : CONDITION_TRUE },
            { 0, broken,
              m < 225   ? CONDITION_UNKNOWN
              : m < 336 ? CONDITION_FALSE
                        : CONDITION_TRUE },
        };
        struct record_sample s = {
            .at_ns = m * DURATION_MINUTE,
            .pods_pending = (uint32_t)(want - placed) + (dry ? 24 : 0),
            .pods_starting = (uint32_t)(m >= 122 && m < 134 ? 160 : 0),
            .pods_running = (uint32_t)placed,
            .nodes_ready = load,
            .claims = load + 4,
            .dollars_hour = 0.31 * load + 1.2,
            .dollars = between(m, 0, MORNING_MINUTES, 0, 412),
            .launches = t->launches,
            .launch_failures = t->refusals,
            .cache_hits = (uint64_t)m * 40,
            .cache_misses = 3 + (uint64_t)(m / 120) * 24,
        };
        record_add_sample(r, s, nodes, pools);
    }
    for (int64_t i = 0; i < 2000; i++)
        vec_push(&r->waits_ns, (30 + i % 600) * DURATION_SECOND);
    t->pods_bound = 2120;
    t->reconciles = 48210;
    t->passes = 61;
    t->claims_created = 160;
    t->joined = 150;
    t->steps = 8;
    t->crashes = 2;
    vec_push(&r->reasons, (struct record_reason){ STR("InsufficientCapacityError"), 40 });
    vec_push(&r->reasons, (struct record_reason){ STR("RegistrationFailed"), 8 });
    record_add_line(r, RECORD_ACTION, 0, "the shop opens with 120 pods", 1);
    record_add_line(r, RECORD_ACTION, 120, "Black Friday: web is scaled to 2,000", 1);
    record_add_line(r, RECORD_EVENT, 121,
                    "Pod web-7d9c-x2x4q: FailedScheduling: 0/9 nodes are available", 1874);
    record_add_line(r, RECORD_CRASH, 124, "patch NodeClaim general-x7k2p", 1);
    record_add_line(r, RECORD_ACTION, 180, "zone us-east-1b runs dry", 1);
    record_add_line(
        r, RECORD_EVENT, 181,
        "NodeClaim general-9f2kd: InsufficientCapacityError: no capacity for m7g.2xlarge "
        "in us-east-1b",
        40);
    record_add_line(r, RECORD_ACTION, 210, "the image of gpu nodes is broken", 1);
    record_add_line(
        r, RECORD_HEALTH, 225,
        "NodePool gpu: nodes do not join (RegistrationFailed: NodeClaim gpu-c8v2m did not "
        "register within 15m)",
        1);
    record_add_line(r, RECORD_ACTION, 300, "zone us-east-1b has capacity again", 1);
    record_add_line(r, RECORD_ACTION, 330, "the image of gpu nodes is fixed", 1);
    record_add_line(r, RECORD_HEALTH, 336, "NodePool gpu: nodes join", 1);
    record_add_line(r, RECORD_ACTION, 560, "evening: web is scaled to 60", 1);
}

static inline struct run_report report_of_morning(const struct record *r)
{
    return (struct run_report){
        .record = r,
        .name = STR("black-friday"),
        .about = STR("A morning with 2,000 new pods, a zone that runs dry and an image that is "
                     "broken for two hours."),
        .seed = 7,
        .start_us = (int64_t)1795759200 * 1000000, /* 2026-11-27T06:00:00Z */
        .duration_ns = MORNING_MINUTES * DURATION_MINUTE,
    };
}

/* Prints the page of a record made by hand: simulate-html morning|empty|hostile|long. */
#include "sim/record_testing.h"

#include <stdio.h>

#define HOSTILE "</script><script>alert(1)</script>&\"'<b>\xe2\x80\xae \x1b[31m\n\xff"

/* Texts that would break out of where they stand. */
static void fill_hostile(struct record *r)
{
    static const uint32_t nodes[] = { 3, 1 };
    static const struct record_pool pools[] = { { 3, 3, CONDITION_FALSE } };
    vec_push(&r->types, STR(HOSTILE));
    vec_push(&r->types, STR("m5.large"));
    vec_push(&r->pools, STR(HOSTILE HOSTILE HOSTILE));
    for (int i = 0; i < 3; i++)
        record_add_sample(r, (struct record_sample){ .at_ns = i * DURATION_SECOND }, nodes, pools);
    record_add_line(r, RECORD_ACTION, 0, HOSTILE, 1);
    record_add_line(r, RECORD_EVENT, 0, HOSTILE HOSTILE HOSTILE HOSTILE, 1000000);
}

/* A month, with more of everything than a page shows. */
static void fill_long(struct record *r)
{
    uint32_t nodes[40];
    struct record_pool pools[40];
    for (uint32_t i = 0; i < 40; i++) {
        vec_push(&r->types, arena_strf(&r->arena, "family%u.24xlarge", i));
        vec_push(&r->pools, arena_strf(&r->arena, "pool-with-a-rather-long-name-%u", i));
    }
    for (int64_t s = 0; s < 43200; s++) {
        for (uint32_t i = 0; i < 40; i++) {
            nodes[i] = (uint32_t)(s / (i + 1)) % 50;
            pools[i] =
                (struct record_pool){ .nodes = nodes[i], .health = (uint8_t)((s / 500 + i) % 4) };
        }
        struct record_sample sample = { .at_ns = s * DURATION_MINUTE,
                                        .pods_pending = s == 30001 ? 100000 : 7,
                                        .pods_running = 90000,
                                        .dollars_hour = 1234.5,
                                        .dollars = (double)s * 20.575 };
        record_add_sample(r, sample, nodes, pools);
        if (s % 300 == 0)
            record_add_line(r, RECORD_ACTION, s, "an action", 1);
        if (s % 10 == 0)
            record_add_line(r, RECORD_EVENT, s, "an event of some length, as they are", 3);
    }
}

int main(int argc, char **argv)
{
    AUTO_BUF out = { 0 };
    AUTO_RECORD r = { 0 };
    struct str which = str_of(argc > 1 ? argv[1] : "morning");
    struct run_report report = report_of_morning(&r);
    if (str_eqz(which, "morning")) {
        record_fill_morning(&r);
    } else if (str_eqz(which, "hostile")) {
        static const struct finding finding = { .rule = 1, .step = 2, .what = STR(HOSTILE) };
        fill_hostile(&r);
        report.name = report.about = STR(HOSTILE);
        report.duration_ns = 2 * DURATION_SECOND;
        report.maybe_finding = &finding;
    } else if (str_eqz(which, "long")) {
        fill_long(&r);
        report.duration_ns = 43200 * DURATION_MINUTE;
    } else if (!str_eqz(which, "empty")) {
        return 2;
    }
    report_html(&report, &out);
    return fwrite(out.p, 1, out.len, stdout) == out.len ? 0 : 1;
}

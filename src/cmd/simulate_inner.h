/* cmd/simulate_inner.h - the parts of `karve simulate`. */
#pragma once

#include "cmd/command.h"
#include "sim/report.h"
#include "sim/campaign.h"

struct simulation {
    const struct invocation *inv;
    struct scenario *scenario;
    bool check, quiet, json;
    bool colour;             /* on stdout */
    bool progress;           /* on stderr, which is a terminal */
    const char *report_path; /* NULL: none */
    uint64_t seed_first, seed_last;
    uint32_t jobs;
};

/* One seed, with a timeline, a table or JSON, and a report. An enum exit_code. */
int simulate_one(struct simulation *s);
/* Many seeds on several threads: what they came to, in the order of the seeds. */
int simulate_many(struct simulation *s);

/* What is broken, and how to see it again, on stderr. */
void simulate_print_broken(const struct simulation *s, uint64_t seed,
                           const struct finding *finding);
/* The least of the scenario that still breaks, on stderr. `calls`: of the run that broke. */
void simulate_print_shrunk(const struct simulation *s, uint64_t seed, uint64_t calls);

/* --- cmd/simulate_table.c --- */

/* "08:00:00  action  the shop opens" */
void timeline_line(const struct record_event *e, int64_t start_us, bool colour, struct buf *out);
void simulate_table(const struct run_report *report, int64_t took_ns, bool colour, struct buf *out);

/* A line on a terminal that is drawn over and over; nothing at all unless `on`. */
struct progress_line {
    bool on, drawn;
    int64_t drawn_ns;
};
/* Is it time to draw it again? A few times a second. */
bool progress_due(const struct progress_line *p);
void progress_draw(struct progress_line *p, const char *fmt, ...) KV_PRINTF(2, 3);
void progress_clear(struct progress_line *p);

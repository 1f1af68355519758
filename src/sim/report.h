/* sim/report.h - a record, told: as JSON for scripts, as a page with plots for people.
 *
 * Both are functions of the record alone: equal runs give equal bytes.
 */
#pragma once

#include "sim/invariants.h"
#include "sim/record.h"

struct run_report {
    const struct record *record;
    struct str name, about; /* of the scenario */
    uint64_t seed;
    int64_t start_us, duration_ns; /* of virtual time */
    const struct finding *maybe_finding;
};

/* The names are a contract: members may be added, never renamed. Indented, ends in a newline. */
void report_json(const struct run_report *report, struct buf *out);

/* One page that is complete in itself: no file, font or script from elsewhere. Its plots are SVG and
 * need no script; a small one shows the values under the pointer. */
void report_html(const struct run_report *report, struct buf *out);

const char *health_word(uint8_t health); /* "True", "False", "Unknown", "" for no pool */

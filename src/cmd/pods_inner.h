/* cmd/pods_inner.h - the parts of `karve pods`. */
#pragma once

#include "base/arena.h"
#include "codec/json.h"

/* --- cmd/pods_row.c --- */

/* A pod in words, of the agent's JSON. Texts are clean for a terminal; "-" where there is nothing. Times are
 * wall microseconds; 0: none. */
struct pod_row {
    struct str namespace_, name, uid, ip;
    struct str status; /* the most telling word, as kubectl finds it */
    uint32_t ready_count, container_count;
    int64_t restart_count;
    int64_t restarted_us; /* the end that the last restart followed */
    int64_t born_us;
    struct str containers; /* "main=running side=exited(137,OOMKilled)" */
    struct str change;     /* the last: "main started" */
    int64_t changed_us;
    struct str worker;  /* "Syncing"; "-": the agent does not run this pod */
    struct str trouble; /* of the inspection, or the worker's last */
};
void pod_row_read(struct arena *arena, const json_val *pod, struct pod_row *out);

/* --- cmd/pods_table.c --- */

#define POD_COLUMNS 7
#define POD_COLUMNS_WIDE 12
extern const char *const pod_headings[POD_COLUMNS_WIDE];

/* The cells of a row. now_us 0: without all that changes by itself as time goes by. */
void pod_row_cells(struct arena *arena, const struct pod_row *row, struct str node, int64_t now_us,
                   bool colour, struct str out[POD_COLUMNS_WIDE]);
/* "Running": green, "CrashLoopBackOff": red. */
const char *pod_status_tint(struct str status);

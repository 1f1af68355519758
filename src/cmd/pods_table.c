/* The cells of `karve pods`. */
#include "cmd/pods_inner.h"

#include "codec/duration.h"

const char *const pod_headings[POD_COLUMNS_WIDE] = {
    "NAMESPACE", "NAME",   "READY",      "STATUS",      "RESTARTS", "AGE",
    "IP",        "WORKER", "CONTAINERS", "LAST CHANGE", "NODE",     "ERROR"
};

/* "5m10s"; a time to come, of a clock that is wrong, is no age. */
static struct str age_of(struct arena *arena, int64_t since_us, int64_t now_us)
{
    char text[DURATION_TEXT_MAX];
    if (!since_us || !now_us)
        return STR("-");
    int64_t seconds = since_us < now_us ? (now_us - since_us) / 1000000 : 0;
    duration_format_short(seconds * DURATION_SECOND, text);
    return arena_str(arena, str_of(text));
}

/* "main started (5m10s ago)" */
static struct str with_age(struct arena *arena, struct str what, int64_t at_us, int64_t now_us)
{
    if (!at_us || !now_us)
        return what;
    return arena_strf(arena, "%.*s (%.*s ago)", STR_ARG(what),
                      STR_ARG(age_of(arena, at_us, now_us)));
}

const char *pod_status_tint(struct str status)
{
    static const char *const on_the_way[] = { "Pending", "ContainerCreating", "PodInitializing",
                                              "Terminating", "NotReady" };
    if (str_eqz(status, "Running"))
        return "\033[32m";
    if (str_eqz(status, "Completed") || str_eqz(status, "Succeeded") || str_eqz(status, "Removed"))
        return "\033[2m";
    for (size_t i = 0; i < KV_COUNT_OF(on_the_way); i++)
        if (str_eqz(status, on_the_way[i]))
            return "\033[33m";
    bool counts = status.len > 5 && str_starts(status, STR("Init:")) && char_is_digit(status.p[5]);
    return counts ? "\033[33m" : "\033[31m";
}

void pod_row_cells(struct arena *arena, const struct pod_row *row, struct str node, int64_t now_us,
                   bool colour, struct str out[POD_COLUMNS_WIDE])
{
    struct str restarts = arena_strf(arena, "%lld", (long long)row->restart_count);
    struct str status = row->status;
    if (colour)
        status = arena_strf(arena, "%s%.*s\033[0m", pod_status_tint(status), STR_ARG(status));
    const struct str cells[POD_COLUMNS_WIDE] = {
        row->namespace_,
        row->name,
        arena_strf(arena, "%u/%u", row->ready_count, row->container_count),
        status,
        row->restart_count ? with_age(arena, restarts, row->restarted_us, now_us) : restarts,
        age_of(arena, row->born_us, now_us),
        row->ip,
        row->worker,
        row->containers,
        with_age(arena, row->change, row->changed_us, now_us),
        node,
        row->trouble,
    };
    memcpy(out, cells, sizeof cells);
}

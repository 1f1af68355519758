/* The checker goes over a plan rule by rule, and each rule over all it concerns. First come the
 * indices: a plan that points beyond the snapshot cannot be judged. Then what is there is written
 * down as sites, stamps and asks (check_inner.h), and every further rule reads that. A rule that is
 * broken is a finding and the next one is looked at as if it were not.
 */
#include "sched/check_inner.h"

static void checker_done(struct checker *c)
{
    views_done(c);
    vec_done(&c->findings);
    vec_done(&c->stamps);
    vec_done(&c->asks);
    vec_done(&c->daemons);
    str_table_done(&c->node_ids);
    str_table_done(&c->ask_ids);
    str_table_done(&c->print_ids);
    map_done(&c->verdicts);
    arena_done(&c->scratch);
}

struct check_result plan_check(struct arena *arena, const struct snapshot *snap,
                               struct plan_options options, const struct plan *plan)
{
    struct checker c = { .arena = arena, .snap = snap, .options = options, .plan = plan };

    if (check_indices(&c)) {
        check_book(&c);
        sites_collect(&c);
        for (uint32_t i = 0; i < plan->launch_count; i++)
            check_claim(&c, i);
        for (uint32_t i = 0; i < c.site_count; i++)
            check_residents(&c, &c.sites[i]);
        check_reservations(&c);
        check_limits(&c);
        check_volumes(&c);
        check_topology(&c);
    }

    struct check_finding *kept = arena_array(arena, struct check_finding, c.findings.count);
    if (c.findings.count)
        memcpy(kept, c.findings.items, c.findings.count * sizeof *kept);
    struct check_result result = { kept, (uint32_t)c.findings.count };
    checker_done(&c);
    return result;
}

/* --- findings --- */

void finding(struct checker *c, uint32_t pod, uint32_t launch, const char *fmt, ...)
{
    if (c->findings.count == CHECK_FINDINGS_MAX)
        return;
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    vec_push(&c->findings, (struct check_finding){ .pod = pod,
                                                   .launch = launch,
                                                   .what = arena_str(c->arena, buf_str(&text)) });
}

const char *pod_shown(struct checker *c, uint32_t pod)
{
    const struct meta *meta = &c->snap->pods[pod]->object.meta;
    return arena_strf(&c->scratch, "pod %s/%s", NAME_SHOWN(meta->namespace_),
                      NAME_SHOWN(meta->name))
        .p;
}

const char *amount_shown(struct checker *c, struct str resource, wide thousandths)
{
    char text[QUANTITY_TEXT_MAX];
    wide most = INT64_MAX;
    int64_t milli = thousandths > most    ? INT64_MAX
                    : thousandths < -most ? -INT64_MAX
                                          : (int64_t)thousandths;
    struct quantity q = quantity_of_milli(milli);
    if (str_eqz(resource, "memory") || str_ends(resource, STR("storage")))
        q.format = QUANTITY_BINARY;
    quantity_format(q, text);
    return arena_strf(&c->scratch, "%s", text).p;
}

const char *price_shown(struct checker *c, usd_hour price)
{
    char text[USD_HOUR_TEXT_MAX];
    usd_hour_format(price, text);
    return arena_strf(&c->scratch, "$%s", text).p;
}

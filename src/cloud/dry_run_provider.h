/* cloud/dry_run_provider.h - a provider that launches and terminates nothing, beside store/dry_run.h.
 *
 * Asking passes. A launch is told ("would launch"), once per claim, and answered with an instance that
 * is nowhere: its provider id begins with "dry-run://". It is no failure, because whoever hears of one
 * blames the pool, backs off or deletes the claim, and would tell all that. A termination is told
 * ("would terminate") and has begun, for as long as the instance is there.
 */
#pragma once

#include "cloud/provider.h"
#include "store/dry_run.h"

#define DRY_RUN_PROVIDER_PREFIX "dry-run:///"

struct dry_run_provider_options {
    const struct cloud_provider *inner; /* all of these outlive it */
    struct dry_run *dry_run;            /* remembers what was told */
    const struct clock *clock;
    struct log *log;
};

struct dry_run_provider;
struct dry_run_provider *dry_run_provider_new(struct dry_run_provider_options options);
void dry_run_provider_free(struct dry_run_provider *p); /* NULL is fine */
KV_AUTO_TYPE(dry_run_provider, dry_run_provider_free)

const struct cloud_provider *dry_run_provider_port(struct dry_run_provider *p);

/* store/conformance.h - what every implementation of the store port must do.
 *
 * A test program defines the three functions below for its store and includes store/conformance.c,
 * whose tests then run against it. Each test opens a store with nothing in it but what a new
 * cluster has.
 */
#pragma once

#include "store/store.h"

struct conformance {
    const struct store *store;
    void *ctx; /* the test program's */
};

void conformance_open(struct conformance *c);
void conformance_close(struct conformance *c);

/* Give what the store does in the background (collecting garbage, delivering events) a little time.
 * False: it does nothing in the background, or a generous time is over. */
bool conformance_wait(struct conformance *c);

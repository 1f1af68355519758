/* store/conformance.h - what every implementation of the store port must do.
 *
 * A test program STORE_test.c defines the three functions below for its store and includes
 * store/conformance_tests.h, whose tests then run against it beside the program's own:
 *
 *     #include "store/conformance_tests.h"
 *
 *     void conformance_open(struct conformance *c)
 *     {
 *         c->ctx = ...a server or a store...;
 *         c->store = ...its port...;
 *     }
 *
 * (store/embedded_test.c is the example.) Each test opens a store with nothing in it but what a new
 * cluster has; a program for a real server empties one instead. The tests count on the port's
 * promises alone: versions may have gaps, garbage may be collected a little later (EVENTUALLY),
 * lists are sorted within a namespace.
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

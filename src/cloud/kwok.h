/* cloud/kwok.h - nodes without machines: launching one creates a Node object, after a delay.
 *
 * All state is in the store: an instance is a Node whose providerID starts with "kwok://" or,
 * until its registration delay is over, the NodeClaim that has that providerID. What is kept in
 * memory is found there again after a restart. The name of a node follows from its claim's UID
 * alone, so a launch that is repeated, by whichever process, means the same instance.
 *
 * Types come from the synthetic catalogue of 144 (kwok_types.c) or from another provider, which is
 * how the simulated cloud launches real EC2 types.
 *
 * One process at a time drives it: in a program with replicas, the leader.
 */
#pragma once

#include "base/log.h"
#include "cloud/provider.h"
#include "cloud/unavailable.h"
#include "store/store.h"

#define KWOK_PROVIDER_PREFIX "kwok://"

/* The synthetic catalogue: 12 sizes x 3 memory factors x 2 systems x 2 architectures. Built at the
 * first call, lives for ever; who hands it on takes a reference. Thread safe. */
#define KWOK_TYPE_COUNT 144
const struct instance_types *kwok_types(void);

struct kwok_options {
    const struct store *store;
    const struct clock *clock;
    const struct cloud_provider *maybe_types; /* NULL: the synthetic catalogue */
    struct log *maybe_log;
    uint64_t seed; /* decides between offerings of equal price */
    /* How long a node takes to register when its node class does not say: all but KWOKNodeClass. */
    int64_t registration_delay_ns;
};

struct kwok;
struct kwok *kwok_new(struct kwok_options options); /* what the options point at outlives it */
void kwok_free(struct kwok *k);                     /* NULL is fine */
KV_AUTO_TYPE(kwok, kwok_free)

/* Node classes: KWOKNodeClass, and those of maybe_types. */
const struct cloud_provider *kwok_provider(struct kwok *k);
/* For faults: marked offerings count as not available and cannot be launched. */
struct unavailable *kwok_unavailable(struct kwok *k);

/* Create the nodes whose registration delay is over; the next moment (mono_ns) there is one to
 * create, INT64_MAX if none. Simulations call it; programs run kwok_start. */
int64_t kwok_step(struct kwok *k);
/* A thread that does so; kwok_free stops it. ERR_UNAVAILABLE: the system gives none. */
int kwok_start(struct kwok *k, struct err *err);

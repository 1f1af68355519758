/* sim/faults.h - what stands between a control plane and the world in a simulation: a store and a
 * provider that fail as real ones do, and death.
 *
 * Reads of the store, the generation of instance types and watches fail too, but cannot be where a
 * process dies: dying there cannot be told from dying at the next call that has an effect.
 *
 * Death: from some call on, nothing that the process asks for has any effect, and every call is told
 * ERR_CANCELLED. When its stack has unwound the process is thrown away and another is made, which
 * knows nothing but the store: for the world outside that is a kill -9 at that call.
 */
#pragma once

#include "base/rng.h"
#include "cloud/provider.h"
#include "store/embedded.h"

struct fault_rates {    /* each from 0 to 1, per call */
    double store_error; /* the call fails (unavailable, throttled, conflict) and has no effect */
    double store_lost_reply; /* the write took effect, its caller is told that it failed */
    double watch_cut;        /* per event read: the watch breaks */
    double launch_error, launch_lost_reply;
    double cloud_error; /* get, list, delete, drift, instance types: fails */
};

struct faults_options {
    struct embedded *embedded; /* the store behind; all of these outlive the faults */
    const struct cloud_provider *provider;
    uint64_t seed;
    struct fault_rates rates;
};

struct faults;
struct faults *faults_new(struct faults_options options);
void faults_free(struct faults *f); /* NULL is fine */
KV_AUTO_TYPE(faults, faults_free)

const struct store *faults_store(struct faults *f);
const struct cloud_provider *faults_provider(struct faults *f);
void faults_set_rates(struct faults *f, struct fault_rates rates);

/* Calls so far that change something or ask the cloud: reads of the store are not counted. */
uint64_t faults_calls(const struct faults *f);
/* Die at that call (as faults_calls counts, the first is 1): it has no effect, or it has and nobody
 * hears of it. A number that is past is the next call. UINT64_MAX: never. */
void faults_die_at(struct faults *f, uint64_t call, bool after_effect);
void faults_kill(struct faults *f); /* dead at once, between two calls */
bool faults_dead(const struct faults *f);
/* For the next process; it has no death ahead of it. No watch of the dead one is open any more. */
void faults_revive(struct faults *f);
/* What died last: "patch NodeClaim web-7". */
const char *faults_last_words(const struct faults *f);
/* Writes that changed something so far: to tell whether a settled control plane still writes. Events
 * do not count: they repeat themselves by design, and nothing depends on them. */
uint64_t faults_writes(const struct faults *f);
const char *faults_last_write(const struct faults *f); /* the last of them: "patch Node n-1" */

#include "bench/kube_read.h"

#include "support/program.h"

#include "api/kinds.h"
#include "api/pod.h"
#include "store/kube.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct reading {
    struct object_pool *pool;
    struct log *log;
    struct kubeconfig *access;
    struct kube *kube;
    int64_t start_ns;
    struct kube_read read;
};

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "kube: %s: %s\n", what, err->text);
    exit(1);
}

static void reading_begin(struct reading *r, const char *kubeconfig)
{
    struct err err = { 0 };

    *r = (struct reading){ .pool = object_pool_new() };
    r->log = log_new((struct log_options){
        .clock = clock_real(), .fd = STDERR_FILENO, .level = LOG_LEVEL_WARN });
    struct kubeconfig_options where = { .path = kubeconfig, .clock = clock_real(), .log = r->log };
    if (kubeconfig_load(where, &r->access, &err) < 0)
        fail("kubeconfig", &err);
    struct kube_options options = {
        .access = r->access, .pool = r->pool, .clock = clock_real(), .maybe_log = r->log
    };
    if (kube_new(options, &r->kube, &err) < 0)
        fail("open", &err);
    r->start_ns = clock_mono_ns(clock_real());
}

static void reading_end(struct reading *r)
{
    struct timespec cpu;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    r->read.s = (double)(clock_mono_ns(clock_real()) - r->start_ns) / 1e9;
    r->read.reader_s = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    struct process_memory memory = process_memory(getpid());
    r->read.rss_kb = memory.rss;
    r->read.peak_kb = memory.peak;
    printf(KUBE_READ_FORMAT "\n", r->read.count, r->read.s, r->read.reader_s, r->read.hash,
           r->read.version, r->read.rss_kb, r->read.peak_kb);
    kube_free(r->kube);
    kubeconfig_free(r->access);
    log_free(r->log);
}

/* Servers give uids, versions and times: those differ from run to run. */
static uint64_t hash_pod(const struct object *object)
{
    const struct pod *pod = pod_of(object);
    uint64_t hash = kv_hash(object->meta.namespace_.p, object->meta.namespace_.len);
    hash = kv_mix64(hash ^ kv_hash(object->meta.name.p, object->meta.name.len));
    hash = kv_mix64(hash ^ kv_hash(pod->node_name.p, pod->node_name.len));
    return kv_mix64(hash ^ (uint64_t)pod->status->phase);
}

void kube_read_list(const char *kubeconfig)
{
    struct reading r;
    struct object_list pods = { 0 };
    struct err err = { 0 };

    reading_begin(&r, kubeconfig);
    if (store_list(kube_store(r.kube), &pod_kind, NULL, &pods, &err) < 0)
        fail("list", &err);
    for (size_t i = 0; i < pods.count; i++)
        r.read.hash += hash_pod(pods.items[i]);
    r.read.count = pods.count;
    r.read.version = pods.resource_version;
    reading_end(&r);
    object_list_done(&pods);
    object_pool_free(r.pool);
}

static void post(void *ctx)
{
    sem_post(ctx);
}

/* A server that is short of processor time ends watches; one goes on from where it was, as informers do. */
static struct watch *open_watch(struct reading *r, uint64_t version, sem_t *woken)
{
    struct watch_options opts = { .resource_version = version, .wake = post, .wake_ctx = woken };
    struct watch *watch;
    struct err err = { 0 };
    if (store_watch(kube_store(r->kube), &pod_kind, &opts, &watch, &err) < 0)
        fail("watch", &err);
    return watch;
}

void kube_read_watch(const char *kubeconfig, uint64_t version, uint64_t count)
{
    struct reading r;
    struct watch_event event;
    struct err err = { 0 };
    sem_t woken;

    sem_init(&woken, 0, 0);
    reading_begin(&r, kubeconfig);
    r.read.version = version;
    struct watch *watch = open_watch(&r, version, &woken);
    while (r.read.count < count) {
        int rc = watch_next(watch, &event, &err);
        if (rc < 0 && err.kind != ERR_UNAVAILABLE)
            fail("watch", &err);
        if (rc < 0) {
            watch_close(watch);
            watch = open_watch(&r, r.read.version, &woken);
        } else if (rc == 0) {
            sem_wait(&woken);
        } else {
            r.read.hash += hash_pod(event.object);
            r.read.version = event.resource_version;
            r.read.count++;
            object_unref(event.object);
        }
    }
    watch_close(watch);
    reading_end(&r);
    object_pool_free(r.pool);
    sem_destroy(&woken);
}

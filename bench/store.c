/* Events through the embedded store to many watchers.
 *
 * A cluster's pods report their status, one merge patch each; every watcher reads every event. An
 * event is the whole way: the patch is parsed, applied, admitted, decoded, logged, and read by all
 * watchers. The baseline is the same store without watchers and, for each of them, a parse and a
 * decode of the object's JSON text, as if each had its own connection (writing that text and
 * sending it are not counted). `ratio` is the baseline's time per event over ours: near 1 for one
 * watcher, where the write is nearly all of both. `fanout_ns` and `base_fanout_ns` are what one
 * delivery costs without the write. The hash is of everything that the watchers saw.
 */
#include "api/pod.h"
#include "base/clock.h"
#include "base/vec.h"
#include "bench/pods.h"
#include "store/embedded.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#define SEED 42
#define WATCHERS_MAX 100
#define BATCH 100 /* events written before the watchers read: a busy moment */
#define ROUNDS 3

struct cluster {
    struct object_pool *pool;
    struct embedded *e;
    const struct store *store;
    VEC(const struct object *) pods;
    VEC(char *) texts; /* of the pods, as a watch would carry them */
};

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "store: %s: %s\n", what, err->text);
    exit(1);
}

/* The store does not keep managedFields, so the baseline does not have to parse them either. */
static char *without_managed_fields(struct str text)
{
    struct doc doc = { 0 };
    struct json_build b;
    struct buf out = { 0 };
    struct err err = { 0 };

    if (json_read_trusted(text, &doc, &err) < 0)
        fail("a pod's text", &err);
    json_build_init(&b);
    json_mut *root = json_copy(&b, doc.root);
    json_mut_remove(json_mut_object(&b, root, STR("metadata")), STR("managedFields"));
    json_write_mut(root, &out);
    json_build_done(&b);
    doc_done(&doc);
    return buf_take(&out);
}

static void cluster_init(struct cluster *c, size_t pod_count)
{
    struct pod_maker maker;
    struct buf text = { 0 };
    struct err err = { 0 };
    struct object_list pods = { 0 };

    *c = (struct cluster){ .pool = object_pool_new() };
    c->e = embedded_new((struct embedded_options){
        .clock = clock_real(), .pool = c->pool, .seed = SEED, .auto_namespaces = true });
    c->store = embedded_store(c->e);
    pod_maker_init(&maker, SEED, (uint32_t)(pod_count / 100 + 1));
    while (c->texts.count < pod_count) {
        buf_clear(&text);
        pod_maker_next(&maker, &text);
        if (embedded_load(c->e, buf_str(&text), NULL, &err) < 0) {
            if (err.kind == ERR_EXISTS) /* the maker repeats the names of StatefulSets' pods */
                continue;
            fail("load", &err);
        }
        vec_push(&c->texts, without_managed_fields(buf_str(&text)));
    }
    buf_done(&text);
    if (store_list(c->store, &pod_kind, NULL, &pods, &err) < 0)
        fail("list", &err);
    for (size_t i = 0; i < pods.count; i++)
        vec_push(&c->pods, object_ref(pods.items[i]));
    object_list_done(&pods);
}

static void cluster_done(struct cluster *c)
{
    vec_each(&c->pods, const struct object *, pod)
        object_unref(*pod);
    vec_each(&c->texts, char *, text)
        free(*text);
    vec_done(&c->pods);
    vec_done(&c->texts);
    embedded_free(c->e);
    object_pool_free(c->pool);
}

/* The pod's status changes: each time through all pods it is another one. */
static void report_status(struct cluster *c, size_t number)
{
    const struct object *pod = c->pods.items[number % c->pods.count];
    struct object_ref ref = { &pod_kind, pod->meta.namespace_, pod->meta.name };
    char patch[160];
    struct err err = { 0 };

    int len =
        snprintf(patch, sizeof patch, "{\"status\":{\"message\":\"report %zu\",\"phase\":\"%s\"}}",
                 number, number / c->pods.count % 2 ? "Running" : "Pending");
    if (store_patch(c->store, ref, (struct patch_options){ .status = true },
                    (struct str){ patch, (size_t)len }, NULL, &err) < 0)
        fail("patch", &err);
}

struct timing {
    int64_t write_ns, read_ns;
    uint64_t hash;
};

/* Every watcher reads to its end. */
static uint64_t read_all(struct watch **watches, size_t watcher_count, uint64_t hash, size_t want)
{
    struct watch_event event;
    struct err err = { 0 };

    for (size_t i = 0; i < watcher_count; i++) {
        size_t seen = 0;
        while (watch_next(watches[i], &event, &err) > 0) {
            hash = kv_mix64(hash ^ event.resource_version ^
                            kv_hash(event.object->meta.name.p, event.object->meta.name.len));
            object_unref(event.object);
            seen++;
        }
        KV_ASSERT(seen == want);
    }
    return hash;
}

static struct timing run_shared(struct cluster *c, size_t event_count, size_t watcher_count)
{
    struct watch *watches[WATCHERS_MAX];
    struct timing t = { 0 };
    struct err err = { 0 };

    for (size_t i = 0; i < watcher_count; i++) {
        struct watch_options opts = { .resource_version = embedded_version(c->e) };
        if (store_watch(c->store, &pod_kind, &opts, &watches[i], &err) < 0)
            fail("watch", &err);
    }
    for (size_t done = 0; done < event_count; done += BATCH) {
        int64_t start_ns = clock_mono_ns(clock_real());
        for (size_t i = 0; i < BATCH; i++)
            report_status(c, done + i);
        int64_t written_ns = clock_mono_ns(clock_real());
        t.hash = read_all(watches, watcher_count, t.hash, BATCH);
        t.write_ns += written_ns - start_ns;
        t.read_ns += clock_mono_ns(clock_real()) - written_ns;
    }
    for (size_t i = 0; i < watcher_count; i++)
        watch_close(watches[i]);
    return t;
}

static void decode_copy(struct cluster *c, size_t number)
{
    struct doc doc = { 0 };
    struct err err = { 0 };
    const struct object *object;

    if (json_read_trusted(str_of(c->texts.items[number % c->texts.count]), &doc, &err) < 0 ||
        object_decode(c->pool, &pod_kind, doc.root, &object, &err) < 0)
        fail("decode", &err);
    object_unref(object);
    doc_done(&doc);
}

static struct timing run_copies(struct cluster *c, size_t event_count, size_t watcher_count)
{
    struct timing t = { 0 };

    for (size_t done = 0; done < event_count; done += BATCH) {
        int64_t start_ns = clock_mono_ns(clock_real());
        for (size_t i = 0; i < BATCH; i++)
            report_status(c, done + i);
        int64_t written_ns = clock_mono_ns(clock_real());
        for (size_t w = 0; w < watcher_count; w++) {
            for (size_t i = 0; i < BATCH; i++)
                decode_copy(c, done + i);
        }
        t.write_ns += written_ns - start_ns;
        t.read_ns += clock_mono_ns(clock_real()) - written_ns;
    }
    return t;
}

static double per_event(struct timing t, size_t event_count)
{
    return (double)(t.write_ns + t.read_ns) / (double)event_count;
}

static struct timing best(struct timing a, struct timing b)
{
    return a.write_ns + a.read_ns <= b.write_ns + b.read_ns ? a : b;
}

static void report(size_t pod_count, size_t event_count, size_t watcher_count)
{
    /* Copies cost so much more that fewer events show it. */
    size_t copy_count = event_count / watcher_count / BATCH * BATCH;
    struct timing shared = { .read_ns = INT64_MAX / 2 }, copies = shared;
    if (copy_count == 0)
        copy_count = BATCH;

    uint64_t hash = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct cluster c;
        cluster_init(&c, pod_count); /* anew: equal rounds see equal versions */
        struct timing t = run_shared(&c, event_count, watcher_count);
        KV_ASSERT(round == 0 || t.hash == hash);
        hash = t.hash;
        shared = best(shared, t);
        copies = best(copies, run_copies(&c, copy_count, watcher_count));
        cluster_done(&c);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double ours_ns = per_event(shared, event_count), base_ns = per_event(copies, copy_count);
    double deliveries = (double)event_count * (double)watcher_count;
    printf("store watchers=%zu events_per_s=%.0f deliveries_per_s=%.0f ratio=%.2f write_us=%.2f "
           "fanout_ns=%.0f base_fanout_ns=%.0f pods=%zu events=%zu peak_kb=%ld hash=%016" PRIx64
           "\n",
           watcher_count, 1e9 / ours_ns, 1e9 / ours_ns * (double)watcher_count, base_ns / ours_ns,
           (double)shared.write_ns / (double)event_count / 1e3, (double)shared.read_ns / deliveries,
           (double)copies.read_ns / (double)(copy_count * watcher_count), pod_count, event_count,
           usage.ru_maxrss, hash);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    size_t pod_count = small ? 200 : 5000;
    size_t event_count = small ? 1000 : 20000;

    report(pod_count, event_count, 1);
    report(pod_count, event_count, 10);
    report(pod_count, event_count, 100);
    return 0;
}
